//! Objects of ours that other clients and controllers change: each is put back, and what belongs to others stays.
//!
//! Each change is asserted to have taken effect by the answer of the API server, then the object is awaited as it was.

use std::time::Instant;

use kit::bed::{Bed, Namespace};
use kit::objects::{Ask, condition};
use kit::wait::eventually;
use serde_json::{Value, json};

use crate::Test;

pub const TESTS: &[Test] = &kit::tests![
    of_a_schedule_what_others_change_is_put_back,
    of_a_schedule_what_others_may_add_stays,
    a_changed_port_keeps_no_release_from_the_pods,
    of_an_etcdcluster_what_others_change_is_put_back,
    a_set_of_members_that_others_apply_with_force_is_put_back,
    a_label_of_ours_that_others_remove_comes_back,
    an_entry_of_a_member_that_others_change_is_put_back,
    a_finalizer_that_a_whole_write_removes_comes_back,
    an_object_without_its_owner_is_reported_and_left_alone,
];

/// Prints how long it took until a change by another client was reverted.
pub fn reverted(change: &str, begun: Instant) {
    println!("figure: reverted: {change} after {:.2?}", begun.elapsed());
}

/// A change by another client: what it is, the object, the patch, and a place in the object that tells.
type Change = (&'static str, &'static str, Value, &'static str);

/// Makes each change, and waits until the object has at that place what it had before.
#[track_caller]
fn are_put_back(namespace: &Namespace, changes: &[Change]) {
    for (manager, object, patch, place) in changes {
        let value = |found: &Value| found.pointer(place).cloned().unwrap_or_default();
        let path = namespace.path(object);
        let before = value(&namespace.bed.objects.at(&path));
        let request = Ask::patch(format!("{path}?fieldManager={manager}"), patch.clone());
        let begun = Instant::now();
        let after = value(&namespace.bed.objects.must(request));
        assert_ne!(after, before, "{manager} changes {place} of {object}");
        namespace.bed.objects.until(object, &namespace.name, |found| {
            let found = value(found);
            if found == before { Ok(()) } else { Err(format!("{manager}: {place} of {object} is {found}")) }
        });
        reverted(&format!("{manager}, {object}, {place}"), begun);
    }
}

fn schedule(name: &str) -> Value {
    let env = json!([{"name": "A", "value": "1"}]);
    let create = json!({"image": "registry.k8s.io/pause:3.10", "port": 8080, "servicePort": 80, "env": env});
    json!({"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": name},
        "spec": {"timeZone": "Europe/Berlin", "defaultReplicas": 2, "target": {"create": create}}})
}

/// Makes a TDSet and waits for its objects.
fn made(namespace: &Namespace, name: &str) {
    namespace.create(&schedule(name));
    namespace.until_created(&format!("deployment/{name}"));
    namespace.until_created(&format!("service/{name}"));
    until_at_rest(namespace, name);
}

/// Waits until the status speaks of the count.
fn until_at_rest(namespace: &Namespace, name: &str) {
    namespace.until(&format!("tdset/{name}"), "{.status.scheduledReplicas}", "2");
    namespace.until(&format!("deployment/{name}"), "{.spec.replicas}", "2");
}

