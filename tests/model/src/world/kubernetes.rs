//! The StatefulSet's controller, kubelets, and the guard in each pod.

use gatehouse::kinds::etcdcluster::observation::{Fact, OwnPrint};

use super::*;

impl World {
    pub fn kubelet(&mut self, ordinal: Ordinal, does: Kubelet) -> Option<()> {
        if !self.is_due(ordinal, does) {
            return None;
        }
        match does {
            Kubelet::End => {
                if self.desired.is_in_memory {
                    self.objects.volumes.remove(&ordinal);
                }
                self.objects.pods.remove(&ordinal).map(drop)
            }
            Kubelet::Release => self.objects.volumes.remove(&ordinal).map(drop),
            Kubelet::Make => self.make(ordinal),
            Kubelet::Show => self.show(ordinal),
            Kubelet::Start => self.start(ordinal),
            Kubelet::Expand => {
                let volume = &mut self.objects.volumes.get_mut(&ordinal)?.volume;
                volume.capacity = Some(volume.size);
                Some(())
            }
        }
    }

    /// Whether there is any of that to do; of a start the guard judges by itself.
    pub fn is_due(&self, ordinal: Ordinal, does: Kubelet) -> bool {
        let place = self.objects.pods.get(&ordinal);
        let goes = self.objects.volumes.get(&ordinal).is_some_and(|disk| disk.volume.is_deleting);
        match does {
            Kubelet::End => place.is_some() && !self.stays(ordinal),
            Kubelet::Release => place.is_none() && goes,
            Kubelet::Make => place.is_none() && !goes && self.is_wanted(ordinal),
            Kubelet::Show => place.is_some_and(|place| {
                place.pod.phase == PodPhase::Waiting && place.told.as_ref() != self.entry(ordinal)
            }),
            Kubelet::Expand => {
                self.objects.volumes.get(&ordinal).is_some_and(|disk| disk.volume.is_growing())
            }
            Kubelet::Start => place.is_some_and(|place| {
                let different = PodPhase::Failing(Cause::Inconsistent);
                !place.pod.is_deleting
                    && (matches!(place.pod.phase, PodPhase::Waiting | PodPhase::Starting)
                        || place.pod.phase == different)
            }),
        }
    }

    /// All that needs no decision.
    pub fn hurry(&mut self) {
        let all = [Kubelet::End, Kubelet::Release, Kubelet::Make, Kubelet::Show];
        while self
            .ordinals()
            .into_iter()
            .any(|ordinal| all.into_iter().any(|does| self.kubelet(ordinal, does).is_some()))
        {}
    }

    /// Where anything is, or may come to be.
    pub fn ordinals(&self) -> Vec<Ordinal> {
        let wanted = self.objects.set.as_ref().map_or(0, |set| set.replicas);
        let mut ordinals: Vec<_> = (0..wanted).map(Ordinal).collect();
        ordinals.extend(self.objects.pods.keys().chain(self.objects.volumes.keys()));
        ordinals.sort_unstable();
        ordinals.dedup();
        ordinals
    }

    fn is_wanted(&self, ordinal: Ordinal) -> bool {
        self.objects.set.as_ref().is_some_and(|set| ordinal.0 < set.replicas)
    }

    /// Whether there is a pod that is not being deleted.
    pub fn stays(&self, ordinal: Ordinal) -> bool {
        let place = self.objects.pods.get(&ordinal);
        place.is_some_and(|place| !place.pod.is_deleting) && self.is_wanted(ordinal)
    }

    fn make(&mut self, ordinal: Ordinal) -> Option<()> {
        let template = self.objects.set.as_ref()?.template;
        if !self.desired.is_in_memory && !self.objects.volumes.contains_key(&ordinal) {
            self.leave_volume(ordinal);
        }
        let handle = self.next_identity("p");
        if self.desired.is_in_memory {
            self.leave_memory(ordinal, handle.clone());
        }
        let pod = Pod {
            handle,
            owner: Owner::Ours,
            template,
            phase: PodPhase::Waiting,
            is_deleting: false,
            startup_age: Age::Fresh,
            role: self.objects.set.as_ref()?.labels_voters.then_some(Role::Voter),
            own_print: None,
        };
        let told = self.entry(ordinal).cloned();
        self.objects.pods.insert(
            ordinal,
            Place {
                pod,
                told,
                pass: None,
                trusts: Trusted::new(),
                has_forced: false,
                is_silent: false,
                is_cut_off: false,
            },
        );
        Some(())
    }

