//! Planted faults: an operator that does one thing wrong. Each has to be found, by the rule that names it.

mod data;
mod fault;
mod observed;
mod surroundings;

use std::collections::BTreeMap;

use gatehouse::api::condition::State;
use gatehouse::certs::rotate::steps::Why;
use gatehouse::kinds::etcdcluster::actions::{Action as Effect, AuthorityWrite, LeafWrite, MembershipGuard};
use gatehouse::kinds::etcdcluster::api::status::ConditionType;
use gatehouse::kinds::etcdcluster::observation::{
    ConfigEntry, Desired, Fact, MemberId, Membership, Observation, OperationKind, Ordinal, Pod, PodPhase,
    Purpose, RecoveryPhase, StatefulSet, Version,
};
use gatehouse::kinds::etcdcluster::plan::{self, Plan};

use crate::world::World;
pub use fault::Fault;

/// The operator's hand, with at most one fault.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hand(pub Option<Fault>);

impl Hand {
    fn has(self, fault: Fault) -> bool {
        self.0 == Some(fault)
    }

    /// What it takes the spec to ask for.
    pub fn desired(self, desired: &Desired) -> Desired {
        let is_paused = desired.is_paused && !self.has(Fault::IgnoresPause);
        let deletes_volumes = desired.deletes_volumes || self.has(Fault::TakesVolumesAlong);
        let desired = Desired { is_paused, deletes_volumes, ..desired.clone() };
        match self.0 {
            Some(fault) => surroundings::desired(fault, &desired),
            None => desired,
        }
    }

    /// What it takes what it read for.
    pub fn look(self, desired: &Desired, seen: &mut Observation) {
        match self.0 {
            Some(Fault::KeepsNoRecord) if seen.record.cluster_id.is_none() => {
                seen.record.cluster_id = seen.membership.known().map(|list| list.cluster_id);
            }
            Some(Fault::SkipsMinors) => takes_for_the_last_minor(desired, seen),
            Some(Fault::GoesOnFromTheLeast) => {
                for status in seen.statuses.values_mut() {
                    if let Fact::Known(status) = status {
                        status.raft_index = u64::MAX - status.raft_index;
                    }
                }
            }
            Some(Fault::EndsPodsThatHoldClaims) => {
                let is_current = seen.stateful_set.is_known_and(|set| set.template == desired.template);
                if let (false, Fact::Known(volumes)) = (is_current, &mut seen.volumes) {
                    for volume in volumes.values_mut() {
                        volume.is_deleting = false;
                    }
                }
            }
            Some(Fault::ForgetsWhoTheMembersAre) => seen.remembered.clear(),
            Some(Fault::TakesUnknownVolumesForNone) if seen.volumes.is_unknown() => {
                seen.volumes = Fact::Known(BTreeMap::new());
            }
            Some(Fault::TrustsAnyList | Fault::ChangesAnyList) if seen.membership.is_unknown() => {
                seen.membership = seen.last_membership.clone();
            }
            Some(Fault::ForgetsTheCluster)
                if seen.pods.elements().all(|(_, pod)| pod.phase == PodPhase::Waiting) =>
            {
                seen.record.cluster_id = None;
            }
            Some(Fault::ForgetsTheAuthority) => {
                if let Some(secrets) = &mut seen.certificate_secrets {
                    let signer = secrets.authority.known().and_then(|secret| secret.signer);
                    secrets.authorities.retain(|id, _| signer.is_some_and(|signs| signs.certificate == *id));
                }
            }
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
            Some(Fault::BelievesTheAlarm) => data::believes_the_alarm(seen),
            Some(Fault::BelievesTheMember) => data::believes_the_member(seen),
            Some(Fault::LowersUnasked) => data::lowers_unasked(desired, seen),
            Some(fault) => observed::look(fault, seen),
            None => {}
        }
    }

