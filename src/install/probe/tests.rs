use hyper::Response;
use hyper::service::service_fn;
use jiff::Timestamp;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::certs::mint::Authority;
use crate::install::Address;
use crate::review::Surroundings;
use crate::runtime::clock::now; // a real handshake looks at the real clock

type Answer = fn(&[u8]) -> Vec<u8>;

/// Probes a gate that has a leaf of `issuer` for `name`, as one that trusts `trusted` under the name `localhost`.
async fn probe_gate(
    issuer: &Authority,
    name: &str,
    answer: Answer,
    trusted: &Authority,
) -> Result<(), String> {
    let leaf = issuer.mint(&[name.to_owned()], now()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(leaf.chain(), leaf.key())
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let plan = plan(trusted);
    let (probed, ()) = tokio::join!(probe(address, &plan), serve_once(listener, config, answer));
    probed.map_err(|error| error.to_string())
}

/// Serves one connection; what becomes of it is the caller's to tell.
async fn serve_once(listener: TcpListener, config: ServerConfig, answer: Answer) {
    let (tcp, _) = listener.accept().await.unwrap();
    let Ok(tls) = TlsAcceptor::from(Arc::new(config)).accept(tcp).await else { return };
    let service = service_fn(move |request: Request<hyper::body::Incoming>| async move {
        assert_eq!(request.uri().path(), "/convert");
        let body = request.into_body().collect().await?.to_bytes();
        Ok::<_, hyper::Error>(Response::new(Full::new(Bytes::from(answer(&body)))))
    });
    drop(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(tls), service).await);
}

fn gate(body: &[u8]) -> Vec<u8> {
    Endpoint::Convert.answer(body, &Surroundings::at(Timestamp::UNIX_EPOCH)).body
}

fn plan(authority: &Authority) -> Plan {
    let bundle = Bundle::of([authority.certificate().clone()]);
    Plan { bundle, ..Plan::at(Address::Url { host: "localhost".to_owned(), port: 9443 }) }
}

fn authority() -> Authority {
    Authority::create(now()).unwrap()
}

#[tokio::test]
async fn a_gate_that_converts_under_its_name_and_bundle_passes() {
    let authority = authority();
    probe_gate(&authority, "localhost", gate, &authority).await.unwrap();
}

#[tokio::test]
async fn a_gate_under_another_name_fails() {
    let authority = authority();
    let message = probe_gate(&authority, "elsewhere", gate, &authority).await.unwrap_err();
    assert!(message.starts_with("failed to probe the gate at 127.0.0.1:"), "{message}");
    assert!(message.contains("as localhost: no TLS"), "{message}");
}

#[tokio::test]
async fn a_gate_whose_certificate_the_bundle_does_not_cover_fails() {
    let message = probe_gate(&authority(), "localhost", gate, &authority()).await.unwrap_err();
    assert!(message.contains("no TLS"), "{message}");
}

#[tokio::test]
async fn a_gate_that_answers_something_else_fails() {
    let authority = authority();
    let no = |_: &[u8]| {
        let result = json!({"status": "Failure", "message": "no"});
        json!({"response": {"uid": UID, "result": result}}).to_string().into_bytes()
    };
    let nothing = |_: &[u8]| {
        let result = json!({"status": "Success"});
        json!({"response": {"uid": UID, "result": result, "convertedObjects": []}}).to_string().into_bytes()
    };
    let answers: [(Answer, &str); 4] = [
        (|_| b"ok".to_vec(), "the answer is no conversion"),
        (|_| br#"{"response": {"uid": "1"}}"#.to_vec(), "it has another uid"),
        (no, "the answer is no conversion: no"),
        (nothing, "0 objects came back"),
    ];
    for (answer, reason) in answers {
        let message = probe_gate(&authority, "localhost", answer, &authority).await.unwrap_err();
        assert!(message.contains(reason), "{message}");
    }
}

#[tokio::test]
async fn an_address_without_a_listener_is_no_connection() {
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
