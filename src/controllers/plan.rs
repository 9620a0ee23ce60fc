//! The decision of a reconciliation, in the form that all kinds share, and when to look again.

use std::time::Duration;

use jiff::Timestamp;

use super::action::RefusedWrite;
use super::api_write::Note;
use super::outcome::Outcome;

/// What to do, and what to say.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan<Action, Status, Detail> {
    /// To bring things about, in this order.
    pub actions: Vec<Action>,
    /// What the status says.
    pub status: Status,
    /// The events that go with the status.
    pub events: Vec<Note>,
    /// When to look again.
    pub wake: Wake,
    /// What the kind's own code needs of the decision beside.
    pub detail: Detail,
}

impl<Action, Status: Default, Detail: Default> Default for Plan<Action, Status, Detail> {
    fn default() -> Self {
        Self {
            actions: Vec::new(),
            status: Status::default(),
            events: Vec::new(),
            wake: Wake::default(),
            detail: Detail::default(),
        }
    }
}

/// When to look again. A pause shortens the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wake {
    /// When nothing was to be done.
    pub rest: Rest,
    /// Something has ended, which counts as work that is done.
    pub is_news: bool,
    /// The pause after work that is done.
    pub done: Option<Duration>,
    /// The pause after work that is not done.
    pub undone: Option<Duration>,
    /// The pause after work that the API server refused for good.
    pub refused: Option<Duration>,
}

impl From<Rest> for Wake {
    fn from(rest: Rest) -> Self {
        Self { rest, ..Self::default() }
    }
}

/// When to look again if nothing was to be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rest {
    /// Not until a user changes the object: nothing can be done.
    #[default]
    Never,
    /// At that time.
    At(Timestamp),
    /// At that time, and sooner at first.
    Retry(Timestamp),
    /// As the outcome says.
    In(Outcome),
}

impl Rest {
    /// The time, where there is one.
    #[must_use]
    pub const fn time(self) -> Option<Timestamp> {
        match self {
            Self::At(time) | Self::Retry(time) => Some(time),
            Self::Never | Self::In(_) => None,
        }
    }
}

/// The results of the actions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Whether something is otherwise now.
    pub is_changed: bool,
    /// Whether one of them was not carried out, or not surely.
    pub is_incomplete: bool,
    /// The first that the API server refused for good.
    pub refused: Option<RefusedWrite>,
}

impl Wake {
    /// How a reconciliation ends at `now`, and when the next one is due. `is_idle`: nothing was to be done.
    #[must_use]
    pub fn outcome(&self, is_idle: bool, progress: &Progress, now: Timestamp) -> Outcome {
        let until = |time: Timestamp| Duration::try_from(time.duration_since(now)).unwrap_or_default();
        let pause = match progress {
            Progress { refused: Some(_), .. } => self.refused,
            Progress { is_incomplete: true, .. } => self.undone,
            _ if !is_idle || self.is_news => self.done,
            _ => None,
        };
        match (self.rest, pause) {
            (Rest::Never, _) => Outcome::Invalid,
            (Rest::Retry(time), _) => Outcome::Refused(until(time)),
            (Rest::At(time), None) => Outcome::Done(until(time)),
            (Rest::At(time), Some(pause)) => Outcome::Waiting(until(time).min(pause)),
            (Rest::In(outcome), None) => outcome,
            (Rest::In(_), Some(pause)) => Outcome::Waiting(pause),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const MINUTE: Duration = Duration::from_mins(1);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Nothing to do, and work that is done, not done, and refused.
    fn courses() -> [(bool, Progress); 4] {
        let refused = RefusedWrite { action: "a".to_owned(), why: "quota".to_owned() };
        [
            (true, Progress::default()),
            (false, Progress { is_changed: true, ..Progress::default() }),
            (false, Progress { is_incomplete: true, ..Progress::default() }),
            (false, Progress { is_incomplete: true, refused: Some(refused), ..Progress::default() }),
        ]
    }

    fn outcomes(wake: Wake) -> [Outcome; 4] {
        courses().map(|(is_idle, progress)| wake.outcome(is_idle, &progress, at(100)))
    }

    #[test]
    fn a_pause_after_work_shortens_the_rest() {
        let wake = Wake { rest: Rest::At(at(160)), done: Some(SECOND), ..Wake::default() };
        let (done, waiting) = (Outcome::Done(MINUTE), Outcome::Waiting(SECOND));
        assert_eq!(outcomes(wake), [done, waiting, done, done]);
        assert_eq!(outcomes(Wake { is_news: true, ..wake }), [waiting, waiting, done, done]);
        let (undone, refused) = (Duration::from_secs(5), Duration::from_mins(2));
        let wake = Wake { undone: Some(undone), refused: Some(refused), ..wake };
        assert_eq!(outcomes(wake), [done, waiting, Outcome::Waiting(undone), Outcome::Waiting(MINUTE)]);
    }

    #[test]
    fn what_is_not_to_be_done_before_a_user_acts_has_no_next_time() {
        let wake =
            Wake { done: Some(SECOND), undone: Some(SECOND), refused: Some(SECOND), ..Wake::default() };
        assert_eq!(outcomes(wake), [Outcome::Invalid; 4]);
    }

    #[test]
    fn a_deletion_is_tried_again_whatever_was_done() {
        let wake = Wake { rest: Rest::Retry(at(160)), done: Some(SECOND), ..Wake::default() };
        assert_eq!(outcomes(wake), [Outcome::Refused(MINUTE); 4]);
        assert_eq!(
            outcomes(Wake { rest: Rest::Retry(at(1)), ..wake }),
            [Outcome::Refused(Duration::ZERO); 4]
        );
    }

    #[test]
    fn an_outcome_stands_unless_there_is_a_pause() {
        let rest = Outcome::Waiting(MINUTE);
        let wake = Wake { rest: Rest::In(rest), refused: Some(SECOND), ..Wake::default() };
        assert_eq!(outcomes(wake), [rest, rest, rest, Outcome::Waiting(SECOND)]);
    }
}
