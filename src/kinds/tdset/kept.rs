//! Values derived from a TDSet and cached, so that a reconciliation without changes is a few comparisons. Pure.
//!
//! Guarantees: what is kept is used only while that is as it was of which it was derived; so a reconciliation decides the
//! same without it, as the first one of a process does.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;

use super::observation::{FoundDeployment, Observed, Whole};
use super::plan::Plan;
use super::spec::Spec;
use super::state::ReconcileState;
use crate::api::field::FieldError;
use crate::kinds::tdset::api::schedule::Outlook;
use crate::kinds::tdset::api::v1::TDSet;

/// What a process has of a TDSet between two reconciliations.
#[derive(Clone, Debug, Default)]
pub struct ObjectState {
    /// What it remembers of what it did.
    pub recall: ReconcileState,
    /// What it does not derive again.
    pub kept: Kept,
    /// An object was made for it, or was tried to be, since this process reconciles it.
    pub has_made: bool,
}

/// What is derived of a TDSet and of what is made for it.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    spec: Option<Arc<Spec>>,
    outlook: Option<Arc<Outlook>>,
    /// The Deployment that was found to lack nothing of what that spec asks for.
    deployment: Option<Arc<FoundDeployment>>,
    /// The same of the Service.
    service: Option<Arc<Service>>,
}

impl Kept {
    /// What the TDSet asks for; `faults` says what the gate has against it.
    pub fn spec(&mut self, tdset: &TDSet, faults: impl FnOnce() -> Vec<FieldError>) -> Arc<Spec> {
        let kept = self.spec.take().filter(|spec| spec.is_of(&tdset.metadata));
        let mut spec = kept.unwrap_or_else(|| {
            *self = Self::default();
            Arc::new(Spec::resolve(tdset, faults()))
        });
        if spec.metadata.resource_version != tdset.metadata.resource_version {
            Arc::make_mut(&mut spec).metadata.resource_version.clone_from(&tdset.metadata.resource_version);
        }
        self.spec = Some(Arc::clone(&spec));
        spec
    }

    /// What the timetable was found to ask for.
    #[must_use]
    pub fn outlook(&self) -> Option<Arc<Outlook>> {
        self.outlook.clone()
    }

    /// Whether these are as they were when they were found to lack nothing.
    #[must_use]
    pub fn whole(&self, deployment: Option<&Arc<FoundDeployment>>, service: Option<&Arc<Service>>) -> Whole {
        let pair = self.deployment.as_ref().zip(deployment);
        let services = self.service.as_ref().zip(service);
        Whole {
            deployment: pair.is_some_and(|(old, new)| Arc::ptr_eq(old, new) || is_same_deployment(old, new)),
            service: services.is_some_and(|(old, new)| Arc::ptr_eq(old, new) || old == new),
        }
    }

    /// What was found in the reconciliation that is planned.
    pub fn found(&mut self, plan: &Plan, observed: &Observed) {
        self.outlook.clone_from(&plan.detail.outlook);
        self.deployment = observed.deployment.clone().filter(|_| plan.detail.whole.deployment);
        self.service = observed.service.clone().filter(|_| plan.detail.whole.service);
    }
}

