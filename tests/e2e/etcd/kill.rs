//! An operator that is killed wherever it is about to do something, and wherever it has done something.

use std::time::Instant;

use kit::operator::Fate;
use serde_json::json;

use super::cluster::Etcd;
use super::fault_scenario::{Trial, operated};
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
const UPGRADE: [&str; 4] = ["write-record", "apply-stateful-set", "write-config", "delete-pod"];
const SHRINK: [&str; 6] = [
    "write-record",
    "apply-stateful-set",
    "withdraw-config",
    "apply-budget",
    "member-remove",
    "delete-volume",
];

/// What the life of a small cluster is made of, from its first object to its last. Entries are appended besides, where
/// the writer has not done it.
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

/// A cluster is made, grown, upgraded, given more room, shrunk and deleted by an operator that dies before and after
/// the first effect of each kind.
pub fn etcd_outlives_an_operator_that_dies_at_each_kind_of_effect(bed: &Bed, way: Way) {
    life(bed, way, "etcd-dying", Fate::Dies);
}

/// The same by one that does not hear that the first effect of each kind was done.
pub fn etcd_outlives_an_operator_that_loses_the_answer_to_each_kind_of_effect(bed: &Bed, way: Way) {
    life(bed, way, "etcd-unheard", Fate::LosesTheAnswer);
}

fn life(bed: &Bed, way: Way, name: &str, fate: Fate) {
    bed.deployed(way);
    let namespace = bed.namespace(name);
    operated(bed, way, &namespace, fate, |operator| {
        let etcd = Etcd::new(&namespace, "Disabled", NEWEST, 1);
        etcd.until_settled(1);
        etcd.write();
        let trial = Trial { bed, way, namespace: &namespace, operator, etcd: &etcd };
        let begun = Instant::now();
        let report = trial.lives();
        let (taken, count) = (begun.elapsed(), operator.met().len());
        crate::figure(format!(
            "{}: etcd: a life in {taken:.1?}: {fate:?} {count} times: {report}",
            way.name()
        ));
        trial.met_all(fate, "lived", &LIFE);
    });
}

/// Each change of three members with an operator that dies at each of its points.
pub fn etcd_outlives_an_operator_that_dies_at_every_point(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-dying-often");
    operated(bed, way, &namespace, Fate::Dies, |operator| {
        let etcd = Etcd::new(&namespace, "Disabled", "3.5.33", 1);
        etcd.until_settled(1);
        etcd.write();
        let trial = Trial { bed, way, namespace: &namespace, operator, etcd: &etcd };
        trial.run(Fate::Dies, "grown", &GROWTH, || scale(&etcd, 3));
        trial.run(Fate::Dies, "upgraded", &UPGRADE, || {
            etcd.change(&json!({"version": "3.6.16"}));
            etcd.until_runs("3.6.16");
            etcd.until_settled(3);
            etcd.goes_on(100);
        });
        trial.run(Fate::Dies, "shrunk", &SHRINK, || scale(&etcd, 1));
        over(&trial, "dies everywhere");
    });
}

/// The same growth and shrinking with one that loses each answer.
pub fn etcd_outlives_an_operator_that_loses_the_answer_at_every_point(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-unheard-often");
    operated(bed, way, &namespace, Fate::LosesTheAnswer, |operator| {
        let etcd = Etcd::new(&namespace, "Disabled", NEWEST, 1);
        etcd.until_settled(1);
        etcd.write();
        let trial = Trial { bed, way, namespace: &namespace, operator, etcd: &etcd };
        trial.run(Fate::LosesTheAnswer, "grown", &GROWTH, || scale(&etcd, 3));
        assert_eq!(etcd.seen().len(), 3, "a member whose addition was not heard of is taken");
        trial.run(Fate::LosesTheAnswer, "shrunk", &SHRINK, || scale(&etcd, 1));
        over(&trial, "loses every answer");
    });
}

fn scale(etcd: &Etcd<'_>, replicas: usize) {
    etcd.scale(replicas);
    etcd.goes_on(100);
}

fn over(trial: &Trial<'_>, operator: &str) {
    let report = trial.etcd.expect_kept(300);
    crate::figure(format!("{}: etcd: with an operator that {operator}: {report}", trial.way.name()));
    gone_with_its_object(trial.bed, trial.namespace);
}
