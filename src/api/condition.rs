//! Conditions of a status: how one is set, and when its transition time moves.
//!
//! Guarantees: `lastTransitionTime` moves exactly when `status` does, one condition per type, the order of the list
//! stays. Never: removes a condition that another client wrote.
//!
//! Source of the rules: Kubernetes API conventions, "Typical status properties", and
//! `k8s.io/apimachinery/pkg/api/meta.SetStatusCondition`.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::words::words;

/// Most bytes of a message that the API server's own condition type takes.
const LONGEST_MESSAGE: usize = 32_768;

words! {
    /// Whether a condition holds.
    State:
    /// It holds.
    True,
    /// It does not.
    False,
    /// That could not be found out.
    Unknown,
}

impl From<bool> for State {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// A statement about an object: one condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The condition's type, such as `Ready`.
    pub about: &'static str,
    /// Whether it holds.
    pub state: State,
    /// Why, in one CamelCase word for machines.
    pub reason: &'static str,
    /// Why, in a sentence for people.
    pub message: String,
}

/// Declares the `ConditionType` of a kind.
macro_rules! condition_types {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        $crate::api::words::words! {
            /// The type of a condition.
            ConditionType: $($(#[$doc])* $name,)*
        }

        impl ConditionType {
            /// The statement that this holds or does not, and why.
            #[must_use]
            pub fn is(
                self,
                state: impl Into<$crate::api::condition::State>,
                reason: Reason,
                message: impl Into<String>,
            ) -> $crate::api::condition::Statement {
                $crate::api::condition::Statement {
                    about: self.as_str(),
                    state: state.into(),
                    reason: reason.as_str(),
                    message: message.into(),
                }
            }
        }
    };
}

/// Declares the `Reason` of a kind.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        $crate::api::words::words! {
            /// Why a condition holds or does not.
            Reason: $($(#[$doc])* $name,)*
        }
    };
}

pub(crate) use {condition_types, reasons};

/// Writes `statement` into `conditions`, as found at `generation`. Returns whether that changed anything, its time
/// aside: if nothing, the status need not be written.
pub fn set(
    conditions: &mut Vec<Condition>,
    statement: Statement,
    generation: Option<i64>,
    now: Timestamp,
) -> bool {
    let Statement { about, state, reason, mut message } = statement;
    message.truncate(message.floor_char_boundary(LONGEST_MESSAGE));
    let mut said = Condition {
        last_transition_time: Time(now),
        message,
        observed_generation: generation,
        reason: reason.to_owned(),
        status: state.as_str().to_owned(),
        type_: about.to_owned(),
    };
    let Some(known) = conditions.iter_mut().find(|condition| condition.type_ == about) else {
        conditions.push(said);
        return true;
    };
    if known.status == said.status {
        said.last_transition_time = known.last_transition_time.clone();
    }
    let changed = *known != said;
    *known = said;
    changed
}

/// Whether the condition of type `about` is there and holds.
#[must_use]
pub fn holds(conditions: &[Condition], about: &str) -> bool {
    find(conditions, about).is_some_and(|condition| condition.status == State::True.as_str())
}

/// The condition of a type.
#[must_use]
pub fn find<'a>(conditions: &'a [Condition], about: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == about)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(state: State, message: &str) -> Statement {
        Statement { about: "Ready", state, reason: "Tested", message: message.to_owned() }
    }

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_time_moves_with_the_status_and_with_nothing_else() {
        let mut conditions = Vec::new();
        assert!(set(&mut conditions, ready(State::False, "one"), Some(1), second(1)));
        assert!(!set(&mut conditions, ready(State::False, "one"), Some(1), second(2)));
        assert!(set(&mut conditions, ready(State::False, "two"), Some(2), second(3)));
        assert_eq!(conditions[0].last_transition_time, Time(second(1)));
        assert!(set(&mut conditions, ready(State::True, "two"), Some(2), second(4)));
        assert_eq!(conditions[0].last_transition_time, Time(second(4)));
        assert_eq!(conditions.len(), 1);
        assert!(holds(&conditions, "Ready"));
        assert!(!holds(&conditions, "Progressing"));
    }

    #[test]
    fn conditions_of_others_stay_where_they_are() {
        let mut conditions = Vec::new();
        for about in ["Foreign", "Ready"] {
            let statement = Statement { about, ..ready(State::Unknown, "") };
            set(&mut conditions, statement, None, second(1));
        }
        set(&mut conditions, ready(State::True, ""), None, second(2));
        let types: Vec<_> = conditions.iter().map(|one| (one.type_.as_str(), one.status.as_str())).collect();
        assert_eq!(types, [("Foreign", "Unknown"), ("Ready", "True")]);
    }

    #[test]
    fn a_message_that_no_schema_would_take_is_cut_between_characters() {
        let mut conditions = Vec::new();
        set(&mut conditions, ready(State::True, &"é".repeat(LONGEST_MESSAGE)), None, second(1));
        assert_eq!(conditions[0].message.len(), LONGEST_MESSAGE);
    }
}
