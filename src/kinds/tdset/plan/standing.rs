//! Counts of other clients, and whether they stand. Pure.
//!
//! Guarantees: a count of another client stands if it was written after the last transition; the workload's managed
//! fields say who wrote it and when. They have no time for what was written by the scale subresource of a built-in
//! kind, as `kubectl scale` does. Then the count stands if all that the timetable asks for had been reported before,
//! and goes on to stand if something could not be read for a while.
//! Assumes: the time in managed fields is of the API server's clock, in whole seconds.
//! Never: lets a write stand by a tool that applies a repository again and again.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::facts::Facts;
use super::hold::Hold;
use super::moment::Moment;
use crate::api::condition;
use crate::kinds::tdset::api::status::ConditionType;
use crate::kinds::tdset::observation::{FieldOwner, Writer};

/// A count of another client that stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManualCount {
    /// The count.
    pub count: i32,
    /// The client, if it is known.
    pub manager: Option<String>,
}

/// The count as a [`ManualCount`], if another client wrote it since the last transition.
pub fn manual_count(facts: &Facts, moment: &Moment, count: i32, writer: Writer) -> Option<ManualCount> {
    let is_reported = match facts.hold {
        None => facts.reported.is_some() && !moment.is_changed(facts) && !moment.has_missed(facts),
        Some(Hold::Unread) => standing_condition(facts, moment).is_some(),
        Some(_) => false,
    };
    let (stands, manager) = match writer {
        Writer::Ours | Writer::Maker => return None,
        Writer::Other(owner) if owner.is_reconciler() => return None,
        Writer::Unknown => (is_reported, None),
        Writer::Other(FieldOwner { manager, time: None }) => (is_reported, Some(manager)),
        // Managed fields have whole seconds.
        Writer::Other(FieldOwner { manager, time: Some(time) }) => {
            let ended = ended(facts).filter(|_| facts.hold == Some(Hold::Unread));
            let since = since(facts, moment)?.max(ended.unwrap_or(Timestamp::MIN));
            (time.as_second() >= since.as_second(), Some(manager))
        }
    };
    stands.then_some(ManualCount { count, manager })
}

/// The condition about a count that stood when the status was written, if it still stands: no edit asks for another
/// count, and no transition has come since. While the timetable is not known, any edit may ask for another count.
pub fn standing_condition<'a>(facts: &Facts<'a>, moment: &Moment) -> Option<&'a Condition> {
    let found = override_condition(facts)?;
    let stands = if facts.is_timetable_known {
        let is_new = |change: Timestamp| change > found.last_transition_time.0;
        // An edit may ask for another count if the status does not report the phase.
        let is_asked_anew = facts.is_edited && facts.observed.status.active_window.is_none();
        !moment.is_changed(facts) && !is_asked_anew && !moment.last_change().is_some_and(is_new)
    } else {
        !facts.is_edited
    };
    (found.status == "True" && facts.spec.keeps_manual_counts() && stands).then_some(found)
}

/// The condition about counts of other clients, as the status has it.
fn override_condition<'a>(facts: &Facts<'a>) -> Option<&'a Condition> {
    let conditions = facts.observed.status.conditions.as_deref().unwrap_or_default();
    condition::find(conditions, ConditionType::ManualOverride.as_str())
}

/// The time since which the status reports that no count of another client stands.
fn ended(facts: &Facts) -> Option<Timestamp> {
    let found = override_condition(facts).filter(|found| found.status == "False")?;
    Some(found.last_transition_time.0)
}

/// The time of the transition to the present phase: by the clock, by an edit, or by the creation of the object. None if
/// the transition is still to be carried out.
fn since(facts: &Facts, moment: &Moment) -> Option<Timestamp> {
    let boundary = moment.last_change();
    let created = facts.spec.metadata.creation_timestamp.as_ref().map(|time| time.0);
    if facts.reported.is_none() {
        // A count that was written in the same second may be older: one file often brings both objects.
        return boundary.max(created.and_then(|time| time.checked_add(SignedDuration::from_secs(1)).ok()));
    }
    if moment.is_changed(facts) {
        return if facts.is_edited { None } else { moment.boundary(facts) };
    }
    let last = facts.observed.status.last_transition.as_ref().filter(|last| last.to == moment.phase);
    boundary.max(last.map(|last| last.time.0)).max(created)
}
