//! An operator that is killed wherever it is about to do something, and wherever it has done something.

use std::time::Instant;

use serde_json::json;

use super::cluster::Etcd;
use super::mortal::{Fate, Mortal};
use super::trial::Trial;
use super::{NEWEST, gone_with_its_object};
use crate::cluster::Bed;
use crate::release::Way;

/// Where an operator is killed in each change, or loses an answer: before and after each of these.
const GROWTH: [&str; 7] = [
    "write-record",
    "apply-stateful-set",
    "write-config",
    "apply-budget",
    "member-add",
    "member-promote",
    "label-pod",
];
const UPGRADE: [&str; 5] = ["write-record", "apply-stateful-set", "write-config", "delete-pod", "label-pod"];
const SHRINK: [&str; 6] = [
    "write-record",
    "apply-stateful-set",
    "withdraw-config",
    "apply-budget",
    "member-remove",
    "delete-volume",
];

/// What the life of a small cluster is made of, from its first object to its last. Entries are appended besides, where the
/// writer has not done it.
const LIFE: [&str; 16] = [
    "add-finalizer",
    "apply-services",
    "apply-stateful-set",
    "write-record",
    "write-config",
    "label-pod",
    "apply-budget",
    "member-add",
    "member-promote",
    "delete-pod",
    "move-leader",
    "resize-volume",
    "member-remove",
    "delete-volume",
    "withdraw-config",
    "remove-finalizer",
];

/// A cluster is made, grown, upgraded, given more room, shrunk and deleted by an operator that dies before and after the
/// first effect of each kind.
pub fn etcd_outlives_an_operator_that_dies_at_each_kind_of_effect(bed: &Bed, way: Way) {
    life(bed, way, "etcd-dying", Fate::Dies);
}

/// The same by one that does not hear that the first effect of each kind was done.
pub fn etcd_outlives_an_operator_that_loses_the_answer_to_each_kind_of_effect(bed: &Bed, way: Way) {
    life(bed, way, "etcd-unheard", Fate::LosesTheAnswer);
}

fn life(bed: &Bed, way: Way, name: &str, fate: Fate) {
    bed.deployed(way);
    let _aside = bed.stand_aside();
    let namespace = bed.namespace(name);
    let operator = Mortal::start(bed, &namespace, fate);
    let etcd = Etcd::new(&namespace, "Disabled", NEWEST, 1);
    etcd.until_settled(1);
    etcd.write();
    let trial = Trial { bed, way, namespace: &namespace, operator: &operator, etcd: &etcd };
    let begun = Instant::now();
    let report = trial.lives();
    let (taken, count) = (begun.elapsed(), operator.met().len());
    bed.say(format!("{}: etcd: a life in {taken:.1?}: {fate:?} {count} times: {report}", way.name()));
    trial.met_all(fate, "lived", &LIFE);
}

/// One after the other: each change with an operator that dies at each of its points, then with one that loses each
/// answer.
pub fn etcd_outlives_an_operator_that_dies_at_every_point(bed: &Bed, way: Way) {
    bed.deployed(way);
    let _aside = bed.stand_aside();
    let namespace = bed.namespace("etcd-mortal");
    let operator = Mortal::start(bed, &namespace, Fate::Dies);
    let etcd = Etcd::new(&namespace, "Disabled", "3.5.33", 1);
    etcd.until_settled(1);
    etcd.write();
    let trial = Trial { bed, way, namespace: &namespace, operator: &operator, etcd: &etcd };
    let scale = |replicas| {
        etcd.scale(replicas);
        etcd.goes_on(100);
    };
    trial.run(Fate::Dies, "grown", &GROWTH, || scale(3));
    trial.run(Fate::Dies, "upgraded", &UPGRADE, || {
        etcd.change(&json!({"version": "3.6.16"}));
        etcd.until_runs("3.6.16");
        etcd.until_settled(3);
        etcd.goes_on(100);
    });
    trial.run(Fate::Dies, "shrunk", &SHRINK, || scale(1));
    let known = etcd.seen();
    trial.run(Fate::LosesTheAnswer, "grown", &GROWTH, || scale(3));
    assert_eq!(
        etcd.seen().difference(&known).count(),
        2,
        "a member whose addition was not heard of is taken"
    );
    trial.run(Fate::LosesTheAnswer, "shrunk", &SHRINK, || scale(1));
    let report = etcd.expect_kept(1000);
    bed.say(format!("{}: etcd: with an operator that dies everywhere: {report}", way.name()));
    gone_with_its_object(bed, &namespace);
}
