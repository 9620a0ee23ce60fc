//! A change of a cluster whose operator dies, loses an answer or is answered otherwise meanwhile.
//!
//! Guarantees: what such an operator logs of its passes is planned again and held against the rules when its test is
//! over.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use kit::operator::{Fate, Operator, Post};
use kit::wait::eventually;
use serde_json::json;

use super::cluster::Etcd;
use super::{gone_with_its_object, replayed};
use crate::cluster::{Bed, Namespace};
use crate::release::Way;

pub struct Trial<'a> {
    pub bed: &'a Bed,
    pub way: Way,
    pub namespace: &'a Namespace<'a>,
    pub operator: &'a Operator,
    pub etcd: &'a Etcd<'a>,
}

/// Has an operator with that fate work a namespace during a test, while those that are deployed stand aside. It is a
/// process beside the cluster: what is deployed has no points at which it could die.
pub fn operated<T>(
    bed: &Bed,
    way: Way,
    namespace: &Namespace<'_>,
    fate: Fate,
    test: impl FnOnce(&Operator) -> T,
) -> T {
    // A build with fail points: the one of `cargo build`, or the one that a variable names.
    let program =
        std::env::var_os("GATEHOUSE_MORTAL").map_or_else(|| kit::gatehouse!().to_owned(), PathBuf::from);
    let post = Post {
        program,
        kubeconfig: bed.cluster.kubeconfig().to_owned(),
        namespace: namespace.name.clone(),
        home: "default".to_owned(),
        folder: bed.operators().join(&namespace.name),
        variables: vec![("GATEHOUSE_LOG", replayed::FILTER.to_owned())],
    };
    let log = post.log();
    let aside = bed.stand_aside();
    let operator = Operator::start(post, fate);
    let found = test(&operator);
    drop(operator);
    drop(aside);
    let logged = fs::read(log).expect("a log");
    let report = replayed::again(way, &[String::from_utf8_lossy(&logged).into_owned()]);
    assert!(report.clusters > 0, "no pass is logged in {}: {report}", namespace.name);
    found
}

impl Trial<'_> {
    /// A change comes to its end, and leaves nothing behind, although that becomes of the operator at each point.
    pub fn run(&self, fate: Fate, what: &str, points: &[&str], change: impl FnOnce()) {
        self.acts(fate, what, points, change);
        self.is_tidy();
    }

    /// The same, where more than members is left.
    pub fn acts(&self, fate: Fate, what: &str, points: &[&str], change: impl FnOnce()) {
        self.operator.meets(fate);
        let begun = Instant::now();
        change();
        let (taken, count) = (begun.elapsed(), self.operator.met().len());
        crate::figure(format!("{}: etcd: {what} in {taken:.1?}: {fate:?} {count} times", self.way.name()));
        self.met_all(fate, what, points);
    }

    /// It came to each of these: before and after, where it dies.
    pub fn met_all(&self, fate: Fate, what: &str, points: &[&str]) {
        let moments: &[&str] = if fate == Fate::Dies { &["before", "after"] } else { &["after"] };
        eventually(|| {
            let met = self.operator.met();
            let all =
                points.iter().flat_map(|point| moments.iter().map(move |moment| format!("{point}.{moment}")));
            let missed: Vec<_> = all.filter(|point| !met.contains(point)).collect();
            if missed.is_empty() { Ok(()) } else { Err(format!("{what}, and never at {missed:?}: {met:?}")) }
        });
    }

    /// A cluster of one member, which is written to, is grown, upgraded, given more room, shrunk and deleted. What its
    /// clients were answered.
    pub fn lives(&self) -> String {
        let etcd = self.etcd;
        etcd.scale(2);
        etcd.change(&json!({"version": "3.7.3"}));
        etcd.until_runs("3.7.3");
        etcd.until_settled(2);
        etcd.change(&json!({"storage": {"size": "2Gi"}}));
        etcd.scale(1);
        etcd.goes_on(100);
        self.is_tidy();
        assert_eq!(etcd.seen().len(), 2, "no member is added twice");
        let report = etcd.expect_kept(300);
        gone_with_its_object(self.bed, self.namespace);
        report.to_string()
    }

    /// A volume and a Pod for each member, and no other.
    pub fn is_tidy(&self) {
        let members = self.etcd.listed();
        let wanted: BTreeSet<_> = members.iter().map(|member| member.name.clone()).collect();
        eventually(|| {
            for (resource, prefix) in [("persistentvolumeclaims", "data-"), ("pods", "")] {
                let found = self.bed.list(resource, &self.namespace.name);
                let names =
                    found.iter().map(|object| object["metadata"]["name"].as_str().unwrap_or_default());
                let names: BTreeSet<_> =
                    names.map(|name| name.strip_prefix(prefix).unwrap_or(name).to_owned()).collect();
                if names != wanted {
                    return Err(format!("{resource} {names:?} for the members {wanted:?}"));
                }
            }
            Ok(())
        });
    }
}
