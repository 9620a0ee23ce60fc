use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::*;
use crate::api::field::{Path, Reason};
use crate::certs::certificate::Certificate;
use crate::certs::mint::{Authority, Name};
use crate::kinds::etcdcluster::resources::certificates::trust;
use crate::kinds::etcdcluster::resources::tests::object as cluster;

fn spec(given: &Value) -> Spec {
    Spec::resolve(&cluster(given), &[])
}

fn desired(cluster: &EtcdCluster, is_valid: bool) -> Desired {
    let fault = || FieldError::new(Path::spec(), Reason::Invalid, "is odd");
    let faults: Vec<_> = (!is_valid).then(fault).into_iter().collect();
    Spec::resolve(cluster, &faults).desired(None)
}

fn revision_of(given: &Value) -> u64 {
    spec(given).revision(None)
}

#[test]
fn absent_fields_mean_what_is_written_at_creation() {
    let asked = desired(&cluster(&json!({})), true);
    assert_eq!(asked.template.version, Version::new(7, 3));
    assert_eq!(
        asked,
        Desired {
            is_valid: true,
            is_deleting: false,
            is_protected: false,
            is_paused: false,
            replicas: 3,
            template: asked.template,
            volume_size: 0,
            quota: None,
            is_in_memory: false,
            deletes_volumes: false,
            authenticates: false,
            allows_downgrade: false,
            backs_up_before_upgrade: false,
            defragments_at: None,
            recovery: None,
        }
    );
}

#[test]
fn absent_fields_of_a_cluster_that_runs_mean_what_it_has() {
    let mut cluster = cluster(&json!({}));
    cluster.status = Some(serde_json::from_value(json!({"replicas": 5, "version": "3.5.33"})).unwrap());
    let asked = desired(&cluster, true);
    assert_eq!((asked.replicas, asked.template.version), (5, Version::new(5, 33)));
    assert_eq!(asked.volume_size, 0, "no volume grows");
}

#[test]
fn every_field_is_heeded() {
    let claim = json!({"persistentVolumeClaim": {"claimName": "b"}});
    let mut cluster = cluster(&json!({
        "replicas": 5,
        "version": "3.5.33",
        "paused": true,
        "storage": {"size": "1Gi", "medium": "Memory", "reclaimPolicy": "Delete"},
        "auth": {"enabled": true},
        "backup": {"destination": claim},
        "options": {"quotaBackendBytes": "512Mi"},
        "maintenance": {"defragment": {"whenReclaimablePercent": 30}},
        "deletionProtection": true,
    }));
    let request = "c-1/again".to_owned();
    cluster.annotations_mut().insert(ANNOTATION.to_owned(), request.clone());
    cluster.metadata.deletion_timestamp =
        Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    cluster.annotations_mut().insert(ALLOW_DOWNGRADE.to_owned(), "true".to_owned());
    let asked = desired(&cluster, false);
    assert_eq!(
        asked,
        Desired {
            is_valid: false,
            is_deleting: true,
            is_protected: true,
            is_paused: true,
            replicas: 5,
            template: Template { version: Version::new(5, 33), revision: asked.template.revision },
            volume_size: 1 << 30,
            quota: Some(512 << 20),
            is_in_memory: true,
            deletes_volumes: true,
            authenticates: true,
            allows_downgrade: true,
            backs_up_before_upgrade: true,
            defragments_at: Some(30),
            recovery: Some(RecoveryRequest { token: request, survivor: Some(Ordinal(1)) }),
        }
    );
}

#[test]
fn a_request_to_recover_that_does_not_read_asks_for_nothing() {
    for (text, survivor) in [("auto", Some(None)), ("c-2", Some(Some(Ordinal(2)))), ("d-2", None), ("", None)]
    {
        let mut cluster = cluster(&json!({}));
        cluster.annotations_mut().insert(ANNOTATION.to_owned(), text.to_owned());
        let request = desired(&cluster, true).recovery;
        let expected = survivor.map(|survivor| RecoveryRequest { token: text.to_owned(), survivor });
        assert_eq!(request, expected, "{text}");
    }
}

#[test]
fn a_backup_before_an_upgrade_needs_a_place_and_can_be_declined() {
    let claim = json!({"persistentVolumeClaim": {"claimName": "b"}});
    for (backup, expected) in [
        (json!({"destination": claim}), true),
        (json!({"destination": claim, "beforeUpgrade": true}), true),
        (json!({"destination": claim, "beforeUpgrade": false}), false),
        (json!({"beforeUpgrade": true}), false),
    ] {
        let asked = desired(&cluster(&json!({"backup": backup})), true);
        assert_eq!(asked.backs_up_before_upgrade, expected, "{backup}");
    }
    let defragments = json!({"maintenance": {"defragment": {}}});
    assert_eq!(desired(&cluster(&defragments), true).defragments_at, Some(45));
}

