//! The finalizer: a deletion waits until pods are gone and volumes are as the spec says.

use super::{Execution, Failure};
use crate::api::etcdcluster::v1::EtcdCluster;
use crate::controllers::etcdcluster::names::{FINALIZER, MANAGER};
use crate::controllers::finalizer;

/// Puts it there, while the object is not being deleted.
pub async fn add(execution: Execution<'_>) -> Result<(), Failure> {
    set(execution, true).await
}

/// Takes it away, once the object is being deleted.
pub async fn remove(execution: Execution<'_>) -> Result<(), Failure> {
    set(execution, false).await
}

/// On the object as it is now: the status may have been written since it was observed.
async fn set(execution: Execution<'_>, on: bool) -> Result<(), Failure> {
    let live: Option<EtcdCluster> = execution.read(&execution.name()).await?;
    let live = live.filter(|live| live.metadata.uid == execution.object.metadata.uid);
    let live = live.ok_or_else(|| Failure::moved("the object is gone"))?;
    match (live.metadata.deletion_timestamp.is_some(), on) {
        (true, true) => Err(Failure::moved("the object is being deleted")),
        (false, false) => Err(Failure::moved("the object is not being deleted")),
        _ => {
            let write = finalizer::write::<EtcdCluster>(&live.metadata, FINALIZER, on, MANAGER);
            execution.write(&write).await
        }
    }
}
