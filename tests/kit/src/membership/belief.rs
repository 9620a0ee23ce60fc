//! All states that a cluster may be in, after what was asked, answered and seen so far. Where none is left, the model
//! is wrong.

use std::collections::BTreeSet;

use gatehouse::kinds::etcdcluster::observation::{Member, MemberId};

use super::{Answer, Call, Cluster, Outcomes, Replica, Window};

/// What may be answered to a call, and what is so then: [`Cluster::outcomes`], or a faulty copy of it.
pub type Rules = dyn Fn(&Cluster, MemberId, Call, Window) -> Outcomes + Sync;

/// All that a cluster may be.
#[derive(Clone)]
pub struct Belief<'a> {
    rules: &'a Rules,
    possible: BTreeSet<Possible>,
    /// How long ago a process began or ended.
    pub window: Window,
}

impl std::fmt::Debug for Belief<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("Belief");
        shown.field("possible", &self.possible).field("window", &self.window).finish_non_exhaustive()
    }
}

/// One thing that it may be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Possible {
    cluster: Cluster,
    /// What was proposed without an answer: it may be done while a member leads, until something else is.
    pending: BTreeSet<Call>,
}

/// What all members that serve say of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The list of members, by identity.
    pub members: Vec<Member>,
    /// The member that leads.
    pub leader: MemberId,
}

/// Nothing that was thought possible goes with what happened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Surprise {
    /// An answer that no possible cluster gives.
    #[error("{answer:?} to {call:?} of {asked:?}, where {allowed:?} was allowed")]
    Answer {
        /// The member that answered.
        asked: MemberId,
        /// What it was asked for.
        call: Call,
        /// What it answered.
        answer: Answer,
        /// What it might have answered.
        allowed: BTreeSet<Answer>,
    },
    /// A view of the members that no possible cluster gives.
    #[error("the members are seen as {seen:?}, where it may be any of {possible:?}")]
    Seen {
        /// What the members say; none: they see no leader.
        seen: Option<Seen>,
        /// What the cluster might have been.
        possible: Vec<Cluster>,
    },
}

impl<'a> Belief<'a> {
    /// Voters that have just formed a cluster.
    #[must_use]
    pub fn formed(rules: &'a Rules, members: Vec<Member>) -> Self {
        let replica = Replica { index: 1, runs: true, is_heard: true };
        let replicas = members.iter().map(|member| (member.id, replica)).collect();
        let cluster = Cluster { members, leader: None, index: 1, replicas };
        let possible = BTreeSet::from([Possible { cluster, pending: BTreeSet::new() }]);
        Self { rules, possible, window: Window::Within }
    }

    /// Each of them.
    pub fn possible(&self) -> impl Iterator<Item = &Cluster> {
        self.possible.iter().map(|one| &one.cluster)
    }

    /// A process began or ended, or lost its data.
    pub fn change(&mut self, change: impl Fn(&mut Cluster)) {
        self.map(|one| change(&mut one.cluster));
        self.window = Window::Within;
    }

    fn map(&mut self, change: impl Fn(&mut Possible)) {
        self.possible = std::mem::take(&mut self.possible)
            .into_iter()
            .map(|mut one| {
                change(&mut one);
                one
            })
            .collect();
    }

    /// All answers that may come.
    #[must_use]
    pub fn allowed(&self, asked: MemberId, call: Call) -> BTreeSet<Answer> {
        self.outcomes(asked, call).into_iter().map(|(answer, _)| answer).collect()
    }

    fn outcomes(&self, asked: MemberId, call: Call) -> Vec<(Answer, Possible)> {
        let mut all = Vec::new();
        for one in self.settle(false) {
            let mut outcomes = (self.rules)(&one.cluster, asked, call, self.window);
            let is_proposed = outcomes.iter().any(|(_, after)| after.index > one.cluster.index);
            if is_proposed && one.pending.iter().any(|call| matches!(call, Call::MoveLeader(_))) {
                // A leader that hands over drops without a word what it is to propose, for an election timeout.
                outcomes.push((Answer::Unsure, one.cluster.clone()));
            }
            for (answer, cluster) in outcomes {
                let mut pending = one.pending.clone();
                if cluster.index > one.cluster.index {
                    pending.clear();
                } else if answer == Answer::Unsure && !matches!(call, Call::Write | Call::List) {
                    pending.insert(call);
                }
                all.push((answer, Possible { cluster, pending }));
            }
        }
        all
    }

    /// Something was asked for, and answered.
    ///
    /// # Errors
    /// It should not have been answered so.
    pub fn answered(&mut self, asked: MemberId, call: Call, answer: Answer) -> Result<(), Surprise> {
        let allowed = self.allowed(asked, call);
        if !allowed.contains(&answer) {
            return Err(Surprise::Answer { asked, call, answer, allowed });
        }
        let outcomes = self.outcomes(asked, call).into_iter();
        self.possible = outcomes.filter(|(given, _)| *given == answer).map(|(_, next)| next).collect();
        self.map(|one| one.cluster.forget());
        Ok(())
    }

    /// What members say of the cluster; nothing: none of them sees a leader.
    ///
    /// # Errors
    /// It cannot be so.
    pub fn seen(&mut self, seen: Option<&Seen>) -> Result<(), Surprise> {
        let goes = |cluster: &Cluster| match seen {
            Some(seen) => {
                cluster.leads() && cluster.leader == Some(seen.leader) && cluster.members == seen.members
            }
            None => !cluster.has_quorum(),
        };
        let left: BTreeSet<_> = self.settle(true).into_iter().filter(|one| goes(&one.cluster)).collect();
        if left.is_empty() {
            let possible = self.possible().cloned().collect();
            return Err(Surprise::Seen { seen: seen.cloned(), possible });
        }
        self.possible = left;
        if seen.is_none() {
            self.map(|one| one.cluster.leader = None);
        }
        Ok(())
    }

    /// All that may come by itself: members take what they lack, what is pending is done, and a member is elected.
    fn settle(&self, elects: bool) -> BTreeSet<Possible> {
        let mut all = BTreeSet::new();
        let mut new: Vec<_> = self.possible.iter().cloned().collect();
        while let Some(one) = new.pop() {
            if all.insert(one.clone()) {
                new.extend(one.follow(elects));
            }
        }
        all
    }
}

impl Possible {
    fn follow(&self, elects: bool) -> Vec<Self> {
        let mut next = Vec::new();
        for Member { id, .. } in &self.cluster.members {
            let mut ways = vec![Cluster::catch_up as fn(&mut Cluster, MemberId) -> Option<()>];
            if elects || !self.cluster.leads() {
                ways.push(Cluster::elect);
            }
            for way in ways {
                let mut cluster = self.cluster.clone();
                if way(&mut cluster, *id).is_some() {
                    cluster.forget();
                    next.push(Self { cluster, pending: self.pending.clone() });
                }
            }
        }
        for call in &self.pending {
            if self.cluster.verdict(*call).is_some() {
                continue;
            }
            for majority in self.cluster.majorities() {
                let mut cluster = self.cluster.clone();
                cluster.commit(&majority);
                if let Call::MoveLeader(to) = call {
                    cluster.leader = Some(*to).filter(|to| self.cluster.runs(*to)).or(cluster.leader);
                } else {
                    cluster.apply(*call);
                }
                cluster.forget();
                let mut pending = self.pending.clone();
                pending.remove(call);
                next.push(Self { cluster, pending });
            }
        }
        next
    }
}
