//! What to do for a TDSet, as data. Pure: time and everything else that was read are arguments.
//!
//! Guarantees: nothing is planned that is so already; nothing is planned for an object of another owner; the next
//! look is never later than the next transition.

mod clocks;
mod conditions;
mod events;
mod facts;
mod hold;
mod moment;
mod own_count;
mod standing;
mod status;
mod target;
mod transitions;

pub use events::problems;
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
    FoundDeployment, Observed, OwnedObject, Remembered, Reverted, Scaled, Whole, is_only_in_the_template,
};
use super::resources::{autoscaler, deployment, scale, service};
use super::spec::{Spec, Timetable};
use crate::api::condition;
use crate::controllers::api_write::{ApiWrite, Apply, Merge};
use crate::controllers::deviation::Deviation;
use crate::controllers::finalizer;
use crate::controllers::manifest::{Manifest, Place};
use crate::controllers::plan::{self, Rest};
use crate::kinds::tdset::api::schedule::Outlook;
use crate::kinds::tdset::api::status::{ConditionType, Reason};
use crate::kinds::tdset::api::v1::{Create, PastTransition, TDSet, TDSetStatus};
use events::warnings;
use facts::{Counter, Facts, controlled};
use hold::Hold;
use target::{Target, View};

/// Longest time between two looks at what is not watched: a kind that is not there, or may not be watched.
const UNWATCHED_SLEEP: Duration = Duration::from_secs(30);

/// What to do.
pub type Plan = plan::Plan<Action, TDSetStatus, Detail>;

/// What is decided beside.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Detail {
    /// The transition that this carries out, or that is still to be reported.
    pub transition: Option<PastTransition>,
    /// Whether that transition came by the clock, so that its lateness means something.
    pub is_timed: bool,
    /// The count of another client that this takes back.
    pub reverted: Option<Reverted>,
    /// Whether another client writes the count that did not before.
    pub conflict: bool,
    /// When the count is to be written next.
    pub due: Option<Timestamp>,
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
        Err(faults) => report(observed, status::invalid(&spec.metadata, faults, observed)),
    }
}

/// What to do for an object that has a timetable.
fn follow(spec: &Spec, timetable: &Timetable, observed: &Observed) -> Plan {
    let facts = Facts::new(spec, observed);
    let moment = clocks::present(&facts, timetable);
    let to_restore = own_count::to_restore(&facts, moment.effective());
    if let Some(before) = own_count::to_record(&facts, &moment, to_restore) {
        return record(observed, before);
    }
    let target = Target::new(&facts, &moment, to_restore);
    let view = View { facts: &facts, moment: &moment, target: &target };
    let transition = transitions::transition(view);
    let status = status::of(view, transition.clone());
    let mut plan = report(observed, status);
    plan.events.splice(0..0, events::of(view, transition.as_ref()));
    let boundary = moment.next().filter(|_| facts.writes_count()).map(|next| next.time);
    let (actions, whole) = work(view);
    let detail = Detail {
        whole,
        outlook: Some(Arc::clone(&moment.outlook)),
        is_timed: !facts.is_edited && facts.hold.is_none_or(|hold| hold == Hold::Refused),
        transition,
        reverted: target.reverted.clone().filter(|_| target.waits.is_none()),
        due: boundary.into_iter().chain(target.step).min(),
        conflict: conflicts(&plan.status) && !conflicts(&observed.status),
    };
    Plan { actions, wake: Rest::At(wake(view)).into(), detail, ..plan }
}

/// Records the count that the workload is to get back, before another count is written: a count that is nowhere else
/// could not be restored after a crash.
fn record(observed: &Observed, before: i32) -> Plan {
    let status = TDSetStatus { replicas_before: Some(before), ..observed.status.clone() };
    let detail = Detail { due: Some(observed.now), ..Detail::default() };
    Plan { status, wake: Rest::At(observed.now).into(), detail, ..Plan::default() }
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
    // While it is not known whether an autoscaler has the count, a count that differs is not written.
    let doubt = observed.unread_autoscalers.as_ref().filter(|_| left.is_some() && write.is_some());
    let (write, unread) = (write.filter(|_| doubt.is_none()), unread.or(doubt));
    let waits = unread.filter(|blocker| UNREAD.contains(&blocker.reason));
    let refused = observed.refused.as_ref().map(|refused| (conditions::reason(refused), &*refused.why));
    let status = match refused.or_else(|| waits.map(|blocker| (blocker.reason, &*blocker.message))) {
        Some(why) => status::held_up(&spec.metadata, why, observed),
        None => observed.status.clone(),
    };
    let released = || finalizer::write::<TDSet>(&spec.metadata, FINALIZER, false, MANAGER);
    let step = write.or_else(|| waits.is_none().then(released));
    // What the deletion waits for is not watched.
    let rest = observed.now.checked_add(SignedDuration::from_secs(30)).map_or(Rest::Never, Rest::Retry);
    Plan { actions: step.into_iter().map(Action).collect(), wake: rest.into(), ..report(observed, status) }
}

