//! The node: what makes a whole cluster of a control plane.
//!
//! [`Ground`] is what the cluster stands on (namespaces, addresses, a control group), made before anything of it
//! starts, because the control plane lives there too: the API server dials webhooks through Services.
//! [`Node`] is what runs on it.

mod cgroups;
mod containerd;
mod dns;
mod images;
mod kubelet;
mod namespaces;
mod network;
mod proxy;
mod volumes;

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use serde_json::Value;

use crate::{
    Error,
    component::Component,
    credentials::Identity,
    files::{private_folder, write_private},
    launch::Launch,
    plan::Plan,
    process::ProcessId,
    reaper::Reaper,
    tools::Tools,
    wait::{listens, wait_for},
};
use namespaces::{Entrance, Namespaces, find_program};
use network::Block;

pub(crate) use cgroups::{REMOVE as REMOVE_GROUPS, remove as remove_group};

/// How long a cluster may take until its node is ready. It takes some fifteen seconds on an idle machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(3);
/// The name of the only node.
pub(crate) const NODE: &str = "node";
/// Where Debian, Fedora and most others keep the plugins.
const CNI_FOLDERS: [&str; 4] = ["/usr/lib/cni", "/usr/libexec/cni", "/opt/cni/bin", "/usr/lib/cni/bin"];
const CNI_PLUGINS: [&str; 4] = ["loopback", "ptp", "host-local", "portmap"];
const PROGRAMS: [&str; 7] = ["ip", "iptables", "conntrack", "mount", "nsenter", "unshare", "find"];

/// Where everything is that a node is made of.
#[derive(Debug)]
pub(crate) struct Parts {
    scheduler: PathBuf,
    containerd: PathBuf,
    ctr: PathBuf,
    kubelet: PathBuf,
    kube_proxy: PathBuf,
    coredns: PathBuf,
    pause: PathBuf,
    runc: PathBuf,
    cni: PathBuf,
}

impl Parts {
    /// Finds all of them, so that what is missing is said before anything starts.
    pub(crate) fn find(tools: &Tools) -> Result<Self, Error> {
        let user = fs::metadata("/proc/self").map_err(Error::io("looking at /proc/self"))?.uid();
        if user != 0 {
            return Err(Error::NotRoot);
        }
        if !tools.has_node() {
            return Err(Error::NoNodeOfVersion);
        }
        for program in PROGRAMS {
            find_program(program)?;
        }
        let has_all = |folder: &Path| CNI_PLUGINS.iter().all(|name| folder.join(name).is_file());
        let cni = CNI_FOLDERS
            .map(PathBuf::from)
            .into_iter()
            .find(|folder| has_all(folder))
            .ok_or_else(|| Error::PackageMissing(CNI_PLUGINS.join("`, `")))?;
        tools.require_for_node("containerd-shim-runc-v2")?;
        Ok(Self {
            scheduler: tools.require_for_node("kube-scheduler")?,
            containerd: tools.require_for_node("containerd")?,
            ctr: tools.require_for_node("ctr")?,
            kubelet: tools.require_for_node("kubelet")?,
            kube_proxy: tools.require_for_node("kube-proxy")?,
            coredns: tools.require_for_node("coredns")?,
            pause: tools.require_image("pause")?,
            runc: find_program("runc")?,
            cni,
        })
    }
}

/// What a cluster with a node stands on. Dropped, it ends all that runs inside.
#[derive(Debug)]
pub(crate) struct Ground {
    namespaces: Option<Namespaces>,
    pub(crate) site: Site,
}

/// The ways and addresses of a [`Ground`].
#[derive(Debug, Clone)]
pub(crate) struct Site {
    entrance: Entrance,
    pub(crate) block: Block,
    cgroup: String,
    folder: PathBuf,
}

impl Ground {
    /// Makes it, with its files in the folder `node` of the cluster's.
    pub(crate) fn lay(folder: &Path, name: &str, reaper: &mut Reaper) -> Result<Self, Error> {
        let own = folder.join("node");
        private_folder(&own)?;
        let cgroup = cgroups::make(folder, name, reaper)?;
        let namespaces = Namespaces::create(folder, &own, reaper)?;
        let entrance = namespaces.entrance();
        let block = network::connect(entrance, name)?;
        Ok(Self { namespaces: Some(namespaces), site: Site { entrance, block, cgroup, folder: own } })
    }

    pub(crate) fn holder(&self) -> Option<&Component> {
        self.namespaces.as_ref().map(Namespaces::holder)
    }

    pub(crate) fn let_go(mut self) {
        if let Some(namespaces) = self.namespaces.take() {
            namespaces.let_go();
        }
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        if let Some(namespaces) = self.namespaces.take() {
            let _ = namespaces.end(); // what it cannot end, the reaper cannot either
        }
    }
}

impl Site {
    /// A command in the cluster's network.
    pub(crate) fn network(&self, program: &Path) -> Command {
        self.entrance.network(program)
    }

    /// A command that also sees the node's files and processes.
    pub(crate) fn inside(&self, program: &Path) -> Command {
        self.entrance.inside(program)
    }

