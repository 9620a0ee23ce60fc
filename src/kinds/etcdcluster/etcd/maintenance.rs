//! How a member is, and what keeps it so: etcd's service Maintenance. All of it is about the member that is asked, but
//! alarms and downgrades, which are the cluster's.

use super::auth::Done;
use super::client::{Client, Rpc};
use super::error::Error;
use super::header::Header;

/// What a member says of itself. It answers without a quorum, and while it learns.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Status {
    /// Who answered. Revision and term are this member's own.
    #[prost(message, required, tag = "1")]
    pub header: Header,
    /// Version of etcd that it runs, such as `3.6.16`.
    #[prost(string, tag = "2")]
    pub version: String,
    /// Size of its database file in bytes.
    #[prost(int64, tag = "3")]
    pub db_size: i64,
    /// Identity of the member that it believes to lead; 0 for none.
    #[prost(uint64, tag = "4")]
    pub leader: u64,
    /// Last entry of the log that it knows to be committed.
    #[prost(uint64, tag = "5")]
    pub raft_index: u64,
    /// Term of raft that it is in.
    #[prost(uint64, tag = "6")]
    pub raft_term: u64,
    /// Last entry of the log that it has applied.
    #[prost(uint64, tag = "7")]
    pub raft_applied_index: u64,
    /// What ails it, in etcd's words: no leader, alarms.
    #[prost(string, repeated, tag = "8")]
    pub errors: Vec<String>,
    /// Bytes of the database file in use; the rest is what defragmentation gives back.
    #[prost(int64, tag = "9")]
    pub db_size_in_use: i64,
    /// Whether it learns and has no vote yet.
    #[prost(bool, tag = "10")]
    pub is_learner: bool,
    /// Version of its database's format, such as `3.6.0`. Since 3.6; empty before.
    #[prost(string, tag = "11")]
    pub storage_version: String,
    /// Size in bytes that its database may grow to. Since 3.6; 0 before.
    #[prost(int64, tag = "12")]
    pub db_size_quota: i64,
    /// The downgrade that is under way, if one is. Since 3.6; none before.
    #[prost(message, optional, tag = "13")]
    pub downgrade: Option<DowngradeState>,
}

/// Whether a downgrade is under way.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DowngradeState {
    /// Whether one is.
    #[prost(bool, tag = "1")]
    pub enabled: bool,
    /// The version that it goes to.
    #[prost(string, tag = "2")]
    pub target_version: String,
}

/// What an alarm is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum AlarmKind {
    /// Nothing, or what is not known here.
    None = 0,
    /// A database is at its quota, and no member takes writes.
    NoSpace = 1,
    /// A member's data differ from the others', and no member takes writes.
    Corrupt = 2,
}

/// An alarm that is raised. It stays so until it is disarmed, also when its member has been removed.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Alarm {
    /// The member that it is about; of [`AlarmKind::Corrupt`] 0 when there is no majority to tell.
    #[prost(uint64, tag = "1")]
    pub member: u64,
    /// What it is about.
    #[prost(enumeration = "AlarmKind", tag = "2")]
    pub kind: i32,
}

/// A hash over the keys of a member, for comparison with another member's at the same revision.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Hash {
    /// Who answered. The revision is the member's present one.
    #[prost(message, required, tag = "1")]
    pub header: Header,
    /// The hash.
    #[prost(uint32, tag = "2")]
    pub hash: u32,
    /// The revision up to which the member's history was compacted; only hashes of equal ones can be compared.
    #[prost(int64, tag = "3")]
    pub compact_revision: i64,
    /// The revision up to which the hash goes. Since 3.6; 0 before.
    #[prost(int64, tag = "4")]
    pub hash_revision: i64,
}

/// What is to happen about a downgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Downgrade {
    /// Nothing: whether it could be done.
    Validate = 0,
    /// It begins.
    Enable = 1,
    /// It ends, and the version stays.
    Cancel = 2,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct StatusRequest {}

