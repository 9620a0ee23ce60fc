//! Keeps, resizes and deletes volumes.
//!
//! Guarantees: a claim is deleted only as it was seen, and only where etcd's list, asked once more, is the one in which
//! no member has data on it; or where the cluster never was or goes as a whole. Where its data have to outlive it, that
//! is read once more first.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::{Execution, Failure, membership};
use crate::controllers::manifest::Place;
use crate::controllers::outcome::Error;
use crate::kinds::etcdcluster::actions::MembershipGuard;
use crate::kinds::etcdcluster::names::{self, MANAGER};
use crate::kinds::etcdcluster::observation::{Handle, Ordinal};
use crate::kinds::etcdcluster::observe::kubernetes::{RETAINED, backs, handle, is_retained};
use crate::kinds::etcdcluster::resources::record;
use crate::runtime::call::{self, call};

/// Deletes the claim.
pub async fn delete(
    execution: Execution<'_>,
    volume: &Handle,
    ordinal: Ordinal,
    membership: Option<&MembershipGuard>,
    keeps_data: bool,
) -> Result<(), Failure> {
    if keeps_data {
        let claim = claim(execution, volume, ordinal).await?;
        if backing(execution, &claim).await?.is_some_and(|backing| !is_retained(&backing, &claim)) {
            return Err(Failure::moved(format!("what is on {} would go with it", claim.name_any())));
        }
    }
    match membership {
        Some(guard) => {
            membership::agreed(execution, *guard, None).await?;
        }
        None => without_cluster(execution).await?,
    }
    execution.delete::<PersistentVolumeClaim>(&names::claim(&execution.name(), ordinal), volume).await
}

/// The object, read once more, goes, or has never had a cluster.
async fn without_cluster(execution: Execution<'_>) -> Result<(), Failure> {
    let live = execution.live().await?;
    let recorded = live.status.as_ref().map(record::record).and_then(|record| record.cluster_id);
    if live.metadata.deletion_timestamp.is_none() && recorded.is_some() {
        return Err(Failure::moved("a cluster is recorded, and is not being deleted"));
    }
    Ok(())
}

/// Refuses to end pods whose claims have begun to be deleted since the plan was made: they would go with their pods.
pub async fn stay(
    execution: Execution<'_>,
    ordinals: impl IntoIterator<Item = Ordinal>,
) -> Result<(), Failure> {
    if execution.seen.desired.is_deleting || execution.seen.desired.is_in_memory {
        return Ok(());
    }
    for ordinal in ordinals {
        let seen = execution.seen.observation.volume(ordinal).found();
        if seen.is_some_and(|seen| seen.is_deleting) {
            // The plan knew.
            continue;
        }
        let name = names::claim(&execution.name(), ordinal);
        let live: Option<PersistentVolumeClaim> = execution.read(&name).await?;
        if live.is_some_and(|live| live.metadata.deletion_timestamp.is_some()) {
            return Err(Failure::moved(format!("claim {name} is being deleted")));
        }
    }
    Ok(())
}

/// Asks for more bytes.
pub async fn resize(
    execution: Execution<'_>,
    volume: &Handle,
    ordinal: Ordinal,
    size: u64,
) -> Result<(), Failure> {
    let name = names::claim(&execution.name(), ordinal);
    // As the spec writes it, where that is what was decided on.
    let asked = &execution.spec.storage.size;
    let size =
        if asked.bytes().is_ok_and(|asked| asked == size) { json!(asked) } else { json!(size.to_string()) };
    let request = json!({"spec": {"resources": {"requests": {"storage": size}}}});
    let version = Some(volume.resource_version.0.as_str());
    execution.merge::<PersistentVolumeClaim>(&name, &volume.uid.0, version, request).await
}

/// Says on the claim that a recovery set its member aside, or no longer.
pub async fn set_aside(
    execution: Execution<'_>,
    volume: &Handle,
    ordinal: Ordinal,
    is_set_aside: bool,
) -> Result<(), Failure> {
    let name = names::claim(&execution.name(), ordinal);
    let labels = json!({"metadata": {"labels": {names::SET_ASIDE: is_set_aside.then_some("true")}}});
    let version = Some(volume.resource_version.0.as_str());
    execution.merge::<PersistentVolumeClaim>(&name, &volume.uid.0, version, labels).await
}

/// Keeps what is on the volume when its claim goes, and says whose it was.
pub async fn retain(execution: Execution<'_>, volume: &Handle, ordinal: Ordinal) -> Result<(), Failure> {
    let claim = claim(execution, volume, ordinal).await?;
    let name = claim.name_any();
    let Some(live) = backing(execution, &claim).await? else {
        return Err(Failure::moved(format!("claim {name} has no volume")));
    };
    let owner = format!("{}.{name}", execution.namespace());
    // A label holds at most 63 characters; the annotation holds all of it.
    let fields = json!({
        "metadata": {
            "uid": live.metadata.uid,
            "resourceVersion": live.metadata.resource_version,
            "labels": {RETAINED: "true"},
            "annotations": {RETAINED: owner},
        },
        "spec": {"persistentVolumeReclaimPolicy": "Retain"},
    });
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    let patched = call(volumes(execution).patch(&live.name_any(), &params, &Patch::Merge(fields))).await;
    patched.map(|_| ()).map_err(|source| failed("patch", &live.name_any(), source))
}

/// The claim, as it was seen.
async fn claim(
    execution: Execution<'_>,
    volume: &Handle,
    ordinal: Ordinal,
) -> Result<PersistentVolumeClaim, Failure> {
    let name = names::claim(&execution.name(), ordinal);
    let claim: Option<PersistentVolumeClaim> = execution.read(&name).await?;
    let claim = claim.filter(|claim| handle(&claim.metadata) == *volume);
    claim.ok_or_else(|| Failure::moved(format!("claim {name} has changed")))
}

/// The PersistentVolume of a claim, as it is now; none where there is none.
async fn backing(
    execution: Execution<'_>,
    claim: &PersistentVolumeClaim,
) -> Result<Option<PersistentVolume>, Failure> {
    let name = claim.spec.as_ref().and_then(|spec| spec.volume_name.clone());
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(None) };
    let found = call(volumes(execution).get_opt(&name)).await;
    let found = found.map_err(|source| failed("read", &name, source))?;
    match found {
        Some(live) if !backs(&live, &claim.metadata) => Err(Failure::moved(format!(
            "volume {} is not that of claim {}",
            live.name_any(),
            claim.name_any()
        ))),
        found => Ok(found),
    }
}

fn volumes(execution: Execution<'_>) -> Api<PersistentVolume> {
    Api::all(execution.context.client.clone())
}

/// They are in no namespace, and an installation in namespaces alone has no rights on them.
fn failed(verb: &'static str, name: &str, source: call::Error) -> Failure {
    if source.is_forbidden() {
        return Failure::Forbidden(
            "the claims of members that a recovery set aside stay: gatehouse has no rights on PersistentVolumes, by \
             which their data would outlive them",
        );
    }
    Failure::Api(Error::of(verb, &Place::named::<PersistentVolume>("", name))(source))
}