    /// What it makes of the plan.
    pub fn plan(self, world: &World, seen: &Observation, plan: &mut Plan) {
        let Some(fault) = self.0 else { return };
        if let Some(next) = self.does_first(world, seen) {
            plan.actions = vec![next];
        }
        let operation = plan.record.operation.map(|operation| operation.kind);
        let rolls = matches!(operation, Some(OperationKind::Upgrade | OperationKind::Restart));
        match fault {
            Fault::ForgetsTheCluster | Fault::ForgetsTheRecovery | Fault::KeepsNoRecord => {
                for effect in &mut plan.actions {
                    if let Effect::WriteRecord { before, record } = effect {
                        *before = world.objects.record.clone();
                        if fault == Fault::KeepsNoRecord {
                            record.cluster_id = None;
                        }
                    }
                }
                plan.actions
                    .retain(|one| !matches!(one, Effect::WriteRecord { before, record } if before == record));
            }
            Fault::SignsTooEarly | Fault::TrustsForEver => rotates(fault, plan),
            Fault::DefragmentsAllAtOnce
            | Fault::DefragmentsBesideTheMissing
            | Fault::DefragmentsTheLeaderFirst
            | Fault::DisarmsAtOnce => data::plan(fault, seen, plan),
            Fault::LeavesLeftovers => plan.actions.retain(|one| !matches!(one, Effect::DeleteVolume { .. })),
            Fault::NeverReplaces if operation == Some(OperationKind::Replace) => {
                plan.actions.retain(|one| !matches!(one, Effect::MemberRemove { .. }));
            }
            Fault::NeverLetsGo => plan.actions.retain(|one| !matches!(one, Effect::RemoveFinalizer)),
            Fault::RollsWithoutGate if rolls && plan.actions.is_empty() => {
                let leader = leader_of(seen);
                let next = outdated(seen).find(|(ordinal, _)| Some(*ordinal) != leader);
                plan.actions.extend(next.map(|(ordinal, pod)| deletes(ordinal, pod)));
            }
            Fault::RollsAllAtOnce
                if rolls && plan.actions.iter().any(|one| matches!(one, Effect::DeletePod { .. })) =>
            {
                plan.actions = outdated(seen).map(|(ordinal, pod)| deletes(ordinal, pod)).collect();
            }
            Fault::HealsAllAtOnce if seen.membership.is_unknown() => heals_all(seen, plan),
            // In what it says it is right.
            Fault::ChangesAnyList | Fault::OverlooksWhoIsCutOff => {
                plan.summary = plan::plan(&world.desired, seen).summary;
            }
            Fault::CallsUnknownAvailable => calls_available(plan),
            Fault::WaitsForClaimsToStay => observed::writes_only_for_claims_that_stay(seen, plan),
            Fault::DeletesVolumesFirst
            | Fault::RemovesTheLeader
            | Fault::RollsTheLeaderFirst
            | Fault::ShrinksTheSetFirst
            | Fault::ShrinksTheSetAtOnce => {
                for effect in &mut plan.actions {
                    if let Some(other) = self.instead(&world.desired, seen, effect) {
                        *effect = other;
                    }
                }
            }
            _ => surroundings::plan(fault, plan),
        }
    }

    /// What it does before anything else.
    fn does_first(self, world: &World, seen: &Observation) -> Option<Effect> {
        match self.0? {
            Fault::AddsTwoAtOnce => adds_another(world, seen),
            Fault::RejoinsEmpty => rejoins(seen),
            Fault::RunsWhoIsSetAside => runs_again(seen),
            Fault::ForcesAgain => forces_again(seen),
            Fault::RestartsTheSilent => observed::restarts_the_silent(seen),
            _ => None,
        }
    }

    fn instead(self, desired: &Desired, seen: &Observation, effect: &Effect) -> Option<Effect> {
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
            Effect::MemberRemove { .. } => {
                let set = seen.stateful_set.known()?;
                let replicas = match self.0? {
                    Fault::ShrinksTheSetFirst => set.replicas - 1,
                    Fault::ShrinksTheSetAtOnce => desired.replicas,
                    _ => return None,
                };
                Some(applies(set, replicas))
            }
            Effect::DeletePod { precondition: Some(_), .. } if self.has(Fault::RollsTheLeaderFirst) => {
                let ordinal = leader_of(seen)?;
                Some(deletes(ordinal, seen.pod(ordinal).found()?))
            }
            _ => None,
        }
    }

    /// What it does otherwise; nothing where it does as it should.
    pub fn apply(self, world: &mut World, effect: &Effect) -> Option<bool> {
        match effect {
            Effect::MemberAdd { ordinal, .. }
                if self.has(Fault::AddsVoters) || self.has(Fault::AddsTwoAtOnce) =>
            {
                Some(world.add(*ordinal, false))
            }
            _ => None,
        }
    }

    pub fn ignores_guards(self) -> bool {
        self.has(Fault::IgnoresGuards)
    }

    pub fn keeps_no_record(self) -> bool {
        self.has(Fault::KeepsNoRecord)
    }

    pub fn overlooks_lag(self) -> bool {
        self.has(Fault::OverlooksLag)
    }

    pub fn looks_once(self) -> bool {
        self.has(Fault::LooksOnce)
    }
}

/// Ends all pods that wait for another template, where one of them is to end.
fn heals_all(seen: &Observation, plan: &mut Plan) {
    let is_due = |effect: &Effect| matches!(effect, Effect::DeletePod { .. });
    if plan.actions.iter().any(is_due) {
        plan.actions = outdated(seen).map(|(ordinal, pod)| deletes(ordinal, pod)).collect();
    }
}

/// Says that a cluster is available.
fn calls_available(plan: &mut Plan) {
    for finding in &mut plan.summary.findings {
        if finding.about == ConditionType::Available {
            finding.state = State::True;
        }
    }
}

/// Has certificates follow another authority too early, or never to the end.
fn rotates(fault: Fault, plan: &mut Plan) {
    let forgets =
        |effect: &Effect| matches!(effect, Effect::WriteAuthority { write: AuthorityWrite::Bundle, .. });
    plan.actions.retain(|effect| fault != Fault::TrustsForEver || !forgets(effect));
    for effect in &mut plan.actions {
        if let (Fault::SignsTooEarly, Effect::WriteCertificate { write, .. }) = (fault, effect) {
            *write = LeafWrite::Sign(Why::OtherAuthority);
        }
    }
}

