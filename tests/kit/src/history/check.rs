//! The check: compares what clients were answered with the history that etcd tells.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use super::record::{Action, Answer, Call, Event, Value};

/// What kind of word was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// An acknowledged change is not in the history where it was said to be.
    Lost,
    /// A value is in the history more than once.
    Doubled,
    /// A change is in the history that no client asked for, or that was answered as not done.
    Unasked,
    /// An answer is older than what had been acknowledged before its call was sent.
    Stale,
    /// An answer is not what the history says of its revision.
    Wrong,
    /// Answers came from more than one cluster.
    OtherCluster,
    /// Voters hold different data at the same revision.
    Diverged,
}

/// A broken word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Of what kind.
    pub fault: Fault,
    /// The call or the event, and what speaks against it.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}: {}", self.fault, self.text)
    }
}

/// All that is wrong with these calls, given that these events are the whole history of the keys from the first call up
/// to the revision `last`, in order. The keys were not there before.
#[must_use]
pub fn check(calls: &[Call], events: &[Event], last: i64) -> Vec<Violation> {
    let mut check = Check { history: History::of(events, last), violations: Vec::new() };
    let floors = floors(calls);
    check.values_are_there_once(calls, events);
    check.events_were_asked_for(calls, &floors, events);
    for (call, floor) in calls.iter().zip(&floors) {
        check.is_not_stale(call, *floor);
        check.is_what_the_history_says(call);
    }
    check.violations
}

/// For each call, the highest revision that had been told to anyone before it was sent.
fn floors(calls: &[Call]) -> Vec<i64> {
    let mut told: Vec<(u64, i64)> =
        calls.iter().filter_map(|call| Some((call.end, call.answer.revision()?))).collect();
    told.sort_unstable();
    let mut highest = 0;
    for (_, revision) in &mut told {
        highest = highest.max(*revision);
        *revision = highest;
    }
    let floor = |call: &Call| match told.partition_point(|(end, _)| *end < call.start) {
        0 => 0,
        before => told[before - 1].1,
    };
    calls.iter().map(floor).collect()
}

/// The changes of each key, in order.
struct History {
    keys: BTreeMap<u8, Vec<Event>>,
    last: i64,
}

impl History {
    fn of(events: &[Event], last: i64) -> Self {
        let mut keys = BTreeMap::<u8, Vec<_>>::new();
        for event in events {
            keys.entry(event.key).or_default().push(*event);
        }
        Self { keys, last }
    }

    fn changes(&self, key: u8) -> &[Event] {
        self.keys.get(&key).map_or(&[], Vec::as_slice)
    }

    /// The value of a key at a revision and its last change; none if it was not there.
    fn at(&self, key: u8, revision: i64) -> Option<(Value, i64)> {
        let changes = self.changes(key);
        let until = changes.partition_point(|event| event.revision <= revision);
        let latest = changes.get(until.checked_sub(1)?)?;
        latest.value.map(|value| (value, latest.revision))
    }

    /// What happened to a key at a revision.
    fn change(&self, key: u8, revision: i64) -> Option<Event> {
        let changes = self.changes(key);
        let place = changes.binary_search_by_key(&revision, |event| event.revision).ok()?;
        Some(changes[place])
    }
}

struct Check {
    history: History,
    violations: Vec<Violation>,
}

impl Check {
    fn says(&mut self, fault: Fault, text: String) {
        self.violations.push(Violation { fault, text });
    }

    fn values_are_there_once(&mut self, calls: &[Call], events: &[Event]) {
        let mut seen = HashMap::<Value, i64>::new();
        for event in events {
            let Some(value) = event.value else { continue };
            if let Some(first) = seen.insert(value, event.revision) {
                let text = format!("{value} was written at {first} and again at {}", event.revision);
                self.says(Fault::Doubled, text);
            }
        }
        let mut revisions = HashMap::<i64, &Call>::new();
        for call in calls {
            let Answer::Done(revision) = call.answer else { continue };
            if call.action.value().is_some_and(|value| !seen.contains_key(&value)) {
                self.says(Fault::Lost, format!("{call:?} was acknowledged and its value is nowhere"));
            }
            if let Some(other) = revisions.insert(revision, call) {
                self.says(Fault::Doubled, format!("{call:?} and {other:?} are said to be one change"));
            }
        }
    }

