//! TDSet: a workload whose replica count follows a timetable.

pub mod convert;
pub mod default;
pub mod ramp;
pub mod schedule;
pub mod status;
pub mod v1;
pub mod v1alpha1;
pub mod validate;

use std::sync::LazyLock;

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::Value;

use crate::api::default::{Context, Field};
use crate::api::definition;
use crate::api::field::{Validation, Warning};
use crate::api::lens::Lens;
use crate::api::policy::Workload;
use crate::api::schema::Schemas;
use crate::api::{Kind, Names};

/// What is scaled, where the TDSet does not name one that is there.
const DEPLOYMENT: Workload = Workload {
    group: "apps",
    resource: "deployments",
    asked: "has(object.spec) && has(object.spec.target) && has(object.spec.target.create)",
    field: "spec.target.create",
};

/// The kind TDSet.
pub struct TDSetKind;

impl Kind for TDSetKind {
    fn names(&self) -> Names {
        Names { kind: "TDSet", plural: "tdsets" }
    }

    fn definition(&self) -> CustomResourceDefinition {
        definition::merge(v1alpha1::TDSet::crd(), v1::TDSet::crd(), "TDSet")
    }

    fn schemas(&self) -> &'static Schemas {
        static SCHEMAS: LazyLock<Schemas> = LazyLock::new(|| Schemas::new(&TDSetKind.definition()));
        &SCHEMAS
    }

    fn lens(&self) -> &'static Lens {
        &convert::LENS
    }

    fn defaults(&self) -> &'static [Field] {
        &default::DEFAULTS
    }

    fn changed_meanings(&self, context: &Context) -> Vec<Warning> {
        default::wrapping(context)
    }

    fn validate(&self, object: &Value, old: Option<&Value>, now: Option<Timestamp>) -> Validation {
        validate::validate(object, old, now)
    }

    fn workloads(&self) -> &'static [Workload] {
        const { &[DEPLOYMENT] }
    }

    /// There is no scale subresource: the timetable owns the count.
    fn validate_scale(&self, _replicas: i64, _old: i64) -> Validation {
        Validation::default()
    }
}
