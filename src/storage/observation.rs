//! What a definition says about how its objects are stored, and an object as far as a migration has to know it.

mod lost;

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde::Deserialize;
use serde_json::Value;

use super::plan::checkpoint::{self, Checkpoint};
use super::plan::condition;

/// A definition as the API server has it.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Such as `tdsets.gatehouse.dev`.
    pub name: String,
    /// Which object of that name it is.
    pub uid: String,
    /// Which state of its spec this is.
    pub generation: i64,
    /// Which state of the whole object this is.
    pub resource_version: String,
    /// When its spec was written last, as far as its managed fields tell.
    pub written: Option<Timestamp>,
    /// When it was read, by the clock of the API server; none where that did not say. [`Definition::written`] is by the
    /// same clock, and the one of this machine may be hours from it.
    pub read_at: Option<Timestamp>,
    /// Whether it is being deleted.
    pub is_deleted: bool,
    /// Whether its objects are served.
    pub is_established: bool,
    /// Its API group.
    pub group: String,
    /// What its objects are called in paths.
    pub plural: String,
    /// The kind of its objects.
    pub kind: String,
    /// Its versions, in the order of the definition.
    pub versions: Vec<Version>,
    /// The versions that objects may be stored in, by its status: those that were the storage version at some time.
    pub stored: Vec<String>,
    /// Whether objects of its versions differ in `apiVersion` alone (`strategy: None`).
    pub is_alike: bool,
    /// Fields that objects would lose by being written in the storage version, by the version that they are stored in:
    /// the first of them.
    pub lost: BTreeMap<String, Vec<String>>,
    /// The conditions of its status, with fields that are newer than this release.
    pub conditions: Vec<Value>,
    /// Where a migration that has not ended stands.
    pub checkpoint: Option<Checkpoint>,
}

/// One version of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Such as `v1alpha1`.
    pub name: String,
    /// Whether the API server serves it.
    pub is_served: bool,
    /// Whether objects are written to etcd in it.
    pub is_stored: bool,
    /// Whether it has the status subresource.
    pub has_status: bool,
}

impl Definition {
    /// Reads it.
    ///
    /// # Errors
    /// It is none.
    pub fn read(mut object: Value) -> serde_json::Result<Self> {
        let conditions = object.pointer_mut("/status/conditions").map_or(Value::Null, Value::take);
        let conditions = if let Value::Array(conditions) = conditions { conditions } else { Vec::new() };
        let schemas: BTreeMap<_, _> = object["spec"]["versions"]
            .as_array_mut()
            .into_iter()
            .flatten()
            .map(|version| (version["name"].to_string(), version["schema"].take()))
            .collect();
        let definition: CustomResourceDefinition = serde_json::from_value(object)?;
        let (meta, spec) = (&definition.metadata, &definition.spec);
        let status = definition.status.as_ref();
        let entries = meta.managed_fields.iter().flatten();
        // The place of a migration is written by its own manager, and says nothing about the spec.
        let of_spec = entries.filter(|entry| {
            entry.subresource.as_deref().unwrap_or_default().is_empty()
                && entry.manager.as_deref() != Some(checkpoint::MANAGER)
        });
        let versions = spec.versions.iter().map(|version| Version {
            name: version.name.clone(),
            is_served: version.served,
            is_stored: version.storage,
            has_status: version.subresources.as_ref().is_some_and(|resources| resources.status.is_some()),
        });
        let mut read = Self {
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
            generation: meta.generation.unwrap_or_default(),
            resource_version: meta.resource_version.clone().unwrap_or_default(),
            written: of_spec.filter_map(|entry| Some(entry.time.as_ref()?.0)).max(),
            read_at: None,
            is_deleted: meta.deletion_timestamp.is_some(),
            is_established: conditions
                .iter()
                .any(|one| one["type"] == "Established" && one["status"] == "True"),
            group: spec.group.clone(),
            plural: spec.names.plural.clone(),
            kind: spec.names.kind.clone(),
            versions: versions.collect(),
            stored: status.and_then(|status| status.stored_versions.clone()).unwrap_or_default(),
            is_alike: spec.conversion.as_ref().is_none_or(|conversion| conversion.strategy == "None"),
            checkpoint: checkpoint::of(meta.annotations.as_ref()),
            conditions,
            lost: BTreeMap::new(),
        };
        if read.is_alike {
            let schema = |version: &str| {
                let schema = schemas.get(&Value::from(version).to_string());
                schema.map_or(&Value::Null, |schema| &schema["openAPIV3Schema"])
            };
            let to = schema(read.storage_version());
            let of_each =
                read.others().into_iter().map(|other| (other.to_owned(), lost::lost(schema(other), to)));
            read.lost = of_each.filter(|(_, fields)| !fields.is_empty()).collect();
        }
        Ok(read)
    }

    /// The version in which objects are written to etcd. A definition has exactly one; without it, it is empty.
    #[must_use]
    pub fn storage_version(&self) -> &str {
        self.versions.iter().find(|version| version.is_stored).map_or("", |version| &version.name)
    }

    /// The version in which objects are asked for: the one that they are stored in, so that nothing that is stored in
    /// it is converted; another one where that is not served.
    #[must_use]
    pub fn asked_version(&self) -> Option<&Version> {
        let served = || self.versions.iter().filter(|version| version.is_served);
        served().find(|version| version.is_stored).or_else(|| served().next())
    }

    /// Versions of which a read of an object has it converted by one of them at least, whichever it is stored in; none
    /// where no webhook converts. Where one version alone is served, what is stored in it is not converted.
    pub fn converted_versions(&self) -> impl Iterator<Item = &str> {
        let asked = self.asked_version();
        let others = self.versions.iter().filter(move |one| Some(*one) != asked);
        let all = asked.into_iter().chain(others).filter(|one| one.is_served && !self.is_alike);
        all.take(2).map(|one| one.name.as_str())
    }

