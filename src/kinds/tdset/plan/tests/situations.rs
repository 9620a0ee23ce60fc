//! What users see of a TDSet that needs attention.

use super::*;
use crate::api::field::{Path, Reason as FaultReason};
use crate::controllers::situations::{self, Situation};
use crate::kinds::tdset::metrics::Line;
use crate::kinds::tdset::observation::Contest;

/// What a TDSet of that name shows after another reconciliation, in which `change` is seen.
fn situation(
    name: &'static str,
    series: &'static str,
    spec: &Value,
    faults: Vec<FieldError>,
    change: fn(&mut Observed),
) -> Situation {
    let mut object = json!(shop());
    object["metadata"]["name"] = name.into();
    let before = serde_json::from_value(object.clone()).unwrap();
    let mut cluster = Cluster::settled(&before, OPENING);
    json_patch::merge(&mut object["spec"], spec);
    let tdset: TDSet = serde_json::from_value(object.clone()).unwrap();
    change(&mut cluster.0);
    let plan = super::super::plan(&Spec::resolve(&tdset, faults), &cluster.0);
    let page =
        situations::page("gatehouse_tdset", name, Line::of(&plan.status, &std::collections::BTreeMap::new()));
    object["status"] = json!(plan.status);
    Situation { object, events: plan.events, page, condition: "Ready", series }
}

/// All of them.
pub fn all() -> Vec<Situation> {
    let reference = json!({
        "target": {"create": null, "ref": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
    });
    let unchanged = |_: &mut Observed| ();
    let fault = FieldError::new(Path::spec().at("timeZone"), FaultReason::Invalid, "is no time zone");
    vec![
        situation("target-missing", "gatehouse_tdset_problem", &reference, Vec::new(), |observed| {
            let message = "Deployment web does not exist".to_owned();
            observed.target = Some(Err(Blocker::ready(Reason::TargetNotFound, message)));
        }),
        situation("right-missing", "gatehouse_tdset_problem", &reference, Vec::new(), |observed| {
            observed.target = Some(Err(Blocker::forbidden("get and patch", "widgets/scale", "example.com")));
        }),
        situation("write-refused", "gatehouse_tdset_problem", &json!({}), Vec::new(), |observed| {
            let why = "deployments.apps \"write-refused\" is forbidden: exceeded quota: pods";
            observed.refused =
                Some(RefusedWrite { action: "tdset.apply-deployment".to_owned(), why: why.to_owned() });
        }),
        situation("count-refused", "gatehouse_tdset_problem", &json!({}), Vec::new(), |observed| {
            let why = "failed to apply deployments default/count-refused: Forbidden (403)";
            observed.refused =
                Some(RefusedWrite { action: "tdset.write-count".to_owned(), why: why.to_owned() });
        }),
        situation("contested", "gatehouse_tdset_problem", &json!({}), Vec::new(), |observed| {
            edit(observed, |deployment| scale(deployment, 3, "argocd-controller"));
            observed.remembered.contest = Some(Contest {
                managers: ["argocd-controller".to_owned()].into(),
                until: at("2026-03-02T07:05:00Z"),
                over: at("2026-03-02T07:10:00Z"),
            });
        }),
        situation("spec-refused", "gatehouse_tdset_problem", &json!({}), vec![fault], unchanged),
        situation("suspended", "gatehouse_tdset_ready", &json!({"suspend": true}), Vec::new(), unchanged),
    ]
}
