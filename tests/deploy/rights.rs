//! What is granted is what the code says it needs, and no more.

use std::collections::BTreeSet;

use gatehouse::cli::manifests::rbac::{
    Names, election_of_gates, rule_groups, rule_groups_of_controllers, rule_groups_of_gate,
};
use gatehouse::rbac::{RoleScope, RuleGroup};
use kit::deploy::{Rendered, everything, kind, name, of_kind, rendered, variant};
use serde_json::Value;

/// Group, resource, name (empty for all) and verb.
type Right = (String, String, String, String);

fn words(rule: &Value, field: &str) -> Vec<String> {
    let words = rule[field].as_array().cloned().unwrap_or_default();
    words.iter().map(|word| word.as_str().expect("text").to_owned()).collect()
}

fn or_all(names: Vec<String>) -> Vec<String> {
    if names.is_empty() { vec![String::new()] } else { names }
}

fn each(groups: &[String], resources: &[String], names: &[String], verbs: &[String]) -> Vec<Right> {
    let mut rights = Vec::new();
    for group in groups {
        for resource in resources {
            for name in names {
                for verb in verbs {
                    rights.push((group.clone(), resource.clone(), name.clone(), verb.clone()));
                }
            }
        }
    }
    rights
}

/// The ClusterRole of Kubernetes that takes up the rules of a role.
fn aggregate(role: &Value) -> Option<&str> {
    let labels = role["metadata"]["labels"].as_object()?;
    labels.keys().find_map(|label| label.strip_prefix("rbac.authorization.k8s.io/aggregate-to-"))
}

/// The rights that the roles of this kind grant together to gatehouse itself.
fn granted(objects: &[Value], kind: &str) -> BTreeSet<Right> {
    of_roles(of_kind(objects, kind).into_iter().filter(|role| aggregate(role).is_none()))
}

fn of_roles<'a>(roles: impl Iterator<Item = &'a Value>) -> BTreeSet<Right> {
    let granted = roles.flat_map(|role| role["rules"].as_array().cloned().unwrap());
    granted
        .flat_map(|rule| {
            let names = or_all(words(&rule, "resourceNames"));
            each(&words(&rule, "apiGroups"), &words(&rule, "resources"), &names, &words(&rule, "verbs"))
        })
        .collect()
}

fn needed(wanted: impl Fn(&RuleGroup) -> bool) -> BTreeSet<Right> {
    needed_of(rule_groups(&Names::DEFAULT), wanted)
}

fn needed_of(groups: Vec<RuleGroup>, wanted: impl Fn(&RuleGroup) -> bool) -> BTreeSet<Right> {
    let groups = groups.into_iter().filter(wanted);
    groups
        .flat_map(|group| group.rules)
        .flat_map(|rule| {
            let verbs: Vec<_> = rule.verbs.iter().map(|verb| (*verb).to_owned()).collect();
            each(&[rule.group.to_owned()], &rule.resources, &or_all(rule.names), &verbs)
        })
        .collect()
}

#[test]
fn the_base_grants_what_the_code_needs() {
    let base = rendered("base");
    assert_eq!(granted(base, "Role"), needed(|group| group.scope == RoleScope::OwnNamespace));
    assert_eq!(granted(base, "ClusterRole"), needed(|group| group.scope != RoleScope::OwnNamespace));
}

#[test]
fn users_get_rights_on_all_kinds_by_their_roles() {
    for objects in [rendered("base"), variant("default"), variant("everything"), variant("watching")] {
        let rights = |wanted: &str| {
            let roles = of_kind(objects, "ClusterRole").into_iter();
            of_roles(roles.filter(|role| aggregate(role) == Some(wanted)))
        };
        let right = |resource: &str, verb: &str| {
            ("gatehouse.dev".to_owned(), resource.to_owned(), String::new(), verb.to_owned())
        };
        for kind in ["databasemigrations", "etcdclusters", "tdsets"] {
            for verb in ["get", "list", "watch"] {
                assert!(rights("view").contains(&right(kind, verb)), "{kind} {verb}");
            }
            for verb in ["create", "delete", "patch", "update"] {
                assert!(rights("edit").contains(&right(kind, verb)), "{kind} {verb}");
            }
        }
        assert!(rights("view").iter().all(|(.., verb)| ["get", "list", "watch"].contains(&verb.as_str())));
        assert!(rights("edit").iter().all(|(.., verb)| verb != "approve"));
        assert_eq!(rights("admin"), BTreeSet::from([right("databasemigrations", "approve")]));
    }
    for name in ["others-account", "by-administrator"] {
        let roles = of_kind(variant(name), "ClusterRole");
        assert!(roles.iter().all(|role| aggregate(role).is_none()), "{name}");
    }
}

