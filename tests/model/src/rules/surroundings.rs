//! Rules about what only some slices look at.

use gatehouse::kinds::etcdcluster::observation::{Backup, ClusterId, Owner, PodPhase, Version};

use super::*;
use crate::world::Secret;

impl World {
    /// What holds of a plan and what it was made of.
    pub fn judge_plan_in_surroundings(&mut self, seen: &Observation, plan: &Plan) {
        let any = |is_so: &dyn Fn(&Effect) -> bool| plan.actions.iter().any(is_so);
        let is_stop = self.desired.replicas == 0;
        let works_beside = !self.desired.is_deleting && any(&changes);
        let is_refused = self.desired.is_deleting && self.desired.is_protected;
        let rules = [
            (Rule::TouchedAnothers, self.surroundings.taken.is_some() && works_beside),
            (Rule::TouchedAnothers, any(&|effect| self.touches_volume(effect))),
            (Rule::WorkedBesideStranger, !is_stop && has_stranger(seen) && any(&changes)),
            (Rule::LedToWhoIsCutOff, self.leads_to_nobody(seen, plan)),
            (Rule::DeletedProtected, is_refused && any(&Effect::is_irreversible)),
            (Rule::HistoryDropped, any(&|effect| self.drops_history(effect))),
            (Rule::DefragmentedForNothing, any(&|effect| self.defragments_for_nothing(effect))),
            (Rule::LetInUnasked, any(&|effect| self.lets_in_unasked(effect))),
            (Rule::NoBackup, any(&|effect| self.lacks_backup(effect))),
            (Rule::VersionNotAllowed, any(&|effect| self.goes_where_it_may_not(effect))),
            (Rule::RestartedUncompared, any(&|effect| self.restarts_uncompared(effect))),
        ];
        for (rule, _) in rules.into_iter().filter(|(_, is_broken)| *is_broken) {
            self.breaks(rule);
        }
    }

    /// Whether an effect changes a claim of another owner, or makes a member on it.
    fn touches_volume(&self, effect: &Effect) -> bool {
        let is_anothers = |ordinal: &Ordinal| {
            let disk = self.objects.volumes.get(ordinal);
            disk.is_some_and(|disk| disk.volume.owner == Owner::Foreign)
        };
        match effect {
            Effect::DeleteVolume { ordinal, .. }
            | Effect::ResizeVolume { ordinal, .. }
            | Effect::MemberAdd { ordinal, .. } => is_anothers(ordinal),
            Effect::WriteConfig { entries, .. } => entries.keys().any(is_anothers),
            _ => false,
        }
    }

    /// Whether clients go on being led to a member that answers and has followed no leader for a while.
    fn leads_to_nobody(&self, seen: &Observation, plan: &Plan) -> bool {
        let is_known = seen.membership.known().is_some() && !seen.pods.is_unknown();
        let rests = self.fresh.health || self.desired.is_deleting || !is_known;
        let mut cut_off = self.objects.pods.iter().filter(|(ordinal, place)| {
            let is_seen = seen.status(**ordinal).known().is_some();
            place.is_cut_off && is_seen && !place.pod.is_deleting && place.pod.role == Some(Role::Voter)
        });
        let labels = |ordinal: Ordinal| {
            plan.actions
                .iter()
                .any(|effect| matches!(effect, Effect::LabelPod { ordinal: of, .. } if *of == ordinal))
        };
        !rests && cut_off.any(|(ordinal, _)| !labels(*ordinal))
    }

    /// Whether more goes than a smaller step would have to drop, or although there is room.
    fn drops_history(&self, effect: &Effect) -> bool {
        let Effect::Compact { revision, .. } = effect else { return false };
        let is_full = self.databases_but(MemberId(0)).any(|database| database == Database::Full);
        *revision > self.enough_dropped() || !is_full && self.has_dropped_enough()
    }

    fn defragments_for_nothing(&self, effect: &Effect) -> bool {
        let Effect::Defragment { member, .. } = effect else { return false };
        let data = self.member(*member).and_then(|member| self.data(member));
        let is_small = |database| matches!(database, Database::Small | Database::Slight | Database::Full);
        data.is_some_and(|data| is_small(data.database) || data.was_defragmented)
    }

