//! The two points around an action, at which a build for tests can end the process or lose the answer.
//!
//! Guarantees: what an action has done is done when its second point is reached, also where its answer is lost there.
//! See [`crate::runtime::fail_point`].

use crate::runtime::fail_point;

/// The names of the points around one kind of action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FailPoints {
    /// Before it is sent.
    pub before: &'static str,
    /// After its answer.
    pub after: &'static str,
}

/// The points around the action of that name.
macro_rules! fail_points {
    ($name:expr) => {
        $crate::controllers::fail_points::FailPoints {
            before: concat!($name, ".before"),
            after: concat!($name, ".after"),
        }
    };
}

pub(crate) use fail_points;

impl FailPoints {
    /// What the action is called: in logs, in metrics, and in the names of its points.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.before.trim_end_matches(".before")
    }

    /// Does the action between its points. Where its answer is lost it has been done, and has failed with `lost`.
    ///
    /// # Errors
    /// What the action fails with, and `lost`.
    pub async fn around<Done, Failure>(
        self,
        action: impl Future<Output = Result<Done, Failure>>,
        lost: impl FnOnce() -> Failure,
    ) -> Result<Done, Failure> {
        // On the heap: a future that moves in takes its room twice otherwise.
        let action = Box::pin(action);
        fail_point::reached(self.before);
        let done = action.await?;
        fail_point::reached(self.after);
        if fail_point::loses(self.after) { Err(lost()) } else { Ok(done) }
    }
}
