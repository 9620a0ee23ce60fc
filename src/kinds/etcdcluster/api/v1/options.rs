//! The options of etcd, and its maintenance.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::duration::{self, Duration};
use crate::api::quantity::Quantity;
use crate::kinds::etcdcluster::api::rules;

/// How etcd itself is set up. A change restarts the members, one at a time.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Options {
    /// Largest size of the database in bytes, as a quantity such as 2Gi; past it etcd takes no writes. Defaults to
    /// 2Gi, etcd's own default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new(rules::BYTES.0).message(rules::BYTES.1))]
    pub quota_backend_bytes: Option<Quantity>,

    /// How old revisions are dropped. If absent, etcd keeps all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_compaction: Option<AutoCompaction>,

    /// Committed entries between two snapshots on disk, 100 to 1000000. Defaults to etcd's own default (100000 in 3.5,
    /// 10000 since 3.6).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 1_000_000))]
    pub snapshot_count: Option<i64>,

    /// How often the leader shows that it is there, as a duration such as 100ms. Defaults to 100ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new(duration::CEL_RULE).message(duration::CEL_MESSAGE))]
    pub heartbeat_interval: Option<Duration>,

    /// How long a member waits for the leader before it asks for an election, as a duration such as 1s: at least five
    /// heartbeats and at most 50s. Defaults to 1s.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new(duration::CEL_RULE).message(duration::CEL_MESSAGE))]
    pub election_timeout: Option<Duration>,

    /// Further flags of etcd, without the leading dashes, such as `max-txn-ops: "1024"`. Flags that the operator
    /// sets itself, and flags that the version does not have, are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 64))]
    pub extra: Option<BTreeMap<String, String>>,
}

/// How old revisions are dropped.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct AutoCompaction {
    /// What `retention` counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<CompactionMode>,

    /// How much is kept: a duration such as 1h with Periodic, a number of revisions such as 1000 with Revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<IntOrString>,
}

/// What `retention` counts: Periodic counts time, Revision counts revisions. Defaults to Periodic.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionMode {
    /// Time.
    Periodic,
    /// Revisions.
    Revision,
}

/// Care that the operator takes of the database.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Maintenance {
    /// When members give free space back to their file system, one at a time and the leader last. If absent, only when
    /// the quota is reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defragment: Option<Defragment>,
}

/// When members give free space back to their file system.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Defragment {
    /// Share of the database file, in percent, that has to be free before a member is defragmented, 1 to 100. Defaults
    /// to 45.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub when_reclaimable_percent: Option<i32>,
}
