//! What is left when gatehouse is taken away, and what it does where it has rights in one namespace alone.

use gatehouse::cli::manifests::rbac::{Names, rule_groups};
use gatehouse::controllers;
use gatehouse::kinds::{KINDS, databasemigration, etcdcluster, tdset};
use gatehouse::rbac::{RoleScope, Rule};
use kit::bed::{Bed, NAMESPACE};
use kit::deploy::deploy;
use kit::objects::{Ask, http_get, of};
use kit::program::Gate;
use kit::wait::eventually;
use serde_json::{Value, json};

use super::parts::{lease, until_may};
use super::{House, is_ready, tdset, until_ready};
use crate::Test;
use crate::installed::{self, CONFIGURATIONS};

pub const TESTS: &[Test] = &kit::tests![
    the_configurations_go_with_their_owner,
    without_a_gate_objects_and_their_namespaces_go,
    with_rights_in_one_namespace_that_one_is_worked,
    the_rules_of_a_kind_are_all_that_it_needs,
];

pub const CLUSTER_ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/gatehouse";

/// Who owns both configurations, where both are there.
fn owners(bed: &Bed) -> Option<Vec<Value>> {
    let found = CONFIGURATIONS.iter().map(|path| bed.objects.one(Ask::get(*path)).ok());
    found.map(|object| object.map(|object| object["metadata"]["ownerReferences"].clone())).collect()
}

fn owned_by(bed: &Bed) -> Value {
    let uid = bed.objects.at(CLUSTER_ROLE)["metadata"]["uid"].clone();
    json!([{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "gatehouse", "uid": uid}])
}

fn until_gone(bed: &Bed, path: &str) {
    let (collection, name) = path.rsplit_once('/').expect("a path");
    bed.objects.follow(collection, name, |found| match found {
        None => Ok(()),
        Some(found) => Err(format!("{path} is there: {found}")),
    });
}

fn the_configurations_go_with_their_owner(bed: &Bed) {
    let options: &[&str] = &["--cluster-role", "gatehouse", "--drain-delay", "0s"];
    let house = House::begin(bed);
    installed::clear(bed);
    let mut replicas = house.replicas(&[options]);
    let owner = owned_by(bed);
    assert_eq!(owners(bed), Some(vec![owner.clone(), owner.clone()]));
    let (here, going) = (&house.namespace, bed.namespace());
    for namespace in [here, &going] {
        namespace.create(&tdset("kept", &json!({})));
        namespace.create(&json!({"apiVersion": "gatehouse.dev/v1alpha1", "kind": "TDSet",
            "metadata": {"name": "old"}, "spec": {"container": {"image": "shop", "port": 80}, "defaultReplica": 2,
                "schedulingConfig": [{"startTime": 8, "endTime": 18, "replica": 6}]}}));
    }

    // One of the same name is another one: what belonged to the first goes, and comes back.
    let mut role = bed.objects.at(CLUSTER_ROLE);
    role["metadata"] = json!({"name": "gatehouse"});
    bed.objects.must(Ask::delete(CLUSTER_ROLE));
    bed.objects.must(Ask::create(&role, ""));
    let second = owned_by(bed);
    assert_ne!(second, owner);
    eventually(|| match owners(bed) {
        Some(both) if both == [second.clone(), second.clone()] => Ok(()),
        other => Err(format!("{other:?}")),
    });

    uninstall(bed, replicas.remove(0));
    objects_outlive_the_gate(&house, &going.name);

    // Installed again, all that is left is taken up.
    bed.grant();
    let mut replicas = house.replicas(&[options]);
    assert_eq!(here.get("tdsets.v1alpha1.gatehouse.dev", "new")["spec"]["defaultReplica"], 1);
    house.works("new", 3);

    // Without a gate, the definitions can be deleted as well, and all objects with them.
    uninstall(bed, replicas.remove(0));
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/tdsets.gatehouse.dev";
    bed.objects.must(Ask::delete(definitions));
    until_gone(bed, definitions);
}

/// An uninstall takes the rights first: nothing is put back, though the gate still runs.
fn uninstall(bed: &Bed, gate: Gate) {
    bed.objects.must(Ask::delete(CLUSTER_ROLE));
    for path in CONFIGURATIONS {
        until_gone(bed, path);
    }
    gate.logs("failed to correct the installation");
    assert_eq!(owners(bed), None);
    gate.into_program().kill();
}

