//! A change of a cluster whose operator has something become of it.

use std::collections::BTreeSet;
use std::time::Instant;

use super::cluster::Etcd;
use super::mortal::{Fate, Mortal};
use crate::cluster::{Bed, Namespace};
use crate::kubectl::eventually;
use crate::release::Way;

pub struct Trial<'a> {
    pub bed: &'a Bed,
    pub way: Way,
    pub namespace: &'a Namespace<'a>,
    pub operator: &'a Mortal,
    pub etcd: &'a Etcd<'a>,
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
        self.bed.say(format!("{}: etcd: {what} in {taken:.1?}: {fate:?} {count} times", self.way.name()));
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

    /// A volume and a Pod for each member, and no other.
    pub fn is_tidy(&self) {
        let members = self.etcd.members().expect("a quorum").members;
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
