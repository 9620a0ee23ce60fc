//! What tells an object from what it was before, and from another one of its name.

use std::hash::Hash;

use gatehouse::kinds::etcdcluster::observation::{Handle, Pod, ResourceVersion, Uid};
use kit::explore::fingerprint;

/// An object's version: what it holds tells it from what it held.
fn version_of(object: &impl Hash) -> ResourceVersion {
    ResourceVersion(format!("{:x}", fingerprint(object)))
}

/// An identity without a version: as objects are kept here.
pub fn identity(uid: &str) -> Handle {
    Handle { uid: Uid(uid.to_owned()), resource_version: ResourceVersion(String::new()) }
}

/// A pod as it is seen: how long it has been starting is nothing that its object holds.
pub fn seen_pod(pod: &Pod) -> Handle {
    seen(&pod.handle, &(&pod.template, pod.phase, pod.is_deleting, pod.role))
}

/// As it is seen.
pub fn seen(handle: &Handle, object: &impl Hash) -> Handle {
    Handle { uid: handle.uid.clone(), resource_version: version_of(object) }
}
