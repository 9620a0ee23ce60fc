//! A gate on a free port with an authority of its own, and clients that trust it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use gatehouse::review::{Answer, Endpoint, Failure, Report};
use gatehouse::runtime::otlp::Traces;
use gatehouse::runtime::{Metrics, Readiness};
use gatehouse::server::{Config, Limits, MinVersion, Reviewer, ServedCertificate, Server};
use jiff::Timestamp;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Longer than anything here takes on a slow machine; reached only by a test that fails.
pub const PATIENCE: Duration = Duration::from_mins(5);

/// A limit that no test reaches by waiting: [`passes`] has it pass.
pub const LIMIT: Duration = Duration::from_hours(1);

/// How often a test has it pass, at most.
const PASSES: u64 = 5_000;

/// So long that no test reaches it, whatever passes.
pub const NEVER: Duration = Duration::from_hours(2 * PASSES);

/// Has a time pass at once, for all that waits on the clock of this test's runtime.
pub async fn passes(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

pub fn install_provider() {
    // The second test of a process finds it installed.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}

/// Signs the certificates of one test.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub certificate: CertificateDer<'static>,
    pub certificate_pem: String,
}

pub struct Leaf {
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
    pub key_pem: String,
    pub chain_pem: String,
}

impl Authority {
    pub fn new() -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        let certificate_pem = certificate.pem();
        Self { certificate: certificate.der().clone(), certificate_pem, issuer: Issuer::new(parameters, key) }
    }

    pub fn leaf(&self) -> Leaf {
        let parameters =
            CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        Leaf {
            chain: vec![certificate.der().clone()],
            key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            key_pem: key.serialize_pem(),
            chain_pem: certificate.pem(),
        }
    }

    /// Another certificate of it.
    pub fn sign(&self, parameters: &CertificateParams, key: &KeyPair) -> CertificateDer<'static> {
        parameters.signed_by(key, &self.issuer).unwrap().der().clone()
    }

    /// A TLS connection of a client that trusts this authority and offers these protocols.
    pub async fn connect(&self, address: SocketAddr, protocols: &[&str]) -> TlsStream<TcpStream> {
        self.secure(TcpStream::connect(address).await.unwrap(), protocols).await
    }

    /// The same over a socket that is there.
    pub async fn secure(&self, socket: TcpStream, protocols: &[&str]) -> TlsStream<TcpStream> {
        self.try_secure(socket, protocols).await.unwrap()
    }

    /// The same where the other side may have no certificate yet.
    pub async fn try_secure(
        &self,
        socket: TcpStream,
        protocols: &[&str],
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let mut config = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|one| one.as_bytes().to_vec()).collect();
        let connector = TlsConnector::from(Arc::new(config));
        let name = ServerName::try_from("localhost").unwrap();
        within(connector.connect(name, socket)).await
    }

    pub fn client(&self) -> reqwest::Client {
        let certificate = reqwest::Certificate::from_der(&self.certificate).unwrap();
        reqwest::Client::builder().tls_certs_only([certificate]).no_proxy().build().unwrap()
    }
}

/// Answers as a test wants. A failure is reported as it was asked for, with how much of the body there was.
pub struct Scripted<Script>(pub Script);

impl<Script> Reviewer for Scripted<Script>
where
    Script: Fn(Endpoint, &[u8]) -> Answer + Send + Sync + 'static,
{
    fn answer(&self, endpoint: Endpoint, body: &[u8], _now: Timestamp) -> Answer {
        self.0(endpoint, body)
    }

    fn failure(&self, endpoint: Endpoint, body: &[u8], failure: &Failure) -> Answer {
        let told = json!({
            "endpoint": endpoint.name(),
            "failure": failure.code,
            "reason": failure.reason,
            "message": failure.message,
            "read": body.len(),
        });
        Answer {
            body: told.to_string().into_bytes(),
            report: Report { code: failure.code, ..Report::default() },
        }
    }
}

/// Says which review was asked for and how long it was.
pub fn echo(endpoint: Endpoint, body: &[u8]) -> Answer {
    Answer {
        body: json!({"endpoint": endpoint.name(), "read": body.len()}).to_string().into_bytes(),
        report: Report { code: 200, ..Report::default() },
    }
}

/// A gate that serves.
pub struct Gate {
    pub authority: Authority,
    pub address: SocketAddr,
    pub certificate: ServedCertificate,
    pub metrics: Metrics,
    pub readiness: Readiness,
    drain: Option<oneshot::Sender<()>>,
    pub ended: JoinHandle<()>,
}

/// Limits under which no test ends by chance: nothing is cut, and nothing waits in a drain.
pub fn limits() -> Limits {
    Limits {
        handshake: NEVER,
        first_header: NEVER,
        idle: NEVER,
        answer: NEVER,
        drain_delay: Duration::ZERO,
        drain_deadline: NEVER,
        ..Limits::default()
    }
}

impl Gate {
    pub fn echo() -> Self {
        Self::start(limits(), echo)
    }

    pub fn start(limits: Limits, script: impl Fn(Endpoint, &[u8]) -> Answer + Send + Sync + 'static) -> Self {
        install_provider();
        let authority = Authority::new();
        let metrics = Metrics::default();
        let certificate = ServedCertificate::new(&metrics);
        let leaf = authority.leaf();
        certificate.swap(leaf.chain, leaf.key).unwrap();
        let server = Server::bind(Config {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            certificate: certificate.clone(),
            min_version: MinVersion::default(),
            clients: None,
            limits,
            metrics: metrics.clone(),
            traces: Traces::default(),
            reviewer: Arc::new(Scripted(script)),
        })
        .unwrap();
        let address = server.local_addr();
        let (drain, asked) = oneshot::channel();
        let ended = tokio::spawn(server.serve(async {
            // A test that drops its gate ends it too.
            let _ = asked.await;
        }));
        Self {
            authority,
            address,
            certificate,
            metrics,
            readiness: Readiness::new(),
            drain: Some(drain),
            ended,
        }
    }

