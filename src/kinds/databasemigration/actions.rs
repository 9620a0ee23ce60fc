//! What a reconciliation of a DatabaseMigration may do, and the fail points around it. Pure.
//!
//! Guarantees: whatever a plan may ask for has a name, and so has its points. No action ends a run.

use crate::controllers::action;
use crate::controllers::fail_points::{FailPoints, fail_points};
use crate::controllers::manifest::Manifest;

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Has the deletion of the object wait for us.
    Hold,
    /// Lets the object go.
    Release,
    /// Creates the ConfigMap that a run reads.
    CreateSnapshot(Manifest),
    /// Creates the Job of a run.
    CreateJob(Manifest),
    /// Deletes a ConfigMap that no run reads any more.
    DeleteSnapshot {
        /// Its name.
        name: String,
        /// Which one it is.
        uid: String,
    },
}

impl action::Action for Action {
    fn points(&self) -> FailPoints {
        match self {
            Self::Hold => fail_points!("databasemigration.hold"),
            Self::Release => fail_points!("databasemigration.release"),
            Self::CreateSnapshot(_) => fail_points!("databasemigration.create-snapshot"),
            Self::CreateJob(_) => fail_points!("databasemigration.create-job"),
            Self::DeleteSnapshot { .. } => fail_points!("databasemigration.delete-snapshot"),
        }
    }
}

/// Those around the write of a status.
pub const STATUS_POINTS: FailPoints = fail_points!("databasemigration.write-status");

/// Those around an event.
pub const EVENT_POINTS: FailPoints = fail_points!("databasemigration.publish-event");
