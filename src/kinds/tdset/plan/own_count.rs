//! The count that a workload had by itself, if the timetable leaves it alone outside of all windows. Pure.
//!
//! Guarantees: the count is recorded before the first count of a window is written, and restored after the window. A
//! count that was written for a window is never restored, however the object is edited meanwhile. A count that was
//! recorded of one workload is not given to another workload of its name.
//! Assumes: a status that records a count was written before the count of a window was.
//! Never: restores a count after another client wrote one outside of all windows.

use super::facts::{Counter, Facts};
use super::moment::Moment;
use crate::kinds::tdset::api::schedule::Effective;
use crate::kinds::tdset::api::v1::Phase;
use crate::kinds::tdset::observation::Writer;

/// The count that is to be restored: the recorded count, unless the workload that had it is known to be gone. Or the
/// count for all other times that an edit has taken out while the workload was on its way to it.
pub fn to_restore(facts: &Facts, effective: &Effective) -> Option<i32> {
    let observed = facts.observed;
    let is_gone = matches!(&observed.target, Some(Err(blocker)) if blocker.is_absence);
    let recorded = observed.status.replicas_before.filter(|_| !is_gone && !observed.remembered.is_replaced);
    recorded.or_else(|| goal_before_the_edit(facts, effective))
}

/// The count for all other times that an edit has taken out, while the workload is on its way to it.
fn goal_before_the_edit(facts: &Facts, effective: &Effective) -> Option<i32> {
    let reported = facts.reported.as_ref();
    let reported = reported.filter(|reported| effective.replicas.is_none() && reported.window.is_empty())?;
    let (goal, found) = (reported.replicas?, facts.workload()?);
    let is_ours = match found.writer() {
        Writer::Ours => true,
        Writer::Unknown => facts.observed.status.ramp.is_some(),
        Writer::Maker | Writer::Other(_) => false,
    };
    (is_ours && found.differs(goal)).then_some(goal)
}

/// The count that the workload is to get back and that is still to be recorded, before the first count of the timetable
/// is written. None if it is not known any more.
pub fn to_record(facts: &Facts, moment: &Moment, to_restore: Option<i32>) -> Option<i32> {
    let is_temporary = moment.phase.replicas.is_some() && !moment.timetable.schedule.has_default();
    if !is_temporary || !facts.writes_count() || to_restore.is_some() {
        return None;
    }
    let found = facts.workload()?;
    if is_its_own(facts, &found) { Some(found.count()) } else { reported_outside(facts) }
}

/// Whether a count is the workload's own: gatehouse has not written it for a window or for the time outside of all.
fn is_its_own(facts: &Facts, found: &Counter) -> bool {
    let status = &facts.observed.status;
    let Some(reported) = facts.reported.as_ref().filter(|_| !facts.observed.remembered.is_replaced) else {
        // A TDSet that is gone may have written it for a window.
        return found.writer() != Writer::Ours;
    };
    if facts.hold.is_none() {
        return reported.replicas.is_none();
    }
    // The reported count was not written. The count of the last transition was.
    let last = status.last_transition.as_ref().and_then(|last| last.to.replicas);
    match found.writer() {
        Writer::Other(_) | Writer::Maker => true,
        Writer::Ours => status.last_transition.is_some() && last.is_none(),
        Writer::Unknown => last != Some(found.count()) && status.ramp.is_none(),
    }
}

/// The count for the time outside of all windows that an edit took out, if the status reports it.
fn reported_outside(facts: &Facts) -> Option<i32> {
    let status = &facts.observed.status;
    let reported = facts.reported.as_ref()?;
    let outside = |phase: &Phase| phase.replicas.filter(|_| phase.window.is_empty());
    let last = status.last_transition.as_ref().filter(|last| last.to == *reported);
    let ahead = status.upcoming.iter().flatten().find(|next| next.window.is_empty());
    let before = outside(reported).or_else(|| outside(&last?.from));
    before.or_else(|| ahead?.replicas)
}
