//! Backups to a volume: before an upgrade, when a person asks, and what can be made of them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use gatehouse::kinds::etcdcluster::etcd::{Client, Limits};
use kit::call::Call;
use kit::etcd::{Calls as _, Range};
use kit::wait::{PATIENCE, eventually, timeout};
use serde_json::{Value, json};
use testbed::{EtcdBed, EtcdState, EtcdVersion};

use super::cluster::{Etcd, NAME, condition};
use super::gone_with_its_object;
use crate::cluster::{BUSYBOX, Bed, Namespace};
use crate::release::Way;

/// The claim that backups go to.
pub const CLAIM: &str = "backups";

/// The Pod that shows what is there.
const READER: &str = "reader";

/// The Job before the upgrade.
const BEFORE: &str = "main-backup-3-6-16";

pub fn etcd_is_backed_up_when_asked_and_before_an_upgrade(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-backup");
    let etcd = Etcd::new(&namespace, "Automatic", "3.5.33", 1);
    etcd.until_settled(1);
    etcd.put("kept", "yes");
    let backup = json!({
        "destination": {"persistentVolumeClaim": {"claimName": CLAIM}}, "retention": {"keepLast": 1},
    });
    etcd.change(&json!({"version": "3.6.16", "backup": backup}));
    let first = before_the_upgrade(&etcd, &namespace, way);

    let second = when_asked(&etcd, &namespace);
    assert_ne!(first["name"], second["name"]);
    let folder = folder(bed, &namespace);
    assert_eq!(manifests(&folder), 1, "{}", folder.display());
    let name = second["name"].as_str().expect("a name");
    restored(&folder.join(name), second["size"].as_u64().expect("a size"));

    etcd.change(&json!({"backup": {"schedule": "0 2 * * *", "timeZone": "Europe/Berlin"}}));
    let spec =
        |namespace: &Namespace<'_>| Ok::<_, String>(namespace.get("cronjob/main-backup")?["spec"].clone());
    etcd.until(|_| {
        let spec = spec(&namespace)?;
        let is_scheduled = spec["suspend"] == false && spec["schedule"] == "0 2 * * *";
        if is_scheduled { Ok(()) } else { Err(format!("{spec}")) }
    });
    follows_a_destination_that_is_not_there(&etcd);
    etcd.change(&json!({"backup": null}));
    etcd.until(|_| match namespace.get("cronjob/main-backup") {
        Ok(found) => Err(format!("it is there: {}", found["metadata"])),
        Err(_) => Ok(()),
    });
    assert_eq!(etcd.object().expect("it is there")["status"]["backup"]["lastSuccess"], second);
    assert_eq!(manifests(&folder), 1, "what was taken stays");
    namespace.kubectl(&["delete", "pod", READER]).ok();
    // It goes with the last Pod that has mounted it, of the Job before the upgrade, which goes with the object.
    namespace.kubectl(&["delete", "persistentvolumeclaim", CLAIM, "--wait=false"]).ok();
    gone_with_its_object(bed, &namespace);
}

