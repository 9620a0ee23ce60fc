//! Validates a TDSet in the hub version, as far as that needs only the object.
//!
//! Guarantees: every fault is named, not only the first; the same object, old object and instant give the same
//! validation. Assumes that the structural schema has been checked. Never: looks at the cluster (whether a workload is
//! there and who else scales it is for the operator to say), or forgives a fault for being old (the caller does).

mod advice;
mod autoscaler;
mod target;

use std::collections::HashSet;

use jiff::Timestamp;
use jiff::civil::Date;
use serde::Deserialize as _;
use serde_json::Value;

use super::ramp::Ramp;
use super::schedule::Schedule;
use super::v1::{self, MOST_REPLICAS, TDSetSpec};
use crate::api::field::{FieldError, Path, Reason, Validation};
use crate::api::name;

/// Validates `object`; `old` is there on update. Without the present, nothing is said of what is sound.
#[must_use]
pub fn validate(object: &Value, old: Option<&Value>, now: impl Into<Option<Timestamp>>) -> Validation {
    let mut validation = Validation::default();
    let spec = match decode(object) {
        Ok(spec) => spec,
        Err(fault) => {
            validation.reject(fault);
            return validation;
        }
    };
    let old_spec = old.and_then(|old| decode(old).ok());
    name(object, &spec, &mut validation);
    counts(&spec, &mut validation);
    windows(&spec, old_spec.as_ref(), &mut validation);
    exceptions(&spec, &mut validation);
    spans(&spec, &mut validation);
    target::validate(&spec.target, &mut validation);
    autoscaler::validate(&spec, old_spec.as_ref(), &mut validation);
    if let Some(old) = &old_spec {
        target::validate_change(&old.target, &spec.target, &mut validation);
    }
    if let Err(faults) = Ramp::parse(spec.ramp.as_ref()) {
        validation.errors.extend(faults);
    }
    match (Schedule::parse(&spec), now.into()) {
        (Err(faults), _) => validation.errors.extend(faults),
        // A change of a label does not repeat the warnings about the timetable.
        (Ok(schedule), Some(now)) if old_spec.as_ref() != Some(&spec) => {
            advice::advise(&spec, &schedule, old_spec.as_ref(), now, &mut validation);
        }
        _ => {}
    }
    validation
}

fn decode(object: &Value) -> Result<TDSetSpec, FieldError> {
    let Some(spec) = object.get("spec") else {
        return Err(FieldError::required(Path::spec(), ""));
    };
    // The spec is not shown: environment variables are in it.
    TDSetSpec::deserialize(spec)
        .map_err(|error| FieldError::new(Path::spec(), Reason::Invalid, error.to_string()))
}

/// Replica counts and minutes, within their bounds.
fn counts(spec: &TDSetSpec, validation: &mut Validation) {
    let path = Path::spec();
    let windows = spec.windows().iter().enumerate();
    let windows = windows.map(|(at, window)| ("windows", at, window.replicas));
    let exceptions = spec.exceptions().iter().enumerate();
    let exceptions = exceptions.filter_map(|(at, one)| Some(("exceptions", at, one.replicas?)));
    match spec.default_replicas {
        Some(replicas) => range(|| path.at("defaultReplicas"), replicas, 0..=MOST_REPLICAS, validation),
        None if spec.target.reference.is_none() || spec.autoscaler.is_some() => {
            // No rule of the definition says this: a stored spec with a field of a wrong type would make it fail, and
            // refuse even a new status.
            let why = "may be absent only with target.ref and without autoscaler";
            validation.reject(FieldError::required(path.at("defaultReplicas"), why));
        }
        None => {}
    }
    for (list, at, replicas) in windows.chain(exceptions) {
        range(|| path.at(list).index(at).at("replicas"), replicas, 0..=MOST_REPLICAS, validation);
    }
    if let Some(minutes) = spec.resync_minutes {
        range(|| path.at("resyncMinutes"), minutes, 1..=1440, validation);
    }
}

/// The Deployment, the Service and a label of the pods are named as the object is.
fn name(object: &Value, spec: &TDSetSpec, validation: &mut Validation) {
    let given = object["metadata"]["name"].as_str().unwrap_or_default();
    let path = || Path::metadata().at("name");
    let has_service = spec.target.create.as_ref().is_some_and(|create| create.service_port.is_some());
    if has_service && !given.is_empty() {
        if let Err(detail) = name::dns_1035_label(given) {
            validation.reject(FieldError::invalid(
                path(),
                given,
                format!("{detail}: the Service is named so"),
            ));
        }
    } else if given.len() > LONGEST_NAME && spec.target.create.is_some() {
        let detail = format!("must have at most {LONGEST_NAME} characters: a label of the pods holds it");
        validation.reject(FieldError::invalid(path(), given, detail));
    }
}

