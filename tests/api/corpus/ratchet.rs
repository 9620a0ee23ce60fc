//! Objects that were stored before there was a rule against them.
//!
//! They come into being where the definitions have no rules at all. Then the definitions get theirs, and after that
//! the gate comes. At both stages an object takes labels, status, the loss of a finalizer and edits that have
//! nothing to do with its fault, and no second fault.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps,
};
use kit::bed::Bed;
use kit::objects::{Ask, Objects, Outcome};
use kit::wait::eventually;
use serde_json::{Value, json};

use super::bare::{self, Bare};
use super::{Base, By, collection, etcdcluster, judged, patched, path, set, tdset, yaml};

/// A second fault, its field, and who refuses it.
type Second = (&'static str, &'static str, By);

const VERSION: Second = ("spec: {version: v3}", "spec.version", By::Definition);
const RAMP: Second = ("spec: {ramp: {up: {step: 0, every: 30s}}}", "spec.ramp.up.step", By::Definition);
const INTERVAL: Second = ("spec: {intervalMint: 0}", "spec.intervalMint", By::Definition);

/// A base, the fault that is stored, an edit elsewhere, and a second fault.
type Row = (&'static Base, &'static str, &'static str, Second);

const ROWS: &[Row] = &[
    (&etcdcluster::NEW, "spec: {replicas: 9}", "spec: {paused: true}", VERSION),
    (
        &etcdcluster::NEW,
        "spec: {replicas: 9}",
        "spec: {paused: true}",
        ("spec: {replicas: 10}", "spec.replicas", By::Definition),
    ),
    (&etcdcluster::NEW, "spec: {storage: {size: 10GB}}", "spec: {storage: {reclaimPolicy: Delete}}", VERSION),
    (&etcdcluster::NEW, "spec: {storage: {medium: Memory}, replicas: 0}", "spec: {paused: true}", VERSION),
    (
        &etcdcluster::NEW,
        "spec: {auth: {enabled: true}, tls: {mode: Disabled}}",
        "spec: {replicas: 5}",
        VERSION,
    ),
    (
        &etcdcluster::NEW,
        "spec: {restore: {from: {name: a}}}",
        "spec: {replicas: 5}",
        ("spec: {backup: {destination: {gcs: {}}}}", "spec.backup.destination.gcs", By::Definition),
    ),
    (
        &etcdcluster::NEW,
        "spec: {restore: {from: {name: a}}}",
        "spec: {paused: true}",
        ("spec: {restore: {from: {name: b}}}", "spec.restore", By::Gate),
    ),
    (
        &etcdcluster::NEW,
        "spec: {options: {extra: {data-dir: /a}}}",
        "spec: {paused: true}",
        ("spec: {options: {extra: {data-dir: /b}}}", "spec.options.extra[data-dir]", By::Gate),
    ),
    (
        &etcdcluster::NEW,
        "spec: {backup: {schedule: '@daily', destination: {s3: {bucket: abc}}}}",
        "spec: {backup: {suspend: true}}",
        ("spec: {restore: {}}", "spec.restore", By::Definition),
    ),
    (
        &etcdcluster::NEW,
        "spec: {pod: {terminationGracePeriodSeconds: 0}}",
        "spec: {pod: {nodeSelector: {a: b}}}",
        VERSION,
    ),
    (&etcdcluster::NEW, "spec: {tls: {mode: Secrets}}", "spec: {replicas: 5}", VERSION),
    (&etcdcluster::NEW, "spec: {backup: {schedule: '@daily'}}", "spec: {replicas: 5}", VERSION),
    (
        &etcdcluster::NEW,
        "spec: {backup: {schedule: '61 * * * *', destination: {persistentVolumeClaim: {claimName: a}}}}",
        "spec: {backup: {suspend: true}}",
        VERSION,
    ),
    (
        &etcdcluster::NEW,
        "spec: {version: 3.4.1}",
        "spec: {replicas: 5}",
        ("spec: {storage: {storageClassName: Fast}}", "spec.storage.storageClassName", By::Definition),
    ),
    (
        &etcdcluster::NEW,
        "spec: {options: {extra: {data-dir: /a}}}",
        "spec: {options: {snapshotCount: 5000}}",
        ("spec: {options: {extra: {no-such-flag: a}}}", "spec.options.extra[no-such-flag]", By::Gate),
    ),
    (
        &etcdcluster::NEW,
        "spec: {pod: {env: [{name: ETCD_NAME}]}}",
        "spec: {pod: {priorityClassName: high}}",
        ("spec: {pod: {priorityClassName: High}}", "spec.pod.priorityClassName", By::Gate),
    ),
    (&etcdcluster::OLD, "spec: {size: 9}", "spec: {storageSize: 20Gi}", VERSION),
    (&etcdcluster::OLD, "spec: {backupSchedule: never}", "spec: {size: 5}", VERSION),
    (&tdset::NEW, "spec: {defaultReplicas: -1}", "spec: {resyncMinutes: 5}", RAMP),
    (&tdset::NEW, "spec: {timeZone: Local}", "spec: {defaultReplicas: 5}", RAMP),
    (
        &tdset::NEW,
        "spec: {timeZone: Europe/Atlantis}",
        "spec: {defaultReplicas: 5}",
        ("spec: {timeZone: Europe/Utopia}", "spec.timeZone", By::Gate),
    ),
    (
        &tdset::NEW,
        "spec: {windows: [{name: a, from: '08:00', to: '08:00', replicas: 1}]}",
        "spec: {windows: [{name: a, from: '08:00', to: '08:00', replicas: 2}]}",
        RAMP,
    ),
    (
        &tdset::NEW,
        "spec: {windows: [{name: a, from: '8', to: '09:00', replicas: 1}]}",
        "spec: {windows: [{name: a, from: '8', to: '09:00', replicas: 2}]}",
        RAMP,
    ),
    (
        &tdset::NEW,
        "spec: {windows: [{name: a, from: '08:00', to: '09:00', replicas: 1, season: {}}]}",
        "spec: {windows: [{name: a, from: '08:00', to: '09:00', replicas: 2, season: {}}]}",
        RAMP,
    ),
    (
        &tdset::NEW,
        "spec: {exceptions: [{name: a, between: {start: '2001-01-01T00:00:00Z', end: '2001-01-02T00:00:00Z'}, replicas: 0}]}",
        "spec: {defaultReplicas: 5}",
        RAMP,
    ),
    (
        &tdset::NEW,
        "spec: {exceptions: [{name: a, dates: ['2026-12-25']}]}",
        "spec: {defaultReplicas: 5}",
        RAMP,
    ),
    (
        &tdset::NEW,
        "spec: {target: {ref: {apiVersion: apps/v1, kind: Deployment, name: a}}}",
        "spec: {defaultReplicas: 5}",
        RAMP,
    ),
    (&tdset::NEW, "spec: {ramp: {down: {step: 0, every: 5d}}}", "spec: {defaultReplicas: 5}", RAMP),
    (
        &tdset::OLD,
        "spec: {schedulingConfig: [{startTime: 8, endTime: 8, replica: 1}]}",
        "spec: {defaultReplica: 5}",
        INTERVAL,
    ),
    (&tdset::OLD, "spec: {container: {port: 0}}", "spec: {container: {image: other}}", INTERVAL),
];

/// A name that is too long, in place of the one that a row's number gives.
const TOO_LONG: &str = "a-name-that-is-far-too-long-for-its-backup-cron-job";

pub fn what_was_stored_before_a_rule_takes_every_other_edit(bed: &Bed) {
    let bare = bare::beside(bed);
    let _turn = bare.turn_of_one();
    let (namespace, objects) = (bare.bed.namespace().name.clone(), &bare.bed.objects);
    bare.define(&bare.definitions().into_iter().map(without_rules).collect::<Vec<_>>());
    until_accepted(objects, &etcdcluster::NEW, "spec: {replicas: 9}");
    until_accepted(objects, &tdset::NEW, "spec: {defaultReplicas: -1}");
    let mut stored: Vec<_> = ROWS.iter().enumerate().map(|(index, row)| faulty(index, row)).collect();
    let long = patched(faulty(ROWS.len(), &ROWS[0]), &format!("metadata: {{name: {TOO_LONG}}}"));
    stored.push(long);
    for outcome in objects.all(stored.iter().map(|object| Ask::create(object, &namespace)).collect()) {
        outcome.unwrap_or_else(|refusal| panic!("{}", refusal.message));
    }

    bare.define(&bare.definitions());
    until_refused(objects, &etcdcluster::NEW, "spec: {replicas: 9}");
    until_refused(objects, &tdset::NEW, "spec: {defaultReplicas: -1}");
    let place = Place { objects, namespace: &namespace };
    let mut doubts = String::new();
    edit_all(&place, &stored, false, &mut doubts);
    assert!(doubts.is_empty(), "with the definitions alone:\n{doubts}");

    let gate = bare.bed.install(&[]).unwrap_or_else(|error| panic!("{error}"));
    until_refused(objects, &etcdcluster::NEW, "spec: {version: 3.4.1}");
    until_refused(objects, &tdset::NEW, "spec: {timeZone: Europe/Atlantis}");
    edit_all(&place, &stored, true, &mut doubts);
    assert!(doubts.is_empty(), "with the gate:\n{doubts}");
    delete_all(&place, &stored);
    gate.into_program().kill();
    without_gate(bare);
}

/// Has the control plane as it was: the gate's definitions and configurations outlive it.
pub fn without_gate(bare: &Bare) {
    for kind in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}/gatehouse");
        bare.bed.objects.if_there(Ask::delete(path));
    }
    bare.define(&bare.definitions());
    until_accepted(&bare.bed.objects, &etcdcluster::NEW, "spec: {version: 3.4.1}");
    until_accepted(&bare.bed.objects, &tdset::NEW, "spec: {timeZone: Europe/Atlantis}");
    // Nothing converts where a definition points at the gate that was killed.
    until_accepted(&bare.bed.objects, &etcdcluster::OLD, "");
    until_accepted(&bare.bed.objects, &tdset::OLD, "");
}

