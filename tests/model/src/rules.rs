//! What must never be, and how it is found.

mod surroundings;

use std::collections::BTreeSet;

use gatehouse::api::condition::State;
use gatehouse::kinds::etcdcluster::actions::Action as Effect;
use gatehouse::kinds::etcdcluster::api::status::ConditionType;
use gatehouse::kinds::etcdcluster::observation::{
    AlarmKind, Fact, Member, MemberId, Observation, Ordinal, Purpose, RecoveryPhase, Role,
};
use gatehouse::kinds::etcdcluster::plan::Plan;

use crate::liveness::says;
use crate::world::apply::ends_pod;
use crate::world::care::Database;
use crate::world::{Place, World};
use kit::membership::quorum;

/// A rule, by what is so where it is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// A majority of voters can form that lacks an acknowledged write.
    WriteLost,
    /// What the operator did cost a quorum that there was. A pod that was told to go is lost for it.
    QuorumCost,
    /// There are two learners, or more members than one beyond the most that was ever asked for.
    TooManyMembers,
    /// A second cluster is formed where one is recorded or clients have written, or a seed's entry says so.
    SecondCluster,
    /// The volume of a member is deleted, or a pod that was all that held its claim.
    MembersVolume,
    /// A pod runs as a member that was removed.
    RemovedMemberRuns,
    /// The leader is removed while another voter could have led, and was not asked to.
    LeaderRemoved,
    /// The leader is restarted for another template while a follower waits for the same.
    LeaderRestartedFirst,
    /// A pod is deleted or a voter removed, and those that are left of the quorum have to catch up before they acknowledge
    /// anything.
    LaggingQuorum,
    /// What a recovery set aside is deleted, and nothing keeps it.
    SetAsideLost,
    /// Clients find no member by the Service, although a quorum serves.
    Unserved,
    /// A learner is added to whose pod the Service leads.
    LearnerServesClients,
    /// A member is replaced whose data are there, and as all have agreed on.
    SoundMemberReplaced,
    /// Who is a member is changed in a reconciliation that did not know the members.
    ChangedUnknown,
    /// Members run more than two minors, or two that are not neighbours.
    MinorsApart,
    /// The status says that all is well, or as it is asked for, and it is not.
    StatusLies,
    /// A cluster is to be made of the data of one member while another one that answers has more.
    PoorerSurvivor,
    /// A cluster that is paused is worked.
    WorkedWhilePaused,
    /// A cluster is made of one member's data while others run.
    ForcedBesideOthers,
    /// A cluster is made of one member's data that had been made already.
    ForcedTwice,
    /// A pass does two things that cannot be taken back.
    TwoAtOnce,
    /// A member shows another one a certificate of an authority that it does not trust.
    LeafNotTrusted,
    /// A member starts of a minor before the one that all have agreed on.
    RunsTooOld,
    /// A member gives free space back, and serves no client meanwhile, while another voter is missing.
    DefragmentedBesideMissing,
    /// The leader does so while a follower has to.
    LeaderDefragmentedFirst,
    /// The alarm about space is disarmed while a database is full.
    DisarmedFull,
    /// More of the history is dropped than it takes.
    HistoryDropped,
    /// A member gives free space back that it has little of.
    DefragmentedForNothing,
    /// Clients are led to a member before etcd asks who they are, or root lacks the password that it is to have.
    LetInUnasked,
    /// A member is brought to a version that etcd cannot go to, or that no one has allowed.
    VersionNotAllowed,
    /// An upgrade begins without the backup that it has to wait for.
    NoBackup,
    /// A member starts that cannot read what is in its log.
    LogUnreadable,
    /// The first of members is restarted whose data were not compared for long.
    RestartedUncompared,
    /// Something of another owner is changed, or anything is worked beside it.
    TouchedAnothers,
    /// A cluster is worked while a member of another one answers in the place of one.
    WorkedBesideStranger,
    /// Clients are led to a member that has followed no leader for a while.
    LedToWhoIsCutOff,
    /// An object goes whose deletion is refused.
    DeletedProtected,
    /// What is under way never ends.
    NeverSettles,
    /// Nothing is done any more, and the spec is neither reached nor is it said why.
    SettlesWrongly,
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
            (Rule::LeafNotTrusted, self.distrusts()),
            (Rule::Unserved, self.is_unserved()),
        ];
        rules.into_iter().find(|(_, is_broken)| *is_broken).map(|(rule, _)| rule)
    }

    /// Breaks a rule, if it is the first one.
    pub fn breaks(&mut self, rule: Rule) {
        self.broken.get_or_insert(rule);
    }

    fn lacks_a_write(&self) -> bool {
        let lacks =
            |voter: &&Member| self.data(voter).is_some_and(|data| data.index < self.etcd.acknowledged);
        let voters = self.voters().count();
        voters > 0 && self.voters().filter(lacks).count() >= quorum(voters)
    }

    fn is_unserved(&self) -> bool {
        self.counts_service && self.leads() && !self.is_served()
    }

    fn minors_are_apart(&self) -> bool {
        let running = self.etcd.members.iter().filter(|member| self.runs(member));
        let pods = running.filter_map(|member| self.objects.pods.get(&member.ordinal?));
        let minors: BTreeSet<_> = pods.map(|place| place.pod.template.version.minor).collect();
        minors.first().zip(minors.last()).is_some_and(|(least, most)| most - least > 1)
    }

    /// What holds of a plan and what it was made of.
    pub fn judge_plan(&mut self, seen: &Observation, plan: &Plan) {
        let irreversible = plan.actions.iter().filter(|effect| effect.is_irreversible()).count();
        let defragments = |effect: &&Effect| matches!(effect, Effect::Defragment { .. });
        let defragments = plan.actions.iter().filter(defragments).count();
        let changes = |effect: &Effect| {
            matches!(
                effect,
                Effect::MemberAdd { .. } | Effect::MemberPromote { .. } | Effect::MemberRemove { .. }
            )
        };
        // To whom clients are led changes no member.
        let works = |effect: &Effect| !matches!(effect, Effect::LabelPod { .. });
        let changes_unknown = seen.membership.is_unknown() && plan.actions.iter().any(changes);
        let rules = [
            (Rule::TwoAtOnce, irreversible > 1 || defragments > 1),
            (
                Rule::DefragmentedBesideMissing,
                plan.actions.iter().any(|effect| self.defragments_alone(effect)),
            ),
            (
                Rule::LeaderDefragmentedFirst,
                plan.actions.iter().any(|effect| self.defragments_leader(effect)),
            ),
            (Rule::DisarmedFull, plan.actions.iter().any(|effect| self.disarms_full(effect))),
            (Rule::WorkedWhilePaused, self.desired.is_paused && plan.actions.iter().any(works)),
            (Rule::ChangedUnknown, changes_unknown),
            (Rule::QuorumCost, plan.actions.iter().any(|effect| self.stops_unasked(effect))),
            (Rule::LeaderRemoved, plan.actions.iter().any(|effect| self.removes_the_leader(effect))),
            (Rule::LeaderRestartedFirst, plan.actions.iter().any(|effect| self.restarts_the_leader(effect))),
            (Rule::SoundMemberReplaced, plan.actions.iter().any(|effect| self.replaces_the_sound(effect))),
            (Rule::PoorerSurvivor, self.goes_on_from_less(seen, plan)),
            (Rule::StatusLies, self.is_lied_about(seen, plan)),
        ];
        for (rule, _) in rules.into_iter().filter(|(_, is_broken)| *is_broken) {
            self.breaks(rule);
        }
        self.judge_plan_in_surroundings(seen, plan);
    }

    fn stops_unasked(&self, effect: &Effect) -> bool {
        let stops = matches!(effect, Effect::ApplyStatefulSet { from, replicas: 0, .. } if *from > 0);
        stops && self.desired.replicas > 0 && !self.desired.is_deleting
    }

    /// That it comes to lead before it is removed costs an election, and cannot be ruled out.
    fn removes_the_leader(&self, effect: &Effect) -> bool {
        let Effect::MemberRemove { member, .. } = effect else { return false };
        let others = self.voters().filter(|voter| voter.id != *member && self.runs(voter)).count();
        let is_leader = self.leads() && self.etcd.leader == Some(*member);
        is_leader && others > 0 && self.kept_leading != Some(*member)
    }

    /// The same.
    fn restarts_the_leader(&self, effect: &Effect) -> bool {
        let Effect::DeletePod { ordinal, .. } = effect else { return false };
        // A recovery restarts whom it has to.
        let recovery = self.objects.record.recovery.as_ref();
        if recovery.is_some_and(|recovery| recovery.phase.is_active()) {
            return false;
        }
        let template = self.objects.set.as_ref().map(|set| set.template);
        let waits = |ordinal: Ordinal| {
            let place = self.objects.pods.get(&ordinal).filter(|_| self.stays(ordinal));
            place.is_some_and(|place| Some(place.pod.template) != template)
        };
        let leader = self.etcd.leader.and_then(|leader| self.member(leader)).filter(|_| self.leads());
        let is_leaders = leader.is_some_and(|leader| leader.ordinal == Some(*ordinal));
        let followers = self.voters().filter(|voter| voter.ordinal != Some(*ordinal) && self.runs(voter));
        let mut followers = followers.filter_map(|voter| voter.ordinal);
        // One that does not answer cannot be asked to hand over.
        is_leaders && !self.is_silent(*ordinal) && waits(*ordinal) && followers.any(waits)
    }

    /// Whether a member whose data are there is removed although there are no more than are asked for.
    fn replaces_the_sound(&self, effect: &Effect) -> bool {
        let Effect::MemberRemove { member, .. } = effect else { return false };
        let is_held = |ordinal: Ordinal| self.held_claims().contains(&ordinal);
        let is_sound = self
            .member(*member)
            .is_some_and(|member| self.has_sound_data(member) && !member.ordinal.is_some_and(is_held));
        let members = u32::try_from(self.etcd.members.len()).unwrap_or(u32::MAX);
        is_sound && members <= self.desired.replicas
    }

    fn has_sound_data(&self, member: &Member) -> bool {
        self.data(member).is_some_and(|data| !data.is_corrupt)
    }

    fn defragments_alone(&self, effect: &Effect) -> bool {
        let Effect::Defragment { member, .. } = effect else { return false };
        let serves = |voter: &Member| self.runs(voter) && voter.ordinal.is_some_and(|at| self.stays(at));
        self.voters().any(|voter| voter.id != *member && !serves(voter))
    }

    fn defragments_leader(&self, effect: &Effect) -> bool {
        let Effect::Defragment { member, .. } = effect else { return false };
        let others = self.voters().filter(|voter| voter.id != *member);
        let mut data = others.filter_map(|voter| self.data(voter));
        let is_leader = self.leads() && self.etcd.leader == Some(*member);
        let is_loose = |database| matches!(database, Database::Loose | Database::Spare);
        is_leader && data.any(|data| is_loose(data.database) && !data.was_defragmented)
    }

    fn disarms_full(&self, effect: &Effect) -> bool {
        let is_full = |database| matches!(database, Database::Full | Database::Loose);
        let is_full = || self.databases_but(MemberId(0)).any(is_full);
        matches!(effect, Effect::AlarmDisarm { alarm, .. } if alarm.kind == AlarmKind::NoSpace && is_full())
    }

    /// Whether a survivor is chosen now, without being named, that has less of the log than another voter that answers.
    fn goes_on_from_less(&self, seen: &Observation, plan: &Plan) -> bool {
        let chosen = plan.record.recovery.as_ref().filter(|recovery| {
            recovery.phase == RecoveryPhase::Fencing && seen.record.recovery.as_ref() != Some(recovery)
        });
        let is_named = self.desired.recovery.as_ref().is_some_and(|request| request.survivor.is_some());
        let Some(survivor) = chosen.and_then(|recovery| recovery.survivor).filter(|_| !is_named) else {
            return false;
        };
        let answering = self.voters().filter(|voter| self.runs(voter));
        let indices: Vec<_> =
            answering.filter_map(|voter| Some((voter.ordinal?, self.data(voter)?.index))).collect();
        let chosen = indices.iter().find(|(ordinal, _)| *ordinal == survivor).map_or(0, |(_, index)| *index);
        indices.iter().any(|(_, index)| *index > chosen)
    }

    fn is_lied_about(&self, seen: &Observation, plan: &Plan) -> bool {
        if says(plan, ConditionType::Available, State::True) && !matches!(seen.membership, Fact::Known(_)) {
            return true;
        }
        let replicas = self.desired.replicas;
        // Where nothing is under way yet, other words say what is waited for or done first.
        let is_at_rest = plan.summary.blocked.is_none() && plan.actions.is_empty();
        let is_settled = says(plan, ConditionType::Progressing, State::False) && is_at_rest;
        let is_refused = says(plan, ConditionType::SpecValid, State::False);
        if replicas == 0 && plan.summary.is_reached && !self.objects.pods.is_empty() {
            return true;
        }
        if plan.summary.is_reached && self.is_growing() {
            return true;
        }
        if says(plan, ConditionType::Ready, State::True) && (replicas == 0 || !self.is_as_asked()) {
            return true;
        }
        if replicas == 0 || self.desired.is_paused || self.desired.is_deleting || is_refused {
            return false;
        }
        (plan.summary.is_reached || is_settled) && !self.is_as_asked()
    }

    /// Whether as many vote and run as are asked for, all of what is asked for.
    fn is_as_asked(&self) -> bool {
        let voters = u32::try_from(self.live_voters()).unwrap_or(u32::MAX);
        let are_current = self
            .voters()
            .filter_map(|voter| self.objects.pods.get(&voter.ordinal?))
            .all(|place| place.pod.template == self.desired.template);
        voters == self.desired.replicas && self.voters().count() == self.etcd.members.len() && are_current
    }

    /// Whether an effect takes a voter that runs from a quorum that has all of the log, and too few of the others have.
    fn leaves_laggards(&self, effect: &Effect) -> bool {
        let voters = self.voters().count();
        let (ordinal, needed) = match effect {
            Effect::DeletePod { ordinal, .. } if voters > 2 => (*ordinal, quorum(voters)),
            Effect::MemberRemove { ordinal, .. } => (*ordinal, quorum(voters.saturating_sub(1))),
            _ => return false,
        };
        let is_voter = self.voters().any(|voter| voter.ordinal == Some(ordinal) && self.runs(voter));
        is_voter
            && self.current_voters_but(None) >= quorum(voters)
            && self.current_voters_but(Some(ordinal)) < needed
    }

    /// What holds of an effect that was just carried out.
    pub fn judge_effect(&mut self, before: &Self, effect: &Effect) {
        let cannot_be_helped = match effect {
            // One or two voters cannot be restarted without.
            Effect::DeletePod { .. } => before.voters().count() < 3,
            // That is asked for, or was a moment ago.
            Effect::ApplyStatefulSet { replicas, .. } => *replicas == 0,
            _ => false,
        };
        if before.leads() && before.keeps_quorum() && !self.keeps_quorum() && !cannot_be_helped {
            self.breaks(Rule::QuorumCost);
        }
        let mut held = before.held_claims().into_iter();
        if before.objects.record.cluster_id.is_some() && held.any(|ordinal| ends_pod(effect, ordinal)) {
            self.breaks(Rule::MembersVolume);
        }
        self.judge_effect_in_surroundings(before, effect);
        if self.counts_lag && before.leads() && before.leaves_laggards(effect) {
            self.breaks(Rule::LaggingQuorum);
        }
        match effect {
            Effect::MemberAdd { ordinal, .. } => {
                let serves = |place: &Place| place.pod.role == Some(Role::Voter);
                if self.counts_service && before.objects.pods.get(ordinal).is_some_and(serves) {
                    self.breaks(Rule::LearnerServesClients);
                }
                let most = usize::try_from(self.most_asked).unwrap_or(usize::MAX) + 1;
                if self.etcd.members.len() > most {
                    self.breaks(Rule::TooManyMembers);
                }
            }
            Effect::DeleteVolume { ordinal, .. } => {
                let data = before.objects.volumes.get(ordinal).and_then(|disk| disk.data);
                let is_members = data.is_some_and(|data| before.member(data.member).is_some())
                    || before.etcd.members.iter().any(|member| member.ordinal == Some(*ordinal));
                let goes = before.desired.is_deleting && before.desired.deletes_volumes;
                if is_members && before.objects.record.cluster_id.is_some() && !goes {
                    self.breaks(Rule::MembersVolume);
                }
                let is_lost = before.objects.volumes.get(ordinal).is_some_and(|disk| {
                    let was_set_aside = disk.data.is_some_and(|data| data.is_left_out);
                    was_set_aside && disk.volume.is_retained != Fact::Known(true)
                });
                if is_lost && !before.desired.is_deleting {
                    self.breaks(Rule::SetAsideLost);
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