    pub fn drain(&mut self) {
        self.readiness.drain();
        self.drain.take().unwrap().send(()).unwrap();
    }

    pub fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    pub fn post(&self, path: &str) -> reqwest::RequestBuilder {
        self.authority.client().post(self.url(path)).header("content-type", "application/json")
    }

    /// One HTTP/1.1 connection, spoken by hand.
    pub async fn connect(&self) -> Connection {
        Connection(self.handshake(&["http/1.1"]).await)
    }

    pub async fn handshake(&self, protocols: &[&str]) -> TlsStream<TcpStream> {
        self.authority.connect(self.address, protocols).await
    }

    /// Waits until nothing listens any more.
    pub async fn accepts_nothing(&self) {
        within(async {
            while TcpStream::connect(self.address).await.is_ok() {
                tokio::time::sleep(POLL).await;
            }
        })
        .await;
    }

    /// Waits until the page of metrics has this line.
    pub async fn shows(&self, line: &str) {
        let seen = async {
            while !self.metrics.page().text().unwrap().lines().any(|one| one == line) {
                tokio::time::sleep(POLL).await;
            }
        };
        assert!(
            tokio::time::timeout(PATIENCE, seen).await.is_ok(),
            "{line} is not in\n{}",
            self.metrics.page().text().unwrap()
        );
    }
}

/// Between two looks.
const POLL: Duration = Duration::from_millis(5);

pub struct Connection(pub TlsStream<TcpStream>);

/// One answer, as it came.
#[derive(Debug)]
pub struct Raw {
    pub status: u16,
    pub head: String,
    pub body: Value,
}

impl Raw {
    pub fn says_close(&self) -> bool {
        self.head.to_ascii_lowercase().contains("\r\nconnection: close\r\n")
    }
}

impl Connection {
    pub async fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
        self.0.flush().await.unwrap();
    }

    pub async fn ask(&mut self, path: &str, body: &str) -> Raw {
        self.send(&request(path, body)).await;
        self.answer().await
    }

    /// The answer, or nothing where the other side ends it before.
    pub async fn try_ask(mut self, path: &str, body: &str) -> Option<Raw> {
        self.0.write_all(request(path, body).as_bytes()).await.ok()?;
        self.0.flush().await.ok()?;
        let mut first = [0; 1];
        within(self.0.read_exact(&mut first)).await.ok()?;
        Some(within(read_answer(&mut first.as_slice().chain(&mut self.0))).await)
    }

    pub async fn answer(&mut self) -> Raw {
        within(read_answer(&mut self.0)).await
    }

    /// Waits until the other side closes; nothing may come before.
    pub async fn closed(&mut self) {
        let mut rest = Vec::new();
        // A close without TLS's own farewell is a close too.
        let _ = within(self.0.read_to_end(&mut rest)).await;
        assert_eq!(String::from_utf8_lossy(&rest), "");
    }

    /// Has [`LIMIT`] pass until the other side closes; nothing may come before. More than once: the server may see the
    /// end of a handshake, from which it counts, later than its client does.
    pub async fn closed_at_the_limit(mut self) {
        let mut rest = Vec::new();
        let mut closed = std::pin::pin!(self.0.read_to_end(&mut rest));
        let mut is_closed = false;
        for _ in 0..PASSES {
            passes(LIMIT).await;
            is_closed = tokio::time::timeout(POLL, closed.as_mut()).await.is_ok();
            if is_closed {
                break;
            }
        }
        assert!(is_closed, "it stays open");
        assert_eq!(String::from_utf8_lossy(&rest), "");
    }
}

/// One answer.
pub async fn read_answer(reader: &mut (impl AsyncRead + Unpin)) -> Raw {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(reader.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    let length = head
        .to_ascii_lowercase()
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ").map(|text| text.parse().unwrap()))
        .unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).await.unwrap();
    let body = serde_json::from_slice(&body).unwrap_or_default();
    Raw { status: head[9..12].parse().unwrap(), head, body }
}

pub fn request(path: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// What `work` gives, or a failed test when it takes too long.
pub async fn within<Output>(work: impl Future<Output = Output>) -> Output {
    tokio::time::timeout(PATIENCE, work).await.expect("it takes too long")
}

/// A review that the gate judges on a thread of its own.
pub fn large() -> String {
    "x".repeat(Limits::default().large + 1)
}

/// Holds up each validation until it is opened.
#[derive(Clone, Default)]
pub struct Barrier(Arc<Held>);

#[derive(Default)]
struct Held {
    is_open: std::sync::Mutex<bool>,
    opened: std::sync::Condvar,
    reached: tokio::sync::Notify,
}

impl Barrier {
    pub fn pass(&self) {
        self.0.reached.notify_one();
        let is_open = self.0.is_open.lock().unwrap();
        drop(self.0.opened.wait_timeout_while(is_open, PATIENCE, |is_open| !*is_open).unwrap());
    }

    /// Waits until a validation is held up.
    pub async fn reached(&self) {
        within(self.0.reached.notified()).await;
    }

    pub fn open(&self) {
        *self.0.is_open.lock().unwrap() = true;
        self.0.opened.notify_all();
    }
}
