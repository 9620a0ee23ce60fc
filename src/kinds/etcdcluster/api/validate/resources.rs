//! Validates the resources of members.

use super::super::v1::EtcdClusterSpec;
use crate::api::field::Validation;

/// Warns of members without a request for memory, where that is new: a node that runs short of it ends them first
/// (kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction). A limit is a request as well.
pub fn validate(spec: &EtcdClusterSpec, old: Option<&EtcdClusterSpec>, validation: &mut Validation) {
    if asks_for_memory(spec) || old.is_some_and(|old| !asks_for_memory(old)) {
        return;
    }
    validation.warn(
        "spec.pod.resources: no request for memory; a node that runs short of memory evicts such members first",
    );
}

fn asks_for_memory(spec: &EtcdClusterSpec) -> bool {
    let resources = spec.pod.as_ref().and_then(|pod| pod.resources.as_ref());
    let amounts = resources.into_iter().flat_map(|given| [&given.requests, &given.limits]);
    amounts.flatten().any(|amounts| amounts.contains_key("memory"))
}
