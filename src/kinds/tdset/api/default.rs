//! What absent fields of a TDSet mean.
//!
//! Nothing that v1alpha1 can say is written, so that an object of it reads back as it was written.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::api::Version;
use crate::api::default::{Context, Field};
use crate::api::field::Warning;

/// The time zone of a timetable that names none.
pub const TIME_ZONE: &str = "Etc/UTC";

/// The kind of an autoscaler that names none.
pub const AUTOSCALER: &str = "HorizontalPodAutoscaler";

/// Most windows that are warned of one by one.
const MOST_NAMED: usize = 5;

/// The fields that creation writes.
pub static DEFAULTS: [Field; 2] = [
    Field::new(&["spec", "timeZone"], |_| Some(json!(TIME_ZONE))).beside(&["spec"]).warning(zone_is_given),
    Field::new(&["spec", "autoscaler", "kind"], |_| Some(json!(AUTOSCALER))).beside(&["spec", "autoscaler"]),
];

fn zone_is_given(context: &Context) -> Vec<Warning> {
    match context.written {
        // v1alpha1 has no other zone.
        Version::V1Alpha1 => Vec::new(),
        Version::V1 => vec![Warning::new(format!(
            "spec.timeZone: not given, set to {TIME_ZONE}; name a zone if local time is meant, such as Europe/Berlin"
        ))],
    }
}

/// A warning for each new window of v1alpha1 that goes on into the next day: in older releases of the API it was never
/// active.
pub(super) fn wrapping(context: &Context) -> Vec<Warning> {
    let stored: HashSet<_> = context.stored.into_iter().flat_map(windows).filter_map(hours).collect();
    let zone = context.object.pointer("/spec/timeZone").and_then(Value::as_str).unwrap_or(TIME_ZONE);
    let zone = if zone == TIME_ZONE { "UTC" } else { zone };
    let wrapping = windows(context.object).enumerate().filter_map(|(at, window)| {
        let (from, to) = hours(window).filter(|hours| hours.1 < hours.0 && !stored.contains(hours))?;
        let path = format!("spec.schedulingConfig[{at}]");
        Some(Warning::new(format!("{path}: wraps midnight: from {from} to {to} of the next day, {zone}")))
    });
    wrapping.take(MOST_NAMED).collect()
}

fn windows(object: &Value) -> impl Iterator<Item = &Value> {
    object.pointer("/spec/windows").and_then(Value::as_array).into_iter().flatten()
}

