//! Two clusters that are asked for the same, of which nothing else becomes of one: what is made of both has to be
//! alike, as [`kit::chains::compare`] has it.

use std::collections::BTreeMap;

use kit::chains::compare::{KINDS, differences, snapshot};
use kit::wait::eventually;
use serde_json::Value;

use super::cluster::Etcd;
use crate::cluster::Namespace;

/// What is to be read of a cluster: no two of one namespace have the same labels.
pub const LABELS: &str = "app.kubernetes.io/instance=main";

pub struct Twin<'a> {
    /// Of which something becomes.
    pub one: (&'a Namespace<'a>, &'a Etcd<'a>),
    /// And of which nothing does.
    pub other: (&'a Namespace<'a>, &'a Etcd<'a>),
}

impl Twin<'_> {
    /// Waits until both are as they are asked for.
    #[track_caller]
    pub fn until_settled(&self, replicas: usize) {
        self.one.1.until_settled(replicas);
        self.other.1.until_settled(replicas);
    }

    /// The same is made of both.
    #[track_caller]
    pub fn is_alike(&self, what: &str) {
        eventually(|| {
            let [one, other] = [self.one, self.other].map(|(namespace, etcd)| made(namespace, etcd));
            let found = differences(&one, &other);
            if found.is_empty() { Ok(()) } else { Err(format!("{what}, they are not alike: {found:#?}")) }
        });
    }
}

/// All that there is of a cluster, as others of its spec are.
pub fn made(namespace: &Namespace<'_>, etcd: &Etcd<'_>) -> BTreeMap<String, Value> {
    let objects = KINDS.iter().map(|kind| (*kind, namespace.list(kind, LABELS))).collect();
    snapshot(&etcd.object().expect("it is there"), &objects)
}
