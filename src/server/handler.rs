//! One review: from the request's head to the answer.
//!
//! Guarantees: every review gets HTTP 200 and an answer with its uid, as far as it showed one, whatever happens: too
//! large, too late, not JSON, a panic. The one exception is 503 with `Retry-After` while too much is in flight,
//! which the API server repeats (client-go `rest/with_retry.go`); any other status would lose the answer's body.
//! A place is taken by a review that has arrived; a body that stands still gives way to others (see [`super::crowd`]).
//! Never: puts anything of an object in a log, a span or a metric.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use axum::http::{StatusCode, Uri, Version};
use axum::response::Response;
use jiff::Timestamp;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use tracing::{Instrument, debug};

use super::activity::Activity;
use super::body::{self, End, Fault, Reading};
use super::crowd::{Crowd, Member};
use super::limits::Limits;
use super::observe::Observed;
use super::{deadline, observe, problem};
use crate::review::{Answer, Endpoint, Failure, Surroundings};
use crate::runtime::otlp::Traces;
use crate::runtime::{Metrics, Tasks, blocking, clock};

/// Who answers reviews: [`Rules`], or a test that wants the gate to be asked what no rule would.
pub trait Reviewer: Send + Sync + 'static {
    /// Reads one review and answers it.
    fn answer(&self, endpoint: Endpoint, body: &[u8], now: Timestamp) -> Answer;

    /// The answer to a review that could not be processed.
    fn failure(&self, endpoint: Endpoint, body: &[u8], failure: &Failure) -> Answer;
}

/// The rules of this crate.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// The namespace of gatehouse, where our kinds are refused.
    pub own_namespace: Option<String>,
    /// The image with gatehouse, for what is added to pods.
    pub image: String,
}

impl Reviewer for Rules {
    fn answer(&self, endpoint: Endpoint, body: &[u8], now: Timestamp) -> Answer {
        let own_namespace = self.own_namespace.as_deref();
        endpoint.answer(body, &Surroundings { now, own_namespace, image: &self.image })
    }

    fn failure(&self, endpoint: Endpoint, body: &[u8], failure: &Failure) -> Answer {
        endpoint.failure(body, failure)
    }
}

/// An answer of more bytes than this counts as bodies do until its client has taken it. Smaller ones fit into the
/// buffers of a socket, but those of all streams of HTTP/2 may not be taken: there they count by themselves, so that an
/// answer that was just given goes for no body.
const LARGE_ANSWER: usize = 16 * 1024;

/// What all requests share.
pub(super) struct Gate {
    reviewer: Arc<dyn Reviewer>,
    limits: Limits,
    metrics: Metrics,
    traces: Traces,
    in_flight: Semaphore,
    medium_in_flight: Arc<Semaphore>,
    large_in_flight: Arc<Semaphore>,
    /// Whether only clients that have shown a certificate have admission reviews answered.
    only_known: bool,
    /// What of bodies and large answers is in memory.
    crowd: Arc<Crowd>,
    /// What of small answers is.
    small_answers: Arc<Crowd>,
    /// Bodies whose answer has been given and whose client still writes.
    discarding: Tasks,
}

/// The result of reading a request's body.
struct Received {
    bytes: Bytes,
    fault: Option<Failure>,
    member: Option<Member>,
}

/// Too much is in flight.
struct Busy;

/// Who gets an answer.
struct Asker {
    activity: Option<Arc<Activity>>,
    version: Version,
}

impl Asker {
    fn of(request: &Request) -> Self {
        Self { activity: request.extensions().get().cloned(), version: request.version() }
    }
}

impl Gate {
    pub(super) fn new(
        reviewer: Arc<dyn Reviewer>,
        limits: Limits,
        metrics: Metrics,
        traces: Traces,
        only_known: bool,
    ) -> Self {
        Self {
            reviewer,
            limits,
            metrics,
            traces,
            in_flight: Semaphore::new(limits.in_flight),
            medium_in_flight: Arc::new(Semaphore::new(limits.medium_in_flight)),
            large_in_flight: Arc::new(Semaphore::new(limits.large_in_flight)),
            only_known,
            crowd: Crowd::new(limits.unread_bodies, limits.bodies),
            small_answers: Crowd::new(limits.unread_bodies, limits.bodies / 4),
            discarding: Tasks::new(),
        }
    }

