//! The cluster that a gate serves, and the installation in it.
//!
//! ```text
//!   definitions served? ─▶ ready            install ─▶ guard
//!                                              └▶ controllers, or the election of an installer
//! ```

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kube::{Client, Config};
use tokio::sync::watch;
use tracing::{debug, info, warn};

use super::{Failure, Options};
use crate::certs::{Handle, Source};
use crate::cli::connect::connect;
use crate::install::guard::{Guarded, run_drift_guard};
use crate::install::served::until_served;
use crate::install::{self, Plan, Served};
use crate::runtime::supervisor::chain;
use crate::runtime::{Metrics, Supervisor, leader};

/// The first pause of a leader that cannot install, which then grow longer.
const FIRST: Duration = Duration::from_secs(1);
/// The longest.
const LONGEST: Duration = Duration::from_secs(30);

/// The cluster, and this gate in it.
pub(super) struct Cluster {
    config: Config,
    client: Client,
    /// None with `--install false`.
    installation: Option<Installation>,
    names: Vec<String>,
}

/// What is installed, and by whom.
#[derive(Clone)]
struct Installation {
    client: Client,
    plan: Plan,
    listener: SocketAddr,
    certificates: Handle,
    /// Whether this replica leads.
    leads: Arc<watch::Sender<bool>>,
    metrics: Metrics,
}

/// This replica leads as long as there is one.
pub(super) struct Leading(Option<Arc<watch::Sender<bool>>>);

impl Drop for Leading {
    fn drop(&mut self) {
        if let Some(leads) = &self.0 {
            leads.send_replace(false);
        }
    }
}

/// The conditions for starting the controllers. Clones see the same.
#[derive(Clone)]
pub(super) struct Installed {
    once: watch::Receiver<bool>,
    /// None with `--install false`.
    installation: Option<Installation>,
}

impl Installed {
    /// Nothing that this process could see to.
    pub(super) fn by_others() -> Self {
        Self { once: watch::channel(true).1, installation: None }
    }

    /// Whether this process installs.
    pub(super) const fn is_ours(&self) -> bool {
        self.installation.is_some()
    }

    /// Waits until this gate has installed for the first time.
    pub(super) async fn once(&mut self) {
        // The sender is in a task that ends with the process.
        let _gone = self.once.wait_for(|installed| *installed).await;
    }

    /// This replica leads from here on: what it installs and guards is what its own settings say.
    pub(super) fn lead(&self) -> Leading {
        let leads = self.installation.as_ref().map(|installation| Arc::clone(&installation.leads));
        if let Some(leads) = &leads {
            leads.send_replace(true);
        }
        Leading(leads)
    }

    /// Installs through this client, however long that takes.
    pub(super) async fn again(self, client: Client) {
        let Some(installation) = self.installation else { return };
        let mut installation = Installation { client, ..installation };
        let mut pause = FIRST;
        while let Err(error) = installation.install().await {
            warn!(error = chain(&error), again_in = ?pause, "failed to install as the leader");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST);
        }
    }

    /// Waits until definitions that this release has written have been there for a while. They are what controllers work
    /// by: what keeps a leader from writing them again, such as a webhook of another owner that does not answer, keeps no
    /// object from being worked.
    pub(super) async fn as_written(&self, client: &Client) {
        loop {
            tokio::time::sleep(LONGEST).await;
            match install::are_defined_by_this_release(client).await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => debug!(error = chain(&error), "failed to read the definitions"),
            }
        }
    }
}

impl Cluster {
    /// Finds the Kubernetes API.
    pub(super) async fn find(
        options: &Options,
        listener: SocketAddr,
        certificates: Handle,
        metrics: &Metrics,
    ) -> Result<Self, Failure> {
        let (config, client) = connect().await?;
        let plan = options.plan(listener)?;
        let names = plan.address.names();
        if options.install {
            certificates.expect_in_force();
        }
        let (leads, metrics) = (Arc::new(watch::channel(false).0), metrics.clone());
        let installation =
            Installation { client: client.clone(), plan, listener, certificates, leads, metrics };
        Ok(Self { config, client, installation: options.install.then_some(installation), names })
    }

