//! Tests of the testbed's node: pods really run, and nothing of a cluster is left, however it ends.
//!
//! They need root on Linux, the packages of `tools/node-packages.sh` and what `tools/build.sh node images` makes, so
//! they run when they are asked for: `cargo test -p testbed --test node -- FILTER`. What is missing is an error.

#![expect(clippy::unwrap_used, reason = "tests say what they expect by unwrapping")]

mod pods;
mod support;
mod teardown;

use std::{process::ExitCode, sync::Arc, time::Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use testbed::{ControlPlane, Error};

fn main() -> ExitCode {
    if let Some(name) = std::env::var_os(teardown::HOLD) {
        teardown::hold(&name.to_string_lossy());
        return ExitCode::SUCCESS;
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1); // what is left of a cluster is looked for on the whole machine
    let asked_for =
        |name: &str| arguments.filter.as_ref().is_none_or(|filter| name.contains(filter.as_str()));
    let wants_cluster = !arguments.list && pods::TESTS.iter().any(|(name, _)| asked_for(name));
    let cluster = match wants_cluster.then(start).transpose() {
        Ok(cluster) => cluster.map(Arc::new),
        Err(error) => {
            eprintln!("error: unable to start a cluster: {error}");
            return ExitCode::FAILURE;
        }
    };
    let with_cluster = pods::TESTS.iter().map(|(name, test)| {
        let cluster = cluster.clone();
        Trial::test(*name, move || finished(|| cluster.iter().for_each(|cluster| test(cluster))))
    });
    let alone = teardown::TESTS.iter().map(|(name, test)| Trial::test(*name, move || finished(test)));
    let outcome = libtest_mimic::run(&arguments, with_cluster.chain(alone).collect());
    if outcome.has_failed()
        && let Some(cluster) = &cluster
    {
        let into = std::env::temp_dir().join(format!("testbed-node-logs-{}", std::process::id()));
        match cluster.collect_logs(&into) {
            Ok(()) => eprintln!("logs are in {}", into.display()),
            Err(error) => eprintln!("error: unable to collect logs: {error}"),
        }
    }
    if outcome.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The cluster that most tests share, with an image that has a shell.
fn start() -> Result<ControlPlane, Error> {
    let begin = Instant::now();
    let cluster = ControlPlane::start(&support::options("shared"))?;
    let memory: u64 = cluster.processes().iter().filter_map(|process| process.id.resident_kib()).sum();
    eprintln!("ready in {:.1?}, {} MiB", begin.elapsed(), memory / 1024);
    cluster.load_image(&support::image("busybox"))?;
    Ok(cluster)
}

/// A panic is a failure with the message that was printed.
fn finished(test: impl FnOnce()) -> Result<(), Failed> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(test)).map_err(|panic| {
        let owned = panic.downcast_ref::<String>().map(String::as_str);
        owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default().into()
    })
}
