//! A small world: etcd's membership, pods and their volumes, and the API server's objects. It carries actions out, as
//! etcd and Kubernetes would, and asserts in each step what must always hold.
//!
//! It does not know of logs and terms: an index stands for all that a member has.

mod apply;
mod kubelet;
pub mod secrets;

use std::collections::{BTreeMap, BTreeSet};

use crate::kinds::etcdcluster::actions::{Action, MembershipGuard};
use crate::kinds::etcdcluster::observation::{
    Age, Alarm, Budget, Cause, CertificateSecrets, Certificates, ClusterId, Config, ConfigEntry, Desired,
    Fact, Found, Handle, Hindered, Member, MemberId, MemberStatus, Membership, Minor, Observation, Ordinal,
    Owner, Pod, PodPhase, Purpose, Record, Refusals, ResourceVersion, Role, StatefulSet, Template, Uid,
    Version, Volume,
};
use crate::kinds::etcdcluster::plan::{Plan, labels_voters, plan};

/// Passes within which everything has to be done.
const LONGEST_RUN: usize = 400;

pub const CLUSTER: ClusterId = ClusterId(0xc);

/// What lies on a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    pub member: MemberId,
    pub index: u64,
}

/// A pod and what runs in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub pod: Pod,
    pub has_saved_snapshot: bool,
}

/// Etcd as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Etcd {
    pub members: Vec<Member>,
    pub leader: Option<MemberId>,
    pub version: Minor,
    pub downgrade: Option<Minor>,
    pub index: u64,
    pub clusters_formed: usize,
    pub alarms: Vec<Alarm>,
}

#[derive(Clone, Debug)]
pub struct World {
    pub desired: Desired,
    pub record: Record,
    pub remembered: BTreeMap<Ordinal, MemberId>,
    pub has_finalizer: bool,
    pub services: Found,
    pub set: Option<StatefulSet>,
    pub config: Option<Config>,
    pub budget: Option<Budget>,
    /// Those with certificates; none where others keep them.
    pub secrets: Option<CertificateSecrets>,
    pub pods: BTreeMap<Ordinal, Process>,
    pub volumes: BTreeMap<Ordinal, (Volume, Option<Data>)>,
    pub etcd: Etcd,
    pub bad_versions: BTreeSet<Version>,
    /// What the API server lets no pods be made from.
    pub refuses: Option<Template>,
    /// What it has refused last.
    refused: Option<Template>,
    pub log: Vec<Action>,
    /// The action, counted over the whole life, at which the operator is killed; and whether before or after it.
    pub kill: Option<(usize, bool)>,
    /// Passes for each turn of everybody else.
    pub pace: usize,
    serial: u64,
}

pub fn desired(replicas: u32, version: Version) -> Desired {
    Desired {
        is_valid: true,
        is_deleting: false,
        is_protected: false,
        is_paused: false,
        replicas,
        template: Template { version, revision: 1 },
        volume_size: 1 << 30,
        quota: None,
        is_in_memory: false,
        deletes_volumes: false,
        authenticates: false,
        allows_downgrade: false,
        backs_up_before_upgrade: false,
        defragments_at: None,
        recovery: None,
    }
}

impl World {
    pub fn new(replicas: u32, version: Version) -> Self {
        Self {
            desired: desired(replicas, version),
            record: Record::default(),
            remembered: BTreeMap::new(),
            has_finalizer: false,
            services: Found::Outdated,
            set: None,
            config: None,
            budget: None,
            secrets: None,
            pods: BTreeMap::new(),
            volumes: BTreeMap::new(),
            etcd: Etcd::default(),
            bad_versions: BTreeSet::new(),
            refuses: None,
            refused: None,
            log: Vec::new(),
            kill: None,
            pace: 1,
            serial: 0,
        }
    }

    /// One that has come to rest.
    pub fn settled(replicas: u32, version: Version) -> Self {
        let mut world = Self::new(replicas, version);
        world.run();
        assert_eq!(world.voters(), usize::try_from(replicas).unwrap());
        world
    }

    pub fn handle(&mut self) -> Handle {
        self.serial += 1;
        let serial = self.serial.to_string();
        Handle { uid: Uid(serial.clone()), resource_version: ResourceVersion(serial) }
    }

