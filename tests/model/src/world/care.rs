//! What is on members' disks beside the log: data that may differ from the others', a database that may be full, and
//! what etcd says of both; and what members are to run less than.

use std::collections::BTreeSet;

use gatehouse::kinds::etcdcluster::consistency::decision::{Print, verdict_of};
use gatehouse::kinds::etcdcluster::observation::{Alarm, AlarmKind, Audit, Fact, Keyspace};

use super::*;

/// What a member has on its volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Data {
    pub cluster: ClusterId,
    pub member: MemberId,
    /// The last entry of the log that it has, as its rank among all that matter.
    pub index: u64,
    /// Whether the cluster was made of another member's data, and these know nothing of it.
    pub is_left_out: bool,
    /// Whether they differ from what all members have agreed on.
    pub is_corrupt: bool,
    pub database: Database,
    /// Whether free space was given back lately.
    pub was_defragmented: bool,
}

impl Data {
    /// Data that are sound.
    pub fn new(cluster: ClusterId, member: MemberId, index: u64) -> Self {
        let (database, was_defragmented) = (Database::default(), false);
        Self { cluster, member, index, is_left_out: false, is_corrupt: false, database, was_defragmented }
    }

    /// The hash of its keys. What goes wrong goes wrong in one way here and in another there.
    pub fn hash(&self) -> u32 {
        u32::try_from(self.member.0).ok().filter(|_| self.is_corrupt).unwrap_or(0)
    }
}

/// The largest size of a database.
const QUOTA: u64 = 1 << 31;

/// A database file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Database {
    /// It is far from its quota.
    #[default]
    Small,
    /// It has reached its quota, and all of it is in use.
    Full,
    /// It has reached its quota, and little of it is in use.
    Loose,
    /// It is far from its quota, and much of it is free.
    Spare,
    /// The same of one so small that nothing is won.
    Slight,
}

impl Database {
    /// What a member says of it: its size, and how much of that is in use, and its quota.
    pub const fn sizes(self) -> (u64, u64, u64) {
        const LITTLE: u64 = 1 << 20;
        match self {
            Self::Small => (LITTLE, LITTLE, QUOTA),
            Self::Full => (QUOTA, QUOTA, QUOTA),
            Self::Loose => (QUOTA, LITTLE, QUOTA),
            Self::Spare => (QUOTA / 4, LITTLE, QUOTA),
            Self::Slight => (32 * LITTLE, LITTLE, QUOTA),
        }
    }
}

impl World {
    /// What becomes of data and databases, and of what members are to run.
    pub fn care(&mut self, action: &Action) -> Option<()> {
        match action {
            Action::Corrupt(ordinal) => self.corrupt(*ordinal),
            Action::Suspect(member) => self.suspect(*member),
            Action::Compare => self.compare(),
            Action::Fill => self.fill(),
            Action::Loosen => self.loosen(),
            Action::Agree => self.agree(),
            _ => None,
        }
    }

    /// A voter's data come to differ from the others'.
    fn corrupt(&mut self, ordinal: Ordinal) -> Option<()> {
        let is_voters = |data: &Data| self.voters().any(|voter| voter.id == data.member);
        let data =
            self.objects.volumes.get(&ordinal)?.data.filter(|data| !data.is_corrupt && is_voters(data))?;
        self.objects.volumes.get_mut(&ordinal)?.data = Some(Data { is_corrupt: true, ..data });
        Some(())
    }

    /// What was found says nothing of other members or of another suspicion, but that data differ.
    pub fn doubt(&mut self) {
        let differ = self.audit.take().filter(|found| *found != Audit::Equal);
        self.audit = differ.map(|_| Audit::Different { revision: 0, minority: BTreeSet::new() });
    }

    /// Etcd says of a member, right or wrong, that its data differ.
    fn suspect(&mut self, member: MemberId) -> Option<()> {
        let alarm = Alarm { member, kind: AlarmKind::Corrupt };
        (self.leads() && !self.etcd.alarms.contains(&alarm)).then(|| self.etcd.alarms.push(alarm))?;
        self.doubt();
        Some(())
    }

    /// Operators compare the data of all voters. Of one alone nothing is found.
    fn compare(&mut self) -> Option<()> {
        let found = self.comparison().filter(|_| self.counts_data && self.may_compare())?.known().cloned();
        let was_old = std::mem::take(&mut self.surroundings.comparison_is_old);
        (was_old || self.audit != found).then_some(())?;
        self.audit = found;
        Some(())
    }

    /// Whether the operator takes the cluster to be at rest, and has members asked for what costs them time.
    fn may_compare(&self) -> bool {
        self.planned(None, Hand::default()).1.is_at_rest() && !self.desired.is_paused
    }

    fn comparison(&self) -> Option<Fact<Audit>> {
        let (mut prints, mut own_prints) = (Vec::new(), Vec::new());
        for voter in self.voters() {
            let ordinal = voter.ordinal?;
            let print = |hash| Print { ordinal, hash, compact_revision: 0 };
            if let Some(own) = self.objects.pods.get(&ordinal).and_then(|place| place.pod.own_print) {
                own_prints.push(print(own.hash));
                continue;
            }
            (self.runs(voter) && !self.is_silent(ordinal) && self.is_current(voter)).then_some(())?;
            prints.push(print(self.data(voter)?.hash()));
        }
        prints.extend(own_prints.first());
        let found = verdict_of(self.voters().count(), 1, &prints);
        Some(found).filter(|verdict| !verdict.is_unknown() && self.leads())
    }

