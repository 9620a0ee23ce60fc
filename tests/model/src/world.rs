//! The world around the plan: the API server's objects, the StatefulSet's controller, kubelets, guards, volumes, and
//! etcd's members. Small values that can be compared and hashed, and no randomness: a choice is an action.
//!
//! Guarantees: what the operator sees and does goes through the production types and the production `plan`; only what
//! lies around it is modelled.
//! Assumes of etcd: what tests/kit/src/membership says, which is held against real etcd.
//! Does not say: anything of DNS, probes, full volumes, how long things take, or what an entry holds.

mod actions;
mod acts;
pub mod apply;
pub mod care;
mod certificates;
mod etcd;
mod faults;
mod kubernetes;
mod look;
pub mod surroundings;
mod version;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;

use gatehouse::kinds::etcdcluster::actions::Action as Effect;
use gatehouse::kinds::etcdcluster::observation::{
    Age, Alarm, Audit, Cause, ClusterId, ConfigEntry, Desired, Handle, Member, MemberId, Minor, Operation,
    Ordinal, Owner, Phase, Pod, PodPhase, Purpose, Record, RecoveryRequest, Role, StatefulSet, Target,
    Template, Version, Volume,
};
use kit::explore::World as _;

use crate::faults::Hand;
use crate::rules::Rule;
pub use care::Data;
use certificates::{Keyring, Trusted};
pub use faults::Faults;
pub use surroundings::{Policy, Secret, Surroundings};
use version::{identity, seen, seen_pod};

/// All there is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "what is so, and what a slice looks at besides")]
pub struct World {
    /// What is asked for.
    pub desired: Desired,
    /// The most members that were asked for so far.
    pub most_asked: u32,
    /// What is asked for later on, in this order.
    pub edits: Vec<Edit>,
    /// What may go wrong yet.
    pub faults: Faults,
    pub objects: Objects,
    pub etcd: Etcd,
    pub operators: Vec<Operator>,
    /// What has begun so lately that a deadline lies ahead.
    pub fresh: Fresh,
    /// The member that the operator asked to hand over its leadership before a removal, and that still leads: the attempt
    /// failed, or had its time.
    pub kept_leading: Option<MemberId>,
    /// Whether the StatefulSet's controller and kubelets are done with what they have to do before anything else
    /// happens.
    pub is_prompt: bool,
    /// Whether it is a fault that those which are left of a quorum have to catch up first.
    pub counts_lag: bool,
    /// Whether it is a fault that clients find no member while a quorum serves. Not before a cluster has been made whole
    /// by this release.
    pub counts_service: bool,
    /// Whether it is what is in the ConfigMap that is lost, and not the ConfigMap.
    pub empties_config: bool,
    /// Whether members compare their data with the data of the others that run when they start.
    pub compares_at_start: bool,
    /// Whether operators compare the data of members.
    pub counts_data: bool,
    /// What that found last, of the members of now.
    pub audit: Option<Audit>,
    /// What only some slices look at.
    pub surroundings: Surroundings,
    /// The first rule that was broken.
    pub broken: Option<Rule>,
}

/// What a person asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Edit {
    Replicas(u32),
    Version(Version),
    /// Another template of the same version.
    Revision,
    Pause(bool),
    /// That it goes, and the volumes with it, or without them.
    Delete {
        volumes: bool,
    },
    Recover(Option<RecoveryRequest>),
    /// The size of volumes.
    Size(u64),
    /// What the Secret has for root.
    Password(Secret),
    /// That authentication is off, behind the operator's back.
    AuthOff,
    /// That deleting is refused.
    Protect(bool),
    /// A spec that the gate would refuse, or not.
    Valid(bool),
    AllowDowngrade(bool),
    /// What the API server is to refuse.
    Policy(Option<Policy>),
}

/// What the API server has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Objects {
    pub record: Record,
    /// The members that the status lists; none: that is left out.
    pub remembered: Option<BTreeMap<Ordinal, MemberId>>,
    pub has_finalizer: bool,
    pub has_services: bool,
    pub set: Option<StatefulSet>,
    pub config: Option<BTreeMap<Ordinal, ConfigEntry>>,
    pub budget: Option<u32>,
    pub pods: BTreeMap<Ordinal, Place>,
    /// The certificates that the operator keeps; none: that is left out.
    pub keyring: Option<Keyring>,
    pub volumes: BTreeMap<Ordinal, Disk>,
}

