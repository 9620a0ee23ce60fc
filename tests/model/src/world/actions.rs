//! What may happen in a world, and what does in its calm.

use std::iter::once;

use super::*;

impl kit::explore::World for World {
    type Action = Action;
    type Hand = Hand;
    type Rule = Rule;

    const NEVER_SETTLES: Rule = Rule::NeverSettles;

    fn actions(&self) -> Vec<Action> {
        let faults = self.faults;
        let mut actions = Vec::new();
        for (operator, at) in self.operators.iter().zip(0..) {
            if operator.rest.is_empty() {
                let statuses = self.objects.pods.keys().map(|ordinal| Unread::Status(*ordinal));
                let unread =
                    [Unread::StatefulSet, Unread::Pods, Unread::Volumes, Unread::Config, Unread::Members];
                let blind = unread.into_iter().chain(statuses).map(|what| Action::Blind(at, what));
                actions.extend(once(Action::Pass(at)).chain(blind));
                if faults.strangers > 0 {
                    let strangers = self.objects.pods.keys().map(|ordinal| Unread::Stranger(*ordinal));
                    actions.extend(strangers.map(|what| Action::Blind(at, what)));
                }
            } else {
                actions.extend([Action::Step(at), Action::Unheard(at), Action::Crash(at)]);
            }
        }
        actions.extend(self.environment());
        let ordinals = self.ordinals();
        for action in [Action::Kill, Action::Evict, Action::Lose] {
            actions.extend(ordinals.iter().copied().map(action));
        }
        if faults.claims > 0 {
            actions.extend(ordinals.iter().copied().map(Action::DeleteClaim));
        }
        if faults.configs > 0 {
            actions.push(Action::LoseConfig);
        }
        if faults.silences > 0 {
            actions.extend(ordinals.iter().copied().map(Action::Silence));
        }
        if faults.objects > 0 {
            let objects = [Object::StatefulSet, Object::Services, Object::Budget];
            actions.extend(objects.map(Action::LoseObject));
        }
        if faults.labels > 0 {
            actions.extend(ordinals.iter().copied().map(Action::LoseLabel));
        }
        if faults.authorities > 0 {
            actions.push(Action::LoseAuthority);
        }
        if faults.corruptions > 0 {
            actions.extend(ordinals.iter().copied().map(Action::Corrupt));
        }
        if faults.suspicions > 0 {
            let members = self.etcd.members.iter().map(|member| member.id);
            actions.extend(members.chain([MemberId(0)]).map(Action::Suspect));
        }
        if faults.fills > 0 {
            actions.push(Action::Fill);
        }
        actions.extend(self.surroundings());
        if self.leads() {
            actions.extend(self.voters().map(|voter| Action::Elect(voter.id)));
        }
        if faults.writes > 0 && self.is_served() {
            actions.extend((0..self.majorities().len()).map(Action::Write));
        }
        actions.extend([Action::Edit, Action::Tick]);
        actions
    }

    /// Everybody but the operator does what is to do, then the operator, and time passes where nothing else is left.
    fn calm(&self) -> Vec<Action> {
        let operators = 0..self.operators.len();
        let steps = operators.clone().map(Action::Step);
        let passes = operators.map(Action::Pass);
        self.environment().into_iter().chain(steps).chain(passes).chain([Action::Tick]).collect()
    }

    fn after(&self, action: &Action, hand: Hand) -> Option<Self> {
        if !self.may(action) {
            return None;
        }
        let mut next = self.clone();
        next.act(self, action, hand)?;
        next.follow_trust();
        if self.is_prompt {
            next.hurry();
        }
        next.watch(self);
        next.forget();
        (next != *self).then_some(next)
    }

    fn broken(&self) -> Option<Rule> {
        self.broken.or_else(|| self.judge_state())
    }

    fn broken_at_rest(&self, hand: Hand) -> Option<Rule> {
        (!self.rests_well(hand)).then_some(Rule::SettlesWrongly)
    }

