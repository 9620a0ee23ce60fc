//! What absent fields of a TDSet mean.
//!
//! Nothing that v1alpha1 can say is written, so that an object of it reads back as it was written.

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
        // v1alpha1 has no other zone, and meant a window to be empty where its end is before its start.
        Version::V1Alpha1 => wrapping(context.object),
        Version::V1 => vec![Warning::new(format!(
            "spec.timeZone: not given, set to {TIME_ZONE}; name a zone if local time is meant, such as Europe/Berlin"
        ))],
    }
}

/// A warning for each window that goes on into the next day: in older releases of the API it was never active.
fn wrapping(object: &Value) -> Vec<Warning> {
    let windows = object.pointer("/spec/windows").and_then(Value::as_array);
    let wrapping = windows.into_iter().flatten().enumerate().filter_map(|(at, window)| {
        let (from, to) = (window.get("from")?.as_str()?, window.get("to")?.as_str()?);
        (to < from).then(|| {
            Warning::new(format!(
                "spec.schedulingConfig[{at}]: wraps midnight: from {from} to {to} of the next day, UTC"
            ))
        })
    });
    wrapping.take(MOST_NAMED).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::default::complete;
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

    #[test]
    fn a_v1alpha1_object_gets_its_zone_in_silence_and_a_warning_about_nights() {
        let windows = json!([{"from": "08:00", "to": "18:00"}, {"from": "19:00", "to": "00:00"}]);
        let mut object = json!({"spec": {"windows": windows}});
        let warnings = default(&mut object, Version::V1Alpha1);
        assert_eq!(object, json!({"spec": {"windows": windows, "timeZone": "Etc/UTC"}}));
        let expected = "spec.schedulingConfig[1]: wraps midnight: from 19:00 to 00:00 of the next day, UTC";
        assert_eq!(warnings, [Warning::new(expected)]);
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
