//! What is decided about a cluster before its components start: where everything is, and with which flags.

use std::{
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    Error, Options, audit,
    credentials::{Credentials, Identity},
    files::write_private,
    kubeconfig::{self, Cluster, User},
    node::{Parts, Site},
    tools::Tools,
};

/// Of a control plane without a node. One with a node has a range of its own.
const SERVICE_RANGE: &str = "10.96.0.0/16";
const KUBERNETES_SERVICE: &str = "10.96.0.1";
/// In a network of one's own.
const ETCD_PORT: u16 = 2379;
const API_SERVER_PORT: u16 = 6443;

/// All that is decided about a cluster.
#[derive(Debug)]
pub(crate) struct Plan {
    folder: PathBuf,
    etcd: PathBuf,
    api_server: PathBuf,
    controller_manager: Option<PathBuf>,
    kubectl: PathBuf,
    credentials: Credentials,
    host: Ipv4Addr,
    pub(crate) etcd_port: u16,
    pub(crate) api_server_port: u16,
    pub(crate) node: Option<(Parts, Site)>,
    audit_log: Option<PathBuf>,
    etcd_flags: Vec<String>,
    api_server_flags: Vec<String>,
    controller_manager_flags: Vec<String>,
}

impl Plan {
    /// Makes the keys and whatever else has to be in the folder first.
    pub(crate) fn new(
        options: &Options,
        tools: &Tools,
        folder: &Path,
        node: Option<(Parts, Site)>,
    ) -> Result<Self, Error> {
        let (host, service) = match &node {
            Some((_, site)) => (site.block.node(), site.block.kubernetes_service().to_string()),
            None => (Ipv4Addr::LOCALHOST, KUBERNETES_SERVICE.to_owned()),
        };
        let controller_manager = match &node {
            Some(_) => Some(tools.require("kube-controller-manager")?),
            None if options.controller_manager => tools.controller_manager()?,
            None => None,
        };
        let audit_log = (options.audit || node.is_some()).then(|| folder.join("audit.log"));
        if audit_log.is_some() {
            write_private(&folder.join("audit-policy.yaml"), audit::POLICY)?;
        }
        Ok(Self {
            etcd: tools.require("etcd")?,
            api_server: tools.require("kube-apiserver")?,
            kubectl: tools.require("kubectl")?,
            controller_manager,
            credentials: Credentials::create(folder, &[host.to_string(), service])?,
            folder: folder.to_owned(),
            host,
            etcd_port: ETCD_PORT,
            api_server_port: API_SERVER_PORT,
            node,
            audit_log,
            etcd_flags: options.etcd_flags.clone(),
            api_server_flags: options.api_server_flags.clone(),
            controller_manager_flags: options.controller_manager_flags.clone(),
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where etcd and the API server listen.
    pub(crate) fn host(&self) -> Ipv4Addr {
        self.host
    }

    pub(crate) fn ca(&self) -> &Path {
        &self.credentials.ca
    }

    pub(crate) fn cluster(&self) -> Cluster {
        Cluster::new(&format!("https://{}:{}", self.host, self.api_server_port), &self.credentials.ca_pem)
    }

    pub(crate) fn admin(&self) -> User {
        self.user(Identity::Administrator)
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    /// Writes the kubeconfig of a component.
    pub(crate) fn kubeconfig_of(&self, identity: Identity, name: &str) -> Result<PathBuf, Error> {
        let path = self.folder.join(format!("{name}.kubeconfig"));
        kubeconfig::write(&path, &self.cluster(), &self.user(identity))?;
        Ok(path)
    }

    pub(crate) fn has_controller_manager(&self) -> bool {
        self.controller_manager.is_some()
    }

    pub(crate) fn audit_log(&self) -> Option<&Path> {
        self.audit_log.as_deref()
    }

    /// kubectl as the administrator.
    pub(crate) fn kubectl(&self) -> Command {
        kubeconfig::kubectl(&self.kubectl, &self.kubeconfig(), &self.folder)
    }

    /// The environment that lets etcdctl reach this etcd.
    pub(crate) fn etcdctl_environment(&self) -> [(&'static str, String); 4] {
        let etcd = &self.credentials.etcd;
        [
            ("ETCDCTL_ENDPOINTS", self.etcd_url()),
            ("ETCDCTL_CACERT", self.credentials.ca.display().to_string()),
            ("ETCDCTL_CERT", etcd.certificate.display().to_string()),
            ("ETCDCTL_KEY", etcd.key.display().to_string()),
        ]
    }

    fn user(&self, identity: Identity) -> User {
        User::with_token(self.credentials.token(identity))
    }

    /// A command in the cluster's network, which without a node is the machine's.
    fn command(&self, program: &Path) -> Command {
        self.node.as_ref().map_or_else(|| Command::new(program), |(_, site)| site.network(program))
    }

    pub(crate) fn etcd_data(&self) -> PathBuf {
        self.folder.join("etcd")
    }

    fn etcd_url(&self) -> String {
        format!("https://{}:{}", self.host, self.etcd_port)
    }

    pub(crate) fn etcd(&self) -> Command {
        let mut command = self.command(&self.etcd);
        let url = self.etcd_url();
        let peers = "http://127.0.0.1:0"; // a port of the kernel's choice: there are no peers
        let pair = &self.credentials.etcd;
        command
            .args(["--name=testbed", "--unsafe-no-fsync", "--log-level=warn"])
            .arg(format!("--listen-client-urls={url}"))
            .arg(format!("--advertise-client-urls={url}"))
            .arg(format!("--listen-peer-urls={peers}"))
            .arg(format!("--initial-advertise-peer-urls={peers}"))
            .arg(format!("--initial-cluster=testbed={peers}"))
            .arg(format!("--quota-backend-bytes={}", 8_u64 << 30))
            .arg("--client-cert-auth");
        path_flags(
            &mut command,
            [
                ("data-dir", self.etcd_data().as_path()),
                ("trusted-ca-file", &self.credentials.ca),
                ("cert-file", &pair.certificate),
                ("key-file", &pair.key),
            ],
        );
        command.args(&self.etcd_flags);
        command
    }

    pub(crate) fn api_server(&self) -> Command {
        let mut command = self.command(&self.api_server);
        let credentials = &self.credentials;
        command
            .arg(format!("--etcd-servers={}", self.etcd_url()))
            .arg(format!("--secure-port={}", self.api_server_port))
            .arg(format!("--bind-address={}", self.host))
            .arg(format!("--advertise-address={}", self.host))
            .arg("--authorization-mode=Node,RBAC")
            // Not on by default, though it is in many clusters: who sets owners that block has to be allowed to.
            .arg("--enable-admission-plugins=OwnerReferencesPermissionEnforcement,NodeRestriction")
            .args(["--allow-privileged", "--profiling=false"])
            .arg("--service-account-issuer=https://kubernetes.default.svc.cluster.local");
        path_flags(
            &mut command,
            [
                ("etcd-cafile", credentials.ca.as_path()),
                ("etcd-certfile", &credentials.etcd.certificate),
                ("etcd-keyfile", &credentials.etcd.key),
                ("tls-cert-file", &credentials.api_server.certificate),
                ("tls-private-key-file", &credentials.api_server.key),
                ("client-ca-file", &credentials.ca),
                ("token-auth-file", &credentials.tokens),
                ("service-account-key-file", &credentials.service_account_public_key),
                ("service-account-signing-key-file", &credentials.service_account_key),
            ],
        );
        self.network_flags(&mut command);
        if let Some(log) = &self.audit_log {
            let policy = self.folder.join("audit-policy.yaml");
            path_flags(&mut command, [("audit-policy-file", policy.as_path()), ("audit-log-path", log)]);
            command.arg("--audit-log-maxsize=1000"); // in MB: one file for a test to read
        }
        if self.controller_manager.is_none() {
            // Nothing makes ServiceAccounts then, and Pods would be refused for want of one.
            command.arg("--disable-admission-plugins=ServiceAccount");
        }
        command.args(&self.api_server_flags);
        command
    }

    fn network_flags(&self, command: &mut Command) {
        let Some((_, site)) = &self.node else {
            command
                .arg(format!("--service-cluster-ip-range={SERVICE_RANGE}"))
                .arg("--endpoint-reconciler-type=none"); // a loopback address is no endpoint of a Service
            return;
        };
        let client = &self.credentials.kubelet_client;
        command
            .arg(format!("--service-cluster-ip-range={}", site.block.services()))
            .arg("--kubelet-preferred-address-types=InternalIP"); // no DNS knows the node's name
        path_flags(
            command,
            [
                ("kubelet-client-certificate", client.certificate.as_path()),
                ("kubelet-client-key", &client.key),
            ],
        );
    }

    /// None if there is to be none. On a node it sees the folder of the volumes that it makes.
    pub(crate) fn controller_manager(&self) -> Result<Option<Command>, Error> {
        let Some(program) = &self.controller_manager else {
            return Ok(None);
        };
        let kubeconfig = self.kubeconfig_of(Identity::ControllerManager, "kube-controller-manager")?;
        let credentials = &self.credentials;
        let mut command =
            self.node.as_ref().map_or_else(|| Command::new(program), |(_, site)| site.inside(program));
        command
            .args(["--secure-port=0", "--leader-elect=false", "--profiling=false"])
            .args(["--use-service-account-credentials", "--enable-hostpath-provisioner"])
            .args(["--kube-api-qps=100", "--kube-api-burst=200"])
            .arg("--horizontal-pod-autoscaler-sync-period=2s"); // else 15 s, which tests would wait for
        path_flags(
            &mut command,
            [
                ("kubeconfig", kubeconfig.as_path()),
                ("root-ca-file", &credentials.ca),
                ("service-account-private-key-file", &credentials.service_account_key),
                ("cluster-signing-cert-file", &credentials.ca),
                ("cluster-signing-key-file", &credentials.ca_key),
            ],
        );
        command.args(&self.controller_manager_flags);
        Ok(Some(command))
    }
}

fn path_flags<const N: usize>(command: &mut Command, flags: [(&str, &Path); N]) {
    for (name, path) in flags {
        command.arg(format!("--{name}={}", path.display()));
    }
}
