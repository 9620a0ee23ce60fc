//! The events of a TDSet, and what of its conditions needs attention. Pure.
//!
//! Guarantees: each count that gatehouse writes is in an event, whatever the reason for the write.

use std::collections::HashSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::facts::{Counter, Facts};
use super::hold::Hold;
use super::target::View;
use crate::api::condition;
use crate::controllers::api_write::Note;
use crate::kinds::tdset::api::status::{ConditionType, Reason};
use crate::kinds::tdset::api::v1::{PastTransition, Phase};
use crate::kinds::tdset::observation::{CountField, Reverted};

/// Conditions that need a user's attention.
const TELLING: &[(ConditionType, &str, &[Reason])] = &[
    (
        ConditionType::Ready,
        "False",
        &[
            Reason::SpecInvalid,
            Reason::NamespaceRefused,
            Reason::ApplyFailed,
            Reason::CountRefused,
            Reason::Forbidden,
            Reason::TargetNotFound,
            Reason::TargetNotScalable,
            Reason::TargetNotReadable,
            Reason::AutoscalerNotFound,
            Reason::AutoscalerTargetMismatch,
            Reason::ReplicasOutOfRange,
        ],
    ),
    (ConditionType::ScheduleValid, "False", &[Reason::DatesNotFound, Reason::InvalidDates]),
    (ConditionType::ScheduleValid, "Unknown", &[Reason::DatesNotReadable, Reason::Forbidden]),
    (
        ConditionType::Conflict,
        "True",
        &[
            Reason::NameTaken,
            Reason::OtherSchedule,
            Reason::OtherAutoscaler,
            Reason::ControlledByOther,
            Reason::Contested,
        ],
    ),
];

/// Conditions that need a user's attention, each with its reason.
pub fn problems(conditions: &[Condition]) -> impl Iterator<Item = (&Condition, Reason)> {
    TELLING.iter().filter_map(|(about, state, reasons)| {
        let condition = condition::find(conditions, about.as_str()).filter(|one| one.status == *state)?;
        let reason = reasons.iter().find(|reason| condition.reason == reason.as_str())?;
        Some((condition, *reason))
    })
}

/// Events for conditions that need a user's attention, where they are new.
pub fn warnings(before: &[Condition], after: &[Condition]) -> impl Iterator<Item = Note> {
    let mut reported = HashSet::new();
    // Two conditions may have the same message.
    let problems =
        problems(after).filter(move |(new, reason)| reported.insert((*reason, new.message.clone())));
    problems.filter_map(|(new, reason)| {
        let is_news = condition::find(before, &new.type_)
            .is_none_or(|old| (&old.reason, &old.message) != (&new.reason, &new.message));
        let text = || new.message.clone();
        is_news.then(|| Note { warning: true, reason: reason.as_str(), action: "Reconcile", text: text() })
    })
}

/// Events of counts that were written: by the timetable, and in place of what another client wrote.
pub fn of(view: View, transition: Option<&PastTransition>) -> impl Iterator<Item = Note> {
    let transition = transition.map(|transition| scheduled(view, transition));
    let reverted = view.facts.observed.remembered.carried.reverted.as_ref();
    let reverted = reverted.map(|reverted| taken_back(view.facts, reverted));
    transition.into_iter().chain(reverted)
}

/// `replicas 3 → 5: window evening, 180 ms late`.
fn scheduled(View { facts, target, .. }: View, transition: &PastTransition) -> Note {
    let PastTransition { from, to, lateness_ms, .. } = transition;
    let rule = match to.window.split_once('/') {
        Some((_, exception)) => format!("exception {exception}"),
        None if to.window.is_empty() => "outside all windows".to_owned(),
        None => format!("window {}", to.window),
    };
    let when = match facts.hold {
        Some(Hold::Refused) => format!("{}, {lateness_ms} ms late", Hold::Refused.ended()),
        Some(hold) => hold.ended().to_owned(),
        None if facts.is_edited => "after a change of the object".to_owned(),
        None => format!("{lateness_ms} ms late"),
    };
    // What is left alone had the count that it gets back.
    let count = |phase: &Phase| {
        phase.replicas.or(target.to_restore).map_or_else(String::new, |count| count.to_string())
    };
    let text = format!("replicas {} → {}: {rule}, {when}", count(from), count(to));
    Note { warning: false, reason: "ReplicasScheduled", action: "Scale", text }
}

/// `replicas 9 → 2: taken back from kubectl`.
fn taken_back(facts: &Facts, reverted: &Reverted) -> Note {
    let Reverted { manager, from, to, field } = reverted;
    let who = manager.as_deref().unwrap_or("another client");
    let what = match (field, facts.counter()) {
        (CountField::Min, Some(Counter::Bounds(bounds))) => {
            format!("{} of {}", bounds.fields().0, bounds.shown())
        }
        (CountField::Max, Some(Counter::Bounds(bounds))) => {
            format!("{} of {}", bounds.fields().1, bounds.shown())
        }
        _ => "replicas".to_owned(),
    };
    let text = format!("{what} {from} → {to}: taken back from {who}");
    Note { warning: false, reason: "ReplicasReverted", action: "Scale", text }
}
