//! A task on a runtime of its own.
//!
//! Guarantees: the task has threads of its own, so that one that keeps them busy holds up no other part of the process;
//! a panic in it is an ending like another; when this has returned, nothing that the task started runs any more, but
//! for threads that stand still for longer than [`LIMIT`], which are left behind.
//! Never: ends the process. What does so by itself (a stack or a memory that is used up) takes all parts with it.

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tracing::warn;

use super::clock;
use super::tasks::{Ending, Panicked, blocking};

/// How long threads may take to end.
const LIMIT: Duration = Duration::from_secs(5);

/// Runs `task` on a new runtime with threads of that name, and ends the runtime with it. Dropping the future ends both,
/// and waits for nothing.
///
/// # Errors
/// What the task fails with, that it panicked, or that the system starts no threads.
pub async fn isolated(name: &'static str, task: impl Future<Output = Ending> + Send + 'static) -> Ending {
    let held = Held(Some(Builder::new_multi_thread().thread_name(name).enable_all().build()?));
    let Some(runtime) = &held.0 else { return Ok(()) };
    let ended = runtime.spawn(task).await;
    held.end(name).await;
    ended.unwrap_or_else(|_panicked| Err(Panicked.into()))
}

/// A runtime. Dropping it asks it to end: to wait for that is not allowed where tasks run.
struct Held(Option<Runtime>);

impl Held {
    /// Ends it, and waits until its threads have ended.
    async fn end(mut self, name: &'static str) {
        let Some(runtime) = self.0.take() else { return };
        let begun = clock::instant();
        // It is not done only where this process is going down.
        let _ended = blocking(move || runtime.shutdown_timeout(LIMIT)).await;
        if begun.elapsed() >= LIMIT {
            warn!(threads = name, limit = ?LIMIT, "threads stand still, and are left behind");
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::mpsc;
    use std::thread;

    use tokio::sync::oneshot;

    use super::super::Tasks;
    use super::*;

    /// Sends when it is dropped.
    struct Told(mpsc::Sender<()>);

    impl Drop for Told {
        fn drop(&mut self) {
            self.0.send(()).unwrap();
        }
    }

    #[tokio::test]
    async fn a_task_runs_on_threads_of_its_own() {
        let (named, name) = oneshot::channel();
        let task = async move {
            named.send(thread::current().name().map(str::to_owned)).unwrap();
            Ok(())
        };
        isolated("apart", task).await.unwrap();
        assert_eq!(name.await.unwrap().as_deref(), Some("apart"));
    }

    #[tokio::test]
    async fn a_panic_is_an_ending_and_nothing_of_the_task_runs_after_it() {
        let (dropped, seen) = mpsc::channel();
        let task = async move {
            let told = Told(dropped);
            Tasks::new().spawn(async move {
                let _told = told;
                pending::<()>().await;
            });
            panic!("on purpose")
        };
        assert_eq!(isolated("apart", task).await.unwrap_err().to_string(), "the work panicked");
        seen.try_recv().unwrap();
    }

    #[tokio::test]
    async fn a_task_that_fails_ends_with_its_error() {
        let task = async { Err("the disk is gone".into()) };
        assert_eq!(isolated("apart", task).await.unwrap_err().to_string(), "the disk is gone");
    }

    #[tokio::test]
    async fn threads_that_are_busy_hold_up_no_other() {
        // One thread runs this test: it would not go on if the task ran there.
        let (release, held) = mpsc::channel::<()>();
        let (begun, begins) = oneshot::channel();
        let task = async move {
            begun.send(()).unwrap();
            held.recv()?;
            Ok(())
        };
        let (ended, ()) = tokio::join!(isolated("apart", task), async {
            begins.await.unwrap();
            release.send(()).unwrap();
        });
        ended.unwrap();
    }

    #[tokio::test]
    async fn a_runtime_that_is_dropped_ends_its_task() {
        let (dropped, seen) = mpsc::channel();
        let (begun, begins) = oneshot::channel();
        let task = async move {
            let _told = Told(dropped);
            begun.send(()).unwrap();
            pending().await
        };
        tokio::select! {
            _never = isolated("apart", task) => unreachable!(),
            begun = begins => begun.unwrap(),
        }
        seen.recv_timeout(Duration::from_secs(30)).unwrap();
    }
}