fn of_a_schedule_what_others_change_is_put_back(bed: &Bed) {
    const DEPLOYMENT: &str = "deployment/shop";
    const SERVICE: &str = "service/shop";
    const POD: &str = "/spec/template/spec";
    let namespace = bed.namespace();
    made(&namespace, "shop");
    let sidecar = json!({"op": "add", "path": format!("{POD}/containers/0"),
        "value": {"name": "proxy", "image": "example.com/proxy:1"}});
    let variable = json!({"op": "add", "path": format!("{POD}/containers/0/env/-"), "value": {"name": "B", "value": "2"}});
    let port =
        json!({"op": "replace", "path": format!("{POD}/containers/0/ports/0/containerPort"), "value": 81});
    let listed = json!([{"name": "more", "port": 81}, {"name": "app", "port": 80}]);
    let changes = [
        (
            "argo",
            SERVICE,
            json!({"spec": {"selector": {"rollouts-pod-template-hash": "a"}}}),
            "/spec/selector",
        ),
        ("addresses", SERVICE, json!({"spec": {"externalIPs": ["192.0.2.1"]}}), "/spec/externalIPs"),
        ("exposes", SERVICE, json!({"spec": {"type": "LoadBalancer"}}), "/spec/type"),
        ("sticks", SERVICE, json!({"spec": {"sessionAffinity": "ClientIP"}}), "/spec/sessionAffinity"),
        ("listens", SERVICE, json!({"spec": {"ports": listed}}), "/spec/ports/1"),
        ("injector", DEPLOYMENT, json!([sidecar]), "/spec/template/spec/containers/1"),
        ("set-env", DEPLOYMENT, json!([variable]), "/spec/template/spec/containers/0/env"),
        ("moves-port", DEPLOYMENT, json!([port]), "/spec/template/spec/containers/0/ports"),
        (
            "recreates",
            DEPLOYMENT,
            json!({"spec": {"strategy": {"type": "Recreate", "rollingUpdate": null}}}),
            "/spec/strategy",
        ),
        ("pauses", DEPLOYMENT, json!({"spec": {"paused": true}}), "/spec/paused"),
    ];
    // Each change of one object is a contest with the one before: an edit of the TDSet ends that.
    for (index, change) in changes.iter().enumerate() {
        are_put_back(&namespace, std::slice::from_ref(change));
        let edit = json!({"spec": {"resyncMinutes": index + 5}});
        namespace.change("tdset/shop", &edit);
        namespace.until("tdset/shop", "{.metadata.generation}", &(index + 2).to_string());
        let generation = (index + 2).to_string();
        namespace.until("tdset/shop", "{.status.observedGeneration}", &generation);
    }
    assert_eq!(namespace.get("deployment", "shop")["spec"]["replicas"], 2);

    // `kubectl rollout undo` brings a template back that the TDSet no longer asks for.
    let image = |tag: &str| json!({"spec": {"target": {"create": {"image": format!("registry.k8s.io/pause:{tag}")}}}});
    namespace.change("tdset/shop", &image("3.9"));
    let is_next = |deployment: &Value| {
        deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "registry.k8s.io/pause:3.9"
    };
    let generation = |deployment: &Value| deployment["metadata"]["generation"].as_i64().unwrap();
    // The controller of Deployments has made the revision that is undone.
    let before = bed.objects.until(DEPLOYMENT, &namespace.name, |found| {
        let is_rolled = found["status"]["observedGeneration"] == found["metadata"]["generation"];
        if is_next(found) && is_rolled { Ok(generation(found)) } else { Err(found.to_string()) }
    });
    let begun = Instant::now();
    namespace.kubectl(&["rollout", "undo", DEPLOYMENT]).ok();
    bed.objects.until(DEPLOYMENT, &namespace.name, |found| {
        let is_undone = generation(found) >= before + 2;
        if is_undone && is_next(found) { Ok(()) } else { Err(found.to_string()) }
    });
    reverted(&format!("rollout undo, {DEPLOYMENT}, /spec/template"), begun);
}

fn of_a_schedule_what_others_may_add_stays(bed: &Bed) {
    let namespace = bed.namespace();
    made(&namespace, "shop");
    namespace.kubectl(&["rollout", "restart", "deployment/shop"]).ok();
    namespace.change("service/shop", &json!({"metadata": {"annotations": {"example.com/a": "b"}}}));
    namespace.change(
        "deployment/shop",
        &json!({"metadata": {"labels": {"team": "shop"}, "finalizers": ["example.com/a"]}}),
    );
    // What is put back after that says that the rest was seen.
    let variable =
        json!([{"op": "add", "path": "/spec/template/spec/containers/0/env/-", "value": {"name": "B"}}]);
    are_put_back(
        &namespace,
        &[("set-env", "deployment/shop", variable, "/spec/template/spec/containers/0/env")],
    );
    let deployment = namespace.get("deployment", "shop");
    let annotations = &deployment["spec"]["template"]["metadata"]["annotations"];
    assert!(annotations["kubectl.kubernetes.io/restartedAt"].is_string(), "{annotations}");
    assert_eq!(deployment["metadata"]["labels"]["team"], "shop");
    assert_eq!(deployment["metadata"]["finalizers"], json!(["example.com/a"]));
    assert_eq!(namespace.get("service", "shop")["metadata"]["annotations"]["example.com/a"], "b");
    namespace.change("deployment/shop", &json!({"metadata": {"finalizers": null}}));
}

