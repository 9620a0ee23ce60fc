//! Starts the components in order, each when what it needs answers, on ports that were free a moment ago.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::{
    Error, Options,
    component::Component,
    credentials::Credentials,
    files::{remove_folder, write_private},
    kubeconfig::{self, Cluster, User},
    process::pause,
    reaper::Reaper,
    tools::Tools,
};

/// How long a control plane may take to be ready. It takes some four seconds on an idle machine.
const PATIENCE: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(100);
const CONNECT_PATIENCE: Duration = Duration::from_millis(500);
const PORT_ATTEMPTS: u32 = 5;
const SERVICE_RANGE: &str = "10.96.0.0/16";

/// All that is decided about a control plane before its components start.
#[derive(Debug)]
pub(crate) struct Plan {
    folder: PathBuf,
    etcd: PathBuf,
    api_server: PathBuf,
    controller_manager: Option<PathBuf>,
    kubectl: PathBuf,
    credentials: Credentials,
    etcd_port: u16,
    api_server_port: u16,
    etcd_flags: Vec<String>,
    api_server_flags: Vec<String>,
}

/// The components that run; dropped, and thereby ended, in this order.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) controller_manager: Option<Component>,
    pub(crate) api_server: Option<Component>,
    pub(crate) etcd: Component,
}

impl Running {
    /// Oldest first.
    pub(crate) fn components(&self) -> impl Iterator<Item = &Component> {
        [Some(&self.etcd), self.api_server.as_ref(), self.controller_manager.as_ref()].into_iter().flatten()
    }

    pub(crate) fn let_go(self) {
        for component in [Some(self.etcd), self.api_server, self.controller_manager].into_iter().flatten() {
            component.let_go();
        }
    }
}

impl Plan {
    pub(crate) fn new(options: &Options, tools: &Tools, folder: &Path) -> Result<Self, Error> {
        Ok(Self {
            etcd: tools.require("etcd")?,
            api_server: tools.require("kube-apiserver")?,
            kubectl: tools.require("kubectl")?,
            controller_manager: if options.controller_manager { tools.controller_manager()? } else { None },
            credentials: Credentials::create(folder)?,
            folder: folder.to_owned(),
            etcd_port: 0,
            api_server_port: 0,
            etcd_flags: options.etcd_flags.clone(),
            api_server_flags: options.api_server_flags.clone(),
        })
    }

    pub(crate) fn cluster(&self) -> Cluster {
        Cluster::new(&format!("https://127.0.0.1:{}", self.api_server_port), &self.credentials.ca_pem)
    }

    pub(crate) fn admin(&self) -> User {
        User::with_token(&self.credentials.admin_token)
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    pub(crate) fn has_controller_manager(&self) -> bool {
        self.controller_manager.is_some()
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

    /// Starts everything; on other ports again when somebody took one before a component did.
    pub(crate) fn launch(&mut self, reaper: &mut Reaper) -> Result<Running, Error> {
        let mut attempt = 1;
        loop {
            (self.etcd_port, self.api_server_port) = free_ports()?;
            match self.launch_once(reaper) {
                Err(error) if error.is_address_in_use() && attempt < PORT_ATTEMPTS => attempt += 1,
                result => return result,
            }
        }
    }

    fn launch_once(&self, reaper: &mut Reaper) -> Result<Running, Error> {
        remove_folder(&self.etcd_data())?;
        kubeconfig::write(&self.kubeconfig(), &self.cluster(), &self.admin())?;
        let deadline = Instant::now() + PATIENCE;
        let mut etcd = Component::start("etcd", &mut self.etcd(), &self.folder, reaper)?;
        wait_for("etcd to listen", deadline, &mut [&mut etcd], || listens(self.etcd_port))?;
        let mut api_server = self.launch_api_server(deadline, Some(&mut etcd), reaper)?;
        let mut controller_manager = None;
        let object = if let Some(program) = &self.controller_manager {
            let command = &mut self.controller_manager(program)?;
            let started = Component::start("kube-controller-manager", command, &self.folder, reaper)?;
            controller_manager = Some(started);
            "/api/v1/namespaces/default/serviceaccounts/default"
        } else {
            "/api/v1/namespaces/default"
        };
        let mut all: Vec<_> =
            [&mut etcd, &mut api_server].into_iter().chain(&mut controller_manager).collect();
        wait_for("the default namespace and its ServiceAccount", deadline, &mut all, || {
            self.answers(object)
        })?;
        let running = Running { controller_manager, api_server: Some(api_server), etcd };
        self.record(&running)?;
        Ok(running)
    }

    /// Starts the API server on the ports and data that the control plane has already.
    pub(crate) fn relaunch_api_server(&self, reaper: &mut Reaper) -> Result<Component, Error> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.launch_api_server(deadline, None, reaper) {
                Err(error) if error.is_address_in_use() && Instant::now() < deadline => pause(POLL),
                result => return result,
            }
        }
    }

