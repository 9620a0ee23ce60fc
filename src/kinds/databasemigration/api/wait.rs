//! What a pod waits for: an init container that ends once a script is applied is added to pods that ask for one.
//!
//! Guarantees: the container reads the history in the database with the credentials that the pod names, and needs no
//! right on anything of Kubernetes; it comes before the pod's other init containers, but after the sidecars that begin
//! the list, by which the database may be reached; a pod that has such a container is left as it is.
//! Never: takes credentials from a DatabaseMigration, whose user may change the database.

mod container;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::DatabaseMigrationKind;
use super::v1::{Database, DatabaseMigrationSpec, History};
use crate::api::bounded::{self, Twice};
use crate::api::default;
use crate::api::duration::Duration;
use crate::api::field::{FieldError, Path, Reason, Segment};
use crate::api::pod_hook::{Added, PodHook};
use crate::api::validation::{self, Change, Written};
use crate::api::{Kind as _, Version};

/// The label by which a pod asks, and the annotation that says what it waits for.
pub const WAIT_FOR_MIGRATION: &str = "gatehouse.dev/wait-for-migration";

/// Adds the container.
pub static HOOK: PodHook = PodHook { name: "wait-for-migration", label: WAIT_FOR_MIGRATION, add };

/// The fields of the annotation.
const FIELDS: [&str; 4] = ["database", "history", "script", "timeout"];

/// What is waited for, without a fault.
struct Awaited {
    database: Database,
    history: History,
    /// The id of the script.
    script: String,
    timeout: Option<Duration>,
}

fn add(pod: &Value, image: &str) -> Added {
    let path = Path::metadata().at("annotations").key(WAIT_FOR_MIGRATION);
    let Some(text) = pod["metadata"]["annotations"][WAIT_FOR_MIGRATION].as_str() else {
        let detail = format!(
            "the label of that name is set, so this has to say in JSON what the pod waits for: {}",
            FIELDS.join(", ")
        );
        return Err(vec![FieldError::required(path, detail)]);
    };
    Ok(container::added(pod, &read(text, &path)?, image))
}

/// What the annotation says. Its database and its history are held to the rules of a DatabaseMigration.
fn read(text: &str, path: &Path) -> Result<Awaited, Vec<FieldError>> {
    let given = match bounded::tree(text, Twice::Refused) {
        Ok(Value::Object(given)) => given,
        Ok(_) => {
            return Err(vec![FieldError::new(path.clone(), Reason::Invalid, "must be an object in JSON")]);
        }
        Err(error) => {
            return Err(vec![FieldError::new(
                path.clone(),
                Reason::Invalid,
                format!("must be JSON: {error}"),
            )]);
        }
    };
    let mut faults: Vec<_> = given
        .keys()
        .filter(|key| !FIELDS.contains(&key.as_str()))
        .map(|key| {
            FieldError::forbidden(path.key(key), format!("unknown field: expected {}", FIELDS.join(", ")))
        })
        .collect();
    let series = given.get("history").and_then(|history| history.get("series"));
    if series.is_none_or(Value::is_null) {
        let detail = "the series of the DatabaseMigration: its spec.history.series, or else its name";
        faults.push(FieldError::required(path.at("history").at("series"), detail));
    }
    let timeout = match given.get("timeout").filter(|timeout| !timeout.is_null()) {
        None => None,
        Some(Value::String(text)) => {
            let timeout = Duration::from(text.as_str());
            let validated = timeout.get().map_err(|error| error.to_string());
            faults.extend(
                validated.err().map(|error| FieldError::invalid(path.at("timeout"), text.as_str(), error)),
            );
            Some(timeout)
        }
        Some(_) => {
            faults.push(FieldError::new(
                path.at("timeout"),
                Reason::TypeInvalid,
                "must be a text such as 10m",
            ));
            None
        }
    };
    let migration = migration(&given);
    faults.extend(validated(&migration, path));
    let spec = DatabaseMigrationSpec::deserialize(&migration["spec"]);
    match spec {
        Ok(DatabaseMigrationSpec { database, history: Some(history), scripts, .. }) if faults.is_empty() => {
            let script = scripts.into_iter().next().map(|script| script.id).unwrap_or_default();
            Ok(Awaited { database, history, script, timeout })
        }
        // The schema has reported why.
        _ => Err(faults),
    }
}

/// A DatabaseMigration with that database and that history, and no other errors.
fn migration(given: &Map<String, Value>) -> Value {
    let mut script = json!({"kind": "Schema", "up": {"inline": "SELECT 1"}});
    let mut spec = Map::new();
    for (name, value) in given.iter().filter(|(_, value)| !value.is_null()) {
        match name.as_str() {
            "script" => script["id"] = value.clone(),
            "database" | "history" => drop(spec.insert(name.clone(), value.clone())),
            _ => {}
        }
    }
    spec.insert("scripts".to_owned(), json!([script]));
    let mut migration = json!({"apiVersion": Version::V1.api_version(), "kind": "DatabaseMigration",
        "metadata": {"name": "wait"}, "spec": spec});
    default::complete(&DatabaseMigrationKind, &mut migration, None, Version::V1);
    migration
}

fn validated(migration: &Value, path: &Path) -> Vec<FieldError> {
    let written = Written { version: Version::V1, object: migration };
    // No rule of this kind goes by the time.
    let now = jiff::Timestamp::UNIX_EPOCH;
    let change = Change { new: written, old: None, author: Version::V1, now };
    let unknown = DatabaseMigrationKind.schemas().of(Version::V1).unknown_fields(migration);
    let unknown = unknown.into_iter().map(|field| FieldError::forbidden(field, "unknown field"));
    let faults = validation::validate(&DatabaseMigrationKind, &change).errors;
    faults.into_iter().chain(unknown).map(|fault| in_annotation(fault, path)).collect()
}

/// A fault of the spec, as one of the annotation.
fn in_annotation(fault: FieldError, annotation: &Path) -> FieldError {
    let rest = match fault.path.segments() {
        [Segment::Field(spec), Segment::Field(scripts), Segment::Index(_), Segment::Field(id)]
            if spec == "spec" && scripts == "scripts" && id == "id" =>
        {
            vec![Segment::Field("script".into())]
        }
        [Segment::Field(spec), rest @ ..] if spec == "spec" => rest.to_vec(),
        rest => rest.to_vec(),
    };
    let path = rest.into_iter().fold(annotation.clone(), |path, segment| path.child(segment));
    FieldError { path, ..fault }
}

#[cfg(test)]
mod tests;
