//! What may be changed of a cluster that is there.

use super::*;

#[test]
fn what_is_immutable_stays() {
    let change = |from: Value, to: Value| refused(&validate(&cluster(&to), Some(&cluster(&from))));
    let secrets = secrets();
    for (from, to, path) in [
        (json!({}), json!({ "storage": { "medium": "Memory" } }), "spec.storage.medium"),
        (json!({}), json!({ "storage": { "storageClassName": "fast" } }), "spec.storage.storageClassName"),
        (json!({ "storage": { "storageClassName": "fast" } }), json!({}), "spec.storage.storageClassName"),
        (json!({}), json!({ "tls": { "mode": "Disabled" } }), "spec.tls.mode"),
        (json!({}), json!({ "tls": { "mode": "Secrets", "secrets": secrets } }), "spec.tls.mode"),
        (json!({}), json!({ "auth": { "enabled": true } }), "spec.auth.enabled"),
        (json!({}), json!({ "storage": { "size": "9Gi" } }), "spec.storage.size"),
    ] {
        assert_eq!(change(from.clone(), to), [path]);
        assert_eq!(change(from.clone(), from), FINE);
    }
    assert_eq!(change(json!({}), json!({ "storage": { "size": "20Gi" } })), FINE);
    assert_eq!(change(json!({}), json!({ "storage": { "size": "10240Mi" } })), FINE);
    assert_eq!(change(json!({}), json!({ "auth": { "enabled": false } })), FINE, "absent means false");
    assert_eq!(change(json!({ "tls": null }), json!({})), FINE, "absent means Automatic");
}

/// From the stored version, with what was seen, to another: is that accepted, and is there a warning?
fn upgrade(from: &str, status: &Value, to: &str) -> (bool, bool) {
    let old = seen(cluster(&json!({ "version": from })), status);
    let validation = validate(&cluster(&json!({ "version": to })), Some(&old));
    (validation.accepted(), warned(&validation))
}

#[test]
fn versions_move_up_one_minor_at_a_time_as_measured_by_what_runs() {
    let none = json!({});
    let runs = |version: &str, agreed: &str| json!({ "version": version, "clusterVersion": agreed });
    for (from, status, to, accepted, warns) in [
        ("3.6.11", none.clone(), "3.6.16", true, false),
        ("3.6.11", none.clone(), "3.7.3", true, false),
        ("3.6.10", none.clone(), "3.7.3", false, false),
        ("3.5.32", none.clone(), "3.6.16", true, false),
        ("3.5.31", none.clone(), "3.6.16", false, false),
        ("3.5.33", none.clone(), "3.7.3", false, false),
        ("3.7.3", none.clone(), "3.6.16", false, false),
        ("3.6.16", none, "3.6.15", true, true),
        // Two quick edits: the second is measured by what runs, not by what was asked for.
        ("3.6.16", runs("3.5.33", "3.5.0"), "3.7.3", false, false),
        ("3.6.16", runs("3.6.16", "3.6.0"), "3.7.3", true, false),
        // Back to what runs, before the first member has moved; not once the members have agreed on more.
        ("3.7.3", runs("3.6.16", "3.6.0"), "3.6.16", true, false),
        ("3.7.3", runs("3.6.16", "3.7.0"), "3.6.16", false, false),
    ] {
        assert_eq!(upgrade(from, &status, to), (accepted, warns), "{from} to {to} with {status}");
    }
}

#[test]
fn an_upgrade_under_way_can_only_be_rolled_back() {
    let status = |agreed: &str| json!({ "version": "3.6.16", "clusterVersion": agreed, "operation": { "type": "Upgrade", "target": "3.7.3" } });
    assert_eq!(upgrade("3.7.3", &status("3.6"), "3.6.16"), (true, false));
    assert!(!upgrade("3.7.3", &status("3.7"), "3.6.16").0);
    assert!(!upgrade("3.7.3", &status("3.6"), "3.7.2").0);
    assert!(!upgrade("3.7.3", &status("3.6"), "3.6.15").0);
}

#[test]
fn a_lower_minor_has_to_be_allowed_and_to_be_the_next_one() {
    let runs = |version: &str| json!({ "version": version, "clusterVersion": &version[..3] });
    let validated = |from: &str, status: &Value, to: &str, allow: &str| {
        let old = seen(cluster(&json!({ "version": from })), status);
        let mut new = cluster(&json!({ "version": to }));
        new["metadata"]["annotations"] = json!({ ALLOW_DOWNGRADE: allow });
        let validation = validate(&new, Some(&old));
        validation.errors.first().map(FieldError::message)
    };
    for (from, to) in [("3.6.16", "3.5.33"), ("3.6.16", "3.5.32"), ("3.7.3", "3.6.11")] {
        assert_eq!(validated(from, &runs(from), to, "true"), None, "{from} to {to}");
        assert_eq!(validated(from, &json!({}), to, "true"), None, "{from} to {to}");
        let said = validated(from, &runs(from), to, "yes").unwrap();
        assert!(said.contains("gatehouse.dev/allow-downgrade: \"true\""), "{said}");
    }
    for (from, to, words) in [
        ("3.7.3", "3.5.33", "one minor down at most"),
        ("3.6.16", "3.5.31", "must be 3.5.32 or later"),
        ("3.7.3", "3.6.10", "must be 3.6.11 or later"),
    ] {
        let said = validated(from, &runs(from), to, "true").unwrap();
        assert!(said.contains(words), "{said}");
    }
    // On its way down it may be given up, and begun again.
    let under_way = json!({ "version": "3.5.33", "clusterVersion": "3.5", "operation": { "type": "Upgrade" },
        "members": [{ "name": "a-0", "version": "3.6.16" }, { "name": "a-1", "version": "3.5.33" }] });
    assert_eq!(validated("3.5.33", &under_way, "3.6.16", "true"), None);
    assert_eq!(validated("3.6.16", &under_way, "3.5.33", "false"), None);
    let said = validated("3.5.33", &under_way, "3.6.15", "true").unwrap();
    assert!(said.contains("on their way"), "{said}");
}

