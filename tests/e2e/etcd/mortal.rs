//! An operator that dies, loses an answer or is answered otherwise, once at each of its points, and is started again each
//! time.
//!
//! It is a process beside the cluster: the one of `cargo build`, or the one that `GATEHOUSE_MORTAL` names. The one that
//! is deployed has no such points.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use gatehouse::cli::operate::message::{Said, Told};

use super::told::FILTER;
use crate::cluster::{Bed, Namespace};

/// What becomes of an operator that comes to a point for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is killed there.
    Dies,
    /// It does not hear that what it did was done.
    LosesTheAnswer,
    /// What it asks of the API server comes to grief, each kind of request in each way.
    IsAnsweredOtherwise,
    /// The same, each kind of request in one of them.
    IsAnsweredOtherwiseOnce,
    /// Nothing.
    Lives,
}

impl Fate {
    /// What the operator is told by; nothing, where nothing becomes of it.
    const fn word(self) -> Option<&'static str> {
        match self {
            Self::Dies => Some("kill"),
            Self::LosesTheAnswer => Some("lose"),
            Self::IsAnsweredOtherwise => Some("answer"),
            Self::IsAnsweredOtherwiseOnce => Some("sample"),
            Self::Lives => None,
        }
    }
}

/// Works the EtcdClusters of one namespace until it is dropped.
pub struct Mortal {
    shared: Arc<Shared>,
    keeper: Option<JoinHandle<()>>,
}

struct Shared {
    namespace: String,
    kubeconfig: PathBuf,
    folder: PathBuf,
    /// The fate of now, and the so-many-th that is.
    fate: Mutex<(Fate, usize)>,
    running: Mutex<Option<Child>>,
    ends: AtomicBool,
}

impl Mortal {
    /// With that fate at first.
    pub fn start(bed: &Bed, namespace: &Namespace<'_>, fate: Fate) -> Self {
        let folder = folder(bed).join(&namespace.name);
        fs::create_dir_all(self::folder(bed)).expect("a folder");
        fs::create_dir(&folder).expect("nobody has worked that namespace before");
        let shared = Arc::new(Shared {
            namespace: namespace.name.clone(),
            kubeconfig: bed.cluster.kubeconfig().to_owned(),
            folder,
            fate: Mutex::new((fate, 0)),
            running: Mutex::default(),
            ends: AtomicBool::new(false),
        });
        let kept = Arc::clone(&shared);
        let keeper = Some(std::thread::spawn(move || kept.keep_running()));
        Self { shared, keeper }
    }

    /// What is to become of it from now on, at each point once.
    pub fn meets(&self, fate: Fate) {
        let mut now = self.shared.fate.lock().unwrap();
        *now = (fate, now.1 + 1);
        drop(now);
        self.shared.kill(); // whoever runs meets the one before
    }

    /// The points at which that has come about.
    pub fn met(&self) -> Vec<String> {
        let (_, number) = *self.shared.fate.lock().unwrap();
        self.shared.met(number)
    }

    /// The points at which anything has come about since it was started.
    pub fn ever_met(&self) -> BTreeSet<String> {
        let (_, number) = *self.shared.fate.lock().unwrap();
        (0..=number).flat_map(|number| self.shared.met(number)).collect()
    }
}

impl Drop for Mortal {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
        self.shared.kill();
        let ended = self.keeper.take().map(JoinHandle::join);
        assert!(matches!(ended, Some(Ok(()))) || std::thread::panicking(), "it was kept running");
    }
}

impl Shared {
    fn points(&self, number: usize) -> PathBuf {
        self.folder.join(format!("points-{number}"))
    }

    fn met(&self, number: usize) -> Vec<String> {
        let text = fs::read_to_string(self.points(number)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn kill(&self) {
        if let Some(running) = &mut *self.running.lock().unwrap() {
            running.kill().expect("it is ours");
        }
    }

    fn keep_running(&self) {
        for life in 0.. {
            if self.ends.load(Ordering::Relaxed) {
                return;
            }
            self.live(life);
        }
    }

    /// The life of one process. Each has a lease of its own: it has nobody to wait for.
    fn live(&self, life: usize) {
        let (fate, number) = *self.fate.lock().unwrap();
        let log = fs::File::options().create(true).append(true).open(self.folder.join("log"));
        let mut command = Command::new(program());
        let points =
            fate.word().map(|word| format!("{word}:{}", self.points(number).display())).unwrap_or_default();
        command
            .args(["operate", "--namespace", &self.namespace, "--watch-namespaces", &self.namespace])
            .args(["--lease", &format!("mortal-{life}")])
            .env("KUBECONFIG", &self.kubeconfig)
            .env("GATEHOUSE_LOG", FILTER)
            .env("GATEHOUSE_FAIL_POINTS", points)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log.expect("a log"));
        let mut process = command.spawn().expect("it starts");
        let (told, said) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        *self.running.lock().unwrap() = Some(process);
        // Nobody could kill it before that.
        if self.ends.load(Ordering::Relaxed) || *self.fate.lock().unwrap() != (fate, number) {
            self.kill();
        }
        lets_it_work(told, said);
        let ended = self.running.lock().unwrap().take().map(|mut process| process.wait());
        assert!(matches!(ended, Some(Ok(_))), "it has ended");
    }
}

/// Where all of them have a folder each, of the name of the namespace that they work.
pub fn folder(bed: &Bed) -> PathBuf {
    bed.cluster.folder().join("mortal")
}

/// A build with fail points.
fn program() -> OsString {
    std::env::var_os("GATEHOUSE_MORTAL").unwrap_or_else(|| env!("CARGO_BIN_EXE_gatehouse").into())
}

/// Says that the cluster is ready to be worked, until there is nobody to say it to.
fn lets_it_work(mut told: ChildStdin, said: impl std::io::Read) {
    for line in BufReader::new(said).lines().map_while(Result::ok) {
        if let Ok(Said::Won(number)) = serde_json::from_str(&line) {
            let answer = serde_json::to_string(&Told::Installed(number)).expect("JSON");
            let _gone = writeln!(told, "{answer}");
        }
    }
}
