//! Etcd's service Cluster: the member list and its changes.

use super::client::{Client, Rpc};
use super::error::Error;
use super::header::Header;

/// A member, as the cluster knows it.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Member {
    /// Its identity, which no later member has again.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Its name. Empty until it has started for the first time.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Where the others reach it.
    #[prost(string, repeated, tag = "3")]
    pub peer_urls: Vec<String>,
    /// Where clients reach it. Empty until it has started for the first time.
    #[prost(string, repeated, tag = "4")]
    pub client_urls: Vec<String>,
    /// Whether it learns and has no vote yet.
    #[prost(bool, tag = "5")]
    pub is_learner: bool,
}

/// The members after a call. The answer to a change has its result.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Members {
    /// Who answered.
    #[prost(message, required, tag = "1")]
    pub header: Header,
    /// All of them, in no order that means anything.
    #[prost(message, repeated, tag = "2")]
    pub members: Vec<Member>,
}

/// The result of adding a member.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Added {
    /// Who answered.
    #[prost(message, required, tag = "1")]
    pub header: Header,
    /// The new one.
    #[prost(message, required, tag = "2")]
    pub member: Member,
    /// All of them, the new one among them.
    #[prost(message, repeated, tag = "3")]
    pub members: Vec<Member>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct MemberList {
    #[prost(bool, tag = "1")]
    linearizable: bool,
}

impl Rpc for MemberList {
    type Answer = Members;
    const PATH: &'static str = "/etcdserverpb.Cluster/MemberList";
    const DOING: &'static str = "list the members";
}

#[derive(Clone, PartialEq, prost::Message)]
struct MemberAdd {
    #[prost(string, repeated, tag = "1")]
    peer_urls: Vec<String>,
    #[prost(bool, tag = "2")]
    is_learner: bool,
}

impl Rpc for MemberAdd {
    type Answer = Added;
    const PATH: &'static str = "/etcdserverpb.Cluster/MemberAdd";
    const DOING: &'static str = "add a member";
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct MemberPromote {
    #[prost(uint64, tag = "1")]
    id: u64,
}

impl Rpc for MemberPromote {
    type Answer = Members;
    const PATH: &'static str = "/etcdserverpb.Cluster/MemberPromote";
    const DOING: &'static str = "promote a learner";
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct MemberRemove {
    #[prost(uint64, tag = "1")]
    id: u64,
}

impl Rpc for MemberRemove {
    type Answer = Members;
    const PATH: &'static str = "/etcdserverpb.Cluster/MemberRemove";
    const DOING: &'static str = "remove a member";
}

impl Client {
    /// The members, as a majority of the voters knows them now. Fails without a quorum, and at a learner.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn members(&self) -> Result<Members, Error> {
        self.call(MemberList { linearizable: true }, self.limits.read).await
    }

    /// The members, as this member remembers them. For diagnosis only: it may have missed a change.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn remembered_members(&self) -> Result<Members, Error> {
        self.call(MemberList { linearizable: false }, self.limits.read).await
    }

    /// Adds a member that learns and has no vote. There is no way here to add one that votes at once.
    ///
    /// # Errors
    /// See [`Error`]. When the outcome is unknown, the members tell by the peer URL; it is not added again blindly.
    /// [`super::Refusal::PeerUrlExists`] means already, and so does [`super::Refusal::MemberExists`], which etcd says
    /// within the same second.
    pub async fn add_learner(&self, peer_url: &str) -> Result<Added, Error> {
        let request = MemberAdd { peer_urls: vec![peer_url.to_owned()], is_learner: true };
        self.call(request, self.limits.change).await
    }

    /// Gives a learner its vote. The leader knows best; others pass it on.
    ///
    /// # Errors
    /// See [`Error`]. [`super::Refusal::LearnerNotReady`] means later, [`super::Refusal::MemberNotLearner`] already.
    pub async fn promote(&self, id: u64) -> Result<Members, Error> {
        self.call(MemberPromote { id }, self.limits.change).await
    }

    /// Removes a member for good: its identity never comes back.
    ///
    /// # Errors
    /// See [`Error`]. [`super::Refusal::MemberNotFound`] means already.
    pub async fn remove(&self, id: u64) -> Result<Members, Error> {
        self.call(MemberRemove { id }, self.limits.change).await
    }
}
