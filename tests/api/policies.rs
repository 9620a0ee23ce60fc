//! What the API server's own policies hold our kinds to, and what is refused in gatehouse's own namespace.

use gatehouse::api::Version;
use gatehouse::kinds::KINDS;
use kit::bed::{Bed, NAMESPACE, Namespace};
use kit::examples::smallest;
use kit::objects::{Ask, Objects, Outcome, condition};
use kit::operator::Fate;
use kit::wait::eventually;
use serde_json::{Value, json};

use crate::Test;
use crate::site::{Site, problems};

/// On a control plane where no operator writes the status of their objects.
pub const ON_CLOCKS: &[Test] =
    &kit::tests![scaling_is_held_to_what_is_seen, controllers_make_nothing_in_their_own_namespace];

pub const TESTS: &[Test] = &kit::tests![
    who_may_not_create_a_workload_may_not_have_it_made,
    nothing_is_made_in_the_namespace_of_gatehouse,
];

const RBAC: &str = "rbac.authorization.k8s.io/v1";

fn tdset(name: &str) -> Value {
    json!({"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": name},
        "spec": {"defaultReplicas": 0, "timeZone": "Etc/UTC", "target": {"create": {"image": "shop:1", "port": 80}}}})
}

fn old_tdset(name: &str) -> Value {
    json!({"apiVersion": "gatehouse.dev/v1alpha1", "kind": "TDSet", "metadata": {"name": name},
        "spec": {"defaultReplica": 0, "container": {"image": "shop:1", "port": 80},
            "schedulingConfig": [{"startTime": 8, "endTime": 18, "replica": 0}]}})
}

fn etcd_cluster(name: &str) -> Value {
    json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": name},
        "spec": {"replicas": 1}})
}

/// The name of the account of a namespace's author.
pub fn account_of(namespace: &Namespace) -> String {
    format!("author-of-{}", namespace.name)
}

/// An account that may do anything with our kinds in this namespace, and nothing else.
pub fn author(namespace: &Namespace) -> Objects {
    let name = account_of(namespace);
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": NAMESPACE}});
    namespace.bed.objects.must(Ask::create(&account, ""));
    grant(namespace, "ours", "gatehouse.dev", &["*"]);
    Objects::new(&namespace.bed.kubeconfig_of(&name))
}

