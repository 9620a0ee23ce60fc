//! Tests on a real API server: etcd, kube-apiserver and kube-controller-manager as `make tools` builds them, and
//! gatehouse at their gate, running as its ServiceAccount with nothing but the shipped rights.
//!
//! All tests run side by side in namespaces of their own, on few control planes ([`beds::Ground`]), which are torn down
//! at the end, whatever the end is. Tests that change what all of a control plane share take turns there.
//!
//! `cargo test --test api -- FILTER` runs what matches; names begin with the version: `v1.37::verbs::…`. When a test
//! fails, the logs of the control planes that it used are left in `target/api/`. `WITH_SLICE=n` leaves out two of three
//! [`slices`].
//! A missing part is an error that says what to run; nothing is skipped in silence.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test says what it expects by unwrapping"
)]

mod admission;
mod ancestors;
mod audited;
mod beds;
mod certificates;
mod columns;
mod conversion;
mod corpus;
mod databasemigration;
mod deploy;
mod etcdcluster;
mod front;
mod installed;
mod leader;
mod lifecycle;
mod offline;
mod policies;
mod put_back;
mod site;
mod slices;
mod storage;
mod takeover;
mod tdset;
mod verbs;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use kit::bed::Bed;
use kit::harness::{self, Harness};

use beds::{Ground, Shared};
use slices::Slices;

