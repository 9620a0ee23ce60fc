//! How EtcdCluster `v1alpha1` and `v1` map on each other.

use crate::api::lens::Lens;

/// The table.
pub static LENS: Lens = Lens { rows: &[] };
