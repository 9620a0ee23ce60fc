//! The state that a process keeps of a cluster between two reconciliations: since when conditions hold.
//!
//! Guarantees: time is an argument; what was not looked at for a while counts as new, so that a cluster is never
//! changed, and its quorum never called lost, on the strength of two looks with a gap between them. A new leader starts
//! again, which makes it wait. What was replaced and defragmented is in the status.

mod starts;

pub use starts::Starts;

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::actions::Action;
use super::consistency::decision::ConsistencyCheckState;
use super::metrics::Tally;
use super::observation::{
    Age, Fact, Keyspace, MemberId, Membership, Minor, Observation, Operation, Ordinal, OwnPrint, PodPhase,
    Refusals, Uid, Version,
};
use super::observe::kubernetes::age;
use super::observe::services;
use super::root_password::Proven;
use super::status::Reported;
use crate::controllers::action::{Executed, Failure};
use crate::controllers::outcome::Class;

/// How long all members have to be as they are before something is changed.
const HEALTH: Duration = Duration::from_secs(5);

/// How long the phase of an operation should take at most.
const OPERATION: Duration = Duration::from_mins(10);

/// How often a hand-over of leadership is tried before a member is stopped without one: etcd hands over by itself when it
/// stops.
const HAND_OVERS: u32 = 2;

/// How long fewer voters than a majority may answer before the quorum counts as lost.
const QUORUM_LOSS: Duration = Duration::from_mins(1);

/// How long a pod may take to start before it counts as one that does not.
const STARTUP: Duration = Duration::from_mins(2);

/// Entries of the log that a learner may lack whether or not it catches up: members are asked at different moments.
const NEAR: u64 = 1_000;

/// The first minor that logs nothing which 3.7 cannot read.
const FIRST_WITHOUT_V2: Minor = 6;

/// Two looks with more time between them are not one.
const GAP: Duration = Duration::from_mins(2);

/// What is remembered of a cluster.
#[derive(Clone, Debug, Default)]
pub struct ReconcileState {
    /// When it was looked at last.
    looked: Option<Instant>,
    /// The operation, and since when it is in its phase.
    operation: Option<(Operation, Instant)>,
    /// How often leadership has been handed over in that phase, or tried to be.
    hand_overs: u32,
    /// How its members are, and since when.
    health: Option<(Health, Instant)>,
    /// Since when fewer voters than a majority have answered.
    quorum_lost: Option<Instant>,
    /// Since when pods have been seen that are not ready. The clock of the kubelet may be another one.
    unready: BTreeMap<Uid, Instant>,
    /// Since when pods have not come to run, and how many of them.
    pub starts: Starts,
    /// The hashes with which members have ended, by the container.
    pub own_prints: BTreeMap<String, OwnPrint>,
    /// The action that failed last, for no reason that is known to last.
    failed: Option<&'static str>,
    /// How many entries of the log each learner lacked.
    distances: BTreeMap<MemberId, u64>,
    /// Snapshots that each member had saved when the last one before 3.6 was gone.
    snapshots: BTreeMap<MemberId, u64>,
    /// Revisions of its key space, while that is full, and when they were asked for.
    pub keyspace: Option<(Instant, Keyspace)>,
    /// What its events have reported.
    pub reported: Reported,
    /// What the API server has refused of what is tried again after everything else.
    pub refusals: Refusals,
    /// Whether no backups are asked for, and nothing was found that takes them.
    pub has_no_backups: bool,
    /// How often the CronJob that takes them was put back.
    pub cron_job: services::Applied,
    /// The Services that were applied last.
    pub services: services::Applied,
    /// How often the StatefulSet was put back.
    pub stateful_set: services::Applied,
    /// How often the ConfigMap was put back.
    pub config: services::Applied,
    /// How often the PodDisruptionBudget was put back.
    pub budget: services::Applied,
    /// Reconciliations in a row that had nothing to do.
    pub idle: u32,
    /// Etcd's answer to root's password.
    pub password: Option<Proven>,
    /// When the members' data were compared, and the result.
    pub audit: ConsistencyCheckState,
    /// What is counted for the metrics page.
    pub tally: Tally,
    /// What the last reconciliation that was traced stood on.
    pub traced: Option<u64>,
    /// The number of the line of this reconciliation, where it is traced.
    pub line: Option<u64>,
}

