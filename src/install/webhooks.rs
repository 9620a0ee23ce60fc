//! The webhook configurations, as values. Pure.
//!
//! Guarantees: rules for our kinds alone, and for pods that ask for something of ours in namespaces that let them, so
//! that a gate which is down never keeps the rest of the cluster from healing it; none for deletions, which the gate
//! does not validate (see [`super::policies`]), so that neither objects nor their namespaces stay for its sake; one
//! validating hook for all kinds, since the API server passes on only the first refusal.

use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ValidatingWebhook,
    ValidatingWebhookConfiguration,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kube::core::ObjectMeta;

use super::{NAME, Plan, address, annotations};
use crate::api::lens::memory;
use crate::api::pod_hook::{self, PodHook};
use crate::api::{GROUP, Kind, Version};
use crate::kinds::KINDS;
use crate::review::Endpoint;

/// How long the API server waits for one answer, in seconds. The caller waits that long at most for each hook.
const TIMEOUT_SECONDS: i32 = 5;

/// What rules have to know of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Its plural name.
    pub plural: String,
    /// Whether replicas can be set by its scale subresource.
    pub has_scale: bool,
}

impl Resource {
    /// What rules have to know of `kind`.
    #[must_use]
    pub fn of(kind: &dyn Kind) -> Self {
        let versions = &kind.definition().spec.versions;
        let has_scale = versions
            .iter()
            .filter_map(|version| version.subresources.as_ref())
            .any(|subresources| subresources.scale.is_some());
        Self { plural: kind.names().plural.to_owned(), has_scale }
    }
}

/// All kinds.
#[must_use]
pub fn resources() -> Vec<Resource> {
    KINDS.iter().map(|kind| Resource::of(*kind)).collect()
}

/// All that is added to pods.
#[must_use]
pub fn pod_hooks() -> Vec<&'static PodHook> {
    KINDS.iter().filter_map(|kind| kind.pod_hook()).collect()
}

/// Validates creation and change in every version, and the scale subresource.
#[must_use]
pub fn validating(plan: &Plan, resources: &[Resource]) -> ValidatingWebhookConfiguration {
    let plurals = resources.iter().map(|one| one.plural.clone()).collect();
    let scales: Vec<_> =
        resources.iter().filter(|one| one.has_scale).map(|one| format!("{}/scale", one.plural)).collect();
    let mut rules = vec![rule(&Version::ALL, &["CREATE", "UPDATE"], plurals)];
    if !scales.is_empty() {
        rules.push(rule(&Version::ALL, &["UPDATE"], scales));
    }
    let hook = ValidatingWebhook {
        name: "validate.gatehouse.dev".to_owned(),
        client_config: address::of_admission(plan, Endpoint::Validate),
        rules: Some(rules),
        failure_policy: Some("Fail".to_owned()),
        match_policy: Some("Equivalent".to_owned()),
        namespace_selector: Some(namespaces(plan)),
        object_selector: Some(LabelSelector::default()),
        match_conditions: Some(conditions()),
        side_effects: "None".to_owned(),
        timeout_seconds: Some(TIMEOUT_SECONDS),
        admission_review_versions: vec!["v1".to_owned()],
    };
    ValidatingWebhookConfiguration { metadata: metadata(), webhooks: Some(vec![hook]) }
}

/// Writes defaults into new and changed objects, and into new pods what they ask for.
///
/// The rules name the hub alone: with `Equivalent` a write in another version arrives converted, and `requestKind` has
/// the version that its author wrote.
#[must_use]
pub fn mutating(plan: &Plan, resources: &[Resource], pods: &[&PodHook]) -> MutatingWebhookConfiguration {
    let plurals = resources.iter().map(|one| one.plural.clone()).collect();
    let hook = MutatingWebhook {
        name: "mutate.gatehouse.dev".to_owned(),
        client_config: address::of_admission(plan, Endpoint::Mutate),
        rules: Some(vec![rule(&[Version::V1], &["CREATE", "UPDATE"], plurals)]),
        failure_policy: Some("Fail".to_owned()),
        match_policy: Some("Equivalent".to_owned()),
        reinvocation_policy: Some("IfNeeded".to_owned()),
        namespace_selector: Some(namespaces(plan)),
        object_selector: Some(LabelSelector::default()),
        match_conditions: Some(conditions()),
        side_effects: "None".to_owned(),
        timeout_seconds: Some(TIMEOUT_SECONDS),
        admission_review_versions: vec!["v1".to_owned()],
    };
    let of_pods =
        pods.iter().flat_map(|hook| pod_hook::POLICIES.map(|policy| pods_asking(plan, hook, policy)));
    MutatingWebhookConfiguration {
        metadata: metadata(),
        webhooks: Some(std::iter::once(hook).chain(of_pods).collect()),
    }
}