/// Ports are merged by number and protocol, and are unique by name: an apply alone is refused for ever.
fn a_changed_port_keeps_no_release_from_the_pods(bed: &Bed) {
    let namespace = bed.namespace();
    made(&namespace, "shop");
    let moved = json!([{"op": "replace", "path": "/spec/ports/0/port", "value": 81}]);
    are_put_back(&namespace, &[("moves", "service/shop", moved.clone(), "/spec/ports/0/port")]);
    // The next port of the TDSet is written too, though we own the last one twice by now.
    let next =
        json!({"spec": {"target": {"create": {"servicePort": 8000, "image": "registry.k8s.io/pause:3.9"}}}});
    namespace.change("tdset/shop", &next);
    namespace.until("service/shop", "{.spec.ports[0].port}", "8000");
    namespace.until(
        "deployment/shop",
        "{.spec.template.spec.containers[0].image}",
        "registry.k8s.io/pause:3.9",
    );
    are_put_back(&namespace, &[("moves", "service/shop", moved, "/spec/ports/0/port")]);
}

#[expect(clippy::too_many_lines, reason = "one change by another client after the other")]
fn of_an_etcdcluster_what_others_change_is_put_back(bed: &Bed) {
    const SET: &str = "statefulset/db";
    let namespace = bed.namespace();
    let backup = json!({"schedule": "0 2 * * *", "timeZone": "Etc/UTC",
        "destination": {"persistentVolumeClaim": {"claimName": "backups"}}});
    namespace
        .create(&json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": "db"},
        "spec": {"replicas": 3, "tls": {"mode": "Disabled"}, "backup": backup}}));
    for object in ["service/db", "service/db-client", SET, "configmap/db-config"] {
        namespace.until_created(object);
    }
    bed.objects.until("configmap/db-config", &namespace.name, |config| {
        if config["data"]["db-0.yaml"].is_string() { Ok(()) } else { Err(config["data"].to_string()) }
    });
    let labels = json!({"spec": {"selector": {"x": "y"}}});
    let pod = "/spec/template/spec";
    let container = json!([
        {"op": "replace", "path": format!("{pod}/containers/0/image"), "value": "example.com/etcd:9"},
        {"op": "add", "path": format!("{pod}/containers/0/command"), "value": ["sh"]},
        {"op": "add", "path": format!("{pod}/containers/0/env"), "value": [{"name": "ETCD_DEBUG", "value": "true"}]},
    ]);
    let sidecar = json!([{"op": "add", "path": format!("{pod}/containers/-"),
        "value": {"name": "proxy", "image": "example.com/proxy:1"}}]);
    let options = json!({"data": {"db-0.yaml": "name: another\nquota-backend-bytes: 1\n"}});
    are_put_back(
        &namespace,
        &[
            ("argo", "service/db", labels.clone(), "/spec/selector"),
            ("argo", "service/db-client", labels, "/spec/selector"),
            ("exposes", "service/db-client", json!({"spec": {"type": "LoadBalancer"}}), "/spec/type"),
            (
                "addresses",
                "service/db-client",
                json!({"spec": {"externalIPs": ["192.0.2.1"]}}),
                "/spec/externalIPs",
            ),
            (
                "rolls",
                SET,
                json!({"spec": {"updateStrategy": {"type": "RollingUpdate"}}}),
                "/spec/updateStrategy",
            ),
            ("waits", SET, json!({"spec": {"minReadySeconds": 60}}), "/spec/minReadySeconds"),
            ("edits", "configmap/db-config", options, "/data/db-0.yaml"),
        ],
    );
    // Two more of the StatefulSet: by a client that takes all fields over, and one that adds some.
    namespace.change("etcdcluster/db", &json!({"spec": {"pod": {"labels": {"a": "b"}}}}));
    namespace.until(SET, "{.spec.template.metadata.labels.a}", "b");
    are_put_back(&namespace, &[("forces", SET, container, pod), ("injector", SET, sidecar, pod)]);

    // The cluster is recorded by the test, since no member starts here: backups are taken by then.
    namespace.until_created(SET);
    let recorded = json!({"status": {"clusterID": "1", "endpoints": ["http://db-0:2379"]}});
    bed.objects.must(Ask::patch(namespace.path("etcdcluster/db") + "/status", recorded));
    namespace.until_created("cronjob/db-backup");
    let job = "/spec/jobTemplate/spec";
    let more = json!([{"op": "add", "path": format!("{job}/template/spec/containers/0/env/-"),
        "value": {"name": "B", "value": "2"}}]);
    are_put_back(
        &namespace,
        &[
            ("suspends", "cronjob/db-backup", json!({"spec": {"suspend": true}}), "/spec"),
            ("set-env", "cronjob/db-backup", more, "/spec"),
            (
                "retries",
                "cronjob/db-backup",
                json!([{"op": "add", "path": format!("{job}/suspend"), "value": true}]),
                "/spec",
            ),
        ],
    );
}

