//! What is done when nothing more urgent is: labels, the PodDisruptionBudget, volumes that grow, files that shrink.
//! Pure.

use super::cluster_state::{ClusterState, quorum};
use super::decision::Decision;
use super::preconditions;
use crate::kinds::etcdcluster::actions::Action;
use crate::kinds::etcdcluster::observation::{
    Fact, Found, MemberStatus, Observation, Ordinal, Owner, Role, RootPassword, Volume,
};

/// Labels pods with what their members are: Service and PodDisruptionBudget select voters. A pod comes up as a voter
/// does; what is none loses that label before it is added, and so does a voter that is cut off. Not during a recovery,
/// and not where it answers as another member: a person has to look. Where the API server has refused one, they are tried
/// [after everything else](refused).
pub fn label(cluster: &ClusterState) -> Option<Decision> {
    let labels = labels(cluster).map(|(_, label)| label);
    Decision::act(cluster, labels.filter(|_| cluster.seen.refusals.label.is_none()))
}

/// The labels that pods lack, by ordinal.
fn labels(cluster: &ClusterState) -> impl Iterator<Item = (Ordinal, Action)> {
    let recovery = cluster.seen.record.recovery.as_ref();
    let is_ours = |status: &MemberStatus| Some(status.cluster_id) == cluster.cluster_id();
    let has_strangers = cluster.seen.answers().any(|(_, status)| !is_ours(status));
    let is_active = recovery.is_some_and(|recovery| recovery.phase.is_active());
    let may_label = cluster.membership().is_some() && !has_strangers && !is_active;
    let admits = cluster.admits_clients();
    let pods = cluster.seen.pods.elements().filter(move |_| may_label);
    let pods = pods.filter(|(_, pod)| pod.owner == Owner::Ours && !pod.is_deleting);
    pods.filter_map(move |(ordinal, pod)| {
        let role = match cluster.member(ordinal) {
            Some(member) if member.is_learner => Some(Role::Learner),
            Some(_) if is_cut_off(cluster, ordinal) => None,
            Some(_) => Some(Role::Voter),
            None => None,
        };
        let is_missing = pod.role != role && (admits || role != Some(Role::Voter));
        is_missing.then(|| (ordinal, Action::LabelPod { pod: pod.handle.clone(), ordinal, role }))
    })
}

/// Whether a voter has followed no leader for a while, beside others that do: of what clients ask it for, it can answer
/// little.
fn is_cut_off(cluster: &ClusterState, ordinal: Ordinal) -> bool {
    let has_no_leader = cluster.status(ordinal).is_some_and(|status| status.leader.is_none());
    has_no_leader && cluster.seen.health_age.is_past()
}

/// Has backups taken as the spec says, whatever members wait for: when they are taken, and where they go, is no
/// change of a member. What takes them and belongs to another owner is left alone, and holds nothing up.
pub fn schedule_backups(cluster: &ClusterState) -> Option<Action> {
    let is_outdated = cluster.seen.backup_schedule.is_known_and(|found| *found == Found::Outdated);
    // They are suspended all the same where they may not be taken as good.
    let may_follow = cluster.desired.is_valid || cluster.seen.suspects_data();
    (is_outdated && may_follow && !cluster.desired.rests()).then_some(Action::ApplyBackupSchedule)
}

/// Enables authentication before clients are let in: no pod is labelled a voter until then. Root has the password
/// that it is to have by then, and gets another one whenever that is another one. Where clients are in already, for
/// a person has turned it off or it was not asked for, a password that cannot be read is not waited for.
pub fn authenticate(cluster: &ClusterState) -> Option<Decision> {
    let cluster_id = cluster.membership()?.cluster_id;
    cluster.leader()?;
    let is_on = *cluster.seen.auth.known().filter(|_| cluster.desired.authenticates)?;
    let action = match (is_on, &cluster.seen.root_password) {
        (false, Fact::Absent) => Action::AuthEnable { cluster_id, secret: None },
        (false, Fact::Known(RootPassword::Unreadable(_))) if serves_clients(cluster) => {
            Action::AuthEnable { cluster_id, secret: None }
        }
        (false, Fact::Known(RootPassword::Outdated { secret })) => {
            Action::AuthEnable { cluster_id, secret: Some(secret.clone()) }
        }
        (true, Fact::Known(RootPassword::Outdated { secret })) => {
            Action::SetRootPassword { cluster_id, secret: secret.clone() }
        }
        _ => return None,
    };
    Decision::act(cluster, [action])
}

