use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Notify, mpsc};

use super::*;

fn patience() -> Patience {
    Patience {
        drain: Duration::from_secs(20),
        stop: Duration::from_secs(20),
        first_restart: Duration::from_millis(1),
        longest_restart: Duration::from_secs(5),
    }
}

/// What stands in for the process's signals: each message is one.
fn signals() -> (mpsc::UnboundedSender<()>, impl AsyncFnMut() -> &'static str) {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    (sender, async move || match receiver.recv().await {
        Some(()) => "test",
        None => pending().await,
    })
}

#[tokio::test]
async fn a_drained_task_ends_before_the_others_are_stopped() {
    let supervisor = Supervisor::new(patience());
    let (order, mut seen) = mpsc::unbounded_channel();
    let readiness = supervisor.readiness().clone();
    let first = order.clone();
    supervisor.drained("gate", |life| async move {
        life.ready().set();
        life.draining().await;
        assert!(!readiness.report().ready(), "not ready as soon as the drain begins");
        tokio::task::yield_now().await;
        first.send("drained")?;
        Ok(())
    });
    supervisor.critical("certificates", |life| async move {
        life.stopping().await;
        order.send("stopped")?;
        Ok(())
    });
    let (signal, asked) = signals();
    signal.send(()).unwrap();
    supervisor.run(asked).await.unwrap();
    assert_eq!(seen.recv().await, Some("drained"));
    assert_eq!(seen.recv().await, Some("stopped"));
}

#[tokio::test]
async fn the_unexpected_end_of_a_critical_task_ends_the_process_with_its_error() {
    let supervisor = Supervisor::new(patience());
    supervisor.critical("certificates", |_life| async { Err("the disk is gone".into()) });
    let (_signal, asked) = signals();
    let error = supervisor.run(asked).await.unwrap_err();
    assert_eq!(chain(&error), "task certificates ended unexpectedly: the disk is gone");
}

#[tokio::test]
async fn a_panic_in_a_critical_task_is_an_unexpected_end() {
    let supervisor = Supervisor::new(patience());
    supervisor.drained("gate", |_life| async { panic!("on purpose") });
    let (_signal, asked) = signals();
    let error = supervisor.run(asked).await.unwrap_err();
    assert_eq!(chain(&error), "task gate ended unexpectedly: it panicked");
}

#[tokio::test]
async fn a_restarted_task_fails_as_often_as_it_likes_and_the_process_stays_ready() {
    let supervisor = Supervisor::new(patience());
    let attempts = Arc::new(AtomicUsize::new(0));
    let enough = Arc::new(Notify::new());
    let (counted, told) = (Arc::clone(&attempts), Arc::clone(&enough));
    supervisor.restarted("controller", move |life| {
        let (counted, told) = (Arc::clone(&counted), Arc::clone(&told));
        async move {
            match counted.fetch_add(1, Ordering::SeqCst) {
                0 => Err("first".into()),
                1 => panic!("second"),
                _ => {
                    told.notify_one();
                    life.stopping().await;
                    Ok(())
                }
            }
        }
    });
    let readiness = supervisor.readiness().clone();
    let (signal, asked) = signals();
    let watched = async {
        enough.notified().await;
        assert!(readiness.report().ready());
        signal.send(()).unwrap();
    };
    let (ended, ()) = tokio::join!(supervisor.run(asked), watched);
    ended.unwrap();
    assert_eq!(attempts.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_second_signal_forces_the_end_of_a_drain() {
    let supervisor = Supervisor::new(patience());
    let (signal, asked) = signals();
    signal.send(()).unwrap();
    supervisor.drained("gate", move |life| async move {
        life.draining().await;
        signal.send(())?;
        pending().await
    });
    let readiness = supervisor.readiness().clone();
    assert!(matches!(supervisor.run(asked).await, Err(Error::Forced)));
    assert!(!readiness.report().ready());
}
