//! What is done when nothing else is: labels, the PodDisruptionBudget, volumes that grow, files that shrink. Pure.

use super::decision::Decision;
use super::gate;
use super::view::{View, quorum};
use crate::kinds::etcdcluster::effect::Effect;
use crate::kinds::etcdcluster::observation::{Fact, Found, MemberStatus, Ordinal, Owner, Role, RootPassword};

/// Labels pods with what their members are: Service and PodDisruptionBudget select voters.
pub fn label(view: &View) -> Option<Decision> {
    view.membership()?;
    let admits = !view.desired.authenticates || view.seen.auth.is_known_and(|enabled| *enabled);
    let pods = view.seen.pods.elements().filter(|(_, pod)| pod.owner == Owner::Ours && !pod.is_deleting);
    let labels = pods.filter_map(|(ordinal, pod)| {
        let role =
            view.member(ordinal).map(|member| if member.is_learner { Role::Learner } else { Role::Voter });
        (pod.role != role && (admits || role != Some(Role::Voter))).then(|| Effect::LabelPod {
            pod: pod.handle.clone(),
            ordinal,
            role,
        })
    });
    Decision::act(view, labels)
}

/// Has backups taken as the spec says. What takes them and is somebody else's is left alone, and holds nothing up.
pub fn schedule_backups(view: &View) -> Option<Effect> {
    let is_outdated = view.seen.backup_schedule.is_known_and(|found| *found == Found::Outdated);
    is_outdated.then_some(Effect::ApplyBackupSchedule)
}

/// Lets etcd ask who is there, before clients are let in: no pod is labelled a voter until then. Root has the password
/// that it is to have by then, and gets another one whenever that is another one. Where clients are in already, for
/// somebody has turned it off or it was not asked for, a password that cannot be read is not waited for.
pub fn authenticate(view: &View) -> Option<Decision> {
    let cluster_id = view.membership()?.cluster_id;
    view.leader()?;
    let is_on = *view.seen.auth.known().filter(|_| view.desired.authenticates)?;
    let effect = match (is_on, &view.seen.root_password) {
        (false, Fact::Absent) => Effect::AuthEnable { cluster_id, secret: None },
        (false, Fact::Known(RootPassword::Unreadable(_))) if serves_clients(view) => {
            Effect::AuthEnable { cluster_id, secret: None }
        }
        (false, Fact::Known(RootPassword::Outdated { secret })) => {
            Effect::AuthEnable { cluster_id, secret: Some(secret.clone()) }
        }
        (true, Fact::Known(RootPassword::Outdated { secret })) => {
            Effect::SetRootPassword { cluster_id, secret: secret.clone() }
        }
        _ => return None,
    };
    Decision::act(view, [effect])
}

/// Whether the Service leads to any member.
fn serves_clients(view: &View) -> bool {
    let mut pods = view.seen.pods.elements();
    pods.any(|(_, pod)| pod.owner == Owner::Ours && pod.role == Some(Role::Voter))
}

/// Whether etcd asks who is there where it is to, and root has the password that it is to have.
pub fn is_guarded(view: &View) -> bool {
    let has_password = match &view.seen.root_password {
        Fact::Absent | Fact::Known(RootPassword::Current) => true,
        Fact::Known(_) | Fact::Unknown => false,
    };
    !view.desired.authenticates || (view.seen.auth.is_known_and(|is_on| *is_on) && has_password)
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
pub fn raise_budget(view: &View, after: usize) -> Option<Effect> {
    let least = min_available(view.voter_count()).max(min_available(after));
    match &view.seen.budget {
        Fact::Known(budget) if budget.min_available >= least => None,
        Fact::Known(budget) => {
            Some(Effect::ApplyBudget { found: Some(budget.handle.clone()), min_available: least })
        }
        Fact::Absent => Some(Effect::ApplyBudget { found: None, min_available: least }),
        Fact::Unknown => None,
    }
}

/// The rest, behind the gate.
pub fn keep(view: &View) -> Option<Decision> {
    if !gate::is_open(view) {
        return None;
    }
    budget(view).or_else(|| grow_volume(view)).or_else(|| shrink_file(view))
}

/// The PodDisruptionBudget as the voters of now have it.
fn budget(view: &View) -> Option<Decision> {
    let wanted = min_available(view.voter_count());
    let found = match &view.seen.budget {
        Fact::Known(budget) if budget.min_available == wanted => return None,
        Fact::Known(budget) => Some(budget.handle.clone()),
        Fact::Absent => None,
        Fact::Unknown => return None,
    };
    Decision::act(view, [Effect::ApplyBudget { found, min_available: wanted }])
}

/// Lets a volume grow whose class allows it.
fn grow_volume(view: &View) -> Option<Decision> {
    if view.desired.is_in_memory {
        return None;
    }
    let size = view.desired.volume_size;
    let mut small = view.seen.volumes.elements().filter(|(ordinal, volume)| {
        view.member(*ordinal).is_some()
            && volume.owner == Owner::Ours
            && volume.size < size
            && !volume.is_deleting
            && volume.is_expandable.is_known_and(|expandable| *expandable)
    });
    let (ordinal, volume) = small.next()?;
    Decision::act(view, [Effect::ResizeVolume { volume: volume.handle.clone(), ordinal, size }])
}

/// Lets a member give free space back, past the threshold of the spec.
fn shrink_file(view: &View) -> Option<Decision> {
    let percent = u128::from(view.desired.defragments_at?);
    let past = |(ordinal, status): (Ordinal, &MemberStatus)| {
        let due = reclaimable_percent(status) >= percent && status.defragmented.is_past();
        (due && !status.is_learner).then_some(ordinal)
    };
    let due: Vec<_> = view.seen.answers().filter_map(past).collect();
    Decision::act(view, defragment(view, &due))
}

/// Share of a database file that is free, in percent.
#[must_use]
pub fn reclaimable_percent(status: &MemberStatus) -> u128 {
    let free = u128::from(status.db_size.saturating_sub(status.db_size_in_use));
    if status.db_size == 0 { 0 } else { free * 100 / u128::from(status.db_size) }
}

/// Defragments one of those members: the leader last, for it stops serving meanwhile.
pub fn defragment(view: &View, candidates: &[Ordinal]) -> Option<Effect> {
    let leader = view.leader();
    let next = candidates.iter().find(|ordinal| Some(**ordinal) != leader).or_else(|| candidates.first())?;
    let member = view.member(*next).filter(|member| !member.is_learner)?;
    let cluster_id = view.cluster_id()?;
    Some(Effect::Defragment { cluster_id, member: member.id, ordinal: *next })
}
