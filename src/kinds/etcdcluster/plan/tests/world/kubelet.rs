//! Everybody but the operator: the StatefulSet's controller, the kubelet, the guard in the pod, and etcd by itself.

use super::*;

impl World {
    /// A turn of everybody else. Whether anything moved, indices aside.
    pub fn turn(&mut self) -> bool {
        let before = (self.pods.clone(), self.volume_states(), self.etcd_state());
        self.delete();
        self.make();
        self.start();
        self.elect();
        self.replicate();
        self.check();
        before != (self.pods.clone(), self.volume_states(), self.etcd_state())
    }

    fn volume_states(&self) -> Vec<(Ordinal, Volume, Option<MemberId>)> {
        let states = self.volumes.iter();
        states
            .map(|(ordinal, (volume, data))| (*ordinal, volume.clone(), data.map(|data| data.member)))
            .collect()
    }

    fn etcd_state(&self) -> Etcd {
        Etcd { index: 0, ..self.etcd.clone() }
    }

    fn delete(&mut self) {
        let replicas = self.set.as_ref().map_or(0, |set| set.replicas);
        self.pods.retain(|ordinal, process| !process.pod.is_deleting && ordinal.0 < replicas);
        let (pods, in_memory) = (&self.pods, self.desired.is_in_memory);
        self.volumes.retain(|ordinal, (volume, _)| {
            !in_memory || pods.get(ordinal).is_some_and(|process| process.pod.handle.uid == volume.handle.uid)
        });
        self.volumes.retain(|ordinal, (volume, _)| !volume.is_deleting || pods.contains_key(ordinal));
    }

    fn make(&mut self) {
        let Some(set) = self.set.clone() else { return };
        for ordinal in (0..set.replicas).map(Ordinal) {
            if self.pods.contains_key(&ordinal) {
                continue;
            }
            let handle = self.handle();
            if !self.volumes.contains_key(&ordinal) {
                let claim = if self.desired.is_in_memory { handle.clone() } else { self.handle() };
                let volume = Volume {
                    handle: claim,
                    owner: Owner::Ours,
                    size: 1 << 30,
                    capacity: None,
                    hindrance: None,
                    is_expandable: Fact::Known(true),
                    is_deleting: false,
                    is_retained: Fact::Known(false),
                    is_set_aside: false,
                };
                self.volumes.insert(ordinal, (volume, None));
            }
            let pod = Pod {
                handle,
                owner: Owner::Ours,
                template: set.template,
                phase: PodPhase::Waiting,
                is_deleting: false,
                startup_age: Age::Fresh,
                role: set.labels_voters.then_some(Role::Voter),
                own_print: None,
            };
            self.pods.insert(ordinal, Process { pod, has_saved_snapshot: false });
        }
    }

    fn start(&mut self) {
        let waiting: Vec<_> = self
            .pods
            .iter()
            .filter(|(_, process)| process.pod.phase == PodPhase::Waiting && !process.pod.is_deleting)
            .map(|(ordinal, process)| (*ordinal, process.pod.template))
            .collect();
        for (ordinal, template) in waiting {
            let entry = self.config.as_ref().and_then(|config| config.entries.get(&ordinal)).cloned();
            let told = entry.filter(|entry| !entry.purpose.is_stopped() && entry.template == template);
            let Some(entry) = told else { continue };
            let phase = if self.bad_versions.contains(&template.version) {
                PodPhase::Pending(Some(Cause::Image))
            } else {
                self.guard(ordinal, &entry)
            };
            let process = self.pods.get_mut(&ordinal).unwrap();
            process.pod.phase = phase;
            if !matches!(phase, PodPhase::Up | PodPhase::Waiting) {
                process.pod.startup_age = Age::PastDeadline;
            }
        }
        self.publish();
    }

