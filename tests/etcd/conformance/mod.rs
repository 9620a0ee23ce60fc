//! Whether real etcd answers changes of its members as the model says that it may, on random sequences.
//!
//! `CONFORMANCE_SEED` begins another series, `CONFORMANCE_SEQUENCES` says how many of each minor, and
//! `CONFORMANCE_KEEP` a folder where each sequence that was explained is kept, to be held against the model alone.
//! What was not explained is made shorter, and left in `target/conformance`.

mod choose;
mod run;
mod scripts;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use choose::Dice;
use futures::future::join_all;
use run::{End, Run};
use testbed::EtcdVersion;
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

use crate::membership::trace::{Step, Trace};

/// For how many seconds a sequence is made shorter.
const SHRINKING: u64 = 120;
/// Sequences side by side: members mostly wait.
const AT_ONCE: usize = 6;

/// How a sequence ended.
type Ended = Result<Trace, (Trace, String)>;

/// What there is to be run, and whether only if it is asked for.
pub const TESTS: [(&str, fn(), bool); 3] = [
    ("etcd_answers_as_the_model_allows", etcd_answers_as_the_model_allows, false),
    ("etcd_answers_as_the_model_allows_for_long", etcd_answers_as_the_model_allows_for_long, true),
    (
        "etcd_answers_as_the_model_allows_where_it_matters",
        etcd_answers_as_the_model_allows_where_it_matters,
        true,
    ),
];

/// A few of each minor.
fn etcd_answers_as_the_model_allows() {
    sequences(2, 10);
}

/// Many.
fn etcd_answers_as_the_model_allows_for_long() {
    sequences(20, 10);
}

/// What chance hardly comes upon.
fn etcd_answers_as_the_model_allows_where_it_matters() {
    let all: Vec<_> =
        scripts::ALL.iter().flat_map(|script| EtcdVersion::ALL.map(|version| (version, script))).collect();
    let mut failures = Vec::new();
    let runtime = runtime();
    for some in all.chunks(AT_ONCE) {
        let ended = some.iter().map(|(version, (_, size, steps))| follow(*version, 0, *size, steps));
        let ended = runtime.block_on(join_all(ended));
        for ((version, (name, ..)), ended) in some.iter().zip(ended) {
            match ended {
                Ok(trace) => keep(*version, name, &trace),
                Err((_, what)) => failures.push(format!("etcd {}, {name}: {what}", version.release())),
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().unwrap())
}

fn sequences(each: u64, fewest: usize) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let first = number("CONFORMANCE_SEED").unwrap_or_else(|| now.as_secs() % 1_000_000);
    let each = number("CONFORMANCE_SEQUENCES").unwrap_or(each);
    println!("seeds {first} to {}", first + each - 1);
    let runtime = runtime();
    let all: Vec<_> =
        (first..first + each).flat_map(|seed| EtcdVersion::ALL.map(|version| (version, seed))).collect();
    let mut failures = Vec::new();
    for some in all.chunks(AT_ONCE) {
        let ended =
            runtime.block_on(join_all(some.iter().map(|(version, seed)| sequence(*version, *seed, fewest))));
        for ((version, seed), ended) in some.iter().zip(ended) {
            match ended {
                Ok(trace) => keep(*version, &seed.to_string(), &trace),
                Err((trace, what)) => failures.push(failed(*version, *seed, &trace, what, &runtime)),
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

fn keep(version: EtcdVersion, name: &str, trace: &Trace) {
    let Some(folder) = env::var_os("CONFORMANCE_KEEP").map(PathBuf::from) else { return };
    let path = write(&folder, version, name, trace);
    Trace::read(&path).replay(&run::MODEL).expect("what was explained when it happened");
}

fn write(folder: &Path, version: EtcdVersion, name: &str, trace: &Trace) -> PathBuf {
    fs::create_dir_all(folder).unwrap();
    let path = folder.join(format!("{}-{name}.ndjson", version.minor()));
    fs::write(&path, trace.text()).unwrap();
    path
}

fn failed(version: EtcdVersion, seed: u64, trace: &Trace, what: String, runtime: &Runtime) -> String {
    let (trace, what) = runtime.block_on(shortened(version, trace, what));
    write(Path::new("target/conformance"), version, &seed.to_string(), &trace);
    format!("etcd {}, seed {seed}: {what}", version.release())
}

/// Chooses and takes steps.
async fn sequence(version: EtcdVersion, seed: u64, fewest: usize) -> Ended {
    let begun = Instant::now();
    let mut dice = Dice(seed);
    let size = u32::try_from(dice.below(4) + 1).unwrap_or(1);
    let steps = fewest + dice.below(fewest + 1);
    let mut run = match Run::of(version, seed, size).await {
        Ok(run) => run,
        Err(end) => panic!("{end:?}"),
    };
    for _ in 0..steps {
        let step = run.choose(&mut dice);
        let taken = run.take(step).await;
        run.next += u64::from(matches!(step, Step::Add { .. }));
        match taken {
            Ok(()) => {}
            Err(End::Disturbed) => {
                println!(
                    "etcd {}, seed {seed}: an election in between, the rest is left out",
                    version.release()
                );
                break;
            }
            Err(End::Unexplained(what)) => {
                // What led to it, with the step itself.
                let mut trace = run.trace;
                trace.lines.push(crate::membership::trace::Line { step, answer: None, seen: None });
                return Err((trace, what));
            }
        }
    }
    let (release, lines) = (version.release(), run.trace.lines.len());
    println!(
        "etcd {release}, seed {seed}: {size} voters, {lines} steps explained in {:.0?}",
        begun.elapsed()
    );
    Ok(run.trace)
}

/// Takes these steps.
async fn follow(version: EtcdVersion, seed: u64, size: u32, steps: &[Step]) -> Ended {
    let mut run = Run::of(version, seed, size).await.expect("members that have just begun");
    for step in steps {
        match run.take(*step).await {
            Ok(()) => {}
            Err(End::Disturbed) => break,
            Err(End::Unexplained(what)) => return Err((run.trace, what)),
        }
    }
    Ok(run.trace)
}

/// Leaves steps out, one by one, while something is left unexplained and time is left.
async fn shortened(version: EtcdVersion, trace: &Trace, what: String) -> (Trace, String) {
    let (mut trace, mut what) = (trace.clone(), what);
    let deadline = Instant::now() + Duration::from_secs(number("CONFORMANCE_SHRINKING").unwrap_or(SHRINKING));
    let mut at = trace.lines.len();
    while at > 0 && Instant::now() < deadline {
        at -= 1;
        let mut shorter = trace.clone();
        shorter.lines.remove(at);
        let steps = shorter.lines.iter().map(|line| line.step).filter(|step| *step != Step::Look);
        let steps: Vec<_> = steps.collect();
        if let Err((_, said)) = follow(version, trace.seed, trace.size, &steps).await {
            (trace, what) = (shorter, said);
        }
    }
    (trace, what)
}
