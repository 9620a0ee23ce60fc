//! The memory of a replica as it ships, gate and operator in one process, with many TDSets on a real API server.
//!
//! ```text
//! make bench-memory                 # 10,000 TDSets, each of which makes a Deployment
//! make bench-memory COUNT=1000
//! ```
//!
//! `GATEHOUSE_PROGRAM` names another build. It asserts nothing.

#![expect(clippy::expect_used, clippy::panic, reason = "a benchmark that cannot begin ends")]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use kit::bed::Bed;
use kit::objects::{Ask, http_get};
use kit::process::{anonymous, peak, usage};
use kit::program::Program;
use serde_json::json;
use testbed::Options;

/// Calls in flight at a time, as many as the operator's reconciliations.
const AT_A_TIME: usize = 32;
/// A replica is at rest that has reconciled nothing for so long. By then the allocator, which keeps what was given back to
/// it for up to ten seconds, has returned it to the system (`dirty_decay_ms` of jemalloc).
const REST: Duration = Duration::from_secs(15);

fn main() {
    // cargo itself says `--bench`.
    let word = std::env::args().skip(1).find(|word| word != "--bench");
    let count = word.map_or(10_000, |word| word.parse().expect("a count of TDSets"));
    let options = Options { controller_manager: false, ..Options::from_env().expect("sound options") };
    let program =
        std::env::var_os("GATEHOUSE_PROGRAM").map_or_else(|| kit::gatehouse!().into(), PathBuf::from);
    let bed = Bed::start(&options, &program).unwrap_or_else(|error| panic!("{error}"));
    let replica = Replica::start(&bed);
    replica.tell("without an object", 0);
    create(&bed, count);
    replica.tell(&format!("that has validated and made {count} objects"), count);
    assert!(replica.program.stop(), "it ends well");
    let replica = Replica::start(&bed);
    replica.tell(&format!("that begins with {count} objects"), count);
}

fn create(bed: &Bed, count: usize) {
    thread::scope(|scope| {
        for first in 0..AT_A_TIME {
            scope.spawn(move || {
                for number in (first..count).step_by(AT_A_TIME) {
                    let target = json!({"create": {"image": "registry.k8s.io/pause:3.10", "port": 8080}});
                    let night = json!({"name": "night", "from": "22:00", "to": "06:00", "replicas": 1});
                    let object = json!({"apiVersion": "gatehouse.dev/v1", "kind": "TDSet",
                        "metadata": {"name": format!("many-{number}")},
                        "spec": {"defaultReplicas": 1, "timeZone": "Europe/Berlin", "windows": [night],
                            "target": target}});
                    bed.objects.must(Ask::create(&object, "default"));
                }
            });
        }
    });
}

/// Gate and operator in one process, as a pod of the chart.
struct Replica {
    program: Program,
    health: SocketAddr,
}

impl Replica {
    /// Starts one, and waits until it has installed itself and leads.
    fn start(bed: &Bed) -> Self {
        let gate = bed.install(&[]).unwrap_or_else(|why| panic!("{why}"));
        let health = gate.health;
        let program = gate.into_program();
        program.logs("leading");
        Self { program, health }
    }

    /// The reconciliations so far.
    fn reconciliations(&self) -> usize {
        let page = http_get(self.health, "/metrics");
        let lines = page.lines().filter(|line| line.starts_with("controller_runtime_reconcile_total{"));
        lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<usize>().ok()).sum()
    }

    /// Prints what it takes, once it has had so many reconciliations and is at rest.
    fn tell(&self, which: &str, least: usize) {
        let (mut seen, mut since) = (self.reconciliations(), Instant::now());
        while seen < least || since.elapsed() < REST {
            thread::park_timeout(Duration::from_millis(100));
            let now = self.reconciliations();
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
        }
        let id = self.program.id().pid();
        let (resident, own, peak) = (usage(id).resident >> 20, anonymous(id) >> 20, peak(id) >> 20);
        println!(
            "figure: a replica {which}: {resident} MiB resident, all but {own} of which are pages of the program; \
             {peak} MiB at most"
        );
    }
}