    pub fn voters(&self) -> usize {
        self.etcd.members.iter().filter(|member| !member.is_learner).count()
    }

    /// The process of a member, where it runs.
    pub fn process(&self, member: &Member) -> Option<&Process> {
        let ordinal = member.ordinal?;
        let process = self.pods.get(&ordinal).filter(|process| process.pod.phase == PodPhase::Up)?;
        let data = self.volumes.get(&ordinal)?.1.as_ref()?;
        (data.member == member.id).then_some(process)
    }

    pub fn live_voters(&self) -> usize {
        let voters = self.etcd.members.iter().filter(|member| !member.is_learner);
        voters.filter(|member| self.process(member).is_some()).count()
    }

    pub fn has_quorum(&self) -> bool {
        self.voters() > 0 && self.live_voters() > self.voters() / 2
    }

    pub fn ordinals(&self) -> Vec<u32> {
        let mut ordinals: Vec<_> =
            self.etcd.members.iter().filter_map(|member| member.ordinal.map(|ordinal| ordinal.0)).collect();
        ordinals.sort_unstable();
        ordinals
    }

    pub fn ids(&self) -> Vec<u64> {
        self.etcd.members.iter().map(|member| member.id.0).collect()
    }

    /// What a reconciliation reads.
    pub fn observe(&self) -> Observation {
        let quorum = self.has_quorum();
        let membership = Membership { cluster_id: CLUSTER, members: self.etcd.members.clone() };
        let known =
            |condition: bool, membership| if condition { Fact::Known(membership) } else { Fact::Unknown };
        let volumes = self.volumes.iter().map(|(ordinal, (volume, _))| (*ordinal, volume.clone())).collect();
        let pods = self.pods.iter().map(|(ordinal, process)| (*ordinal, process.pod.clone())).collect();
        Observation {
            record: self.record.clone(),
            remembered: self.remembered.clone(),
            operation_age: Age::Fresh,
            health_age: Age::PastDeadline,
            quorum_loss_age: Age::PastDeadline,
            replacement_age: Age::PastDeadline,
            comparison_age: Age::Fresh,
            services: Fact::Known(self.services),
            certificates: if self.lacks_secrets() { Certificates::Missing } else { Certificates::Valid },
            certificate_secrets: self.secrets.clone(),
            stateful_set: self.set.clone().map_or(Fact::Absent, Fact::Known),
            config: self.config.clone().map_or(Fact::Absent, Fact::Known),
            budget: self.budget.clone().map_or(Fact::Absent, Fact::Known),
            pods: Fact::Known(pods),
            volumes: Fact::Known(volumes),
            statuses: self.statuses(),
            membership: known(quorum, membership.clone()),
            last_membership: known(!self.statuses().is_empty(), membership),
            alarms: if quorum { Fact::Known(self.etcd.alarms.clone()) } else { Fact::Unknown },
            keyspace: Fact::Unknown,
            cluster_version: if quorum { Fact::Known(self.etcd.version) } else { Fact::Unknown },
            auth: Fact::Known(false),
            root_password: Fact::Absent,
            audit: Fact::Unknown,
            backup_schedule: Fact::Known(Found::Current),
            backup: Fact::Absent,
            has_finalizer: self.has_finalizer,
            refused: None,
            hindered: Hindered::default(),
            refusals: Refusals { template: self.refused, ..Refusals::default() },
        }
    }

    /// Whether there is no Secret that pods mount.
    pub fn lacks_secrets(&self) -> bool {
        self.secrets.as_ref().is_some_and(|secrets| secrets.leaves.values().any(Fact::is_absent))
    }

