//! The conditions of a TDSet. Pure.

use super::schedule_state::{ManualCount, ScheduleState};
use crate::api::condition::{State, Statement};
use crate::controllers::action::RefusedWrite;
use crate::kinds::tdset::actions;
use crate::kinds::tdset::api::status::{ConditionType, Reason};
use crate::kinds::tdset::observation::{Bounds, Contest, FoundDeployment, Scaled};

/// All conditions.
#[must_use]
pub fn statements(view: &ScheduleState) -> [Statement; 6] {
    [ready(view), progressing(view), schedule_valid(view), suspended(view), overridden(view), conflict(view)]
}

/// How many of the workload's replicas are as they should be.
struct Crew {
    count: i32,
    /// Those that are ready, or where that is not reported, those that exist.
    good: i32,
    /// Whether that speaks of the workload as it is now.
    seen: bool,
    /// The same for a user.
    said: String,
}

impl Crew {
    fn of(view: &ScheduleState) -> Option<Self> {
        let said =
            |count: i32, good: i32, word: &str| format!("{} of {count} replicas are {word}", good.min(count));
        if let Some(scaled) = view.facts.scaled() {
            let count = scaled.count();
            let Some(good) = scaled.has() else {
                let said = format!("{} {} has no count", scaled.place.resource.kind, scaled.place.name);
                return Some(Self { count, good: count, seen: true, said });
            };
            return Some(Self { count, good, seen: good <= count, said: said(count, good, "there") });
        }
        let deployment = view.facts.deployment.ours()?;
        let (count, [_, good, ..]) = (deployment.replicas(), deployment.numbers());
        Some(Self { count, good, seen: deployment.is_seen(), said: said(count, good, "ready") })
    }
}

/// Why the object is not ready after a refusal. A missing right is not `Forbidden` where it holds up no count: by that
/// reason the next reconciliation knows that the count was held back.
#[must_use]
pub fn reason(refused: &RefusedWrite) -> Reason {
    match (actions::is_of_count(&refused.action), refused.lacks_right()) {
        (true, true) => Reason::Forbidden,
        (true, false) => Reason::CountRefused,
        (false, _) => Reason::ApplyFailed,
    }
}

fn ready(view: &ScheduleState) -> Statement {
    let about = ConditionType::Ready;
    if let Some(refused) = &view.facts.observed.refused {
        return about.is(false, reason(refused), &*refused.why);
    }
    if let Some(blocker) = &view.facts.blocker {
        return about.is(false, blocker.reason, &*blocker.message);
    }
    if let Some(taken) = taken(view) {
        return about.is(false, Reason::NameTaken, taken);
    }
    let Some(Crew { count, good, seen, said: message }) = Crew::of(view) else {
        return about.is(false, Reason::PodsNotReady, "the Deployment is not there yet");
    };
    if view.replica_target.waits.is_some() || super::is_left_changed(view) {
        return about.is(
            false,
            Reason::Contested,
            format!("{message}; {}", contested(view).unwrap_or_default()),
        );
    }
    if good < count || !seen {
        return about.is(false, Reason::PodsNotReady, message);
    }
    if view.facts.spec.is_suspended {
        return about.is(true, Reason::SuspendedBySpec, format!("{message}; the count is not written"));
    }
    if view.overriding().is_some() {
        return about.is(true, Reason::ManuallyScaled, format!("{message}; another client set the count"));
    }
    if let Some(bounds) = view.facts.bounds() {
        return bounded(view, bounds, &message);
    }
    if view.is_left_alone() {
        return about.is(true, Reason::AsScheduled, format!("{message}; the count is left alone"));
    }
    let differs = |wanted: &i32| view.facts.counter().is_some_and(|counter| counter.differs(*wanted));
    match view.wanted().filter(differs) {
        None => about.is(true, Reason::AsScheduled, message),
        Some(wanted) => about.is(false, Reason::PodsNotReady, format!("{message}, {wanted} are wanted")),
    }
}

