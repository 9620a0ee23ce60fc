//! What to do for a TDSet, as data. Pure: time and everything else that was read are arguments.
//!
//! Guarantees: nothing is planned that is so already; nothing is planned for an object of another owner; the next
//! look is never later than the next transition.

mod clocks;
mod conditions;
mod events;
mod facts;
mod hold;
mod lent;
mod replica_target;
mod schedule_state;
mod status;
mod transitions;

pub use events::{problems, warnings};
pub use status::{in_own_namespace, invalid_statements};
pub use transitions::lateness;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;

use super::actions::Action;
use super::names::{COUNT_MANAGER, FINALIZER, MANAGER};
use super::observation::{
    FoundDeployment, Observed, OwnedObject, Reverted, Scaled, Whole, is_only_in_the_template,
};
use super::resources::{autoscaler, deployment, scale, service};
use super::spec::{Spec, Timetable};
use crate::api::condition;
use crate::controllers::api_write::{ApiWrite, Apply, Merge, Note};
use crate::controllers::deviation::Deviation;
use crate::controllers::finalizer;
use crate::controllers::manifest::{Manifest, Place};
use crate::kinds::tdset::api::schedule::Outlook;
use crate::kinds::tdset::api::status::{ConditionType, Reason};
use crate::kinds::tdset::api::v1::{Create, PastTransition, TDSet, TDSetStatus};
use facts::{Counter, controlled};
use hold::Hold;
use schedule_state::ScheduleState;

/// Longest time between two looks at what is not watched: a kind that is not there, or may not be watched.
const UNWATCHED_SLEEP: Duration = Duration::from_secs(30);

/// What to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// To bring things about, in this order.
    pub actions: Vec<Action>,
    /// The transition that this carries out, or that is still to be reported.
    pub transition: Option<PastTransition>,
    /// What the status says.
    pub status: TDSetStatus,
    /// The events that go with it.
    pub events: Vec<Note>,
    /// Whether that transition came by the clock, so that its lateness means something.
    pub is_timed: bool,
    /// The count of another client that this takes back.
    pub reverted: Option<Reverted>,
    /// Whether another client writes the count that did not before.
    pub conflict: bool,
    /// When the count is to be written next.
    pub due: Option<Timestamp>,
    /// When to look again; never, where nothing can be done until a user changes the object.
    pub wake: Option<Timestamp>,
    /// What of that was made was found to lack nothing.
    pub whole: Whole,
    /// What the timetable was found to ask for now, and next.
    pub outlook: Option<Arc<Outlook>>,
}

/// What to do. Where some of it was refused, the status says so, and reports the schedule all the same.
#[must_use]
pub fn plan(spec: &Spec, observed: &Observed) -> Plan {
    match &spec.timetable {
        _ if spec.is_deleting() => leaving(spec, observed),
        Ok(timetable) => follow(spec, timetable, observed),
        Err(faults) => told(observed, status::invalid(&spec.metadata, faults, observed)),
    }
}

/// What to do for an object that has a timetable.
fn follow(spec: &Spec, timetable: &Timetable, observed: &Observed) -> Plan {
    let mut view = ScheduleState::new(spec, timetable, observed);
    view.manual_max = replica_target::manual_max(&view);
    view.replica_target = replica_target::compute(&view);
    if let Some(before) = view.to_note() {
        return note(observed, before);
    }
    let transition = view.transition();
    let status = status::of(&view, transition.clone());
    let mut plan = told(observed, status);
    plan.events.splice(0..0, events::of(&view, transition.as_ref()));
    let boundary = view.next().filter(|_| view.facts.writes_count()).map(|next| next.time);
    let (actions, whole) = work(&view);
    Plan {
        actions,
        whole,
        outlook: Some(Arc::clone(&view.outlook)),
        is_timed: !view.facts.is_edited && view.facts.hold.is_none_or(|held| held == Hold::Refused),
        transition,
        reverted: view.replica_target.reverted.clone().filter(|_| view.replica_target.waits.is_none()),
        due: boundary.into_iter().chain(view.replica_target.step).min(),
        wake: Some(wake(&view)),
        conflict: conflicts(&plan.status) && !conflicts(&observed.status),
        ..plan
    }
}

/// Writes down the count that the workload is to get back, before another one is written: a count that is nowhere else
/// could not be given back after a crash.
fn note(observed: &Observed, before: i32) -> Plan {
    let status = TDSetStatus { replicas_before: Some(before), ..observed.status.clone() };
    Plan { status, due: Some(observed.now), wake: Some(observed.now), ..Plan::default() }
}

/// What a deletion waits for that has something to leave behind: what it is left with cannot be seen or written, and may
/// be later.
const UNREAD: [Reason; 2] = [Reason::Forbidden, Reason::TargetNotReadable];

