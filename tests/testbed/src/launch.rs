//! Starts the components in order, each when what it needs answers.
//!
//! Without a node they listen on ports that were free a moment ago, with one on the usual ports of a network of
//! their own.

use std::{
    net::{Ipv4Addr, TcpListener},
    path::Path,
    process::Command,
    time::Duration,
};

use crate::{
    Error,
    command::succeeds,
    component::Component,
    files::remove_folder,
    kubeconfig,
    node::{self, Node},
    plan::Plan,
    process::pause,
    reaper::Reaper,
    wait::{Deadline, POLL, listens, wait_for},
};

/// How long a control plane may take to be ready. It takes some four seconds on an idle machine, and more than a minute
/// was seen beside six others and a compiler on two cores.
const PATIENCE: Duration = Duration::from_mins(4);
const PORT_ATTEMPTS: u32 = 5;

/// What every start needs: the folder of the logs, the reaper that has to know, and how long it may take.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    folder: &'a Path,
    reaper: &'a mut Reaper,
    deadline: Deadline,
}

impl<'a> Launch<'a> {
    pub(crate) fn new(plan: &'a Plan, reaper: &'a mut Reaper) -> Self {
        let patience = if plan.node.is_some() { node::PATIENCE } else { PATIENCE };
        Self { folder: plan.folder(), reaper, deadline: Deadline::after(patience) }
    }

    pub(crate) fn start(&mut self, label: &'static str, command: &mut Command) -> Result<Component, Error> {
        Component::start(label, command, self.folder, self.reaper)
    }

    pub(crate) fn deadline(&self) -> Deadline {
        self.deadline
    }
}

/// The components that run; dropped, and thereby ended, in this order.
#[derive(Debug)]
pub(crate) struct Running {
    node: Option<Node>,
    controller_manager: Option<Component>,
    pub(crate) api_server: Option<Component>,
    etcd: Component,
}

impl Running {
    /// Oldest first.
    pub(crate) fn components(&self) -> impl Iterator<Item = &Component> {
        let control_plane = [Some(&self.etcd), self.api_server.as_ref(), self.controller_manager.as_ref()];
        control_plane.into_iter().flatten().chain(self.node.iter().flat_map(Node::components))
    }

    pub(crate) fn let_go(self) {
        for component in [Some(self.etcd), self.api_server, self.controller_manager].into_iter().flatten() {
            component.let_go();
        }
        if let Some(node) = self.node {
            node.let_go();
        }
    }
}

impl Plan {
    /// Starts everything; on other ports again when another process took one before a component did.
    pub(crate) fn launch(&mut self, reaper: &mut Reaper) -> Result<Running, Error> {
        if self.node.is_some() {
            return self.launch_once(reaper);
        }
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
        let mut launch = Launch::new(self, reaper);
        let mut etcd = self.launch_etcd(&mut launch)?;
        let mut api_server = self.launch_api_server(&mut launch, Some(&mut etcd))?;
        let mut controller_manager = self.launch_controller_manager(&mut launch)?;
        let node = match &self.node {
            Some((parts, site)) => Some(Node::launch(self, parts, site, &mut launch)?),
            None => None,
        };
        let mut all: Vec<_> =
            [&mut etcd, &mut api_server].into_iter().chain(&mut controller_manager).collect();
        self.wait_for_namespace(&launch, &mut all)?;
        Ok(Running { node, controller_manager, api_server: Some(api_server), etcd })
    }

    fn launch_etcd(&self, launch: &mut Launch<'_>) -> Result<Component, Error> {
        let mut etcd = launch.start("etcd", &mut self.etcd())?;
        wait_for("etcd to listen", launch.deadline, &mut [&mut etcd], || {
            listens(self.host(), self.etcd_port)
        })?;
        Ok(etcd)
    }

    /// Starts the API server on the ports and data that the control plane has already.
    pub(crate) fn relaunch_api_server(&self, reaper: &mut Reaper) -> Result<Component, Error> {
        let mut launch = Launch::new(self, reaper);
        loop {
            match self.launch_api_server(&mut launch, None) {
                Err(error) if error.is_address_in_use() && !launch.deadline.is_over() => pause(POLL),
                result => return result,
            }
        }
    }

    fn launch_api_server(
        &self,
        launch: &mut Launch<'_>,
        etcd: Option<&mut Component>,
    ) -> Result<Component, Error> {
        let mut started = launch.start("kube-apiserver", &mut self.api_server())?;
        let mut all: Vec<_> = etcd.into_iter().chain([&mut started]).collect();
        // kubectl is dear to start, so it asks only when something listens. It also makes sure who that is.
        wait_for("kube-apiserver to be ready", launch.deadline, &mut all, || {
            listens(self.host(), self.api_server_port) && self.answers("/readyz")
        })?;
        Ok(started)
    }

    fn launch_controller_manager(&self, launch: &mut Launch<'_>) -> Result<Option<Component>, Error> {
        let Some(mut command) = self.controller_manager()? else {
            return Ok(None);
        };
        launch.start("kube-controller-manager", &mut command).map(Some)
    }

    fn wait_for_namespace(&self, launch: &Launch<'_>, all: &mut [&mut Component]) -> Result<(), Error> {
        let object = if self.has_controller_manager() {
            "/api/v1/namespaces/default/serviceaccounts/default"
        } else {
            "/api/v1/namespaces/default"
        };
        wait_for("the default namespace and its ServiceAccount", launch.deadline, all, || {
            self.answers(object)
        })
    }

    fn answers(&self, path: &str) -> bool {
        succeeds(self.kubectl().args(["get", "--request-timeout=5s", "--raw", path]))
    }
}

/// Two ports that are free now; both are held until both are known, so they differ.
fn free_ports() -> Result<(u16, u16), Error> {
    let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error::io("looking for a free port"));
    let (one, other) = (listen()?, listen()?);
    let port = |listener: &TcpListener| {
        listener.local_addr().map(|address| address.port()).map_err(Error::io("looking for a free port"))
    };
    Ok((port(&one)?, port(&other)?))
}