/// Whether two states of a Deployment differ in nothing that is asked for. The API server counts every change of its
/// spec in its generation (kubernetes `pkg/registry/apps/deployment/strategy.go`); its status and who owns which field
/// change all the time.
fn is_same_deployment(old: &FoundDeployment, new: &FoundDeployment) -> bool {
    let is_marked = old.is_marked_as(new);
    let (old, new) = (&old.metadata, &new.metadata);
    (&old.uid, old.generation, &old.deletion_timestamp) == (&new.uid, new.generation, &new.deletion_timestamp)
        && is_marked
        && old.owner_references == new.owner_references
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde_json::{Value, json};

    use super::*;
    use crate::kinds::tdset::plan::Detail;

    fn tdset(version: &str, generation: i64, annotations: &Value) -> TDSet {
        let object = json!({
            "apiVersion": "gatehouse.dev/v1", "kind": "TDSet",
            "metadata": {"name": "shop", "namespace": "a", "uid": "1", "resourceVersion": version,
                "generation": generation, "annotations": annotations},
            "spec": {"timeZone": "Etc/UTC", "defaultReplicas": 1, "target": {"create": {"image": "shop:1", "port": 80}}},
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn what_is_asked_for_is_judged_and_read_once_until_it_changes() {
        let judged = Cell::new(0);
        let mut kept = Kept::default();
        let mut look = |tdset: &TDSet| {
            let spec = kept.spec(tdset, || {
                judged.set(judged.get() + 1);
                Vec::new()
            });
            assert_eq!(spec.metadata.resource_version, tdset.metadata.resource_version);
            (judged.get(), spec.metadata.generation)
        };
        let none = json!({});
        assert_eq!(look(&tdset("7", 1, &none)), (1, Some(1)));
        assert_eq!(look(&tdset("8", 1, &none)), (1, Some(1)), "the status was written");
        assert_eq!(look(&tdset("9", 2, &none)), (2, Some(2)));
        assert_eq!(look(&tdset("10", 2, &json!({"a": "b"}))), (3, Some(2)));
        let mut leaving = tdset("11", 2, &json!({"a": "b"}));
        leaving.metadata.finalizers = Some(vec!["x".to_owned()]);
        assert_eq!(look(&leaving), (4, Some(2)));
        leaving.metadata.deletion_timestamp = Some(jiff::Timestamp::UNIX_EPOCH.into());
        assert_eq!(look(&leaving), (5, Some(2)));
        leaving.metadata.uid = Some("2".to_owned());
        assert_eq!(look(&leaving), (6, Some(2)));
    }

    fn plan_with(whole: Whole) -> Plan {
        Plan { detail: Detail { whole, ..Detail::default() }, ..Plan::default() }
    }

    fn deployment(metadata: &Value, status: i32) -> Arc<FoundDeployment> {
        let object = json!({"metadata": metadata, "spec": {"selector": {}, "template": {}}, "status": {"readyReplicas": status}});
        Arc::new(serde_json::from_value(object).unwrap())
    }

    #[test]
    fn a_deployment_is_looked_at_again_once_more_than_its_status_changes() {
        let metadata = json!({"name": "shop", "uid": "d", "generation": 3, "resourceVersion": "5",
            "labels": {"a": "b"}, "annotations": {"c": "d"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1"}]});
        let found = deployment(&metadata, 1);
        let mut kept = Kept::default();
        let plan = |is_whole| plan_with(Whole { deployment: is_whole, service: false });
        let observed = Observed { deployment: Some(Arc::clone(&found)), ..Observed::default() };
        kept.found(&plan(true), &observed);
        let is_whole = |kept: &Kept, found: &Arc<FoundDeployment>| kept.whole(Some(found), None).deployment;
        let mut written = metadata.clone();
        written["resourceVersion"] = json!("6");
        assert!(is_whole(&kept, &found) && is_whole(&kept, &deployment(&written, 2)));
        for (field, value) in [
            ("uid", json!("e")),
            ("generation", json!(4)),
            ("labels", json!({})),
            ("annotations", json!({"c": "e"})),
            ("ownerReferences", json!([])),
            ("deletionTimestamp", json!("2026-03-01T00:00:00Z")),
        ] {
            let mut changed = metadata.clone();
            changed[field] = value;
            assert!(!is_whole(&kept, &deployment(&changed, 1)), "{field}");
        }
        assert!(!kept.whole(None, None).deployment);
        kept.found(&plan(false), &observed);
        assert!(!is_whole(&kept, &found));
    }

    #[test]
    fn what_was_found_of_another_spec_is_not_kept() {
        let mut kept = Kept::default();
        let found = deployment(&json!({"name": "shop", "uid": "d", "generation": 3}), 1);
        let observed = Observed { deployment: Some(Arc::clone(&found)), ..Observed::default() };
        kept.spec(&tdset("7", 1, &json!({})), Vec::new);
        let whole = Whole { deployment: true, service: false };
        kept.found(&plan_with(whole), &observed);
        kept.spec(&tdset("8", 1, &json!({})), Vec::new);
        assert!(kept.whole(Some(&found), None).deployment);
        kept.spec(&tdset("9", 2, &json!({})), Vec::new);
        assert!(!kept.whole(Some(&found), None).deployment);
    }
}
