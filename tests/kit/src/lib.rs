//! What the tests of gatehouse share.
//!
//! | module | what it does |
//! |---|---|
//! | [`harness`] | runs tests that share what is costly to start: limits, times, logs of what failed |
//! | [`wait`] | waits for a state, and tells what was there instead when it does not come |
//! | [`call`] | runs a program as a user does: kubectl, helm, gatehouse |
//! | [`bed`] | a control plane with the shipped rights in it, and gatehouse at its gate |
//! | [`examples`] | gives an object of each kind |
//! | [`deploy`] | renders what lies below `deploy/` |
//! | [`program`] | runs gatehouse beside a test, and follows its log |
//! | [`databases`] | starts PostgreSQL, MariaDB and MySQL |
//! | [`pods`] | runs the pods of Jobs on this machine, as a kubelet would |
//! | [`operator`] | keeps an operator running that dies or is answered otherwise at its points |
//! | `answers` | has an operator be answered otherwise than by what its API server said |
//! | [`objects`] | reads and writes objects of an API server with one client |
//! | [`audit`] | reads the audit log of an API server |
//! | [`ports`] | finds ports for servers that have to know theirs before they start |
//! | [`process`] | finds, signals and measures processes of this machine |
//! | [`random`] | draws numbers from a seed |
//! | [`etcd`] | makes the calls of etcd that gatehouse does not make |
//! | [`history`] | writes to etcd beside a test and checks what the clients were answered |
//! | [`membership`] | models how etcd answers changes of its members |
//! | [`reconciliations`] | plans again what an operator logged, and checks it |
//! | [`chains`] | draws chains of edits of an EtcdCluster, and compares two clusters |
//! | [`explore`] | searches all that can happen around a plan |
//!
//! Guarantees: nothing here passes a test by itself; each helper panics, or returns an error, with what it saw last.
//!
//! Never: sleeps for a fixed time in the hope that something is over, and asserts a wall time.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a test says what it expects by panicking"
)]
#![expect(clippy::must_use_candidate, reason = "a test may look only to see that it does not fail")]

mod answers;
pub mod audit;
pub mod bed;
pub mod call;
pub mod chains;
pub mod databases;
pub mod deploy;
pub mod etcd;
pub mod examples;
pub mod explore;
pub mod harness;
pub mod history;
pub mod kstatus;
pub mod membership;
pub mod objects;
pub mod operator;
mod paths;
pub mod pods;
pub mod ports;
pub mod process;
pub mod program;
pub mod random;
pub mod reconciliations;
pub mod refusal;
pub mod wait;

/// The program that `cargo test` built for the tests of this package.
#[macro_export]
macro_rules! gatehouse {
    () => {
        ::std::path::Path::new(env!("CARGO_BIN_EXE_gatehouse"))
    };
}

/// Tests with their names, as the functions are called: `tests![here, module::there]`.
#[macro_export]
macro_rules! tests {
    (@name $name:ident) => {
        stringify!($name)
    };
    (@name $module:ident :: $($rest:ident)::+) => {
        $crate::tests!(@name $($rest)::+)
    };
    ($($($part:ident)::+),* $(,)?) => {
        [$(($crate::tests!(@name $($part)::+), $($part)::+)),*]
    };
}

/// The folder of the sources that these tests are of.
#[must_use]
pub fn root() -> &'static std::path::Path {
    let own = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).expect("this crate lies two folders below it")
}

/// A variable of the environment as a value; the default where it is not set.
///
/// # Panics
/// It is set and cannot be read as such a value.
#[must_use]
pub fn env_or<T: std::str::FromStr>(name: &str, default: T) -> T {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} cannot be read")),
        Err(_) => default,
    }
}

/// Whether a test is to replace the files that it compares with (`UPDATE_EXPECTED`).
///
/// # Panics
/// This is a run that decides whether a change is taken (`CI`): its expected files are those that were committed.
#[must_use]
pub fn updates_expected() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    assert!(!(is_set("UPDATE_EXPECTED") && is_set("CI")), "UPDATE_EXPECTED is not for a run with CI set");
    is_set("UPDATE_EXPECTED")
}

/// Compares a text with its expected file, by the lines that count. `UPDATE_EXPECTED` replaces the file.
///
/// # Panics
/// A line differs.
#[track_caller]
pub fn expected(path: &std::path::Path, text: &str, counts: impl Fn(&str) -> bool) {
    if updates_expected() {
        std::fs::write(path, text).expect("the file can be written");
    }
    let known = std::fs::read_to_string(path).unwrap_or_default();
    let known: Vec<_> = known.split('\n').filter(|line| counts(line)).collect();
    let found: Vec<_> = text.split('\n').filter(|line| counts(line)).collect();
    let same = found.iter().zip(&known).take_while(|(found, known)| found == known).count();
    assert!(
        found == known,
        "{}: {:?} is made where {:?} was; UPDATE_EXPECTED=1 replaces it",
        path.display(),
        found.get(same),
        known.get(same)
    );
}
