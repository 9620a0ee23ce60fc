//! Facts that only a member's metrics have. Pure.
//!
//! Source of the names: `server/etcdserver/api/membership/metrics.go`, `server/etcdserver/api/snap/metrics.go` and
//! `server/storage/metrics.go` of etcd; the same from 3.5 to 3.7.

use crate::kinds::etcdcluster::api::versions;
use crate::kinds::etcdcluster::observation::{Fact, Minor};

/// The version that the members agreed on: 1 for the one that is so.
const CLUSTER_VERSION: &str = "etcd_cluster_version{cluster_version=\"";

/// Snapshots that this process has synced to its disk.
const SNAPSHOTS: &str = "etcd_snap_fsync_duration_seconds_count ";

/// Size in bytes that the database may grow to.
const QUOTA: &str = "etcd_server_quota_backend_bytes ";

/// The facts in a page of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// The version that the members agreed on, as this one knows it.
    pub cluster_version: Option<Minor>,
    /// Snapshots that this process has saved on disk.
    pub snapshots: Fact<u64>,
    /// Largest size of the database in bytes.
    pub quota: Option<u64>,
}

impl Metrics {
    /// Where there is no page.
    pub const UNKNOWN: Self = Self { cluster_version: None, snapshots: Fact::Unknown, quota: None };

    /// Reads a page.
    pub fn of(page: &str) -> Self {
        let value = |name: &str| page.lines().find_map(|line| number(line.strip_prefix(name)?));
        Self {
            cluster_version: page.lines().find_map(agreed),
            snapshots: value(SNAPSHOTS).map_or(Fact::Unknown, Fact::Known),
            quota: value(QUOTA).filter(|quota| *quota > 0),
        }
    }
}

fn agreed(line: &str) -> Option<Minor> {
    let (version, value) = line.strip_prefix(CLUSTER_VERSION)?.split_once("\"}")?;
    let version = versions::parse_reported(version)?;
    (number(value) == Some(1)).then_some(version.minor)
}

/// A whole number, as Go prints one that is kept as a float: `2.147483648e+09`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts and sizes, far below where a float has gaps, and a negative one is filtered out"
)]
fn number(text: &str) -> Option<u64> {
    let number: f64 = text.trim().parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_api_does_not_tell_is_read_from_the_page() {
        let page = "# TYPE etcd_cluster_version gauge\n\
                    etcd_cluster_version{cluster_version=\"3.5\"} 0\n\
                    etcd_cluster_version{cluster_version=\"3.6\"} 1\n\
                    etcd_server_quota_backend_bytes 2.147483648e+09\n\
                    etcd_snap_fsync_duration_seconds_bucket{le=\"+Inf\"} 3\n\
                    etcd_snap_fsync_duration_seconds_count 3\n";
        let expected = Metrics { cluster_version: Some(6), snapshots: Fact::Known(3), quota: Some(2 << 30) };
        assert_eq!(Metrics::of(page), expected);
        assert_eq!(Metrics::of("etcd_snap_fsync_duration_seconds_count 0").snapshots, Fact::Known(0));
        assert_eq!(Metrics::of(""), Metrics::UNKNOWN);
    }
}
