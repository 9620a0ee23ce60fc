//! The decision of one part of the plan. Pure.

use serde::Serialize;

use super::cluster_state::ClusterState;
use crate::kinds::etcdcluster::actions::Action;
use crate::kinds::etcdcluster::observation::{Operation, OperationKind, Phase, Record, Recovery, Target};

/// When to look again, at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum Wake {
    /// Something moves: after a few seconds.
    Soon,
    /// No change is under way: after the usual interval.
    Later,
}

/// What is to be remembered and done, and when to look again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What is remembered before anything is done.
    pub record: Record,
    /// What is done.
    pub actions: Vec<Action>,
    /// When to look again.
    pub wake: Wake,
}

impl Decision {
    /// Does that, and remembers what was remembered. Nothing where there is nothing to do.
    pub fn act(cluster: &ClusterState, actions: impl IntoIterator<Item = Action>) -> Option<Self> {
        let actions: Vec<_> = actions.into_iter().collect();
        (!actions.is_empty()).then(|| Self { actions, ..Self::wait(cluster) })
    }

    /// Does that under an operation, which is remembered first.
    pub fn operate(
        cluster: &ClusterState,
        (kind, target, phase): (OperationKind, Target, Phase),
        actions: impl IntoIterator<Item = Action>,
    ) -> Self {
        let operation = Some(Operation { kind, target, phase });
        let record = Record { operation, ..cluster.seen.record.clone() };
        Self { record, actions: actions.into_iter().collect(), wake: Wake::Soon }
    }

    /// Does that in a recovery, whose state is remembered first. What else was under way is over once it begins.
    pub fn recover(
        cluster: &ClusterState,
        recovery: Recovery,
        actions: impl IntoIterator<Item = Action>,
    ) -> Self {
        let survivor = recovery.survivor.map_or(Target::Template, Target::Member);
        let before = &cluster.seen.record;
        let was_active = before.recovery.as_ref().is_some_and(|before| before.phase.is_active());
        let operation = if recovery.phase.is_active() {
            Some(Operation { kind: OperationKind::Recover, target: survivor, phase: Phase::Preparing })
        } else {
            before.operation.filter(|_| !was_active)
        };
        let record = Record { operation, recovery: Some(recovery), ..cluster.seen.record.clone() };
        Self { record, actions: actions.into_iter().collect(), wake: Wake::Soon }
    }

    /// Does nothing until something moves.
    pub fn wait(cluster: &ClusterState) -> Self {
        Self { record: cluster.seen.record.clone(), actions: Vec::new(), wake: Wake::Soon }
    }

    /// Nothing is under way, and nothing is to be done.
    pub fn settled(cluster: &ClusterState) -> Self {
        let record = Record { operation: None, ..cluster.seen.record.clone() };
        Self { record, actions: Vec::new(), wake: Wake::Later }
    }
}
