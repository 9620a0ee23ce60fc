//! Searches all that can happen around a plan.
//!
//! A [`World`] says what can happen and what must never be so. A [`Slice`] is a part of that, small enough to be looked
//! at whole. The search goes through all of it, and from every state through the calm as well: what follows once
//! nothing fails any more and no more changes are asked for. That has to come to a rest that is as it should be.
//!
//! Guarantees: the search goes breadth first, in one thread, and ends at the first state that breaks a rule. What it
//! finds is therefore the same in each run, and no shorter way leads to a broken rule.
//!
//! Assumes: two states that differ have two fingerprints, of 64 bits. Among a million states one in forty million
//! searches has two that share theirs.
//!
//! Never: knows anything of what it searches.

mod fingerprint;
mod keyed;
mod search;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt::{Debug, Write as _};
use std::hash::Hash;
use std::time::Duration;

pub use fingerprint::fingerprint;
pub use keyed::{Keyed, Memo};
pub use search::rest;

use crate::random::seed;

/// All that there is at a moment.
pub trait World: Clone + Eq + Hash + Debug + 'static {
    /// One thing that happens.
    type Action: Clone + PartialEq + Debug;
    /// How the operator works: soundly by default.
    type Hand: Copy + Default + Debug;
    /// What must never be so.
    type Rule: Copy + PartialEq + Debug;

    /// The rule that a calm breaks which comes to no rest.
    const NEVER_SETTLES: Self::Rule;

    /// What may happen now. Nothing may come of an action.
    fn actions(&self) -> Vec<Self::Action>;

    /// What may happen in the calm. The first of these does of which anything comes.
    fn calm(&self) -> Vec<Self::Action>;

    /// What follows; nothing where the action changes nothing or cannot be.
    fn after(&self, action: &Self::Action, hand: Self::Hand) -> Option<Self>;

    /// The rule that is broken now.
    fn broken(&self) -> Option<Self::Rule>;

    /// The rule that is broken by nothing more being done.
    fn broken_at_rest(&self, hand: Self::Hand) -> Option<Self::Rule>;

    /// What the action that led here had the operator plan, by the names of its points.
    fn planned(&self, action: &Self::Action) -> Vec<&'static str>;

    /// Whether an action has happened as often as it may.
    fn is_spent(&self, action: &Self::Action) -> bool;

    /// What an action is about to do, for a person to read.
    fn shown(&self, action: &Self::Action) -> String {
        format!("{action:?}")
    }

    /// An action as it is written in a test.
    fn written(action: &Self::Action) -> String {
        format!("Action::{action:?}")
    }
}

/// What follows on an action that `act` does, which says whether anything came of it; nothing where it is spent, or
/// changes nothing.
pub fn changed<W: World>(world: &W, action: &W::Action, act: impl FnOnce(&mut W) -> bool) -> Option<W> {
    if world.is_spent(action) {
        return None;
    }
    let mut next = world.clone();
    (act(&mut next) && next != *world).then_some(next)
}

/// Something that has to be so somewhere in a slice: its name, and whether it is, given the start and a state.
pub type Reach<W> = (&'static str, fn(&W, &W) -> bool);

/// A part of all that can happen.
#[derive(Clone, Debug)]
pub struct Slice<W: World> {
    /// Where it begins.
    pub start: W,
    /// How the operator works.
    pub hand: W::Hand,
    /// What has to be reached, or the slice shows nothing.
    pub reaches: &'static [Reach<W>],
    /// What has to be planned somewhere in it, by the names of its points.
    pub does: &'static [&'static str],
}

/// Why a way cannot be gone: the action of that number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Impassable<Action> {
    /// It has happened as often as it may in the slice as it is now.
    Spent(usize, Action),
    /// It changes nothing there, or cannot be.
    Idle(usize, Action),
}

/// A rule that is broken.
#[derive(Clone, Debug)]
pub struct Broken<W: World> {
    /// Which.
    pub rule: W::Rule,
    /// What leads there.
    pub way: Vec<W::Action>,
    /// What happens in the calm after that.
    pub calm: Vec<String>,
}

/// How a search ended.
#[derive(Clone, Debug)]
pub struct Found<W: World> {
    /// How many states there are, as far as they were looked at.
    pub states: usize,
    /// How long it took.
    pub took: Duration,
    /// The first rule that is broken.
    pub broken: Option<Broken<W>>,
    /// What was neither reached nor planned.
    pub missed: Vec<&'static str>,
    /// What was planned somewhere.
    pub planned: BTreeSet<&'static str>,
}

/// States of a slice, at most: more is a slice to be cut.
pub const MOST: usize = 2_000_000;

