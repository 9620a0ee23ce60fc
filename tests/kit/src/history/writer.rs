//! Clients that write to etcd and read from it all the time, and record every answer.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use gatehouse::kinds::etcdcluster::etcd::{Client, Error, Header, Outcome};
use gatehouse::runtime::clock;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::check::{Fault, Violation, check};
use super::record::{Action, Answer, Call, Event, Value};
use super::watch::{events, number};
use crate::etcd::{Calls as _, Compare, DeleteRange, Put, Range, RequestKind, Txn};
use crate::random::Random;
use crate::wait::{PATIENCE, eventually_async, patient};

const KEYS: u64 = 8;
/// After a call that failed.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(20);

/// Without an acknowledged change for this long, the cluster was down.
///
/// No speed is asserted by it. An election takes two to four seconds, and a client gives a call up after ten at most,
/// so a cluster that keeps its majority has an order of magnitude to spare on a busy machine. The operator calls a
/// quorum lost after the same minute: a shorter gap was not ended by a recovery.
pub const OUTAGE: Duration = Duration::from_mins(1);

/// How many clients there are, and how long each rests between two calls: no gap shorter than that is seen.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// How many.
    pub clients: u64,
    /// How long.
    pub pause: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { clients: 4, pause: Duration::from_millis(1) }
    }
}

/// A time without an acknowledged change, counted from the start of the clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The last change before it.
    pub from: Duration,
    /// The first one after it.
    pub to: Duration,
}

impl Gap {
    /// How long it was.
    #[must_use]
    pub const fn length(self) -> Duration {
        self.to.saturating_sub(self.from)
    }
}

/// Clients at work.
#[derive(Debug)]
pub struct Writer {
    shared: Arc<Shared>,
    tasks: JoinSet<Vec<Call>>,
    begun: i64,
}

/// What the clients of a [`Writer`] asked and were answered, and what the check of it found.
#[derive(Debug)]
pub struct Report {
    /// What was asked and told.
    pub calls: Vec<Call>,
    /// What happened.
    pub events: Vec<Event>,
    /// The revision up to which that is known.
    pub last: i64,
    /// The longest time without an acknowledged change, from the start of the clients to their end.
    pub longest_gap: Duration,
    /// When the clients began.
    pub begun: SystemTime,
    /// For how long they were at work.
    pub lasted: Duration,
    /// What should not be.
    pub violations: Vec<Violation>,
}

#[derive(Debug)]
struct Shared {
    prefix: String,
    pace: Pace,
    begin: Instant,
    begun: SystemTime,
    stop: AtomicBool,
    next: AtomicU64,
    acknowledged: AtomicU64,
    clients: Mutex<Vec<Client>>,
    clusters: Mutex<BTreeSet<u64>>,
}

impl Writer {
    /// Begins to write to keys below a prefix that nothing else uses, at any of these members.
    pub async fn start(prefix: &str, clients: Vec<Client>) -> Self {
        Self::start_at(Pace::default(), prefix, clients).await
    }

    /// The same at another pace.
    pub async fn start_at(pace: Pace, prefix: &str, clients: Vec<Client>) -> Self {
        let shared = Arc::new(Shared {
            prefix: prefix.to_owned(),
            pace,
            begin: Instant::now(),
            begun: clock::now().into(),
            stop: AtomicBool::new(false),
            next: AtomicU64::new(1),
            acknowledged: AtomicU64::new(0),
            clients: Mutex::new(clients),
            clusters: Mutex::default(),
        });
        let begun = shared.mark("begin").await;
        let mut tasks = JoinSet::new();
        for number in 1..=pace.clients {
            tasks.spawn(work(Arc::clone(&shared), number));
        }
        Self { shared, tasks, begun }
    }

    /// Speaks with these members from now on.
    pub fn speak_with(&self, clients: Vec<Client>) {
        *self.shared.clients.lock().unwrap_or_else(PoisonError::into_inner) = clients;
    }

    /// How many writes have been acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.shared.acknowledged.load(Ordering::Relaxed)
    }

    /// Waits until so many more writes have been acknowledged.
    ///
    /// # Panics
    /// No write was acknowledged for as long as an [`OUTAGE`].
    pub async fn goes_on(&self, writes: u64) {
        let wanted = self.acknowledged() + writes;
        let mut before = self.acknowledged();
        while before < wanted {
            before = eventually_async(
                OUTAGE,
                async || {
                    Some(self.acknowledged()).filter(|now| *now > before).ok_or("no write was acknowledged")
                },
                || format!("{before} were before, and {wanted} are waited for"),
            )
            .await;
        }
    }

    /// Ends, checks the answers against the history of one of the voters, and that all these voters hold the same data.
    pub async fn finish(self, voters: &[Client]) -> Report {
        self.shared.stop.store(true, Ordering::Relaxed);
        let ended = self.shared.now();
        self.speak_with(voters.to_vec());
        let Self { shared, tasks, begun } = self;
        let calls: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
        let last = shared.mark("end").await;
        let read = async || {
            events(&voters[0], &shared.prefix, begun, last).await.map_err(|error| format!("{error:?}"))
        };
        let events = eventually_async(PATIENCE, read, || format!("up to {last}")).await;
        let mut violations = check(&calls, &events, last);
        let clusters = shared.clusters.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if clusters.len() > 1 {
            violations.push(Violation { fault: Fault::OtherCluster, text: format!("{clusters:x?}") });
        }
        violations.extend(differences(voters, last).await);
        let lasted = Duration::from_nanos(ended);
        let longest_gap = gaps(&calls, lasted).into_iter().map(Gap::length).max().unwrap_or_default();
        Report { calls, events, last, longest_gap, begun: shared.begun, lasted, violations }
    }
}

