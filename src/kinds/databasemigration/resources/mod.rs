//! The objects that a DatabaseMigration creates. Pure: each builder takes the spec and returns the object.

pub mod assignment;
pub mod job;
pub mod snapshot;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::names;
use super::spec::Spec;
use crate::controllers::manifest::{hash, owned_by};
use crate::kinds::databasemigration::api::v1::DatabaseMigration;
use crate::kinds::databasemigration::observation::Purpose;

/// One run, as it is to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Hash of all that it is to do.
    pub key: String,
    /// Its number among the runs of the object.
    pub number: i64,
    /// Which attempt it is, from 1.
    pub attempt: i32,
    /// What it is for.
    pub purpose: Purpose,
    /// The resolution that it is given.
    pub resolve: Option<String>,
    /// The plan that is approved.
    pub approved: Option<String>,
}

impl Planned {
    /// The name of the Job, and of the ConfigMap.
    #[must_use]
    pub fn name(&self, spec: &Spec) -> String {
        // Another resolution is another name, beside the same key: an old ConfigMap is not taken for the new one.
        match &self.resolve {
            Some(resolve) => names::run(
                spec.name(),
                &hash(&format!("{} {resolve}", self.key), assignment::KEY_LENGTH),
                self.number,
            ),
            None => names::run(spec.name(), &self.key, self.number),
        }
    }
}

/// Metadata of what is made for a run.
fn metadata(spec: &Spec, planned: &Planned) -> ObjectMeta {
    let mut metadata = owned_by::<DatabaseMigration>(&spec.metadata);
    // A deletion in the foreground, which is what Argo CD asks for, deletes first what holds up the owner: it would end the
    // run that our finalizer waits for, and the one that takes scripts back.
    for owner in metadata.owner_references.iter_mut().flatten() {
        owner.block_owner_deletion = Some(false);
    }
    ObjectMeta {
        name: Some(planned.name(spec)),
        labels: Some(labels(spec)),
        annotations: Some(annotations(planned)),
        ..metadata
    }
}

fn labels(spec: &Spec) -> BTreeMap<String, String> {
    names::labels(spec.name(), spec.uid())
}

fn annotations(planned: &Planned) -> BTreeMap<String, String> {
    let resolved = planned.resolve.clone().map(|resolve| (names::RESOLVED.to_owned(), resolve));
    let told = [
        (names::KEY, planned.key.clone()),
        (names::NUMBER, planned.number.to_string()),
        (names::ATTEMPT, planned.attempt.to_string()),
        (names::PURPOSE, planned.purpose.as_str().to_owned()),
    ];
    told.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(resolved).collect()
}
