//! Everything that is read for a pass. Effects, and nothing decided.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::ApiResource;
use kube::{Resource as _, ResourceExt as _};

use super::claims::Subject;
use super::found::{Hindrance, Observed, controls};
use super::recall::Recall;
use super::{Operator, uid};
use crate::api::Version;
use crate::api::condition::State;
use crate::api::field::Fault;
use crate::api::judge::{self, Written};
use crate::api::tdset::TDSetKind;
use crate::api::tdset::schedule::HolidayDates;
use crate::api::tdset::status::Reason;
use crate::api::tdset::v1::{ConfigMapKey, DatesFrom, ManualScalePolicy, TDSet, TDSetStatus};
use crate::controllers::Watched;
use crate::controllers::outcome::Error;

/// What the validator of the gate has against the object.
#[must_use]
pub fn faults(tdset: &TDSet, now: Timestamp) -> Vec<Fault> {
    let object = serde_json::to_value(tdset).unwrap_or_default();
    judge::stored(&TDSetKind, Written { version: Version::V1, object: &object }, now).faults
}

/// What is there, as of `now`.
///
/// # Errors
/// When the API server does not say whether something that is not in a cache is there.
pub async fn parts(
    operator: &Operator,
    object: &Watched<TDSet>,
    recall: &Recall,
    now: Timestamp,
) -> Result<Observed, Error> {
    let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
    let status = said_last(object, recall);
    let Ok(tdset) = &object.0 else {
        return Ok(Observed { now, status, carried: recall.carried.clone(), ..Observed::default() });
    };
    let create = tdset.spec.target.create.as_deref();
    let deployment = match create {
        Some(_) => operator.deployments.find(&namespace, &name).await?,
        None => None,
    };
    let service = match create.and_then(|create| create.service_port) {
        Some(_) => operator.services.find(&namespace, &name).await?,
        None => operator.services.cached(&namespace, &name),
    };
    watch_foreign(operator, tdset, deployment.as_deref(), service.as_deref());
    let keeps = tdset.spec.manual_scale_policy == Some(ManualScalePolicy::KeepUntilNextTransition);
    let target = match &tdset.spec.target.reference {
        Some(reference) => Some(operator.targets.scaled(uid(object), &namespace, reference, keeps).await?),
        None => None,
    };
    Ok(Observed {
        now,
        status,
        deployment,
        service,
        target,
        autoscaler: autoscaler(operator, tdset, &namespace),
        holder: holder(operator, tdset, &namespace),
        autoscalers: autoscalers(operator, tdset, &namespace),
        dates: dates(operator, tdset, &namespace).await?,
        carried: recall.carried.clone(),
    })
}

/// Watches what stands where something is to be made, so that its going is noticed.
fn watch_foreign(
    operator: &Operator,
    tdset: &TDSet,
    deployment: Option<&Deployment>,
    service: Option<&Service>,
) {
    let is_foreign = |metadata: &ObjectMeta| !controls(&tdset.metadata, metadata);
    if deployment.is_some_and(|found| is_foreign(&found.metadata)) {
        operator.targets.watch(&ApiResource::erase::<Deployment>(&()));
    }
    if service.is_some_and(|found| is_foreign(&found.metadata)) {
        operator.targets.watch(&ApiResource::erase::<Service>(&()));
    }
}

/// The autoscaler of the spec.
fn autoscaler(
    operator: &Operator,
    tdset: &TDSet,
    namespace: &str,
) -> Option<Result<Arc<HorizontalPodAutoscaler>, Hindrance>> {
    let name = &tdset.spec.autoscaler.as_ref()?.name;
    let Some(found) = operator.autoscalers.get(namespace, name) else {
        let message = format!("HorizontalPodAutoscaler {name} does not exist");
        return Some(Err(Hindrance::ready(Reason::AutoscalerNotFound, message)));
    };
    let workload = Subject::workload(tdset);
    match scaled_by(&found) {
        Some(subject) if subject == workload => Some(Ok(found)),
        subject => {
            let scales = subject.map_or_else(|| "nothing".to_owned(), |subject| subject.to_string());
            let message = format!("HorizontalPodAutoscaler {name} scales {scales}, and not {workload}");
            Some(Err(Hindrance::ready(Reason::AutoscalerElsewhere, message)))
        }
    }
}

/// Another TDSet that holds the workload or the autoscaler.
fn holder(operator: &Operator, tdset: &TDSet, namespace: &str) -> Option<(String, String)> {
    let uid = tdset.metadata.uid.as_deref().unwrap_or_default();
    let autoscaler = tdset.spec.autoscaler.as_ref();
    let autoscaler = autoscaler.map(|autoscaler| Subject::autoscaler(namespace, &autoscaler.name));
    [Subject::workload(tdset)].into_iter().chain(autoscaler).find_map(|subject| {
        let holder = operator.claims.holder(&subject, uid)?;
        Some((subject.to_string(), holder))
    })
}

/// The autoscalers of the workload, without that of the spec.
fn autoscalers(operator: &Operator, tdset: &TDSet, namespace: &str) -> Vec<String> {
    let workload = Subject::workload(tdset);
    let own = tdset.spec.autoscaler.as_ref().map(|autoscaler| autoscaler.name.as_str());
    let found = operator.autoscalers.all(namespace, |autoscaler| {
        autoscaler.metadata.name.as_deref() != own && scaled_by(autoscaler).as_ref() == Some(&workload)
    });
    found.iter().map(|autoscaler| autoscaler.name_any()).collect()
}

/// What an autoscaler scales.
pub fn scaled_by(autoscaler: &HorizontalPodAutoscaler) -> Option<Subject> {
    let target = &autoscaler.spec.as_ref()?.scale_target_ref;
    let namespace = autoscaler.namespace()?;
    Some(Subject::referred(target.api_version.as_deref()?, &target.kind, &namespace, &target.name))
}

/// The dates that the timetable takes from elsewhere: all of them, or none.
async fn dates(
    operator: &Operator,
    tdset: &TDSet,
    namespace: &str,
) -> Result<Result<HolidayDates, Hindrance>, Error> {
    let uid = tdset.metadata.uid.as_deref().unwrap_or_default();
    let mut dates = HolidayDates::default();
    for exception in tdset.spec.exceptions() {
        let Some(DatesFrom { config_map_key_ref: ConfigMapKey { name, key } }) = &exception.dates_from else {
            continue;
        };
        let text = match operator.targets.text(uid, namespace, name, key).await? {
            Ok(text) => text,
            Err(hindrance) => return Ok(Err(hindrance)),
        };
        if let Err(error) = dates.read(&exception.name, &text) {
            let message = format!("ConfigMap {name}, key {key}: {error}");
            return Ok(Err(Hindrance::dates(State::False, Reason::InvalidDates, message)));
        }
    }
    Ok(Ok(dates))
}

/// The status that was written last: that of the watch, or that of this process where the watch lags behind it.
fn said_last(object: &Watched<TDSet>, recall: &Recall) -> TDSetStatus {
    let said = recall.said_since(object.meta().resource_version.as_deref()).cloned();
    said.or_else(|| object.0.as_ref().ok().and_then(|tdset| tdset.status.clone())).unwrap_or_default()
}