/// `kubectl apply --server-side --force-conflicts` does so.
fn a_set_of_members_that_others_apply_with_force_is_put_back(bed: &Bed) {
    const SET: &str = "statefulset/db";
    let namespace = bed.namespace();
    namespace
        .create(&json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": "db"},
        "spec": {"replicas": 3, "tls": {"mode": "Disabled"}}}));
    namespace.until_created(SET);
    let places = ["/spec/template/spec/containers/0/image", "/spec/updateStrategy/type"];
    let values = |set: &Value| places.map(|place| set.pointer(place).cloned().unwrap_or_default());
    let found = namespace.get("statefulset", "db");
    let (before, container) = (values(&found), &found["spec"]["template"]["spec"]["containers"][0]["name"]);
    let pod = json!({"spec": {"containers": [{"name": container, "image": "example.com/etcd:9"}]}});
    let body = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
        "spec": {"updateStrategy": {"type": "RollingUpdate"}, "template": pod}});
    let path = format!("{}?fieldManager=helm&force=true", namespace.path(SET));
    let begun = Instant::now();
    let after = values(&bed.objects.must(Ask { method: "APPLY", path, body }));
    assert_eq!(after, [json!("example.com/etcd:9"), json!("RollingUpdate")]);
    assert!(before.iter().zip(&after).all(|(before, after)| before != after), "{before:?}");
    bed.objects.until(SET, &namespace.name, |found| {
        let found = values(found);
        if found == before { Ok(()) } else { Err(format!("{found:?}, and not {before:?}")) }
    });
    reverted(&format!("applied with force, {SET}"), begun);
}

/// The operator watches objects with this label alone.
fn a_label_of_ours_that_others_remove_comes_back(bed: &Bed) {
    let namespace = bed.namespace();
    made(&namespace, "shop");
    made(&namespace, "cart");
    namespace
        .create(&json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": "db"},
        "spec": {"replicas": 3, "tls": {"mode": "Disabled"}}}));
    let objects = ["service/shop", "deployment/cart", "service/db", "service/db-client", "statefulset/db"];
    let removed = json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": null}}});
    for object in objects {
        namespace.until_created(object);
        let place = "/metadata/labels/app.kubernetes.io~1managed-by";
        are_put_back(&namespace, &[("unlabels", object, removed.clone(), place)]);
    }
}

/// The guard of a pod and the operator go by the entry of the member.
fn an_entry_of_a_member_that_others_change_is_put_back(bed: &Bed) {
    const CONFIG: &str = "configmap/db-config";
    const PLACE: &str = "/data/db-0.json";
    let namespace = bed.namespace();
    namespace
        .create(&json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": "db"},
        "spec": {"replicas": 3, "tls": {"mode": "Disabled"}}}));
    let entry = bed.objects.until(CONFIG, &namespace.name, |config| {
        let entry = config.pointer(PLACE).and_then(Value::as_str);
        entry.map(str::to_owned).ok_or_else(|| config["data"].to_string())
    });
    let entry: Value = serde_json::from_str(&entry).unwrap();
    let with = |field: &str, value: &str| {
        let mut entry = entry.clone();
        entry[field] = json!(value);
        json!({"data": {"db-0.json": entry.to_string()}})
    };
    are_put_back(
        &namespace,
        &[
            ("starts", CONFIG, with("purpose", "Run"), PLACE),
            ("names", CONFIG, with("member", "8e9e05c52164694d"), PLACE),
            ("moves", CONFIG, with("volume", "another"), PLACE),
        ],
    );
}

