//! An operator of one namespace, as a process beside the cluster: it dies, loses an answer or is answered otherwise, once
//! at each of its points ([`gatehouse::runtime::fail_point`]), and is started again each time.
//!
//! Guarantees: an operator runs until this is dropped, and none after that; each process has a Lease of its own, so that
//! it waits for no other; one that was to live and ended is a failure.
//! Assumes: a build with fail points, whose account may write Leases in the namespace.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use gatehouse::cli::operate::message::{Said, Told};

use crate::wait::{PATIENCE, patient};

/// What becomes of an operator that comes to a point for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is killed there.
    Dies,
    /// It does not hear that what it did was done.
    LosesTheAnswer,
    /// What it asks of the API server is answered otherwise, each kind of request in each way.
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

/// What an operator is to work, and how it is started.
#[derive(Clone, Debug)]
pub struct Post {
    /// The program: a build with fail points.
    pub program: PathBuf,
    /// Who it is to the API server.
    pub kubeconfig: PathBuf,
    /// The namespace that it works, and that has its Leases.
    pub namespace: String,
    /// Where its log and the points that it met are. It is made where it is missing.
    pub folder: PathBuf,
    /// Its environment besides: `GATEHOUSE_LOG`, `GATEHOUSE_CLOCK`.
    pub variables: Vec<(&'static str, String)>,
}

impl Post {
    /// The log of all operators that stood here.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.folder.join("log")
    }
}

/// Works a namespace until it is dropped.
#[derive(Debug)]
pub struct Operator {
    shared: Arc<Shared>,
    keeper: Option<JoinHandle<()>>,
    pages: Receiver<String>,
}

#[derive(Debug)]
struct Shared {
    post: Post,
    /// What has become of it so far and is to become of it now, each with the file of the points where it did.
    fates: Mutex<Vec<(Fate, PathBuf)>>,
    running: Mutex<Option<(Child, ChildStdin)>>,
    ends: AtomicBool,
    lives: AtomicUsize,
}

/// Numbers processes and fates of this process of tests: no name is used twice.
fn number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Operator {
    /// Starts one, with that fate at first.
    #[must_use]
    pub fn start(post: Post, fate: Fate) -> Self {
        fs::create_dir_all(&post.folder).expect("a folder for the operator");
        let shared = Shared {
            post,
            fates: Mutex::default(),
            running: Mutex::default(),
            ends: AtomicBool::new(false),
            lives: AtomicUsize::new(0),
        };
        shared.add(fate);
        let (shared, (pages, shown)) = (Arc::new(shared), mpsc::channel());
        let kept = Arc::clone(&shared);
        let keeper = Some(std::thread::spawn(move || kept.keep_running(&pages)));
        Self { shared, keeper, pages: shown }
    }

    /// What is to become of it from now on, at each point once.
    pub fn meets(&self, fate: Fate) {
        self.shared.add(fate);
        self.shared.kill(); // the one that runs meets the fate before
    }

    /// The points at which its present fate has come about.
    #[must_use]
    pub fn met(&self) -> Vec<String> {
        let (_, points) = self.shared.fate();
        points_in(&points)
    }

    /// The points at which any fate has come about since it was started.
    #[must_use]
    pub fn ever_met(&self) -> BTreeSet<String> {
        locked(&self.shared.fates).iter().flat_map(|(_, points)| points_in(points)).collect()
    }

    /// How many processes it has been so far.
    #[must_use]
    pub fn lives(&self) -> usize {
        self.shared.lives.load(Ordering::Relaxed)
    }

    /// Its metrics, as the gate beside it would show them.
    pub fn page(&self) -> String {
        // An answer to an earlier question that nobody waited for.
        self.pages.try_iter().for_each(drop);
        self.shared.tell(&Told::Page);
        self.pages.recv_timeout(patient(PATIENCE)).expect("the operator shows its metrics")
    }

    /// The sum of a metric over its labels.
    #[must_use]
    pub fn metric(&self, name: &str) -> u64 {
        let page = self.page();
        let values = page.lines().filter_map(|line| line.strip_prefix(name)?.rsplit_once(' '));
        values.filter_map(|(_, value)| value.parse::<u64>().ok()).sum()
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let lives = self.lives();
        self.shared.ends.store(true, Ordering::Relaxed);
        self.shared.kill();
        let kept = self.keeper.take().map(JoinHandle::join);
        if std::thread::panicking() {
            return;
        }
        assert!(matches!(kept, Some(Ok(()))), "it was kept running: {kept:?}");
        let was_to_live = locked(&self.shared.fates).iter().all(|(fate, _)| *fate == Fate::Lives);
        let fates = locked(&self.shared.fates).len();
        assert!(
            !was_to_live || lives <= fates,
            "it ended by itself: see {}",
            self.shared.post.log().display()
        );
    }
}

impl Shared {
    fn add(&self, fate: Fate) {
        let points = self.post.folder.join(format!("points-{}", number()));
        locked(&self.fates).push((fate, points));
    }

    /// The fate of now.
    fn fate(&self) -> (Fate, PathBuf) {
        locked(&self.fates).last().cloned().expect("it has one from its start")
    }

    fn kill(&self) {
        if let Some((running, _)) = &mut *locked(&self.running) {
            running.kill().expect("it is ours");
        }
    }

    fn tell(&self, message: &Told) {
        if let Some((_, told)) = &mut *locked(&self.running) {
            let line = serde_json::to_string(message).expect("JSON");
            // It may have ended.
            let _gone = writeln!(told, "{line}");
        }
    }

    fn keep_running(&self, pages: &Sender<String>) {
        while !self.ends.load(Ordering::Relaxed) {
            self.live(pages);
        }
    }

    /// The life of one process.
    fn live(&self, pages: &Sender<String>) {
        let (fate, points) = self.fate();
        let mut process = self.command(fate, &points).spawn().expect("the operator starts");
        let (told, said) = (process.stdin.take().expect("piped"), process.stdout.take().expect("piped"));
        self.lives.fetch_add(1, Ordering::Relaxed);
        *locked(&self.running) = Some((process, told));
        // Nobody could kill it before that.
        if self.ends.load(Ordering::Relaxed) || self.fate() != (fate, points) {
            self.kill();
        }
        for line in BufReader::new(said).lines().map_while(Result::ok) {
            match serde_json::from_str(&line) {
                // The cluster is ready to be worked.
                Ok(Said::Won(number)) => self.tell(&Told::Installed(number)),
                Ok(Said::Page(page)) => pages.send(page).unwrap_or_default(),
                Ok(Said::State(_)) | Err(_) => {}
            }
        }
        let ended = locked(&self.running).take().map(|(mut process, _)| process.wait());
        assert!(matches!(ended, Some(Ok(_))), "it has ended");
    }

    fn command(&self, fate: Fate, points: &std::path::Path) -> Command {
        let Post { program, kubeconfig, namespace, variables, .. } = &self.post;
        let log = File::options().create(true).append(true).open(self.post.log()).expect("a log");
        let mut command = Command::new(program);
        command
            .args(["--log-format", "json", "operate", "--lease", &format!("life-{}", number())])
            .args(["--namespace", namespace, "--watch-namespaces", namespace])
            .env("KUBECONFIG", kubeconfig)
            .env_remove("GATEHOUSE_FAIL_POINTS")
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log);
        if let Some(word) = fate.word() {
            command.env("GATEHOUSE_FAIL_POINTS", format!("{word}:{}", points.display()));
        }
        command
    }
}

fn points_in(file: &std::path::Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
