//! Validates the bounds of an autoscaler.

use std::collections::HashSet;

use crate::api::field::{FieldError, Path, Validation};
use crate::kinds::tdset::api::v1::{Autoscaler, Exception, MOST_REPLICAS, TDSetSpec};

/// What is wrong with `maxReplicas`, wherever it stands, and with what is left on deletion; `old` is there on update.
pub(super) fn validate(spec: &TDSetSpec, old: Option<&TDSetSpec>, validation: &mut Validation) {
    maxima(spec, validation);
    without_a_count(spec, old, validation);
    if let Some(autoscaler) = &spec.autoscaler {
        ceiling(spec, autoscaler, validation);
        on_deletion(spec, autoscaler, validation);
    }
}

/// Each upper bound by itself, and against the count beside it.
fn maxima(spec: &TDSetSpec, validation: &mut Validation) {
    let path = Path::spec();
    let own = spec.autoscaler.as_ref().and_then(|autoscaler| autoscaler.max_replicas);
    let own = own.map(|most| {
        (path.at("autoscaler").at("maxReplicas"), most, spec.default_replicas, "spec.defaultReplicas")
    });
    let windows = spec.windows().iter().enumerate().filter_map(|(at, window)| {
        let most = window.max_replicas?;
        let path = path.at("windows").index(at).at("maxReplicas");
        Some((path, most, Some(window.replicas), "replicas"))
    });
    let exceptions = spec.exceptions().iter().enumerate().filter_map(|(at, exception)| {
        let most = exception.max_replicas?;
        let path = path.at("exceptions").index(at).at("maxReplicas");
        Some((path, most, exception.replicas, "replicas"))
    });
    let rules: Vec<_> = windows.chain(exceptions).collect();
    for (path, ..) in &rules {
        if spec.autoscaler.is_none() {
            validation.reject(FieldError::forbidden(path.clone(), "goes with autoscaler"));
        } else if own.is_none() {
            let detail = "needs autoscaler.maxReplicas, which holds at all other times";
            validation.reject(FieldError::forbidden(path.clone(), detail));
        }
    }
    for (path, most, least, field) in own.into_iter().chain(rules) {
        if !(1..=MOST_REPLICAS).contains(&most) {
            validation.reject(FieldError::invalid(path, most, format!("must be from 1 to {MOST_REPLICAS}")));
        } else if least.is_some_and(|least| most < least) {
            validation.reject(FieldError::invalid(path, most, format!("must not be below {field}")));
        }
    }
}

/// That an exception with an upper bound has a count, too: one that only skips windows holds at no time. What is stored
/// does nothing, and is no fault: a TDSet that has worked so far goes on to.
fn without_a_count(spec: &TDSetSpec, old: Option<&TDSetSpec>, validation: &mut Validation) {
    let bounds_nothing = |exception: &Exception| {
        exception.max_replicas.is_some() && exception.replicas.is_none() && exception.skip_windows.is_some()
    };
    let stored = old.into_iter().flat_map(TDSetSpec::exceptions).filter(|one| bounds_nothing(one));
    let stored: HashSet<&str> = stored.map(|one| one.name.as_str()).collect();
    let exceptions = spec.exceptions().iter().enumerate();
    for (at, _) in exceptions.filter(|(_, one)| bounds_nothing(one) && !stored.contains(one.name.as_str())) {
        let path = Path::spec().at("exceptions").index(at).at("maxReplicas");
        let detail = "goes with replicas: an exception that only skips windows has no upper bound of its own";
        validation.reject(FieldError::forbidden(path, detail));
    }
}

