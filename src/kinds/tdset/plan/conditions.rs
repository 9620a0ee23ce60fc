//! The conditions of a TDSet. Pure.

use super::facts::Facts;
use super::standing::{self, ManualCount};
use super::target::View;
use crate::api::condition::{State, Statement};
use crate::controllers::action::RefusedWrite;
use crate::kinds::tdset::actions;
use crate::kinds::tdset::api::status::{ConditionType, Reason};
use crate::kinds::tdset::observation::{Bounds, Contest, FoundDeployment, Scaled};

/// All conditions.
#[must_use]
pub fn statements(view: View) -> [Statement; 6] {
    let facts = view.facts;
    [
        ready(view),
        progressing(view),
        schedule_valid(facts),
        suspended(facts),
        overridden(view),
        conflict(facts),
    ]
}

/// How many of the workload's replicas are as they should be.
struct Crew {
    count: i32,
    /// Those that are ready, or where that is not reported, those that exist.
    good: i32,
    /// Whether both numbers belong to the present spec of the workload.
    is_current: bool,
    /// The same for a user.
    message: String,
}

impl Crew {
    fn of(facts: &Facts) -> Option<Self> {
        let message =
            |count: i32, good: i32, word: &str| format!("{} of {count} replicas are {word}", good.min(count));
        if let Some(scaled) = facts.scaled() {
            let count = scaled.count();
            let Some(good) = scaled.has() else {
                let message = format!("{} {} has no count", scaled.place.resource.kind, scaled.place.name);
                return Some(Self { count, good: count, is_current: true, message });
            };
            let message = message(count, good, "there");
            return Some(Self { count, good, is_current: good <= count, message });
        }
        let deployment = facts.deployment.ours()?;
        let (count, [_, good, ..]) = (deployment.replicas(), deployment.numbers());
        let message = message(count, good, "ready");
        Some(Self { count, good, is_current: deployment.is_seen(), message })
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

fn ready(view: View) -> Statement {
    let View { facts, target, .. } = view;
    let about = ConditionType::Ready;
    if let Some(refused) = &facts.observed.refused {
        return about.is(false, reason(refused), &*refused.why);
    }
    if let Some(blocker) = &facts.blocker {
        return about.is(false, blocker.reason, &*blocker.message);
    }
    if let Some(taken) = taken(facts) {
        return about.is(false, Reason::NameTaken, taken);
    }
    let Some(Crew { count, good, is_current, message }) = Crew::of(facts) else {
        return about.is(false, Reason::PodsNotReady, "the Deployment is not there yet");
    };
    if target.waits.is_some() || super::is_left_changed(view) {
        return about.is(
            false,
            Reason::Contested,
            format!("{message}; {}", contested(facts).unwrap_or_default()),
        );
    }
    if good < count || !is_current {
        return about.is(false, Reason::PodsNotReady, message);
    }
    if facts.spec.is_suspended {
        return about.is(true, Reason::SuspendedBySpec, format!("{message}; the count is not written"));
    }
    if view.manual_override().is_some() {
        return about.is(true, Reason::ManuallyScaled, format!("{message}; another client set the count"));
    }
    if let Some(bounds) = facts.bounds() {
        return bounded(view, bounds, &message);
    }
    if view.is_left_alone() {
        return about.is(true, Reason::AsScheduled, format!("{message}; the count is left alone"));
    }
    let differs = |count: &i32| facts.counter().is_some_and(|counter| counter.differs(*count));
    match target.count.filter(differs) {
        None => about.is(true, Reason::AsScheduled, message),
        Some(count) => about.is(false, Reason::PodsNotReady, format!("{message}, {count} are wanted")),
    }
}

/// The same where an autoscaler has the count.
fn bounded(view: View, bounds: &Bounds, message: &str) -> Statement {
    let about = ConditionType::Ready;
    let View { facts, moment, target } = view;
    let (shown, field) = (bounds.shown(), bounds.fields().0);
    if target.is_asleep {
        let is_asleep = facts.workload().is_some_and(|workload| workload.count() == 0);
        let reason = if is_asleep { Reason::AsScheduled } else { Reason::PodsNotReady };
        return about.is(
            is_asleep,
            reason,
            format!("{message}; {shown} is inactive while 0 replicas are scheduled"),
        );
    }
    if let (Some(asked), Some(can)) = (moment.phase.replicas, target.scheduled)
        && asked != can
        && target.manual_max.is_none()
    {
        let text = format!("{asked} are scheduled, {field} of {shown} can be {can}");
        return about.is(false, Reason::ReplicasOutOfRange, text);
    }
    let wanted = target.count.unwrap_or_else(|| bounds.min());
    let message = format!("{message}; {field} of {shown} is {wanted}");
    let is_so = bounds.min() == wanted
        && target.max.is_none_or(|max| bounds.max() == max)
        && target.workload.is_none();
    // The bounds are written, and the autoscaler, if there is one, has not brought the workload there.
    let outside = facts.workload().filter(|workload| is_so && !bounds.allows(workload.count()));
    if let Some(count) = outside.map(|workload| workload.count()) {
        let why = if bounds.is_paused { "is paused by an annotation" } else { "has not scaled it yet" };
        let text = format!("{message}; the workload has {count}: {shown} {why}");
        return about.is(false, Reason::PodsNotReady, text);
    }
    match &target.manual_max {
        Some(_) if is_so => {
            let text = format!("{message}; another client set {}", bounds.fields().1);
            about.is(true, Reason::ManuallyScaled, text)
        }
        _ => about.is(is_so, if is_so { Reason::AsScheduled } else { Reason::PodsNotReady }, message),
    }
}

fn progressing(View { facts, target, .. }: View) -> Statement {
    let about = ConditionType::Progressing;
    if let Some(ramp) = &target.ramp {
        let message =
            format!("from {} to {} replicas by the ramp, since {}", ramp.from, ramp.to, ramp.since.0);
        return about.is(true, Reason::Ramping, message);
    }
    let count = target.count.filter(|_| facts.spec.autoscaler.is_none());
    if let Some(scaled) = facts.scaled() {
        return moving(scaled, count);
    }
    match (facts.deployment.ours(), &facts.blocker) {
        (Some(deployment), _) => rolling(deployment, count),
        (None, Some(blocker)) => {
            about.is(false, blocker.reason, "the Deployment is not created: see condition Ready")
        }
        (None, None) => about.is(true, Reason::RollingOut, "the Deployment is about to be created"),
    }
}

/// Whether a workload that another client made moves; `target` is the count that is written into it.
fn moving(scaled: &Scaled, target: Option<i32>) -> Statement {
    let (count, about) = (scaled.count(), ConditionType::Progressing);
    let moves = target.is_some_and(|target| target != count || scaled.is_unset);
    match scaled.has() {
        Some(has) if moves || has != count => {
            about.is(true, Reason::PodsNotReady, format!("{has} of {count} replicas are there"))
        }
        None if moves => about.is(true, Reason::PodsNotReady, "the count is about to be written"),
        Some(_) | None => about.is(false, Reason::UpToDate, "no change is under way"),
    }
}

/// Whether a Deployment that was made moves; `target` is the count that is written into it.
fn rolling(deployment: &FoundDeployment, target: Option<i32>) -> Statement {
    let about = ConditionType::Progressing;
    let (count, [has, _, updated, available]) = (deployment.replicas(), deployment.numbers());
    let unavailable = count.saturating_sub(available);
    let moves = target.is_some_and(|target| target != count);
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

fn schedule_valid(facts: &Facts) -> Statement {
    let about = ConditionType::ScheduleValid;
    let observed = facts.observed;
    if let Some(blocker) = observed.unread_object.as_ref().filter(|_| !facts.is_timetable_known) {
        return about.is(State::Unknown, Reason::DatesNotReadable, &*blocker.message);
    }
    match &observed.unread {
        Some(blocker) => about.is(blocker.state, blocker.reason, &*blocker.message),
        None => about.is(State::True, Reason::Valid, "the timetable is valid"),
    }
}

fn suspended(facts: &Facts) -> Statement {
    let about = ConditionType::Suspended;
    if facts.spec.is_suspended {
        about.is(true, Reason::SuspendedBySpec, "spec.suspend is true: the count is not written")
    } else {
        about.is(false, Reason::NotSuspended, "the count follows the timetable")
    }
}

fn overridden(view: View) -> Statement {
    let View { facts, moment, .. } = view;
    let about = ConditionType::ManualOverride;
    if let Some(wrote) = written_by_others(view) {
        let until = match moment.next() {
            Some(next) => format!("until {}", moment.timetable.schedule.local(next.time)),
            None => "for good: no transition is ahead".to_owned(),
        };
        return about.is(true, Reason::ManuallyScaled, format!("{wrote}: it stands {until}"));
    }
    if facts.is_unread()
        && let Some(standing) = standing::standing_condition(facts, moment)
    {
        return about.is(true, Reason::ManuallyScaled, &*standing.message);
    }
    let message = if view.is_left_alone() {
        "the count is left alone until a window or an exception begins"
    } else if facts.spec.keeps_manual_counts() {
        "a count that another client writes stands until the next transition"
    } else {
        "a count that another client writes is taken back"
    };
    about.is(false, Reason::NotOverridden, message)
}

/// What stands of a count and an upper bound that other clients wrote.
fn written_by_others(view: View) -> Option<String> {
    let View { facts, moment, target } = view;
    let text = |manual: &ManualCount, field: &str, scheduled: Option<i32>| {
        let ManualCount { count, manager } = manual;
        let who = manager.as_deref().unwrap_or("another client");
        format!("{who} wrote {field}{count}, {} are scheduled", scheduled.unwrap_or(*count))
    };
    let count = view.manual_override().map(|manual| text(manual, "", target.scheduled));
    let max = target.manual_max.as_ref().zip(facts.bounds());
    let max =
        max.map(|(manual, bounds)| text(manual, &format!("{} ", bounds.fields().1), moment.max_replicas()));
    let all: Vec<_> = count.into_iter().chain(max).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn conflict(facts: &Facts) -> Statement {
    let about = ConditionType::Conflict;
    if let Some(blocker) = facts.blocker.as_ref().filter(|blocker| blocker.about == Some(about)) {
        return about.is(true, blocker.reason, &*blocker.message);
    }
    match (taken(facts), contested(facts)) {
        (Some(taken), _) => about.is(true, Reason::NameTaken, taken),
        (None, Some(contested)) => about.is(true, Reason::Contested, contested),
        (None, None) => about.is(false, Reason::NoConflict, "no other owner or writer was found"),
    }
}

/// The message about clients that undo each time what is written.
fn contested(facts: &Facts) -> Option<String> {
    let who = |contest: &Contest| {
        let named: Vec<_> = contest.managers.iter().map(String::as_str).collect();
        if named.is_empty() { "another client".to_owned() } else { named.join(" and ") }
    };
    let count = facts.observed.remembered.contest.as_ref().map(|contest| {
        let (who, verb) = (who(contest), if contest.managers.len() > 1 { "write" } else { "writes" });
        format!(
            "{who} {verb} another count each time that it is taken back: between two transitions it is taken back every \
             five minutes at most, until that ends"
        )
    });
    let repairs = facts.observed.remembered.repair_contest.as_ref().map(|_| {
        "another client changes what was made each time that it is put back: between two edits it is put back every five \
         minutes at most, until that ends"
            .to_owned()
    });
    let messages: Vec<_> = count.into_iter().chain(repairs).collect();
    (!messages.is_empty()).then(|| messages.join("; "))
}

/// What stands where something is to be made.
fn taken(facts: &Facts) -> Option<String> {
    let create = facts.spec.create()?;
    let kinds = [
        (facts.deployment.is_foreign(), "Deployment"),
        (create.service_port.is_some() && facts.service.is_foreign(), "Service"),
    ];
    let kinds: Vec<_> = kinds.into_iter().filter_map(|(foreign, kind)| foreign.then_some(kind)).collect();
    let name = facts.spec.name();
    let message = format!("{} {name} exists and is not controlled by this object", kinds.join(" and "));
    (!kinds.is_empty()).then_some(message)
}
