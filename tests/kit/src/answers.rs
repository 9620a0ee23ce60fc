//! Answers that are not what the API server said: a proxy between an operator and its API server.
//!
//! Guarantees: each kind of request, which is a verb and a resource, fails in each way once; a real API server
//! stands behind it, and what it was asked for and has done is done. The elections of the operator pass unchanged.
//! Assumes: a watch is read only by lines.

mod request;
mod watch;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures::TryStreamExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{ACCEPT_ENCODING, AUTHORIZATION, HOST, HeaderValue, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::objects::config;
use request::Kind;

/// What the operator is answered with.
type Answer = Response<UnsyncBoxBody<Bytes, io::Error>>;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// A conflict, as if another client had written first. Of writes alone.
    Conflict,
    /// There are too many requests, and it may come again after a second.
    Throttled,
    /// The API server is in trouble.
    Trouble,
    /// There is no right to it.
    Forbidden,
    /// What was asked for is done, and the connection breaks before the answer.
    Lost,
}

impl Fate {
    const ALL: [Self; 5] = [Self::Conflict, Self::Throttled, Self::Trouble, Self::Forbidden, Self::Lost];

    const fn word(self) -> &'static str {
        match self {
            Self::Conflict => "conflict",
            Self::Throttled => "throttled",
            Self::Trouble => "trouble",
            Self::Forbidden => "forbidden",
            Self::Lost => "lost",
        }
    }

    /// Those that a kind of request can meet.
    fn of(kind: &Kind) -> impl Iterator<Item = Self> + use<> {
        let (is_write, is_watch) = (kind.is_write(), kind.is_watch());
        Self::ALL.into_iter().filter(move |fate| !is_watch && (is_write || *fate != Self::Conflict))
    }

    /// The status and the reason that the API server has for it; none: it says nothing.
    const fn said(self) -> Option<(StatusCode, &'static str)> {
        match self {
            Self::Conflict => Some((StatusCode::CONFLICT, "Conflict")),
            Self::Throttled => Some((StatusCode::TOO_MANY_REQUESTS, "TooManyRequests")),
            Self::Trouble => Some((StatusCode::INTERNAL_SERVER_ERROR, "InternalError")),
            Self::Forbidden => Some((StatusCode::FORBIDDEN, "Forbidden")),
            Self::Lost => None,
        }
    }
}

/// How many of its fates a kind of request meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Every one.
    Each,
    /// One, always the same.
    One,
}

impl Share {
    fn fates(self, kind: &Kind) -> Vec<Fate> {
        let all: Vec<_> = Fate::of(kind).collect();
        let chosen = kind.to_string().bytes().map(usize::from).sum::<usize>().checked_rem(all.len());
        match (self, chosen) {
            (Self::One, Some(chosen)) => vec![all[chosen]],
            _ => all,
        }
    }
}

/// The proxy. It serves until it is dropped.
pub struct Proxy {
    runtime: Option<Runtime>,
    /// Leads to it, as the account that it was started with.
    pub kubeconfig: PathBuf,
}

impl Proxy {
    /// Starts one that answers so. `points` is the file with what has come about already, which is added to.
    pub fn start(kubeconfig: &Path, share: Share, points: &Path) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let (listener, answers) = runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let mut config = config(kubeconfig).await;
            config.default_retry = false;
            let inner = Client::try_from(config).expect("a client");
            let before = Mutex::default();
            (listener, Answers { inner, share, points: points.to_owned(), turn: Mutex::new(()), before })
        });
        let address = listener.local_addr().expect("its address");
        runtime.spawn(serve(listener, Arc::new(answers)));
        let text = fs::read_to_string(kubeconfig).expect("a kubeconfig");
        let mut through: Value = serde_saphyr::from_str(&text).expect("a kubeconfig");
        for cluster in through["clusters"].as_array_mut().expect("clusters") {
            cluster["cluster"] = json!({"server": format!("http://{address}")});
        }
        let kubeconfig = points.with_extension("kubeconfig");
        fs::write(&kubeconfig, through.to_string()).expect("a file");
        Self { runtime: Some(runtime), kubeconfig }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "connections end with the runtime of the proxy")]