/// Whether the Service leads to any member.
fn serves_clients(cluster: &ClusterState) -> bool {
    let mut pods = cluster.seen.pods.elements();
    pods.any(|(_, pod)| pod.owner == Owner::Ours && pod.role == Some(Role::Voter))
}

/// Whether authentication is enabled where it has to be, and root has the wanted password.
pub fn auth_converged(cluster: &ClusterState) -> bool {
    let has_password = match &cluster.seen.root_password {
        Fact::Absent | Fact::Known(RootPassword::Current) => true,
        Fact::Known(_) | Fact::Unknown => false,
    };
    !cluster.desired.authenticates || (cluster.seen.auth.is_known_and(|is_on| *is_on) && has_password)
}

/// Voters that evictions have to leave of so many. One or two would block every drain for ever: there a drain is let
/// through, at the price of a short outage.
#[must_use]
pub fn min_available(voters: usize) -> u32 {
    let least = match voters {
        0 | 1 => 0,
        2 => 1,
        _ => quorum(voters),
    };
    u32::try_from(least).unwrap_or(u32::MAX)
}

/// Makes the PodDisruptionBudget strict enough for now and for after a change; nothing where it is.
pub fn raise_budget(cluster: &ClusterState, after: usize) -> Option<Action> {
    let least = min_available(cluster.voter_count()).max(min_available(after));
    match &cluster.seen.budget {
        Fact::Known(budget) if budget.min_available >= least => None,
        Fact::Known(budget) => {
            Some(Action::ApplyBudget { found: Some(budget.handle.clone()), min_available: least })
        }
        Fact::Absent => Some(Action::ApplyBudget { found: None, min_available: least }),
        Fact::Unknown => None,
    }
}

/// The rest, behind the gate.
pub fn maintain(cluster: &ClusterState) -> Option<Decision> {
    if !preconditions::hold(cluster) {
        return None;
    }
    let budget = budget(cluster).filter(|_| !cluster.seen.refusals.budget);
    Decision::act(cluster, budget).or_else(|| shrink_file(cluster))
}

/// What the API server has refused, and nothing waits for: it is tried again after everything else, which it does not hold
/// up that way. In one order, at most one of each kind.
pub fn refused(cluster: &ClusterState) -> impl Iterator<Item = Action> {
    let refusals = cluster.seen.refusals;
    // The pod that was refused last comes last, so that it keeps no label from another.
    let label = refusals.label.and_then(|refused| {
        let next = labels(cluster).min_by_key(|(ordinal, _)| (*ordinal <= refused, *ordinal));
        next.map(|(_, label)| label)
    });
    let services = apply_services(cluster).filter(|_| refusals.services);
    let budget = budget(cluster).filter(|_| refusals.budget && preconditions::hold(cluster));
    let volume = grow_volume(cluster).filter(|_| refusals.volume.is_some());
    label.into_iter().chain(services).chain(budget).chain(volume)
}

/// The PodDisruptionBudget as the voters of now have it.
fn budget(cluster: &ClusterState) -> Option<Action> {
    let wanted = min_available(cluster.voter_count());
    let found = match &cluster.seen.budget {
        Fact::Known(budget) if budget.min_available == wanted && budget.is_current => return None,
        Fact::Known(budget) => Some(budget.handle.clone()),
        Fact::Absent => None,
        Fact::Unknown => return None,
    };
    Some(Action::ApplyBudget { found, min_available: wanted })
}

