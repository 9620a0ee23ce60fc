//! Kubernetes' own migrator: what it is asked for, and how far it is. Pure.
//!
//! It is `StorageVersionMigration` of `storagemigration.k8s.io/v1`, on by default from Kubernetes 1.37. As of 1.37.2
//! (`pkg/controller/storageversionmigrator`): one that has ended is never run again; the condition `Running` becomes False
//! after `Succeeded` or `Failed` has become True and the status of the definition is written, also after a failure. It
//! repeats a patch that got no answer or status 429, 500, 503 or 504 for ever, later and later, and says so; of patches that
//! go well it says nothing before its end.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::observation::Definition;

/// How long it may say nothing at all, as it does where nothing runs it.
const UNHEARD: Duration = Duration::from_mins(3);

/// How long it may say that it tries again for the same reason.
const FAILING: Duration = Duration::from_mins(2);

/// How it says that.
const TRIES_AGAIN: &str = "; transient error: ";

/// How long it may take: until the garbage collector has seen the objects as they are, which it asks for later and later,
/// after 82, 164 and 328 s at last; and then a tenth of the pace that it usually has. The rest of very many is faster with
/// several patches at a time.
const BEFORE: Duration = Duration::from_mins(6);
const PER_OBJECT: Duration = Duration::from_millis(25);
const LONGEST: Duration = Duration::from_hours(2);

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

impl fmt::Display for Progress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unheard => formatter.write_str("waiting for Kubernetes to begin"),
            Self::Runs(message) => write!(formatter, "Kubernetes: {message}"),
            Self::Ended(Ok(())) => formatter.write_str("Kubernetes has ended"),
            Self::Ended(Err(why)) => write!(formatter, "Kubernetes failed: {why}"),
        }
    }
}

/// Why it is not waited for any more: how far it is, for how long it was waited for and how long it has been as far as
/// that, with so many objects at its beginning.
#[must_use]
pub fn given_up(progress: &Progress, waited: Duration, unchanged: Duration, objects: u64) -> Option<String> {
    let objects = u32::try_from(objects).unwrap_or(u32::MAX);
    let limit = BEFORE.saturating_add(PER_OBJECT.saturating_mul(objects)).min(LONGEST);
    match progress {
        Progress::Unheard if waited >= UNHEARD => {
            Some("nothing carries out StorageVersionMigrations".to_owned())
        }
        Progress::Runs(message) if message.contains(TRIES_AGAIN) && unchanged >= FAILING => {
            Some(format!("Kubernetes does not get on: {message}"))
        }
        Progress::Runs(message) if waited >= limit => {
            Some(format!("Kubernetes has not ended after {} s: {message}", waited.as_secs()))
        }
        _ => None,
    }
}

/// The name of the one for this definition.
#[must_use]
pub fn name(definition: &Definition) -> String {
    name_for(&definition.name)
}

/// The same by the name of the definition.
#[must_use]
pub fn name_for(definition: &str) -> String {
    format!("{definition}.gatehouse")
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

    #[test]
    fn it_is_given_up_where_it_does_not_come_to_its_end() {
        let (second, unheard) = (Duration::from_secs(1), Progress::Unheard);
        let before = |limit: Duration| limit.saturating_sub(second);
        assert_eq!(given_up(&unheard, before(UNHEARD), before(UNHEARD), 1), None);
        assert!(given_up(&unheard, UNHEARD, UNHEARD, 1).is_some());

        let message = "The migration is running, 3/7 objects not yet migrated; transient error: no time";
        let fails = Progress::Runs(message.to_owned());
        let long = Duration::from_mins(4);
        assert_eq!(given_up(&fails, long, before(FAILING), 1), None, "it fails at another one than before");
        let why = format!("Kubernetes does not get on: {message}");
        assert_eq!(given_up(&fails, long, FAILING, 1), Some(why));

        let runs = Progress::Runs("The migration is running".to_owned());
        assert_eq!(given_up(&runs, long, long, 1), None, "it says nothing of what it has written");
        let why = "Kubernetes has not ended after 361 s: The migration is running".to_owned();
        assert_eq!(given_up(&runs, BEFORE + second, BEFORE, 1), Some(why));
        assert_eq!(given_up(&runs, BEFORE * 2, BEFORE * 2, 100_000), None, "there are many");
        assert!(given_up(&runs, LONGEST, LONGEST, u64::MAX).is_some());
    }
}