    /// Whether it serves a version.
    #[must_use]
    pub fn serves(&self, version: &str) -> bool {
        self.versions.iter().any(|one| one.is_served && one.name == version)
    }

    /// `gatehouse.dev/v1`, as objects and managed fields name a version.
    #[must_use]
    pub fn api_version(&self, version: &str) -> String {
        format!("{}/{version}", self.group)
    }

    /// The condition of that type.
    #[must_use]
    pub fn condition(&self, type_: &str) -> Option<&Value> {
        self.conditions.iter().find(|one| one["type"] == type_)
    }

    /// Whether a pass over all objects has to verify how they are stored, whatever `storedVersions` says: our condition
    /// says that this is not known, or Kubernetes' own migrator has ended since it was.
    #[must_use]
    pub fn is_unverified(&self) -> bool {
        self.denies_migrated() || self.unverified_end().is_some()
    }

    /// The end of Kubernetes' own migrator, where that came after our condition became True, if it ever did. Where it
    /// succeeded, a definition that has one version has nothing to verify.
    fn unverified_end(&self) -> Option<&Value> {
        let theirs = condition::ended_by_kubernetes(&self.conditions)?;
        let ours = self.condition(condition::TYPE).filter(|one| one["status"] == "True");
        // Times are in whole seconds: theirs may be the later one of two in the same second.
        let is_later = ours.is_none_or(|ours| condition::since(ours) <= condition::since(theirs));
        let has_more = self.versions.len() > 1 || condition::has_kubernetes_failed(&self.conditions);
        (is_later && has_more).then_some(theirs)
    }

    /// Whether `storedVersions` may have been reduced without a pass that verified all objects: by Kubernetes' own migrator,
    /// which leaves the storage version alone in it, or by a person. A migration of ours names the other versions again
    /// where that has happened, and does so in the state of the definition that Kubernetes saw; where the definition has
    /// been changed since, a version may have come to it by that.
    #[must_use]
    pub fn may_name_too_few(&self) -> bool {
        if self.older().is_empty() {
            return self.is_unverified();
        }
        self.unverified_end().is_some_and(|end| end["observedGeneration"] != self.generation)
    }

    /// Whether its status says too little, as far as that can be known without a look at the objects. Kubernetes' own
    /// migrator reduces `storedVersions` also where it could not write an object (as of 1.37.2, `finishCRDMigration` in
    /// `pkg/controller/storageversionmigrator`), and says in the reason of its condition that it failed. Where it says
    /// that it succeeded, a migration of ours that has not ended may find that it did not. Where our condition is False,
    /// no one has found that all objects are stored as they should be.
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        let is_untrue = self.denies_migrated() || condition::has_kubernetes_failed(&self.conditions);
        self.may_name_too_few() && is_untrue
    }

    /// Whether its condition says that all objects are stored in the storage version.
    #[must_use]
    pub fn says_migrated(&self) -> bool {
        self.condition(condition::TYPE).is_some_and(|one| one["status"] == "True")
    }

    /// Whether its condition says that they may not be. A migration that has begun, and not come to its end, leaves it so.
    #[must_use]
    pub fn denies_migrated(&self) -> bool {
        self.condition(condition::TYPE).is_some_and(|one| one["status"] != "True")
    }

    /// Why objects may not all be stored in the storage version, in the words of its condition; none where it does not
    /// say that.
    #[must_use]
    pub fn not_migrated(&self) -> Option<&str> {
        let said = self.condition(condition::TYPE).filter(|_| self.denies_migrated())?;
        said["message"].as_str()
    }

    /// Whether it is the same definition with the same spec.
    #[must_use]
    pub fn is_in_state_of(&self, other: &Self) -> bool {
        (&self.uid, self.generation) == (&other.uid, other.generation)
    }

    /// Its versions besides the storage version.
    #[must_use]
    pub fn others(&self) -> Vec<&str> {
        let all = self.versions.iter().map(|version| version.name.as_str());
        all.filter(|name| *name != self.storage_version()).collect()
    }

    /// Versions that its status names besides the storage version.
    #[must_use]
    pub fn older(&self) -> Vec<&str> {
        let others =
            self.stored.iter().map(String::as_str).filter(|stored| *stored != self.storage_version());
        others.collect()
    }

    /// Versions that objects may be stored in besides the storage version: those that its status names, and all that it
    /// has while its status may say too little.
    #[must_use]
    pub fn maybe_stored(&self) -> Vec<&str> {
        if self.is_doubtful() { self.older_and(|_| true) } else { self.older() }
    }

    /// Versions that its status names besides the storage version, and those of its other versions that are chosen.
    pub fn older_and(&self, is_chosen: impl Fn(&str) -> bool) -> Vec<&str> {
        let named = self.older();
        let others = self.others().into_iter().filter(|name| !named.contains(name) && is_chosen(name));
        named.iter().copied().chain(others).collect()
    }
}

/// The metadata of an object that a migration reads.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMeta {
    /// Its name.
    pub name: String,
    /// Its namespace, where its kind has them.
    pub namespace: Option<String>,
    /// Which object of that name it is.
    pub uid: String,
    /// In which state it is.
    pub resource_version: String,
    /// Who owns which of its fields, and in which version.
    pub managed_fields: Vec<ManagedFieldsEntry>,
}

impl fmt::Display for ObjectMeta {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(formatter, "{namespace}/{}", self.name),
            None => formatter.write_str(&self.name),
        }
    }
}
