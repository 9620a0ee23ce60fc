//! Control planes that outlive the command that started them, each under a name.
//!
//! Guarantees: what was started is recorded with its start time, so `down` stops that very process and no
//! later one of the same id, also after a crash or a reboot; two commands about one name do not meet.
//!
//! A name has the folder `<root>/<name>` with `record.json`, the logs of further processes and, unless
//! another folder was given, the control plane's own in `cluster`.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::{
    ControlPlane, Error, KubernetesVersion, Options, ProcessId, RunningProcess,
    component::start_detached,
    files::{own_folder, private_folder, remove_folder, write_private},
    kubeconfig, logs, node,
    process::boot_id,
    teardown,
    tools::Tools,
};

const OTHERS_GRACE: Duration = Duration::from_secs(20);
const NAME_LIMIT: usize = 40;

/// All the named control planes of one state folder.
#[derive(Debug, Clone)]
pub struct Instances {
    root: PathBuf,
}

/// What is known of one that is up, or was when the machine or a process of it crashed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    boot: String,
    /// The release, such as `1.37.2`; with assets, the one that they stand for.
    pub kubernetes: String,
    /// The URL of the API server.
    pub server: String,
    /// The kubeconfig of the administrator.
    pub kubeconfig: PathBuf,
    /// Where the control plane keeps data and logs.
    pub folder: PathBuf,
    /// Oldest first.
    pub control_plane: Vec<RunningProcess>,
    /// What was started besides, oldest first.
    pub others: Vec<RunningProcess>,
    /// Whether there is a node.
    #[serde(default)]
    pub node: bool,
}

impl Record {
    /// Whether every process of the control plane runs. One that is not yet recorded is not up.
    #[must_use]
    pub fn is_up(&self) -> bool {
        !self.control_plane.is_empty() && self.control_plane.iter().all(|process| self.runs(process))
    }

    /// Whether this process of the record runs.
    #[must_use]
    pub fn runs(&self, process: &RunningProcess) -> bool {
        self.boot == boot_id() && process.id.runs()
    }

    /// Stops everything, newest first, and forgets the control plane's folder.
    fn stop(&self) -> Result<(), Error> {
        for process in self.others.iter().rev() {
            if self.runs(process) {
                process.id.stop(OTHERS_GRACE)?;
            }
        }
        // The folder knows its processes, also those of a start that did not come to its end.
        teardown::clear(&self.folder)?;
        // The file tells that the folder is a control plane's, whatever the record says.
        if self.folder.join("boot").is_file() { remove_folder(&self.folder) } else { Ok(()) }
    }

    fn tools(&self) -> Result<Tools, Error> {
        Ok(Tools::of(self.kubernetes.parse()?, None))
    }

    /// The process that holds the namespaces of the node.
    fn holder(&self) -> Option<&ProcessId> {
        let holder = self.control_plane.iter().find(|process| process.label == teardown::HOLDER)?;
        Some(&holder.id)
    }
}