    /// Answers one request to `endpoint`.
    pub(super) async fn handle(self: Arc<Self>, endpoint: Endpoint, request: Request) -> Response {
        let (path, headers) = (request.uri().path(), request.headers());
        let observed = Observed::begin(&self.metrics, &self.traces, endpoint, path, headers);
        let asker = Asker::of(&request);
        // API servers have no certificate to show for conversion.
        let is_known = asker.activity.as_ref().is_some_and(|activity| {
            activity.asks_for_a_review();
            activity.is_known()
        });
        if self.only_known && endpoint != Endpoint::Convert && !is_known {
            observed.turned_away(StatusCode::UNAUTHORIZED);
            self.discard(endpoint, request.into_body());
            return self.until_taken(problem::unauthorized(), None, asker);
        }
        let answered =
            self.review(endpoint, request, asker.activity.clone()).instrument(observed.span().clone()).await;
        let Ok((answer, member)) = answered else {
            self.metrics.shed.inc();
            observed.turned_away(StatusCode::SERVICE_UNAVAILABLE);
            return self.until_taken(problem::busy(), None, asker);
        };
        observed.answered(&answer.report);
        let mut response = Response::new(answer.body);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.until_taken(response, member, asker)
    }

    /// Answers a request for nothing that there is.
    pub(super) fn turn_away(&self, request: &Request, response: Response<Vec<u8>>) -> Response {
        observe::elsewhere(&self.metrics, response.status());
        self.until_taken(response, None, Asker::of(request))
    }

    async fn review(
        self: &Arc<Self>,
        endpoint: Endpoint,
        request: Request,
        activity: Option<Arc<Activity>>,
    ) -> Result<(Answer, Option<Member>), Busy> {
        let (parts, body) = request.into_parts();
        let (deadline, objection) = terms(endpoint, &parts.uri, &parts.headers);
        // A client that stands still need not have its head kept.
        drop(parts);
        let Received { bytes, fault, mut member } = self.read(endpoint, body, deadline, activity).await?;
        if member.as_mut().is_some_and(|member| member.settle().is_err()) {
            return Err(Busy);
        }
        let answer = match objection.or(fault) {
            Some(failure) => self.fail(endpoint, &bytes, &failure),
            None if bytes.len() > self.limits.inline => {
                let _place = self.in_flight.try_acquire().map_err(|_| Busy)?;
                self.answer_apart(endpoint, bytes, deadline).await
            }
            None => self.answer(endpoint, &bytes),
        };
        Ok((answer, member))
    }

    /// The body, or what came of it and why that is not all.
    async fn read(
        &self,
        endpoint: Endpoint,
        mut body: Body,
        deadline: Instant,
        activity: Option<Arc<Activity>>,
    ) -> Result<Received, Busy> {
        let limit = self.limits.body(endpoint);
        let sizes = (self.limits.inline, self.limits.large);
        let mut reading = Reading::new(&self.crowd, limit, sizes, activity);
        let fault = match timeout_at(deadline, reading.read(&mut body)).await {
            Ok(Ok(End::Whole)) => None,
            Ok(Ok(End::TooLarge)) => {
                self.discard(endpoint, body);
                Some(problem::too_large(limit))
            }
            Ok(Err(Fault::GaveWay)) => {
                self.discard(endpoint, body);
                return Err(Busy);
            }
            Ok(Err(broken)) => {
                debug!(error = %broken, "request broke off");
                Some(problem::broken_off())
            }
            Err(_elapsed) => {
                self.discard(endpoint, body);
                Some(problem::too_late("reading the review"))
            }
        };
        let Reading { kept, member, .. } = reading;
        Ok(Received { bytes: kept.into_bytes(), fault, member })
    }

    /// Takes what is left of a body that has its answer: a client that is cut off while it writes may never read it.
    fn discard(&self, endpoint: Endpoint, body: Body) {
        self.discarding.spawn(body::discard(body, self.limits.body(endpoint)));
    }

    /// The answer, which may count for as long as it is in memory: its client may never take it.
    fn until_taken(&self, answer: Response<Vec<u8>>, member: Option<Member>, asker: Asker) -> Response {
        let Asker { activity, version } = asker;
        answer.map(|answer| {
            let is_large = answer.len() > LARGE_ANSWER;
            let counts = is_large || version == Version::HTTP_2;
            let Some(activity) = activity.filter(|_| counts) else { return answer.into() };
            let crowd = if is_large { &self.crowd } else { &self.small_answers };
            let mut member = member.filter(|_| is_large).unwrap_or_else(|| crowd.join(Arc::default()));
            member.wait_again(answer.len(), activity.cut());
            Bytes::from_owner(Untaken { answer, _member: member, _guard: activity.untaken() }).into()
        })
    }

