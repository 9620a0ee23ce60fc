//! `gatehouse etcd snapshot`, by the built binary: what it leaves in a folder, and what it does not touch there.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use gatehouse::kinds::etcdcluster::backup::database;
use gatehouse::kinds::etcdcluster::backup::manifest::{LONGEST_REPORT, Manifest, Report, Success};
use gatehouse::kinds::etcdcluster::etcd::{AlarmKind, Client, Header};
use kit::etcd::{Calls as _, DeleteRange};
use kit::wait::eventually;
use tempfile::TempDir;
use testbed::{EtcdBed, EtcdState, EtcdVersion};

use crate::bed::Bed;
use crate::support::{Cluster, limits, tls};

/// The EtcdCluster that its flags name.
const UID: &str = "7c0a1d2e-0000-4000-8000-000000000001";

/// What it says, and does nothing, where it is to be run again.
const PASSING: [&str; 2] = ["no member answers: ", "no member that votes and follows a leader answers: "];

/// A folder for backups, and another one for whatever is made of them.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn backups(&self) -> PathBuf {
        self.folder.path().join("shop/main")
    }

    /// Runs it with these members, and whatever else is to be said.
    fn run(&self, members: &[String], cluster_id: u64, more: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gatehouse"));
        command.args(["etcd", "snapshot", "--namespace=shop", "--name=main"]);
        command.arg(format!("--cluster={UID}")).arg(format!("--cluster-id={cluster_id:x}"));
        command.arg("--destination").arg(self.backups());
        command.arg("--termination-log").arg(self.message());
        command.args(members.iter().map(|url| format!("--endpoint={url}"))).args(more);
        command.output().unwrap()
    }

    fn message(&self) -> PathBuf {
        self.folder.path().join("termination-log")
    }

    /// What it prints, which is what it leaves for a kubelet, and what its exit code says.
    fn report(&self, done: &Output) -> Report {
        let said = String::from_utf8(done.stdout.clone()).unwrap();
        let left = fs::read_to_string(self.message()).unwrap();
        assert_eq!(said.trim_end(), left, "{}", String::from_utf8_lossy(&done.stderr));
        assert!(left.len() <= LONGEST_REPORT);
        let report = Report::read(&left).unwrap();
        assert_eq!(done.status.success(), matches!(report, Report::Succeeded(_)), "{left}");
        report
    }

    /// Takes a backup. How long a connection may take is the program's own limit, and short for a busy machine, on which
    /// members elect as well: it runs again while it says that no member answers, or that none follows a leader.
    fn succeeds(&self, members: &[String], cluster_id: u64, more: &[&str]) -> Success {
        eventually(|| match self.report(&self.run(members, cluster_id, more)) {
            Report::Succeeded(success) => Ok(*success),
            Report::Failed { message } if PASSING.iter().any(|words| message.starts_with(words)) => {
                Err(message)
            }
            Report::Failed { message } => panic!("{message}"),
        })
    }

    fn fails(&self, done: &Output, code: i32) -> String {
        assert_eq!(done.status.code(), Some(code));
        match self.report(done) {
            Report::Failed { message } => message,
            Report::Succeeded(success) => panic!("{success:?}"),
        }
    }

    /// The names of the files that are there, but for the one that is locked.
    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.backups()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name != "gatehouse.lock");
        names.sort();
        names
    }

    /// The names of the files that a backup is made of.
    fn names(backup: &Manifest) -> [String; 2] {
        let stem = backup.name.strip_suffix(".db").unwrap();
        [backup.name.clone(), format!("{stem}.json")]
    }
}

