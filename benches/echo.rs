//! The gate's server with nothing behind it: each review gets the same answer, unread. What a load generator measures
//! here is what TLS, HTTP and the system take of a review.
//!
//! ```text
//! cargo bench --profile dist --bench echo -- --listen 127.0.0.1:9443 --tls-cert tls.crt --tls-key tls.key
//! ```
//!
//! It serves until it is ended. Without an address, as among all benchmarks, it ends at once. The allocator is the
//! program's.

use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Parser;
use gatehouse::review::{Answer, Endpoint, Failure, Report};
use gatehouse::runtime::Metrics;
use gatehouse::runtime::otlp::Traces;
use gatehouse::server::{Config, Limits, MinVersion, Reviewer, ServedCertificate, Server};
use jiff::Timestamp;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The options that `gatehouse serve --webhook-only` has too.
#[derive(Parser)]
struct Options {
    #[arg(long, requires_all = ["tls_cert", "tls_key"])]
    listen: Option<SocketAddr>,
    #[arg(long, default_value = "")]
    tls_cert: PathBuf,
    #[arg(long, default_value = "")]
    tls_key: PathBuf,
    /// Cargo says so to each benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

struct Echo;

impl Reviewer for Echo {
    fn answer(&self, _endpoint: Endpoint, _body: &[u8], _now: Timestamp) -> Answer {
        let body = br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002","allowed":true}}"#;
        Answer { body: body.to_vec(), report: Report { code: 200, ..Report::default() } }
    }

    fn failure(&self, endpoint: Endpoint, body: &[u8], failure: &Failure) -> Answer {
        endpoint.failure(body, failure)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let Some(listen) = options.listen else {
        println!("echo: nothing to measure without --listen");
        return Ok(());
    };
    // Nothing has installed one yet.
    let _fresh = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let metrics = Metrics::default();
    let certificate = ServedCertificate::new(&metrics);
    let chain: Result<_, _> = CertificateDer::pem_file_iter(&options.tls_cert)?.collect();
    certificate.swap(chain?, PrivateKeyDer::from_pem_file(&options.tls_key)?)?;
    let server = Server::bind(Config {
        listen,
        certificate,
        min_version: MinVersion::default(),
        clients: None,
        limits: Limits::default(),
        metrics,
        traces: Traces::default(),
        reviewer: Arc::new(Echo),
    })?;
    println!("echo: serving {}", server.local_addr());
    server.serve(std::future::pending()).await;
    Ok(())
}
