//! Driving the exploration. stateright is used for nothing but the search: what is true of a state is said elsewhere.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use stateright::{Checker, CheckerBuilder, HasDiscoveries, Model, Property, UniformChooser};

use crate::calm::Known;
use crate::counterexample::shortest;
use crate::faults::Hand;
use crate::rules::Rule;
use crate::world::{Action, Unread, World};

/// A part of all that can happen, small enough to be looked at whole.
#[derive(Debug)]
pub struct Slice {
    /// The function that makes it, below [`crate::slices`].
    pub name: &'static str,
    pub start: World,
    pub hand: Hand,
    /// What has to be reached, or the slice shows nothing.
    pub reaches: &'static [Reach],
    /// What has to be done somewhere in it, by the name of its points.
    pub does: &'static [&'static str],
    pub known: Known,
    /// What was planned.
    pub planned: Mutex<BTreeSet<&'static str>>,
}

/// Something that has to happen somewhere in a slice.
pub type Reach = (&'static str, fn(&Slice, &World) -> bool);

/// How an exploration ended.
#[derive(Debug)]
pub struct Found {
    pub states: usize,
    pub took: Duration,
    /// The rule that is broken, and a shortest way there, as far as one was looked for.
    pub broken: Option<(Rule, Vec<Action>)>,
    /// What happens in the calm after that.
    pub calm: Vec<String>,
    /// The slice, by its function.
    pub name: &'static str,
    /// What was not reached.
    pub missed: Vec<&'static str>,
    /// What was planned somewhere.
    pub planned: BTreeSet<&'static str>,
}

/// Why a way cannot be gone: the step of that number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Impassable {
    /// It goes wrong, or is asked for, more often than in the slice as it is now.
    Spent(usize, Action),
    /// It changes nothing there, or cannot be.
    Idle(usize, Action),
}

const HOLDS: &str = "the rules hold";

impl Slice {
    pub fn new(
        name: &'static str,
        start: World,
        reaches: &'static [Reach],
        does: &'static [&'static str],
    ) -> Self {
        let (known, planned) = (Known::default(), Mutex::default());
        Self { name, start, hand: Hand::sound(), reaches, does, known, planned }
    }

    pub fn with(self, hand: Hand) -> Self {
        Self { hand, ..self }
    }

    /// Looks for one rule alone.
    pub fn only(mut self, rule: Rule) -> Self {
        self.start.only = Some(rule);
        self
    }

    /// The rule that a state breaks, or that what follows from it in the calm does.
    pub fn verdict(&self, world: &World) -> Option<Rule> {
        let looks_on = world.only.is_none_or(Rule::is_about_the_end);
        world.judge_state().or_else(|| {
            let rule = looks_on.then(|| world.judge_calm(self.hand, &self.known)).flatten();
            rule.filter(|rule| world.only.is_none_or(|only| only == *rule))
        })
    }

    /// Looks at all of it.
    pub fn explore(self) -> Found {
        self.search(CheckerBuilder::spawn_bfs)
    }

    /// Goes at random for a while: for what is too large to be looked at whole.
    pub fn wander(self, seed: u64, time: Duration) -> Found {
        self.search(|checker| checker.timeout(time).spawn_simulation(seed, UniformChooser))
    }

    fn search<Search: Checker<Self>>(self, spawn: impl FnOnce(CheckerBuilder<Self>) -> Search) -> Found {
        let begun = Instant::now();
        let again = Self::new(self.name, self.start.clone(), &[], &[]).with(self.hand);
        let (reaches, does) = (self.reaches, self.does);
        let checker = self.checker().threads(2).finish_when(HasDiscoveries::AnyFailures);
        let checker = spawn(checker).join();
        let states = checker.unique_state_count();
        let discovered = checker.discoveries();
        let planned = checker.model().planned.lock().expect("nobody panics with it").clone();
        let unreached = reaches.iter().map(|(name, _)| *name).filter(|name| !discovered.contains_key(name));
        let undone = does.iter().copied().filter(|name| !planned.contains(name));
        let missed = unreached.chain(undone).collect();
        let broken = checker.discovery(HOLDS).map(|path| again.shortest(path.into_actions()));
        let end = broken.as_ref().and_then(|(_, way)| again.end(way).ok());
        let calm = end.map(|end| end.way_of_calm(again.hand)).unwrap_or_default();
        Found { states, took: begun.elapsed(), broken, calm, name: again.name, missed, planned }
    }

    /// The rule that a way breaks.
    ///
    /// # Errors
    /// It cannot be gone.
    pub fn walk(&self, way: &[Action]) -> Result<Option<Rule>, Impassable> {
        self.end(way).map(|end| self.verdict(&end))
    }

    /// The state that a way leads to.
    fn end(&self, way: &[Action]) -> Result<World, Impassable> {
        way.iter().enumerate().try_fold(self.start.clone(), |world, (at, action)| {
            world.after(action, self.hand).ok_or_else(|| {
                let why = if world.is_spent(action) { Impassable::Spent } else { Impassable::Idle };
                why(at, action.clone())
            })
        })
    }

    /// Leaves out what is not needed.
    fn shortest(&self, way: Vec<Action>) -> (Rule, Vec<Action>) {
        let rule = self.walk(&way).expect("a way that was gone").expect("what was found there");
        let way = shortest(way, &rule, |way| self.walk(way).ok().flatten());
        (rule, way)
    }
}