    fn planned(&self, action: &Action) -> Vec<&'static str> {
        let (Action::Pass(operator) | Action::Blind(operator, _)) = action else { return Vec::new() };
        let effects = self.operators[*operator].rest.iter();
        effects.map(Effect::name).collect()
    }

    fn is_spent(&self, action: &Action) -> bool {
        let mut faults = self.faults;
        let is_spent = faults.of(action, self).is_some_and(|left| *left == 0);
        is_spent || *action == Action::Edit && self.edits.is_empty()
    }

    fn shown(&self, action: &Action) -> String {
        match action {
            Action::Step(operator) => format!("{:?}", self.operators[*operator].rest[0]),
            other => format!("{other:?}"),
        }
    }

    fn written(action: &Action) -> String {
        match action {
            Action::Blind(operator, unread) => format!("Action::Blind({operator}, Unread::{unread:?})"),
            Action::Node(ordinal, does) => format!("Action::Node({ordinal:?}, Kubelet::{does:?})"),
            Action::LoseObject(object) => format!("Action::LoseObject(Object::{object:?})"),
            Action::Take(object) => format!("Action::Take(Object::{object:?})"),
            other => format!("Action::{other:?}"),
        }
    }
}

impl World {
    /// What only some slices look at.
    fn surroundings(&self) -> Vec<Action> {
        let faults = self.faults;
        let mut actions = Vec::new();
        if faults.loosenings > 0 {
            actions.push(Action::Loosen);
        }
        if faults.cuts > 0 {
            actions.extend(self.ordinals().into_iter().map(Action::CutOff));
        }
        if faults.names > 0 {
            let objects = [Object::StatefulSet, Object::Services, Object::Budget, Object::Config];
            actions.extend(objects.map(Action::Take));
        }
        if self.surroundings.taken.is_some() {
            actions.push(Action::Free);
        }
        if faults.failed_backups > 0 {
            actions.push(Action::BackUp(false));
        }
        actions
    }

    /// What everybody but the operator does by itself.
    fn environment(&self) -> Vec<Action> {
        let kubelet =
            [Kubelet::End, Kubelet::Release, Kubelet::Make, Kubelet::Show, Kubelet::Start, Kubelet::Expand];
        let places =
            self.ordinals().into_iter().flat_map(|ordinal| kubelet.map(|does| Action::Node(ordinal, does)));
        let members = self.etcd.members.iter();
        let is_led = self.leads();
        let elected = members.clone().filter(|_| !is_led).map(|member| Action::Elect(member.id));
        let heard = self.objects.pods.iter().filter(|(_, place)| place.is_silent);
        let heard = heard.map(|(ordinal, _)| Action::Answer(*ordinal));
        let cut_off = self.objects.pods.iter().filter(|(_, place)| place.is_cut_off);
        let heard = heard.chain(cut_off.map(|(ordinal, _)| Action::Mend(*ordinal)));
        let agreed = [Action::Agree, Action::Compare, Action::BackUp(true)];
        let caught_up = members.map(|member| Action::CatchUp(member.id));
        places.chain(elected).chain(caught_up).chain(heard).chain(agreed).collect()
    }
}

#[test]
fn a_way_that_breaks_a_rule_is_printed_as_the_test_that_goes_it() {
    use kit::explore::Broken;

    let way = vec![
        Action::Blind(0, Unread::Status(Ordinal(1))),
        Action::Node(Ordinal(2), Kubelet::Start),
        Action::Elect(MemberId(3)),
        Action::Tick,
    ];
    let broken = Broken::<World> { rule: Rule::QuorumCost, way, calm: vec!["Pass(0)".to_owned()] };
    assert_eq!(
        broken.as_test("loss"),
        "breaks QuorumCost

/// What happens, and what came of it.
#[test]
fn what_it_means() {
    let way = [
        Action::Blind(0, Unread::Status(Ordinal(1))),
        Action::Node(Ordinal(2), Kubelet::Start),
        Action::Elect(MemberId(3)),
        Action::Tick,
    ];
    slices::loss().holds_after(&way);
}

// And then:
//     Pass(0)
"
    );
}
