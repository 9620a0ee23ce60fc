//! Etcd's members, its log, and what etcd itself refuses.

use super::*;

impl World {
    /// The cluster that was formed last.
    pub fn cluster(&self) -> ClusterId {
        ClusterId(0xc + self.etcd.clusters_formed)
    }

    pub fn voters(&self) -> impl Iterator<Item = &Member> {
        self.etcd.members.iter().filter(|member| !member.is_learner)
    }

    pub fn member(&self, id: MemberId) -> Option<&Member> {
        self.etcd.members.iter().find(|member| member.id == id)
    }

    /// The data of a member, where its volume is there and holds them.
    pub fn data(&self, member: &Member) -> Option<&Data> {
        let disk = self.objects.volumes.get(&member.ordinal?)?;
        disk.data.as_ref().filter(|data| data.member == member.id && data.cluster == self.cluster())
    }

    /// Whether the process of a member runs.
    pub fn runs(&self, member: &Member) -> bool {
        let place = member.ordinal.and_then(|ordinal| self.objects.pods.get(&ordinal));
        place.is_some_and(|place| place.pod.phase == PodPhase::Up) && self.data(member).is_some()
    }

    /// The members that run.
    pub fn up(&self) -> BTreeSet<MemberId> {
        self.etcd.members.iter().filter(|member| self.runs(member)).map(|member| member.id).collect()
    }

    pub fn live_voters(&self) -> usize {
        self.voters().filter(|member| self.runs(member)).count()
    }

    pub fn has_quorum(&self) -> bool {
        let voters = self.voters().count();
        voters > 0 && self.live_voters() >= quorum(voters)
    }

    /// Whether a voter that runs leads.
    pub fn leads(&self) -> bool {
        let leader = self.etcd.leader.and_then(|leader| self.member(leader));
        leader.is_some_and(|leader| !leader.is_learner && self.runs(leader)) && self.has_quorum()
    }

    /// Whether entries can be committed.
    pub fn commits(&self) -> bool {
        self.leads()
    }

    /// Whether clients find a member by the Service.
    pub fn is_served(&self) -> bool {
        let voters = self.voters().filter(|voter| self.runs(voter));
        let mut pods = voters.filter_map(|voter| self.objects.pods.get(&voter.ordinal?));
        pods.any(|place| place.pod.role == Some(Role::Voter))
    }

    /// The smallest majorities of voters that run, with the leader in each.
    pub fn majorities(&self) -> Vec<BTreeSet<MemberId>> {
        let Some(leader) = self.etcd.leader.filter(|_| self.commits()) else { return Vec::new() };
        let others: Vec<_> = self
            .voters()
            .filter(|member| member.id != leader && self.runs(member))
            .map(|member| member.id)
            .collect();
        let wanted = quorum(self.voters().count()) - 1;
        let mut majorities = Vec::new();
        for chosen in 0_u32..1 << others.len() {
            if chosen.count_ones() as usize != wanted {
                continue;
            }
            let members = others.iter().enumerate().filter(|(at, _)| chosen & (1 << at) != 0);
            majorities.push(members.map(|(_, id)| *id).chain([leader]).collect());
        }
        majorities
    }

    /// Appends an entry that these take, with all before it.
    pub fn commit(&mut self, members: &BTreeSet<MemberId>) {
        self.etcd.index += 1;
        let index = self.etcd.index;
        for disk in self.objects.volumes.values_mut() {
            if let Some(data) = disk.data.as_mut().filter(|data| members.contains(&data.member)) {
                data.index = index;
            }
        }
    }

    /// Commits a change of the members by a majority of the voters of before: the leader and the first ones.
    fn change(&mut self, change: impl FnOnce(&mut Vec<Member>)) -> bool {
        let Some(majority) = self.majorities().into_iter().next() else { return false };
        self.commit(&majority);
        change(&mut self.etcd.members);
        self.etcd.members.sort_unstable();
        true
    }

    pub fn catch_up(&mut self, id: MemberId) -> Option<()> {
        let member = *self.member(id).filter(|member| self.leads() && self.runs(member))?;
        let index = self.etcd.index;
        let data = self.objects.volumes.get_mut(&member.ordinal?)?.data.as_mut()?;
        let lags = std::mem::replace(&mut data.index, index) < index;
        let found = self.etcd.members.iter_mut().find(|found| found.id == id)?;
        let is_news = !std::mem::replace(&mut found.is_started, true);
        (lags || is_news).then_some(())
    }

    /// A voter leads for whom a majority would vote: it has all that they have.
    pub fn elect(&mut self, id: MemberId) -> Option<()> {
        let member = self.member(id).filter(|member| !member.is_learner && self.runs(member))?;
        let index = self.data(member)?.index;
        let votes = self.voters().filter(|voter| self.runs(voter));
        let votes = votes.filter(|voter| self.data(voter).is_some_and(|data| data.index <= index)).count();
        if votes < quorum(self.voters().count()) || self.etcd.leader == Some(id) {
            return None;
        }
        self.etcd.leader = Some(id);
        self.agree_on_version();
        Some(())
    }