/// Makes the claim that backups go to.
pub fn claim(namespace: &Namespace<'_>) {
    namespace.apply(&json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": CLAIM},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }));
}

/// The upgrade waits for its backup, which waits for its claim; what is said of it in the end.
fn before_the_upgrade(etcd: &Etcd<'_>, namespace: &Namespace<'_>, way: Way) -> Value {
    etcd.until(|_| {
        let said = condition(&etcd.object()?, "Progressing");
        let message = said["message"].as_str().unwrap_or_default();
        let waits = said["reason"] == "Upgrading" && message.contains(&format!("Job {BEFORE} takes it"));
        if waits { Ok(()) } else { Err(format!("{said}")) }
    });
    let image = |pod: &Value| pod["spec"]["containers"][0]["image"].as_str().unwrap_or_default().to_owned();
    let images = || {
        let pods = etcd.pods();
        let of_members = pods.iter().filter(|pod| pod["metadata"]["name"] == format!("{NAME}-0"));
        of_members.map(image).collect::<Vec<_>>()
    };
    assert!(images().iter().all(|image| image.ends_with(":v3.5.33")), "{:?}", images());
    until_told(etcd);
    let begun = Instant::now();
    claim(namespace);
    let is_complete = || {
        let job = namespace.get(&format!("job/{BEFORE}"));
        job.is_ok_and(|job| job["status"]["succeeded"] == 1)
    };
    etcd.until(|_| {
        let upgraded = images().iter().any(|image| image.ends_with(":v3.6.16"));
        assert!(!upgraded || is_complete(), "a member was upgraded before there was a backup");
        if upgraded { Ok(()) } else { Err("the member runs what it ran".to_owned()) }
    });
    etcd.until_runs("3.6.16");
    etcd.until_settled(1);
    crate::figure(format!("{}: etcd: backed up and upgraded after {:.1?}", way.name(), begun.elapsed()));
    assert_eq!(etcd.read("kept").as_deref(), Some("yes"));
    let object = etcd.object().expect("it is there");
    let ready = condition(&object, "BackupReady");
    assert_eq!((&ready["status"], &ready["reason"]), (&json!("True"), &json!("BackupVerified")), "{ready}");
    object["status"]["backup"]["lastSuccess"].clone()
}

/// Waits until the status says that the destination is not there.
fn until_told(etcd: &Etcd<'_>) {
    let asked = Instant::now();
    let told = until_backup_is(etcd, "BackupDestinationUnavailable");
    assert_eq!(told["status"], "False", "{told}");
    crate::figure(format!(
        "etcd: a destination that is not there is in the status after {:.1?}",
        asked.elapsed()
    ));
}

fn until_backup_is(etcd: &Etcd<'_>, reason: &str) -> Value {
    etcd.until(|_| {
        let said = condition(&etcd.object()?, "BackupReady");
        if said["reason"] == reason { Ok(said) } else { Err(format!("{said}")) }
    })
}

/// Backups are to go where no claim is, after one that was verified, and then where they went before.
fn follows_a_destination_that_is_not_there(etcd: &Etcd<'_>) {
    let goes_to = |claim: &str| {
        etcd.change(&json!({"backup": {"destination": {"persistentVolumeClaim": {"claimName": claim}}}}));
    };
    until_backup_is(etcd, "BackupVerified");
    goes_to("elsewhere");
    until_told(etcd);
    goes_to(CLAIM);
    until_backup_is(etcd, "BackupVerified");
}

/// A backup as a person asks for it; what is said of it.
fn when_asked(etcd: &Etcd<'_>, namespace: &Namespace<'_>) -> Value {
    let before = etcd.object().expect("it is there")["status"]["backup"]["lastSuccess"].clone();
    etcd.until(|_| namespace.get("cronjob/main-backup").map(|_| ()));
    etcd.put("asked", "yes");
    namespace.kubectl(&["create", "job", "now", "--from=cronjob/main-backup"]).ok();
    let success = etcd.until(|_| {
        let object = etcd.object()?;
        let backup = &object["status"]["backup"];
        let success = &backup["lastSuccess"];
        if *success == before { Err(format!("{backup}")) } else { Ok(success.clone()) }
    });
    eventually(|| {
        let selector = "--field-selector=reason=BackupVerified";
        let events = namespace.kubectl(&["get", "events", selector, "-o=name"]).run()?;
        if events.lines().count() >= 2 { Ok(()) } else { Err(format!("events: {events}")) }
    });
    success
}

/// Where the backups are on this machine: in a Pod that has them mounted.
fn folder(bed: &Bed, namespace: &Namespace<'_>) -> PathBuf {
    namespace.apply(&json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": READER},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": READER, "image": BUSYBOX, "command": ["sleep", "3600"],
                "volumeMounts": [{"name": "backups", "mountPath": "/backups"}],
            }],
            "volumes": [{"name": "backups", "persistentVolumeClaim": {"claimName": CLAIM}}],
        },
    }));
    namespace.kubectl(&["wait", "--for=condition=Ready", "pod", READER, &timeout(PATIENCE)]).ok();
    let processes = bed.processes(&namespace.name, READER, &["sleep"]);
    PathBuf::from(format!("/proc/{}/root/backups", processes[0])).join(&namespace.name).join(NAME)
}

fn manifests(folder: &Path) -> usize {
    let entries =
        std::fs::read_dir(folder).expect("it is there").map(|entry| entry.expect("an entry").path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "json")).count()
}

/// A backup makes an etcd that holds what was written before it was asked for.
fn restored(snapshot: &Path, size: u64) {
    const VERSION: EtcdVersion = EtcdVersion::V3_6;
    assert_eq!(std::fs::metadata(snapshot).expect("it is there").len(), size);
    let mut bed = EtcdBed::new(false).expect("room for an etcd");
    let mut restore = Command::new(VERSION.tool("etcdutl").expect("it is built"));
    restore.args(["snapshot", "restore", "--data-dir"]).arg(bed.data(0)).arg(snapshot);
    Call::new(restore).ok();
    bed.start(0, VERSION, (EtcdState::New, &[0]), &[]).expect("it starts");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let _inside = runtime.enter();
    let client = Client::new(&bed.client_url(0), None, Limits::default()).expect("a URL");
    for key in ["kept", "asked"] {
        let range = Range { key: key.as_bytes().to_vec(), ..Range::default() };
        let found = eventually(|| {
            bed.check().map_err(|error| error.to_string())?;
            runtime.block_on(client.range(range.clone())).map_err(|error| error.to_string())
        });
        assert_eq!(found.key_values.first().map(|found| found.value.as_slice()), Some(&b"yes"[..]), "{key}");
    }
}
