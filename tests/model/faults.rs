//! Planted faults: an operator that does one thing wrong. Each has to be found, by the rule that names it.

use std::collections::BTreeMap;

use gatehouse::api::condition::State;
use gatehouse::api::etcdcluster::status::condition;
use gatehouse::controllers::etcdcluster::effect::Effect;
use gatehouse::controllers::etcdcluster::observation::{
    ConfigEntry, Desired, Fact, MemberId, Membership, Observation, OperationKind, Ordinal, PodPhase, Purpose,
    RecoveryPhase,
};
use gatehouse::controllers::etcdcluster::plan::Plan;

use crate::world::World;

/// What is wrong with the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// It adds members as voters.
    AddsVoters,
    /// It takes volumes that could not be read for gone.
    TakesUnknownVolumesForNone,
    /// It changes members by any member's word, without a majority's.
    TrustsAnyList,
    /// It changes another list than it decided on.
    IgnoresGuards,
    /// It deletes pods without asking once more whether the others serve.
    LooksOnce,
    /// It forgets the cluster.
    ForgetsTheCluster,
    /// It deletes the volume of a member that it is to remove.
    DeletesVolumesFirst,
    /// It takes the next pod down before the last one is back.
    RollsWithoutGate,
    /// It removes the leader without handing over.
    RemovesTheLeader,
    /// It does not wait for the others to stop before it forces a cluster.
    ForcesWithoutFence,
    /// It works what is paused.
    IgnoresPause,
    /// It makes the StatefulSet smaller instead of removing a member.
    ShrinksTheSetFirst,
    /// It leaves what removed members left.
    LeavesLeftovers,
    /// It does not see members that were added and have not started.
    OverlooksTheUnstarted,
    /// It forgets what it was about to do.
    KeepsNoRecord,
    /// It has the next pod make a cluster of the data once more.
    ForcesAgain,
    /// It forgets that it recovers.
    ForgetsTheRecovery,
    /// It calls a cluster available whose members it could not ask.
    CallsUnknownAvailable,
}

/// The operator's hand, with at most one fault.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hand {
    pub fault: Option<Fault>,
}

impl Hand {
    pub const fn sound() -> Self {
        Self { fault: None }
    }

    pub const fn with(fault: Fault) -> Self {
        Self { fault: Some(fault) }
    }

