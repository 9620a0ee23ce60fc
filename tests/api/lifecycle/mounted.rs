//! Certificates that other programs put into files. Replicas see them change at different times.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use kit::bed::Bed;
use kit::objects::Ask;
use kit::program::Gate;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};

use super::authority::certificates;
use super::{Life, cluster, until};
use crate::installed::{ETCDCLUSTERS, MUTATING, TDSETS, VALIDATING};

/// What signs the certificates in files.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).expect("parameters");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let pem = parameters.self_signed(&key).expect("an authority").pem();
        Self { pem, issuer: Issuer::new(parameters, key) }
    }
}

/// A Secret as the kubelet mounts it: links to `..data`, itself a link to a folder of one version.
struct Mount {
    folder: tempfile::TempDir,
}

const FILES: [&str; 3] = ["tls.crt", "tls.key", "ca.crt"];

impl Mount {
    fn of(authority: &Authority) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in FILES {
            symlink(PathBuf::from("..data").join(name), folder.path().join(name)).expect("a link");
        }
        let mount = Self { folder };
        mount.update("first", authority);
        mount
    }

    /// Puts a new certificate of that authority there, with its key.
    fn update(&self, version: &str, authority: &Authority) {
        let key = KeyPair::generate().expect("a key");
        let parameters = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("parameters");
        let leaf = parameters.signed_by(&key, &authority.issuer).expect("a certificate");
        let (folder, next) = (self.folder.path(), self.folder.path().join("..next"));
        fs::create_dir(folder.join(version)).expect("a folder");
        for (name, content) in FILES.into_iter().zip([leaf.pem(), key.serialize_pem(), authority.pem.clone()])
        {
            fs::write(folder.join(version).join(name), content).expect("a file");
        }
        symlink(version, &next).expect("a link");
        fs::rename(next, folder.join("..data")).expect("a link");
    }

    fn options(&self) -> Vec<String> {
        let flags = ["--tls-cert", "--tls-key", "--tls-ca"];
        let paths = FILES.map(|name| self.folder.path().join(name).to_string_lossy().into_owned());
        flags.into_iter().zip(paths).flat_map(|(flag, path)| [flag.to_owned(), path]).collect()
    }
}

/// How often a gate has taken the certificate in its file into service.
fn served(gate: &Gate) -> usize {
    let lines = gate.log().from_the_start()();
    lines.iter().filter(|line| line["message"] == "serving the certificate from its file").count()
}

/// Writes and reads an object through the gate, and deletes it.
fn call(life: &Life, asked: &mut usize) {
    *asked += 1;
    let name = format!("asked-{asked}");
    life.create(&cluster("v1", &name)).expect("every call is answered");
    let path = format!("{}/{name}", life.of("v1alpha1", "etcdclusters"));
    life.at(&path);
    life.ask(Ask::delete(path)).expect("every call is answered");
}

/// How many authorities all objects carry, where they carry the same.
fn trusted(life: &Life) -> Option<usize> {
    let bundles = life.bundles();
    bundles.iter().all(|bundle| *bundle == bundles[0]).then(|| certificates(&bundles[0]))
}

/// Each of these gates looks at what is installed, and none writes it.
#[track_caller]
fn rest(life: &Life, gates: &[&Gate]) {
    let others = [ETCDCLUSTERS, TDSETS, MUTATING];
    let before = life.versions(&others);
    life.until_looked_at(gates);
    assert_eq!(life.versions(&others), before, "they undo each other's work");
}

pub fn mounts_that_change_at_different_times_fail_no_call(bed: &Bed) {
    let life = Life::begin_empty(bed);
    let [old, new] = ["old", "new"].map(Authority::new);
    let mounts = [Mount::of(&old), Mount::of(&old)];
    let folder = tempfile::tempdir().expect("a folder");
    let clock = folder.path().join("clock");
    let spawn = |mount: &Mount, public: u16| {
        let options = mount.options();
        let options: Vec<_> = options.iter().map(String::as_str).collect();
        let gate = life.spawn_with(&options, Some(&clock), 0, public);
        gate.logs("installed");
        gate
    };
    let one = spawn(&mounts[0], 0);
    let other = spawn(&mounts[1], one.address.port());
    life.until_guarded();
    assert_eq!(trusted(&life), Some(1));
    let before = life.bundles();
    let mut asked = 0;

    // The replica that API servers ask has the new certificate first. It waits until they trust it.
    mounts[0].update("second", &new);
    until("it serves the new certificate", || {
        call(&life, &mut asked);
        served(&one) == 2
    });
    one.logs("the certificate in its file waits until API servers trust its authority");
    assert_eq!(trusted(&life), Some(2), "{:?}", life.bundles());
    assert_eq!(served(&other), 1);
    rest(&life, &[&one, &other]);
    call(&life, &mut asked);

    // One that still has the old authority in its files puts both back.
    life.patch(TDSETS, json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": null}}}}}));
    until("both are put back", || trusted(&life) == Some(2));

    mounts[1].update("second", &new);
    until("the other serves the new certificate", || {
        call(&life, &mut asked);
        served(&other) == 2
    });
    rest(&life, &[&one, &other]);
    assert_eq!(trusted(&life), Some(2), "the old one stays for a day");

    // A day later.
    let next = folder.path().join("next");
    fs::write(&next, "PT25H").expect("written");
    fs::rename(&next, &clock).expect("replaced");
    life.patch(VALIDATING, json!({"metadata": {"labels": {"look": "later"}}}));
    until("the new authority alone is trusted", || trusted(&life) == Some(1));
    assert_ne!(life.bundles(), before);
    life.patch(VALIDATING, json!({"metadata": {"labels": {"look": Value::Null}}}));
    rest(&life, &[&one, &other]);
    call(&life, &mut asked);
}