impl Rpc for StatusRequest {
    type Answer = Status;
    const PATH: &'static str = "/etcdserverpb.Maintenance/Status";
    const DOING: &'static str = "ask for the status";
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
enum AlarmAction {
    Get = 0,
    Activate = 1,
    Deactivate = 2,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct AlarmRequest {
    #[prost(enumeration = "AlarmAction", tag = "1")]
    action: i32,
    #[prost(uint64, tag = "2")]
    member: u64,
    #[prost(enumeration = "AlarmKind", tag = "3")]
    kind: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Alarms {
    #[prost(message, required, tag = "1")]
    header: Header,
    #[prost(message, repeated, tag = "2")]
    alarms: Vec<Alarm>,
}

impl Rpc for AlarmRequest {
    type Answer = Alarms;
    const PATH: &'static str = "/etcdserverpb.Maintenance/Alarm";
    const DOING: &'static str = "read or change the alarms";
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct Defragment {}

impl Rpc for Defragment {
    type Answer = Done;
    const PATH: &'static str = "/etcdserverpb.Maintenance/Defragment";
    const DOING: &'static str = "defragment the database";
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct HashKv {
    #[prost(int64, tag = "1")]
    revision: i64,
}

impl Rpc for HashKv {
    type Answer = Hash;
    const PATH: &'static str = "/etcdserverpb.Maintenance/HashKV";
    const DOING: &'static str = "hash the keys";
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct MoveLeader {
    #[prost(uint64, tag = "1")]
    to: u64,
}

impl Rpc for MoveLeader {
    type Answer = Done;
    const PATH: &'static str = "/etcdserverpb.Maintenance/MoveLeader";
    const DOING: &'static str = "hand the leadership over";
}

#[derive(Clone, PartialEq, prost::Message)]
struct DowngradeRequest {
    #[prost(enumeration = "Downgrade", tag = "1")]
    action: i32,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct DowngradeAnswer {
    #[prost(message, required, tag = "1")]
    header: Header,
    #[prost(string, tag = "2")]
    version: String,
}

impl Rpc for DowngradeRequest {
    type Answer = DowngradeAnswer;
    const PATH: &'static str = "/etcdserverpb.Maintenance/Downgrade";
    const DOING: &'static str = "downgrade";
}

impl Status {
    /// Whether it leads, as it sees it.
    #[must_use]
    pub const fn is_leader(&self) -> bool {
        self.leader != 0 && self.leader == self.header.member_id
    }
}

impl Client {
    /// How the member is.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn status(&self) -> Result<Status, Error> {
        self.call(StatusRequest {}, self.limits.read).await
    }

    /// The alarms that are raised, those of removed members among them.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn alarms(&self) -> Result<Vec<Alarm>, Error> {
        self.alarm(AlarmAction::Get, 0, AlarmKind::None).await
    }

    /// Takes an alarm back. That it is not raised is fine.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn disarm(&self, member: u64, kind: AlarmKind) -> Result<(), Error> {
        self.alarm(AlarmAction::Deactivate, member, kind).await.map(|_| ())
    }

    async fn alarm(&self, action: AlarmAction, member: u64, kind: AlarmKind) -> Result<Vec<Alarm>, Error> {
        let request = AlarmRequest { action: action.into(), member, kind: kind.into() };
        let limit = if action == AlarmAction::Get { self.limits.read } else { self.limits.change };
        Ok(self.call(request, limit).await?.alarms)
    }

    /// Writes the member's database again without the gaps. The member answers nothing else meanwhile.
    ///
    /// # Errors
    /// See [`Error`]. When the limit is over the member goes on.
    pub async fn defragment(&self) -> Result<(), Error> {
        self.call(Defragment {}, self.limits.rewrite).await.map(|Done { .. }| ())
    }

    /// A hash over the member's keys up to a revision; 0 means its present one.
    ///
    /// # Errors
    /// See [`Error`]. [`super::Refusal::FutureRevision`] means that the member is behind.
    pub async fn hash_keys(&self, revision: i64) -> Result<Hash, Error> {
        self.call(HashKv { revision }, self.limits.rewrite).await
    }

    /// Hands the leadership from the member that is asked, which has to lead, to another.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn move_leader(&self, to: u64) -> Result<(), Error> {
        self.call(MoveLeader { to }, self.limits.change).await.map(|Done { .. }| ())
    }

    /// Asks about, begins or ends a downgrade to a minor version such as `3.5`. Answers with the version that the
    /// members have agreed on.
    ///
    /// # Errors
    /// See [`Error`]. 3.5 begins and ends one without an answer: the outcome is unknown each time, and
    /// [`Downgrade::Validate`] shows it, by [`super::Refusal::DowngradeInProcess`].
    pub async fn downgrade(&self, action: Downgrade, target: &str) -> Result<String, Error> {
        let request = DowngradeRequest { action: action.into(), version: target.to_owned() };
        Ok(self.call(request, self.limits.change).await?.version)
    }
}