/// A pod, and what its guard knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    pub pod: Pod,
    /// The entry as the kubelet has shown it last.
    pub told: Option<ConfigEntry>,
    /// The entry by which the guard let etcd start. It stays for the life of the pod.
    pub pass: Option<ConfigEntry>,
    /// Whom etcd trusts, as it read it when it started last.
    pub trusts: Trusted,
    /// Whether etcd was let make a cluster of the data in this pod.
    pub has_forced: bool,
    /// Whether etcd votes and answers neither operators nor its kubelet.
    pub is_silent: bool,
    /// Whether etcd answers the operator and its kubelet, and no other member hears it.
    pub is_cut_off: bool,
}

/// A volume, and what is on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Disk {
    pub volume: Volume,
    pub data: Option<Data>,
}

/// Etcd as a whole: what a majority has agreed on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Etcd {
    pub members: Vec<Member>,
    pub leader: Option<MemberId>,
    pub version: Minor,
    /// Clusters that seeds have formed. The last one is the one that there is.
    pub clusters_formed: u64,
    /// Whether a member was let make a cluster of its data.
    pub has_forced: bool,
    /// The last entry of the log.
    pub index: u64,
    /// The last entry whose write was acknowledged.
    pub acknowledged: u64,
    /// The alarms that are armed.
    pub alarms: Vec<Alarm>,
    /// The revision up to which older ones were dropped since a database was full.
    pub compacted: u64,
    /// The minor that members were let go down to.
    pub downgrade: Option<Minor>,
}

/// A process that works the object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Operator {
    /// What is left to do of its reconciliation.
    pub rest: Vec<Effect>,
    /// The claims that it saw being deleted when it planned that.
    pub going: BTreeSet<Ordinal>,
}

/// What has begun so lately that a deadline lies ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "four clocks, each of which runs by itself")]
pub struct Fresh {
    pub operation: bool,
    pub health: bool,
    pub quorum_loss: bool,
    pub replacement: bool,
}

/// One thing that happens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// An operator looks and plans.
    Pass(usize),
    /// The same, and something could not be read.
    Blind(usize, Unread),
    /// It does the next thing.
    Step(usize),
    /// It does it, and does not hear that it is done.
    Unheard(usize),
    /// It forgets the rest.
    Crash(usize),
    /// What is being deleted is gone, what the StatefulSet wants is made, and kubelets and guards go on.
    Node(Ordinal, Kubelet),
    /// A member takes what it lacks of the log.
    CatchUp(MemberId),
    /// A voter comes to lead.
    Elect(MemberId),
    Kill(Ordinal),
    Evict(Ordinal),
    Lose(Ordinal),
    /// The claim of a volume is deleted, and stays as long as a pod uses it.
    DeleteClaim(Ordinal),
    /// The ConfigMap is deleted.
    LoseConfig,
    /// An object is deleted.
    LoseObject(Object),
    /// The label of a pod is removed.
    LoseLabel(Ordinal),
    /// A member does not answer any more, and votes.
    Silence(Ordinal),
    /// It answers again.
    Answer(Ordinal),
    /// A member hears no other one any more, and answers.
    CutOff(Ordinal),
    /// It hears the others again.
    Mend(Ordinal),
    /// Another owner makes an object of one of our names.
    Take(Object),
    /// That one is deleted.
    Free,
    /// Much of each database comes to be free.
    Loosen,
    /// A backup is done, or fails.
    BackUp(bool),
    /// The Secret of the authority is deleted.
    LoseAuthority,
    /// The data of a member come to differ from the others'.
    Corrupt(Ordinal),
    /// Etcd says so of a member; 0: of one that it cannot name.
    Suspect(MemberId),
    /// Operators compare the data of members.
    Compare,
    /// Clients fill the databases.
    Fill,
    /// Members agree on a minor: on the one that they were let go down to, or the least that they run.
    Agree,
    /// A client's write, acknowledged by one of the smallest majorities, by number.
    Write(usize),
    Edit,
    /// All deadlines pass.
    Tick,
}

/// What can be deleted besides pods, claims, the ConfigMap and the authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Object {
    /// Its pods go with it.
    StatefulSet,
    Services,
    Budget,
    /// It is deleted by another action.
    Config,
}

/// What a reconciliation could not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unread {
    StatefulSet,
    Pods,
    Volumes,
    Config,
    Members,
    Status(Ordinal),
    /// Another cluster's member answers in the place of one.
    Stranger(Ordinal),
}

