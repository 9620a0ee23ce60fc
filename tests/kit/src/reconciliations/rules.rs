//! What must hold of each reconciliation, seen from its facts and its plan alone.

use gatehouse::api::condition::State;
use gatehouse::kinds::etcdcluster::actions::{Action, MembershipGuard, Precondition};
use gatehouse::kinds::etcdcluster::api::status::ConditionType;
use gatehouse::kinds::etcdcluster::observation::{
    ClusterId, Desired, Fact, Handle, MemberId, Membership, Observation, Ordinal, Owner, Phase, PodPhase,
};
use gatehouse::kinds::etcdcluster::plan::Plan;

/// A rule, by what is so where it is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// A line says something that is no reconciliation and no action.
    Unread,
    /// A line is missing.
    Lost,
    /// A line is there more than once.
    Doubled,
    /// Planned again, the reconciliation comes out otherwise.
    PlannedOtherwise,
    /// What was carried out is not what comes next in the plan.
    NotPlanned,
    /// A reconciliation does two things that cannot be taken back.
    TwoAtOnce,
    /// An action hinges on something that the reconciliation did not see so.
    Unguarded,
    /// Who is a member is changed, or deleted from, in a reconciliation that did not know the members.
    ChangedUnknown,
    /// A cluster that is paused is worked.
    WorkedWhilePaused,
    /// The leader is removed while another voter could lead.
    LeaderRemoved,
    /// A voter is removed and those that are left and serve are no majority.
    QuorumRemoved,
    /// The volume of a member is deleted.
    MembersVolume,
    /// A spec is called reached that is not.
    ReachedTooEarly,
    /// The status says that a quorum serves which was not seen.
    AvailableUnseen,
    /// There are two learners.
    TwoLearners,
    /// The recorded cluster is another one, or forgotten.
    OtherCluster,
    /// One request brought a quorum back twice.
    RecoveredTwice,
}

/// The rules that a plan breaks.
#[must_use]
pub fn broken(desired: &Desired, seen: &Observation, plan: &Plan) -> Vec<Rule> {
    let holds = [
        (Rule::TwoAtOnce, plan.actions.iter().filter(|action| action.is_irreversible()).count() <= 1),
        (Rule::Unguarded, plan.actions.iter().all(|action| is_guarded(seen, action))),
        (Rule::ChangedUnknown, plan.actions.iter().all(|action| knows_members(seen, action))),
        (
            Rule::WorkedWhilePaused,
            !desired.is_paused || desired.is_deleting || !plan.actions.iter().any(works),
        ),
        (Rule::LeaderRemoved, removed(plan).all(|member| lets_leader_go(seen, member))),
        (Rule::QuorumRemoved, removed(plan).all(|member| leaves_quorum(seen, member))),
        (Rule::MembersVolume, plan.actions.iter().all(|action| spares_volumes(desired, seen, action))),
        (Rule::ReachedTooEarly, !plan.summary.is_reached || is_reached(desired, seen, plan)),
        (Rule::AvailableUnseen, !says_available(plan) || list(seen).is_some()),
        (Rule::TwoLearners, list(seen).is_none_or(|list| list.learners().count() <= 1)),
    ];
    holds.into_iter().filter(|(_, holds)| !holds).map(|(rule, _)| rule).collect()
}

/// Whether an action changes members, or what they are made of. To whom clients are led does not.
const fn works(action: &Action) -> bool {
    !matches!(action, Action::LabelPod { .. })
}

/// The list of members, where it is known and is that of the recorded cluster.
fn list(seen: &Observation) -> Option<&Membership> {
    let list = seen.membership.known()?;
    (Some(list.cluster_id) == seen.record.cluster_id).then_some(list)
}

fn removed(plan: &Plan) -> impl Iterator<Item = MemberId> {
    plan.actions.iter().filter_map(|action| match action {
        Action::MemberRemove { member, .. } => Some(*member),
        _ => None,
    })
}

