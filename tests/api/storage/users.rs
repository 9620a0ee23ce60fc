//! Users that are no administrators: an API server counts what these ask for, and gives them as much time as others leave
//! them.

use std::path::PathBuf;

use kit::bed::Bed;
use kit::objects::{Ask, Objects};
use kit::wait::eventually;
use serde_json::{Value, json};

use super::widgets::Widgets;

const RBAC: &str = "rbac.authorization.k8s.io";

/// Rights to do something with resources of a group everywhere.
pub fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

/// Makes a ServiceAccount of that namespace and name with these rights, one of which is to read what is at `path`; its
/// kubeconfig. The audit log has what those of gatehouse's namespace do.
pub fn account(bed: &Bed, (namespace, name): (&str, &str), rules: &[Value], path: &str) -> PathBuf {
    let version = format!("{RBAC}/v1");
    for object in [
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}),
        json!({"apiVersion": version, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}),
        json!({"apiVersion": version, "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": name}]}),
    ] {
        bed.objects.must(Ask::create(&object, ""));
    }
    let kubeconfig = bed.cluster.kubeconfig_for_service_account(namespace, name);
    let kubeconfig = kubeconfig.unwrap_or_else(|error| panic!("{error}"));
    let objects = Objects::new(&kubeconfig);
    eventually(|| objects.read(path));
    kubeconfig
}

/// The same for one that may migrate these objects.
pub fn migrator(widgets: &Widgets, account_of: (&str, &str)) -> PathBuf {
    let definitions = ["customresourcedefinitions", "customresourcedefinitions/status"];
    let rules = [
        rule(&widgets.group, &["widgets", "widgets/status"], &["get", "list", "patch"]),
        rule("apiextensions.k8s.io", &definitions, &["get", "patch"]),
    ];
    account(widgets.bed, account_of, &rules, &format!("/apis/{}/v1/widgets", widgets.group))
}
