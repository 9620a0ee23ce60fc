//! kube-proxy, whose rules are in the cluster's own network.

use std::{net::Ipv4Addr, path::Path, process::Command};

use crate::node::{NODE, Parts, namespaces::Entrance, network::Block};

/// Where it says that its rules stand.
pub(crate) const HEALTH_PORT: u16 = 10256;

/// The command that starts it. Limits of connection tracking are the machine's, so they are left alone.
pub(crate) fn command(parts: &Parts, entrance: Entrance, kubeconfig: &Path, block: Block) -> Command {
    let node: Ipv4Addr = block.node();
    let mut command = entrance.inside(&parts.kube_proxy);
    command
        .arg(format!("--kubeconfig={}", kubeconfig.display()))
        .arg(format!("--hostname-override={NODE}"))
        .arg(format!("--cluster-cidr={}", block.pods()))
        .arg(format!("--healthz-bind-address={node}:{HEALTH_PORT}"))
        .arg("--oom-score-adj=0")
        .args(["--proxy-mode=iptables", "--iptables-min-sync-period=100ms"])
        .args(["--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0"])
        .args(["--conntrack-tcp-timeout-close-wait=0"]);
    command
}
