//! The API: what each kind looks like in each version, what its fields mean, and how they are validated.
//!
//! Everything below this folder is pure: no client, no clock, no randomness, no file system, nothing
//! asynchronous. Time, where a rule depends on it, is an argument.
//!
//! ```text
//!            v1alpha1 ──lens──▶ v1 (hub, stored)
//!   written by users   │            │
//!                      └── schema ──┴── default ── validate ──▶ Validation
//! ```
//!
//! One folder a kind, with the same files in each: `v1alpha1` and `v1` (wire types), `convert` (the lens table),
//! `default`, `validate`, `status`.

pub mod ancestors;
pub mod bounded;
pub mod checksum;
pub mod condition;
pub mod cron;
pub mod default;
pub mod definition;
pub mod dns;
pub mod duration;
pub mod field;
pub mod identity;
pub mod lens;
pub mod metadata;
pub mod name;
pub mod pod;
pub mod pod_hook;
pub mod policy;
pub mod quantity;
pub mod reference;
pub mod schema;
pub mod script;
pub mod time_zone;
pub mod validation;
pub mod words;

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

use field::{Validation, Warning};

/// The API group of every kind.
pub const GROUP: &str = "gatehouse.dev";

/// A served version. `v1` is the hub: the one that is stored, validated and reconciled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// The shape that the published ancestors have; served and deprecated.
    V1Alpha1,
    /// The hub.
    V1,
}

impl Version {
    /// All served versions, oldest first.
    pub const ALL: [Self; 2] = [Self::V1Alpha1, Self::V1];

    /// The version's name: `v1`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V1Alpha1 => "v1alpha1",
            Self::V1 => "v1",
        }
    }

    /// Group and version as an object's `apiVersion` has them.
    #[must_use]
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::V1Alpha1 => "gatehouse.dev/v1alpha1",
            Self::V1 => "gatehouse.dev/v1",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// No served version has that name.
#[derive(Debug, thiserror::Error)]
#[error("unknown version {0:?}: expected gatehouse.dev/v1 or gatehouse.dev/v1alpha1")]
pub struct UnknownVersion(String);

impl Version {
    /// The version of an `apiVersion`, which names the group too.
    ///
    /// # Errors
    /// [`UnknownVersion`], also where the group is missing or another one.
    pub fn of_api_version(text: &str) -> Result<Self, UnknownVersion> {
        let known = Self::ALL.into_iter().find(|version| text == version.api_version());
        known.ok_or_else(|| UnknownVersion(text.chars().take(LONGEST_TOLD).collect()))
    }
}

/// Characters of an unknown version that a message repeats.
const LONGEST_TOLD: usize = 80;

impl FromStr for Version {
    type Err = UnknownVersion;

    /// Takes `v1` as well as `gatehouse.dev/v1`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|version| text == version.as_str() || text == version.api_version())
            .ok_or_else(|| UnknownVersion(text.chars().take(LONGEST_TOLD).collect()))
    }
}

/// What a kind is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    /// `EtcdCluster`.
    pub kind: &'static str,
    /// `etcdclusters`: the resource in paths and rules.
    pub plural: &'static str,
}

impl Names {
    /// `etcdclusters.gatehouse.dev`: the name of the CustomResourceDefinition.
    #[must_use]
    pub fn definition(&self) -> String {
        format!("{}.{GROUP}", self.plural)
    }
}

/// One column of the grid: all that the gate has to know of a kind. Every method is pure.
pub trait Kind: Send + Sync {
    /// What it is called.
    fn names(&self) -> Names;

    /// Its definition, both versions in it, without the conversion stanza (that needs an address).
    /// Made again each time: it is large, and seldom needed.
    fn definition(&self) -> CustomResourceDefinition;

    /// What objects are validated by, in each version: the schemas of the definition.
    fn schemas(&self) -> &'static schema::Schemas;

    /// How its versions map on each other.
    fn lens(&self) -> &'static lens::Lens;

    /// The fields of the hub version that objects have once they are stored, in the order in which they are written.
    fn defaults(&self) -> &'static [default::Field];

    /// Warnings for the author of an older version about what meant something else in earlier releases of that version,
    /// as far as the write sets it. The paths are the author's.
    fn changed_meanings(&self, _context: &default::Context) -> Vec<Warning> {
        Vec::new()
    }

    /// Validates an object in the hub version whose structure is valid. `old` is there on update, and the present where
    /// warnings about what is sound are wanted. Paths of faults are those of the hub.
    fn validate(&self, object: &Value, old: Option<&Value>, now: Option<Timestamp>) -> Validation;

    /// Which objects must not be deleted, where there are such.
    fn protection(&self) -> Option<policy::Protection> {
        None
    }

    /// The workloads that are made for an object.
    fn workloads(&self) -> &'static [policy::Workload];

    /// What an author of an object has to be allowed beside that.
    fn author_rules(&self) -> &'static [policy::AuthorRule] {
        &[]
    }

    /// What is added to pods that ask for it, where there is something.
    fn pod_hook(&self) -> Option<&'static pod_hook::PodHook> {
        None
    }

    /// Validates a new replica count that comes by the scale subresource, where the kind has one.
    fn validate_scale(&self, replicas: i64, old: i64) -> Validation;
}
