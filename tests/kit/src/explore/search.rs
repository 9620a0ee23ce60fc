//! The search itself.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::time::{Duration, Instant};

use super::{Broken, Found, Impassable, MOST, Reach, Slice, World, fingerprint};
use crate::random::Random;

/// Things that happen in a calm, at most: one that takes longer comes to no rest.
const LONGEST_CALM: usize = 10_000;

impl<W: World> Slice<W> {
    /// Looks at all of it, up to the first rule that is broken.
    pub fn explore(&self) -> Found<W> {
        let mut search = Search::new(self);
        let print = fingerprint(&self.start);
        let mut known = HashSet::from([print]);
        let mut open = VecDeque::from([(0, print, self.start.clone())]);
        // How each state is come to: from which other one, and by what.
        let mut steps = vec![None];
        while let Some((at, print, world)) = open.pop_front().filter(|_| steps.len() <= MOST) {
            search.unreached.retain(|(_, is_reached)| !is_reached(&self.start, &world));
            if let Some(rule) = search.judge(&world, print) {
                return search.end(steps.len(), Some((rule, way(&steps, at))));
            }
            for action in world.actions() {
                let Some(next) = search.after(&world, &action) else { continue };
                let print = fingerprint(&next);
                if known.insert(print) {
                    open.push_back((steps.len(), print, next));
                    steps.push(Some((at, action)));
                }
            }
        }
        search.end(steps.len(), None)
    }

    /// Goes at random for a while, never twice through one state on one way: for what is too large to be looked at
    /// whole.
    pub fn wander(&self, seed: u64, time: Duration) -> Found<W> {
        let mut random = Random(seed);
        let mut search = Search::new(self);
        let mut states = 0;
        let begin = || (self.start.clone(), Vec::new(), HashSet::new());
        let (mut world, mut way, mut passed) = begin();
        while search.begun.elapsed() < time {
            states += 1;
            let print = fingerprint(&world);
            if let Some(rule) = search.judge(&world, print) {
                return search.end(states, Some((rule, self.shortest(rule, way))));
            }
            passed.insert(print);
            let actions = in_any_order(world.actions(), &mut random);
            let mut next = actions.filter_map(|action| Some((search.after(&world, &action)?, action)));
            let Some((next, action)) = next.find(|(next, _)| !passed.contains(&fingerprint(next))) else {
                (world, way, passed) = begin();
                continue;
            };
            way.push(action);
            world = next;
        }
        search.end(states, None)
    }

    /// The rule that a way breaks.
    ///
    /// # Errors
    /// It cannot be gone.
    pub fn walk(&self, way: &[W::Action]) -> Result<Option<W::Rule>, Impassable<W::Action>> {
        self.end_of(way).map(|end| Search::new(self).judge(&end, fingerprint(&end)))
    }

    /// The state that a way leads to.
    fn end_of(&self, way: &[W::Action]) -> Result<W, Impassable<W::Action>> {
        way.iter().enumerate().try_fold(self.start.clone(), |world, (at, action)| {
            world.after(action, self.hand).ok_or_else(|| {
                let why = if world.is_spent(action) { Impassable::Spent } else { Impassable::Idle };
                why(at, action.clone())
            })
        })
    }

    /// Leaves out of a way to a broken rule what is not needed.
    fn shortest(&self, rule: W::Rule, mut way: Vec<W::Action>) -> Vec<W::Action> {
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
        way
    }
}

/// The way to the state of that number.
fn way<Action: Clone>(steps: &[Option<(usize, Action)>], mut at: usize) -> Vec<Action> {
    let mut way = Vec::new();
    while let Some((before, action)) = &steps[at] {
        way.push(action.clone());
        at = *before;
    }
    way.reverse();
    way
}

/// What is known so far.
struct Search<'a, W: World> {
    slice: &'a Slice<W>,
    begun: Instant,
    /// States from which rest is known to be reached.
    calm: HashSet<u64>,
    unreached: Vec<Reach<W>>,
    planned: BTreeSet<&'static str>,
}

impl<'a, W: World> Search<'a, W> {
    fn new(slice: &'a Slice<W>) -> Self {
        let (calm, planned) = (HashSet::new(), BTreeSet::new());
        Self { slice, begun: Instant::now(), calm, unreached: slice.reaches.to_vec(), planned }
    }

    fn after(&mut self, world: &W, action: &W::Action) -> Option<W> {
        let next = world.after(action, self.slice.hand)?;
        self.planned.extend(next.planned(action));
        Some(next)
    }

    /// The rule that a state breaks, or that the calm after it does.
    fn judge(&mut self, start: &W, mut print: u64) -> Option<W::Rule> {
        let mut way = Vec::new();
        let mut world = Cow::Borrowed(start);
        while !self.calm.contains(&print) {
            if way.contains(&print) || way.len() == LONGEST_CALM {
                return Some(W::NEVER_SETTLES);
            }
            way.push(print);
            if let Some(rule) = world.broken() {
                return Some(rule);
            }
            let Some((_, next)) = calmer(&*world, self.slice.hand) else {
                match world.broken_at_rest(self.slice.hand) {
                    None => break,
                    broken => return broken,
                }
            };
            print = fingerprint(&next);
            world = Cow::Owned(next);
        }
        self.calm.extend(way);
        None
    }

    fn end(self, states: usize, broken: Option<(W::Rule, Vec<W::Action>)>) -> Found<W> {
        let broken = broken.map(|(rule, way)| {
            let end = self.slice.end_of(&way);
            let calm = end.map(|end| way_of_calm(end, self.slice.hand)).unwrap_or_default();
            Broken { rule, way, calm }
        });
        let undone = self.slice.does.iter().filter(|name| !self.planned.contains(*name));
        let missed = self.unreached.iter().map(|(name, _)| name).chain(undone).copied().collect();
        Found { states, took: self.begun.elapsed(), broken, missed, planned: self.planned }
    }
}

fn in_any_order<T>(mut all: Vec<T>, random: &mut Random) -> impl Iterator<Item = T> {
    std::iter::from_fn(move || (!all.is_empty()).then(|| all.swap_remove(random.below(all.len()))))
}

/// What happens next in the calm; nothing at rest.
fn calmer<W: World>(world: &W, hand: W::Hand) -> Option<(W::Action, W)> {
    world.calm().into_iter().find_map(|action| {
        let next = world.after(&action, hand)?;
        Some((action, next))
    })
}

/// What happens in the calm, as far as it is worth telling: to rest, to a broken rule, or once round.
fn way_of_calm<W: World>(mut world: W, hand: W::Hand) -> Vec<String> {
    let mut passed = HashSet::new();
    let mut way = Vec::new();
    while passed.len() < LONGEST_CALM && passed.insert(fingerprint(&world)) && world.broken().is_none() {
        let Some((action, next)) = calmer(&world, hand) else { break };
        way.push(world.shown(&action));
        world = next;
    }
    way
}

/// Goes on in the calm until rest.
///
/// # Panics
/// There is none.
pub fn rest<W: World>(mut world: W) -> W {
    for _ in 0..LONGEST_CALM {
        match calmer(&world, W::Hand::default()) {
            Some((_, next)) => world = next,
            None => return world,
        }
    }
    panic!("no rest: {world:#?}");
}
