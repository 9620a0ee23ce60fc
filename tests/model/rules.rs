//! What must never be, and how it is found.

use std::collections::BTreeSet;

use gatehouse::api::condition::State;
use gatehouse::api::etcdcluster::status::condition;
use gatehouse::controllers::etcdcluster::effect::Effect;
use gatehouse::controllers::etcdcluster::observation::{
    Fact, Member, Observation, OperationKind, Phase, Purpose,
};
use gatehouse::controllers::etcdcluster::plan::{Plan, quorum};

use crate::world::World;

/// A rule, by what is so where it is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// A majority of voters can form that lacks an acknowledged write.
    WriteLost,
    /// What the operator did cost a quorum that there was.
    QuorumCost,
    /// There are two learners, or more members than one beyond the most that was ever asked for.
    TooManyMembers,
    /// A second cluster is formed where one is recorded or clients have written, or a seed is told to.
    SecondCluster,
    /// The volume of a member is deleted.
    MembersVolume,
    /// A pod runs as a member that was removed.
    RemovedMemberRuns,
    /// The leader is removed while another voter could have led.
    LeaderRemoved,
    /// A member is replaced whose data are there.
    SoundMemberReplaced,
    /// Who is a member is changed in a pass that did not know the members.
    ChangedUnknown,
    /// Members run more than two minors, or two that are not neighbours.
    MinorsApart,
    /// The status says that all is well, and it is not.
    StatusLies,
    /// A cluster that is paused is worked.
    WorkedWhilePaused,
    /// A cluster is made of one member's data while others run.
    ForcedBesideOthers,
    /// A cluster is made of one member's data that had been made already.
    ForcedTwice,
    /// A pass does two things that cannot be taken back.
    TwoAtOnce,
    /// What is under way never ends.
    NeverSettles,
    /// Nothing is done any more, and the spec is neither reached nor is it said why.
    SettlesWrongly,
}

impl Rule {
    /// Whether it is about what all comes to, and not about a state or a step.
    pub fn is_about_the_end(self) -> bool {
        matches!(self, Self::NeverSettles | Self::SettlesWrongly)
    }
}

impl World {
    /// What holds in every state.
    pub fn judge_state(&self) -> Option<Rule> {
        let learners = self.etcd.members.iter().filter(|member| member.is_learner).count();
        let unstarted = self.etcd.members.iter().filter(|member| !member.is_started).count();
        let rules = [
            (Rule::TooManyMembers, learners > 1 || unstarted > 1),
            (Rule::WriteLost, self.lacks_a_write()),
            (Rule::MinorsApart, self.minors_are_apart()),
        ];
        let broken = rules.into_iter().filter(|(_, is_broken)| *is_broken).map(|(rule, _)| rule);
        self.broken.into_iter().chain(broken).find(|rule| self.asks_for(*rule))
    }

    /// Breaks a rule, if it is the first one.
    pub fn breaks(&mut self, rule: Rule) {
        if self.asks_for(rule) {
            self.broken.get_or_insert(rule);
        }
    }

    /// Whether it is to be told where a rule is broken.
    fn asks_for(&self, rule: Rule) -> bool {
        self.only.is_none_or(|only| only == rule)
    }

    fn lacks_a_write(&self) -> bool {
        let lacks =
            |voter: &&Member| self.data(voter).is_some_and(|data| data.index < self.etcd.acknowledged);
        let voters = self.voters().count();
        voters > 0 && self.voters().filter(lacks).count() >= quorum(voters)
    }

    fn minors_are_apart(&self) -> bool {
        let running = self.etcd.members.iter().filter(|member| self.runs(member));
        let pods = running.filter_map(|member| self.objects.pods.get(&member.ordinal?));
        let minors: BTreeSet<_> = pods.map(|place| place.pod.template.version.minor).collect();
        minors.first().zip(minors.last()).is_some_and(|(least, most)| most - least > 1)
    }

    /// What holds of a plan and what it was made of.
    pub fn judge_plan(&mut self, seen: &Observation, plan: &Plan) {
        let irreversible = plan.effects.iter().filter(|effect| effect.is_irreversible()).count();
        if irreversible > 1 {
            self.breaks(Rule::TwoAtOnce);
        }
        if self.desired.is_paused && !plan.effects.is_empty() {
            self.breaks(Rule::WorkedWhilePaused);
        }
        let changes = |effect: &Effect| {
            matches!(
                effect,
                Effect::MemberAdd { .. } | Effect::MemberPromote { .. } | Effect::MemberRemove { .. }
            )
        };
        // That it comes to lead before it is removed costs an election, and nobody can rule it out.
        let leads = |effect: &Effect| matches!(effect, Effect::MemberRemove { member, .. } if self.etcd.leader == Some(*member));
        let may_lead = self.leads() && self.live_voters() > 1;
        let has_tried =
            plan.record.operation.is_some_and(|operation| operation.phase == Phase::RemovingLeader);
        if may_lead && !has_tried && plan.effects.iter().any(leads) {
            self.breaks(Rule::LeaderRemoved);
        }
        if seen.membership.is_unknown() && plan.effects.iter().any(changes) {
            self.breaks(Rule::ChangedUnknown);
        }
        let available = plan.summary.findings.iter().find(|finding| finding.about == condition::AVAILABLE);
        let says_available = available.is_some_and(|finding| finding.state == State::True);
        let is_reached = plan.summary.is_reached && self.desired.replicas > 0;
        let voters = u32::try_from(self.voters().count()).unwrap_or(u32::MAX);
        if says_available && !matches!(seen.membership, Fact::Known(_))
            || is_reached && (voters != self.desired.replicas || !self.has_quorum())
        {
            self.breaks(Rule::StatusLies);
        }
    }

    /// What holds of an effect that was just carried out.
    pub fn judge_effect(&mut self, before: &Self, effect: &Effect) {
        // One or two voters cannot be restarted without.
        let cannot_be_helped = matches!(effect, Effect::DeletePod { .. }) && before.voters().count() < 3;
        if before.leads() && !self.has_quorum() && !cannot_be_helped {
            self.breaks(Rule::QuorumCost);
        }
        match effect {
            Effect::MemberAdd { .. } => {
                let most = usize::try_from(self.most_asked).unwrap_or(usize::MAX) + 1;
                if self.etcd.members.len() > most {
                    self.breaks(Rule::TooManyMembers);
                }
            }
            Effect::MemberRemove { member, .. } => {
                let replaces = before
                    .objects
                    .record
                    .operation
                    .is_some_and(|operation| operation.kind == OperationKind::Replace);
                let is_sound = before.member(*member).is_some_and(|member| before.data(member).is_some());
                if replaces && is_sound {
                    self.breaks(Rule::SoundMemberReplaced);
                }
            }
            Effect::DeleteVolume { ordinal, .. } => {
                let data = before.objects.volumes.get(ordinal).and_then(|disk| disk.data);
                let is_members = data.is_some_and(|data| before.member(data.member).is_some());
                if is_members && before.objects.record.cluster_id.is_some() && !before.desired.is_deleting {
                    self.breaks(Rule::MembersVolume);
                }
            }
            Effect::WriteConfig { entries, .. } => {
                let seeds = entries.values().any(|entry| entry.purpose == Purpose::Seed);
                if seeds && before.objects.record.cluster_id.is_some() {
                    self.breaks(Rule::SecondCluster);
                }
            }
            _ => {}
        }
    }
}
