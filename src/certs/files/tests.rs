use std::os::unix::fs::symlink;

use jiff::SignedDuration;

use super::*;
use crate::certs::mint::Authority;
use crate::certs::tests::{START, Shelf, verify};

const NAME: &str = "gatehouse.system.svc";

/// A directory as the kubelet mounts a Secret: links to `..data`, itself a link to a directory of one version.
struct Mount {
    directory: tempfile::TempDir,
    versions: usize,
}

impl Mount {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["tls.crt", "tls.key", "ca.crt"] {
            symlink(Path::new("..data").join(name), directory.path().join(name)).unwrap();
        }
        Self { directory, versions: 0 }
    }

    fn write(&mut self, certificate: &[u8], key: &[u8], bundle: &[u8]) {
        self.versions += 1;
        let version = format!("..version-{}", self.versions);
        let path = self.directory.path().join(&version);
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("tls.crt"), certificate).unwrap();
        std::fs::write(path.join("tls.key"), key).unwrap();
        std::fs::write(path.join("ca.crt"), bundle).unwrap();
        symlink(version, self.directory.path().join("..next")).unwrap();
        std::fs::rename(self.directory.path().join("..next"), self.directory.path().join("..data")).unwrap();
    }

    fn files(&self) -> MountedFiles {
        mounted(self.directory.path(), || START)
    }
}

/// Reads a mounted Secret of type `kubernetes.io/tls`.
pub(in crate::certs) fn mounted(directory: &Path, clock: Clock) -> MountedFiles {
    let [certificate, key, bundle] = ["tls.crt", "tls.key", "ca.crt"].map(|name| directory.join(name));
    MountedFiles::new(certificate, key, Some(bundle), clock)
}

/// Other clients write what is in force.
const fn unseen(_: &Certificate) -> InForce {
    InForce::Unseen
}

/// Certificate and key in PEM, signed by `authority` at `now`.
fn pair(authority: &Authority, now: Timestamp) -> (Vec<u8>, Vec<u8>) {
    let leaf = authority.mint(&[NAME.to_owned()], now).unwrap();
    let certificate = Certificate::read(leaf.chain()[0].clone()).unwrap();
    let key = rcgen::KeyPair::try_from(leaf.key().secret_der()).unwrap();
    (crate::certs::certificate::pem_of(&certificate), key.serialize_pem().into_bytes())
}

#[tokio::test]
async fn a_swapped_link_is_noticed_and_the_new_certificate_served() {
    let authority = Authority::create(START).unwrap();
    let (mut mount, shelf) = (Mount::new(), Shelf::default());
    let mut files = mount.files();
    for served in 1..=3 {
        let (certificate, key) = pair(&authority, START);
        mount.write(&certificate, &key, &authority.certificate_pem());
        files.refresh(&shelf.sink(), unseen).await.unwrap();
        assert_eq!(shelf.served(), served);
        let bundle = files.facts().bundle.unwrap();
        verify(shelf.0.lock().unwrap().last().unwrap(), &bundle, NAME, START).unwrap();
    }
}

#[tokio::test]
async fn what_is_served_already_is_not_served_again() {
    let authority = Authority::create(START).unwrap();
    let (mut mount, shelf) = (Mount::new(), Shelf::default());
    let mut files = mount.files();
    let (certificate, key) = pair(&authority, START);
    for _ in 0..3 {
        mount.write(&certificate, &key, b"");
        files.refresh(&shelf.sink(), unseen).await.unwrap();
    }
    assert_eq!(shelf.served(), 1);
    assert_eq!(files.facts().bundle, None, "an empty file is no bundle");
}

