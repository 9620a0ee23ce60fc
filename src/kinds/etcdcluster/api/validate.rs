//! Who judges an EtcdCluster: every rule that needs the object and the stored one and nothing else.
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
use crate::api::field::{Fault, Path, Reason, Verdict};

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
    fn read(object: &'a Value) -> Result<Self, Fault> {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let spec = match object.get("spec") {
            None | Some(Value::Null) => EtcdClusterSpec::default(),
            Some(spec) => EtcdClusterSpec::deserialize(spec)
                .map_err(|error| Fault::new(Path::spec(), Reason::TypeInvalid, error.to_string()))?,
        };
        // A status that does not read belongs to another release: no ground to refuse its spec.
        let status = object
            .get("status")
            .and_then(|status| EtcdClusterStatus::deserialize(status).ok())
            .unwrap_or_default();
        let name = text("/metadata/name");
        let annotations = object.pointer("/metadata/annotations");
        let downgrade = annotations.and_then(|annotations| annotations.get(ALLOW_DOWNGRADE)?.as_str());
        Ok(Self {
            allows_downgrade: downgrade == Some("true"),
            name,
            generate_name: Some(text("/metadata/generateName"))
                .filter(|base| name.is_empty() && !base.is_empty()),
            recovery: annotations.and_then(|all| all.get(ANNOTATION)?.as_str()),
            spec,
            status,
        })
    }
}

/// Judges a creation, or an update where `old` is there.
#[must_use]
pub fn validate(object: &Value, old: Option<&Value>) -> Verdict {
    let mut verdict = Verdict::default();
    let new = match Cluster::read(object) {
        Ok(new) => new,
        Err(fault) => {
            verdict.deny(fault);
            return verdict;
        }
    };
    names::judge(&new, &mut verdict);
    replicas::judge(&new.spec, &mut verdict);
    version::judge(&new.spec, &mut verdict);
    storage::judge(&new.spec, &mut verdict);
    tls::judge(&new.spec, &mut verdict);
    options::judge(&new.spec, &mut verdict);
    backup::judge(&new, &mut verdict);
    let old = old.and_then(|old| Cluster::read(old).ok());
    resources::judge(&new.spec, old.as_ref().map(|old| &old.spec), &mut verdict);
    recovery::judge(&new, old.as_ref(), &mut verdict);
    if let Some(old) = old {
        update::judge(&new, &old, &mut verdict);
    }
    verdict
}

/// Judges a number of members that comes by the scale subresource.
#[must_use]
pub fn validate_scale(replicas: i64, old: i64) -> Verdict {
    let mut verdict = Verdict::default();
    replicas::judge_count(replicas, &mut verdict);
    replicas::judge_step(replicas, old, &mut verdict);
    verdict
}

#[cfg(test)]
mod tests;
