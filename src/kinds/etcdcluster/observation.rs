//! What a reconciliation has observed of an EtcdCluster: the complete input of the plan.
//!
//! Guarantees: small values that can be compared, ordered, hashed and copied, so that a reconciliation can be replayed
//! and a checker can explore it; no clock (time enters as [`Age`]); no text that only serves messages.
//! Assumes: lists of the API server are complete or [`Fact::Unknown`]; pods were listed before volumes, so that the
//! volume of a pod that is still there is the one that was listed; what etcd says was asked of etcd in this
//! reconciliation.
//! Never: takes an error, a time-out or a stale cache for "there is none".

mod backups;
mod certificates;
mod etcd;
mod fact;
mod kubernetes;
mod ordinal;
mod password;
mod record;

pub use backups::{Backups, Unavailable};
pub use certificates::{
    Authority, AuthoritySecret, CertificateId, CertificateSecrets, Certificates, Holder, Leaf, LeafSecret,
    Signer, Trust,
};
pub use etcd::{
    Alarm, AlarmKind, ClusterId, Keyspace, Member, MemberId, MemberStatus, Membership, Minor, Version,
};
pub use fact::{Age, Fact};
pub use kubernetes::{
    Budget, Cause, Config, ConfigEntry, Found, GrowthHindrance, Handle, OwnPrint, Owner, Pod, PodPhase,
    Purpose, ResourceVersion, Role, StatefulSet, Template, Uid, Volume,
};
pub use ordinal::Ordinal;
pub use password::{RootPassword, Unreadable};
pub use record::{Operation, OperationKind, Phase, Record, Recovery, RecoveryPhase, Target};

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub use crate::controllers::action::RefusedWrite;

/// The largest database, in bytes in use, that a member hashes so fast that its clients do not notice. While it hashes
/// its keys it applies nothing, so that a leader acknowledges nothing.
pub const HASHED_AT_ONCE: u64 = 256 << 20;

/// The largest database, in bytes in use, that a follower is asked to hash without need: one that is read from a slow
/// disk takes less time than a readiness probe does to fail.
const LARGEST_HASHED: u64 = 2 << 30;

/// What the spec asks for, as far as the plan has to know.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "switches of the spec, none of which rules out another")]
pub struct Desired {
    /// Whether the spec passes the gate's validation. If not, only restarts are planned.
    pub is_valid: bool,
    /// Whether the object is being deleted and waits for us.
    pub is_deleting: bool,
    /// Whether deleting is refused.
    pub is_protected: bool,
    /// Whether work rests.
    pub is_paused: bool,
    /// Voting members; 0 stops the cluster.
    pub replicas: u32,
    /// What pods are to be made from.
    pub template: Template,
    /// Size of a volume in bytes.
    pub volume_size: u64,
    /// Bytes that a database may grow to, where the spec says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<u64>,
    /// Whether data lie in memory and end with their pod.
    pub is_in_memory: bool,
    /// Whether volumes go when the object is deleted.
    pub deletes_volumes: bool,
    /// Whether etcd has authentication enabled.
    pub authenticates: bool,
    /// Whether members may be brought one minor down.
    pub allows_downgrade: bool,
    /// Whether a verified backup is taken before an upgrade.
    pub backs_up_before_upgrade: bool,
    /// Share of a database file, in percent, that has to be free before it is defragmented.
    pub defragments_at: Option<u32>,
    /// The request to recover from a lost quorum.
    pub recovery: Option<RecoveryRequest>,
}

impl Desired {
    /// Whether no upkeep is done: reconciliation is paused, or the object goes. One whose deletion is refused stays, and
    /// its members serve.
    #[must_use]
    pub const fn rests(&self) -> bool {
        self.is_paused || (self.is_deleting && !self.is_protected)
    }
}

/// A person's request to bring a cluster without a quorum back from one member.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RecoveryRequest {
    /// The token that distinguishes this request from another one. It is consumed once.
    pub token: String,
    /// The member whose data are kept; none: the one with the highest committed index.
    pub survivor: Option<Ordinal>,
}