/// What becomes of a pod and its volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kubelet {
    /// A pod that is being deleted, or not wanted, ends.
    End,
    /// A claim that is being deleted and that no pod uses goes.
    Release,
    /// The StatefulSet's controller makes the pod, and its claim.
    Make,
    /// The kubelet shows the entry as it is now.
    Show,
    /// The guard lets etcd start, or says why not.
    Start,
    /// What drives a volume lets it grow to what its claim asks for.
    Expand,
}

impl World {
    /// A world in which nothing has been made.
    pub fn new(replicas: u32, version: Version) -> Self {
        Self {
            desired: desired(replicas, version),
            most_asked: replicas,
            edits: Vec::new(),
            faults: Faults::default(),
            objects: Objects::default(),
            etcd: Etcd::default(),
            operators: vec![Operator::default()],
            fresh: Fresh::default(),
            kept_leading: None,
            is_prompt: false,
            counts_lag: false,
            counts_service: false,
            empties_config: false,
            counts_data: false,
            compares_at_start: false,
            audit: None,
            surroundings: Surroundings::default(),
            broken: None,
        }
    }

    /// The same once all is as asked for.
    pub fn settled(replicas: u32, version: Version) -> Self {
        Self::new(replicas, version).settle()
    }

    /// The same with certificates that the operator keeps.
    pub fn certified(replicas: u32, version: Version) -> Self {
        let mut world = Self::new(replicas, version);
        world.objects.keyring = Some(Keyring::default());
        world.settle()
    }

    /// Goes on until all is as asked for.
    pub fn settle(self) -> Self {
        let settled = kit::explore::rest(self);
        let wanted = usize::try_from(settled.desired.replicas).expect("few");
        assert_eq!(settled.voters().count(), wanted, "{settled:#?}");
        settled
    }

    /// What pods are to be made from follows from whom they are to trust.
    fn follow_trust(&mut self) {
        if let Some(keyring) = &self.objects.keyring {
            self.desired.template.revision = keyring.revision();
        }
    }

    /// The clocks that a change starts.
    fn watch(&mut self, before: &Self) {
        let operation = |world: &Self| -> Option<Operation> { world.objects.record.operation };
        self.fresh.operation |= operation(self).is_some() && operation(self) != operation(before);
        self.fresh.health |= self.up() != before.up();
        self.fresh.quorum_loss |= before.seems_led() && !self.seems_led();
        if self.etcd.members != before.etcd.members {
            self.doubt();
        }
        // What is fresh about nothing is not looked at.
        self.fresh.operation &= operation(self).is_some();
        self.fresh.quorum_loss &= !self.seems_led();
        // A leader that comes back within the time that it had to hand over in is not asked for longer; another one is.
        let about = |world: &Self| operation(world).map(|operation| (operation.kind, operation.target));
        if about(self) != about(before) {
            self.kept_leading = None;
        }
    }

    fn has_deadlines(&self) -> bool {
        self.fresh != Fresh::default()
            || self.objects.keyring.as_ref().is_some_and(Keyring::has_deadlines)
            || self.objects.pods.values().any(Place::is_slow)
            || self.surroundings.has_deadlines()
            || self.objects.volumes.values().any(Disk::is_worn)
    }

    fn tick(&mut self) {
        let moving = self.objects.record.operation.filter(|operation| operation.phase == Phase::MovingLeader);
        if let Some(Target::Member(ordinal)) = moving.filter(|_| self.fresh.operation).map(|one| one.target) {
            let mut members = self.etcd.members.iter();
            self.kept_leading = members.find(|one| one.ordinal == Some(ordinal)).map(|one| one.id);
        }
        self.fresh = Fresh::default();
        if let Some(keyring) = &mut self.objects.keyring {
            keyring.tick();
        }
        self.surroundings.tick();
        for data in self.objects.volumes.values_mut().filter_map(|disk| disk.data.as_mut()) {
            data.was_defragmented = false;
        }
        for place in self.objects.pods.values_mut().filter(|place| place.is_slow()) {
            place.pod.startup_age = Age::PastDeadline;
        }
    }
}

impl Disk {
    /// Whether a deadline lies ahead of its database.
    fn is_worn(&self) -> bool {
        self.data.is_some_and(|data| data.was_defragmented)
    }
}

impl Place {
    /// Whether a deadline lies ahead of its pod.
    fn is_slow(&self) -> bool {
        self.pod.startup_age == Age::Fresh && self.pod.phase != PodPhase::Up
    }
}

fn desired(replicas: u32, version: Version) -> Desired {
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
