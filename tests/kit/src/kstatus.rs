//! How clients that wait for objects of any kind, such as Flux and Helm 4, understand a custom resource.
//!
//! The rules are those of kstatus (`sigs.k8s.io/cli-utils/pkg/kstatus/status`): the generation, `Reconciling` and
//! `Stalled`, then `Ready`; a resource with none of them is Current.

use serde_json::Value;

/// What kstatus says of a custom resource.
#[must_use]
pub fn kstatus(object: &Value) -> &'static str {
    let (metadata, status) = (&object["metadata"], &object["status"]);
    let conditions = || status["conditions"].as_array().into_iter().flatten();
    let state = |about: &str| conditions().find(|one| one["type"] == about).map(|one| &one["status"]);
    let holds = |about: &str| state(about).is_some_and(|state| state == "True");
    let observed = &status["observedGeneration"];
    if !metadata["deletionTimestamp"].is_null() {
        "Terminating"
    } else if !observed.is_null() && observed != &metadata["generation"] || holds("Reconciling") {
        "InProgress"
    } else if holds("Stalled") {
        "Failed"
    } else if state("Ready").is_none() || holds("Ready") {
        "Current"
    } else {
        "InProgress"
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_current_once_what_it_asks_for_is_ready() {
        let of = |observed: Value, ready: &str| {
            kstatus(&json!({
                "metadata": {"generation": 2},
                "status": {"observedGeneration": observed, "conditions": [{"type": "Ready", "status": ready}]},
            }))
        };
        assert_eq!(of(json!(2), "True"), "Current");
        assert_eq!(of(json!(1), "True"), "InProgress");
        assert_eq!(of(json!(2), "False"), "InProgress");
        assert_eq!(of(json!(2), "Unknown"), "InProgress");
        assert_eq!(kstatus(&json!({"metadata": {"generation": 1}})), "Current");
        let unobserved = json!({"metadata": {"generation": 1}, "status": {"observedGeneration": -1}});
        assert_eq!(kstatus(&unobserved), "InProgress");
    }
}
