//! Runs tests that share what is costly to start, with the flags that `cargo test` passes on.
//!
//! Guarantees: each test has a limit, and fails when it has not ended by then, or has not got its turn where it waits for
//! one; what a test printed by panicking is its failure; the logs of a failed test are kept at that moment, by what the
//! suite says; how long each test took is printed, and added to the file that `TEST_TIMES` names, as lines of seconds,
//! outcome and name.
//! Never: runs a failed test again, and ends the thread of one that hangs: that goes with the process.

use std::cell::RefCell;
use std::fs::File;
use std::io::Write as _;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Builder;

use crate::wait::patient;

/// How many of the slowest tests are shown at the end.
const SLOWEST: usize = 10;

/// A test.
pub struct Test {
    name: String,
    limit: Duration,
    is_long: bool,
    run: Box<dyn FnOnce() + Send>,
}

impl std::fmt::Debug for Test {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Test").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Test {
    /// A test that fails by panicking, or when it has not ended at its limit.
    pub fn new(name: impl Into<String>, limit: Duration, run: impl FnOnce() + Send + 'static) -> Self {
        Self { name: name.into(), limit, is_long: false, run: Box::new(run) }
    }

    /// The same for what waits on a runtime of its own.
    pub fn of_future<Running: Future<Output = ()>>(
        name: impl Into<String>,
        limit: Duration,
        run: impl FnOnce() -> Running + Send + 'static,
    ) -> Self {
        Self::new(name, limit, move || {
            let runtime = Builder::new_current_thread().enable_all().build();
            runtime.unwrap_or_else(|error| panic!("no runtime for it: {error}")).block_on(run());
        })
    }

    /// One that runs only where ignored tests are asked for: it takes long.
    #[must_use]
    pub fn long(self, is_long: bool) -> Self {
        Self { is_long, ..self }
    }
}

/// These functions as tests of a suite, each of which waits on a runtime of its own.
#[macro_export]
macro_rules! tests_on_runtimes {
    ($suite:literal, $limit:expr => $($test:ident),* $(,)?) => {
        vec![$($crate::harness::Test::of_future(concat!($suite, "::", stringify!($test)), $limit, $test)),*]
    };
}

/// What is known of the tests that ran.
type Times = Arc<Mutex<Vec<(Duration, String)>>>;

/// Keeps the logs of a test that failed; where they are.
type KeepLogs = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// Runs batches of tests, one batch after the other.
pub struct Harness {
    arguments: Arguments,
    logs: KeepLogs,
    times: Times,
    has_failed: bool,
}

impl std::fmt::Debug for Harness {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Harness").field("arguments", &self.arguments).finish_non_exhaustive()
    }
}

impl Harness {
    /// What the command line asks for.
    #[must_use]
    pub fn from_args() -> Self {
        Self::new(Arguments::from_args())
    }

    fn new(arguments: Arguments) -> Self {
        Self { arguments, logs: Arc::new(|_| String::new()), times: Times::default(), has_failed: false }
    }

    /// Has the logs of a failed test kept: `keep` is given its name, and says where they are.
    #[must_use]
    pub fn keep_logs(mut self, keep: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        self.logs = Arc::new(keep);
        self
    }

    /// Whether tests are only to be listed.
    #[must_use]
    pub const fn lists(&self) -> bool {
        self.arguments.list
    }

    /// Whether this run asks for a test: a suite need not start what no test asks for.
    #[must_use]
    pub fn wants(&self, name: &str, is_long: bool) -> bool {
        let matches = |filter: &String| {
            if self.arguments.exact { name == filter } else { name.contains(filter.as_str()) }
        };
        let long_too = self.arguments.include_ignored || (self.arguments.ignored == is_long);
        self.arguments.filter.as_ref().is_none_or(matches)
            && !self.arguments.skip.iter().any(matches)
            && long_too
    }

    /// Runs these tests, so many side by side unless `--test-threads` says otherwise.
    pub fn run(&mut self, tests: Vec<Test>, threads: usize) {
        let threads = self.arguments.test_threads.or(Some(threads));
        let arguments = Arguments { test_threads: threads, ..self.arguments.clone() };
        let trials = tests.into_iter().map(|test| self.trial(test));
        let trials = trials.collect();
        self.has_failed |= libtest_mimic::run(&arguments, trials).has_failed();
    }

    fn trial(&self, test: Test) -> Trial {
        let Test { name, limit, is_long, run } = test;
        let (times, logs, title) = (Arc::clone(&self.times), Arc::clone(&self.logs), name.clone());
        Trial::test(name, move || {
            let begun = Instant::now();
            let outcome = within_limit(limit, &title, run);
            let took = begun.elapsed();
            let word = if outcome.is_ok() { "ok" } else { "FAILED" };
            println!("{title}: {word} after {:.1} s", took.as_secs_f64());
            times.lock().unwrap_or_else(PoisonError::into_inner).push((took, title.clone()));
            add_to_file(took, word, &title);
            outcome.map_err(|why| Failed::from(format!("{why}\n{}", logs(&title))))
        })
        .with_ignored_flag(is_long)
    }

