//! Driving the exploration. stateright is used for nothing but the search: what is true of a state is said elsewhere.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use stateright::{Checker, CheckerBuilder, HasDiscoveries, Model, Property, UniformChooser};

use crate::calm::Known;
use crate::faults::Hand;
use crate::rules::Rule;
use crate::world::{Action, Unread, World};

/// A part of all that can happen, small enough to be looked at whole.
#[derive(Debug)]
pub struct Slice {
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
    /// What was not reached.
    pub missed: Vec<&'static str>,
    /// What was planned somewhere.
    pub planned: BTreeSet<&'static str>,
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
        let again = Self::new("again", self.start.clone(), &[], &[]).with(self.hand);
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
        let end = broken.as_ref().and_then(|(_, way)| again.end(way));
        let calm = end.map(|end| end.way_of_calm(again.hand)).unwrap_or_default();
        Found { states, took: begun.elapsed(), broken, calm, missed, planned }
    }

    /// The rule that a way breaks.
    ///
    /// # Errors
    /// It cannot be gone.
    pub fn walk(&self, way: &[Action]) -> Result<Option<Rule>, &'static str> {
        self.end(way).map(|end| self.verdict(&end)).ok_or("it cannot be gone")
    }

    /// The state that a way leads to; nothing where it cannot be gone.
    fn end(&self, way: &[Action]) -> Option<World> {
        way.iter().try_fold(self.start.clone(), |world, action| world.after(action, self.hand))
    }

    /// Leaves out what is not needed.
    fn shortest(&self, mut way: Vec<Action>) -> (Rule, Vec<Action>) {
        let rule = self.walk(&way).expect("a way that was gone").expect("what was found there");
        let mut at = way.len();
        while at > 0 {
            at -= 1;
            let mut shorter = way.clone();
            shorter.remove(at);
            if self.walk(&shorter) == Ok(Some(rule)) {
                way = shorter;
                at = at.min(way.len());
            }
        }
        (rule, way)
    }
}

impl Found {
    /// A test that walks the same way.
    pub fn as_test(&self) -> String {
        let Some((rule, way)) = &self.broken else { return String::new() };
        let mut text = format!("breaks(Rule::{rule:?}, start, &[\n");
        for action in way {
            let _ = writeln!(text, "    {action:?},");
        }
        text.push_str("]);\nand then:\n");
        for action in &self.calm {
            let _ = writeln!(text, "    {action}");
        }
        text
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
                    let others = [Unread::Pods, Unread::Volumes, Unread::Config, Unread::Members];
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
