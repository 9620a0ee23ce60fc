//! The plan of an EtcdCluster, explored: the very function that runs in production, against a model of everything
//! around it, in every order in which things can happen within bounds. What is checked and what is not is in
//! docs/correctness.md.

#![expect(clippy::expect_used, clippy::panic, reason = "a test says what it expects by panicking")]

mod calm;
mod conformance;
mod explore;
mod faults;
#[path = "../membership/mod.rs"]
mod membership;
mod mistakes;
mod rules;
mod slices;
#[path = "../traces/plan.rs"]
mod traces;
mod world;

use explore::Slice;
use faults::{Fault, Hand};
use rules::Rule;

/// States of a slice, at most: more is a slice to be cut.
const MOST: usize = 2_000_000;

fn holds(slice: Slice) {
    let name = slice.name;
    let found = slice.explore();
    println!("{name}: {} states in {:.1?}: {:?}", found.states, found.took, found.planned);
    assert!(found.broken.is_none(), "{name}: {}", found.as_test());
    assert!(found.missed.is_empty(), "{name} does not reach: {:?}", found.missed);
    assert!(found.states <= MOST, "{name} has {} states", found.states);
}

macro_rules! slices {
    ($($name:ident),*) => {
        $(#[test]
        fn $name() {
            holds(slices::$name());
        })*
    };
}

slices!(
    bootstrap,
    growth,
    shrinking,
    loss,
    upgrade,
    recovery,
    blindness,
    two_operators,
    comeback,
    stopping,
    deletion
);

/// What is too large to be looked at whole, gone through at random.
mod random {
    use std::hash::{BuildHasher as _, Hasher as _, RandomState};
    use std::time::Duration;

    use super::slices;

    const TIME: Duration = Duration::from_mins(5);

    fn holds(slice: super::Slice) {
        let told = std::env::var("MODEL_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = told.unwrap_or_else(|| RandomState::new().build_hasher().finish());
        let name = slice.name;
        let found = slice.wander(seed, TIME);
        println!("{name}: {} states with MODEL_SEED={seed}", found.states);
        assert!(found.broken.is_none(), "{name} with MODEL_SEED={seed}: {}", found.as_test());
    }

    macro_rules! large {
        ($($name:ident),*) => {
            $(#[test]
            #[ignore = "takes five minutes"]
            fn $name() {
                holds(slices::large::$name());
            })*
        };
    }

    large!(growth, shrinking, loss, upgrade, recovery);
}

/// A fault, where it has to be found, and the rule that names it.
type Planted = (Fault, fn() -> Slice, Rule);

const PLANTED: [Planted; 18] = [
    (Fault::AddsVoters, slices::growth, Rule::QuorumCost),
    (Fault::TakesUnknownVolumesForNone, slices::blindness, Rule::SoundMemberReplaced),
    (Fault::TrustsAnyList, slices::blindness, Rule::StatusLies),
    (Fault::IgnoresGuards, slices::second_thoughts, Rule::MembersVolume),
    (Fault::LooksOnce, slices::upgrade, Rule::QuorumCost),
    (Fault::ForgetsTheCluster, slices::bootstrap, Rule::SecondCluster),
    (Fault::DeletesVolumesFirst, slices::shrinking, Rule::MembersVolume),
    (Fault::RollsWithoutGate, slices::upgrade, Rule::QuorumCost),
    (Fault::RemovesTheLeader, slices::shrinking, Rule::LeaderRemoved),
    (Fault::ForcesWithoutFence, slices::comeback, Rule::ForcedBesideOthers),
    (Fault::IgnoresPause, slices::stopping, Rule::WorkedWhilePaused),
    (Fault::ShrinksTheSetFirst, slices::shrinking, Rule::NeverSettles),
    (Fault::LeavesLeftovers, slices::shrinking, Rule::SettlesWrongly),
    (Fault::OverlooksTheUnstarted, slices::growth, Rule::NeverSettles),
    (Fault::KeepsNoRecord, slices::growth, Rule::SettlesWrongly),
    (Fault::ForcesAgain, slices::comeback, Rule::ForcedTwice),
    (Fault::ForgetsTheRecovery, slices::comeback, Rule::NeverSettles),
    (Fault::CallsUnknownAvailable, slices::loss, Rule::StatusLies),
];

#[test]
fn every_planted_fault_is_found_by_the_rule_that_names_it() {
    let one = std::env::var("MODEL_FAULT").ok();
    let asked =
        PLANTED.into_iter().filter(|(fault, ..)| one.as_ref().is_none_or(|one| *one == format!("{fault:?}")));
    let missed = asked.filter(|(fault, slice, rule)| {
        let found = slice().with(Hand::with(*fault)).only(*rule).explore();
        let word = if found.broken.is_some() { "breaks" } else { "does not break" };
        println!("{fault:?} {word} {rule:?} in {} states, {:.1?}", found.states, found.took);
        found.broken.is_none()
    });
    let missed: Vec<_> = missed.map(|(fault, _, rule)| (fault, rule)).collect();
    assert!(missed.is_empty(), "not found: {missed:?}");
}
