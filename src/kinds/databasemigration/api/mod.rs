//! DatabaseMigration: what it looks like in each version, what its fields mean, and how it is validated.

pub mod convert;
pub mod default;
pub mod pod;
pub mod rules;
pub mod sql;
pub mod status;
pub mod transaction;
pub mod v1;
pub mod v1alpha1;
pub mod validate;
pub mod wait;

use std::sync::LazyLock;

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::Value;

use crate::api::default::Field;
use crate::api::definition;
use crate::api::field::Validation;
use crate::api::lens::Lens;
use crate::api::pod_hook::PodHook;
use crate::api::policy::{AuthorRule, Workload};
use crate::api::schema::Schemas;
use crate::api::{Kind, Names};

/// The kind DatabaseMigration.
pub struct DatabaseMigrationKind;

impl Kind for DatabaseMigrationKind {
    fn names(&self) -> Names {
        Names { kind: "DatabaseMigration", plural: "databasemigrations" }
    }

    fn definition(&self) -> CustomResourceDefinition {
        let (spoke, hub) = (v1alpha1::DatabaseMigration::crd(), v1::DatabaseMigration::crd());
        definition::merge(spoke, hub, "DatabaseMigration")
    }

    fn schemas(&self) -> &'static Schemas {
        static SCHEMAS: LazyLock<Schemas> =
            LazyLock::new(|| Schemas::new(&DatabaseMigrationKind.definition()));
        &SCHEMAS
    }

    fn lens(&self) -> &'static Lens {
        &convert::LENS
    }

    fn defaults(&self) -> &'static [Field] {
        &default::DEFAULTS
    }

    fn validate(&self, object: &Value, old: Option<&Value>, _now: Option<Timestamp>) -> Validation {
        validate::validate(object, old)
    }

    fn workloads(&self) -> &'static [Workload] {
        &rules::WORKLOADS
    }

    fn author_rules(&self) -> &'static [AuthorRule] {
        &rules::AUTHOR_RULES
    }

    fn pod_hook(&self) -> Option<&'static PodHook> {
        Some(&wait::HOOK)
    }

    /// There is no scale subresource.
    fn validate_scale(&self, _replicas: i64, _old: i64) -> Validation {
        Validation::default()
    }
}