    /// Loads the images of an archive.
    pub(crate) fn load_image(&self, ctr: &Path, archive: &Path) -> Result<(), Error> {
        images::load(ctr, self.entrance, archive)
    }
}

/// A command that sees the node's files, processes and network, by the process that holds its namespaces.
pub(crate) fn inside(holder: &ProcessId, program: &Path) -> Command {
    Entrance::of(holder).inside(program)
}

/// Loads the images of an archive into a node, by the process that holds its namespaces.
pub(crate) fn load_image(holder: &ProcessId, tools: &Tools, archive: &Path) -> Result<(), Error> {
    images::load(&tools.require_for_node("ctr")?, Entrance::of(holder), archive)
}

/// The components of the node; dropped, and thereby ended, in this order.
#[derive(Debug)]
pub(crate) struct Node {
    dns: Component,
    proxy: Component,
    scheduler: Component,
    kubelet: Component,
    containerd: Component,
}

impl Node {
    /// Starts all of it, and waits until the node is ready, Services are routed and names are resolved.
    pub(crate) fn launch(
        plan: &Plan,
        parts: &Parts,
        site: &Site,
        launch: &mut Launch<'_>,
    ) -> Result<Self, Error> {
        let (entrance, block, ground) = (site.entrance, site.block, site.folder.as_path());
        let kubeconfig = |identity, name: &str| plan.kubeconfig_of(identity, name);
        let kubelet_kubeconfig = kubeconfig(Identity::Kubelet, "kubelet")?;
        let settings =
            kubelet::Settings { kubeconfig: &kubelet_kubeconfig, ca: plan.ca(), block, cgroup: &site.cgroup };
        let dns = kubeconfig(Identity::Dns, "coredns")?;
        let proxy = kubeconfig(Identity::Proxy, "kube-proxy")?;

        let mut containerd = containerd::command(parts, entrance, block, ground)?;
        let mut containerd = launch.start("containerd", &mut containerd)?;
        wait_for("containerd", launch.deadline(), &mut [&mut containerd], || {
            containerd::answers(&parts.ctr, entrance)
        })?;
        images::load(&parts.ctr, entrance, &parts.pause)?;
        let kubelet = launch.start("kubelet", &mut kubelet::command(parts, entrance, ground, &settings)?)?;
        let scheduler = launch.start("kube-scheduler", &mut scheduler(plan, parts, site)?)?;
        let proxy = launch.start("kube-proxy", &mut proxy::command(parts, entrance, &proxy, block))?;
        apply(plan, ground)?;
        let dns = launch.start("coredns", &mut dns::command(parts, entrance, ground, &dns, block)?)?;

        let mut node = Self { dns, proxy, scheduler, kubelet, containerd };
        let address = block.node();
        wait_for("the node to be ready, kube-proxy and CoreDNS", launch.deadline(), &mut node.all(), || {
            listens(address, dns::PORT) && listens(address, proxy::HEALTH_PORT) && is_ready(plan)
        })?;
        Ok(node)
    }

    fn all(&mut self) -> [&mut Component; 5] {
        [&mut self.containerd, &mut self.kubelet, &mut self.scheduler, &mut self.proxy, &mut self.dns]
    }

    /// Oldest first.
    pub(crate) fn components(&self) -> [&Component; 5] {
        [&self.containerd, &self.kubelet, &self.scheduler, &self.proxy, &self.dns]
    }

    pub(crate) fn let_go(self) {
        for component in [self.containerd, self.kubelet, self.scheduler, self.proxy, self.dns] {
            component.let_go();
        }
    }
}

fn scheduler(plan: &Plan, parts: &Parts, site: &Site) -> Result<Command, Error> {
    let kubeconfig = plan.kubeconfig_of(Identity::Scheduler, "kube-scheduler")?;
    let mut command = site.network(&parts.scheduler);
    command.arg(format!("--kubeconfig={}", kubeconfig.display())).args([
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=100",
        "--kube-api-burst=200",
    ]);
    Ok(command)
}

/// What a fresh cluster gets: rights of CoreDNS and a default StorageClass.
fn apply(plan: &Plan, ground: &Path) -> Result<(), Error> {
    let path = ground.join("cluster.yaml");
    write_private(&path, &[dns::RIGHTS, volumes::STORAGE_CLASS].join("---"))?;
    crate::command::run(plan.kubectl().args(["apply", "--server-side", "--filename"]).arg(path)).map(drop)
}

/// Ready, and without a taint that would keep pods away.
fn is_ready(plan: &Plan) -> bool {
    let path = format!("/api/v1/nodes/{NODE}");
    let Ok(text) = crate::command::run(plan.kubectl().args(["get", "--request-timeout=5s", "--raw", &path]))
    else {
        return false;
    };
    let node: Value = serde_json::from_str(&text).unwrap_or_default();
    let conditions = node["status"]["conditions"].as_array();
    let ready = conditions
        .is_some_and(|all| all.iter().any(|each| each["type"] == "Ready" && each["status"] == "True"));
    ready && node["spec"]["taints"].as_array().is_none_or(Vec::is_empty)
}
