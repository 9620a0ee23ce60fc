//! Who is cut off, and above all who is not. No limit is waited for: the test has it pass.

use std::time::Duration;

use futures::future::join_all;
use gatehouse::review::{Answer, Endpoint, Report};
use gatehouse::server::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::support::{
    Barrier, Connection, Gate, LIMIT, echo, large, limits, passes, read_answer, request, within,
};

#[tokio::test]
async fn an_idle_connection_outlives_the_limit_of_the_first_header() {
    let gate = Gate::start(Limits { first_header: LIMIT, ..limits() }, echo);
    let mut used = gate.connect().await;
    used.ask("/validate", "{}").await;
    // One that never asks is cut after the limit, and by then the other has been idle for as long.
    gate.connect().await.closed_at_the_limit().await;
    assert_eq!(used.ask("/validate", "{}").await.status, 200);
    gate.shows(r#"gatehouse_connections_closed_total{reason="first_header"} 1"#).await;
}

#[tokio::test]
async fn a_first_header_that_comes_too_slowly_is_cut() {
    let gate = Gate::start(Limits { first_header: LIMIT, close: LIMIT, ..limits() }, echo);
    let mut slow = gate.connect().await;
    slow.send("POST /validate HTTP/1.1\r\nhost: a\r\n").await;
    slow.closed_at_the_limit().await;
}

#[tokio::test]
async fn a_connection_idle_for_too_long_is_closed_and_not_before() {
    let gate = Gate::start(Limits { idle: LIMIT, ..limits() }, echo);
    let mut idle = gate.connect().await;
    assert_eq!(idle.ask("/validate", "{}").await.status, 200);
    passes(LIMIT / 2).await;
    assert_eq!(idle.ask("/validate", "{}").await.status, 200);
    idle.closed_at_the_limit().await;
    gate.shows(r#"gatehouse_connections_closed_total{reason="idle"} 1"#).await;
    gate.shows("gatehouse_connections_open 0").await;
}

#[tokio::test]
async fn the_default_outlasts_the_connections_that_the_api_server_keeps() {
    assert!(Limits::default().idle >= Duration::from_mins(2));
}

#[tokio::test]
async fn a_slow_handshake_holds_up_no_other_and_is_cut() {
    let gate = Gate::start(Limits { handshake: LIMIT, ..limits() }, echo);
    let mut mute = TcpStream::connect(gate.address).await.unwrap();
    gate.shows("gatehouse_connections_open 1").await;
    assert_eq!(gate.post("/validate").body("{}").send().await.unwrap().status(), 200);
    passes(LIMIT).await;
    let mut nothing = Vec::new();
    // A reset is an end too.
    let _ = within(mute.read_to_end(&mut nothing)).await;
    assert!(nothing.is_empty());
    gate.shows(r#"gatehouse_handshake_failures_total{reason="timeout"} 1"#).await;
}

#[tokio::test]
async fn over_the_number_of_connections_the_next_waits_while_all_are_busy() {
    let barrier = Barrier::default();
    let held = barrier.clone();
    let gate = Gate::start(Limits { connections: 1, ..limits() }, move |endpoint, body| {
        held.pass();
        echo(endpoint, body)
    });
    let mut first = gate.connect().await;
    first.send(&request("/validate", &large())).await;
    barrier.reached().await;
    let next = TcpStream::connect(gate.address).await.unwrap();
    gate.shows("gatehouse_connections_total 2").await;
    gate.shows("gatehouse_connections_open 1").await;
    barrier.open();
    assert_eq!(first.answer().await.status, 200);
    // The first is idle now, and holds all places.
    let mut next = Connection(gate.authority.secure(next, &["http/1.1"]).await);
    assert_eq!(next.ask("/validate", "{}").await.status, 200);
    gate.shows(r#"gatehouse_connections_closed_total{reason="crowded"} 1"#).await;
}

/// Begins a review of so many bytes, and sends one of them.
async fn begun(
    gate: &Gate,
    length: usize,
) -> (ReadHalf<TlsStream<TcpStream>>, WriteHalf<TlsStream<TcpStream>>) {
    let (reader, mut writer) = tokio::io::split(gate.connect().await.0);
    let head = format!(
        "POST /validate HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{{"
    );
    writer.write_all(head.as_bytes()).await.unwrap();
    writer.flush().await.unwrap();
    (reader, writer)
}

#[tokio::test]
async fn a_connection_that_owes_a_body_gives_its_place_to_the_next() {
    let gate = Gate::start(Limits { connections: 1, ..limits() }, echo);
    let (mut reader, mut writer) = begun(&gate, 100).await;
    gate.shows(r#"controller_runtime_webhook_requests_in_flight{webhook="/validate"} 1"#).await;
    let mut next = gate.connect().await;
    assert_eq!(next.ask("/validate", "{}").await.status, 200);
    gate.shows(r#"gatehouse_connections_closed_total{reason="crowded"} 1"#).await;
    // It was cut, and not answered as too late.
    let mut answer = Vec::new();
    let _ = within(reader.read_to_end(&mut answer)).await;
    assert_eq!(answer, [0_u8; 0]);
    let _ = writer.shutdown().await;
}

#[tokio::test]
async fn a_body_that_gives_way_is_taken_to_its_end_so_that_its_client_reads_why() {
    // More than the buffers of the system hold.
    const LENGTH: usize = 7 << 20;
    let gate = Gate::start(Limits { unread_bodies: 1, ..limits() }, echo);
    let (mut reader, mut writer) = begun(&gate, LENGTH).await;
    gate.shows(r#"controller_runtime_webhook_requests_in_flight{webhook="/validate"} 1"#).await;
    let _next = begun(&gate, 100).await;
    gate.shows("gatehouse_requests_shed_total 1").await;
    within(writer.write_all(&vec![b' '; LENGTH - 1])).await.unwrap();
    within(writer.flush()).await.unwrap();
    assert_eq!(within(read_answer(&mut reader)).await.status, 503);
}

#[tokio::test]
async fn a_burst_of_more_than_the_ration_is_taken_one_after_the_other() {
    const LENGTH: usize = 512 << 10;
    let gate = Gate::start(Limits { bodies: 2 * LENGTH, ..limits() }, echo);
    let body = " ".repeat(LENGTH);
    let burst = (0..12).map(|_| gate.post("/validate").body(body.clone()).send());
    for answer in within(join_all(burst)).await {
        assert_eq!(answer.unwrap().status(), 200, "one is turned away");
    }
    gate.shows("gatehouse_requests_shed_total 0").await;
}

/// An answer that no buffer of the system takes whole.
const LARGE_ANSWER: usize = 32 << 20;

fn answers_at_large(_endpoint: Endpoint, _body: &[u8]) -> Answer {
    let body = format!("\"{}\"", "x".repeat(LARGE_ANSWER)).into_bytes();
    Answer { body, report: Report { code: 200, ..Report::default() } }
}

/// A connection that asks and does not read.
async fn deaf(gate: &Gate) -> Connection {
    let mut deaf = gate.connect().await;
    deaf.send(&request("/validate", "{}")).await;
    gate.shows(r#"controller_runtime_webhook_requests_total{webhook="/validate",code="200"} 1"#).await;
    deaf
}

#[tokio::test]
async fn an_unread_answer_gives_way_to_the_next() {
    let gate = Gate::start(Limits { bodies: LARGE_ANSWER * 3 / 2, ..limits() }, answers_at_large);
    let _deaf = deaf(&gate).await;
    let answer = within(gate.post("/validate").body("{}").send()).await.unwrap();
    assert_eq!(within(answer.bytes()).await.unwrap().len(), LARGE_ANSWER + 2);
    gate.shows(r#"gatehouse_connections_closed_total{reason="crowded"} 1"#).await;
    // There is room for one that no other connection needs.
    let answer = within(gate.post("/validate").body("{}").send()).await.unwrap();
    assert_eq!(within(answer.bytes()).await.unwrap().len(), LARGE_ANSWER + 2);
    gate.shows(r#"gatehouse_connections_closed_total{reason="crowded"} 1"#).await;
}

#[tokio::test]
async fn an_unread_answer_ends_its_connection_at_the_limit() {
    let gate = Gate::start(Limits { answer: LIMIT, ..limits() }, answers_at_large);
    let _deaf = deaf(&gate).await;
    let is_cut = || {
        let page = gate.metrics.page().text().unwrap();
        page.contains(r#"gatehouse_connections_closed_total{reason="unread"} 1"#)
    };
    // More than once: it counts from when the answer was made, which may be later than it shows here.
    for _ in 0..1000 {
        passes(LIMIT).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
        if is_cut() {
            return;
        }
    }
    panic!("it stays open");
}
