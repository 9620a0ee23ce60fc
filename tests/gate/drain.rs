//! A server that stops loses no request.

use gatehouse::runtime::readiness::Weight;
use gatehouse::server::{Health, Limits};

use crate::support::{Barrier, Gate, LIMIT, NEVER, echo, large, limits, within};
use crate::tls::{http2, post};

/// Drains that stay where they are announced.
fn announcing() -> Limits {
    Limits { drain_delay: NEVER, ..limits() }
}

#[tokio::test]
async fn while_the_drain_is_announced_all_goes_on_and_answers_say_close() {
    let mut gate = Gate::start(announcing(), echo);
    let mut before = gate.connect().await;
    assert!(!before.ask("/validate", "{}").await.says_close());
    gate.drain();
    gate.shows("gatehouse_draining 1").await;
    let answer = before.ask("/validate", "{}").await;
    assert_eq!(answer.status, 200);
    assert!(answer.says_close());
    before.closed().await;
    let mut after = gate.connect().await;
    assert!(after.ask("/convert", "{}").await.says_close());
    let (mut sender, _connection) = http2(&gate).await;
    let answer = within(sender.send_request(post(&gate, "/validate", "{}"))).await.unwrap();
    assert!(!answer.headers().contains_key("connection"), "HTTP/2 has no such header");
}

#[tokio::test]
async fn after_that_nothing_is_accepted_and_an_idle_connection_is_still_answered() {
    let mut gate = Gate::echo();
    let mut idle = gate.connect().await;
    idle.ask("/validate", "{}").await;
    let stays = gate.connect().await;
    gate.drain();
    gate.accepts_nothing().await;
    assert!(idle.ask("/validate", "{}").await.says_close());
    assert!(!gate.ended.is_finished());
    drop(stays);
    drop(idle);
    within(gate.ended).await.unwrap();
}

#[tokio::test]
async fn a_review_in_flight_is_answered() {
    let barrier = Barrier::default();
    let held = barrier.clone();
    let mut gate = Gate::start(limits(), move |endpoint, body| {
        held.pass();
        echo(endpoint, body)
    });
    let asked = tokio::spawn(gate.post("/convert").body(large()).send());
    gate.shows(r#"controller_runtime_webhook_requests_in_flight{webhook="/convert"} 1"#).await;
    gate.drain();
    gate.accepts_nothing().await;
    barrier.open();
    let answer = within(asked).await.unwrap().unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["connection"], "close");
    within(gate.ended).await.unwrap();
}

#[tokio::test]
async fn http2_gets_goaway_and_its_review_in_flight_is_answered() {
    let barrier = Barrier::default();
    let held = barrier.clone();
    let mut gate = Gate::start(limits(), move |endpoint, body| {
        held.pass();
        echo(endpoint, body)
    });
    let (mut sender, connection) = http2(&gate).await;
    let asked = tokio::spawn(sender.send_request(post(&gate, "/convert", &large())));
    gate.shows(r#"controller_runtime_webhook_requests_in_flight{webhook="/convert"} 1"#).await;
    gate.drain();
    gate.accepts_nothing().await;
    barrier.open();
    assert_eq!(within(asked).await.unwrap().unwrap().status(), 200);
    within(connection).await.unwrap().unwrap();
    within(gate.ended).await.unwrap();
}

#[tokio::test]
async fn at_the_deadline_idle_connections_are_closed() {
    let mut gate = Gate::start(Limits { drain_deadline: LIMIT, ..limits() }, echo);
    let (mut idle, mut other) = (gate.connect().await, gate.connect().await);
    idle.ask("/validate", "{}").await;
    other.ask("/validate", "{}").await;
    gate.drain();
    gate.accepts_nothing().await;
    assert_eq!(other.ask("/validate", "{}").await.status, 200, "the deadline has not come");
    idle.closed_at_the_limit().await;
    within(gate.ended).await.unwrap();
}

#[tokio::test]
async fn health_names_who_is_not_ready_and_is_not_ready_while_draining() {
    let mut gate = Gate::start(announcing(), echo);
    let ready = gate.readiness.register("certificate", Weight::Required);
    let address = ([127, 0, 0, 1], 0).into();
    let health = Health::bind(address, gate.readiness.clone(), gate.metrics.page().clone()).unwrap();
    let address = health.local_addr();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let ended = tokio::spawn(health.serve(async {
        let _ = stopped.await;
    }));
    let get = async |path: &str| {
        let response = reqwest::get(format!("http://{address}{path}")).await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    let (status, body) = get("/readyz").await;
    assert_eq!(status, 503);
    assert!(body.contains("[-]certificate not ready: not started"), "{body}");
    ready.set();
    assert_eq!(get("/readyz").await.0, 200);
    gate.drain();
    let (status, body) = get("/readyz").await;
    assert_eq!(status, 503);
    assert!(body.contains("[-]shutdown not ready: draining"), "{body}");
    assert_eq!(get("/livez").await, (200, "ok\n".to_owned()));
    assert!(get("/metrics").await.1.contains("gatehouse_draining"));
    assert_eq!(get("/validate").await.0, 404);
    stop.send(()).unwrap();
    within(ended).await.unwrap();
}
