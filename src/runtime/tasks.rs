//! Many short tasks of one owner, such as one for each connection.

use std::error::Error as StdError;
use std::fmt;
use std::future::pending;
use std::panic::resume_unwind;

use tokio::task::{JoinError, JoinSet};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use tracing::Instrument as _;

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

    /// Runs `task` beside the others and beside its owner, on any thread, for as long as what is returned is kept, which
    /// resolves to what `task` does. A panic in it is one in its owner.
    pub fn run<Task>(&self, task: Task) -> impl Future<Output = Task::Output> + Send + use<Task>
    where
        Task: Future<Output: Send> + Send + 'static,
    {
        let running = AbortOnDropHandle::new(self.0.spawn(task.in_current_span()));
        async move {
            match running.await.map_err(JoinError::try_into_panic) {
                Ok(output) => output,
                Err(Ok(panic)) => resume_unwind(panic),
                // The runtime is going down, and the owner with it.
                Err(Err(_cancelled)) => pending().await,
            }
        }
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

/// The message of a panic, as far as it is known at compile time: a formatted message may hold what a user wrote.
pub(crate) struct PanicMessage<'a>(pub(crate) &'a (dyn std::any::Any + Send));

impl fmt::Display for PanicMessage<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.downcast_ref::<&'static str>().copied().unwrap_or("message withheld"))
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use futures::future;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_task_runs_beside_its_owner_and_tells_what_came_of_it() {
        let tasks = Tasks::new();
        let (release, released) = oneshot::channel();
        let (begun, begins) = oneshot::channel();
        let running = tasks.run(async move {
            begun.send(()).unwrap();
            released.await.unwrap()
        });
        // The returned future is not polled.
        begins.await.unwrap();
        release.send(7).unwrap();
        assert_eq!(running.await, 7);
        tasks.ended().await;
    }

    #[tokio::test]
    async fn a_task_whose_owner_is_gone_is_cancelled_and_its_end_is_waited_for() {
        let tasks = Tasks::new();
        let (held, dropped) = oneshot::channel::<()>();
        let running = tasks.run(async move {
            let _held = held;
            pending::<()>().await;
        });
        assert_eq!(tasks.len(), 1);
        drop(running);
        tasks.ended().await;
        assert!(dropped.await.is_err());
    }

    #[tokio::test]
    async fn a_panic_is_its_owners() {
        let running = Tasks::new().run(future::lazy(|_| -> () { panic!("on purpose") }));
        let panic = std::panic::AssertUnwindSafe(running).catch_unwind().await.unwrap_err();
        assert_eq!(PanicMessage(&*panic).to_string(), "on purpose");
    }
}