impl Instances {
    /// Those of `${XDG_STATE_HOME:-~/.local/state}/gatehouse`.
    ///
    /// # Errors
    /// Neither variable is set, nor `HOME`.
    pub fn from_env() -> Result<Self, Error> {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let state = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| home.join(".local/state")));
        Ok(Self::at(state.ok_or(Error::NoHome)?.join("gatehouse")))
    }

    /// Those of this folder.
    #[must_use]
    pub fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// Starts a control plane of this name unless it is up, and says whether it did. What is left of one that
    /// crashed is cleared away first.
    ///
    /// # Errors
    /// The control plane does not start, or what a crash left cannot be cleared away.
    pub fn up(&self, name: &str, mut options: Options) -> Result<(Record, bool), Error> {
        let _lock = self.lock(name)?;
        let folder = self.folder(name);
        if let Some(record) = self.read(name)? {
            if record.is_up() && record.node != options.node {
                return Err(Error::OtherKind { name: name.to_owned(), node: record.node });
            }
            if record.is_up() {
                return Ok((record, false));
            }
            record.stop()?;
        }
        remove_folder(&folder)?;
        private_folder(&folder)?;
        let cluster = options.folder.get_or_insert_with(|| folder.join("cluster"));
        *cluster = own_folder(Some(cluster))?;
        options.existing = None;
        options.name = Some(name.to_owned());
        let mut record = Record {
            boot: boot_id(),
            kubernetes: options.version.release().to_owned(),
            server: String::new(),
            kubeconfig: PathBuf::new(),
            folder: cluster.clone(),
            control_plane: Vec::new(),
            others: Vec::new(),
            node: options.node,
        };
        self.write(name, &record)?; // first, so that a crash leaves nothing that `down` would not know of
        let started = ControlPlane::start(&options).and_then(|control_plane| {
            control_plane.server().clone_into(&mut record.server);
            control_plane.kubeconfig().clone_into(&mut record.kubeconfig);
            record.control_plane = control_plane.processes();
            self.write(name, &record)?;
            control_plane.detach()?;
            Ok((record, true))
        });
        started.inspect_err(|_| drop(remove_folder(&folder)))
    }

    /// Like [`Instances::up`], but refuses one that is up with another version.
    ///
    /// # Errors
    /// As of [`Instances::up`], and when another version is up.
    pub fn up_with_version(
        &self,
        name: &str,
        version: KubernetesVersion,
        options: Options,
    ) -> Result<(Record, bool), Error> {
        let (record, started) = self.up(name, Options { version, ..options })?;
        if record.kubernetes == version.release() {
            return Ok((record, started));
        }
        Err(Error::OtherVersion { name: name.to_owned(), running: record.kubernetes })
    }

    /// Stops all that runs under this name and removes its folders. Says whether there was anything.
    ///
    /// # Errors
    /// A process outlives being killed, or a folder cannot be removed.
    pub fn down(&self, name: &str) -> Result<bool, Error> {
        let _lock = self.lock(name)?;
        let folder = self.folder(name);
        let was_there = folder.exists();
        if let Some(record) = self.read(name)? {
            record.stop()?;
        }
        remove_folder(&folder)?;
        Ok(was_there)
    }

    /// Loads the images of an archive onto the node of one that is up.
    ///
    /// # Errors
    /// Nothing is up under the name, it has no node, or containerd refuses the archive.
    pub fn load_image(&self, name: &str, archive: &Path) -> Result<(), Error> {
        let record = self.read(name)?.filter(Record::is_up).ok_or_else(|| Error::NotUp(name.to_owned()))?;
        let holder = record.holder().ok_or(Error::NoNode)?;
        node::load_image(holder, &record.tools()?, archive)
    }

    /// A command that sees the network, the files and the processes of the node of one that is up.
    ///
    /// # Errors
    /// Nothing is up under the name, or it has no node.
    pub fn on_node(&self, name: &str, program: &Path) -> Result<Command, Error> {
        let record = self.read(name)?.filter(Record::is_up).ok_or_else(|| Error::NotUp(name.to_owned()))?;
        record.holder().map(|holder| node::inside(holder, program)).ok_or(Error::NoNode)
    }

    /// As of [`ControlPlane::collect_logs`], also of one that is not whole any more.
    ///
    /// # Errors
    /// Nothing is recorded under the name, or files cannot be written.
    pub fn collect_logs(&self, name: &str, into: &Path) -> Result<(), Error> {
        let record = self.read(name)?.ok_or_else(|| Error::NotUp(name.to_owned()))?;
        let kubectl = record.tools()?.any_kubectl();
        let kubectl = || kubeconfig::kubectl(&kubectl, &record.kubeconfig, &record.folder);
        logs::collect(Some(&record.folder), &kubectl, into)?;
        logs::copy_logs(&self.folder(name), &into.join("others"))
    }

    /// Starts a command beside a control plane that is up, with `KUBECONFIG` set to its administrator's, and
    /// returns at once. The label is free unless a process of that label runs; with `replace` that one is
    /// stopped first. What it says is appended to `log`, or to `<label>.log` in the folder of the name.
    ///
    /// # Errors
    /// Nothing is up under the name, the label is taken, or the command cannot be started.
    pub fn exec(
        &self,
        name: &str,
        label: &str,
        command: &mut Command,
        log: Option<&Path>,
        replace: bool,
    ) -> Result<RunningProcess, Error> {
        check_name(label)?;
        let _lock = self.lock(name)?;
        let mut record =
            self.read(name)?.filter(Record::is_up).ok_or_else(|| Error::NotUp(name.to_owned()))?;
        let running = record.others.iter().find(|process| process.label == label && record.runs(process));
        if let Some(process) = running {
            if !replace {
                let (name, label) = (name.to_owned(), label.to_owned());
                return Err(Error::AlreadyRuns { name, label, pid: process.id.pid() });
            }
            process.id.stop(OTHERS_GRACE)?;
        }
        record.others.retain(|process| process.label != label);
        let log = match log {
            Some(path) => {
                std::path::absolute(path).map_err(Error::io(format!("finding {}", path.display())))?
            }
            None => self.folder(name).join(format!("{label}.log")),
        };
        let child = start_detached(command.env("KUBECONFIG", &record.kubeconfig), &log)?;
        let process = RunningProcess { label: label.to_owned(), id: ProcessId::of(child.id())?, log };
        record.others.push(process.clone());
        self.write(name, &record)?;
        Ok(process)
    }

    /// What is recorded under this name.
    ///
    /// # Errors
    /// The name does not do as one, or the record cannot be read.
    pub fn read(&self, name: &str) -> Result<Option<Record>, Error> {
        check_name(name)?;
        let path = self.folder(name).join("record.json");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                return Err(Error::Io { doing: format!("reading {}", path.display()), source });
            }
        };
        serde_json::from_str(&text).map(Some).map_err(|source| Error::BadRecord { path, source })
    }

    /// The names that something is recorded under, in order.
    ///
    /// # Errors
    /// The state folder cannot be read.
    pub fn names(&self) -> Result<Vec<String>, Error> {
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => {
                return Err(Error::Io { doing: format!("reading {}", self.root.display()), source });
            }
        };
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| self.folder(name).join("record.json").is_file())
            .collect();
        names.sort();
        Ok(names)
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn write(&self, name: &str, record: &Record) -> Result<(), Error> {
        let path = self.folder(name).join("record.json");
        let text = serde_json::to_string_pretty(record)
            .map_err(|source| Error::BadRecord { path: path.clone(), source })?;
        let unfinished = path.with_extension("new");
        write_private(&unfinished, &text)?;
        fs::rename(&unfinished, &path).map_err(Error::io(format!("writing {}", path.display())))
    }

    /// Held while a command works on a name; the kernel frees it at any end of the command.
    fn lock(&self, name: &str) -> Result<File, Error> {
        check_name(name)?;
        private_folder(&self.root)?;
        let path = self.root.join(format!(".{name}.lock"));
        let doing = format!("locking {}", path.display());
        let file = File::options().create(true).append(true).open(path).map_err(Error::io(doing.clone()))?;
        file.lock().map_err(Error::io(doing))?;
        Ok(file)
    }
}

