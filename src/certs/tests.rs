use std::sync::Mutex;

use futures::FutureExt as _;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::{ServerName, UnixTime};

use super::mint::Authority;
use super::*;

/// A moment to start from.
pub(super) const START: Timestamp = Timestamp::constant(1_800_000_000, 0);

/// What a client makes of this chain that trusts this bundle alone.
pub(super) fn verify(
    chain: &[CertificateDer<'static>],
    bundle: &Bundle,
    name: &str,
    now: Timestamp,
) -> Result<(), rustls::Error> {
    let mut roots = RootCertStore::empty();
    for certificate in bundle.certificates() {
        roots.add(certificate.der().clone())?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let now = UnixTime::since_unix_epoch(Duration::from_secs(now.as_second().try_into().unwrap()));
    verifier.verify_server_cert(&chain[0], &chain[1..], &name, &[], now).map(|_| ())
}

/// A sink that keeps what it was given.
#[derive(Clone, Default)]
pub(super) struct Shelf(pub Arc<Mutex<Vec<Vec<CertificateDer<'static>>>>>);

impl Shelf {
    pub(super) fn sink(&self) -> Box<Sink> {
        let chains = self.0.clone();
        Box::new(move |chain, _| {
            chains.lock().unwrap().push(chain);
            Ok(())
        })
    }

    pub(super) fn served(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

fn files_source() -> (tempfile::TempDir, Source) {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::create(START).unwrap();
    std::fs::write(directory.path().join("tls.key"), authority.key_pem()).unwrap();
    std::fs::write(directory.path().join("tls.crt"), authority.certificate_pem()).unwrap();
    std::fs::write(directory.path().join("ca.crt"), "").unwrap();
    let source = Source::Files(Box::new(files::tests::mounted(directory.path(), || START)));
    (directory, source)
}

#[tokio::test]
async fn a_round_tells_what_is_served_and_a_failed_one_tells_why_and_keeps_it() {
    let (directory, mut source) = files_source();
    let (publisher, handle) = publisher(|_, _| Ok(()));
    assert_eq!(handle.state(), State::default());
    source.refresh(&publisher).await.unwrap();
    let good = handle.state();
    assert!(good.facts.leaf.is_some());
    assert_eq!((good.successes, good.failures, good.failure), (1, 0, None));

    std::fs::write(directory.path().join("tls.key"), "nonsense").unwrap();
    source.refresh(&publisher).await.unwrap_err();
    let bad = handle.state();
    assert_eq!(bad.facts, good.facts);
    assert_eq!((bad.successes, bad.failures), (1, 1));
    assert!(bad.failure.unwrap().contains("no private key in PEM form"));
}

#[tokio::test]
async fn a_certificate_that_the_server_refuses_is_offered_again() {
    let (_directory, mut source) = files_source();
    let offers = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&offers);
    let (publisher, handle) = publisher(move |_, _| match counted.fetch_add(1, Ordering::Relaxed) {
        0 => Err("not yet".into()),
        _ => Ok(()),
    });
    source.refresh(&publisher).await.unwrap_err();
    assert_eq!(handle.state().facts.leaf, None);
    source.refresh(&publisher).await.unwrap();
    assert!(handle.state().facts.leaf.is_some());
    assert_eq!(offers.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_request_for_fresh_facts_gets_those_of_a_round_that_began_afterwards() {
    let (directory, source) = files_source();
    let (publisher, mut handle) = publisher(|_, _| Ok(()));
    let asking = async {
        handle.served().await;
        assert_eq!(handle.state().facts.bundle, None);
        let authority = Authority::create(START).unwrap();
        std::fs::write(directory.path().join("ca.crt"), authority.certificate_pem()).unwrap();
        let bundle = handle.fresh().await.facts.bundle.unwrap();
        assert_eq!(bundle.pem(), authority.certificate_pem());
    };
    tokio::select! {
        never = source.run(publisher) => match never {},
        () = asking => {}
    }
}

#[tokio::test]
async fn a_leaf_of_our_authority_is_trusted_once_that_is_seen_in_force_or_may_not_be_seen() {
    let [ours, another] = [(); 2].map(|()| Authority::create(START).unwrap().certificate().clone());
    let validity = ours.validity();
    let facts = |issuer: Option<&Certificate>| Facts {
        leaf: Some(validity),
        issuer: issuer.cloned(),
        ..Facts::default()
    };
    let is_trusted = |facts: &Facts, looks: &dyn Fn(&Handle)| {
        let (publisher, mut handle) = publisher(|_, _| Ok(()));
        looks(&handle);
        publisher.tell(facts.clone(), None, 0);
        handle.trusted().now_or_never().is_some()
    };
    assert!(!is_trusted(&Facts::default(), &|_| {}), "there is none");
    assert!(is_trusted(&facts(Some(&ours)), &|_| {}), "no task looks");
    assert!(!is_trusted(&facts(Some(&ours)), &Handle::expect_in_force));
    assert!(is_trusted(&facts(None), &Handle::expect_in_force), "others see to it");
    for (seen, expected) in [(&ours, true), (&another, false)] {
        let looks = |handle: &Handle| handle.saw_in_force(vec![seen.clone()]);
        assert_eq!(is_trusted(&facts(Some(&ours)), &looks), expected);
    }
    let may_not = |handle: &Handle| {
        handle.expect_in_force();
        handle.may_not_see_in_force();
    };
    assert!(is_trusted(&facts(Some(&ours)), &may_not));
}

#[tokio::test]
async fn the_state_says_how_many_authorities_were_read_back_and_not_how_many_are_wanted() {
    let (_directory, mut source) = files_source();
    let (publisher, handle) = publisher(|_, _| Ok(()));
    source.refresh(&publisher).await.unwrap();
    assert_eq!((handle.state().facts.bundle, handle.state().in_force), (None, 0));
    let both = [(); 2].map(|()| Authority::create(START).unwrap().certificate().clone());
    handle.saw_in_force(both.to_vec());
    source.refresh(&publisher).await.unwrap();
    assert_eq!(handle.state().in_force, 2);
}

#[test]
fn a_bundle_has_the_same_bytes_whatever_the_order_and_however_often_each_comes() {
    let certificates: Vec<_> =
        (0..3).map(|_| Authority::create(START).unwrap().certificate().clone()).collect();
    let [a, b, c] = certificates.try_into().unwrap();
    let bundle = Bundle::of([a.clone(), b.clone(), c.clone()]).unwrap();
    assert_eq!(Bundle::of([c.clone(), a.clone(), b.clone(), a.clone()]).unwrap(), bundle);
    assert_eq!(bundle.certificates().len(), 3);
    assert_eq!(certificate::Certificate::read_all(bundle.pem()), bundle.certificates());
}

#[test]
fn there_is_no_empty_bundle() {
    assert_eq!(Bundle::of([]), None);
}

#[test]
fn what_is_readable_in_a_damaged_bundle_is_kept() {
    let authority = Authority::create(START).unwrap();
    let mut text = b"# by hand\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_vec();
    text.extend(authority.certificate_pem());
    text.extend(b"-----BEGIN CERTIFICATE-----\nMII");
    assert_eq!(certificate::Certificate::read_all(&text), [authority.certificate().clone()]);
}
