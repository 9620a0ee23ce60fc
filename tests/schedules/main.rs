//! The plan of TDSets, explored: the very functions that run in production, against a small model of what is around them,
//! in every order in which things can happen within bounds. What is checked and what is not is in docs/correctness.md.

#![expect(clippy::expect_used, reason = "a test says what it expects by panicking")]

#[path = "../counterexample/mod.rs"]
mod counterexample;
mod effects;
mod faults;
mod operator;
mod rules;
mod seen;
mod slices;
mod text;
mod world;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::time::Instant;

use gatehouse::controllers::tdset::points::Points;
use stateright::{Checker, HasDiscoveries, Model, Property};

use counterexample::shortest;
use faults::{Fault, Hand};
use rules::{Known, Rule};
use world::{Action, World};

/// States that are come to in a slice, each as often as a way leads there: a slice that ends here has to be cut.
const MOST: usize = 1_000_000;

const HOLDS: &str = "the rules hold";

/// Something that has to happen somewhere in a slice.
type Reach = (&'static str, fn(&Slice, &World) -> bool);

/// A part of all that can happen, small enough to be looked at whole.
#[derive(Debug)]
struct Slice {
    name: &'static str,
    start: World,
    hand: Hand,
    reaches: &'static [Reach],
    /// What has to be done somewhere in it, by the name of its points.
    does: &'static [&'static str],
    done: Mutex<BTreeSet<&'static str>>,
    known: Known,
}

/// How an exploration ended.
struct Found {
    states: usize,
    generated: usize,
    broken: Option<(Rule, Vec<Action>)>,
    missed: Vec<&'static str>,
}

impl Slice {
    fn new(
        name: &'static str,
        start: World,
        reaches: &'static [Reach],
        does: &'static [&'static str],
    ) -> Self {
        Self {
            name,
            start,
            hand: Hand::default(),
            reaches,
            does,
            done: Mutex::default(),
            known: Known::default(),
        }
    }

    fn verdict(&self, world: &World) -> Option<Rule> {
        world.broken.or_else(|| world.judge_calm(self.hand, &self.known))
    }

    fn explore(self) -> Found {
        let again = Self { hand: self.hand, ..Self::new("again", self.start.clone(), &[], &[]) };
        let (reaches, does) = (self.reaches, self.does);
        let checker = self
            .checker()
            .threads(2)
            .finish_when(HasDiscoveries::AnyFailures)
            .target_state_count(MOST)
            .spawn_bfs()
            .join();
        let discovered = checker.discoveries();
        let done = checker.model().done.lock().expect("nobody panics with it").clone();
        let unreached = reaches.iter().map(|(name, _)| *name).filter(|name| !discovered.contains_key(name));
        let undone = does.iter().copied().filter(|name| !done.contains(name));
        Found {
            states: checker.unique_state_count(),
            generated: checker.state_count(),
            broken: checker.discovery(HOLDS).map(|path| again.shortest(path.into_actions())),
            missed: unreached.chain(undone).collect(),
        }
    }

    fn walk(&self, way: &[Action]) -> Option<Rule> {
        let end = way.iter().try_fold(self.start.clone(), |world, action| world.after(action, self.hand))?;
        self.verdict(&end)
    }

    /// Leaves out what is not needed.
    fn shortest(&self, way: Vec<Action>) -> (Rule, Vec<Action>) {
        let rule = self.walk(&way).expect("what was found there");
        let way = shortest(way, &rule, |way| self.walk(way));
        (rule, way)
    }
}