#[tokio::test]
async fn what_cannot_be_served_is_named_and_the_certificate_before_stays() {
    let authority = Authority::create(START).unwrap();
    let (mut mount, shelf) = (Mount::new(), Shelf::default());
    let mut files = mount.files();
    let (certificate, key) = pair(&authority, START);
    let (_, other_key) = pair(&authority, START);
    let (expired, expired_key) = pair(&authority, START - SignedDuration::from_hours(8 * 24));
    mount.write(&certificate, &key, b"");
    files.refresh(&shelf.sink(), unseen).await.unwrap();
    let facts = files.facts();
    let bad: [([&[u8]; 3], &str); 6] = [
        ([&certificate, &other_key, b""], "failed to use"),
        ([&certificate, b"", b""], "no private key in PEM form in it"),
        ([b"", &key, b""], "no certificate in PEM form in it"),
        ([b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", &key, b""], "failed to read"),
        ([&expired, &expired_key, b""], "it expired at"),
        ([&certificate, &key, b"nonsense"], "ca.crt: no certificate in PEM form in it"),
    ];
    for ([certificate, key, bundle], reason) in bad {
        mount.write(certificate, key, bundle);
        let message = files.refresh(&shelf.sink(), unseen).await.unwrap_err().to_string();
        assert!(message.contains(reason), "{message}");
        assert!(message.contains(&*mount.directory.path().to_string_lossy()), "{message}");
        assert_eq!(files.facts(), facts);
    }
    assert_eq!(shelf.served(), 1);
    let (certificate, key) = pair(&authority, START);
    mount.write(&certificate, &key, b"");
    files.refresh(&shelf.sink(), unseen).await.unwrap();
    assert_eq!(shelf.served(), 2);
}

#[tokio::test]
async fn each_missing_file_is_an_error_and_that_of_the_authority_says_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, content: Vec<u8>| std::fs::write(directory.path().join(name), content).unwrap();
    let mut files = mounted(directory.path(), || START);
    let (authority, shelf) = (Authority::create(START).unwrap(), Shelf::default());
    let (certificate, key) = pair(&authority, START);
    let message = files.refresh(&shelf.sink(), unseen).await.unwrap_err().to_string();
    let path = directory.path().join("ca.crt").display().to_string();
    assert!(message.contains(&path) && message.contains("--tls-ca"), "{message}");
    assert!(message.contains("put the certificate of the authority"), "{message}");
    file("ca.crt", authority.certificate_pem());
    assert!(matches!(files.refresh(&shelf.sink(), unseen).await, Err(Error::Read { .. })));
    file("tls.crt", certificate);
    file("tls.key", key);
    files.refresh(&shelf.sink(), unseen).await.unwrap();
    assert_eq!(shelf.served(), 1);
}

#[tokio::test]
async fn a_bundle_that_vanishes_is_not_withdrawn() {
    let authority = Authority::create(START).unwrap();
    let (mut mount, shelf) = (Mount::new(), Shelf::default());
    let mut files = mount.files();
    let (certificate, key) = pair(&authority, START);
    mount.write(&certificate, &key, &authority.certificate_pem());
    files.refresh(&shelf.sink(), unseen).await.unwrap();
    let bundle = files.facts().bundle;
    mount.write(&certificate, &key, b"");
    files.refresh(&shelf.sink(), unseen).await.unwrap();
    assert!(bundle.is_some());
    assert_eq!(files.facts().bundle, bundle);
}

/// A mount that serves a certificate of one authority, and then holds one of another.
struct Exchange {
    mount: Mount,
    shelf: Shelf,
    files: MountedFiles,
    old: Authority,
    new: Authority,
}

impl Exchange {
    async fn begin() -> Self {
        let [old, new] = [(); 2].map(|()| Authority::create(START).unwrap());
        let (mut mount, shelf) = (Mount::new(), Shelf::default());
        let mut files = mount.files();
        let (certificate, key) = pair(&old, START);
        mount.write(&certificate, &key, &old.certificate_pem());
        files.refresh(&shelf.sink(), |_: &Certificate| InForce::Distrusted).await.unwrap();
        assert_eq!(shelf.served(), 1, "there is no other");
        assert_eq!(files.facts().issuer.as_ref(), Some(old.certificate()));
        Self { mount, shelf, files, old, new }
    }

    fn exchange(&mut self) {
        let (certificate, key) = pair(&self.new, START);
        self.mount.write(&certificate, &key, &self.new.certificate_pem());
    }

    /// Reads once, while the new authority is in force like that; how many certificates have been served.
    async fn round(&mut self, in_force: InForce) -> usize {
        let expected = self.new.certificate().identity().clone();
        let look = |asked: &Certificate| {
            assert_eq!(*asked.identity(), expected);
            in_force
        };
        self.files.refresh(&self.shelf.sink(), look).await.unwrap();
        self.shelf.served()
    }

    fn both(&self) -> Option<Bundle> {
        Bundle::of([&self.old, &self.new].map(|one| one.certificate().clone()))
    }
}

#[tokio::test]
async fn a_certificate_of_another_authority_waits_until_that_is_seen_in_force_twice() {
    let mut exchange = Exchange::begin().await;
    exchange.exchange();
    let looks =
        [InForce::Distrusted, InForce::Distrusted, InForce::Trusted, InForce::Distrusted, InForce::Trusted];
    for look in looks {
        assert_eq!(exchange.round(look).await, 1);
        let facts = exchange.files.facts();
        assert_eq!(facts.bundle, exchange.both(), "API servers have to trust both");
        assert_eq!(facts.issuer.as_ref(), Some(exchange.old.certificate()));
    }
    assert_eq!(exchange.round(InForce::Trusted).await, 2);
    let facts = exchange.files.facts();
    assert_eq!(facts.bundle, Bundle::of([exchange.new.certificate().clone()]));
    assert_eq!(facts.issuer.as_ref(), Some(exchange.new.certificate()));
}

#[tokio::test]
async fn what_waits_is_given_up_where_the_mount_is_taken_back() {
    let mut exchange = Exchange::begin().await;
    let before = exchange.files.facts();
    let read = |name| std::fs::read(exchange.mount.directory.path().join(name)).unwrap();
    let old = ["tls.crt", "tls.key", "ca.crt"].map(read);
    exchange.exchange();
    assert_eq!(exchange.round(InForce::Distrusted).await, 1);
    exchange.mount.write(&old[0], &old[1], &old[2]);
    assert_eq!(exchange.round(InForce::Distrusted).await, 1);
    assert_eq!(exchange.files.facts(), before);
}

#[tokio::test]
async fn where_other_clients_write_the_bundle_a_new_certificate_is_served_at_once() {
    let mut exchange = Exchange::begin().await;
    exchange.exchange();
    assert_eq!(exchange.round(InForce::Unseen).await, 2);
}

#[tokio::test]
async fn a_certificate_that_its_own_authority_has_not_signed_does_not_replace_one_that_is_trusted() {
    let mut exchange = Exchange::begin().await;
    let (certificate, key) = pair(&exchange.new, START);
    exchange.mount.write(&certificate, &key, &exchange.old.certificate_pem());
    let outcome = exchange.files.refresh(&exchange.shelf.sink(), unseen).await;
    assert!(matches!(outcome, Err(Error::Unsigned { .. })), "{outcome:?}");
    assert_eq!(exchange.shelf.served(), 1);
    exchange.exchange();
    exchange.round(InForce::Trusted).await;
    assert_eq!(exchange.round(InForce::Trusted).await, 2);
}

#[tokio::test]
async fn once_the_one_before_has_expired_the_new_one_is_served_whatever_is_in_force() {
    let mut exchange = Exchange::begin().await;
    let later = START + SignedDuration::from_hours(8 * 24);
    exchange.files.clock = || START + SignedDuration::from_hours(8 * 24);
    let (certificate, key) = pair(&exchange.new, later);
    exchange.mount.write(&certificate, &key, &exchange.new.certificate_pem());
    assert_eq!(exchange.round(InForce::Distrusted).await, 2);
}