impl<W: World> Slice<W> {
    /// A slice whose operator is sound.
    pub fn new(start: W, reaches: &'static [Reach<W>], does: &'static [&'static str]) -> Self {
        Self { start, hand: W::Hand::default(), reaches, does }
    }

    /// The same, worked by another hand.
    #[must_use]
    pub fn with(self, hand: W::Hand) -> Self {
        Self { hand, ..self }
    }

    /// Goes a way and sees that no rule is broken at its end, nor in the calm after that.
    #[track_caller]
    pub fn holds_after(&self, way: &[W::Action]) {
        assert_eq!(self.walk(way), Ok(None));
    }
}

impl<W: World> Broken<W> {
    /// A test that goes the same way in the slice of that name, and what comes after that.
    pub fn as_test(&self, slice: &str) -> String {
        let mut text = format!(
            "breaks {:?}\n\n/// What happens, and what came of it.\n#[test]\nfn what_it_means() {{\n    let way = [\n",
            self.rule
        );
        for action in &self.way {
            let _ = writeln!(text, "        {},", W::written(action));
        }
        let _ = write!(text, "    ];\n    slices::{slice}().holds_after(&way);\n}}\n\n// And then:\n");
        for action in self.calm.iter().take(MOST_SHOWN) {
            let _ = writeln!(text, "//     {action}");
        }
        if self.calm.len() > MOST_SHOWN {
            let _ = writeln!(text, "//     and so on: {} in all", self.calm.len());
        }
        text
    }
}

/// How much of a calm is printed.
const MOST_SHOWN: usize = 60;

/// Looks at all of a slice: no rule may be broken, and all that it is about has to be in it.
pub fn holds<W: World>(name: &str, slice: &Slice<W>) {
    let Found { states, took, broken, missed, planned } = slice.explore();
    println!("figure: {name}: {states} states in {took:.1?}");
    println!("{name}: {} MB at most by now: {planned:?}", peak_megabytes());
    if let Some(broken) = broken {
        panic!("{name} {}", broken.as_test(name));
    }
    assert!(states <= MOST, "{name} has more than {MOST} states");
    assert!(missed.is_empty(), "{name} does not reach: {missed:?}");
}

/// Goes at random through what is too large to be looked at whole, for five minutes, from a seed that `MODEL_SEED`
/// gives.
pub fn wanders<W: World>(name: &str, slice: &Slice<W>) {
    let seed = seed("MODEL_SEED", 1);
    let Found { states, broken, .. } = slice.wander(seed, Duration::from_mins(5));
    println!("figure: {name}: {states} states with MODEL_SEED={seed}");
    if let Some(broken) = broken {
        panic!("{name} with MODEL_SEED={seed} {}", broken.as_test(name));
    }
}

/// The most memory that this process has had.
fn peak_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    peak.and_then(|kilobytes| kilobytes.trim().parse::<u64>().ok()).unwrap_or_default() / 1024
}

/// A test for each of these functions of the module `slices`: that its slice [`holds`].
#[macro_export]
macro_rules! slices {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            $crate::explore::holds(stringify!($name), &slices::$name());
        })*
    };
}

/// A test for each of these functions of the module `slices::large`: that going through its slice at random breaks no
/// rule.
#[macro_export]
macro_rules! large_slices {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        #[ignore = "takes five minutes"]
        fn $name() {
            $crate::explore::wanders(concat!("large::", stringify!($name)), &slices::large::$name());
        })*
    };
}

/// A fault that an operator is given, where it has to be found, and the rule that names it.
pub type Planted<W, Fault> = (Fault, fn() -> Slice<W>, <W as World>::Rule);

/// Sees each planted fault break the rule that names it, and that first. `FAULT` names the one to look for,
/// whose way is printed.
pub fn finds<W: World, Fault: Copy + Debug>(planted: &[Planted<W, Fault>], hand: fn(Fault) -> W::Hand) {
    let one = std::env::var("FAULT").ok();
    let is_asked = |fault: &Fault| one.as_ref().is_none_or(|one| *one == format!("{fault:?}"));
    let mut wrong = Vec::new();
    let mut looked_for = 0;
    for (fault, slice, rule) in planted.iter().filter(|(fault, ..)| is_asked(fault)) {
        looked_for += 1;
        let Found { states, took, broken, .. } = slice().with(hand(*fault)).explore();
        let first = broken.as_ref().map(|broken| broken.rule);
        println!("{fault:?} breaks {first:?} in {states} states, {took:.1?}");
        if one.is_some()
            && let Some(broken) = &broken
        {
            println!("{}", broken.as_test("…"));
        }
        if first != Some(*rule) {
            let way = broken.map(|broken| broken.as_test("…")).unwrap_or_default();
            wrong.push(format!("{fault:?} is to break {rule:?} first: {way}"));
        }
    }
    assert!(looked_for > 0, "FAULT={}: there is no such fault", one.unwrap_or_default());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