    fn launch_api_server(
        &self,
        deadline: Instant,
        etcd: Option<&mut Component>,
        reaper: &mut Reaper,
    ) -> Result<Component, Error> {
        let mut started = Component::start("kube-apiserver", &mut self.api_server(), &self.folder, reaper)?;
        let mut all: Vec<_> = etcd.into_iter().chain([&mut started]).collect();
        // kubectl is dear to start, so it asks only when something listens. It also makes sure who that is.
        wait_for("kube-apiserver to be ready", deadline, &mut all, || {
            listens(self.api_server_port) && self.answers("/readyz")
        })?;
        Ok(started)
    }

    /// Writes the `pids` file: a line `PID START LABEL` for each process, oldest first.
    pub(crate) fn record(&self, running: &Running) -> Result<(), Error> {
        let line = |component: &Component| {
            let process = component.process();
            format!("{} {} {}\n", process.pid(), process.started(), component.label())
        };
        write_private(&self.folder.join("pids"), &running.components().map(line).collect::<String>())
    }

    fn etcd_data(&self) -> PathBuf {
        self.folder.join("etcd")
    }

    fn etcd_url(&self) -> String {
        format!("https://127.0.0.1:{}", self.etcd_port)
    }

    fn etcd(&self) -> Command {
        let mut command = Command::new(&self.etcd);
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

    fn api_server(&self) -> Command {
        let mut command = Command::new(&self.api_server);
        let credentials = &self.credentials;
        command
            .arg(format!("--etcd-servers={}", self.etcd_url()))
            .arg(format!("--secure-port={}", self.api_server_port))
            .arg(format!("--service-cluster-ip-range={SERVICE_RANGE}"))
            .args(["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1"])
            .arg("--endpoint-reconciler-type=none") // a loopback address is no endpoint of a Service
            .arg("--authorization-mode=Node,RBAC")
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
        if self.controller_manager.is_none() {
            // Nobody makes ServiceAccounts then, and Pods would be refused for want of one.
            command.arg("--disable-admission-plugins=ServiceAccount");
        }
        command.args(&self.api_server_flags);
        command
    }

    fn controller_manager(&self, program: &Path) -> Result<Command, Error> {
        let kubeconfig = self.folder.join("kube-controller-manager.kubeconfig");
        let user = User::with_token(&self.credentials.controller_manager_token);
        kubeconfig::write(&kubeconfig, &self.cluster(), &user)?;
        let credentials = &self.credentials;
        let mut command = Command::new(program);
        command
            .args(["--secure-port=0", "--leader-elect=false", "--profiling=false"])
            .args(["--use-service-account-credentials", "--enable-hostpath-provisioner"])
            .args(["--kube-api-qps=100", "--kube-api-burst=200"]);
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
        Ok(command)
    }

    fn answers(&self, path: &str) -> bool {
        kubectl(&self.kubectl, &self.kubeconfig(), &self.folder)
            .args(["get", "--request-timeout=5s", "--raw", path])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }
}

/// kubectl with this kubeconfig, its cache in `folder`, and without the habits of whoever runs the tests.
pub(crate) fn kubectl(program: &Path, kubeconfig: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env("KUBECONFIG", kubeconfig)
        .env("KUBECACHEDIR", folder.join("kubectl-cache"))
        .env("KUBERC", "off");
    command
}

fn path_flags<const N: usize>(command: &mut Command, flags: [(&str, &Path); N]) {
    for (name, path) in flags {
        command.arg(format!("--{name}={}", path.display()));
    }
}

/// Two ports that nobody listens on now; both are held until both are known, so they differ.
fn free_ports() -> Result<(u16, u16), Error> {
    let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error::io("looking for a free port"));
    let (one, other) = (listen()?, listen()?);
    let port = |listener: &TcpListener| {
        listener.local_addr().map(|address| address.port()).map_err(Error::io("looking for a free port"))
    };
    Ok((port(&one)?, port(&other)?))
}

fn listens(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpStream::connect_timeout(&address, CONNECT_PATIENCE).is_ok()
}

/// Polls until `ready`, the deadline, or the end of a component.
fn wait_for(
    what: &'static str,
    deadline: Instant,
    components: &mut [&mut Component],
    mut ready: impl FnMut() -> bool,
) -> Result<(), Error> {
    loop {
        let is_ready = ready();
        for component in components.iter_mut() {
            component.check()?;
        }
        if is_ready {
            return Ok(());
        }
        if Instant::now() >= deadline {
            let logs: Vec<String> = components.iter().map(|component| component.tail()).collect();
            return Err(Error::NotReady { what, waited: PATIENCE, logs: logs.join("\n") });
        }
        pause(POLL);
    }
}
