//! Dials a member.
//!
//! Guarantees: a request dials once at most, and no longer than the limit, TLS included; so of what was not connected
//! it is known that nothing was sent. What ended the latest connection is remembered.
//!
//! tonic's own channel gives neither: when a member takes no connection because of the client's certificate, which TLS
//! 1.3 says only after the client's handshake is done, it dials again and again, without a pause, until the request's
//! limit, and then has nothing to say but that there was no answer.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use std::vec;

use axum::http::{Request, Response, Uri};
use futures::future::{self, BoxFuture, FutureExt as _, TryFutureExt as _};
use hyper::body::Incoming;
use hyper::rt::{Read, ReadBuf, ReadBufCursor, Write};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tonic::body::Body;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceExt};

/// How long after the last thing heard a busy connection is probed. etcd takes probes every five seconds at most, and
/// none while nothing is asked (`--grpc-keepalive-min-time`).
const PROBE: Duration = Duration::from_secs(10);
/// How long the answer to a probe may take before the connection is given up, and the next call makes another.
const PROBE_PATIENCE: Duration = Duration::from_secs(3);

/// Requests go in, answers come out.
pub(super) type Channel = BoxCloneSyncService<Request<Body>, Response<Incoming>, legacy::Error>;

/// A connection that took too long.
#[derive(Debug, thiserror::Error)]
#[error("no connection within {} ms", .0.as_millis())]
struct TooSlow(Duration);

/// Finds where a name is: at one address, or wherever the system says.
#[derive(Clone, Debug)]
pub(super) struct Resolver {
    at: Option<IpAddr>,
    system: GaiResolver,
}

impl Resolver {
    pub(super) fn new(at: Option<IpAddr>) -> Self {
        Self { at, system: GaiResolver::new() }
    }
}

impl Service<Name> for Resolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.system.poll_ready(context)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        // The port is the URL's, whatever is given here.
        let Some(address) = self.at else {
            return self.system.call(name).map_ok(|found| found.collect::<Vec<_>>().into_iter()).boxed();
        };
        future::ready(Ok(vec![SocketAddr::new(address, 0)].into_iter())).boxed()
    }
}

/// Dials by this connector, within a limit that goes for all of it. Connects when the first request comes.
pub(super) fn channel<C>(connector: C, limit: Duration) -> (Channel, LastWords)
where
    C: Service<Uri, Error: Into<BoxError>, Future: Send> + Clone + Send + Sync + 'static,
    C::Response: Connection + Read + Write + Unpin + Send + 'static,
{
    let last_words = LastWords::default();
    let listening = last_words.clone();
    let dial = tower::service_fn(move |uri| {
        let (connecting, last_words) = (connector.clone().oneshot(uri), listening.clone());
        Box::pin(async move {
            let connected = tokio::time::timeout(limit, connecting).await.map_err(|_| TooSlow(limit))?;
            let stream = connected.map_err(Into::<BoxError>::into)?;
            last_words.set(None);
            Ok::<_, BoxError>(Heard { stream, last_words })
        })
    });
    let client = legacy::Client::builder(TokioExecutor::new())
        .http2_only(true)
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(PROBE)
        .http2_keep_alive_timeout(PROBE_PATIENCE)
        .build::<_, Body>(dial);
    (BoxCloneSyncService::new(client), last_words)
}

/// What ended the latest connection, if it was an error. hyper only logs it when no request was under way.
#[derive(Debug, Clone, Default)]
pub(super) struct LastWords(Arc<Mutex<Option<String>>>);

impl LastWords {
    pub(super) fn get(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, words: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = words;
    }
}

/// A connection whose end is remembered.
struct Heard<S> {
    stream: S,
    last_words: LastWords,
}

impl<S: Read + Unpin> Heard<S> {
    /// Writes somehow, and remembers why it could not.
    ///
    /// A member that hangs up lets what is written fail before its reason has been read; so that is looked for.
    fn write<T>(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let this = self.get_mut();
        let done = write(Pin::new(&mut this.stream), context);
        if let Poll::Ready(Err(error)) = &done {
            let mut rest = [0; 1024];
            let words =
                match Pin::new(&mut this.stream).poll_read(context, ReadBuf::new(&mut rest).unfilled()) {
                    Poll::Ready(Err(reason)) => reason.to_string(),
                    Poll::Ready(Ok(())) | Poll::Pending => error.to_string(),
                };
            this.last_words.set(Some(words));
        }
        done
    }
}

impl<S: Connection> Connection for Heard<S> {
    fn connected(&self) -> Connected {
        self.stream.connected()
    }
}

impl<S: Read + Unpin> Read for Heard<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        if let Poll::Ready(Err(error)) = &read {
            this.last_words.set(Some(error.to_string()));
        }
        read
    }
}

impl<S: Read + Write + Unpin> Write for Heard<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.write(context, |stream, context| stream.poll_write(context, data))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.write(context, S::poll_flush)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(context, |stream, context| stream.poll_write_vectored(context, data))
    }
}
