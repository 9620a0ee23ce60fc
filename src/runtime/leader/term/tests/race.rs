//! Several candidates, clocks that run at different rates, and a network that loses, delays and delivers late: at
//! no time do two of them lead.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use random_objects::Random;

use super::*;

/// Microseconds of real time.
type Micros = u64;

const MICROS: u64 = 1_000_000;

#[derive(Clone, Debug)]
struct Candidate {
    term: Term,
    /// Its clock's thousandths of a real second's length, and where it begins.
    rate: u64,
    begin: u64,
    /// The call that is under way, and when it was begun.
    asked: Option<(u64, Moment)>,
    calls: u64,
    leads: bool,
    /// It is halted until then.
    is_crashed: bool,
}

impl Candidate {
    fn clock(&self, now: Micros) -> Moment {
        Duration::from_micros(self.begin + now * self.rate / 1000)
    }

    /// When its clock shows that, at the earliest.
    fn real(&self, moment: Moment) -> Micros {
        let micros = u64::try_from(moment.as_micros()).unwrap().saturating_sub(self.begin);
        (micros * 1000).div_ceil(self.rate)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// A candidate may have something to do.
    Wake(usize),
    /// A call comes to the server.
    Arrives(usize, u64),
    /// Its answer comes back.
    Answered(usize, u64),
    /// The candidate gives the call up.
    GivenUp(usize, u64),
    /// It crashes, or resigns and releases.
    Crashes(usize),
    Leaves(usize),
}

#[derive(Debug)]
struct World {
    dice: Random,
    candidates: Vec<Candidate>,
    queue: BinaryHeap<Reverse<(Micros, u64, Happening)>>,
    happenings: u64,
    under_way: std::collections::HashMap<(usize, u64), (Action, Option<Answer>)>,
    lease: Option<(Record, u64)>,
    /// In a thousand: calls and answers that are lost, and those that take long.
    lost: u64,
    slow: u64,
    wins: u32,
}

impl World {
    fn plan(&mut self, at: Micros, happening: Happening) {
        self.happenings += 1;
        self.queue.push(Reverse((at, self.happenings, happening)));
    }

    fn delay(&mut self) -> Option<Micros> {
        if self.dice.roll(1000) < self.lost {
            return None;
        }
        let longest = if self.dice.roll(1000) < self.slow { 40 * MICROS } else { 20_000 };
        Some(self.dice.roll(longest) + 1)
    }

    fn run(&mut self, end: Micros) {
        for candidate in 0..self.candidates.len() {
            self.plan(0, Happening::Wake(candidate));
        }
        while let Some(Reverse((now, _, happening))) = self.queue.pop() {
            if now > end {
                return;
            }
            match happening {
                Happening::Wake(who) => self.wake(who, now),
                Happening::Arrives(who, call) => self.arrives(who, call, now),
                Happening::Answered(who, call) => {
                    let answer = self.under_way.get(&(who, call)).and_then(|(_, answer)| answer.clone());
                    self.heard(who, call, answer.unwrap(), now);
                }
                Happening::GivenUp(who, call) => self.heard(who, call, Answer::Silence, now),
                Happening::Crashes(who) => {
                    let candidate = &mut self.candidates[who];
                    (candidate.leads, candidate.is_crashed) = (false, true);
                }
                Happening::Leaves(who) => self.leaves(who, now),
            }
        }
    }

    /// What the effects around a term do: nothing twice at a time, nothing too early, and no work after its end.
    fn wake(&mut self, who: usize, now: Micros) {
        let candidate = &mut self.candidates[who];
        if candidate.is_crashed {
            return;
        }
        let clock = candidate.clock(now);
        if candidate.term.tick(clock).is_some() {
            (candidate.leads, candidate.asked) = (false, None);
        }
        if candidate.asked.is_some() {
            return;
        }
        match candidate.term.next(clock) {
            Action::Wait(moment) => {
                let at = candidate.real(moment).max(now + 1);
                self.plan(at, Happening::Wake(who));
            }
            action => self.send(who, action, now),
        }
    }

    fn send(&mut self, who: usize, action: Action, now: Micros) {
        let candidate = &mut self.candidates[who];
        candidate.calls += 1;
        let call = candidate.calls;
        let clock = candidate.clock(now);
        candidate.asked = Some((call, clock));
        let limit = candidate.real(clock + candidate.term.pace.call);
        let deadline = candidate.term.until().map(|until| candidate.real(until));
        self.under_way.insert((who, call), (action, None));
        self.plan(limit, Happening::GivenUp(who, call));
        if let Some(deadline) = deadline {
            self.plan(deadline, Happening::Wake(who));
        }
        if let Some(delay) = self.delay() {
            self.plan(now + delay, Happening::Arrives(who, call));
        }
    }