/// That no window and no exception asks for more than the ceiling, where it has none of its own.
fn ceiling(spec: &TDSetSpec, autoscaler: &Autoscaler, validation: &mut Validation) {
    let Some(most) = autoscaler.max_replicas else { return };
    let path = Path::spec();
    let windows = spec.windows().iter().enumerate();
    let windows = windows.filter(|(_, window)| window.max_replicas.is_none());
    let windows = windows.map(|(at, window)| (path.at("windows").index(at), window.replicas));
    let exceptions = spec.exceptions().iter().enumerate();
    let exceptions = exceptions.filter(|(_, exception)| exception.max_replicas.is_none());
    let exceptions =
        exceptions.filter_map(|(at, exception)| Some((path.at("exceptions").index(at), exception.replicas?)));
    for (path, replicas) in windows.chain(exceptions).filter(|(_, replicas)| *replicas > most) {
        let detail =
            format!("must not be above spec.autoscaler.maxReplicas, {most}: give maxReplicas beside it");
        validation.reject(FieldError::invalid(path.at("replicas"), replicas, detail));
    }
}

/// The field that says what is left behind is the autoscaler's alone.
fn on_deletion(spec: &TDSetSpec, autoscaler: &Autoscaler, validation: &mut Validation) {
    let path = Path::spec();
    if spec.target.reference.as_ref().is_some_and(|reference| reference.replicas_on_deletion.is_some()) {
        let path = path.at("target").at("ref").at("replicasOnDeletion");
        let detail = "does not go with autoscaler, which has the count: use autoscaler.onDeletion";
        validation.reject(FieldError::forbidden(path, detail));
    }
    let Some(left) = &autoscaler.on_deletion else { return };
    let path = path.at("autoscaler").at("onDeletion");
    if !(0..=MOST_REPLICAS).contains(&left.min_replicas) {
        let detail = format!("must be from 0 to {MOST_REPLICAS}");
        validation.reject(FieldError::invalid(path.at("minReplicas"), left.min_replicas, detail));
    }
    if let Some(most) = left.max_replicas {
        if !(1..=MOST_REPLICAS).contains(&most) {
            let detail = format!("must be from 1 to {MOST_REPLICAS}");
            validation.reject(FieldError::invalid(path.at("maxReplicas"), most, detail));
        } else if most < left.min_replicas {
            validation.reject(FieldError::invalid(
                path.at("maxReplicas"),
                most,
                "must not be below minReplicas",
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The faults of a TDSet with these fields besides.
    fn faults(fields: &Value) -> Vec<String> {
        let mut spec = json!({
            "defaultReplicas": 2,
            "target": {"ref": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
        });
        json_patch::merge(&mut spec, fields);
        let mut validation = Validation::default();
        validate(&serde_json::from_value(spec).unwrap(), None, &mut validation);
        validation.errors.iter().map(ToString::to_string).collect()
    }

    fn window(replicas: i32, most: Option<i32>) -> Value {
        let mut window = json!({"name": "rush", "from": "08:00", "to": "09:00", "replicas": replicas});
        if let Some(most) = most {
            window["maxReplicas"] = most.into();
        }
        window
    }

    fn exception(replicas: i32, most: Option<i32>) -> Value {
        let mut exception = json!({"name": "fair", "dates": ["2026-03-02"], "replicas": replicas});
        if let Some(most) = most {
            exception["maxReplicas"] = most.into();
        }
        exception
    }

    fn autoscaler(most: Option<i32>) -> Value {
        most.map_or_else(|| json!({"name": "web"}), |most| json!({"name": "web", "maxReplicas": most}))
    }

    #[test]
    fn bounds_that_go_together_are_no_fault() {
        for fields in [
            json!({}),
            json!({"autoscaler": autoscaler(None), "windows": [window(50, None)]}),
            json!({"autoscaler": autoscaler(Some(10)), "windows": [window(10, None)], "exceptions": [exception(10, None)]}),
            json!({"autoscaler": autoscaler(Some(10)), "windows": [window(20, Some(30))]}),
            json!({"autoscaler": {"name": "web", "onDeletion": {"minReplicas": 0, "maxReplicas": 1}}}),
        ] {
            assert_eq!(faults(&fields), [""; 0], "{fields}");
        }
    }

    #[test]
    fn an_upper_bound_needs_an_autoscaler_with_one() {
        let alone = faults(&json!({"windows": [window(1, Some(3))], "exceptions": [exception(1, Some(3))]}));
        assert_eq!(
            alone,
            [
                "spec.windows[0].maxReplicas: Forbidden: goes with autoscaler",
                "spec.exceptions[0].maxReplicas: Forbidden: goes with autoscaler",
            ]
        );
        let without = json!({"autoscaler": autoscaler(None), "windows": [window(1, Some(3))]});
        assert_eq!(
            faults(&without),
            [
                "spec.windows[0].maxReplicas: Forbidden: needs autoscaler.maxReplicas, which holds at all other times"
            ]
        );
    }

    #[test]
    fn an_upper_bound_is_in_range_and_not_below_the_count_beside_it() {
        let fields = json!({
            "autoscaler": autoscaler(Some(1)), "windows": [window(4, Some(3))], "exceptions": [exception(1, Some(0))],
        });
        assert_eq!(
            faults(&fields),
            [
                "spec.autoscaler.maxReplicas: Invalid value: 1: must not be below spec.defaultReplicas",
                "spec.windows[0].maxReplicas: Invalid value: 3: must not be below replicas",
                "spec.exceptions[0].maxReplicas: Invalid value: 0: must be from 1 to 10000",
            ]
        );
    }

    #[test]
    fn an_upper_bound_of_an_exception_without_a_count_is_refused_unless_it_is_stored() {
        let skipping = |name: &str| {
            let exception =
                json!({"name": name, "dates": ["2026-03-02"], "skipWindows": ["*"], "maxReplicas": 3});
            json!({"autoscaler": autoscaler(Some(10)), "exceptions": [exception]})
        };
        let detail = "goes with replicas: an exception that only skips windows has no upper bound of its own";
        let expected = [format!("spec.exceptions[0].maxReplicas: Forbidden: {detail}")];
        assert_eq!(faults(&skipping("fair")), expected);
        let object = |fields: &Value| -> TDSetSpec {
            let mut spec = json!({"defaultReplicas": 2, "target": {}});
            json_patch::merge(&mut spec, fields);
            serde_json::from_value(spec).unwrap()
        };
        let change = |new: &Value, old: &Value| {
            let mut validation = Validation::default();
            validate(&object(new), Some(&object(old)), &mut validation);
            validation.errors.len()
        };
        assert_eq!(change(&skipping("fair"), &skipping("fair")), 0, "what is stored goes on to work");
        assert_eq!(change(&skipping("other"), &skipping("fair")), 1);
        let counted = json!({"autoscaler": autoscaler(Some(10)), "exceptions": [exception(1, Some(3))]});
        assert_eq!(change(&skipping("fair"), &counted), 1, "its count is taken out");
    }

    #[test]
    fn no_count_is_above_the_ceiling() {
        let fields = json!({
            "autoscaler": autoscaler(Some(10)), "windows": [window(20, None)], "exceptions": [exception(11, None)],
        });
        let detail = "must not be above spec.autoscaler.maxReplicas, 10: give maxReplicas beside it";
        assert_eq!(
            faults(&fields),
            [
                format!("spec.windows[0].replicas: Invalid value: 20: {detail}"),
                format!("spec.exceptions[0].replicas: Invalid value: 11: {detail}"),
            ]
        );
    }

    #[test]
    fn what_is_left_on_deletion_is_said_in_one_place_and_in_range() {
        let both = json!({
            "autoscaler": autoscaler(None), "target": {"ref": {"replicasOnDeletion": 3}},
        });
        assert_eq!(
            faults(&both),
            [
                "spec.target.ref.replicasOnDeletion: Forbidden: does not go with autoscaler, which has the count: \
              use autoscaler.onDeletion"
            ]
        );
        let left = |min: i32, max: i32| {
            faults(
                &json!({"autoscaler": {"name": "web", "onDeletion": {"minReplicas": min, "maxReplicas": max}}}),
            )
        };
        assert_eq!(
            left(5, 4),
            ["spec.autoscaler.onDeletion.maxReplicas: Invalid value: 4: must not be below minReplicas"]
        );
        assert_eq!(
            left(-1, 0),
            [
                "spec.autoscaler.onDeletion.minReplicas: Invalid value: -1: must be from 0 to 10000",
                "spec.autoscaler.onDeletion.maxReplicas: Invalid value: 0: must be from 1 to 10000",
            ]
        );
    }
}
