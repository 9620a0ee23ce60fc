//! What follows from one reconciliation's facts: questions that all parts of the plan share. Pure.
//!
//! Guarantees: every question has an answer; one about the list of members says no unless the list is known, is
//! linearizable and is of the recorded cluster.

use std::collections::{BTreeMap, BTreeSet};

use crate::kinds::etcdcluster::actions::{Action, MembershipGuard, Precondition};
use crate::kinds::etcdcluster::observation::{
    AlarmKind, Audit, ClusterId, Config, ConfigEntry, Desired, Fact, Member, MemberId, MemberStatus,
    Membership, Observation, Operation, Ordinal, Owner, Phase, Pod, PodPhase, Purpose, StatefulSet, Target,
    Template,
};

/// How many of `voters` make a majority.
#[must_use]
pub const fn quorum(voters: usize) -> usize {
    voters / 2 + 1
}

/// Entries of the log that a member may lack and counts as one that has caught up. Etcd keeps so many behind each of its
/// snapshots at least (`DefaultSnapshotCatchUpEntries` of etcd's `server/etcdserver/server.go`): who lacks no more is
/// sent entries, and needs no snapshot first.
pub const CAUGHT_UP: u64 = 5_000;

/// Whether a member that has applied the log up to an entry has caught up with who has got furthest.
#[must_use]
pub const fn has_caught_up(applied: u64, furthest: u64) -> bool {
    applied.saturating_add(CAUGHT_UP) >= furthest
}

/// Whether pods are to come up with the label of a voter. From when clients may come in for the first time, for good.
#[must_use]
pub fn labels_voters(desired: &Desired, seen: &Observation) -> bool {
    ClusterState::new(desired, seen).labels_voters()
}

/// Whether the data of the member at an ordinal are beyond use: its volume is another one or gone, or its pod says so.
/// No data are lost while their member answers.
#[must_use]
pub fn has_lost_data(seen: &Observation, ordinal: Ordinal) -> bool {
    if seen.pods.is_unknown() || seen.status(ordinal).known().is_some() {
        return false;
    }
    let Fact::Known(entry) = seen.entry(ordinal) else { return false };
    let replaced = match seen.volume(ordinal) {
        Fact::Known(volume) => volume.handle.uid != entry.volume,
        Fact::Absent => true,
        Fact::Unknown => false,
    };
    replaced || seen.pod(ordinal).found().is_some_and(fails_on_data)
}

/// The facts.
#[derive(Clone, Copy)]
pub struct ClusterState<'a> {
    /// What is asked for.
    pub desired: &'a Desired,
    /// What was read.
    pub seen: &'a Observation,
}

impl<'a> ClusterState<'a> {
    /// The facts of one reconciliation.
    pub const fn new(desired: &'a Desired, seen: &'a Observation) -> Self {
        Self { desired, seen }
    }

    /// The cluster that is recorded.
    pub const fn cluster_id(&self) -> Option<ClusterId> {
        self.seen.record.cluster_id
    }

