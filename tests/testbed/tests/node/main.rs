//! Tests of the testbed's node: pods really run, and nothing of a cluster is left, however it ends.
//!
//! They need root on Linux, the packages of `tools/node-packages.sh` and what `tools/build.sh node images` makes, so
//! they run when they are asked for: `cargo test --workspace --test node -- FILTER`. What is missing is an error.

#![expect(clippy::unwrap_used, reason = "tests say what they expect by unwrapping")]

mod pods;
mod support;
mod teardown;

use std::{
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use kit::harness::{Harness, Test};
use testbed::{ControlPlane, Error};

/// A test takes some ten seconds, and one that starts three clusters a minute.
const LIMIT: Duration = Duration::from_mins(5);

fn main() -> ExitCode {
    if let Some(name) = std::env::var_os(teardown::HOLD) {
        teardown::hold(&name.to_string_lossy());
        return ExitCode::SUCCESS;
    }
    let harness = Harness::from_args();
    let is_shared = !harness.lists() && pods::TESTS.iter().any(|(name, _)| harness.wants(name, false));
    let cluster = match is_shared.then(start).transpose() {
        Ok(cluster) => cluster.map(Arc::new),
        Err(error) => {
            eprintln!("error: unable to start a cluster: {error}");
            return ExitCode::FAILURE;
        }
    };
    let with_cluster = pods::TESTS.iter().map(|(name, test)| {
        let cluster = cluster.clone();
        Test::new(*name, LIMIT, move || cluster.iter().for_each(|cluster| test(cluster)))
    });
    let alone = teardown::TESTS.iter().map(|(name, test)| Test::new(*name, LIMIT, test));
    let tests = with_cluster.chain(alone).collect();
    let mut harness = harness
        .keep_logs(move |name| cluster.as_ref().map_or_else(String::new, |cluster| keep(cluster, name)));
    harness.run(tests, 1); // what is left of a cluster is looked for on the whole machine
    harness.end()
}

/// Keeps the logs of the shared cluster; where they are.
fn keep(cluster: &ControlPlane, name: &str) -> String {
    let folder = std::env::temp_dir().join(format!("testbed-node-logs-{}-{name}", std::process::id()));
    match cluster.collect_logs(&folder) {
        Ok(()) => format!("logs are in {}", folder.display()),
        Err(error) => format!("the logs could not be kept: {error}"),
    }
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
