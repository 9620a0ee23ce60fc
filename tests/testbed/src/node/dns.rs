//! CoreDNS, at the address of the node. It knows the cluster's names; any other does not exist.

use std::{path::Path, process::Command};

use crate::{
    Error,
    files::write_private,
    node::{Parts, namespaces::Entrance, network::Block},
};

pub(crate) const PORT: u16 = 53;

/// What it may read.
pub(crate) const RIGHTS: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: system:coredns
rules:
- apiGroups: [""]
  resources: [services, pods, namespaces]
  verbs: [list, watch]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: system:coredns
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:coredns}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: system:coredns}
"#;

/// The command that starts it, with its files below `ground`. Answers are kept for two seconds at most, so
/// that tests see soon what they changed.
pub(crate) fn command(
    parts: &Parts,
    entrance: Entrance,
    ground: &Path,
    kubeconfig: &Path,
    block: Block,
) -> Result<Command, Error> {
    let corefile = ground.join("Corefile");
    let (node, kubeconfig) = (block.node(), kubeconfig.display());
    let content = format!(
        "cluster.local:{PORT} in-addr.arpa:{PORT} {{
    bind {node}
    errors
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig \"{kubeconfig}\"
        ttl 2
    }}
    cache 2
}}
.:{PORT} {{
    bind {node}
    template ANY ANY {{
        rcode NXDOMAIN
    }}
}}
"
    );
    write_private(&corefile, &content)?;
    let mut command = entrance.network(&parts.coredns);
    command.arg("-conf").arg(corefile);
    Ok(command)
}
