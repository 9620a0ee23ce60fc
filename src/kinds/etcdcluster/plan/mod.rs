//! What to do for an EtcdCluster, as data. Pure: whatever was read, the time too, is an argument.
//!
//! Guarantees: an answer to every observation, and always the same one; at most one irreversible action in a
//! reconciliation; what is intended is recorded in a reconciliation before; nothing that depends on the membership is
//! planned unless etcd's linearizable list is known; at rest there are no actions.
//! Assumes: the one that carries an action out refuses it where its guards fail on a live read.
//! Never: takes what is unknown for absent.

mod alarms;
mod bootstrap;
mod certificates;
mod cleanup;
mod cluster_state;
mod decision;
mod deletion;
mod hold;
mod housekeeping;
mod learner;
mod preconditions;
mod recovery;
mod replace;
mod restart;
mod scale;
mod summary;
mod upgrade;

pub use cluster_state::{CAUGHT_UP, has_caught_up, has_lost_data, labels_voters, quorum};
pub use decision::Wake;
pub use housekeeping::fixed_volumes;
pub use preconditions::BlockedReason;
pub use recovery::{is_on_its_way, may_run, survivor, suspects};
pub use summary::{Finding, MemberSummary, Problem, Summary};
pub use upgrade::{Preparation, Refusal, Step};

use serde::Serialize;

use super::actions::Action;
use super::observation::{Desired, Observation, Record};
use cluster_state::ClusterState;
use decision::Decision;

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Plan {
    /// What to do, in this order. Where one fails the rest is left to the next reconciliation.
    pub actions: Vec<Action>,
    /// What the status remembers, once they have been carried out.
    pub record: Record,
    /// What the status says.
    pub summary: Summary,
    /// When to look again.
    pub wake: Wake,
}

impl Plan {
    /// Whether no change is under way and one might begin, so that members can be asked for what costs them time. That
    /// their data were found to differ does not count: it is what is asked; nor does what has backups taken, or what is
    /// asked last, which the API server may refuse for ever.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        let may_begin = match self.summary.blocked {
            None | Some(BlockedReason::SmallerThanQuota(_)) => self.record.operation.is_none(),
            // What is under way waits for this very answer.
            Some(
                BlockedReason::Different
                | BlockedReason::Corrupt
                | BlockedReason::Uncompared
                | BlockedReason::Inconsistent(_),
            ) => true,
            Some(_) => false,
        };
        let may_be_refused = |action: &Action| match action {
            Action::ApplyBackupSchedule
            | Action::ApplyServices
            | Action::ResizeVolume { .. }
            | Action::ApplyBudget { .. }
            | Action::LabelPod { .. } => true,
            Action::ApplyStatefulSet { from, replicas, .. } => from == replicas,
            _ => false,
        };
        self.actions.iter().all(may_be_refused) && may_begin
    }
}

/// What to do.
#[must_use]
pub fn plan(desired: &Desired, seen: &Observation) -> Plan {
    let cluster = ClusterState::new(desired, seen);
    let mut decision = decide(&cluster);
    if decision.record == seen.record {
        decision.actions = beside(&cluster, decision.actions);
    }
    let summary = summary::of(&cluster, &decision);
    let Decision { record, actions, wake } = decision;
    if record != seen.record {
        let write = Action::WriteRecord { before: seen.record.clone(), record: record.clone() };
        return Plan { actions: vec![write], record, summary, wake: Wake::Soon };
    }
    let wake = if actions.is_empty() { wake } else { Wake::Soon };
    Plan { actions: one_irreversible(actions), record, summary, wake }
}

/// What is decided, between what waits for nothing else and what nothing waits for. While nothing else is to be done,
/// whatever is waited for, backups are taken as the spec says.
fn beside(cluster: &ClusterState, decided: Vec<Action>) -> Vec<Action> {
    let again = again(cluster, &decided);
    let has_to_be_looked_at = hold::is_name_taken(cluster.seen) || hold::is_mismatched(cluster.seen);
    let may_schedule = decided.is_empty() && !has_to_be_looked_at;
    let backups = housekeeping::schedule_backups(cluster).filter(|_| may_schedule);
    [certificates::actions(cluster), decided, backups.into_iter().chain(again).collect()].concat()
}

/// One write of those that the API server has refused: the next after the one that it refused last, so that none keeps
/// another one from being tried.
fn again(cluster: &ClusterState, decided: &[Action]) -> Option<Action> {
    let desired = cluster.desired;
    let sets = |action: &Action| matches!(action, Action::ApplyStatefulSet { .. });
    let template = upgrade::apply_again(cluster).filter(|_| !decided.iter().any(sets));
    // Pods are labelled whatever is held.
    let may_write = |action: &Action| !desired.is_paused || matches!(action, Action::LabelPod { .. });
    let refused = housekeeping::refused(cluster).chain(template);
    let refused: Vec<_> = refused.filter(|action| !desired.is_deleting && may_write(action)).collect();
    let last = cluster.seen.refused.as_ref().map(|refused| refused.action.as_str());
    let place = refused.iter().position(|action| Some(action.name()) == last);
    let next = place.map_or(0, |place| place + 1);
    refused.get(next).or_else(|| refused.first()).cloned()
}

/// The actions up to the first irreversible one: what comes after it has to be decided on what it made.
fn one_irreversible(mut actions: Vec<Action>) -> Vec<Action> {
    if let Some(first) = actions.iter().position(Action::is_irreversible) {
        actions.truncate(first + 1);
    }
    actions
}

/// The order of one reconciliation: the first that has something to do acts, and the next reconciliation looks again.
fn decide(cluster: &ClusterState) -> Decision {
    deletion::leave(cluster)
        // Clients are led to voters whatever is held.
        .or_else(|| housekeeping::label(cluster))
        // What must not be touched.
        .or_else(|| hold::paused(cluster))
        .or_else(|| hold::blocked(cluster))
        .or_else(|| hold::stopped(cluster))
        .or_else(|| bootstrap::first_member(cluster))
        .or_else(|| hold::mismatched(cluster))
        // What needs no quorum: pods on their own volumes.
        .or_else(|| restart::restart(cluster))
        .or_else(|| hold::invalid(cluster))
        .or_else(|| recovery::recover(cluster))
        .or_else(|| upgrade::heal(cluster))
        .or_else(|| hold::without_quorum(cluster))
        .or_else(|| housekeeping::authenticate(cluster))
        // What was begun.
        .or_else(|| cleanup::entries(cluster))
        .or_else(|| cleanup::taken_back(cluster))
        .or_else(|| cleanup::leftovers(cluster))
        // What is broken.
        .or_else(|| hold::uncertified(cluster))
        .or_else(|| alarms::corrupt(cluster))
        .or_else(|| replace::failed_voter(cluster))
        .or_else(|| learner::settle(cluster))
        .or_else(|| alarms::no_space(cluster))
        .or_else(|| cleanup::keep_data(cluster))
        .or_else(|| scale::regrow(cluster))
        // What is asked for.
        .or_else(|| upgrade::roll(cluster))
        .or_else(|| scale::grow(cluster))
        .or_else(|| scale::shrink(cluster))
        .or_else(|| housekeeping::maintain(cluster))
        .unwrap_or_else(|| {
            let rests = preconditions::blocked(cluster).is_none();
            if rests { Decision::settled(cluster) } else { Decision::wait(cluster) }
        })
}

#[cfg(test)]
mod tests;