/// The same where an autoscaler has the count.
fn bounded(view: &ScheduleState, bounds: &Bounds, message: &str) -> Statement {
    let about = ConditionType::Ready;
    let (shown, field) = (bounds.shown(), bounds.fields().0);
    if view.sleeps() {
        let is_asleep = view.facts.workload().is_some_and(|workload| workload.count() == 0);
        let reason = if is_asleep { Reason::AsScheduled } else { Reason::PodsNotReady };
        return about.is(
            is_asleep,
            reason,
            format!("{message}; {shown} is inactive while 0 replicas are scheduled"),
        );
    }
    if let (Some(asked), Some(can)) = (view.effective.replicas, view.scheduled())
        && asked != can
        && view.manual_max.is_none()
    {
        let text = format!("{asked} are scheduled, {field} of {shown} can be {can}");
        return about.is(false, Reason::ReplicasOutOfRange, text);
    }
    let wanted = view.wanted().unwrap_or_else(|| bounds.min());
    let message = format!("{message}; {field} of {shown} is {wanted}");
    let is_so = bounds.min() == wanted
        && view.most().is_none_or(|most| bounds.max() == most)
        && view.replica_target.workload.is_none();
    // The bounds are written, and the autoscaler, if there is one, has not brought the workload there.
    let outside = view.facts.workload().filter(|workload| is_so && !bounds.allows(workload.count()));
    if let Some(count) = outside.map(|workload| workload.count()) {
        let why = if bounds.is_paused { "is paused by an annotation" } else { "has not scaled it yet" };
        let text = format!("{message}; the workload has {count}: {shown} {why}");
        return about.is(false, Reason::PodsNotReady, text);
    }
    match &view.manual_max {
        Some(_) if is_so => {
            let text = format!("{message}; another client set {}", bounds.fields().1);
            about.is(true, Reason::ManuallyScaled, text)
        }
        _ => about.is(is_so, if is_so { Reason::AsScheduled } else { Reason::PodsNotReady }, message),
    }
}

fn progressing(view: &ScheduleState) -> Statement {
    let about = ConditionType::Progressing;
    if let Some(ramp) = &view.replica_target.ramp {
        let message =
            format!("from {} to {} replicas by the ramp, since {}", ramp.from, ramp.to, ramp.since.0);
        return about.is(true, Reason::Ramping, message);
    }
    if let Some(scaled) = view.facts.scaled() {
        return moving(view, scaled);
    }
    match (view.facts.deployment.ours(), &view.facts.blocker) {
        (Some(deployment), _) => rolling(view, deployment),
        (None, Some(blocker)) => {
            about.is(false, blocker.reason, "the Deployment is not created: see condition Ready")
        }
        (None, None) => about.is(true, Reason::RollingOut, "the Deployment is about to be created"),
    }
}

/// Whether a workload that another client made moves.
fn moving(view: &ScheduleState, scaled: &Scaled) -> Statement {
    let (count, about) = (scaled.count(), ConditionType::Progressing);
    let is_other = |wanted: i32| wanted != count || scaled.is_unset;
    let moves = view.facts.spec.autoscaler.is_none() && view.wanted().is_some_and(is_other);
    match scaled.has() {
        Some(has) if moves || has != count => {
            about.is(true, Reason::PodsNotReady, format!("{has} of {count} replicas are there"))
        }
        None if moves => about.is(true, Reason::PodsNotReady, "the count is about to be written"),
        Some(_) | None => about.is(false, Reason::UpToDate, "no change is under way"),
    }
}

/// Whether a Deployment that was made moves.
fn rolling(view: &ScheduleState, deployment: &FoundDeployment) -> Statement {
    let about = ConditionType::Progressing;
    let (count, [has, _, updated, available]) = (deployment.replicas(), deployment.numbers());
    let unavailable = count.saturating_sub(available);
    let moves = view.facts.spec.autoscaler.is_none() && view.wanted().is_some_and(|wanted| wanted != count);
    if moves || !deployment.is_seen() || has != count || updated < has {
        let message = format!("{updated} of {count} replicas are of the current template, {has} in all");
        about.is(true, Reason::RollingOut, message)
    } else if unavailable > 0 {
        let message = format!("{unavailable} replicas are not available");
        about.is(!deployment.is_stuck(), Reason::PodsNotReady, message)
    } else {
        about.is(false, Reason::UpToDate, "no change is under way")
    }
}

fn schedule_valid(view: &ScheduleState) -> Statement {
    let about = ConditionType::ScheduleValid;
    if let Some(blocker) =
        view.facts.observed.unread_object.as_ref().filter(|_| !view.facts.is_timetable_known)
    {
        return about.is(State::Unknown, Reason::DatesNotReadable, &*blocker.message);
    }
    match &view.facts.observed.unread {
        Some(blocker) => about.is(blocker.state, blocker.reason, &*blocker.message),
        None => about.is(State::True, Reason::Valid, "the timetable is valid"),
    }
}

