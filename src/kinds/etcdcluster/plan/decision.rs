//! What a concern decides, before it becomes a plan. Pure.

use serde::Serialize;

use super::view::View;
use crate::kinds::etcdcluster::effect::Effect;
use crate::kinds::etcdcluster::observation::{Operation, OperationKind, Phase, Record, Recovery, Target};

/// When to look again, at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum Wake {
    /// Something moves: after a few seconds.
    Soon,
    /// Nothing moves: after the usual interval.
    Later,
}

/// What is to be remembered and done, and when to look again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What is remembered before anything is done.
    pub record: Record,
    /// What is done.
    pub effects: Vec<Effect>,
    /// When to look again.
    pub wake: Wake,
}

impl Decision {
    /// Does that, and remembers what was remembered. Nothing where there is nothing to do.
    pub fn act(view: &View, effects: impl IntoIterator<Item = Effect>) -> Option<Self> {
        let effects: Vec<_> = effects.into_iter().collect();
        (!effects.is_empty()).then(|| Self { effects, ..Self::wait(view) })
    }

    /// Does that under an operation, which is remembered first.
    pub fn operate(
        view: &View,
        (kind, target, phase): (OperationKind, Target, Phase),
        effects: impl IntoIterator<Item = Effect>,
    ) -> Self {
        let operation = Some(Operation { kind, target, phase });
        let record = Record { operation, ..view.seen.record.clone() };
        Self { record, effects: effects.into_iter().collect(), wake: Wake::Soon }
    }

    /// Does that in a recovery, whose state is remembered first. What else was under way is over once it begins.
    pub fn recover(view: &View, recovery: Recovery, effects: impl IntoIterator<Item = Effect>) -> Self {
        let survivor = recovery.survivor.map_or(Target::Template, Target::Member);
        let before = &view.seen.record;
        let was_active = before.recovery.as_ref().is_some_and(|before| before.phase.is_active());
        let operation = if recovery.phase.is_active() {
            Some(Operation { kind: OperationKind::Recover, target: survivor, phase: Phase::Preparing })
        } else {
            before.operation.filter(|_| !was_active)
        };
        let record = Record { operation, recovery: Some(recovery), ..view.seen.record.clone() };
        Self { record, effects: effects.into_iter().collect(), wake: Wake::Soon }
    }

    /// Does nothing until something moves.
    pub fn wait(view: &View) -> Self {
        Self { record: view.seen.record.clone(), effects: Vec::new(), wake: Wake::Soon }
    }

    /// Nothing is under way, and nothing is to be done.
    pub fn rest(view: &View) -> Self {
        let record = Record { operation: None, ..view.seen.record.clone() };
        Self { record, effects: Vec::new(), wake: Wake::Later }
    }
}
