//! An operator that dies, or does not hear an answer, at the effects that clusters seldom have: when a quorum is lost, a
//! database is full, a lower minor is asked for, etcd is to ask who is there, or a backup comes first.

use serde_json::{Value, json};

use super::cluster::{Etcd, NAME, condition};
use super::downgrade::until_agreed;
use super::mortal::{Fate, Mortal};
use super::trial::Trial;
use super::{NEWEST, backup, gone_with_its_object, recovery, users, wipe};
use crate::cluster::Bed;
use crate::release::Way;

/// One after the other, each over a cluster of its own.
const FATES: [(Fate, &str); 2] = [(Fate::Dies, "dying"), (Fate::LosesTheAnswer, "unheard")];

/// A cluster as it is asked for at first: `tls.mode`, version, members, and more of its spec.
type Asked<'a> = (&'a str, &'a str, usize, Value);

/// Lets a cluster live through that, whatever becomes of its operator.
fn trials(bed: &Bed, way: Way, what: &str, asked: &Asked<'_>, life: impl Fn(&Trial<'_>, Fate)) {
    bed.deployed(way);
    let _aside = bed.stand_aside();
    for (fate, word) in FATES {
        let namespace = bed.namespace(&format!("etcd-{what}-{word}"));
        let operator = Mortal::start(bed, &namespace, Fate::Lives);
        let (tls, version, replicas, more) = asked;
        let etcd = Etcd::asking(&namespace, tls, version, *replicas, more);
        life(&Trial { bed, way, namespace: &namespace, operator: &operator, etcd: &etcd }, fate);
        gone_with_its_object(bed, &namespace);
    }
}

pub fn etcd_is_brought_back_by_an_operator_that_dies_at_it(bed: &Bed, way: Way) {
    const POINTS: [&str; 6] =
        ["write-record", "write-config", "delete-pod", "retain-volume", "delete-volume", "member-add"];
    trials(bed, way, "back", &("Disabled", NEWEST, 3, json!({})), |trial, fate| {
        let Trial { namespace, etcd, .. } = trial;
        etcd.until_settled(3);
        etcd.write();
        etcd.goes_on(300);
        let report = etcd.expect_kept(300);
        let hash = etcd.hash(report.last);
        let claims = recovery::uids(namespace, "persistentvolumeclaims");
        trial.run(fate, "brought back", &POINTS, || {
            wipe(namespace, &[1, 2]);
            etcd.until_quorum_lost();
            recovery::annotate(namespace, "main-0").ok();
            etcd.until(|_| {
                let recovery = etcd.object()?["status"]["recovery"].clone();
                if recovery["phase"] == "Done" { Ok(()) } else { Err(recovery.to_string()) }
            });
            etcd.until_settled(3);
        });
        assert_eq!(etcd.hash(report.last), hash, "all that was acknowledged is there, on all voters");
        recovery::set_aside(trial.bed, namespace, &claims);
    });
}

pub fn etcd_gets_room_from_an_operator_that_dies_at_it(bed: &Bed, way: Way) {
    let options = json!({"options": {"quotaBackendBytes": "16Mi"}});
    trials(bed, way, "full", &("Disabled", NEWEST, 1, options), |trial, fate| {
        let etcd = trial.etcd;
        etcd.until_settled(1);
        etcd.put("kept", "yes");
        trial.run(fate, "emptied", &["compact", "defragment", "alarm-disarm"], || {
            etcd.fill();
            etcd.until(|_| etcd.try_put("after", "yes"));
            etcd.until_settled(1);
        });
        assert_eq!(etcd.read("kept").as_deref(), Some("yes"));
    });
}