impl Found {
    /// A test for tests/traces/plan.rs that goes the same way, and what comes after that.
    pub fn as_test(&self) -> String {
        let Some((rule, way)) = &self.broken else { return String::new() };
        let way = lines(way.iter().map(|action| format!("        {action},")));
        let calm = lines(self.calm.iter().map(|action| format!("//     {action}")));
        format!(
            "breaks {rule:?}\n
/// What happens, and what came of it.
#[test]
fn what_it_means() {{
    let way = [
{way}    ];
    holds(&slices::{}(), &way);
}}

// And then:
{calm}",
            self.name
        )
    }
}

fn lines(lines: impl Iterator<Item = String>) -> String {
    lines.fold(String::new(), |text, line| text + &line + "\n")
}

/// As it is written in a test.
impl Display for Action {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blind(operator, unread) => write!(f, "Action::Blind({operator}, Unread::{unread:?})"),
            Self::Node(ordinal, does) => write!(f, "Action::Node({ordinal:?}, Kubelet::{does:?})"),
            other => write!(f, "Action::{other:?}"),
        }
    }
}

impl Model for Slice {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![self.start.clone()]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.judge_state().is_some() {
            return;
        }
        let faults = world.faults;
        for (operator, at) in world.operators.iter().zip(0..) {
            if operator.rest.is_empty() {
                actions.push(Action::Pass(at));
                if faults.blind > 0 {
                    let statuses = world.objects.pods.keys().map(|ordinal| Unread::Status(*ordinal));
                    let others =
                        [Unread::StatefulSet, Unread::Pods, Unread::Volumes, Unread::Config, Unread::Members];
                    actions.extend(others.into_iter().chain(statuses).map(|what| Action::Blind(at, what)));
                }
                continue;
            }
            actions.push(Action::Step(at));
            if faults.lost_answers > 0 {
                actions.push(Action::Unheard(at));
            }
            if faults.crashes > 0 {
                actions.push(Action::Crash(at));
            }
        }
        actions.extend(world.environment());
        let ordinals = world.ordinals();
        let at_each = |often: u8, action: fn(_) -> Action| {
            ordinals.iter().copied().filter(move |_| often > 0).map(action)
        };
        actions.extend(at_each(faults.kills, Action::Kill));
        actions.extend(at_each(faults.evictions, Action::Evict));
        actions.extend(at_each(faults.losses, Action::Lose));
        if faults.elections > 0 && world.leads() {
            actions.extend(world.voters().map(|voter| Action::Elect(voter.id)));
        }
        if faults.writes > 0 && world.is_served() {
            actions.extend((0..world.majorities().len()).map(Action::Write));
        }
        if !world.edits.is_empty() {
            actions.push(Action::Edit);
        }
        actions.push(Action::Tick);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let next = world.after(&action, self.hand)?;
        if matches!(action, Action::Pass(_) | Action::Blind(..)) {
            let effects = next.operators.iter().flat_map(|operator| &operator.rest);
            let names = effects.map(|effect| effect.points().before.trim_end_matches(".before"));
            self.planned.lock().expect("nobody panics with it").extend(names);
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let holds = Property::always(HOLDS, |slice: &Self, world: &World| slice.verdict(world).is_none());
        let reaches = self.reaches.iter().map(|(name, is_so)| Property::sometimes(name, *is_so));
        std::iter::once(holds).chain(reaches).collect()
    }
}

#[test]
fn a_way_that_breaks_a_rule_is_printed_as_the_test_that_goes_it() {
    use gatehouse::controllers::etcdcluster::observation::{MemberId, Ordinal};

    use crate::world::Kubelet;

    let way = vec![
        Action::Blind(0, Unread::Status(Ordinal(1))),
        Action::Node(Ordinal(2), Kubelet::Start),
        Action::Elect(MemberId(3)),
        Action::Tick,
    ];
    let found = Found {
        name: "loss",
        states: 1,
        took: Duration::ZERO,
        broken: Some((Rule::QuorumCost, way)),
        calm: vec!["Pass(0)".to_owned()],
        missed: Vec::new(),
        planned: BTreeSet::new(),
    };
    let text = found.as_test();
    let body = text.split_once("let way = [\n").map_or("", |(_, body)| body);
    let (body, rest) = body.split_once("    ];\n").unwrap_or_default();
    let lines: Vec<_> = body.lines().map(str::trim).collect();
    assert_eq!(
        lines,
        [
            "Action::Blind(0, Unread::Status(Ordinal(1))),",
            "Action::Node(Ordinal(2), Kubelet::Start),",
            "Action::Elect(MemberId(3)),",
            "Action::Tick,",
        ]
    );
    assert_eq!(rest, "    holds(&slices::loss(), &way);\n}\n\n// And then:\n//     Pass(0)\n");
}