/// A plan of that status alone, with the events about what is new in it.
fn report(observed: &Observed, status: TDSetStatus) -> Plan {
    let conditions = |status: &'_ TDSetStatus| status.conditions.clone().unwrap_or_default();
    let events = warnings(&conditions(&observed.status), &conditions(&status)).collect();
    Plan { status, events, ..Plan::default() }
}

fn wake(View { facts, moment, target }: View) -> Timestamp {
    let (observed, resync) = (facts.observed, facts.spec.resync);
    let unwatched = match &observed.target {
        Some(target) => !target.as_ref().is_ok_and(|scaled| scaled.watched),
        None => facts.deployment.is_foreign() || facts.service.is_foreign(),
    };
    let unwatched = unwatched
        || observed.unread_object.is_some()
        || observed.unread_autoscalers.is_some()
        || observed.is_unwatched
        || (observed.autoscaler.as_ref().is_some_and(Result::is_err) && facts.is_keda());
    let sleep = if unwatched { resync.min(UNWATCHED_SLEEP) } else { spread(resync, facts.spec.uid()) };
    let after = |time: Duration| moment.time.checked_add(SignedDuration::try_from(time).ok()?).ok();
    let latest = after(sleep).unwrap_or(moment.time);
    let next = moment.next().map(|next| next.time);
    let Remembered { contest, repair_contest, .. } = &observed.remembered;
    let contests = contest.iter().chain(repair_contest).map(|contest| contest.over);
    let read = facts.scaled().and_then(|scaled| after(scaled.stands_for?));
    let times = [next, target.step, target.waits, target.repairs_wait, read];
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
fn work(view: View) -> (Vec<Action>, Whole) {
    let View { facts, target, .. } = view;
    let metadata = &facts.spec.metadata;
    let (wanted, is_on) = (facts.spec.leaves_something(), finalizer::is_on(metadata, FINALIZER));
    let finalizer = |on: bool| finalizer::write::<TDSet>(metadata, FINALIZER, on, MANAGER);
    let mut steps: Vec<_> = (wanted && !is_on).then(|| finalizer(true)).into_iter().collect();
    if facts.observed.unread_object.is_some() {
        return (steps.into_iter().map(Action).collect(), Whole::default());
    }
    steps.extend(facts.counter().and_then(|counter| count(target, &counter)));
    let beside = beside_the_autoscaler(facts, target);
    let is_beside = beside.is_some();
    steps.extend(beside);
    let mut whole = Whole::default();
    if let Some(create) = facts.spec.create() {
        let write = made(view, create);
        // A policy that refuses the one may not refuse the other, so the template is left to the next reconciliation.
        if let Some(found) = unclaimed(facts).filter(|_| write.is_some()) {
            // A count that was just written is claimed thereby; the one that was seen would be written over it.
            steps.extend(claim(facts, target, found).filter(|_| !is_beside));
        } else {
            whole.deployment = write.is_none() && stands(target, &facts.deployment);
            steps.extend(write);
        }
        let write = in_front(view, create);
        whole.service = write.is_none() && stands(target, &facts.service);
        steps.extend(write);
    }
    steps.extend((is_on && !wanted).then(|| finalizer(false)));
    (steps.into_iter().map(Action).collect(), whole)
}

/// Whether what was made is not as it is asked for, and is left so for now: another client changes it each time.
fn is_left_changed(View { facts, target, .. }: View) -> bool {
    let Some(create) = facts.spec.create().filter(|_| target.repairs_wait.is_some()) else { return false };
    let deployment = facts.deployment.ours();
    let deployment = deployment.map(|found| deviation(&deployment::deployment(facts.spec, create), found));
    let service = service::service(facts.spec, create).zip(facts.service.ours());
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
fn stands<K: Resource<DynamicType = ()>>(target: &Target, owned: &OwnedObject<K>) -> bool {
    owned.ours().is_some_and(|found| !is_going(found.meta())) && target.repairs_wait.is_none()
}

/// The Deployment whose count would be lost if the template was applied: it came with the template, and has no owner of its
/// own yet.
fn unclaimed<'a>(facts: &Facts<'a>) -> Option<&'a FoundDeployment> {
    facts.deployment.ours().filter(|found| is_only_in_the_template(&found.metadata))
}

