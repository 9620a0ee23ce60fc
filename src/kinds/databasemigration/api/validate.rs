//! Validates a DatabaseMigration in the hub version, as far as that needs only the object.
//!
//! Guarantees: every fault is named, not only the first; the same object and old object give the same validation.
//! Assumes that the structural schema has been checked. Never: opens a connection, reads a ConfigMap or a Secret, or
//! forgives a fault for being old (the caller does).

mod advice;
mod database;
mod limits;
mod scripts;
mod update;

use std::collections::HashSet;

use serde::Deserialize as _;
use serde_json::Value;

use super::v1::{
    DatabaseMigrationSpec, DatabaseMigrationStatus, DeletionPolicy, OnFailure, Script, ScriptKind,
};
use crate::api::field::{FieldError, Path, Reason, Validation};
use crate::api::name;

/// Longest name: the Jobs are named after the object, and the label of their pods has 63 characters at most.
pub const LONGEST_NAME: usize = 44;

/// Validates `object`; `old` is there on update.
#[must_use]
pub fn validate(object: &Value, old: Option<&Value>) -> Validation {
    let mut validation = Validation::default();
    let spec = match decode(object) {
        Ok(spec) => spec,
        Err(fault) => {
            validation.reject(fault);
            return validation;
        }
    };
    let namespace = object["metadata"]["namespace"].as_str();
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    validate_name(name, &mut validation);
    database::validate(&spec, &mut validation);
    let before = old.and_then(|old| Some((decode(old).ok()?, status(old))));
    scripts::validate(&spec, before.as_ref().map(|(before, _)| before), namespace, &mut validation);
    references(&spec, name, &mut validation);
    downs(&spec, &mut validation);
    limits::validate(&spec, &mut validation);
    if let Some(runner) = &spec.runner {
        runner.validate(&Path::spec().at("runner"), &mut validation);
    }
    if let Some((before, status)) = &before {
        update::validate(&spec, before, status, &mut validation);
    }
    // A change of a label does not repeat the warnings about scripts.
    if before.as_ref().is_none_or(|(before, _)| *before != spec) {
        advice::advise(&spec, before.as_ref().map(|(before, _)| before), &mut validation);
    }
    validation
}

fn decode(object: &Value) -> Result<DatabaseMigrationSpec, FieldError> {
    let Some(spec) = object.get("spec") else {
        return Err(FieldError::required(Path::spec(), ""));
    };
    // The spec is not shown: scripts are in it.
    DatabaseMigrationSpec::deserialize(spec)
        .map_err(|error| FieldError::new(Path::spec(), Reason::Invalid, error.to_string()))
}

fn status(object: &Value) -> DatabaseMigrationStatus {
    object
        .get("status")
        .and_then(|status| DatabaseMigrationStatus::deserialize(status).ok())
        .unwrap_or_default()
}

fn validate_name(given: &str, validation: &mut Validation) {
    let path = Path::metadata().at("name");
    if given.len() > LONGEST_NAME {
        let detail = format!("must have at most {LONGEST_NAME} characters: the Jobs are named after it");
        validation.reject(FieldError::invalid(path, given, detail));
    } else if !given.is_empty()
        && let Err(detail) = name::dns_1123_label(given)
    {
        validation.reject(FieldError::invalid(path, given, format!("{detail}: the Jobs are named after it")));
    }
}

/// What names scripts of this object, or other objects.
fn references(spec: &DatabaseMigrationSpec, name: &str, validation: &mut Validation) {
    let path = Path::spec();
    let ids: HashSet<&str> = spec.scripts.iter().map(|script| script.id.as_str()).collect();
    if let Some(baseline) = spec.baseline.as_deref().filter(|baseline| !ids.contains(baseline)) {
        validation.reject(FieldError::invalid(path.at("baseline"), baseline, "must be the id of a script"));
    }
    for id in spec.accept_checksums.iter().flatten().map(|(id, _)| id).filter(|id| !ids.contains(id.as_str()))
    {
        validation.reject(FieldError::invalid(
            path.at("acceptChecksums").key(id),
            id,
            "must be the id of a script",
        ));
    }
    let mut seen = HashSet::new();
    for (at, requirement) in spec.requires.iter().flatten().enumerate() {
        let path = path.at("requires").index(at);
        if requirement.name == name {
            validation.reject(FieldError::invalid(
                path.at("name"),
                name,
                "must be another DatabaseMigration",
            ));
        } else if !seen.insert(&requirement.name) {
            validation.reject(FieldError::duplicate(path, &requirement.name));
        }
    }
}

/// Whether what may have to be taken back can be.
fn downs(spec: &DatabaseMigrationSpec, validation: &mut Validation) {
    let asked = match (spec.on_failure, spec.deletion_policy) {
        (Some(OnFailure::RevertThisRun), _) => "onFailure RevertThisRun",
        (_, Some(DeletionPolicy::Revert)) => "deletionPolicy Revert",
        _ => return,
    };
    let lacks = |script: &&Script| script.down.is_none() && script.kind != ScriptKind::Check;
    for (at, _) in spec.scripts.iter().enumerate().filter(|(_, script)| lacks(script)) {
        let path = Path::spec().at("scripts").index(at).at("down");
        validation
            .reject(FieldError::required(path, format!("{asked} needs the script that takes this one back")));
    }
}

#[cfg(test)]
mod tests;
