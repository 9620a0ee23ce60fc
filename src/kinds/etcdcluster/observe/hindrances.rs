//! Why pods do not come to serve, in the words of Kubernetes.
//!
//! Guarantees: nothing is read for members that answer, nor before a pod has had the time that one usually takes; a pod
//! that is merely slow hinders nothing; without the right to list events, what pods and claims say themselves is left.
//! Never: decides what is done about it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ContainerStateWaiting, PersistentVolumeClaim, Pod};
use tokio::time::Instant;

use super::Reader;
use crate::controllers::object_events::{self, Said, one_line};
use crate::kinds::etcdcluster::names;
use crate::kinds::etcdcluster::observation::{self as seen, Fact, Observation, Ordinal, PodPhase};
use crate::kinds::etcdcluster::state::ReconcileState;

/// Waiting reasons of a container that is on its way, and of one that the kubelet starts again.
const ON_ITS_WAY: [&str; 4] = ["", "ContainerCreating", "PodInitializing", "CrashLoopBackOff"];

/// What the StatefulSet's controller says before the API server's own words.
const FAILED: &str = " failed error: ";

/// Reads why the members that do not answer have no pod that serves. A pod that has no node, volume or image yet, and of
/// which nothing says why, counts as hindered only once a start takes too long.
pub async fn look(
    reader: &Reader,
    pods: &Fact<BTreeMap<Ordinal, Pod>>,
    state: &ReconcileState,
    observed: &mut Observation,
    now: Instant,
) -> BTreeMap<Ordinal, String> {
    let Fact::Known(pods) = pods else { return BTreeMap::new() };
    let mut words = BTreeMap::new();
    for ordinal in state.starts.overdue(now) {
        let found = match pods.get(&ordinal) {
            Some(pod) => of_pod(reader, pod, ordinal, state.starts.attempts(ordinal)).await,
            None => Some(without_pod(reader, observed, ordinal).await),
        };
        words.extend(found.map(|found| (ordinal, found)));
    }
    let is_slow = |pod: &seen::Pod| pod.phase == PodPhase::Pending(None) && !pod.startup_age.is_past();
    let slow = observed.pods.elements().filter(|(_, pod)| is_slow(pod)).map(|(ordinal, _)| ordinal);
    let slow: Vec<_> = slow.filter(|ordinal| !words.contains_key(ordinal)).collect();
    observed.hindered.slow.retain(|ordinal| !slow.contains(ordinal));
    words
}

/// Why no pod is made: the StatefulSet's controller says so in events alone.
async fn without_pod(reader: &Reader, observed: &Observation, ordinal: Ordinal) -> String {
    let name = names::member(&reader.name, ordinal);
    let events = match observed.stateful_set.known() {
        Some(set) => object_events::of(&reader.client, &reader.namespace, &set.handle.uid.0).await,
        None => Vec::new(),
    };
    unmade(&name, &reader.name, &events)
}

fn unmade(pod: &str, set: &str, events: &[Said]) -> String {
    let about = format!("Pod {pod} ");
    let mut events = events.iter().filter(|event| event.is_warning && event.text.contains(&about));
    match events.next() {
        Some(event) => {
            let why = event.text.split_once(FAILED).map_or(event.text.as_str(), |(_, why)| why);
            format!("no pod is made: {why}")
        }
        None => format!("no pod is made: see kubectl describe statefulset {set}"),
    }
}

async fn of_pod(reader: &Reader, pod: &Pod, ordinal: Ordinal, attempts: u32) -> Option<String> {
    let own = own_words(pod, attempts);
    if own.is_some() && !is_unscheduled(pod) {
        return own;
    }
    if let Some(claim) = unbound_claim(reader, ordinal).await {
        let uid = claim.metadata.uid.clone().unwrap_or_default();
        let events = object_events::of(&reader.client, &reader.namespace, &uid).await;
        return Some(unbound(&names::claim(&reader.name, ordinal), &events));
    }
    if own.is_some() {
        return own;
    }
    let uid = pod.metadata.uid.clone().unwrap_or_default();
    let events = object_events::of(&reader.client, &reader.namespace, &uid).await;
    events.into_iter().find(|event| event.is_warning).map(|event| format!("{}: {}", event.reason, event.text))
}

/// The claim of a member that has no volume.
async fn unbound_claim(reader: &Reader, ordinal: Ordinal) -> Option<PersistentVolumeClaim> {
    let name = names::claim(&reader.name, ordinal);
    let claim = reader.get::<PersistentVolumeClaim>(&name).await;
    let is_unbound = |claim: &PersistentVolumeClaim| {
        claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Pending")
    };
    claim.known().filter(|claim| is_unbound(claim)).cloned()
}

fn unbound(claim: &str, events: &[Said]) -> String {
    match events.first() {
        Some(event) => format!("claim {claim} has no volume: {}: {}", event.reason, event.text),
        None => format!("claim {claim} has no volume: see kubectl describe pvc {claim}"),
    }
}

fn is_unscheduled(pod: &Pod) -> bool {
    unscheduled(pod).is_some()
}

