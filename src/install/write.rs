//! Writes the definitions and the webhook configurations, as far as they differ.
//!
//! Guarantees: objects are written by the settings that [`takeover`] says, which are noted on them; an authority that
//! another replica wants stays in the bundle (see [`crate::certs::kept`]); what was read of an object still holds at the
//! moment of writing.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Api, Client, Resource, ResourceExt};

use super::apply::{self, Applied, Policy, apply};
use super::bundles::Carries;
use super::owner;
use super::settings::Settings;
use super::takeover::{self, By};
use super::{Error, NAME, Plan, definitions, webhooks};
use crate::certs::{Handle, Round};
use crate::kinds::KINDS;
use crate::runtime::clock;

/// One round of writing.
pub(super) struct Writing<'a> {
    client: &'a Client,
    plan: &'a Plan,
    policy: Policy,
    by: By,
    /// None where other clients write the bundle.
    round: Option<Round>,
    /// The noted settings, where they are others than those of the plan.
    pub(super) theirs: Option<Settings>,
}

impl<'a> Writing<'a> {
    /// Finds out by whose settings. `leads`: whether this replica does.
    ///
    /// # Errors
    /// When the API server does not say what is noted.
    pub(super) async fn begin(
        client: &'a Client,
        plan: &'a Plan,
        certificates: &Handle,
        policy: Policy,
        leads: bool,
    ) -> Result<Self, Error> {
        let (by, theirs) = takeover::whose(client, plan, leads).await?;
        let round = plan.bundle.clone().map(|wanted| certificates.begin_round(wanted, clock::now()));
        Ok(Self { client, plan, policy, by, round, theirs })
    }

    /// Whether any definition differed.
    pub(super) async fn definitions(&self) -> Result<bool, apply::Error> {
        let api = Api::<CustomResourceDefinition>::all(self.client.clone());
        let mut written = false;
        for kind in KINDS {
            let name = kind.names().definition();
            let applied = apply(&api, &name, self.policy, |live| {
                let (plan, _) = self.plan_over(live);
                noted(definitions::with_conversion(kind.definition(), &plan), &plan)
            });
            written |= applied.await? == Applied::Written;
        }
        Ok(written)
    }

    /// Whether any configuration differed.
    pub(super) async fn configurations(&self) -> Result<bool, Error> {
        let owner = owner::of(self.client, self.plan).await?;
        let resources = webhooks::resources();
        let mutating = Api::<MutatingWebhookConfiguration>::all(self.client.clone());
        let validating = Api::<ValidatingWebhookConfiguration>::all(self.client.clone());
        let first = apply(&mutating, NAME, self.policy, |live| {
            let (plan, is_ours) = self.plan_over(live);
            let wanted = webhooks::mutating(&plan, &resources, &webhooks::pod_hooks());
            owner::owned(noted(wanted, &plan), owner_over(live, is_ours, owner.as_ref()).as_ref())
        });
        let first = first.await?;
        let second = apply(&validating, NAME, self.policy, |live| {
            let (plan, is_ours) = self.plan_over(live);
            let wanted = webhooks::validating(&plan, &resources);
            owner::owned(noted(wanted, &plan), owner_over(live, is_ours, owner.as_ref()).as_ref())
        });
        Ok([first, second.await?].contains(&Applied::Written))
    }

    /// What is written over an object that is there like that, and whether it is by this replica's settings.
    fn plan_over<K: Resource + Carries>(&self, live: Option<&K>) -> (Plan, bool) {
        let ours = Settings::of(self.plan);
        let theirs =
            live.filter(|_| self.by == By::Noted).and_then(|live| Settings::noted(live.annotations()));
        let is_ours = theirs.as_ref().is_none_or(|theirs| *theirs == ours);
        let certificates = || live.map(Carries::certificates).unwrap_or_default();
        let bundle = self.round.as_ref().map(|round| round.bundle(certificates()));
        (theirs.unwrap_or(ours).planned(self.plan, bundle), is_ours)
    }
}

fn noted<K: Resource>(mut object: K, plan: &Plan) -> K {
    Settings::of(plan).note(object.meta_mut());
    object
}

/// The owner of this replica's settings. By the settings of others it stays who it is: this replica may not be allowed to
/// read that ClusterRole.
fn owner_over<K: Resource>(
    live: Option<&K>,
    is_ours: bool,
    owner: Option<&OwnerReference>,
) -> Option<OwnerReference> {
    let of_others = || {
        let all = live.map(ResourceExt::owner_references).unwrap_or_default();
        all.iter().find(|one| one.kind == "ClusterRole").cloned()
    };
    if is_ours { owner.cloned() } else { of_others() }
}