fn hours(window: &Value) -> Option<(&str, &str)> {
    Some((window.get("from")?.as_str()?, window.get("to")?.as_str()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Kind as _;
    use crate::api::default::{complete, completed};
    use crate::api::validation::{Change, Written};
    use crate::kinds::tdset::api::TDSetKind;

    fn default(object: &mut Value, written: Version) -> Vec<Warning> {
        complete(&TDSetKind, object, None, written).warnings
    }

    #[test]
    fn a_v1_object_without_a_zone_gets_one_and_a_warning() {
        let mut object = json!({"spec": {"defaultReplicas": 1}});
        let warnings = default(&mut object, Version::V1);
        assert_eq!(object, json!({"spec": {"defaultReplicas": 1, "timeZone": "Etc/UTC"}}));
        assert_eq!(warnings.len(), 1);
        assert!(!warnings[0].as_str().ends_with('…'), "{}", warnings[0]);
        assert!(default(&mut object, Version::V1).is_empty());
    }

    #[test]
    fn a_zone_that_is_given_stays() {
        let mut object = json!({"spec": {"timeZone": "Europe/Berlin"}});
        assert!(default(&mut object, Version::V1).is_empty());
        assert_eq!(object, json!({"spec": {"timeZone": "Europe/Berlin"}}));
    }

    #[test]
    fn a_zone_that_a_later_write_leaves_out_stays_with_a_warning() {
        let stored = json!({"spec": {"timeZone": "Europe/Berlin"}});
        let mut object = json!({"spec": {"defaultReplicas": 1}});
        let warnings = complete(&TDSetKind, &mut object, Some(&stored), Version::V1).warnings;
        assert_eq!(object["spec"]["timeZone"], "Europe/Berlin");
        assert_eq!(warnings, [Warning::new("spec.timeZone: not given, stays Europe/Berlin")]);
    }

    /// What a write by v1alpha1 stores, and its warnings.
    fn written(new: &Value, old: Option<&Value>) -> (Value, Vec<String>) {
        let version = Version::V1Alpha1;
        let of = |object| Written { version, object };
        let change =
            Change { new: of(new), old: old.map(of), author: version, now: jiff::Timestamp::UNIX_EPOCH };
        let (object, additions) = completed(&TDSetKind, &change);
        (object.into_owned(), additions.warnings.iter().map(ToString::to_string).collect())
    }

    fn nights(hours: &[(u32, u32)]) -> Value {
        let window = |(start, end): &(u32, u32)| json!({"startTime": start, "endTime": end, "replica": 1});
        json!({"spec": {"schedulingConfig": hours.iter().map(window).collect::<Vec<_>>()}})
    }

    #[test]
    fn a_v1alpha1_object_gets_its_zone_in_silence_and_a_warning_about_nights_at_each_write_of_one() {
        let (stored, warnings) = written(&nights(&[(8, 18), (19, 0)]), None);
        assert_eq!(stored["spec"]["timeZone"], "Etc/UTC");
        let night = |at: u32, from: &str, to: &str, zone: &str| {
            format!(
                "spec.schedulingConfig[{at}]: wraps midnight: from {from} to {to} of the next day, {zone}"
            )
        };
        assert_eq!(warnings, [night(1, "19:00", "00:00", "UTC")]);

        let stored = TDSetKind.lens().convert(stored, Version::V1, Version::V1Alpha1);
        for (edit, expected) in [
            (vec![(8, 18), (23, 7)], vec![night(1, "23:00", "07:00", "UTC")]),
            (vec![(23, 7), (19, 0)], vec![night(0, "23:00", "07:00", "UTC")]),
            (vec![(8, 18), (19, 0)], vec![]),
            (vec![(19, 0)], vec![]),
            (
                vec![(22, 1), (23, 7)],
                vec![night(0, "22:00", "01:00", "UTC"), night(1, "23:00", "07:00", "UTC")],
            ),
        ] {
            assert_eq!(written(&nights(&edit), Some(&stored)).1, expected, "{edit:?}");
        }
        let mut in_berlin = stored;
        in_berlin["metadata"]["annotations"] =
            json!({"conversion.gatehouse.dev/spec.timeZone": "\"Europe/Berlin\""});
        let warnings = written(&nights(&[(23, 7)]), Some(&in_berlin)).1;
        assert_eq!(warnings, [night(0, "23:00", "07:00", "Europe/Berlin")]);
    }

    #[test]
    fn an_autoscaler_gets_its_kind_in_silence_and_nothing_else_does() {
        let spec = json!({"timeZone": "Etc/UTC", "autoscaler": {"name": "web"}});
        let mut object = json!({"spec": spec});
        assert!(default(&mut object, Version::V1).is_empty());
        assert_eq!(object["spec"]["autoscaler"], json!({"name": "web", "kind": "HorizontalPodAutoscaler"}));
        let mut added = json!({"spec": spec});
        let stored = json!({"spec": {"timeZone": "Etc/UTC"}});
        assert!(complete(&TDSetKind, &mut added, Some(&stored), Version::V1).warnings.is_empty());
        assert_eq!(added, object);
    }

    #[test]
    fn a_partial_object_is_left_alone() {
        for partial in [json!({}), json!({"spec": null}), json!([])] {
            let mut object = partial.clone();
            assert!(default(&mut object, Version::V1).is_empty());
            assert_eq!(object, partial);
        }
    }
}
