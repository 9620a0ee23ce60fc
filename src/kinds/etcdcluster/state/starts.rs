//! Since when pods have not come to run, and how many of them ended before they did. Pure: time is an argument.
//!
//! Never: goes by the clock of a kubelet, which may be another one.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::kinds::etcdcluster::observation::{Fact, Observation, Ordinal, PodPhase, Uid};

/// How long a pod may take to be made and to get a node, a volume and its image before that is reported.
const HINDERED: Duration = Duration::from_secs(40);

/// Pods in a row that may end before a container has run in one of them.
const ATTEMPTS: u32 = 3;

/// What is remembered of pods that do not come to run.
#[derive(Clone, Debug, Default)]
pub struct Starts {
    /// Since when ordinals that have to have a pod have had none that runs.
    unborn: BTreeMap<Ordinal, Instant>,
    /// Since when members that have to have a pod have not answered.
    silent: BTreeMap<Ordinal, Instant>,
    /// The last pod at an ordinal in which no container has run, and how many there were in a row.
    attempts: BTreeMap<Ordinal, (Uid, u32)>,
}

impl Starts {
    /// Begins to measure again.
    pub fn forget_times(&mut self) {
        self.unborn.clear();
        self.silent.clear();
    }

    /// Writes down which ordinals have had no pod that runs for longer than one usually takes, and where pods end one
    /// after the other.
    pub fn look(&mut self, seen: &mut Observation, now: Instant) {
        let Fact::Known(pods) = &seen.pods else { return };
        let wanted = (0..seen.stateful_set.known().map_or(0, |set| set.replicas)).map(Ordinal);
        let since =
            |before: &BTreeMap<Ordinal, Instant>, ordinal| before.get(&ordinal).copied().unwrap_or(now);
        let (mut unborn, mut silent, mut attempts) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for ordinal in wanted.filter(|ordinal| seen.status(*ordinal).known().is_none()) {
            silent.insert(ordinal, since(&self.silent, ordinal));
            let pod = pods.get(&ordinal);
            let is_born = pod.is_some_and(|pod| {
                pod.is_deleting || !matches!(pod.phase, PodPhase::Pending(_) | PodPhase::Terminal(_))
            });
            if is_born {
                continue;
            }
            unborn.insert(ordinal, since(&self.unborn, ordinal));
            let counted = counted(pod.map(|pod| &pod.handle.uid), self.attempts.get(&ordinal));
            attempts.extend(counted.map(|counted| (ordinal, counted)));
        }
        (self.unborn, self.silent, self.attempts) = (unborn, silent, attempts);
        let is_overdue = |since: &Instant| now.duration_since(*since) >= HINDERED;
        seen.hindered.slow =
            self.unborn.iter().filter(|(_, since)| is_overdue(since)).map(|(at, _)| *at).collect();
        let rejected = self.attempts.iter().filter(|(_, (_, count))| *count > ATTEMPTS);
        seen.hindered.rejected = rejected.map(|(at, _)| *at).collect();
    }

    /// The members that have not answered for so long that the reason is looked for, and those whose pods end one after
    /// the other.
    #[must_use]
    pub fn overdue(&self, now: Instant) -> Vec<Ordinal> {
        let is_overdue = |ordinal: &Ordinal, since: &Instant| {
            now.duration_since(*since) >= HINDERED || self.attempts(*ordinal) > ATTEMPTS
        };
        self.silent.iter().filter(|(at, since)| is_overdue(at, since)).map(|(at, _)| *at).collect()
    }

    /// Pods in a row at an ordinal in which no container has run.
    #[must_use]
    pub fn attempts(&self, ordinal: Ordinal) -> u32 {
        self.attempts.get(&ordinal).map_or(0, |(_, count)| *count)
    }
}

