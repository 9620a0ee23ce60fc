//! The search, in a world of which all is known: a lift that goes up to the third floor, and may be called down once.

use std::time::Duration;

use super::{Found, Impassable, Planted, Reach, Slice, World, finds};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Lift {
    floor: u8,
    calls: u8,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Action {
    Up,
    Call,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    TooHigh,
    TooLow,
    NeverStops,
}

/// What is wrong with the lift.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// It goes beyond the third floor once it was called down.
    Overshoots,
    StopsEarly,
    /// It goes from the third floor to the second one.
    GoesRound,
}

#[derive(Clone, Copy, Debug, Default)]
struct Hand(Option<Fault>);

impl World for Lift {
    type Action = Action;
    type Hand = Hand;
    type Rule = Rule;

    const NEVER_SETTLES: Rule = Rule::NeverStops;

    fn actions(&self) -> Vec<Action> {
        vec![Action::Up, Action::Call]
    }

    fn calm(&self) -> Vec<Action> {
        vec![Action::Up]
    }

    fn after(&self, action: &Action, hand: Hand) -> Option<Self> {
        let up = Self { floor: self.floor + 1, ..*self };
        match (action, hand.0, self.floor) {
            (Action::Call, ..) => (self.calls > 0).then(|| Self { floor: 0, calls: self.calls - 1 }),
            (Action::Up, Some(Fault::Overshoots), 3) if self.calls == 0 => Some(up),
            (Action::Up, Some(Fault::StopsEarly), 2..) => None,
            (Action::Up, Some(Fault::GoesRound), 3) => Some(Self { floor: 2, ..*self }),
            (Action::Up, _, floor) => (floor < 3).then_some(up),
        }
    }

    fn broken(&self) -> Option<Rule> {
        (self.floor > 3).then_some(Rule::TooHigh)
    }

    fn broken_at_rest(&self, _: Hand) -> Option<Rule> {
        (self.floor < 3).then_some(Rule::TooLow)
    }

    fn planned(&self, action: &Action) -> Vec<&'static str> {
        if *action == Action::Up { vec!["up"] } else { Vec::new() }
    }

    fn is_spent(&self, action: &Action) -> bool {
        *action == Action::Call && self.calls == 0
    }
}

fn worked_by(fault: Fault) -> Slice<Lift> {
    lift().with(Hand(Some(fault)))
}

fn lift() -> Slice<Lift> {
    let reaches: &[Reach<Lift>] = &[
        ("the third floor", |_, lift| lift.floor == 3),
        ("a call", |start, lift| lift.calls < start.calls),
        ("the roof", |_, lift| lift.floor > 3),
    ];
    Slice::new(Lift { floor: 0, calls: 1 }, reaches, &["up", "down"])
}

#[test]
fn all_of_a_slice_is_looked_at_and_what_is_not_in_it_is_missed() {
    let Found { states, broken, missed, planned, .. } = lift().explore();
    assert_eq!((states, missed), (8, vec!["the roof", "down"]));
    assert!(broken.is_none() && planned.into_iter().eq(["up"]));
}

#[test]
fn a_broken_rule_is_found_with_a_shortest_way_and_the_calm_after_it() {
    let called = worked_by(Fault::Overshoots).explore().broken.expect("it overshoots");
    assert_eq!((called.rule, called.way), (Rule::TooHigh, vec![Action::Call]));
    assert_eq!(called.calm, ["Up"; 4]);
    let round = worked_by(Fault::GoesRound).explore().broken.expect("it goes round");
    assert_eq!((round.rule, round.way, round.calm), (Rule::NeverStops, vec![], vec!["Up".to_owned(); 4]));
}

#[test]
fn a_way_at_random_is_the_same_for_a_seed_and_is_shortened() {
    let long = Duration::from_hours(1);
    let broken = |seed| worked_by(Fault::Overshoots).wander(seed, long).broken.expect("it overshoots").way;
    assert_eq!(broken(1), [Action::Call]);
    assert_eq!(broken(2), [Action::Call]);
    let found = lift().wander(1, Duration::ZERO);
    assert!(found.broken.is_none());
}

#[test]
fn a_way_that_cannot_be_gone_says_where_and_why() {
    use Action::{Call, Up};
    assert_eq!(lift().walk(&[Up, Call]), Ok(None));
    assert_eq!(lift().walk(&[Call, Call]), Err(Impassable::Spent(1, Call)));
    assert_eq!(lift().walk(&[Up, Up, Up, Up]), Err(Impassable::Idle(3, Up)));
}

#[test]
fn a_planted_fault_is_found_by_the_rule_that_names_it() {
    let planted: [Planted<Lift, Fault>; 3] = [
        (Fault::Overshoots, lift, Rule::TooHigh),
        (Fault::StopsEarly, lift, Rule::TooLow),
        (Fault::GoesRound, lift, Rule::NeverStops),
    ];
    finds(&planted, |fault| Hand(Some(fault)));
}

#[test]
#[should_panic(expected = "StopsEarly is to break TooHigh first: breaks TooLow")]
fn a_planted_fault_that_another_rule_finds_first_is_not_found() {
    finds(&[(Fault::StopsEarly, lift, Rule::TooHigh)], |fault| Hand(Some(fault)));
}

#[test]
#[should_panic(expected = "lift does not reach")]
fn a_slice_that_misses_what_it_is_about_does_not_hold() {
    super::holds("lift", &lift());
}