async fn serve(listener: TcpListener, answers: Arc<Answers>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let answers = Arc::clone(&answers);
        let service = service_fn(move |request| {
            let answers = Arc::clone(&answers);
            async move { answers.answer(request).await }
        });
        tokio::spawn(async move {
            // An answer that is lost ends it.
            let _ended = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

struct Answers {
    inner: Client,
    share: Share,
    /// The file with what has come about.
    points: PathBuf,
    /// Who comes to a point first is one.
    turn: Mutex<()>,
    /// What was read before, by what was asked for.
    before: Mutex<HashMap<String, (StatusCode, Bytes)>>,
}

impl Answers {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> io::Result<Answer> {
        let kind = Kind::of(&request).filter(|kind| !kind.is_of_elections());
        let Some(kind) = kind else { return self.ask(request).await };
        for fate in self.share.fates(&kind) {
            if let Some((status, reason)) = fate.said()
                && self.acts(&kind, fate.word())
            {
                return Ok(refusal(&kind, status, reason));
            }
        }
        let what = request.uri().to_string();
        let answer = self.ask(request).await?;
        // Of a read, that there is nothing is an answer as well.
        let is_absent = !kind.is_write() && answer.status() == StatusCode::NOT_FOUND;
        let is_done = answer.status().is_success() || is_absent;
        if is_done && self.share.fates(&kind).contains(&Fate::Lost) && self.acts(&kind, Fate::Lost.word()) {
            answer.into_body().collect().await?;
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        if kind.is_watch() {
            return Ok(Self::skipping(self, kind, answer));
        }
        if kind.is_write() { Ok(answer) } else { self.perhaps_stale(&kind, what, answer).await }
    }

    /// Once, and never again for a later process.
    fn acts(&self, kind: &Kind, fate: &str) -> bool {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let point = format!("{kind}.{fate}");
        let known = fs::read_to_string(&self.points).unwrap_or_default();
        let is_new = !known.lines().any(|line| line == point);
        if is_new {
            let file = File::options().create(true).append(true).open(&self.points);
            writeln!(file.expect("the file of points"), "{point}").expect("a line");
        }
        is_new
    }

    async fn ask(&self, request: Request<Incoming>) -> io::Result<Answer> {
        let (mut head, body) = request.into_parts();
        // The client has its own, and what is looked into is not packed.
        for header in [HOST, AUTHORIZATION, ACCEPT_ENCODING] {
            head.headers.remove(header);
        }
        let body = body.collect().await.map_err(io::Error::other)?;
        let request = Request::from_parts(head, Body::from(body.to_bytes()));
        let answer = self.inner.send(request).await.map_err(io::Error::other)?;
        Ok(answer.map(|body| body.map_err(io::Error::other).boxed_unsync()))
    }

    /// What was read before in the place of what is so by now, where that is something else.
    async fn perhaps_stale(&self, kind: &Kind, what: String, answer: Answer) -> io::Result<Answer> {
        let (head, body) = answer.into_parts();
        let now = (head.status, body.collect().await?.to_bytes());
        let before = self.before.lock().unwrap_or_else(PoisonError::into_inner).insert(what, now.clone());
        let is_other =
            |before: &(StatusCode, Bytes)| before.0 != now.0 || content(&before.1) != content(&now.1);
        match before.filter(is_other) {
            Some((status, body)) if self.acts(kind, "stale") => Ok(told(status, body)),
            _ => Ok(Response::from_parts(head, whole(now.1))),
        }
    }

    /// The same watch, without one of two events of an object that follow each other.
    fn skipping(answers: Arc<Self>, kind: Kind, answer: Answer) -> Answer {
        answer.map(|body| {
            let lines = body.into_data_stream();
            let skips = move || answers.acts(&kind, "skipped");
            StreamBody::new(watch::skipping(lines, skips).map_ok(Frame::data)).boxed_unsync()
        })
    }
}

/// What of an object or a list is about objects. A list has the version of everything that is stored.
fn content(body: &Bytes) -> Option<Value> {
    let mut read: Value = serde_json::from_slice(body).ok()?;
    Some(if read["items"].is_array() { read["items"].take() } else { read })
}

/// What the API server says when it refuses.
fn refusal(kind: &Kind, status: StatusCode, reason: &str) -> Answer {
    let said = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": status.as_u16(),
        "reason": reason, "message": format!("{kind}: refused by a proxy"),
    });
    let mut answer = told(status, said.to_string().into());
    if status == StatusCode::TOO_MANY_REQUESTS {
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    answer
}

fn told(status: StatusCode, body: Bytes) -> Answer {
    let mut answer = Response::new(whole(body));
    *answer.status_mut() = status;
    answer
}

fn whole(body: Bytes) -> UnsyncBoxBody<Bytes, io::Error> {
    Full::new(body).map_err(|never| match never {}).boxed_unsync()
}
