//! A client of etcd, for one member.
//!
//! Guarantees: a [`Client`] speaks with the one member that it was made for, over one connection, so that what is
//! asked of a member is answered by that member. Every call ends within a limit, or once its connection ends, and
//! reports why where the member did. Nothing is ever sent twice: failures are split into what was surely not
//! done ([`Error::outcome`]) and what may have been, and the caller decides. Membership is read linearizably.
//!
//! Assumes: etcd 3.5 or newer with its v3 API over gRPC. Messages are of 3.7; fields that an older member does not
//! know stay at their defaults (see [`Status`]).
//!
//! Never: discovers members, balances over them, retries what has been sent, logs, or keeps a secret longer than the
//! connection.
//!
//! # Why not the etcd-client crate
//! It was tried, and works. But its build script needs protoc on every machine that builds this; it asks for
//! MemberList serializably, which a member that is cut off answers with what it remembers, and has no way to ask
//! otherwise; and it spreads calls over its endpoints, so that Status, Defragment, HashKV, Snapshot and MoveLeader,
//! which are questions to one member, need a client each all the same. What remains is messages and paths. The few
//! that are needed are structs here, with the tags of etcd's `rpc.proto`: no protoc, no build script, no generated
//! code. tonic puts them into frames, and hyper carries these.

mod auth;
mod client;
mod cluster;
mod dial;
mod error;
mod header;
mod kv;
pub mod log;
mod maintenance;
mod snapshot;
mod tls;

pub use auth::{AuthStatus, Done, Password, UserAdd, UserOptions};
pub use client::{Answers, Client, InvalidEndpoint, Limits, Rpc};
pub use cluster::{Added, Member, Members};
pub use error::{Doubt, Error, Outcome, Reason, Refusal};
pub use header::Header;
pub use maintenance::{Alarm, AlarmKind, Downgrade, DowngradeState, Hash, Status};
pub use snapshot::{Seal, Snapshot, SnapshotError};
pub use tls::{InvalidTls, Tls};
