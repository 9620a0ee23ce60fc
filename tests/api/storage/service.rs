//! An old version of our kinds that goes out of service, step by step, and what users see of it.

use gatehouse::install::policies;
use kit::bed::{Bed, Namespace};
use kit::objects::{Ask, condition, of};
use kit::program::Gate;
use kit::wait::eventually;
use serde_json::{Value, json};

use super::ours::{definitions, in_etcd, leading, made_as_v1alpha1, tdset, until_converted};
use super::removed::documented;
use super::widgets::{held_back, run};
use crate::beds::WORKS_NONE;
use crate::installed::{self, TDSETS};

fn gate_that_serves(bed: &Bed, versions: &str) -> Gate {
    let words = [&WORKS_NONE[..], &["--served-versions", versions]].concat();
    bed.install(&words).unwrap_or_else(|error| panic!("{error}"))
}

/// As a user writes it down.
pub fn manifest(name: &str) -> String {
    json!({"apiVersion": "gatehouse.dev/v1alpha1", "kind": "TDSet", "metadata": {"name": name}, "spec": tdset()})
        .to_string()
}

/// A server-side apply of a replica count, by a manager of its own.
pub fn applied(namespace: &Namespace, version: &str, spec: &Value) -> Result<Value, String> {
    let object = json!({"apiVersion": format!("gatehouse.dev/{version}"), "kind": "TDSet",
        "metadata": {"name": "applied"}, "spec": spec});
    let Ask { method, path, body } = Ask::apply(&object, &namespace.name, "");
    let path = path.replace("fieldManager=kit", "fieldManager=team");
    namespace.bed.objects.one(Ask { method, path, body }).map_err(|refusal| refusal.message)
}

pub fn managers_of(object: &Value, manager: &str) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let own = entries.iter().filter(|entry| entry["manager"] == manager);
    own.map(|entry| entry["apiVersion"].as_str().expect("a version").to_owned()).collect()
}

fn only_hub(bed: &Bed) -> impl FnOnce() {
    let policy = policies::only_hub();
    let typed = |kind: &str, mut object: Value| {
        object["apiVersion"] = "admissionregistration.k8s.io/v1".into();
        object["kind"] = kind.into();
        object
    };
    let both = [
        typed("ValidatingAdmissionPolicy", json!(policy.policy)),
        typed("ValidatingAdmissionPolicyBinding", json!(policy.binding)),
    ];
    let places = both.each_ref().map(|object| {
        bed.objects.must(Ask::apply(object, "", ""));
        let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
        format!("{}/{name}", kit::objects::collection_of(object, ""))
    });
    move || places.into_iter().rev().for_each(|place| drop(bed.objects.must(Ask::delete(place))))
}