/// Everything that one reconciliation has read.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Observation {
    /// What earlier reconciliations wrote into the status.
    pub record: Record,
    /// Members that the status lists, with their identities: all that is left to go by without the ConfigMap and without
    /// a quorum.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub remembered: BTreeMap<Ordinal, MemberId>,
    /// Whether the phase of the recorded operation has taken longer than it should, or was tried as often as it should be.
    pub operation_age: Age,
    /// Whether every member has been as it is now for the health interval, 5 s.
    pub health_age: Age,
    /// Whether fewer voters than a majority have answered for longer than the grace period.
    pub quorum_loss_age: Age,
    /// Whether enough time has passed since the last replacements that one more is allowed.
    pub replacement_age: Age,
    /// Whether the last comparison of the members' data, or the last try at one, lies too far back for pods to be
    /// restarted on the strength of it.
    #[serde(default = "compared")]
    pub comparison_age: Age,
    /// Services and what else is written once and never depends on a member.
    pub services: Fact<Found>,
    /// Certificates that pods mount.
    pub certificates: Certificates,
    /// The Secrets with the certificates that the operator keeps; none where others keep them, or there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_secrets: Option<CertificateSecrets>,
    /// The StatefulSet.
    pub stateful_set: Fact<StatefulSet>,
    /// The ConfigMap with one entry an ordinal.
    pub config: Fact<Config>,
    /// The PodDisruptionBudget.
    pub budget: Fact<Budget>,
    /// The pods of the StatefulSet's names. Unknown where they could not be listed.
    pub pods: Fact<BTreeMap<Ordinal, Pod>>,
    /// The volumes of the StatefulSet's names. Data in memory are listed as a volume with the uid of their pod.
    pub volumes: Fact<BTreeMap<Ordinal, Volume>>,
    /// What the member at each ordinal answered. A member that is missing here cannot be asked.
    pub statuses: BTreeMap<Ordinal, Fact<MemberStatus>>,
    /// Etcd's linearizable MemberList. Never absent: with no member to ask it is unknown.
    pub membership: Fact<Membership>,
    /// A serializable MemberList of any member, for diagnosis while there is no quorum. Never ground for a change.
    pub last_membership: Fact<Membership>,
    /// The alarms that are armed.
    pub alarms: Fact<Vec<Alarm>>,
    /// Revisions of the key space.
    pub keyspace: Fact<Keyspace>,
    /// The version that the members agreed on.
    pub cluster_version: Fact<Minor>,
    /// Whether etcd has authentication enabled.
    pub auth: Fact<bool>,
    /// Whether root has the password that it is to have. Absent where none is asked for.
    pub root_password: Fact<RootPassword>,
    /// Whether all voters were found to hold the same data when that was last compared.
    pub audit: Fact<Audit>,
    /// What takes backups, or that there is none where none is asked for. Never absent.
    pub backup_schedule: Fact<Found>,
    /// The backup that an upgrade waits for.
    pub backup: Fact<Backup>,
    /// The ordinals whose pods do not come to run.
    #[serde(default, skip_serializing_if = "Hindered::is_none")]
    pub hindered: Hindered,
    /// Whether the object still has our finalizer.
    pub has_finalizer: bool,
    /// The write that was refused last, if nothing has been carried out since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedWrite>,
    /// What it has refused of what is tried again after everything else.
    #[serde(default, skip_serializing_if = "Refusals::is_none")]
    pub refusals: Refusals,
}

/// The result of comparing HashKV of all voters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Audit {
    /// Same revision, same hash.
    Equal,
    /// Same revision, different hashes, and so again at a second look.
    Different {
        /// The revision of the second look; 0: an earlier process had it.
        revision: u64,
        /// Those that differ from a majority that agrees; none: there is no such majority, and it is unknown whose data
        /// are wrong.
        minority: BTreeSet<Ordinal>,
    },
}

/// Who is asked to hash its data, where nothing says that they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// All voters.
    All,
    /// All but the leader, which acknowledges no write meanwhile.
    Followers,
    /// None: their clients would wait for too long.
    None,
}

/// The backup that an upgrade waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Backup {
    /// A verified one is recent enough.
    Recent,
    /// One is being taken.
    Running,
    /// The last one failed, and it is too early to try again.
    Failed,
    /// What would take it is of another owner, or of a cluster of this name that was there before.
    Foreign,
}

/// Where a trace has no comparison, none is waited for.
const fn compared() -> Age {
    Age::Fresh
}

/// What the API server has refused, where that was tried last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Refusals {
    /// What it lets no pods be made from.
    pub template: Option<Template>,
    /// The member whose claim it does not let grow.
    pub volume: Option<Ordinal>,
    /// The member whose pod it does not let get its label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Ordinal>,
    /// Whether it does not take the Services.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub services: bool,
    /// Whether it does not take the PodDisruptionBudget.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub budget: bool,
}

impl Refusals {
    /// Whether it has refused nothing.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// The ordinals whose pods do not come to run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Hindered {
    /// Those that have had no pod, or a pod without a node, a volume or an image, for longer than one usually takes.
    pub slow: BTreeSet<Ordinal>,
    /// Those whose pods ended one after the other before a container ran, as on a node that evicts them.
    pub rejected: BTreeSet<Ordinal>,
}

impl Hindered {
    /// Whether there is none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = Ordinal> {
        self.slow.union(&self.rejected).copied()
    }
}

impl Observation {
    /// The pod at an ordinal.
    #[must_use]
    pub fn pod(&self, ordinal: Ordinal) -> Fact<&Pod> {
        self.pods.get(ordinal)
    }

    /// The volume at an ordinal.
    #[must_use]
    pub fn volume(&self, ordinal: Ordinal) -> Fact<&Volume> {
        self.volumes.get(ordinal)
    }

