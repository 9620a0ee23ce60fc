use serde_json::json;

use super::*;

fn faults(object: &Value) -> Vec<String> {
    opinion(object, Timestamp::UNIX_EPOCH).faults.iter().map(ToString::to_string).collect()
}

fn etcd(spec: &Value) -> Value {
    json!({ "apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": { "name": "a" }, "spec": spec })
}

#[test]
fn what_creation_fills_in_is_not_missing() {
    assert_eq!(faults(&etcd(&json!({}))), Vec::<String>::new());
}

#[test]
fn an_unknown_field_is_a_fault_and_says_who_has_it() {
    assert_eq!(
        faults(&etcd(&json!({ "size": 3, "replicass": 3 }))),
        [
            "spec.replicass: Forbidden: unknown field of gatehouse.dev/v1",
            "spec.size: Forbidden: unknown field of gatehouse.dev/v1; v1alpha1 has it",
        ]
    );
}

/// They were never released: no two spellings are taken for one.
#[test]
fn earlier_spellings_of_v1_are_unknown_fields() {
    let cluster = etcd(&json!({
        "storage": { "className": "a" }, "auth": { "rootSecret": "a" },
        "tls": { "mode": "Secrets", "secrets": { "server": "a", "serverRef": { "name": "a" },
            "peerRef": { "name": "a" }, "clientRef": { "name": "a" } } },
        "podTemplate": {}, "pod": { "metadata": {} }
    }));
    let set = json!({ "apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": { "name": "a" }, "spec": {
        "timeZone": "Etc/UTC", "defaultReplicas": 1, "replicas": 1, "manualScale": "Revert",
        "autoscaler": { "name": "a", "hpaRef": "a" },
        "windows": [{ "name": "a", "from": "08:00", "to": "09:00", "replicas": 1,
            "season": { "first": "2026-01-01", "from": "2026-01-01" } }],
        "target": { "create": { "image": "a", "port": 80, "podTemplate": {} } }
    }});
    for (object, fields) in [
        (
            cluster,
            &[
                "spec.storage.className",
                "spec.auth.rootSecret",
                "spec.tls.secrets.server",
                "spec.podTemplate",
                "spec.pod.metadata",
            ][..],
        ),
        (
            set,
            &[
                "spec.replicas",
                "spec.manualScale",
                "spec.autoscaler.hpaRef",
                "spec.windows[0].season.from",
                "spec.target.create.podTemplate",
            ],
        ),
    ] {
        let mut told = faults(&object);
        let mut expected: Vec<_> = fields
            .iter()
            .map(|field| format!("{field}: Forbidden: unknown field of gatehouse.dev/v1"))
            .collect();
        told.sort_unstable();
        expected.sort_unstable();
        assert_eq!(told, expected);
    }
}

#[test]
fn a_number_in_place_of_a_text_asks_for_quotes() {
    let faults = faults(&etcd(&json!({ "version": 3.5 })));
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(
        faults[0].starts_with("spec.version: Invalid value: 3.5: must be of type string; "),
        "{faults:?}"
    );
    assert!(faults[0].ends_with("needs quotes"), "{faults:?}");
}

#[test]
fn an_object_without_a_name_is_refused_and_one_with_the_beginning_of_one_is_not() {
    let mut object = etcd(&json!({}));
    object["metadata"] = json!({});
    let refused = faults(&object);
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(refused[0].starts_with("metadata.name: Required value: name or generateName "), "{refused:?}");
    object["metadata"] = json!({ "generateName": "a-" });
    assert_eq!(faults(&object), Vec::<String>::new());
}

#[test]
fn faults_of_an_ancestor_are_told_in_its_own_fields() {
    let object = json!({
        "apiVersion": "mycompany.com/v1alpha1", "kind": "EtcdCluster", "metadata": { "name": "a" },
        "spec": { "replicas": "three" }
    });
    let opinion = opinion(&object, Timestamp::UNIX_EPOCH);
    assert_eq!(opinion.judged_as, Some("gatehouse.dev/v1alpha1"));
    assert_eq!(opinion.faults[0].path.to_string(), "spec.replicas");
}

#[test]
fn other_kinds_are_skipped_and_other_versions_of_ours_refused() {
    let is_skipped = |api_version: &str, kind: &str| {
        opinion(&json!({ "apiVersion": api_version, "kind": kind }), Timestamp::UNIX_EPOCH).skipped
    };
    for (api_version, kind) in [
        ("v1", "Namespace"),
        ("apps/v1", "Deployment"),
        ("operator.etcd.io/v1alpha1", "EtcdCluster"),
        ("etcd.database.coreos.com/v1beta2", "EtcdCluster"),
        ("example.com/v1", "EtcdClusters"),
        ("gatehouse.io/v1", "Gate"),
        ("", "Values"),
    ] {
        assert!(is_skipped(api_version, kind), "{api_version} {kind}");
    }
    assert_eq!(faults(&json!({ "apiVersion": "gatehouse.dev/v1beta1", "kind": "TDSet" })).len(), 1);
}

