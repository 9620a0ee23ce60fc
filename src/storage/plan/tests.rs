//! Decisions about a definition and about an object.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::json;

use super::usage::{Obstacle, Usage, obstacles};
use super::*;
use crate::storage::observation::Version;

pub(super) fn definition() -> Definition {
    let version = |name: &str, is_stored| Version {
        name: name.to_owned(),
        is_served: true,
        is_stored,
        has_status: true,
    };
    Definition {
        name: "widgets.a.dev".to_owned(),
        uid: "u".to_owned(),
        generation: 2,
        resource_version: "7".to_owned(),
        written: Some("2026-01-01T00:00:00Z".parse().unwrap()),
        read_at: None,
        is_deleted: false,
        is_established: true,
        group: "a.dev".to_owned(),
        plural: "widgets".to_owned(),
        kind: "Widget".to_owned(),
        versions: vec![version("v1alpha1", false), version("v1", true)],
        stored: vec!["v1alpha1".to_owned(), "v1".to_owned()],
        is_alike: true,
        lost: BTreeMap::new(),
        conditions: Vec::new(),
        checkpoint: None,
    }
}

fn later() -> Timestamp {
    "2026-01-01T00:01:00Z".parse().unwrap()
}

/// What is done about a definition that is read at that time.
pub(super) fn begin_at(definition: &Definition, goal: &Goal, now: Timestamp) -> Result<Begin, Held> {
    begin(&Definition { read_at: Some(now), ..definition.clone() }, goal)
}

pub(super) fn object(version: &str) -> ObjectMeta {
    ObjectMeta {
        name: "one".to_owned(),
        namespace: Some("shop".to_owned()),
        uid: "o".to_owned(),
        resource_version: version.to_owned(),
        ..ObjectMeta::default()
    }
}

#[test]
fn objects_are_written_once_every_api_server_has_seen_the_switch() {
    let goal = Goal { to: Some("v1".to_owned()), ..Goal::default() };
    let beginning = Checkpoint::at_pass(1, "u", 2, "v1");
    assert_eq!(begin_at(&definition(), &goal, later()), Ok(Begin::Rewrite(beginning.clone())));
    let soon = "2026-01-01T00:00:40Z".parse().unwrap();
    assert_eq!(begin_at(&definition(), &goal, soon), Ok(Begin::Wait(Duration::from_secs(20))));
    let behind = "2025-12-31T00:00:00Z".parse().unwrap();
    assert_eq!(begin_at(&definition(), &goal, behind), Ok(Begin::Wait(GRACE)), "no longer than that");
    let unknown = Definition { written: None, ..definition() };
    assert_eq!(begin_at(&unknown, &goal, later()), Ok(Begin::Wait(GRACE)));
    assert_eq!(
        begin(&definition(), &goal),
        Ok(Begin::Wait(GRACE)),
        "the API server does not say what time it is"
    );
    let migrated = Definition { stored: vec!["v1".to_owned()], ..definition() };
    assert_eq!(begin_at(&migrated, &goal, soon), Ok(Begin::Clean(beginning.clone())), "nothing is stored");
    let forced = Goal { is_forced: true, ..goal.clone() };
    assert_eq!(begin_at(&migrated, &forced, later()), Ok(Begin::Rewrite(beginning.clone())));
    let mut unserved = migrated.clone();
    unserved.versions[0].is_served = false;
    assert_eq!(
        begin_at(&unserved, &goal, soon),
        Ok(Begin::Wait(Duration::from_secs(20))),
        "an API server that has not seen it still takes writes by the version, and these leave managed fields"
    );
    assert_eq!(begin_at(&unserved, &goal, later()), Ok(Begin::Clean(beginning.clone())));

    let place = Checkpoint { pass: 2, next: "token".to_owned(), ..beginning.clone() };
    let known = Definition { checkpoint: Some(place.clone()), ..definition() };
    assert_eq!(begin_at(&known, &goal, later()), Ok(Begin::Rewrite(place.clone())));
    let dry = Goal { is_dry: true, ..goal };
    assert_eq!(
        begin_at(&known, &dry, later()),
        Ok(Begin::Rewrite(beginning.clone())),
        "every object is asked about"
    );
    let ended = Definition { checkpoint: Some(place), ..migrated };
    assert_eq!(
        begin_at(&ended, &forced, later()),
        Ok(Begin::Rewrite(beginning)),
        "another client has ended it"
    );
}

