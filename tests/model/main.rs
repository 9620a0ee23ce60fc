//! The plan of an EtcdCluster, explored: the very function that runs in production, against a model of everything
//! around it, in every order in which things can happen within bounds. What is checked and what is not is in
//! docs/correctness.md.

#![expect(clippy::expect_used, clippy::panic, reason = "a test says what it expects by panicking")]

mod calm;
mod conformance;
#[path = "../counterexample/mod.rs"]
mod counterexample;
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

use explore::{Found, Slice};
use faults::{Fault, Hand};
use rules::Rule;

/// States of a slice, at most: more is a slice to be cut.
const MOST: usize = 2_000_000;

fn holds(slice: Slice) {
    let name = slice.name;
    let found = slice.explore();
    let Found { states, took, planned, .. } = &found;
    println!("{name}: {states} states in {took:.1?}, {} MB at most by now: {planned:?}", peak_megabytes());
    assert!(found.broken.is_none(), "{name}: {}", found.as_test());
    assert!(found.missed.is_empty(), "{name} does not reach: {:?}", found.missed);
    assert!(found.states <= MOST, "{name} has {} states", found.states);
}

/// The most memory that this process has had.
fn peak_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    peak.and_then(|kilobytes| kilobytes.trim().parse::<u64>().ok()).unwrap_or_default() / 1024
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
    survivors,
    drain,
    stopping,
    deletion,
    deletion_that_keeps
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

const PLANTED: &[Planted] = &[
    (Fault::AddsVoters, slices::growth, Rule::QuorumCost),
    (Fault::AddsTwoAtOnce, slices::growth_to_five, Rule::TooManyMembers),
    (Fault::TakesUnknownVolumesForNone, slices::blindness, Rule::SoundMemberReplaced),
    (Fault::TrustsAnyList, slices::blindness, Rule::ChangedUnknown),
    (Fault::TrustsAnyList, slices::blindness, Rule::StatusLies),
    (Fault::IgnoresGuards, slices::second_thoughts, Rule::MembersVolume),
    (Fault::LooksOnce, slices::upgrade, Rule::QuorumCost),
    (Fault::ForgetsTheCluster, slices::bootstrap, Rule::SecondCluster),
    (Fault::KeepsNoRecord, slices::bootstrap, Rule::SecondCluster),
    (Fault::DeletesVolumesFirst, slices::shrinking, Rule::MembersVolume),
    (Fault::RejoinsEmpty, slices::loss, Rule::WriteLost),
    (Fault::NeverReplaces, slices::loss, Rule::SettlesWrongly),
    (Fault::RollsWithoutGate, slices::upgrade, Rule::QuorumCost),
    (Fault::RollsAllAtOnce, slices::upgrade, Rule::TwoAtOnce),
    (Fault::RollsTheLeaderFirst, slices::upgrade, Rule::LeaderRestartedFirst),
    (Fault::SkipsMinors, slices::upgrade, Rule::MinorsApart),
    (Fault::RemovesTheLeader, slices::shrinking, Rule::LeaderRemoved),
    (Fault::ForcesWithoutFence, slices::comeback, Rule::ForcedBesideOthers),
    (Fault::ForcesAgain, slices::comeback, Rule::ForcedTwice),
    (Fault::RunsWhoIsSetAside, slices::comeback, Rule::RemovedMemberRuns),
    (Fault::ForgetsTheRecovery, slices::comeback, Rule::SettlesWrongly),
    (Fault::GoesOnFromTheLeast, slices::survivors, Rule::PoorerSurvivor),
    (Fault::IgnoresPause, slices::stopping, Rule::WorkedWhilePaused),
    (Fault::ShrinksTheSetFirst, slices::shrinking, Rule::NeverSettles),
    (Fault::ShrinksTheSetAtOnce, slices::shrinking, Rule::QuorumCost),
    (Fault::LeavesLeftovers, slices::shrinking, Rule::SettlesWrongly),
    (Fault::OverlooksTheUnstarted, slices::growth, Rule::NeverSettles),
    (Fault::NeverLetsGo, slices::deletion, Rule::SettlesWrongly),
    (Fault::TakesVolumesAlong, slices::deletion_that_keeps, Rule::MembersVolume),
    (Fault::CallsUnknownAvailable, slices::loss, Rule::StatusLies),
];

#[test]
fn every_planted_fault_is_found_by_the_rule_that_names_it() {
    let one = std::env::var("MODEL_FAULT").ok();
    let is_asked = |fault: &Fault| one.as_ref().is_none_or(|one| *one == format!("{fault:?}"));
    let asked: Vec<_> = PLANTED.iter().copied().filter(|(fault, ..)| is_asked(fault)).collect();
    assert!(!asked.is_empty(), "MODEL_FAULT={}: there is no such fault", one.unwrap_or_default());
    let missed = asked.into_iter().filter(|(fault, slice, rule)| {
        let found = slice().with(Hand::with(*fault)).only(*rule).explore();
        let word = if found.broken.is_some() { "breaks" } else { "does not break" };
        println!("{fault:?} {word} {rule:?} in {} states, {:.1?}", found.states, found.took);
        found.broken.is_none()
    });
    let missed: Vec<_> = missed.map(|(fault, _, rule)| (fault, rule)).collect();
    assert!(missed.is_empty(), "not found: {missed:?}");
}
