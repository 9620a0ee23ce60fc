//! An operator that dies, or loses an answer, once at each of its points, and is started again each time.
//!
//! It is the one of `cargo build`, a process beside the cluster, for a release build has no such points.

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
    pub fn start(bed: &Bed, namespace: &Namespace<'_>) -> Self {
        let folder = bed.cluster.folder().join("mortal");
        fs::create_dir_all(&folder).expect("a folder");
        let shared = Arc::new(Shared {
            namespace: namespace.name.clone(),
            kubeconfig: bed.cluster.kubeconfig().to_owned(),
            folder,
            fate: Mutex::new((Fate::Dies, 0)),
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
        let text = fs::read_to_string(self.shared.points(number)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
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
        let word = if fate == Fate::Dies { "kill" } else { "lose" };
        let log = fs::File::options().create(true).append(true).open(self.folder.join("log"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_gatehouse"));
        command
            .args(["operate", "--namespace", &self.namespace, "--watch-namespaces", &self.namespace])
            .args(["--lease", &format!("mortal-{life}")])
            .env("KUBECONFIG", &self.kubeconfig)
            .env("GATEHOUSE_LOG", FILTER)
            .env("GATEHOUSE_FAIL_POINTS", format!("{word}:{}", self.points(number).display()))
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

/// Says that the cluster is ready to be worked, until there is nobody to say it to.
fn lets_it_work(mut told: ChildStdin, said: impl std::io::Read) {
    for line in BufReader::new(said).lines().map_while(Result::ok) {
        if let Ok(Said::Won(number)) = serde_json::from_str(&line) {
            let answer = serde_json::to_string(&Told::Installed(number)).expect("JSON");
            let _gone = writeln!(told, "{answer}");
        }
    }
}