#[test]
fn the_revision_tells_apart_what_ends_in_pods() {
    let specs = [
        json!({}),
        json!({"options": {"snapshotCount": 1000}}),
        json!({"options": {"snapshotCount": 1001}}),
        json!({"options": {"extra": {"max-wals": "1"}}}),
        json!({"pod": {"nodeSelector": {"a": "b"}}}),
        json!({"pod": {"affinity": {}}}),
        json!({"image": {"repository": "r"}}),
        json!({"image": {"pullPolicy": "Always"}}),
        json!({"tls": {"mode": "Disabled"}}),
        json!({"tls": {"mode": "Secrets", "secrets": {"serverRef": {"name": "s"}}}}),
        json!({"tls": {"mode": "Secrets", "secrets": {"serverRef": {"name": "t"}}}}),
        json!({"storage": {"medium": "Memory"}}),
        json!({"storage": {"medium": "Memory", "size": "1Gi"}}),
    ];
    let revisions: BTreeSet<_> = specs.iter().map(revision_of).collect();
    assert_eq!(revisions.len(), specs.len());
}

#[test]
fn the_revision_heeds_nothing_else() {
    let claim = json!({"persistentVolumeClaim": {"claimName": "b"}});
    for spec in [
        json!({"replicas": 7, "version": "3.5.33", "paused": true, "deletionProtection": true}),
        json!({"storage": {"size": "20Gi", "storageClassName": "x", "reclaimPolicy": "Delete"}}),
        json!({"backup": {"schedule": "@daily", "destination": claim}}),
        json!({"auth": {"enabled": true}, "maintenance": {"defragment": {}}}),
        json!({"tls": {"mode": "Automatic"}, "options": {}, "pod": {}, "image": {}}),
    ] {
        assert_eq!(revision_of(&spec), revision_of(&json!({})), "{spec}");
    }
}

/// A change of these restarts every member of every cluster at the next release.
#[test]
fn the_digest_of_whom_members_trust_is_the_same_in_every_release() {
    let pem = include_bytes!("../resources/certificates/authority.pem");
    let authorities = Certificate::read_all(pem);
    let trust = trust(&authorities, &authorities).unwrap();
    assert_eq!(trust.to_string(), "5dcbf459064c0f12");
    assert_eq!(format!("{:016x}", spec(&json!({})).revision(Some(trust))), "810fcc4974520548");
}

/// As above.
#[test]
fn the_revision_is_the_same_in_every_release() {
    let full = json!({
        "image": {"repository": "r", "pullPolicy": "Never", "pullSecrets": [{"name": "s"}]},
        "tls": {"mode": "Secrets", "secrets": {"serverRef": {"name": "s"}, "peerRef": {"name": "p"}, "clientRef": {"name": "c"}}},
        "storage": {"medium": "Memory", "size": "1Gi"},
        "options": {
            "quotaBackendBytes": "2Gi",
            "autoCompaction": {"mode": "Periodic", "retention": "1h"},
            "extra": {"max-wals": "1", "log-level": "warn"},
        },
        "pod": {
            "labels": {"a": "b"},
            "resources": {"requests": {"memory": "1Gi", "cpu": "1"}, "limits": {"memory": "1Gi"}},
            "tolerations": [{"operator": "Exists", "key": "k"}],
            "terminationGracePeriodSeconds": 60,
        },
    });
    let revisions = [json!({}), full].map(|spec| format!("{:016x}", revision_of(&spec)));
    assert_eq!(revisions, ["11b74c01ec5de772", "b0310ae0e07ce6ce"]);
}

#[test]
fn whom_members_trust_is_part_of_what_pods_are_made_from() {
    let name = |common_name| Name { common_name, lifetime: SignedDuration::from_hours(1) };
    let authority = |common_name| Authority::create_as(name(common_name), Timestamp::UNIX_EPOCH).unwrap();
    let (one, other) = (authority("a").certificate().clone(), authority("b").certificate().clone());
    let spec = spec(&json!({}));
    let of = |clients: &[Certificate], peers: &[Certificate]| spec.revision(trust(clients, peers));
    let both = [one.clone(), other.clone()];
    let turned = [other.clone(), one.clone(), one.clone()];
    let (one, other) = (&[one][..], &[other][..]);
    let revisions = [of(one, one), of(other, one), of(one, other), of(other, other), of(&both, &both)];
    assert_eq!(revisions.iter().collect::<BTreeSet<_>>().len(), revisions.len());
    assert_eq!(of(&both, one), of(&turned, one), "in any order");
    assert_eq!((trust(&[], one), trust(one, &[])), (None, None));
    assert_eq!(of(&[], &[]), spec.revision(None), "in plain HTTP there is no authority to trust");
}
