//! What happens once nothing goes wrong any more and nobody asks for anything else: everybody but the operator does what
//! is to do, then the operator, and time passes where nothing else is left. From every state that has to lead to rest.

use std::collections::HashSet;
use std::sync::Mutex;

use gatehouse::api::condition::State;
use gatehouse::api::etcdcluster::status::condition;
use gatehouse::controllers::etcdcluster::observation::{Ordinal, PodPhase, Purpose};
use gatehouse::controllers::etcdcluster::plan::Plan;

use crate::faults::Hand;
use crate::rules::Rule;
use crate::world::{Action, Kubelet, World, fingerprint};

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
        let is_led = self.leads();
        let elected = members.clone().filter(|_| !is_led).map(|member| Action::Elect(member.id));
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
        while passed.insert(fingerprint(&world)) && world.judge_state().is_none() {
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
            let print = fingerprint(&world);
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

    /// Whether, at rest, what is asked for is so, or nothing more can be done and the status says why.
    fn rests_well(&self, hand: Hand) -> bool {
        let (_, plan) = self.planned(None, hand);
        if self.desired.is_deleting {
            return self.is_gone();
        }
        if self.desired.is_paused {
            return says(&plan, condition::PAUSED, State::True);
        }
        if self.desired.replicas == 0 {
            return self.objects.pods.is_empty() && self.has_kept_data() && plan.summary.is_reached;
        }
        if !self.has_quorum() {
            return self.is_beyond_help(&plan);
        }
        if says(&plan, condition::SPEC_VALID, State::False) {
            return self.skips_minors() && self.all_run();
        }
        self.is_reached(&plan)
    }

    /// Whether nothing holds the object, and of what was made for it there is what the spec says.
    fn is_gone(&self) -> bool {
        let volumes = &self.objects.volumes;
        let are_right = if self.desired.deletes_volumes { volumes.is_empty() } else { self.has_kept_data() };
        !self.objects.has_finalizer && self.objects.pods.is_empty() && are_right
    }

    /// Whether every member's data are there. Nothing that stops or stays is explored together with volumes that get
    /// lost.
    fn has_kept_data(&self) -> bool {
        let mut members = self.etcd.members.iter().filter(|member| member.is_started);
        members.all(|member| self.data(member).is_some())
    }

    /// Whether whoever has data runs.
    fn all_run(&self) -> bool {
        self.etcd.members.iter().all(|member| self.data(member).is_none() || self.runs(member))
    }

    /// Whether the members may not be brought to what is asked for: a minor lies between.
    fn skips_minors(&self) -> bool {
        self.desired.template.version.minor > self.etcd.version + 1
    }

    /// Whether the status says that the quorum is lost, and what can be done without one is done: whoever has data runs
    /// and no request to go on from one of them is open, or the one that was chosen to go on from has lost its own.
    fn is_beyond_help(&self, plan: &Plan) -> bool {
        let is_said =
            [condition::QUORUM_LOST, condition::DEGRADED].map(|about| says(plan, about, State::True));
        let recorded = self.objects.record.recovery.as_ref();
        let is_done = if let Some(recovery) = recorded.filter(|recovery| recovery.phase.is_active()) {
            recovery.survivor.is_some_and(|survivor| {
                let mut members = self.voters().filter(|voter| voter.ordinal == Some(survivor));
                !members.any(|member| self.data(member).is_some())
            })
        } else {
            let asked = self.desired.recovery.as_ref().map(|request| &request.token);
            let is_open = asked.is_some() && asked != recorded.map(|recovery| &recovery.token);
            self.all_run() && !(is_open && self.live_voters() > 0)
        };
        is_said == [true; 2] && is_done
    }

    /// Whether all is as asked for, and the status says so.
    fn is_reached(&self, plan: &Plan) -> bool {
        let replicas = usize::try_from(self.desired.replicas).unwrap_or(usize::MAX);
        let objects = &self.objects;
        let are_made = objects.pods.values().all(|place| {
            place.pod.phase == PodPhase::Up
                && place.pod.template == self.desired.template
                && place.pod.role.is_some()
        });
        let entries: Vec<_> = objects.config.iter().flat_map(|entries| entries.values()).collect();
        let is_there = self.etcd.members.len() == replicas
            && self.live_voters() == replicas
            && objects.pods.len() == replicas
            && objects.volumes.len() == replicas
            && entries.len() == replicas
            && entries.iter().all(|entry| entry.purpose == Purpose::Run)
            && self.etcd.version == self.desired.template.version.minor;
        let is_said = plan.summary.is_reached
            && says(plan, condition::AVAILABLE, State::True)
            && says(plan, condition::PROGRESSING, State::False)
            && says(plan, condition::DEGRADED, State::False);
        is_there && are_made && is_said
    }
}

/// Whether the status says that of a condition.
pub fn says(plan: &Plan, about: &str, state: State) -> bool {
    plan.summary.findings.iter().any(|finding| finding.about == about && finding.state == state)
}