#[test]
fn what_a_migration_writes_to_a_definition_does_not_make_it_young() {
    let entry = |manager: &str, subresource: &str, time: &str| {
        json!({"manager": manager, "operation": "Update", "apiVersion": "apiextensions.k8s.io/v1",
            "subresource": subresource, "time": time, "fieldsType": "FieldsV1", "fieldsV1": {}})
    };
    let object = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.a.dev", "managedFields": [
            entry("helm", "", "2026-01-01T00:00:00Z"), entry("kube-apiserver", "status", "2026-01-02T00:00:00Z"),
            entry(managed_fields::MANAGER, "", "2026-01-03T00:00:00Z")]},
        "spec": {"group": "a.dev", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": true, "storage": true}]}});
    let written = Definition::read(object).unwrap().written.map(|written| written.to_string());
    assert_eq!(written.as_deref(), Some("2026-01-01T00:00:00Z"));
}

#[test]
fn what_another_migrator_has_ended_is_verified_and_what_it_failed_at_is_doubted() {
    let at = |time: &str, type_: &str, status: &str, reason: &str| json!({"type": type_, "status": status, "reason": reason, "lastTransitionTime": time});
    let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
    let with = |conditions: Vec<serde_json::Value>| Definition {
        stored: vec!["v1".to_owned()],
        conditions,
        ..definition()
    };
    let ended = |time, how| at(time, "StorageMigrating", "False", how);
    let (succeeded, failed) = ("MigrationSucceeded", "MigrationFailed");
    let kept = at(late, "StorageMigrated", "False", "Kept");
    let migrated = |time| at(time, "StorageMigrated", "True", "Migrated");
    let trusted = (false, false);
    let (verified, doubted) = ((true, false), (true, true));
    for (conditions, (is_verified, is_doubtful)) in [
        (vec![], trusted),
        (vec![ended(early, succeeded)], verified),
        (vec![ended(early, succeeded), at(late, "StorageMigrated", "False", "Migrating")], doubted),
        (vec![ended(late, succeeded), at(early, "StorageMigrated", "False", "Migrating")], doubted),
        (vec![ended(early, succeeded), kept.clone()], doubted),
        (vec![kept.clone()], doubted),
        (vec![ended(early, succeeded), migrated(late)], trusted),
        (vec![ended(late, succeeded), migrated(early)], verified),
        (vec![at(late, "StorageMigrating", "True", "MigrationRunning"), migrated(early)], trusted),
        (vec![ended(early, failed)], doubted),
        (vec![ended(early, failed), kept], doubted),
        (vec![ended(early, failed), migrated(late)], trusted),
        (vec![ended(early, failed), migrated(early)], doubted),
        (vec![ended(late, failed), migrated(early)], doubted),
    ] {
        let definition = with(conditions);
        let begins = begin_at(&definition, &Goal::default(), later());
        assert_eq!(matches!(begins, Ok(Begin::Rewrite(_))), is_verified, "{:?}", definition.conditions);
        assert_eq!(is_settled(&definition), !is_verified);
        let others: &[&str] = if is_doubtful { &["v1alpha1"] } else { &[] };
        assert_eq!(definition.maybe_stored(), others, "{:?}", definition.conditions);
        let mut unserved = definition.clone();
        unserved.versions[0].is_served = false;
        let holds: &[Obstacle] = if is_doubtful { &[Obstacle::Stored] } else { &[] };
        assert_eq!(obstacles(&unserved, &Usage::default(), "v1alpha1"), holds);
        let wanted = is_doubtful.then(|| vec!["v1alpha1".to_owned(), "v1".to_owned()]);
        assert_eq!(restored(&definition, &Goal::default()), wanted, "no version may be removed meanwhile");
        let named = Definition { stored: wanted.unwrap_or_else(|| definition.stored.clone()), ..definition };
        assert_eq!(restored(&named, &Goal::default()), None, "once");
    }
}

