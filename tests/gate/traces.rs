//! The spans of reviews that a collector gets.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, Uri};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::program::Served;
use crate::support::within;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

/// One field of a protobuf message: its number, and what it holds.
#[derive(Clone, Debug, PartialEq)]
enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

/// The fields of a message, as its encoding has them, whatever the message is.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Field)> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let field = match tag & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => Field::Number(u64::from_le_bytes(take(&mut bytes, 8).try_into().unwrap())),
            2 => {
                let length = usize::try_from(varint(&mut bytes)).unwrap();
                Field::Bytes(take(&mut bytes, length).to_owned())
            }
            5 => Field::Number(u32::from_le_bytes(take(&mut bytes, 4).try_into().unwrap()).into()),
            other => panic!("no wire type {other}"),
        };
        all.push((tag >> 3, field));
    }
    all
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(length);
    *bytes = rest;
    taken
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)[0];
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    number
}

/// The messages below these fields, one for each level.
fn below(message: &[u8], path: &[u64]) -> Vec<Vec<u8>> {
    let Some((number, rest)) = path.split_first() else { return vec![message.to_owned()] };
    let inner = fields(message).into_iter().filter(|(one, _)| one == number);
    inner
        .flat_map(|(_, field)| match field {
            Field::Bytes(inner) => below(&inner, rest),
            Field::Number(_) => panic!("{number} is no message"),
        })
        .collect()
}

fn text(message: &[u8], path: &[u64]) -> String {
    String::from_utf8(below(message, path).concat()).unwrap()
}

fn number(message: &[u8], number: u64) -> u64 {
    let found = fields(message).into_iter().find(|(one, _)| *one == number);
    match found {
        Some((_, Field::Number(value))) => value,
        other => panic!("{number}: {other:?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    let number = bytes.iter().fold(0, |number: u128, byte| number << 8 | u128::from(*byte));
    format!("{number:0width$x}", width = 2 * bytes.len())
}

/// The keys and values of attributes in field `number`; numbers as text.
fn attributes(message: &[u8], field: u64) -> Vec<(String, String)> {
    let one = |attribute: Vec<u8>| {
        let value = below(&attribute, &[2]).concat();
        let value = match fields(&value).pop() {
            Some((_, Field::Bytes(text))) => String::from_utf8(text).unwrap(),
            Some((_, Field::Number(number))) => number.to_string(),
            None => String::new(),
        };
        (text(&attribute, &[1]), value)
    };
    below(message, &[field]).into_iter().map(one).collect()
}

/// Takes what is posted to it, as a collector does.
struct Collector {
    address: SocketAddr,
    posted: mpsc::UnboundedReceiver<(Uri, HeaderMap, Bytes)>,
}

impl Collector {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (post, posted) = mpsc::unbounded_channel();
        let take = async move |uri: Uri, headers: HeaderMap, body: Bytes| {
            post.send((uri, headers, body)).unwrap();
            // An empty message: all was taken.
            StatusCode::OK
        };
        let router = Router::new().fallback(take);
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, posted }
    }

    /// The next request.
    async fn request(&mut self) -> Vec<u8> {
        let (uri, headers, body) = within(self.posted.recv()).await.unwrap();
        assert_eq!(uri.path(), "/v1/traces");
        assert_eq!(headers["content-type"], "application/x-protobuf");
        body.into()
    }
}

/// A review that is refused, of that caller.
async fn review(gate: &Served, traceparent: &str) {
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u-1", "operation": "CREATE", "name": "a", "namespace": "b", "dryRun": true,
        "kind": {"group": "gatehouse.dev", "version": "v1", "kind": "TDSet"}, "userInfo": {"username": "nobodys-business"},
        "object": {"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": "a"},
            "spec": {"replicas": "secret"}}}});
    let request = gate.authority.client().post(gate.url("/validate/tdsets"));
    let request = request.header("content-type", "application/json").header("traceparent", traceparent);
    let answer = within(request.body(review.to_string()).send()).await.unwrap();
    assert_eq!(answer.status(), 200);
}

#[tokio::test]
async fn a_collector_gets_a_review_as_its_callers_child() {
    let mut collector = Collector::start().await;
    let to = format!("http://{}", collector.address);
    let gate = Served::start(&["--otlp-endpoint", &to, "--drain-delay", "0s"]);
    gate.ready().await;
    // Its caller does not record this one.
    review(&gate, "00-00000000000000000000000000000001-0000000000000001-00").await;
    review(&gate, &format!("00-{TRACE}-{SPAN}-01")).await;
    let request = collector.request().await;
    let resource = attributes(&below(&request, &[1, 1]).concat(), 1);
    assert!(resource.contains(&("service.name".to_owned(), "gatehouse".to_owned())), "{resource:?}");
    assert_eq!(text(&request, &[1, 2, 1, 1]), "gatehouse", "the scope");
    let spans = below(&request, &[1, 2, 2]);
    assert_eq!(spans.len(), 1);
    let span = &spans[0];
    assert_eq!(hex(&below(span, &[1]).concat()), TRACE);
    assert_eq!(hex(&below(span, &[4]).concat()), SPAN, "the parent");
    let own = below(span, &[2]).concat();
    assert!(own.len() == 8 && hex(&own) != SPAN, "{own:?}");
    assert_eq!((text(span, &[5]).as_str(), number(span, 6)), ("/validate/tdsets", 2));
    assert!(number(span, 7) > 0 && number(span, 7) <= number(span, 8), "it ends after it began");
    let told = attributes(span, 9);
    for (key, value) in [
        ("http.response.status_code", "200"),
        ("gatehouse.uid", "u-1"),
        ("gatehouse.kind", "TDSet"),
        ("gatehouse.operation", "CREATE"),
        ("gatehouse.object", "b/a"),
        ("gatehouse.dry_run", "1"),
        ("gatehouse.code", "422"),
    ] {
        assert!(told.contains(&(key.to_owned(), value.to_owned())), "{key} {value}: {told:?}");
    }
    let all = String::from_utf8_lossy(&request);
    assert!(!all.contains("secret") && !all.contains("nobodys-business"), "{all}");
    // The last spans are sent before the end.
    review(&gate, &format!("00-{TRACE}-{SPAN}-01")).await;
    gate.gate.terminate();
    assert_eq!(gate.end().await, Some(0));
    assert_eq!(below(&collector.request().await, &[1, 2, 2]).len(), 1);
}

#[tokio::test]
async fn without_a_collector_reviews_are_answered_and_spans_are_counted() {
    // Nothing listens there any more.
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let gate = Served::start(&["--otlp-endpoint", &format!("http://{gone}"), "--drain-delay", "0s"]);
    gate.ready().await;
    review(&gate, &format!("00-{TRACE}-{SPAN}-01")).await;
    within(async {
        while !gate.metrics().await.lines().any(|line| line == "gatehouse_spans_dropped_total 1") {}
    })
    .await;
    gate.gate.logs("the collector takes no spans, they are dropped");
    review(&gate, &format!("00-{TRACE}-{SPAN}-01")).await;
    gate.gate.terminate();
    assert_eq!(gate.end().await, Some(0));
}

#[tokio::test]
async fn a_standard_variable_that_says_nothing_costs_the_spans_alone() {
    let gate = Served::start(&["--otlp-endpoint", "OTEL_EXPORTER_OTLP_ENDPOINT", "--drain-delay", "0s"]);
    gate.ready().await;
    gate.gate.logs("spans are not exported");
    review(&gate, &format!("00-{TRACE}-{SPAN}-01")).await;
    gate.gate.terminate();
    assert_eq!(gate.end().await, Some(0));
}