    fn has(self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    /// What it takes the spec to ask for.
    pub fn desired(self, desired: &Desired) -> Desired {
        let is_paused = desired.is_paused && !self.has(Fault::IgnoresPause);
        Desired { is_paused, ..desired.clone() }
    }

    /// What it takes what it read for.
    pub fn look(self, seen: &mut Observation) {
        match self.fault {
            Some(Fault::TakesUnknownVolumesForNone) if seen.volumes.is_unknown() => {
                seen.volumes = Fact::Known(BTreeMap::new());
            }
            Some(Fault::TrustsAnyList) if seen.membership.is_unknown() => {
                seen.membership = seen.last_membership.clone();
            }
            Some(Fault::ForgetsTheCluster) => seen.record.cluster_id = None,
            Some(Fault::ForgetsTheRecovery) => seen.record.recovery = None,
            Some(Fault::ForcesWithoutFence) => {
                let Some(survivor) = seen.record.recovery.as_ref().and_then(|one| one.survivor) else {
                    return;
                };
                if let Fact::Known(pods) = &mut seen.pods {
                    pods.retain(|ordinal, _| *ordinal == survivor);
                }
                seen.statuses.retain(|ordinal, _| *ordinal == survivor);
            }
            Some(Fault::OverlooksTheUnstarted) => {
                if let Fact::Known(list) = &mut seen.membership {
                    list.members.retain(|member| member.is_started);
                }
            }
            _ => {}
        }
    }

    /// What it makes of the plan.
    pub fn plan(self, world: &World, seen: &Observation, plan: &mut Plan) {
        let Some(fault) = self.fault else { return };
        match fault {
            Fault::ForcesAgain => plan.effects.extend(forces_again(seen)),
            Fault::ForgetsTheCluster | Fault::ForgetsTheRecovery => {
                for effect in &mut plan.effects {
                    if let Effect::WriteRecord { before, .. } = effect {
                        *before = world.objects.record.clone();
                    }
                }
            }
            Fault::KeepsNoRecord => plan.effects.retain(|one| !matches!(one, Effect::WriteRecord { .. })),
            Fault::LeavesLeftovers => plan.effects.retain(|one| !matches!(one, Effect::DeleteVolume { .. })),
            Fault::RollsWithoutGate => {
                let rolls = plan.record.operation.is_some_and(|operation| {
                    matches!(operation.kind, OperationKind::Upgrade | OperationKind::Restart)
                });
                let next = seen.pods.elements().find(|(_, pod)| {
                    !pod.is_deleting && pod.phase == PodPhase::Up && pod.template != world.desired.template
                });
                if let Some((ordinal, pod)) = next.filter(|_| rolls && plan.effects.is_empty()) {
                    plan.effects.push(Effect::DeletePod { pod: pod.handle.clone(), ordinal, only_if: None });
                }
            }
            Fault::CallsUnknownAvailable => {
                for finding in &mut plan.summary.findings {
                    if finding.about == condition::AVAILABLE {
                        finding.state = State::True;
                    }
                }
            }
            Fault::DeletesVolumesFirst | Fault::RemovesTheLeader | Fault::ShrinksTheSetFirst => {
                for effect in &mut plan.effects {
                    if let Some(other) = self.instead(seen, effect) {
                        *effect = other;
                    }
                }
            }
            _ => {}
        }
    }

    fn instead(self, seen: &Observation, effect: &Effect) -> Option<Effect> {
        match effect {
            Effect::MemberRemove { membership, ordinal, .. } if self.has(Fault::DeletesVolumesFirst) => {
                Some(Effect::DeleteVolume {
                    volume: seen.volume(*ordinal).found()?.handle.clone(),
                    ordinal: *ordinal,
                    membership: Some(*membership),
                    keeps_data: false,
                })
            }
            Effect::MoveLeader { membership, from, .. } if self.has(Fault::RemovesTheLeader) => {
                let ordinal = ordinal_of(seen.membership.known()?, *from)?;
                Some(Effect::MemberRemove { membership: *membership, member: *from, ordinal })
            }
            Effect::MemberRemove { .. } if self.has(Fault::ShrinksTheSetFirst) => {
                let set = seen.stateful_set.known()?;
                Some(Effect::ApplyStatefulSet {
                    found: Some(set.handle.clone()),
                    from: set.replicas,
                    replicas: set.replicas - 1,
                    template: set.template,
                })
            }
            _ => None,
        }
    }

    /// What it does otherwise; nothing where it does as it should.
    pub fn apply(self, world: &mut World, effect: &Effect) -> Option<bool> {
        match effect {
            Effect::MemberAdd { ordinal, .. } if self.has(Fault::AddsVoters) => {
                Some(world.add(*ordinal, false))
            }
            _ => None,
        }
    }

    pub fn ignores_guards(self) -> bool {
        self.has(Fault::IgnoresGuards)
    }

    pub fn looks_once(self) -> bool {
        self.has(Fault::LooksOnce)
    }
}

/// Names a pod that waits after the recovery as the one that makes a cluster of the data.
fn forces_again(seen: &Observation) -> Option<Effect> {
    let recovery = seen.record.recovery.as_ref().filter(|one| one.phase == RecoveryPhase::Clearing)?;
    let survivor = recovery.survivor?;
    let pod = seen.pod(survivor).found().filter(|pod| pod.phase == PodPhase::Waiting)?;
    let entry = seen.entry(survivor).found().filter(|entry| entry.purpose == Purpose::Run)?;
    let forced = ConfigEntry { purpose: Purpose::Force, pod: Some(pod.handle.uid.clone()), ..entry.clone() };
    Some(Effect::WriteConfig {
        found: Some(seen.config.known()?.handle.clone()),
        entries: BTreeMap::from([(survivor, forced)]),
        initial_cluster: vec![survivor],
    })
}

fn ordinal_of(list: &Membership, id: MemberId) -> Option<Ordinal> {
    list.find(id)?.ordinal
}
