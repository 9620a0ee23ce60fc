//! The state that a process keeps of a TDSet between two reconciliations. Pure.
//!
//! Guarantees: nothing that matters is here alone. Without it a transition is reported with another lateness, a status
//! is written that stood there already, or another client's count is taken back some times more before that slows down.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::observation::{Contest, Reverted, Unreported};
use super::plan::{Plan, lateness};
use crate::controllers::watched::version_number;
use crate::kinds::tdset::api::v1::{PastTransition, TDSetStatus};

/// How often something is taken back from one client before that slows down.
const FREE: usize = 3;

/// The time within which that has to be for it to be a contest.
const CLOSE: SignedDuration = SignedDuration::from_mins(5);

/// How long it is left alone in a contest: longer after each time, and then no longer.
const PAUSES: [SignedDuration; 3] =
    [SignedDuration::from_mins(1), SignedDuration::from_mins(2), SignedDuration::from_mins(5)];

/// How long it has to stand for a contest to be over.
const CALM: SignedDuration = SignedDuration::from_mins(10);

/// Least time between two writes of a status that differ in numbers alone.
const PACE: SignedDuration = SignedDuration::from_secs(2);

/// What is remembered of a TDSet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReconcileState {
    /// When a status was written last.
    reported_at: Option<Timestamp>,
    /// What was carried out and not yet reported.
    pub carried: Unreported,
    /// Something was changed and not yet reported.
    pub unreported: bool,
    /// The resource version that the last write of the count made.
    counted: Option<u128>,
    /// A count was taken back in this very reconciliation: the next one reports it.
    is_fresh: bool,
    /// Counts that were taken back lately.
    pub reverts: Reverts,
    /// When what was made was put back lately, its count aside.
    pub repairs: Reverts,
    /// The resource version that the last of those writes made.
    repaired: Option<u128>,
    /// Whether the API server has refused its autoscaler the lower bound 0.
    pub is_zero_refused: bool,
    /// The uid of the workload of `target.ref` that was reported of last.
    pub workload: Option<String>,
    /// The uid of the workload whose scale was written last, and the count.
    pub scaled_to: Option<(String, i32)>,
    /// How often a count was taken back from which client, since this process reconciles the object.
    pub reverted: BTreeMap<String, u64>,
}

/// Most clients of one object that are counted by name.
const MOST_NAMED: usize = 8;

/// What was taken back lately, by the client that it was taken from: several may take turns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reverts(Vec<RevertsOfClient>);

/// The same of one client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct RevertsOfClient {
    /// Its name, if that is known.
    manager: Option<String>,
    /// When; the latest last.
    times: Vec<Timestamp>,
}

impl Reverts {
    /// Something was taken back at `now`.
    pub fn add(&mut self, manager: Option<&String>, now: Timestamp) {
        self.0.retain(|one| one.times.last().is_some_and(|last| now.duration_since(*last) < CALM));
        // One whose name is not known may be any of them.
        let may_be = |one: &RevertsOfClient| {
            one.manager.as_ref().zip(manager).is_none_or(|(known, this)| known == this)
        };
        let known = self.0.iter().rposition(may_be).map(|at| self.0.remove(at));
        let mut one = known.unwrap_or_default();
        one.manager = one.manager.or_else(|| manager.cloned());
        one.add(now);
        // The one that was quiet longest is the first.
        if self.0.len() == MOST_NAMED {
            self.0.remove(0);
        }
        self.0.push(one);
    }

    /// The contest that there is at `now`, with all clients that are in one.
    #[must_use]
    pub fn contest(&self, now: Timestamp) -> Option<Contest> {
        let contests =
            self.0.iter().filter_map(RevertsOfClient::contest).filter(|contest| now < contest.over);
        contests.reduce(|one, other| Contest {
            managers: one.managers.union(&other.managers).cloned().collect(),
            until: one.until.max(other.until),
            over: one.over.max(other.over),
        })
    }
}

