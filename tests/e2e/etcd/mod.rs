//! EtcdClusters of real members, while clients write to them and what they are answered is checked.

mod answers;
mod backup;
mod busy;
mod certificates;
mod cluster;
mod corrupt;
mod downgrade;
mod fault_scenario;
mod full_volume;
mod kill;
mod large;
mod load;
mod logs;
mod owned;
mod rare_paths;
mod recovery;
mod reference_cluster;
mod refused;
pub mod replayed;
mod silent;
mod transitions;
pub mod unattended;
mod users;

use std::time::{Duration, Instant};

use kit::process;
use kit::wait::{PATIENCE, timeout};
use serde_json::{Value, json};

use crate::Test;
use crate::cluster::{Bed, Namespace};
use crate::release::Way;
use cluster::{Etcd, condition};

/// Each has a namespace of its own, and none changes what is deployed. The longest come first: they run side by side.
pub const TESTS: &[Test] = &kit::tests![
    owned::etcd_keeps_its_members_whatever_of_its_objects_is_deleted,
    recovery::etcd_is_brought_back_from_the_member_that_is_left,
    etcd_outlives_the_loss_of_members,
    downgrade::etcd_is_brought_one_minor_down,
    etcd_is_upgraded_member_by_member,
    etcd_grows_and_shrinks,
    load::etcd_is_asked_for_another_count_every_second,
    certificates::etcd_follows_another_authority,
    etcd_of_one_member_is_set_back_too,
    etcd_with_an_image_that_does_not_start_is_set_back,
    refused::etcd_grows_and_is_backed_up_although_its_template_is_refused,
    corrupt::etcd_loses_no_good_member_to_a_corrupt_leader,
    corrupt::etcd_replaces_a_member_that_does_not_start_over_its_data,
    unattended::etcd_that_is_paused_is_reached_by_its_service,
    busy::etcd_grows_although_its_object_is_written_all_the_time,
    users::etcd_takes_the_password_of_root_from_a_secret,
    etcd_stops_and_starts_with_its_data,
    full_volume::etcd_that_has_filled_its_volume_takes_writes_again,
    backup::etcd_is_backed_up_when_asked_and_before_an_upgrade,
    load::etcd_is_asked_for_fewer_while_a_claim_is_pending,
];

/// With operators of their own, while those that are deployed stand aside; each has a namespace of its own as well.
pub const ASIDE: &[&[Test]] = &[
    &kit::tests![
        kill::etcd_outlives_an_operator_that_dies_at_each_kind_of_effect,
        answers::etcd_outlives_an_operator_that_is_answered_otherwise,
        answers::etcd_outlives_an_operator_that_is_answered_in_every_other_way,
        kill::etcd_outlives_an_operator_that_dies_at_every_point,
        kill::etcd_outlives_an_operator_that_loses_the_answer_at_every_point,
        kill::etcd_outlives_an_operator_that_loses_the_answer_to_each_kind_of_effect,
    ],
    rare_paths::TESTS,
    unattended::WITHOUT_AN_OPERATOR,
];

/// Under the deployed operator, of which each takes all that the machine has, measures that, or keeps others from it.
pub const ALONE: &[Test] = &kit::tests![
    transitions::etcd_is_the_same_whatever_way_it_came,
    load::a_cluster_that_hangs_holds_up_no_other,
    silent::etcd_keeps_a_member_that_does_not_answer,
    large::etcd_of_two_gibibytes_is_grown_rolled_and_a_member_replaced,
];

/// After all other tests of etcd.
pub const LAST: Test = (
    "etcd_is_worked_as_its_passes_plan_when_they_are_planned_again",
    replayed::etcd_is_worked_as_its_passes_plan_when_they_are_planned_again,
);

const NEWEST: &str = "3.6.16";

fn etcd_grows_and_shrinks(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-scale");
    let begun = Instant::now();
    let etcd = Etcd::new(&namespace, "Automatic", NEWEST, 1);
    let object = etcd.object().expect("it is there");
    assert_eq!(kit::kstatus::kstatus(&object), "InProgress", "{object}");
    etcd.wait_until_ready();
    etcd.until_settled(1);
    crate::figure(format!("{}: etcd: the first member serves after {:.1?}", way.name(), begun.elapsed()));
    etcd.write();
    for replicas in [3, 5, 3, 1] {
        let begun = Instant::now();
        etcd.scale(replicas);
        etcd.goes_on(100);
        crate::figure(format!("{}: etcd: {replicas} members after {:.1?}", way.name(), begun.elapsed()));
    }
    volumes_grow(&etcd, &namespace);
    let report = etcd.expect_kept(300);
    report.expect_no_outage();
    crate::figure(format!("{}: etcd: grown and shrunk: {report}", way.name()));
    gone_with_its_object(bed, &namespace);
}

/// More is asked for; whether the disk follows is up to its class.
fn volumes_grow(etcd: &Etcd<'_>, namespace: &Namespace<'_>) {
    etcd.change(&json!({"storage": {"size": "2Gi"}}));
    etcd.until(|_| {
        let claim = namespace.get("persistentvolumeclaim/data-main-0")?;
        let asked = &claim["spec"]["resources"]["requests"]["storage"];
        if asked == "2Gi" { Ok(()) } else { Err(format!("it asks for {asked}")) }
    });
}

