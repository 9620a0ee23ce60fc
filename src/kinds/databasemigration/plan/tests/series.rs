//! Several objects with one series.

use super::*;
use crate::kinds::databasemigration::observation::Peer;

fn peer(since: &str, uid: &str, name: &str) -> Peer {
    Peer { since: Some(since.parse().unwrap()), uid: uid.to_owned(), name: name.to_owned() }
}

/// An object of noon.
pub(super) fn cluster() -> Cluster {
    Cluster::new(&json!({"metadata": {"creationTimestamp": "2026-11-24T12:00:00Z"}}))
}

/// One of the same series that was created a second before.
pub(super) fn older() -> Peer {
    peer("2026-11-24T11:59:59Z", "u9", "first")
}

#[test]
fn the_oldest_goes_on_and_no_other() {
    let noon = "2026-11-24T12:00:00Z";
    for younger in [peer("2026-11-24T12:00:01Z", "u0", "b"), peer(noon, "u2", "b")] {
        let mut cluster = cluster();
        cluster.observed.peers = vec![younger];
        is(&cluster.settle(), Phase::Running, "False", "Running");
    }
    for first in [older(), peer(noon, "u0", "first")] {
        let mut cluster = cluster();
        cluster.observed.peers = vec![peer(noon, "u00", "second"), first];
        let plan = cluster.settle();
        is(&plan, Phase::Blocked, "False", "OtherMigration");
        assert!(ready(&plan).2.starts_with("DatabaseMigration first is older"), "{:?}", ready(&plan));
        assert!(cluster.created.is_empty());
        cluster.observed.peers.clear();
        is(&cluster.settle(), Phase::Running, "False", "Running");
    }
}

#[test]
fn a_run_is_followed_to_its_end_and_nothing_holds_up_a_deletion() {
    let mut cluster = cluster();
    cluster.settle();
    cluster.observed.peers = vec![older()];
    is(&cluster.settle(), Phase::Running, "False", "Running");
    let plan = cluster.end_as(|_| ());
    is(&plan, Phase::Blocked, "False", "OtherMigration");
    assert_eq!(plan.status.applied_count, Some(2), "what the run told is kept");
    cluster
        .edit(&json!({"metadata": {"deletionTimestamp": "2026-11-24T12:00:00Z", "finalizers": [FINALIZER]}}));
    cluster.step(usize::MAX);
    assert_eq!((cluster.created.len(), &cluster.object.metadata.finalizers), (1, &None));
}