/// Names and labels become names of files.
fn check_name(name: &str) -> Result<(), Error> {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !name.is_empty() && name.len() <= NAME_LIMIT && name.bytes().all(letter) {
        return Ok(());
    }
    Err(Error::BadName(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{component, process::pause};
    use std::{os::unix::process::CommandExt, process::Child};

    /// One that is up as far as anybody can tell, with a sleeper for a control plane.
    fn pretended(instances: &Instances) -> (Child, Record) {
        let folder = instances.folder("test").join("cluster");
        private_folder(&folder).unwrap();
        teardown::record_boot(&folder).unwrap();
        let child = Command::new("sleep").arg("60").process_group(0).spawn().unwrap();
        let id = ProcessId::of(child.id()).unwrap();
        component::record(&folder, "etcd", &id).unwrap();
        let record = Record {
            boot: boot_id(),
            kubernetes: KubernetesVersion::default().release().to_owned(),
            server: String::new(),
            kubeconfig: folder.join("kubeconfig"),
            folder,
            control_plane: vec![RunningProcess { label: "etcd".to_owned(), id, log: PathBuf::new() }],
            others: Vec::new(),
            node: false,
        };
        instances.write("test", &record).unwrap();
        (child, record)
    }

    #[test]
    fn what_runs_beside_it_is_replaced_on_demand_and_stopped_with_it() {
        let root = tempfile::tempdir().unwrap();
        let instances = Instances::at(root.path().to_owned());
        let sleep = || {
            let mut command = Command::new("sh");
            command.args(["-c", "echo \"$KUBECONFIG\"; exec sleep 60"]);
            command
        };
        assert!(matches!(instances.exec("test", "a", &mut sleep(), None, false), Err(Error::NotUp(_))));
        let (mut child, record) = pretended(&instances);
        assert!(!instances.up("test", Options::default()).unwrap().1);

        let first = instances.exec("test", "a", &mut sleep(), None, false).unwrap();
        let again = instances.exec("test", "a", &mut sleep(), None, false);
        assert!(matches!(again, Err(Error::AlreadyRuns { .. })));
        let second = instances.exec("test", "a", &mut sleep(), None, true).unwrap();
        assert!(!first.id.runs() && second.id.runs());
        let said = format!("{}\n", record.kubeconfig.display());
        while !fs::read_to_string(&second.log).unwrap().ends_with(&said) {
            pause(Duration::from_millis(10));
        }

        assert_eq!(instances.names().unwrap(), ["test"]);
        assert!(instances.down("test").unwrap());
        assert!(!second.id.runs() && !record.control_plane[0].id.runs());
        assert!(!instances.folder("test").exists());
        assert!(!instances.down("test").unwrap());
        child.wait().unwrap();
    }

    #[test]
    fn after_another_boot_no_process_is_touched() {
        let root = tempfile::tempdir().unwrap();
        let instances = Instances::at(root.path().to_owned());
        let (mut child, mut record) = pretended(&instances);
        record.boot = "another".to_owned();
        write_private(&record.folder.join("boot"), "another").unwrap();
        instances.write("test", &record).unwrap();
        assert!(instances.down("test").unwrap());
        assert!(record.control_plane[0].id.runs());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn names_stay_inside_the_state_folder() {
        let instances = Instances::at(PathBuf::from("/nowhere"));
        for name in ["", ".", "..", "a/b", "A", &"a".repeat(41)] {
            assert!(matches!(instances.read(name), Err(Error::BadName(_))), "{name}");
        }
    }
}
