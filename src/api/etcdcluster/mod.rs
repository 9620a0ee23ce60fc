//! EtcdCluster: what it looks like in each version, what its fields mean, and who judges them.

pub mod convert;
pub mod default;
pub mod flags;
pub mod status;
pub mod v1;
pub mod v1alpha1;
pub mod validate;
pub mod versions;

use std::sync::LazyLock;

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::Value;

use super::definition;
use super::field::{Verdict, Warning};
use super::lens::Lens;
use super::{Kind, Names, Version};

/// The kind EtcdCluster.
pub struct EtcdClusterKind;

impl Kind for EtcdClusterKind {
    fn names(&self) -> Names {
        Names { kind: "EtcdCluster", plural: "etcdclusters" }
    }

    fn definition(&self) -> &'static CustomResourceDefinition {
        static DEFINITION: LazyLock<CustomResourceDefinition> = LazyLock::new(|| {
            definition::merge(v1alpha1::EtcdCluster::crd(), v1::EtcdCluster::crd(), "EtcdCluster")
        });
        &DEFINITION
    }

    fn lens(&self) -> &'static Lens {
        &convert::LENS
    }

    fn default(&self, object: &mut Value, written: Version) -> Vec<Warning> {
        default::on_create(object, written)
    }

    fn validate(&self, object: &Value, old: Option<&Value>, _now: Timestamp) -> Verdict {
        validate::validate(object, old)
    }

    fn validate_delete(&self, object: &Value) -> Verdict {
        validate::validate_delete(object)
    }

    fn validate_scale(&self, replicas: i64, old: i64) -> Verdict {
        validate::validate_scale(replicas, old)
    }
}

#[cfg(test)]
mod tests;
