//! The cluster that a gate stands before, and what is installed there.
//!
//! ```text
//!   definitions served? ─▶ ready            install ─▶ guard
//!                                              └▶ operator
//! ```

use std::net::SocketAddr;
use std::time::Duration;

use kube::Client;
use tokio::sync::watch;
use tracing::{info, warn};

use super::{Failure, Options};
use crate::certs::{Handle, Source};
use crate::cli::connect::connect;
use crate::install::guard::run_drift_guard;
use crate::install::served::until_served;
use crate::install::{self, Plan};
use crate::runtime::Supervisor;
use crate::runtime::supervisor::chain;

/// The first pause of a leader that cannot install, which then grow longer.
const FIRST: Duration = Duration::from_secs(1);
/// The longest.
const LONGEST: Duration = Duration::from_secs(30);

/// The cluster, and this gate in it.
pub(super) struct Cluster {
    client: Client,
    /// Absent where somebody else installs.
    installation: Option<Installation>,
    names: Vec<String>,
}

/// What is installed, and by whom.
#[derive(Clone)]
pub(super) struct Installation {
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
        let (_config, client) = connect().await?;
        let plan = options.plan(listener)?;
        let names = plan.address.names();
        if options.install {
            certificates.expect_in_force();
        }
        let installation = Installation { client: client.clone(), plan, listener, certificates };
        Ok(Self { client, installation: options.install.then_some(installation), names })
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

    /// What this gate installs; nothing, where somebody else does.
    pub(super) fn installation(&self) -> Option<Installation> {
        self.installation.clone()
    }
}

impl Installation {
    async fn install(&mut self) -> Result<(), install::Error> {
        self.plan.bundle = self.certificates.fresh().await.facts.bundle;
        install::install(&self.client, &self.plan, self.listener).await
    }

    /// Installs, however long it takes.
    pub(super) async fn install_at_last(mut self) {
        let mut pause = FIRST;
        while let Err(error) = self.install().await {
            warn!(error = chain(&error), again_in = ?pause, "failed to install before working");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST);
        }
    }
}
