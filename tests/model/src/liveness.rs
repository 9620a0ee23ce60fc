//! What all has to come to, once nothing fails any more and no more changes are asked for.

use gatehouse::api::condition::State;
use gatehouse::kinds::etcdcluster::api::status::ConditionType;
use gatehouse::kinds::etcdcluster::observation::{AlarmKind, Member, Ordinal, PodPhase, Purpose};
use gatehouse::kinds::etcdcluster::plan::Plan;

use crate::faults::Hand;
use crate::world::care::Database;
use crate::world::{Disk, Place, Policy, Secret, World};

impl World {
    /// Whether, at rest, what is asked for is so, or nothing more can be done and the status says why.
    pub fn rests_well(&self, hand: Hand) -> bool {
        let (_, plan) = self.planned(None, hand);
        if self.desired.is_deleting {
            let is_refused = self.desired.is_protected;
            return if is_refused { self.has_kept_data() && self.all_run() } else { self.is_gone() };
        }
        if self.desired.is_paused {
            return says(&plan, ConditionType::Paused, State::True);
        }
        if let Some(rests) = self.rests_in_surroundings(&plan) {
            return rests;
        }
        if self.recovers() && !self.held_claims().is_empty() {
            // The pod that holds the claim stays: which other data to go on from is for a person to say.
            return says(&plan, ConditionType::Degraded, State::True);
        }
        if self.desired.replicas < 3 && !self.held_claims().is_empty() {
            // The member can be replaced beside two others.
            return says(&plan, ConditionType::Degraded, State::True)
                && self.has_kept_data()
                && self.all_run();
        }
        if self.desired.replicas == 0 {
            return self.objects.pods.is_empty() && self.has_kept_data() && plan.summary.is_reached;
        }
        if !self.has_quorum() {
            return self.is_beyond_help(&plan);
        }
        if says(&plan, ConditionType::SpecValid, State::False) {
            return self.may_not_go() && self.all_run();
        }
        if self.corrupt_voters() > 0 {
            // Without an alarm it is said, and no member is replaced that runs. A sound one that starts beside it ends.
            let runs_or_is_sound = |member: &Member| self.runs(member) || self.ends_beside_corrupt(member);
            return !self.has_alarm(AlarmKind::Corrupt)
                && says(&plan, ConditionType::Degraded, State::True)
                && self.etcd.members.iter().all(runs_or_is_sound);
        }
        self.is_reached(&plan)
    }

    /// Whether etcd has ended on sound data because another member's differ.
    fn ends_beside_corrupt(&self, member: &Member) -> bool {
        let place = member.ordinal.and_then(|ordinal| self.objects.pods.get(&ordinal));
        let has_ended = place.is_some_and(|place| place.pod.own_print.is_some());
        has_ended && self.data(member).is_some_and(|data| !data.is_corrupt)
    }

    /// Whether a recovery is under way.
    fn recovers(&self) -> bool {
        self.objects.record.recovery.as_ref().is_some_and(|recovery| recovery.phase.is_active())
    }

    /// Whether nothing holds the object, and of what was made for it there is what the spec says.
    fn is_gone(&self) -> bool {
        let volumes = &self.objects.volumes;
        let are_right = if self.desired.deletes_volumes { volumes.is_empty() } else { self.has_kept_data() };
        !self.objects.has_finalizer && self.objects.pods.is_empty() && are_right
    }

    /// Whether every member's data are there. Nothing that stops or stays is explored together with volumes that get
    /// lost.
    fn has_kept_data(&self) -> bool {
        let mut members = self.etcd.members.iter().filter(|member| member.is_started);
        members.all(|member| self.data(member).is_some())
    }

    /// Whether each member that has data runs.
    fn all_run(&self) -> bool {
        self.etcd.members.iter().all(|member| self.data(member).is_none() || self.runs(member))
    }

    /// Whether the members may not be brought to what is asked for: a minor would be skipped, it is the one below, which
    /// no one has allowed, or they would lose data.
    fn may_not_go(&self) -> bool {
        let wanted = self.desired.template.version;
        let is_below = wanted.minor < self.etcd.version && !self.desired.allows_downgrade;
        wanted.minor > self.etcd.version + 1 || is_below || self.is_unsound_for(wanted)
    }

    /// Whether it rests well for a reason that only some slices look at; nothing where there is none.
    fn rests_in_surroundings(&self, plan: &Plan) -> Option<bool> {
        let is_said = says(plan, ConditionType::Degraded, State::True);
        if self.surroundings.taken.is_some() || self.taken_volume().is_some() {
            return Some(is_said && !plan.summary.is_reached);
        }
        if !self.desired.is_valid {
            return Some(says(plan, ConditionType::SpecValid, State::False) && self.all_run());
        }
        if self.desired.is_in_memory && says(plan, ConditionType::SpecValid, State::False) {
            return Some(self.would_lose_memory() && self.all_run() && !plan.summary.is_reached);
        }
        if self.desired.is_in_memory && self.desired.replicas == 0 && self.objects.record.cluster_id.is_none()
        {
            // No client has written yet: nothing was recorded.
            return Some(self.objects.pods.is_empty() && plan.summary.is_reached);
        }
        if self.desired.replicas == 0 || !self.has_quorum() {
            return None;
        }
        if self.surroundings.policy.is_some() && !self.is_reached(plan) {
            return Some(is_said && self.is_reached_but_for_policy());
        }
        if self.has_alarm(AlarmKind::NoSpace) {
            // Nothing is left to drop.
            return Some(is_said && self.etcd.compacted == 5000 && self.all_run() && self.start_as_sized());
        }
        (!self.is_guarded()).then(|| {
            let is_unreadable = self.surroundings.access.secret == Secret::Unreadable;
            is_unreadable
                && says(plan, ConditionType::CertificatesReady, State::False)
                && !plan.summary.is_reached
        })
    }