    /// Whether a member that serves is restarted for another template, as the first one, and it is long ago that data were
    /// compared.
    fn restarts_uncompared(&self, effect: &Effect) -> bool {
        let Effect::DeletePod { ordinal, precondition: Some(_), .. } = effect else { return false };
        let serves = self.voters().any(|voter| voter.ordinal == Some(*ordinal) && self.runs(voter));
        let template = self.objects.set.as_ref().map(|set| set.template);
        let mut pods = self.objects.pods.values();
        let is_first =
            pods.all(|place| Some(place.pod.template) != template || place.pod.phase != PodPhase::Up);
        self.surroundings.comparison_is_old && serves && is_first
    }

    /// Whether a volume has less than its claim asks for.
    pub fn is_growing(&self) -> bool {
        self.objects.volumes.values().any(|disk| disk.volume.is_growing())
    }

    /// What holds of an effect that was just carried out.
    pub fn judge_effect_in_surroundings(&mut self, before: &Self, effect: &Effect) {
        let mut voters = before.voters().filter_map(|voter| voter.ordinal);
        if voters.any(|ordinal| ends_pod(effect, ordinal) && before.loses_memory(ordinal)) {
            self.breaks(Rule::MembersVolume);
        }
    }

    /// Whether clients are let in by an effect before etcd asks who they are, or root has its password.
    fn lets_in_unasked(&self, effect: &Effect) -> bool {
        let is_asked_for = self.surroundings.access.secret != Secret::Unnamed;
        match effect {
            Effect::LabelPod { role: Some(Role::Voter), .. } => !self.lets_in() && !self.admits(),
            Effect::AuthEnable { secret: None, .. } => is_asked_for && !self.lets_in(),
            _ => false,
        }
    }

    /// Whether an effect has pods made of a later version, which none is made of yet, without a backup for that.
    fn lacks_backup(&self, effect: &Effect) -> bool {
        let Effect::ApplyStatefulSet { template, .. } = effect else { return false };
        let mut pods = self.objects.pods.values().map(|place| place.pod.template.version);
        let is_new = !self.objects.pods.is_empty() && pods.all(|version| version < template.version);
        let is_other = self.objects.set.as_ref().is_some_and(|set| set.template != *template);
        let is_due = self.desired.backs_up_before_upgrade && is_new && is_other;
        is_due && self.surroundings.backup != Some(Backup::Recent)
    }

    /// Whether an effect brings members to a version from one that they lose data on the way from, or down unasked.
    fn goes_where_it_may_not(&self, effect: &Effect) -> bool {
        match effect {
            Effect::ApplyStatefulSet { template, .. } => self.is_unsound_for(template.version),
            Effect::DowngradeEnable { .. } => !self.desired.allows_downgrade,
            _ => false,
        }
    }

    fn running_versions(&self) -> impl Iterator<Item = Version> {
        let running = self.voters().filter(|voter| self.runs(voter));
        running.filter_map(|voter| Some(self.objects.pods.get(&voter.ordinal?)?.pod.template.version))
    }

    /// Whether one that runs would lose data on its way to that version.
    pub fn is_unsound_for(&self, wanted: Version) -> bool {
        self.running_versions().any(|version| is_unsound(version, wanted))
    }

    /// Whether the data in memory at an ordinal are those of a voter that the others cannot do without.
    fn loses_memory(&self, ordinal: Ordinal) -> bool {
        let at = self.voters().find(|voter| voter.ordinal == Some(ordinal));
        let has_data = at.is_some_and(|voter| self.data(voter).is_some());
        let others = self.voters().filter(|voter| voter.ordinal != Some(ordinal) && self.runs(voter));
        let is_recorded = self.objects.record.cluster_id.is_some() && self.desired.is_in_memory;
        is_recorded && has_data && others.count() < quorum(self.voters().count())
    }
}

/// Whether members lose data where they come from that version to this one (etcd.io, upgrade_3_6 and upgrade_3_7).
fn is_unsound(from: Version, to: Version) -> bool {
    let least = match to.minor {
        _ if to.minor != from.minor + 1 => return false,
        6 => Version::new(5, 32),
        7 => Version::new(6, 11),
        _ => return false,
    };
    from < least
}

/// Whether a member of another cluster than the recorded one answers.
fn has_stranger(seen: &Observation) -> bool {
    let is_other = |cluster: ClusterId| seen.record.cluster_id.is_some_and(|ours| ours != cluster);
    seen.answers().any(|(_, status)| is_other(status.cluster_id))
}

/// Whether an effect does more than lead clients and remember.
fn changes(effect: &Effect) -> bool {
    !matches!(effect, Effect::LabelPod { .. } | Effect::WriteRecord { .. })
}
