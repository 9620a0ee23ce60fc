//! The status: what it remembers and what it says.
//!
//! Guarantees: it is written only into the object as it was read in this pass, and only where it differs.

use super::{Failure, Hands};
use crate::api::etcdcluster::v1::EtcdCluster;
use crate::controllers::etcdcluster::observation::Record;
use crate::controllers::etcdcluster::resources::names::MANAGER;
use crate::controllers::fail_points::{FailPoints, fail_points};
use crate::controllers::outcome::Error;
use crate::controllers::status::{self, Precondition};

/// The points around a status that remembers nothing new.
const POINTS: FailPoints = fail_points!("status");

/// Writes what is remembered, with all else that is said.
pub async fn write(hands: Hands<'_>, before: &Record) -> Result<(), Failure> {
    if *before != hands.seen().record {
        return Err(Failure::refused("the status remembers something else"));
    }
    say(hands).await
}

/// Writes what is said, where that is news.
///
/// # Errors
/// When the API server refuses it or does not answer.
pub async fn report(hands: Hands<'_>) -> Result<(), Error> {
    match say(hands).await {
        Err(Failure::Api(error)) => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

async fn say(hands: Hands<'_>) -> Result<(), Failure> {
    let before = hands.cluster.status.clone().unwrap_or_default();
    let write = status::write::<EtcdCluster, _>(
        &hands.cluster.metadata,
        (&before, hands.status),
        Precondition::Unchanged,
        MANAGER,
    );
    let Some(write) = write else { return Ok(()) };
    POINTS.around(hands.perform(&write), Failure::lost).await
}
