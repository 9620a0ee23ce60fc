//! Clients that write and read without a pause, and write down what they are told.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gatehouse::etcd::{Client, Compare, DeleteRange, Error, Header, Outcome, Put, Range, RequestKind, Txn};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::check::{Fault, Violation, check};
use super::record::{Action, Answer, Call, Event, Value};
use super::watch::{events, number};

const KEYS: u64 = 8;
const CLIENTS: u64 = 4;
/// Between two calls of a client.
const PAUSE: Duration = Duration::from_millis(1);
/// After a call that failed.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(20);
/// How long the cluster may take to be whole again when the test is over.
const PATIENCE: Duration = Duration::from_secs(30);

/// Clients at work.
#[derive(Debug)]
pub struct Writer {
    shared: Arc<Shared>,
    tasks: JoinSet<Vec<Call>>,
    begun: i64,
}

/// What came of it.
#[derive(Debug)]
pub struct Report {
    /// What was asked and told.
    pub calls: Vec<Call>,
    /// What happened.
    pub events: Vec<Event>,
    /// The revision up to which that is known.
    pub last: i64,
    /// The longest time in which no write was acknowledged.
    pub longest_gap: Duration,
    /// What should not be.
    pub violations: Vec<Violation>,
}

#[derive(Debug)]
struct Shared {
    prefix: String,
    begin: Instant,
    stop: AtomicBool,
    next: AtomicU64,
    acknowledged: AtomicU64,
    clients: Mutex<Vec<Client>>,
    clusters: Mutex<BTreeSet<u64>>,
}

impl Writer {
    /// Begins to write to keys below a prefix that nobody else uses, at any of these members.
    pub async fn start(prefix: &str, clients: Vec<Client>) -> Self {
        let shared = Arc::new(Shared {
            prefix: prefix.to_owned(),
            begin: Instant::now(),
            stop: AtomicBool::new(false),
            next: AtomicU64::new(1),
            acknowledged: AtomicU64::new(0),
            clients: Mutex::new(clients),
            clusters: Mutex::default(),
        });
        let begun = shared.mark("begin").await;
        let mut tasks = JoinSet::new();
        for number in 1..=CLIENTS {
            tasks.spawn(work(Arc::clone(&shared), number));
        }
        Self { shared, tasks, begun }
    }

    /// Speaks with these members from now on.
    pub fn speak_with(&self, clients: Vec<Client>) {
        *self.shared.clients.lock().unwrap_or_else(PoisonError::into_inner) = clients;
    }

    /// How many writes have been acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.shared.acknowledged.load(Ordering::Relaxed)
    }

    /// Waits until so many more writes have been acknowledged.
    pub async fn goes_on(&self, writes: u64) {
        let wanted = self.acknowledged() + writes;
        let deadline = Instant::now() + PATIENCE;
        while self.acknowledged() < wanted {
            assert!(Instant::now() < deadline, "no {writes} writes were acknowledged within {PATIENCE:?}");
            sleep(PAUSE_AFTER_FAILURE).await;
        }
    }

    /// Ends, and checks what was told against the history of one of the members, and that all these voters agree.
    pub async fn finish(self, voters: &[Client]) -> Report {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.speak_with(voters.to_vec());
        let Self { shared, tasks, begun } = self;
        let calls: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
        let last = shared.mark("end").await;
        let events = events(&voters[0], &shared.prefix, begun, last).await.expect("the history is there");
        let mut violations = check(&calls, &events, last);
        let clusters = shared.clusters.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if clusters.len() > 1 {
            violations.push(Violation { fault: Fault::OtherCluster, text: format!("{clusters:x?}") });
        }
        violations.extend(differences(voters, last).await);
        let longest_gap = longest_gap(&calls);
        Report { calls, events, last, longest_gap, violations }
    }
}

impl Report {
    /// How many changes were acknowledged.
    pub fn acknowledged(&self) -> usize {
        self.calls.iter().filter(|call| matches!(call.answer, Answer::Done(_))).count()
    }

