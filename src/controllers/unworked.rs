//! An object that is not reconciled: its conditions say why, and nothing else is done.
//!
//! One that this release cannot decode was stored before a rule existed, or while its definition was another one. One
//! in the namespace of gatehouse came by the gate and the policies, which refuse it: its pods could use gatehouse's
//! ServiceAccount.
//!
//! Guarantees: the conditions name the fields; conditions of others stay, an odd one among them loses no other. Where the
//! API server refuses the status (a CEL rule fails at a value of another type, and an API server forgives no stored object
//! that), events say it.
//! Never: repeats a value of the object, which the decoder's message might.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::DynamicObject;
use kube::{Api, Resource as _};
use serde_json::{Value, json};

use super::Watched;
use super::api_write::{ApiWrite, Note};
use super::manifest::{Manifest, Place};
use super::outcome::{Error, Outcome};
use super::reconciler::{Context, Reconciler, State, Why};
use crate::api::Version;
use crate::api::condition::{self, Statement};
use crate::api::field::{FieldError, Path, Reason};
use crate::api::validation::{self, Written};
use crate::runtime::call::call;

/// Why an object is not reconciled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// This release cannot decode it.
    Undecodable,
    /// It is in the namespace of gatehouse.
    InOwnNamespace,
}

impl Cause {
    fn statements<Kind: Reconciler>(self, stored: &Value, namespace: &str) -> Vec<Statement> {
        match self {
            Self::Undecodable => Kind::unworked(Why::Undecodable(&faults::<Kind>(stored))),
            Self::InOwnNamespace => {
                let message = format!(
                    "namespace {namespace:?} is gatehouse's own: nothing is made in it, since its pods may use the \
                     ServiceAccount of gatehouse; delete the object, and create it in another namespace"
                );
                Kind::unworked(Why::InOwnNamespace(message))
            }
        }
    }
}

/// Reports why an object is not reconciled, where that is new. An event says once that the API server refuses the status.
///
/// # Errors
/// When the API server does not answer, or refuses the status.
pub async fn report<Kind: Reconciler>(
    context: &Context<Kind>,
    object: &Watched<Kind::Object>,
    cause: Cause,
    state: &mut State<Kind>,
    now: Timestamp,
) -> Result<Outcome, Error> {
    let place = Place::of_metadata::<Kind::Object>(object.meta());
    let api: Api<DynamicObject> =
        Api::namespaced_with(context.client.clone(), &place.namespace, &place.resource);
    let found = call(api.get_opt(&place.name)).await.map_err(Error::of("read", &place))?;
    let Some(found) = found.filter(|found| found.metadata.uid == object.meta().uid) else {
        return Ok(Outcome::Leaving);
    };
    let generation = found.metadata.generation;
    let metadata = json!({"uid": found.metadata.uid, "resourceVersion": found.metadata.resource_version});
    let stored = serde_json::to_value(found).unwrap_or_default();
    let before = conditions(&stored);
    let mut after = before.clone();
    let statements = cause.statements::<Kind>(&stored, &place.namespace);
    let first = statements.first().map(|statement| (statement.about, statement.reason));
    state.unworked = first.map(|(_, reason)| reason);
    let changes = statements.into_iter();
    let changes = changes.map(|statement| condition::set(&mut after, statement, generation, now));
    if changes.fold(false, |changed, one| changed | one) {
        let mut events: Vec<_> = first.and_then(|first| news(&before, &after, first)).into_iter().collect();
        let status = json!({"observedGeneration": generation, "conditions": after});
        let object_with_status = json!({"metadata": metadata, "status": status});
        let manifest = Manifest { place, object: object_with_status };
        let regarding = object.object_ref(&());
        let status = ApiWrite::Status { manifest, manager: Kind::IDENTITY.manager };
        let written = context.writer.perform(&status, &regarding).await;
        match &written {
            Ok(_) => state.is_status_refused = false,
            Err(error)
                if error.is_refusal_for_good() && !std::mem::replace(&mut state.is_status_refused, true) =>
            {
                events.push(Note::of_refused_status(error));
            }
            Err(_) => events.clear(),
        }
        for event in events {
            context.writer.perform(&ApiWrite::Event(event), &regarding).await?;
        }
        written?;
    } else {
        state.is_status_refused = false;
    }
    Ok(Outcome::Invalid)
}

/// The event of the condition of that type and reason, where its reason or its message is new.
fn news(before: &[Condition], after: &[Condition], (about, reason): (&str, &'static str)) -> Option<Note> {
    let said = condition::find(after, about)?;
    let is_new = condition::find(before, about)
        .is_none_or(|old| (&old.reason, &old.message) != (&said.reason, &said.message));
    is_new.then(|| Note { warning: true, reason, action: "Reconcile", text: said.message.clone() })
}

/// What the gate has against the object as it is stored. Where it has nothing, the decoder still has.
fn faults<Kind: Reconciler>(stored: &Value) -> Vec<FieldError> {
    let faults =
        validation::stored(Kind::IDENTITY.kind, Written { version: Version::V1, object: stored }).errors;
    let unclear = || FieldError::new(Path::spec(), Reason::Invalid, "cannot be read by this release");
    if faults.is_empty() { vec![unclear()] } else { faults }
}

/// The conditions of an object, whatever else is in it.
fn conditions(stored: &Value) -> Vec<Condition> {
    let conditions = stored.pointer("/status/conditions").and_then(Value::as_array);
    let read = conditions.into_iter().flatten().map(|one| serde_json::from_value(one.clone()));
    read.filter_map(Result::ok).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_an_event_where_its_reason_or_its_message_is_new() {
        let conditions = |reason: &'static str, message: &str| {
            let mut conditions = Vec::new();
            let message = message.to_owned();
            let statement = Statement { about: "Ready", state: condition::State::False, reason, message };
            condition::set(&mut conditions, statement, Some(1), Timestamp::UNIX_EPOCH);
            conditions
        };
        let after = conditions("SpecInvalid", "spec.a: no");
        let is_event = |before: &[Condition]| news(before, &after, ("Ready", "SpecInvalid")).is_some();
        assert!(is_event(&[]) && is_event(&conditions("Valid", "spec.a: no")));
        assert!(is_event(&conditions("SpecInvalid", "spec.b: no")));
        assert!(!is_event(&after));
    }

    #[test]
    fn conditions_are_read_one_by_one_so_that_an_odd_one_loses_no_other() {
        let said = json!({
            "type": "Available", "status": "True", "reason": "QuorumServes", "message": "",
            "lastTransitionTime": "2026-11-21T00:00:00Z",
        });
        let stored =
            json!({"spec": {"replicas": "three"}, "status": {"conditions": [said, {"type": 7}, "odd"]}});
        let types: Vec<_> = conditions(&stored).into_iter().map(|one| one.type_).collect();
        assert_eq!(types, ["Available"]);
        assert_eq!(conditions(&json!({"status": {"conditions": "odd"}})), []);
        assert_eq!(conditions(&json!({})), []);
    }
}
