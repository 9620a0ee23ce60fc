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
use super::reconciler::{Context, Reconciler, State};
use crate::api::Version;
use crate::api::condition::{self, Statement};
use crate::api::field::{FieldError, Path, Reason};
use crate::api::validation::{self, Written};
use crate::runtime::call::call;

/// Why an object is not reconciled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// This release cannot decode it.
    Undecodable,
    /// It is in the namespace of gatehouse.
    InOwnNamespace,
}

impl Why {
    fn statements<Kind: Reconciler>(self, stored: &Value, namespace: &str) -> Vec<Statement> {
        match self {
            Self::Undecodable => Kind::undecodable(&faults::<Kind>(stored)),
            Self::InOwnNamespace => {
                let message = format!(
                    "namespace {namespace:?} is gatehouse's own: nothing is made in it, since its pods may use the \
                     ServiceAccount of gatehouse; delete the object, and create it in another namespace"
                );
                vec![Kind::in_own_namespace(message)]
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
    why: Why,
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
    let statements = why.statements::<Kind>(&stored, &place.namespace);
    state.unworked = statements.first().map(|statement| statement.reason);
    let changes = statements.into_iter();
    let changes = changes.map(|statement| condition::set(&mut after, statement, generation, now));
    if changes.fold(false, |changed, one| changed | one) {
        let mut events = Kind::news(&before, &after);
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
