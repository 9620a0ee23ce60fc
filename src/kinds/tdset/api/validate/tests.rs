//! One example for each rule and each piece of advice.

mod advice;

use serde_json::json;

use super::*;

const NOW: &str = "2026-06-01T21:30:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// A sound object.
fn sound() -> Value {
    json!({
        "apiVersion": "gatehouse.dev/v1",
        "kind": "TDSet",
        "metadata": {"name": "shop", "namespace": "default"},
        "spec": {
            "timeZone": "Europe/Berlin",
            "defaultReplicas": 3,
            "windows": [
                {"name": "day", "from": "08:00", "to": "18:00", "replicas": 5},
                {"name": "night", "from": "22:00", "to": "06:00", "replicas": 1},
            ],
            "exceptions": [
                {"name": "xmas", "dates": ["2026-12-25"], "skipWindows": ["day"], "replicas": 2},
            ],
            "target": {"create": {"image": "shop:1", "port": 8000}},
        },
    })
}

/// The sound object with `value` at `pointer`; null takes away what is there.
fn with(pointer: &str, value: Value) -> Value {
    edit(sound(), pointer, value)
}

fn edit(mut object: Value, pointer: &str, value: Value) -> Value {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    match object.pointer_mut(parent).unwrap() {
        Value::Object(map) if value.is_null() => {
            map.remove(name);
        }
        Value::Object(map) => {
            map.insert(name.to_owned(), value);
        }
        Value::Array(list) => list[name.parse::<usize>().unwrap()] = value,
        other => panic!("{pointer}: {other} has no parts"),
    }
    object
}

fn faults(object: &Value) -> Vec<String> {
    let validation = validate(object, None, now());
    validation.errors.iter().map(ToString::to_string).collect()
}

fn change(old: &Value, new: &Value) -> Vec<String> {
    let validation = validate(new, Some(old), now());
    validation.errors.iter().map(ToString::to_string).collect()
}