    /// An empty volume.
    pub fn leave_volume(&mut self, ordinal: Ordinal) {
        let volume = Volume {
            handle: self.next_identity("v"),
            owner: Owner::Ours,
            size: 1 << 30,
            capacity: None,
            hindrance: None,
            is_expandable: Fact::Known(true),
            is_deleting: false,
            is_retained: Fact::Known(false),
            is_set_aside: false,
        };
        self.objects.volumes.insert(ordinal, Disk { volume, data: None });
    }

    /// What a pod has in memory: it is there as long as the pod.
    fn leave_memory(&mut self, ordinal: Ordinal, handle: Handle) {
        self.leave_volume(ordinal);
        let disk = self.objects.volumes.get_mut(&ordinal);
        if let Some(volume) = disk.map(|disk| &mut disk.volume) {
            let (is_expandable, is_retained) = (Fact::Absent, Fact::Absent);
            *volume = Volume { handle, size: 0, is_expandable, is_retained, ..volume.clone() };
        }
    }

    fn entry(&self, ordinal: Ordinal) -> Option<&ConfigEntry> {
        self.objects.config.as_ref()?.get(&ordinal)
    }

    fn show(&mut self, ordinal: Ordinal) -> Option<()> {
        let entry = self.entry(ordinal).cloned();
        self.objects.pods.get_mut(&ordinal)?.told = entry;
        Some(())
    }

    /// The guard, at the pod's start or once more before etcd's.
    fn start(&mut self, ordinal: Ordinal) -> Option<()> {
        let place = self.objects.pods.get(&ordinal)?;
        let told = place.pass.clone().or_else(|| place.told.clone())?;
        if told.template != place.pod.template || (told.purpose.is_stopped() && place.pass.is_none()) {
            return None;
        }
        let judged = self.judge(ordinal, &told)?;
        let phase = self.compared(ordinal, judged);
        if phase == self.objects.pods.get(&ordinal)?.pod.phase {
            return None;
        }
        let own_print = self.own_print(ordinal).filter(|_| phase == PodPhase::Failing(Cause::Inconsistent));
        let trusts = self.objects.keyring.as_ref().map(Keyring::of_peers).unwrap_or_default();
        let place = self.objects.pods.get_mut(&ordinal)?;
        (place.pod.phase, place.pod.own_print) = (phase, own_print);
        place.pass = Some(told);
        place.trusts = trusts;
        if phase == PodPhase::Up {
            place.pod.startup_age = Age::Fresh;
            let minor = place.pod.template.version.minor;
            if minor < self.etcd.version {
                self.breaks(Rule::RunsTooOld);
            }
            if minor < 6 {
                self.log_for_old_members();
            }
            let crosses = minor >= 7 && self.etcd.version < 7;
            let member =
                self.objects.volumes.get(&ordinal).and_then(|disk| disk.data).map(|data| data.member);
            if crosses && !member.is_some_and(|member| self.has_saved_snapshot(member)) {
                self.breaks(Rule::LogUnreadable);
            }
            self.agree_on_version();
        }
        Some(())
    }

    /// What etcd makes of the data beside those of the others that run, which it compares before it serves.
    fn compared(&self, ordinal: Ordinal, phase: PodPhase) -> PodPhase {
        let own = self.own_print(ordinal).filter(|_| self.compares_at_start && phase == PodPhase::Up);
        let others = self.voters().filter(|voter| voter.ordinal != Some(ordinal) && self.runs(voter));
        let mut others = others.filter_map(|voter| Some(self.data(voter)?.hash()));
        let differs = own.is_some_and(|own| others.any(|hash| hash != own.hash));
        if differs { PodPhase::Failing(Cause::Inconsistent) } else { phase }
    }

