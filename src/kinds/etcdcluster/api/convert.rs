//! How EtcdCluster `v1alpha1` and `v1` map on each other.

use std::borrow::Cow;

use crate::api::Version;
use crate::api::lens::{Lens, Row, Table, hub_only, list, rename, same};

/// The tables.
pub static LENS: Lens = Lens { spokes: Cow::Borrowed(&[(Version::V1Alpha1, Table::of(V1ALPHA1))]) };

const V1ALPHA1: &[Row] = &[
    rename("/spec/size", "/spec/replicas"),
    same("/spec/version"),
    rename("/spec/storageSize", "/spec/storage/size"),
    rename("/spec/backupSchedule", "/spec/backup/schedule"),
    hub_only("/spec/paused"),
    hub_only("/spec/image"),
    hub_only("/spec/storage"),
    hub_only("/spec/tls"),
    hub_only("/spec/auth"),
    hub_only("/spec/options"),
    hub_only("/spec/pod"),
    hub_only("/spec/clientService"),
    hub_only("/spec/backup"),
    hub_only("/spec/restore"),
    hub_only("/spec/maintenance"),
    hub_only("/spec/deletionProtection"),
    same("/status/observedGeneration"),
    same("/status/conditions"),
    same("/status/replicas"),
    same("/status/readyReplicas"),
    same("/status/selector"),
    list("/status/nodes", "/status/members", MEMBER, None),
    hub_only("/status/clusterID"),
    hub_only("/status/version"),
    hub_only("/status/clusterVersion"),
    hub_only("/status/leader"),
    hub_only("/status/operation"),
    hub_only("/status/replacements"),
    hub_only("/status/backup"),
    hub_only("/status/recovery"),
    hub_only("/status/endpoints"),
];

/// A member: `v1alpha1` shows its name and nothing else.
const MEMBER: &[Row] = &[
    rename("", "/name"),
    hub_only("/id"),
    hub_only("/role"),
    hub_only("/version"),
    hub_only("/healthy"),
    hub_only("/leader"),
    hub_only("/dbSize"),
    hub_only("/dbSizeInUse"),
    hub_only("/raftIndex"),
    hub_only("/defragmentedAt"),
];
