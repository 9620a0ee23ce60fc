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
//! [`guard`] keeps it so.
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
pub mod definitions;
pub mod guard;
pub mod owner;
pub mod policies;
pub mod probe;
pub mod rbac;
pub mod served;
pub mod webhooks;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client, ResourceExt as _};
use tracing::warn;

use crate::certs::Handle;
use crate::certs::certificate::{Bundle, Certificate};
use crate::runtime::supervisor::chain;
use crate::storage;
use crate::storage::requests::Requests;
pub use address::Address;
use apply::{Applied, Policy, apply, apply_by};
pub use definitions::Served;

/// What both webhook configurations are called.
pub const NAME: &str = "gatehouse";
/// The annotation that says which release wrote an object last.
pub const INSTALLED_BY: &str = "gatehouse.dev/installed-by";

/// The annotation of a definition that says which versions the gate that wrote it last has it serve.
pub const SERVED_VERSIONS: &str = "gatehouse.dev/served-versions";

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

/// Installs all there is, in the order in which each step may rely on the one before.
///
/// # Errors
/// At the first step that fails; every step may be repeated.
pub async fn install(client: &Client, plan: &Plan, listener: SocketAddr) -> Result<(), Error> {
    probe::probe(listener, plan).await?;
    let policy = if plan.replaces_newer { Policy::Always } else { Policy::UnlessNewerRelease };
    write_definitions(client, plan, policy).await?;
    for name in definitions::names() {
        apply::established(client, &name, ESTABLISHED).await?;
    }
    write_configurations(client, plan, policy).await?;
    for name in definitions::names() {
        // Nothing relies on it, and who may not write the status may install all the same.
        if let Err(error) = storage::say_settled(&Requests::through(client.clone()), &name).await {
            warn!(definition = name, error = chain(&error), "failed to say how objects are stored");
        }
    }
    Ok(())
}

/// Writes everything again as far as it differs; whether anything did.
async fn restore(client: &Client, plan: &Plan) -> Result<bool, Error> {
    let definitions = restore_definitions(client, plan).await?;
    let configurations = write_configurations(client, plan, Policy::UnlessOtherRelease).await?;
    Ok(definitions || configurations)
}

/// Writes the definitions again as far as they differ; whether any did. The served versions stay as the gate has them
/// that wrote a definition last: two gates with other settings would undo each other's work without end. This one
/// corrects all else, whichever gate wrote it, for that one may be gone.
async fn restore_definitions(client: &Client, plan: &Plan) -> Result<bool, apply::Error> {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    let mut written = false;
    for wanted in definitions::installed(plan) {
        let name = wanted.name_any();
        let applied = apply_by(&api, &name, Policy::UnlessOtherRelease, |live| {
            let noted = live.and_then(|live| definitions::as_noted(&wanted, plan, live.annotations()));
            let Some((definition, theirs)) = noted else { return wanted.clone() };
            warn!(
                definition = name,
                %theirs,
                ours = %plan.served,
                "a replica with other --served-versions wrote the definition: its versions stay served until the next \
                 leader installs, or a replica starts"
            );
            definition
        });
        written |= applied.await? == Applied::Written;
    }
    Ok(written)
}

/// Whether it was this release that wrote all definitions last.
///
/// # Errors
/// When one is not there, or could not be read.
pub async fn are_defined_by_this_release(client: &Client) -> Result<bool, Error> {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    for name in definitions::names() {
        let live = apply::read(&api, &name).await?;
        if live.annotations().get(INSTALLED_BY).map(String::as_str) != Some(env!("CARGO_PKG_VERSION")) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Reads the CA bundles by which API servers verify the gate, as they are now, and reports them to the certificates. What
/// they have in common.
///
/// # Errors
/// When one of our objects is not there, or could not be read.
pub async fn look(client: &Client, certificates: &Handle) -> Result<Option<Bundle>, Error> {
    match in_force(client).await {
        Ok(trusted) => {
            let bundle = Bundle::of(trusted.iter().cloned());
            certificates.saw_in_force(trusted);
            Ok(bundle)
        }
        Err(error) => {
            if error.is_forbidden() {
                certificates.may_not_see_in_force();
            }
            Err(error.into())
        }
    }
}

/// The certificates that all of our objects carry.
async fn in_force(client: &Client) -> Result<Vec<Certificate>, apply::Error> {
    let mutating = Api::<MutatingWebhookConfiguration>::all(client.clone());
    let validating = Api::<ValidatingWebhookConfiguration>::all(client.clone());
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    let mut bundles = Vec::new();
    let hooks = apply::read(&mutating, NAME).await?.webhooks.unwrap_or_default();
    bundles.extend(hooks.into_iter().map(|hook| hook.client_config.ca_bundle));
    let hooks = apply::read(&validating, NAME).await?.webhooks.unwrap_or_default();
    bundles.extend(hooks.into_iter().map(|hook| hook.client_config.ca_bundle));
    for name in definitions::names() {
        let live = apply::read(&definitions, &name).await?;
        let webhook = live.spec.conversion.and_then(|conversion| conversion.webhook);
        bundles.push(webhook.and_then(|webhook| webhook.client_config).and_then(|config| config.ca_bundle));
    }
    let mut bundles = bundles.into_iter().map(|pem| Certificate::read_all(&pem.unwrap_or_default().0));
    let first = bundles.next().unwrap_or_default();
    Ok(bundles.fold(first, |common, next| common.into_iter().filter(|one| next.contains(one)).collect()))
}

async fn write_definitions(client: &Client, plan: &Plan, policy: Policy) -> Result<bool, apply::Error> {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    let mut written = false;
    for definition in definitions::installed(plan) {
        written |= apply(&api, &definition, policy).await? == Applied::Written;
    }
    Ok(written)
}

async fn write_configurations(client: &Client, plan: &Plan, policy: Policy) -> Result<bool, Error> {
    let owner = owner::of(client, plan).await?;
    let resources = webhooks::resources();
    let mutating = Api::<MutatingWebhookConfiguration>::all(client.clone());
    let validating = Api::<ValidatingWebhookConfiguration>::all(client.clone());
    let first = apply(
        &mutating,
        &owner::owned(webhooks::mutating(plan, &resources, &webhooks::pod_hooks()), owner.as_ref()),
        policy,
    )
    .await?;
    let second =
        apply(&validating, &owner::owned(webhooks::validating(plan, &resources), owner.as_ref()), policy)
            .await?;
    Ok([first, second].contains(&Applied::Written))
}

/// What every object of ours carries.
fn annotations() -> std::collections::BTreeMap<String, String> {
    [(INSTALLED_BY.to_owned(), env!("CARGO_PKG_VERSION").to_owned())].into()
}