/// What a label's value may have, in characters.
const LONGEST_NAME: usize = 63;

fn range(
    path: impl FnOnce() -> Path,
    number: i32,
    allowed: std::ops::RangeInclusive<i32>,
    validation: &mut Validation,
) {
    if !allowed.contains(&number) {
        let detail = format!("must be from {} to {}", allowed.start(), allowed.end());
        validation.reject(FieldError::invalid(path(), number, detail));
    }
}

/// Whether both texts are dates, and the first of them is the earlier one.
fn is_before(date: &str, other: &str) -> bool {
    date.parse::<Date>().is_ok_and(|date| other.parse().is_ok_and(|other| date < other))
}

fn windows(spec: &TDSetSpec, old: Option<&TDSetSpec>, validation: &mut Validation) {
    let path = Path::spec().at("windows");
    // The first version of the API took windows of no length; what is stored is never active, and no fault.
    let stored = old.into_iter().flat_map(TDSetSpec::windows).filter(|window| window.from == window.to);
    let stored: HashSet<&str> = stored.map(|window| window.from.as_str()).collect();
    unique(&path, spec.windows().iter().map(|window| window.name.as_str()), validation);
    for (at, window) in spec.windows().iter().enumerate() {
        let path = || path.index(at);
        if window.from == window.to && !stored.contains(window.from.as_str()) {
            let detail = "must differ from from: a window of no length is never active";
            validation.reject(FieldError::invalid(path().at("to"), &window.to, detail));
        }
        match &window.season {
            Some(v1::Season { first: Some(first), last: Some(last) }) if is_before(last, first) => {
                let path = path().at("season").at("last");
                validation.reject(FieldError::invalid(path, last, "must not be before first"));
            }
            Some(v1::Season { first: None, last: None }) => {
                let detail = "at least one of first and last is required";
                validation.reject(FieldError::required(path().at("season"), detail));
            }
            _ => {}
        }
    }
}

fn unique<'a>(path: &Path, names: impl Iterator<Item = &'a str>, validation: &mut Validation) {
    let mut seen = HashSet::new();
    for (at, name) in names.enumerate() {
        if !seen.insert(name) {
            validation.reject(FieldError::duplicate(path.index(at), name));
        }
    }
}

fn exceptions(spec: &TDSetSpec, validation: &mut Validation) {
    let path = Path::spec().at("exceptions");
    unique(&path, spec.exceptions().iter().map(|one| one.name.as_str()), validation);
    let windows: HashSet<&str> = spec.windows().iter().map(|window| window.name.as_str()).collect();
    for (at, exception) in spec.exceptions().iter().enumerate() {
        let path = || path.index(at);
        shape(&path, exception, validation);
        for (at, name) in exception.skip_windows.iter().flatten().enumerate() {
            if name != "*" && !windows.contains(name.as_str()) {
                let detail = "must be the name of a window, or \"*\" for all of them";
                validation.reject(FieldError::invalid(path().at("skipWindows").index(at), name, detail));
            }
        }
    }
}

/// That an exception says when it holds, once, and what it does.
fn shape(path: &dyn Fn() -> Path, exception: &v1::Exception, validation: &mut Validation) {
    let (dates, elsewhere) = (exception.dates.is_some(), exception.dates_from.is_some());
    let between = exception.between.is_some();
    match [dates, elsewhere, between].into_iter().filter(|given| *given).count() {
        0 => validation
            .reject(FieldError::required(path(), "exactly one of dates, datesFrom and between is required")),
        1 => {}
        _ => validation.reject(FieldError::forbidden(
            path(),
            "exactly one of dates, datesFrom and between may be given",
        )),
    }
    if between && exception.skip_windows.is_some() {
        let detail = "goes with dates, not with between";
        validation.reject(FieldError::forbidden(path().at("skipWindows"), detail));
    }
    if exception.replicas.is_none() && (between || exception.skip_windows.is_none()) {
        let detail = if between {
            "needed with between"
        } else {
            "at least one of replicas and skipWindows is required"
        };
        validation.reject(FieldError::required(path().at("replicas"), detail));
    }
}

/// That spans end after they start. One that is over is no fault: what is kept in a repository or a backup has such.
fn spans(spec: &TDSetSpec, validation: &mut Validation) {
    let path = Path::spec().at("exceptions");
    for (at, exception) in spec.exceptions().iter().enumerate() {
        let Some(between) = &exception.between else {
            continue;
        };
        let instant = |text: &str| text.parse::<Timestamp>().ok();
        let (Some(start), Some(end)) = (instant(&between.start), instant(&between.end)) else {
            continue;
        };
        if end <= start {
            let path = path.index(at).at("between").at("end");
            validation.reject(FieldError::invalid(path, &between.end, "must be after start"));
        }
    }
}

#[cfg(test)]
mod tests;