/// Claims the count of a Deployment where no other one is written, without force: only while it stands.
fn claim(facts: &Facts, target: &Target, found: &FoundDeployment) -> Option<ApiWrite> {
    let is_written = matches!(facts.counter(), Some(Counter::Deployment(_)))
        && target.count.is_some_and(|count| count != found.replicas());
    if is_written || is_going(&found.metadata) {
        return None;
    }
    let manifest = deployment::count(found, found.replicas());
    Some(ApiWrite::Apply(Apply { manifest, manager: COUNT_MANAGER, seen: None }))
}

/// The Deployment, but for the count of one that is there.
fn made(View { facts, target, .. }: View, create: &Create) -> Option<ApiWrite> {
    let wanted = || deployment::deployment(facts.spec, create);
    match facts.deployment {
        OwnedObject::Foreign => None,
        OwnedObject::Ours(_) if facts.observed.remembered.whole.deployment => None,
        // Made without its count it would begin with one replica, whatever the timetable says.
        OwnedObject::Absent if !facts.is_timetable_known => None,
        OwnedObject::Absent => {
            // It has to begin with some count: while no count is written, with the scheduled count.
            let count = match &facts.spec.autoscaler {
                Some(_) => target.is_asleep.then_some(0),
                None => target.count.or(target.scheduled),
            };
            let manifest = match count {
                Some(replicas) => deployment::with_count(wanted(), replicas),
                None => wanted(),
            };
            Some(new(manifest))
        }
        OwnedObject::Ours(found) => update(target, wanted(), found),
    }
}

/// Writes the count of a workload that an autoscaler has, if it is to begin to sleep or to wake.
fn beside_the_autoscaler(facts: &Facts, target: &Target) -> Option<ApiWrite> {
    let count = target.workload.filter(|_| target.waits.is_none())?;
    write_count(&facts.workload()?, count)
}

/// Writes the count if the workload has another one, unless another client reverts it each time.
fn count(target: &Target, counter: &Counter) -> Option<ApiWrite> {
    let count = target.count.filter(|_| target.waits.is_none())?;
    match counter {
        Counter::Bounds(found) => autoscaler::bounds(found, count, target.max),
        workload if workload.differs(count) => write_count(workload, count),
        _ => None,
    }
}

/// Writes that count into a workload, unless the workload is being deleted.
fn write_count(workload: &Counter, count: i32) -> Option<ApiWrite> {
    match workload {
        Counter::Deployment(found) if !is_going(&found.metadata) => {
            let (manifest, seen) = (deployment::count(found, count), found.metadata.resource_version.clone());
            Some(ApiWrite::Apply(Apply { manifest, manager: COUNT_MANAGER, seen }))
        }
        Counter::Scale(scaled) => Some(scale::count(scaled, count)),
        Counter::Deployment(_) | Counter::Bounds(_) => None,
    }
}

/// Makes what is wanted. Whatever has its name meanwhile is left as it is.
fn new(wanted: Manifest) -> ApiWrite {
    ApiWrite::Apply(Apply { manifest: wanted.only_new(), manager: MANAGER, seen: None })
}

/// Applies what is wanted of an object that is ours, if some of it is missing, unless another client changes it each time.
/// What another client added is removed first, for it may be what an apply is refused for.
fn update<K>(target: &Target, wanted: Manifest, found: &K) -> Option<ApiWrite>
where
    K: Resource<DynamicType = ()> + serde::Serialize,
{
    let metadata = found.meta();
    if target.repairs_wait.is_some() {
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
fn in_front(View { facts, target, .. }: View, create: &Create) -> Option<ApiWrite> {
    if facts.observed.remembered.whole.service {
        return None;
    }
    match (service::service(facts.spec, create), &facts.service) {
        (Some(manifest), OwnedObject::Absent) => Some(new(manifest)),
        (Some(wanted), OwnedObject::Ours(found)) => update(target, wanted, *found),
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
