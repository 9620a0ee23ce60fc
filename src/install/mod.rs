//! gatehouse installs itself: its definitions, with conversion in them, and its webhook configurations.
//!
//! ```text
//! certificate served, listener up            (the caller's part)
//!   └▶ probe: TLS with the bundle alone, one conversion
//!        └▶ definitions with their conversion stanza ─▶ established
//!             └▶ webhook configurations
//! ```
//!
//! Guarantees: nothing in the cluster points at a gate that did not answer its own call; writing what is there
//! already changes nothing, not even a resource version, so that a restart resets no watch; afterwards
//! [`guard`] keeps it so; replicas with other settings keep to those that are noted (see [`takeover`]).
//! Never: removes anything.
//!
//! To uninstall, delete what deployed gatehouse. With `--cluster-role` both webhook configurations belong to its
//! ClusterRole, and the garbage collector removes them with it, also while the gate still runs: without its rights it
//! puts nothing back. Without that option, delete both configurations named `gatehouse` first: while they point at a
//! gate that is gone, no object of our kinds can be written.
//!
//! The definitions stay, and with them the objects. They point at a gate that is gone, which matters to who asks for
//! another version than the stored one. In v1, objects that are stored as v1 are read, listed, written and deleted as
//! ever, and their namespaces go (a test does all that); in v1alpha1 nothing can be asked for; an object whose
//! managed fields are of v1alpha1 loses them when it is written. Objects still stored as v1alpha1 can be neither read
//! nor deleted: write them again before. Schemas and CEL rules hold on. Installed again, gatehouse takes all of it up.
//! To lose the objects as well, delete the definitions, before or after.

pub mod address;
pub mod apply;
pub mod bundles;
pub mod definitions;
pub mod guard;
pub mod owner;
pub mod policies;
pub mod probe;
pub mod rbac;
pub mod served;
pub mod settings;
pub mod takeover;
pub mod webhooks;
mod write;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client};
use tracing::warn;

use crate::certs::Handle;
use crate::certs::certificate::Bundle;
use crate::runtime::supervisor::chain;
use crate::storage;
use crate::storage::requests::Requests;
pub use address::Address;
use apply::Policy;
pub use bundles::look;
pub use definitions::Served;
use write::Writing;

/// What both webhook configurations are called.
pub const NAME: &str = "gatehouse";
/// The annotation that says which release wrote an object last.
pub const INSTALLED_BY: &str = "gatehouse.dev/installed-by";

/// The annotation that says which settings an object was written with last.
pub const INSTALLED_WITH: &str = "gatehouse.dev/installed-with";

/// How long a definition may take until it is served.
const ESTABLISHED: Duration = Duration::from_secs(30);

/// What the cluster has to know about this gate.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where the API server finds it.
    pub address: Address,
    /// The namespaces whose objects it validates; none for all.
    pub namespaces: BTreeSet<String>,
    /// The versions by which our kinds are served.
    pub served: Served,
    /// The ClusterRole that owns the webhook configurations, so that they go with it; none: they have no owner.
    pub cluster_role: Option<String>,
    /// Whether what a newer release wrote is written over at the start.
    pub replaces_newer: bool,
    /// What the API server has to trust; none where others write that (cert-manager's injector), or where
    /// the certificate is publicly trusted.
    pub bundle: Option<Bundle>,
}

impl Plan {
    /// A gate at that address for all namespaces, with a bundle and an owner that others see to.
    #[must_use]
    pub fn at(address: Address) -> Self {
        let (namespaces, served) = (BTreeSet::new(), Served::default());
        Self { address, namespaces, served, cluster_role: None, replaces_newer: false, bundle: None }
    }
}

/// Installing failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The gate does not answer itself.
    #[error(transparent)]
    Probe(#[from] probe::Error),
    /// An object could not be written, or is not served.
    #[error(transparent)]
    Apply(#[from] apply::Error),
    /// The owner of the webhook configurations is not known.
    #[error(transparent)]
    Owner(#[from] owner::Error),
}

/// Installs all there is, in the order in which each step may rely on the one before. `leads`: whether this replica
/// does, and so brings its own settings into force.
///
/// # Errors
/// At the first step that fails; every step may be repeated.
pub async fn install(
    client: &Client,
    plan: &Plan,
    certificates: &Handle,
    leads: bool,
    listener: SocketAddr,
) -> Result<(), Error> {
    probe::probe(listener, plan).await?;
    let policy = if plan.replaces_newer { Policy::Always } else { Policy::UnlessNewerRelease };
    let writing = Writing::begin(client, plan, certificates, policy, leads).await?;
    writing.definitions().await?;
    for name in definitions::names() {
        apply::established(client, &name, ESTABLISHED).await?;
    }
    writing.configurations().await?;
    for name in definitions::names() {
        // Nothing relies on it, and who may not write the status may install all the same.
        if let Err(error) = storage::say_settled(&Requests::through(client.clone()), &name).await {
            warn!(definition = name, error = chain(&error), "failed to say how objects are stored");
        }
    }
    Ok(())
}

/// Whether it was this release that wrote all definitions last.
///
/// # Errors
/// When one could not be read.
pub async fn are_defined_by_this_release(client: &Client) -> Result<bool, Error> {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    for name in definitions::names() {
        let annotations = apply::annotations(&api, &name).await?;
        if annotations.get(INSTALLED_BY).map(String::as_str) != Some(env!("CARGO_PKG_VERSION")) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What every object of ours carries.
fn annotations() -> std::collections::BTreeMap<String, String> {
    [(INSTALLED_BY.to_owned(), env!("CARGO_PKG_VERSION").to_owned())].into()
}
