//! One sequence on real members.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gatehouse::kinds::etcdcluster::etcd::{Client, Error, Limits, Member, Reason, Refusal};
use gatehouse::kinds::etcdcluster::observation::MemberId;
use kit::etcd::{Calls as _, Range};
use kit::membership::belief::Belief;
use kit::membership::trace::{Line, Seat, Step, Trace, View};
use kit::membership::{Answer, Call, Cluster as Model, Outcomes, Window};
use kit::wait::reached_async;
use testbed::EtcdVersion;
use tokio::time::{Instant, sleep_until};

use crate::support::{self, Cluster};

/// Members find room here.
pub const PLACES: u32 = 5;
/// An identity that no member has.
pub const UNKNOWN: u64 = 99;
/// For how long a connection has to stand before etcd counts it, and for how long it takes to come about. No member
/// says whether it counts one, so that this time has to pass.
const HEALTH: Duration = Duration::from_millis(6500);
/// For how long a leader is waited for that hands over to a member that does not follow: less than the election timeout
/// for which it tries, so that the next step comes within it.
const HANDING_OVER: Duration = Duration::from_millis(300);
/// For how long a member may have a wrong view of a connection that stands, before others are asked too.
const WRONG_VIEW: Duration = Duration::from_secs(20);
/// How long members may take to agree, to answer, or to end.
const SETTLED: Duration = Duration::from_secs(40);
const KEYS: (&str, &str) = ("key-", "key.");

/// What real etcd is held against.
pub const MODEL: fn(&Model, MemberId, Call, Window) -> Outcomes = Model::outcomes;

/// A cluster that is asked, and what is known of it.
pub struct Run {
    cluster: Cluster,
    pub belief: Belief<'static>,
    pub trace: Trace,
    /// Real identities and places, by number.
    known: BTreeMap<u64, (u64, u32)>,
    /// Members whose process runs.
    pub running: BTreeSet<u64>,
    /// Members that have no data any more, or had none yet.
    pub empty: BTreeSet<u64>,
    pub view: Option<View>,
    pub next: u64,
    last_change: Instant,
    term: u64,
    written: u32,
    acknowledged: BTreeSet<String>,
    /// How many steps were answered.
    pub answered: usize,
    /// Answers that the model does not allow and that were asked for again, each counted once a step.
    pub passing: BTreeMap<Answer, usize>,
}

/// Why a sequence ended before its time.
#[derive(Debug)]
pub enum End {
    /// The model does not explain what happened.
    Unexplained(String),
    /// Another member came to lead meanwhile, which excuses any answer.
    Disturbed,
}

impl Run {
    /// Members that have formed a cluster.
    pub async fn of(version: EtcdVersion, seed: u64, size: u32) -> Result<Self, End> {
        let trace = Trace { release: version.release().to_owned(), seed, size, lines: Vec::new() };
        let mut cluster = Cluster::of(version, size as usize).await;
        let mut known = BTreeMap::new();
        for place in 0..size {
            let id = cluster.status(place as usize).await.header.member_id;
            known.insert(u64::from(place) + 1, (id, place));
        }
        cluster.serves(0).await;
        let mut run = Self {
            belief: trace.start(&MODEL),
            running: known.keys().copied().collect(),
            empty: BTreeSet::new(),
            view: None,
            next: u64::from(size) + 1,
            last_change: Instant::now(),
            term: 0,
            written: 0,
            acknowledged: BTreeSet::new(),
            answered: 0,
            passing: BTreeMap::new(),
            cluster,
            trace,
            known,
        };
        run.take(Step::Look).await?;
        Ok(run)
    }

    /// Whether a step has a meaning now: sequences that others were left out of have steps that have none.
    fn means_something(&self, step: Step) -> bool {
        let is_known = |id: u64| self.known.contains_key(&id);
        let is_member = |id: u64| self.seats().any(|seat| seat.id == id);
        match step {
            Step::Add { asked, .. }
            | Step::Promote { asked, .. }
            | Step::Remove { asked, .. }
            | Step::MoveLeader { asked, .. }
            | Step::Write { asked }
            | Step::List { asked } => is_known(asked),
            Step::Join(id) => is_member(id) && self.empty.contains(&id) && self.view.is_some(),
            Step::Kill(id) => self.running.contains(&id),
            Step::Wipe(id) => is_known(id) && !self.empty.contains(&id),
            Step::Restart(id) => is_known(id) && !self.running.contains(&id) && !self.empty.contains(&id),
            Step::Look | Step::Wait => true,
        }
    }