    /// The hash of the data at an ordinal.
    fn own_print(&self, ordinal: Ordinal) -> Option<OwnPrint> {
        let data = self.objects.volumes.get(&ordinal)?.data?;
        Some(OwnPrint { member: data.member, revision: 1, compact_revision: 0, hash: data.hash() })
    }

    /// What the guard makes of the volume, and etcd of its data; nothing while the guard waits.
    fn judge(&mut self, ordinal: Ordinal, told: &ConfigEntry) -> Option<PodPhase> {
        let place = &self.objects.pods[&ordinal];
        let disk = self.objects.volumes.get(&ordinal)?;
        let begins = told.pod.as_ref() == Some(&place.pod.handle.uid);
        let is_its_own = disk.volume.handle.uid == told.volume;
        Some(match (told.purpose, disk.data) {
            (Purpose::Seed | Purpose::Join, None) | (Purpose::Force, Some(_)) if !begins => return None,
            (Purpose::Seed, None) if is_its_own => {
                self.form(ordinal);
                PodPhase::Up
            }
            (Purpose::Join, None) if is_its_own => {
                let member = told.member?;
                let data = Data::new(self.cluster(), member, 0);
                self.objects.volumes.get_mut(&ordinal)?.data = Some(data);
                if self.member(member).is_some() { PodPhase::Up } else { PodPhase::Failing(Cause::Removed) }
            }
            (_, None) => PodPhase::Failing(Cause::DataLost),
            (_, Some(data)) if told.member.is_some_and(|told| told != data.member) => {
                PodPhase::Failing(Cause::DataForeign)
            }
            (Purpose::Force, Some(data)) if !place.has_forced => {
                self.force(ordinal, data);
                PodPhase::Up
            }
            (_, Some(data)) if self.member(data.member).is_some() => PodPhase::Up,
            (_, Some(data)) => {
                if data.is_left_out {
                    // It serves beside the cluster that was made without it.
                    self.breaks(Rule::RemovedMemberRuns);
                }
                PodPhase::Failing(Cause::Removed)
            }
        })
    }

    /// Makes a cluster of one member's data.
    fn force(&mut self, ordinal: Ordinal, data: Data) {
        let others = self.voters().filter(|voter| voter.id != data.member);
        if others.filter(|voter| self.runs(voter)).count() > 0 {
            self.breaks(Rule::ForcedBesideOthers);
        }
        if self.etcd.members.len() == 1 && self.etcd.has_forced {
            self.breaks(Rule::ForcedTwice);
        }
        let now = self.cluster();
        for other in self.objects.volumes.values_mut().filter_map(|disk| disk.data.as_mut()) {
            other.is_left_out |= other.cluster == now && other.member != data.member;
        }
        self.etcd.members.retain(|member| member.id == data.member);
        for member in &mut self.etcd.members {
            member.is_learner = false;
        }
        self.etcd.leader = Some(data.member);
        self.etcd.has_forced = true;
        // What it never had is what the documentation says is lost.
        self.etcd.index = data.index;
        self.etcd.acknowledged = self.etcd.acknowledged.min(data.index);
        if let Some(place) = self.objects.pods.get_mut(&ordinal) {
            place.has_forced = true;
        }
    }

    /// The process ends, and the kubelet starts the container again.
    pub fn kill(&mut self, ordinal: Ordinal) -> Option<()> {
        let place = self.objects.pods.get_mut(&ordinal).filter(|place| place.pod.phase == PodPhase::Up)?;
        place.pod.phase = PodPhase::Starting;
        place.is_silent = false;
        Some(())
    }

    /// The pod is to go, and the StatefulSet makes another one. Until it has ended it goes on serving.
    pub fn evict(&mut self, ordinal: Ordinal) -> Option<()> {
        let place = self.objects.pods.get_mut(&ordinal).filter(|place| !place.pod.is_deleting)?;
        place.pod.is_deleting = true;
        Some(())
    }

    /// A volume is gone with its claim; its pod has nothing to run on.
    pub fn lose(&mut self, ordinal: Ordinal) -> Option<()> {
        self.objects.volumes.remove(&ordinal)?;
        self.objects.pods.remove(&ordinal);
        Some(())
    }