/// Whether what an action hinges on is what was seen.
fn is_guarded(seen: &Observation, action: &Action) -> bool {
    let pod = |at: Ordinal, handle: &Handle| seen.pod(at).is_known_and(|pod| pod.handle == *handle);
    let volume = |at: Ordinal, handle: &Handle| seen.volume(at).is_known_and(|one| one.handle == *handle);
    let cluster = |id: ClusterId| seen.record.cluster_id == Some(id);
    let is =
        |at: Ordinal, id: MemberId| list(seen).and_then(|list| list.at(at)).is_some_and(|one| one.id == id);
    let votes = |id| list(seen).and_then(|list| list.find(id)).is_some_and(|one| !one.is_learner);
    match action {
        Action::WriteRecord { before, .. } => *before == seen.record,
        Action::WriteAuthority { .. } | Action::WriteCertificate { .. } => are_as_seen(seen, action),
        Action::ApplyServices => !seen.services.is_unknown(),
        Action::ApplyStatefulSet { found, from, .. } => {
            let kept = seen.stateful_set.known().map_or(0, |set| set.replicas);
            is_found(seen.stateful_set.as_ref().map(|set| &set.handle), found.as_ref()) && *from == kept
        }
        Action::WriteConfig { found, .. } => {
            is_found(seen.config.as_ref().map(|config| &config.handle), found.as_ref())
        }
        Action::WithdrawConfig { found, .. } => seen.config.is_known_and(|config| config.handle == *found),
        Action::ApplyBudget { found, .. } => {
            is_found(seen.budget.as_ref().map(|budget| &budget.handle), found.as_ref())
        }
        Action::LabelPod { pod: handle, ordinal, .. } => pod(*ordinal, handle),
        Action::DeletePod { pod: handle, ordinal, precondition } => {
            let is_spared = match precondition {
                Some(Precondition::OthersServe { member, .. }) => is(*ordinal, *member) && votes(*member),
                Some(Precondition::QuorumLost) => list(seen).is_none(),
                None => true,
            };
            pod(*ordinal, handle) && is_spared
        }
        Action::SetAsideVolume { volume: handle, ordinal, .. }
        | Action::RetainVolume { volume: handle, ordinal, .. }
        | Action::DeleteVolume { volume: handle, ordinal, .. }
        | Action::ResizeVolume { volume: handle, ordinal, .. } => volume(*ordinal, handle),
        Action::MemberAdd { ordinal, pod, volume, .. } => {
            seen.pod(*ordinal).is_known_and(|one| one.handle.uid == *pod && one.phase == PodPhase::Waiting)
                && seen.volume(*ordinal).is_known_and(|one| one.handle.uid == *volume)
                && list(seen).is_some_and(|list| list.at(*ordinal).is_none())
        }
        Action::MemberPromote { member, ordinal, .. } => is(*ordinal, *member) && !votes(*member),
        Action::MemberRemove { member, ordinal, .. } => is(*ordinal, *member),
        Action::MoveLeader { from, to, .. } => from != to && votes(*from) && votes(*to),
        Action::AlarmDisarm { cluster_id, alarm } => {
            cluster(*cluster_id) && seen.alarms.is_known_and(|alarms| alarms.contains(alarm))
        }
        Action::Defragment { cluster_id, member, ordinal } => cluster(*cluster_id) && is(*ordinal, *member),
        Action::Compact { cluster_id, .. }
        | Action::AppendEntries { cluster_id, .. }
        | Action::DowngradeCancel { cluster_id, .. }
        | Action::AuthEnable { cluster_id, .. }
        | Action::SetRootPassword { cluster_id, .. }
        | Action::StartBackup { cluster_id, .. } => cluster(*cluster_id),
        Action::DowngradeEnable { .. } => list(seen).is_some(),
        Action::ApplyBackupSchedule => !seen.backup_schedule.is_unknown(),
        Action::AddFinalizer => !seen.has_finalizer,
        Action::RemoveFinalizer => seen.has_finalizer,
    }
}

/// Whether the Secrets with certificates that an action hinges on are as they were seen.
fn are_as_seen(seen: &Observation, action: &Action) -> bool {
    let Some(secrets) = &seen.certificate_secrets else { return false };
    let stored = secrets.authority.as_ref().map(|secret| &secret.handle);
    match action {
        Action::WriteAuthority { found, .. } => is_found(stored, found.as_ref()),
        Action::WriteCertificate { found, holder, authority, .. } => {
            let leaf = secrets.leaves.get(holder).map_or(Fact::Unknown, Fact::as_ref);
            is_found(leaf.map(|secret| &secret.handle), found.as_ref()) && stored.found() == Some(authority)
        }
        _ => true,
    }
}

