//! Carrying actions out. A precondition that fails is a fault of the plan here, for nothing else acts between its
//! observation and this.

use super::secrets::leaf;
use super::*;

impl World {
    pub fn apply(&mut self, action: &Action) {
        match action {
            Action::WriteRecord { before, record } => {
                assert_eq!(before, &self.record);
                assert!(self.record.cluster_id.is_none() || self.record.cluster_id == record.cluster_id);
                self.record = record.clone();
            }
            Action::ApplyServices => self.services = Found::Current,
            Action::AddFinalizer => self.has_finalizer = true,
            Action::RemoveFinalizer => self.has_finalizer = false,
            Action::ApplyStatefulSet { found, replicas, template, .. } => {
                assert_eq!(found.as_ref(), self.set.as_ref().map(|set| &set.handle));
                self.apply_stateful_set(*replicas, *template);
            }
            Action::WriteConfig { found, entries, .. } => self.write_config(found.as_ref(), entries),
            Action::WithdrawConfig { found, ordinal } => {
                let handle = self.handle();
                let config = self.config.as_mut().unwrap();
                assert_eq!(found, &config.handle);
                config.entries.remove(ordinal).expect("an entry to withdraw");
                config.handle = handle;
            }
            Action::LabelPod { pod, ordinal, role } => {
                let version = self.handle().resource_version;
                let process = self.pods.get_mut(ordinal).unwrap();
                assert_eq!(pod, &process.pod.handle);
                process.pod.role = *role;
                process.pod.handle.resource_version = version;
            }
            Action::DeletePod { pod, ordinal, .. } => {
                let process = self.pods.get_mut(ordinal).unwrap();
                assert_eq!(pod, &process.pod.handle);
                process.pod.is_deleting = true;
                process.pod.phase = PodPhase::Starting;
                let drops_data = self.desired.is_in_memory && self.record.cluster_id.is_some();
                assert!(!drops_data || self.has_quorum(), "a pod took the last majority's data with it");
            }
            Action::ApplyBudget { found, min_available } => {
                assert_eq!(found.as_ref(), self.budget.as_ref().map(|budget| &budget.handle));
                let handle = self.handle();
                let (owner, min_available) = (Owner::Ours, *min_available);
                self.budget = Some(Budget { handle, owner, min_available, is_current: true });
            }
            Action::WriteCertificate { found: None, holder, .. } => {
                let secrets = self.secrets.as_mut().expect("Secrets of ours");
                secrets.leaves.insert(*holder, Fact::Known(leaf(1, &[1])));
            }
            Action::SetAsideVolume { volume, ordinal, is_set_aside } => {
                self.volume(volume, *ordinal).is_set_aside = *is_set_aside;
            }
            Action::RetainVolume { volume, ordinal } => {
                self.volume(volume, *ordinal).is_retained = Fact::Known(true);
            }
            Action::ResizeVolume { volume, ordinal, size } => self.volume(volume, *ordinal).size = *size,
            Action::DeleteVolume { volume, ordinal, membership, .. } => {
                self.delete_volume(volume, *ordinal, membership.is_some());
            }
            other => self.ask_etcd(other),
        }
    }

    fn apply_stateful_set(&mut self, replicas: u32, template: Template) {
        if self.refuses == Some(template) {
            self.refused = self.refuses;
            return;
        }
        self.refused = self.refused.filter(|refused| *refused != template);
        let handle = self.handle();
        let (owner, has_our_guard) = (Owner::Ours, true);
        let labels_voters = labels_voters(&self.desired, &self.observe());
        self.set = Some(StatefulSet {
            handle,
            owner,
            replicas,
            template,
            has_our_guard,
            labels_voters,
            is_altered: false,
        });
    }

    fn delete_volume(&mut self, volume: &Handle, ordinal: Ordinal, is_agreed: bool) {
        let is_leaving = self.desired.is_deleting;
        assert!(is_agreed || self.record.cluster_id.is_none() || is_leaving);
        let owner = self.volumes[&ordinal].1.map(|data| data.member.0);
        let is_member = owner.is_some_and(|owner| self.ids().contains(&owner));
        let may = !is_member || is_leaving || self.record.cluster_id.is_none();
        assert!(may, "volume {ordinal:?} is that of a member");
        let entry = self.config.as_ref().and_then(|config| config.entries.get(&ordinal));
        let is_set_aside = entry.is_some_and(|entry| entry.purpose == Purpose::SetAside);
        let volume = self.volume(volume, ordinal);
        let is_kept =
            !is_set_aside && !volume.is_set_aside || is_leaving || volume.is_retained == Fact::Known(true);
        assert!(is_kept, "what is on volume {ordinal:?} was set aside");
        volume.is_deleting = true;
    }

