//! What may happen in a world, and what does in its calm.

use gatehouse::kinds::tdset::actions;

use super::*;

impl kit::explore::World for World {
    type Action = Action;
    type Hand = Hand;
    type Rule = Rule;

    const NEVER_SETTLES: Rule = Rule::NeverSettles;

    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for (worker, at) in self.workers.iter().zip(0..) {
            if worker.pending.is_none() {
                actions.extend([Action::Pass(at), Action::Blind(at), Action::Undated(at)]);
            } else {
                let may =
                    [Action::ApiWrite(at), Action::Unheard(at), Action::Conflict(at), Action::Refusal(at)];
                actions.extend(may);
            }
        }
        let others =
            [Action::Crash, Action::Rollout, Action::Collect, Action::Tick, Action::Wait, Action::Edit];
        let clocks = [Action::HandOver, Action::CatchUp];
        let people = [Action::Scale, Action::Delete, Action::DeleteSlowly, Action::Squat, Action::Bounds];
        actions.extend(others.into_iter().chain(clocks).chain(people));
        actions
    }

    /// A schedule is looked at only where something has told of it, or its own wake is due.
    fn calm(&self) -> Vec<Action> {
        let schedules = 0..self.schedules.len();
        let steps = schedules.clone().filter(|at| self.workers[*at].pending.is_some()).map(Action::ApiWrite);
        let passes = schedules.filter(|at| self.is_woken(*at)).map(Action::Pass);
        let first = [Action::Rollout, Action::Collect].into_iter();
        first.chain(steps).chain(passes).chain([Action::CatchUp, Action::Wait]).collect()
    }

    fn after(&self, action: &Action, hand: Hand) -> Option<Self> {
        kit::explore::changed(self, action, |next| next.act(action, hand))
    }

    fn broken(&self) -> Option<Rule> {
        self.broken
    }

    fn broken_at_rest(&self, hand: Hand) -> Option<Rule> {
        self.judge_rest(hand)
    }

    fn planned(&self, action: &Action) -> Vec<&'static str> {
        let (Action::Pass(at) | Action::Blind(at) | Action::Undated(at)) = action else { return Vec::new() };
        let plan = self.workers[*at].pending.as_ref().map(|pending| &pending.planned.plan);
        let steps = plan.into_iter().flat_map(|plan| plan.work.iter().chain(&plan.report));
        steps.map(|step| actions::points(step).name()).collect()
    }

    fn is_spent(&self, action: &Action) -> bool {
        let mut faults = self.faults;
        let is_spent = faults.of(action).is_some_and(|left| *left == 0);
        is_spent || *action == Action::Edit && self.edits.is_empty()
    }
}
