//! The connection to one member, and calls over it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Uri;
use axum::http::uri::PathAndQuery;
use futures::{Stream, StreamExt};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use prost::Message;
use tonic::client::Grpc;
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

use super::dial::{Channel, LastWords, Resolver, channel};
use super::error::{Doubt, Error, Reason};
use super::tls::Tls;

/// One kind of call: the message of its request, that of its answer, and where it goes.
pub trait Rpc: Message + 'static {
    /// What comes back; of a stream, once each time.
    type Answer: Message + Default + 'static;
    /// `/package.Service/Method`.
    const PATH: &'static str;
    /// What it does, to be read after "failed to".
    const DOING: &'static str;
}

/// How long things may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Until there is a connection, TLS included. Default 2 s.
    pub connect: Duration,
    /// What a member answers by itself or by asking its leader. Default 3 s.
    pub read: Duration,
    /// What members have to agree on. Default 10 s: etcd itself gives up after 5 s and two election timeouts, and
    /// its word is worth more than our silence.
    pub change: Duration,
    /// What rewrites a member's database. Default 2 min.
    pub rewrite: Duration,
    /// Between two pieces of a snapshot. Default 30 s.
    pub piece: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(2),
            read: Duration::from_secs(3),
            change: Duration::from_secs(10),
            rewrite: Duration::from_mins(2),
            piece: Duration::from_secs(30),
        }
    }
}

/// A member's URL that will not do.
#[derive(Debug, thiserror::Error)]
#[error("{endpoint} is no URL of a member: {reason}")]
pub struct InvalidEndpoint {
    endpoint: String,
    reason: &'static str,
}

/// One member of an etcd cluster. Cheap to clone; clones share the connection.
///
/// The connection is made when something is asked, and again when it has broken. Its task ends with the last clone.
#[derive(Debug, Clone)]
pub struct Client {
    endpoint: Arc<str>,
    origin: Uri,
    channel: Channel,
    last_words: LastWords,
    pub(super) limits: Limits,
}

impl Client {
    /// For the member at this client URL, such as `https://a-0.a.default.svc:2379`. Has to be made, and used, inside
    /// a tokio runtime. Does not connect yet.
    ///
    /// # Errors
    /// It is not a URL, or `http` with TLS or `https` without.
    pub fn new(endpoint: &str, tls: Option<&Tls>, limits: Limits) -> Result<Self, InvalidEndpoint> {
        Self::dialling(endpoint, None, tls, limits)
    }

    /// The same for a member that is known to be at this address: the URL's name is not looked up, and still is what
    /// the member's certificate has to have.
    ///
    /// # Errors
    /// As of [`Self::new`].
    pub fn at(
        address: IpAddr,
        endpoint: &str,
        tls: Option<&Tls>,
        limits: Limits,
    ) -> Result<Self, InvalidEndpoint> {
        Self::dialling(endpoint, Some(address), tls, limits)
    }

    fn dialling(
        endpoint: &str,
        at: Option<IpAddr>,
        tls: Option<&Tls>,
        limits: Limits,
    ) -> Result<Self, InvalidEndpoint> {
        let invalid = |reason| InvalidEndpoint { endpoint: endpoint.to_owned(), reason };
        let uri: Uri = endpoint.parse().map_err(|_| invalid("it cannot be read"))?;
        if uri.host().is_none_or(str::is_empty) {
            return Err(invalid("it has no host"));
        }
        let mut tcp = HttpConnector::new_with_resolver(Resolver::new(at));
        tcp.enforce_http(false); // https is the business of what is around it
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(limits.connect)); // shared out among the addresses of a name
        let (channel, last_words) = match (uri.scheme_str(), tls) {
            (Some("http"), None) => channel(tcp, limits.connect),
            (Some("https"), Some(tls)) => {
                channel(HttpsConnector::from((tcp, Arc::clone(&tls.config))), limits.connect)
            }
            (Some("http"), Some(_)) => return Err(invalid("with TLS it begins with https")),
            (Some("https"), None) => return Err(invalid("without TLS it begins with http")),
            _ => return Err(invalid("it begins with neither http nor https")),
        };
        Ok(Self { endpoint: endpoint.into(), origin: uri, channel, last_words, limits })
    }

    /// The URL that it was made for.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// How long its calls may take.
    #[must_use]
    pub const fn limits(&self) -> Limits {
        self.limits
    }

    /// Asks once and waits for the answer, no longer than `limit`. The member gets the limit too.
    ///
    /// # Errors
    /// There is no connection, the member refused, or there is no answer.
    pub async fn call<R: Rpc>(&self, request: R, limit: Duration) -> Result<R::Answer, Error> {
        let mut request = Request::new(request);
        request.set_timeout(limit);
        let mut grpc = self.grpc();
        let answer = async {
            grpc.ready().await.map_err(|error| Status::from_error(Box::new(error)))?;
            let codec = ProstCodec::<R, R::Answer>::default();
            grpc.unary(request, PathAndQuery::from_static(R::PATH), codec).await
        };
        match tokio::time::timeout(limit, answer).await {
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            Ok(Err(status)) => Err(self.failed::<R>(Reason::of(&status, limit, self.last_words.get()))),
            Err(_) => Err(self.failed::<R>(Reason::Unsure(Doubt::Deadline(limit)))),
        }
    }

    /// Sends a request and opens the stream of its answers, whose beginning has to come within `limit`.
    ///
    /// With `open`, the member is left to believe that more requests may come; some calls end when none can.
    ///
    /// # Errors
    /// There is no connection, the member refused, or the stream did not begin.
    pub async fn stream<R: Rpc>(
        &self,
        request: R,
        open: bool,
        limit: Duration,
    ) -> Result<Answers<R::Answer>, Error> {
        let one = futures::stream::once(std::future::ready(request));
        let requests: std::pin::Pin<Box<dyn Stream<Item = R> + Send>> =
            if open { Box::pin(one.chain(futures::stream::pending())) } else { Box::pin(one) };
        let mut grpc = self.grpc();
        let beginning = async {
            grpc.ready().await.map_err(|error| Status::from_error(Box::new(error)))?;
            let codec = ProstCodec::<R, R::Answer>::default();
            grpc.streaming(Request::new(requests), PathAndQuery::from_static(R::PATH), codec).await
        };
        let streaming = match tokio::time::timeout(limit, beginning).await {
            Ok(Ok(answer)) => answer.into_inner(),
            Ok(Err(status)) => {
                return Err(self.failed::<R>(Reason::of(&status, limit, self.last_words.get())));
            }
            Err(_) => return Err(self.failed::<R>(Reason::Unsure(Doubt::Deadline(limit)))),
        };
        Ok(Answers { streaming, doing: R::DOING, endpoint: Arc::clone(&self.endpoint) })
    }

    fn grpc(&self) -> Grpc<Channel> {
        Grpc::with_origin(self.channel.clone(), self.origin.clone())
    }

    fn failed<R: Rpc>(&self, reason: Reason) -> Error {
        Error::new(R::DOING, Arc::clone(&self.endpoint), reason)
    }
}

