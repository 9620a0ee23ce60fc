//! A model of how etcd answers changes of its members, and of what becomes of its log. The exploration of the plan uses
//! it, and the conformance tests compare it with real members.
//!
//! Guarantees: pure; what can go several ways is given as all of them, the usual one first.
//!
//! Assumes of etcd, each found true of 3.5.33, 3.6.16 and 3.7.3 (tests/etcd/conformance, tests/traces/etcd):
//! - An entry of the log is committed where a majority of the present voters has it. A change of the members is such an
//!   entry, and a voter that takes it has all entries before it. Only a voter that has all that a majority has may
//!   lead.
//! - The member that is asked judges first (`mayAddMember`, `mayRemoveMember`), by its own connections: to add, it has
//!   to be connected to a majority of one voter more, unless there is but one; to remove a voter, to a majority of
//!   those that are left, unless the one to go is not connected. The leader judges whether a learner has caught up, by
//!   what it last heard of it, whether the learner runs or not (`mayPromoteMember`).
//! - A connection counts once it has stood for five seconds. Within these ([`Window::Within`]) either answer may come.
//! - A leader that was asked to hand over, and whose heir does not follow, proposes nothing for an election timeout,
//!   and says nothing about what it was asked to propose meanwhile ([`belief`] allows for it).
//! - The rest is judged when the entry is applied: a peer URL once, one learner, known identities.
//!
//! Does not say: what an entry holds, how long anything takes, what a member does that is cut off and not dead, or one
//! that comes back under its identity without its data; the guard in the pod is there against that. Nor that the one of
//! two voters that is left may forget the removal of the other, where it is killed before its next entry: 3.5 and 3.6
//! do (tests/etcd/members.rs).

use std::collections::{BTreeMap, BTreeSet};

use gatehouse::kinds::etcdcluster::etcd::Refusal;
use gatehouse::kinds::etcdcluster::observation::{Member, MemberId, Ordinal};

pub mod belief;
pub mod trace;

/// How many of so many voters are a majority.
#[must_use]
pub const fn quorum(voters: usize) -> usize {
    voters / 2 + 1
}

/// A cluster: what its members have agreed on, and how far each of them is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cluster {
    /// The members as the log has them, by identity.
    pub members: Vec<Member>,
    /// The member that was elected last, whether or not it still leads.
    pub leader: Option<MemberId>,
    /// The last entry of the log.
    pub index: u64,
    /// The processes and data of the members that have data.
    pub replicas: BTreeMap<MemberId, Replica>,
}

/// A member's process and its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Replica {
    /// The last entry of the log that it has.
    pub index: u64,
    /// Whether its process runs.
    pub runs: bool,
    /// Whether the leader has heard that it had all of the log. A new leader has heard nothing.
    pub is_heard: bool,
}

/// What a member is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Call {
    /// A member is added, and is to be known by this identity.
    Add {
        /// The identity that it gets.
        id: MemberId,
        /// Its place, which is its peer URL.
        ordinal: Ordinal,
        /// Whether it is added without a vote.
        is_learner: bool,
    },
    /// A learner gets a vote.
    Promote(MemberId),
    /// A member is taken from the list.
    Remove(MemberId),
    /// This voter is to lead.
    MoveLeader(MemberId),
    /// A key is written.
    Write,
    /// The members, linearizably.
    List,
}

/// What kind of answer comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Answer {
    /// It was done.
    Done,
    /// It was not done, for this reason.
    Refused(Refusal),
    /// It may have been done, or may yet be.
    Unsure,
    /// The member does not run.
    Unreachable,
}

/// How long ago a member began or ended last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Window {
    /// Long enough: those that run are connected, and the others are not.
    Past,
    /// Less than five seconds, or a little more.
    Within,
}

/// What may be answered, and what is so then. The usual one is first.
pub type Outcomes = Vec<(Answer, Cluster)>;