/// The objects of that name.
fn called(objects: &[Value], wanted: &str) -> Vec<Value> {
    objects.iter().filter(|object| name(object) == wanted).cloned().collect()
}

#[test]
fn two_deployments_have_an_account_each_which_may_do_what_its_part_needs() {
    let objects = variant("split");
    let mut of_gate = rule_groups_of_gate(&Names::DEFAULT);
    of_gate.push(election_of_gates(&Names::DEFAULT));
    let parts = [
        ("gatehouse", "--only=gate", of_gate),
        ("gatehouse-controllers", "--only=controllers", rule_groups_of_controllers(&Names::DEFAULT)),
    ];
    assert_eq!(of_kind(objects, "Deployment").len(), parts.len());
    for (part, only, groups) in parts {
        let its = called(objects, part);
        let pod = &of_kind(&its, "Deployment")[0]["spec"]["template"]["spec"];
        assert_eq!(pod["serviceAccountName"], part);
        assert!(words(&pod["containers"][0], "args").contains(&only.to_owned()), "{pod}");
        assert_eq!(of_kind(&its, "ServiceAccount").len(), 1, "{part}");
        let is_own = |group: &RuleGroup| group.scope == RoleScope::OwnNamespace;
        assert_eq!(granted(&its, "Role"), needed_of(groups.clone(), is_own));
        assert_eq!(granted(&its, "ClusterRole"), needed_of(groups, |group| !is_own(group)));
        for binding in its.iter().filter(|object| kind(object).ends_with("RoleBinding")) {
            assert_eq!(binding["subjects"][0]["name"], part);
        }
    }
    let gate = called(objects, "gatehouse");
    let mut secrets = granted(&gate, "Role");
    secrets.extend(granted(&gate, "ClusterRole"));
    secrets.retain(|(_, resource, ..)| resource == "secrets");
    assert!(
        secrets.iter().all(|(_, _, name, verb)| name == "gatehouse-ca" || verb == "create"),
        "{secrets:?}"
    );
}

#[test]
fn two_deployments_limited_to_namespaces_work_by_the_roles_of_the_controllers() {
    let objects = variant("split-watching");
    for namespace in ["team-a", "team-b"] {
        let in_it = |object: &&Value| object["metadata"]["namespace"] == namespace;
        let there: Vec<_> = objects.iter().filter(in_it).cloned().collect();
        assert_eq!(granted(&there, "Role"), needed(|group| group.scope == RoleScope::WatchedNamespaces));
        assert_eq!(of_kind(&there, "RoleBinding")[0]["subjects"][0]["name"], "gatehouse-controllers");
    }
    assert_eq!(granted(objects, "ClusterRole"), needed(|group| group.scope == RoleScope::Cluster));
}

/// Labels by which something finds pods: all that it asks for are there.
fn finds(selector: &Value, pod: &Value) -> bool {
    let wanted = selector.as_object().expect("labels");
    wanted.iter().all(|(name, value)| pod["metadata"]["labels"][name] == *value)
}

#[test]
fn of_two_deployments_each_has_its_own_pods_and_reviews_go_to_the_gate_alone() {
    let objects = variant("split");
    let pod = |name: &str| of_kind(&called(objects, name), "Deployment")[0]["spec"]["template"].clone();
    let (gate, controllers) = (pod("gatehouse"), pod("gatehouse-controllers"));
    let found = |selector: &Value| (finds(selector, &gate), finds(selector, &controllers));
    let of = |kind: &str, name: &str| of_kind(&called(objects, name), kind)[0]["spec"].clone();
    for kind in ["Deployment", "NetworkPolicy"] {
        let field = if kind == "Deployment" { "selector" } else { "podSelector" };
        assert_eq!(found(&of(kind, "gatehouse")[field]["matchLabels"]), (true, false), "{kind}");
        assert_eq!(found(&of(kind, "gatehouse-controllers")[field]["matchLabels"]), (false, true), "{kind}");
    }
    assert_eq!(found(&of("Service", "gatehouse")["selector"]), (true, false));
    assert_eq!(found(&of("Service", "gatehouse-metrics")["selector"]), (true, true));
    assert_eq!(found(&of("PodDisruptionBudget", "gatehouse")["selector"]["matchLabels"]), (true, false));
    let ports = &controllers["spec"]["containers"][0]["ports"];
    assert_eq!(ports.as_array().map(Vec::len), Some(1), "they serve no reviews: {ports}");
    // Only who talks to members of etcd may.
    let egress = |name: &str| of("NetworkPolicy", name)["egress"].to_string();
    assert!(!egress("gatehouse").contains("2379") && egress("gatehouse-controllers").contains("2379"));
}

