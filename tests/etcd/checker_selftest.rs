//! The check of histories is itself checked: it has nothing to say of what a store without faults does, whatever the
//! order in which answers come, and names every fault that is planted.

use kit::history::check::{Fault, check};
use kit::history::record::{Action, Answer, Call, Event, Value};
use kit::random::Random;

const SEEDS: u64 = 100;
const CALLS: u64 = 400;
const KEYS: u64 = 8;
/// How long a call is under way at most, before and after it takes effect.
const WIDTH: u64 = 40;

/// A history with what it says of itself.
#[derive(Debug, Clone)]
struct Told {
    calls: Vec<Call>,
    events: Vec<Event>,
    last: i64,
}

impl Told {
    /// What a store without faults tells clients that overlap.
    fn by_a_store_without_faults(seed: u64) -> Self {
        let mut random = Random(seed);
        let mut told = Self { calls: Vec::new(), events: Vec::new(), last: 10 };
        for number in 1..=CALLS {
            let now = 10 * number;
            let key = u8::try_from(random.draw() % KEYS).unwrap();
            let there = told.at(key, told.last);
            let action = match random.draw() % 10 {
                0..4 => Action::Put(number),
                4..6 => Action::CompareAndPut {
                    value: number,
                    unchanged_since: if random.draw().is_multiple_of(3) {
                        1
                    } else {
                        there.map_or(0, |(_, at)| at)
                    },
                },
                6 => Action::Delete,
                _ => Action::Read,
            };
            let fate = random.draw() % 10;
            let answer = if fate == 0 && action != Action::Read {
                Answer::Failed
            } else {
                let answer = told.apply(key, action, there, fate == 1 && random.draw().is_multiple_of(2));
                if fate == 1 { Answer::Unknown } else { answer }
            };
            let (start, end) = (now - random.draw() % WIDTH % now, now + random.draw() % WIDTH);
            told.calls.push(Call { start, end, key, action, answer });
        }
        told
    }

    /// Does what is asked for, unless it is to be lost on the way.
    fn apply(&mut self, key: u8, action: Action, there: Option<(Value, i64)>, lost: bool) -> Answer {
        let value = match action {
            Action::Read => return Answer::Read(self.last, there),
            Action::Delete if there.is_none() => return Answer::Nothing(self.last),
            Action::CompareAndPut { unchanged_since, .. }
                if there.map_or(0, |(_, at)| at) != unchanged_since =>
            {
                return Answer::Nothing(self.last);
            }
            action => action.value(),
        };
        if lost {
            return Answer::Unknown;
        }
        self.last += 1;
        self.events.push(Event { revision: self.last, key, value });
        Answer::Done(self.last)
    }

    fn at(&self, key: u8, revision: i64) -> Option<(Value, i64)> {
        let event = self.events.iter().rfind(|event| event.key == key && event.revision <= revision)?;
        event.value.map(|value| (value, event.revision))
    }

    fn faults(&self) -> Vec<Fault> {
        check(&self.calls, &self.events, self.last).into_iter().map(|violation| violation.fault).collect()
    }

    /// The place of a call in the middle of the history.
    fn call(&self, wanted: impl Fn(&Call) -> bool) -> usize {
        let middle = self.calls.len() / 2;
        middle + self.calls[middle..].iter().position(wanted).expect("there is such a call")
    }

    fn write(&self) -> (usize, i64) {
        let place = self.call(|call| call.action.value().is_some() && matches!(call.answer, Answer::Done(_)));
        (place, self.calls[place].answer.revision().unwrap())
    }

    fn read(&self) -> usize {
        self.call(|call| matches!(call.answer, Answer::Read(_, Some(_))))
    }
}

fn on_many(plant: impl Fn(&mut Told), fault: Fault) {
    for seed in 0..SEEDS {
        let mut told = Told::by_a_store_without_faults(seed);
        plant(&mut told);
        assert!(told.faults().contains(&fault), "seed {seed}: {fault:?} is not among {:?}", told.faults());
    }
}

pub fn a_store_without_faults_is_believed() {
    for seed in 0..SEEDS {
        let told = Told::by_a_store_without_faults(seed);
        let violations = check(&told.calls, &told.events, told.last);
        assert!(violations.is_empty(), "seed {seed}: {violations:#?}");
        for wanted in [Answer::Failed, Answer::Unknown] {
            assert!(told.calls.iter().any(|call| call.answer == wanted));
        }
        assert!(told.calls.iter().any(|call| matches!(call.answer, Answer::Nothing(_))));
    }
}

pub fn a_lost_write_is_found() {
    on_many(
        |told| {
            let (_, revision) = told.write();
            told.events.retain(|event| event.revision != revision);
        },
        Fault::Lost,
    );
}

pub fn a_history_that_lost_its_end_is_found() {
    on_many(
        |told| {
            let (_, revision) = told.write();
            told.events.retain(|event| event.revision < revision);
            told.last = revision - 1;
        },
        Fault::Lost,
    );
}

