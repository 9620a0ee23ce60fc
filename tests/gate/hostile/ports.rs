//! Neighbours that hold what the ports have: places, memory, connections, files.

use std::convert::Infallible;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use futures::future::join_all;
use http_body_util::StreamBody;
use http_body_util::combinators::BoxBody;
use hyper::Request;
use hyper::body::{Bytes, Frame};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kit::random::is_night;
use kit::wait::patient;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{Target, UID, admission, as_sent, cluster, refusal};
use crate::program::Served;
use crate::support::{read_answer, within};

/// What answers a head that announces `length` bytes and has these behind it.
async fn answer_to(target: &Target, length: usize, begin: &str) -> (u64, String, String) {
    let mut connection = target.connect().await;
    let head = format!(
        "POST /validate?timeout=30s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{begin}"
    );
    connection.send(&head).await;
    let answer = connection.answer().await;
    assert_eq!(answer.status, 200);
    refusal("/validate", &answer.body)
}

#[tokio::test]
async fn a_length_beyond_the_limit_is_answered_before_the_body_is_there() {
    let target = Target::start().await;
    let review = as_sent(&admission(&cluster(3)));
    let (code, message, uid) = answer_to(&target, 9 << 20, &review[..review.len() / 2]).await;
    assert_eq!((code, uid.as_str()), (413, UID), "{message}");
    let (code, message, _none) = answer_to(&target, 9 << 20, "").await;
    assert_eq!(code, 413, "{message}");
    target.is_sane().await;
}

#[tokio::test]
async fn a_body_without_an_end_is_answered_at_the_limit() {
    const LIMIT: usize = 8 << 20;
    let target = Target::start().await;
    let (mut reader, mut writer) = tokio::io::split(target.connect().await.0);
    let head = "POST /validate?timeout=30s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                transfer-encoding: chunked\r\n\r\n";
    writer.write_all(head.as_bytes()).await.unwrap();
    let review = as_sent(&admission(&cluster(3)));
    let begin = &review[..review.len() / 2];
    writer.write_all(format!("{:x}\r\n{begin}\r\n", begin.len()).as_bytes()).await.unwrap();
    let padding = format!("{:x}\r\n{}\r\n", 1 << 16, " ".repeat(1 << 16));
    // The last piece is what goes over the limit, and nothing follows it.
    for _ in 0..=LIMIT >> 16 {
        writer.write_all(padding.as_bytes()).await.unwrap();
    }
    writer.flush().await.unwrap();
    let answer = within(read_answer(&mut reader)).await;
    let (code, message, uid) = refusal("/validate", &answer.body);
    assert_eq!((code, uid.as_str()), (413, UID), "{message}");
    target.is_sane().await;
}

#[tokio::test]
async fn who_goes_on_writing_what_was_refused_gets_the_answer() {
    let target = Target::start().await;
    let (mut reader, mut writer) = tokio::io::split(target.connect().await.0);
    let length = 24 << 20;
    let head = format!(
        "POST /validate HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n"
    );
    writer.write_all(head.as_bytes()).await.unwrap();
    let all = tokio::spawn(async move {
        let piece = vec![b' '; 1 << 16];
        let mut written = 0;
        while written < length && writer.write_all(&piece).await.is_ok() {
            written += piece.len();
        }
        written
    });
    // Reads after all of it is written, as a simple client does.
    let written = within(all).await.unwrap();
    let answer = within(read_answer(&mut reader)).await;
    println!("{written} of {length} bytes were taken");
    assert_eq!(refusal("/validate", &answer.body).0, 413);
    target.is_sane().await;
}

pub type Stalled = BoxBody<Bytes, Infallible>;

/// A body that begins so, and then nothing.
pub fn begun(begin: &Bytes) -> Stalled {
    let first = futures::stream::iter([Ok(Frame::data(begin.clone()))]);
    let stream = futures::StreamExt::chain(first, futures::stream::pending());
    BoxBody::new(SyncBody(std::sync::Mutex::new(Box::pin(StreamBody::new(stream)))))
}

/// Streams need not be `Sync`, and boxed bodies are.
struct SyncBody<Inner>(std::sync::Mutex<std::pin::Pin<Box<Inner>>>);

impl<Inner> hyper::body::Body for SyncBody<Inner>
where
    Inner: hyper::body::Body<Data = Bytes, Error = Infallible>,
{
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.lock().unwrap().as_mut().poll_frame(context)
    }
}

