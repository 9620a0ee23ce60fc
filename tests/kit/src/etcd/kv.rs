//! Keys and values: etcd's service KV.

use gatehouse::kinds::etcdcluster::etcd::{Header, Rpc};

/// A key with its value and where it stands in history.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct KeyValue {
    /// The key.
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    /// Revision at which it was last created.
    #[prost(int64, tag = "2")]
    pub create_revision: i64,
    /// Revision of its last change.
    #[prost(int64, tag = "3")]
    pub mod_revision: i64,
    /// How often it was written since it was created.
    #[prost(int64, tag = "4")]
    pub version: i64,
    /// The value.
    #[prost(bytes = "vec", tag = "5")]
    pub value: Vec<u8>,
}

/// Reads keys.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Range {
    /// The first key.
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    /// The key after the last one; empty for one key, a zero byte for all that follow.
    #[prost(bytes = "vec", tag = "2")]
    pub range_end: Vec<u8>,
    /// How many at most; 0 for all.
    #[prost(int64, tag = "3")]
    pub limit: i64,
    /// As of this revision; 0 for now.
    #[prost(int64, tag = "4")]
    pub revision: i64,
    /// What the member remembers will do. Otherwise a majority of the voters has to agree that it is current.
    #[prost(bool, tag = "7")]
    pub serializable: bool,
    /// Only how many there are.
    #[prost(bool, tag = "9")]
    pub count_only: bool,
}

/// What was read.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RangeAnswer {
    /// Who answered, and the revision of which it did.
    #[prost(message, required, tag = "1")]
    pub header: Header,
    /// What was found, in order of the keys.
    #[prost(message, repeated, tag = "2")]
    pub key_values: Vec<KeyValue>,
    /// Whether there is more than the limit let through.
    #[prost(bool, tag = "3")]
    pub more: bool,
    /// How many there are.
    #[prost(int64, tag = "4")]
    pub count: i64,
}

/// Writes a key.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Put {
    /// The key.
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    /// The value.
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

/// A key was written.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PutDone {
    /// Who answered, and the revision of the write.
    #[prost(message, required, tag = "1")]
    pub header: Header,
}

/// Deletes keys.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DeleteRange {
    /// The first key.
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    /// The key after the last one; empty for one key, a zero byte for all that follow.
    #[prost(bytes = "vec", tag = "2")]
    pub range_end: Vec<u8>,
}

/// Keys were deleted.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Deleted {
    /// Who answered. The revision moved only if something was there.
    #[prost(message, required, tag = "1")]
    pub header: Header,
    /// How many were there.
    #[prost(int64, tag = "2")]
    pub deleted: i64,
}

/// Writes if all comparisons hold, and does something else if not.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Txn {
    /// What has to hold.
    #[prost(message, repeated, tag = "1")]
    pub compare: Vec<Compare>,
    /// What is done if it does.
    #[prost(message, repeated, tag = "2")]
    pub success: Vec<Request>,
    /// What is done if it does not.
    #[prost(message, repeated, tag = "3")]
    pub failure: Vec<Request>,
}

/// What came of a transaction.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TxnAnswer {
    /// Who answered. The revision moved only if something was written.
    #[prost(message, required, tag = "1")]
    pub header: Header,
    /// Whether all comparisons held.
    #[prost(bool, tag = "2")]
    pub succeeded: bool,
    /// What came of each request that was done.
    #[prost(message, repeated, tag = "3")]
    pub responses: Vec<Response>,
}

/// A comparison of something about a key with a given value.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Compare {
    /// How the key's has to be to the given one.
    #[prost(enumeration = "CompareResult", tag = "1")]
    pub result: i32,
    /// What about the key.
    #[prost(enumeration = "CompareTarget", tag = "2")]
    pub target: i32,
    /// The key. One that is not there has zero for all numbers.
    #[prost(bytes = "vec", tag = "3")]
    pub key: Vec<u8>,
    /// The given one, which goes with the target.
    #[prost(oneof = "CompareWith", tags = "4, 5, 6, 7")]
    pub with: Option<CompareWith>,
}

/// How two values are to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum CompareResult {
    /// The same.
    Equal = 0,
    /// The key's is greater.
    Greater = 1,
    /// The key's is less.
    Less = 2,
    /// Not the same.
    NotEqual = 3,
}

/// What about a key is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum CompareTarget {
    /// How often it was written since it was created.
    Version = 0,
    /// Revision at which it was created.
    Create = 1,
    /// Revision of its last change.
    Mod = 2,
    /// Its value.
    Value = 3,
}

/// What it is compared with.
#[derive(Clone, PartialEq, Eq, prost::Oneof)]
pub enum CompareWith {
    /// How often it was written.
    #[prost(int64, tag = "4")]
    Version(i64),
    /// A revision of creation.
    #[prost(int64, tag = "5")]
    CreateRevision(i64),
    /// A revision of change.
    #[prost(int64, tag = "6")]
    ModRevision(i64),
    /// A value.
    #[prost(bytes, tag = "7")]
    Value(Vec<u8>),
}

/// A part of a transaction.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Request {
    /// Which.
    #[prost(oneof = "RequestKind", tags = "1, 2, 3")]
    pub kind: Option<RequestKind>,
}

/// The parts that a transaction can have.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum RequestKind {
    /// A read.
    #[prost(message, tag = "1")]
    Range(Range),
    /// A write.
    #[prost(message, tag = "2")]
    Put(Put),
    /// A deletion.
    #[prost(message, tag = "3")]
    DeleteRange(DeleteRange),
}

/// What came of a part of a transaction.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Response {
    /// Which.
    #[prost(oneof = "ResponseKind", tags = "1, 2, 3")]
    pub kind: Option<ResponseKind>,
}

/// What can come of a part of a transaction.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum ResponseKind {
    /// Of a read.
    #[prost(message, tag = "1")]
    Range(RangeAnswer),
    /// Of a write.
    #[prost(message, tag = "2")]
    Put(PutDone),
    /// Of a deletion.
    #[prost(message, tag = "3")]
    DeleteRange(Deleted),
}

impl Rpc for Range {
    type Answer = RangeAnswer;
    const PATH: &'static str = "/etcdserverpb.KV/Range";
    const DOING: &'static str = "read keys";
}

impl Rpc for Put {
    type Answer = PutDone;
    const PATH: &'static str = "/etcdserverpb.KV/Put";
    const DOING: &'static str = "write a key";
}

impl Rpc for DeleteRange {
    type Answer = Deleted;
    const PATH: &'static str = "/etcdserverpb.KV/DeleteRange";
    const DOING: &'static str = "delete keys";
}

impl Rpc for Txn {
    type Answer = TxnAnswer;
    const PATH: &'static str = "/etcdserverpb.KV/Txn";
    const DOING: &'static str = "run a transaction";
}

impl Compare {
    /// That the key was last changed at this revision; 0 means that it is not there.
    #[must_use]
    pub fn unchanged_since(key: &[u8], revision: i64) -> Self {
        Self {
            result: CompareResult::Equal.into(),
            target: CompareTarget::Mod.into(),
            key: key.to_vec(),
            with: Some(CompareWith::ModRevision(revision)),
        }
    }
}

impl From<RequestKind> for Request {
    fn from(kind: RequestKind) -> Self {
        Self { kind: Some(kind) }
    }
}