    fn answer(&self, endpoint: Endpoint, body: &[u8]) -> Answer {
        let answer = catch_unwind(AssertUnwindSafe(|| self.reviewer.answer(endpoint, body, clock::now())));
        answer.unwrap_or_else(|_said| {
            self.metrics.panics.inc();
            self.fail(endpoint, body, &problem::panicked())
        })
    }

    /// On a thread of its own, since it may take long, and not too many at a time, since each needs a multiple of
    /// its size. One that is too late is answered; its work ends unheard.
    async fn answer_apart(self: &Arc<Self>, endpoint: Endpoint, body: Bytes, deadline: Instant) -> Answer {
        let is_large = body.len() > self.limits.large;
        let places = if is_large { &self.large_in_flight } else { &self.medium_in_flight };
        let gate = Arc::clone(self);
        let copy = body.clone();
        let work = async {
            // Closed never; were it, the work would only go on without a place.
            let place = Arc::clone(places).acquire_owned().await;
            blocking(move || {
                let _place = place;
                gate.answer(endpoint, &copy)
            })
            .await
        };
        match timeout_at(deadline, work).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_panicked)) => self.fail(endpoint, &body, &problem::panicked()),
            Err(_elapsed) => self.fail(endpoint, &body, &problem::too_late("answering the review")),
        }
    }

    fn fail(&self, endpoint: Endpoint, body: &[u8], failure: &Failure) -> Answer {
        let answer = catch_unwind(AssertUnwindSafe(|| self.reviewer.failure(endpoint, body, failure)));
        answer.unwrap_or_else(|_said| {
            self.metrics.panics.inc();
            self.reviewer.failure(endpoint, b"", failure)
        })
    }
}

/// An answer that its client has not taken yet.
struct Untaken<Guard> {
    answer: Vec<u8>,
    _member: Member,
    _guard: Guard,
}

impl<Guard> AsRef<[u8]> for Untaken<Guard> {
    fn as_ref(&self) -> &[u8] {
        &self.answer
    }
}

/// What the head of the request says: until when, and whether there is anything against it.
fn terms(endpoint: Endpoint, uri: &Uri, headers: &HeaderMap) -> (Instant, Option<Failure>) {
    let begun = clock::instant();
    match deadline::of_request(endpoint, uri.query()) {
        Ok(allowed) => (begun + allowed, media(headers)),
        Err(invalid) => {
            (begun + deadline::unasked(endpoint), Some(problem::bad_request(invalid.to_string())))
        }
    }
}

fn media(headers: &HeaderMap) -> Option<Failure> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let encoding = headers.get(CONTENT_ENCODING).map(text);
    if let Some(encoding) = encoding.filter(|encoding| !encoding.eq_ignore_ascii_case("identity")) {
        return Some(problem::unsupported("Content-Encoding", &encoding, "none"));
    }
    let content = headers.get(CONTENT_TYPE).map(text).unwrap_or_default();
    let media = content.split(';').next().unwrap_or_default().trim();
    (!media.eq_ignore_ascii_case("application/json"))
        .then(|| problem::unsupported("Content-Type", &content, "application/json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(name: &'static str, value: &'static str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(name, HeaderValue::from_static(value));
        media(&headers).map(|failure| failure.message)
    }

    #[test]
    fn json_passes_with_parameters_and_in_any_case() {
        for value in ["application/json", "Application/JSON", "application/json; charset=utf-8"] {
            assert_eq!(checked("content-type", value), None);
        }
        assert_eq!(checked("content-encoding", "identity"), None);
    }

    #[test]
    fn other_media_are_named_with_what_is_expected() {
        assert_eq!(
            checked("content-type", "application/yaml").unwrap(),
            r#"unsupported Content-Type "application/yaml": expected application/json"#
        );
        assert_eq!(
            checked("content-encoding", "gzip").unwrap(),
            r#"unsupported Content-Encoding "gzip": expected none"#
        );
        assert!(media(&HeaderMap::new()).is_some());
    }
}
