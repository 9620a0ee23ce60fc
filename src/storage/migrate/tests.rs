//! How often an API server is asked that cannot be reached, or has no time.

use std::cell::Cell;

use kube::Config;

use super::*;

/// More often than anything is tried that is given up.
const UNABLE: u32 = TRIES + 3;

fn refused(code: u16) -> Answer<()> {
    let status = kube::core::Status { code, ..kube::core::Status::default() };
    Answer::Refused(Box::new(status), (code == 429).then_some(Duration::from_secs(1)))
}

/// How often it is asked, and whether it answers at last, where it fails like that so many times. Time passes at once.
async fn asked(patience: Patience, stops: bool, failure: fn(u32) -> Answer<()>) -> (u32, bool) {
    // It is not asked itself.
    let requests = Requests::new(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
    let (goal, options, stop) = (Goal::default(), Options::default(), CancellationToken::new());
    if stops {
        stop.cancel();
    }
    let migration = Migration { requests: &requests, goal, options, stop, watch: &Silent };
    let asked = Cell::new(0);
    let ask = || {
        let nth = asked.get() + 1;
        asked.set(nth);
        std::future::ready(if nth > UNABLE { Answer::Done(()) } else { failure(nth) })
    };
    let answer = migration.insist(patience, ask).await;
    (asked.get(), matches!(answer, Answer::Done(())))
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_cannot_answer_now_is_waited_for_once_a_migration_has_begun() {
    let unreached: fn(u32) -> Answer<()> = |_| Answer::Unreached("connection refused".to_owned());
    // Now and then it fails besides.
    let no_time: fn(u32) -> Answer<()> =
        |nth| if nth.is_multiple_of(4) { refused(500) } else { refused(429) };
    for failure in [unreached, no_time] {
        assert_eq!(asked(Patience::Short, false, failure).await, (TRIES, false), "nothing is begun");
        assert_eq!(asked(Patience::Unbounded, false, failure).await, (UNABLE + 1, true));
        assert_eq!(asked(Patience::Unbounded, true, failure).await, (1, false), "it is to end");
    }
    let fails = |_| refused(500);
    assert_eq!(
        asked(Patience::Unbounded, false, fails).await,
        (TRIES, false),
        "that is not about the moment"
    );
    let missing = |_| refused(404);
    assert_eq!(asked(Patience::Unbounded, false, missing).await, (1, false));
}