/// The PodDisruptionBudget that another client has changed, with at least its present `minAvailable`. The restore needs
/// neither a quorum nor the gate, because the budget limits evictions also while a member is down.
pub fn restore_budget(cluster: &ClusterState) -> Option<Action> {
    let budget = cluster.seen.budget.known();
    let budget = budget.filter(|budget| budget.owner == Owner::Ours && !budget.is_current)?;
    let voters = cluster.membership().map_or(cluster.seen.remembered.len(), |_| cluster.voter_count());
    let min_available = budget.min_available.max(min_available(voters));
    Some(Action::ApplyBudget { found: Some(budget.handle.clone()), min_available })
}

/// The Services, where they are not as the spec has them.
pub fn apply_services(cluster: &ClusterState) -> Option<Action> {
    cluster.seen.services.is_known_and(|found| *found == Found::Outdated).then_some(Action::ApplyServices)
}

/// Lets the volume of a member grow whose class allows it. That takes nothing from any member, and a full volume is
/// what members may be down for: neither a quorum nor the gate is asked for.
pub fn grow_volume(cluster: &ClusterState) -> Option<Action> {
    if cluster.desired.is_in_memory || !cluster.desired.is_valid {
        return None;
    }
    let size = cluster.desired.volume_size;
    let is_members = |ordinal, volume: &Volume| {
        let is_told = cluster
            .seen
            .entry(ordinal)
            .is_known_and(|entry| !entry.purpose.is_stopped() && entry.volume == volume.handle.uid);
        is_told || cluster.member(ordinal).is_some()
    };
    let small = cluster.seen.volumes.elements().filter(|(ordinal, volume)| {
        is_members(*ordinal, volume)
            && volume.owner == Owner::Ours
            && volume.size < size
            && !volume.is_deleting
            && volume.is_expandable.is_known_and(|expandable| *expandable)
    });
    // The one that was refused last comes last: it may be refused for ever.
    let refused = cluster.seen.refusals.volume;
    let (ordinal, volume) = small.min_by_key(|(ordinal, _)| (Some(*ordinal) <= refused, *ordinal))?;
    Some(Action::ResizeVolume { volume: volume.handle.clone(), ordinal, size })
}

/// The members whose claims are smaller than `size` bytes, and of a StorageClass that lets no volume grow.
pub fn fixed_volumes(size: u64, seen: &Observation) -> impl Iterator<Item = Ordinal> {
    let fixed = seen.volumes.elements().filter(move |(_, volume)| {
        volume.owner == Owner::Ours
            && volume.size < size
            && volume.is_expandable.is_known_and(|expandable| !*expandable)
    });
    fixed.map(|(ordinal, _)| ordinal)
}

/// The smallest database file, in bytes, that is defragmented without need: in a smaller one what etcd keeps free to
/// write into is a large share, and nothing is won.
const WORTH_DEFRAGMENTING: u64 = 100 << 20;

/// Lets a member give free space back, past the threshold of the spec.
fn shrink_file(cluster: &ClusterState) -> Option<Decision> {
    let percent = u128::from(cluster.desired.defragments_at?);
    let past = |(ordinal, status): (Ordinal, &MemberStatus)| {
        let due = reclaimable_percent(status) >= percent
            && status.db_size >= WORTH_DEFRAGMENTING
            && status.defragmented.is_past();
        (due && !status.is_learner).then_some(ordinal)
    };
    let due: Vec<_> = cluster.seen.answers().filter_map(past).collect();
    Decision::act(cluster, defragment(cluster, &due))
}

/// Share of a database file that is free, in percent.
#[must_use]
pub fn reclaimable_percent(status: &MemberStatus) -> u128 {
    let free = u128::from(status.db_size.saturating_sub(status.db_size_in_use));
    if status.db_size == 0 { 0 } else { free * 100 / u128::from(status.db_size) }
}

/// Defragments one of those members: the leader last, for it stops serving meanwhile.
pub fn defragment(cluster: &ClusterState, candidates: &[Ordinal]) -> Option<Action> {
    let leader = cluster.leader();
    let next = candidates.iter().find(|ordinal| Some(**ordinal) != leader).or_else(|| candidates.first())?;
    let member = cluster.member(*next).filter(|member| !member.is_learner)?;
    let cluster_id = cluster.cluster_id()?;
    Some(Action::Defragment { cluster_id, member: member.id, ordinal: *next })
}