fn suspended(view: &ScheduleState) -> Statement {
    let about = ConditionType::Suspended;
    if view.facts.spec.is_suspended {
        about.is(true, Reason::SuspendedBySpec, "spec.suspend is true: the count is not written")
    } else {
        about.is(false, Reason::NotSuspended, "the count follows the timetable")
    }
}

fn overridden(view: &ScheduleState) -> Statement {
    let about = ConditionType::ManualOverride;
    if let Some(wrote) = written_by_others(view) {
        let until = match view.next() {
            Some(next) => format!("until {}", view.timetable.schedule.local(next.time)),
            None => "for good: no transition is ahead".to_owned(),
        };
        return about.is(true, Reason::ManuallyScaled, format!("{wrote}: it stands {until}"));
    }
    if view.facts.is_unread()
        && let Some(standing) = view.standing_override()
    {
        return about.is(true, Reason::ManuallyScaled, &*standing.message);
    }
    let message = if view.is_left_alone() {
        "the count is left alone until a window or an exception begins"
    } else if view.facts.spec.keeps_manual_counts() {
        "a count that another client writes stands until the next transition"
    } else {
        "a count that another client writes is taken back"
    };
    about.is(false, Reason::NotOverridden, message)
}

/// What stands of a count and an upper bound that other clients wrote.
fn written_by_others(view: &ScheduleState) -> Option<String> {
    let said = |manual: &ManualCount, field: &str, scheduled: Option<i32>| {
        let ManualCount { count, manager } = manual;
        let who = manager.as_deref().unwrap_or("another client");
        format!("{who} wrote {field}{count}, {} are scheduled", scheduled.unwrap_or(*count))
    };
    let count = view.overriding().map(|manual| said(manual, "", view.scheduled()));
    let bounds = view.facts.observed.autoscaler.as_ref().and_then(|found| found.as_ref().ok());
    let max = view.manual_max.as_ref().zip(bounds);
    let max =
        max.map(|(manual, bounds)| said(manual, &format!("{} ", bounds.fields().1), view.scheduled_max()));
    let all: Vec<_> = count.into_iter().chain(max).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn conflict(view: &ScheduleState) -> Statement {
    let about = ConditionType::Conflict;
    if let Some(blocker) = view.facts.blocker.as_ref().filter(|blocker| blocker.about == Some(about)) {
        return about.is(true, blocker.reason, &*blocker.message);
    }
    match (taken(view), contested(view)) {
        (Some(taken), _) => about.is(true, Reason::NameTaken, taken),
        (None, Some(contested)) => about.is(true, Reason::Contested, contested),
        (None, None) => about.is(false, Reason::NoConflict, "no other owner or writer was found"),
    }
}

/// The message about clients that undo each time what is written.
fn contested(view: &ScheduleState) -> Option<String> {
    let who = |contest: &Contest| {
        let named: Vec<_> = contest.managers.iter().map(String::as_str).collect();
        if named.is_empty() { "another client".to_owned() } else { named.join(" and ") }
    };
    let count = view.facts.observed.contest.as_ref().map(|contest| {
        let (who, verb) = (who(contest), if contest.managers.len() > 1 { "write" } else { "writes" });
        format!(
            "{who} {verb} another count each time that it is taken back: between two transitions it is taken back every \
             five minutes at most, until that ends"
        )
    });
    let repairs = view.facts.observed.repair_contest.as_ref().map(|_| {
        "another client changes what was made each time that it is put back: between two edits it is put back every five \
         minutes at most, until that ends"
            .to_owned()
    });
    let said: Vec<_> = count.into_iter().chain(repairs).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// What stands where something is to be made.
fn taken(view: &ScheduleState) -> Option<String> {
    let create = view.facts.create()?;
    let kinds = [
        (view.facts.deployment.is_foreign(), "Deployment"),
        (create.service_port.is_some() && view.facts.service.is_foreign(), "Service"),
    ];
    let kinds: Vec<_> = kinds.into_iter().filter_map(|(foreign, kind)| foreign.then_some(kind)).collect();
    let name = view.facts.spec.name();
    let message = format!("{} {name} exists and is not controlled by this object", kinds.join(" and "));
    (!kinds.is_empty()).then_some(message)
}