async fn http2(target: &Target) -> SendRequest<Stalled> {
    let stream = target.served.authority.connect(target.served.gate.address, &["h2"]).await;
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

/// The sum of all samples whose line begins so.
pub async fn sum(target: &Target, line: &str) -> u64 {
    let page = target.served.metrics().await;
    let samples = page.lines().filter(|one| one.starts_with(line));
    samples.map(|one| one.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

/// Asks for sound reviews one after the other, half of them on new connections; how long each took.
async fn ask_soundly(target: &Target) -> Vec<Duration> {
    let review = as_sent(&admission(&cluster(3)));
    let mut times = Vec::new();
    for index in 0..if is_night() { 1000 } else { 200 } {
        let new = (index % 2 == 0).then(|| target.served.authority.client());
        let client = new.as_ref().unwrap_or(&target.client);
        let begun = Instant::now();
        let request = client.post(target.url("/validate")).header("content-type", "application/json");
        let answer = within(request.body(review.clone()).send()).await.unwrap();
        assert_eq!(answer.status(), 200, "one is turned away");
        assert!(answer.text().await.unwrap().contains(r#""allowed":true"#));
        times.push(begun.elapsed());
    }
    times.sort();
    times
}

#[tokio::test]
async fn good_reviews_are_answered_beside_a_thousand_stalled_sockets_and_bodies() {
    const STREAMS: usize = 25;
    let target = Target::start().await;
    let before = ask_soundly(&target).await;
    let memory = target.memory("VmRSS");
    let sockets = join_all((0..1000).map(|_| TcpStream::connect(target.served.gate.address))).await;
    assert!(sockets.iter().all(Result::is_ok));
    let (mut held, first) = (Vec::new(), Bytes::from_static(b"{"));
    for _ in 0..1100 / STREAMS {
        let mut sender = http2(&target).await;
        for _ in 0..STREAMS {
            let request = Request::post(format!("{}?timeout=30s", target.url("/validate")));
            let request =
                request.header("content-type", "application/json").header("content-length", "200000");
            held.push(tokio::spawn(sender.send_request(request.body(begun(&first)).unwrap())));
        }
    }
    within(async {
        let taken = async || {
            sum(&target, "controller_runtime_webhook_requests_in_flight").await
                + sum(&target, "gatehouse_requests_shed_total").await
        };
        while taken().await < 1100 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let during = ask_soundly(&target).await;
    let open = sum(&target, "gatehouse_connections_open").await;
    let most = target.memory("VmRSS");
    let [before, during] = [before, during].map(|times| {
        let ms = |index: usize| times[index].as_secs_f64() * 1000.0;
        (ms(times.len() / 2), ms(times.len() * 99 / 100))
    });
    println!(
        "figure: beside 1,000 sockets and 1,100 bodies: median {:.1} -> {:.1} ms, p99 {:.1} -> {:.1} ms, {:.1} times; \
         {open} connections are open then",
        before.0,
        during.0,
        before.1,
        during.1,
        during.1 / before.1
    );
    println!("memory: {} KiB before, {} KiB during", memory >> 10, most >> 10);
    assert_eq!(sum(&target, "gatehouse_requests_shed_total").await, 0);
    drop((sockets, held));
}

#[tokio::test]
async fn the_health_port_is_for_who_asks() {
    let target = Target::start().await;
    let address = target.served.gate.health;
    let mut idle = Vec::new();
    for _ in 0..300 {
        idle.push(TcpStream::connect(address).await.unwrap());
    }
    // The oldest gives way to the newer ones, at once.
    let mut nothing = Vec::new();
    let closed =
        tokio::time::timeout(patient(Duration::from_secs(30)), idle[0].read_to_end(&mut nothing)).await;
    assert!(closed.is_ok() && nothing.is_empty(), "it stays");
    assert_eq!(target.served.readiness().await.0, 200);
    // A head that never ends is cut.
    let mut slow = TcpStream::connect(address).await.unwrap();
    slow.write_all(b"GET /livez HTTP/1.1\r\nhost: a\r\n").await.unwrap();
    within(slow.read_to_end(&mut nothing)).await.unwrap();
    assert_eq!(target.served.readiness().await.0, 200);
}

/// The program with so few files.
fn limited(soft: usize, hard: usize) -> Served {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gatehouse");
    let mut script = std::fs::File::create(&path).unwrap();
    let program = kit::gatehouse!();
    writeln!(script, "#!/bin/sh\nulimit -Sn {soft}; ulimit -Hn {hard}; exec {} \"$@\"", program.display())
        .unwrap();
    script.set_permissions(std::fs::Permissions::from_mode(0o755)).unwrap();
    drop(script);
    Served::of_program(&path, &[])
}

#[tokio::test]
async fn the_limit_of_files_is_raised_and_connections_keep_below_it() {
    let served = limited(100, 400);
    served.ready().await;
    let target = Target { client: served.authority.client(), served };
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", target.served.gate.id().pid())).unwrap();
    let files: Vec<_> =
        limits.lines().find(|line| line.starts_with("Max open files")).unwrap().split_whitespace().collect();
    assert_eq!(files[3..5], ["400", "400"]);
    let mut sockets = Vec::new();
    for _ in 0..600 {
        sockets.push(TcpStream::connect(target.served.gate.address).await.unwrap());
    }
    // Those that have not asked for anything give way to one that does.
    target.is_sane().await;
    drop(sockets);
    // So do those that have asked and go on holding their places, whatever they asked for.
    for (path, status) in [("/", 404), ("/validate", 200)] {
        let mut held = Vec::new();
        for _ in 0..300 {
            let mut connection =
                tokio::time::timeout(patient(Duration::from_mins(1)), target.connect()).await.unwrap();
            assert_eq!(connection.ask(path, "{}").await.status, status);
            held.push(connection);
        }
        target.is_sane().await;
    }
    assert!(sum(&target, r#"gatehouse_connections_closed_total{reason="crowded"}"#).await >= 300);
    assert_eq!(target.served.readiness().await.0, 200);
    assert_eq!(sum(&target, "gatehouse_accept_failures_total").await, 0);
}