/// The same definition with schemas that take anything.
pub fn without_rules(mut definition: CustomResourceDefinition) -> CustomResourceDefinition {
    let anything = || JSONSchemaProps {
        type_: Some("object".to_owned()),
        x_kubernetes_preserve_unknown_fields: Some(true),
        ..JSONSchemaProps::default()
    };
    for version in &mut definition.spec.versions {
        let parts = ["spec", "status"].map(|part| (part.to_owned(), anything()));
        let schema = version.schema.get_or_insert_default();
        schema.open_api_v3_schema = Some(JSONSchemaProps {
            type_: Some("object".to_owned()),
            properties: Some(parts.into()),
            ..JSONSchemaProps::default()
        });
    }
    definition
}

fn faulty(index: usize, row: &Row) -> Value {
    let name = format!("metadata: {{name: stored-{index}, finalizers: [example.com/kept]}}");
    patched(row.0.changed(row.1), &name)
}

/// Waits until new objects with that fault are refused: definitions and configurations come into force a moment
/// after they are written.
pub fn until_refused(objects: &Objects, base: &Base, change: &str) {
    eventually(|| match objects.one(tried(base, change)) {
        Err(_) => Ok(()),
        Ok(_) => Err(format!("{change} is accepted")),
    });
}

/// Waits until such objects are taken.
pub fn until_accepted(objects: &Objects, base: &Base, change: &str) {
    eventually(|| objects.one(tried(base, change)).map_err(|refusal| refusal.message));
}