pub fn a_lost_deletion_is_found() {
    on_many(
        |told| {
            let done = |call: &Call| call.action == Action::Delete && matches!(call.answer, Answer::Done(_));
            let call = told.calls.iter().find(|call| done(call)).expect("something was deleted");
            let revision = call.answer.revision().unwrap();
            told.events.retain(|event| event.revision != revision);
        },
        Fault::Lost,
    );
}

pub fn a_stale_read_is_found() {
    on_many(
        |told| {
            let place = told.call(|call| call.action == Action::Read);
            let (key, start) = (told.calls[place].key, told.calls[place].start);
            let before = told.calls.iter().filter(|call| call.end < start);
            let known = before.filter_map(|call| call.answer.revision()).max().unwrap();
            told.calls[place].answer = Answer::Read(known - 1, told.at(key, known - 1)); // true, of the past
        },
        Fault::Stale,
    );
}

pub fn a_write_that_came_before_one_that_had_been_reported_is_found() {
    on_many(
        |told| {
            let (later, revision) = told.write();
            let start = told.calls[later].start;
            let earlier = told.calls.iter().position(|call| {
                call.end < start && call.action.value().is_some() && matches!(call.answer, Answer::Done(_))
            });
            let earlier = earlier.expect("there is one before");
            let other = told.calls[earlier].answer.revision().unwrap();
            told.calls[earlier].answer = Answer::Done(revision);
            told.calls[later].answer = Answer::Done(other);
        },
        Fault::Stale,
    );
}

pub fn a_doubled_write_is_found() {
    on_many(
        |told| {
            let (place, _) = told.write();
            let (key, value) = (told.calls[place].key, told.calls[place].action.value());
            told.last += 1;
            told.events.push(Event { revision: told.last, key, value });
        },
        Fault::Doubled,
    );
}

pub fn an_unknown_write_that_happened_twice_is_found() {
    on_many(
        |told| {
            let values: Vec<_> = told.events.iter().filter_map(|event| event.value).collect();
            let place = told.calls.iter().position(|call| {
                call.answer == Answer::Unknown
                    && call.action.value().is_some_and(|value| values.contains(&value))
            });
            let call = &told.calls[place.expect("one happened")];
            told.last += 1;
            told.events.push(Event { revision: told.last, key: call.key, value: call.action.value() });
        },
        Fault::Doubled,
    );
}

pub fn two_calls_that_claim_one_change_are_found() {
    on_many(
        |told| {
            let (place, _) = told.write();
            let twin = told.calls[place].clone();
            told.calls.push(twin);
        },
        Fault::Doubled,
    );
}

pub fn a_failed_write_that_happened_is_found() {
    on_many(
        |told| {
            let failed = |call: &&Call| call.answer == Answer::Failed && call.action.value().is_some();
            let call = told.calls.iter().find(failed).expect("one failed");
            told.last += 1;
            told.events.push(Event { revision: told.last, key: call.key, value: call.action.value() });
        },
        Fault::Unasked,
    );
}

pub fn a_write_and_a_deletion_without_a_writer_are_found() {
    for value in [Some(CALLS + 1), None] {
        on_many(
            |told| {
                let unsure = |call: &Call| call.action == Action::Delete && call.answer == Answer::Unknown;
                told.calls.retain(|call| !unsure(call) || call.key != 0);
                told.last += 1;
                told.events.push(Event { revision: told.last, key: 0, value });
            },
            Fault::Unasked,
        );
    }
}

pub fn an_unknown_write_that_happened_before_it_was_sent_is_found() {
    on_many(
        |told| {
            let (place, _) = told.write();
            told.calls[place].answer = Answer::Unknown;
            let after = told.calls.iter().map(|call| call.end).max().unwrap();
            (told.calls[place].start, told.calls[place].end) = (after + 1, after + 2);
        },
        Fault::Unasked,
    );
}

pub fn a_wrong_value_is_found() {
    on_many(
        |told| {
            let place = told.read();
            let Answer::Read(revision, Some((value, changed))) = told.calls[place].answer else {
                unreachable!()
            };
            told.calls[place].answer = Answer::Read(revision, Some((value + 1, changed)));
        },
        Fault::Wrong,
    );
    on_many(
        |told| {
            let place = told.read();
            let revision = told.calls[place].answer.revision().unwrap();
            told.calls[place].answer = Answer::Read(revision, None);
        },
        Fault::Wrong,
    );
}

pub fn a_comparison_that_should_not_have_held_is_found() {
    on_many(
        |told| {
            let place = told.call(|call| {
                matches!((call.action, call.answer), (Action::CompareAndPut { .. }, Answer::Done(_)))
            });
            let Action::CompareAndPut { unchanged_since, .. } = &mut told.calls[place].action else {
                unreachable!()
            };
            *unchanged_since += 1;
        },
        Fault::Wrong,
    );
}
