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
        MountedFiles::in_directory(self.directory.path(), || START)
    }
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
        files.refresh(&shelf.sink()).await.unwrap();
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
        files.refresh(&shelf.sink()).await.unwrap();
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
    files.refresh(&shelf.sink()).await.unwrap();
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
        let message = files.refresh(&shelf.sink()).await.unwrap_err().to_string();
        assert!(message.contains(reason), "{message}");
        assert!(message.contains(&*mount.directory.path().to_string_lossy()), "{message}");
        assert_eq!(files.facts(), facts);
    }
    assert_eq!(shelf.served(), 1);
    let (certificate, key) = pair(&authority, START);
    mount.write(&certificate, &key, b"");
    files.refresh(&shelf.sink()).await.unwrap();
    assert_eq!(shelf.served(), 2);
}

#[tokio::test]
async fn a_missing_file_is_an_error_but_a_missing_bundle_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let mut files = MountedFiles::in_directory(directory.path(), || START);
    let shelf = Shelf::default();
    assert!(matches!(files.refresh(&shelf.sink()).await, Err(Error::Read { .. })));
    let (certificate, key) = pair(&Authority::create(START).unwrap(), START);
    std::fs::write(directory.path().join("tls.crt"), certificate).unwrap();
    std::fs::write(directory.path().join("tls.key"), key).unwrap();
    files.refresh(&shelf.sink()).await.unwrap();
    assert_eq!(shelf.served(), 1);
}

#[tokio::test]
async fn a_bundle_that_vanishes_is_not_withdrawn() {
    let authority = Authority::create(START).unwrap();
    let (mut mount, shelf) = (Mount::new(), Shelf::default());
    let mut files = mount.files();
    let (certificate, key) = pair(&authority, START);
    mount.write(&certificate, &key, &authority.certificate_pem());
    files.refresh(&shelf.sink()).await.unwrap();
    let bundle = files.facts().bundle;
    mount.write(&certificate, &key, b"");
    files.refresh(&shelf.sink()).await.unwrap();
    assert!(bundle.is_some());
    assert_eq!(files.facts().bundle, bundle);
}