#[test]
fn a_kind_of_ours_that_names_another_group_is_a_fault() {
    for (api_version, kind, meant) in [
        ("gatehouse.io/v1", "EtcdCluster", "EtcdCluster"),
        ("gatehouse.dev.io/v1", "TDSet", "TDSet"),
        ("gatehose.dev/v1", "TDset", "TDSet"),
        ("gatehouse.io/v1", "EtcdClusters", "EtcdCluster"),
        ("schedule.rs/v2", "TDSet", "TDSet"),
        ("stable.example.com/v1", "EtcdCluster", "EtcdCluster"),
        ("apps/v1", "DatabaseMigration", "DatabaseMigration"),
        ("v1", "TDSet", "TDSet"),
        ("", "TDSet", "TDSet"),
    ] {
        let told = faults(&json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": "a" } }));
        let expected = format!("did you mean gatehouse.dev/v1 and kind {meant}?");
        assert!(
            told.len() == 1 && told[0].starts_with("apiVersion: ") && told[0].ends_with(&expected),
            "{told:?}"
        );
    }
    for (kind, hint) in [
        ("EtcdClutser", "; did you mean EtcdCluster?"),
        ("tdset", "; did you mean TDSet?"),
        ("DatabaseMigrations", "; did you mean DatabaseMigration?"),
        ("Deployment", "\"TDSet\""),
    ] {
        let told = faults(&json!({ "apiVersion": "gatehouse.dev/v1", "kind": kind }));
        assert!(told.len() == 1 && told[0].starts_with("kind: ") && told[0].ends_with(hint), "{told:?}");
    }
    let told = faults(&json!({ "apiVersion": "gatehouse.dev/v2", "kind": "TDSet" }));
    assert!(told[0].contains("\"gatehouse.dev/v1\""), "{told:?}");
}

#[test]
fn metadata_are_validated_as_an_api_server_does() {
    let mut object = etcd(&json!({ "replicas": 9 }));
    object["metadata"] = json!({ "name": "a", "label": { "a": "b" }, "annotations": { "a": 1 } });
    assert_eq!(
        faults(&object),
        [
            "metadata.label: Forbidden: unknown field of metadata; did you mean labels?",
            "metadata.annotations[a]: Invalid value: 1: must be of type string; in YAML a text that looks like a number or \
             yes, no, on, off needs quotes",
            "spec.replicas: Invalid value: 9: should be less than or equal to 7",
        ]
    );
}

#[test]
fn an_object_that_kubectl_apply_makes_too_large_is_named() {
    let migration = |scripts: usize| {
        let script = |id: usize| {
            let down = format!("-- {}", "x".repeat(30 * 1024));
            json!({"id": id.to_string(), "kind": "Schema", "up": {"inline": "SELECT 1"}, "down": {"inline": down}})
        };
        let scripts: Vec<_> = (0..scripts).map(script).collect();
        json!({"apiVersion": "gatehouse.dev/v1", "kind": "DatabaseMigration", "metadata": {"name": "shop"},
            "spec": {"database": {"engine": "SQLite", "file": {"claimName": "a", "path": "b"}}, "scripts": scripts}})
    };
    let warned = |object: &Value| {
        let opinion = opinion(object, Timestamp::UNIX_EPOCH);
        assert_eq!(opinion.faults, [], "it fits alone");
        opinion.warnings.iter().any(|note| note.text.contains("kubectl apply --server-side"))
    };
    assert!(!warned(&migration(3)));
    let mut large = migration(5);
    assert!(warned(&large));
    // As kubectl apply sends it, and the gate refuses it.
    let text = large.to_string();
    large["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": text});
    let told = faults(&large);
    assert!(told.len() == 1 && told[0].contains("256 KiB") && told[0].contains("--server-side"), "{told:?}");
}

#[test]
fn an_object_of_each_kind_that_kubectl_apply_makes_too_large_is_named() {
    let noted = |kibibytes: usize, spec: &Value, kind: &str| {
        json!({"apiVersion": "gatehouse.dev/v1", "kind": kind, "spec": spec,
            "metadata": {"name": "shop", "annotations": {"example.com/notes": "x".repeat(kibibytes * 1024)}}})
    };
    let create = json!({"image": "a", "port": 80});
    let set = json!({"timeZone": "Etc/UTC", "defaultReplicas": 1, "target": {"create": create}});
    for (kind, spec) in [("TDSet", set), ("EtcdCluster", json!({"replicas": 3}))] {
        let warned = |object: &Value| {
            let opinion = opinion(object, Timestamp::UNIX_EPOCH);
            assert_eq!(opinion.faults, [], "{kind} fits alone");
            opinion.warnings.iter().any(|note| note.text.contains("kubectl apply --server-side"))
        };
        assert!(!warned(&noted(100, &spec, kind)), "{kind}");
        let mut large = noted(150, &spec, kind);
        assert!(warned(&large), "{kind}");
        // As kubectl apply sends it, and the API server refuses it.
        let text = large.to_string();
        large["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = json!(text);
        let refused = faults(&large);
        assert!(refused.iter().any(|fault| fault.starts_with("metadata.annotations")), "{kind}: {refused:?}");
    }
}
