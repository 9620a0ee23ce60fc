//! The gate before every change that is not a repair: all is well, and has been for a while. Pure.

use serde::Serialize;

use super::finish;
use super::view::View;
use crate::kinds::etcdcluster::observation::{AlarmKind, Audit, Fact, Ordinal, Purpose};

/// What keeps the gate closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum Closed {
    /// Who the members are could not be found out.
    MembersUnknown,
    /// A member has a peer URL that is not of ours.
    ForeignMember,
    /// A member does not vote yet.
    Learner(Ordinal),
    /// A member is counted and has not started yet.
    Unstarted(Ordinal),
    /// A member does not serve.
    Down(Ordinal),
    /// All serve, not yet for long enough.
    Settling,
    /// Which alarms are armed could not be found out.
    AlarmsUnknown,
    /// A member's data differ from the others'.
    Corrupt,
    /// What pods are told could not be found out.
    ConfigUnknown,
    /// What pods are made from could not be found out.
    StatefulSetUnknown,
    /// How strict the PodDisruptionBudget is could not be found out.
    BudgetUnknown,
    /// What a removed member left is still there.
    Leftovers(Ordinal),
    /// So is what a recovery set aside, and it does not outlive its claim yet.
    Unkept(Ordinal),
    /// All else is well, and the members' data were found to differ.
    Different,
}

/// Whether a change may begin. An alarm about space does not close the gate: a larger quota is such a change.
pub fn check(view: &View) -> Result<(), Closed> {
    let membership = view.membership().ok_or(Closed::MembersUnknown)?;
    for member in &membership.members {
        let ordinal = member.ordinal.ok_or(Closed::ForeignMember)?;
        if !member.is_started {
            return Err(Closed::Unstarted(ordinal));
        }
        if member.is_learner {
            return Err(Closed::Learner(ordinal));
        }
        if !view.is_healthy(ordinal) {
            return Err(Closed::Down(ordinal));
        }
    }
    if view.seen.config.is_unknown() {
        return Err(Closed::ConfigUnknown);
    }
    if view.seen.stateful_set.is_unknown() {
        return Err(Closed::StatefulSetUnknown);
    }
    if let Some((ordinal, entry)) = view.seen.entries().find(|(_, entry)| entry.purpose.is_stopped()) {
        let is_kept = entry.purpose != Purpose::SetAside
            || view.seen.volume(ordinal).found().is_none_or(finish::is_safe)
            || view.desired.is_in_memory;
        return Err(if is_kept { Closed::Leftovers(ordinal) } else { Closed::Unkept(ordinal) });
    }
    let Fact::Known(alarms) = &view.seen.alarms else { return Err(Closed::AlarmsUnknown) };
    if alarms.iter().any(|alarm| alarm.kind == AlarmKind::Corrupt) {
        return Err(Closed::Corrupt);
    }
    if view.seen.budget.is_unknown() {
        return Err(Closed::BudgetUnknown);
    }
    if !view.seen.health_age.is_past() {
        return Err(Closed::Settling);
    }
    match view.seen.audit.known() {
        Some(Audit::Different { .. }) => Err(Closed::Different),
        Some(Audit::Equal) | None => Ok(()),
    }
}

/// Whether a change may begin.
pub fn is_open(view: &View) -> bool {
    check(view).is_ok()
}
