//! Validation of an EtcdCluster: every rule that needs the object and the stored one and nothing else.
//!
//! Guarantees: all faults and warnings at once, each with the path of its field in the hub's version, the value,
//! and what is allowed; everything that the CEL rules of the definition refuse is refused here too.
//! Assumes: the object is in the hub's version and its structure is sound. Faults that the stored object has as well
//! are found again here; the caller lets them pass.

mod backup;
mod names;
mod options;
mod recovery;
mod replicas;
mod resources;
mod storage;
mod tls;
mod update;
mod version;

use serde::Deserialize;
use serde_json::Value;

use super::recovery::ANNOTATION;
use super::v1::{EtcdClusterSpec, EtcdClusterStatus};
use super::versions::ALLOW_DOWNGRADE;
use crate::api::field::{FieldError, Path, Reason, Validation};

/// What the rules look at.
struct Cluster<'a> {
    name: &'a str,
    /// What the API server will append to, where there is no name yet.
    generate_name: Option<&'a str>,
    /// The request to recover from a lost quorum.
    recovery: Option<&'a str>,
    spec: EtcdClusterSpec,
    status: EtcdClusterStatus,
    /// Whether its members may be brought one minor down.
    allows_downgrade: bool,
}

impl<'a> Cluster<'a> {
    fn read(object: &'a Value) -> Result<Self, FieldError> {
        let metadata = &object["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        let spec = match object.get("spec") {
            None | Some(Value::Null) => EtcdClusterSpec::default(),
            Some(spec) => EtcdClusterSpec::deserialize(spec)
                .map_err(|error| FieldError::new(Path::spec(), Reason::TypeInvalid, error.to_string()))?,
        };
        // A status that does not read belongs to another release: no ground to refuse its spec.
        let status = object
            .get("status")
            .and_then(|status| EtcdClusterStatus::deserialize(status).ok())
            .unwrap_or_default();
        let name = text("name");
        let annotations = &metadata["annotations"];
        Ok(Self {
            allows_downgrade: annotations[ALLOW_DOWNGRADE] == "true",
            name,
            generate_name: Some(text("generateName")).filter(|base| name.is_empty() && !base.is_empty()),
            recovery: annotations[ANNOTATION].as_str(),
            spec,
            status,
        })
    }
}

/// Validates a creation, or an update where `old` is there.
#[must_use]
pub fn validate(object: &Value, old: Option<&Value>) -> Validation {
    let mut validation = Validation::default();
    let new = match Cluster::read(object) {
        Ok(new) => new,
        Err(fault) => {
            validation.reject(fault);
            return validation;
        }
    };
    names::validate(&new, &mut validation);
    replicas::validate(&new.spec, &mut validation);
    version::validate(&new.spec, &mut validation);
    storage::validate(&new.spec, &mut validation);
    tls::validate(&new.spec, &mut validation);
    options::validate(&new.spec, &mut validation);
    backup::validate(&new, &mut validation);
    let old = old.and_then(|old| Cluster::read(old).ok());
    resources::validate(&new.spec, old.as_ref().map(|old| &old.spec), &mut validation);
    recovery::validate(&new, old.as_ref(), &mut validation);
    if let Some(old) = old {
        update::validate(&new, &old, &mut validation);
    }
    validation
}

/// Validates a number of members that comes by the scale subresource.
#[must_use]
pub fn validate_scale(replicas: i64, old: i64) -> Validation {
    let mut validation = Validation::default();
    replicas::validate_count(replicas, &mut validation);
    replicas::validate_step(replicas, old, &mut validation);
    validation
}

#[cfg(test)]
mod tests;