impl RevertsOfClient {
    fn add(&mut self, now: Timestamp) {
        if self.times.len() < FREE {
            self.times.retain(|time| now.duration_since(*time) < CLOSE);
        }
        self.times.push(now);
        let excess = self.times.len().saturating_sub(FREE + PAUSES.len());
        self.times.drain(..excess);
    }

    fn contest(&self) -> Option<Contest> {
        let nth = self.times.len().checked_sub(FREE)?;
        let last = self.times.last()?;
        let pause = PAUSES.get(nth).or(PAUSES.last())?;
        let (until, over) = (last.checked_add(*pause).ok()?, last.checked_add(CALM).ok()?);
        Some(Contest { managers: self.manager.iter().cloned().collect(), until, over })
    }
}

impl ReconcileState {
    /// A reconciliation begins.
    pub fn begin(&mut self) {
        self.is_fresh = false;
    }

    /// The plan's count was written at `now`, to an object that was seen at the first resource version, which made the
    /// second one.
    pub fn wrote_count(&mut self, plan: &Plan, versions: (Option<&str>, Option<&str>), now: Timestamp) {
        // Now, for what comes after it in this reconciliation may fail.
        self.carry(plan, now);
        // A client that has not seen our last write takes the same count back once more, which is nothing new.
        let is_stale = is_stale(&mut self.counted, versions);
        if let Some(reverted) = plan.detail.reverted.as_ref().filter(|_| !is_stale) {
            let Reverted { manager, .. } = reverted;
            self.reverts.add(manager.as_ref(), now);
            let is_named =
                |name: &&String| self.reverted.contains_key(*name) || self.reverted.len() < MOST_NAMED;
            let name = manager.as_ref().filter(is_named).cloned().unwrap_or_default();
            let count = self.reverted.entry(name).or_default();
            *count = count.saturating_add(1);
            self.carried.reverted = Some(reverted.clone());
            self.is_fresh = true;
        }
    }

    /// What was made was put back at `now`: an object that was seen at the first resource version, which made the second
    /// one. Not counted where no other client can have written since we did.
    pub fn wrote_repair(&mut self, versions: (Option<&str>, Option<&str>), now: Timestamp) {
        if !is_stale(&mut self.repaired, versions) {
            self.repairs.add(None, now);
        }
    }

    /// The plan's work was done at `now` and changed something: whether the next reconciliation is to tell of it. Twice
    /// in a row it is not: another client may undo each time what we do, and that is worth telling.
    pub fn defers_report(&mut self, plan: &Plan, now: Timestamp) -> bool {
        self.carry(plan, now);
        self.is_fresh &= self.unreported;
        !std::mem::replace(&mut self.unreported, true)
    }

    /// What the plan carries out and is still to be reported.
    fn carry(&mut self, plan: &Plan, now: Timestamp) {
        if let Some(transition) = &plan.detail.transition
            && self.carried.transition.as_ref().is_none_or(|carried| carried.to != transition.to)
        {
            let lateness_ms = lateness(transition.time.0, now);
            self.carried.transition = Some(PastTransition { lateness_ms, ..transition.clone() });
        }
        self.carried.ramp.clone_from(&plan.status.ramp);
    }

    /// Whether the status `after` waits: it differs from `before` only in numbers, such as that of the pods that are
    /// ready, and a status was written just now. A workload of a hundred pods takes one write a moment then, and not
    /// one for each pod.
    #[must_use]
    pub fn paces(&self, before: &TDSetStatus, after: &TDSetStatus, now: Timestamp) -> bool {
        let is_recent =
            self.reported_at.is_some_and(|at| (at..at.saturating_add(PACE).unwrap_or(at)).contains(&now));
        is_recent && before != after && words(before) == words(after)
    }

    /// All of that was reported; `is_written`: there was something new to say.
    pub fn told(&mut self, is_written: bool, now: Timestamp) {
        let reverted = self.carried.reverted.take().filter(|_| self.is_fresh);
        (self.carried, self.unreported) = (Unreported { reverted, ..Unreported::default() }, false);
        self.is_fresh = false;
        if is_written {
            self.reported_at = Some(now);
        }
    }
}

