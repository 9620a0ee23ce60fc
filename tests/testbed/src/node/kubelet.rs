//! The kubelet of the only node.

use std::{path::Path, process::Command};

use serde_json::json;

use crate::{
    Error,
    files::write_private,
    node::{NODE, Parts, containerd, namespaces::Entrance, network::Block},
};

/// What the kubelet needs to know of the control plane.
pub(crate) struct Settings<'a> {
    pub(crate) kubeconfig: &'a Path,
    pub(crate) ca: &'a Path,
    pub(crate) block: Block,
    /// The control group that pods are below.
    pub(crate) cgroup: &'a str,
}

/// The command that starts it, with its files below `ground`.
pub(crate) fn command(
    parts: &Parts,
    entrance: Entrance,
    ground: &Path,
    settings: &Settings<'_>,
) -> Result<Command, Error> {
    let node = settings.block.node();
    let resolver = ground.join("resolv.conf");
    write_private(&resolver, &format!("nameserver {node}\n"))?;
    let config = ground.join("kubelet.json");
    let content = configuration(settings, &resolver);
    write_private(&config, &format!("{content:#}\n"))?;
    let mut command = entrance.inside(&parts.kubelet);
    command
        .arg(format!("--config={}", config.display()))
        .arg(format!("--kubeconfig={}", settings.kubeconfig.display()))
        .arg(format!("--hostname-override={NODE}"))
        .arg(format!("--node-ip={node}"));
    Ok(command)
}

/// It runs on any kernel that has control groups at all, beside swap and on a full disk, and it never throws
/// images away, since there is no registry to get them back from; it keeps logs whole, since tests read them; and it
/// shows Pods what their Secrets have by now, and restarts what crashes, sooner than the minutes of its defaults.
fn configuration(settings: &Settings<'_>, resolver: &Path) -> serde_json::Value {
    let node = settings.block.node();
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node,
        "healthzPort": 0,
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": settings.ca},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": containerd::endpoint(),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{}", settings.cgroup),
        "failCgroupV1": false,
        "failSwapOn": false,
        "clusterDomain": "cluster.local",
        "clusterDNS": [node],
        "resolvConf": resolver,
        "evictionHard": {
            "memory.available": "1Mi",
            "nodefs.available": "1Mi",
            "nodefs.inodesFree": "1",
            "imagefs.available": "1Mi",
        },
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "containerLogMaxSize": "1Gi",
        "serializeImagePulls": false,
        "nodeStatusUpdateFrequency": "5s",
        "syncFrequency": "10s",
        "crashLoopBackOff": {"maxContainerRestartPeriod": "20s"},
        "oomScoreAdj": 0,
        "maxPods": 250,
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
    })
}