    /// What the guard in the pod says, and etcd behind it.
    fn guard(&mut self, ordinal: Ordinal, entry: &ConfigEntry) -> PodPhase {
        let data = self.volumes[&ordinal].1;
        let begins = entry.pod.as_ref() == Some(&self.pods[&ordinal].pod.handle.uid);
        match (entry.purpose, data) {
            (Purpose::Seed | Purpose::Join, None) | (Purpose::Force, Some(_)) if !begins => PodPhase::Waiting,
            (Purpose::Seed, None) => self.form(ordinal),
            (Purpose::Join, None) => {
                let member = entry.member.expect("a joiner's entry names its member");
                self.volumes.get_mut(&ordinal).unwrap().1 = Some(Data { member, index: 0 });
                PodPhase::Up
            }
            (_, None) => PodPhase::Failing(Cause::DataLost),
            (Purpose::Force, Some(data)) => {
                assert!(entry.raft_index.is_some_and(|index| index <= data.index), "the copy has a name");
                assert!(self.etcd.members.len() > 1, "a cluster was made of the data before");
                self.etcd.members.retain(|member| member.id == data.member);
                self.etcd.leader = Some(data.member);
                self.etcd.index = data.index;
                PodPhase::Up
            }
            (_, Some(data)) if entry.member.is_some_and(|told| told != data.member) => {
                PodPhase::Failing(Cause::DataForeign)
            }
            (_, Some(data)) if !self.ids().contains(&data.member.0) => PodPhase::Failing(Cause::Removed),
            (_, Some(_)) => PodPhase::Up,
        }
    }

    fn form(&mut self, ordinal: Ordinal) -> PodPhase {
        assert_eq!(self.record.cluster_id, None, "a seed after the cluster was recorded");
        let id = self.next_member();
        self.etcd.members = vec![Member { id, ordinal: Some(ordinal), is_learner: false, is_started: true }];
        self.etcd.version = self.pods[&ordinal].pod.template.version.minor;
        self.etcd.clusters_formed += 1;
        self.volumes.get_mut(&ordinal).unwrap().1 = Some(Data { member: id, index: self.etcd.index });
        PodPhase::Up
    }

    pub fn next_member(&mut self) -> MemberId {
        self.serial += 1;
        MemberId(1000 + self.serial)
    }

    /// A member that runs tells its name, where there is a quorum.
    fn publish(&mut self) {
        if !self.has_quorum() {
            return;
        }
        let running: BTreeSet<_> =
            self.etcd.members.iter().filter(|member| self.process(member).is_some()).map(|m| m.id).collect();
        for member in &mut self.etcd.members {
            member.is_started |= running.contains(&member.id);
        }
    }

    fn elect(&mut self) {
        let voters = self.etcd.members.iter().filter(|member| !member.is_learner);
        let live: Vec<_> =
            voters.filter(|member| self.process(member).is_some()).map(|member| member.id).collect();
        if self.etcd.leader.is_none_or(|leader| !live.contains(&leader)) {
            self.etcd.leader = live.first().copied().filter(|_| self.has_quorum());
        }
        let minor = |member| self.process(member).map(|process| process.pod.template.version.minor);
        let versions: Vec<_> = self.etcd.members.iter().map(minor).collect();
        if self.has_quorum() && versions.iter().all(Option::is_some) {
            let least = versions.into_iter().flatten().min().unwrap_or_default();
            match self.etcd.downgrade {
                Some(target) if least == target => self.etcd.downgrade = None,
                Some(target) => self.etcd.version = target,
                None => self.etcd.version = self.etcd.version.max(least),
            }
        }
    }

    /// A client writes; the members that run have it.
    fn replicate(&mut self) {
        if !self.has_quorum() {
            return;
        }
        self.etcd.index += 10;
        let running: Vec<_> =
            self.etcd.members.iter().filter(|member| self.process(member).is_some()).copied().collect();
        for member in running {
            let place = member.ordinal.unwrap();
            if let Some(data) = &mut self.volumes.get_mut(&place).unwrap().1 {
                data.index = self.etcd.index;
            }
        }
    }
}
