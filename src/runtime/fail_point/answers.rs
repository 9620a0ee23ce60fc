//! Answers that are not what the API server said.
//!
//! Guarantees: each kind of request, which is a verb and a resource, fails in each way once; a real API server
//! stands behind it, and what it was asked for and has done is done.
//! Assumes: a watch is read only by lines. As the client does, what is throttled is asked for again.

mod request;
mod watch;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use futures::TryStreamExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use hyper::{Request, Response, StatusCode};
use kube::client::Body;
use kube::client::retry::RetryPolicy;
use kube::{Client, Config};
use serde_json::{Value, json};
use tower::retry::Retry;
use tower::{BoxError, service_fn};

use super::armed;
use request::Kind;

/// What the operator is answered with.
type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

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
    const fn word(self) -> &'static str {
        match self {
            Self::Each => "answer",
            Self::One => "sample",
        }
    }

    fn fates(self, kind: &Kind) -> Vec<Fate> {
        let all: Vec<_> = Fate::of(kind).collect();
        let chosen = kind.to_string().bytes().map(usize::from).sum::<usize>().checked_rem(all.len());
        match (self, chosen) {
            (Self::One, Some(chosen)) => vec![all[chosen]],
            _ => all,
        }
    }
}

/// Whether answers are to be others, and how many.
pub fn asked() -> Option<Share> {
    let (asked, _) = armed::asked()?;
    [Share::Each, Share::One].into_iter().find(|share| share.word() == asked)
}

/// A client that is answered so.
pub fn client(mut config: Config, share: Share) -> kube::Result<Client> {
    let namespace = config.default_namespace.clone();
    config.default_retry = false; // what is throttled here does not come by it
    let inner = Client::try_from(config)?;
    let answers = Arc::new(Answers { inner, share, before: Mutex::default() });
    let service = service_fn(move |request| {
        let answers = Arc::clone(&answers);
        async move { answers.answer(request).await }
    });
    Ok(Client::new(Retry::new(RetryPolicy::server_retry(), service), namespace))
}

struct Answers {
    inner: Client,
    share: Share,
    /// What was read before, by what was asked for.
    before: Mutex<HashMap<String, (StatusCode, Bytes)>>,
}

impl Answers {
    async fn answer(&self, request: Request<Body>) -> Result<Answer, BoxError> {
        let Some(kind) = Kind::of(&request) else { return self.ask(request).await };
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
            return Err(io::Error::from(io::ErrorKind::ConnectionReset).into());
        }
        if kind.is_watch() {
            return Ok(self.skipping(kind, answer));
        }
        if kind.is_write() { Ok(answer) } else { self.perhaps_stale(&kind, what, answer).await }
    }

    /// Once, and never again in a later process.
    fn acts(&self, kind: &Kind, fate: &str) -> bool {
        armed::acts(self.share.word(), &format!("{kind}.{fate}"))
    }

    async fn ask(&self, request: Request<Body>) -> Result<Answer, BoxError> {
        let answer = self.inner.send(request).await?;
        Ok(answer.map(|body| body.map_err(BoxError::from).boxed_unsync()))
    }

    /// What was read before in the place of what is so by now, where that is something else.
    async fn perhaps_stale(&self, kind: &Kind, what: String, answer: Answer) -> Result<Answer, BoxError> {
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
    fn skipping(&self, kind: Kind, answer: Answer) -> Answer {
        let share = self.share;
        answer.map(|body| {
            let lines = body.into_data_stream().map_err(BoxError::from);
            let skips = move || armed::acts(share.word(), &format!("{kind}.skipped"));
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
        "reason": reason, "message": format!("{kind}: refused by a fail point"),
    });
    let mut answer = told(status, said.to_string().into());
    if status == StatusCode::TOO_MANY_REQUESTS {
        let headers = answer.headers_mut();
        headers.insert(hyper::header::RETRY_AFTER, hyper::header::HeaderValue::from_static("1"));
    }
    answer
}

fn told(status: StatusCode, body: Bytes) -> Answer {
    let mut answer = Response::new(whole(body));
    *answer.status_mut() = status;
    answer
}

fn whole(body: Bytes) -> UnsyncBoxBody<Bytes, BoxError> {
    Full::new(body).map_err(|never| match never {}).boxed_unsync()
}
