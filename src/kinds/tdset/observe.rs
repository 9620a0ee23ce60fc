//! Reads everything that a reconciliation needs, and decides nothing.

use std::sync::Arc;

use futures::future::try_join_all;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ListParams;
use kube::core::ApiResource;
use kube::{Api, Client, ResourceExt as _};

use super::Operator;
use super::calendars::Dates;
use super::kept::ObjectState;
use super::observation::{
    Blocker, Bounds, Controller, FoundDeployment, Observed, Remembered, Scaled, autoscaler, controls,
};
use super::spec::{Autoscaler, DatesSource, Spec};
use super::state::ReconcileState;
use super::targets::scaled_objects;
use crate::api::GROUP;
use crate::api::condition;
use crate::controllers::diffing_store::DiffingStore;
use crate::controllers::manifest::Place;
use crate::controllers::outcome::{Class, Error};
use crate::controllers::reconciler::{Pass, State};
use crate::kinds::tdset::api::schedule::HolidayDates;
use crate::kinds::tdset::api::status::Reason;
use crate::kinds::tdset::api::v1::{AutoscalerKind, TDSetStatus, UnreadableDates};
use crate::runtime::call::{self, call};

/// What is there. Where reconciliations have failed for a while, an object that cannot be read is a blocker, and no error.
///
/// # Errors
/// When the API server does not say whether something that is not in a cache is there.
pub async fn parts(pass: Pass<'_, Operator>, state: &State<Operator>) -> Result<Observed, Error> {
    let Pass { object: tdset, spec, now, .. } = pass;
    let ObjectState { recall, kept, .. } = &state.own;
    let known = Observed {
        now,
        status: tdset.status.clone().unwrap_or_default(),
        remembered: Remembered {
            outlook: kept.outlook(),
            carried: recall.carried.clone(),
            contest: recall.reverts.contest(now),
            repair_contest: recall.repairs.contest(now),
            ..Remembered::default()
        },
        ..Observed::default()
    };
    if spec.timetable.is_err() && !spec.is_deleting() {
        return Ok(known);
    }
    match read(pass, &state.own, &known).await {
        Ok(observed) => Ok(observed),
        Err(error) if state.is_lasting || error.class() == Class::Permanent => {
            let blocker = Blocker::ready(Reason::TargetNotReadable, error.said());
            Ok(Observed { unread_object: Some(blocker), ..known })
        }
        Err(error) => Err(error),
    }
}

/// What is there, beside what is known.
async fn read(pass: Pass<'_, Operator>, state: &ObjectState, known: &Observed) -> Result<Observed, Error> {
    let Pass { kind: operator, spec, .. } = pass;
    let ObjectState { recall, kept, has_made } = state;
    let (uid, namespace, name) = (spec.uid(), spec.namespace(), spec.name());
    operator.targets.begins(uid);
    let status = &known.status;
    let create = spec.create();
    let is_first = !has_made && is_first(spec, status);
    let deployment = match create {
        Some(_) if !is_first => operator.deployments.find(namespace, name).await?,
        Some(_) => operator.deployments.cached(namespace, name),
        None => None,
    };
    let service = match create.and_then(|create| create.service_port) {
        Some(_) if !is_first => operator.services.find(namespace, name).await?,
        _ => operator.services.cached(namespace, name),
    };
    watch_foreign(operator, spec, deployment.as_deref(), service.as_deref());
    let target = match spec.reference() {
        Some(reference) => {
            // The writer of a count matters where the count may stand, and where the status has another count.
            let keeps = spec.keeps_manual_counts();
            let asked = status.scheduled_replicas.or(status.replicas_before);
            let is_other =
                |count| asked.map_or_else(|| status.active_window.is_none(), |asked| asked != count);
            let asks = |count| keeps || spec.autoscaler.is_none() && is_other(count);
            Some(operator.targets.scaled(uid, namespace, reference, asks).await?)
        }
        None => None,
    };
    let Calendar { dates, unread, is_unwatched } = calendar(operator, spec).await?;
    let holder = holder(operator, spec, deployment.as_deref(), target.as_ref());
    let autoscaler = autoscaler(pass, recall).await?;
    let (autoscalers, unread_autoscalers) = match autoscalers(pass).await? {
        Ok(names) => (names, None),
        Err(blocker) => (Vec::new(), Some(blocker)),
    };
    operator.targets.ends(uid);
    let found = target.as_ref().and_then(|target| target.as_ref().ok()?.scale.metadata.uid.as_ref());
    let written = recall.scaled_to.as_ref().filter(|(uid, _)| Some(uid) == found);
    let remembered = Remembered {
        whole: kept.whole(deployment.as_ref(), service.as_ref()),
        written: written.map(|(_, count)| *count),
        is_replaced: recall.workload.as_ref().zip(found).is_some_and(|(before, found)| before != found),
        ..known.remembered.clone()
    };
    Ok(Observed {
        remembered,
        target,
        autoscaler,
        is_unwatched: is_unwatched || misses_changes(operator, spec),
        holder,
        autoscalers,
        unread_autoscalers,
        dates,
        unread,
        deployment,
        service,
        ..known.clone()
    })
}