impl Cluster {
    /// The members that have a vote.
    pub fn voters(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| !member.is_learner)
    }

    /// The member of this identity.
    #[must_use]
    pub fn member(&self, id: MemberId) -> Option<&Member> {
        self.members.iter().find(|member| member.id == id)
    }

    /// Whether the process of this member runs.
    #[must_use]
    pub fn runs(&self, id: MemberId) -> bool {
        self.replicas.get(&id).is_some_and(|replica| replica.runs)
    }

    fn votes(&self, id: MemberId) -> bool {
        self.member(id).is_some_and(|member| !member.is_learner)
    }

    /// How many voters run.
    #[must_use]
    pub fn live_voters(&self) -> usize {
        self.voters().filter(|voter| self.runs(voter.id)).count()
    }

    /// Whether a majority of the voters runs.
    #[must_use]
    pub fn has_quorum(&self) -> bool {
        let voters = self.voters().count();
        voters > 0 && self.live_voters() >= quorum(voters)
    }

    /// Whether a voter that runs leads a majority.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.leader.is_some_and(|leader| self.votes(leader) && self.runs(leader)) && self.has_quorum()
    }

    /// The smallest majorities of voters that run, with the leader in each.
    #[must_use]
    pub fn majorities(&self) -> Vec<BTreeSet<MemberId>> {
        let Some(leader) = self.leader.filter(|_| self.leads()) else { return Vec::new() };
        let others: Vec<_> =
            self.voters().map(|voter| voter.id).filter(|id| *id != leader && self.runs(*id)).collect();
        let wanted = quorum(self.voters().count()) - 1;
        let mut majorities = Vec::new();
        for chosen in 0_u32..1 << others.len() {
            if chosen.count_ones() as usize == wanted {
                let members = others.iter().enumerate().filter(|(at, _)| chosen & (1 << at) != 0);
                majorities.push(members.map(|(_, id)| *id).chain([leader]).collect());
            }
        }
        majorities
    }

    /// Appends an entry that these take, with all before it.
    pub fn commit(&mut self, members: &BTreeSet<MemberId>) {
        self.index += 1;
        for (_, replica) in self.replicas.iter_mut().filter(|(id, _)| members.contains(id)) {
            replica.index = self.index;
        }
    }

    /// A member takes what it lacks, and says how it is called.
    pub fn catch_up(&mut self, id: MemberId) -> Option<()> {
        let index = self.index;
        let leads = self.leads();
        let replica = self.replicas.get_mut(&id).filter(|replica| leads && replica.runs)?;
        let member = self.members.iter_mut().find(|member| member.id == id)?;
        let before = (*replica, *member);
        *replica = Replica { index, is_heard: true, ..*replica };
        member.is_started = true;
        (before != (*replica, *member)).then_some(())
    }

    /// A voter leads for whom a majority would vote: it has all that they have.
    pub fn elect(&mut self, id: MemberId) -> Option<()> {
        let index = self.replicas.get(&id).filter(|replica| replica.runs && self.votes(id))?.index;
        let running =
            self.voters().filter_map(|voter| self.replicas.get(&voter.id)).filter(|voter| voter.runs);
        let votes = running.filter(|voter| voter.index <= index).count();
        if votes < quorum(self.voters().count()) || self.leader == Some(id) {
            return None;
        }
        self.lead(id);
        Some(())
    }

    fn lead(&mut self, id: MemberId) {
        self.leader = Some(id);
        for (other, replica) in &mut self.replicas {
            replica.is_heard = *other == id;
        }
    }

    /// What may be answered, and what is so then. The usual one is first.
    #[must_use]
    pub fn outcomes(&self, asked: MemberId, call: Call, window: Window) -> Outcomes {
        let same = |answer| (answer, self.clone());
        if !self.runs(asked) {
            return vec![same(Answer::Unreachable)];
        }
        if self.member(asked).is_some_and(|member| member.is_learner) {
            return vec![same(Answer::Refused(Refusal::NotSupportedForLearner))];
        }
        let mut outcomes = Vec::new();
        for refusal in self.refusals(asked, call, window) {
            match refusal {
                Some(refusal) => outcomes.push(same(Answer::Refused(refusal))),
                None => outcomes.extend(self.proposed(asked, call)),
            }
        }
        if !self.leads() {
            // A member that started without a quorum does not listen, until it has waited long enough.
            outcomes.extend([same(Answer::Unsure), same(Answer::Unreachable)]);
        }
        outcomes
    }

    /// What comes of an entry that is proposed.
    fn proposed(&self, asked: MemberId, call: Call) -> Outcomes {
        if let Call::MoveLeader(to) = call {
            return self.moved(to);
        }
        if let (Call::List, true) = (call, self.leads()) {
            return vec![(Answer::Done, self.clone())];
        }
        let mut outcomes = Vec::new();
        for majority in self.majorities() {
            let mut next = self.clone();
            next.commit(&majority);
            if let Some(refusal) = self.verdict(call) {
                outcomes.push((Answer::Refused(refusal), next));
                continue;
            }
            next.apply(call);
            outcomes.push((Answer::Done, next.clone()));
            // Who removes itself, or the one that led, may not be told that it is done.
            if call == Call::Remove(asked) || self.leader.is_some_and(|id| call == Call::Remove(id)) {
                outcomes.push((Answer::Unsure, next));
            }
        }
        outcomes
    }

    fn moved(&self, to: MemberId) -> Outcomes {
        if !self.runs(to) || !self.leads() {
            return vec![(Answer::Unsure, self.clone())];
        }
        let mut next = self.clone();
        if next.leader != Some(to) {
            // Etcd brings it up to date first.
            let _up_to_date = next.catch_up(to);
            next.lead(to);
        }
        vec![(Answer::Done, next)]
    }

    /// Why it may be refused before anything is proposed, or not be. The usual one is first.
    fn refusals(&self, asked: MemberId, call: Call, window: Window) -> Vec<Option<Refusal>> {
        let voters = self.voters().count();
        let connected = self.live_voters();
        let unhealthy = |is_so: bool| match (is_so, window) {
            (true, Window::Past) => vec![Some(Refusal::Unhealthy)],
            (false, Window::Past) => vec![None],
            (true, Window::Within) => vec![Some(Refusal::Unhealthy), None],
            (false, Window::Within) => vec![None, Some(Refusal::Unhealthy)],
        };
        match call {
            Call::Add { is_learner, .. } => {
                let started = self.started(|_| true);
                let is_risky = started < quorum(voters + 1) && (voters, started) != (1, 1);
                if !is_learner && is_risky {
                    return vec![Some(Refusal::NotEnoughStartedMembers)];
                }
                if voters == 1 { vec![None] } else { unhealthy(connected < quorum(voters + 1)) }
            }
            Call::Remove(id) if self.member(id).is_some_and(|member| member.is_learner) => vec![None],
            Call::Remove(id) => {
                let left = self.voters().filter(|voter| voter.id != id).count();
                if self.started(|voter| voter.id != id) < quorum(left) {
                    return vec![Some(Refusal::NotEnoughStartedMembers)];
                }
                let is_down = !self.runs(id) && id != asked;
                match window {
                    // Who is not known is not connected either.
                    _ if self.member(id).is_none() => vec![None],
                    Window::Past if is_down => vec![None],
                    _ => unhealthy(connected.saturating_sub(1) < quorum(voters - 1)),
                }
            }
            Call::Promote(id) => self.readiness(asked, id),
            Call::MoveLeader(to) => {
                if self.leader != Some(asked) {
                    vec![Some(Refusal::NotLeader)]
                } else if self.votes(to) {
                    vec![None]
                } else {
                    vec![Some(Refusal::BadLeaderTransferee)]
                }
            }
            Call::Write | Call::List => vec![None],
        }
    }

    fn started(&self, counts: impl Fn(&Member) -> bool) -> usize {
        self.voters().filter(|voter| voter.is_started && counts(voter)).count()
    }

    /// What who leads thinks of promoting a member.
    fn readiness(&self, asked: MemberId, id: MemberId) -> Vec<Option<Refusal>> {
        if !self.leads() {
            return Vec::new(); // the member that is asked waits for a leader
        }
        if self.member(id).is_none() {
            return vec![Some(Refusal::MemberNotFound)];
        }
        let voters = self.voters().count();
        // Who passes it on asks again, until it has asked for too long.
        if self.started(|_| true) + 1 < quorum(voters + 1) {
            let is_told = self.leader == Some(asked);
            return if is_told { vec![Some(Refusal::NotEnoughStartedMembers)] } else { Vec::new() };
        }
        match self.replicas.get(&id) {
            Some(replica) if replica.is_heard && replica.index == self.index => vec![None],
            // Little is too little to matter: a tenth of the log.
            Some(replica) if replica.is_heard => vec![None, Some(Refusal::LearnerNotReady)],
            _ => vec![Some(Refusal::LearnerNotReady)],
        }
    }

    /// Why it is refused when it is applied.
    fn verdict(&self, call: Call) -> Option<Refusal> {
        let (Call::Promote(id) | Call::Remove(id) | Call::Add { id, .. }) = call else { return None };
        let found = self.member(id);
        match call {
            Call::Promote(_) if found.is_some_and(|member| !member.is_learner) => {
                Some(Refusal::MemberNotLearner)
            }
            Call::Promote(_) | Call::Remove(_) if found.is_none() => Some(Refusal::MemberNotFound),
            Call::Add { ordinal, .. }
                if self.members.iter().any(|member| member.ordinal == Some(ordinal)) =>
            {
                Some(Refusal::PeerUrlExists)
            }
            Call::Add { is_learner: true, .. } if self.members.iter().any(|member| member.is_learner) => {
                Some(Refusal::TooManyLearners)
            }
            _ => None,
        }
    }

    /// What a call does once it is agreed on.
    pub fn apply(&mut self, call: Call) {
        match call {
            Call::Add { id, ordinal, is_learner } => {
                self.members.push(Member { id, ordinal: Some(ordinal), is_learner, is_started: false });
                self.members.sort_unstable();
            }
            Call::Promote(id) => {
                let promoted = self.members.iter_mut().filter(|member| member.id == id);
                promoted.for_each(|member| member.is_learner = false);
            }
            Call::Remove(id) => {
                self.members.retain(|member| member.id != id);
                self.replicas.remove(&id);
                self.leader = self.leader.filter(|leader| *leader != id);
            }
            Call::MoveLeader(_) | Call::Write | Call::List => {}
        }
    }

    /// Forgets how long the log is: only who has more than whom matters.
    pub fn forget(&mut self) {
        let all: BTreeSet<_> =
            self.replicas.values().map(|replica| replica.index).chain([0, self.index]).collect();
        let rank = |index: u64| all.iter().position(|one| *one == index).map_or(0, |rank| rank as u64);
        for replica in self.replicas.values_mut() {
            replica.index = rank(replica.index);
        }
        self.index = rank(self.index);
    }
}