    /// Fails unless etcd kept its word, to so many acknowledged changes at least.
    pub fn expect_kept(&self, at_least: usize) {
        assert!(self.violations.is_empty(), "{self}");
        assert!(self.acknowledged() >= at_least, "fewer than {at_least} changes were acknowledged: {self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |answer| self.calls.iter().filter(|call| call.answer == answer).count();
        write!(
            formatter,
            "{} calls, {} changes acknowledged, {} failed, {} unknown, {} in the history, longest gap {:?}",
            self.calls.len(),
            self.acknowledged(),
            count(Answer::Failed),
            count(Answer::Unknown),
            self.events.len(),
            self.longest_gap,
        )?;
        self.violations.iter().take(20).try_for_each(|violation| write!(formatter, "\n{violation}"))
    }
}

impl Shared {
    fn now(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn key(&self, key: u8) -> Vec<u8> {
        format!("{}/{key}", self.prefix).into_bytes()
    }

    fn pick(&self, random: u64) -> Option<Client> {
        let clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let place = usize::try_from(random).unwrap_or(0).checked_rem(clients.len())?;
        Some(clients[place].clone())
    }

    fn heard_from(&self, header: &Header) -> i64 {
        self.clusters.lock().unwrap_or_else(PoisonError::into_inner).insert(header.cluster_id);
        header.revision
    }

    /// Writes a key of its own, each time with a new value, until that is acknowledged; its revision.
    async fn mark(&self, name: &str) -> i64 {
        let key = format!("{}/{name}", self.prefix).into_bytes();
        let deadline = Instant::now() + PATIENCE;
        let mut attempt = 0;
        loop {
            attempt += 1;
            let client = self.pick(attempt).expect("there are members to speak with");
            match client.put(&key, attempt.to_string().as_bytes()).await {
                Ok(done) => return self.heard_from(&done.header),
                Err(error) => assert!(Instant::now() < deadline, "no write within {PATIENCE:?}: {error}"),
            }
            sleep(PAUSE_AFTER_FAILURE).await;
        }
    }

    /// Asks once, and writes down what was told.
    async fn call(&self, client: &Client, key: u8, action: Action) -> Call {
        let start = self.now();
        let answer = match self.ask(client, key, action).await {
            Ok(answer) => answer,
            Err(error) if error.outcome() == Outcome::None || action == Action::Read => Answer::Failed,
            Err(_) => Answer::Unknown,
        };
        if matches!(answer, Answer::Done(_)) {
            self.acknowledged.fetch_add(1, Ordering::Relaxed);
        }
        Call { start, end: self.now(), key, action, answer }
    }

    async fn ask(&self, client: &Client, key: u8, action: Action) -> Result<Answer, Error> {
        let name = self.key(key);
        match action {
            Action::Put(value) => {
                let done = client.put(&name, value.to_string().as_bytes()).await?;
                Ok(Answer::Done(self.heard_from(&done.header)))
            }
            Action::CompareAndPut { value, unchanged_since } => {
                let compare = vec![Compare::unchanged_since(&name, unchanged_since)];
                let put = Put { key: name, value: value.to_string().into_bytes() };
                let success = vec![RequestKind::Put(put).into()];
                let done = client.transact(Txn { compare, success, failure: Vec::new() }).await?;
                let revision = self.heard_from(&done.header);
                Ok(if done.succeeded { Answer::Done(revision) } else { Answer::Nothing(revision) })
            }
            Action::Delete => {
                let done = client.delete(DeleteRange { key: name, range_end: Vec::new() }).await?;
                let revision = self.heard_from(&done.header);
                Ok(if done.deleted > 0 { Answer::Done(revision) } else { Answer::Nothing(revision) })
            }
            Action::Read => {
                let found = client.range(Range { key: name, ..Range::default() }).await?;
                let revision = self.heard_from(&found.header);
                let value = found.key_values.first();
                Ok(Answer::Read(revision, value.map(|found| (number(&found.value), found.mod_revision))))
            }
        }
    }

    fn value(&self) -> Value {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}

/// One client: half of what it does is to write, a fifth to compare and write, a tenth to delete, the rest to read.
async fn work(shared: Arc<Shared>, number: u64) -> Vec<Call> {
    let mut random = Random(number);
    let mut calls = Vec::new();
    while !shared.stop.load(Ordering::Relaxed) {
        let Some(client) = shared.pick(random.draw()) else {
            sleep(PAUSE_AFTER_FAILURE).await;
            continue;
        };
        let key = u8::try_from(random.draw() % KEYS).unwrap_or(0);
        let action = match random.draw() % 10 {
            0..5 => Action::Put(shared.value()),
            5..7 => {
                let read = shared.call(&client, key, Action::Read).await;
                let found = match read.answer {
                    Answer::Read(_, found) => found.map_or(0, |(_, changed)| changed),
                    _ => 0,
                };
                calls.push(read);
                Action::CompareAndPut { value: shared.value(), unchanged_since: found }
            }
            7 => Action::Delete,
            _ => Action::Read,
        };
        let call = shared.call(&client, key, action).await;
        let failed = call.answer.revision().is_none();
        calls.push(call);
        sleep(if failed { PAUSE_AFTER_FAILURE } else { PAUSE }).await;
    }
    calls
}

/// How the voters differ at a revision, if they do. Each is given time to get there.
async fn differences(voters: &[Client], revision: i64) -> Option<Violation> {
    let mut hashes = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    for voter in voters {
        loop {
            match voter.hash_keys(revision).await {
                Ok(hash) => break hashes.push((voter.endpoint(), hash.hash, hash.compact_revision)),
                Err(error) => assert!(Instant::now() < deadline, "no hash within {PATIENCE:?}: {error}"),
            }
            sleep(PAUSE_AFTER_FAILURE).await;
        }
    }
    let differ = hashes.iter().any(|(_, hash, compacted)| {
        hashes.iter().any(|(_, other, other_compacted)| compacted == other_compacted && hash != other)
    });
    differ.then(|| Violation { fault: Fault::Diverged, text: format!("at {revision}: {hashes:x?}") })
}

/// The longest time between two acknowledged changes.
fn longest_gap(calls: &[Call]) -> Duration {
    let done = calls.iter().filter(|call| matches!(call.answer, Answer::Done(_)));
    let mut ends: Vec<_> = done.map(|call| call.end).collect();
    ends.sort_unstable();
    let gaps = ends.windows(2).map(|pair| pair[1] - pair[0]);
    Duration::from_nanos(gaps.max().unwrap_or_default())
}

/// splitmix64: enough to choose by, and the same each time.
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