#[test]
fn members_are_not_removed_while_that_would_hurt() {
    let scale = |from: i32, status: Value, to: i32| {
        let old = seen(cluster(&json!({ "replicas": from })), &status);
        let validation = validate(&cluster(&json!({ "replicas": to })), Some(&old));
        (validation.accepted(), warned(&validation))
    };
    let doing = |operation: &str| json!({ "operation": { "type": operation } });
    let lost = json!({ "conditions": [{ "type": "QuorumLost", "status": "True", "reason": "QuorumLost",
        "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }] });
    let failed =
        json!({ "members": [{ "name": "a-0", "healthy": false }, { "name": "a-1", "healthy": true }] });
    for (from, status, to, expected) in [
        (3, json!({}), 5, (true, false)),
        (1, json!({}), 5, (true, true)),
        (3, json!({}), 1, (true, false)),
        (5, doing("ScaleOut"), 3, (true, true)),
        (3, doing("ScaleOut"), 5, (true, false)),
        (3, doing("ScaleIn"), 5, (true, true)),
        (5, doing("ScaleIn"), 3, (true, false)),
        (3, doing("Recover"), 1, (false, false)),
        (3, doing("SomethingNewer"), 1, (true, false)),
        (3, lost.clone(), 1, (false, false)),
        (3, lost.clone(), 5, (true, false)),
        (3, lost, 0, (true, false)),
        (5, failed.clone(), 3, (true, true)),
        (3, failed, 3, (true, false)),
    ] {
        assert_eq!(scale(from, status.clone(), to), expected, "{from} to {to} with {status}");
    }
}

#[test]
fn a_request_to_recover_is_judged_when_it_is_made() {
    let asked = |mut object: Value, text: &str| {
        object["metadata"]["annotations"] = json!({ "gatehouse.dev/recover-quorum": text });
        object
    };
    let lost = json!({ "conditions": [{ "type": "QuorumLost", "status": "True", "reason": "QuorumLost",
        "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }] });
    let (sound, memory) = (json!({}), json!({ "storage": { "medium": "Memory" } }));
    let path = ["metadata.annotations[gatehouse.dev/recover-quorum]"];
    for (spec, status, text, faults, warns) in [
        (&sound, &lost, "auto", &[][..], false),
        (&sound, &lost, "my-cluster-1/again", &[], false),
        (&sound, &json!({}), "auto", &[], true),
        (&sound, &lost, "yes", &path, false),
        (&sound, &lost, "your-cluster-1", &path, false),
        (&memory, &lost, "auto", &path, false),
    ] {
        let old = seen(cluster(spec), status);
        let new = asked(cluster(spec), text);
        let validation = validate(&new, Some(&old));
        assert_eq!(refused(&validation), faults, "{text}");
        assert_eq!(warned(&validation), warns, "{text}: {validation:?}");
        let again = validate(&new, Some(&asked(old, text)));
        assert!(again.accepted() && !warned(&again), "it stays as it is: {again:?}");
    }
    assert_eq!(refused(&validate(&asked(cluster(&sound), "yes"), None)), path);
}

#[test]
fn version_and_replicas_in_one_edit_get_a_word_about_their_order() {
    let old = cluster(&json!({}));
    let validation = validate(&cluster(&json!({ "version": "3.7.3", "replicas": 5 })), Some(&old));
    assert!(validation.accepted() && validation.warnings.len() == 1, "{validation:?}");
}

#[test]
fn scaling_has_the_same_bounds() {
    assert!(validate_scale(5, 3).accepted());
    assert!(validate_scale(0, 3).accepted());
    assert_eq!(refused(&validate_scale(8, 3)), ["spec.replicas"]);
    assert_eq!(refused(&validate_scale(-1, 3)), ["spec.replicas"]);
    assert!(warned(&validate_scale(4, 3)));
    assert!(warned(&validate_scale(1, 5)));
}

#[test]
fn members_without_a_request_for_memory_get_a_word_once() {
    let with = |resources: Value| cluster(&json!({ "pod": { "resources": resources } }));
    let bare = with(Value::Null);
    let validation = validate(&bare, None);
    assert!(validation.accepted(), "{validation:?}");
    assert!(
        validation.warnings.iter().any(|one| one.as_str().starts_with("spec.pod.resources:")),
        "{validation:?}"
    );
    for (new, old, warns) in [
        (with(json!({ "requests": { "memory": null } })), None, true),
        (with(json!({ "requests": null, "limits": { "memory": "4Gi" } })), None, false),
        (with(json!({})), None, false),
        (bare.clone(), Some(&bare), false),
        (bare.clone(), Some(&with(json!({}))), true),
    ] {
        assert_eq!(warned(&validate(&new, old)), warns, "{new}");
    }
}
