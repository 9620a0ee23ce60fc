//! An operator that does wrong what only some slices look at.

use gatehouse::kinds::etcdcluster::actions::Action as Effect;
use gatehouse::kinds::etcdcluster::observation::{
    Age, Backup, Desired, Fact, Found, MemberStatus, Observation, Owner, Refusals, RootPassword, Version,
};
use gatehouse::kinds::etcdcluster::plan::Plan;

use super::Fault;

/// What it takes the spec to ask for.
pub fn desired(fault: Fault, desired: &Desired) -> Desired {
    let has = |one| fault == one;
    Desired {
        authenticates: desired.authenticates && !has(Fault::LetsInUnasked),
        is_in_memory: desired.is_in_memory && !has(Fault::TakesMemoryForDisk),
        is_protected: desired.is_protected && !has(Fault::IgnoresProtection),
        allows_downgrade: desired.allows_downgrade || has(Fault::LowersUnallowed),
        ..desired.clone()
    }
}

/// What it takes what it read for.
pub fn look(fault: Fault, seen: &mut Observation) {
    match fault {
        Fault::TakesGrowingForGrown => volumes(seen, |volume| volume.capacity = None),
        Fault::WorksTakenClaims => volumes(seen, |volume| volume.owner = Owner::Ours),
        Fault::OverlooksPasswords
            if seen.auth.is_known_and(|is_on| *is_on) && seen.root_password.known().is_some() =>
        {
            seen.root_password = Fact::Known(RootPassword::Current);
        }
        Fault::WorksTakenNames => takes_for_ours(seen),
        Fault::TakesStrangersForOurs => {
            let Some(ours) = seen.record.cluster_id else { return };
            statuses(seen, |status| status.cluster_id = ours);
            if let Fact::Known(list) = &mut seen.membership {
                list.cluster_id = ours;
            }
        }
        Fault::OverlooksWhoIsCutOff => {
            let leader = seen.answers().find_map(|(_, status)| status.leader);
            statuses(seen, |status| status.leader = leader);
        }
        Fault::TriesTheRefusedFirst => (seen.refused, seen.refusals) = (None, Refusals::default()),
        Fault::SkipsTheBackup => seen.backup = Fact::Known(Backup::Recent),
        Fault::SkipsTheSnapshot => {
            statuses(seen, |status| status.has_saved_snapshot = Fact::Known(true));
        }
        Fault::OverlooksPatches => {
            statuses(seen, |status| status.version = Version { patch: 99, ..status.version });
        }
        Fault::DefragmentsAgain => statuses(seen, |status| status.defragmented = Age::PastDeadline),
        Fault::DefragmentsForLittle => statuses(seen, |status| {
            status.db_size *= 100;
            status.db_size_in_use *= 100;
        }),
        Fault::RestartsUncompared => seen.comparison_age = Age::Fresh,
        Fault::OverlooksSize => takes_for_sized(seen),
        _ => {}
    }
}

fn statuses(seen: &mut Observation, change: impl Fn(&mut MemberStatus)) {
    for status in seen.statuses.values_mut() {
        if let Fact::Known(status) = status {
            change(status);
        }
    }
}

fn volumes(seen: &mut Observation, change: impl Fn(&mut gatehouse::kinds::etcdcluster::observation::Volume)) {
    if let Fact::Known(volumes) = &mut seen.volumes {
        volumes.values_mut().for_each(change);
    }
}

fn takes_for_sized(seen: &mut Observation) {
    let told = seen.entries().map(|(ordinal, entry)| (ordinal, seen.sized(entry.clone()))).collect();
    if let Fact::Known(config) = &mut seen.config {
        config.entries = told;
    }
}

fn takes_for_ours(seen: &mut Observation) {
    if seen.services == Fact::Known(Found::Foreign) {
        seen.services = Fact::Known(Found::Outdated);
    }
    if let Fact::Known(set) = &mut seen.stateful_set {
        set.owner = Owner::Ours;
    }
    if let Fact::Known(config) = &mut seen.config {
        config.owner = Owner::Ours;
    }
    if let Fact::Known(budget) = &mut seen.budget {
        budget.owner = Owner::Ours;
    }
}

/// What it makes of the plan.
pub fn plan(fault: Fault, plan: &mut Plan) {
    plan.actions.retain(|effect| !is_overlooked(fault, effect));
    for effect in &mut plan.actions {
        if let (Fault::DropsAllHistory, Effect::Compact { revision, .. }) = (fault, effect) {
            *revision = 5000;
        }
    }
}

/// Whether it does not do what has to be done.
fn is_overlooked(fault: Fault, effect: &Effect) -> bool {
    match fault {
        Fault::NeverGrowsVolumes => matches!(effect, Effect::ResizeVolume { .. }),
        Fault::OverlooksLostServices => matches!(effect, Effect::ApplyServices),
        Fault::OverlooksLostBudgets => matches!(effect, Effect::ApplyBudget { found: None, .. }),
        Fault::OverlooksLostSets => matches!(effect, Effect::ApplyStatefulSet { found: None, .. }),
        _ => false,
    }
}
