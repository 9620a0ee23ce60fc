//! Kubernetes' own migrator: what it is asked for, and how far it is. Pure.
//!
//! It is `StorageVersionMigration` of `storagemigration.k8s.io/v1`, on by default from Kubernetes 1.37. As of 1.37.2
//! (`pkg/controller/storageversionmigrator`): one that has ended is never run again; the condition `Running` becomes False
//! after `Succeeded` or `Failed` has become True and the status of the definition is written, also after a failure.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::observation::Definition;

/// How long it may say nothing at all. It learns of new definitions from the garbage collector, within half a minute;
/// where nothing runs it, no condition ever comes.
pub const UNHEARD: Duration = Duration::from_mins(3);

/// How far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing is said of it yet.
    Unheard,
    /// It is at work; in its own words, how far.
    Runs(String),
    /// It has ended, well or not; why.
    Ended(Result<(), String>),
}

/// The name of the one for this definition.
#[must_use]
pub fn name(definition: &Definition) -> String {
    format!("{}.gatehouse", definition.name)
}

/// The object that asks for it. It goes with its definition.
#[must_use]
pub fn object(definition: &Definition) -> Value {
    let owner = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "name": definition.name, "uid": definition.uid});
    json!({
        "apiVersion": "storagemigration.k8s.io/v1",
        "kind": "StorageVersionMigration",
        "metadata": {"name": name(definition), "ownerReferences": [owner],
            "labels": {"app.kubernetes.io/managed-by": "gatehouse"}},
        "spec": {"resource": {"group": definition.group, "resource": definition.plural}},
    })
}

/// How far it is, by what its object says.
#[must_use]
pub fn progress(object: &Value) -> Progress {
    let conditions = object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let find = |type_: &str| conditions.iter().find(|one| one["type"] == type_);
    let is = |type_: &str| find(type_).is_some_and(|one| one["status"] == "True");
    let message =
        |type_: &str| find(type_).and_then(|one| one["message"].as_str()).unwrap_or_default().to_owned();
    match (is("Running"), is("Succeeded"), is("Failed")) {
        (false, true, _) => Progress::Ended(Ok(())),
        (false, _, true) => Progress::Ended(Err(message("Failed"))),
        _ if conditions.is_empty() => Progress::Unheard,
        _ => Progress::Runs(message("Running")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(conditions: &[(&str, &str)]) -> Progress {
        let all: Vec<_> = conditions
            .iter()
            .map(|(type_, status)| json!({"type": type_, "status": status, "message": format!("{type_}!")}))
            .collect();
        progress(&json!({"status": {"conditions": all}}))
    }

    #[test]
    fn it_has_ended_once_it_does_not_run_any_more() {
        assert_eq!(progress(&json!({})), Progress::Unheard);
        assert_eq!(said(&[("Running", "True")]), Progress::Runs("Running!".to_owned()));
        let both = [("Running", "True"), ("Failed", "True")];
        assert_eq!(said(&both), Progress::Runs("Running!".to_owned()), "the definition is written next");
        assert_eq!(said(&[("Running", "False"), ("Succeeded", "True")]), Progress::Ended(Ok(())));
        let failed = [("Failed", "True"), ("Running", "False")];
        assert_eq!(said(&failed), Progress::Ended(Err("Failed!".to_owned())));
        assert_eq!(said(&[("Running", "False")]), Progress::Runs("Running!".to_owned()), "between the two");
    }
}
