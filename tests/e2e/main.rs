//! gatehouse as users deploy it: in its image, by the chart and by kustomize in turn, in a cluster with a real node.
//!
//! `make e2e` builds what this needs and runs it, as root. A cluster of its own is started for it, and torn down at
//! the end, whatever the end is. With `KUBECONFIG` set it takes that cluster instead, whose nodes must have the
//! images and run on this machine.
//!
//! What takes long is passed by, and listed as ignored: [`passed_by`] says what that is, and has it run in slices
//! (`SLICE=3`), in parts (`NIGHTLY_PART=long-1`), or when ignored tests are asked for.
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

mod cluster;
mod databasemigration;
mod etcd;
mod examples;
mod installation;
mod memory;
mod passed_by;
mod release;
mod rights;
mod tdset;
mod tools;
mod traffic;
mod watched;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use kit::harness::{self, Harness};

use cluster::Bed;
use passed_by::Run;
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
/// deployed, or measures it, runs alone.
fn batches() -> [Batch; 6] {
    let batch = |way, tests: &[&[Test]], threads| Batch { way, tests: tests.concat(), threads };
    [
        batch(
            Way::Chart,
            &[
                installation::TESTS,
                installation::IN_DEPTH,
                memory::TESTS,
                databasemigration::ALONE,
                etcd::unattended::WITHOUT_GATEHOUSE,
            ],
            1,
        ),
        batch(Way::Chart, &[etcd::TESTS, tdset::TESTS, databasemigration::TESTS], 5),
        batch(Way::Chart, etcd::ASIDE, 4),
        batch(Way::Chart, &[etcd::ALONE], 1),
        batch(Way::Chart, &[&[etcd::LAST, installation::LAST]], 1),
        batch(Way::Kustomize, &[installation::TESTS], 1),
    ]
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn main() -> ExitCode {
    let harness = Harness::from_args();
    let mut batches = batches();
    let titles: Vec<_> = batches.iter().flat_map(Batch::titles).collect();
    let run = match Run::asked(&titles) {
        Ok(run) => run,
        Err(why) => return failed(&why),
    };
    for batch in &mut batches {
        let way = batch.way;
        let is_wanted = |title: &str| run.takes(title).is_some_and(|is_long| harness.wants(title, is_long));
        let is_shown = |title: &str| run.takes(title).is_some() && harness.lists();
        batch.tests.retain(|(name, _)| is_wanted(&title(way, name)) || is_shown(&title(way, name)));
    }
    let is_started = !harness.lists() && batches.iter().any(|batch| !batch.tests.is_empty());
    let bed = match is_started.then(cluster::start).transpose() {
        Ok(bed) => bed.map(Arc::new),
        Err(why) => return failed(&why),
    };
    let kept = bed.clone();
    let keep = move |name: &str| kept.as_ref().map_or_else(String::new, |bed| bed.keep_logs(name));
    let mut harness = harness.keep_logs(keep);
    for batch in batches.into_iter().filter(|batch| !batch.tests.is_empty()) {
        let threads = batch.threads;
        harness.run(batch.tests(&run, bed.as_ref()), threads);
    }
    harness.end()
}

/// Prints what a test measured, as a line that tools collect.
fn figure(figure: impl std::fmt::Display) {
    eprintln!("    figure: {figure}");
}

fn failed(why: &str) -> ExitCode {
    eprintln!("error: {why}");
    ExitCode::FAILURE
}

fn title(way: Way, name: &str) -> String {
    format!("{}::{name}", way.name())
}

impl Batch {
    fn titles(&self) -> Vec<String> {
        self.tests.iter().map(|(name, _)| title(self.way, name)).collect()
    }

    /// What the harness runs, or lists where nothing is started.
    fn tests(self, run: &Run, bed: Option<&Arc<Bed>>) -> Vec<harness::Test> {
        let Self { way, tests, .. } = self;
        let tests = tests.into_iter().map(|(name, test)| {
            let (title, bed) = (title(way, name), bed.cloned());
            let (limit, is_long) = (passed_by::limit(&title), run.takes(&title).unwrap_or_default());
            let body = move || test(bed.as_ref().expect("a cluster was started"), way);
            harness::Test::new(title, limit, body).long(is_long)
        });
        tests.collect()
    }
}