/// Whether an object is made only where there is none, and changed only as it was seen.
fn is_found(seen: Fact<&Handle>, found: Option<&Handle>) -> bool {
    match seen {
        Fact::Known(handle) => found == Some(handle),
        Fact::Absent => found.is_none(),
        Fact::Unknown => false,
    }
}

/// Whether an action that hinges on the members hinges on the list that was seen.
fn knows_members(seen: &Observation, action: &Action) -> bool {
    match action {
        Action::MemberAdd { membership, .. }
        | Action::MemberPromote { membership, .. }
        | Action::MemberRemove { membership, .. }
        | Action::MoveLeader { membership, .. }
        | Action::DowngradeEnable { membership, .. }
        | Action::DeleteVolume { membership: Some(membership), .. } => {
            list(seen).is_some_and(|list| MembershipGuard::of(list) == *membership)
        }
        _ => true,
    }
}

/// The voters that answer and follow a leader, in a pod that runs and stays.
fn serving(seen: &Observation) -> impl Iterator<Item = MemberId> {
    let voters = list(seen).into_iter().flat_map(Membership::voters);
    voters.filter_map(|voter| {
        let at = voter.ordinal?;
        let runs = seen.pod(at).is_known_and(|pod| pod.phase == PodPhase::Up && !pod.is_deleting);
        let answers = seen.status(at).is_known_and(|status| {
            status.member_id == voter.id && status.leader.is_some() && !status.has_errors
        });
        (runs && answers).then_some(voter.id)
    })
}

/// Whether a member that goes does not lead, or no other member can, or that it goes as the leader was recorded:
/// handing over had failed.
fn lets_leader_go(seen: &Observation, member: MemberId) -> bool {
    let leads = seen.answers().any(|(_, status)| status.member_id == member && status.leader == Some(member));
    let others = serving(seen).any(|other| other != member);
    let was_tried = seen.record.operation.is_some_and(|operation| operation.phase == Phase::RemovingLeader);
    !leads || !others || was_tried
}

/// Whether those that are left and serve are a majority of those that are left.
fn leaves_quorum(seen: &Observation, member: MemberId) -> bool {
    let voters = list(seen).into_iter().flat_map(Membership::voters);
    let left = voters.filter(|voter| voter.id != member).count();
    let is_learner = list(seen).and_then(|list| list.find(member)).is_some_and(|one| one.is_learner);
    is_learner || serving(seen).filter(|other| *other != member).count() > left / 2
}

/// Whether no volume goes that a started member has its data on, unless the cluster goes and they with it.
fn spares_volumes(desired: &Desired, seen: &Observation, action: &Action) -> bool {
    let Action::DeleteVolume { volume, ordinal, membership, .. } = action else { return true };
    let is_ours = seen.volume(*ordinal).is_known_and(|one| one.owner == Owner::Ours);
    let goes = desired.is_deleting && desired.deletes_volumes || seen.record.cluster_id.is_none();
    // A member's entry names the volume that it lives on. Of one that was removed another volume may be left at its
    // ordinal.
    let lives = seen.entry(*ordinal).is_known_and(|entry| {
        let member = list(seen).and_then(|list| list.at(*ordinal));
        entry.volume == volume.uid && member.is_some_and(|member| entry.member == Some(member.id))
    });
    is_ours && (goes || membership.is_some() && !lives)
}

/// Whether nothing is left to do, and all that were asked for vote.
fn is_reached(desired: &Desired, seen: &Observation, plan: &Plan) -> bool {
    let voters = list(seen).map_or(0, |list| list.voters().count());
    let has_all = desired.replicas == 0 || u32::try_from(voters) == Ok(desired.replicas);
    has_all
        && plan.actions.is_empty()
        && plan.record == seen.record
        && desired.is_valid
        && !desired.is_paused
        && !desired.is_deleting
}

fn says_available(plan: &Plan) -> bool {
    let findings = &plan.summary.findings;
    findings.iter().any(|one| one.about == ConditionType::Available && one.state == State::True)
}