/// Whether all that is to be made is surely tried to be made now, and for the first time. Then it is not asked whether it
/// is there: the write itself makes only what is not, and where that fails it is asked.
fn is_first(spec: &Spec, status: &TDSetStatus) -> bool {
    let is_known = spec.dates.is_empty() && spec.autoscaler.is_none() && !spec.is_deleting();
    is_known && status.conditions.is_none()
}

/// Watches what stands where something is to be made, so that its going is noticed.
fn watch_foreign(
    operator: &Operator,
    spec: &Spec,
    deployment: Option<&FoundDeployment>,
    service: Option<&Service>,
) {
    let is_foreign = |metadata: &ObjectMeta| !controls(&spec.metadata, metadata);
    if deployment.is_some_and(|found| is_foreign(&found.metadata)) {
        operator.targets.watch(spec.uid(), &ApiResource::erase::<Deployment>(&()));
    }
    if service.is_some_and(|found| is_foreign(&found.metadata)) {
        operator.targets.watch(spec.uid(), &ApiResource::erase::<Service>(&()));
    }
}

/// The autoscaler of the spec.
async fn autoscaler(
    pass: Pass<'_, Operator>,
    recall: &ReconcileState,
) -> Result<Option<Result<Arc<Bounds>, Blocker>>, Error> {
    let Pass { kind: operator, context, spec, .. } = pass;
    let Some(Autoscaler { kind, name, .. }) = &spec.autoscaler else { return Ok(None) };
    let found = match kind {
        AutoscalerKind::HorizontalPodAutoscaler => {
            let key = (spec.namespace(), name.as_str());
            let found = match horizontal(&context.client, &operator.autoscalers, key).await? {
                Ok(found) => found,
                Err(blocker) => return Ok(Some(Err(blocker))),
            };
            let mut bounds = found.as_deref().map(Bounds::of);
            let may_go = |bounds: &&mut Bounds| !bounds.goes_to_zero && !recall.is_zero_refused;
            if let Some(bounds) = bounds.as_mut().filter(may_go) {
                let measures_none = found.as_deref().is_some_and(Bounds::measures_none);
                bounds.goes_to_zero = measures_none && scales_to_zero(pass).await?;
            }
            bounds
        }
        AutoscalerKind::ScaledObject => {
            match operator.targets.scaled_object(spec.uid(), spec.namespace(), name).await? {
                Ok(found) => found,
                Err(blocker) => return Ok(Some(Err(blocker))),
            }
        }
    };
    let kind = kind.as_str();
    let Some(found) = found else {
        let message = format!("{kind} {name} does not exist");
        return Ok(Some(Err(Blocker::ready(Reason::AutoscalerNotFound, message))));
    };
    let workload = spec.workload();
    if found.scales.as_ref() == Some(&workload) {
        return Ok(Some(Ok(Arc::new(found))));
    }
    let scales = found.scales.map_or_else(|| "nothing".to_owned(), |subject| subject.to_string());
    let message = format!("{kind} {name} scales {scales}, and not {workload}");
    Ok(Some(Err(Blocker::ready(Reason::AutoscalerTargetMismatch, message))))
}

/// A HorizontalPodAutoscaler. What the watch told is of an earlier time where it has failed for a while.
async fn horizontal(
    client: &Client,
    watched: &DiffingStore<HorizontalPodAutoscaler>,
    (namespace, name): (&str, &str),
) -> Result<Result<Option<Arc<HorizontalPodAutoscaler>>, Blocker>, Error> {
    if watched.is_filled() {
        return Ok(Ok(watched.get(namespace, name)));
    }
    // There is a right to list, and none to get.
    let only = ListParams::default().fields(&format!("metadata.name={name}"));
    let place = Place::named::<HorizontalPodAutoscaler>(namespace, name);
    let found = list(client, namespace, &only).await.map_err(Error::of("read", &place))?;
    Ok(found.map(|found| found.into_iter().next()))
}

