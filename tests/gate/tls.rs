//! Handshakes, protocols and certificates.

use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::task::JoinHandle;

use crate::support::{Connection, Gate, within};

/// A client of HTTP/2, and the end of its connection.
pub async fn http2(gate: &Gate) -> (SendRequest<String>, JoinHandle<hyper::Result<()>>) {
    let stream = TokioIo::new(gate.handshake(&["h2", "http/1.1"]).await);
    let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    (sender, tokio::spawn(connection))
}

pub fn post(gate: &Gate, path: &str, body: &str) -> Request<String> {
    Request::post(gate.url(path)).header("content-type", "application/json").body(body.to_owned()).unwrap()
}

#[tokio::test]
async fn a_client_gets_the_best_protocol_that_it_offers() {
    let gate = Gate::echo();
    for (offered, chosen) in [
        (&["h2", "http/1.1"][..], Some("h2")),
        (&["http/1.1", "h2"], Some("h2")),
        (&["http/1.1"], Some("http/1.1")),
        (&[], None),
    ] {
        let stream = gate.handshake(offered).await;
        let protocol = stream.get_ref().1.alpn_protocol().map(|name| str::from_utf8(name).unwrap());
        assert_eq!(protocol, chosen, "{offered:?}");
    }
    let mut silent = Connection(gate.handshake(&[]).await);
    assert_eq!(silent.ask("/validate", "{}").await.status, 200);
}

#[tokio::test]
async fn http2_serves_many_reviews_at_once() {
    let gate = Gate::echo();
    let (mut sender, _connection) = http2(&gate).await;
    let mut answers: Vec<Response<Incoming>> = Vec::new();
    let asked: Vec<_> = (0..100).map(|_| sender.send_request(post(&gate, "/validate", "{}"))).collect();
    for answer in asked {
        answers.push(within(answer).await.unwrap());
    }
    assert!(answers.iter().all(|one| one.status() == 200 && one.version() == Version::HTTP_2));
    gate.shows("gatehouse_connections_total 1").await;
}

#[tokio::test]
async fn a_new_certificate_is_seen_by_the_next_handshake_and_the_old_connection_works_on() {
    let gate = Gate::echo();
    let shown = |stream: &Connection| stream.0.get_ref().1.peer_certificates().unwrap().to_vec();
    let mut before = gate.connect().await;
    let old = shown(&before);
    let leaf = gate.authority.leaf();
    let new = leaf.chain.clone();
    gate.certificate.swap(leaf.chain, leaf.key).unwrap();
    let mut after = gate.connect().await;
    assert_ne!(old, new);
    assert_eq!(shown(&after), new);
    assert_eq!(shown(&before), old);
    assert_eq!(before.ask("/validate", "{}").await.status, 200);
    assert_eq!(after.ask("/validate", "{}").await.status, 200);
}

#[tokio::test]
async fn a_client_that_distrusts_the_certificate_is_counted_and_does_no_harm() {
    let gate = Gate::echo();
    let stranger = crate::support::Authority::new();
    let failed = stranger.client().post(gate.url("/validate")).body("{}").send().await;
    assert!(failed.is_err());
    gate.shows(r#"gatehouse_handshake_failures_total{reason="tls"} 1"#).await;
    assert_eq!(gate.post("/validate").body("{}").send().await.unwrap().status(), 200);
    gate.shows("gatehouse_connections_total 2").await;
}

#[tokio::test]
async fn no_ticket_is_sent_since_no_client_resumes() {
    let gate = Gate::echo();
    let mut connection = gate.connect().await;
    connection.ask("/validate", "{}").await;
    assert_eq!(connection.0.get_ref().1.tls13_tickets_received(), 0);
}
