//! However a cluster ends, no process, mount, network, interface, control group or folder of it is left.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use testbed::{
    ControlPlane,
    instance::{Instances, Record},
};

use crate::support::{WEB, apply, built, call, eventually, image, options, vanishes};

/// Has this program start a cluster of the name that the variable says, and hold it until it is killed.
pub const HOLD: &str = "TESTBED_NODE_TEST_HOLDS";

/// Waits for the Pod of [`WEB`].
const READY: [&str; 4] = ["wait", "--for=condition=Ready", "pod/web", "--timeout=60s"];

/// A test that needs a machine for itself, and its name.
type Test = (&'static str, fn());

pub const TESTS: &[Test] = &kit::tests![
    nothing_is_left_when_the_owner_is_killed,
    down_clears_what_killed_components_leave,
    down_clears_a_start_that_was_killed_with_its_reaper,
];

/// Prints the folder of its cluster when a pod with a volume runs in it.
pub fn hold(name: &str) {
    let cluster = ControlPlane::start(&options(name)).unwrap();
    cluster.load_image(&image("busybox")).unwrap();
    apply(cluster.kubectl(), WEB);
    call(cluster.kubectl(), &READY).ok();
    println!("{}", cluster.folder().display());
    std::io::stdout().flush().unwrap();
    loop {
        std::thread::park();
    }
}

/// All by which a cluster can be found again.
struct Traces {
    name: String,
    folder: PathBuf,
    /// Its namespaces of network and mounts.
    namespaces: Vec<PathBuf>,
}

impl Traces {
    fn of(name: &str, folder: &Path) -> Self {
        let pids = fs::read_to_string(folder.join("pids")).unwrap();
        let line = pids.lines().find(|line| line.ends_with(" namespaces")).unwrap();
        let holder = line.split(' ').next().unwrap();
        let namespace = |kind: &str| fs::read_link(format!("/proc/{holder}/ns/{kind}")).unwrap();
        let namespaces = vec![namespace("net"), namespace("mnt")];
        let traces = Self { name: name.to_owned(), folder: folder.to_owned(), namespaces };
        assert!(!traces.left().is_empty());
        traces
    }

    /// What there still is of it.
    fn left(&self) -> Vec<String> {
        let mut left = self.processes();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let folder = self.folder.display().to_string();
        left.extend(mounts.lines().filter(|line| line.contains(&folder)).map(str::to_owned));
        let links = call(Command::new("ip"), &["-details", "link"]).ok();
        let alias = format!("alias testbed {}", self.name);
        left.extend(links.lines().filter(|line| line.trim() == alias).map(str::to_owned));
        let groups = ["/sys/fs/cgroup", "-maxdepth", "2", "-name", &format!("testbed-{}-*", self.name)];
        left.extend(call(Command::new("find"), &groups).ok().lines().map(str::to_owned));
        if self.folder.exists() {
            left.push(folder);
        }
        left
    }

    /// Those in its namespaces or its control groups, and those that were started with its folder.
    fn processes(&self) -> Vec<String> {
        let folder = self.folder.display().to_string();
        let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
        let is_ours = |path: &PathBuf| {
            let inside = ["net", "mnt"].iter().any(|kind| {
                fs::read_link(path.join("ns").join(kind)).is_ok_and(|link| self.namespaces.contains(&link))
            });
            let groups = fs::read_to_string(path.join("cgroup")).unwrap_or_default();
            inside
                || groups.contains(&format!("/testbed-{}-", self.name))
                || fs::read_to_string(path.join("cmdline")).is_ok_and(|line| line.contains(&folder))
        };
        pids.filter(is_ours)
            .map(|path| {
                let line = fs::read_to_string(path.join("cmdline")).unwrap_or_default();
                let line = line.replace(|character: char| character.is_control(), " ");
                format!("{} {}", path.display(), line.chars().take(160).collect::<String>())
            })
            .collect()
    }

    /// The kernel takes a moment to let a network go whose last process has ended.
    fn vanish(&self) {
        vanishes(&format!("what is left of {}", self.name), || self.left());
    }
}

/// A process that is killed at the end of its test, or earlier.
struct Owner(Child);

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn nothing_is_left_when_the_owner_is_killed() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(HOLD, "killed").stdout(Stdio::piped()).process_group(0);
    let mut owner = Owner(command.spawn().unwrap());
    let mut folder = String::new();
    BufReader::new(owner.0.stdout.take().unwrap()).read_line(&mut folder).unwrap();
    let traces = Traces::of("killed", Path::new(folder.trim()));
    let web = |line: &String| line.contains("httpd");
    assert!(traces.processes().iter().any(web), "{:#?}", traces.processes());
    drop(owner);
    traces.vanish();
}

/// A cluster of this name with a pod, in a state folder of its own.
fn up(instances: &Instances, name: &str) -> Record {
    let (record, started) = instances.up(name, options(name)).unwrap();
    assert!(started);
    instances.load_image(name, &image("busybox")).unwrap();
    let kubectl = || {
        let mut command = Command::new(built("kubernetes").join("kubectl"));
        command.env("KUBECONFIG", &record.kubeconfig);
        command
    };
    apply(kubectl(), WEB);
    call(kubectl(), &READY).ok();
    record
}

fn down_clears_what_killed_components_leave() {
    let state = tempfile::tempdir().unwrap();
    let instances = Instances::at(state.path().to_owned());
    for labels in [["kubelet", "containerd"].as_slice(), &["namespaces"], &["etcd", "kube-apiserver"]] {
        let record = up(&instances, "crashed");
        let traces = Traces::of("crashed", &record.folder);
        for process in record.control_plane.iter().filter(|process| labels.contains(&process.label.as_str()))
        {
            let script = format!("kill -s KILL -- -{}", process.id.pid());
            call(Command::new("sh"), &["-c", &script]).ok();
            eventually("the component to end", || !process.id.runs());
        }
        assert!(!instances.read("crashed").unwrap().unwrap().is_up());
        assert!(!traces.left().is_empty());
        assert!(instances.down("crashed").unwrap());
        traces.vanish();
    }
}

fn down_clears_a_start_that_was_killed_with_its_reaper() {
    let state = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_testbed"));
    command
        .args(["up", "--node", "--name", "halfway"])
        .env("XDG_STATE_HOME", state.path())
        .env_remove("KUBECONFIG")
        .process_group(0)
        .stderr(Stdio::null())
        .stdout(Stdio::null());
    let starting = Owner(command.spawn().unwrap());
    let folder = state.path().join("gatehouse/halfway/cluster");
    eventually("the kubelet to be started", || {
        fs::read_to_string(folder.join("pids")).is_ok_and(|pids| pids.contains(" kubelet\n"))
    });
    let traces = Traces::of("halfway", &folder);
    let parent = starting.0.id().to_string();
    let reaper = call(Command::new("pgrep"), &["-f", "testbed-reaper", "-P", &parent]).ok();
    call(Command::new("kill"), &["-s", "KILL", reaper.trim()]).ok();
    drop(starting);
    assert!(traces.left().iter().any(|line| line.contains("kubelet")), "{:#?}", traces.left());
    let instances = Instances::at(state.path().join("gatehouse"));
    assert!(instances.down("halfway").unwrap());
    traces.vanish();
}
