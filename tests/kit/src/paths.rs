//! Where an API server has the objects of a kind.
//!
//! Assumes: the kinds of others that tests read are in the tables below. Never: asks a server for them.

use gatehouse::api::GROUP;
use gatehouse::kinds::{self, KINDS};
use serde_json::Value;

/// Where the API server has what lies in namespaces.
const NAMESPACED: [(&str, &[&str]); 8] = [
    (
        "api/v1",
        &[
            "configmap",
            "event",
            "persistentvolumeclaim",
            "pod",
            "resourcequota",
            "secret",
            "service",
            "serviceaccount",
        ],
    ),
    ("apis/apps/v1", &["deployment", "replicaset", "statefulset"]),
    ("apis/autoscaling/v2", &["horizontalpodautoscaler"]),
    ("apis/batch/v1", &["cronjob", "job"]),
    ("apis/coordination.k8s.io/v1", &["lease"]),
    ("apis/discovery.k8s.io/v1", &["endpointslice"]),
    ("apis/policy/v1", &["poddisruptionbudget"]),
    ("apis/rbac.authorization.k8s.io/v1", &["role", "rolebinding"]),
];

/// And what does not.
const CLUSTER_WIDE: [(&str, &[&str]); 6] = [
    ("api/v1", &["namespace", "node", "persistentvolume"]),
    (
        "apis/admissionregistration.k8s.io/v1",
        &[
            "mutatingwebhookconfiguration",
            "validatingadmissionpolicy",
            "validatingadmissionpolicybinding",
            "validatingwebhookconfiguration",
        ],
    ),
    ("apis/apiextensions.k8s.io/v1", &["customresourcedefinition"]),
    ("apis/rbac.authorization.k8s.io/v1", &["clusterrole", "clusterrolebinding"]),
    ("apis/scheduling.k8s.io/v1", &["priorityclass"]),
    ("apis/storage.k8s.io/v1", &["storageclass"]),
];

/// The short names that tests use for them.
const SHORT: [(&str, &str); 6] = [
    ("hpa", "horizontalpodautoscaler"),
    ("pvc", "persistentvolumeclaim"),
    ("pdb", "poddisruptionbudget"),
    ("crd", "customresourcedefinition"),
    ("tds", "tdset"),
    ("etcd", "etcdcluster"),
];

/// The path of the collection that an object belongs to, in its own version: in this namespace where it names none and
/// its kind has one.
#[must_use]
pub fn collection_of(object: &Value, namespace: &str) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let ours = kinds::find(&kind).filter(|_| version.starts_with(GROUP));
    let kind = kind.to_lowercase();
    let plural = ours.map_or_else(|| plural(&kind), |ours| ours.names().plural.to_owned());
    let group = if version.contains('/') { "apis" } else { "api" };
    let is_cluster_wide = CLUSTER_WIDE.iter().any(|(_, kinds)| kinds.contains(&&*kind));
    let place = match object["metadata"]["namespace"].as_str() {
        _ if is_cluster_wide => String::new(),
        own => format!("/namespaces/{}", own.unwrap_or(namespace)),
    };
    format!("/{group}/{version}{place}/{plural}")
}

/// What the collection of a kind of others is called.
fn plural(kind: &str) -> String {
    match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if kind.ends_with('s') => format!("{kind}es"),
        None => format!("{kind}s"),
    }
}

