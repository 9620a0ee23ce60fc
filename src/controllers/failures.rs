//! How often the reconciliations of an object have failed in a row, and been refused. Pure.
//!
//! Guarantees: a refusal that stands makes no passing failure a lasting one: the API server answered.

use std::time::Duration;

use super::outcome::Class;

/// Reconciliations in a row that have to fail for a failure to be a lasting one, which the status says: some ten
/// seconds.
const LASTING: u32 = 5;

/// Of one object, since a reconciliation of it went well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    failed: u32,
    refused: u32,
}

impl Failures {
    /// Whether what fails has failed for a while.
    #[must_use]
    pub const fn is_lasting(self) -> bool {
        self.failed >= LASTING
    }

    /// A reconciliation failed: how soon it is tried again.
    pub fn fail(&mut self, class: Class) -> Duration {
        self.failed = self.failed.saturating_add(1);
        class.pause(self.failed)
    }

    /// Something was refused, and told: how soon it is tried again. `is_lasting`: it was a failure that has lasted.
    pub fn refuse(&mut self, is_lasting: bool) -> Duration {
        if !is_lasting {
            self.failed = 0;
        }
        self.refused = self.refused.saturating_add(1);
        Class::Permanent.pause(self.refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_again_and_again_lasts_until_something_else_comes_of_it() {
        let mut failures = Failures::default();
        for _ in 1..LASTING {
            failures.fail(Class::Transient);
            assert!(!failures.is_lasting());
        }
        failures.fail(Class::Transient);
        assert!(failures.is_lasting());
        failures.refuse(true);
        assert!(failures.is_lasting(), "reporting a failure does not end it");
        failures.refuse(false);
        assert!(!failures.is_lasting());
    }

    #[test]
    fn a_refusal_that_stands_makes_no_failure_a_lasting_one_and_no_pause_longer() {
        let mut failures = Failures::default();
        let pauses: Vec<_> = (0..10).map(|_| failures.refuse(false)).collect();
        assert!(pauses.is_sorted() && pauses[0] < pauses[9], "{pauses:?}");
        assert_eq!(failures.fail(Class::Transient), Class::Transient.pause(1));
        assert!(!failures.is_lasting());
    }
}
