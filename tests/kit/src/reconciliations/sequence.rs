//! What must hold from one reconciliation to those after it, of one cluster.

use std::collections::{BTreeMap, BTreeSet};

use gatehouse::kinds::etcdcluster::observation::{ClusterId, Record};

use super::log::Pass;
use super::rules::Rule;

/// What has been recorded so far, by the uid of the cluster.
#[derive(Debug, Default)]
pub struct Courses(BTreeMap<String, Course>);

#[derive(Debug, Default)]
struct Course {
    cluster_id: Option<ClusterId>,
    /// Requests to recover that have come to their end.
    ended: BTreeSet<String>,
}

impl Courses {
    /// How many clusters.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The rules that are broken by what a reconciliation has read, after all that those before it have.
    pub fn go_on(&mut self, pass: &Pass) -> Vec<Rule> {
        let course = self.0.entry(pass.uid.clone()).or_default();
        let Record { cluster_id, recovery, .. } = &pass.seen.record;
        let mut broken = Vec::new();
        if course.cluster_id.is_some() && *cluster_id != course.cluster_id {
            broken.push(Rule::OtherCluster);
        }
        course.cluster_id = *cluster_id;
        if let Some(recovery) = recovery {
            if !recovery.phase.is_active() {
                course.ended.insert(recovery.token.clone());
            } else if course.ended.contains(&recovery.token) {
                broken.push(Rule::RecoveredTwice);
            }
        }
        broken
    }
}
