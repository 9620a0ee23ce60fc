use serde_json::{Value, json};

use super::*;
use crate::controllers::manifest::APPLIED_HASH;
use crate::kinds::etcdcluster::observation::Version;
use crate::kinds::etcdcluster::resources::tests::{GUARD, TEMPLATE, cluster, plain};

fn live(manifest: &Manifest) -> StatefulSet {
    serde_json::from_value(manifest.object.clone()).unwrap()
}

#[test]
fn all_pods_start_at_once_and_claims_outlive_everything() {
    let set = manifest(&plain(), &TEMPLATE, 3, GUARD, false).object;
    assert!(set["metadata"]["annotations"][APPLIED_HASH].is_string());
    let mut spec = set["spec"].clone();
    spec.as_object_mut().unwrap().remove("template");
    let labels = json!({
        "app.kubernetes.io/component": "member",
        "app.kubernetes.io/instance": "c",
        "app.kubernetes.io/managed-by": "gatehouse",
        "app.kubernetes.io/name": "etcd",
    });
    let mut claims = spec.as_object_mut().unwrap().remove("volumeClaimTemplates").unwrap();
    let claim = claims[0].take();
    assert_eq!(
        spec,
        json!({
            "replicas": 3,
            "selector": {"matchLabels": labels},
            "serviceName": "c",
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "OnDelete"},
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        })
    );
    assert_eq!(
        claim["metadata"],
        json!({"name": "data", "labels": labels, "annotations": {"gatehouse.dev/cluster": "u-1"}})
    );
    assert_eq!(
        claim["spec"],
        json!({
            "accessModes": ["ReadWriteOnce"],
            "volumeMode": "Filesystem",
            "resources": {"requests": {"storage": "10Gi"}},
        })
    );
}

#[test]
fn the_class_of_volumes_is_that_of_the_spec_and_memory_needs_none() {
    let claims = |storage: Value| {
        let cluster = cluster(&json!({"storage": storage}));
        manifest(&cluster, &TEMPLATE, 1, GUARD, false).object["spec"]["volumeClaimTemplates"].clone()
    };
    assert_eq!(claims(json!({"storageClassName": "fast"}))[0]["spec"]["storageClassName"], "fast");
    assert_eq!(claims(json!({"storageClassName": ""}))[0]["spec"]["storageClassName"], "");
    assert_eq!(claims(json!({"size": "nonsense"}))[0]["spec"]["resources"]["requests"]["storage"], "10Gi");
    assert_eq!(claims(json!({"medium": "Memory"})), Value::Null);
}

#[test]
fn immutable_fields_stay_as_they_are() {
    let before = manifest(&plain(), &TEMPLATE, 3, GUARD, false);
    let larger = cluster(&json!({
        "version": "3.6.16", "storage": {"size": "20Gi", "storageClassName": "other"}, "tls": {"mode": "Disabled"},
    }));
    let template = Template { revision: larger.revision(None), ..TEMPLATE };
    let after = over(&live(&before), &larger, (&template, 5), GUARD, template.revision, false).object;
    for field in ["selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates"] {
        assert_eq!(after["spec"][field]["spec"], before.object["spec"][field]["spec"], "{field}");
    }
    assert_eq!(after["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"], "10Gi");
    assert_eq!(after["spec"]["replicas"], 5);
}

#[test]
fn pods_of_a_template_that_the_spec_has_left_behind_are_made_as_before() {
    let plain = plain();
    let old = Template { version: Version::new(6, 16), revision: plain.revision(None) };
    let before = live(&manifest(&plain, &old, 3, GUARD, false));
    let changed = cluster(&json!({
        "version": "3.6.16", "tls": {"mode": "Disabled"}, "pod": {"nodeSelector": {"disk": "fast"}},
    }));
    let revision = changed.revision(None);
    let selector = |template: &Template| {
        let set = over(&before, &changed, (template, 2), "other:1", revision, false).object;
        assert_eq!(set["spec"]["replicas"], 2);
        let pods = set["spec"]["template"].clone();
        assert_eq!(pods["metadata"]["annotations"][names::TEMPLATE], names::template_text(template));
        (pods["spec"]["nodeSelector"].clone(), pods["spec"]["initContainers"][0]["image"].clone())
    };
    assert_eq!(selector(&old), (Value::Null, json!(GUARD)));
    let new = Template { revision, ..old };
    assert_eq!(selector(&new), (json!({"disk": "fast"}), json!("other:1")));
}

#[test]
fn pods_that_come_back_have_the_label_of_a_voter_and_are_made_from_the_same() {
    let plain = plain();
    let old = Template { version: Version::new(6, 16), revision: plain.revision(None) };
    let before = live(&manifest(&plain, &old, 3, GUARD, false));
    let role = |set: &Value| set["spec"]["template"]["metadata"]["labels"][names::ROLE].clone();
    // Also where the spec asks for another template by now, and pods are made from what was there.
    for revision in [old.revision, old.revision + 1] {
        let after = over(&before, &plain, (&old, 3), GUARD, revision, true).object;
        assert_eq!(role(&after), "voter");
        let made_from = live(&Manifest { object: after, ..manifest(&plain, &old, 3, GUARD, true) });
        let pods = made_from.spec.unwrap().template.metadata.unwrap();
        assert_eq!(template_of(&pods), Some(old));
    }
    assert_eq!(role(&manifest(&plain, &old, 3, GUARD, true).object), "voter");
    assert_eq!(role(&manifest(&plain, &old, 3, GUARD, false).object), Value::Null);
}

#[test]
fn an_annotation_names_the_template() {
    let set = live(&manifest(&plain(), &TEMPLATE, 3, GUARD, false));
    let pods = set.spec.unwrap().template.metadata.unwrap();
    assert_eq!(template_of(&pods), Some(TEMPLATE));
    assert_eq!(template_of(&ObjectMeta::default()), None);
}
