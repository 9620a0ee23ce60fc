//! Wrong models of etcd, each with one mistake, to see that what real etcd did speaks against it.

use gatehouse::kinds::etcdcluster::etcd::Refusal;
use gatehouse::kinds::etcdcluster::observation::MemberId;

use kit::membership::{Answer, Call, Cluster, Outcomes, Window, quorum};

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// Something is done that is refused, for a reason that is not thought of.
    Forgets(Kind, Refusal),
    /// No member is added while any voter is down.
    AddsOnlyIfAllRun,
    /// A learner that is down is not promoted.
    PromotesOnlyWhoRuns,
    /// A voter is removed only while all others are up.
    RemovesOnlyIfOthersRun,
    /// A member that is added votes at once.
    AddsVoters,
    /// What is removed stays in the list.
    KeepsTheRemoved,
    /// Each member hands over for the one that leads.
    AnyoneMovesTheLeader,
    /// A new leader knows what the last one heard.
    HearsOfOthers,
    /// Any voter that runs takes a write, without a majority.
    NeedsNoQuorum,
    /// Who comes to vote is among those whose majority agrees on that.
    AgreesWithTheNew,
}

/// A kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Add,
    Promote,
    Remove,
    MoveLeader,
}

impl Kind {
    const fn of(call: Call) -> Option<Self> {
        match call {
            Call::Add { .. } => Some(Self::Add),
            Call::Promote(_) => Some(Self::Promote),
            Call::Remove(_) => Some(Self::Remove),
            Call::MoveLeader(_) => Some(Self::MoveLeader),
            Call::Write | Call::List => None,
        }
    }
}

impl Mistake {
    /// The wrong model.
    pub fn rules(self) -> impl Fn(&Cluster, MemberId, Call, Window) -> Outcomes {
        move |before, asked, call, window| {
            let outcomes = before.outcomes(asked, call, window);
            if self.matters(before, asked, call) { self.twist(before, call, &outcomes) } else { outcomes }
        }
    }

    /// Whether it matters to this call now.
    fn matters(self, before: &Cluster, asked: MemberId, call: Call) -> bool {
        let is_answered = before.runs(asked) && before.voters().any(|voter| voter.id == asked);
        let is_agreed_on = before.leads() || self == Self::NeedsNoQuorum;
        is_answered && is_agreed_on && self.is_about(before, call)
    }

    fn is_about(self, before: &Cluster, call: Call) -> bool {
        let is_down = |id| before.member(id).is_some_and(|member| member.is_started) && !before.runs(id);
        match (self, call) {
            (Self::Forgets(kind, _), _) => Some(kind) == Kind::of(call),
            (Self::AddsOnlyIfAllRun, Call::Add { .. }) => before.live_voters() < before.voters().count(),
            (Self::PromotesOnlyWhoRuns | Self::HearsOfOthers, Call::Promote(id)) => is_down(id),
            (Self::RemovesOnlyIfOthersRun, Call::Remove(id)) => {
                before.voters().any(|voter| voter.id != id && !before.runs(voter.id))
            }
            (Self::AgreesWithTheNew, Call::Promote(id)) => {
                is_down(id) && before.live_voters() < quorum(before.voters().count() + 1)
            }
            (Self::NeedsNoQuorum, Call::Write) => !before.has_quorum() && before.live_voters() > 0,
            (Self::AddsVoters, Call::Add { .. })
            | (Self::KeepsTheRemoved, Call::Remove(_))
            | (Self::AnyoneMovesTheLeader, Call::MoveLeader(_)) => true,
            _ => false,
        }
    }

    fn twist(self, before: &Cluster, call: Call, outcomes: &Outcomes) -> Outcomes {
        let instead = |answer| vec![(answer, before.clone())];
        let each = |twist: &dyn Fn(Answer, Cluster) -> (Answer, Cluster)| {
            outcomes.iter().cloned().map(|(answer, next)| twist(answer, next)).collect()
        };
        match self {
            Self::Forgets(_, refusal) => each(&|answer, mut next| {
                if answer != Answer::Refused(refusal) {
                    return (answer, next);
                }
                next.apply(call);
                (Answer::Done, next)
            }),
            Self::AddsOnlyIfAllRun | Self::RemovesOnlyIfOthersRun => {
                instead(Answer::Refused(Refusal::Unhealthy))
            }
            Self::PromotesOnlyWhoRuns => instead(Answer::Refused(Refusal::LearnerNotReady)),
            Self::AgreesWithTheNew => each(&|answer, next| match answer {
                Answer::Done => (Answer::Unsure, before.clone()),
                other => (other, next),
            }),
            Self::HearsOfOthers => each(&|_, mut next| {
                next.apply(call);
                (Answer::Done, next)
            }),
            Self::AddsVoters => each(&|answer, mut next| {
                next.members
                    .iter_mut()
                    .filter(|member| !member.is_started)
                    .for_each(|added| added.is_learner = false);
                (answer, next)
            }),
            Self::KeepsTheRemoved => each(&|answer, _| (answer, before.clone())),
            Self::AnyoneMovesTheLeader | Self::NeedsNoQuorum => instead(Answer::Done),
        }
    }
}
