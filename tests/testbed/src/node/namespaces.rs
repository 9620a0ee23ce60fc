//! The namespaces that a cluster with a node lives in: network, mounts and processes of its own.
//!
//! Guarantees: one process, the holder, keeps them. When it ends, however it ends, the kernel kills all that
//! runs in the process namespace (containers and their shims included), and the mounts, the network with its
//! rules and the interfaces go with the last of them. Nothing has to be unmounted or unplugged.
//!
//! Inside, `/run`, `/var/lib/kubelet`, `/var/lib/containerd`, `/var/log` and `/tmp/hostpath_pv` are the
//! cluster's own, so every component keeps to the paths that it knows; the rest is the machine's.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::{
    Error, ProcessId,
    component::{self, Component},
    reaper::Reaper,
    wait::{Deadline, wait_for},
};

const PATIENCE: Duration = Duration::from_secs(10);

/// The first process of the namespace. It waits for ever, and collects the orphans that end.
/// The folders that are mounted over stay behind, empty.
const INIT: &str = r#"
set -e
own() {
    mkdir -p "$1" "$2"
    mount --bind "$1" "$2"
}
mount --make-rshared /
own "$1/kubelet" /var/lib/kubelet
own "$1/containerd" /var/lib/containerd
own "$1/log" /var/log
own "$1/volumes" /tmp/hostpath_pv
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/lock
: >"$1/namespaces-are-ready"
while :; do
    sleep 86400 &
    wait
done
"#;

/// The process that holds the namespaces. Dropped, it ends them.
#[derive(Debug)]
pub(crate) struct Namespaces {
    holder: Component,
    init: ProcessId,
}

/// The way into the namespaces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entrance {
    holder: u32,
}

impl Namespaces {
    /// Makes them; what is mounted inside lies below `ground`.
    pub(crate) fn create(folder: &Path, ground: &Path, reaper: &mut Reaper) -> Result<Self, Error> {
        let mut command = Command::new("unshare");
        command
            .args(["--net", "--mount", "--propagation=private", "--pid", "--fork", "--kill-child"])
            .args(["--mount-proc", "--", "sh", "-c", INIT, "testbed-namespaces"])
            .arg(ground);
        let mut holder = Component::start("namespaces", &mut command, folder, reaper)?;
        let ready = ground.join("namespaces-are-ready");
        wait_for("the namespaces", Deadline::after(PATIENCE), &mut [&mut holder], || ready.is_file())?;
        let init = holder.process().child()?;
        reaper.watch(&init)?;
        component::record(folder, "namespaces-init", &init)?;
        Ok(Self { holder, init })
    }

    pub(crate) fn holder(&self) -> &Component {
        &self.holder
    }

    pub(crate) fn entrance(&self) -> Entrance {
        Entrance { holder: self.holder.process().pid() }
    }

    pub(crate) fn let_go(self) {
        let Self { holder, init: _ } = self;
        holder.let_go();
    }

    /// Ends all that runs inside and waits until it has.
    pub(crate) fn end(self) -> Result<(), Error> {
        let Self { holder, init } = self;
        drop(holder);
        init.stop(PATIENCE)
    }
}

impl Entrance {
    /// By the process id of the holder.
    pub(crate) fn of(holder: &ProcessId) -> Self {
        Self { holder: holder.pid() }
    }

    /// A command that sees the cluster's network, and else what the testbed sees. It becomes the program.
    pub(crate) fn network(self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(self.namespace("net", "net")).arg("--").arg(program);
        command
    }

    /// A command all inside. It waits for the program, which ends with the namespaces.
    pub(crate) fn inside(self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(self.namespace("net", "net"))
            .arg(self.namespace("mount", "mnt"))
            .arg(self.namespace("pid", "pid_for_children"))
            .arg("--")
            .arg(program);
        command
    }

    /// The holder's process id, by which `ip` knows the network.
    pub(crate) fn process(self) -> u32 {
        self.holder
    }

    fn namespace(self, flag: &str, file: &str) -> String {
        format!("--{flag}=/proc/{}/ns/{file}", self.holder)
    }
}

/// Where this program is on PATH, or where a system keeps what only root uses.
pub(crate) fn find_program(name: &str) -> Result<PathBuf, Error> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|file| fs::metadata(file).is_ok_and(|metadata| metadata.is_file()))
        .ok_or_else(|| Error::PackageMissing(name.to_owned()))
}
