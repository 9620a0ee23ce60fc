//! The policies that the API server itself enforces on our kinds, as values. Pure.
//!
//! Guarantees: they hold while the gate is down, and an object that no policy protects is deleted then.
//! Never: written by the gate. The person who deploys gatehouse applies them, so that its own account cannot lift them.

use k8s_openapi::api::admissionregistration::v1::{
    MatchResources, NamedRuleWithOperations, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicyBindingSpec, ValidatingAdmissionPolicySpec, Validation, Variable,
};
use kube::core::ObjectMeta;

use super::{NAME, webhooks};
use crate::api::policy::{AuthorRule, Workload};
use crate::api::{GROUP, Kind, Version};
use crate::kinds::KINDS;

/// A policy, and the binding that puts it into force everywhere.
#[derive(Clone, Debug)]
pub struct Policy {
    /// What its name has after gatehouse's.
    pub suffix: String,
    /// The policy.
    pub policy: ValidatingAdmissionPolicy,
    /// Its binding.
    pub binding: ValidatingAdmissionPolicyBinding,
}

/// All policies that are in force unless they are left out.
#[must_use]
pub fn all() -> Vec<Policy> {
    KINDS.iter().flat_map(|kind| [protection(*kind), authorship(*kind)]).flatten().collect()
}

/// What comes before an old version is no longer served: reads by it go on, and a write by it is refused with what to do.
/// An API server that does not serve a version says nothing but that it knows no such thing. Not among [`all`]: who deploys
/// gatehouse decides when the time has come.
///
/// An object that is being deleted may be written by it, so that who has a finalizer there takes that away. Replicas are
/// set, and statuses written, by subresources: for these, the rules name them.
#[must_use]
pub fn only_hub() -> Policy {
    let (old, hub) = (Version::V1Alpha1, Version::V1.api_version());
    let validation = Validation {
        expression: "has(object.metadata.deletionTimestamp)".to_owned(),
        message: Some(format!(
            "{} is no longer written: gatehouse convert -f FILE rewrites a manifest as {hub}",
            old.api_version()
        )),
        reason: Some("Forbidden".to_owned()),
        ..Validation::default()
    };
    let plurals: Vec<_> = KINDS.iter().map(|kind| kind.names().plural).collect();
    let operations = ["CREATE", "UPDATE"];
    let mut made = policy("only-v1".to_owned(), &plurals, &operations, Vec::new(), vec![validation]);
    // By the version of the request itself, which Equivalent would hide.
    if let Some(constraints) = made.policy.spec.as_mut().and_then(|spec| spec.match_constraints.as_mut()) {
        constraints.match_policy = Some("Exact".to_owned());
        let parts = |one: &webhooks::Resource| {
            let parts = ["", "/status"].into_iter().chain(one.has_scale.then_some("/scale"));
            parts.map(|part| format!("{}{part}", one.plural)).collect::<Vec<_>>()
        };
        for rule in constraints.resource_rules.iter_mut().flatten() {
            rule.api_versions = Some(vec![old.to_string()]);
            rule.resources = Some(webhooks::resources().iter().flat_map(parts).collect());
        }
    }
    made
}

/// Refuses the deletion of a protected object.
fn protection(kind: &dyn Kind) -> Option<Policy> {
    let protection = kind.protection()?;
    let validation = Validation {
        expression: format!("!({})", protection.protected),
        message_expression: Some(protection.message.to_owned()),
        message: Some("the object is protected from deletion".to_owned()),
        reason: Some("Forbidden".to_owned()),
    };
    let plural = kind.names().plural;
    Some(policy(
        format!("deletion-protection-{plural}"),
        &[plural],
        &["DELETE"],
        Vec::new(),
        vec![validation],
    ))
}

/// Refuses an object whose author may not create the workloads that are made for it.
fn authorship(kind: &dyn Kind) -> Option<Policy> {
    let workloads = kind.workloads();
    if workloads.is_empty() {
        return None;
    }
    let same = Variable {
        name: "sameSpec".to_owned(),
        expression:
            "oldObject != null && has(oldObject.spec) && has(object.spec) && object.spec == oldObject.spec"
                .to_owned(),
    };
    let plural = kind.names().plural;
    let validations = workloads.iter().map(may_create).chain(kind.author_rules().iter().map(may)).collect();
    Some(policy(format!("authorship-{plural}"), &[plural], &["CREATE", "UPDATE"], vec![same], validations))
}

fn may_create(workload: &Workload) -> Validation {
    let Workload { group, resource, asked, field } = workload;
    let allowed = format!(
        "authorizer.group('{group}').resource('{resource}').namespace(request.namespace).check('create').allowed()"
    );
    Validation {
        expression: format!("variables.sameSpec || !({asked}) || {allowed}"),
        message_expression: Some(format!(
            "'{field} has {resource}.{group} made in namespace ' + request.namespace + ', which user ' + \
             request.userInfo.username + ' may not create'"
        )),
        message: Some(format!("{field} has {resource}.{group} made, which its author may not create")),
        reason: Some("Forbidden".to_owned()),
    }
}

fn may(rule: &AuthorRule) -> Validation {
    let AuthorRule { holds, message } = rule;
    Validation {
        expression: format!("variables.sameSpec || ({holds})"),
        message: Some((*message).to_owned()),
        reason: Some("Forbidden".to_owned()),
        ..Validation::default()
    }
}

fn policy(
    suffix: String,
    plurals: &[&str],
    operations: &[&str],
    variables: Vec<Variable>,
    validations: Vec<Validation>,
) -> Policy {
    let name = format!("{NAME}-{suffix}");
    let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
    // Other versions are converted to the hub first.
    let rule = NamedRuleWithOperations {
        api_groups: Some(vec![GROUP.to_owned()]),
        api_versions: Some(vec![Version::V1.to_string()]),
        operations: Some(operations.iter().map(ToString::to_string).collect()),
        resources: Some(plurals.iter().map(ToString::to_string).collect()),
        scope: Some("Namespaced".to_owned()),
        ..NamedRuleWithOperations::default()
    };
    let constraints = MatchResources {
        match_policy: Some("Equivalent".to_owned()),
        resource_rules: Some(vec![rule]),
        ..MatchResources::default()
    };
    let spec = ValidatingAdmissionPolicySpec {
        failure_policy: Some("Fail".to_owned()),
        match_constraints: Some(constraints),
        variables: Some(variables).filter(|variables| !variables.is_empty()),
        validations: Some(validations),
        ..ValidatingAdmissionPolicySpec::default()
    };
    let policy =
        ValidatingAdmissionPolicy { metadata: metadata.clone(), spec: Some(spec), ..Default::default() };
    let spec = ValidatingAdmissionPolicyBindingSpec {
        policy_name: Some(name),
        validation_actions: Some(vec!["Deny".to_owned()]),
        ..ValidatingAdmissionPolicyBindingSpec::default()
    };
    Policy { suffix, policy, binding: ValidatingAdmissionPolicyBinding { metadata, spec: Some(spec) } }
}
