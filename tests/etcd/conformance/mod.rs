//! Whether real etcd answers changes of its members as the model says that it may, on random sequences.
//!
//! `CONFORMANCE_SEED` begins another series, `CONFORMANCE_SEQUENCES` says how many of each minor are many, and
//! `CONFORMANCE_KEEP` a folder where each sequence that was explained is kept, to be held against the model alone.
//! What was not explained is made shorter, and left in `target/conformance`.

mod choose;
mod run;
mod scripts;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use choose::Dice;
use futures::{StreamExt as _, future, stream};
use run::{End, Run};
use testbed::EtcdVersion;
use tokio::runtime::Builder;
use tokio::time::Instant;

use crate::membership::trace::{Line, Step, Trace};

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
    sequences(2);
}

/// Many.
fn etcd_answers_as_the_model_allows_for_long() {
    sequences(number("CONFORMANCE_SEQUENCES").unwrap_or(20));
}

fn sequences(each: u64) {
    // Another one for each run.
    let first = number("CONFORMANCE_SEED").unwrap_or_else(|| std::process::id().into());
    println!("seeds {first} to {}", first + each - 1);
    let seeds = (first..first + each).flat_map(|seed| EtcdVersion::ALL.map(|version| (version, seed)));
    side_by_side(seeds.map(async |(version, seed)| (version, seed.to_string(), chosen(version, seed).await)));
}

/// What chance hardly comes upon.
fn etcd_answers_as_the_model_allows_where_it_matters() {
    let scripts = scripts::ALL.iter().flat_map(|script| EtcdVersion::ALL.map(|version| (version, script)));
    side_by_side(scripts.map(async |(version, (name, size, steps))| {
        (version, (*name).to_owned(), follow(version, 0, *size, steps).await)
    }));
}

/// Runs sequences, keeps what was explained, and makes shorter what was not.
fn side_by_side(sequences: impl Iterator<Item = impl Future<Output = (EtcdVersion, String, Ended)>>) {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let failures: Vec<_> = runtime.block_on(async {
        let sequences = sequences.map(async |sequence| {
            let (version, name, ended) = sequence.await;
            let release = version.release();
            match ended {
                Ok(trace) => {
                    println!("etcd {release}, {name}: {} steps explained", trace.lines.len());
                    keep(version, &name, &trace);
                    None
                }
                Err((trace, what)) => {
                    println!("etcd {release}, {name}: {}", what.lines().next().unwrap_or_default());
                    let (trace, what) = shortened(version, &trace, what).await;
                    write(Path::new("target/conformance"), version, &name, &trace);
                    Some(format!("etcd {release}, {name}: {what}"))
                }
            }
        });
        stream::iter(sequences).buffer_unordered(AT_ONCE).filter_map(future::ready).collect().await
    });
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().unwrap())
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

/// Chooses steps and takes them.
async fn chosen(version: EtcdVersion, seed: u64) -> Ended {
    let mut dice = Dice(seed);
    let size = u32::try_from(dice.below(4) + 1).unwrap_or(1);
    let steps = 10 + dice.below(11);
    let mut run = Run::of(version, seed, size).await.expect("members that have just begun");
    for _ in 0..steps {
        let step = run.choose(&mut dice);
        if let Err(end) = run.take(step).await {
            return run.ended(step, end);
        }
        run.next += u64::from(matches!(step, Step::Add { .. }));
    }
    Ok(run.trace)
}

/// Takes these steps.
async fn follow(version: EtcdVersion, seed: u64, size: u32, steps: &[Step]) -> Ended {
    let mut run = Run::of(version, seed, size).await.expect("members that have just begun");
    for step in steps {
        if let Err(end) = run.take(*step).await {
            return run.ended(*step, end);
        }
    }
    Ok(run.trace)
}

impl Run {
    /// What there is of a sequence that went no further.
    fn ended(mut self, step: Step, end: End) -> Ended {
        match end {
            End::Disturbed => Ok(self.trace),
            End::Unexplained(what) => {
                self.trace.lines.push(Line { step, answer: None, seen: None });
                Err((self.trace, what))
            }
        }
    }
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
