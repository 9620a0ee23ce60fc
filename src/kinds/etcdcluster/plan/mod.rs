//! What to do for an EtcdCluster, as data. Pure: whatever was read, the time too, is an argument.
//!
//! Guarantees: an answer to every observation, and always the same one; at most one irreversible effect in a pass; what
//! is intended is recorded in a pass before; nothing that hinges on who the members are is planned unless etcd's
//! linearizable list is known; at rest there are no effects.
//! Assumes: whoever carries an effect out refuses it where its guards fail on a live read.
//! Never: takes what is unknown for absent.

mod alarms;
mod bootstrap;
mod certificates;
mod decision;
mod deletion;
mod finish;
mod gate;
mod housekeeping;
mod learner;
mod recovery;
mod replace;
mod rest;
mod restart;
mod scale;
mod summary;
mod upgrade;
mod view;

pub use decision::Wake;
pub use gate::Closed;
pub use recovery::may_run;
pub use summary::{Finding, MemberSummary, Problem, Summary};
pub use upgrade::{Preparation, Refusal, Step};
pub use view::quorum;

use serde::Serialize;

use super::effect::Effect;
use super::observation::{Desired, Observation, Record};
use decision::Decision;
use view::View;

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Plan {
    /// What to do, in this order. Where one fails the rest is left to the next pass.
    pub effects: Vec<Effect>,
    /// What the status remembers, once they have been carried out.
    pub record: Record,
    /// What the status says.
    pub summary: Summary,
    /// When to look again.
    pub wake: Wake,
}

impl Plan {
    /// Whether nothing moves and a change might begin, so that members can be asked for what costs them time. That their
    /// data were found to differ does not count: it is what is asked; nor does what has backups taken, which the API
    /// server may refuse for ever.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        let may_begin = match self.summary.closed {
            None => self.record.operation.is_none(),
            // What is under way waits for this very answer.
            Some(closed) => closed == Closed::Different,
        };
        self.effects.iter().all(|effect| matches!(effect, Effect::ApplyBackupSchedule)) && may_begin
    }
}

/// What to do.
#[must_use]
pub fn plan(desired: &Desired, seen: &Observation) -> Plan {
    let view = View::new(desired, seen);
    let decision = decide(&view);
    let summary = summary::of(&view, &decision);
    let Decision { record, effects, wake } = decision;
    if record != seen.record {
        let write = Effect::WriteRecord { before: seen.record.clone(), record: record.clone() };
        return Plan { effects: vec![write], record, summary, wake: Wake::Soon };
    }
    let effects = [certificates::keep(&view), effects].concat();
    let wake = if effects.is_empty() { wake } else { Wake::Soon };
    Plan { effects: one_irreversible(effects), record, summary, wake }
}

/// The effects up to the first irreversible one: what comes after it has to be decided on what it made.
fn one_irreversible(mut effects: Vec<Effect>) -> Vec<Effect> {
    if let Some(first) = effects.iter().position(Effect::is_irreversible) {
        effects.truncate(first + 1);
    }
    effects
}

/// The order of one pass: the first that has something to do acts, and the next pass looks again.
fn decide(view: &View) -> Decision {
    deletion::leave(view)
        // What must not be touched.
        .or_else(|| rest::paused(view))
        .or_else(|| rest::blocked(view))
        .or_else(|| rest::stopped(view))
        .or_else(|| bootstrap::first_member(view))
        .or_else(|| rest::mismatched(view))
        // What needs no quorum: pods on their own volumes.
        .or_else(|| restart::restart(view))
        .or_else(|| rest::invalid(view))
        .or_else(|| recovery::recover(view))
        .or_else(|| upgrade::heal(view))
        .or_else(|| rest::without_quorum(view))
        .or_else(|| housekeeping::authenticate(view))
        // What was begun.
        .or_else(|| housekeeping::label(view))
        .or_else(|| finish::entries(view))
        .or_else(|| finish::leftovers(view))
        // What is broken.
        .or_else(|| rest::uncertified(view))
        .or_else(|| alarms::corrupt(view))
        .or_else(|| replace::failed_voter(view))
        .or_else(|| learner::settle(view))
        .or_else(|| alarms::no_space(view))
        .or_else(|| finish::keep_data(view))
        .or_else(|| scale::regrow(view))
        // What is asked for.
        .or_else(|| upgrade::roll(view))
        .or_else(|| scale::grow(view))
        .or_else(|| scale::shrink(view))
        .or_else(|| housekeeping::keep(view))
        // Last, so that one that the API server does not take holds nothing up.
        .or_else(|| Decision::act(view, housekeeping::schedule_backups(view)))
        .unwrap_or_else(|| if gate::is_open(view) { Decision::rest(view) } else { Decision::wait(view) })
}

#[cfg(test)]
mod tests;