    /// The voters whose data differ from the others'.
    pub fn corrupt_voters(&self) -> usize {
        self.voters().filter(|voter| self.data(voter).is_some_and(|data| data.is_corrupt)).count()
    }

    pub fn has_alarm(&self, kind: AlarmKind) -> bool {
        self.etcd.alarms.iter().any(|alarm| alarm.kind == kind)
    }

    /// Clients write until every database is full.
    fn fill(&mut self) -> Option<()> {
        let leader = self.etcd.leader.filter(|_| self.leads() && !self.has_alarm(AlarmKind::NoSpace))?;
        self.etcd.alarms.push(Alarm { member: leader, kind: AlarmKind::NoSpace });
        self.etcd.compacted = 100;
        for data in self.objects.volumes.values_mut().filter_map(|disk| disk.data.as_mut()) {
            data.database = Database::Full;
        }
        Some(())
    }

    /// Clients delete much of what they had, and its history goes: where little was there, little is free.
    fn loosen(&mut self) -> Option<()> {
        let disks = self.objects.volumes.iter_mut();
        let small = disks.filter_map(|(ordinal, disk)| {
            let data = disk.data.as_mut().filter(|data| data.database == Database::Small)?;
            data.database = if ordinal.0 == 0 { Database::Slight } else { Database::Spare };
            Some(())
        });
        (small.count() > 0).then_some(())
    }

    pub fn compact(&mut self, revision: u64) -> bool {
        if self.leads() {
            self.etcd.compacted = self.etcd.compacted.max(revision);
        }
        let makes_room = self.has_dropped_enough();
        for data in self.objects.volumes.values_mut().filter_map(|disk| disk.data.as_mut()) {
            if makes_room && data.database == Database::Full {
                data.database = Database::Loose;
            }
        }
        self.leads()
    }

    pub fn defragment(&mut self, id: MemberId) -> bool {
        let ordinal = self.member(id).filter(|member| self.runs(member)).and_then(|member| member.ordinal);
        let disk = ordinal.and_then(|ordinal| self.objects.volumes.get_mut(&ordinal));
        let Some(data) = disk.and_then(|disk| disk.data.as_mut()) else { return false };
        if matches!(data.database, Database::Loose | Database::Spare | Database::Slight) {
            data.database = Database::Small;
        }
        data.was_defragmented = self.desired.defragments_at.is_some();
        true
    }

    pub fn disarm(&mut self, alarm: Alarm) -> bool {
        let leads = self.leads();
        self.etcd.alarms.retain(|armed| !leads || *armed != alarm);
        leads
    }

    /// Revisions, which are asked for where a database is full.
    pub fn keyspace(&self) -> Fact<Keyspace> {
        let compact_revision = self.etcd.compacted;
        let is_asked = self.is_heard() && self.has_alarm(AlarmKind::NoSpace);
        if is_asked { Fact::Known(Keyspace { revision: 5000, compact_revision }) } else { Fact::Unknown }
    }

    /// Members agree on the minor that they were let go down to, or else on the least that they run.
    fn agree(&mut self) -> Option<()> {
        let before = self.etcd.version;
        match self.etcd.downgrade.filter(|_| self.leads()) {
            Some(target) => self.etcd.version = self.etcd.version.min(target),
            None => self.agree_on_version(),
        }
        (self.etcd.version != before).then_some(())
    }

    pub fn allow_downgrade(&mut self, target: Minor) -> bool {
        let is_next = self.leads() && target + 1 == self.etcd.version && self.etcd.downgrade.is_none();
        if is_next {
            self.etcd.downgrade = Some(target);
        }
        is_next
    }

    /// Members run less or more: once all run what they were let go down to that is over.
    pub fn agree_on(&mut self, minors: &BTreeSet<Minor>) {
        let (Some(least), Some(most)) = (minors.first().copied(), minors.last().copied()) else { return };
        match self.etcd.downgrade {
            Some(target) if most <= target => self.etcd.downgrade = None,
            Some(_) => {}
            None => self.etcd.version = self.etcd.version.max(least),
        }
    }

    /// Whether so much of the history was dropped that there is room.
    pub fn has_dropped_enough(&self) -> bool {
        self.etcd.compacted >= self.surroundings.room_at.max(4000)
    }

    /// How much the first step of a compaction that makes room drops.
    pub fn enough_dropped(&self) -> u64 {
        [4000, 4900, 4990].into_iter().find(|revision| *revision >= self.surroundings.room_at).unwrap_or(5000)
    }

    /// The databases of other voters.
    pub fn databases_but(&self, id: MemberId) -> impl Iterator<Item = Database> {
        let others = self.voters().filter(move |voter| voter.id != id);
        others.filter_map(|voter| Some(self.data(voter)?.database))
    }
}