/// Those of a namespace, as the API server has them now.
async fn list(
    client: &Client,
    namespace: &str,
    params: &ListParams,
) -> Result<Result<Vec<Arc<HorizontalPodAutoscaler>>, Blocker>, call::Error> {
    let api = Api::<HorizontalPodAutoscaler>::namespaced(client.clone(), namespace);
    match call(api.list(params)).await {
        Ok(found) => {
            let trimmed = found.items.into_iter().map(|mut one| {
                autoscaler::trim(&mut one);
                Arc::new(one)
            });
            Ok(Ok(trimmed.collect()))
        }
        Err(error) if error.is_forbidden() => {
            Ok(Err(Blocker::forbidden("list and watch", "horizontalpodautoscalers", "autoscaling")))
        }
        Err(error) => Err(error),
    }
}

/// Whether changes of the autoscaler of the spec, or of what was made, are not noticed.
fn misses_changes(operator: &Operator, spec: &Spec) -> bool {
    let of_made = spec.create().is_some_and(|create| {
        let of_service = create.service_port.is_some() && !operator.services.is_filled();
        of_service || !operator.deployments.is_filled()
    });
    let of_autoscaler = spec.autoscaler.as_ref().is_some_and(|autoscaler| match autoscaler.kind {
        AutoscalerKind::HorizontalPodAutoscaler => !operator.autoscalers.is_filled(),
        AutoscalerKind::ScaledObject => !operator.targets.watches(&scaled_objects()),
    });
    of_made || of_autoscaler
}

/// The version from which on the API server takes a lower bound of 0, unless that is switched off (feature gate
/// HPAScaleToZero): then it refuses the first one that a TDSet asks for.
const SCALES_TO_ZERO: (u32, u32) = (1, 37);

/// Whether the API server takes a lower bound of 0.
async fn scales_to_zero(pass: Pass<'_, Operator>) -> Result<bool, Error> {
    let read = async || match call(pass.context.client.apiserver_version()).await {
        Ok(version) => {
            let number = |text: &str| text.trim_end_matches('+').parse().unwrap_or(0_u32);
            Ok((number(&version.major), number(&version.minor)) >= SCALES_TO_ZERO)
        }
        Err(source) => {
            let error = Error { verb: "read", object: "the version of the API server".to_owned(), source };
            if error.class() == Class::Permanent { Ok(false) } else { Err(error) }
        }
    };
    pass.kind.scales_to_zero.get_or_try_init(read).await.copied()
}

/// Another TDSet that holds the workload or the autoscaler. A Deployment that this one made is its own: any other TDSet
/// leaves it alone, also an older one.
fn holder(
    operator: &Operator,
    spec: &Spec,
    deployment: Option<&FoundDeployment>,
    target: Option<&Result<Scaled, Blocker>>,
) -> Option<(String, String)> {
    let controller = target.and_then(|target| target.as_ref().ok()?.controller.as_ref());
    let maker = controller.filter(|owner| (owner.group.as_str(), owner.kind.as_str()) == (GROUP, "TDSet"));
    let maker = maker.map(|owner| owner.name.as_str());
    let is_own = deployment.is_some_and(|found| controls(&spec.metadata, &found.metadata));
    let workload = Some(spec.workload()).filter(|_| !is_own);
    workload.into_iter().chain(spec.autoscaler_key()).find_map(|subject| {
        let holder = operator.claims.holder(&subject, spec.uid(), maker)?;
        Some((subject.to_string(), holder))
    })
}

/// The autoscalers of the workload, without that of the spec, and without the one that KEDA makes for that. What the
/// watch told is of an earlier time where it has failed for a while.
async fn autoscalers(pass: Pass<'_, Operator>) -> Result<Result<Vec<String>, Blocker>, Error> {
    let Pass { kind: operator, context, spec, .. } = pass;
    let (workload, namespace) = (spec.workload(), spec.namespace());
    let is_other = |autoscaler: &HorizontalPodAutoscaler| {
        if !Bounds::scale(autoscaler, &workload) {
            return false;
        }
        let Some(Autoscaler { kind, name, .. }) = &spec.autoscaler else { return true };
        match kind {
            AutoscalerKind::HorizontalPodAutoscaler => autoscaler.metadata.name.as_ref() != Some(name),
            AutoscalerKind::ScaledObject => Controller::of(&autoscaler.metadata)
                .is_none_or(|owner| (owner.kind.as_str(), &owner.name) != (kind.as_str(), name)),
        }
    };
    let found = if operator.autoscalers.is_filled() {
        operator.autoscalers.all_of(namespace, &workload.name, is_other)
    } else {
        let failed = |source| Error {
            verb: "list",
            object: format!("horizontalpodautoscalers of {namespace}"),
            source,
        };
        match list(&context.client, namespace, &ListParams::default()).await.map_err(failed)? {
            Ok(mut found) => {
                found.retain(|one| is_other(one));
                found
            }
            Err(blocker) => return Ok(Err(blocker)),
        }
    };
    Ok(Ok(found.iter().map(|autoscaler| autoscaler.name_any()).collect()))
}

