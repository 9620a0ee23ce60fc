//! Everything that is read for a pass. Effects, and nothing decided.

use jiff::Timestamp;
use kube::api::DynamicObject;
use kube::core::ApiResource;
use kube::{Api, Resource as _, ResourceExt as _};
use serde_json::Value;

use super::view::Observed;
use super::{Operator, Recall};
use crate::api::Version;
use crate::api::field::{Fault, Path, Reason};
use crate::api::judge::{self, Written};
use crate::api::tdset::TDSetKind;
use crate::api::tdset::v1::TDSet;
use crate::controllers::Watched;
use crate::controllers::manifest::Place;
use crate::controllers::outcome::Error;
use crate::runtime::call::call;

/// The object, if the judge of the gate has nothing against it; or else what.
///
/// # Errors
/// When an object that cannot be decoded cannot be read again either.
pub async fn judged<'a>(
    operator: &Operator,
    object: &'a Watched<TDSet>,
    now: Timestamp,
) -> Result<Result<&'a TDSet, Vec<Fault>>, Error> {
    if let Ok(tdset) = &object.0 {
        let faults = faults(&serde_json::to_value(tdset).unwrap_or_default(), now);
        return Ok(if faults.is_empty() { Ok(tdset) } else { Err(faults) });
    }
    // What a decoder says may repeat a value, and does not say where; the judge says where.
    let faults = faults(&raw(operator, object).await?, now);
    let unclear = Fault::new(Path::spec(), Reason::Invalid, "cannot be read by this release");
    Ok(Err(if faults.is_empty() { vec![unclear] } else { faults }))
}

fn faults(object: &Value, now: Timestamp) -> Vec<Fault> {
    judge::stored(&TDSetKind, Written { version: Version::V1, object }, now).faults
}

/// The object as it is stored.
async fn raw(operator: &Operator, object: &Watched<TDSet>) -> Result<Value, Error> {
    let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
    let place = Place { resource: ApiResource::erase::<TDSet>(&()), namespace, name };
    let api: Api<DynamicObject> =
        Api::namespaced_with(operator.client.clone(), &place.namespace, &place.resource);
    let found = call(api.get(&place.name)).await;
    let found = found.map_err(|source| Error { verb: "read", object: place.to_string(), source })?;
    Ok(serde_json::to_value(found).unwrap_or_default())
}

/// What is there, as of `now`.
///
/// # Errors
/// When the API server does not say whether something that is not in a cache is there.
pub async fn parts(operator: &Operator, object: &Watched<TDSet>, now: Timestamp) -> Result<Observed, Error> {
    let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
    let recall = operator.memory.of(object.meta().uid.as_deref().unwrap_or_default());
    let create = object.0.as_ref().ok().and_then(|tdset| tdset.spec.target.create.as_deref());
    let deployment = match create {
        Some(_) => operator.deployments.find(&namespace, &name).await?,
        None => operator.deployments.cached(&namespace, &name),
    };
    let service = match create.and_then(|create| create.service_port) {
        Some(_) => operator.services.find(&namespace, &name).await?,
        None => operator.services.cached(&namespace, &name),
    };
    let status = said_last(object, &recall);
    Ok(Observed { now, status, deployment, service, carried: recall.carried })
}

/// The status that was written last: that of the watch, or that of this process where the watch lags behind it.
fn said_last(object: &Watched<TDSet>, recall: &Recall) -> crate::api::tdset::v1::TDSetStatus {
    // Resource versions of one resource may be compared as numbers (KEP-5504).
    let number = |version: Option<&str>| version.and_then(|version| version.parse::<u128>().ok());
    let seen = number(object.meta().resource_version.as_deref());
    match &recall.said {
        Some((version, status)) if number(Some(version)) >= seen => status.clone(),
        _ => object.0.as_ref().ok().and_then(|tdset| tdset.status.clone()).unwrap_or_default(),
    }
}
