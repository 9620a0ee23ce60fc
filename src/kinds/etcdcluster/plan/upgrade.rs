//! Upgrades to another version or template: the pods are recreated, one at a time. Pure.
//!
//! Guarantees: the unready first, then followers by ordinal from the highest, the leader last and after a hand-over;
//! the gate before each that is ready; the members' data are compared before the first; a pod in which etcd may run is
//! deleted only where the others serve, whether or not it answers; a pod's entry is made for its new template before it
//! is deleted; no member gets a quota that its volume has no room for. A pod that does
//! not come up keeps the gate closed, and so is the only one that is affected; the old template repairs it. Data in
//! memory end with their pod: it is recreated only where the other voters are a majority of all.

mod heal;
mod step;

pub use heal::heal;
pub use step::{Preparation, Refusal, Step, step};

use super::cluster_state::{ClusterState, quorum};
use super::decision::Decision;
use super::preconditions::BlockedReason;
use super::{hold, housekeeping, preconditions, replace};
use crate::kinds::etcdcluster::actions::{Action, Precondition};
use crate::kinds::etcdcluster::observation::{
    ConfigEntry, GrowthHindrance, OperationKind, Ordinal, Phase, Pod, PodPhase, Purpose, Target, Template,
    Version, Volume,
};

/// What pods ought to be made from, as far as the rules of versions allow.
pub fn target(cluster: &ClusterState) -> Option<Template> {
    step(cluster).version().map(|version| Template { version, ..cluster.desired.template })
}

/// Brings the next pod to what is asked for.
pub fn roll(cluster: &ClusterState) -> Option<Decision> {
    match step(cluster) {
        Step::Refused(_) => None,
        // The upgrade comes before anything else that is asked for.
        Step::Unclear => Some(Decision::wait(cluster)),
        Step::Prepare(preparation) => prepare(cluster, preparation),
        Step::Go(version) => roll_to(cluster, Template { version, ..cluster.desired.template }),
    }
}

/// What has to come about before the first pod.
fn prepare(cluster: &ClusterState, preparation: Preparation) -> Option<Decision> {
    let version = cluster.desired.template.version;
    // A pod that does not come up may be what waits for these.
    let is_way_back = match preparation {
        Preparation::CancelDowngrade => true,
        Preparation::Snapshots => is_turned_round(cluster, version),
        Preparation::Backup | Preparation::Downgrade(_) | Preparation::Voters => false,
    };
    if !is_way_back && !preconditions::hold(cluster) {
        return None;
    }
    let cluster_id = cluster.cluster_id()?;
    let action = match preparation {
        Preparation::Backup => {
            cluster.seen.backup.is_absent().then_some(Action::StartBackup { cluster_id, version })
        }
        // Growing is not held up by what waits for it.
        Preparation::Voters => return None,
        Preparation::CancelDowngrade => Some(Action::DowngradeCancel { cluster_id }),
        Preparation::Snapshots => Some(Action::AppendEntries { cluster_id }),
        Preparation::Downgrade(target) => {
            let enabled = cluster
                .seen
                .answers()
                .any(|(_, status)| status.downgrade_target.is_known_and(|to| *to == target));
            let is_agreed = cluster.seen.cluster_version.is_known_and(|agreed| *agreed == target);
            let enable = Action::DowngradeEnable { membership: cluster.guard()?, target };
            (!enabled && !is_agreed).then_some(enable)
        }
    };
    let operation = (OperationKind::Upgrade, Target::Version(version), Phase::Preparing);
    Some(Decision::operate(cluster, operation, action))
}

fn roll_to(cluster: &ClusterState, target: Template) -> Option<Decision> {
    let kind = kind(cluster, target);
    let operation = |phase| (kind.0, kind.1, phase);
    if lacks_room(cluster).is_some() {
        return None;
    }
    let set = cluster.stateful_set()?;
    if set.template != target {
        if cluster.seen.refusals.template == Some(target) {
            return None;
        }
        let apply = cluster.apply_stateful_set(set.replicas, target);
        return may_move(cluster, target)
            .then(|| Decision::operate(cluster, operation(Phase::Preparing), apply));
    }
    let outdated = outdated(cluster, target);
    if let Some((ordinal, pod)) =
        outdated.iter().rev().find(|(ordinal, pod)| is_stuck(cluster, *ordinal, pod))
    {
        // It serves no client: what the others have is compared before the first one of them.
        let phase = if has_begun(cluster) { Phase::Rolling } else { Phase::Preparing };
        return remake(cluster, *ordinal, pod, target, operation(phase));
    }
    if outdated.is_empty() {
        // The next minor, and everything else, waits until the members have agreed on this one.
        let agreed = cluster.seen.cluster_version.is_known_and(|agreed| *agreed >= target.version.minor);
        return (kind.0 == OperationKind::Upgrade && !agreed)
            .then(|| Decision::operate(cluster, operation(Phase::Rolling), None));
    }
    if !preconditions::hold(cluster) {
        return None;
    }
    if uncompared(cluster).is_some() {
        return Some(Decision::operate(cluster, operation(Phase::Preparing), None));
    }
    if let Some(raise) = housekeeping::raise_budget(cluster, cluster.voter_count()) {
        return Some(Decision::operate(cluster, operation(Phase::Preparing), [raise]));
    }
    let leader = cluster.leader();
    let follower = outdated.iter().rev().find(|(ordinal, _)| Some(*ordinal) != leader);
    if let Some((ordinal, pod)) = follower {
        return remake(cluster, *ordinal, pod, target, operation(Phase::Rolling));
    }
    let (ordinal, pod) = outdated.first()?;
    replace::hand_over(cluster, kind.0, kind.1, *ordinal)
        .or_else(|| remake(cluster, *ordinal, pod, target, operation(Phase::RollingLeader)))
}