    fn statuses(&self) -> BTreeMap<Ordinal, Fact<MemberStatus>> {
        let running = self.pods.iter().filter(|(_, process)| process.pod.phase == PodPhase::Up);
        running
            .filter_map(|(ordinal, process)| {
                let data = self.volumes.get(ordinal)?.1?;
                let version = process.pod.template.version;
                let member = self.etcd.members.iter().find(|member| member.id == data.member);
                let status = MemberStatus {
                    cluster_id: CLUSTER,
                    member_id: data.member,
                    version,
                    leader: self.etcd.leader.filter(|_| self.has_quorum()),
                    is_learner: member.is_some_and(|member| member.is_learner),
                    has_errors: false,
                    raft_index: data.index,
                    raft_applied_index: data.index,
                    db_size: 1 << 20,
                    db_size_in_use: 1 << 20,
                    quota: 1 << 31,
                    storage_version: if version.minor >= 6 {
                        Fact::Known(self.etcd.version.min(version.minor))
                    } else {
                        Fact::Absent
                    },
                    downgrade_target: self.etcd.downgrade.map_or(Fact::Absent, Fact::Known),
                    has_saved_snapshot: Fact::Known(process.has_saved_snapshot),
                    defragmented: Age::PastDeadline,
                    falls_behind: false,
                    corrupt: BTreeSet::new(),
                };
                Some((*ordinal, Fact::Known(status)))
            })
            .collect()
    }

    /// One reconciliation; its plan.
    pub fn pass(&mut self) -> Plan {
        let seen = self.observe();
        let plan = plan(&self.desired, &seen);
        assert_eq!(plan, super::super::plan(&self.desired, &seen), "the same facts give the same plan");
        let irreversible = plan.actions.iter().filter(|action| action.is_irreversible()).count();
        assert!(irreversible <= 1, "{:#?}", plan.actions);
        let works = plan.actions.iter().any(|action| !matches!(action, Action::LabelPod { .. }));
        assert!(!works || !self.desired.is_paused || self.desired.is_deleting);
        let members = plan.summary.members.iter();
        self.remembered = members.filter_map(|member| Some((member.ordinal, member.id?))).collect();
        for action in &plan.actions {
            let kill = self.kill.take_if(|(at, _)| *at == self.log.len());
            if kill.is_some_and(|(_, before)| before) {
                break;
            }
            self.apply(action);
            self.log.push(action.clone());
            self.check();
            if kill.is_some() {
                break;
            }
        }
        plan
    }

    /// What must hold in every state.
    pub fn check(&self) {
        let learners = self.etcd.members.iter().filter(|member| member.is_learner).count();
        assert!(learners <= 1, "two learners: {:?}", self.etcd.members);
        assert!(self.etcd.clusters_formed <= 1, "a second cluster was formed");
        assert!(self.record.cluster_id.is_none_or(|id| id == CLUSTER));
        let minors: BTreeSet<_> = self
            .etcd
            .members
            .iter()
            .filter_map(|member| Some(self.process(member)?.pod.template.version.minor))
            .collect();
        if let (Some(least), Some(most)) = (minors.first(), minors.last()) {
            assert!(most - least <= 1, "members run minors {minors:?}");
        }
    }

    /// Passes and turns of everybody else until nothing changes; fails where that takes too long.
    pub fn run(&mut self) -> Plan {
        let mut calm = 0;
        let mut last = Vec::new();
        for turn in 0..LONGEST_RUN * self.pace {
            let plan = self.pass();
            let moved = turn % self.pace == 0 && self.turn();
            calm = if plan.actions.is_empty() && !moved { calm + 1 } else { 0 };
            if calm > 2 * self.pace {
                return plan;
            }
            last = plan.actions;
        }
        panic!(
            "no rest after {LONGEST_RUN} passes; the last did {last:#?}\n{:#?}\n{:#?}",
            self.record, self.etcd
        );
    }

    /// So many rounds.
    pub fn rounds(&mut self, rounds: usize) {
        for _ in 0..rounds {
            self.pass();
            self.turn();
        }
    }

    /// Names of the actions so far, of those that change who is a member.
    pub fn membership_changes(&self) -> Vec<String> {
        let changes = self.log.iter().filter_map(|action| match action {
            Action::MemberAdd { ordinal, .. } => Some(format!("add {}", ordinal.0)),
            Action::MemberPromote { ordinal, .. } => Some(format!("promote {}", ordinal.0)),
            Action::MemberRemove { ordinal, .. } => Some(format!("remove {}", ordinal.0)),
            _ => None,
        });
        changes.collect()
    }

    /// Takes the data away from under a member, and its pod.
    pub fn wipe(&mut self, ordinal: u32) {
        self.pods.remove(&Ordinal(ordinal));
        self.volumes.remove(&Ordinal(ordinal));
        self.turn();
    }
}
