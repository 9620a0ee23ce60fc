//! Etcd's members and their data, as pods and volumes have them. What etcd makes of a call is in `kit::membership`.

use super::*;
use kit::membership::{Answer, Call, Cluster, Replica, Window, quorum};

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

    /// Whether the process of a member runs, and the others hear it.
    pub fn runs(&self, member: &Member) -> bool {
        let place = member.ordinal.and_then(|ordinal| self.objects.pods.get(&ordinal));
        let takes_part = place.is_some_and(|place| place.pod.phase == PodPhase::Up && !place.is_cut_off);
        takes_part && self.data(member).is_some()
    }

    /// The members that run.
    pub fn up(&self) -> BTreeSet<MemberId> {
        self.etcd.members.iter().filter(|member| self.runs(member)).map(|member| member.id).collect()
    }

    /// Whether a majority of the voters runs in pods that are not being deleted.
    pub fn keeps_quorum(&self) -> bool {
        let stays = |voter: &&Member| voter.ordinal.is_some_and(|ordinal| self.stays(ordinal));
        let kept = self.voters().filter(stays).filter(|voter| self.runs(voter)).count();
        kept >= quorum(self.voters().count())
    }

    /// Whether a member has all of the log.
    pub fn is_current(&self, member: &Member) -> bool {
        self.data(member).is_some_and(|data| data.index == self.etcd.index)
    }

    /// Voters that run in pods which are not being deleted, and have all of the log; one left out.
    pub fn current_voters_but(&self, left_out: Option<Ordinal>) -> usize {
        let stays = |voter: &&Member| {
            voter.ordinal.is_some_and(|ordinal| Some(ordinal) != left_out && self.stays(ordinal))
        };
        self.voters().filter(stays).filter(|voter| self.runs(voter) && self.is_current(voter)).count()
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

    /// Whether a voter leads, and one that runs answers the operator. Of one that leads and does not answer, another one
    /// gets the list.
    pub fn is_heard(&self) -> bool {
        self.leads() && self.answers()
    }

    /// Whether there is a quorum, as far as those tell that answer.
    pub fn seems_led(&self) -> bool {
        self.has_quorum() && self.answers()
    }

    fn answers(&self) -> bool {
        let mut running = self.voters().filter(|voter| self.runs(voter));
        running.any(|voter| voter.ordinal.is_some_and(|ordinal| !self.is_silent(ordinal)))
    }

    /// Whether clients find a member by the Service.
    pub fn is_served(&self) -> bool {
        let voters = self.voters().filter(|voter| self.runs(voter));
        let mut pods = voters.filter_map(|voter| self.objects.pods.get(&voter.ordinal?));
        pods.any(|place| place.pod.role == Some(Role::Voter))
    }

    /// The smallest majorities of voters that run, with the leader in each.
    pub fn majorities(&self) -> Vec<BTreeSet<MemberId>> {
        self.agreed().majorities()
    }

    /// Appends an entry that these take, with all before it.
    pub fn commit(&mut self, members: &BTreeSet<MemberId>) {
        self.on_etcd(|cluster| cluster.commit(members));
    }

    fn on_etcd<T>(&mut self, change: impl FnOnce(&mut Cluster) -> T) -> T {
        let mut cluster = self.agreed();
        let changed = change(&mut cluster);
        self.take(cluster);
        changed
    }

    /// Etcd as the model of it has it, which is held against real members.
    fn agreed(&self) -> Cluster {
        let index = self.etcd.index;
        let replicas = self.etcd.members.iter().filter_map(|member| {
            let (data, runs) = (self.data(member)?, self.runs(member));
            // A member that lacks an entry lacks much here; and the operator asks only where the learner answers.
            Some((member.id, Replica { index: data.index, runs, is_heard: runs && data.index == index }))
        });
        let replicas = replicas.collect();
        Cluster { members: self.etcd.members.clone(), leader: self.etcd.leader, index, replicas }
    }

    fn take(&mut self, cluster: Cluster) {
        let now = self.cluster();
        for data in self.objects.volumes.values_mut().filter_map(|disk| disk.data.as_mut()) {
            if let Some(replica) = cluster.replicas.get(&data.member).filter(|_| data.cluster == now) {
                data.index = replica.index;
            }
        }
        (self.etcd.members, self.etcd.leader, self.etcd.index) =
            (cluster.members, cluster.leader, cluster.index);
    }

    /// Asks a member that has been connected for long enough, or not, to all that run. Whether it is done.
    fn ask(&mut self, asked: MemberId, call: Call) -> bool {
        let mut outcomes = self.agreed().outcomes(asked, call, Window::Past).into_iter();
        let Some((answer, cluster)) = outcomes.next() else { return false };
        self.take(cluster);
        answer == Answer::Done
    }

    fn ask_leader(&mut self, call: Call) -> bool {
        self.etcd.leader.is_some_and(|leader| self.leads() && self.ask(leader, call))
    }

    pub fn catch_up(&mut self, id: MemberId) -> Option<()> {
        self.is_behind(id).then(|| self.on_etcd(|cluster| cluster.catch_up(id)))?
    }

    /// Whether a member that runs lacks some of the log and may have it.
    pub fn is_behind(&self, id: MemberId) -> bool {
        let member = self.member(id).filter(|member| self.leads() && self.runs(member));
        member.is_some_and(|member| {
            !member.is_started || self.data(member).is_some_and(|data| data.index < self.etcd.index)
        })
    }

    /// A voter comes to lead, where a majority votes for it.
    pub fn elect(&mut self, id: MemberId) -> Option<()> {
        let may_lead =
            self.etcd.leader != Some(id) && self.member(id).is_some_and(|member| self.runs(member));
        may_lead.then(|| self.on_etcd(|cluster| cluster.elect(id)))??;
        self.agree_on_version();
        Some(())
    }

    pub fn agree_on_version(&mut self) {
        let running: Vec<_> = self
            .etcd
            .members
            .iter()
            .filter(|member| self.runs(member))
            .filter_map(|member| Some(self.objects.pods.get(&member.ordinal?)?.pod.template.version.minor))
            .collect();
        if self.leads() && running.len() == self.etcd.members.len() {
            self.agree_on(&running.into_iter().collect());
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
        let data = Data::new(self.cluster(), id, self.etcd.index);
        self.objects.volumes.get_mut(&ordinal).expect("its volume").data = Some(data);
    }

    /// Adds a member. Whether etcd did.
    pub fn add(&mut self, ordinal: Ordinal, is_learner: bool) -> bool {
        let id = self.next_member();
        self.ask_leader(Call::Add { id, ordinal, is_learner })
    }

    /// Makes a learner a voter. Whether etcd did.
    pub fn promote(&mut self, id: MemberId) -> bool {
        self.ask_leader(Call::Promote(id))
    }

    pub fn move_leader(&mut self, from: MemberId, to: MemberId) -> bool {
        self.leads() && self.ask(from, Call::MoveLeader(to))
    }

    /// Removes a member. Whether etcd did, or had.
    pub fn remove(&mut self, id: MemberId) -> bool {
        let Some(member) = self.member(id).copied() else { return true };
        let is_done = self.ask_leader(Call::Remove(id));
        if let Some(place) = member.ordinal.and_then(|at| self.objects.pods.get_mut(&at)) {
            // Its etcd learns of it, and ends.
            if is_done && place.pod.phase == PodPhase::Up {
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
