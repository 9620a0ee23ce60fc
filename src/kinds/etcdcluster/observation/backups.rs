//! The results of a cluster's backups.

use jiff::Timestamp;

use crate::kinds::etcdcluster::api::v1::{BackupFailure, BackupSuccess};

/// What is known of the backups of a cluster, beside what a plan has to know.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Backups {
    /// The last one that was verified, of the Jobs that are still there.
    pub success: Option<BackupSuccess>,
    /// The last one that failed, of those.
    pub failure: Option<BackupFailure>,
    /// Why none can be written to the claim that they go to.
    pub destination: Option<Unavailable>,
    /// Whether what was recorded of backups is of another destination than the one that is asked for now, or may be.
    pub is_elsewhere: bool,
    /// Since when what takes them is as it is.
    pub since: Option<Timestamp>,
}

/// Why nothing can be written to a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// It does not exist.
    Missing,
    /// It is being deleted: a pod that comes now does not start.
    Terminating,
    /// Its PersistentVolume is gone.
    Lost,
}
