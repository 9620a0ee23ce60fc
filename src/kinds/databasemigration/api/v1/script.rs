//! One script of a DatabaseMigration.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::definition::undescribed;
use crate::api::duration::{self, Duration};
use crate::api::reference::KeyReference;

/// One script.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.idempotent) || !self.idempotent || has(self.transaction) && self.transaction == 'None'")
        .message("goes with transaction None alone").field_path(".idempotent").reason(Reason::FieldValueForbidden),
    validation = Rule::new("self.kind != 'Check' || !has(self.down)")
        .message("a Check changes nothing that could be taken back").field_path(".down").reason(Reason::FieldValueForbidden),
)]
pub struct Script {
    /// What the history knows it by: 1 to 128 letters, digits, ".", "_" and "-". Unique in the object.
    #[schemars(length(min = 1, max = 128), regex(pattern = "^[A-Za-z0-9._-]+$"))]
    pub id: String,

    /// Schema (changes of tables and the like), Data (changes of rows) or Check (reads only, and must return no rows).
    pub kind: ScriptKind,

    /// The script.
    pub up: Source,

    /// What takes it back. If absent, it cannot be taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub down: Option<Source>,

    /// Checksum that the script has to have: sha256: and 64 hexadecimal digits.
    #[schemars(length(max = 71), regex(pattern = "^sha256:[0-9a-f]{64}$"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,

    /// Ids of scripts that come before this one in the list, at most 64. The list alone decides the order; this says
    /// what it must not contradict.
    #[schemars(length(max = 64), inner(length(min = 1, max = 128)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depends_on: Option<Vec<String>>,

    /// Required (the script and its entry in the history are one transaction) or None (one statement, outside of a
    /// transaction, as CREATE INDEX CONCURRENTLY needs it). Defaults to Required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transaction: Option<Transaction>,

    /// True has a script with transaction None run again from its start where it is not known how far it came.
    /// Defaults to false: a person decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,

    /// How long it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<Timeouts>,
}

/// What a script is for.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[schemars(transform = undescribed)]
pub enum ScriptKind {
    /// Changes tables and the like.
    #[default]
    Schema,
    /// Changes rows.
    Data,
    /// Reads only, and must return no rows.
    Check,
}

/// Whether a script runs in a transaction.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[schemars(transform = undescribed)]
pub enum Transaction {
    /// It and its entry in the history are one.
    #[default]
    Required,
    /// It runs outside of one.
    None,
}

/// Where a script comes from. Exactly one of the three is given.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "[has(self.inline), has(self.configMapKeyRef), has(self.secretKeyRef)].exists_one(given, given)",
    "exactly one of inline, configMapKeyRef and secretKeyRef is required"
))]
pub struct Source {
    /// The script itself, at most 256 KiB.
    #[schemars(length(min = 1, max = 262_144))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inline: Option<String>,

    /// A key of a ConfigMap in the same namespace. What is planned is kept in a copy, which is what runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map_key_ref: Option<KeyReference>,

    /// A key of a Secret in the same namespace. The operator never reads it: pods mount it, and its checksum is held
    /// against the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<KeyReference>,
}

/// How long a script may take.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Timeouts {
    /// Longest time for each statement, such as 5m. 1s to 168h. Defaults to 5m.
    #[x_kube(validation = (duration::CEL_RULE, duration::CEL_MESSAGE))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statement: Option<Duration>,

    /// Longest time that a statement waits for a lock, such as 3s: others queue behind it meanwhile. 10ms to 10m.
    /// Defaults to 3s.
    #[x_kube(validation = (duration::CEL_RULE, duration::CEL_MESSAGE))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock: Option<Duration>,
}
