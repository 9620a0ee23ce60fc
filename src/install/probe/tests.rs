use hyper::Response;
use hyper::service::service_fn;
use jiff::Timestamp;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::certs::mint::Authority;
use crate::install::Address;

type Answer = fn(&[u8]) -> Vec<u8>;

/// Serves one connection after the other with a leaf of `authority` for `name`.
async fn serve(authority: &Authority, name: &str, answer: Answer) -> SocketAddr {
    let leaf = authority.mint(&[name.to_owned()], Timestamp::now()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(leaf.chain(), leaf.key())
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let Ok(tls) = acceptor.accept(tcp).await else { continue };
            let service = service_fn(move |request: Request<hyper::body::Incoming>| async move {
                assert_eq!(request.uri().path(), "/convert");
                let body = request.into_body().collect().await?.to_bytes();
                Ok::<_, hyper::Error>(Response::new(Full::new(Bytes::from(answer(&body)))))
            });
            drop(
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(tls), service).await,
            );
        }
    });
    address
}

fn gate(body: &[u8]) -> Vec<u8> {
    Endpoint::Convert.answer(body, Timestamp::UNIX_EPOCH).body
}

fn plan(authority: &Authority) -> Plan {
    Plan {
        address: Address::Url { host: "localhost".to_owned(), port: 9443 },
        own_namespace: None,
        bundle: Bundle::of([authority.certificate().clone()]),
    }
}

fn authority() -> Authority {
    Authority::create(Timestamp::now()).unwrap()
}

#[tokio::test]
async fn a_gate_that_converts_under_its_name_and_bundle_passes() {
    let authority = authority();
    let listener = serve(&authority, "localhost", gate).await;
    probe(listener, &plan(&authority)).await.unwrap();
}

#[tokio::test]
async fn a_gate_under_another_name_fails() {
    let authority = authority();
    let listener = serve(&authority, "elsewhere", gate).await;
    let message = probe(listener, &plan(&authority)).await.unwrap_err().to_string();
    assert!(
        message.starts_with(&format!("failed to probe the gate at {listener} as localhost: no TLS")),
        "{message}"
    );
}

#[tokio::test]
async fn a_gate_whose_certificate_the_bundle_does_not_cover_fails() {
    let listener = serve(&authority(), "localhost", gate).await;
    let message = probe(listener, &plan(&authority())).await.unwrap_err().to_string();
    assert!(message.contains("no TLS"), "{message}");
}

#[tokio::test]
async fn a_gate_that_answers_something_else_fails() {
    let authority = authority();
    let answers: [(Answer, &str); 3] = [
        (|_| b"ok".to_vec(), "the answer is no conversion"),
        (|_| br#"{"response": {"uid": "1"}}"#.to_vec(), "it has another uid"),
        (
            |_| {
                json!({"response": {"uid": UID, "result": {"status": "Failure", "message": "no"}}})
                    .to_string()
                    .into()
            },
            "the answer is no conversion: no",
        ),
    ];
    for (answer, reason) in answers {
        let listener = serve(&authority, "localhost", answer).await;
        let message = probe(listener, &plan(&authority)).await.unwrap_err().to_string();
        assert!(message.contains(reason), "{message}");
    }
}

#[tokio::test]
async fn nobody_at_the_address_is_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let message = probe(address, &plan(&authority())).await.unwrap_err().to_string();
    assert!(message.contains("no connection"), "{message}");
}

#[tokio::test]
async fn without_a_bundle_there_is_nothing_to_probe_with() {
    let listener = SocketAddr::from(([127, 0, 0, 1], 1));
    probe(listener, &Plan { bundle: None, ..plan(&authority()) }).await.unwrap();
}
