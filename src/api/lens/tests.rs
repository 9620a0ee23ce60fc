use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray,
};
use proptest::prelude::*;
use random_objects::Source;
use serde_json::{Value, json};

use super::super::field::Path;
use super::super::{Kind, Version, schema};
use super::memory::{self, PREFIX};
use super::{Carried, Lens, Row, tree};
use crate::kinds::KINDS;
use crate::kinds::tdset::api::TDSetKind;
use crate::properties;

mod lists;
mod tables;

const HUB: Version = Version::V1;
const SPOKE: Version = Version::V1Alpha1;

fn lens() -> &'static Lens {
    TDSetKind.lens()
}

fn down(kind: &dyn Kind, object: &Value) -> Value {
    kind.lens().convert(object.clone(), HUB, SPOKE)
}

fn up(kind: &dyn Kind, object: &Value) -> Value {
    kind.lens().convert(object.clone(), SPOKE, HUB)
}

fn tdset(spec: &Value) -> Value {
    json!({"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": "shop"}, "spec": spec})
}

proptest! {
    #![proptest_config(crate::properties::cases(512))]

    #[test]
    fn what_goes_down_comes_up_again(seed: u64, nonsense in prop_oneof![Just(0u64), Just(12)]) {
        for kind in KINDS {
            let mut source = Source::new(seed);
            source.nonsense = nonsense;
            let object = properties::object(&mut source, *kind, HUB);
            let shown = down(*kind, &object);
            prop_assert_eq!(&up(*kind, &shown), &object, "shown as {}", shown);
        }
    }

    #[test]
    fn what_the_old_version_says_survives_the_new_one(seed: u64) {
        for kind in KINDS {
            let mut object = properties::object(&mut Source::new(seed), *kind, SPOKE);
            // An empty container beside a service is one object with the service's port in the hub.
            if object.pointer("/spec/container") == Some(&json!({})) {
                tree::take(object.as_object_mut().unwrap(), "/spec/container");
            }
            // Its scripts are required; the hub has no object of its own around them.
            if object.pointer("/spec/migration") == Some(&json!({})) {
                tree::take(object.as_object_mut().unwrap(), "/spec/migration");
            }
            let hub = up(*kind, &object);
            prop_assert_eq!(&down(*kind, &hub), &object, "stored as {}", hub);
        }
    }

    #[test]
    fn converting_twice_is_converting_once(seed: u64) {
        for kind in KINDS {
            let shown = down(*kind, &properties::object(&mut Source::new(seed), *kind, HUB));
            prop_assert_eq!(down(*kind, &up(*kind, &shown)), shown);
        }
    }

    #[test]
    fn an_edit_of_the_old_version_wins_and_touches_nothing_else(seed: u64) {
        for kind in KINDS {
            let hub = properties::object(&mut Source::new(seed), *kind, HUB);
            let mut shown = down(*kind, &hub);
            let Some(Value::Object(spec)) = shown.get_mut("spec") else { continue };
            let rows = kind.lens().spokes.iter().flat_map(|(_, table)| table.rows.iter());
            let mut fields = rows.filter_map(|row| match row {
                Row::Field { spoke, hub } => Some((spoke.strip_prefix("/spec/")?, hub)),
                _ => None,
            });
            let (field, place) = fields.find(|(field, _)| !field.contains('/')).unwrap();
            spec.insert(field.to_owned(), json!(7777));
            let mut expected = hub;
            if let Value::Object(fields) = &mut expected {
                tree::put(fields, place, json!(7777));
            }
            prop_assert_eq!(up(*kind, &shown), expected);
        }
    }

    #[test]
    fn annotations_of_any_content_fail_nothing_and_never_stay(seed: u64, name in "[a-z.-]{0,9}", loss in ".{0,60}") {
        for kind in KINDS {
            let plain = properties::object(&mut Source::new(seed), *kind, SPOKE);
            let mut forged = plain.clone();
            forged["metadata"]["annotations"][format!("{PREFIX}{name}")] = loss.clone().into();
            let mut expected = up(*kind, &plain);
            let hub = up(*kind, &forged);
            for object in [&mut expected] {
                for place in ["/metadata/annotations", "/metadata"] {
                    if object.pointer(place) == Some(&json!({})) {
                        tree::take(object.as_object_mut().unwrap(), place);
                    }
                }
            }
            prop_assert!(!hub.to_string().contains(PREFIX));
            if serde_json::from_str::<Value>(&loss).is_err() {
                prop_assert_eq!(hub, expected);
            }
        }
    }

    #[test]
    fn a_write_without_the_annotation_is_completed_from_what_is_stored(seed: u64) {
        for kind in KINDS {
            let stored = properties::object(&mut Source::new(seed), *kind, HUB);
            let mut written = down(*kind, &stored);
            if let Some(Value::Object(annotations)) = written.pointer_mut("/metadata/annotations") {
                annotations.retain(|key, _| !key.starts_with(PREFIX));
            }
            let arrived = up(*kind, &written);
            let (carried, said) = kind.lens().table(SPOKE).unwrap().carry(arrived, &stored);
            prop_assert_eq!(said, Carried::default());
            prop_assert_eq!(carried.get("spec"), stored.get("spec"));
            prop_assert_eq!(carried.get("status"), stored.get("status"));
        }
    }
}