    pub fn seats(&self) -> impl Iterator<Item = &Seat> {
        self.view.iter().flat_map(|view| &view.members)
    }

    /// Takes a step, looks, and asks the model.
    pub async fn take(&mut self, step: Step) -> Result<(), End> {
        if !self.means_something(step) {
            return Ok(());
        }
        let answer = if step.call().is_some() { Some(self.ask(step).await) } else { None };
        if answer.is_none() {
            self.process(step).await?;
        }
        let mut line = Line { step, answer, seen: None };
        let mut ahead = self.belief.clone();
        match (step.call(), answer) {
            (Some((asked, call)), Some(answer)) => {
                let told = ahead.answered(asked, call, answer);
                if let Err(surprise) = told {
                    return Err(self.unexplained(&line, &surprise.to_string()).await);
                }
            }
            _ => ahead.stepped(step),
        }
        line.seen = self.look(has_quorum(&ahead), step).await.map_err(|what| self.end(&line, &what))?;
        if let Err(surprise) = line.explain(&mut self.belief) {
            return Err(self.unexplained(&line, &surprise.to_string()).await);
        }
        self.view.clone_from(&line.seen);
        self.trace.lines.push(line);
        self.forget_the_removed().await
    }

    fn end(&self, line: &Line, what: &str) -> End {
        let logs = self.cluster.bed.logs();
        End::Unexplained(format!("{what}\nby {line:?}, after\n{}{logs}", self.trace.text()))
    }

    async fn unexplained(&self, line: &Line, what: &str) -> End {
        let led = self.view.as_ref().map(|view| view.leader);
        let moves = matches!(line.step, Step::MoveLeader { .. } | Step::Kill(_) | Step::Wipe(_));
        let ends = matches!(line.step, Step::Remove { id, .. } if Some(id) == led);
        if led.is_some() && !moves && !ends && self.latest_term().await > self.term {
            return End::Disturbed;
        }
        self.end(line, what)
    }

    async fn latest_term(&self) -> u64 {
        let mut term = 0;
        for id in &self.running {
            if let Ok(status) = self.client(*id, support::short()).status().await {
                term = term.max(status.raft_term);
            }
        }
        term
    }

    fn real(&self, id: u64) -> u64 {
        self.known.get(&id).map_or(4711, |(real, _)| *real)
    }

    fn place(&self, id: u64) -> usize {
        self.known[&id].1 as usize
    }

    fn client(&self, id: u64, limits: Limits) -> Client {
        self.cluster.client_with(self.place(id), limits)
    }

    /// Asks, and again where the answer is one that etcd gives for a while.
    async fn ask(&mut self, step: Step) -> Answer {
        let (asked, call) = step.call().unwrap();
        let allowed = self.belief.allowed(asked, call);
        // Where silence may come, it need not last.
        let limits = match (allowed.contains(&Answer::Unsure), allowed.contains(&Answer::Done)) {
            (false, _) => support::limits(),
            (true, true) => Limits { connect: support::limits().connect, ..Limits::default() },
            (true, false) if matches!(call, Call::MoveLeader(_)) => {
                Limits { change: HANDING_OVER, ..support::short() }
            }
            (true, false) => support::short(),
        };
        let mut passing = BTreeSet::new();
        let answer = reached_async(WRONG_VIEW, async || {
            let answer = self.ask_once(step, limits).await;
            // A late failure on a connection that is whole makes a member think that there is none, and etcd makes an
            // identity of the peer URL and the second: what was removed within it is meant again.
            let may_pass = matches!(answer, Answer::Refused(Refusal::Unhealthy | Refusal::MemberNotFound));
            if may_pass && !allowed.contains(&answer) {
                passing.insert(answer);
                return Err(answer);
            }
            Ok(answer)
        });
        let (Ok(answer) | Err(answer)) = answer.await;
        self.answered += 1;
        for answer in passing {
            *self.passing.entry(answer).or_default() += 1;
        }
        answer
    }

