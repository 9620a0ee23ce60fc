//! containerd, with a root, a socket and plugins of its own.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::json;

use crate::{
    Error,
    command::succeeds,
    files::{private_folder, write_private},
    node::{Parts, namespaces::Entrance, network::Block, volumes},
};

/// Where the socket is, inside.
const SOCKET: &str = "/run/containerd/containerd.sock";
/// The image that holds the namespaces of a pod, under the name that every Kubernetes knows.
pub(crate) const PAUSE: &str = "registry.k8s.io/pause:3.10.1";

/// The endpoint as the kubelet names it.
pub(crate) fn endpoint() -> String {
    format!("unix://{SOCKET}")
}

/// The command that starts it, with its files below `ground`.
pub(crate) fn command(
    parts: &Parts,
    entrance: Entrance,
    block: Block,
    ground: &Path,
) -> Result<Command, Error> {
    let networks = ground.join("cni");
    private_folder(&networks)?;
    write_private(&networks.join("10-testbed.conflist"), &network(block))?;
    let runtime = ground.join("runc");
    write_private(&runtime, &volumes::opening_runtime(&parts.runc))?;
    fs::set_permissions(&runtime, fs::Permissions::from_mode(0o700))
        .map_err(Error::io("making the runtime executable"))?;
    let config = ground.join("containerd.toml");
    write_private(&config, &configuration(&runtime, &networks, &parts.cni))?;
    let mut command = entrance.inside(&parts.containerd);
    command.arg("--config").arg(config).arg("--log-level=info").env("PATH", path_with_shim(parts));
    Ok(command)
}

/// ctr against it, for the images of Kubernetes.
pub(crate) fn client(ctr: &Path, entrance: Entrance) -> Command {
    let mut command = entrance.inside(ctr);
    command.args(["--address", SOCKET, "--namespace", "k8s.io"]);
    command
}

/// Whether it answers.
pub(crate) fn answers(ctr: &Path, entrance: Entrance) -> bool {
    succeeds(client(ctr, entrance).arg("version"))
}

/// The shim is looked up on PATH.
fn path_with_shim(parts: &Parts) -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = parts
        .containerd
        .parent()
        .map(Path::to_owned)
        .into_iter()
        .chain(std::env::split_paths(&path))
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .collect();
    std::env::join_paths(folders).unwrap_or(path)
}

/// `restrict_oom_score_adj`: lowering it takes a capability that root in a container lacks.
fn configuration(runtime: &Path, networks: &Path, plugins: &Path) -> String {
    let quoted = |path: &Path| format!("{:?}", path.display().to_string());
    let (runtime, networks, plugins) = (quoted(runtime), quoted(networks), quoted(plugins));
    format!(
        r#"version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
imports = []

[grpc]
address = "{SOCKET}"

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{PAUSE}"

[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = {runtime}
SystemdCgroup = false

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = [{plugins}]
conf_dir = {networks}
"#
    )
}

/// Each pod hangs on a cable of its own, so that all it sends is routed and kube-proxy's rules see it: on a
/// bridge that takes a kernel module.
fn network(block: Block) -> String {
    let value = json!({
        "cniVersion": "1.0.0",
        "name": "testbed",
        "plugins": [
            {
                "type": "ptp",
                "ipMasq": false,
                "ipam": {
                    "type": "host-local",
                    "dataDir": "/run/cni",
                    "ranges": [[{"subnet": block.pods()}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    });
    format!("{value:#}\n")
}