    /// The ConfigMap is deleted, or what is in it.
    pub fn lose_config(&mut self) -> Option<()> {
        if !self.empties_config {
            return self.objects.config.take().map(drop);
        }
        self.objects.config.as_mut().filter(|entries| !entries.is_empty()).map(BTreeMap::clear)
    }

    /// An object is deleted.
    pub fn lose_object(&mut self, object: Object) -> Option<()> {
        match object {
            Object::StatefulSet => self.objects.set.take().map(drop),
            Object::Services => std::mem::take(&mut self.objects.has_services).then_some(()),
            Object::Budget => self.objects.budget.take().map(drop),
            Object::Config => self.objects.config.take().map(drop),
        }
    }

    /// The claim is to go, which it does once no pod uses it. That of a pod which is going anyway is beyond help.
    pub fn delete_claim(&mut self, ordinal: Ordinal) -> Option<()> {
        self.stays(ordinal).then_some(())?;
        let disk = self.objects.volumes.get_mut(&ordinal).filter(|disk| !disk.volume.is_deleting)?;
        disk.volume.is_deleting = true;
        Some(())
    }

    /// Whether a claim is going that only a pod holds, with the data of a member of etcd's list.
    pub fn holds_claim(&self, ordinal: Ordinal) -> bool {
        let disk = self.objects.volumes.get(&ordinal).filter(|disk| disk.volume.is_deleting);
        let data = disk.and_then(|disk| disk.data).filter(|data| self.member(data.member).is_some());
        data.is_some() && self.objects.pods.contains_key(&ordinal) && !self.desired.is_deleting
    }

    /// Whether the member at an ordinal votes and answers no other member.
    pub fn is_silent(&self, ordinal: Ordinal) -> bool {
        self.objects.pods.get(&ordinal).is_some_and(|place| place.is_silent)
    }

    /// All such claims. Nothing speaks of them where none is ever deleted under its pod.
    pub fn held_claims(&self) -> BTreeSet<Ordinal> {
        self.objects.volumes.keys().copied().filter(|ordinal| self.holds_claim(*ordinal)).collect()
    }

    /// The smallest identity of that sort that nothing speaks of.
    fn next_identity(&self, sort: &str) -> Handle {
        let told = self.objects.config.iter().flat_map(BTreeMap::values);
        let shown = self.objects.pods.values().flat_map(|place| place.told.iter().chain(&place.pass));
        let entries = told.chain(shown).flat_map(|entry| entry.pod.iter().chain([&entry.volume]));
        let pods = self.objects.pods.values().map(|place| &place.pod.handle.uid);
        let disks = self.objects.volumes.values().map(|disk| &disk.volume.handle.uid);
        let recovery = self.objects.record.recovery.iter().filter_map(|recovery| recovery.pod.as_ref());
        let meant = self.operators.iter().flat_map(|operator| &operator.rest).flat_map(meant);
        let spoken: BTreeSet<_> =
            entries.chain(pods).chain(disks).chain(recovery).map(|uid| uid.0.clone()).chain(meant).collect();
        let free = (1..u32::MAX).map(|number| format!("{sort}{number}")).find(|uid| !spoken.contains(uid));
        identity(&free.expect("a number"))
    }
}

/// The identities that an effect which is under way speaks of.
fn meant(effect: &Effect) -> Vec<String> {
    match effect {
        Effect::LabelPod { pod: handle, .. }
        | Effect::DeletePod { pod: handle, .. }
        | Effect::SetAsideVolume { volume: handle, .. }
        | Effect::RetainVolume { volume: handle, .. }
        | Effect::ResizeVolume { volume: handle, .. }
        | Effect::DeleteVolume { volume: handle, .. } => vec![handle.uid.0.clone()],
        Effect::MemberAdd { pod, volume, .. } => vec![pod.0.clone(), volume.0.clone()],
        Effect::WriteConfig { entries, .. } => entries
            .values()
            .flat_map(|entry| entry.pod.iter().chain([&entry.volume]).map(|uid| uid.0.clone()))
            .collect(),
        _ => Vec::new(),
    }
}