impl Model for Slice {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![self.start.clone()]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.broken.is_some() {
            return;
        }
        for (worker, at) in world.workers.iter().zip(0..) {
            if worker.pending.is_none() {
                actions.push(Action::Pass(at));
            } else {
                let may = [Action::Step(at), Action::Unheard(at), Action::Conflict(at), Action::Refusal(at)];
                actions.extend(may);
            }
        }
        let others = [Action::Crash, Action::Rollout, Action::Collect, Action::Tick, Action::Edit];
        let somebody = [Action::Scale, Action::Delete, Action::Squat, Action::Bounds];
        actions.extend(others.into_iter().chain(somebody));
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let next = world.after(&action, self.hand)?;
        if let Action::Pass(at) = action
            && let Some(pending) = &next.workers[at].pending
        {
            let plan = &pending.planned.plan;
            let names = plan.work.iter().chain(&plan.report).map(|step| Points::of(step).name());
            self.done.lock().expect("nobody panics with it").extend(names);
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let holds = Property::always(HOLDS, |slice: &Self, world: &World| slice.verdict(world).is_none());
        let reaches = self.reaches.iter().map(|(name, is_so)| Property::sometimes(name, *is_so));
        std::iter::once(holds).chain(reaches).collect()
    }
}

fn told((rule, way): &(Rule, Vec<Action>)) -> String {
    let mut text = format!("{rule:?} is broken by\n");
    for action in way {
        let _ = writeln!(text, "    {action:?},");
    }
    text
}

fn holds(slice: Slice) {
    let (name, begun) = (slice.name, Instant::now());
    let found = slice.explore();
    println!("{name}: {} states of {} in {:.1?}", found.states, found.generated, begun.elapsed());
    assert!(found.broken.is_none(), "{name}: {}", found.broken.as_ref().map(told).unwrap_or_default());
    assert!(found.missed.is_empty(), "{name} does not reach: {:?}", found.missed);
    assert!(found.generated < MOST, "{name} is larger than {MOST}");
}

macro_rules! slices {
    ($($name:ident),*) => {
        $(#[test]
        fn $name() {
            holds(slices::$name());
        })*
    };
}

slices!(made, edited, kept, referred, left, autoscaled, handed_over, two_schedules, taken, suspended);

/// A fault, where it has to be found, and the rule that names it.
type Planted = (Fault, fn() -> Slice, Rule);

const PLANTED: [Planted; 15] = [
    (Fault::Adopts, slices::taken, Rule::ForeignWritten),
    (Fault::DeletesAnyService, slices::taken, Rule::ForeignWritten),
    (Fault::ClaimsNothing, slices::edited, Rule::CountLost),
    (Fault::IgnoresTheElder, slices::two_schedules, Rule::HeldCountWritten),
    (Fault::Oversleeps, slices::made, Rule::Oversleeps),
    (Fault::TakesCountsBack, slices::kept, Rule::ManualCountTakenBack),
    (Fault::LeavesNoCount, slices::left, Rule::LeftWithAnotherCount),
    (Fault::TellsTheTime, slices::made, Rule::WritesAtRest),
    (Fault::MakesWithoutCount, slices::made, Rule::MadeWithAnotherCount),
    (Fault::SaysWhatItPlanned, slices::made, Rule::StatusLies),
    (Fault::IgnoresSuspension, slices::suspended, Rule::CountWrittenWhileSuspended),
    (Fault::LeavesBounds, slices::autoscaled, Rule::SettlesWrongly),
    (Fault::ForgetsTheAutoscaler, slices::autoscaled, Rule::AutoscaledCountWritten),
    (Fault::TellsTwice, slices::made, Rule::ToldTwice),
    (Fault::Flaps, slices::made, Rule::NeverSettles),
];

#[test]
fn every_planted_fault_is_found_by_the_rule_that_names_it() {
    let mut wrong = Vec::new();
    for (fault, slice, rule) in PLANTED {
        let found = Slice { hand: Hand(Some(fault)), ..slice() }.explore();
        let broken = found.broken.as_ref().map(|(rule, _)| *rule);
        println!("{fault:?} breaks {broken:?} in {} states", found.states);
        let way = found.broken.as_ref().map(told).unwrap_or_default();
        if broken != Some(rule) {
            wrong.push(format!("{fault:?} is to break {rule:?}: {way}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