/// Where the API server has the objects of a kind: `pod`, `pods`, `deployment.apps`, a short name,
/// `etcdclusters.v1alpha1.gatehouse.dev` for one version of ours, or `widgets.some.example.com` for v1 of a kind that a
/// test has defined.
///
/// # Panics
/// No test reads such objects yet: it has to be written down above.
#[must_use]
pub fn path_of(kind: &str, namespace: &str) -> String {
    if let [plural, version, "gatehouse", "dev"] = kind.split('.').collect::<Vec<_>>()[..] {
        return of(version, namespace, plural);
    }
    if let Some((plural, group)) = kind.split_once('.').filter(|(_, group)| group.ends_with(".example.com")) {
        return format!("/apis/{group}/v1/namespaces/{namespace}/{plural}");
    }
    let kind = kind.split('.').next().unwrap_or_default();
    let full = SHORT.iter().find(|(short, _)| *short == kind).map_or(kind, |(_, full)| full);
    let mut ours = KINDS.iter().map(|kind| kind.names());
    if let Some(names) = ours.find(|names| names.plural == full || names.kind.to_lowercase() == full) {
        return of("v1", namespace, names.plural);
    }
    let is_it = |one: &&&str| **one == full || full.strip_suffix('s') == Some(**one);
    let among = |places: &[(&'static str, &'static [&'static str])]| {
        places.iter().find_map(|(group, kinds)| kinds.iter().find(is_it).map(|kind| (*group, *kind)))
    };
    if let Some((group, kind)) = among(&NAMESPACED) {
        return format!("/{group}/namespaces/{namespace}/{kind}s");
    }
    let (group, kind) = among(&CLUSTER_WIDE).unwrap_or_else(|| panic!("{kind} is no kind that tests read"));
    format!("/{group}/{kind}s")
}

/// The path of the objects of a kind of ours in one version and namespace: `of("v1", "a", "tdsets")`.
#[must_use]
pub fn of(version: &str, namespace: &str, plural: &str) -> String {
    format!("/apis/gatehouse.dev/{version}/namespaces/{namespace}/{plural}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{KINDS, collection_of, path_of};
    use crate::objects::Ask;

    #[test]
    fn kinds_are_found_by_the_names_that_kubectl_takes() {
        assert_eq!(path_of("pods", "a"), "/api/v1/namespaces/a/pods");
        assert_eq!(path_of("deployment", "a"), "/apis/apps/v1/namespaces/a/deployments");
        assert_eq!(path_of("deployments.apps", "a"), "/apis/apps/v1/namespaces/a/deployments");
        assert_eq!(path_of("hpa", "a"), "/apis/autoscaling/v2/namespaces/a/horizontalpodautoscalers");
        assert_eq!(path_of("tds", "a"), "/apis/gatehouse.dev/v1/namespaces/a/tdsets");
        assert_eq!(
            path_of("etcdclusters.v1alpha1.gatehouse.dev", "a"),
            "/apis/gatehouse.dev/v1alpha1/namespaces/a/etcdclusters"
        );
        assert_eq!(path_of("persistentvolumes", "a"), "/api/v1/persistentvolumes");
    }

    #[test]
    fn an_object_says_where_it_belongs() {
        let object = |version: &str, kind: &str| json!({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}});
        for (version, kind, path) in [
            ("v1", "ConfigMap", "/api/v1/namespaces/a/configmaps"),
            (
                "networking.k8s.io/v1",
                "NetworkPolicy",
                "/apis/networking.k8s.io/v1/namespaces/a/networkpolicies",
            ),
            ("gatehouse.dev/v1alpha1", "TDSet", "/apis/gatehouse.dev/v1alpha1/namespaces/a/tdsets"),
        ] {
            assert_eq!(collection_of(&object(version, kind), "a"), path);
        }
        for kind in KINDS {
            let names = kind.names();
            let path = format!("/apis/gatehouse.dev/v1/namespaces/a/{}", names.plural);
            assert_eq!(collection_of(&object("gatehouse.dev/v1", names.kind), "a"), path);
        }
        let class = object("scheduling.k8s.io/v1", "PriorityClass");
        assert_eq!(Ask::create(&class, "").path, "/apis/scheduling.k8s.io/v1/priorityclasses");
        let mut elsewhere = object("v1", "Service");
        elsewhere["metadata"]["namespace"] = json!("b");
        assert_eq!(collection_of(&elsewhere, "a"), "/api/v1/namespaces/b/services");
    }
}
