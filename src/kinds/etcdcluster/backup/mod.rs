//! A backup of an etcd cluster in a folder: what runs in the Jobs of an EtcdCluster.
//!
//! ```text
//!   <time>-r<revision>.db      the snapshot, as `etcdutl snapshot restore` takes it
//!   <time>-r<revision>.json    its manifest, the last thing that is written: without it there is no backup
//!   ….<uid>.part               what an attempt has not finished; one that comes two hours later deletes it
//!   gatehouse.lock             held while a backup is taken
//! ```
//!
//! Guarantees: a backup that has a manifest is whole, was read back from the folder, is a database of sound structure up to
//! its revision, and is on the disk; of what is there nothing is written over, and nothing is deleted but backups and
//! leftovers of the same EtcdCluster. The last backup is never deleted, and none before another one has been verified.
//! Assumes: the folder lies in one file system that renames as a whole. One that knows no locks is used without, and no
//! lock is believed to hold on other nodes.
//! Never: takes a backup of another etcd cluster than the one that is meant, or while an alarm says that the data of
//! members differ; asks Kubernetes for anything.

pub mod database;
pub mod decision;
mod folder;
pub mod manifest;
mod take;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use take::{Request, take};

use crate::kinds::etcdcluster::etcd::{self, InvalidEndpoint, SnapshotError};

/// There is no backup.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What is to be asked is no URL of a member.
    #[error(transparent)]
    Endpoint(#[from] InvalidEndpoint),
    /// No member answers.
    #[error("no member answers: {0}")]
    Silent(String),
    /// Members answer, and none that could give a snapshot.
    #[error("no member that votes and follows a leader answers: {0}")]
    NoVoter(String),
    /// A member of another etcd cluster answers.
    #[error("{endpoint} is of etcd cluster {found:x}, and not of {expected:x}")]
    Stranger {
        /// The member's URL.
        endpoint: String,
        /// Its cluster.
        found: u64,
        /// The one that is meant.
        expected: u64,
    },
    /// Whether the data of members may differ could not be found out.
    #[error("the alarms could not be read")]
    Alarms(#[source] etcd::Error),
    /// The data of members may differ, and it is unknown whose are right.
    #[error(
        "alarm CORRUPT is armed, so the data of members may differ: no backup is taken until it is disarmed"
    )]
    Corrupt,
    /// The folder takes a snapshot too slowly, or not at all.
    #[error(
        "the snapshot of {endpoint} was not written within {} s: the destination has to take 1 MiB a second, since the \
         member's database grows while a snapshot is taken",
        limit.as_secs()
    )]
    Slow {
        /// The member's URL.
        endpoint: String,
        /// How long it might take.
        limit: Duration,
    },
    /// The thread that writes ended early.
    #[error("writing the snapshot broke off")]
    BrokeOff,
    /// No member gave a whole snapshot.
    #[error("no whole snapshot came")]
    Snapshot(#[source] SnapshotError),
    /// A file could not be read or written.
    #[error("failed to {verb} {}", path.display())]
    File {
        /// What was tried.
        verb: &'static str,
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A manifest could not be written as text.
    #[error("failed to write a manifest")]
    Manifest(#[source] serde_json::Error),
    /// What lies in the folder is not what was written there.
    #[error("what was read back from {} is not what was written: {}", path.display(), why)]
    Altered {
        /// Which file.
        path: PathBuf,
        /// How it differs.
        why: &'static str,
    },
    /// What a member sent came whole, and is no sound database.
    #[error("the database that came is not sound")]
    Unsound(#[source] database::Fault),
    /// There is a backup of that name.
    #[error("{} is there already", .0.display())]
    Exists(PathBuf),
}

impl Error {
    fn file(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { verb, path: path.to_owned(), source }
    }
}