/// The definitions point at a gate that is gone, and their objects are there as they are stored.
fn objects_outlive_the_gate(house: &House, going: &str) {
    let (objects, here) = (&house.bed.objects, &house.namespace);
    assert_eq!(here.get("tdset", "kept")["spec"]["defaultReplicas"], 1);
    // A webhook is asked for a moment after its configuration has gone.
    let change = Ask::patch(here.path("tdset/kept"), json!({"spec": {"defaultReplicas": 2}}));
    eventually(|| objects.one(change.clone()).map_err(|refusal| refusal.message));
    house.tdset("new", &json!({}));
    let old = objects.one(Ask::get(of("v1alpha1", &here.name, "tdsets") + "/kept"));
    let refusal = old.expect_err("nothing converts");
    assert!(
        refusal.message.contains("conversion webhook for gatehouse.dev/v1, Kind=TDSet failed"),
        "{refusal:?}"
    );
    // So are those that were written in the old version, by people whose fields cannot be converted now. Up to
    // Kubernetes 1.36 an API server forgets who they are; a newer one notes nothing of what is written meanwhile.
    let managed = &here.get("tdset", "old")["metadata"]["managedFields"];
    let written = here.change("tdset/old", &json!({"spec": {"defaultReplicas": 3}}));
    assert_eq!(
        (&written["spec"]["defaultReplicas"], &written["metadata"]["generation"]),
        (&json!(3), &json!(2))
    );
    assert_eq!(written["metadata"]["managedFields"], *managed, "who wrote what before is kept");
    let foreground = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Foreground"});
    objects.must(Ask { method: "DELETE", path: here.path("tdset/old"), body: foreground });
    here.until_gone("tdset/old");
    here.delete("tdset/kept");
    here.until_gone("tdset/kept");
    objects.must(Ask::delete(format!("/api/v1/namespaces/{going}")));
    objects.until_gone(&format!("namespace/{going}"), "");
}

fn without_a_gate_objects_and_their_namespaces_go(bed: &Bed) {
    let house = House::begin(bed);
    installed::clear(bed);
    let mut replicas = house.replicas(&[&["--drain-delay", "0s"]]);
    let (here, going) = (&house.namespace, bed.namespace());
    let cluster = |name: &str, protected: bool| {
        json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": name},
            "spec": {"replicas": 0, "deletionProtection": protected}})
    };
    for namespace in [here, &going] {
        namespace.create(&tdset("free", &json!({})));
        namespace.create(&cluster("free", false));
    }
    here.create(&cluster("dear", true));
    replicas.remove(0).into_program().kill();

    let refused = bed.objects.one(Ask::create(&tdset("late", &json!({})), &here.name)).expect_err("refused");
    assert!(refused.message.contains("failed calling webhook"), "{refused:?}");
    let dear = here.path("etcdcluster/dear");
    let refused = bed.objects.one(Ask::delete(dear.as_str())).expect_err("protected");
    assert!(refused.message.contains("protected from deletion by spec.deletionProtection"), "{refused:?}");
    assert_eq!(refused.code, 403, "{refused:?}");
    for object in ["tdset/free", "etcdcluster/free"] {
        here.delete(object);
        here.until_gone(object);
    }
    bed.objects.must(Ask::delete(format!("/api/v1/namespaces/{}", going.name)));
    bed.objects.until_gone(&format!("namespace/{}", going.name), "");
    installed::clear(bed);
}

/// The rules that working in a namespace needs.
fn rules_of_watched_namespaces() -> Vec<Rule> {
    let groups = rule_groups(&Names::DEFAULT).into_iter();
    groups.filter(|group| group.scope == RoleScope::WatchedNamespaces).flat_map(|group| group.rules).collect()
}

/// An account with these rules in a namespace, and none in the cluster, once the API server knows of them.
fn account(bed: &Bed, account: &str, namespace: &str, rules: &[Rule]) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    const VERSION: &str = "rbac.authorization.k8s.io/v1";
    let (resource, part) = rules[0].resources[0].split_once('/').unwrap_or((&rules[0].resources[0], ""));
    let first = json!({"namespace": namespace, "group": rules[0].group, "resource": resource, "subresource": part,
        "verb": rules[0].verbs[0]});
    let rules: Vec<_> = rules
        .iter()
        .map(|rule| json!({"apiGroups": [rule.group], "resources": rule.resources, "verbs": rule.verbs}))
        .collect();
    let binding = |namespace: &str, name: &str, role: &str| {
        json!({"apiVersion": VERSION, "kind": "RoleBinding", "metadata": {"name": name, "namespace": namespace},
            "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": role},
            "subjects": [{"kind": "ServiceAccount", "namespace": NAMESPACE, "name": account}]})
    };
    for object in [
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": NAMESPACE}}),
        binding(NAMESPACE, account, "gatehouse"),
        json!({"apiVersion": VERSION, "kind": "Role", "metadata": {"name": "work", "namespace": namespace},
            "rules": rules}),
        binding(namespace, "work", "work"),
    ] {
        bed.objects.must(Ask::create(&object, ""));
    }
    until_may(bed, account, &lease("gatehouse"));
    until_may(bed, account, &first);
}

