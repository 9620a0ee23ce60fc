//! Runs the cases of a target: its corpus, then as many as are asked for, each made from one number.
//!
//! Guarantees: a case is a function of the seed, the target's name and its number, so that a case that fails is repeated
//! by these. The first case that fails is printed with the input, shortened, and its input is left whole in a file.
//! Assumes: a target fails by panicking. A case that never ends is ended by a limit of the caller, and libtest names its
//! target.
//! Never: judges a case by the clock on the wall, which other work on the machine moves.

use std::any::Any;
use std::fs;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kit::random::{self, Random};
use rustix::time::{ClockId, clock_gettime};

use crate::corpus::{self, Input};

/// What is fuzzed.
pub struct Target {
    /// Its name, which is that of its folder in the corpus.
    pub name: &'static str,
    /// The cases that `.ci/run` tries.
    pub cases: u64,
    /// Makes an input; the corpus is there to be changed a little.
    pub make: fn(&mut Random, &[Input]) -> Vec<u8>,
    /// Tries an input. Any bytes will do: what is no input of this target passes.
    pub check: fn(&[u8]),
}

/// What a night tries of each target.
const OF_A_NIGHT: u64 = 1_000_000;

/// Inputs up to this size are held to [`LONGEST`].
const ORDINARY: usize = 64 * 1024;

/// Processor time of one case. A thousand times what they take: this finds what runs away, and measures nothing.
const LONGEST: Duration = Duration::from_secs(2);

/// Bytes of an input that are printed.
const SHOWN: usize = 2000;

/// Memory that this whole program may have had at any time.
const MOST_MEMORY_KB: u64 = 1024 * 1024;

/// Tries a target.
pub fn run(target: &Target) {
    let Target { name, check, .. } = *target;
    let seed = random::seed("FUZZ_SEED", 1);
    let usual = if random::is_night() { OF_A_NIGHT } else { target.cases };
    let one: Option<u64> = std::env::var("FUZZ_CASE").ok().and_then(|case| case.parse().ok());
    let cases = one.map_or_else(|| 0..kit::env_or("CASES", usual), |case| case..case + 1);
    let corpus = corpus::of(name);
    assert!(!corpus.is_empty(), "tests/fuzz/corpus/{name} is empty");
    let tried = corpus.len() as u64 + (cases.end - cases.start);
    let begun = Instant::now();
    for input in &corpus {
        if let Err(why) = attempt(check, &input.bytes) {
            panic!("tests/fuzz/corpus/{name}/{}: {}", input.name, shown(&input.bytes, &why));
        }
    }
    for case in cases {
        let mut input = Vec::new();
        let made = caught(|| input = (target.make)(&mut numbers(seed, name, case), &corpus));
        if let Err(why) = made.and_then(|()| attempt(check, &input)) {
            let (place, file) = (format!("FUZZ_SEED={seed} FUZZ_CASE={case}"), leave(name, case, &input));
            panic!(
                "{name}: {place}: {}\nrepeat it: {place} cargo test --workspace --test fuzz -- --exact {name}\n\
                 keep it: make {file} smaller where you can, and commit it below tests/fuzz/corpus/{name}",
                shown(&input, &why)
            );
        }
    }
    let took = begun.elapsed().as_secs_f64();
    let rate = Duration::from_secs(tried).as_secs_f64() / took;
    println!("figure: fuzz {name}: {tried} cases in {took:.1} s, {rate:.0} each second");
    hold_memory();
}

/// Why an input fails, and the input.
fn shown(input: &[u8], why: &str) -> String {
    let text = String::from_utf8_lossy(&input[..input.len().min(SHOWN)]);
    format!("it fails: {why}\ninput, {} bytes: {text}", input.len())
}

/// The numbers that a case is drawn from. Those of two cases have nothing in common.
fn numbers(seed: u64, target: &str, case: u64) -> Random {
    let named = target.bytes().fold(seed, |mixed, byte| Random(mixed ^ u64::from(byte)).draw());
    Random(Random(named ^ Random(case).draw()).draw())
}

/// Tries one input; why it fails.
fn attempt(check: fn(&[u8]), input: &[u8]) -> Result<(), String> {
    let begun = processor_time();
    caught(|| check(input))?;
    let took = processor_time().saturating_sub(begun);
    if input.len() <= ORDINARY && took > LONGEST {
        return Err(format!("it takes {took:?} of processor time, and at most {LONGEST:?} is sound"));
    }
    Ok(())
}

/// Runs something; what it panicked with.
fn caught(run: impl FnOnce()) -> Result<(), String> {
    std::panic::catch_unwind(AssertUnwindSafe(run)).map_err(|panic| words(panic.as_ref()))
}

fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

fn words(panic: &(dyn Any + Send)) -> String {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
}

/// Writes the whole input where it can be taken from.
fn leave(target: &str, case: u64, input: &[u8]) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("fuzz-{target}-{case}"));
    let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&file, input));
    written.map_or_else(|error| format!("the input ({error})"), |()| file.display().to_string())
}

/// The most memory that this program has had is bounded: an input of some kilobytes that takes gigabytes shows there.
fn hold_memory() {
    let Some(most) = memory("VmHWM") else { return };
    println!("figure: fuzz: {} MiB of memory at most", most / 1024);
    assert!(
        most <= MOST_MEMORY_KB,
        "this program has had {most} kB of memory, more than {MOST_MEMORY_KB} kB"
    );
}

/// A line of what Linux says of this process, in kB.
fn memory(line: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let value = status.lines().find_map(|one| one.strip_prefix(line)?.strip_prefix(':'))?;
    value.trim().strip_suffix(" kB")?.parse().ok()
}