/// Deletes the only cluster of the namespace: nothing of it is left, for its volumes are to go with it.
fn gone_with_its_object(bed: &Bed, namespace: &Namespace<'_>) {
    gone_within(PATIENCE, bed, namespace);
}

fn gone_within(limit: Duration, bed: &Bed, namespace: &Namespace<'_>) {
    namespace.kubectl(&["delete", "etcdcluster", "main", &timeout(limit)]).ok();
    for resource in ["statefulsets", "pods", "persistentvolumeclaims", "poddisruptionbudgets"] {
        bed.until_gone(resource, &namespace.name);
    }
}

fn etcd_stops_and_starts_with_its_data(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-stop");
    let etcd = Etcd::new(&namespace, "Disabled", NEWEST, 3);
    etcd.until_settled(3);
    owned::what_others_change_is_reverted(&etcd, &namespace, way);
    etcd.put("kept", "yes");
    etcd.scale(0);
    assert!(etcd.pods().is_empty(), "no Pod is left");
    etcd.scale(3);
    assert_eq!(etcd.read("kept").as_deref(), Some("yes"));
    gone_with_its_object(bed, &namespace);
}

fn etcd_is_upgraded_member_by_member(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-upgrade");
    let etcd = Etcd::new(&namespace, "Disabled", "3.5.9", 3);
    etcd.until_settled(3);
    etcd.write();
    for version in ["3.5.33", "3.6.16", "3.7.3"] {
        let begun = Instant::now();
        etcd.change(&json!({"version": version}));
        etcd.until_runs(version);
        etcd.until_settled(3);
        etcd.goes_on(100);
        crate::figure(format!("{}: etcd: {version} after {:.1?}", way.name(), begun.elapsed()));
    }
    let report = etcd.expect_kept(300);
    report.expect_no_outage();
    crate::figure(format!("{}: etcd: upgraded: {report}", way.name()));
    gone_with_its_object(bed, &namespace);
}

fn etcd_outlives_the_loss_of_members(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-loss");
    let etcd = Etcd::new(&namespace, "Disabled", NEWEST, 3);
    etcd.until_settled(3);
    the_leader_hangs(&etcd, &namespace, way);
    etcd.write();
    for ordinal in 0..3 {
        crash(&etcd, &namespace, &format!("main-{ordinal}"));
        etcd.goes_on(50);
    }
    for ordinal in 0..3 {
        delete_pods(&etcd, &namespace, &[&format!("main-{ordinal}")]);
        etcd.goes_on(50);
    }
    delete_pods(&etcd, &namespace, &["main-0", "main-1", "main-2"]);
    etcd.goes_on(50);
    for ordinal in [2, 0] {
        let begun = Instant::now();
        let before = member_id(&etcd, ordinal);
        wipe(&namespace, &[ordinal]);
        etcd.until(|members| {
            let name = format!("main-{ordinal}");
            let members = members.ok_or("no quorum")?.members;
            let now = members.iter().find(|member| member.name == name);
            now.filter(|member| member.id != before && !member.is_learner)
                .map(|_| ())
                .ok_or_else(|| format!("{members:?}"))
        });
        etcd.until_settled(3);
        crate::figure(format!(
            "{}: etcd: a wiped member is replaced after {:.1?}",
            way.name(),
            begun.elapsed()
        ));
    }
    let report = etcd.expect_kept(300);
    crate::figure(format!("{}: etcd: members lost: {report}", way.name()));
    gone_with_its_object(bed, &namespace);
}

/// The leader stands still, connections and all, and later goes on as if nothing had been.
fn the_leader_hangs(etcd: &Etcd<'_>, namespace: &Namespace<'_>, way: Way) {
    etcd.write();
    etcd.goes_on(100);
    let leader = etcd.leader();
    let name = etcd.listed().into_iter().find(|member| member.id == leader).expect("a member").name;
    let processes = namespace.members(&name);
    for process in &processes {
        process::freeze(*process);
    }
    etcd.until(|_| match etcd.leader() {
        now if now == leader || now == 0 => Err(format!("{now:x} leads")),
        _ => Ok(()),
    });
    etcd.goes_on(100);
    processes.into_iter().for_each(process::thaw);
    etcd.until_settled(3);
    etcd.goes_on(100);
    let report = etcd.expect_kept(300);
    crate::figure(format!("{}: etcd: a leader that hangs: {report}", way.name()));
}

/// Kills the member in a Pod, and waits until that has been started once more and the cluster is whole.
fn crash(etcd: &Etcd<'_>, namespace: &Namespace<'_>, pod: &str) {
    let restarts = || {
        let pod = namespace.get(&format!("pod/{pod}"))?;
        Ok::<_, String>((is_ready(&pod), pod["status"]["containerStatuses"][0]["restartCount"].as_u64()))
    };
    let (_, before) = restarts().expect("it is there");
    namespace.members(pod).into_iter().for_each(process::kill);
    // The status may still be the one from before the crash: the Pod cannot.
    etcd.until(|_| match restarts()? {
        (true, now) if now > before => Ok(()),
        now => Err(format!("ready and restarts of {pod}: {now:?}, and restarts before: {before:?}")),
    });
    etcd.until_settled(3);
}