#[test]
fn equal_versions_are_left_untouched() {
    let object = json!({"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "spec": {"unknown": [1, null]}});
    assert_eq!(lens().convert(object.clone(), HUB, HUB), object);
}

#[test]
fn what_stands_where_the_spoke_has_an_object_comes_up_again() {
    for other in [json!("Local"), json!(null), json!([1]), json!({"other": 1})] {
        let hub = tdset(&json!({"target": {"create": {"servicePort": 80}}, "service": other}));
        let shown = down(&TDSetKind, &hub);
        assert_eq!(shown["spec"]["service"]["port"], 80);
        assert_eq!(up(&TDSetKind, &shown), hub, "shown as {shown}");
    }
}

#[test]
fn absent_stays_absent() {
    for kind in KINDS {
        for object in [json!({}), json!({"metadata": {}}), json!({"spec": {}}), json!({"status": {}})] {
            assert_eq!(down(*kind, &object), object);
            assert_eq!(up(*kind, &object), object);
        }
    }
}

#[test]
fn a_window_that_moved_keeps_its_minutes_and_an_edited_one_its_days() {
    let window = |name: &str, from: &str, replicas: i32| json!({"name": name, "from": from, "to": "23:15", "days": ["Mon"], "replicas": replicas});
    let hub = tdset(&json!({"windows": [window("a", "18:30", 1), window("b", "20:45", 2)]}));
    let mut shown = down(&TDSetKind, &hub);
    assert_eq!(shown["spec"]["schedulingConfig"][0], json!({"startTime": 18, "endTime": 0, "replica": 1}));
    shown["spec"]["schedulingConfig"].as_array_mut().unwrap().swap(0, 1);
    shown["spec"]["schedulingConfig"][0]["replica"] = json!(9);
    let back = up(&TDSetKind, &shown);
    assert_eq!(back["spec"]["windows"][1], window("a", "18:30", 1));
    assert_eq!(back["spec"]["windows"][0], window("b", "20:45", 9));
}

#[test]
fn of_two_windows_that_look_alike_the_edited_one_keeps_its_own() {
    let window = |name: &str, day: &str, replicas: i32| json!({"name": name, "from": "08:00", "to": "09:00", "days": [day], "replicas": replicas});
    let hub = tdset(&json!({"windows": [window("a", "Mon", 1), window("b", "Tue", 1)]}));
    let mut shown = down(&TDSetKind, &hub);
    shown["spec"]["schedulingConfig"][0]["replica"] = json!(9);
    let windows = &up(&TDSetKind, &shown)["spec"]["windows"];
    assert_eq!((&windows[0], &windows[1]), (&window("a", "Mon", 9), &window("b", "Tue", 1)));
}

/// A window of the hub that hides its minutes, days and name from the spoke.
fn hidden(name: &str, from: &str, replicas: i32) -> Value {
    json!({"name": name, "from": from, "to": "23:15", "days": ["Mon"], "replicas": replicas})
}

#[test]
fn an_edited_window_keeps_its_own_where_others_come_and_go() {
    let plain =
        |start: i32, end: i32, replica: i32| json!({"startTime": start, "endTime": end, "replica": replica});
    let (office, night) = (hidden("office", "08:30", 6), hidden("night", "20:45", 2));
    for (stored, written, kept) in [
        (vec![&office], vec![plain(8, 0, 7), plain(1, 2, 1)], vec![(0, hidden("office", "08:30", 7))]),
        (vec![&office], vec![plain(1, 2, 1), plain(8, 0, 7)], vec![(1, hidden("office", "08:30", 7))]),
        (vec![&office, &night], vec![plain(20, 0, 3)], vec![(0, hidden("night", "20:45", 3))]),
        (vec![&office, &night], vec![plain(8, 0, 7)], vec![(0, hidden("office", "08:30", 7))]),
        (
            vec![&office, &night],
            vec![plain(8, 0, 7), plain(1, 2, 1), plain(20, 0, 2)],
            vec![(0, hidden("office", "08:30", 7)), (2, night.clone())],
        ),
        // One is taken away, the next one edited, and another one added.
        (
            vec![&office, &night],
            vec![plain(20, 0, 3), plain(1, 2, 1)],
            vec![(0, hidden("night", "20:45", 3))],
        ),
        (
            vec![&office, &night],
            vec![plain(1, 2, 1), plain(8, 0, 7)],
            vec![(1, hidden("office", "08:30", 7))],
        ),
        // Both are edited, and change places.
        (
            vec![&office, &night],
            vec![plain(20, 0, 3), plain(8, 0, 7)],
            vec![(0, hidden("night", "20:45", 3)), (1, hidden("office", "08:30", 7))],
        ),
        // Nothing is left of what one showed; it is still in its place.
        (
            vec![&office, &night],
            vec![plain(9, 1, 7), plain(20, 0, 2)],
            vec![(
                0,
                json!({"name": "office", "from": "09:00", "to": "01:00", "days": ["Mon"], "replicas": 7}),
            )],
        ),
    ] {
        let mut shown = down(&TDSetKind, &tdset(&json!({"windows": stored})));
        shown["spec"]["schedulingConfig"] = json!(written);
        let windows = up(&TDSetKind, &shown)["spec"]["windows"].clone();
        assert_eq!(windows.as_array().unwrap().len(), written.len());
        for (index, window) in kept {
            assert_eq!(windows[index], window, "{written:?} over {stored:?}");
        }
    }
}

#[test]
fn it_is_said_when_a_window_that_hides_something_is_replaced_by_another_one() {
    let stored = tdset(&json!({"windows": [hidden("office", "08:30", 6), hidden("night", "20:45", 2)]}));
    let plain = |start: i32, replica: i32| json!({"startTime": start, "endTime": 0, "replica": replica});
    let other = json!({"startTime": 1, "endTime": 2, "replica": 1});
    let list = Some("/spec/schedulingConfig");
    for (written, lost) in [
        (vec![plain(8, 6), plain(20, 2)], None),
        (vec![plain(20, 3)], None),
        (vec![plain(8, 7), other.clone(), plain(20, 2)], None),
        (vec![plain(20, 3), other.clone()], list),
        (vec![plain(20, 2), other], list),
    ] {
        let object = json!({"apiVersion": "gatehouse.dev/v1alpha1", "kind": "TDSet",
            "spec": {"schedulingConfig": written}});
        let (_, said) = lens().table(SPOKE).unwrap().carry(up(&TDSetKind, &object), &stored);
        assert_eq!(said.lost, lost, "{object}");
    }
}

#[test]
fn a_late_manifest_of_the_old_version_changes_nothing_that_it_cannot_show() {
    let stored = |zone: &str| {
        tdset(&json!({"defaultReplicas": 1, "timeZone": zone, "windows": [hidden("a", "08:30", 6)]}))
    };
    let old = up(&TDSetKind, &down(&TDSetKind, &stored("Europe/Berlin")));
    let (carried, said) = lens().table(SPOKE).unwrap().carry(old.clone(), &stored("Asia/Tokyo"));
    assert_eq!((&carried["spec"], said.is_stale), (&stored("Asia/Tokyo")["spec"], true));
    let (carried, said) = lens().table(SPOKE).unwrap().carry(old.clone(), &old);
    assert_eq!((carried, said), (old, Carried::default()));
}

#[test]
fn a_window_added_through_the_old_version_gets_a_free_name() {
    let hub = tdset(&json!({"windows": [{"name": "w1", "from": "01:00", "to": "02:00", "replicas": 1}]}));
    let mut shown = down(&TDSetKind, &hub);
    let added = json!({"startTime": 3, "endTime": 4, "replica": 2});
    shown["spec"]["schedulingConfig"].as_array_mut().unwrap().push(added);
    let windows = &up(&TDSetKind, &shown)["spec"]["windows"];
    assert_eq!(windows[0]["name"], "w1");
    assert_eq!(windows[1], json!({"name": "w2", "from": "03:00", "to": "04:00", "replicas": 2}));
}

fn with(annotations: &[(&str, Value)], part: &str) -> Value {
    let annotations =
        annotations.iter().map(|(name, value)| (format!("{PREFIX}{name}"), value.to_string().into()));
    let annotations: Value = Value::Object(annotations.collect());
    json!({"metadata": {"annotations": annotations}, part: {}})
}

#[test]
fn a_forged_annotation_cannot_stand_in_for_what_the_old_version_shows() {
    let forged = with(&[("spec.defaultReplicas", json!(99)), ("spec.timeZone", json!("Asia/Tokyo"))], "spec");
    assert_eq!(up(&TDSetKind, &forged), json!({"spec": {"timeZone": "Asia/Tokyo"}}));
}

#[test]
fn no_part_appears_that_was_not_there() {
    let partial = with(&[("spec.timeZone", json!("Asia/Tokyo"))], "status");
    assert_eq!(up(&TDSetKind, &partial), json!({"status": {}}));
}

#[test]
fn a_field_has_an_annotation_of_its_own_whatever_its_name() {
    let label = json!({"labels": {"app.kubernetes.io/name": "a", "app.kubernetes.io~1": "b"}});
    let hub =
        tdset(&json!({"timeZone": "Europe/Berlin", "target": {"create": {"image": "a", "pod": label}}}));
    let shown = down(&TDSetKind, &hub);
    let annotations = shown["metadata"]["annotations"].as_object().unwrap();
    assert_eq!(annotations[&format!("{PREFIX}spec.timeZone")], r#""Europe/Berlin""#);
    assert_eq!(annotations.len(), 3, "{annotations:?}");
    for key in annotations.keys() {
        let name = key.strip_prefix(PREFIX).unwrap();
        assert!(name.len() <= 63 && name.starts_with("spec.") && !name.contains('/'), "{key}");
    }
    assert_eq!(up(&TDSetKind, &shown), hub);
}

#[test]
fn annotations_without_room_are_replaced_by_a_marker() {
    let stored = tdset(&json!({"target": {"create": {"image": "a", "command": ["x".repeat(300 * 1024)]}}}));
    let shown = down(&TDSetKind, &stored);
    assert!(memory::is_dropped(&shown["metadata"]["annotations"]));
    assert!(shown.to_string().len() < 1024);
}

#[test]
fn a_fault_is_reported_where_the_old_version_has_the_field() {
    let spoke = |path: &Path| lens().table(SPOKE).unwrap().path(path).map(|path| path.to_string());
    let window = Path::spec().at("windows").index(2);
    assert_eq!(spoke(&window.at("to")).as_deref(), Some("spec.schedulingConfig[2].endTime"));
    assert_eq!(spoke(&window.at("days").index(0)).as_deref(), Some("spec.schedulingConfig[2]"));
    assert_eq!(spoke(&Path::spec().at("defaultReplicas")).as_deref(), Some("spec.defaultReplica"));
    assert_eq!(spoke(&Path::spec().at("timeZone")), None);
    assert_eq!(spoke(&Path::metadata().at("name")).as_deref(), Some("metadata.name"));
}

/// Every leaf of both schemas, as pointers; items of a list under their list's.
fn leaves(schema: &JSONSchemaProps, place: &str, found: &mut Vec<String>) {
    match (&schema.properties, &schema.items) {
        (Some(properties), _) if !properties.is_empty() => {
            for (name, property) in properties {
                leaves(property, &format!("{place}/{name}"), found);
            }
        }
        (_, Some(JSONSchemaPropsOrArray::Schema(each))) if each.properties.is_some() => {
            leaves(each, &format!("{place}/-"), found);
        }
        _ => found.push(place.to_owned()),
    }
}

/// A row decides about this place: itself, or the object that it is in, or the items' rows of its list.
fn decided(rows: &[Row], place: &str, side: fn(&Row) -> Option<&str>) -> bool {
    rows.iter().filter_map(|row| Some((row, side(row)?))).any(|(row, at)| {
        let Some(rest) = place.strip_prefix(at) else { return false };
        match row {
            Row::List { items, .. } if rest.starts_with("/-") => decided(items, &rest[2..], side),
            Row::Object { .. } => false,
            _ => rest.is_empty() || rest.starts_with('/'),
        }
    })
}

#[test]
fn every_field_of_both_versions_has_a_row() {
    for kind in KINDS {
        let definition = kind.definition();
        for version in Version::ALL {
            let side: fn(&Row) -> Option<&str> = match version {
                Version::V1Alpha1 => |row| row.spoke(),
                Version::V1 => |row| Some(row.hub()),
            };
            let mut found = Vec::new();
            for part in ["spec", "status"] {
                let schema = schema::of(&definition, version).unwrap();
                leaves(&schema.properties.as_ref().unwrap()[part], &format!("/{part}"), &mut found);
            }
            let missing: Vec<_> = found
                .iter()
                .filter(|place| !decided(&kind.lens().table(SPOKE).unwrap().rows, place, side))
                .collect();
            assert!(missing.is_empty(), "{} {version}: no row decides about {missing:?}", kind.names().kind);
        }
    }
}
