//! What working the objects of all kinds needs. Pure.

use super::{etcdcluster, tdset};
use crate::rights::Rule;

/// In every namespace whose objects are worked.
#[must_use]
pub fn rules() -> Vec<Rule> {
    let mut rules = tdset::rights::rules();
    rules.extend(etcdcluster::rights::rules());
    rules.push(
        Rule::new("events.k8s.io", &["events"], &["create"])
            .because("What was done for an object is told in events of it."),
    );
    rules
}

/// In the cluster as a whole.
#[must_use]
pub fn volumes() -> Vec<Rule> {
    etcdcluster::rights::volumes()
}
