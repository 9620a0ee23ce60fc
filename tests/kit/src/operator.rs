//! The controllers of one namespace, as a process beside the cluster (`gatehouse serve --only controllers`): it dies or
//! loses an answer, once at each of its points ([`gatehouse::runtime::fail_point`]), or is answered otherwise, and is
//! started again each time.
//!
//! Guarantees: an operator runs until this is dropped, and none after that; each process has a Lease of its own, so
//! that it waits for no other; one that was to live and ended is a failure.
//! Assumes: a build with fail points, whose account may write Leases in the namespace that it is configured to run in.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::answers::{Proxy, Share};
use crate::objects::http_get;
use crate::program::{Leash, Program};
use crate::wait::eventually;

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
    /// The mode of its fail points; none, where nothing happens to it.
    const fn word(self) -> Option<&'static str> {
        match self {
            Self::Dies => Some("kill"),
            Self::LosesTheAnswer => Some("lose"),
            Self::IsAnsweredOtherwise | Self::IsAnsweredOtherwiseOnce | Self::Lives => None,
        }
    }

    /// In how many ways each kind of its requests is answered otherwise.
    const fn answers(self) -> Option<Share> {
        match self {
            Self::IsAnsweredOtherwise => Some(Share::Each),
            Self::IsAnsweredOtherwiseOnce => Some(Share::One),
            Self::Dies | Self::LosesTheAnswer | Self::Lives => None,
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
    /// The namespace that it works.
    pub namespace: String,
    /// The namespace that it is configured to run in, which has its Leases. Objects there are not worked.
    pub home: String,
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
}

#[derive(Debug)]
struct Shared {
    post: Post,
    /// What has become of it so far and is to become of it now, each with the file of the points where it did.
    fates: Mutex<Vec<(Fate, PathBuf)>>,
    running: Mutex<Running>,
    ends: AtomicBool,
    lives: AtomicUsize,
}

/// The process that runs now.
#[derive(Debug, Default)]
struct Running {
    leash: Option<Leash>,
    /// Where it shows its metrics.
    health: Option<SocketAddr>,
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
        let shared = Arc::new(shared);
        let kept = Arc::clone(&shared);
        let keeper = Some(std::thread::spawn(move || kept.keep_running()));
        Self { shared, keeper }
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

    /// Its metrics.
    #[track_caller]
    #[must_use]
    pub fn page(&self) -> String {
        eventually(|| {
            let health = locked(&self.shared.running).health.ok_or("it does not serve")?;
            let page = http_get(health, "/metrics");
            if page.ends_with("# EOF\n") { Ok(page) } else { Err("it shows no metrics") }
        })
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
        drop(locked(&self.running).leash.take());
    }

    fn keep_running(&self) {
        while !self.ends.load(Ordering::Relaxed) {
            self.live();
        }
    }

    /// The life of one process.
    fn live(&self) {
        let (fate, points) = self.fate();
        let proxy = fate.answers().map(|share| Proxy::start(&self.post.kubeconfig, share, &points));
        let kubeconfig = proxy.as_ref().map_or(&self.post.kubeconfig, |proxy| &proxy.kubeconfig);
        let program = Program::resume(&self.command(fate, kubeconfig, &points), &self.post.log());
        let mut program = program.expect("the operator starts");
        self.lives.fetch_add(1, Ordering::Relaxed);
        locked(&self.running).leash = program.leash();
        // It could not be killed before that.
        if self.ends.load(Ordering::Relaxed) || self.fate() != (fate, points) {
            self.kill();
        }
        // One that is killed before has no address.
        let serving = program.wait_for("serving").ok();
        let health = serving.and_then(|line| line["health"].as_str()?.parse().ok());
        locked(&self.running).health = health;
        // However it ended, the next one follows.
        let _code = program.code();
        *locked(&self.running) = Running::default();
    }

    fn command(&self, fate: Fate, kubeconfig: &Path, points: &Path) -> Command {
        let Post { program, namespace, home, variables, .. } = &self.post;
        let serve = ["serve", "--only", "controllers", "--health-listen", "127.0.0.1:0"];
        let mut command = Program::gatehouse(program, &serve);
        command
            .args(["--lease", &format!("life-{}-{}", std::process::id(), number())])
            .args(["--namespace", home, "--watch-namespaces", namespace])
            .env("KUBECONFIG", kubeconfig)
            .env_remove("GATEHOUSE_FAIL_POINTS")
            .envs(variables.iter().map(|(name, value)| (name, value)));
        if let Some(word) = fate.word() {
            command.env("GATEHOUSE_FAIL_POINTS", format!("{word}:{}", points.display()));
        }
        command
    }
}

fn points_in(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
