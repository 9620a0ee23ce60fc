//! Many short tasks of one owner, such as one for each connection.

use std::error::Error as StdError;
use std::fmt;

use tokio::task::{JoinError, JoinSet};
use tokio_util::task::TaskTracker;

/// What a task may fail with.
pub type Failure = Box<dyn StdError + Send + Sync>;

/// How a task ended.
pub type Ending = Result<(), Failure>;

/// A group of tasks that its owner can wait for.
#[derive(Clone, Debug, Default)]
pub struct Tasks(TaskTracker);

impl Tasks {
    /// An empty group.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs `task` beside the others. A panic in it ends that task alone.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(task);
    }

    /// How many have not ended.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True when all have ended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Waits until all have ended. What is spawned meanwhile is waited for too.
    pub async fn ended(&self) {
        self.0.close();
        self.0.wait().await;
    }
}

/// One task that is cancelled when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Cancellable(JoinSet<Ending>);

impl Cancellable {
    /// Runs `task` beside its owner.
    pub(crate) fn spawn(task: impl Future<Output = Ending> + Send + 'static) -> Self {
        let mut set = JoinSet::new();
        set.spawn(task);
        Self(set)
    }

    /// Waits until it has ended; a panic in it is an ending like another.
    ///
    /// # Errors
    /// What it failed with.
    pub(crate) async fn ended(&mut self) -> Ending {
        let ended = self.0.join_next().await.unwrap_or(Ok(Ok(())));
        ended.unwrap_or_else(|_: JoinError| Err(Panicked.into()))
    }

    /// Ends it where it stands, and waits until nothing of it runs any more.
    pub(crate) async fn cancel(mut self) {
        self.0.shutdown().await;
    }
}

/// `work` panicked.
#[derive(Debug, thiserror::Error)]
#[error("the work panicked")]
pub struct Panicked;

/// Runs `work`, which keeps a processor busy for long, where it holds up no connection.
///
/// # Errors
/// [`Panicked`], when it did, and when the runtime is going down.
pub async fn blocking<Output>(work: impl FnOnce() -> Output + Send + 'static) -> Result<Output, Panicked>
where
    Output: Send + 'static,
{
    tokio::task::spawn_blocking(work).await.map_err(|_: JoinError| Panicked)
}

/// What a panic said, as far as it is known at compile time: a formatted message may hold what a user wrote.
pub(crate) struct PanicMessage<'a>(pub(crate) &'a (dyn std::any::Any + Send));

impl fmt::Display for PanicMessage<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.downcast_ref::<&'static str>().copied().unwrap_or("message withheld"))
    }
}
