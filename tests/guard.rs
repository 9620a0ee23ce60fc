//! The guard in the pod of a member, by the built binary and a real etcd, in folders that look like a pod's: a
//! ConfigMap mounted as a kubelet does it, a volume, and the folder that containers share.

#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use gatehouse::kinds::etcdcluster::agent::entry::{Entry, Purpose};
use gatehouse::kinds::etcdcluster::etcd::{Client, Limits, Status};
use kit::harness::Harness;
use kit::wait::{PATIENCE, eventually, eventually_async};
use tempfile::TempDir;
use testbed::{EtcdBed, EtcdVersion};

const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;

/// A process that does not outlive its test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended where all went well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    fn signal(&self, signal: i32) {
        let sent = Command::new("kill").args([format!("-{signal}"), self.0.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    fn ended(&mut self) -> ExitStatus {
        eventually(|| self.0.try_wait().unwrap().ok_or("the process runs on"))
    }
}

/// What outlives a pod: the ConfigMap, the volume, the addresses.
struct Member {
    folder: TempDir,
    bed: EtcdBed,
    versions: u32,
}

impl Member {
    fn new() -> Self {
        let (folder, bed) = (tempfile::tempdir().unwrap(), EtcdBed::new(false).unwrap());
        for name in ["config", "data"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder, bed, versions: 0 }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Changes the mounted ConfigMap as a kubelet does: a folder of its own for each version, and one link to it.
    fn tell(&mut self, entry: &Entry) {
        self.tell_text(&serde_json::to_string(entry).unwrap(), "");
    }

    fn tell_text(&mut self, entry: &str, more: &str) {
        self.versions += 1;
        let (config, version) = (self.path("config"), format!("..version-{}", self.versions));
        let now = config.join(&version);
        fs::create_dir(&now).unwrap();
        fs::write(now.join("c-0.json"), entry).unwrap();
        fs::write(now.join("c-0.yaml"), self.flags() + more).unwrap();
        symlink(&version, config.join("..data_tmp")).unwrap();
        fs::rename(config.join("..data_tmp"), config.join("..data")).unwrap();
        if self.versions == 1 {
            for name in ["c-0.json", "c-0.yaml"] {
                symlink(Path::new("..data").join(name), config.join(name)).unwrap();
            }
        } else {
            fs::remove_dir_all(config.join(format!("..version-{}", self.versions - 1))).unwrap();
        }
    }

    fn flags(&self) -> String {
        let (client, peer) = (self.bed.client_url(0), self.bed.peer_url(0));
        format!(
            "name: c-0\ndata-dir: {}\nlisten-client-urls: {client}\nadvertise-client-urls: {client}\n\
             listen-peer-urls: {peer}\ninitial-advertise-peer-urls: {peer}\ninitial-cluster: c-0={peer}\n\
             initial-cluster-state: new\n",
            self.path("data/data").display(),
        )
    }

    /// A pod, with a folder of its own: a new one, or the one of this uid.
    fn pod(&self, uid: &'static str) -> Pod {
        fs::create_dir_all(self.path(uid)).unwrap();
        Pod { member: self.path(""), uid, url: self.bed.client_url(0) }
    }
}

struct Pod {
    member: PathBuf,
    uid: &'static str,
    url: String,
}

impl Pod {
    fn path(&self, name: &str) -> PathBuf {
        self.member.join(self.uid).join(name)
    }

    fn gatehouse(&self, program: &Path, verb: &str) -> Command {
        let log = fs::File::options().create(true).append(true).open(self.path("log")).unwrap();
        let mut command = Command::new(program);
        command.args(["etcd", verb, "--work"]).arg(self.path("")).arg("--data").arg(self.member.join("data"));
        command.arg("--termination-log").arg(self.path("message"));
        command.env_remove("GATEHOUSE_LOG").stdin(Stdio::null()).stderr(log);
        command
    }

    fn guard(&self) -> Process {
        self.guard_of("cluster")
    }

    fn guard_of(&self, cluster: &str) -> Process {
        let mut command = self.gatehouse(Path::new(env!("CARGO_BIN_EXE_gatehouse")), "guard");
        command.args(["--member", "c-0", "--cluster", cluster, "--template", "3.6.16-1"]);
        command.arg("--config").arg(self.member.join("config")).env("POD_UID", self.uid);
        Process(command.spawn().unwrap())
    }

    /// Etcd's container, by the program that the guard left.
    fn run(&self) -> Process {
        let mut command = self.gatehouse(&self.path("gatehouse"), "run");
        let etcd = EtcdVersion::V3_6.tool("etcd").unwrap();
        command.arg("--").arg(etcd).arg(format!("--config-file={}", self.path("etcd.yaml").display()));
        command.stdout(Stdio::null());
        Process(command.spawn().unwrap())
    }

    fn waits(&self, why: &str) {
        let wanted = format!("\"reason\":\"{why}");
        eventually(|| {
            let log = fs::read_to_string(self.path("log")).unwrap();
            if log.contains(&wanted) {
                Ok(())
            } else {
                Err(format!("it does not wait because {why}:\n{log}"))
            }
        });
    }

    /// Asserts that etcd is refused, in the words that a kubelet takes.
    fn refused(&self, mut process: Process, cause: &str) {
        assert_eq!(process.ended().code(), Some(1));
        let message = fs::read_to_string(self.path("message")).unwrap();
        assert!(message.starts_with(&format!("{cause}: ")), "{message}");
    }

    /// Waits until etcd serves.
    async fn serves(&self) -> Status {
        let client = Client::new(&self.url, None, Limits::default()).unwrap();
        let led = async || match client.status().await {
            Ok(status) if status.leader != 0 => Ok(status),
            other => Err(format!("{other:?}")),
        };
        eventually_async(PATIENCE, led, || fs::read_to_string(self.path("log")).unwrap()).await
    }

    async fn killed_once_it_serves(&self, mut etcd: Process) -> Status {
        let status = self.serves().await;
        etcd.signal(SIGKILL);
        assert_eq!(etcd.ended().signal(), Some(SIGKILL), "the process is etcd itself");
        status
    }
}

fn entry(purpose: Purpose, pod: Option<&str>) -> Entry {
    Entry {
        purpose,
        member: None,
        volume: "claim".to_owned(),
        template: "3.6.16-1".to_owned(),
        pod: pod.map(ToOwned::to_owned),
        raft_index: None,
        skips_check: false,
    }
}

fn identity(status: &Status) -> (u64, u64) {
    (status.header.cluster_id, status.header.member_id)
}

/// A member whose first pod, `first`, has run and is gone.
async fn that_has_run() -> (Member, (u64, u64)) {
    let mut member = Member::new();
    member.tell(&entry(Purpose::Seed, Some("first")));
    let pod = member.pod("first");
    assert!(pod.guard().ended().success());
    let own = identity(&pod.killed_once_it_serves(pod.run()).await);
    member.tell(&entry(Purpose::Run, None));
    (member, own)
}

async fn etcd_starts_once_its_pod_is_named_and_goes_on_after_a_crash() {
    let mut member = Member::new();
    let pod = member.pod("own");
    let mut guard = pod.guard();
    pod.waits("there is no entry for this member");
    member.tell_text("{", "");
    pod.waits("failed to understand");
    member.tell(&Entry { template: "3.5.9-1".to_owned(), ..entry(Purpose::Seed, Some("own")) });
    pod.waits("the entry is made for another template");
    member.tell(&entry(Purpose::Seed, Some("other")));
    pod.waits("the volume is empty, and only another pod may begin on it");
    assert!(fs::read_dir(member.path("data")).unwrap().next().is_none(), "who waits writes nothing");
    member.tell(&entry(Purpose::Seed, Some("own")));
    assert!(guard.ended().success());

    let status = pod.killed_once_it_serves(pod.run()).await;
    let mut again = pod.run();
    assert_eq!(identity(&pod.serves().await), identity(&status));
    again.signal(SIGTERM);
    again.ended();
    assert!(!pod.path("message").exists());
}

async fn another_pod_goes_on_with_the_data() {
    let (member, identity_before) = that_has_run().await;
    let pod = member.pod("second");
    assert!(pod.guard().ended().success());
    assert_eq!(identity(&pod.killed_once_it_serves(pod.run()).await), identity_before);
}

async fn lost_data_are_refused_however_much_is_lost() {
    for lost in ["data/data/member/wal", "data/data/member", "data/data", "data"] {
        let (member, _) = that_has_run().await;
        fs::remove_dir_all(member.path(lost)).unwrap();
        fs::create_dir_all(member.path("data")).unwrap();
        // The container starts again in its pod, by what its guard read: to begin.
        let first = member.pod("first");
        if lost != "data/data/member/wal" {
            // Without a second start nothing has seen the log, and this start looks like a first one that failed.
            first.refused(first.run(), "DataLost");
        }
        let second = member.pod("second");
        second.refused(second.guard(), "DataLost");
        assert!(!second.path("pass.json").exists(), "{lost}");
    }
}

async fn a_log_that_was_seen_and_is_lost_is_refused_in_the_pod_that_began() {
    let (member, _) = that_has_run().await;
    let pod = member.pod("first");
    pod.killed_once_it_serves(pod.run()).await;
    fs::remove_dir_all(member.path("data/data/member/wal")).unwrap();
    pod.refused(pod.run(), "DataLost");
}

async fn data_of_another_cluster_and_of_another_volume_are_refused() {
    let (mut member, _) = that_has_run().await;
    let pod = member.pod("second");
    pod.refused(pod.guard_of("another"), "DataForeign");
    member.tell(&Entry { volume: "another".to_owned(), ..entry(Purpose::Run, None) });
    let pod = member.pod("third");
    pod.refused(pod.guard(), "DataForeign");
    fs::remove_file(member.path("data/gatehouse.json")).unwrap();
    let pod = member.pod("fourth");
    pod.refused(pod.guard(), "DataForeign");
}

async fn a_stopped_member_waits_until_it_may_run_or_has_to_end() {
    let (mut member, identity_before) = that_has_run().await;
    for (purpose, uid) in [(Purpose::Retired, "second"), (Purpose::SetAside, "third")] {
        member.tell(&entry(purpose, None));
        let pod = member.pod(uid);
        let mut guard = pod.guard();
        pod.waits("the member is stopped");
        guard.signal(SIGTERM);
        assert_eq!(guard.ended().code(), Some(143), "it ends because it was asked to");
    }
    let pod = member.pod("fourth");
    let mut guard = pod.guard();
    pod.waits("the member is stopped");
    member.tell(&entry(Purpose::Run, None));
    assert!(guard.ended().success());
    assert_eq!(identity(&pod.killed_once_it_serves(pod.run()).await), identity_before);
}

/// What is below a folder, by path: the bytes of files.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut left) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(next) = left.pop() {
        for path in fs::read_dir(next).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                left.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn forced(pod: &str) -> String {
    let entry = Entry { raft_index: Some(42), ..entry(Purpose::Force, Some(pod)) };
    serde_json::to_string(&entry).unwrap()
}

async fn a_member_is_forced_on_data_that_were_copied_before_and_only_once() {
    let (mut member, identity_before) = that_has_run().await;
    let before = files(&member.path("data/data/member"));
    let copies = member.path("data/before-recovery");
    // Another attempt was given up.
    fs::create_dir_all(copies.join("42.part/member/wal")).unwrap();
    fs::write(copies.join("42.part/member/wal/half"), "").unwrap();
    member.tell_text(&forced("another"), "force-new-cluster: true\n");
    let pod = member.pod("second");
    let mut guard = pod.guard();
    pod.waits("only a pod that is named may make a cluster of the data");
    assert!(!copies.join("42").exists());
    member.tell_text(&forced("second"), "force-new-cluster: true\n");
    assert!(guard.ended().success());
    let copy = copies.join("42/member");
    assert!(files(&copy) == before, "the copy is what was there");
    assert!(before.len() > 1, "a log and a database: {:?}", before.keys());
    assert_eq!(fs::read_dir(&copies).unwrap().count(), 1, "nothing else is left");
    // The container starts again: a member that has joined since is not dropped.
    for flags in ["etcd.yaml", "etcd-again.yaml", "etcd-again.yaml"] {
        let etcd = pod.run();
        assert_eq!(identity(&pod.serves().await), identity_before);
        let command = fs::read_to_string(format!("/proc/{}/cmdline", etcd.0.id())).unwrap();
        assert!(command.ends_with(&format!("/{flags}\0")), "{command}");
    }
    let again = fs::read_to_string(pod.path("etcd-again.yaml")).unwrap();
    assert_eq!(again, member.flags() + "force-new-cluster: false\n");
    assert!(files(&member.path("data/data/member")) != before, "it went on");
    member.tell_text(&forced("third"), "force-new-cluster: true\n");
    let pod = member.pod("third");
    assert!(pod.guard().ended().success());
    assert!(files(&copy) == before, "it is never made again");
    member.tell(&entry(Purpose::Run, None));
    let pod = member.pod("fourth");
    assert!(pod.guard().ended().success());
    assert_eq!(identity(&pod.killed_once_it_serves(pod.run()).await), identity_before);
    assert!(files(&copy) == before);
}

async fn an_etcd_that_refuses_its_flags_has_lost_nothing() {
    let mut member = Member::new();
    let seed = serde_json::to_string(&entry(Purpose::Seed, Some("own"))).unwrap();
    member.tell_text(&seed, "no-such-flag: true\nelection-timeout: 1\n");
    let pod = member.pod("own");
    assert!(pod.guard().ended().success());
    for _ in 0..3 {
        let ended = pod.run().ended();
        assert!(!ended.success());
        assert!(!pod.path("message").exists(), "{}", fs::read_to_string(pod.path("message")).unwrap());
    }
    member.tell(&entry(Purpose::Seed, Some("next")));
    let pod = member.pod("next");
    assert!(pod.guard().ended().success());
    let _etcd = pod.run();
    pod.serves().await;
}

async fn without_its_guard_etcd_does_not_start() {
    let member = Member::new();
    let pod = member.pod("own");
    fs::copy(env!("CARGO_BIN_EXE_gatehouse"), pod.path("gatehouse")).unwrap();
    assert_eq!(pod.run().ended().code(), Some(1));
    assert!(!pod.path("message").exists(), "nothing is said about the data");
}

/// For a test: more than it waits for anything, so that the wait tells first what did not come.
const LIMIT: Duration = Duration::from_mins(5);

fn main() -> ExitCode {
    let tests = kit::tests_on_runtimes!("guard", LIMIT =>
        etcd_starts_once_its_pod_is_named_and_goes_on_after_a_crash,
        another_pod_goes_on_with_the_data,
        lost_data_are_refused_however_much_is_lost,
        a_log_that_was_seen_and_is_lost_is_refused_in_the_pod_that_began,
        data_of_another_cluster_and_of_another_volume_are_refused,
        a_stopped_member_waits_until_it_may_run_or_has_to_end,
        a_member_is_forced_on_data_that_were_copied_before_and_only_once,
        an_etcd_that_refuses_its_flags_has_lost_nothing,
        without_its_guard_etcd_does_not_start,
    );
    let mut harness = Harness::from_args();
    harness.run(tests, 2);
    harness.end()
}
