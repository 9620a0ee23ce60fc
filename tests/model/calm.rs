//! What happens once nothing goes wrong any more and nobody asks for anything else: everybody but the operator does what
//! is to do, then the operator, and time passes where nothing else is left. From every state that has to lead to rest.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Mutex;

use gatehouse::api::condition::State;
use gatehouse::api::etcdcluster::status::condition;
use gatehouse::controllers::etcdcluster::observation::{Ordinal, PodPhase};

use crate::faults::Hand;
use crate::rules::Rule;
use crate::world::{Action, Kubelet, World};

/// States from which rest is known to be reached.
#[derive(Debug, Default)]
pub struct Known(Mutex<HashSet<u64>>);

impl World {
    /// What everybody but the operator does by itself.
    pub fn environment(&self) -> Vec<Action> {
        let kubelet = [Kubelet::End, Kubelet::Release, Kubelet::Make, Kubelet::Show, Kubelet::Start];
        let places =
            self.ordinals().into_iter().flat_map(|ordinal| kubelet.map(|does| Action::Node(ordinal, does)));
        let members = self.etcd.members.iter();
        let elected = members.clone().filter(|_| !self.leads()).map(|member| Action::Elect(member.id));
        places.chain(elected).chain(members.map(|member| Action::CatchUp(member.id))).collect()
    }

    /// Where anything is, or may come to be.
    pub fn ordinals(&self) -> Vec<Ordinal> {
        let wanted = self.objects.set.as_ref().map_or(0, |set| set.replicas);
        let mut ordinals: Vec<_> = (0..wanted).map(Ordinal).collect();
        ordinals.extend(self.objects.pods.keys().chain(self.objects.volumes.keys()));
        ordinals.sort_unstable();
        ordinals.dedup();
        ordinals
    }

    /// The next state of the calm, and what happens; nothing at rest.
    fn calmer(&self, hand: Hand) -> Option<(Action, Self)> {
        let operators = 0..self.operators.len();
        let steps = operators.clone().map(Action::Step);
        let passes = operators.map(Action::Pass);
        let actions = self.environment().into_iter().chain(steps).chain(passes).chain([Action::Tick]);
        actions.into_iter().find_map(|action| Some((action.clone(), self.after(&action, hand)?)))
    }

    /// What happens in the calm, as far as it is worth telling: to rest, or once round.
    pub fn way_of_calm(&self, hand: Hand) -> Vec<String> {
        let mut world = self.clone();
        let mut passed = HashSet::new();
        let mut way = Vec::new();
        while passed.insert(world.fingerprint()) && world.judge_state().is_none() {
            let Some((action, next)) = world.calmer(hand) else { break };
            way.push(match action {
                Action::Step(operator) => format!("{:?}", world.operators[operator].rest[0]),
                other => format!("{other:?}"),
            });
            world = next;
        }
        way
    }

    /// Goes on until rest.
    pub fn calm_down(&mut self) {
        for _ in 0..10_000 {
            match self.calmer(Hand::sound()) {
                Some((_, next)) => *self = next,
                None => return,
            }
        }
        panic!("no rest: {self:#?}");
    }

    /// The rule that is broken on the way to rest, or by there being none.
    pub fn judge_calm(&self, hand: Hand, known: &Known) -> Option<Rule> {
        let mut way = Vec::new();
        let mut passed = HashSet::new();
        let mut world = self.clone();
        loop {
            let print = world.fingerprint();
            if known.0.lock().expect("nobody panics with it").contains(&print) {
                break;
            }
            if !passed.insert(print) {
                return Some(Rule::NeverSettles);
            }
            way.push(print);
            if let Some(rule) = world.judge_state() {
                return Some(rule);
            }
            match world.calmer(hand) {
                Some((_, next)) => world = next,
                None if world.rests_well(hand) => break,
                None => return Some(Rule::SettlesWrongly),
            }
        }
        known.0.lock().expect("nobody panics with it").extend(way);
        None
    }

    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    /// Whether, at rest, the spec is reached, or the status tells a person what is wrong.
    fn rests_well(&self, hand: Hand) -> bool {
        let (_, plan) = self.planned(None, hand);
        let said = |about: &str| {
            plan.summary.findings.iter().any(|finding| finding.about == about && finding.state == State::True)
        };
        if self.desired.is_paused || said(condition::QUORUM_LOST) || said(condition::DEGRADED) {
            return true;
        }
        if self.desired.is_deleting {
            let volumes_stay = !self.desired.deletes_volumes;
            return !self.objects.has_finalizer
                && self.objects.pods.is_empty()
                && (volumes_stay || self.objects.volumes.is_empty());
        }
        let replicas = usize::try_from(self.desired.replicas).unwrap_or(usize::MAX);
        let objects = &self.objects;
        let are_made = objects.pods.values().all(|place| {
            place.pod.phase == PodPhase::Up
                && place.pod.template == self.desired.template
                && place.pod.role.is_some()
        });
        let is_there = replicas == 0 && objects.pods.is_empty()
            || self.voters().count() == replicas
                && self.etcd.members.len() == replicas
                && self.live_voters() == replicas
                && objects.pods.len() == replicas
                && objects.volumes.len() == replicas;
        plan.summary.is_reached && is_there && are_made
    }
}