/// The pod that is there as one more, where it is another one than the last.
fn counted(pod: Option<&Uid>, before: Option<&(Uid, u32)>) -> Option<(Uid, u32)> {
    match (pod, before) {
        (Some(uid), Some((last, count))) if uid != last => Some((uid.clone(), count.saturating_add(1))),
        (Some(uid), None) => Some((uid.clone(), 1)),
        (_, before) => before.cloned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::etcdcluster::observation::Cause;
    use crate::kinds::etcdcluster::resources::tests::plain;
    use crate::kinds::etcdcluster::status::tests::seen as three;

    /// Three members, of which the last does not answer; its pod is as `change` has it, or there is none.
    fn without_the_last(phase: Option<(&str, PodPhase)>) -> Observation {
        let mut seen = three(&plain());
        seen.statuses.insert(Ordinal(2), Fact::Unknown);
        let Fact::Known(pods) = &mut seen.pods else { panic!("pods") };
        let pod = pods.remove(&Ordinal(2));
        if let (Some((uid, phase)), Some(mut pod)) = (phase, pod) {
            (pod.handle.uid, pod.phase) = (Uid(uid.to_owned()), phase);
            pods.insert(Ordinal(2), pod);
        }
        seen
    }

    #[test]
    fn a_pod_that_is_not_made_or_waits_is_reported_within_a_minute_and_no_sooner_than_one_takes() {
        let pending = |uid| Some((uid, PodPhase::Pending(None)));
        let ended = |uid| Some((uid, PodPhase::Terminal(Cause::Killed)));
        for pods in [[None; 3], [None, pending("a"), ended("a")], [pending("a"), None, pending("b")]] {
            let (begun, mut starts) = (Instant::now(), Starts::default());
            let reported = [0, 39, 40].into_iter().zip(pods).map(|(second, pod)| {
                let mut seen = without_the_last(pod);
                let now = begun + Duration::from_secs(second);
                starts.look(&mut seen, now);
                (seen.hindered.slow.contains(&Ordinal(2)), starts.overdue(now).contains(&Ordinal(2)))
            });
            let reported: Vec<_> = reported.collect();
            assert_eq!(reported, [(false, false), (false, false), (true, true)], "{pods:?}");
        }
    }

    #[test]
    fn a_pod_in_which_a_container_runs_is_looked_at_and_no_hindrance() {
        let (begun, mut starts) = (Instant::now(), Starts::default());
        for phase in [PodPhase::Waiting, PodPhase::Starting, PodPhase::Failing(Cause::Other), PodPhase::Up] {
            for second in [0, 60] {
                let mut seen = without_the_last(Some(("a", phase)));
                let now = begun + Duration::from_secs(second);
                starts.look(&mut seen, now);
                assert!(seen.hindered.is_none(), "{phase:?}");
                assert_eq!(starts.overdue(now), if second > 0 { vec![Ordinal(2)] } else { Vec::new() });
            }
            starts.forget_times();
        }
        starts.look(&mut three(&plain()), begun);
        assert_eq!(starts.overdue(begun + Duration::from_hours(1)), []);
    }

    #[test]
    fn pods_that_end_one_after_the_other_are_counted_until_one_runs() {
        let (now, mut starts) = (Instant::now(), Starts::default());
        let uids: Vec<_> = (0..6).map(|number| format!("pod-{number}")).collect();
        let ended = |number: usize| Some((uids[number].as_str(), PodPhase::Terminal(Cause::Killed)));
        let mut rejects = |pod| {
            let mut seen = without_the_last(pod);
            starts.look(&mut seen, now);
            (starts.attempts(Ordinal(2)), seen.hindered.rejected.contains(&Ordinal(2)))
        };
        assert_eq!(rejects(ended(0)), (1, false));
        assert_eq!(rejects(ended(0)), (1, false), "the same pod");
        assert_eq!(rejects(None), (1, false), "between two pods");
        assert_eq!(rejects(ended(1)), (2, false));
        assert_eq!(rejects(ended(2)), (3, false));
        assert_eq!(rejects(Some((&uids[3], PodPhase::Pending(None)))), (4, true));
        assert_eq!(rejects(Some((&uids[3], PodPhase::Waiting))), (0, false), "its guard runs");
        assert_eq!(rejects(ended(4)), (1, false));
    }
}
