//! What clients can have the process keep beside the ration of bodies and answers.

use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use gatehouse::server::Limits;
use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::ports::{Stalled, begun, sum};
use super::{Target, cluster, conversion};
use crate::support::within;

/// A connection over HTTP/2 on which the server may send the heads of answers and nothing of their bodies.
async fn deaf(target: &Target) -> SendRequest<Stalled> {
    let stream = target.served.authority.connect(target.served.gate.address, &["h2"]).await;
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(0);
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn post(target: &Target, path: &str, length: usize, body: Stalled) -> Request<Stalled> {
    let request = Request::post(format!("{}?timeout=30s", target.url(path)));
    let request = request.header("content-type", "application/json").header("content-length", length);
    request.body(body).unwrap()
}

/// The bytes that the process has taken at most since `work` began, beside what it had before.
async fn taken<Output>(target: &Target, work: impl Future<Output = Output>) -> (u64, Output) {
    target.is_sane().await;
    target.forget_the_most();
    let before = target.memory("VmRSS");
    let output = work.await;
    (target.memory("VmHWM").saturating_sub(before), output)
}

#[tokio::test]
async fn small_unread_answers_count_over_http2() {
    const CONNECTIONS: usize = 45;
    const STREAMS: usize = 100;
    let target = Target::start().await;
    let mut object = cluster(3);
    object["metadata"]["annotations"] = serde_json::json!({"a": "x".repeat(14_000)});
    let review = Bytes::from(conversion(&[object], "v1alpha1").to_string());
    let limits = Limits::default();
    assert!(review.len() < limits.inline);
    assert!(CONNECTIONS * STREAMS > limits.unread_bodies, "all of them are not too many");
    let (taken, held) = taken(&target, async {
        let mut held = Vec::new();
        for _ in 0..CONNECTIONS {
            let mut sender = deaf(&target).await;
            let send = |_| {
                sender.send_request(post(
                    &target,
                    "/convert",
                    review.len(),
                    BoxBody::new(Full::new(review.clone())),
                ))
            };
            let answers: Vec<_> = (0..STREAMS).map(send).collect();
            held.extend(within(join_all(answers)).await);
        }
        held
    })
    .await;
    let answers = held.iter().filter(|answer| answer.is_ok()).count();
    let cut = sum(&target, "gatehouse_connections_closed_total").await;
    println!("figure: {answers} unread answers: {} MiB, {cut} connections cut", taken >> 20);
    assert!(answers > CONNECTIONS * STREAMS / 2, "{:?}", held.iter().find(|answer| answer.is_err()));
    assert!(sum(&target, r#"gatehouse_connections_closed_total{reason="crowded"}"#).await > 0);
    target.is_sane().await;
}

#[tokio::test]
async fn bodies_over_http2_wait_for_their_room_at_their_clients() {
    const CONNECTIONS: usize = 300;
    const MOST: u64 = 160 << 20;
    let target = Target::start().await;
    let begin = Bytes::from(vec![b' '; 1 << 20]);
    let (taken, _held) = taken(&target, async {
        let mut held = Vec::new();
        let mut answers = FuturesUnordered::new();
        for _ in 0..CONNECTIONS {
            let stream = target.served.authority.connect(target.served.gate.address, &["h2"]).await;
            let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
            let (mut sender, connection) = handshake.await.unwrap();
            tokio::spawn(connection);
            answers.push(sender.send_request(post(&target, "/convert", 32 << 20, begun(&begin))));
            held.push(sender);
        }
        // The first that are turned away have waited for room, and all others with them.
        for _ in 0..CONNECTIONS / 2 {
            assert_eq!(within(answers.next()).await.unwrap().unwrap().status(), 503);
        }
        held
    })
    .await;
    println!("figure: {CONNECTIONS} bodies of which 1 MiB was sent: {} MiB", taken >> 20);
    assert!(taken < MOST, "{} MiB", taken >> 20);
    target.is_sane().await;
}

#[tokio::test]
async fn heads_that_do_not_end_leave_room_for_reviews() {
    const CONNECTIONS: usize = 200;
    // Beside the ration and what is judged, in the 512Mi of the container.
    const MOST: usize = 160 << 20;
    let target = Target::start().await;
    for length in [15_000, 60_000] {
        let (taken, held) = taken(&target, async {
            let mut held = Vec::new();
            for _ in 0..CONNECTIONS {
                let mut connection = target.connect().await;
                assert_eq!(connection.ask("/", "").await.status, 404);
                connection.send("POST /validate HTTP/1.1\r\nhost: a\r\nx: ").await;
                // One that has been answered meanwhile may have been closed.
                let _ = connection.0.write_all(&vec![b'x'; length]).await;
                let _ = connection.0.flush().await;
                held.push(connection);
            }
            held
        })
        .await;
        let most = usize::try_from(taken).unwrap() / CONNECTIONS * Limits::default().connections;
        println!(
            "figure: {CONNECTIONS} heads of {length} bytes: {} KiB; all that may be: {} MiB",
            taken >> 10,
            most >> 20
        );
        assert!(most < MOST, "{} MiB", most >> 20);
        for mut connection in held {
            if length < 16_000 {
                connection.send("\r\ncontent-length: 0\r\n\r\n").await;
            }
            let mut answer = [0; 12];
            within(connection.0.read_exact(&mut answer)).await.unwrap();
            let expected: &[u8] = if length < 16_000 { b"HTTP/1.1 200" } else { b"HTTP/1.1 431" };
            assert_eq!(answer, expected);
        }
    }
    target.is_sane().await;
}