#[test]
fn limited_to_namespaces_it_works_by_roles_alone() {
    let objects = variant("watching");
    assert_eq!(granted(objects, "ClusterRole"), needed(|group| group.scope == RoleScope::Cluster));
    for namespace in ["team-a", "team-b"] {
        let in_it = |object: &&Value| object["metadata"]["namespace"] == namespace;
        let there: Vec<_> = objects.iter().filter(in_it).cloned().collect();
        assert_eq!(granted(&there, "Role"), needed(|group| group.scope == RoleScope::WatchedNamespaces));
        assert_eq!(of_kind(&there, "RoleBinding").len(), 1, "{namespace}");
    }
    for objects in [variant("by-administrator"), rendered("overlays/namespaced")] {
        assert_eq!(of_kind(objects, "ClusterRole"), Vec::<&Value>::new());
        assert_eq!(of_kind(objects, "ClusterRoleBinding"), Vec::<&Value>::new());
    }
}

/// What it may do with the Secrets of etcd clusters, where it works these: never list or watch.
fn of_members() -> BTreeSet<Right> {
    let work = needed(|group| group.scope == RoleScope::WatchedNamespaces);
    let of_members: BTreeSet<_> =
        work.into_iter().filter(|(_, resource, ..)| resource == "secrets").collect();
    let listed = ["list", "watch", "delete", "deletecollection", "update"];
    assert!(of_members.iter().all(|(.., verb)| !listed.contains(&verb.as_str())), "{of_members:?}");
    of_members
}

#[test]
fn with_a_mounted_certificate_it_reads_no_secret_but_those_of_etcd_clusters() {
    let mounted =
        ["cert-manager", "issuer", "secret", "by-chart", "by-chart-with-bundle", "by-administrator"];
    let charts = mounted.into_iter().map(variant);
    for objects in charts.chain([rendered("overlays/cert-manager"), rendered("overlays/namespaced")]) {
        let mut all = granted(objects, "Role");
        all.extend(granted(objects, "ClusterRole"));
        let of_members = of_members();
        let others: Vec<_> = all.difference(&of_members).collect();
        assert!(others.iter().all(|(_, resource, ..)| resource != "secrets"), "{others:?}");
    }
}

#[test]
fn nothing_grants_a_wildcard_or_secrets_but_those_of_etcd_clusters() {
    let of_members = of_members();
    for Rendered { source, objects, .. } in everything() {
        for kind in ["Role", "ClusterRole"] {
            for right in granted(objects, kind) {
                let (group, resource, name, verb) = &right;
                assert!(
                    ![group, resource, name, verb].iter().any(|word| word.contains('*')),
                    "{source}: {right:?}"
                );
                if resource == "secrets" && !of_members.contains(&right) {
                    assert_eq!(kind, "Role", "{source}: {right:?}");
                    assert!(!name.is_empty() || verb == "create", "{source}: {right:?}");
                }
            }
        }
    }
}

#[test]
fn every_binding_binds_the_account_of_the_pods_to_a_role_that_is_there() {
    for Rendered { source, objects, .. } in everything() {
        let bindings = objects.iter().filter(|object| kind(object).ends_with("RoleBinding"));
        for binding in bindings {
            let role = &binding["roleRef"];
            let is_it = |object: &&Value| {
                kind(object) == role["kind"].as_str().unwrap()
                    && name(object) == role["name"].as_str().unwrap()
                    && object["metadata"]["namespace"] == binding["metadata"]["namespace"]
            };
            assert!(objects.iter().any(|object| is_it(&object)), "{source}: {role}");
            let subjects = binding["subjects"].as_array().unwrap();
            assert_eq!(subjects.len(), 1, "{source}");
            assert_eq!(subjects[0]["kind"], "ServiceAccount", "{source}");
            let deployments = of_kind(objects, "Deployment");
            let is_its = |deployment: &&&Value| {
                let account = &deployment["spec"]["template"]["spec"]["serviceAccountName"];
                subjects[0]["name"] == *account
                    && subjects[0]["namespace"] == deployment["metadata"]["namespace"]
            };
            assert!(
                deployments.is_empty() || deployments.iter().any(|one| is_its(&one)),
                "{source}: {subjects:?}"
            );
        }
    }
}