    /// Shows the slowest tests; how the process is to end.
    #[must_use]
    pub fn end(self) -> ExitCode {
        let mut times = std::mem::take(&mut *self.times.lock().unwrap_or_else(PoisonError::into_inner));
        times.sort_unstable_by(|one, other| other.cmp(one));
        if !times.is_empty() {
            println!("slowest:");
        }
        for (took, name) in times.iter().take(SLOWEST) {
            println!("  {:6.1} s {name}", took.as_secs_f64());
        }
        if self.has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

/// What a test tells the thread that waits for its end.
enum News {
    /// It has waited for its turn, and its limit begins now.
    Begins,
    Ended(Result<(), String>),
}

thread_local! {
    /// Of the thread of a test.
    static TELLS: RefCell<Option<mpsc::Sender<News>>> = const { RefCell::new(None) };
}

/// The limit of the test of this thread begins now: it has what it waited for while others worked.
pub fn begin_limit() {
    TELLS.with_borrow(|tells| {
        if let Some(tells) = tells {
            // At the limit nothing listens any more.
            let _late = tells.send(News::Begins);
        }
    });
}

/// Runs a test on a thread of its own until it ends or its limit comes.
fn within_limit(limit: Duration, name: &str, run: Box<dyn FnOnce() + Send>) -> Result<(), String> {
    let (ended, end) = mpsc::channel();
    let body = move || {
        TELLS.set(Some(ended.clone()));
        let outcome = std::panic::catch_unwind(AssertUnwindSafe(run));
        let outcome = outcome.map_err(|panic| {
            let owned = panic.downcast_ref::<String>().map(String::as_str);
            owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
        });
        // At the limit nothing listens any more.
        let _late = ended.send(News::Ended(outcome));
    };
    let limit = patient(limit);
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(body);
    started.map_err(|error| format!("no thread for it: {error}"))?;
    ended_within(limit, &end)
}

fn ended_within(limit: Duration, news: &mpsc::Receiver<News>) -> Result<(), String> {
    loop {
        match news.recv_timeout(limit) {
            Ok(News::Begins) => {}
            Ok(News::Ended(outcome)) => return outcome,
            Err(_) => return Err(format!("not ended within its limit of {limit:?}")),
        }
    }
}

/// One line, written at once, so that suites that run side by side share the file.
fn add_to_file(took: Duration, word: &str, name: &str) {
    let Some(path) = std::env::var_os("TEST_TIMES").filter(|path| !path.is_empty()) else { return };
    let line = format!("{:.3}\t{word}\t{name}\n", took.as_secs_f64());
    let file = File::options().create(true).append(true).open(&path);
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    written.unwrap_or_else(|error| panic!("TEST_TIMES={}: {error}", path.display()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn harness(words: &[&str]) -> Harness {
        let words = ["suite", "--quiet"].iter().chain(words);
        Harness::new(Arguments::from_iter(words))
    }

    #[test]
    fn a_test_that_hangs_fails_at_its_limit_and_its_logs_are_kept() {
        let (never, hangs) = mpsc::channel::<()>();
        let kept = Arc::new(Mutex::new(Vec::new()));
        let keeper = Arc::clone(&kept);
        let mut harness = harness(&[]).keep_logs(move |name| {
            keeper.lock().expect("no holder panics").push(name.to_owned());
            "in a folder".to_owned()
        });
        harness.run(
            vec![
                Test::new("hangs", Duration::from_millis(20), move || {
                    let _hung = hangs.recv();
                }),
                Test::new("ends", Duration::from_mins(1), || ()),
            ],
            2,
        );
        drop(never);
        assert!(harness.has_failed);
        assert_eq!(*kept.lock().expect("no holder panics"), ["hangs"]);
    }

    #[test]
    fn the_limit_begins_once_a_test_has_its_turn() {
        assert_eq!(within_limit(Duration::from_mins(1), "waits", Box::new(begin_limit)), Ok(()));
        let (tells, news) = mpsc::channel();
        TELLS.set(Some(tells.clone()));
        begin_limit();
        TELLS.set(None);
        tells.send(News::Ended(Ok(()))).expect("it is heard");
        assert_eq!(ended_within(Duration::ZERO, &news), Ok(()));
        tells.send(News::Begins).expect("it is heard");
        assert!(ended_within(Duration::ZERO, &news).is_err(), "the limit holds after that as well");
    }

    #[test]
    fn a_panic_is_a_failure_with_its_message() {
        let run = Box::new(|| panic!("two of three"));
        assert_eq!(within_limit(Duration::from_mins(1), "panics", run), Err("two of three".to_owned()));
    }

    #[test]
    fn only_what_is_asked_for_is_wanted() {
        let some = harness(&["api::", "--skip", "slow"]);
        assert!(some.wants("api::verbs", false) && !some.wants("api::slow", false));
        assert!(!some.wants("etcd::verbs", false) && !some.wants("api::verbs", true));
        assert!(harness(&["--include-ignored"]).wants("api::verbs", true));
        assert!(harness(&["api", "--exact"]).wants("api", false));
        assert!(!harness(&["api", "--exact"]).wants("api::verbs", false));
    }
}
