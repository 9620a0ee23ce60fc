//! EtcdCluster: what it looks like in each version, what its fields mean, and how they are validated.

pub mod convert;
pub mod default;
pub mod flags;
pub mod recovery;
pub mod rules;
pub mod status;
pub mod v1;
pub mod v1alpha1;
pub mod validate;
pub mod versions;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps,
};
use kube::CustomResourceExt;
use serde_json::Value;

use crate::api::default::Field;
use crate::api::definition;
use crate::api::field::Validation;
use crate::api::lens::Lens;
use crate::api::policy::{Protection, Workload};
use crate::api::schema::Schemas;
use crate::api::{Kind, Names};

/// The kind EtcdCluster.
pub struct EtcdClusterKind;

impl Kind for EtcdClusterKind {
    fn names(&self) -> Names {
        Names { kind: "EtcdCluster", plural: "etcdclusters" }
    }

    fn definition(&self) -> CustomResourceDefinition {
        let (spoke, hub) = (v1alpha1::EtcdCluster::crd(), v1::EtcdCluster::crd());
        let mut definition = definition::merge(spoke, hub, "EtcdCluster");
        declare_name(&mut definition);
        definition
    }

    fn schemas(&self) -> &'static Schemas {
        static SCHEMAS: LazyLock<Schemas> = LazyLock::new(|| Schemas::new(&EtcdClusterKind.definition()));
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

    fn protection(&self) -> Option<Protection> {
        Some(rules::PROTECTION)
    }

    fn workloads(&self) -> &'static [Workload] {
        &rules::WORKLOADS
    }

    fn validate_scale(&self, replicas: i64, old: i64) -> Validation {
        validate::validate_scale(replicas, old)
    }
}

/// Declares `metadata.name`, because a rule can only point at a field that the schema has.
fn declare_name(definition: &mut CustomResourceDefinition) {
    let name = JSONSchemaProps {
        description: Some("Name of the cluster: a DNS-1035 label of at most 45 characters.".to_owned()),
        type_: Some("string".to_owned()),
        ..JSONSchemaProps::default()
    };
    let metadata = JSONSchemaProps {
        type_: Some("object".to_owned()),
        properties: Some(BTreeMap::from([("name".to_owned(), name)])),
        ..JSONSchemaProps::default()
    };
    for version in &mut definition.spec.versions {
        let root = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut());
        if let Some(properties) = root.and_then(|root| root.properties.as_mut()) {
            properties.insert("metadata".to_owned(), metadata.clone());
        }
    }
}

#[cfg(test)]
mod tests;