    pub fn agree_on_version(&mut self) {
        let minors: Vec<_> = self
            .etcd
            .members
            .iter()
            .filter(|member| self.runs(member))
            .filter_map(|member| Some(self.objects.pods.get(&member.ordinal?)?.pod.template.version.minor))
            .collect();
        if self.leads() && minors.len() == self.etcd.members.len() {
            let least = minors.into_iter().min().unwrap_or_default();
            self.etcd.version = self.etcd.version.max(least);
        }
    }

    pub fn form(&mut self, ordinal: Ordinal) {
        if self.objects.record.cluster_id.is_some() || self.etcd.acknowledged > 0 {
            self.breaks(Rule::SecondCluster);
        }
        let id = self.next_member();
        self.etcd.members = vec![Member { id, ordinal: Some(ordinal), is_learner: false, is_started: true }];
        self.etcd.leader = Some(id);
        self.etcd.version = self.objects.pods[&ordinal].pod.template.version.minor;
        self.etcd.clusters_formed += 1;
        self.etcd.index += 1;
        let data = Data { cluster: self.cluster(), member: id, index: self.etcd.index };
        self.objects.volumes.get_mut(&ordinal).expect("its volume").data = Some(data);
    }

    /// Adds a member, as etcd would: while all voters are connected, or enough of them for the next one.
    pub fn add(&mut self, ordinal: Ordinal, is_learner: bool) -> bool {
        if self.live_voters() < self.voters().count() {
            return false;
        }
        let id = self.next_member();
        let member = Member { id, ordinal: Some(ordinal), is_learner, is_started: false };
        self.change(|members| members.push(member))
    }

    /// Makes a learner a voter that has all but the last of the log.
    pub fn promote(&mut self, id: MemberId) -> bool {
        let index = self.etcd.index;
        let is_ready = self.member(id).is_some_and(|member| {
            member.is_learner
                && self.runs(member)
                && self.data(member).is_some_and(|data| data.index == index)
        });
        is_ready
            && self.change(|members| {
                members
                    .iter_mut()
                    .filter(|member| member.id == id)
                    .for_each(|member| member.is_learner = false);
            })
    }

    /// Removes a member, where those that are left and run are a majority of what is left.
    pub fn remove(&mut self, id: MemberId) -> bool {
        let Some(member) = self.member(id).copied() else { return true };
        let left = self.voters().filter(|voter| voter.id != id);
        let (live, all) =
            left.fold((0, 0), |(live, all), voter| (live + usize::from(self.runs(voter)), all + 1));
        if !member.is_learner && (all == 0 || live < quorum(all)) {
            return false;
        }
        let is_done = self.change(|members| members.retain(|member| member.id != id));
        if is_done && self.etcd.leader == Some(id) {
            self.etcd.leader = None;
        }
        if is_done && let Some(place) = member.ordinal.and_then(|at| self.objects.pods.get_mut(&at)) {
            // Its etcd learns of it, and ends.
            if place.pod.phase == PodPhase::Up {
                place.pod.phase = PodPhase::Failing(Cause::Removed);
            }
        }
        is_done
    }

    /// The smallest identity that nothing speaks of.
    fn next_member(&self) -> MemberId {
        let entries = self.objects.config.iter().flat_map(BTreeMap::values);
        let shown = self.objects.pods.values().flat_map(|place| place.told.iter().chain(&place.pass));
        let told = entries.chain(shown).filter_map(|entry| entry.member);
        let disks = self.objects.volumes.values().filter_map(|disk| Some(disk.data?.member));
        let spoken: BTreeSet<_> =
            self.etcd.members.iter().map(|member| member.id).chain(told).chain(disks).collect();
        (1..u64::MAX).map(MemberId).find(|id| !spoken.contains(id)).expect("a number")
    }

    /// Forgets how long the log is: only who has more than whom matters.
    pub fn forget(&mut self) {
        let disks = self.objects.volumes.values().filter_map(|disk| Some(disk.data?.index));
        let all: BTreeSet<_> = disks.chain([0, self.etcd.index, self.etcd.acknowledged]).collect();
        let rank = |index: u64| all.iter().position(|one| *one == index).map_or(0, |rank| rank as u64);
        for data in self.objects.volumes.values_mut().filter_map(|disk| disk.data.as_mut()) {
            data.index = rank(data.index);
        }
        self.etcd.index = rank(self.etcd.index);
        self.etcd.acknowledged = rank(self.etcd.acknowledged);
    }
}
