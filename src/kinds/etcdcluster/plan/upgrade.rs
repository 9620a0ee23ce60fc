//! Another version or template: the pods are made anew, one at a time. Pure.
//!
//! Guarantees: the unready first, then followers by ordinal from the highest, the leader last and after a hand-over;
//! the gate before each that is ready; a pod's entry is made for its new template before it is deleted. A pod that does
//! not come up keeps the gate closed, and so is the only one that is affected; the old template heals it. Data in memory
//! end with their pod: it is made anew only where the other voters are a majority of all.

mod heal;
mod step;

pub use heal::heal;
pub use step::{Preparation, Refusal, Step, step};

use super::decision::Decision;
use super::view::{View, quorum};
use super::{gate, housekeeping, replace};
use crate::kinds::etcdcluster::effect::{Effect, OnlyIf};
use crate::kinds::etcdcluster::observation::{
    ConfigEntry, OperationKind, Ordinal, Phase, Pod, PodPhase, Purpose, Target, Template, Version,
};

/// What pods ought to be made from, as far as the rules of versions allow.
pub fn target(view: &View) -> Option<Template> {
    step(view).version().map(|version| Template { version, ..view.desired.template })
}

/// Brings the next pod to what is asked for.
pub fn roll(view: &View) -> Option<Decision> {
    match step(view) {
        Step::Refused(_) => None,
        // The upgrade comes before anything else that is asked for.
        Step::Unclear => Some(Decision::wait(view)),
        Step::Prepare(preparation) => prepare(view, preparation),
        Step::Go(version) => roll_to(view, Template { version, ..view.desired.template }),
    }
}

/// What has to come about before the first pod.
fn prepare(view: &View, preparation: Preparation) -> Option<Decision> {
    let version = view.desired.template.version;
    // A pod that does not come up may be what waits for these.
    let is_way_back = match preparation {
        Preparation::CancelDowngrade => true,
        Preparation::Snapshots => is_turned_round(view, version),
        Preparation::Backup | Preparation::Downgrade(_) | Preparation::Voters => false,
    };
    if !is_way_back && !gate::is_open(view) {
        return None;
    }
    let cluster_id = view.cluster_id()?;
    let effect = match preparation {
        Preparation::Backup => {
            view.seen.backup.is_absent().then_some(Effect::StartBackup { cluster_id, version })
        }
        // Growing is not held up by what waits for it.
        Preparation::Voters => return None,
        Preparation::CancelDowngrade => Some(Effect::DowngradeCancel { cluster_id }),
        Preparation::Snapshots => Some(Effect::AppendEntries { cluster_id }),
        Preparation::Downgrade(target) => {
            let enabled = view
                .seen
                .answers()
                .any(|(_, status)| status.downgrade_target.is_known_and(|to| *to == target));
            let is_agreed = view.seen.cluster_version.is_known_and(|agreed| *agreed == target);
            let enable = Effect::DowngradeEnable { membership: view.guard()?, target };
            (!enabled && !is_agreed).then_some(enable)
        }
    };
    let operation = (OperationKind::Upgrade, Target::Version(version), Phase::Preparing);
    Some(Decision::operate(view, operation, effect))
}

fn roll_to(view: &View, target: Template) -> Option<Decision> {
    let kind = kind(view, target);
    let operation = |phase| (kind.0, kind.1, phase);
    let set = view.stateful_set()?;
    if set.template != target {
        let apply = view.apply_stateful_set(set.replicas, target);
        return may_move(view, target).then(|| Decision::operate(view, operation(Phase::Preparing), apply));
    }
    let outdated = outdated(view, target);
    if let Some((ordinal, pod)) = outdated.iter().rev().find(|(ordinal, pod)| is_stuck(view, *ordinal, pod)) {
        return remake(view, *ordinal, pod, target, operation(Phase::Rolling));
    }
    if outdated.is_empty() {
        // The next minor, and everything else, waits until the members have agreed on this one.
        let agreed = view.seen.cluster_version.is_known_and(|agreed| *agreed >= target.version.minor);
        return (kind.0 == OperationKind::Upgrade && !agreed)
            .then(|| Decision::operate(view, operation(Phase::Rolling), None));
    }
    if !gate::is_open(view) {
        return None;
    }
    if let Some(raise) = housekeeping::raise_budget(view, view.voter_count()) {
        return Some(Decision::operate(view, operation(Phase::Preparing), [raise]));
    }
    let leader = view.leader();
    let follower = outdated.iter().rev().find(|(ordinal, _)| Some(*ordinal) != leader);
    if let Some((ordinal, pod)) = follower {
        return remake(view, *ordinal, pod, target, operation(Phase::Rolling));
    }
    let (ordinal, pod) = outdated.first()?;
    replace::hand_over(view, kind.0, kind.1, *ordinal)
        .or_else(|| remake(view, *ordinal, pod, target, operation(Phase::RollingLeader)))
}