/// Where versions are alike, and etcd may have objects in one whose fields the storage version does not know.
#[test]
fn fields_are_looked_for_in_every_version_that_objects_may_be_stored_in() {
    let version = |name: &str, field: &str, is_stored: bool| {
        json!({"name": name, "served": true, "storage": is_stored, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": {"type": "object", "properties": {field: {"type": "string"}}}}}}})
    };
    let read = |reason: &str, is_forced| {
        let object = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.a.dev"},
            "spec": {"group": "a.dev", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
                "versions": [version("v1alpha1", "old", false), version("v1", "new", true)]},
            "status": {"storedVersions": ["v1"], "acceptedNames": {"kind": "Widget", "plural": "widgets"},
                "conditions": [{"type": "StorageMigrating", "status": "False", "reason": reason,
                    "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
        doubt::lost(&Definition::read(object).unwrap(), &Goal { is_forced, ..Goal::default() })
    };
    assert_eq!(read("MigrationRunning", false), [""; 0]);
    assert_eq!(read("MigrationRunning", true), ["spec.old"], "a forced run believes no status");
    for is_forced in [false, true] {
        assert_eq!(read("MigrationSucceeded", is_forced), ["spec.old"]);
        assert_eq!(read("MigrationFailed", is_forced), ["spec.old"]);
    }
}

#[test]
fn what_holds_a_migration_back_says_what_to_do() {
    let said = |definition: &Definition, to: &str| {
        let goal = Goal { to: Some(to.to_owned()), ..Goal::default() };
        begin_at(definition, &goal, later()).unwrap_err().to_string()
    };
    assert_eq!(
        said(&definition(), "v1alpha1"),
        "widgets.a.dev stores its objects as v1, not as v1alpha1: apply a definition with storage: true at v1alpha1 \
         first"
    );
    assert_eq!(said(&definition(), "v2"), "widgets.a.dev has no version v2: it has v1alpha1, v1");
    let deleted = Definition { is_deleted: true, ..definition() };
    assert_eq!(said(&deleted, "v1"), "widgets.a.dev is being deleted");
    let fields = vec!["spec.a".to_owned(), "spec.b".to_owned()];
    let lossy = Definition { lost: BTreeMap::from([("v1alpha1".to_owned(), fields)]), ..definition() };
    assert_eq!(
        said(&lossy, "v1"),
        "widgets.a.dev has no webhook that converts, and objects would lose fields that v1 does not know: spec.a, \
         spec.b; --lose-fields writes them all the same"
    );
    let goal = Goal { loses_fields: true, ..Goal::default() };
    assert!(matches!(begin_at(&lossy, &goal, later()), Ok(Begin::Rewrite(_))));
    let mut unserved = definition();
    unserved.versions.iter_mut().for_each(|version| version.is_served = false);
    for definition in [Definition { is_established: false, ..definition() }, unserved] {
        assert!(said(&definition, "v1").starts_with("widgets.a.dev is not served"));
    }
}

#[test]
fn stored_versions_are_reduced_only_where_nothing_has_changed_and_nothing_failed() {
    let (before, done) = (definition(), Tally::default());
    assert_eq!(end(&before, Some(&before), &done, true), End::Reduce(vec!["v1alpha1".to_owned()]));
    let newer = Definition { resource_version: "8".to_owned(), ..definition() };
    assert_eq!(end(&before, Some(&newer), &done, true), End::Reduce(vec!["v1alpha1".to_owned()]));
    let said = Definition { stored: vec!["v1".to_owned()], ..definition() };
    assert_eq!(end(&before, Some(&said), &done, true), End::Said);
    let failed = Tally { failed: 1, ..Tally::default() };
    assert_eq!(end(&before, Some(&before), &failed, true), End::Keep(Kept::Failed(1)));
    let changed = Definition { generation: 3, ..definition() };
    assert_eq!(end(&before, Some(&changed), &done, true), End::Keep(Kept::Changed));
    for gone in [
        None,
        Some(Definition { uid: "v".to_owned(), ..definition() }),
        Some(Definition { is_deleted: true, ..definition() }),
    ] {
        assert_eq!(end(&before, gone.as_ref(), &done, true), End::Keep(Kept::Deleted));
    }
    let rewritten = Tally { rewritten: 1, ..Tally::default() };
    let kept = end(&before, Some(&before), &rewritten, true);
    assert_eq!(kept, End::Keep(Kept::Unsettled(1)), "an API server may not have seen the switch");
    for tally in [&failed, &rewritten, &done] {
        assert_eq!(end(&said, Some(&said), tally, false), End::Said, "only managed fields were looked at");
        assert_eq!(end(&said, Some(&before), tally, false), End::Said, "it has written no object");
    }
    assert_eq!(end(&said, Some(&changed), &done, false), End::Keep(Kept::Changed));
}

#[test]
fn passes_follow_until_one_finds_nothing_to_write() {
    let rewritten = |rewritten, failed| Tally { rewritten, failed, ..Tally::default() };
    assert!(has_next(1, &rewritten(0, 0), true), "there is always a second one");
    assert!(has_next(1, &rewritten(0, 5), true));
    assert!(!has_next(2, &rewritten(0, 0), true));
    assert!(has_next(2, &rewritten(1, 0), true));
    assert!(
        !has_next(2, &rewritten(1, 1), true),
        "what cannot be written is no reason to write the rest again"
    );
    assert!(!has_next(PASSES, &rewritten(1, 0), true), "something changes them with every write");
    assert!(!has_next(1, &rewritten(1, 0), false), "only managed fields are taken away, and were");
    let uncleaned = Tally { uncleaned: 1, ..Tally::default() };
    for rewrites in [true, false] {
        assert!(
            has_next(2, &uncleaned, rewrites),
            "another client wrote it before its managed fields were taken away"
        );
        assert!(!has_next(PASSES, &uncleaned, rewrites));
    }
}

#[test]
fn stale_managed_fields_are_those_of_the_own_group_alone() {
    let mut definition = definition();
    let stale = |definition: &Definition, policy| {
        ["a.dev/v1alpha1", "a.dev/v1", "a.dev/v0", "b.dev/v0", "v1"]
            .map(|version| is_stale(definition, policy, version))
    };
    assert_eq!(stale(&definition, Policy::Keep), [false; 5]);
    assert_eq!(stale(&definition, Policy::Unserved), [false, false, true, false, false]);
    assert_eq!(stale(&definition, Policy::Others), [true, false, true, false, false]);
    let may = |definition: &Definition| {
        [Policy::Keep, Policy::Unserved, Policy::Others].map(|policy| may_clean(definition, policy))
    };
    assert_eq!(may(&definition), [false, false, true]);
    definition.versions[0].is_served = false;
    assert_eq!(may(&definition), [false, true, true]);
    assert_eq!(stale(&definition, Policy::Unserved), [true, false, true, false, false]);
}

#[test]
fn a_patch_names_the_object_and_its_state() {
    let mut object = object("5");
    let bare = patch(&definition(), Policy::Others, &object, true).unwrap();
    assert_eq!(bare.body, json!({"metadata": {"uid": "o", "resourceVersion": "5"}}));
    assert!(!bare.cleans);
    assert_eq!(patch(&definition(), Policy::Others, &object, false), None);
    object.managed_fields =
        serde_json::from_value(json!([{"manager": "helm", "apiVersion": "a.dev/v0"}])).unwrap();
    let cleaning = patch(&definition(), Policy::Unserved, &object, false).unwrap();
    assert!(cleaning.cleans);
    assert_eq!(cleaning.body["metadata"]["managedFields"][0]["apiVersion"], "a.dev/v1");
    assert_eq!(patch(&definition(), Policy::Keep, &object, false), None);
}

#[test]
fn what_holds_a_version_back_is_found_in_the_definition_and_in_managed_fields() {
    let entry = |manager: &str, version: &str, time: &str, subresource: &str| {
        json!({"manager": manager, "operation": "Apply", "apiVersion": version, "time": time,
            "subresource": subresource})
    };
    let (early, late) = ("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z");
    let mut one = object("1");
    one.managed_fields = serde_json::from_value(json!([
        entry("helm", "a.dev/v1alpha1", late, ""),
        entry("helm", "a.dev/v1alpha1", early, "status"),
        entry("helm", "a.dev/v1", late, ""),
        entry("helm", "b.dev/v1alpha1", late, "")
    ]))
    .unwrap();
    let mut two = ObjectMeta { name: "two".to_owned(), ..object("2") };
    two.managed_fields = serde_json::from_value(json!([
        entry("helm", "a.dev/v1alpha1", early, ""),
        entry("old", "a.dev/v0", early, "")
    ]))
    .unwrap();
    let mut definition = definition();
    let mut usage = Usage::default();
    for object in [&one, &two] {
        usage.add(&definition, object);
    }
    let of = |usage: &Usage, version| -> Vec<_> {
        let told = |(manager, writes): (&usage::Manager, &usage::Writes)| {
            format!("{} {} {} {}", manager.name, manager.operation, writes.objects, writes.example)
        };
        usage.of(version).map(told).collect()
    };
    assert_eq!(usage.objects, 2);
    assert_eq!(of(&usage, "v1alpha1"), ["helm Apply 2 shop/one"]);
    assert_eq!(of(&usage, "v0"), ["old Apply 1 shop/two"]);
    assert_eq!(usage.unknown(&definition), ["v0"]);
    let all = [Obstacle::Stored, Obstacle::Served, Obstacle::ManagedFields];
    assert_eq!(obstacles(&definition, &usage, "v1alpha1"), all);
    assert_eq!(obstacles(&definition, &usage, "v0"), [Obstacle::ManagedFields]);
    definition.stored = vec!["v1".to_owned()];
    definition.versions[0].is_served = false;
    assert_eq!(obstacles(&definition, &Usage::default(), "v1alpha1"), []);
}
