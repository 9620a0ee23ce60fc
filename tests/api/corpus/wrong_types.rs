//! Objects that were stored while a definition was another, with values of other types than it has now. Each says in its
//! status and by an event what is wrong with it, and holds up nothing: no rule of a definition keeps the status from being
//! written, and the others are worked.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kit::bed::{Bed, NAMESPACE, Namespace};
use kit::objects::{Ask, Objects, condition, http_get};
use kit::program::Gate;
use kit::wait::eventually;
use serde_json::{Value, json};

use super::bare::{self, Bare};
use super::ratchet::{until_accepted, until_refused, without_gate, without_rules};
use super::{Base, databasemigration, etcdcluster, patched, path, tdset, yaml};
use crate::policies::account_of;
use crate::site::{Problem, problems};

/// A sound object, what is otherwise in the one that is stored, and the field that its status names.
type Row = (&'static Base, &'static str, &'static str);

const ROWS: &[Row] = &[
    (&etcdcluster::NEW, "spec: {replicas: many}", "spec.replicas"),
    (&etcdcluster::NEW, "spec: many", "spec"),
    (&etcdcluster::NEW, "spec: [many]", "spec"),
    (&etcdcluster::NEW, "spec: {version: 3}", "spec.version"),
    (&etcdcluster::NEW, "spec: {version: [1]}", "spec.version"),
    (&etcdcluster::NEW, "spec: {tls: many}", "spec.tls"),
    (&etcdcluster::NEW, "spec: {tls: {mode: 1}}", "spec.tls.mode"),
    (&etcdcluster::NEW, "spec: {tls: {mode: Secrets, secrets: many}}", "spec.tls.secrets"),
    (&etcdcluster::NEW, "spec: {storage: many}", "spec.storage"),
    (&etcdcluster::NEW, "spec: {storage: {medium: 1}}", "spec.storage.medium"),
    (&etcdcluster::NEW, "spec: {storage: {storageClassName: 1}}", "spec.storage.storageClassName"),
    (&etcdcluster::NEW, "spec: {storage: {size: [1]}}", "spec.storage.size"),
    (&etcdcluster::NEW, "spec: {auth: many}", "spec.auth"),
    (&etcdcluster::NEW, "spec: {auth: {enabled: many}}", "spec.auth.enabled"),
    (&etcdcluster::NEW, "spec: {backup: many}", "spec.backup"),
    (&etcdcluster::NEW, "spec: {options: many}", "spec.options"),
    (&etcdcluster::NEW, "status: {members: many}", "status.members"),
    (&databasemigration::NEW, "spec: many", "spec"),
    (&databasemigration::NEW, "spec: [many]", "spec"),
    (&databasemigration::NEW, "spec: {database: many}", "spec.database"),
    (&databasemigration::NEW, "spec: {database: {engine: 1}}", "spec.database.engine"),
    (&databasemigration::NEW, "spec: {database: {tls: many}}", "spec.database.tls"),
    (&databasemigration::NEW, "spec: {scripts: many}", "spec.scripts"),
    (&databasemigration::NEW, "spec: {scripts: [many]}", "spec.scripts[0]"),
    (&databasemigration::NEW, "spec: {scripts: [{id: 1}]}", "spec.scripts[0].id"),
    (&databasemigration::NEW, "spec: {history: many}", "spec.history"),
    (&databasemigration::NEW, "spec: {approval: many}", "spec.approval"),
    (&databasemigration::NEW, "spec: {mode: 1}", "spec.mode"),
    (&databasemigration::NEW, "status: {applied: many}", "status.applied"),
    (&tdset::NEW, "spec: many", "spec"),
    (&tdset::NEW, "spec: [many]", "spec"),
    (&tdset::NEW, "spec: {defaultReplicas: many}", "spec.defaultReplicas"),
    (&tdset::NEW, "spec: {windows: many}", "spec.windows"),
    (&tdset::NEW, "spec: {windows: [many]}", "spec.windows[0]"),
    (&tdset::NEW, "spec: {target: many}", "spec.target"),
    (&tdset::NEW, "spec: {exceptions: [{name: 1}]}", "spec.exceptions[0].name"),
    (&tdset::NEW, "spec: {autoscaler: many}", "spec.autoscaler"),
    (&tdset::NEW, "status: {scheduledReplicas: many}", "status.scheduledReplicas"),
];

/// The row of a DatabaseMigration whose spec is a list.
const LIST: usize = 18;

/// One of each kind, by which a test sees which definition is in force.
const FAULTS: [Row; 3] = [
    (&etcdcluster::NEW, "spec: {replicas: many}", "spec.replicas"),
    (&databasemigration::NEW, "spec: {scripts: many}", "spec.scripts"),
    (&tdset::NEW, "spec: {defaultReplicas: many}", "spec.defaultReplicas"),
];

/// An edit of a sound object of each of these kinds, `N` the number of times that it is edited.
const EDITS: [&str; 3] = [
    "spec: {options: {snapshotCount: 500N}}",
    "spec: {database: {port: 500N}}",
    "spec: {defaultReplicas: N}",
];

/// The same definition with a spec and a status of any type, and without the scale subresource, for which the API server
/// looks at the type of the replicas.
fn of_any_type(definition: CustomResourceDefinition) -> CustomResourceDefinition {
    let mut definition = without_rules(definition);
    for version in &mut definition.spec.versions {
        let schema = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut());
        for part in schema.and_then(|schema| schema.properties.as_mut()).into_iter().flatten() {
            part.1.type_ = None;
        }
        if let Some(subresources) = &mut version.subresources {
            subresources.scale = None;
        }
    }
    definition
}

