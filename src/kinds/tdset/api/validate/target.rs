//! Validates the workload of a TDSet.

use crate::api::GROUP;
use crate::api::field::{FieldError, Path, Validation};
use crate::kinds::tdset::api::v1::{Create, MOST_REPLICAS, Reference, Target};

/// Built-in kinds that have pods and no scale subresource.
const NOT_SCALABLE: [(&str, &str); 4] =
    [("apps", "DaemonSet"), ("batch", "Job"), ("batch", "CronJob"), ("", "Pod")];

/// What is wrong with the target by itself.
pub(super) fn validate(target: &Target, validation: &mut Validation) {
    let path = Path::spec().at("target");
    match (&target.create, &target.reference) {
        (None, None) => {
            validation.reject(FieldError::required(path, "exactly one of create and ref is required"));
        }
        (Some(_), Some(_)) => {
            validation.reject(FieldError::forbidden(path, "exactly one of create and ref may be given"));
        }
        (Some(create), None) => validate_create(&path.at("create"), create, validation),
        (None, Some(reference)) => validate_reference(&path.at("ref"), reference, validation),
    }
}

fn validate_create(path: &Path, create: &Create, validation: &mut Validation) {
    if create.image.trim().is_empty() {
        validation.reject(FieldError::required(path.at("image"), "must name an image"));
    } else if create.image.contains(char::is_whitespace) {
        validation.reject(FieldError::invalid(
            path.at("image"),
            &create.image,
            "must not contain white space",
        ));
    }
    let ports = [("port", Some(create.port)), ("servicePort", create.service_port)];
    for (name, port) in ports {
        if let Some(port) = port.filter(|port| !(1..=65535).contains(port)) {
            validation.reject(FieldError::invalid(path.at(name), port, "must be from 1 to 65535"));
        }
    }
    if let Some(pod) = &create.pod {
        pod.validate(&path.at("pod"), validation);
    }
}

fn validate_reference(path: &Path, reference: &Reference, validation: &mut Validation) {
    let fields =
        [("apiVersion", &reference.api_version), ("kind", &reference.kind), ("name", &reference.name)];
    for (name, _) in fields.into_iter().filter(|(_, value)| value.is_empty()) {
        validation.reject(FieldError::required(path.at(name), ""));
    }
    if let Some(replicas) =
        reference.replicas_on_deletion.filter(|count| !(0..=MOST_REPLICAS).contains(count))
    {
        let detail = format!("must be from 0 to {MOST_REPLICAS}");
        validation.reject(FieldError::invalid(path.at("replicasOnDeletion"), replicas, detail));
    }
    let group = group(&reference.api_version);
    if group == GROUP {
        let detail = "must not be of gatehouse's own kinds";
        validation.reject(FieldError::invalid(path.at("kind"), &reference.kind, detail));
    } else if NOT_SCALABLE.contains(&(group, &reference.kind)) {
        let detail = "has no scale subresource";
        validation.reject(FieldError::invalid(path.at("kind"), &reference.kind, detail));
    }
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// What is wrong with the change of a target: another workload needs another object.
pub(super) fn validate_change(old: &Target, new: &Target, validation: &mut Validation) {
    let path = Path::spec().at("target");
    match (&old.reference, &new.reference) {
        (Some(old), Some(new)) => {
            let path = path.at("ref");
            for (name, old, new) in [("kind", &old.kind, &new.kind), ("name", &old.name, &new.name)] {
                if old != new {
                    validation.reject(FieldError::invalid(path.at(name), new, "field is immutable"));
                }
            }
            if group(&old.api_version) != group(&new.api_version) {
                let detail = "the group is immutable";
                validation.reject(FieldError::invalid(path.at("apiVersion"), &new.api_version, detail));
            }
        }
        (None, Some(_)) if new.create.is_none() => exchanged(&path.at("ref"), validation),
        (Some(_), None) if new.create.is_some() => exchanged(&path.at("create"), validation),
        _ => {}
    }
}

fn exchanged(path: &Path, validation: &mut Validation) {
    let detail = "create and ref cannot be exchanged for one another";
    validation.reject(FieldError::forbidden(path.clone(), detail));
}
