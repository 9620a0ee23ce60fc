//! How the count moves towards the scheduled one, step by step.
//!
//! Guarantees: each step starts from the count that is observed, never goes past the scheduled one, and gets there;
//! the first replica after none is never delayed. No memory: the same observation gives the same step.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::v1;
use crate::api::duration;
use crate::api::field::{Fault, Path};

/// Longest time between two steps.
const LONGEST: Duration = Duration::from_hours(24);
/// Shortest time between two steps.
const SHORTEST: Duration = Duration::from_secs(1);

/// How fast the count moves, in each direction; `None` is at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ramp {
    up: Option<Pace>,
    down: Option<Pace>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pace {
    step: Step,
    every: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Replicas(i32),
    /// Of the larger one of the two counts between which it moves.
    Percent(i32),
}

/// What to write now, and when to look again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The count to write.
    pub replicas: i32,
    /// Time until the next step; `None` where this is the last one.
    pub again: Option<Duration>,
}

impl Ramp {
    /// Reads the ramp of a spec.
    ///
    /// # Errors
    /// A fault for each field that is no pace.
    pub fn parse(spec: Option<&v1::Ramp>) -> Result<Self, Vec<Fault>> {
        let path = Path::spec().at("ramp");
        let mut faults = Vec::new();
        let mut pace = |name: &'static str, given: Option<&v1::RampStep>| {
            let given = given?;
            let step = step(&given.step);
            if step.is_none() {
                let detail = "must be a number from 1 to 10000, or from \"1%\" to \"100%\"";
                let path = path.at(name).at("step");
                faults.push(match &given.step {
                    IntOrString::Int(number) => Fault::invalid(path, *number, detail),
                    IntOrString::String(text) => Fault::invalid(path, text, detail),
                });
            }
            let every = every(&given.every);
            if every.is_none() {
                let path = path.at(name).at("every");
                faults.push(Fault::invalid(
                    path,
                    &given.every,
                    "must be from 1s to 24h, such as 30s or 1m30s",
                ));
            }
            Some(Pace { step: step?, every: every? })
        };
        let ramp = Self {
            up: pace("up", spec.and_then(|ramp| ramp.up.as_ref())),
            down: pace("down", spec.and_then(|ramp| ramp.down.as_ref())),
        };
        if faults.is_empty() { Ok(ramp) } else { Err(faults) }
    }

    /// The step from `observed` towards `scheduled`.
    #[must_use]
    pub fn towards(&self, observed: i32, scheduled: i32) -> Move {
        let at_once = Move { replicas: scheduled, again: None };
        let rising = observed < scheduled;
        let pace = if rising { self.up } else { self.down };
        let Some(Pace { step, every }) = pace else {
            return at_once;
        };
        let by = match step {
            Step::Replicas(replicas) => replicas,
            Step::Percent(percent) => share(percent, observed.max(scheduled)),
        };
        let replicas = if rising {
            observed.saturating_add(by).min(scheduled)
        } else {
            observed.saturating_sub(by).max(scheduled)
        };
        if replicas == scheduled {
            return at_once;
        }
        Move { replicas, again: Some(every) }
    }
}

/// `percent` of `count`, rounded up, at least 1.
fn share(percent: i32, count: i32) -> i32 {
    let product = i64::from(percent) * i64::from(count);
    i32::try_from(product.div_euclid(100) + i64::from(product.rem_euclid(100) != 0))
        .unwrap_or(i32::MAX)
        .max(1)
}

fn step(given: &IntOrString) -> Option<Step> {
    match given {
        IntOrString::Int(number) => {
            (1..=v1::MOST_REPLICAS).contains(number).then_some(Step::Replicas(*number))
        }
        IntOrString::String(text) => {
            let digits = text.strip_suffix('%')?;
            let plain = digits.bytes().all(|one| one.is_ascii_digit()) && !digits.starts_with('0');
            let percent = plain.then(|| digits.parse().ok()).flatten()?;
            (1..=100).contains(&percent).then_some(Step::Percent(percent))
        }
    }
}

fn every(text: &str) -> Option<Duration> {
    let every = duration::parse(text).ok()?;
    (SHORTEST..=LONGEST).contains(&every).then_some(every)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ramp(up: Option<(IntOrString, &str)>, down: Option<(IntOrString, &str)>) -> v1::Ramp {
        let step = |(step, every): (IntOrString, &str)| v1::RampStep { step, every: every.to_owned() };
        v1::Ramp { up: up.map(step), down: down.map(step) }
    }

    fn percent(text: &str) -> IntOrString {
        IntOrString::String(text.to_owned())
    }

    #[test]
    fn without_a_ramp_the_count_is_written_at_once() {
        let found = Ramp::parse(None).unwrap().towards(3, 40);
        assert_eq!((found.replicas, found.again), (40, None));
    }

    #[test]
    fn each_step_moves_by_what_is_given_and_the_last_one_lands() {
        let spec = ramp(Some((percent("25%"), "30s")), Some((IntOrString::Int(2), "1m30s")));
        let ramp = Ramp::parse(Some(&spec)).unwrap();
        let every = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(ramp.towards(0, 10), Move { replicas: 3, again: every(30) });
        assert_eq!(ramp.towards(9, 10), Move { replicas: 10, again: None });
        assert_eq!(ramp.towards(10, 7), Move { replicas: 8, again: every(90) });
        assert_eq!(ramp.towards(8, 7), Move { replicas: 7, again: None });
        assert_eq!(ramp.towards(7, 7), Move { replicas: 7, again: None });
    }

    #[test]
    fn a_step_of_nothing_or_more_than_all_is_refused() {
        for bad in ["0%", "101%", "-5%", "05%", "5", "%", "1e1%", "99999999999%"] {
            let faults = Ramp::parse(Some(&ramp(Some((percent(bad), "30s")), None))).unwrap_err();
            assert_eq!(faults[0].path.to_string(), "spec.ramp.up.step", "{bad}");
        }
        let spec = ramp(Some((IntOrString::Int(0), "0s")), Some((IntOrString::Int(10_001), "25h")));
        let paths: Vec<_> =
            Ramp::parse(Some(&spec)).unwrap_err().iter().map(|one| one.path.to_string()).collect();
        let expected =
            ["spec.ramp.up.step", "spec.ramp.up.every", "spec.ramp.down.step", "spec.ramp.down.every"];
        assert_eq!(paths, expected);
    }

    proptest! {
        #[test]
        fn a_ramp_gets_there_and_never_past(from in 0..10_000_i32, to in 0..10_000_i32, step in 1..=100_i32) {
            let spec = ramp(Some((percent(&format!("{step}%")), "1s")), Some((IntOrString::Int(step), "1s")));
            let ramp = Ramp::parse(Some(&spec)).unwrap();
            let mut count = from;
            for _ in 0..10_001 {
                let next = ramp.towards(count, to);
                prop_assert!((count.min(to)..=count.max(to)).contains(&next.replicas));
                prop_assert!(count == to || next.replicas != count);
                prop_assert_eq!(next.again.is_none(), next.replicas == to);
                count = next.replicas;
                if count == to { break; }
            }
            prop_assert_eq!(count, to);
        }
    }
}
