//! What may happen in a world, and what does in its calm.

use super::*;

impl kit::explore::World for World {
    type Action = Action;
    type Hand = Hand;
    type Rule = Rule;

    const NEVER_SETTLES: Rule = Rule::NeverSettles;

    fn actions(&self) -> Vec<Action> {
        if self.object.is_gone {
            return Vec::new();
        }
        let mut actions = Vec::new();
        for (operator, at) in self.operators.iter().zip(0..) {
            if operator.pending.is_none() {
                actions.push(Action::Pass(at));
            } else {
                actions.extend([
                    Action::Step(at),
                    Action::Unheard(at),
                    Action::Crash(at),
                    Action::Refusal(at),
                ]);
            }
        }
        actions.extend(Course::ALL.map(Action::Run));
        if !self.orphans.is_empty() {
            actions.extend(Course::ALL.map(Action::Orphan));
        }
        if self.around.takes_time {
            actions.extend([Action::Deadline, Action::Evict]);
            actions.extend([Action::Report, Action::Collect, Action::Control]);
        }
        let others = [Action::DeleteJob, Action::Expire, Action::Later, Action::Day, Action::Restore];
        let people = [Action::Edit, Action::Answer, Action::Slip, Action::Approve];
        actions.extend(others.into_iter().chain(people));
        actions
    }

    /// A person helps only where nothing else is left to be done.
    fn calm(&self) -> Vec<Action> {
        if self.object.is_gone {
            return Vec::new();
        }
        let steps = (0..self.operators.len()).map(Action::Step);
        let node = [Action::Report, Action::Collect, Action::Control];
        let node = node.into_iter().filter(|_| self.around.takes_time);
        let others = [Action::Pass(0), Action::Run(Course::Whole), Action::Later];
        let last = [Calm::Deadline, Calm::Expire, Calm::Day, Calm::Help].map(Action::Calm);
        steps.chain(node).chain(others).chain(last).collect()
    }

    fn after(&self, action: &Action, hand: Hand) -> Option<Self> {
        kit::explore::changed(self, action, |next| next.act(action, hand))
    }

    fn broken(&self) -> Option<Rule> {
        self.broken
    }

    fn broken_at_rest(&self, _hand: Hand) -> Option<Rule> {
        self.judge_rest()
    }

    fn planned(&self, action: &Action) -> Vec<&'static str> {
        let Action::Pass(at) = action else { return Vec::new() };
        let pending = self.operators[*at].pending.as_ref();
        let actions = pending.into_iter().flat_map(|pending| &pending.planned.plan.actions);
        actions.map(gatehouse::controllers::action::Action::name).collect()
    }

    fn is_spent(&self, action: &Action) -> bool {
        let mut faults = self.faults;
        let is_spent = faults.of(action).is_some_and(|left| *left == 0);
        is_spent || *action == Action::Edit && self.edits.is_empty()
    }
}
