//! Runs the cases of a target: its corpus, then as many as are asked for, each made from one number.
//!
//! Guarantees: a case is a function of the seed, the target's name and its number, so that one that fails is repeated
//! by these; what fails is printed with the input, shortened, and left whole in a file; a case that never ends is
//! reported too. All cases run, also behind one that failed, but no more than one failure is reported of each target.
//! Assumes: a target fails by panicking.
//! Never: judges a case by the clock on the wall, which other work on the machine moves.

use std::any::Any;
use std::fs;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kit::random::{self, Random};
use rustix::time::{ClockId, clock_gettime};

use crate::corpus::{self, Input};

/// What is fuzzed.
#[derive(Clone, Copy)]
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

/// After so long on the wall a case is taken to hang.
const HANGS: Duration = Duration::from_mins(2);

/// How often the run looks after its threads.
const LOOKED_AFTER: Duration = Duration::from_millis(100);

/// Bytes of an input that are printed.
const SHOWN: usize = 2000;

/// Memory that this whole program may have had at any time.
const MOST_MEMORY_KB: u64 = 1024 * 1024;

/// One thing to try.
enum Job {
    /// An input of the corpus.
    Kept(usize),
    /// A case, by its number.
    Drawn(u64),
}

/// What the threads of a run share.
struct Run {
    target: Target,
    corpus: Vec<Input>,
    seed: u64,
    /// The first case, and how many there are.
    cases: (u64, u64),
    next: AtomicU64,
    failed: AtomicBool,
    failure: Mutex<Option<String>>,
    /// What each thread is at, and since when.
    now: Vec<Mutex<Option<(u64, Instant)>>>,
}

/// Tries a target.
pub fn run(target: &Target) {
    let seed = random::seed("FUZZ_SEED", 1);
    let usual = if random::is_night() { OF_A_NIGHT } else { target.cases };
    let one: Option<u64> = std::env::var("FUZZ_CASE").ok().and_then(|case| case.parse().ok());
    let cases = one.map_or_else(|| (0, kit::env_or("CASES", usual)), |case| (case, 1));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let corpus = corpus::of(target.name);
    assert!(!corpus.is_empty(), "tests/fuzz/corpus/{} is empty", target.name);
    let run = Arc::new(Run {
        target: *target,
        corpus,
        seed,
        cases,
        next: AtomicU64::new(0),
        failed: AtomicBool::new(false),
        failure: Mutex::new(None),
        now: (0..threads).map(|_| Mutex::new(None)).collect(),
    });
    let begun = Instant::now();
    run_on_threads(&run);
    let (took, tried) = (begun.elapsed().as_secs_f64(), run.jobs());
    let failure = run.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
    assert!(failure.is_none(), "{}", failure.unwrap_or_default());
    let rate = Duration::from_secs(tried).as_secs_f64() / took;
    println!("figure: fuzz {}: {tried} cases in {took:.1} s, {rate:.0} each second", target.name);
    hold_memory();
}

/// Starts the threads, and waits for them as long as they get on.
fn run_on_threads(run: &Arc<Run>) {
    let (ended, end) = mpsc::channel();
    for thread in 0..run.now.len() {
        let (run, ended) = (Arc::clone(run), ended.clone());
        let work = move || {
            run.work(thread);
            // The test has given up where the receiver is gone.
            let _gone = ended.send(());
        };
        std::thread::Builder::new().name(format!("{thread}")).spawn(work).expect("a thread can be started");
    }
    drop(ended);
    for _ in 0..run.now.len() {
        loop {
            match end.recv_timeout(LOOKED_AFTER) {
                Ok(()) => break,
                Err(RecvTimeoutError::Timeout) => run.look_after(),
                Err(RecvTimeoutError::Disconnected) => panic!("a thread has ended too early"),
            }
        }
    }
}

impl Run {
    fn jobs(&self) -> u64 {
        self.corpus.len() as u64 + self.cases.1
    }

    /// Takes one job after the other until there is none, or one has failed.
    fn work(&self, thread: usize) {
        while !self.failed.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.jobs() {
                break;
            }
            self.is_at(thread, Some((number, Instant::now())));
            let job = self.job(number);
            let mut input = Vec::new();
            let made = caught(|| input = self.input(&job));
            if let Err(why) = made.and_then(|()| attempt(self.target.check, &input))
                && !self.failed.swap(true, Ordering::Relaxed)
            {
                let told = self.tell(&job, &input, &why);
                *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
            }
        }
        self.is_at(thread, None);
    }

    fn is_at(&self, thread: usize, job: Option<(u64, Instant)>) {
        *self.now[thread].lock().unwrap_or_else(PoisonError::into_inner) = job;
    }

    fn job(&self, number: u64) -> Job {
        match usize::try_from(number) {
            Ok(number) if number < self.corpus.len() => Job::Kept(number),
            _ => Job::Drawn(self.cases.0 + number - self.corpus.len() as u64),
        }
    }

    fn input(&self, job: &Job) -> Vec<u8> {
        match job {
            Job::Kept(which) => self.corpus[*which].bytes.clone(),
            Job::Drawn(case) => {
                (self.target.make)(&mut numbers(self.seed, self.target.name, *case), &self.corpus)
            }
        }
    }

    /// A failure in words, with how to repeat it and what to do about it.
    fn tell(&self, job: &Job, input: &[u8], why: &str) -> String {
        let name = self.target.name;
        let shown = String::from_utf8_lossy(&input[..input.len().min(SHOWN)]).into_owned();
        let place = self.place(job);
        let again = match job {
            Job::Kept(_) => String::new(),
            Job::Drawn(case) => {
                let file = leave(name, *case, input);
                format!(
                    "\nrepeat it: {place} cargo test --workspace --test fuzz -- --exact {name}\n\
                     keep it: make {file} smaller where you can, and commit it below tests/fuzz/corpus/{name}"
                )
            }
        };
        format!("{name}: {place} fails: {why}\ninput, {} bytes: {shown}{again}", input.len())
    }

    /// Ends the run where a case hangs, or takes memory without end: the machine has other work.
    fn look_after(&self) {
        let at = self.now.iter().filter_map(|at| *at.lock().unwrap_or_else(PoisonError::into_inner));
        let at: Vec<_> = at.map(|(number, since)| (self.place(&self.job(number)), since.elapsed())).collect();
        let hangs = at.iter().find(|(_, time)| *time > kit::wait::patient(HANGS));
        assert!(hangs.is_none(), "{}: it does not end: {hangs:?}", self.target.name);
        if let Some(has) = memory("VmRSS").filter(|has| *has > MOST_MEMORY_KB) {
            // What has been drawn is not drawn again here: it may be what takes the memory. And a thread cannot be
            // ended.
            eprintln!("{}: {has} kB of memory, with these at work: {at:?}", self.target.name);
            std::process::abort();
        }
    }

    /// Where an input is from, and what repeats it.
    fn place(&self, job: &Job) -> String {
        match job {
            Job::Kept(which) => {
                format!("tests/fuzz/corpus/{}/{}", self.target.name, self.corpus[*which].name)
            }
            Job::Drawn(case) => format!("FUZZ_SEED={} FUZZ_CASE={case}", self.seed),
        }
    }
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
