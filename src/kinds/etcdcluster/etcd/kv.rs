//! Etcd's service KV: compaction.

use super::client::{Client, Rpc};
use super::error::Error;
use super::header::Header;

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct Compact {
    #[prost(int64, tag = "1")]
    revision: i64,
    #[prost(bool, tag = "2")]
    physical: bool,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct Compacted {
    #[prost(message, required, tag = "1")]
    header: Header,
}

impl Rpc for Compact {
    type Answer = Compacted;
    const PATH: &'static str = "/etcdserverpb.KV/Compact";
    const DOING: &'static str = "compact the history";
}

impl Client {
    /// Gives up the history before a revision, on all members. With `physical`, waits until this member has done so
    /// in its database.
    ///
    /// # Errors
    /// See [`Error`]. [`super::Refusal::Compacted`] means already.
    pub async fn compact(&self, revision: i64, physical: bool) -> Result<(), Error> {
        let limit = if physical { self.limits.rewrite } else { self.limits.change };
        self.call(Compact { revision, physical }, limit).await.map(|Compacted { .. }| ())
    }
}
