//! The header of every answer.

/// Who answered, and what it knew then.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Header {
    /// Identity of the cluster. One that changes means that data were replaced.
    #[prost(uint64, tag = "1")]
    pub cluster_id: u64,
    /// Identity of the member that answered.
    #[prost(uint64, tag = "2")]
    pub member_id: u64,
    /// Revision of the key-value store when the request was applied; 0 where the call has nothing to do with it.
    #[prost(int64, tag = "3")]
    pub revision: i64,
    /// Term of raft when the request was applied.
    #[prost(uint64, tag = "4")]
    pub raft_term: u64,
}