/// For the pods that ask for what `hook` adds, in the namespaces that let them by that policy.
fn pods_asking(plan: &Plan, hook: &PodHook, policy: &str) -> MutatingWebhook {
    let labelled = |value: &str| Some([(hook.label.to_owned(), value.to_owned())].into_iter().collect());
    MutatingWebhook {
        name: format!("{}-{}.gatehouse.dev", hook.name, policy.to_ascii_lowercase()),
        client_config: address::of_admission(plan, Endpoint::Mutate),
        rules: Some(vec![RuleWithOperations {
            api_groups: Some(vec![String::new()]),
            api_versions: Some(vec!["v1".to_owned()]),
            operations: Some(vec!["CREATE".to_owned()]),
            resources: Some(vec!["pods".to_owned()]),
            scope: Some("Namespaced".to_owned()),
        }]),
        failure_policy: Some(policy.to_owned()),
        match_policy: Some("Equivalent".to_owned()),
        reinvocation_policy: Some("Never".to_owned()),
        namespace_selector: Some(LabelSelector { match_labels: labelled(policy), ..namespaces(plan) }),
        object_selector: Some(LabelSelector {
            match_labels: labelled(pod_hook::ASKS),
            match_expressions: None,
        }),
        match_conditions: None,
        side_effects: "None".to_owned(),
        timeout_seconds: Some(TIMEOUT_SECONDS),
        admission_review_versions: vec!["v1".to_owned()],
    }
}

fn metadata() -> ObjectMeta {
    ObjectMeta { name: Some(NAME.to_owned()), annotations: Some(annotations()), ..ObjectMeta::default() }
}

fn rule(versions: &[Version], operations: &[&str], resources: Vec<String>) -> RuleWithOperations {
    RuleWithOperations {
        api_groups: Some(vec![GROUP.to_owned()]),
        api_versions: Some(versions.iter().map(ToString::to_string).collect()),
        operations: Some(operations.iter().map(ToString::to_string).collect()),
        resources: Some(resources),
        scope: Some("Namespaced".to_owned()),
    }
}

/// The namespaces that are reconciled, where not all are. Written out even when empty, so that a selector which
/// another client sets is taken back.
fn namespaces(plan: &Plan) -> LabelSelector {
    let worked = (!plan.namespaces.is_empty()).then(|| LabelSelectorRequirement {
        key: "kubernetes.io/metadata.name".to_owned(),
        operator: "In".to_owned(),
        values: Some(plan.namespaces.iter().cloned().collect()),
    });
    LabelSelector { match_expressions: worked.map(|worked| vec![worked]), match_labels: None }
}

/// Leaves out updates that change nothing which is validated: finalizers, owners, managed fields. Not of what was read
/// without what the old version cannot say: whatever is written of it loses that. And none by another version than the
/// hub: a part of the status rides in annotations there, and it is the gate that has them change nothing.
fn conditions() -> Vec<MatchCondition> {
    vec![MatchCondition { name: "changes-what-is-judged".to_owned(), expression: changes() }]
}

/// True for whatever is no update of the object itself. There, one of `object` and `oldObject` may be null or (as a
/// `Scale`) without the fields below; what CEL makes of those does not matter next to a true alternative.
fn changes() -> String {
    let judged = ["spec", "metadata.labels", "metadata.annotations", "metadata.deletionTimestamp"];
    let other = [
        "request.operation != 'UPDATE'".to_owned(),
        "(has(request.subResource) && request.subResource != '')".to_owned(),
        format!("request.requestKind.version != '{}'", Version::V1),
        format!(
            "(has(object.metadata.annotations) && '{}' in object.metadata.annotations)",
            memory::dropped()
        ),
    ];
    other.into_iter().chain(judged.map(differs)).collect::<Vec<_>>().join(" || ")
}

fn differs(field: &str) -> String {
    format!(
        "has(object.{field}) != has(oldObject.{field}) || (has(object.{field}) && object.{field} != oldObject.{field})"
    )
}

#[cfg(test)]
mod tests;