    async fn ask_once(&mut self, step: Step, limits: Limits) -> Answer {
        let asked = step.call().unwrap().0.0;
        let client = self.client(asked, limits);
        match step {
            Step::Add { id, place, .. } => {
                let added = client.add_learner(&self.cluster.bed.peer_url(place as usize)).await;
                if let Ok(added) = &added {
                    self.known.insert(id, (added.member.id, place));
                    self.empty.insert(id);
                }
                answer(&added)
            }
            Step::Promote { id, .. } => answer(&client.promote(self.real(id)).await),
            Step::Remove { id, .. } => answer(&client.remove(self.real(id)).await),
            Step::MoveLeader { to, .. } => answer(&client.move_leader(self.real(to)).await),
            Step::List { .. } => answer(&client.members().await),
            _ => {
                self.written += 1;
                let key = format!("{}{:04}", KEYS.0, self.written);
                let put = client.put(key.as_bytes(), key.as_bytes()).await;
                if put.is_ok() {
                    self.acknowledged.insert(key);
                }
                answer(&put)
            }
        }
    }

    /// Begins or ends a process.
    async fn process(&mut self, step: Step) -> Result<(), End> {
        match step {
            Step::Wait => sleep_until(self.last_change + HEALTH).await,
            Step::Join(id) => {
                let known: Vec<_> = self.seats().map(|seat| seat.place as usize).collect();
                let place = self.place(id);
                self.cluster.bed.wipe(place).unwrap();
                self.cluster.join(place, &known);
                self.running.insert(id);
                self.empty.remove(&id);
            }
            Step::Kill(id) => {
                let place = self.place(id);
                self.cluster.bed.kill(place);
                self.running.remove(&id);
            }
            Step::Wipe(id) => {
                let place = self.place(id);
                self.cluster.bed.wipe(place).unwrap();
                self.running.remove(&id);
                self.empty.insert(id);
            }
            Step::Restart(id) => {
                self.cluster.restart(self.place(id));
                self.running.insert(id);
            }
            _ => {}
        }
        let begins = match step {
            Step::Join(id) | Step::Restart(id) if has_quorum(&self.belief) == Some(true) => Some(id),
            _ => None,
        };
        if let Some(id) = begins {
            let client = self.client(id, support::short());
            let line = Line { step, answer: None, seen: None };
            let answered = reached_async(SETTLED, async || client.status().await).await;
            answered.map_err(|error| self.end(&line, &format!("it does not answer: {error}")))?;
        }
        if !matches!(step, Step::Wait | Step::Look) {
            self.last_change = Instant::now();
        }
        Ok(())
    }

    /// Looks until all that run agree: on the leader, or that there is none.
    async fn look(&mut self, has_quorum: Option<bool>, step: Step) -> Result<Option<View>, String> {
        if has_quorum == Some(false) {
            let alone = async || {
                if self.is_alone().await { Ok(None) } else { Err("a member leads without a quorum") }
            };
            return reached_async(SETTLED, alone).await.map_err(str::to_owned);
        }
        let agreed = async || self.agree().await.ok_or("the members do not agree, in spite of a quorum");
        let (members, leader, term) = reached_async(SETTLED, agreed).await?;
        self.term = term;
        let mut seats = Vec::new();
        for member in &members {
            let place = (0..PLACES).find(|at| member.peer_urls == [self.cluster.bed.peer_url(*at as usize)]);
            let place = place.ok_or_else(|| format!("a member elsewhere: {member:?}"))?;
            if let (Step::Add { id, .. }, false) = (step, self.known.values().any(|(id, _)| *id == member.id))
            {
                // Its answer was lost.
                self.known.insert(id, (member.id, place));
                self.empty.insert(id);
            }
            let id =
                self.number(member.id).ok_or_else(|| format!("a member that was never added: {member:?}"))?;
            let (is_learner, is_started) = (member.is_learner, !member.name.is_empty());
            seats.push(Seat { id, place, is_learner, is_started });
        }
        seats.sort_unstable();
        let leader = self.number(leader).ok_or("a leader that was never added")?;
        self.has_all(leader).await?;
        Ok(Some(View { leader, members: seats }))
    }