pub fn v1alpha1_goes_out_of_service_and_comes_back(bed: &Bed) {
    let _turn = bed.turn();
    let namespace = made_as_v1alpha1(bed);
    let gate = gate_that_serves(bed, "v1,v1alpha1");
    until_converted(&namespace);
    applied(&namespace, "v1alpha1", &tdset()).expect("it is served");

    // Deprecated: who writes is warned.
    let warned = namespace.kubectl(&["apply"]).input(manifest("warned")).warnings();
    assert!(
        warned.contains("use gatehouse.dev/v1: gatehouse convert -f FILE rewrites a manifest"),
        "{warned}"
    );

    is_applied_by_the_other_version(&namespace);

    let path = of("v1alpha1", &namespace.name, "tdsets") + "/applied";
    is_refused_by_a_policy(&namespace, &path);

    // Not served, by a gate that becomes ready all the same; also by the second one, which finds it so.
    drop(gate);
    assert!(gate_that_serves(bed, "v1").into_program().stop(), "it ends well");
    let gate = gate_that_serves(bed, "v1");
    is_not_served(&namespace, &path);
    is_worked_with_all_the_same(&namespace, &path);

    // Back again.
    drop(gate);
    let gate = gate_that_serves(bed, "v1,v1alpha1");
    let back = eventually(|| bed.objects.read(&path.replace("applied", "shop-3")));
    assert_eq!(back["spec"], tdset(), "as it was written");
    let ran = run(bed, &["migrate", "--all", "--grace", "0s"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(in_etcd(bed, "v1alpha1"), [""; 0]);

    drop(gate);
    is_let_go_of_by_the_leader(bed);
}

/// A leader that does not serve the old version takes away what its writers have left in managed fields.
fn is_let_go_of_by_the_leader(bed: &Bed) {
    let held = |definition: &str| held_back(bed, definition, "v1alpha1");
    assert_eq!(held("tdsets.gatehouse.dev"), json!(["Served", "ManagedFields"]));
    let mut command = leading(bed);
    command.args(["--served-versions", "v1"]);
    let _gate = bed.start_gate(&command).unwrap_or_else(|error| panic!("{error}"));
    for definition in definitions() {
        eventually(|| match held(&definition) {
            held if held == json!([]) => Ok(()),
            held => Err(format!("{definition}: {held}")),
        });
    }
}

/// A manifest that is applied by kubectl itself, as it was written, in the other version from now on.
fn is_applied_by_the_other_version(namespace: &Namespace) {
    let of_now = |version: &str| namespace.get(&format!("tdsets.{version}.gatehouse.dev"), "switched");
    namespace.kubectl(&["apply"]).input(manifest("switched")).ok();
    let spec = of_now("v1")["spec"].clone();
    assert!(spec["windows"].is_array(), "{spec}");
    let apply = |spec: &Value| {
        let manifest = json!({"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": "switched"},
            "spec": spec});
        namespace.kubectl(&["apply"]).input(manifest.to_string()).ok();
        of_now("v1")["spec"].clone()
    };
    // kubectl knows what it has applied in the words of the old version alone.
    let mut fewer = spec.clone();
    fewer.as_object_mut().expect("an object").remove("windows");
    fewer["defaultReplicas"] = json!(2);
    let after = apply(&fewer);
    assert_eq!(
        (&after["defaultReplicas"], &after["windows"]),
        (&json!(2), &spec["windows"]),
        "what is left out stays"
    );
    assert_eq!(apply(&spec), spec);
    let after = apply(&fewer);
    assert!(after["windows"].as_array().is_none_or(Vec::is_empty), "what is left out goes: {after}");
    // The old manifest again, as by a user who does not know of the change.
    namespace.kubectl(&["apply"]).input(manifest("switched")).ok();
    assert_eq!(of_now("v1alpha1")["spec"], tdset());
}

/// Installed where nothing was, by a gate that has never served the old version.
pub fn what_is_installed_without_v1alpha1_is_said_to_be_migrated(bed: &Bed) {
    let _turn = bed.turn();
    installed::clear(bed);
    let _gate = gate_that_serves(bed, "v1");
    let said = eventually(|| {
        let said = condition(&bed.objects.at(TDSETS), "StorageMigrated");
        if said["status"] == "True" { Ok(said) } else { Err(said.to_string()) }
    });
    assert_eq!(said["message"], "all objects are stored as v1");
}

/// It is read, and no longer written.
fn is_refused_by_a_policy(namespace: &Namespace, path: &str) {
    let bed = namespace.bed;
    let lift = only_hub(bed);
    let refused = eventually(|| {
        let outcome = namespace.kubectl(&["apply", "--dry-run=server"]).input(manifest("late")).run();
        outcome.map_or_else(Ok, |taken| Err(format!("taken: {taken}")))
    });
    let told = "gatehouse.dev/v1alpha1 is no longer written: gatehouse convert -f FILE rewrites a manifest as \
                gatehouse.dev/v1";
    assert!(refused.contains(documented(told)), "{refused}");
    let refused = applied(namespace, "v1alpha1", &tdset()).expect_err("a write");
    assert!(refused.contains(told), "{refused}");
    // So is each of its parts.
    let cluster = of("v1alpha1", &namespace.name, "etcdclusters") + "/main-3";
    let status = json!({"status": {"conditions": []}});
    for (part, change) in [
        (format!("{path}/status"), &status),
        (format!("{cluster}/status"), &status),
        (format!("{cluster}/scale"), &json!({"spec": {"replicas": 1}})),
    ] {
        let outcome = bed.objects.one(Ask::patch(format!("{part}?dryRun=All"), change.clone()));
        let refused = outcome.expect_err("a write by the old version").message;
        assert!(refused.contains(told), "{part}: {refused}");
        bed.objects.at(&part);
    }
    assert_eq!(bed.objects.at(path)["spec"], tdset(), "it is read");
    let new = bed.objects.at(&path.replace("v1alpha1", "v1"))["spec"].clone();
    applied(namespace, "v1", &new).expect("the other version is written");
    // What is on its way out may lose its finalizers.
    bed.objects.must(Ask::patch(
        path.replace("v1alpha1", "v1"),
        json!({"metadata": {"finalizers": ["example.dev/kept"]}}),
    ));
    bed.objects.must(Ask::delete(path));
    bed.objects.must(Ask::patch(path, json!({"metadata": {"finalizers": null}})));
    lift();
    eventually(|| applied(namespace, "v1alpha1", &tdset()));
}

/// A client that asks for it gets "not found".
fn is_not_served(namespace: &Namespace, path: &str) {
    let bed = namespace.bed;
    let versions = &bed.objects.at(TDSETS)["spec"]["versions"];
    assert_eq!(versions[1]["name"], "v1alpha1");
    assert_eq!((&versions[1]["served"], &versions[1]["storage"]), (&json!(false), &json!(false)));
    eventually(|| match bed.objects.one(Ask::get(path)) {
        Err(refusal) if refusal.code == 404 => Ok(()),
        other => Err(format!("{other:?}")),
    });
    // As one that has asked before what is served, for hours, and one that has not.
    let known = namespace.kubectl(&["apply"]).input(manifest("late")).fails();
    assert!(known.contains("the server could not find the requested resource"), "{known}");
    let mut asked = 0;
    let refused = eventually(|| {
        asked += 1;
        let cache = bed.cluster.folder().join(format!("cache-{asked}"));
        let cache = format!("--cache-dir={}", cache.display());
        let outcome = namespace.kubectl(&["apply", &cache]).input(manifest("late")).run();
        match outcome {
            Err(refused) if !refused.contains("the server could not find") => Ok(refused),
            other => Err(format!("not yet: {other:?}")),
        }
    });
    assert!(
        refused.contains("no matches for kind \"TDSet\" in version \"gatehouse.dev/v1alpha1\""),
        "{refused}"
    );
}

/// What is stored in it is read and written by the other version.
fn is_worked_with_all_the_same(namespace: &Namespace, path: &str) {
    let bed = namespace.bed;
    // Nothing is lost: it is stored as v1alpha1, and read and written as v1.
    assert!(in_etcd(bed, "v1alpha1").contains(&"shop-3".to_owned()), "nothing was migrated");
    let read = namespace.get("tdsets.v1.gatehouse.dev", "shop-3");
    assert!(read["spec"]["windows"].is_array(), "{read}");
    // The manager of old goes on by v1, and what it leaves out goes.
    let before = bed.objects.at(&path.replace("v1alpha1", "v1"));
    assert_eq!(managers_of(&before, "team"), ["gatehouse.dev/v1alpha1"]);
    let mut fewer = before["spec"].clone();
    fewer["windows"] = json!([]);
    let after = eventually(|| applied(namespace, "v1", &fewer));
    assert_eq!(managers_of(&after, "team"), ["gatehouse.dev/v1"]);
    assert!(after["spec"]["windows"].as_array().is_none_or(Vec::is_empty), "{after}");
}