fn advice(object: &Value) -> Vec<String> {
    let validation = validate(object, None, now());
    assert_eq!(validation.errors, [], "the object is to be sound");
    validation.warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn a_sound_object_passes_without_a_word() {
    assert_eq!(validate(&sound(), None, now()), Validation::default());
    assert_eq!(validate(&sound(), Some(&sound()), now()), Validation::default());
}

/// Checks that `value` at `pointer` is the one fault, and how its message begins.
fn each_is_named(cases: &[(&str, Value, &str)]) {
    for (pointer, value, expected) in cases {
        let found = faults(&with(pointer, value.clone()));
        assert!(found.len() == 1 && found[0].starts_with(expected), "{pointer}: {found:#?}, not {expected}");
    }
}

#[test]
fn a_fault_of_the_zone_a_count_or_a_window_is_named_where_it_lies() {
    each_is_named(&[
        (
            "/spec/timeZone",
            json!("europe/berlin"),
            "spec.timeZone: Invalid value: \"europe/berlin\": unknown time zone, did you mean Europe/Berlin?",
        ),
        (
            "/spec/timeZone",
            json!("Local"),
            "spec.timeZone: Invalid value: \"Local\": \"Local\" depends on where it is read",
        ),
        (
            "/spec/timeZone",
            json!("+02:00"),
            "spec.timeZone: Invalid value: \"+02:00\": an offset from UTC ignores daylight saving time",
        ),
        (
            "/spec/defaultReplicas",
            json!(10_001),
            "spec.defaultReplicas: Invalid value: 10001: must be from 0 to 10000",
        ),
        (
            "/spec/windows/1/replicas",
            json!(-1),
            "spec.windows[1].replicas: Invalid value: -1: must be from 0",
        ),
        ("/spec/resyncMinutes", json!(0), "spec.resyncMinutes: Invalid value: 0: must be from 1 to 1440"),
        (
            "/spec/windows/0/to",
            json!("08:00"),
            "spec.windows[0].to: Invalid value: \"08:00\": must differ from from",
        ),
        (
            "/spec/windows/0/from",
            json!("25:00"),
            "spec.windows[0].from: Invalid value: \"25:00\": must be a local time",
        ),
        ("/spec/windows/1/name", json!("day"), "spec.windows[1]: Duplicate value: \"day\""),
        (
            "/spec/windows/0/season",
            json!({"first": "2026-12-02", "last": "2026-12-01"}),
            "spec.windows[0].season.last: Invalid value: \"2026-12-01\": must not be before first",
        ),
    ]);
}

#[test]
fn a_fault_of_an_exception_is_named_where_it_lies() {
    let span = |start: &str, end: &str| json!([{"name": "s", "between": {"start": start, "end": end}, "replicas": 1}]);
    each_is_named(&[
        (
            "/spec/exceptions/0/skipWindows/0",
            json!("noon"),
            "spec.exceptions[0].skipWindows[0]: Invalid value: \"noon\": must be the name of a window",
        ),
        ("/spec/exceptions/0/dates", Value::Null, "spec.exceptions[0]: Required value: exactly one of"),
        (
            "/spec/exceptions/0/datesFrom",
            json!({"configMapKeyRef": {"name": "a", "key": "b"}}),
            "spec.exceptions[0]: Forbidden: exactly one of",
        ),
        (
            "/spec/exceptions/0/dates/0",
            json!("2026-02-30"),
            "spec.exceptions[0].dates[0]: Invalid value: \"2026-02-30\": must be a date",
        ),
        (
            "/spec/exceptions",
            span("2026-07-02T00:00:00Z", "2026-07-02T00:00:00Z"),
            "spec.exceptions[0].between.end: Invalid value: \"2026-07-02T00:00:00Z\": must be after start",
        ),
        (
            "/spec/exceptions",
            json!([{"name": "e", "dates": ["2026-12-25"]}]),
            "spec.exceptions[0].replicas: Required value: at least one of",
        ),
    ]);
}

#[test]
fn a_fault_of_the_ramp_or_the_target_is_named_where_it_lies() {
    each_is_named(&[
        (
            "/spec/ramp",
            json!({"up": {"step": "0%", "every": "30s"}}),
            "spec.ramp.up.step: Invalid value: \"0%\": must be a number",
        ),
        (
            "/spec/ramp",
            json!({"down": {"step": 1, "every": "0s"}}),
            "spec.ramp.down.every: Invalid value: \"0s\": must be from 1s",
        ),
        ("/spec/target", json!({}), "spec.target: Required value: exactly one of create and ref"),
        (
            "/spec/target/ref",
            json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "x"}),
            "spec.target: Forbidden: exactly one of create and ref",
        ),
        (
            "/spec/target/create/image",
            json!(" "),
            "spec.target.create.image: Required value: must name an image",
        ),
        (
            "/spec/target/create/port",
            json!(0),
            "spec.target.create.port: Invalid value: 0: must be from 1 to 65535",
        ),
        (
            "/spec/target/create/servicePort",
            json!(65_536),
            "spec.target.create.servicePort: Invalid value: 65536: must be",
        ),
        (
            "/spec/target/create/pod",
            json!({"schedulerName": "a_b"}),
            "spec.target.create.pod.schedulerName: Invalid value: \"a_b\": must be a DNS-1123",
        ),
        (
            "/spec/target",
            json!({"ref": {"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "name": "x"}}),
            "spec.target.ref.kind: Invalid value: \"TDSet\": must not be of gatehouse's own kinds",
        ),
        (
            "/spec/target",
            json!({"ref": {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "x"}}),
            "spec.target.ref.kind: Invalid value: \"DaemonSet\": has no scale subresource",
        ),
    ]);
}

#[test]
fn all_faults_come_at_once() {
    let object = edit(with("/spec/timeZone", json!("Mars/Olympus")), "/spec/defaultReplicas", json!(-1));
    let object = edit(object, "/spec/target/create/port", json!(0));
    assert_eq!(faults(&object).len(), 3);
}

#[test]
fn what_cannot_be_read_is_one_fault_and_shows_no_value() {
    assert_eq!(faults(&json!({})), ["spec: Required value"]);
    let found = faults(&with("/spec/windows", json!("secret")));
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("spec: Invalid value: invalid type"), "{found:?}");
}

#[test]
fn a_target_is_for_good() {
    let reference = |version: &str, kind: &str, name: &str| {
        with("/spec/target", json!({"ref": {"apiVersion": version, "kind": kind, "name": name}}))
    };
    let old = reference("apps/v1", "StatefulSet", "x");
    assert!(change(&old, &reference("apps/v2", "StatefulSet", "x")).is_empty());
    let found = change(&old, &reference("batch/v1", "Deployment", "y"));
    let expected = [
        "spec.target.ref.kind: Invalid value: \"Deployment\": field is immutable",
        "spec.target.ref.name: Invalid value: \"y\": field is immutable",
        "spec.target.ref.apiVersion: Invalid value: \"batch/v1\": the group is immutable",
    ];
    assert_eq!(found, expected);
    assert_eq!(
        change(&old, &sound()),
        ["spec.target.create: Forbidden: create and ref cannot be exchanged for one another"]
    );
    assert_eq!(
        change(&sound(), &old),
        ["spec.target.ref: Forbidden: create and ref cannot be exchanged for one another"]
    );
}

#[test]
fn a_span_that_ended_since_it_was_written_is_no_fault() {
    let span = json!([{"name": "s", "between": {"start": "2026-05-01T00:00:00Z", "end": "2026-05-02T00:00:00Z"}, "replicas": 1}]);
    let old = with("/spec/exceptions", span);
    assert!(change(&old, &edit(old.clone(), "/spec/defaultReplicas", json!(4))).is_empty());
    assert!(change(&sound(), &old).is_empty(), "nor is one that has ended before");
}

#[test]
fn the_examples_are_what_they_claim_to_be() {
    let read = |text: &str| serde_saphyr::from_str::<Value>(text).unwrap();
    for text in [
        include_str!("../../../../../examples/tdset/office-hours.yaml"),
        include_str!("../../../../../examples/tdset/night.yaml"),
    ] {
        assert_eq!(faults(&read(text)), [""; 0]);
    }
    for text in [
        include_str!("../../../../../examples/rejected/tdset-schedule.yaml"),
        include_str!("../../../../../examples/rejected/tdset-target.yaml"),
        include_str!("../../../../../examples/rejected/tdset-empty-window.yaml"),
    ] {
        let validation = validate(&read(text), None, now());
        let mut paths: Vec<_> = validation.errors.iter().map(|fault| fault.path.to_string()).collect();
        let claimed = text.lines().next().unwrap().trim_start_matches("# refused: ");
        let mut claimed: Vec<_> = claimed.split(", ").collect();
        paths.sort_unstable();
        claimed.sort_unstable();
        assert_eq!(paths, claimed);
    }
}
