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
mod objects;
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

/// A test and its name.
type Test = (&'static str, fn(&Bed, Way));

/// Tests of one way of deploying, and how many of them may run side by side.
struct Batch {
    way: Way,
    tests: Vec<Test>,
    threads: usize,
}

/// One after the other. What hangs on the way of deploying is run for each, all else for one; what changes what is
/// deployed runs alone.
fn batches() -> [Batch; 4] {
    let batch = |way, tests: &[&[Test]], threads| Batch { way, tests: tests.concat(), threads };
    [
        batch(Way::Chart, &[life::TESTS, life::IN_DEPTH, tdset::TESTS], 1),
        batch(Way::Chart, &[etcd::TESTS], 3),
        batch(Way::Chart, &[etcd::ALONE, etcd::LONG, &[etcd::LAST, life::LAST]], 1),
        batch(Way::Kustomize, &[life::TESTS], 1),
    ]
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let batches = batches().map(|batch| wanted(&arguments, batch));
    if arguments.list {
        let titles =
            batches.iter().flat_map(|batch| batch.tests.iter().map(|(name, _)| title(batch.way, name)));
        let trials = titles.map(|title| Trial::test(title, || Ok(())));
        libtest_mimic::run(&arguments, trials.collect()).exit();
    }
    let bed = match cluster::start() {
        Ok(bed) => Arc::new(bed),
        Err(why) => {
            eprintln!("error: {why}");
            return ExitCode::FAILURE;
        }
    };
    let mut failed = false;
    for Batch { way, tests, threads } in batches.into_iter().filter(|batch| !batch.tests.is_empty()) {
        let trials = tests.into_iter().map(|(name, test)| {
            let bed = Arc::clone(&bed);
            let trial = Trial::test(title(way, name), move || finished(&bed, way, name, test));
            trial.with_ignored_flag(is_long(name))
        });
        let arguments = Arguments { test_threads: Some(threads), ..arguments.clone() };
        failed |= libtest_mimic::run(&arguments, trials.collect()).has_failed();
    }
    println!("measured:");
    bed.figures.lock().unwrap().iter().for_each(|figure| println!("  {figure}"));
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// What this run asks for of a batch.
fn wanted(arguments: &Arguments, batch: Batch) -> Batch {
    let Batch { way, mut tests, threads } = batch;
    let filter = arguments.filter.as_deref().unwrap_or_default();
    tests.retain(|(name, _)| title(way, name).contains(filter));
    Batch { way, tests, threads }
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
