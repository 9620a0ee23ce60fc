//! What the controllers of all kinds need. Pure.

use super::{etcdcluster, tdset};
use crate::rbac::{Rule, union};

/// In every namespace whose objects are reconciled.
#[must_use]
pub fn rules() -> Vec<Rule> {
    let events = Rule::new("events.k8s.io", &["events"], &["create"])
        .because("Events report what was done for an object.");
    union(tdset::rbac::rules().into_iter().chain(etcdcluster::rbac::rules()).chain([events]))
}

/// In the cluster as a whole.
#[must_use]
pub fn volumes() -> Vec<Rule> {
    etcdcluster::rbac::volumes()
}