    /// Where the gate's certificate comes from.
    pub(super) fn source(&self, options: &Options) -> Source {
        options.mounted().unwrap_or_else(|| options.authority(self.client.clone(), self.names.clone()))
    }

    /// Not ready before the API server serves our kinds, whichever way they are installed. Once ready, it stays so: who
    /// takes them away does not take the gate away.
    pub(super) fn await_definitions(&self, supervisor: &Supervisor) {
        let client = self.client.clone();
        // Which others there are those decide who install, also a leader with other settings, which may wait for this
        // replica to be ready before it ends.
        let wanted = Served::hub();
        supervisor.critical("definitions", |life| async move {
            tokio::select! {
                () = until_served(&client, &wanted, |missing| life.ready().unset(missing)) => life.ready().set(),
                () = life.stopping() => {}
            }
            life.stopping().await;
            Ok(())
        });
    }

    /// Installs, and then guards what is installed.
    pub(super) fn keep_installed(&self, supervisor: &Supervisor) -> Installed {
        let Some(installation) = self.installation.clone() else { return Installed::by_others() };
        let (installed, once) = watch::channel(false);
        let guarded = Installed { once, installation: Some(installation.clone()) };
        supervisor.restarted("installation", move |life| {
            let (mut installation, installed) = (installation.clone(), installed.clone());
            async move {
                tokio::select! {
                    () = installation.certificates.served() => {}
                    () = life.stopping() => return Ok(()),
                }
                // What is in force may be what another replica installed, also where this one cannot.
                installation.look().await;
                installation.install().await?;
                installation.look().await;
                info!(address = %installation.plan.address, "installed");
                life.ready().set();
                installed.send_replace(true);
                let Installation { client, plan, certificates, leads, metrics, .. } = installation;
                let (leads, failing) = (leads.subscribe(), metrics.installation_failing);
                let guarded = Guarded { client, plan, certificates, leads, failing };
                // A replica that drains corrects nothing any more: the replicas that stay write what they want.
                tokio::select! {
                    never = run_drift_guard(guarded) => match never {},
                    () = life.draining() => {}
                }
                // The supervisor restarts a task that returns.
                life.stopping().await;
                Ok(())
            }
        });
        guarded
    }

    /// Has gates without controllers elect one of them, which installs again: as a leader with controllers does before
    /// they start, and for the same reason.
    pub(super) fn elect_installer(&self, supervisor: &Supervisor, options: &Options, installed: &Installed) {
        if self.installation.is_none() {
            return;
        }
        let (config, client) = (self.config.clone(), self.client.clone());
        let (options, installed) = (options.controllers.clone(), installed.clone());
        supervisor.restarted("installer", move |life| {
            let (config, client) = (config.clone(), client.clone());
            let (options, mut installed) = (options.clone(), installed.clone());
            async move {
                tokio::select! {
                    () = installed.once() => {}
                    () = life.stopping() => return Ok(()),
                }
                let lease = options.lease_of_gates(config)?;
                let install = |stop: leader::Stop| {
                    let (leading, again) = (installed.lead(), installed.clone().again(client.clone()));
                    async move {
                        let _leading = leading;
                        tokio::select! {
                            () = async { again.await; std::future::pending().await } => {}
                            () = stop.stopped() => {}
                        }
                        Ok(())
                    }
                };
                let numbers = leader::Numbers::default();
                leader::run(&lease, &numbers, life.ready(), life.draining(), install).await?;
                life.stopping().await;
                Ok(())
            }
        });
    }
}

impl Installation {
    async fn install(&mut self) -> Result<(), install::Error> {
        self.plan.bundle = self.certificates.fresh().await.facts.bundle;
        let leads = *self.leads.borrow();
        let outcome =
            install::install(&self.client, &self.plan, &self.certificates, leads, self.listener).await;
        self.metrics.installation_failing.set(i64::from(outcome.is_err()));
        outcome
    }

    /// Reports what is in force to the certificates. Before the first installation nothing is.
    async fn look(&self) {
        if let Err(error) = install::look(&self.client, &self.certificates).await {
            debug!(error = chain(&error), "failed to read the CA bundles in force");
        }
    }
}