/// Makes a data folder of a backup, by etcd's own tool.
fn restored(version: EtcdVersion, snapshot: &Path, data: &Path) {
    let mut restore = Command::new(version.tool("etcdutl").unwrap());
    let done = restore.args(["snapshot", "restore", "--data-dir"]).arg(data).arg(snapshot).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// What etcd makes is a sound database, up to its revision, and not without the page that all others hang on.
fn is_sound_until_a_page_is_lost(backup: &Path, manifest: &Manifest) {
    let file = File::options().read(true).write(true).open(backup).unwrap();
    let (size, revision) = (manifest.size - 32, u64::try_from(manifest.revision).unwrap());
    database::check(&file, size, revision).unwrap();
    assert!(database::check(&file, size, revision + 1).is_err(), "it has no later revision");
    let number_at = |at| {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, at).unwrap();
        u64::from_le_bytes(bytes)
    };
    let page = u64::from(u32::try_from(number_at(24) & 0xffff_ffff).unwrap());
    let root = number_at(32);
    let mut kept = [0; 512];
    file.read_exact_at(&mut kept, root * page).unwrap();
    file.write_all_at(&[0; 512], root * page).unwrap();
    let lost = database::check(&file, size, revision).unwrap_err().to_string();
    assert_eq!(lost, format!("page {root} is another one"));
    file.write_all_at(&kept, root * page).unwrap();
    database::check(&file, size, revision).unwrap();
}

fn urls(bed: &EtcdBed, members: impl IntoIterator<Item = usize>) -> Vec<String> {
    members.into_iter().map(|member| bed.client_url(member)).collect()
}

pub async fn a_backup_is_taken_of_a_follower_and_can_be_restored(version: EtcdVersion) {
    let mut cluster = Cluster::of(version, 3).await;
    let mut written = Header::default();
    for key in 0..20_u8 {
        written = cluster.client(0).put(&[key + 1], &vec![key; 50_000]).await.unwrap().header;
    }
    for member in 0..3 {
        let applied =
            async || (cluster.status(member).await.header.revision == written.revision).then_some(());
        cluster.eventually("member that has applied all", applied).await;
    }
    let take = async || {
        let term = cluster.term(&[0, 1, 2]).await?;
        let (leader, place) = (cluster.leader(&[0, 1, 2]).await, Place::new());
        let success = place.succeeds(&urls(&cluster.bed, 0..3), written.cluster_id, &[]);
        (cluster.term(&[0, 1, 2]).await? == term).then_some((leader, place, success))
    };
    let (leader, place, success) = cluster.eventually("backup within one term", take).await;
    let manifest = &success.manifest;
    assert_eq!(place.files(), Place::names(manifest));
    assert_ne!(manifest.endpoint, cluster.bed.client_url(leader));
    assert_eq!((manifest.version.as_str(), success.removed), (version.release(), 0));
    assert_eq!(manifest.revision, written.revision, "{manifest:?}");
    let beside = fs::read(place.backups().join(&Place::names(manifest)[1])).unwrap();
    assert_eq!(serde_json::from_slice::<Manifest>(&beside).unwrap(), *manifest);
    let file = place.backups().join(&manifest.name);
    let summed = Command::new("sha256sum").arg(&file).output().unwrap();
    assert!(String::from_utf8(summed.stdout).unwrap().starts_with(&manifest.sha256));
    assert_eq!(fs::metadata(&file).unwrap().len(), manifest.size);
    restored(version, &file, &place.folder.path().join("data"));
    is_sound_until_a_page_is_lost(&file, manifest);

    // Without a quorum no member follows a leader.
    cluster.bed.kill(leader);
    cluster.bed.kill((leader + 1) % 3);
    let left = (leader + 2) % 3;
    let without = || async {
        let status = cluster.client(left).status().await.ok()?;
        (status.leader == 0).then_some(())
    };
    cluster.eventually("loss of the leader", without).await;
    let done = place.run(&urls(&cluster.bed, 0..3), written.cluster_id, &[]);
    let said = place.fails(&done, 1);
    assert!(said.starts_with("no member that votes and follows a leader answers"), "{said}");
    assert_eq!(place.files(), Place::names(manifest));
}