/// How the members are.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Health {
    membership: Fact<Membership>,
    pods: Vec<(Ordinal, Uid, PodPhase, bool)>,
    /// Who answers, whether it sees a leader, and whether it reports errors.
    answers: Vec<(Ordinal, MemberId, bool, bool)>,
}

impl Health {
    fn of(seen: &Observation) -> Self {
        let pods = seen.pods.elements();
        let pods = pods.map(|(at, pod)| (at, pod.handle.uid.clone(), lasting(pod.phase), pod.is_deleting));
        let answers = seen
            .answers()
            .map(|(at, status)| (at, status.member_id, status.leader.is_some(), status.has_errors));
        Self { membership: seen.membership.clone(), pods: pods.collect(), answers: answers.collect() }
    }
}

/// The phase, but for one that fails whenever it starts: the kubelet starts it again and again, every few seconds at
/// first. Were each start a change, two such members could keep a recovery from ever beginning.
const fn lasting(phase: PodPhase) -> PodPhase {
    match phase {
        PodPhase::Failing(_) => PodPhase::Starting,
        other => other,
    }
}

impl ReconcileState {
    /// Writes the ages into what was seen at `now`, and remembers it.
    pub fn look(&mut self, seen: &mut Observation, now: Instant) {
        if self.looked.is_none_or(|looked| now.duration_since(looked) > GAP) {
            (self.health, self.quorum_lost) = (None, None);
            self.unready.clear();
            self.distances.clear();
            self.starts.forget_times();
        }
        self.looked = Some(now);
        self.time_starts(seen, now);
        self.starts.look(seen, now);
        self.measure_learners(seen);

        let operation = seen.record.operation;
        let kept = self.operation.filter(|(known, _)| Some(*known) == operation);
        self.hand_overs = kept.map_or(0, |_| self.hand_overs);
        self.operation = operation.map(|operation| kept.unwrap_or((operation, now)));
        let health = Health::of(seen);
        let kept = self.health.take().filter(|(known, _)| *known == health);
        self.health = Some(kept.unwrap_or((health, now)));
        self.quorum_lost = lacks_quorum(seen).then(|| self.quorum_lost.unwrap_or(now));

        let past =
            |since: Option<Instant>, limit| age(since.is_some_and(|at| now.duration_since(at) >= limit));
        seen.operation_age = match self.operation {
            Some(_) if self.hand_overs >= HAND_OVERS => Age::PastDeadline,
            operation => past(operation.map(|(_, since)| since), OPERATION),
        };
        seen.health_age = past(self.health.as_ref().map(|(_, since)| *since), HEALTH);
        seen.quorum_loss_age = past(self.quorum_lost, QUORUM_LOSS);
        seen.audit = self.audit.recall(seen.membership.known().map(Membership::fingerprint));
    }

    /// Writes into the statuses of learners whether they fall behind.
    fn measure_learners(&mut self, seen: &mut Observation) {
        let furthest = seen.answers().map(|(_, status)| status.raft_index).max().unwrap_or(0);
        let mut distances = BTreeMap::new();
        for status in seen.statuses.values_mut() {
            if let Fact::Known(status) = status
                && status.is_learner
            {
                let distance = furthest.saturating_sub(status.raft_applied_index);
                let before = self.distances.get(&status.member_id);
                status.falls_behind = distance > NEAR && before.is_none_or(|before| distance >= *before);
                distances.insert(status.member_id, distance);
            }
        }
        self.distances = distances;
    }

    /// Writes into pods that are not ready whether they have been so for longer than a start takes.
    fn time_starts(&mut self, seen: &mut Observation, now: Instant) {
        let Fact::Known(pods) = &mut seen.pods else { return };
        let mut unready = BTreeMap::new();
        for pod in pods.values_mut().filter(|pod| pod.startup_age.is_past()) {
            let since = self.unready.get(&pod.handle.uid).copied().unwrap_or(now);
            pod.startup_age = age(now.duration_since(since) >= STARTUP);
            unready.insert(pod.handle.uid.clone(), since);
        }
        self.unready = unready;
    }