/// What to do for an object that is being deleted and waits for us: give the workload the count, or the autoscaler the
/// bounds, that it is to be left with, if it is ours to give, and let the object go.
fn leaving(spec: &Spec, observed: &Observed) -> Plan {
    let is_theirs = observed.holder.is_some() || controlled(spec, observed).is_some();
    let left = spec.replicas_on_deletion().filter(|_| !is_theirs && observed.autoscalers.is_empty());
    let bounds = spec.bounds_on_deletion().filter(|_| !is_theirs);
    let write = match (left, &observed.target, bounds, &observed.autoscaler) {
        (Some(left), Some(Ok(scaled)), ..) if scaled.count() != left || scaled.is_unset => {
            Some(scale::count(scaled, left))
        }
        (_, target, Some(left), Some(Ok(bounds))) => {
            let (min, max) = (bounds.nearest_min(left.min_replicas, left.max_replicas), left.max_replicas);
            let asleep = target.as_ref().and_then(|target| target.as_ref().ok());
            let has_none = |scaled: &Scaled| scaled.count() == 0 || scaled.is_unset;
            let rests = |scaled: &&Scaled| has_none(scaled) && left.min_replicas > 0;
            let asleep = asleep.filter(|scaled| rests(scaled) && !bounds.leaves_zero());
            let woken = asleep.map(|scaled| scale::count(scaled, min));
            autoscaler::bounds(bounds, min, max).or(woken)
        }
        _ => None,
    };
    let target = observed.target.as_ref().filter(|_| left.is_some()).and_then(|found| found.as_ref().err());
    let autoscaler = observed.autoscaler.as_ref().filter(|_| bounds.is_some());
    let unread = observed.unread_object.as_ref().filter(|_| spec.leaves_something());
    let unread = unread.or(target).or_else(|| autoscaler.and_then(|found| found.as_ref().err()));
    // Where it is not known whether an autoscaler has the count, that is written only if nothing is to be changed.
    let held = observed.unread_autoscalers.as_ref().filter(|_| left.is_some() && write.is_some());
    let (write, unread) = (write.filter(|_| held.is_none()), unread.or(held));
    let waits = unread.filter(|blocker| UNREAD.contains(&blocker.reason));
    let refused = observed.refused.as_ref().map(|refused| (conditions::reason(refused), &*refused.why));
    let status = match refused.or_else(|| waits.map(|blocker| (blocker.reason, &*blocker.message))) {
        Some(why) => status::held_up(&spec.metadata, why, observed),
        None => observed.status.clone(),
    };
    let released = || finalizer::write::<TDSet>(&spec.metadata, FINALIZER, false, MANAGER);
    let step = write.or_else(|| waits.is_none().then(released));
    let wake = observed.now.checked_add(SignedDuration::from_secs(30)).ok();
    Plan { actions: step.into_iter().map(Action).collect(), wake, ..told(observed, status) }
}

/// Nothing but that status, and the events of what it says newly.
fn told(observed: &Observed, status: TDSetStatus) -> Plan {
    let conditions = |status: &'_ TDSetStatus| status.conditions.clone().unwrap_or_default();
    let events = warnings(&conditions(&observed.status), &conditions(&status)).collect();
    Plan { status, events, ..Plan::default() }
}

fn wake(view: &ScheduleState) -> Timestamp {
    let now = view.now;
    let resync = view.facts.spec.resync;
    let foreign = view.facts.deployment.is_foreign() || view.facts.service.is_foreign();
    let unwatched = match &view.facts.observed.target {
        Some(target) => !target.as_ref().is_ok_and(|scaled| scaled.watched),
        None => foreign,
    };
    let unwatched = unwatched
        || view.facts.observed.unread_object.is_some()
        || view.facts.observed.unread_autoscalers.is_some()
        || view.facts.observed.is_unwatched
        || (view.facts.observed.autoscaler.as_ref().is_some_and(Result::is_err) && view.facts.is_keda());
    let sleep = if unwatched { resync.min(UNWATCHED_SLEEP) } else { spread(resync, view.facts.spec.uid()) };
    let sleep = SignedDuration::try_from(sleep).unwrap_or_default();
    let latest = now.checked_add(sleep).unwrap_or(now);
    let next = view.next().map(|next| next.time);
    let contests = view
        .facts
        .observed
        .contest
        .iter()
        .chain(&view.facts.observed.repair_contest)
        .map(|contest| contest.over);
    let read = view.facts.scaled().and_then(|scaled| scaled.stands_for);
    let read = read.and_then(|time| now.checked_add(SignedDuration::try_from(time).ok()?).ok());
    let times = [next, view.replica_target.step, view.replica_target.waits, view.repairs_wait(), read];
    times.into_iter().flatten().chain(contests).fold(latest, Timestamp::min)
}

