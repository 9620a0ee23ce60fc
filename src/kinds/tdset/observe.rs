//! Everything that is read for a reconciliation. Effects, and nothing decided.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;
use kube::core::ApiResource;

use super::Operator;
use super::observation::{Blocker, ObjectKey, Observed, controls};
use super::spec::{DatesSource, Spec};
use super::state::ReconcileState;
use crate::api::condition::State;
use crate::controllers::outcome::Error;
use crate::kinds::tdset::api::schedule::HolidayDates;
use crate::kinds::tdset::api::status::Reason;
use crate::kinds::tdset::api::v1::{TDSet, TDSetStatus};

/// What is there, as of `now`.
///
/// # Errors
/// When the API server does not say whether something that is not in a cache is there.
pub async fn parts(
    operator: &Operator,
    tdset: &TDSet,
    spec: &Spec,
    recall: &ReconcileState,
    now: Timestamp,
) -> Result<Observed, Error> {
    let (namespace, name) = (spec.namespace(), spec.name());
    let status = said_last(tdset, recall);
    if spec.timetable.is_err() && !spec.is_deleting() {
        return Ok(Observed { now, status, carried: recall.carried.clone(), ..Observed::default() });
    }
    let create = spec.create();
    let deployment = match create {
        Some(_) => operator.deployments.find(namespace, name).await?,
        None => None,
    };
    let service = match create.and_then(|create| create.service_port) {
        Some(_) => operator.services.find(namespace, name).await?,
        None => operator.services.cached(namespace, name),
    };
    watch_foreign(operator, spec, deployment.as_deref(), service.as_deref());
    let keeps = spec.keeps_manual_counts();
    let target = match spec.reference() {
        Some(reference) => Some(operator.targets.scaled(spec.uid(), namespace, reference, keeps).await?),
        None => None,
    };
    Ok(Observed {
        now,
        status,
        deployment,
        service,
        target,
        autoscaler: autoscaler(operator, spec),
        holder: holder(operator, spec),
        autoscalers: autoscalers(operator, spec),
        dates: dates(operator, spec).await?,
        carried: recall.carried.clone(),
        refused: None,
    })
}

/// Watches what stands where something is to be made, so that its going is noticed.
fn watch_foreign(
    operator: &Operator,
    spec: &Spec,
    deployment: Option<&Deployment>,
    service: Option<&Service>,
) {
    let is_foreign = |metadata: &ObjectMeta| !controls(&spec.metadata, metadata);
    if deployment.is_some_and(|found| is_foreign(&found.metadata)) {
        operator.targets.watch(&ApiResource::erase::<Deployment>(&()));
    }
    if service.is_some_and(|found| is_foreign(&found.metadata)) {
        operator.targets.watch(&ApiResource::erase::<Service>(&()));
    }
}

/// The autoscaler of the spec.
fn autoscaler(operator: &Operator, spec: &Spec) -> Option<Result<Arc<HorizontalPodAutoscaler>, Blocker>> {
    let name = spec.autoscaler.as_ref()?;
    let Some(found) = operator.autoscalers.get(spec.namespace(), name) else {
        let message = format!("HorizontalPodAutoscaler {name} does not exist");
        return Some(Err(Blocker::ready(Reason::AutoscalerNotFound, message)));
    };
    let workload = spec.workload();
    match scaled_by(&found) {
        Some(subject) if subject == workload => Some(Ok(found)),
        subject => {
            let scales = subject.map_or_else(|| "nothing".to_owned(), |subject| subject.to_string());
            let message = format!("HorizontalPodAutoscaler {name} scales {scales}, and not {workload}");
            Some(Err(Blocker::ready(Reason::AutoscalerElsewhere, message)))
        }
    }
}

/// Another TDSet that holds the workload or the autoscaler.
fn holder(operator: &Operator, spec: &Spec) -> Option<(String, String)> {
    let autoscaler = spec.autoscaler.iter().map(|name| ObjectKey::autoscaler(spec.namespace(), name));
    [spec.workload()].into_iter().chain(autoscaler).find_map(|subject| {
        let holder = operator.claims.holder(&subject, spec.uid())?;
        Some((subject.to_string(), holder))
    })
}

/// The autoscalers of the workload, without that of the spec.
fn autoscalers(operator: &Operator, spec: &Spec) -> Vec<String> {
    let workload = spec.workload();
    let found = operator.autoscalers.all(spec.namespace(), |autoscaler| {
        autoscaler.metadata.name != spec.autoscaler && scaled_by(autoscaler).as_ref() == Some(&workload)
    });
    found.iter().map(|autoscaler| autoscaler.name_any()).collect()
}

/// What an autoscaler scales.
pub fn scaled_by(autoscaler: &HorizontalPodAutoscaler) -> Option<ObjectKey> {
    let target = &autoscaler.spec.as_ref()?.scale_target_ref;
    let namespace = autoscaler.namespace()?;
    Some(ObjectKey::referred(target.api_version.as_deref()?, &target.kind, &namespace, &target.name))
}

/// The dates that the timetable takes from elsewhere: all of them, or none.
async fn dates(operator: &Operator, spec: &Spec) -> Result<Result<HolidayDates, Blocker>, Error> {
    let mut dates = HolidayDates::default();
    for DatesSource { exception, config_map: name, key } in &spec.dates {
        let text = match operator.targets.text(spec.uid(), spec.namespace(), name, key).await? {
            Ok(text) => text,
            Err(blocker) => return Ok(Err(blocker)),
        };
        if let Err(error) = dates.read(exception, &text) {
            let message = format!("ConfigMap {name}, key {key}: {error}");
            return Ok(Err(Blocker::dates(State::False, Reason::InvalidDates, message)));
        }
    }
    Ok(Ok(dates))
}

/// The status that was written last: that of the watch, or that of this process where the watch lags behind it.
fn said_last(tdset: &TDSet, recall: &ReconcileState) -> TDSetStatus {
    let said = recall.said_since(tdset.metadata.resource_version.as_deref()).cloned();
    said.or_else(|| tdset.status.clone()).unwrap_or_default()
}
