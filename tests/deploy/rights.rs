//! What is granted is what the code says it needs, and no more.

use std::collections::BTreeSet;

use gatehouse::cli::manifests::rbac::{Names, rule_groups};
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

/// What the roles of these kinds grant together.
fn granted(objects: &[Value], kind: &str) -> BTreeSet<Right> {
    let rules =
        of_kind(objects, kind).into_iter().flat_map(|role| role["rules"].as_array().cloned().unwrap());
    rules
        .flat_map(|rule| {
            let names = or_all(words(&rule, "resourceNames"));
            each(&words(&rule, "apiGroups"), &words(&rule, "resources"), &names, &words(&rule, "verbs"))
        })
        .collect()
}

fn needed(wanted: impl Fn(&RuleGroup) -> bool) -> BTreeSet<Right> {
    let groups = rule_groups(&Names::DEFAULT).into_iter().filter(wanted);
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
            for deployment in of_kind(objects, "Deployment") {
                let account = &deployment["spec"]["template"]["spec"]["serviceAccountName"];
                assert_eq!(&subjects[0]["name"], account, "{source}");
                assert_eq!(subjects[0]["namespace"], deployment["metadata"]["namespace"], "{source}");
            }
        }
    }
}