pub fn what_was_stored_with_other_types_holds_up_nothing(bed: &Bed) {
    let bare = bare::beside(bed);
    let _turn = bare.turn_of_one();
    let (namespace, objects) = (bare.bed.namespace(), &bare.bed.objects);
    let stored = stored_with_other_types(bare, &namespace);

    let gate = bare.bed.install(&[]);
    let gate = gate.unwrap_or_else(|error| panic!("{error}"));
    until_refused(objects, &etcdcluster::NEW, "spec: {version: 3.4.1}");
    let sound = FAULTS.map(|(base, ..)| {
        let object = patched(base.changed("spec: {}"), "metadata: {name: even}");
        objects.must(Ask::create(&object, &namespace.name));
        path(&namespace.name, &object)
    });
    eventually(|| {
        let untold: Vec<_> = stored.iter().filter_map(|stored| told_wrong(&namespace, stored)).collect();
        if untold.is_empty() { Ok(()) } else { Err(format!("of {}:\n{}", stored.len(), untold.join("\n"))) }
    });

    let all: BTreeSet<_> = (0..stored.len()).map(|number| format!("typed-{number}")).collect();
    until_shown(&gate, &namespace, |shown| with_invalid_spec(shown) == all);

    // What is sound is worked: now, and whenever it changes. Nothing more is done meanwhile for what is not.
    for path in &sound {
        until_worked(&namespace, path);
    }
    let mut rounds = 1..;
    eventually(|| {
        let (before, round) = (invalid(&gate), rounds.next().expect("a number").to_string());
        for (path, edit) in sound.iter().zip(EDITS) {
            objects.must(Ask::patch(&**path, yaml(&edit.replace('N', &round))));
            until_worked(&namespace, path);
        }
        let after = invalid(&gate);
        if after == before { Ok(()) } else { Err(format!("what is unchanged is validated: {after:?}")) }
    });

    // What is mended is worked, and the rest can be deleted.
    let author = author(&namespace);
    for number in [0, LIST] {
        let ((made, _, mended), name) = (&stored[number], format!("typed-{number}"));
        let object = patched(made.changed(""), &format!("metadata: {{name: {name}}}"));
        eventually(|| {
            let mut object = object.clone();
            let version = objects.at(mended)["metadata"]["resourceVersion"].clone();
            object["metadata"]["resourceVersion"] = version;
            author.one(Ask::put(mended.clone(), object)).map_err(|refusal| refusal.message)
        });
        until_worked(&namespace, mended);
        until_shown(&gate, &namespace, |shown| shown.iter().all(|(_, other, _)| *other != name));
    }
    for path in stored.iter().map(|(.., path)| path).chain(&sound) {
        objects.must(Ask::delete(&**path));
    }
    for path in stored.iter().map(|(.., path)| path).chain(&sound) {
        eventually(|| match objects.one(Ask::get(&**path)) {
            Err(refusal) if refusal.code == 404 => Ok(()),
            other => Err(format!("{path}: {other:?}")),
        });
    }
    until_shown(&gate, &namespace, BTreeSet::is_empty);
    gate.into_program().kill();
    without_gate(bare);
}

/// A user who may have all of it made, and approve nothing.
fn author(namespace: &Namespace) -> Objects {
    const RBAC: &str = "rbac.authorization.k8s.io";
    let (name, version) = (account_of(namespace), format!("{RBAC}/v1"));
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": NAMESPACE}});
    namespace.bed.objects.must(Ask::create(&account, ""));
    let may = |group: &str, resource: &str, verb: &str| json!({"apiGroups": [group], "resources": [resource], "verbs": [verb]});
    namespace.create(&json!({"apiVersion": version, "kind": "Role", "metadata": {"name": "author"},
        "rules": [may("gatehouse.dev", "*", "update"), may("apps", "statefulsets", "create"),
            may("batch", "jobs", "create"), may("", "secrets", "get")]}));
    namespace.create(&json!({"apiVersion": version, "kind": "RoleBinding", "metadata": {"name": "author"},
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "author"},
        "subjects": [{"kind": "ServiceAccount", "namespace": NAMESPACE, "name": name}]}));
    Objects::new(&namespace.bed.kubeconfig_of(&name))
}