/// The template that the API server has refused, after everything else: it holds nothing else up that way.
pub fn apply_again(cluster: &ClusterState) -> Option<Action> {
    let target = target(cluster).filter(|target| cluster.seen.refusals.template == Some(*target))?;
    let set = cluster.stateful_set().filter(|set| set.template != target)?;
    let recovery = cluster.seen.record.recovery.as_ref();
    let is_made = cluster.membership().is_some() || cluster.cluster_id().is_none();
    let may_move = is_made
        && cluster.desired.is_valid
        && !hold::is_asked_to_stop(cluster)
        && !hold::is_name_taken(cluster.seen)
        && !hold::is_mismatched(cluster.seen)
        && !recovery.is_some_and(|recovery| recovery.phase.is_active())
        && lacks_room(cluster).is_none()
        && may_move(cluster, target);
    may_move.then(|| cluster.apply_stateful_set(set.replicas, target)).flatten()
}

/// The first member whose volume is smaller than the quota that it would be restarted with: its database would fill the
/// volume before the quota stops it, and etcd would end. Not where a pod does not come to serve as it is, which another
/// template may repair, nor where the file system grows by the restart itself.
pub fn lacks_room(cluster: &ClusterState) -> Option<BlockedReason> {
    let (quota, target) = (cluster.desired.quota?, target(cluster)?);
    let outdated = outdated(cluster, target);
    let comes = cluster.stateful_set().is_some_and(|set| set.template != target);
    let is_repair = outdated.iter().any(|(ordinal, pod)| is_stuck(cluster, *ordinal, pod));
    if is_repair || !comes && outdated.is_empty() {
        return None;
    }
    let is_small = |volume: &Volume| {
        let grows = volume.hindrance == Some(GrowthHindrance::FileSystem) && volume.size >= quota;
        volume.capacity.is_some_and(|capacity| capacity < quota) && !grows
    };
    let mut raised = cluster.seen.answers().filter(|(_, status)| status.quota < quota);
    let small = raised.find(|(ordinal, _)| cluster.seen.volume(*ordinal).is_known_and(|one| is_small(one)));
    small.map(|(ordinal, _)| BlockedReason::SmallerThanQuota(ordinal))
}

/// Whether the members' data have to be compared before the first pod is restarted. A member that starts compares its own
/// with the others', and does not start where they differ: by then one fewer is left that serves.
pub fn uncompared(cluster: &ClusterState) -> Option<BlockedReason> {
    let target = target(cluster)?;
    let is_due = !has_begun(cluster)
        && !cluster.seen.comparison_age.is_fresh()
        && cluster.voter_count() > 1
        && cluster.stateful_set().is_some_and(|set| set.template == target)
        && is_outdated(cluster, target)
        && preconditions::hold(cluster);
    is_due.then_some(BlockedReason::Uncompared)
}

/// Whether members that serve have been restarted, or are about to be.
fn has_begun(cluster: &ClusterState) -> bool {
    cluster.seen.record.operation.is_some_and(|operation| {
        let rolls = matches!(operation.kind, OperationKind::Upgrade | OperationKind::Restart);
        rolls && operation.phase != Phase::Preparing
    })
}

/// Whether this is about the version or about the rest of the template.
fn kind(cluster: &ClusterState, target: Template) -> (OperationKind, Target) {
    let others = cluster.seen.pods.elements().any(|(_, pod)| pod.template.version != target.version);
    let moves = cluster.stateful_set().is_some_and(|set| set.template.version != target.version);
    let agreed = cluster.seen.cluster_version.is_known_and(|agreed| *agreed < target.version.minor);
    if others || moves || agreed {
        (OperationKind::Upgrade, Target::Version(target.version))
    } else {
        (OperationKind::Restart, Target::Template)
    }
}