/// Whether an object that was seen at the first resource version and written, which made the second one, was seen as it was
/// before our last write, which made `last`.
fn is_stale(last: &mut Option<u128>, (seen, written): (Option<&str>, Option<&str>)) -> bool {
    let is_stale = version_number(seen).zip(*last).is_some_and(|(seen, last)| seen < last);
    *last = version_number(written).or(*last);
    is_stale
}

/// A status without its numbers: those of the workload, and the messages and times of its conditions.
pub(super) fn words(status: &TDSetStatus) -> TDSetStatus {
    let mut status = status.clone();
    (status.replicas, status.ready_replicas) = (None, None);
    for condition in status.conditions.iter_mut().flatten() {
        condition.message.clear();
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tdset::observation::CountField;
    use crate::kinds::tdset::plan::Detail;

    fn plan_with(reverted: Reverted) -> Plan {
        Plan { detail: Detail { reverted: Some(reverted), ..Detail::default() }, ..Plan::default() }
    }

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Counts that were taken back from that client at those seconds.
    fn reverts(manager: &str, seconds: &[i64]) -> Reverts {
        let mut reverts = Reverts::default();
        for at in seconds {
            reverts.add(Some(&manager.to_owned()), second(*at));
        }
        reverts
    }

    #[test]
    fn the_third_count_that_is_taken_back_within_minutes_is_a_contest() {
        assert_eq!(reverts("argo", &[0, 1]).contest(second(2)), None);
        let contest = reverts("argo", &[0, 1, 2]).contest(second(3)).unwrap();
        assert_eq!((names(&contest), contest.until), ("argo".to_owned(), second(62)));
        assert_eq!(reverts("argo", &[0, 299, 598]).contest(second(600)), None, "not within five minutes");
    }

    #[test]
    fn pauses_grow_to_five_minutes_and_a_calm_ends_them() {
        let untils = [(vec![0, 1, 2], 62), (vec![0, 1, 2, 62], 182), (vec![0, 1, 2, 62, 182], 482)];
        for (seconds, until) in untils {
            assert_eq!(reverts("argo", &seconds).contest(second(183)).unwrap().until, second(until));
        }
        let long = reverts("argo", &[0, 1, 2, 62, 182, 482, 782, 1082, 1382]);
        assert_eq!(long.contest(second(1383)).unwrap().until, second(1682), "no longer than that");
        assert_eq!(long.contest(second(1382 + 600)), None);
    }

    #[test]
    fn clients_that_take_turns_are_each_in_a_contest() {
        let mut reverts = Reverts::default();
        let mut add = |manager: &str, at: i64| {
            reverts.add(Some(&manager.to_owned()), second(at));
            let contest = reverts.contest(second(at))?;
            Some((names(&contest), contest.until.as_second()))
        };
        for (at, manager) in [(0, "argo"), (1, "kubectl"), (2, "argo"), (3, "kubectl")] {
            assert_eq!(add(manager, at), None, "{manager} at {at}");
        }
        assert_eq!(add("argo", 4), Some(("argo".to_owned(), 64)));
        assert_eq!(add("kubectl", 65), Some(("argo, kubectl".to_owned(), 125)));
        assert_eq!(add("other", 126), Some(("argo, kubectl".to_owned(), 125)), "once is no contest");
        assert_eq!(add("other", 650), Some(("kubectl".to_owned(), 125)), "the other one is over");
        assert_eq!(add("other", 700), None, "both are over");
    }

    #[test]
    fn of_many_clients_those_are_remembered_that_write_most_often() {
        let mut reverts = Reverts::default();
        for number in 0..100 {
            reverts.add(Some(&number.to_string()), second(number));
            reverts.add(Some(&"argo".to_owned()), second(number));
            assert!(reverts.0.len() <= MOST_NAMED);
        }
        assert_eq!(names(&reverts.contest(second(100)).unwrap()), "argo");
    }

    #[test]
    fn a_repair_is_counted_where_another_client_can_have_written_since_the_last_one() {
        let mut state = ReconcileState::default();
        // A template and a Service at once, and the template again as a watch that lags has it.
        for versions in [("3", "8"), ("5", "9"), ("3", "9")] {
            state.wrote_repair((Some(versions.0), Some(versions.1)), second(0));
        }
        assert_eq!(state.repairs, reverts_of_unknown(&[0]));
        state.wrote_repair((Some("10"), Some("11")), second(1));
        assert_eq!(state.repairs, reverts_of_unknown(&[0, 1]));
    }

    fn reverts_of_unknown(seconds: &[i64]) -> Reverts {
        let mut reverts = Reverts::default();
        for at in seconds {
            reverts.add(None, second(*at));
        }
        reverts
    }

    fn names(contest: &Contest) -> String {
        contest.managers.iter().cloned().collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn a_count_that_is_taken_back_before_a_transition_was_reported_is_reported_next() {
        let field = CountField::Replicas;
        let reverted = Reverted { manager: Some("kubectl".to_owned()), from: 9, to: 6, field };
        let taken_back = plan_with(reverted.clone());
        let mut state = ReconcileState::default();
        state.begin();
        assert!(state.defers_report(&Plan::default(), second(0)), "the next one reports the transition");
        // Which takes a count back and reports, and knew nothing of that count when it was planned.
        state.begin();
        state.wrote_count(&taken_back, (None, None), second(1));
        assert!(!state.defers_report(&taken_back, second(1)));
        state.told(false, second(1));
        assert_eq!(state.carried.reverted, Some(reverted));
        state.begin();
        state.told(false, second(2));
        assert_eq!(state.carried.reverted, None, "once");
    }

    #[test]
    fn a_client_whose_name_is_not_known_once_is_in_the_same_contest() {
        let mut reverts = reverts("kubectl", &[0]);
        reverts.add(None, second(1));
        reverts.add(Some(&"kubectl".to_owned()), second(2));
        assert_eq!(names(&reverts.contest(second(3)).unwrap()), "kubectl");
        let mut unnamed = Reverts::default();
        for (at, manager) in [(0, None), (1, Some("kubectl".to_owned())), (2, None)] {
            unnamed.add(manager.as_ref(), second(at));
        }
        assert_eq!(names(&unnamed.contest(second(3)).unwrap()), "kubectl");
    }

    #[test]
    fn a_count_that_is_taken_back_twice_because_a_watch_lags_is_reported_once() {
        let field = CountField::Replicas;
        let reverted = Reverted { manager: Some("kubectl".to_owned()), from: 9, to: 2, field };
        let taken_back = plan_with(reverted);
        let mut state = ReconcileState::default();
        for (versions, count) in
            [(("7", "8"), 1), (("7", "8"), 1), (("8", "9"), 2), (("7", "9"), 2), (("10", "11"), 3)]
        {
            state.begin();
            state.wrote_count(&taken_back, (Some(versions.0), Some(versions.1)), second(0));
            assert_eq!(state.reverted["kubectl"], count, "{versions:?}");
        }
        assert!(state.reverts.contest(second(1)).is_some());
    }

    #[test]
    fn numbers_wait_for_a_moment_and_words_do_not() {
        let said = TDSetStatus { replicas: Some(1), ..TDSetStatus::default() };
        let mut state = ReconcileState::default();
        let more = TDSetStatus { replicas: Some(2), ..TDSetStatus::default() };
        assert!(!state.paces(&said, &more, second(0)), "nothing was written before");
        state.told(true, second(0));
        assert!(state.paces(&said, &more, second(1)));
        assert!(!state.paces(&said, &said, second(1)), "there is nothing to wait with");
        assert!(!state.paces(&said, &more, second(2)));
        let other = TDSetStatus { active_window: Some("night".to_owned()), ..more };
        assert!(!state.paces(&said, &other, second(1)));
    }
}
