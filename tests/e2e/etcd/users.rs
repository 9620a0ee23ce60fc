//! Etcd with authentication, and the password of its root.

use std::time::Instant;

use serde_json::{Value, json};

use super::cluster::{Etcd, condition};
use super::{NEWEST, gone_with_its_object};
use crate::cluster::{Bed, Namespace};
use crate::release::{NAMESPACE, Way};

/// What a Secret says first, and what it says then.
pub const PASSWORDS: [&str; 2] = ["correct-horse-battery", "staple-of-another-kind"];

/// Makes the Secret that the cluster names, or writes into it.
pub fn keep(namespace: &Namespace<'_>, data: &Value) {
    namespace.apply(&json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {"name": "main-root"},
        "stringData": data,
    }));
}

/// Waits until the certificates' condition has that reason, and says that.
#[track_caller]
fn until_reported(etcd: &Etcd<'_>, reason: &str, words: &str) {
    etcd.until(|_| {
        let said = condition(&etcd.object()?, "CertificatesReady");
        let message = said["message"].as_str().unwrap_or_default();
        if said["reason"] == reason && message.contains(words) { Ok(()) } else { Err(format!("{said}")) }
    });
}

pub fn etcd_takes_the_password_of_root_from_a_secret(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-root");
    let auth = json!({"auth": {"enabled": true, "rootSecretRef": {"name": "main-root"}}});
    let etcd = Etcd::asking(&namespace, "Automatic", NEWEST, 1, &auth);
    until_reported(&etcd, "RootPasswordUnset", "secret main-root is missing");
    etcd.until(|_| {
        let ready = &etcd.object()?["status"]["readyReplicas"];
        if *ready == 1 { Ok(()) } else { Err(format!("{ready} serve")) }
    });
    until_reported(&etcd, "RootPasswordUnset", "no client is let in");
    assert!(etcd.voters().is_empty(), "no client may be let in yet");

    let [first, second] = PASSWORDS;
    keep(&namespace, &json!({"username": "root", "password": first}));
    etcd.until_settled(1);
    etcd.until(|_| etcd.takes(first));
    etcd.refuses(second);
    let uids = || etcd.pods().iter().map(|pod| pod["metadata"]["uid"].clone()).collect::<Vec<_>>();
    let pods = uids();

    let begun = Instant::now();
    keep(&namespace, &json!({"username": "root", "password": second}));
    etcd.until(|_| etcd.takes(second));
    crate::figure(format!("{}: etcd: root has another password after {:.1?}", way.name(), begun.elapsed()));
    etcd.refuses(first);
    etcd.until_settled(1);

    // What is no password of root changes nothing.
    keep(&namespace, &json!({"username": "admin", "password": first}));
    until_reported(&etcd, "RootPasswordUnset", "secret main-root has another username than root");
    etcd.until(|_| etcd.takes(second));
    assert_eq!(uids(), pods, "nothing is restarted for a password");
    etcd.put("kept", "by certificate");
    assert_eq!(etcd.read("kept").as_deref(), Some("by certificate"));
    is_kept_secret(bed, &namespace);
    gone_with_its_object(bed, &namespace);
}

/// No password is in the object, its events, or what gatehouse logs.
fn is_kept_secret(bed: &Bed, namespace: &Namespace<'_>) {
    let logs = ["logs", "--namespace", NAMESPACE, "--selector=app.kubernetes.io/name=gatehouse", "--tail=-1"];
    for told in
        [namespace.kubectl(&["get", "etcdclusters,events", "-o", "yaml"]).ok(), bed.kubectl(&logs).ok()]
    {
        assert!(told.contains("main"), "it tells of the cluster: {told}");
        assert!(!PASSWORDS.iter().any(|password| told.contains(password)), "{told}");
    }
}
