//! Who may ask: client certificates, and the versions of TLS. The program itself, over real TLS.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, SupportedProtocolVersion, version};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::program::Served;
use crate::support::{Authority, Connection, Raw, within};

/// What a client shows.
type Shown = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn client_of(authority: &Authority, common_name: &str, dns: &[&str]) -> Shown {
    let names: Vec<_> = dns.iter().map(|name| (*name).to_owned()).collect();
    let mut parameters = CertificateParams::new(names).unwrap();
    parameters.distinguished_name.push(DnType::CommonName, common_name);
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().unwrap();
    let certificate = authority.sign(&parameters, &key);
    (vec![certificate], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
}

/// Asks on a connection of its own; none where TLS does not come about, or ends before an answer.
async fn ask(
    served: &Served,
    shown: Option<&Shown>,
    versions: &[&'static SupportedProtocolVersion],
    path: &str,
) -> Option<Raw> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(served.authority.certificate.clone()).unwrap();
    let config = ClientConfig::builder_with_protocol_versions(versions).with_root_certificates(roots);
    let config = match shown {
        Some((chain, key)) => config.with_client_auth_cert(chain.clone(), key.clone_key()).unwrap(),
        None => config.with_no_client_auth(),
    };
    let socket = TcpStream::connect(served.gate.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = within(TlsConnector::from(Arc::new(config)).connect(name, socket)).await.ok()?;
    // With TLS 1.3 a client is refused after its own end of the handshake.
    Connection(stream).try_ask(path, "{}").await
}

const BOTH: &[&SupportedProtocolVersion] = &[&version::TLS13, &version::TLS12];

async fn status(served: &Served, shown: Option<&Shown>, path: &str) -> Option<u16> {
    ask(served, shown, BOTH, path).await.map(|answer| answer.status)
}

fn write(folder: &Path, authority: &Authority) -> PathBuf {
    let path = folder.join("clients.crt");
    std::fs::write(&path, &authority.certificate_pem).unwrap();
    path
}

#[tokio::test]
async fn only_who_shows_an_allowed_certificate_has_reviews_answered() {
    let (folder, clients) = (tempfile::tempdir().unwrap(), Authority::new());
    let path = write(folder.path(), &clients);
    let names = ["--client-ca", path.to_str().unwrap(), "--client-name=apiserver,kube-apiserver.example.org"];
    let served = Served::start(&names);
    served.ready().await;
    for allowed in
        [client_of(&clients, "apiserver", &[]), client_of(&clients, "a", &["kube-apiserver.example.org"])]
    {
        for version in BOTH {
            let answer = ask(&served, Some(&allowed), &[version], "/validate").await;
            assert_eq!(answer.map(|answer| answer.status), Some(200));
        }
        assert_eq!(status(&served, Some(&allowed), "/mutate").await, Some(200));
    }
    let (other, stranger) = (client_of(&clients, "eve", &[]), client_of(&Authority::new(), "apiserver", &[]));
    for refused in [&other, &stranger] {
        assert_eq!(status(&served, Some(refused), "/validate").await, None);
    }
    // Conversion has no setting for a client's certificate.
    for (path, wanted) in [("/validate", 401), ("/mutate/tdsets", 401), ("/convert", 200)] {
        assert_eq!(status(&served, None, path).await, Some(wanted), "{path}");
    }
}

#[tokio::test]
async fn another_authority_of_clients_counts_without_a_restart() {
    let (folder, before, after) = (tempfile::tempdir().unwrap(), Authority::new(), Authority::new());
    let path = write(folder.path(), &before);
    let served = Served::start(&["--client-ca", path.to_str().unwrap()]);
    served.ready().await;
    let (old, new) = (client_of(&before, "a", &[]), client_of(&after, "b", &[]));
    assert_eq!(status(&served, Some(&old), "/validate").await, Some(200));
    assert_eq!(status(&served, Some(&new), "/validate").await, None);
    // What is no certificate changes nothing.
    std::fs::write(&path, "nonsense").unwrap();
    served.gate.logs("failed to read the authority of clients");
    assert_eq!(status(&served, Some(&old), "/validate").await, Some(200));
    write(folder.path(), &after);
    within(async {
        while status(&served, Some(&new), "/validate").await != Some(200) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    assert_eq!(status(&served, Some(&old), "/validate").await, None);
}

#[tokio::test]
async fn versions_of_tls_below_the_least_are_refused() {
    let (lax, strict) = (Served::start(&[]), Served::start(&["--tls-min-version=1.3"]));
    for (served, version, wanted) in [
        (&lax, &version::TLS12, Some(200)),
        (&lax, &version::TLS13, Some(200)),
        (&strict, &version::TLS12, None),
        (&strict, &version::TLS13, Some(200)),
    ] {
        served.ready().await;
        let answer = ask(served, None, &[version], "/validate").await;
        assert_eq!(answer.map(|answer| answer.status), wanted, "{version:?}");
    }
}