    /// The volume that was seen, about to change.
    fn volume(&mut self, seen: &Handle, ordinal: Ordinal) -> &mut Volume {
        let version = self.handle().resource_version;
        let volume = &mut self.volumes.get_mut(&ordinal).unwrap().0;
        assert_eq!(seen, &volume.handle);
        volume.handle.resource_version = version;
        volume
    }

    fn write_config(&mut self, found: Option<&Handle>, entries: &BTreeMap<Ordinal, ConfigEntry>) {
        assert_eq!(found, self.config.as_ref().map(|config| &config.handle));
        let handle = self.handle();
        let mut all = self.config.take().map(|config| config.entries).unwrap_or_default();
        for (ordinal, entry) in entries {
            assert!(entry.purpose != Purpose::Seed || self.record.cluster_id.is_none());
            assert_ne!(all.get(ordinal), Some(entry), "nothing is written twice");
            all.insert(*ordinal, entry.clone());
        }
        self.config = Some(Config { handle, owner: Owner::Ours, entries: all, is_altered: false });
    }

    fn ask_etcd(&mut self, action: &Action) {
        assert!(self.has_quorum(), "{action:?} without a quorum");
        match action {
            Action::MemberAdd { membership, ordinal, pod, volume } => {
                self.answer(membership);
                assert_eq!(pod, &self.pods[ordinal].pod.handle.uid);
                assert_ne!(self.pods[ordinal].pod.role, Some(Role::Voter), "clients are led to a learner");
                assert_eq!(volume, &self.volumes[ordinal].0.handle.uid);
                self.add(*ordinal);
            }
            Action::MemberPromote { membership, member, .. } => {
                self.answer(membership);
                let found = self.etcd.members.iter_mut().find(|one| one.id == *member).unwrap();
                assert!(found.is_learner && found.is_started);
                found.is_learner = false;
                assert!(self.has_quorum(), "the promotion cost the quorum");
            }
            Action::MemberRemove { membership, member, ordinal } => {
                self.answer(membership);
                let found = *self.etcd.members.iter().find(|one| one.id == *member).unwrap();
                assert_eq!(found.ordinal, Some(*ordinal));
                let leads = self.etcd.leader == Some(*member) && self.process(&found).is_some();
                assert!(!leads || self.live_voters() < 2, "the leader is removed");
                self.etcd.members.retain(|one| one.id != *member);
                assert!(self.has_quorum(), "the removal cost the quorum");
            }
            Action::MoveLeader { membership, from, to } => {
                self.answer(membership);
                assert_eq!(self.etcd.leader, Some(*from));
                self.etcd.leader = Some(*to);
            }
            Action::AlarmDisarm { alarm, .. } => self.etcd.alarms.retain(|one| one != alarm),
            Action::AppendEntries { .. } => {
                for process in self.pods.values_mut().filter(|process| process.pod.phase == PodPhase::Up) {
                    process.has_saved_snapshot = true;
                }
            }
            Action::DowngradeCancel { .. } => self.etcd.downgrade = None,
            Action::DowngradeEnable { membership, target } => {
                self.answer(membership);
                self.etcd.downgrade = Some(*target);
            }
            other => panic!("{other:?} is not expected"),
        }
    }

    /// The list that a change was decided on is the list.
    fn answer(&self, guard: &MembershipGuard) {
        let membership = Membership { cluster_id: CLUSTER, members: self.etcd.members.clone() };
        assert_eq!(*guard, MembershipGuard::of(&membership));
    }

    /// Adds a learner, as etcd would.
    pub fn add(&mut self, ordinal: Ordinal) {
        assert_eq!(self.volumes[&ordinal].1, None, "a member is added for an empty volume");
        assert_eq!(self.live_voters(), self.voters(), "etcd adds only while all are connected");
        assert!(self.etcd.members.iter().all(|member| member.ordinal != Some(ordinal)));
        let (id, ordinal) = (self.next_member(), Some(ordinal));
        self.etcd.members.push(Member { id, ordinal, is_learner: true, is_started: false });
        self.etcd.members.sort_unstable();
        let most = usize::try_from(self.desired.replicas).unwrap() + 1;
        assert!(self.etcd.members.len() <= most, "{:?}", self.etcd.members);
    }
}
