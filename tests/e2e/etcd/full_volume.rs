//! A volume that has no room left, and one that grows.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use super::cluster::Etcd;
use super::{NEWEST, gone_with_its_object};
use crate::cluster::Bed;
use crate::release::Way;

/// The class of volumes that have no more room than they say.
const CLASS: &str = "limited";

/// More than the two files of its log that etcd allocates at once.
const ROOM: &str = "256m";
const MORE_ROOM: &str = "768m";

/// etcd dies of each write for want of room, until its claim asks for more and the disk follows.
pub fn etcd_that_has_filled_its_volume_takes_writes_again(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-full");
    let disk = Disk::mount(bed);
    for object in volume(&disk.folder) {
        namespace.apply(&object);
    }
    let storage = json!({"storage": {"size": "1Gi", "reclaimPolicy": "Delete", "storageClassName": CLASS}});
    let etcd = Etcd::asking(&namespace, "Disabled", NEWEST, 1, &storage);
    etcd.until_settled(1);
    etcd.put("kept", "yes");
    let value = "x".repeat(1 << 20);
    let mut keys = 0..;
    etcd.until(|_| {
        // Whatever becomes of a single one: of so many, etcd dies.
        let some = keys.by_ref().take(10).map(|key| etcd.try_put(&key.to_string(), &value));
        let refused = some.filter(Result::is_err).count();
        let pod = namespace.get("pod/main-0")?;
        let ended = &pod["status"]["containerStatuses"][0]["lastState"]["terminated"];
        let says = ended["message"].as_str().is_some_and(|words| words.contains("no space left on device"));
        if says { Ok(()) } else { Err(format!("{keys:?}, {refused} of ten refused: {ended}")) }
    });
    etcd.change(&json!({"storage": {"size": "2Gi"}}));
    etcd.until(|_| {
        let claim = namespace.get("persistentvolumeclaim/data-main-0")?;
        let asked = &claim["spec"]["resources"]["requests"]["storage"];
        if asked == "2Gi" { Ok(()) } else { Err(format!("it asks for {asked}")) }
    });
    disk.grow();
    etcd.until(|_| etcd.try_put("after", "yes"));
    assert_eq!(etcd.read("kept").as_deref(), Some("yes"));
    etcd.until_settled(1);
    gone_with_its_object(bed, &namespace);
    bed.kubectl(&["delete", "persistentvolume,storageclass", CLASS]).ok();
}

/// A volume of that class, which lies in a folder, and the class.
fn volume(folder: &Path) -> [serde_json::Value; 2] {
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": CLASS},
        "provisioner": "kubernetes.io/no-provisioner", "allowVolumeExpansion": true});
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": CLASS},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": CLASS,
            "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": folder}}});
    [class, volume]
}

/// A file system in memory, where the node sees it.
struct Disk {
    folder: PathBuf,
    /// A process of the node.
    kubelet: u32,
}

impl Disk {
    fn mount(bed: &Bed) -> Self {
        let folder = bed.cluster.folder().join("limited-volume");
        fs::create_dir_all(&folder).expect("a folder");
        let processes = bed.cluster.processes();
        let kubelet = processes.iter().find(|process| process.label == "kubelet").expect("a node of our own");
        let disk = Self { folder, kubelet: kubelet.id.pid() };
        let options = format!("size={ROOM},mode=1777");
        disk.run(&["mount", "-t", "tmpfs", "-o", &options, "limited"]).expect("it is mounted");
        disk
    }

    fn grow(&self) {
        self.run(&["mount", "-o", &format!("remount,size={MORE_ROOM}")]).expect("it grows");
    }

    /// Runs a program in the namespaces of the node, with the folder as its last word.
    fn run(&self, words: &[&str]) -> Result<(), String> {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.kubelet.to_string(), "--mount", "--"]).args(words).arg(&self.folder);
        let status = command.status().map_err(|error| error.to_string())?;
        if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
    }
}

/// The file system goes with the namespaces of the node, and what is in it at once.
impl Drop for Disk {
    fn drop(&mut self) {
        if let Err(why) = self.run(&["sh", "-c", r#"rm -rf -- "$0"/*"#]) {
            eprintln!("left in memory: {why}");
        }
    }
}