pub async fn backups_that_nothing_asks_to_keep_go_and_those_of_others_stay(version: EtcdVersion) {
    let cluster = Cluster::of(version, 1).await;
    let id = cluster.status(0).await.header.cluster_id;
    let place = Place::new();
    let members = urls(&cluster.bed, [0]);
    let first = place.succeeds(&members, id, &[]).manifest;
    // Not its own: a backup of another uid, a file of a person, a leftover of another EtcdCluster.
    let other = Manifest { name: "2020-01-01T00-00-00.000Z-r1.db".to_owned(), ..first.clone() };
    let other = Manifest {
        cluster: gatehouse::kinds::etcdcluster::backup::manifest::Owner {
            uid: "another".into(),
            ..other.cluster.clone()
        },
        ..other
    };
    fs::copy(place.backups().join(&first.name), place.backups().join(&other.name)).unwrap();
    let text = serde_json::to_vec(&other).unwrap();
    fs::write(place.backups().join("2020-01-01T00-00-00.000Z-r1.json"), text).unwrap();
    let foreign = ["2020-01-02T00-00-00.000Z-r1.db.another.part", "notes.json", "shop.db"];
    for name in foreign {
        fs::write(place.backups().join(name), "mine").unwrap();
    }
    let mut all = vec![first];
    for key in 1..4_u8 {
        cluster.client(0).put(&[key], b"value").await.unwrap();
        all.push(place.succeeds(&members, id, &["--keep-last=3"]).manifest);
    }
    let mut wanted: Vec<_> = all[1..].iter().flat_map(Place::names).collect();
    wanted.extend(Place::names(&other));
    wanted.extend(foreign.map(str::to_owned));
    wanted.sort();
    assert_eq!(place.files(), wanted);
    // Whatever their age, the one that was just verified stays.
    let last = place.succeeds(&members, id, &["--max-age=1ns"]);
    assert_eq!(last.removed, 3);
    assert_eq!(place.files().len(), 2 + 2 + foreign.len());
    // What is compacted leaves no key behind, and reaches its revision all the same.
    let all = DeleteRange { key: vec![0], range_end: vec![0] };
    let deleted = cluster.client(0).delete(all).await.unwrap().header.revision;
    cluster.client(0).compact(deleted, true).await.unwrap();
    assert_eq!(place.succeeds(&members, id, &[]).manifest.revision, deleted);
}

/// Makes a file one that was written so long ago that no Job is at it any more.
fn aged(path: &Path) {
    let file = File::options().write(true).open(path).unwrap();
    let long_ago = file.metadata().unwrap().modified().unwrap() - Duration::from_hours(3);
    file.set_modified(long_ago).unwrap();
}

pub async fn what_an_attempt_has_left_is_no_backup_and_goes(version: EtcdVersion) {
    let cluster = Cluster::of(version, 1).await;
    let id = cluster.status(0).await.header.cluster_id;
    let place = Place::new();
    let members = urls(&cluster.bed, [0]);
    let first = place.succeeds(&members, id, &[]).manifest;
    let (torn, nameless) = ("2021-01-01T00-00-00.000Z-r1", "2021-01-02T00-00-00.000Z-r1");
    // It ended while a snapshot came; and between the names of a snapshot and of its manifest.
    for name in
        [format!("{torn}.db.{UID}.part"), format!("{nameless}.db"), format!("{nameless}.json.{UID}.part")]
    {
        fs::write(place.backups().join(&name), "half").unwrap();
        aged(&place.backups().join(name));
    }
    // Retention ended between a manifest and its snapshot.
    let second = place.succeeds(&members, id, &["--keep-last=9"]).manifest;
    let [snapshot, manifest] = Place::names(&first);
    let left = format!("{manifest}.{UID}.part");
    fs::rename(place.backups().join(&manifest), place.backups().join(&left)).unwrap();
    aged(&place.backups().join(&left));
    let done = place.succeeds(&members, id, &["--keep-last=9"]);
    assert_eq!(done.removed, 0);
    let files = place.files();
    assert!(!files.contains(&snapshot) && !files.contains(&left), "{files:?}");
    let mut wanted: Vec<_> = [&second, &done.manifest].into_iter().flat_map(Place::names).collect();
    wanted.sort();
    assert_eq!(files, wanted);
}