    /// Whether an action counts as refused: for good, or it has failed twice in a row without an answer that says so, as
    /// where a webhook of the API server is down.
    pub fn is_refused(&mut self, action: &Action, done: Result<&Executed, &Failure>) -> bool {
        let is_transient = matches!(done, Err(Failure::Api(error)) if error.class() == Class::Transient);
        let before = std::mem::replace(&mut self.failed, is_transient.then(|| action.name()));
        let mut remembered = self.refusals;
        action.remember(&mut remembered, true);
        let lasts = before == Some(action.name()) || remembered == self.refusals;
        done.is_err_and(Failure::is_permanent) || is_transient && lasts
    }

    /// Writes into statuses whether the member has saved a snapshot since the last member before 3.6 was gone. A process
    /// that counts less than it did has begun since.
    pub fn count_snapshots(&mut self, seen: &mut Observation, counts: &BTreeMap<MemberId, u64>) {
        let is_known = !seen.pods.is_unknown() && !seen.membership.is_unknown();
        let is_old = |version: Version| version.minor < FIRST_WITHOUT_V2;
        let has_old = seen.answers().any(|(_, status)| is_old(status.version))
            || seen.pods.elements().any(|(_, pod)| is_old(pod.template.version));
        if has_old {
            self.snapshots.clear();
        }
        let told = seen.statuses.values_mut().filter_map(|status| match status {
            Fact::Known(status) => Some(status),
            Fact::Absent | Fact::Unknown => None,
        });
        for status in told {
            status.has_saved_snapshot = match counts.get(&status.member_id) {
                Some(_) if has_old => Fact::Known(false),
                Some(count) if is_known => {
                    let before = self.snapshots.entry(status.member_id).or_insert(*count);
                    if *count < *before {
                        *before = 0;
                    }
                    Fact::Known(*count > *before)
                }
                Some(_) | None => Fact::Unknown,
            };
        }
    }

    /// An action was carried out, or at least tried. `is_refused`: it fails until something else changes.
    pub fn carried_out(&mut self, action: &Action, is_refused: bool) {
        action.remember(&mut self.refusals, is_refused);
        match action {
            Action::MoveLeader { .. } => self.hand_overs = self.hand_overs.saturating_add(1),
            Action::Compact { .. } => self.keyspace = None,
            _ => {}
        }
    }

    /// An object was put back, if the action puts one back; the names of the objects that are left for a while from now on,
    /// because another client changes them each time. A write that lost a race was no try.
    pub fn put_back(&mut self, action: &Action, is_done: bool, is_refused: bool) -> Vec<String> {
        match action {
            Action::ApplyServices if is_done => self.services.count(),
            _ if !is_done && !is_refused => Vec::new(),
            Action::ApplyStatefulSet { .. } => self.stateful_set.count(),
            Action::ApplyBudget { .. } => self.budget.count(),
            Action::WriteConfig { .. } => self.config.count(),
            Action::ApplyBackupSchedule => self.cron_job.count(),
            _ => Vec::new(),
        }
    }
}

/// Whether fewer voters than a majority answer and follow a leader. Not where no member could be asked, as the list of
/// pods is missing.
fn lacks_quorum(seen: &Observation) -> bool {
    if seen.record.cluster_id.is_none() || seen.pods.is_unknown() || seen.membership.known().is_some() {
        return false;
    }
    seen.lacks_majority()
}

#[cfg(test)]
mod tests {
    use super::super::actions::MembershipGuard;
    use super::super::observation::{
        Cause, ClusterId, Handle, OperationKind, Phase, ResourceVersion, Target, Template,
    };
    use super::super::resources::tests::plain;
    use super::super::status::tests::seen as three;
    use super::*;

    #[test]
    fn what_the_api_server_refused_is_remembered_until_it_takes_it() {
        let mut state = ReconcileState::default();
        let [old, new] = [1, 2].map(|revision| Template { version: Version::new(6, 16), revision });
        let apply = |template| Action::ApplyStatefulSet { found: None, from: 3, replicas: 3, template };
        state.carried_out(&apply(new), true);
        assert_eq!(state.refusals.template, Some(new));
        state.carried_out(&apply(old), false);
        assert_eq!(state.refusals.template, Some(new), "growing by the earlier one says nothing of it");
        state.carried_out(&apply(new), false);
        assert_eq!(state.refusals.template, None);
        let handle = Handle { uid: Uid("v".to_owned()), resource_version: ResourceVersion("1".to_owned()) };
        let resize = Action::ResizeVolume { volume: handle, ordinal: Ordinal(1), size: 1 };
        state.carried_out(&resize, true);
        assert_eq!(state.refusals.volume, Some(Ordinal(1)));
        state.carried_out(&resize, false);
        assert_eq!(state.refusals.volume, None);
    }