/// A test and its name.
type Test = (&'static str, fn(&Bed));

/// A test that sees to its control plane itself.
type Alone = (&'static str, fn());

/// Where a module's tests run.
struct Module {
    name: &'static str,
    tests: &'static [Test],
    grounds: &'static [Ground],
    /// Whether they take turns on a control plane, with others there that do.
    in_turns: bool,
}

/// Tests that run side by side.
const fn beside(name: &'static str, tests: &'static [Test], grounds: &'static [Ground]) -> Module {
    Module { name, tests, grounds, in_turns: false }
}

/// Tests that run one after the other.
const fn in_turns(name: &'static str, tests: &'static [Test], grounds: &'static [Ground]) -> Module {
    Module { name, tests, grounds, in_turns: true }
}

const NEWEST: &[Ground] = &[Ground::Newest];
const OLDEST: &[Ground] = &[Ground::Oldest];
const CLOCKS: &[Ground] = &[Ground::Clocks];
/// Of the newest and the oldest version, each with an etcd of its own to look into.
const OWN: &[Ground] = &[Ground::Clocks, Ground::Oldest];
const EVERY: &[Ground] = &[Ground::Newest, Ground::Oldest];

const MODULES: &[Module] = &[
    in_turns("leader", leader::TESTS, &[Ground::Elections]),
    in_turns("leader", leader::REMOVALS, &[Ground::Removals]),
    in_turns("lifecycle", lifecycle::TESTS, &[Ground::Installations]),
    beside("tdset", tdset::alone::TESTS, CLOCKS),
    beside("tdset::autoscalers", tdset::autoscalers::ON_CLOCKS, CLOCKS),
    beside("tdset::counts", tdset::counts::ON_CLOCKS, CLOCKS),
    beside("tdset::outage", tdset::outage::TESTS, CLOCKS),
    beside("tdset::refusals", tdset::refusals::ON_CLOCKS, CLOCKS),
    beside("tdset::dates", tdset::dates::ON_CLOCKS, CLOCKS),
    beside("tdset::reported", tdset::reported::ON_CLOCKS, CLOCKS),
    beside("audited", audited::TESTS, OLDEST),
    beside("policies", policies::ON_CLOCKS, CLOCKS),
    beside("tdset::crashing_operator", tdset::crashing_operator::TESTS, CLOCKS),
    beside("databasemigration::dying_operator", databasemigration::dying_operator::TESTS, CLOCKS),
    beside("admission", admission::TESTS, EVERY),
    beside("ancestors", ancestors::TESTS, NEWEST),
    beside("certificates", certificates::TESTS, CLOCKS),
    beside("columns", columns::TESTS, CLOCKS),
    beside("etcdcluster", etcdcluster::ON_CLOCKS, CLOCKS),
    beside("conversion", conversion::TESTS, EVERY),
    in_turns("corpus", corpus::TESTS, EVERY),
    in_turns("conversion", conversion::ON_BARE, EVERY),
    in_turns("deploy", deploy::EVERYWHERE, EVERY),
    in_turns("deploy", deploy::ONCE, NEWEST),
    beside("databasemigration", databasemigration::TESTS, NEWEST),
    beside("etcdcluster", etcdcluster::TESTS, NEWEST),
    beside("policies", policies::TESTS, EVERY),
    beside("put_back", put_back::TESTS, NEWEST),
    beside("offline", offline::TESTS, EVERY),
    beside("storage", storage::EVERYWHERE, OWN),
    beside("storage", storage::ONCE, CLOCKS),
    in_turns("storage", storage::IN_TURNS, &[Ground::Installations]),
    in_turns("storage", storage::OF_ALL, &[Ground::Removals]),
    in_turns("storage", storage::ON_BARE, &[Ground::Installations, Ground::Oldest]),
    beside("takeover", takeover::TESTS, CLOCKS),
    beside("tdset", tdset::TESTS, NEWEST),
    beside("tdset::autoscalers", tdset::autoscalers::TESTS, NEWEST),
    beside("tdset::conflicts", tdset::conflicts::TESTS, NEWEST),
    beside("tdset::counts", tdset::counts::TESTS, NEWEST),
    beside("tdset::dates", tdset::dates::TESTS, NEWEST),
    beside("tdset::other_tools", tdset::other_tools::TESTS, NEWEST),
    beside("tdset::reported", tdset::reported::TESTS, NEWEST),
    beside("tdset::targets", tdset::targets::TESTS, NEWEST),
    beside("verbs", verbs::TESTS, EVERY),
];

const ALONE: &[(&str, &[Alone])] = &[("tdset", tdset::crowd::TESTS)];

/// So many side by side: most of the time they wait for a control plane.
const THREADS: usize = 6;

/// How long a test may take, once it has its turn where it waits for one: four times what the longest takes beside the
/// others on two cores, for machines that have much else to do.
const LIMIT: Duration = Duration::from_mins(12);

/// Parts of the names of tests that take longest: they begin first.
const LONGEST: &[&str] = &[
    "::crowd::",
    "hundreds_share",
    "::crashing_operator::",
    "::dying_operator::",
    "alone::tdset::",
    "nothing_carries_out",
    "no_longer_watched",
];

fn main() -> ExitCode {
    let mut harness = Harness::from_args().keep_logs(kit::bed::keep_logs);
    let slices = match Slices::asked() {
        Ok(slices) => slices,
        Err(why) => {
            eprintln!("error: {why}");
            return ExitCode::FAILURE;
        }
    };
    let tests = wanted(&harness, slices);
    harness.run(tests, THREADS);
    let ended = harness.end();
    println!("{} control planes, kubectl run {} times", kit::bed::started(), kit::call::kubectl_runs());
    ended
}

/// Whether a test runs only where ignored ones are asked for.
fn is_long(name: &str) -> bool {
    name.contains(takeover::TITLE)
}

/// The tests that this run asks for, in the order in which they begin.
fn wanted(harness: &Harness, slices: Slices) -> Vec<harness::Test> {
    let mut order = Order::default();
    for ground in Ground::ALL {
        let modules = MODULES.iter().filter(|module| module.grounds.contains(&ground));
        let named = modules.flat_map(|module| {
            let title = move |name| format!("{}::{}::{name}", ground.name(), module.name);
            let tests = module.tests.iter();
            tests.map(move |(name, run)| {
                (title(name), slices::is_sliced(ground, module), module.in_turns, *run)
            })
        });
        let mut place = 0..;
        let named = named
            .filter(|(_, is_sliced, ..)| !is_sliced || place.next().is_some_and(|place| slices.take(place)));
        let named = named.map(|(name, _, in_turns, run)| (name, in_turns, run));
        let named: Vec<_> = named.filter(|(name, ..)| harness.wants(name, is_long(name))).collect();
        let shared = Arc::new(Shared::new(ground));
        if !named.is_empty() && ground.is_for_most() && !harness.lists() {
            let shared = Arc::clone(&shared);
            // What is wrong with it the tests tell.
            std::thread::spawn(move || shared.start().is_ok());
        }
        for (name, in_turns, run) in named {
            let shared = Arc::clone(&shared);
            let run = move || run(shared.bed());
            if in_turns {
                let turns = order.in_turns.entry(ground).or_default();
                turns.push(harness::Test::new(name, LIMIT, run));
            } else {
                order.add(name, run);
            }
        }
    }
    for (module, tests) in ALONE {
        let named = tests.iter().map(|(name, run)| (format!("alone::{module}::{name}"), *run));
        let named = named.filter(|(name, _)| harness.wants(name, false));
        named.for_each(|(name, run)| order.add(name, run));
    }
    order.tests()
}

/// Tests before they are put in order.
#[derive(Default)]
struct Order {
    /// Those that take turns, by where they do.
    in_turns: BTreeMap<Ground, Vec<harness::Test>>,
    /// The others, each with its place among them.
    beside: Vec<(usize, harness::Test)>,
}

impl Order {
    fn add(&mut self, name: String, run: impl FnOnce() + Send + 'static) {
        let place = LONGEST.iter().position(|part| name.contains(part)).unwrap_or(LONGEST.len());
        let is_long = is_long(&name);
        self.beside.push((place, harness::Test::new(name, LIMIT, run).long(is_long)));
    }

    /// In rounds: one of all that take turns at each place, so that few threads wait for a turn, and a share of the
    /// rest, what takes longest first.
    fn tests(mut self) -> Vec<harness::Test> {
        let rounds = self.in_turns.values().map(Vec::len).max().unwrap_or(1);
        self.beside.sort_by_key(|(place, _)| *place);
        let share = self.beside.len().div_ceil(rounds);
        let mut beside = self.beside.into_iter().map(|(_, test)| test);
        let mut in_turns: Vec<_> = self.in_turns.into_values().map(Vec::into_iter).collect();
        let mut all = Vec::new();
        for _ in 0..rounds {
            all.extend(in_turns.iter_mut().filter_map(Iterator::next));
            all.extend(beside.by_ref().take(share));
        }
        all
    }
}