fn is_ready(pod: &Value) -> bool {
    pod["status"]["containerStatuses"][0]["ready"] == true
}

/// Deletes Pods, and waits until others serve in their place.
fn delete_pods(etcd: &Etcd<'_>, namespace: &Namespace<'_>, names: &[&str]) {
    let pod = |name: &str| namespace.get(&format!("pod/{name}"));
    let uid = |pod: &Value| pod["metadata"]["uid"].clone();
    let before: Vec<Value> = names.iter().map(|name| uid(&pod(name).expect("it is there"))).collect();
    let words = [&["delete", "pods", "--wait=false"][..], names].concat();
    namespace.kubectl(&words).ok();
    // The status may still be the one from before the deletion: Pods of other uids cannot.
    etcd.until(|_| {
        let now = names.iter().map(|name| pod(name)).collect::<Result<Vec<_>, _>>()?;
        let serves = |(now, before): (&Value, &Value)| is_ready(now) && uid(now) != *before;
        let count = now.iter().zip(&before).filter(|pair| serves(*pair)).count();
        if count == names.len() {
            Ok(())
        } else {
            Err(format!("{count} of {names:?} are replaced and ready"))
        }
    });
    etcd.until_settled(3);
}

fn member_id(etcd: &Etcd<'_>, ordinal: u32) -> u64 {
    let members = etcd.listed();
    members.iter().find(|member| member.name == format!("main-{ordinal}")).expect("it is a member").id
}

/// Takes away what is on the volumes of members, and kills them, as broken disks would.
fn wipe(namespace: &Namespace<'_>, ordinals: &[u32]) {
    let processes: Vec<_> =
        ordinals.iter().flat_map(|ordinal| namespace.members(&format!("main-{ordinal}"))).collect();
    for id in &processes {
        let volume = std::path::PathBuf::from(format!("/proc/{id}/root/var/lib/etcd"));
        for entry in std::fs::read_dir(&volume).expect("its volume").map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }
                .expect("it goes");
        }
    }
    processes.into_iter().for_each(process::kill);
}

fn etcd_with_an_image_that_does_not_start_is_set_back(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-image");
    let etcd = Etcd::new(&namespace, "Disabled", NEWEST, 3);
    etcd.until_settled(3);
    etcd.write();
    // A patch that no registry has.
    etcd.change(&json!({"version": "3.6.99"}));
    let said = etcd.until(|_| {
        let degraded = condition(&etcd.object()?, "Degraded");
        if degraded["reason"] == "UpgradeStalled" { Ok(degraded) } else { Err(format!("{degraded}")) }
    });
    let broken = etcd.pods().iter().filter(|pod| !is_ready(pod)).count();
    assert_eq!(broken, 1, "one Pod is affected: {said}");
    etcd.change(&json!({"version": NEWEST}));
    etcd.until_settled(3);
    etcd.expect_kept(100);
    gone_with_its_object(bed, &namespace);
}

/// The one member is the quorum, and what cost it is set back all the same.
fn etcd_of_one_member_is_set_back_too(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-image-of-one");
    let etcd = Etcd::new(&namespace, "Disabled", NEWEST, 1);
    etcd.until_settled(1);
    etcd.write();
    etcd.goes_on(100);
    etcd.change(&json!({"version": "3.6.99"}));
    etcd.until_quorum_lost();
    let begun = Instant::now();
    etcd.change(&json!({"version": NEWEST}));
    etcd.until_settled(1);
    etcd.goes_on(100);
    let (taken, report) = (begun.elapsed(), etcd.expect_kept(100));
    crate::figure(format!("{}: etcd: one member is set back after {taken:.1?}: {report}", way.name()));
    the_pod_stays_that_holds_a_claim(&etcd, &namespace);
    gone_with_its_object(bed, &namespace);
}

/// The claim of the only member is deleted. Neither another template nor a stop ends its pod, with which the data go.
fn the_pod_stays_that_holds_a_claim(etcd: &Etcd, namespace: &Namespace<'_>) {
    let pods = recovery::uids(namespace, "pods");
    etcd.write();
    etcd.goes_on(100);
    namespace.kubectl(&["delete", "pvc", "data-main-0", "--wait=false"]).ok();
    for fields in [json!({"pod": {"annotations": {"colour": "blue"}}}), json!({"replicas": 0})] {
        etcd.change(&fields);
        etcd.until(|_| {
            let object = etcd.object()?;
            let is_seen = object["status"]["observedGeneration"] == object["metadata"]["generation"];
            let ready = condition(&object, "Ready");
            if is_seen && ready["reason"] == "ClaimTerminating" { Ok(()) } else { Err(ready.to_string()) }
        });
        etcd.goes_on(100);
        assert_eq!(recovery::uids(namespace, "pods"), pods, "the pod stays: {fields}");
    }
    etcd.expect_kept(300);
}