    /// The entry of the ConfigMap at an ordinal. A ConfigMap that is not there has none.
    #[must_use]
    pub fn entry(&self, ordinal: Ordinal) -> Fact<&ConfigEntry> {
        match &self.config {
            Fact::Known(config) => config.entries.get(&ordinal).map_or(Fact::Absent, Fact::Known),
            Fact::Absent => Fact::Absent,
            Fact::Unknown => Fact::Unknown,
        }
    }

    /// The entries of the ConfigMap; none where it is not there or could not be read.
    pub fn entries(&self) -> impl Iterator<Item = (Ordinal, &ConfigEntry)> {
        let config = self.config.known();
        config.into_iter().flat_map(|config| config.entries.iter().map(|(ordinal, entry)| (*ordinal, entry)))
    }

    /// What the member at an ordinal answered.
    #[must_use]
    pub fn status(&self, ordinal: Ordinal) -> Fact<&MemberStatus> {
        self.statuses.get(&ordinal).map_or(Fact::Absent, Fact::as_ref)
    }

    /// What the member at an ordinal answered, where that is who answers: the address of a pod that is gone may be another
    /// member's by now, and the certificate of any fits the names of all.
    #[must_use]
    pub fn answer_of(&self, ordinal: Ordinal, member: Option<MemberId>) -> Option<&MemberStatus> {
        let told = self.status(ordinal).found();
        told.filter(|told| member.is_none_or(|member| told.member_id == member))
    }

    /// Whether fewer voters than a majority answer and follow a leader: of those that a member remembers, or else of
    /// those whose entry lets them run. Members that answer without electing a leader serve no client. Not where no
    /// voter is known.
    #[must_use]
    pub fn lacks_majority(&self) -> bool {
        let voters: Vec<(Ordinal, Option<MemberId>)> = match &self.last_membership {
            Fact::Known(list) => {
                list.voters().filter_map(|voter| Some((voter.ordinal?, Some(voter.id)))).collect()
            }
            Fact::Absent | Fact::Unknown => {
                let told = self.entries().filter(|(_, entry)| !entry.purpose.is_stopped());
                told.map(|(ordinal, entry)| (ordinal, entry.member)).collect()
            }
        };
        let follows = |(ordinal, member): &&(Ordinal, Option<MemberId>)| {
            self.answer_of(*ordinal, *member).is_some_and(|told| told.leader.is_some())
        };
        !voters.is_empty() && voters.iter().filter(follows).count() <= voters.len() / 2
    }

    /// Whether an alarm of that kind is known to be armed.
    #[must_use]
    pub fn has_alarm(&self, kind: AlarmKind) -> bool {
        self.alarms.known().into_iter().flatten().any(|alarm| alarm.kind == kind)
    }

    /// Whether the data of members differ, as far as known, or may: a comparison has found it, or an alarm says so, or
    /// a member has one stored while the alarms cannot be read.
    #[must_use]
    pub fn suspects_data(&self) -> bool {
        let has_stored = || self.answers().any(|(_, status)| !status.corrupt.is_empty());
        self.audit.is_known_and(|audit| *audit != Audit::Equal)
            || self.has_alarm(AlarmKind::Corrupt)
            || self.alarms.is_unknown() && has_stored()
    }

    /// The members that do not answer, and whose etcd ended because their data differ from another member's.
    pub fn own_prints(&self) -> impl Iterator<Item = (Ordinal, OwnPrint)> {
        let pods = self.pods.elements().filter_map(|(ordinal, pod)| Some((ordinal, pod.own_print?)));
        pods.filter(|(ordinal, _)| self.status(*ordinal).known().is_none())
    }

    /// The bytes in use of the largest database, as far as members answer.
    #[must_use]
    pub fn largest_in_use(&self) -> Option<u64> {
        self.answers().map(|(_, status)| status.db_size_in_use).max()
    }

    /// Who is asked to hash its data without need, by their size.
    #[must_use]
    pub fn reach(&self) -> Reach {
        match self.largest_in_use() {
            Some(in_use) if in_use > LARGEST_HASHED => Reach::None,
            Some(in_use) if in_use > HASHED_AT_ONCE => Reach::Followers,
            Some(_) | None => Reach::All,
        }
    }

    /// An entry by whose flags etcd compares its data when it starts, or does not, as their size says. Between half of
    /// [`HASHED_AT_ONCE`] and all of it, and where no member answers, that stays as it was.
    #[must_use]
    pub fn sized(&self, entry: ConfigEntry) -> ConfigEntry {
        let skips_check = match self.largest_in_use() {
            Some(in_use) if in_use > HASHED_AT_ONCE => true,
            Some(in_use) if in_use < HASHED_AT_ONCE / 2 => false,
            Some(_) | None => entry.skips_check,
        };
        ConfigEntry { skips_check, ..entry }
    }

    /// The members that answered, by ordinal.
    pub fn answers(&self) -> impl Iterator<Item = (Ordinal, &MemberStatus)> {
        self.statuses.iter().filter_map(|(ordinal, status)| Some((*ordinal, status.known()?)))
    }
}