pub async fn no_backup_is_taken_of_another_cluster_or_without_a_member(version: EtcdVersion) {
    let mut cluster = Cluster::of(version, 1).await;
    let id = cluster.status(0).await.header.cluster_id;
    let place = Place::new();
    let members = urls(&cluster.bed, [0]);
    let said = place.fails(&place.run(&members, 7, &[]), 1);
    assert_eq!(said, format!("{} is of etcd cluster {id:x}, and not of 7", members[0]));
    assert!(!place.backups().exists());
    let kept = place.succeeds(&members, id, &[]).manifest;
    cluster.bed.kill(0);
    let said = place.fails(&place.run(&members, id, &["--keep-last=1", "--max-age=1ns"]), 1);
    assert!(said.starts_with("no member answers: ") && said.contains(&members[0]), "{said}");
    assert_eq!(place.files(), Place::names(&kept));
    let said = place.fails(&place.run(&["https://127.0.0.1:1".to_owned()], id, &[]), 2);
    assert!(said.contains("without TLS it begins with http"), "{said}");
}

pub async fn no_backup_is_taken_while_the_data_of_any_member_are_suspect(version: EtcdVersion) {
    let cluster = Cluster::of(version, 3).await;
    let id = cluster.status(0).await.header.cluster_id;
    let place = Place::new();
    let members = urls(&cluster.bed, 0..3);
    place.succeeds(&members, id, &[]);
    let leftover = format!("2021-01-01T00-00-00.000Z-r1.db.{UID}.part");
    fs::write(place.backups().join(&leftover), "half").unwrap();
    aged(&place.backups().join(&leftover));
    let before = place.files();
    let named = cluster.status(2).await.header.member_id;
    cluster.client(0).raise_alarm(named, AlarmKind::Corrupt).await.unwrap();
    // The others, which the alarm does not name, are not asked for one either.
    let said = place.fails(&place.run(&members, id, &["--keep-last=1", "--max-age=1ns"]), 1);
    assert!(said.starts_with("alarm CORRUPT is armed"), "{said}");
    assert_eq!(place.files(), before, "nothing is deleted, not even what was left");
    cluster.client(0).disarm(named, AlarmKind::Corrupt).await.unwrap();
    assert_eq!(place.succeeds(&members, id, &["--keep-last=1"]).removed, 1);
}

pub async fn a_backup_over_tls_shows_the_clients_certificate(version: EtcdVersion) {
    let mut bed = Bed::new(true);
    bed.start(0, version, (EtcdState::New, &[0]), &[]).unwrap();
    let root = Client::new(&bed.client_url(0), Some(&tls(&bed, "root")), limits()).unwrap();
    let members = bed.eventually("member that serves", async || root.members().await.ok()).await;
    let (id, place) = (members.header.cluster_id, Place::new());
    let folder = place.folder.path().join("tls");
    fs::create_dir(&folder).unwrap();
    let pem = bed.client_certificate("root").unwrap().unwrap();
    for (name, text) in [("ca.crt", &pem.authority), ("tls.crt", &pem.certificate)] {
        fs::write(folder.join(name), text).unwrap();
    }
    let shown = format!("--tls={}", folder.display());
    let said = place.fails(&place.run(&urls(&bed, [0]), id, &[&shown]), 2);
    assert!(said.starts_with(&format!("failed to read {}", folder.join("tls.key").display())), "{said}");
    fs::write(folder.join("tls.key"), &pem.key).unwrap();
    let manifest = place.succeeds(&urls(&bed, [0]), id, &[&shown]).manifest;
    restored(version, &place.backups().join(&manifest.name), &place.folder.path().join("data"));
}