    /// Every event is of a call that was acknowledged at just that revision, or of one whose outcome is unknown and
    /// that was sent before any client heard of that revision.
    fn events_were_asked_for(&mut self, calls: &[Call], floors: &[i64], events: &[Event]) {
        let mut writes = HashMap::<Value, (&Call, i64)>::new();
        let mut deletions = HashMap::<i64, u8>::new();
        let mut unsure_deletions = BTreeMap::<u8, Vec<i64>>::new();
        for (call, floor) in calls.iter().zip(floors) {
            match (call.action, call.answer) {
                (Action::Delete, Answer::Done(revision)) => {
                    deletions.insert(revision, call.key);
                }
                (Action::Delete, Answer::Unknown) => {
                    unsure_deletions.entry(call.key).or_default().push(*floor);
                }
                (action, _) => {
                    if let Some(value) = action.value() {
                        writes.insert(value, (call, *floor));
                    }
                }
            }
        }
        for floors in unsure_deletions.values_mut() {
            floors.sort_unstable_by(|a, b| b.cmp(a));
        }
        for event in events {
            let asked = match event.value {
                Some(value) => writes.get(&value).is_some_and(|(call, floor)| explains(call, *floor, event)),
                None if deletions.get(&event.revision) == Some(&event.key) => true,
                // The earliest that could have done it, so that later ones are left for later events.
                None => unsure_deletions.get_mut(&event.key).is_some_and(|floors| {
                    let earliest = floors.pop_if(|floor| *floor < event.revision);
                    earliest.is_some()
                }),
            };
            if !asked {
                self.says(Fault::Unasked, format!("{event:?} is in the history and no client did it"));
            }
        }
    }

    fn is_not_stale(&mut self, call: &Call, floor: i64) {
        let stale = match call.answer {
            Answer::Done(revision) => revision <= floor,
            Answer::Nothing(revision) | Answer::Read(revision, _) => revision < floor,
            Answer::Failed | Answer::Unknown => false,
        };
        if stale {
            self.says(Fault::Stale, format!("{call:?} although {floor} had been told before it was sent"));
        }
    }

    fn is_what_the_history_says(&mut self, call: &Call) {
        let Some(revision) = call.answer.revision() else { return };
        if revision > self.history.last {
            let text = format!("{call:?} tells of a revision after the last one, {}", self.history.last);
            return self.says(Fault::Lost, text);
        }
        let before = self.history.at(call.key, revision - 1);
        let now = self.history.at(call.key, revision);
        let change = self.history.change(call.key, revision);
        let became = |wanted| change.is_some_and(|event| event.value == wanted);
        let right = match (call.action, call.answer) {
            (Action::Put(value), Answer::Done(_)) => became(Some(value)),
            (Action::CompareAndPut { value, unchanged_since }, Answer::Done(_)) => {
                became(Some(value)) && before.map_or(0, |(_, changed)| changed) == unchanged_since
            }
            (Action::Delete, Answer::Done(_)) => became(None) && before.is_some(),
            (Action::CompareAndPut { unchanged_since, .. }, Answer::Nothing(_)) => {
                now.map_or(0, |(_, changed)| changed) != unchanged_since
            }
            (Action::Delete, Answer::Nothing(_)) => now.is_none(),
            (Action::Read, Answer::Read(_, found)) => found == now,
            _ => false, // an answer to another question
        };
        if !right {
            let fault = if matches!(call.answer, Answer::Done(_)) && change.is_none() {
                Fault::Lost
            } else {
                Fault::Wrong
            };
            let text = format!("{call:?}, but the history has {change:?} at {revision}, after {before:?}");
            self.says(fault, text);
        }
    }
}

/// Whether a write is what an event came of.
fn explains(call: &Call, floor: i64, event: &Event) -> bool {
    call.key == event.key
        && match call.answer {
            Answer::Done(revision) => revision == event.revision,
            Answer::Unknown => floor < event.revision,
            Answer::Nothing(_) | Answer::Read(..) | Answer::Failed => false,
        }
}