    #[test]
    fn a_write_that_lost_a_race_is_no_try_to_put_an_object_back() {
        let template = Template { version: Version::new(6, 16), revision: 1 };
        let set = Action::ApplyStatefulSet { found: None, from: 3, replicas: 3, template };
        let budget = Action::ApplyBudget { found: None, min_available: 2 };
        for action in [set, budget, Action::ApplyBackupSchedule] {
            for (is_done, is_refused, is_counted) in
                [(false, false, false), (false, true, true), (true, false, true)]
            {
                let mut state = ReconcileState::default();
                for applied in [&mut state.stateful_set, &mut state.budget, &mut state.cron_job] {
                    assert!(applied.is_due(("object", None), true, Instant::now()));
                }
                let left: usize = (0..9).map(|_| state.put_back(&action, is_done, is_refused).len()).sum();
                assert_eq!(left, usize::from(is_counted), "{action:?} {is_done} {is_refused}");
            }
        }
    }

    /// Three members, of which the last does not answer, and looks at them a second apart.
    fn health_ages(phases: impl IntoIterator<Item = PodPhase>) -> Vec<Age> {
        let (cluster, begun, mut recall) = (plain(), Instant::now(), ReconcileState::default());
        let looks = phases.into_iter().zip(1..).map(|(phase, second)| {
            let mut seen = three(&cluster);
            seen.statuses.insert(Ordinal(2), Fact::Unknown);
            if let Fact::Known(pods) = &mut seen.pods {
                pods.entry(Ordinal(2)).and_modify(|pod| pod.phase = phase);
            }
            recall.look(&mut seen, begun + Duration::from_secs(second));
            seen.health_age
        });
        looks.collect()
    }

    #[test]
    fn a_member_that_fails_each_time_it_starts_holds_up_no_decision_for_ever() {
        let failing = PodPhase::Failing(Cause::DataLost);
        let ages = health_ages([failing, failing, PodPhase::Starting].into_iter().cycle().take(20));
        let settled = ages.iter().position(|age| age.is_past()).expect("it comes to be settled");
        assert!(ages[settled..].iter().all(|age| age.is_past()), "{ages:?}");
    }

    #[test]
    fn a_member_that_comes_up_is_news() {
        let mut phases = vec![PodPhase::Starting; 10];
        phases.push(PodPhase::Up);
        let ages = health_ages(phases);
        assert!(ages[9].is_past() && !ages[10].is_past(), "{ages:?}");
    }

    /// The clock of the kubelet is not asked: it may be hours ahead, or behind.
    #[test]
    fn a_pod_that_is_not_ready_is_given_the_time_of_a_start_by_our_own_clock() {
        let (cluster, begun, mut recall) = (plain(), Instant::now(), ReconcileState::default());
        let ages: Vec<_> = [0, 60, 119, 120, 130]
            .into_iter()
            .map(|second| {
                let mut seen = three(&cluster);
                recall.look(&mut seen, begun + Duration::from_secs(second));
                seen.pod(Ordinal(0)).found().map(|pod| pod.startup_age.is_past())
            })
            .collect();
        assert_eq!(ages, [Some(false), Some(false), Some(false), Some(true), Some(true)]);
    }

