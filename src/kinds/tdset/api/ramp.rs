//! How the count moves towards the scheduled one, step by step.
//!
//! Guarantees: the count is a function of the ramp, of the counts that it leads from and to, and of the time since it
//! began; so a restart finds it where it would have been. It never goes past the scheduled count, and gets there; the
//! first replica after none is never delayed.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::v1;
use crate::api::duration;
use crate::api::field::{FieldError, Path};

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

/// A place on a ramp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The count there.
    pub replicas: i32,
    /// When the next step is due, from the ramp's beginning; `None` where it has arrived.
    pub next: Option<Duration>,
}

impl Ramp {
    /// Reads the ramp of a spec.
    ///
    /// # Errors
    /// A fault for each field that is no pace.
    pub fn parse(spec: Option<&v1::Ramp>) -> Result<Self, Vec<FieldError>> {
        let path = Path::spec().at("ramp");
        let mut faults = Vec::new();
        let mut pace = |name: &'static str, given: Option<&v1::RampStep>| {
            let given = given?;
            let step = step(&given.step);
            if step.is_none() {
                let detail = "must be a number from 1 to 10000, or from \"1%\" to \"100%\"";
                let path = path.at(name).at("step");
                faults.push(match &given.step {
                    IntOrString::Int(number) => FieldError::invalid(path, *number, detail),
                    IntOrString::String(text) => FieldError::invalid(path, text, detail),
                });
            }
            let every = every(&given.every);
            if every.is_none() {
                let path = path.at(name).at("every");
                faults.push(FieldError::invalid(
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

    /// Where the count is, that long after it began to move from one count to another. The first step is taken at
    /// once, and each further one when its time has come.
    #[must_use]
    pub fn at(&self, from: i32, to: i32, elapsed: Duration) -> Place {
        let rising = from < to;
        let pace = if rising { self.up } else { self.down };
        let Some(Pace { step, every }) = pace else {
            return Place { replicas: to, next: None };
        };
        let by = match step {
            Step::Replicas(replicas) => replicas,
            Step::Percent(percent) => share(percent, from.max(to)),
        };
        let passed = elapsed.as_nanos() / every.as_nanos().max(1);
        let steps = u32::try_from(passed).unwrap_or(u32::MAX).saturating_add(1);
        let moved = by.saturating_mul(i32::try_from(steps).unwrap_or(i32::MAX));
        let replicas =
            if rising { from.saturating_add(moved).min(to) } else { from.saturating_sub(moved).max(to) };
        let next = (replicas != to).then(|| every.saturating_mul(steps));
        Place { replicas, next }
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

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn without_a_ramp_the_count_is_written_at_once() {
        let found = Ramp::parse(None).unwrap().at(3, 40, seconds(0));
        assert_eq!((found.replicas, found.next), (40, None));
    }

    #[test]
    fn each_step_moves_by_what_is_given_and_the_last_one_lands() {
        let spec = ramp(Some((percent("25%"), "30s")), Some((IntOrString::Int(2), "1m30s")));
        let ramp = Ramp::parse(Some(&spec)).unwrap();
        for (from, to, elapsed, replicas, next) in [
            (0, 10, 0, 3, Some(30)),
            (0, 10, 29, 3, Some(30)),
            (0, 10, 30, 6, Some(60)),
            (0, 10, 61, 9, Some(90)),
            (0, 10, 90, 10, None),
            (0, 10, 9_999_999, 10, None),
            (10, 7, 0, 8, Some(90)),
            (10, 7, 90, 7, None),
            (7, 7, 0, 7, None),
        ] {
            let expected = Place { replicas, next: next.map(seconds) };
            assert_eq!(ramp.at(from, to, seconds(elapsed)), expected, "{from} to {to} after {elapsed} s");
        }
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
        #![proptest_config(crate::properties::config())]

        #[test]
        fn a_ramp_gets_there_and_never_past_nor_back(from in 0..10_000_i32, to in 0..10_000_i32, step in 1..=100_i32) {
            let spec = ramp(Some((percent(&format!("{step}%")), "1s")), Some((IntOrString::Int(step), "1s")));
            let ramp = Ramp::parse(Some(&spec)).unwrap();
            let (mut count, mut elapsed) = (from, Duration::ZERO);
            for _ in 0..10_001 {
                let place = ramp.at(from, to, elapsed);
                prop_assert!((count.min(to)..=count.max(to)).contains(&place.replicas));
                prop_assert!(count == to || place.replicas != count);
                prop_assert_eq!(place.next.is_none(), place.replicas == to);
                count = place.replicas;
                let Some(next) = place.next else { break };
                prop_assert_eq!(ramp.at(from, to, next.saturating_sub(Duration::from_nanos(1))).replicas, count);
                elapsed = next;
            }
            prop_assert_eq!(count, to);
        }
    }
}