fn the_rules_of_a_kind_are_all_that_it_needs(bed: &Bed) {
    let cluster = json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": "alone"},
        "spec": {"replicas": 1, "version": "3.6.16", "tls": {"mode": "Automatic"}, "storage": {"size": "1Gi"}}});
    let migration = json!({"apiVersion": "gatehouse.dev/v1", "kind": "DatabaseMigration",
        "metadata": {"name": "alone"}, "spec": {
            "database": {"engine": "SQLite", "file": {"claimName": "data", "path": "shop.db"}},
            "scripts": [{"id": "1", "kind": "Schema", "up": {"inline": "CREATE TABLE a (b INTEGER)"}}]}});
    let create = json!({"image": "registry.k8s.io/pause:3.10", "port": 8080, "servicePort": 80});
    let set = tdset("alone", &json!({"target": {"create": create}}));
    let kinds = [
        (databasemigration::rbac::rules(), migration, &["configmaps", "jobs"][..]),
        (etcdcluster::rbac::rules(), cluster, &["services", "statefulsets"]),
        (tdset::rbac::rules(), set, &["deployments", "services"]),
    ];
    assert_eq!(kinds.len(), KINDS.len(), "each kind has a row");
    for (number, (rules, object, made)) in kinds.into_iter().enumerate() {
        let house = House::begin(bed);
        installed::clear(bed);
        installed::apply_shipped_definitions(bed);
        let (name, namespace) = (format!("kind-{number}"), &house.namespace);
        account(bed, &name, &namespace.name, &[rules, controllers::rbac::rules()].concat());
        let options = ["--watch-namespaces", &namespace.name, "--install", "false"];
        let replica = house.replica_as(&name, &options);
        until_ready(&replica);
        namespace.create(&object);
        let resource = object["kind"].as_str().expect("a kind").to_lowercase();
        namespace.until(&format!("{resource}/alone"), "{.status.observedGeneration}", "1");
        for made in made {
            eventually(|| {
                let found = bed.objects.list(made, &namespace.name, "app.kubernetes.io/instance=alone")?;
                if found.is_empty() { Err(format!("no {made} are made")) } else { Ok(()) }
            });
        }
    }
}

fn with_rights_in_one_namespace_that_one_is_worked(bed: &Bed) {
    let house = House::begin(bed);
    installed::clear(bed);
    let (shop, depot) = (&house.namespace, bed.namespace());
    account(bed, "narrow", &shop.name, &rules_of_watched_namespaces());
    let watched: &[&str] = &["--watch-namespaces", &shop.name];
    let narrow = house.replica_as("narrow", &[&["--install", "false"], watched].concat());
    eventually(|| {
        let page = http_get(narrow.health, "/readyz");
        let waits = page.lines().any(|line| {
            line.starts_with("[-]definitions not ready: ")
                && line.ends_with(".gatehouse.dev is not served yet")
        });
        if waits && page.starts_with("HTTP/1.1 5") { Ok(()) } else { Err(page) }
    });
    installed::apply_shipped_definitions(bed);
    until_ready(&narrow);
    narrow.logs("leading");

    for namespace in [&depot, shop] {
        namespace.create(&tdset("apart", &json!({})));
    }
    house.until_replicas("apart", 1);
    shop.until("tdset/apart", "{.status.scheduledReplicas}", "1");
    // What is changed after all of that is worked as well, and still only there.
    for namespace in [&depot, shop] {
        namespace.change("tdset/apart", &json!({"spec": {"defaultReplicas": 2}}));
    }
    house.until_replicas("apart", 2);
    shop.until("tdset/apart", "{.status.observedGeneration}", "2");
    let made = bed.objects.one(Ask::get(depot.path("deployment/apart")));
    assert_eq!(made.map_err(|refusal| refusal.code), Err(404), "no other namespace is touched");
    let unobserved = json!({"observedGeneration": -1});
    assert_eq!(depot.get("tdset", "apart")["status"], unobserved, "no other namespace is touched");
    assert!(owners(bed).is_none(), "nothing cluster-wide is written");
    let log = narrow.log().text();
    assert!(!log.contains("is forbidden"), "{log}");

    // Ready is who can be called, whatever becomes of the installation.
    let hopeful = house.replica_as("narrow", watched);
    until_ready(&hopeful);
    let failed = hopeful.logs("task ended, will restart it");
    assert!(
        failed["error"]
            .as_str()
            .is_some_and(|error| error.contains("cannot get resource \"validatingwebhookconfigurations")),
        "{failed}"
    );
    bed.kubectl(&["delete", "-k", &deploy().join("crds").to_string_lossy()]).ok();
    assert!(is_ready(&hopeful) && is_ready(&narrow), "and it stays so");
}
