//! Applies the CronJob and Jobs that take backups.
//!
//! Guarantees: a CronJob that belongs to another owner is neither changed nor deleted; a Job of a name is made once,
//! however often that is tried.

use k8s_openapi::api::batch::v1::CronJob;

use super::objects::{is_ours, put};
use super::{Execution, Failure};
use crate::controllers::api_write::ApiWrite;
use crate::controllers::manifest::Manifest;
use crate::kinds::etcdcluster::names::{self, MANAGER};
use crate::kinds::etcdcluster::observation::{ClusterId, Version};
use crate::kinds::etcdcluster::observe::kubernetes::handle;
use crate::kinds::etcdcluster::resources::backup;

/// Makes the CronJob, puts it right, or deletes it.
pub async fn schedule(execution: Execution<'_>) -> Result<(), Failure> {
    let name = names::backup(&execution.name());
    let place = execution.place::<CronJob>(&name);
    let found: Option<CronJob> = execution.read(&name).await?;
    if found.as_ref().is_some_and(|found| !is_ours(execution, &found.metadata)) {
        return Err(Failure::moved(format!("{place} belongs to another owner")));
    }
    match (wanted(execution), found) {
        (Some(manifest), found) => put(execution, manifest, found.as_ref()).await,
        (None, Some(found)) => execution.delete::<CronJob>(&name, &handle(&found.metadata)).await,
        (None, None) => Ok(()),
    }
}

/// The CronJob as it is to be.
fn wanted(execution: Execution<'_>) -> Option<Manifest> {
    let status = execution.object.status.as_ref();
    let are_data_suspect = execution.observation().suspects_data();
    backup::cron_job(execution.spec, status, are_data_suspect, &execution.context.image)
}

/// Begins the backup before an upgrade. That it was begun already is fine.
pub async fn start(execution: Execution<'_>, cluster_id: ClusterId, version: Version) -> Result<(), Failure> {
    if execution.observation().record.cluster_id != Some(cluster_id) {
        return Err(Failure::moved("another cluster is recorded"));
    }
    let job =
        backup::job(execution.spec, execution.object.status.as_ref(), version, &execution.context.image);
    let job = job.ok_or_else(|| Failure::moved("the members are not known yet"))?;
    execution.write(&ApiWrite::Create { manifest: Manifest::of(&job), manager: MANAGER }).await
}
