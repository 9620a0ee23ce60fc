//! The hook by which a kind adds containers to pods that ask for it. Pure.
//!
//! Guarantees: a pod is looked at only where it and its namespace carry the label of the hook, so that all other pods
//! cost nothing and depend on nothing of ours.

use serde_json::Value;

use super::field::FieldError;

/// The value of the label by which a pod asks.
pub const ASKS: &str = "true";

/// The values of the label by which a namespace lets its pods ask: what happens to those that do while the gate does not
/// answer. `Fail`: none is made. `Ignore`: they are made without what they asked for.
pub const POLICIES: [&str; 2] = ["Fail", "Ignore"];

/// The operations of a JSON patch (RFC 6902) of a pod; or all that is wrong with it, with paths of the pod.
pub type Added = Result<Vec<Value>, Vec<FieldError>>;

/// What a kind adds to pods when they are created.
#[derive(Debug)]
pub struct PodHook {
    /// The first part of the names of its webhooks.
    pub name: &'static str,
    /// The label of pods and of namespaces.
    pub label: &'static str,
    /// What is added to `pod`, which asks for it. The image is that of gatehouse.
    pub add: fn(pod: &Value, image: &str) -> Added,
}

impl PodHook {
    /// Whether a pod asks for what this adds.
    #[must_use]
    pub fn is_asked_for(&self, pod: &Value) -> bool {
        pod["metadata"]["labels"][self.label] == ASKS
    }
}
