//! The cluster that a gate stands before: what is installed there, and what is worked.
//!
//! ```text
//!   each replica:   definitions served? ─▶ ready            install ─▶ guard
//!                                                              └▶ stand for election
//!   the leader:     install ─▶ controllers
//! ```
//!
//! Guarantees: who leads has installed before it works. In a rolling update the replica of an old release that was
//! started last has had the say until then, and a leader of the new one takes it back.

use std::net::SocketAddr;
use std::time::Duration;

use kube::{Client, Config};
use tokio::sync::watch;
use tracing::{info, warn};

use super::{Failure, Options};
use crate::certs::{Handle, Source};
use crate::controllers::scope::Scope;
use crate::controllers::{self, Controlled, Numbers, tdset};
use crate::install::guard::run_drift_guard;
use crate::install::served::until_served;
use crate::install::{self, Plan};
use crate::runtime::Supervisor;
use crate::runtime::leader::{self, Lease, Stop};
use crate::runtime::readiness::{Ready, Weight};
use crate::runtime::supervisor::{Ending, chain};

/// The first pause of a leader that cannot install, which then grow longer.
const FIRST: Duration = Duration::from_secs(1);
/// The longest.
const LONGEST: Duration = Duration::from_secs(30);

#[derive(Debug, thiserror::Error)]
#[error("unable to find a Kubernetes API: expected KUBECONFIG or a pod's service account, or --webhook-only")]
struct NoCluster {
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// The cluster, and this gate in it.
#[derive(Clone)]
pub(super) struct Cluster {
    client: Client,
    lease: Lease,
    scope: Scope,
    /// Absent where somebody else installs.
    installation: Option<Installation>,
    names: Vec<String>,
}

#[derive(Clone)]
struct Installation {
    client: Client,
    plan: Plan,
    listener: SocketAddr,
    certificates: Handle,
}

impl Cluster {
    /// Finds the Kubernetes API.
    pub(super) async fn find(
        options: &Options,
        listener: SocketAddr,
        certificates: Handle,
    ) -> Result<Self, Failure> {
        let no_cluster = |source| NoCluster { source };
        let config = Config::infer().await.map_err(|source| no_cluster(source.into()))?;
        let client = Client::try_from(config.clone()).map_err(|source| no_cluster(source.into()))?;
        let plan = options.plan(listener)?;
        let names = plan.address.names();
        let installation = Installation { client: client.clone(), plan, listener, certificates };
        Ok(Self {
            client,
            lease: options.lease(config)?,
            scope: options.watch_namespaces.clone(),
            installation: options.install.then_some(installation),
            names,
        })
    }

    /// Where the gate's certificate comes from.
    pub(super) fn source(&self, options: &Options) -> Source {
        options.mounted().unwrap_or_else(|| options.authority(self.client.clone(), self.names.clone()))
    }

    /// Nobody is ready before our kinds can be used, whoever installs them. Once they can, it stays so: whoever takes
    /// them away does not take the gate away.
    pub(super) fn await_definitions(&self, supervisor: &Supervisor) {
        let client = self.client.clone();
        supervisor.critical("definitions", |life| async move {
            tokio::select! {
                () = until_served(&client, |missing| life.ready().unset(missing)) => life.ready().set(),
                () = life.stopping() => {}
            }
            life.stopping().await;
            Ok(())
        });
    }

    /// Installs, and then guards what is installed. What it returns turns true at the first time, and is so from the
    /// start where somebody else installs.
    pub(super) fn keep_installed(&self, supervisor: &Supervisor) -> watch::Receiver<bool> {
        let (installed, once_installed) = watch::channel(self.installation.is_none());
        let Some(installation) = self.installation.clone() else { return once_installed };
        supervisor.restarted("installation", move |life| {
            let (mut installation, installed) = (installation.clone(), installed.clone());
            async move {
                tokio::select! {
                    () = installation.certificates.served() => {}
                    () = life.stopping() => return Ok(()),
                }
                installation.install().await?;
                info!(address = %installation.plan.address, "installed");
                life.ready().set();
                installed.send_replace(true);
                let Installation { client, plan, certificates, .. } = installation;
                tokio::select! {
                    never = run_drift_guard(client, plan, certificates) => match never {},
                    () = life.stopping() => Ok(()),
                }
            }
        });
        once_installed
    }

    /// Stands for election once this gate is installed, and works on the objects of all kinds while it leads.
    pub(super) fn keep_working(
        &self,
        supervisor: &Supervisor,
        numbers: Numbers,
        elections: leader::Numbers,
        installed: watch::Receiver<bool>,
    ) {
        let tdset = supervisor.readiness().register(tdset::Operator::NAME, Weight::Listed);
        let cluster = self.clone();
        supervisor.restarted("leader", move |life| {
            let (cluster, elections, mut installed) = (cluster.clone(), elections.clone(), installed.clone());
            let work = {
                let (cluster, numbers, tdset) = (cluster.clone(), numbers.clone(), tdset.clone());
                move |stop| cluster.clone().work(numbers.clone(), tdset.clone(), stop)
            };
            async move {
                tokio::select! {
                    _ = installed.wait_for(|installed| *installed) => {}
                    () = life.stopping() => return Ok(()),
                }
                leader::run(&cluster.lease, &elections, &life, work).await
            }
        });
    }

    /// What the leader does.
    async fn work(self, numbers: Numbers, tdset: Ready, stop: Stop) -> Ending {
        if let Some(installation) = self.installation.clone() {
            tokio::select! {
                () = installation.install_at_last() => {}
                () = stop.stopped() => return Ok(()),
            }
        }
        let tdset = Working(tdset);
        let ready = || tdset.0.set();
        controllers::run::<tdset::Operator>(self.client, &self.scope, numbers, ready, stop.stopped()).await;
        Ok(())
    }
}

impl Installation {
    async fn install(&mut self) -> Result<(), install::Error> {
        self.plan.bundle = self.certificates.fresh().await.facts.bundle;
        install::install(&self.client, &self.plan, self.listener).await
    }

    /// Installs, however long it takes.
    async fn install_at_last(mut self) {
        let mut pause = FIRST;
        while let Err(error) = self.install().await {
            warn!(error = chain(&error), again_in = ?pause, "failed to install before working");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST);
        }
    }
}

/// Listed as working until the work ends, in whichever way.
struct Working(Ready);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.unset("this replica does not lead");
    }
}