/// Up to a fifth less than that time, by the uid: many objects that came at once are not looked at together for good.
fn spread(sleep: Duration, uid: &str) -> Duration {
    let mut hasher = DefaultHasher::new();
    uid.hash(&mut hasher);
    let share = u32::try_from(hasher.finish() % 200).unwrap_or_default();
    sleep.saturating_sub((sleep / 1_000).saturating_mul(share))
}

/// The count comes first: it is what the timetable is about. Only the finalizer is before it, so that a TDSet that is
/// deleted at any moment has undone what it is to undo.
fn work(view: &ScheduleState) -> (Vec<Action>, Whole) {
    let (wanted, is_on) =
        (view.facts.spec.leaves_something(), finalizer::is_on(&view.facts.spec.metadata, FINALIZER));
    let finalizer = |on: bool| finalizer::write::<TDSet>(&view.facts.spec.metadata, FINALIZER, on, MANAGER);
    let mut steps: Vec<_> = (wanted && !is_on).then(|| finalizer(true)).into_iter().collect();
    if view.facts.observed.unread_object.is_some() {
        return (steps.into_iter().map(Action).collect(), Whole::default());
    }
    steps.extend(view.facts.counter().and_then(|counter| count(view, &counter)));
    let beside = beside_the_autoscaler(view);
    let is_beside = beside.is_some();
    steps.extend(beside);
    let mut whole = Whole::default();
    if let Some(create) = view.facts.create() {
        let write = made(view, create);
        // A policy that refuses the one may not refuse the other, so the template is left to the next reconciliation.
        if let Some(found) = unclaimed(view).filter(|_| write.is_some()) {
            // A count that was just written is claimed thereby; the one that was seen would be written over it.
            steps.extend(claim(view, found).filter(|_| !is_beside));
        } else {
            whole.deployment = write.is_none() && stands(view, &view.facts.deployment);
            steps.extend(write);
        }
        let write = in_front(view, create);
        whole.service = write.is_none() && stands(view, &view.facts.service);
        steps.extend(write);
    }
    steps.extend((is_on && !wanted).then(|| finalizer(false)));
    (steps.into_iter().map(Action).collect(), whole)
}

/// Whether what was made is not as it is asked for, and is left so for now: another client changes it each time.
fn is_left_changed(view: &ScheduleState) -> bool {
    let Some(create) = view.facts.create().filter(|_| view.repairs_wait().is_some()) else { return false };
    let deployment = view
        .facts
        .deployment
        .ours()
        .map(|found| deviation(&deployment::deployment(view.facts.spec, create), found));
    let service = service::service(view.facts.spec, create).zip(view.facts.service.ours());
    let service = service.map(|(wanted, found)| deviation(&wanted, found));
    deployment.max(service) > Some(Deviation::Nothing)
}

/// How an object deviates from what is wanted. An object that is being deleted is left as it is.
fn deviation<K>(wanted: &Manifest, found: &K) -> Deviation
where
    K: Resource<DynamicType = ()> + serde::Serialize,
{
    if is_going(found.meta()) { Deviation::Nothing } else { wanted.deviation(found, MANAGER) }
}

/// Whether there is such an object that is ours and stays, and that would be put back.
fn stands<K: Resource<DynamicType = ()>>(view: &ScheduleState, owned: &OwnedObject<K>) -> bool {
    owned.ours().is_some_and(|found| !is_going(found.meta())) && view.repairs_wait().is_none()
}

/// The Deployment whose count would be lost if the template was applied: it came with the template, and has no owner of its
/// own yet.
fn unclaimed<'a>(view: &ScheduleState<'a>) -> Option<&'a FoundDeployment> {
    view.facts.deployment.ours().filter(|found| is_only_in_the_template(&found.metadata))
}

/// Claims the count of a Deployment where no other one is written, without force: only while it stands.
fn claim(view: &ScheduleState, found: &FoundDeployment) -> Option<ApiWrite> {
    let is_written = matches!(view.facts.counter(), Some(Counter::Deployment(_)))
        && view.wanted().is_some_and(|wanted| wanted != found.replicas());
    if is_written || is_going(&found.metadata) {
        return None;
    }
    let manifest = deployment::count(found, found.replicas());
    Some(ApiWrite::Apply(Apply { manifest, manager: COUNT_MANAGER, seen: None }))
}

/// The Deployment, but for the count of one that is there.
fn made(view: &ScheduleState, create: &Create) -> Option<ApiWrite> {
    let wanted = || deployment::deployment(view.facts.spec, create);
    match view.facts.deployment {
        OwnedObject::Foreign => None,
        OwnedObject::Ours(_) if view.facts.observed.whole.deployment => None,
        // Made without its count it would begin with one replica, whatever the timetable says.
        OwnedObject::Absent if !view.facts.is_timetable_known => None,
        OwnedObject::Absent => {
            // It has to begin with some count: also while none is written, with the one that is asked for.
            let is_scaled = view.facts.spec.autoscaler.is_some();
            let count = if is_scaled { view.sleeps().then_some(0) } else { begins_with(view) };
            let manifest = match count {
                Some(replicas) => deployment::with_count(wanted(), replicas),
                None => wanted(),
            };
            Some(new(manifest))
        }
        OwnedObject::Ours(found) => update(view, wanted(), found),
    }
}