    fn number(&self, real: u64) -> Option<u64> {
        self.known.iter().find(|(_, known)| known.0 == real).map(|(id, _)| *id)
    }

    /// Whether no voter that runs sees a leader. A learner goes on naming the one that it last heard of, for ever.
    async fn is_alone(&self) -> bool {
        for id in &self.running {
            let status = self.client(*id, support::short()).status().await;
            if status.is_ok_and(|status| status.leader != 0 && !status.is_learner) {
                return false;
            }
        }
        true
    }

    /// The members, the leader and the term, where all voters that run say the same.
    async fn agree(&self) -> Option<(Vec<Member>, u64, u64)> {
        let mut agreed: Option<(Vec<Member>, u64, u64)> = None;
        let mut answers = BTreeMap::new();
        for id in &self.running {
            let client = self.client(*id, support::short());
            let Ok(status) = client.status().await else { continue };
            if status.is_learner {
                continue;
            }
            let Ok(mut list) = client.members().await else { continue };
            list.members.sort_by_key(|member| member.id);
            answers.insert(self.real(*id), (list.members, status.leader, status.raft_term));
        }
        let list = answers.values().next()?.0.clone();
        for voter in list.iter().filter(|member| !member.is_learner) {
            let id = self.number(voter.id)?;
            if !self.running.contains(&id) {
                continue;
            }
            let answer = answers.get(&voter.id)?;
            // Who led and was removed is still taken for the leader, until another one is.
            let leads = list.iter().any(|member| member.id == answer.1 && !member.is_learner);
            if !leads || *agreed.get_or_insert_with(|| answer.clone()) != *answer {
                return None;
            }
        }
        agreed
    }

    /// Every write that was acknowledged is there.
    async fn has_all(&self, leader: u64) -> Result<(), String> {
        let client = self.client(leader, support::limits());
        let range = Range { key: KEYS.0.into(), range_end: KEYS.1.into(), ..Range::default() };
        let found = client.range(range).await.map_err(|error| error.to_string())?;
        let found: BTreeSet<_> =
            found.key_values.iter().map(|one| String::from_utf8_lossy(&one.key).into_owned()).collect();
        let lost: Vec<_> = self.acknowledged.difference(&found).collect();
        if lost.is_empty() { Ok(()) } else { Err(format!("acknowledged and lost: {lost:?}")) }
    }

    /// A member that was removed learns of it, and ends.
    async fn forget_the_removed(&mut self) -> Result<(), End> {
        let Some(view) = self.view.clone() else { return Ok(()) };
        let is_gone = |id: &u64| view.members.iter().all(|seat| seat.id != *id);
        let gone: Vec<_> = self.running.iter().copied().filter(is_gone).collect();
        for id in gone {
            let place = self.place(id);
            let ended = async || if self.cluster.bed.runs(place) { Err(()) } else { Ok(()) };
            if reached_async(SETTLED, ended).await.is_err() {
                let line = Line { step: Step::Look, answer: None, seen: None };
                return Err(self.end(&line, &format!("member {id} was removed, and goes on")));
            }
            self.cluster.bed.wipe(place).unwrap();
            self.running.remove(&id);
            self.empty.insert(id);
        }
        Ok(())
    }

    /// Whether what begins or ends was long enough ago.
    pub fn is_past(&self) -> bool {
        self.belief.window == Window::Past
    }
}

/// Whether a majority may be there; nothing where that cannot be told.
fn has_quorum(belief: &Belief<'_>) -> Option<bool> {
    let mut all = belief.possible().map(Model::has_quorum);
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}

fn answer<T>(result: &Result<T, Error>) -> Answer {
    match result.as_ref().map_err(Error::reason) {
        Ok(_) => Answer::Done,
        // The same, within the second in which the other was added.
        Err(Reason::Refused(Refusal::MemberExists)) => Answer::Refused(Refusal::PeerUrlExists),
        Err(Reason::Refused(refusal)) => Answer::Refused(*refusal),
        Err(Reason::Unreachable(_)) => Answer::Unreachable,
        Err(Reason::Unsure(_)) => Answer::Unsure,
    }
}
