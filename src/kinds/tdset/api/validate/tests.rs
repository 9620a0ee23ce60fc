//! One example for each rule and each piece of advice.

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
    let verdict = validate(object, None, now());
    verdict.faults.iter().map(ToString::to_string).collect()
}

fn change(old: &Value, new: &Value) -> Vec<String> {
    let verdict = validate(new, Some(old), now());
    verdict.faults.iter().map(ToString::to_string).collect()
}

fn advice(object: &Value) -> Vec<String> {
    let verdict = validate(object, None, now());
    assert_eq!(verdict.faults, [], "the object is to be sound");
    verdict.warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn a_sound_object_passes_without_a_word() {
    assert_eq!(validate(&sound(), None, now()), Verdict::default());
    assert_eq!(validate(&sound(), Some(&sound()), now()), Verdict::default());
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
            "spec.timeZone: Invalid value: \"+02:00\": offsets and POSIX strings",
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
fn an_update_is_told_what_it_does_right_now() {
    // It is 23:30 in Berlin.
    let told = |object: &Value| {
        let verdict = validate(object, Some(&sound()), now());
        verdict.warnings.first().map(ToString::to_string)
    };
    let changed = |pointer, value| with(pointer, value);
    assert_eq!(
        told(&changed("/spec/windows/1/replicas", json!(0))).unwrap(),
        "spec.windows[1].replicas: 1 -> 0 now, window night"
    );
    assert_eq!(
        told(&changed("/spec/windows/1/from", json!("23:45"))).unwrap(),
        "spec.defaultReplicas: 1 -> 3 now, outside all windows"
    );
    let launch = json!([{"name": "launch", "between": {"start": "2026-06-01T00:00:00Z", "end": "2026-06-03T00:00:00Z"}, "replicas": 40}]);
    let launch =
        edit(changed("/spec/exceptions", launch), "/spec/ramp", json!({"up": {"step": 1, "every": "1m"}}));
    assert_eq!(
        told(&launch).unwrap(),
        "spec.exceptions[0].replicas: 1 -> 40 now, exception launch, by the ramp"
    );
    let suspended = edit(changed("/spec/windows/1/replicas", json!(0)), "/spec/suspend", json!(true));
    assert_eq!(told(&suspended), None);
    assert_eq!(told(&changed("/spec/defaultReplicas", json!(4))), None);
    let resumed = validate(&sound(), Some(&with("/spec/suspend", json!(true))), now());
    assert_eq!(resumed.warnings[0].as_str(), "spec.suspend: -> 1 now, window night");
}

#[test]
fn an_update_is_told_only_of_what_it_touches() {
    let mut old = with("/spec/windows/1/to", json!("02:30"));
    old["spec"]["resyncMinutes"] = json!(1440);
    let told = |new: &Value| -> Vec<String> {
        let warnings = validate(new, Some(&old), now()).warnings;
        warnings.iter().map(|one| one.to_string().split(':').next().unwrap().to_owned()).collect()
    };
    assert_eq!(advice(&old).len(), 2);
    assert!(told(&edit(old.clone(), "/spec/target/create/image", json!("b:2"))).is_empty());
    assert_eq!(told(&edit(old.clone(), "/spec/defaultReplicas", json!(4))), ["spec.windows[1].to"]);
    assert_eq!(told(&edit(old.clone(), "/spec/resyncMinutes", json!(120))), ["spec.resyncMinutes"]);
    assert!(told(&edit(old.clone(), "/spec/resyncMinutes", json!(10))).is_empty());
}

#[test]
fn a_workload_that_is_there_and_goes_to_none_at_once_is_named() {
    let reference = json!({"ref": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "x"}});
    let asleep = edit(with("/spec/target", reference.clone()), "/spec/windows/1/replicas", json!(0));
    assert_eq!(advice(&asleep), ["spec.windows[1].replicas: StatefulSet x -> 0 now, window night"]);
    assert!(advice(&with("/spec/target", reference)).is_empty());
    assert!(advice(&edit(asleep, "/spec/suspend", json!(true))).is_empty());
}

#[test]
fn a_window_that_is_never_active_is_named() {
    let third = |window: Value| {
        let mut windows = sound()["spec"]["windows"].as_array().unwrap().clone();
        windows.push(window);
        advice(&with("/spec/windows", json!(windows)))
    };
    let lunch = json!({"name": "lunch", "from": "12:00", "to": "13:00", "replicas": 9});
    assert_eq!(
        third(lunch.clone()),
        ["spec.windows[2]: lunch is never active: windows above it cover it (overlap FirstMatch)"]
    );
    let small_hours =
        json!({"name": "small", "from": "23:00", "to": "05:00", "replicas": 9, "days": ["Sun"]});
    assert_eq!(third(small_hours).len(), 1);
    let past = json!({"name": "past", "from": "19:00", "to": "20:00", "replicas": 9, "season": {"last": "2026-05-30"}});
    assert_eq!(third(past), ["spec.windows[2]: past is never active: its season ended on 2026-05-30"]);
    let monday = json!({"name": "odd", "from": "19:00", "to": "20:00", "replicas": 9, "days": ["Mon"], "season": {"first": "2026-12-25", "last": "2026-12-26"}});
    assert_eq!(
        third(monday),
        ["spec.windows[2]: odd is never active: no date of its season is one of its days"]
    );
    let off = edit(lunch.clone(), "/enabled", json!(false));
    assert!(third(off).is_empty());
    for (overlap, decides) in [("Max", "windows with as many"), ("Min", "windows with as few")] {
        let covering = if overlap == "Max" { 9 } else { 2 };
        let mut object = with("/spec/windows/0/replicas", json!(covering));
        object = edit(object, "/spec/overlap", json!(overlap));
        let lunch = json!({"name": "lunch", "from": "12:00", "to": "13:00", "replicas": 5});
        object["spec"]["windows"].as_array_mut().unwrap().push(lunch);
        let found = advice(&object);
        let expected = format!(
            "spec.windows[2]: lunch is never active: {decides} replicas cover it (overlap {overlap})"
        );
        assert_eq!(found, [expected]);
    }
}

#[test]
fn an_exception_that_does_nothing_is_named() {
    let told = |exceptions: Value| advice(&with("/spec/exceptions", exceptions));
    let past = json!([{"name": "past", "dates": ["2026-05-01", "2026-05-30"], "replicas": 1}]);
    assert_eq!(told(past), ["spec.exceptions[0].dates: all of them are past, the last one is 2026-05-30"]);
    // It is the first of June, 23:30, and a night that was skipped the day before would last until the morning.
    assert!(told(json!([{"name": "eve", "dates": ["2026-05-31"], "replicas": 1}])).is_empty());
    let twice = json!([
        {"name": "a", "dates": ["2026-12-24", "2026-12-25"], "replicas": 1},
        {"name": "b", "dates": ["2026-12-25"], "replicas": 2},
    ]);
    assert_eq!(told(twice), ["spec.exceptions[1].replicas: exceptions above it have all of its dates"]);
    let covered = json!([
        {"name": "a", "between": {"start": "2026-07-01T00:00:00Z", "end": "2026-07-03T00:00:00Z"}, "replicas": 1},
        {"name": "b", "between": {"start": "2026-07-02T00:00:00Z", "end": "2026-07-03T00:00:00Z"}, "replicas": 2},
    ]);
    assert_eq!(told(covered), ["spec.exceptions[1].between: a span above it covers it"]);
    let weekdays = with("/spec/windows/0/days", json!(["Mon", "Tue"]));
    // 2026-12-25 is a Friday.
    let idle = json!([{"name": "a", "dates": ["2026-12-25"], "skipWindows": ["day"]}]);
    assert_eq!(
        advice(&edit(weekdays, "/spec/exceptions", idle)),
        ["spec.exceptions[0].skipWindows: none of them starts on one of the dates"]
    );
    let over = json!([{"name": "s", "between": {"start": "2026-05-01T00:00:00Z", "end": "2026-05-02T00:00:00Z"}, "replicas": 1}]);
    let old = with("/spec/exceptions", over);
    let restored = validate(&old, None, now());
    assert!(restored.faults.is_empty(), "a backup can be restored: {:?}", restored.faults);
    assert_eq!(restored.warnings.len(), 1, "{:?}", restored.warnings);
    let verdict = validate(&edit(old.clone(), "/spec/defaultReplicas", json!(4)), Some(&old), now());
    assert_eq!(
        verdict.warnings.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["spec.exceptions[0].between: it ended at 2026-05-02T00:00Z"]
    );
}

#[test]
fn windows_that_disagree_are_named_with_the_one_that_decides() {
    let late = |overlap: &str| {
        let object = with("/spec/windows/0/to", json!("23:00"));
        advice(&edit(object, "/spec/overlap", json!(overlap)))
    };
    assert_eq!(late("FirstMatch"), ["spec.windows[1]: night overlaps day: day decides (overlap FirstMatch)"]);
    assert_eq!(late("Max"), ["spec.windows[1]: night overlaps day: day decides (overlap Max)"]);
    assert_eq!(late("Min"), ["spec.windows[1]: night overlaps day: night decides (overlap Min)"]);
    let seasons = edit(
        with("/spec/windows/0/to", json!("23:00")),
        "/spec/windows/0/season",
        json!({"last": "2026-07-01"}),
    );
    let seasons = edit(seasons, "/spec/windows/1/season", json!({"first": "2026-07-02"}));
    assert!(advice(&seasons).is_empty());
}

#[test]
fn a_boundary_that_the_clocks_skip_or_repeat_is_named_with_its_date() {
    let object = with("/spec/windows/1/to", json!("02:30"));
    let expected = [
        "spec.windows[1].to: 02:30 on 2026-10-25 in Europe/Berlin comes twice: the first one counts, 00:30Z",
    ];
    assert_eq!(advice(&object), expected);
    // In the night from Saturday on there is none that starts on a weekday.
    let weekdays = edit(object.clone(), "/spec/windows/1/days", json!(["Mon", "Fri"]));
    assert!(advice(&weekdays).is_empty());
    let verdict = validate(&object, None, "2027-01-01T00:00:00Z".parse().unwrap());
    let expected = "spec.windows[1].to: 02:30 on 2027-03-28 in Europe/Berlin is skipped by the clocks: 03:00 counts, 01:00Z";
    assert_eq!(verdict.warnings[0].as_str(), expected);
}

#[test]
fn a_window_that_the_clocks_skip_whole_is_named_with_its_date() {
    let windows = json!([{"name": "batch", "from": "02:10", "to": "02:50", "replicas": 5}]);
    let object = edit(with("/spec/windows", windows), "/spec/exceptions", Value::Null);
    let verdict = validate(&object, None, "2027-01-01T00:00:00Z".parse().unwrap());
    let expected =
        "spec.windows[0]: batch does not happen on 2027-03-28: the clocks in Europe/Berlin skip it";
    assert_eq!(verdict.warnings[0].as_str(), expected);
}

#[test]
fn a_service_without_endpoints_and_rare_looks_are_asked_about() {
    let object =
        edit(with("/spec/target/create/servicePort", json!(80)), "/spec/windows/1/replicas", json!(0));
    assert_eq!(
        advice(&object),
        ["spec.windows[1].replicas: 0 leaves the Service of servicePort without endpoints"]
    );
    let object = with("/spec/resyncMinutes", json!(1440));
    assert_eq!(
        advice(&object),
        ["spec.resyncMinutes: 1440 acts like 10: the operator reconciles at least every 10 minutes"]
    );
}

#[test]
fn advice_is_short_however_bad_the_timetable() {
    let windows: Vec<Value> = (0..64)
        .map(|at| json!({"name": format!("w{at}"), "from": format!("{:02}:30", at % 24), "to": "02:30", "replicas": at}))
        .filter(|window| window["from"] != window["to"])
        .collect();
    for overlap in ["FirstMatch", "Max"] {
        let object = edit(with("/spec/windows", json!(windows)), "/spec/overlap", json!(overlap));
        let object = edit(object, "/spec/exceptions", Value::Null);
        let found = advice(&object);
        assert!(found.len() <= 16, "{found:#?}");
        assert!(found.iter().all(|text| !text.ends_with('…')), "{found:#?}");
    }
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
        let verdict = validate(&read(text), None, now());
        let mut paths: Vec<_> = verdict.faults.iter().map(|fault| fault.path.to_string()).collect();
        let claimed = text.lines().next().unwrap().trim_start_matches("# refused: ");
        let mut claimed: Vec<_> = claimed.split(", ").collect();
        paths.sort_unstable();
        claimed.sort_unstable();
        assert_eq!(paths, claimed);
    }
}