impl Report {
    /// How many changes were acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> usize {
        self.calls.iter().filter(|call| matches!(call.answer, Answer::Done(_))).count()
    }

    /// The times without an acknowledged change that were longer than that.
    #[must_use]
    pub fn gaps(&self, longer: Duration) -> Vec<Gap> {
        gaps(&self.calls, self.lasted).into_iter().filter(|gap| gap.length() > longer).collect()
    }

    /// Fails unless etcd kept its word, to so many acknowledged changes at least.
    pub fn expect_kept(&self, at_least: usize) {
        assert!(self.violations.is_empty(), "{self}");
        assert!(self.acknowledged() >= at_least, "fewer than {at_least} changes were acknowledged: {self}");
    }

    /// Fails if the cluster was down at some time: for tests in which a majority of its voters always runs.
    pub fn expect_no_outage(&self) {
        assert!(self.longest_gap < patient(OUTAGE), "the cluster was down: {self}");
    }

    /// The longest gap, as a line that tools collect.
    #[must_use]
    pub fn figure(&self, name: &str) -> String {
        format!("figure: {name} gap {:.3}", self.longest_gap.as_secs_f64())
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
        let mut attempt = 0;
        let write = async || {
            attempt += 1;
            let client = self.pick(attempt).expect("there are members to speak with");
            client.put(&key, attempt.to_string().as_bytes()).await.map(|done| self.heard_from(&done.header))
        };
        eventually_async(PATIENCE, write, || format!("the key {name} was not written")).await
    }

    /// Asks once, and records the answer.
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
        sleep(if failed { PAUSE_AFTER_FAILURE } else { shared.pace.pause }).await;
    }
    calls
}

/// How the voters differ at a revision, if they do. A hash covers what the last compaction has left, and voters make a
/// compaction one after the other: only hashes after the same one can be compared.
async fn differences(voters: &[Client], revision: i64) -> Option<Violation> {
    let compared = async || {
        let mut hashes = Vec::new();
        for voter in voters {
            let hash = voter.hash_keys(revision).await.map_err(|error| error.to_string())?;
            hashes.push((voter.endpoint(), hash.hash, hash.compact_revision));
        }
        let is_like_the_first = |(_, _, compacted): &(_, _, i64)| *compacted == hashes[0].2;
        let agree = hashes.iter().all(is_like_the_first);
        if agree { Ok(hashes) } else { Err(format!("the voters have compacted differently: {hashes:x?}")) }
    };
    let hashes = eventually_async(PATIENCE, compared, || format!("no hashes at {revision} to compare")).await;
    let differ = hashes.iter().any(|(_, hash, _)| *hash != hashes[0].1);
    differ.then(|| Violation { fault: Fault::Diverged, text: format!("at {revision}: {hashes:x?}") })
}

/// The times between two acknowledged changes, the start and the end of the clients counted as such.
fn gaps(calls: &[Call], lasted: Duration) -> Vec<Gap> {
    let done = calls.iter().filter(|call| matches!(call.answer, Answer::Done(_)));
    let done = done.map(|call| Duration::from_nanos(call.end));
    let mut times: Vec<_> = done.chain([Duration::ZERO, lasted]).collect();
    times.sort_unstable();
    times.windows(2).map(|pair| Gap { from: pair[0], to: pair[1] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_may_be_before_the_first_change_or_after_the_last() {
        let done = |end| Call { start: 0, end, key: 0, action: Action::Delete, answer: Answer::Done(1) };
        let failed = Call { answer: Answer::Failed, ..done(50) };
        for (ends, ended, lengths) in
            [([10, 30], 35, [10, 20, 5]), ([30, 40], 45, [30, 10, 5]), ([10, 15], 95, [10, 5, 80])]
        {
            let calls = [done(ends[0]), failed.clone(), done(ends[1])];
            let found = gaps(&calls, Duration::from_nanos(ended)).into_iter().map(Gap::length);
            assert_eq!(found.collect::<Vec<_>>(), lengths.map(Duration::from_nanos));
        }
        let whole = Gap { from: Duration::ZERO, to: Duration::from_nanos(7) };
        assert_eq!(gaps(&[], whole.to), [whole]);
    }
}