/// Waits until the problems of a namespace that the metrics page shows are right.
fn until_shown(gate: &Gate, namespace: &Namespace, are_right: impl Fn(&BTreeSet<Problem>) -> bool) {
    eventually(|| {
        let shown = problems(&http_get(gate.health, "/metrics"), &namespace.name);
        if are_right(&shown) { Ok(()) } else { Err(format!("{shown:?}")) }
    });
}

/// The names of the objects whose spec is invalid.
fn with_invalid_spec(shown: &BTreeSet<Problem>) -> BTreeSet<String> {
    let invalid = shown.iter().filter(|(.., problem)| problem == "SpecInvalid");
    invalid.map(|(_, name, _)| name.clone()).collect()
}

/// A base, the field that is wrong in it, and where the object is.
type Stored = (&'static Base, &'static str, String);

/// Stores the rows by definitions that take anything, and has the API server have the shipped ones again.
fn stored_with_other_types(bare: &Bare, namespace: &Namespace) -> Vec<Stored> {
    let objects = &bare.bed.objects;
    bare.define(&bare.definitions().into_iter().map(of_any_type).collect::<Vec<_>>());
    for (base, fault, _) in FAULTS {
        until_accepted(objects, base, fault);
    }
    let store = |(number, (base, fault, field)): (usize, &Row)| {
        let object = patched(base.changed(fault), &format!("metadata: {{name: typed-{number}}}"));
        objects.must(Ask::create(&object, &namespace.name));
        let path = path(&namespace.name, &object);
        if let Some(status) = object.get("status") {
            objects.must(Ask::patch(format!("{path}/status"), json!({"status": status})));
        }
        (*base, *field, path)
    };
    let stored = ROWS.iter().enumerate().map(store).collect();
    bare.define(&bare.definitions());
    for (base, fault, _) in FAULTS {
        until_refused(objects, base, fault);
    }
    stored
}

/// What is missing of what an object has to say; none where it says all. A rule of the definition may fail at what is
/// stored: then the API server takes no status, and events say it.
fn told_wrong(namespace: &Namespace, (_, field, path): &Stored) -> Option<String> {
    let objects = &namespace.bed.objects;
    let object = objects.at(path);
    let ready = condition(&object, "Ready");
    let says = |message: &Value| message.as_str().unwrap_or_default().contains(field);
    let is_said = ready["reason"] == "SpecInvalid"
        && says(&ready["message"])
        && object["status"]["observedGeneration"] == object["metadata"]["generation"];
    let news = objects.list("events", &namespace.name, "").expect("events");
    let about = |news: &&Value| {
        news["involvedObject"]["uid"] == object["metadata"]["uid"] && news["type"] == "Warning"
    };
    let of_it: Vec<_> = news.iter().filter(about).collect();
    let told = |reason: &str| of_it.iter().any(|news| news["reason"] == reason);
    let is_told = of_it.iter().any(|news| says(&news["message"]));
    let status = json!({"status": {"observedGeneration": object["metadata"]["generation"]}});
    let takes_status = || objects.one(Ask::patch(format!("{path}/status?dryRun=All"), status.clone()));
    let is_refused = || takes_status().is_err_and(|refusal| refusal.code == 422);
    if is_told && (is_said || told("StatusUpdateFailed") && is_refused()) {
        return None;
    }
    let news: Vec<_> = of_it.iter().map(|news| &news["message"]).collect();
    Some(format!("{path} {field}: it says {ready}, and {news:?}: {:?}", takes_status().err()))
}

/// Waits until an object has been looked at as it is, and nothing is wrong with its spec.
fn until_worked(namespace: &Namespace, path: &str) {
    eventually(|| {
        let object = namespace.bed.objects.at(path);
        let is_seen = object["status"]["observedGeneration"] == object["metadata"]["generation"];
        let is_valid = condition(&object, "SpecValid")["status"] != "False"
            && condition(&object, "Ready")["reason"] != "SpecInvalid";
        if is_seen && is_valid { Ok(()) } else { Err(format!("{path}: {}", object["status"])) }
    });
}

/// How often each controller has found an object that is not worked.
fn invalid(gate: &Gate) -> BTreeMap<String, String> {
    let page = http_get(gate.health, "/metrics");
    let lines = page.lines().filter(|line| line.starts_with("controller_runtime_reconcile_total{"));
    let counts =
        lines.filter(|line| line.contains("result=\"invalid\"")).filter_map(|line| line.split_once("} "));
    let counts: BTreeMap<_, _> =
        counts.map(|(labels, count)| (labels.to_owned(), count.to_owned())).collect();
    assert_eq!(counts.len(), FAULTS.len(), "one of each controller: {page}");
    counts
}
