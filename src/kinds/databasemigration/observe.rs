//! Reads everything that a reconciliation needs, and decides nothing.
//!
//! Never: reads a Secret. While a run is under way that may change the database, nothing is read but how it is.

use std::collections::BTreeMap;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::ListParams;
use kube::core::PartialObjectMeta;
use kube::{Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

use super::Operator;
use super::names::{self, ATTEMPT, CONTROLLER_UID, KEY, NUMBER, PURPOSE, RESOLVED};
use super::observation::{Ending, Observed, Peer, Purpose, Required, Run, RunState, Snapshot};
use super::run_state;
use super::spec::{goal, series};
use crate::api::condition;
use crate::controllers::action::RefusedWrite;
use crate::controllers::manifest::APPLIED_HASH;
use crate::controllers::outcome::Error;
use crate::controllers::reconciler::Pass;
use crate::kinds::databasemigration::api::status::{ConditionType, Reason};
use crate::kinds::databasemigration::api::v1::{DatabaseMigration, DatabaseMigrationStatus, Mode};
use crate::runtime::call::call;

/// What is there, as of `now`.
///
/// # Errors
/// When the API server does not say.
pub async fn parts(pass: Pass<'_, Operator>, refused: Option<RefusedWrite>) -> Result<Observed, Error> {
    let Pass { kind, context, spec, now, .. } = pass;
    let status = pass.object.status.clone().unwrap_or_default();
    let (image, runs) = (context.image.clone(), runs(pass, &status).await?);
    let mut observed = Observed { now, image, status, runs, refused, ..Observed::default() };
    if observed.is_occupied() || !spec.faults.is_empty() && !spec.is_deleting() {
        return Ok(observed);
    }
    observed.snapshots = snapshots(pass).await?;
    for name in observed.unseen_runs() {
        if let Some(run) = by_name(pass, &name).await? {
            observed.runs.push(run);
        }
    }
    if observed.is_occupied() {
        return Ok(Observed { snapshots: BTreeMap::new(), ..observed });
    }
    for name in observed.wanted_snapshots(spec.is_deleting()) {
        if let Some(found) = pass.read::<ConfigMap>(&name).await? {
            observed.kept.insert(name, keys(found));
        }
    }
    for name in spec.config_maps() {
        if let Some(found) = pass.read::<ConfigMap>(name).await? {
            observed.sources.insert(name.to_owned(), keys(found));
        }
    }
    for requirement in &spec.requires {
        if let Some(found) = pass.read::<DatabaseMigration>(&requirement.name).await? {
            observed.required.insert(requirement.name.clone(), required(&found));
        }
    }
    observed.ring = kind.subjects.ring(spec.uid()).unwrap_or_default();
    for name in kind.subjects.peers(spec.uid()) {
        let found = pass.read::<DatabaseMigration>(&name).await?;
        // One of that name may be another one by now, or write another series.
        observed.peers.extend(found.filter(|found| series(found) == spec.series).map(|found| peer(&found)));
    }
    Ok(observed)
}

/// The runs of the object that have a Job. The run that was under way is found without labels, too: another client may have
/// taken them off its Job.
async fn runs(pass: Pass<'_, Operator>, status: &DatabaseMigrationStatus) -> Result<Vec<Run>, Error> {
    let jobs = list::<Job>(pass, &names::selector_text(pass.spec.uid())).await?;
    let mut runs = Vec::with_capacity(jobs.len());
    let told = status.last_run.as_ref().map(|run| run.number).unwrap_or_default();
    for job in &jobs {
        let Some(run) = run(job) else { continue };
        // The report of a run that was read once is in the status. The Job of such a run may have a sidecar at work, or a
        // container that was given up for lost.
        let is_over = run.number <= told && run_state::end(job).is_some();
        runs.push(if is_over { run } else { with_state(pass, job, run).await? });
    }
    let current = status.current_run.iter().filter(|current| current.number > told);
    for current in current.filter(|current| jobs.iter().all(|job| job.name_any() != current.job)) {
        runs.extend(by_name(pass, &current.job).await?);
    }
    Ok(runs)
}

/// The run whose Job has that name, when the Job is of this object.
async fn by_name(pass: Pass<'_, Operator>, name: &str) -> Result<Option<Run>, Error> {
    let job = pass.read::<Job>(name).await?;
    let Some(job) = job.filter(|job| names::is_owned(&job.metadata, pass.spec.uid())) else {
        return Ok(None);
    };
    match run(&job) {
        Some(run) => Ok(Some(with_state(pass, &job, run).await?)),
        None => Ok(None),
    }
}

/// The run with its state, by the pods that the Job controller counts.
async fn with_state(pass: Pass<'_, Operator>, job: &Job, run: Run) -> Result<Run, Error> {
    let selector = format!("{CONTROLLER_UID}={}", job.uid().unwrap_or_default());
    let pods = list::<Pod>(pass, &selector).await?;
    Ok(Run { state: run_state::of(job, &pods, pass.now), ..run })
}

/// A Job as a run; none where it is not one of ours. Whether it has ended is said without its reason.
fn run(job: &Job) -> Option<Run> {
    let template = job.spec.as_ref().and_then(|spec| spec.template.metadata.as_ref());
    let template = template.and_then(|metadata| metadata.annotations.as_ref());
    // The template of a Job cannot be edited.
    let annotation = |name: &str| {
        let own = job.annotations().get(name);
        own.or_else(|| template?.get(name)).cloned()
    };
    let ended = || Ending::Silent("it has been told".to_owned());
    Some(Run {
        job: job.name_any(),
        key: annotation(KEY)?,
        number: annotation(NUMBER)?.parse().ok()?,
        attempt: annotation(ATTEMPT)?.parse().ok()?,
        purpose: Purpose::named(&annotation(PURPOSE)?)?,
        resolved: annotation(RESOLVED),
        created: job.creation_timestamp().map(|time| time.0),
        state: if run_state::end(job).is_some() { RunState::Ended(ended()) } else { RunState::Active(None) },
    })
}

/// The ConfigMaps that runs of the object read, by name.
async fn snapshots(pass: Pass<'_, Operator>) -> Result<BTreeMap<String, Snapshot>, Error> {
    let params = ListParams::default().labels(&names::selector_text(pass.spec.uid()));
    let found = call(pass.api::<ConfigMap>().list_metadata(&params)).await;
    let found = found.map_err(Error::of("read", &pass.place::<ConfigMap>("")))?;
    let snapshot = |one: &PartialObjectMeta<ConfigMap>| {
        let annotation = |name: &str| one.annotations().get(name);
        Some(Snapshot {
            uid: one.uid()?,
            number: annotation(NUMBER).and_then(|number| number.parse().ok()).unwrap_or_default(),
            purpose: annotation(PURPOSE).and_then(|purpose| Purpose::named(purpose)),
            stamp: annotation(APPLIED_HASH).cloned(),
        })
    };
    Ok(found.items.iter().filter_map(|one| Some((one.name_any(), snapshot(one)?))).collect())
}

fn keys(config_map: ConfigMap) -> BTreeMap<String, Vec<u8>> {
    let text = config_map.data.into_iter().flatten().map(|(key, text)| (key, text.into_bytes()));
    let binary = config_map.binary_data.into_iter().flatten().map(|(key, bytes)| (key, bytes.0));
    text.chain(binary).collect()
}

fn peer(object: &DatabaseMigration) -> Peer {
    Peer {
        since: object.creation_timestamp().map(|time| time.0),
        uid: object.uid().unwrap_or_default(),
        name: object.name_any(),
    }
}

fn required(object: &DatabaseMigration) -> Required {
    let status = object.status.clone().unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let is_current = status.observed_generation == object.metadata.generation;
    let (mode, ids) = goal(object);
    let ready = condition::find(&conditions, ConditionType::Ready.as_str());
    let waits = [Reason::RequirementNotReady, Reason::RequirementCycle].map(Reason::as_str);
    Required {
        is_waiting: is_current && ready.is_some_and(|ready| waits.contains(&ready.reason.as_str())),
        is_ready: is_current && condition::holds(&conditions, ConditionType::Ready.as_str()),
        applies: mode == Mode::Apply,
        ids,
    }
}

async fn list<K>(pass: Pass<'_, Operator>, selector: &str) -> Result<Vec<K>, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned,
{
    let found = call(pass.api::<K>().list(&ListParams::default().labels(selector))).await;
    Ok(found.map_err(Error::of("read", &pass.place::<K>("")))?.items)
}
