//! The calls of etcd that tests make and gatehouse does not: keys and values, what users and members may be changed to,
//! and alarms that are raised.

mod kv;

use gatehouse::kinds::etcdcluster::etcd::{
    AlarmKind, Client, Done, Error, Header, Members, Rpc, UserAdd, UserOptions,
};

pub use kv::{
    Compare, CompareResult, CompareTarget, CompareWith, DeleteRange, Deleted, KeyValue, Put, PutDone, Range,
    RangeAnswer, Request, RequestKind, Response, ResponseKind, Txn, TxnAnswer,
};

/// What a permission allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum PermissionKind {
    /// To read.
    Read = 0,
    /// To write.
    Write = 1,
    /// Both.
    ReadWrite = 2,
}

/// What may be done with which keys.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Permission {
    /// What may be done.
    #[prost(enumeration = "PermissionKind", tag = "1")]
    pub kind: i32,
    /// The first key.
    #[prost(bytes = "vec", tag = "2")]
    pub key: Vec<u8>,
    /// The key after the last one; empty for one key, a zero byte for all that follow.
    #[prost(bytes = "vec", tag = "3")]
    pub range_end: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct AuthDisable {}

impl Rpc for AuthDisable {
    type Answer = Done;
    const PATH: &'static str = "/etcdserverpb.Auth/AuthDisable";
    const DOING: &'static str = "turn authentication off";
}

#[derive(Clone, PartialEq, prost::Message)]
struct RoleGrantPermission {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, required, tag = "2")]
    permission: Permission,
}

impl Rpc for RoleGrantPermission {
    type Answer = Done;
    const PATH: &'static str = "/etcdserverpb.Auth/RoleGrantPermission";
    const DOING: &'static str = "give a role a permission";
}

#[derive(Clone, PartialEq, prost::Message)]
struct MemberUpdate {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(string, repeated, tag = "2")]
    peer_urls: Vec<String>,
}

impl Rpc for MemberUpdate {
    type Answer = Members;
    const PATH: &'static str = "/etcdserverpb.Cluster/MemberUpdate";
    const DOING: &'static str = "change a member's peer URLs";
}

/// Raises an alarm, as etcd itself does.
#[derive(Clone, Copy, PartialEq, prost::Message)]
struct RaiseAlarm {
    /// 1: raise.
    #[prost(int32, tag = "1")]
    action: i32,
    #[prost(uint64, tag = "2")]
    member: u64,
    #[prost(enumeration = "AlarmKind", tag = "3")]
    kind: i32,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct AlarmRaised {
    #[prost(message, required, tag = "1")]
    header: Header,
}

impl Rpc for RaiseAlarm {
    type Answer = AlarmRaised;
    const PATH: &'static str = "/etcdserverpb.Maintenance/Alarm";
    const DOING: &'static str = "raise an alarm";
}

/// What a call comes to.
type Outcome<Answer> = Result<Answer, Error>;

/// Those calls, at the member of a client, within its limits.
pub trait Calls {
    /// Reads keys.
    fn range(&self, range: Range) -> impl Future<Output = Outcome<RangeAnswer>> + Send;

    /// Writes a key.
    fn put(&self, key: &[u8], value: &[u8]) -> impl Future<Output = Outcome<PutDone>> + Send;

    /// Deletes keys.
    fn delete(&self, range: DeleteRange) -> impl Future<Output = Outcome<Deleted>> + Send;

    /// Runs a transaction.
    fn transact(&self, transaction: Txn) -> impl Future<Output = Outcome<TxnAnswer>> + Send;

    /// Turns authentication off.
    fn disable_auth(&self) -> impl Future<Output = Outcome<()>> + Send;

    /// Adds a user that has no password and never gets one: it acts by certificate alone.
    fn add_user(&self, name: &str) -> impl Future<Output = Outcome<()>> + Send;

    /// Gives a role a permission. The role root has all.
    fn grant_permission(
        &self,
        role: &str,
        permission: Permission,
    ) -> impl Future<Output = Outcome<()>> + Send;

    /// Changes where the others reach a member.
    fn update_peer_urls(
        &self,
        id: u64,
        peer_urls: Vec<String>,
    ) -> impl Future<Output = Outcome<Members>> + Send;

    /// Raises an alarm about a member.
    fn raise_alarm(&self, member: u64, kind: AlarmKind) -> impl Future<Output = Outcome<()>> + Send;
}

impl Calls for Client {
    fn range(&self, range: Range) -> impl Future<Output = Outcome<RangeAnswer>> + Send {
        self.call(range, self.limits().read)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> impl Future<Output = Outcome<PutDone>> + Send {
        self.call(Put { key: key.to_vec(), value: value.to_vec() }, self.limits().change)
    }

    fn delete(&self, range: DeleteRange) -> impl Future<Output = Outcome<Deleted>> + Send {
        self.call(range, self.limits().change)
    }

    fn transact(&self, transaction: Txn) -> impl Future<Output = Outcome<TxnAnswer>> + Send {
        self.call(transaction, self.limits().change)
    }

    async fn disable_auth(&self) -> Outcome<()> {
        self.call(AuthDisable {}, self.limits().change).await.map(|Done { .. }| ())
    }

    async fn add_user(&self, name: &str) -> Outcome<()> {
        let request = UserAdd { name: name.to_owned(), options: UserOptions { no_password: true } };
        self.call(request, self.limits().change).await.map(|Done { .. }| ())
    }

    async fn grant_permission(&self, role: &str, permission: Permission) -> Outcome<()> {
        let request = RoleGrantPermission { name: role.to_owned(), permission };
        self.call(request, self.limits().change).await.map(|Done { .. }| ())
    }

    fn update_peer_urls(
        &self,
        id: u64,
        peer_urls: Vec<String>,
    ) -> impl Future<Output = Outcome<Members>> + Send {
        self.call(MemberUpdate { id, peer_urls }, self.limits().change)
    }

    async fn raise_alarm(&self, member: u64, kind: AlarmKind) -> Outcome<()> {
        let request = RaiseAlarm { action: 1, member, kind: kind.into() };
        self.call(request, self.limits().change).await.map(|AlarmRaised { .. }| ())
    }
}