/// The answers of a stream, as they come. Dropped, it ends the stream.
#[derive(Debug)]
pub struct Answers<A> {
    streaming: Streaming<A>,
    doing: &'static str,
    endpoint: Arc<str>,
}

impl<A> Answers<A> {
    /// The next one, waited for no longer than `limit`; none when the member has ended the stream.
    ///
    /// # Errors
    /// The stream broke, the member ended it with an error, or nothing came.
    pub async fn next(&mut self, limit: Duration) -> Result<Option<A>, Error> {
        let reason = match tokio::time::timeout(limit, self.streaming.message()).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(status)) => Reason::of(&status, limit, None),
            Err(_) => Reason::Unsure(Doubt::Deadline(limit)),
        };
        Err(Error::new(self.doing, Arc::clone(&self.endpoint), reason))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Outcome;
    use super::*;

    fn refused(endpoint: &str, tls: Option<&Tls>) -> String {
        Client::new(endpoint, tls, Limits::default()).unwrap_err().to_string()
    }

    #[tokio::test]
    async fn a_url_has_a_host_and_the_scheme_that_goes_with_the_keys() {
        let authority = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let tls = Tls::from_pem(authority.cert.pem().as_bytes(), None).unwrap();
        assert!(refused("https://a:2379", None).ends_with("without TLS it begins with http"));
        assert!(refused("http://a:2379", Some(&tls)).ends_with("with TLS it begins with https"));
        assert!(refused("ftp://a:2379", None).ends_with("it begins with neither http nor https"));
        assert!(refused("/a", None).ends_with("it has no host"));
        assert!(refused("http://a b", None).ends_with("it cannot be read"));
        Client::new("https://a:2379", Some(&tls), Limits::default()).unwrap();
    }

    #[tokio::test]
    async fn where_nothing_listens_nothing_was_done() {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let client = Client::new(&format!("http://127.0.0.1:{port}"), None, Limits::default()).unwrap();
        for _ in 0..2 {
            let error = client.status().await.unwrap_err();
            assert!(matches!(error.reason(), Reason::Unreachable(_)), "{error:?}");
            assert_eq!(error.outcome(), Outcome::None);
        }
    }

    #[tokio::test]
    async fn who_listens_and_is_silent_leaves_the_outcome_unknown() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", silent.local_addr().unwrap());
        let limits = Limits { read: Duration::from_millis(200), ..Limits::default() };
        let error = Client::new(&endpoint, None, limits).unwrap().status().await.unwrap_err();
        assert_eq!(*error.reason(), Reason::Unsure(Doubt::Deadline(limits.read)));
        assert_eq!(error.outcome(), Outcome::Unknown);
    }

    #[tokio::test]
    async fn a_handshake_that_does_not_end_leaves_nothing_done() {
        let authority = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let tls = Tls::from_pem(authority.cert.pem().as_bytes(), None).unwrap();
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("https://{}", silent.local_addr().unwrap());
        let limits = Limits { connect: Duration::from_millis(200), ..Limits::default() };
        let error = Client::new(&endpoint, Some(&tls), limits).unwrap().status().await.unwrap_err();
        assert!(matches!(error.reason(), Reason::Unreachable(_)), "{error:?}");
    }
}