/// Gives the author all verbs on these resources.
pub fn grant(namespace: &Namespace, name: &str, group: &str, resources: &[&str]) {
    let account = account_of(namespace);
    namespace.create(&json!({"apiVersion": RBAC, "kind": "Role", "metadata": {"name": name},
        "rules": [{"apiGroups": [group], "resources": resources, "verbs": ["*"]}]}));
    namespace.create(&json!({"apiVersion": RBAC, "kind": "RoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "namespace": NAMESPACE, "name": account}]}));
}

/// The refusal of a policy. The authorizer may not have heard yet of what was granted a moment ago.
fn refused(ask: impl Fn() -> Outcome, because: &str) {
    eventually(|| match ask() {
        Ok(object) => panic!("accepted: {object}"),
        Err(refusal) if refusal.message.contains(because) => {
            assert_eq!(refusal.code, 403, "{refusal:?}");
            Ok(())
        }
        Err(refusal) if refusal.code == 403 => Err(refusal.message),
        Err(refusal) => panic!("{refusal:?}"),
    });
}

/// Accepted, once the authorizer has heard of what was granted.
fn accepted(ask: impl Fn() -> Outcome) {
    eventually(|| match ask() {
        Ok(_) => Ok(()),
        Err(refusal) if refusal.code == 403 => Err(refusal.message),
        Err(refusal) => panic!("{refusal:?}"),
    });
}

fn who_may_not_create_a_workload_may_not_have_it_made(bed: &Bed) {
    let namespace = bed.namespace();
    let author = author(&namespace);
    let create = |object: Value| {
        let (author, namespace) = (&author, &namespace.name);
        move || author.one(Ask::create(&object, namespace))
    };
    let deployments = "may not create";
    for object in [tdset("made"), old_tdset("made")] {
        refused(create(object), deployments);
    }
    refused(create(etcd_cluster("made")), "spec has statefulsets.apps made in namespace");

    // Objects of others may be managed, but not turned into something else.
    namespace.create(&tdset("given"));
    let path = namespace.path("tdset/given");
    let change = |to: Value| author.one(Ask::patch(path.as_str(), to));
    accepted(|| change(json!({"metadata": {"labels": {"colour": "red"}}})));
    refused(|| change(json!({"spec": {"target": {"create": {"image": "shop:2"}}}})), deployments);

    // What makes nothing needs nothing.
    let mut scaled = tdset("scaled");
    scaled["spec"]["target"] =
        json!({"ref": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "other"}});
    accepted(create(scaled));

    grant(&namespace, "deployments", "apps", &["deployments"]);
    accepted(create(tdset("made")));
    accepted(create(old_tdset("made-old")));
    accepted(|| change(json!({"spec": {"target": {"create": {"image": "shop:2"}}}})));

    grant(&namespace, "statefulsets", "apps", &["statefulsets"]);
    accepted(create(etcd_cluster("made")));
    let mut backed_up = etcd_cluster("backed-up");
    let claim = json!({"persistentVolumeClaim": {"claimName": "backups"}});
    backed_up["spec"]["backup"] = json!({"schedule": "@daily", "destination": claim});
    refused(create(backed_up), "spec.backup has cronjobs.batch made in namespace");
}

fn nothing_is_made_in_the_namespace_of_gatehouse(bed: &Bed) {
    let new = KINDS.iter().map(|kind| smallest(*kind, Version::V1));
    for object in new.chain([old_tdset("own")]) {
        let refusal = bed.objects.one(Ask::create(&object, NAMESPACE)).expect_err("refused");
        assert!(refusal.message.contains("refused in namespace \"gatehouse-system\""), "{refusal:?}");
        assert_eq!(refusal.code, 403, "{refusal:?}");
    }
}

/// The gate refuses such objects and so asks for no more than this: that it was not asked.
fn controllers_make_nothing_in_their_own_namespace(bed: &Bed) {
    let namespace = bed.namespace();
    let site = Site::of_operators_in(&namespace, &namespace.name);
    let operator = site.start(Fate::Lives);
    let shown = || problems(&operator.page(), &namespace.name);
    for object in [tdset("own"), etcd_cluster("own")] {
        namespace.create(&object);
    }
    let said = format!("namespace {:?} is gatehouse's own: nothing is made in it", namespace.name);
    let refused = ["EtcdCluster", "TDSet"]
        .map(|kind| (kind.to_owned(), "own".to_owned(), "NamespaceRefused".to_owned()));
    eventually(|| if shown() == refused.clone().into() { Ok(()) } else { Err(format!("{:?}", shown())) });
    for kind in ["tdset", "etcdcluster"] {
        let object = format!("{kind}/own");
        bed.objects.until(&object, &namespace.name, |found| {
            let ready = condition(found, "Ready");
            let message = ready["message"].as_str().unwrap_or_default();
            let is_said = ready["status"] == "False" && ready["reason"] == "NamespaceRefused";
            if is_said && message.starts_with(&said) { Ok(()) } else { Err(found["status"].to_string()) }
        });
        let events = format!("/apis/events.k8s.io/v1/namespaces/{}/events", namespace.name);
        eventually(|| {
            let list = bed.objects.at(&events);
            let is_told = |event: &Value| {
                let about = event["regarding"]["kind"].as_str().unwrap_or_default().to_lowercase();
                event["reason"] == "NamespaceRefused" && event["type"] == "Warning" && about == kind
            };
            let is_told = list["items"].as_array().is_some_and(|events| events.iter().any(is_told));
            if is_told { Ok(()) } else { Err(list["items"].to_string()) }
        });
        namespace.delete(&object);
        namespace.until_gone(&object);
    }
    eventually(|| if shown().is_empty() { Ok(()) } else { Err(format!("{:?}", shown())) });
    let is_made = |asked: &&String| {
        let writes = ["create ", "update ", "patch ", "delete "].iter().any(|verb| asked.starts_with(verb));
        writes && !asked.contains("/own/status") && !asked.contains("/events")
    };
    let asked = site.asked();
    assert!(asked.iter().any(|asked| asked.contains("/own/status")), "{asked:?}");
    assert_eq!(asked.iter().filter(is_made).collect::<Vec<_>>(), [""; 0]);
}

fn scaling_is_held_to_what_is_seen(bed: &Bed) {
    let namespace = bed.namespace();
    let mut cluster = etcd_cluster("seen");
    cluster["spec"]["replicas"] = json!(3);
    namespace.create(&cluster);
    let condition = |about: &str, reason: &str| {
        json!({"type": about, "status": "True", "reason": reason, "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let operation = |operation: &str, reason: &str| json!({"operation": {"type": operation}, "conditions": [condition("Progressing", reason)]});
    let lost = json!({"operation": null, "conditions": [condition("QuorumLost", "QuorumLost")]});
    // A change of mind is carried out from where the members are.
    for (status, replicas) in
        [(operation("ScaleOut", "ScalingOut"), 1), (operation("ScaleIn", "ScalingIn"), 5)]
    {
        let path = namespace.path("etcdclusters.v1.gatehouse.dev/seen");
        bed.objects.must(Ask::patch(format!("{path}/status"), json!({"status": status})));
        let change = json!({"spec": {"replicas": replicas}});
        bed.objects.must(Ask::patch(format!("{path}/scale?dryRun=All"), change));
    }
    for (status, replicas, because) in [
        (operation("Recover", "Recovering"), 1, "the cluster is being recovered"),
        (lost, 1, "no member can be removed while the quorum is lost"),
    ] {
        let path = namespace.path("etcdclusters.v1.gatehouse.dev/seen");
        bed.objects.must(Ask::patch(format!("{path}/status"), json!({"status": status})));
        for version in ["v1", "v1alpha1"] {
            let scale = namespace.path(&format!("etcdclusters.{version}.gatehouse.dev/seen")) + "/scale";
            let change = json!({"spec": {"replicas": replicas}});
            let refusal = bed.objects.one(Ask::patch(scale, change)).expect_err(because);
            assert!(refusal.message.contains(because), "{version}: {refusal:?}");
        }
        // In the other direction, and to a stop, nothing holds it up.
        let other = if replicas == 1 { 5 } else { 1 };
        for replicas in [other, 0, 3] {
            let change = json!({"spec": {"replicas": replicas}});
            bed.objects.must(Ask::patch(format!("{path}/scale?dryRun=All"), change));
        }
    }
}
