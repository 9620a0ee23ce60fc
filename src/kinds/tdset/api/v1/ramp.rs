//! How fast the count of a TDSet moves.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::KubeSchema;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// How fast the count moves towards the scheduled one.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ramp {
    /// Upwards; the first replica after none is never delayed. If absent, at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up: Option<RampStep>,

    /// Downwards. If absent, at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub down: Option<RampStep>,
}

/// One step of a ramp and the time from it to the next.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RampStep {
    /// Replicas by which the count moves at a time: a number from 1 to 10000, or "1%" to "100%" of the larger one
    /// of the count that the ramp begins with and the scheduled one, rounded up.
    #[schemars(schema_with = "step")]
    pub step: IntOrString,

    /// Time between two steps, such as 30s or 1m30s, from 1s to 24h.
    #[schemars(length(min = 2, max = 32), regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    // The pattern refuses what is no duration; a rule that breaks on such a text would hold up every later update.
    #[x_kube(validation = (
        "!self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') || duration(self) >= duration('1s') && duration(self) <= duration('24h')",
        "must be from 1s to 24h"
    ))]
    pub every: String,
}

fn step(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "maxLength": 5,
        "x-kubernetes-validations": [{
            "rule": "type(self) == int ? self >= 1 && self <= 10000 : string(self).matches('^([1-9][0-9]?|100)%$')",
            "message": "must be a number from 1 to 10000, or from \"1%\" to \"100%\"",
        }],
    })
}
