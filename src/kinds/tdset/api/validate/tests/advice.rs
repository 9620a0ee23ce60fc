//! The warnings for the author of a valid object.

use super::*;

#[test]
fn an_update_is_warned_about_what_it_does_right_now() {
    // It is 23:30 in Berlin.
    let told = |object: &Value| {
        let validation = validate(object, Some(&sound()), now());
        validation.warnings.first().map(ToString::to_string)
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
fn without_the_present_nothing_is_said_of_what_is_sound() {
    let odd = with("/spec/windows/1/to", json!("02:30"));
    assert!(!advice(&odd).is_empty());
    assert_eq!(validate(&odd, None, None::<Timestamp>), Validation::default());
}

#[test]
fn an_update_is_warned_only_about_what_it_touches() {
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
    assert!(restored.errors.is_empty(), "a backup can be restored: {:?}", restored.errors);
    assert_eq!(restored.warnings.len(), 1, "{:?}", restored.warnings);
    let validation = validate(&edit(old.clone(), "/spec/defaultReplicas", json!(4)), Some(&old), now());
    assert_eq!(
        validation.warnings.iter().map(ToString::to_string).collect::<Vec<_>>(),
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
    let validation = validate(&object, None, "2027-01-01T00:00:00Z".parse::<Timestamp>().unwrap());
    let expected = "spec.windows[1].to: 02:30 on 2027-03-28 in Europe/Berlin is skipped by the clocks: 03:00 counts, 01:00Z";
    assert_eq!(validation.warnings[0].as_str(), expected);
}

#[test]
fn a_window_that_the_clocks_skip_whole_is_named_with_its_date() {
    let windows = json!([{"name": "batch", "from": "02:10", "to": "02:50", "replicas": 5}]);
    let object = edit(with("/spec/windows", windows), "/spec/exceptions", Value::Null);
    let validation = validate(&object, None, "2027-01-01T00:00:00Z".parse::<Timestamp>().unwrap());
    let expected =
        "spec.windows[0]: batch does not happen on 2027-03-28: the clocks in Europe/Berlin skip it";
    assert_eq!(validation.warnings[0].as_str(), expected);
}

#[test]
fn a_service_without_endpoints_and_rare_looks_are_asked_about() {
    let object =
        edit(with("/spec/target/create/servicePort", json!(80)), "/spec/windows/1/replicas", json!(0));
    assert_eq!(advice(&object), ["spec.windows[1].replicas: 0 leaves the Service without endpoints"]);
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
