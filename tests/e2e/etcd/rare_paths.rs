//! An operator that dies, or does not hear an answer, at the effects that clusters seldom have: when a quorum is lost,
//! a database is full, a lower minor is asked for, authentication is enabled, or a backup comes first.

use kit::operator::Fate;
use serde_json::{Value, json};

use super::cluster::{Etcd, NAME, condition};
use super::downgrade::until_agreed;
use super::fault_scenario::{Trial, operated};
use super::{NEWEST, backup, gone_with_its_object, recovery, users, wipe};
use crate::Test;
use crate::cluster::Bed;
use crate::release::Way;

/// Each with both fates.
pub const TESTS: &[Test] = &[
    ("etcd_is_brought_back_by_an_operator_that_dies_at_it", |bed, way| brought_back(bed, way, Fate::Dies)),
    ("etcd_is_brought_back_by_an_operator_that_loses_answers", |bed, way| {
        brought_back(bed, way, Fate::LosesTheAnswer);
    }),
    ("etcd_gets_room_from_an_operator_that_dies_at_it", |bed, way| {
        gets_room(bed, way, ("full", Fate::Dies), BY_MANY);
    }),
    ("etcd_gets_room_from_an_operator_that_loses_answers", |bed, way| {
        gets_room(bed, way, ("full", Fate::LosesTheAnswer), BY_MANY);
    }),
    ("etcd_that_few_large_revisions_fill_gets_room_from_an_operator_that_dies_at_it", |bed, way| {
        gets_room(bed, way, ("large", Fate::Dies), BY_FEW);
    }),
    ("etcd_is_brought_down_by_an_operator_that_dies_at_it", |bed, way| brought_down(bed, way, Fate::Dies)),
    ("etcd_is_brought_down_by_an_operator_that_loses_answers", |bed, way| {
        brought_down(bed, way, Fate::LosesTheAnswer);
    }),
    ("etcd_without_a_writer_is_upgraded_by_an_operator_that_dies_at_it", |bed, way| {
        upgraded_at_rest(bed, way, Fate::Dies);
    }),
    ("etcd_without_a_writer_is_upgraded_by_an_operator_that_loses_answers", |bed, way| {
        upgraded_at_rest(bed, way, Fate::LosesTheAnswer);
    }),
    ("etcd_asks_who_is_there_for_an_operator_that_dies_at_it", |bed, way| asks(bed, way, Fate::Dies)),
    ("etcd_asks_who_is_there_for_an_operator_that_loses_answers", |bed, way| {
        asks(bed, way, Fate::LosesTheAnswer);
    }),
    ("etcd_is_backed_up_by_an_operator_that_dies_at_it", |bed, way| backed_up(bed, way, Fate::Dies)),
    ("etcd_is_backed_up_by_an_operator_that_loses_answers", |bed, way| {
        backed_up(bed, way, Fate::LosesTheAnswer);
    }),
];

/// A cluster as it is asked for at first: `tls.mode`, version, members, and more of its spec.
type Asked<'a> = (&'a str, &'a str, usize, Value);

/// Lets a cluster live through that, whatever becomes of its operator.
fn tried(bed: &Bed, way: Way, (what, fate): (&str, Fate), asked: &Asked<'_>, life: impl FnOnce(&Trial<'_>)) {
    bed.deployed(way);
    let word = if fate == Fate::Dies { "dying" } else { "unheard" };
    let namespace = bed.namespace(&format!("etcd-{what}-{word}"));
    operated(bed, way, &namespace, Fate::Lives, |operator| {
        let (tls, version, replicas, more) = asked;
        let etcd = Etcd::asking(&namespace, tls, version, *replicas, more);
        life(&Trial { bed, way, namespace: &namespace, operator, etcd: &etcd });
        gone_with_its_object(bed, &namespace);
    });
}

fn brought_back(bed: &Bed, way: Way, fate: Fate) {
    const POINTS: [&str; 7] = [
        "write-record",
        "write-config",
        "delete-pod",
        "set-aside-volume",
        "retain-volume",
        "delete-volume",
        "member-add",
    ];
    tried(bed, way, ("back", fate), &("Disabled", NEWEST, 3, json!({})), |trial| {
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
            // An operator that dies counts once more for how long the quorum has been lost.
            for phase in recovery::PHASES {
                recovery::until_phase(etcd, phase);
            }
            etcd.until_settled(3);
        });
        assert_eq!(etcd.hash(report.last), hash, "all that was acknowledged is there, on all voters");
        recovery::set_aside(trial.bed, namespace, &claims);
    });
}

/// What fills a database: its quota, how many keys are written over and over, and how many bytes each holds.
type Filled = (&'static str, usize, usize);

/// So many revisions that those before the last thousand make room.
const BY_MANY: Filled = ("16Mi", 1, 3 << 10);

/// So few revisions that even the last thousand fill it, and history has to be given up step by step.
const BY_FEW: Filled = ("64Mi", 8, 200 << 10);

fn gets_room(bed: &Bed, way: Way, what: (&str, Fate), (quota, keys, bytes): Filled) {
    let options = json!({"options": {"quotaBackendBytes": quota}});
    let fate = what.1;
    tried(bed, way, what, &("Disabled", NEWEST, 1, options), |trial| {
        let etcd = trial.etcd;
        etcd.until_settled(1);
        etcd.put("kept", "yes");
        trial.run(fate, "emptied", &["compact", "defragment", "alarm-disarm"], || {
            etcd.fill(keys, bytes);
            etcd.until(|_| etcd.try_put("after", "yes"));
            etcd.until_settled(1);
        });
        assert_eq!(etcd.read("kept").as_deref(), Some("yes"));
    });
}

fn brought_down(bed: &Bed, way: Way, fate: Fate) {
    tried(bed, way, ("down", fate), &("Disabled", NEWEST, 3, json!({})), |trial| {
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
        let report = etcd.expect_kept(300);
        crate::figure(format!("{}: etcd: down, {fate:?}: {report}", trial.way.name()));
    });
}

/// No client writes, so that the operator has to, before a minor that needs a snapshot of all that was written before.
fn upgraded_at_rest(bed: &Bed, way: Way, fate: Fate) {
    tried(bed, way, ("idle", fate), &("Disabled", NEWEST, 1, json!({})), |trial| {
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

fn asks(bed: &Bed, way: Way, fate: Fate) {
    let auth = json!({"auth": {"enabled": true, "rootSecretRef": {"name": "main-root"}}});
    tried(bed, way, ("auth", fate), &("Automatic", NEWEST, 1, auth), |trial| {
        let Trial { namespace, etcd, .. } = trial;
        let [first, second] = users::PASSWORDS;
        trial.run(fate, "asking", &["auth-enable"], || {
            users::keep(namespace, &json!({"username": "root", "password": first}));
            etcd.until_settled(1);
        });
        etcd.until(|_| etcd.takes(first));
        trial.run(fate, "another password", &["set-root-password"], || {
            users::keep(namespace, &json!({"username": "root", "password": second}));
            etcd.until(|_| etcd.takes(second));
            etcd.until_settled(1);
        });
        etcd.refuses(first);
        etcd.put("kept", "yes");
    });
}

fn backed_up(bed: &Bed, way: Way, fate: Fate) {
    tried(bed, way, ("backed-up", fate), &("Disabled", "3.5.33", 1, json!({})), |trial| {
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