/// Whether this is about the version or about the rest of the template.
fn kind(view: &View, target: Template) -> (OperationKind, Target) {
    let others = view.seen.pods.elements().any(|(_, pod)| pod.template.version != target.version);
    let moves = view.stateful_set().is_some_and(|set| set.template.version != target.version);
    let agreed = view.seen.cluster_version.is_known_and(|agreed| *agreed < target.version.minor);
    if others || moves || agreed {
        (OperationKind::Upgrade, Target::Version(target.version))
    } else {
        (OperationKind::Restart, Target::Template)
    }
}

/// Whether pods may be made of another template from now on. Up only from a healthy cluster, or from a version that no
/// member has come up with; back, and to another template of the same version, always.
fn may_move(view: &View, target: Template) -> bool {
    let Some(set) = view.stateful_set().filter(|_| !view.seen.pods.is_unknown()) else { return false };
    let goes_up = target.version > set.template.version;
    let mut pods = view.seen.pods.elements();
    let runs =
        pods.any(|(ordinal, pod)| pod.template.version == set.template.version && view.is_healthy(ordinal));
    !goes_up || !runs || is_turned_round(view, target.version) || gate::is_open(view)
}

/// Whether members still run the version that is asked for: it is the one of before.
fn is_turned_round(view: &View, version: Version) -> bool {
    let mut pods = view.seen.pods.elements();
    pods.any(|(ordinal, pod)| pod.template.version == version && view.is_healthy(ordinal))
}

/// The members' pods that were made from something else, by ordinal.
fn outdated<'a>(view: &View<'a>, target: Template) -> Vec<(Ordinal, &'a Pod)> {
    let members = view.membership().into_iter().flat_map(|membership| &membership.members);
    let pods = members.filter_map(|member| Some((member.ordinal?, view.pod(member.ordinal?)?)));
    let mut outdated: Vec<_> = pods.filter(|(_, pod)| pod.template != target && !pod.is_deleting).collect();
    outdated.sort_unstable_by_key(|(ordinal, _)| *ordinal);
    outdated
}

/// Whether a pod does not come to serve as it is: to make it anew takes nobody down.
fn is_stuck(view: &View, ordinal: Ordinal, pod: &Pod) -> bool {
    let fails = match pod.phase {
        PodPhase::Pending(cause) => cause.is_some(),
        PodPhase::Failing(_) | PodPhase::Terminal(_) => true,
        PodPhase::Waiting | PodPhase::Starting | PodPhase::Up => false,
    };
    !view.is_healthy(ordinal) && (fails || pod.startup_age.is_past())
}

/// Whether a pod of what is asked for does not come up.
pub fn is_stalled(view: &View) -> bool {
    let Some(set) = view.stateful_set() else { return false };
    let is_upgrade =
        view.seen.record.operation.is_some_and(|operation| operation.kind == OperationKind::Upgrade);
    let mut pods = view.seen.pods.elements();
    is_upgrade
        && pods.any(|(ordinal, pod)| {
            pod.template == set.template && is_stuck(view, ordinal, pod) && view.member(ordinal).is_some()
        })
}

/// That the others are a majority without the voter that serves in a pod. Of one or two there is none to spare.
fn others_serve(view: &View, ordinal: Ordinal) -> Option<OnlyIf> {
    let member = view.member(ordinal).filter(|member| !member.is_learner && view.is_healthy(ordinal))?;
    let membership = view.guard().filter(|_| view.voter_count() > quorum(view.voter_count()))?;
    Some(OnlyIf::OthersServe { membership, member: member.id })
}

/// Makes a pod anew, its entry first.
fn remake(
    view: &View,
    ordinal: Ordinal,
    pod: &Pod,
    target: Template,
    operation: (OperationKind, Target, Phase),
) -> Option<Decision> {
    let entry = view.seen.entry(ordinal).found()?;
    if entry.purpose != Purpose::Run || !view.can_lose_pod(view.member(ordinal)?) {
        return None;
    }
    let effect = if entry.template == target {
        Effect::DeletePod { pod: pod.handle.clone(), ordinal, only_if: others_serve(view, ordinal) }
    } else {
        view.write_entry(ordinal, ConfigEntry { template: target, ..entry.clone() })?
    };
    Some(Decision::operate(view, operation, [effect]))
}
