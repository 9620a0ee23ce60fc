//! gatehouse as users deploy it: in its image, by the chart and by kustomize in turn, in a cluster with a real node.
//!
//! `make e2e` builds what this needs and runs it, as root. A cluster of its own is started for it, and torn down at
//! the end, whatever the end is. With `KUBECONFIG` set it takes that cluster instead, whose nodes must have the
//! images and run on this machine.
//!
//! What takes long is passed by, and listed as ignored; `make e2e-long` runs it, and all else.
//!
//! `make e2e FILTER=name` runs what matches; names begin with the way of deploying: `chart::a_rolling_restart…`.
//! What a test needs, it deploys. When one fails, the logs of everything are left in `target/e2e/`.
//! A missing part is an error that says what to run; nothing is skipped in silence.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test says what it expects by unwrapping"
)]

mod audit;
mod cluster;
mod etcd;
mod kubectl;
mod life;
mod process;
mod release;
mod rights;
mod tdset;
mod tools;
mod traffic;

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};

use cluster::Bed;
use release::Way;

/// A test and its name. It runs alone.
type Test = (&'static str, fn(&Bed, Way));

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // One cluster, and what is deployed in it, is what all tests are about.
    arguments.test_threads = Some(1);
    let names = || Way::ALL.into_iter().flat_map(|way| tests(way).into_iter().map(move |test| (way, test)));
    if arguments.list {
        let trials = names().map(|(way, (name, _))| Trial::test(title(way, name), || Ok(())));
        libtest_mimic::run(&arguments, trials.collect()).exit();
    }
    let bed = match cluster::start() {
        Ok(bed) => Arc::new(bed),
        Err(why) => {
            eprintln!("error: {why}");
            return ExitCode::FAILURE;
        }
    };
    let trials = names().map(|(way, (name, test))| {
        let bed = Arc::clone(&bed);
        let trial = Trial::test(title(way, name), move || finished(&bed, way, name, test));
        trial.with_ignored_flag(is_long(name))
    });
    let outcome = libtest_mimic::run(&arguments, trials.collect());
    println!("measured:");
    bed.figures.lock().unwrap().iter().for_each(|figure| println!("  {figure}"));
    if outcome.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// What hangs on the way of deploying is run for each of them, all else for one.
fn tests(way: Way) -> Vec<Test> {
    match way {
        Way::Chart => [life::TESTS, life::IN_DEPTH, tdset::TESTS, etcd::TESTS, &[life::LAST]].concat(),
        Way::Kustomize => life::TESTS.to_vec(),
    }
}

/// Whether it is run only where it is asked for.
fn is_long(name: &str) -> bool {
    etcd::LONG.iter().any(|(long, _)| *long == name)
}

fn title(way: Way, name: &str) -> String {
    format!("{}::{name}", way.name())
}

/// A test's end; the logs of everything at that moment, where it failed.
fn finished(bed: &Bed, way: Way, name: &str, test: fn(&Bed, Way)) -> Result<(), Failed> {
    std::panic::catch_unwind(AssertUnwindSafe(|| test(bed, way))).map_err(|panic| {
        let said = panic.downcast_ref::<String>().cloned();
        let said = said.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        let logs = bed.keep_logs(&format!("{}-{name}", way.name()));
        Failed::from(format!("{}\n{logs}", said.unwrap_or_else(|| "it panicked".to_owned())))
    })
}