    #[test]
    fn a_snapshot_counts_only_after_the_last_member_before_3_6() {
        let (cluster, mut recall) = (plain(), ReconcileState::default());
        let mut saved = |versions: [Version; 3], counts: [u64; 3]| {
            let mut seen = three(&cluster);
            let statuses = seen.statuses.values_mut().zip(versions);
            let ids: Vec<_> = statuses
                .filter_map(|(status, version)| match status {
                    Fact::Known(status) => {
                        status.version = version;
                        Some(status.member_id)
                    }
                    Fact::Absent | Fact::Unknown => None,
                })
                .collect();
            if let Fact::Known(pods) = &mut seen.pods {
                let pods = pods.values_mut().zip(versions);
                pods.for_each(|(pod, version)| pod.template.version = version);
            }
            recall.count_snapshots(&mut seen, &ids.into_iter().zip(counts).collect());
            let known = seen.answers().map(|(_, status)| status.has_saved_snapshot == Fact::Known(true));
            known.collect::<Vec<_>>()
        };
        let (old, new) = (Version::new(5, 33), Version::new(6, 16));
        // A downgrade that was begun: one has run 3.5, and the others counted for weeks.
        assert_eq!(saved([old, new, new], [1, 9, 9]), [false; 3]);
        assert_eq!(saved([new; 3], [0, 9, 9]), [false; 3]);
        assert_eq!(saved([new; 3], [1, 10, 9]), [true, true, false]);
        // One that has begun since counts from nothing.
        assert_eq!(saved([new; 3], [1, 10, 1]), [true; 3]);
        assert_eq!(saved([new, new, old], [2, 11, 2]), [false; 3]);
        assert_eq!(saved([new; 3], [2, 11, 2]), [false; 3]);
    }

    /// Three voters, of which one answers as itself, and another address leads to that very one.
    #[test]
    fn an_answer_of_another_member_is_none_of_the_voter_that_was_asked() {
        let (cluster, begun, mut recall) = (plain(), Instant::now(), ReconcileState::default());
        let ages: Vec<_> = [0, 30, 60]
            .into_iter()
            .map(|second| {
                let mut seen = three(&cluster);
                seen.last_membership = std::mem::replace(&mut seen.membership, Fact::Unknown);
                seen.statuses.insert(Ordinal(1), seen.statuses[&Ordinal(0)].clone());
                seen.statuses.insert(Ordinal(2), Fact::Unknown);
                recall.look(&mut seen, begun + Duration::from_secs(second));
                seen.quorum_loss_age.is_past()
            })
            .collect();
        assert_eq!(ages, [false, false, true]);
    }

    #[test]
    fn a_learner_falls_behind_while_what_it_lacks_does_not_get_less() {
        let (cluster, begun, mut recall) = (plain(), Instant::now(), ReconcileState::default());
        let mut falls = |second, leader, learner| {
            let mut seen = three(&cluster);
            for (ordinal, index) in [(1, leader), (2, learner)] {
                if let Some(Fact::Known(status)) = seen.statuses.get_mut(&Ordinal(ordinal)) {
                    (status.raft_index, status.raft_applied_index) = (index, index);
                    status.is_learner = ordinal == 2;
                }
            }
            recall.look(&mut seen, begun + Duration::from_secs(second));
            seen.status(Ordinal(2)).found().map(|status| status.falls_behind)
        };
        assert_eq!(falls(0, 10_000, 6_000), Some(true), "the first look");
        assert_eq!(falls(2, 20_000, 16_000), Some(true), "as many");
        assert_eq!(falls(4, 30_000, 26_500), Some(false));
        assert_eq!(falls(6, 40_000, 36_000), Some(true));
        assert_eq!(falls(8, 50_000, 49_500), Some(false));
        assert_eq!(falls(10, 60_000, 59_200), Some(false), "near enough, whatever it was");
        assert_eq!(falls(300, 90_000, 88_000), Some(true), "too long ago");
    }

    #[test]
    fn a_hand_over_that_failed_twice_is_given_up() {
        let (cluster, begun, mut recall) = (plain(), Instant::now(), ReconcileState::default());
        let hands_over = |target| {
            let target = Target::Member(Ordinal(target));
            Operation { kind: OperationKind::ScaleIn, target, phase: Phase::MovingLeader }
        };
        let mut seconds = 0;
        let mut age = |operation, tries| {
            let mut seen = three(&cluster);
            seen.record.operation = Some(operation);
            let membership = MembershipGuard { cluster_id: ClusterId(1), fingerprint: 1 };
            seconds += 2;
            recall.look(&mut seen, begun + Duration::from_secs(seconds));
            for _ in 0..tries {
                let action = Action::MoveLeader { membership, from: MemberId(1), to: MemberId(2) };
                recall.carried_out(&action, false);
            }
            seen.operation_age.is_past()
        };
        assert_eq!(
            [age(hands_over(2), 1), age(hands_over(2), 1), age(hands_over(2), 0)],
            [false, false, true]
        );
        assert_eq!(
            [age(hands_over(1), 1), age(hands_over(1), 0)],
            [false, false],
            "another one is tried again"
        );
    }
}