/// Nothing tells such an object from an object of another owner.
fn an_object_without_its_owner_is_reported_and_left_alone(bed: &Bed) {
    let namespace = bed.namespace();
    let objects = [
        ("deployment/shop", "tdset/shop", "Conflict"),
        ("service/cart", "tdset/cart", "Conflict"),
        ("service/one-client", "etcdcluster/one", "Degraded"),
        ("statefulset/two", "etcdcluster/two", "Degraded"),
        ("configmap/three-config", "etcdcluster/three", "Degraded"),
    ];
    for (_, owner, _) in objects {
        let (kind, name) = owner.split_once('/').unwrap();
        namespace.create(&match kind {
            "tdset" => schedule(name),
            _ => json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": name},
                "spec": {"replicas": 1, "tls": {"mode": "Disabled"}}}),
        });
    }
    let changed = objects.map(|(object, ..)| {
        let owners = bed.objects.until(object, &namespace.name, |found| {
            Ok(found["metadata"]["ownerReferences"].as_array().map(Vec::len))
        });
        assert_eq!(owners, Some(1), "{object}");
        namespace.change(object, &json!({"metadata": {"ownerReferences": null}}));
        bed.objects.at(&namespace.path(object))["spec"].clone()
    });
    for ((object, owner, about), spec) in objects.iter().zip(changed) {
        bed.objects.until(owner, &namespace.name, |found| {
            let about = condition(found, about);
            let is_reported = about["status"] == "True" && about["reason"] == "NameTaken";
            if is_reported { Ok(()) } else { Err(format!("{object}: {about}")) }
        });
        let found = bed.objects.at(&namespace.path(object));
        assert_eq!(
            (&found["spec"], &found["metadata"]["ownerReferences"]),
            (&spec, &Value::Null),
            "{object}"
        );
    }
}

/// `kubectl replace -f` of the same file does so.
fn a_finalizer_that_a_whole_write_removes_comes_back(bed: &Bed) {
    let namespace = bed.namespace();
    let script = json!({"id": "001", "kind": "Schema", "up": {"inline": "CREATE TABLE a (b INTEGER)"},
        "down": {"inline": "DROP TABLE a"}});
    let database = json!({"engine": "SQLite", "file": {"claimName": "data", "path": "shop.db"}});
    let mut scheduled = schedule("shop");
    scheduled["spec"]["target"] = json!({"ref": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none",
        "replicasOnDeletion": 1}});
    let objects = [
        (
            "databasemigrations.v1.gatehouse.dev",
            json!({"apiVersion": "gatehouse.dev/v1", "kind": "DatabaseMigration",
            "metadata": {"name": "shop"},
            "spec": {"database": database, "scripts": [script], "deletionPolicy": "Revert"}}),
        ),
        ("tdsets.v1.gatehouse.dev", scheduled),
        (
            "etcdclusters.v1.gatehouse.dev",
            json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster",
            "metadata": {"name": "shop"}, "spec": {"replicas": 1, "tls": {"mode": "Disabled"},
                "deletionProtection": true}}),
        ),
    ];
    for (resource, object) in objects {
        namespace.create(&object);
        let name = format!("{resource}/shop");
        let until_held = || {
            bed.objects.until(&name, &namespace.name, |found| match &found["metadata"]["finalizers"] {
                Value::Array(held) if !held.is_empty() => Ok(held.clone()),
                none => Err(format!("{name} has the finalizers {none}")),
            })
        };
        let before = until_held();
        // Nothing else moves by then, which would look at the object too.
        bed.objects.until(&name, &namespace.name, |found| {
            let about = condition(found, "Ready");
            if about.is_null() { Err(found["status"].to_string()) } else { Ok(()) }
        });
        let replaced = eventually(|| {
            let mut again = bed.objects.at(&namespace.path(&name));
            again["metadata"].as_object_mut().unwrap().remove("finalizers");
            bed.objects.one(Ask::put(namespace.path(&name), again)).map_err(|refusal| refusal.message)
        });
        assert_eq!(replaced["metadata"]["finalizers"], Value::Null, "{resource}");
        assert_eq!(until_held(), before, "{resource}");
    }
}