/// The dates that the timetable takes from elsewhere.
#[derive(Default)]
struct Calendar {
    dates: HolidayDates,
    /// What of them could not be read.
    unread: Option<Blocker>,
    /// Whether that may change unnoticed.
    is_unwatched: bool,
}

async fn calendar(operator: &Operator, spec: &Spec) -> Result<Calendar, Error> {
    let (uid, namespace) = (spec.uid(), spec.namespace());
    let names = spec.dates.iter().map(|source| source.config_map.as_str());
    let calendars = operator.calendars.asked.ask(uid, namespace, names);
    if calendars.is_empty() {
        return Ok(Calendar::default());
    }
    let resource = ApiResource::erase::<ConfigMap>(&());
    // All at once: each may take as long as a call may.
    let reads = spec.dates.iter().zip(&calendars).map(async |(source, calendar)| {
        let version = operator.targets.version(uid, &resource, namespace, &source.config_map);
        Ok((source, operator.calendars.dates(calendar, &source.key, version.as_deref()).await?))
    });
    let mut read = Calendar::default();
    for (source, Dates { list, unread }) in try_join_all(reads).await? {
        let DatesSource { exception, config_map: name, key } = source;
        let errors = list.as_ref().and_then(|list| list.errors.as_ref()).map(|errors| {
            let message = format!("ConfigMap {name}, key {key}: {errors}");
            Blocker::dates(condition::State::False, Reason::InvalidDates, message)
        });
        let is_known = list.is_some();
        if let Some(list) = list {
            read.dates.set(exception, &list);
        }
        let Some(mut unread) = unread.or(errors) else { continue };
        read.is_unwatched |=
            unread.state == condition::State::Unknown || !operator.targets.watches(&resource);
        if spec.on_unreadable_dates == UnreadableDates::Ignore {
            unread.message += match (is_known, unread.state) {
                (true, condition::State::Unknown) => "; the dates that were read before count",
                _ => "; such days are ordinary ones",
            };
        }
        read.unread.get_or_insert(unread);
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::channel::mpsc;
    use futures::{FutureExt as _, StreamExt as _};
    use kube::runtime::watcher::{self, Event};
    use serde_json::json;

    use super::*;
    use crate::controllers::difference::Difference;

    #[tokio::test(start_paused = true)]
    async fn an_autoscaler_is_read_where_its_watch_has_failed_for_more_than_a_minute() {
        let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let client = Client::try_from(config).unwrap();
        let (sender, events) = mpsc::unbounded();
        let compare = |one: &_, other: &_| Difference::unless(one == other);
        let (store, mut changes) =
            DiffingStore::of_events("hpas".to_owned(), events, compare, autoscaler::name_of_scaled);
        let mut send = |event| {
            sender.unbounded_send(event).unwrap();
            while changes.next().now_or_never().flatten().is_some() {}
        };
        let metadata = serde_json::from_value(json!({"name": "web", "namespace": "a"})).unwrap();
        let autoscaler = HorizontalPodAutoscaler { metadata, ..HorizontalPodAutoscaler::default() };
        for event in [Event::Init, Event::InitApply(autoscaler), Event::InitDone] {
            send(Ok(event));
        }
        let found =
            async |name: &str| horizontal(&client, &store, ("a", name)).await.map(|found| found.unwrap());
        assert!(found("web").await.unwrap().is_some() && found("other").await.unwrap().is_none());
        for _ in 0..4 {
            tokio::time::advance(Duration::from_secs(30)).await;
            send(Err(watcher::Error::NoResourceVersion));
        }
        // There is no API server.
        for name in ["web", "other"] {
            let said = found(name).await.unwrap_err().to_string();
            assert_eq!(said, format!("failed to read horizontalpodautoscalers a/{name}"));
        }
    }
}