/// What the scheduler says of a pod that has no node.
fn unscheduled(pod: &Pod) -> Option<&str> {
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let refused = conditions.find(|one| one.type_ == "PodScheduled" && one.status == "False")?;
    refused.message.as_deref().or(refused.reason.as_deref())
}

/// What a pod says itself.
fn own_words(pod: &Pod, attempts: u32) -> Option<String> {
    let status = pod.status.as_ref()?;
    if matches!(status.phase.as_deref(), Some("Failed")) {
        let parts = [status.reason.as_deref(), status.message.as_deref()];
        let why = one_line(&parts.into_iter().flatten().collect::<Vec<_>>().join(": "));
        let why = if why.is_empty() { "its containers have failed".to_owned() } else { why };
        return Some(match attempts {
            0 | 1 => format!("its pod has ended: {why}"),
            several => format!("{several} pods in a row have ended before a container ran: {why}"),
        });
    }
    if let Some(why) = unscheduled(pod) {
        return Some(format!("no node takes its pod: {}", one_line(why)));
    }
    let containers = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    let mut waiting = containers.filter_map(|container| container.state.as_ref()?.waiting.as_ref());
    waiting.find_map(waits)
}

/// Why a container waits; nothing where it is on its way.
fn waits(waiting: &ContainerStateWaiting) -> Option<String> {
    let reason = waiting.reason.as_deref().filter(|reason| !ON_ITS_WAY.contains(reason))?;
    let message = waiting.message.as_deref().map(|message| format!(": {}", one_line(message)));
    Some(format!("{reason}{}", message.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(reason: &str, text: &str, is_warning: bool) -> Said {
        Said { reason: reason.to_owned(), text: text.to_owned(), is_warning }
    }

    fn pod(status: &Value) -> Pod {
        serde_json::from_value(json!({ "status": status })).unwrap()
    }

    #[test]
    fn a_pod_that_is_not_made_is_explained_by_the_event_about_it() {
        let refused = "create Pod shop-1 in StatefulSet shop failed error: pods \"shop-1\" is forbidden: exceeded quota: \
                       small, requested: pods=1, used: pods=1, limited: pods=1";
        let claim =
            "create Claim data-shop-0 Pod shop-0 in StatefulSet shop failed error: exceeded quota: claims";
        let events = [
            event("FailedCreate", claim, true),
            event("SuccessfulCreate", "create Pod shop-1 in StatefulSet shop successful", false),
            event("FailedCreate", refused, true),
        ];
        let words = unmade("shop-1", "shop", &events);
        assert!(
            words.starts_with("no pod is made: pods \"shop-1\" is forbidden: exceeded quota: small"),
            "{words}"
        );
        assert_eq!(unmade("shop-0", "shop", &events), "no pod is made: exceeded quota: claims");
        let words = unmade("shop-10", "shop", &events);
        assert_eq!(words, "no pod is made: see kubectl describe statefulset shop");
    }

    #[test]
    fn a_claim_without_a_volume_is_named_with_its_event() {
        let none = "no persistent volumes available for this claim and no storage class is set";
        let words = unbound("data-shop-0", &[event("FailedBinding", none, false)]);
        assert_eq!(words, format!("claim data-shop-0 has no volume: FailedBinding: {none}"));
        assert!(unbound("data-shop-0", &[]).contains("kubectl describe pvc data-shop-0"));
    }

    #[test]
    fn a_pod_says_itself_what_it_waits_for() {
        let waiting = |reason: &str, message: Value| {
            let state = json!({"waiting": {"reason": reason, "message": message}});
            let container = json!({"name": "etcd", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                "state": state});
            own_words(&pod(&json!({"phase": "Pending", "containerStatuses": [container]})), 1)
        };
        assert_eq!(waiting("ContainerCreating", Value::Null), None);
        assert_eq!(waiting("CrashLoopBackOff", json!("back-off 5m0s restarting failed container")), None);
        let missing = waiting("CreateContainerConfigError", json!("secret \"shop-env\" not found"));
        assert_eq!(missing.as_deref(), Some("CreateContainerConfigError: secret \"shop-env\" not found"));
        assert_eq!(waiting("ErrImageNeverPull", Value::Null).as_deref(), Some("ErrImageNeverPull"));
        let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/3 nodes are available:\n3 Insufficient memory."});
        let words = own_words(&pod(&json!({"phase": "Pending", "conditions": [condition]})), 1);
        assert_eq!(
            words.as_deref(),
            Some("no node takes its pod: 0/3 nodes are available: 3 Insufficient memory.")
        );
    }

    #[test]
    fn pods_that_end_one_after_the_other_are_counted() {
        let evicted = pod(
            &json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}),
        );
        let why = "Evicted: The node was low on resource: memory.";
        assert_eq!(own_words(&evicted, 1), Some(format!("its pod has ended: {why}")));
        let several = format!("134 pods in a row have ended before a container ran: {why}");
        assert_eq!(own_words(&evicted, 134), Some(several));
    }
}
