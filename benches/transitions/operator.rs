//! The operator that is measured, as a process of its own.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use gatehouse::runtime::clock;
use kit::bed::Bed;
use kit::objects::http_get;
use kit::process::{peak, usage};
use kit::program::Program;
use kube::Client;

use super::calls::{Calls, REST};

/// The most processor time that an operator takes in [`REST`] that reconciles next to nothing.
const QUIET: Duration = Duration::from_millis(60);

/// Where an operator works, and as whom.
pub struct Post<'a> {
    /// Its control plane.
    pub bed: &'a Bed,
    /// Its rights.
    pub kubeconfig: PathBuf,
    /// What is measured, in a few words: the ledger has the lines of several runs.
    pub title: String,
    /// How long anything may take.
    pub patience: Duration,
}

impl Post<'_> {
    /// A line of the report, as `tools/nightly.sh` writes it down.
    pub fn tell(&self, line: &str) {
        println!("figure: {}: {line}", self.title);
    }
}

/// The operator.
pub struct Operator {
    program: Program,
    health: SocketAddr,
}

impl Operator {
    /// Starts one, and waits until it works.
    pub fn start(post: &Post) -> Self {
        let serve = ["serve", "--only", "controllers", "--health-listen", "127.0.0.1:0"];
        let mut command = Program::gatehouse(&post.bed.program, &serve);
        command.env("KUBECONFIG", &post.kubeconfig).env("GATEHOUSE_LOG", "info");
        // A machine that is too busy to renew the lease in seconds does not have it begin again in the middle.
        command.env("GATEHOUSE_LEASE_DURATION", "5m");
        let number = clock::now().as_millisecond();
        let log = post.bed.cluster.folder().join(format!("operator-{number}.log"));
        let program = Program::start(&command, &log).unwrap_or_else(|why| panic!("{why}"));
        let health = program.logs("serving")["health"].as_str().and_then(|text| text.parse().ok());
        program.logs("leading");
        Self { program, health: health.expect("an address") }
    }

    /// Ends it.
    pub fn stop(self) {
        assert!(self.program.stop(), "it ends well, and releases its lease");
    }

    /// Waits until it takes next to no processor time any more, and says since when. An operator that begins writes
    /// nothing where all is as it should be, so the API server does not tell when it is done.
    pub async fn quiet(&self, patience: Duration) -> Instant {
        let begun = Instant::now();
        let mut looks = VecDeque::new();
        loop {
            let cpu = usage(self.program.id().pid()).cpu;
            looks.push_back((Instant::now(), cpu));
            while looks.get(1).is_some_and(|(time, _): &(Instant, Duration)| time.elapsed() >= REST) {
                looks.pop_front();
            }
            let (since, before) = looks[0];
            let taken = cpu.saturating_sub(before);
            if since.elapsed() >= REST && taken <= QUIET {
                return since;
            }
            assert!(
                begun.elapsed() < patience,
                "after {patience:?} the operator still takes {taken:?} in {REST:?}"
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// How much memory it has, and had.
    pub fn memory(&self) -> String {
        let id = self.program.id().pid();
        let (resident, peak) = (usage(id).resident >> 20, peak(id) >> 20);
        format!("{resident} MiB resident, {peak} MiB at most")
    }
}

/// What there was until a moment.
#[derive(Default)]
pub struct Snapshot {
    cpu: Duration,
    memory: String,
    /// The calls that the API server has answered, of all clients.
    calls: Calls,
    /// The reconciliations of TDSets.
    pub passes: u64,
}

impl Snapshot {
    /// Before an operator begins.
    pub async fn without(client: &Client) -> Self {
        Self { calls: Calls::of(client).await, ..Self::default() }
    }

    /// What there was until now. The operator's page comes last: making it takes time and memory.
    pub async fn of(client: &Client, operator: &Operator) -> Self {
        let cpu = usage(operator.program.id().pid()).cpu;
        let memory = operator.memory();
        let calls = Calls::of(client).await;
        let page = http_get(operator.health, "/metrics");
        let of_tdsets = page
            .lines()
            .filter(|line| line.starts_with("controller_runtime_reconcile_total{controller=\"tdset\""));
        let passes = of_tdsets.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum();
        Self { cpu, memory, calls, passes }
    }

    /// What came in between, for each object.
    pub fn tell(&self, after: &Self, post: &Post, what: &str, count: u32) {
        let each = |sum: f64| sum / f64::from(count);
        let cpu = each(after.cpu.saturating_sub(self.cpu).as_secs_f64() * 1000.0);
        let number = |number: u64| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
        let passes = each(number(after.passes - self.passes));
        post.tell(&format!("an object {what}: {cpu:.2} ms of processor time, {passes:.2} reconciliations"));
        for (call, sum) in after.calls.since(&self.calls).named() {
            let calls = each(number(sum));
            if calls >= 0.01 {
                post.tell(&format!("an object {what}: {calls:.2} {call}"));
            }
        }
        post.tell(&format!("the operator once all are {what}: {}", after.memory));
    }

    /// What came in between while nothing was to be done.
    pub fn tell_idle(&self, after: &Self, post: &Post, time: Duration) {
        let came = after.calls.since(&self.calls);
        let cpu = after.cpu.saturating_sub(self.cpu).as_millis();
        let (all, written, passes) = (came.all(), came.of_operator(), after.passes - self.passes);
        post.tell(&format!(
            "idle for {time:?}: {written} writes of the operator, {passes} reconciliations, {cpu} ms of its processor \
             time, {all} calls of all clients: {came}"
        ));
    }
}