/// Names a pod that waits after the recovery as the one that makes a cluster of the data.
fn forces_again(seen: &Observation) -> Option<Effect> {
    let recovery = seen.record.recovery.as_ref().filter(|one| one.phase == RecoveryPhase::Clearing)?;
    let survivor = recovery.survivor?;
    let pod = seen.pod(survivor).found().filter(|pod| pod.phase == PodPhase::Waiting)?;
    let entry = seen.entry(survivor).found().filter(|entry| entry.purpose == Purpose::Run)?;
    let forced = ConfigEntry { purpose: Purpose::Force, pod: Some(pod.handle.uid.clone()), ..entry.clone() };
    tells(seen, survivor, forced)
}

/// Takes members to run the minor before the one that is asked for, and to have agreed on it.
fn takes_for_the_last_minor(desired: &Desired, seen: &mut Observation) {
    let last = Version::new(desired.template.version.minor - 1, 99);
    for status in seen.statuses.values_mut() {
        if let Fact::Known(status) = status {
            status.version = status.version.max(last);
        }
    }
    if let Fact::Known(agreed) = &mut seen.cluster_version {
        *agreed = (*agreed).max(last.minor);
    }
}

/// Adds the next member while the last one has not started.
fn adds_another(world: &World, seen: &Observation) -> Option<Effect> {
    let list = seen.membership.known().filter(|list| list.members.iter().any(|member| !member.is_started))?;
    let count = u32::try_from(list.members.len()).ok().filter(|count| *count < world.desired.replicas)?;
    let (set, ordinal) = (seen.stateful_set.known()?, Ordinal(count));
    if set.replicas <= count {
        return Some(applies(set, count + 1));
    }
    let pod = seen.pod(ordinal).found().filter(|pod| pod.phase == PodPhase::Waiting)?;
    Some(Effect::MemberAdd {
        membership: MembershipGuard::of(list),
        ordinal,
        pod: pod.handle.uid.clone(),
        volume: seen.volume(ordinal).found()?.handle.uid.clone(),
    })
}

/// Tells a member whose volume is another one to join on that.
fn rejoins(seen: &Observation) -> Option<Effect> {
    let list = seen.membership.known()?;
    list.voters().find_map(|voter| {
        let ordinal = voter.ordinal?;
        let (entry, pod) = (seen.entry(ordinal).found()?, seen.pod(ordinal).found()?);
        let volume = seen.volume(ordinal).found().filter(|volume| volume.handle.uid != entry.volume)?;
        match pod.phase {
            PodPhase::Failing(_) if entry.purpose == Purpose::Run => {
                tells(seen, ordinal, entry.turned(Purpose::SetAside))
            }
            PodPhase::Failing(_) => Some(deletes(ordinal, pod)),
            PodPhase::Waiting => {
                let (pod, volume) = (Some(pod.handle.uid.clone()), volume.handle.uid.clone());
                let entry = ConfigEntry { purpose: Purpose::Join, pod, volume, ..entry.clone() };
                tells(seen, ordinal, entry)
            }
            _ => None,
        }
    })
}

/// Starts one again that a recovery has set aside, with the data that it has.
fn runs_again(seen: &Observation) -> Option<Effect> {
    let recovery = seen.record.recovery.as_ref();
    recovery.filter(|one| matches!(one.phase, RecoveryPhase::Clearing | RecoveryPhase::Done))?;
    let (ordinal, entry) = seen.entries().find(|(_, entry)| entry.purpose == Purpose::SetAside)?;
    tells(seen, ordinal, entry.turned(Purpose::Run))
}

fn tells(seen: &Observation, ordinal: Ordinal, entry: ConfigEntry) -> Option<Effect> {
    Some(Effect::WriteConfig {
        found: Some(seen.config.known()?.handle.clone()),
        entries: BTreeMap::from([(ordinal, entry)]),
        initial_cluster: vec![ordinal],
    })
}

fn deletes(ordinal: Ordinal, pod: &Pod) -> Effect {
    Effect::DeletePod { pod: pod.handle.clone(), ordinal, precondition: None }
}

fn applies(set: &StatefulSet, replicas: u32) -> Effect {
    let (found, from, template) = (Some(set.handle.clone()), set.replicas, set.template);
    Effect::ApplyStatefulSet { found, from, replicas, template }
}

/// The pods that run another template than the StatefulSet has by now.
fn outdated(seen: &Observation) -> impl Iterator<Item = (Ordinal, &Pod)> {
    let template = seen.stateful_set.known().map(|set| set.template);
    let is_outdated =
        move |pod: &Pod| !pod.is_deleting && pod.phase == PodPhase::Up && Some(pod.template) != template;
    seen.pods.elements().filter(move |(_, pod)| is_outdated(pod))
}

fn leader_of(seen: &Observation) -> Option<Ordinal> {
    let leader = seen.answers().find_map(|(_, status)| status.leader)?;
    ordinal_of(seen.membership.known()?, leader)
}

fn ordinal_of(list: &Membership, id: MemberId) -> Option<Ordinal> {
    list.find(id)?.ordinal
}