pub fn etcd_is_brought_down_by_an_operator_that_dies_at_it(bed: &Bed, way: Way) {
    trials(bed, way, "down", &("Disabled", NEWEST, 3, json!({})), |trial, fate| {
        let etcd = trial.etcd;
        etcd.until_settled(3);
        etcd.write();
        trial
            .namespace
            .kubectl(&["annotate", "etcdcluster", NAME, "gatehouse.dev/allow-downgrade=true"])
            .ok();
        trial.run(fate, "turned round", &["downgrade-enable", "downgrade-cancel"], || {
            etcd.change(&json!({"version": "3.5.33"}));
            etcd.until(|_| {
                let met = trial.operator.met();
                let is_allowed = met.iter().any(|point| point == "downgrade-enable.after");
                if is_allowed { Ok(()) } else { Err(format!("{met:?}")) }
            });
            etcd.change(&json!({"version": NEWEST}));
            until_agreed(etcd, NEWEST, "3.6");
        });
        trial.run(fate, "brought down", &["downgrade-enable", "write-config", "delete-pod"], || {
            etcd.change(&json!({"version": "3.5.33"}));
            until_agreed(etcd, "3.5.33", "3.5");
        });
        let report = etcd.expect_kept(500);
        trial.bed.say(format!("{}: etcd: down, {fate:?}: {report}", trial.way.name()));
    });
}

/// Nobody writes, so that it has to, before a minor that needs a snapshot of all that was written before.
pub fn etcd_that_nobody_writes_to_is_upgraded_by_an_operator_that_dies_at_it(bed: &Bed, way: Way) {
    trials(bed, way, "idle", &("Disabled", NEWEST, 1, json!({})), |trial, fate| {
        let etcd = trial.etcd;
        etcd.until_settled(1);
        etcd.put("kept", "yes");
        trial.run(fate, "upgraded", &["append-entries", "delete-pod"], || {
            etcd.change(&json!({"version": "3.7.3"}));
            etcd.until_runs("3.7.3");
            etcd.until_settled(1);
        });
        assert_eq!(etcd.read("kept").as_deref(), Some("yes"));
    });
}

pub fn etcd_asks_who_is_there_for_an_operator_that_dies_at_it(bed: &Bed, way: Way) {
    let auth = json!({"auth": {"enabled": true, "rootSecret": "main-root"}});
    trials(bed, way, "auth", &("Automatic", NEWEST, 1, auth), |trial, fate| {
        let Trial { namespace, etcd, .. } = trial;
        let [first, second] = users::PASSWORDS;
        trial.run(fate, "asking", &["auth-enable"], || {
            users::keep(namespace, &json!({"username": "root", "password": first}));
            etcd.until_settled(1);
        });
        etcd.takes(first).expect("its password");
        trial.run(fate, "another password", &["set-root-password"], || {
            users::keep(namespace, &json!({"username": "root", "password": second}));
            etcd.until(|_| etcd.takes(second));
            etcd.until_settled(1);
        });
        etcd.takes(first).expect_err("the one of before");
        etcd.put("kept", "yes");
    });
}

pub fn etcd_is_backed_up_by_an_operator_that_dies_at_it(bed: &Bed, way: Way) {
    trials(bed, way, "backed-up", &("Disabled", "3.5.33", 1, json!({})), |trial, fate| {
        let Trial { namespace, etcd, .. } = trial;
        etcd.until_settled(1);
        etcd.put("kept", "yes");
        backup::claim(namespace);
        trial.acts(fate, "backed up and upgraded", &["apply-backup-schedule", "start-backup"], || {
            let destination = json!({"persistentVolumeClaim": {"claimName": backup::CLAIM}});
            etcd.change(&json!({"version": NEWEST, "backup": {"destination": destination}}));
            etcd.until_runs(NEWEST);
            etcd.until_settled(1);
        });
        assert_eq!(trial.bed.list("jobs", &namespace.name).len(), 1, "one backup is taken");
        let object = etcd.object().expect("it is there");
        assert_eq!(condition(&object, "BackupReady")["reason"], "BackupVerified", "{}", object["status"]);
        assert_eq!(etcd.read("kept").as_deref(), Some("yes"));
        // It goes with the last Pod that has mounted it.
        namespace.kubectl(&["delete", "persistentvolumeclaim", backup::CLAIM, "--wait=false"]).ok();
    });
}
