//! Plain HTTP for the kubelet and for Prometheus: `/livez`, `/readyz`, `/metrics`.
//!
//! Guarantees: it answers for as long as the process lives, draining or not. A connection is for one request, which has
//! [`HEAD`] to arrive and [`WHOLE`] to be answered; of more than [`MOST`] at a time the oldest gives way, so that
//! probes are answered however many others connect. Of the page of metrics at most [`PAGES`] are in memory, however
//! many ask for it and do not read it. Never: on the gate's port, or about anything that is secret.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};
use tower::Service;

use super::crowd::{Crowd, Member};
use super::listener;
use crate::runtime::metrics::Page;
use crate::runtime::{Readiness, Tasks, blocking, clock};

/// Connections at a time.
const MOST: usize = 64;

/// For a request to arrive.
const HEAD: Duration = Duration::from_secs(10);

/// For a connection, from its beginning to its end. Prometheus waits for 10 s, unless it is set otherwise.
const WHOLE: Duration = Duration::from_secs(30);

/// Bytes that a connection keeps of a head.
const BUFFER: usize = 16 * 1024;

/// Pages of metrics in memory at a time, each of some megabytes where there are tens of thousands of objects. While so
/// many are being made or read, the last one is given once more, however old.
const PAGES: usize = 3;

/// After an accept that failed.
const PAUSE: Duration = Duration::from_millis(100);

/// The health endpoints on a socket of their own.
#[derive(Debug)]
pub struct Health {
    listener: TcpListener,
    address: SocketAddr,
    router: Router,
}

#[derive(Clone)]
struct Shown {
    readiness: Readiness,
    pages: Arc<Pages>,
}

/// The page of metrics, made for one at a time and shared by all who asked for it before it was begun.
struct Pages {
    page: Page,
    /// The last one, and when it was begun.
    last: Mutex<Option<(Instant, Bytes)>>,
    places: Arc<Semaphore>,
}

/// A page, and its place among those in memory.
struct Kept {
    text: String,
    _place: OwnedSemaphorePermit,
}

impl Health {
    /// Binds `address`; port 0 takes a free one. Needs a runtime.
    ///
    /// # Errors
    /// When the system refuses the address.
    pub fn bind(address: SocketAddr, readiness: Readiness, page: Page) -> io::Result<Self> {
        let listener = listener::bind(address)?;
        let router = Router::new()
            .route("/livez", get(async || "ok\n"))
            .route("/readyz", get(ready))
            .route("/metrics", get(metrics))
            .with_state(Shown { readiness, pages: Arc::new(Pages::of(page)) });
        Ok(Self { address: listener.local_addr()?, listener, router })
    }

    /// Where it listens.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop` resolves, and then those who have asked.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        let (open, crowd) = (Tasks::new(), Crowd::new(MOST, usize::MAX));
        let mut stop = pin!(stop);
        loop {
            let accepted = tokio::select! {
                () = &mut stop => break,
                accepted = listener::accept(&self.listener) => accepted,
            };
            match accepted {
                Ok(socket) => open.spawn(answer(socket, self.router.clone(), crowd.join(Arc::default()))),
                // For want of files, or the client was gone before its turn came.
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
        let _late = timeout(WHOLE, open.ended()).await;
    }
}

/// One request of one connection.
async fn answer(socket: TcpStream, router: Router, member: Member) {
    let service = service_fn(move |request: Request<Incoming>| router.clone().call(request.map(Body::new)));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(BUFFER).keep_alive(false);
    tokio::select! {
        // A connection that ends badly needs no answer.
        _ended = timeout(WHOLE, http.serve_connection(TokioIo::new(socket), service)) => {}
        () = member.gave_way() => {}
    }
}

async fn ready(State(shown): State<Shown>) -> Response {
    let report = shown.readiness.report();
    let status = if report.ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, report.to_string()).into_response()
}

async fn metrics(State(shown): State<Shown>) -> Response {
    let Some(page) = shown.pages.page().await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let content = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    ([(CONTENT_TYPE, content)], page).into_response()
}

impl Pages {
    fn of(page: Page) -> Self {
        Self { page, last: Mutex::default(), places: Arc::new(Semaphore::new(PAGES)) }
    }

    /// The page as it is, unless there are too many of it; nothing where it cannot be made.
    async fn page(&self) -> Option<Bytes> {
        let asked = clock::instant();
        let mut last = self.last.lock().await;
        let place = Arc::clone(&self.places).try_acquire_owned();
        if let Some((_, page)) = last.as_ref().filter(|(begun, _)| *begun > asked || place.is_err()) {
            return Some(page.clone());
        }
        let place = match place {
            Ok(place) => place,
            // Who asked for the first ones is gone, and they are still being made.
            Err(_) => Arc::clone(&self.places).acquire_owned().await.ok()?,
        };
        let (page, begun) = (self.page.clone(), clock::instant());
        // It may be about tens of thousands of objects.
        let text = blocking(move || page.text().map(|text| Kept { text, _place: place })).await.ok()?.ok()?;
        let page = Bytes::from_owner(text);
        *last = Some((begun, page.clone()));
        Some(page)
    }
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn unread_pages_are_few_and_each_is_up_to_date() {
        let pages = Pages::of(Page::new(|_| {}));
        let mut unread = Vec::new();
        for _ in 0..2 * PAGES {
            unread.push(pages.page().await.unwrap());
        }
        let different = |pages: &[Bytes]| {
            pages.windows(2).filter(|pair| pair[0].as_ptr() != pair[1].as_ptr()).count() + 1
        };
        assert_eq!(different(&unread), PAGES, "the last one is shared");
        let last = unread.pop().unwrap();
        drop(unread);
        assert_ne!(pages.page().await.unwrap().as_ptr(), last.as_ptr(), "there is room for another one");
    }

    #[tokio::test]
    async fn who_asks_while_a_page_is_made_for_another_shares_the_next_one() {
        let pages = Pages::of(Page::new(|_| {}));
        let address = |page: &Option<Bytes>| page.as_ref().unwrap().as_ptr();
        // As while one is made.
        let made = pages.last.lock().await;
        let mut all = pin!(futures::future::join_all((0..9).map(|_| pages.page())));
        assert!(futures::poll!(&mut all).is_pending());
        drop(made);
        let all = all.await;
        assert!(all.iter().all(|page| address(page) == address(&all[0])));
        assert_ne!(address(&pages.page().await), address(&all[0]), "who asks later");
    }
}