/// Whether pods may be made of another template from now on. Up only from a healthy cluster, or from a version that no
/// member has come up with; back, and to another template of the same version, always.
fn may_move(cluster: &ClusterState, target: Template) -> bool {
    let Some(set) = cluster.stateful_set().filter(|_| !cluster.seen.pods.is_unknown()) else { return false };
    let goes_up = target.version > set.template.version;
    let mut pods = cluster.seen.pods.elements();
    let runs = pods
        .any(|(ordinal, pod)| pod.template.version == set.template.version && cluster.is_healthy(ordinal));
    !goes_up || !runs || is_turned_round(cluster, target.version) || preconditions::hold(cluster)
}

/// Whether members still run the version that is asked for: it is the earlier one.
fn is_turned_round(cluster: &ClusterState, version: Version) -> bool {
    let mut pods = cluster.seen.pods.elements();
    pods.any(|(ordinal, pod)| pod.template.version == version && cluster.is_healthy(ordinal))
}

/// Whether a member's pod was made from something else.
pub fn is_outdated(cluster: &ClusterState, target: Template) -> bool {
    !outdated(cluster, target).is_empty()
}

/// The members' pods that were made from something else, by ordinal.
fn outdated<'a>(cluster: &ClusterState<'a>, target: Template) -> Vec<(Ordinal, &'a Pod)> {
    let members = cluster.membership().into_iter().flat_map(|membership| &membership.members);
    let pods = members.filter_map(|member| Some((member.ordinal?, cluster.pod(member.ordinal?)?)));
    let mut outdated: Vec<_> = pods.filter(|(_, pod)| pod.template != target && !pod.is_deleting).collect();
    outdated.sort_unstable_by_key(|(ordinal, _)| *ordinal);
    outdated
}

/// Whether a pod does not come to serve as it is: recreating it takes no serving member down.
fn is_stuck(cluster: &ClusterState, ordinal: Ordinal, pod: &Pod) -> bool {
    let fails = match pod.phase {
        PodPhase::Pending(cause) => cause.is_some(),
        PodPhase::Failing(_) | PodPhase::Terminal(_) => true,
        PodPhase::Waiting | PodPhase::Starting | PodPhase::Up => false,
    };
    !cluster.is_healthy(ordinal) && (fails || pod.startup_age.is_past())
}

/// Whether a pod of what is asked for does not come up.
pub fn is_stalled(cluster: &ClusterState) -> bool {
    let Some(set) = cluster.stateful_set() else { return false };
    let is_upgrade =
        cluster.seen.record.operation.is_some_and(|operation| operation.kind == OperationKind::Upgrade);
    let mut pods = cluster.seen.pods.elements();
    is_upgrade
        && pods.any(|(ordinal, pod)| {
            pod.template == set.template
                && is_stuck(cluster, ordinal, pod)
                && cluster.member(ordinal).is_some()
        })
}

/// That the others are a majority without the voter in a pod, which may vote whether or not it answers here. Of one or
/// two there is none to spare.
fn others_serve(cluster: &ClusterState, ordinal: Ordinal, pod: &Pod) -> Option<Precondition> {
    let may_vote = cluster.is_healthy(ordinal) || matches!(pod.phase, PodPhase::Starting | PodPhase::Up);
    let member = cluster.member(ordinal).filter(|member| !member.is_learner && may_vote)?;
    let membership = cluster.guard().filter(|_| cluster.voter_count() > quorum(cluster.voter_count()))?;
    Some(Precondition::OthersServe { membership, member: member.id })
}

/// Recreates a pod, its entry first.
fn remake(
    cluster: &ClusterState,
    ordinal: Ordinal,
    pod: &Pod,
    target: Template,
    operation: (OperationKind, Target, Phase),
) -> Option<Decision> {
    let entry = cluster.seen.entry(ordinal).found()?;
    if entry.purpose != Purpose::Run || !cluster.can_lose_pod(cluster.member(ordinal)?) {
        return None;
    }
    let precondition = others_serve(cluster, ordinal, pod);
    if let Some(Precondition::OthersServe { member, .. }) = precondition
        && cluster.healthy_voters_but(Some(member)) < quorum(cluster.voter_count())
    {
        return None;
    }
    let delete = cluster.delete_pod(ordinal, pod, precondition)?;
    let action = if entry.template == target {
        delete
    } else {
        cluster.write_entry(ordinal, ConfigEntry { template: target, ..entry.clone() })?
    };
    Some(Decision::operate(cluster, operation, [action]))
}