/// The count that a Deployment is made with: while no count is written, the scheduled one.
fn begins_with(view: &ScheduleState) -> Option<i32> {
    view.wanted().or_else(|| view.scheduled())
}

/// Writes the count of a workload that an autoscaler has, where it is to begin to sleep or to wake.
fn beside_the_autoscaler(view: &ScheduleState) -> Option<ApiWrite> {
    let target = &view.replica_target;
    let wanted = target.workload.filter(|_| target.waits.is_none())?;
    match view.facts.workload()? {
        Counter::Deployment(found) if is_going(&found.metadata) => None,
        Counter::Deployment(found) => Some(write_count(found, wanted)),
        Counter::Scale(scaled) => Some(scale::count(scaled, wanted)),
        Counter::Bounds(_) => None,
    }
}

/// Writes the count where the workload has another one, unless another client takes it back each time.
fn count(view: &ScheduleState, counter: &Counter) -> Option<ApiWrite> {
    if view.replica_target.waits.is_some() {
        return None;
    }
    match counter {
        Counter::Deployment(found) => count_of_deployment(view, found),
        Counter::Scale(scaled) => {
            let wanted = view.wanted().filter(|wanted| counter.differs(*wanted))?;
            Some(scale::count(scaled, wanted))
        }
        Counter::Bounds(found) => autoscaler::bounds(found, view.wanted()?, view.most()),
    }
}

/// The same of a Deployment that was made.
fn count_of_deployment(view: &ScheduleState, found: &FoundDeployment) -> Option<ApiWrite> {
    let wanted = view.wanted()?;
    if wanted == found.replicas() || is_going(&found.metadata) {
        return None;
    }
    Some(write_count(found, wanted))
}

fn write_count(found: &FoundDeployment, wanted: i32) -> ApiWrite {
    let (manifest, seen) = (deployment::count(found, wanted), found.metadata.resource_version.clone());
    ApiWrite::Apply(Apply { manifest, manager: COUNT_MANAGER, seen })
}

/// Makes what is wanted. Whatever has its name meanwhile is left as it is.
fn new(wanted: Manifest) -> ApiWrite {
    ApiWrite::Apply(Apply { manifest: wanted.only_new(), manager: MANAGER, seen: None })
}

/// Applies what is wanted of an object that is ours, if some of it is missing, unless another client changes it each time.
/// What another client added is removed first, for it may be what an apply is refused for.
fn update<K>(view: &ScheduleState, wanted: Manifest, found: &K) -> Option<ApiWrite>
where
    K: Resource<DynamicType = ()> + serde::Serialize,
{
    let metadata = found.meta();
    if view.repairs_wait().is_some() {
        return None;
    }
    let seen = metadata.resource_version.clone();
    match deviation(&wanted, found) {
        Deviation::Nothing => None,
        Deviation::Missing => {
            let manifest = wanted.only_for(metadata.uid.as_deref()?);
            Some(ApiWrite::Apply(Apply { manifest, manager: MANAGER, seen }))
        }
        Deviation::Added => {
            let manifest = wanted.repair(found, MANAGER);
            Some(ApiWrite::Merge(Merge { manifest, manager: MANAGER, scale: false, seen }))
        }
    }
}

/// The Service, where one is asked for, or none.
fn in_front(view: &ScheduleState, create: &Create) -> Option<ApiWrite> {
    if view.facts.observed.whole.service {
        return None;
    }
    match (service::service(view.facts.spec, create), &view.facts.service) {
        (Some(manifest), OwnedObject::Absent) => Some(new(manifest)),
        (Some(wanted), OwnedObject::Ours(found)) => update(view, wanted, *found),
        (None, OwnedObject::Ours(found)) if !is_going(&found.metadata) => Some(ApiWrite::Delete {
            place: Place::of(*found),
            uid: found.metadata.uid.clone()?,
            resource_version: None,
        }),
        _ => None,
    }
}

const fn is_going(metadata: &ObjectMeta) -> bool {
    metadata.deletion_timestamp.is_some()
}

/// Whether a status says that another client writes the count.
fn conflicts(status: &TDSetStatus) -> bool {
    let conditions = status.conditions.as_deref().unwrap_or_default();
    condition::holds(conditions, ConditionType::Conflict.as_str())
}

#[cfg(test)]
pub(in crate::kinds) mod tests;
