//! The manifests of the ancestors, over a whole day, hour by hour.

use serde::Deserialize as _;
use serde_json::Value;

use super::*;
use crate::api::{Kind as _, Version, ancestors, default};
use crate::kinds::tdset::api::TDSetKind;

/// The timetable of a manifest of an ancestor, or of `v1alpha1`, as it is stored.
fn stored(manifest: &str) -> Schedule {
    let object: Value = serde_saphyr::from_str(manifest).unwrap();
    let text = |name: &str| object[name].as_str().unwrap();
    let adopted = match ancestors::find(text("apiVersion"), text("kind")) {
        Some(ancestor) => ancestor.adopt(object).0,
        None => object,
    };
    let mut hub = TDSetKind.lens().convert(adopted, Version::V1Alpha1, Version::V1);
    default::complete(&TDSetKind, &mut hub, None, Version::V1Alpha1);
    parse(&TDSetSpec::deserialize(&hub["spec"]).unwrap())
}

/// The counts of the 24 hours of a day: at the first and the last nanosecond of each, and in the middle.
fn hours(schedule: &Schedule) -> Vec<i32> {
    let midnight = at("2026-06-01T00:00:00Z");
    let count = |offset: SignedDuration| schedule.effective(midnight + offset).replicas.unwrap();
    let hours = (0..24).map(|hour| {
        let start = SignedDuration::from_hours(hour);
        let first = count(start);
        for within in
            [SignedDuration::from_mins(30), SignedDuration::from_hours(1) - SignedDuration::from_nanos(1)]
        {
            assert_eq!(count(start + within), first, "hour {hour}");
        }
        first
    });
    let hours: Vec<_> = hours.collect();
    assert_eq!(count(SignedDuration::from_hours(24)), hours[0], "the next day begins as this one");
    assert_eq!(count(-SignedDuration::from_nanos(1)), hours[23], "the day before ended as this one");
    hours
}

#[test]
fn five_windows_follow_the_clock_from_midnight_to_midnight() {
    let schedule = stored(include_str!("../../../../../../examples/ancestors/tdset-day.yaml"));
    let expected = [1, 1, 1, 1, 1, 1, 3, 3, 3, 8, 8, 8, 8, 8, 8, 8, 8, 8, 5, 5, 5, 5, 2, 3];
    assert_eq!(hours(&schedule), expected);
    // Midnight to midnight, both included.
    let changes: Vec<_> = schedule
        .changes(at("2026-05-31T23:59:59Z"))
        .take_while(|change| change.time <= at("2026-06-02T00:00:00Z"))
        .map(|change| (change.time.strftime("%H:%M").to_string(), change.to.replicas.unwrap()))
        .collect();
    let expected =
        [("00:00", 1), ("06:00", 3), ("09:00", 8), ("18:00", 5), ("22:00", 2), ("23:00", 3), ("00:00", 1)];
    assert_eq!(changes, expected.map(|(time, count)| (time.to_owned(), count)));
}

#[test]
fn the_samples_follow_the_clock() {
    let sample = include_str!("../../../../../../examples/ancestors/schedule_v1_tdset.yaml");
    let hello_world = include_str!("../../../../../../examples/ancestors/tdset_helloworld.yaml");
    let expected = [3, 1, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 5, 3, 3, 3, 3, 3];
    assert_eq!(hours(&stored(sample)), expected);
    assert_eq!(hours(&stored(hello_world)), expected);
    let classic = stored(include_str!("../../../../../../examples/tdset/classic.yaml"));
    let expected = [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 5, 3, 3, 2, 2, 2];
    assert_eq!(hours(&classic), expected);
}

#[test]
fn the_five_windows_of_the_ancestor_reach_midnight() {
    let day = stored(include_str!("../../../../../../examples/ancestors/tdset-five-windows.yaml"));
    let expected = [3, 2, 2, 2, 2, 2, 2, 3, 3, 5, 5, 5, 5, 5, 5, 5, 5, 3, 3, 2, 2, 2, 2, 2];
    assert_eq!(hours(&day), expected);
}

#[test]
fn a_window_past_midnight_holds_on_both_sides_of_it() {
    let schedule = stored(
        "apiVersion: schedule.rs/v1\nkind: TDSet\nmetadata: {name: night}\nspec:\n  container: {image: a, port: 80}\n  \
         schedulingConfig:\n  - {startTime: 19, endTime: 0, replica: 5}\n  - {startTime: 23, endTime: 7, replica: 1}\n  \
         defaultReplica: 3\n",
    );
    let expected = [1, 1, 1, 1, 1, 1, 1, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 5, 5, 5, 5, 5];
    assert_eq!(hours(&schedule), expected);
}