fn tried(base: &Base, change: &str) -> Ask {
    let object = base.changed(change);
    Ask::post(collection("default", &object) + "?dryRun=All", object)
}

/// Where the objects are.
struct Place<'a> {
    objects: &'a Objects,
    namespace: &'a str,
}

/// Tries every edit on every object, without storing any.
fn edit_all(place: &Place, stored: &[Value], gate: bool, doubts: &mut String) {
    for (index, object) in stored.iter().enumerate() {
        let (_, fault, elsewhere, (second, field, by)) = &ROWS[index % ROWS.len()];
        let fault = if index < ROWS.len() { fault } else { "a name that is too long" };
        let path = path(place.namespace, object);
        let stored = place.objects.at(&path);
        let mut expect = |what: &str, edit: Value, sub_resource: &str, expected: &BTreeSet<String>| {
            let target = format!("{path}{sub_resource}?dryRun=All");
            let outcome = place.objects.one(Ask::patch(target, edit.clone()));
            let found = fields(&outcome);
            if found != *expected {
                let message = outcome.err().map(|refusal| refusal.message).unwrap_or_default();
                writeln!(
                    doubts,
                    "- {fault}, then {what}: refused {found:?}, expected {expected:?}: {message:.300}"
                )
                .expect("memory");
            }
            if sub_resource.is_empty() && (gate || expected.is_empty()) {
                let mut edited = stored.clone();
                json_patch::merge(&mut edited, &edit);
                let refused = judged(&edited, Some(&stored), gatehouse::runtime::clock::now()).refused;
                if refused != *expected {
                    writeln!(
                        doubts,
                        "- {fault}, then {what}: the library refuses {refused:?}, expected {expected:?}"
                    )
                    .expect("memory");
                }
            }
        };
        let nothing = BTreeSet::new();
        expect("a label", json!({"metadata": {"labels": {"a": "b"}}}), "", &nothing);
        expect("the loss of a finalizer", json!({"metadata": {"finalizers": null}}), "", &nothing);
        expect("a status", json!({"status": {"replicas": 1}}), "/status", &nothing);
        expect(elsewhere, yaml(elsewhere), "", &nothing);
        if gate || *by == By::Definition {
            expect(second, yaml(second), "", &set(field));
        }
    }
}

fn fields(outcome: &Outcome) -> BTreeSet<String> {
    match outcome {
        Ok(_) => BTreeSet::new(),
        Err(refusal) if refusal.fields.is_empty() => BTreeSet::from([refusal.message.clone()]),
        Err(refusal) => refusal.fields.clone(),
    }
}

/// Objects go when they are deleted and their finalizer is taken away, whatever is wrong with them.
fn delete_all(place: &Place, stored: &[Value]) {
    for object in stored {
        let path = path(place.namespace, object);
        place.objects.must(Ask::delete(&*path));
        place.objects.must(Ask::patch(&*path, json!({"metadata": {"finalizers": null}})));
        let gone = place.objects.one(Ask::get(&*path)).expect_err("it is gone");
        assert_eq!(gone.code, 404, "{}", gone.message);
    }
}