    /// Whether what is asked for would drop data that lie in memory: no member is asked for any more, too few members are to
    /// make up for one that is made again, or the quorum is lost.
    fn would_lose_memory(&self) -> bool {
        let is_other = |place: &Place| place.pod.template != self.desired.template;
        let is_due = self.objects.pods.values().any(is_other);
        self.desired.replicas == 0 || !self.has_quorum() || self.desired.replicas < 3 && is_due
    }

    /// Whether all is so that the API server does not refuse.
    fn is_reached_but_for_policy(&self) -> bool {
        let replicas = usize::try_from(self.desired.replicas).unwrap_or(usize::MAX);
        let is_current = |place: &Place| place.pod.template == self.desired.template;
        let has_grown = |(ordinal, disk): (&Ordinal, &Disk)| {
            let is_refused = self.surroundings.policy == Some(Policy::Volume(*ordinal));
            is_refused || disk.volume.size >= self.desired.volume_size
        };
        let is_refused = matches!(self.surroundings.policy, Some(Policy::Template(_)));
        let are_right = match self.surroundings.policy {
            Some(Policy::Template(_)) => true,
            _ => self.objects.pods.values().all(is_current),
        };
        let volumes = matches!(self.surroundings.policy, Some(Policy::Writes(_)))
            || self.objects.volumes.iter().all(has_grown);
        self.etcd.members.len() == replicas
            && self.live_voters() == replicas
            && (is_refused || are_right)
            && volumes
    }

    /// Whether members with much data would start without their comparison, and others with it.
    fn start_as_sized(&self) -> bool {
        let mut data = self.objects.volumes.values().filter_map(|disk| disk.data);
        let is_much = data.any(|data| data.database == Database::Full);
        let mut entries = self.objects.config.iter().flat_map(|entries| entries.values());
        entries.all(|entry| entry.skips_check == is_much)
    }

    /// Whether each volume that can has the size that is asked for.
    fn has_grown(&self) -> bool {
        self.objects.volumes.values().all(|Disk { volume, .. }| {
            let can_grow = volume.is_expandable.is_known_and(|can| *can);
            !can_grow || volume.size >= self.desired.volume_size && !volume.is_growing()
        })
    }

    /// Whether the status says that the quorum is lost, and what can be done without one is done: each member with data
    /// runs and no request to go on from one of them is open, or the one that was chosen to go on from has lost its
    /// own. A request waits while the claim of a member goes with its pod.
    fn is_beyond_help(&self, plan: &Plan) -> bool {
        let is_said =
            [ConditionType::QuorumLost, ConditionType::Degraded].map(|about| says(plan, about, State::True));
        let recorded = self.objects.record.recovery.as_ref();
        let is_done = if let Some(recovery) = recorded.filter(|recovery| recovery.phase.is_active()) {
            recovery.survivor.is_some_and(|survivor| {
                let mut members = self.voters().filter(|voter| voter.ordinal == Some(survivor));
                !members.any(|member| self.data(member).is_some())
            })
        } else {
            let asked = self.desired.recovery.as_ref().map(|request| &request.token);
            let is_open = asked.is_some() && asked != recorded.map(|recovery| &recovery.token);
            let waits = !self.held_claims().is_empty();
            self.all_run() && (waits || !(is_open && self.live_voters() > 0))
        };
        is_said == [true; 2] && is_done
    }

    /// Whether much of a database is free that is to be given back.
    fn has_spare_room(&self) -> bool {
        let mut data = self.objects.volumes.values().filter_map(|disk| disk.data);
        self.desired.defragments_at.is_some() && data.any(|data| data.database == Database::Spare)
    }

    /// Whether all is as asked for, and the status says so.
    fn is_reached(&self, plan: &Plan) -> bool {
        let replicas = usize::try_from(self.desired.replicas).unwrap_or(usize::MAX);
        let objects = &self.objects;
        let are_made = objects.pods.values().all(|place| {
            place.pod.phase == PodPhase::Up
                && place.pod.template == self.desired.template
                && place.pod.role.is_some()
        });
        let entries: Vec<_> = objects.config.iter().flat_map(|entries| entries.values()).collect();
        let is_there = self.etcd.members.len() == replicas
            && self.live_voters() == replicas
            && objects.pods.len() == replicas
            && objects.volumes.len() == replicas
            && entries.len() == replicas
            && entries.iter().all(|entry| entry.purpose == Purpose::Run)
            && self.start_as_sized()
            && self.has_one_authority()
            && objects.has_services
            && self.etcd.alarms.is_empty()
            && self.etcd.downgrade.is_none()
            && objects.budget.is_some()
            && objects.set.as_ref().is_some_and(|set| set.labels_voters)
            && !objects.volumes.values().any(|disk| disk.volume.is_set_aside)
            && self.has_grown()
            && !self.has_spare_room()
            && self.etcd.version == self.desired.template.version.minor;
        let is_said = plan.summary.is_reached
            && says(plan, ConditionType::Ready, State::True)
            && says(plan, ConditionType::Available, State::True)
            && says(plan, ConditionType::Progressing, State::False)
            && says(plan, ConditionType::Degraded, State::False);
        is_there && are_made && is_said
    }
}

/// Whether the status says that of a condition.
pub fn says(plan: &Plan, about: ConditionType, state: State) -> bool {
    plan.summary.findings.iter().any(|finding| finding.about == about && finding.state == state)
}
