//! What may happen in a world, and what does in its calm.

use gatehouse::kinds::tdset::actions;

use super::*;

/// How often what may go wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Faults {
    pub crashes: u8,
    pub lost_answers: u8,
    pub conflicts: u8,
    pub refusals: u8,
    /// A person scales.
    pub scales: u8,
    /// A person edits the count.
    pub counts: u8,
    /// A person deletes the Deployment.
    pub deletions: u8,
    /// A person makes a Deployment, or a Service, where there is none.
    pub squatters: u8,
    /// A person writes other bounds.
    pub bounds: u8,
    /// The API server does not say what there is, or what dates there are.
    pub unread: u8,
    /// Another operator takes over, whose clock is behind.
    pub handovers: u8,
    /// A person deletes the Deployment, and waits for what it owns.
    pub slow_deletions: u8,
    /// Another client changes what was made.
    pub changes: u8,
}

impl Faults {
    /// How often that may go wrong yet; nothing where it is nothing that goes wrong.
    pub fn of(&mut self, action: &Action) -> Option<&mut u8> {
        match action {
            Action::Unheard(_) => Some(&mut self.lost_answers),
            Action::Conflict(_) => Some(&mut self.conflicts),
            Action::Refusal(_) => Some(&mut self.refusals),
            Action::Crash => Some(&mut self.crashes),
            Action::Scale => Some(&mut self.scales),
            Action::EditCount => Some(&mut self.counts),
            Action::Delete => Some(&mut self.deletions),
            Action::Squat => Some(&mut self.squatters),
            Action::Bounds => Some(&mut self.bounds),
            Action::Blind(_) | Action::Unlisted(_) | Action::Undated(_) => Some(&mut self.unread),
            Action::HandOver => Some(&mut self.handovers),
            Action::DeleteSlowly => Some(&mut self.slow_deletions),
            Action::Change => Some(&mut self.changes),
            Action::Pass(_)
            | Action::ApiWrite(_)
            | Action::Rollout
            | Action::Collect
            | Action::Tick
            | Action::Wait
            | Action::CatchUp
            | Action::Edit => None,
        }
    }
}

/// One thing that happens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The operator looks at a schedule, and plans.
    Pass(usize),
    /// The same, while the API server does not say what there is.
    Blind(usize),
    /// The same, while autoscalers may not be listed.
    Unlisted(usize),
    /// The same, while the dates of the timetable cannot be read.
    Undated(usize),
    /// It does the next thing of that.
    ApiWrite(usize),
    /// It does it, and does not hear so.
    Unheard(usize),
    /// It hears that another client wrote first.
    Conflict(usize),
    /// The API server will not have it.
    Refusal(usize),
    /// It forgets all.
    Crash,
    /// The Deployment's controller does its work.
    Rollout,
    /// The garbage collector does.
    Collect,
    /// The clock passes a boundary.
    Tick,
    /// Another operator takes over, whose clock is behind.
    HandOver,
    /// Its clock has come to show what it is.
    CatchUp,
    /// Time passes until a contest has the operator look again.
    Wait,
    /// The next edit.
    Edit,
    /// A person writes a count of 9.
    Scale,
    /// The same in a way that tells when it was.
    EditCount,
    Delete,
    DeleteSlowly,
    Squat,
    Bounds,
    /// Another client changes the Service that was made, or where there is none, the Deployment.
    Change,
}

impl Action {
    /// Whether things may be told twice after it.
    pub const fn disturbs(&self) -> bool {
        matches!(self, Self::Unheard(_) | Self::Conflict(_) | Self::Refusal(_) | Self::Crash)
            || matches!(self, Self::Blind(_) | Self::Unlisted(_) | Self::Undated(_))
            || matches!(self, Self::HandOver | Self::Squat)
    }
}

impl kit::explore::World for World {
    type Action = Action;
    type Hand = Hand;
    type Rule = Rule;

    const NEVER_SETTLES: Rule = Rule::NeverSettles;

    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for (worker, at) in self.workers.iter().zip(0..) {
            if worker.pending.is_none() {
                let unread = [Action::Blind(at), Action::Unlisted(at), Action::Undated(at)];
                actions.extend([Action::Pass(at)].into_iter().chain(unread));
            } else {
                let may =
                    [Action::ApiWrite(at), Action::Unheard(at), Action::Conflict(at), Action::Refusal(at)];
                actions.extend(may);
            }
        }
        let others =
            [Action::Crash, Action::Rollout, Action::Collect, Action::Tick, Action::Wait, Action::Edit];
        let clocks = [Action::HandOver, Action::CatchUp];
        let people = [Action::Scale, Action::EditCount, Action::Delete, Action::DeleteSlowly];
        let clients = [Action::Squat, Action::Bounds, Action::Change];
        actions.extend(others.into_iter().chain(clocks).chain(people).chain(clients));
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
        let (Action::Pass(at) | Action::Blind(at) | Action::Unlisted(at) | Action::Undated(at)) = action
        else {
            return Vec::new();
        };
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