    /// The server does what is asked, also for one that has given up waiting.
    fn arrives(&mut self, who: usize, call: u64, now: Micros) {
        let action = self.under_way[&(who, call)].0.clone();
        let version = |lease: &Option<(Record, u64)>| lease.as_ref().map(|(_, version)| version.to_string());
        let answer = match action {
            Action::Read => match &self.lease {
                Some((record, version)) => Answer::Found(record.clone(), version.to_string()),
                None => Answer::Absent,
            },
            Action::Write(claim) if claim.version == version(&self.lease) => {
                let next = self.lease.as_ref().map_or(1, |(_, version)| version + 1);
                let record = Record {
                    holder: claim.holder,
                    seconds: claim.seconds,
                    transitions: claim.transitions,
                    acquired: None,
                    renewed: Some(Timestamp::from_microsecond(i64::try_from(now).unwrap()).unwrap()),
                };
                self.lease = Some((record.clone(), next));
                Answer::Written(record, next.to_string())
            }
            _ => Answer::LostRace,
        };
        self.under_way.get_mut(&(who, call)).unwrap().1 = Some(answer);
        if let Some(delay) = self.delay() {
            self.plan(now + delay, Happening::Answered(who, call));
        }
    }

    fn heard(&mut self, who: usize, call: u64, answer: Answer, now: Micros) {
        let candidate = &mut self.candidates[who];
        let Some((_, sent)) = candidate.asked.filter(|(asked, _)| *asked == call) else { return };
        if candidate.is_crashed {
            return;
        }
        candidate.asked = None;
        let clock = candidate.clock(now);
        match candidate.term.heard(answer, sent, clock) {
            Some(Change::Won) => {
                candidate.leads = true;
                self.wins += 1;
                if self.dice.roll(3) == 0 {
                    let after = now + self.dice.roll(40 * MICROS);
                    let leaves = self.dice.roll(2) == 0;
                    self.plan(after, if leaves { Happening::Leaves(who) } else { Happening::Crashes(who) });
                }
                self.only_one_leads(who, now);
            }
            Some(Change::Lost(_)) => candidate.leads = false,
            None => {}
        }
        self.plan(now, Happening::Wake(who));
    }

    fn leaves(&mut self, who: usize, now: Micros) {
        let candidate = &mut self.candidates[who];
        let clock = candidate.clock(now);
        (candidate.leads, candidate.asked) = (false, None);
        candidate.term.resign(clock);
        if let Some(claim) = candidate.term.release() {
            self.send(who, Action::Write(claim), now);
        }
    }

    fn only_one_leads(&self, winner: usize, now: Micros) {
        for (who, other) in self.candidates.iter().enumerate() {
            let leads = other.leads && other.term.until().is_some_and(|until| other.clock(now) < until);
            assert!(who == winner || !leads, "{who} and {winner} lead at {now}");
        }
    }
}

fn world(seed: u64, rates: &[u64], lost: u64, slow: u64) -> World {
    let mut dice = Random(seed);
    let candidates = rates.iter().enumerate().map(|(who, rate)| Candidate {
        term: Term::new(who.to_string(), Pace::of(seconds(15))),
        rate: *rate,
        begin: dice.roll(1000 * MICROS),
        asked: None,
        calls: 0,
        leads: false,
        is_crashed: false,
    });
    let candidates = candidates.collect();
    World {
        dice,
        candidates,
        queue: BinaryHeap::new(),
        happenings: 0,
        under_way: std::collections::HashMap::new(),
        lease: None,
        lost,
        slow,
        wins: 0,
    }
}

proptest! {
    #![proptest_config(crate::properties::cases(200))]

    #[test]
    fn two_never_lead(
        seed: u64,
        rates in prop::collection::vec(850_u64..=1_250, 2..6),
        lost in 0_u64..400,
        slow in 0_u64..400,
    ) {
        world(seed, &rates, lost, slow).run(1200 * MICROS);
    }
}

#[test]
fn the_race_has_winners_and_successors() {
    let wins: u32 = (0..20)
        .map(|seed| {
            let mut world = world(seed, &[900, 1000, 1100], 200, 200);
            world.run(600 * MICROS);
            world.wins
        })
        .sum();
    assert!(wins > 40, "{wins} terms in 20 races");
}

#[test]
fn clocks_that_differ_by_more_than_is_assumed_are_distinguished_from_those_that_do_not() {
    let overlap = (0..2000).any(|seed| {
        let race = move || world(seed, &[400, 1000, 1000], 300, 300).run(1200 * MICROS);
        std::panic::catch_unwind(race).is_err()
    });
    assert!(overlap, "the race would not notice two leaders");
}