    /// The list of members, where it is known and of our cluster.
    pub fn membership(&self) -> Option<&'a Membership> {
        let membership = self.seen.membership.as_ref().found()?;
        (Some(membership.cluster_id) == self.cluster_id()).then_some(membership)
    }

    /// The guard of a change of that list.
    pub fn guard(&self) -> Option<MembershipGuard> {
        self.membership().map(MembershipGuard::of)
    }

    /// Members that etcd counts, learners among them.
    pub fn member_count(&self) -> usize {
        self.membership().map_or(0, |membership| membership.members.len())
    }

    /// Those of them that are this cluster's own: their URLs are.
    pub fn own_member_count(&self) -> usize {
        self.voters().len() + self.learners().len()
    }

    /// Members that vote, with their ordinals; those of foreign URLs are left out.
    pub fn voters(&self) -> Vec<(Ordinal, &'a Member)> {
        self.placed(|member| !member.is_learner)
    }

    /// The members that do not vote yet.
    pub fn learners(&self) -> Vec<(Ordinal, &'a Member)> {
        self.placed(|member| member.is_learner)
    }

    fn placed(&self, wanted: impl Fn(&Member) -> bool) -> Vec<(Ordinal, &'a Member)> {
        let members = self.membership().map_or(&[][..], |membership| &membership.members);
        let members = members.iter().filter(|member| wanted(member));
        let mut placed: Vec<_> = members.filter_map(|member| Some((member.ordinal?, member))).collect();
        placed.sort_unstable();
        placed
    }

    /// Whether its deletion has to wait for us and does not. It has to where volumes go with it, or where it is
    /// refused; else what was made for it goes by its owner, and a namespace goes whether or not an operator runs.
    pub const fn needs_finalizer(&self) -> bool {
        let takes_volumes = self.desired.deletes_volumes && !self.desired.is_in_memory;
        (takes_volumes || self.desired.is_protected) && !self.seen.has_finalizer
    }

    /// How many vote, those of foreign URLs too.
    pub fn voter_count(&self) -> usize {
        self.membership().map_or(0, |membership| membership.voters().count())
    }

    /// The member at an ordinal.
    pub fn member(&self, ordinal: Ordinal) -> Option<&'a Member> {
        self.membership()?.at(ordinal)
    }

    /// What the member at an ordinal answered.
    pub fn status(&self, ordinal: Ordinal) -> Option<&'a MemberStatus> {
        self.seen.status(ordinal).found()
    }

    /// The pod at an ordinal.
    pub fn pod(&self, ordinal: Ordinal) -> Option<&'a Pod> {
        self.seen.pod(ordinal).found()
    }

    /// The StatefulSet.
    pub fn stateful_set(&self) -> Option<&'a StatefulSet> {
        self.seen.stateful_set.as_ref().found()
    }

    /// Whether the member at an ordinal answers as one of our cluster and follows a leader, in a pod that stays.
    pub fn is_healthy(&self, ordinal: Ordinal) -> bool {
        let Some(status) = self.status(ordinal) else { return false };
        let is_itself = self.membership().is_none()
            || self.member(ordinal).is_some_and(|member| member.id == status.member_id && member.is_started);
        let stays = self.pod(ordinal).is_some_and(|pod| !pod.is_deleting && pod.phase == PodPhase::Up);
        is_itself
            && stays
            && Some(status.cluster_id) == self.cluster_id()
            && status.leader.is_some()
            && !status.has_errors
    }

    /// Whether a member that answers lacks so much of the log that it acknowledges nothing for a while.
    pub fn lags(&self, ordinal: Ordinal) -> bool {
        let furthest = self.seen.answers().map(|(_, status)| status.raft_index).max().unwrap_or(0);
        self.status(ordinal).is_some_and(|status| !has_caught_up(status.raft_applied_index, furthest))
    }

    /// Voters that are healthy and have caught up, one left out.
    pub fn healthy_voters_but(&self, left_out: Option<MemberId>) -> usize {
        let voters = self.voters();
        let others = voters.iter().filter(|(_, member)| Some(member.id) != left_out);
        others.filter(|(ordinal, _)| self.is_healthy(*ordinal) && !self.lags(*ordinal)).count()
    }

    /// Whether clients may come in: the cluster is recorded, and authentication is enabled where it has to be.
    pub fn admits_clients(&self) -> bool {
        let asks = !self.desired.authenticates || self.seen.auth.is_known_and(|enabled| *enabled);
        self.cluster_id().is_some() && asks
    }

    /// Whether pods are to come up with the label of a voter.
    pub fn labels_voters(&self) -> bool {
        self.stateful_set().is_some_and(|set| set.labels_voters) || self.admits_clients()
    }

    /// Whether the other voters are a majority of what is left without `member`, and at least one.
    pub fn can_spare(&self, member: &Member) -> bool {
        let left = self.voter_count().saturating_sub(usize::from(!member.is_learner));
        left > 0 && self.healthy_voters_but(Some(member.id)) >= quorum(left)
    }

    /// Whether the pod of `member` can go: where its data end with it, the other voters are a majority of all.
    pub fn can_lose_pod(&self, member: &Member) -> bool {
        !self.desired.is_in_memory || self.healthy_voters_but(Some(member.id)) >= quorum(self.voter_count())
    }

    /// Whether the pod at an ordinal is all that holds the claim of a member: the claim is being deleted, which cannot be
    /// taken back, and goes with the data once the pod ends. Not where the member has left etcd's list, nor where the
    /// object itself is being deleted.
    pub fn holds_claim(&self, ordinal: Ordinal) -> bool {
        let Some(volume) = self.seen.volume(ordinal).found() else { return false };
        let has_pod = match self.seen.pod(ordinal) {
            Fact::Known(pod) => !matches!(pod.phase, PodPhase::Terminal(_)),
            Fact::Absent => false,
            Fact::Unknown => true,
        };
        let is_ours = match self.seen.entry(ordinal) {
            Fact::Known(entry) => entry.volume == volume.handle.uid && entry.purpose != Purpose::Retired,
            Fact::Absent | Fact::Unknown => true,
        };
        let has_left = self.membership().is_some() && self.member(ordinal).is_none();
        let is_recorded = self.cluster_id().is_some() && !self.desired.is_in_memory;
        volume.is_deleting
            && volume.owner == Owner::Ours
            && has_pod
            && is_ours
            && !has_left
            && is_recorded
            && !self.desired.is_deleting
    }

    /// Deletes the pod of a member, unless it is all that holds the member's claim.
    pub fn delete_pod(
        &self,
        ordinal: Ordinal,
        pod: &Pod,
        precondition: Option<Precondition>,
    ) -> Option<Action> {
        let delete = || Action::DeletePod { pod: pod.handle.clone(), ordinal, precondition };
        (!self.holds_claim(ordinal)).then(delete)
    }

    /// The members whose claims only their pods hold.
    pub fn held_claims(&self) -> impl Iterator<Item = Ordinal> {
        self.seen.volumes.elements().map(|(ordinal, _)| ordinal).filter(|ordinal| self.holds_claim(*ordinal))
    }

    /// Who leads: the one that says so itself and has got furthest.
    pub fn leader(&self) -> Option<Ordinal> {
        let leaders = self
            .seen
            .answers()
            .filter(|(ordinal, status)| status.leader == Some(status.member_id) && self.is_healthy(*ordinal));
        leaders.max_by_key(|(ordinal, status)| (status.raft_index, *ordinal)).map(|(ordinal, _)| ordinal)
    }

    /// Hands leadership over, where the leader is at `ordinal` and another voter can take it.
    pub fn move_leader_from(&self, ordinal: Ordinal) -> Option<Action> {
        if self.leader() != Some(ordinal) {
            return None;
        }
        let from = self.member(ordinal)?.id;
        let voters = self.voters();
        let others = voters.into_iter().filter(|(other, member)| {
            *other != ordinal && member.is_started && self.is_healthy(*other) && self.data_are_sound(*other)
        });
        let furthest = others.max_by_key(|(other, _)| {
            (self.status(*other).map_or(0, |status| status.raft_applied_index), std::cmp::Reverse(*other))
        });
        Some(Action::MoveLeader { membership: self.guard()?, from, to: furthest?.1.id })
    }

    /// Whether nothing says that the data at an ordinal differ from the others'.
    fn data_are_sound(&self, ordinal: Ordinal) -> bool {
        let Some(member) = self.member(ordinal) else { return false };
        match self.seen.audit.known() {
            Some(Audit::Different { minority, .. }) if !minority.is_empty() => {
                return !minority.contains(&ordinal);
            }
            Some(Audit::Equal) => return true,
            Some(Audit::Different { .. }) | None => {}
        }
        // Nothing else is known: a suspicion is enough not to lead.
        let mut alarms = self.seen.alarms.known().into_iter().flatten();
        !alarms.any(|alarm| alarm.kind == AlarmKind::Corrupt && alarm.member == member.id)
    }

    /// Whether the data of the member at an ordinal are beyond use.
    pub fn has_lost_data(&self, ordinal: Ordinal) -> bool {
        has_lost_data(self.seen, ordinal)
    }

    /// Whether the member at an ordinal does not start because, as it says itself, its data differ from another member's.
    pub fn says_different(&self, ordinal: Ordinal, member: &Member) -> bool {
        self.seen.own_prints().any(|(other, print)| other == ordinal && print.member == member.id)
    }

    /// Whether it says so, and the others are a majority that agrees without it.
    pub fn is_found_different(&self, ordinal: Ordinal, member: &Member) -> bool {
        let is_named = self.seen.audit.is_known_and(
            |audit| matches!(audit, Audit::Different { minority, .. } if minority.contains(&ordinal)),
        );
        is_named && self.says_different(ordinal, member)
    }

    /// Whether one more member may be replaced, and it is the one at an ordinal: too many in a row are not. One whose
    /// removal was announced is counted already.
    pub fn may_replace(&self, ordinal: Ordinal) -> bool {
        let is_announced = |operation: Operation| {
            operation.target == Target::Member(ordinal)
                && (operation.is_replacement() || operation.phase == Phase::MovingLeader)
        };
        self.seen.replacement_age.is_past() || self.seen.record.operation.is_some_and(is_announced)
    }

    /// The ordinal that the next member gets: the lowest without one, while the cluster is too small.
    pub fn next_ordinal(&self) -> Option<Ordinal> {
        let membership = self.membership()?;
        let desired = usize::try_from(self.desired.replicas).unwrap_or(usize::MAX);
        if membership.members.len() > desired {
            return None;
        }
        (0..self.desired.replicas).map(Ordinal).find(|ordinal| membership.at(*ordinal).is_none())
    }

    /// The ordinals that have to have a pod: those of members, and of entries that are no leftovers.
    pub fn occupied(&self) -> BTreeSet<Ordinal> {
        let members = self.membership().into_iter().flat_map(|membership| &membership.members);
        let entries = self.seen.entries().filter(|(_, entry)| entry.purpose != Purpose::Retired);
        members.filter_map(|member| member.ordinal).chain(entries.map(|(ordinal, _)| ordinal)).collect()
    }

    /// The members that the status lists, where nothing else says who all of them are: neither etcd, nor the ConfigMap,
    /// which may be gone or have lost what is in it.
    pub fn remembered(&self) -> &'a BTreeMap<Ordinal, MemberId> {
        static NONE: BTreeMap<Ordinal, MemberId> = BTreeMap::new();
        let mut ordinals = self.seen.remembered.keys();
        let is_needed = self.membership().is_none()
            && self.cluster_id().is_some()
            && ordinals.any(|ordinal| self.seen.entry(*ordinal).found().is_none());
        if is_needed { &self.seen.remembered } else { &NONE }
    }

    /// Whether all entries of the ConfigMap are lost.
    pub fn has_lost_config(&self) -> bool {
        let is_empty = |config: &Config| config.entries.is_empty();
        self.seen.config.is_absent() || self.seen.config.is_known_and(is_empty)
    }

    /// Pods that the StatefulSet has to keep for them.
    pub fn least_replicas(&self) -> u32 {
        self.occupied().last().map_or(0, |ordinal| ordinal.0.saturating_add(1))
    }

    /// What pods are made from while nothing is being rolled: what the StatefulSet has, and without one the members'
    /// last entries, or in a recovery the one whose data are kept.
    pub fn template(&self) -> Template {
        if let Some(set) = self.stateful_set() {
            return set.template;
        }
        let recovery = self.seen.record.recovery.as_ref().filter(|recovery| recovery.phase.is_active());
        let survivor = recovery.and_then(|recovery| recovery.survivor);
        if let Some(entry) = survivor.and_then(|survivor| self.seen.entry(survivor).found()) {
            return entry.template;
        }
        let told = self.seen.entries().map(|(_, entry)| entry.template).max();
        told.unwrap_or(self.desired.template)
    }

    /// The entry of a member, made for the volume that is there and, where that may be empty, for the pod that is. One
    /// that has had data runs on a claim that is being deleted too, outside of a recovery: where its data are there it
    /// serves until it is replaced, and where they are not its pod says so.
    pub fn entry_for(&self, ordinal: Ordinal, purpose: Purpose, template: Template) -> Option<ConfigEntry> {
        let volume = self.seen.volume(ordinal).found()?;
        let pod = match purpose {
            Purpose::Seed | Purpose::Join => {
                let pod = self.pod(ordinal).filter(|pod| !pod.is_deleting)?;
                Some(pod.handle.uid.clone())
            }
            Purpose::Run | Purpose::Force | Purpose::Retired | Purpose::SetAside => None,
        };
        let recovery = self.seen.record.recovery.as_ref();
        let runs = purpose == Purpose::Run && recovery.is_none_or(|recovery| !recovery.phase.is_active());
        let usable = volume.owner == Owner::Ours && (runs || !volume.is_deleting);
        let member = self.member(ordinal).map(|member| member.id);
        let volume = volume.handle.uid.clone();
        let (raft_index, skips_check) = (None, false);
        usable.then_some(ConfigEntry { purpose, member, volume, template, pod, raft_index, skips_check })
    }

    /// Writes entries, each as the size of the data says. Nothing where the ConfigMap could not be read.
    pub fn write_config(&self, entries: BTreeMap<Ordinal, ConfigEntry>) -> Option<Action> {
        let found = match &self.seen.config {
            Fact::Known(config) => Some(config.handle.clone()),
            Fact::Absent => None,
            Fact::Unknown => return None,
        };
        if entries.is_empty() {
            return None;
        }
        let entries = entries.into_iter().map(|(ordinal, entry)| (ordinal, self.seen.sized(entry))).collect();
        let members = self.membership().map_or(&[][..], |membership| &membership.members);
        let mut initial_cluster: Vec<_> = members.iter().filter_map(|member| member.ordinal).collect();
        initial_cluster.sort_unstable();
        Some(Action::WriteConfig { found, entries, initial_cluster })
    }

    /// The same of one entry.
    pub fn write_entry(&self, ordinal: Ordinal, entry: ConfigEntry) -> Option<Action> {
        self.write_config(BTreeMap::from([(ordinal, entry)]))
    }

    /// Sets count and template of the StatefulSet; nothing where both are so already and no other client has changed
    /// anything else, or the set is unknown.
    pub fn apply_stateful_set(&self, replicas: u32, template: Template) -> Option<Action> {
        match &self.seen.stateful_set {
            Fact::Known(set)
                if (set.replicas, set.template) == (replicas, template)
                    && set.labels_voters == self.labels_voters()
                    && !set.is_altered =>
            {
                None
            }
            Fact::Known(set) => Some(Action::ApplyStatefulSet {
                found: Some(set.handle.clone()),
                from: set.replicas,
                replicas,
                template,
            }),
            Fact::Absent => Some(Action::ApplyStatefulSet { found: None, from: 0, replicas, template }),
            Fact::Unknown => None,
        }
    }
}

/// Whether a pod fails because of its data.
pub const fn fails_on_data(pod: &Pod) -> bool {
    match pod.phase {
        PodPhase::Pending(Some(cause)) | PodPhase::Failing(cause) | PodPhase::Terminal(cause) => {
            cause.is_data()
        }
        PodPhase::Pending(None) | PodPhase::Waiting | PodPhase::Starting | PodPhase::Up => false,
    }
}
