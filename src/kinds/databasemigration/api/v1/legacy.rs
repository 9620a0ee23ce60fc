//! Fields of the published ancestor of `v1alpha1` that gatehouse keeps and does not act on.
//!
//! Guarantees: each field stays as it was written, whatever the field is.
//! Never: in an annotation, because under server-side apply each field has its managers, and a part of the object is
//! converted by itself.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An object of the ancestor, as it was written.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(transparent)]
pub struct Legacy(Map<String, Value>);

impl Legacy {
    /// The longest time that a run may take, if `runner.deadline` is absent: the one field that is acted on.
    #[must_use]
    pub fn max_migration_time(&self) -> Option<&Value> {
        self.0.get("validation")?.get("performanceThresholds")?.get("maxMigrationTime")
    }

    /// The paths of the fields that are not acted on, two steps deep.
    pub fn ignored(&self) -> impl Iterator<Item = String> {
        let is_acted_on = |field: &str, value: &Value| {
            let limits = value.as_object().filter(|_| field == "performanceThresholds");
            limits.is_some_and(|limits| limits.keys().all(|limit| limit == "maxMigrationTime"))
        };
        let parts = self.0.iter().filter_map(|(part, value)| Some((part, value.as_object()?)));
        parts.flat_map(move |(part, fields)| {
            let ignored = fields.iter().filter(move |(field, value)| !is_acted_on(field, value));
            ignored.map(move |(field, _)| format!("{part}.{field}"))
        })
    }
}

impl JsonSchema for Legacy {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Legacy".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
    }
}
