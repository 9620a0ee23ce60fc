//! The rights that reconciling TDSets needs. Pure.

use crate::api::GROUP;
use crate::rbac::{AuditTrace, Rule};

/// In every namespace whose TDSets are reconciled.
#[must_use]
pub fn rules() -> Vec<Rule> {
    vec![
        Rule::new(GROUP, &["tdsets"], &["get", "list", "watch"])
            .because("TDSets are watched; one that cannot be decoded is read again as it is stored."),
        Rule::new(GROUP, &["tdsets"], &["patch"])
            .because("A TDSet that leaves a stated count behind (replicasOnDeletion) has a finalizer."),
        Rule::new(GROUP, &["tdsets/status"], &["patch"])
            .because("How a TDSet is doing stands in its status."),
        Rule::new(GROUP, &["tdsets/finalizers"], &["update"]).audited(AuditTrace::Nowhere).because(
            "Owner references that block deletion need it where OwnerReferencesPermissionEnforcement is on.",
        ),
        Rule::new("apps", &["deployments"], &["get", "list", "watch", "patch"])
            .because("A TDSet's Deployment is applied, watched, and its count kept to the timetable."),
        Rule::new("apps", &["deployments"], &["create"])
            .audited(AuditTrace::Apply)
            .because("The first apply of a Deployment makes it."),
        Rule::new("", &["services"], &["get", "list", "watch", "patch", "delete"])
            .because("A TDSet's Service is applied and watched, and deleted when it is no longer asked for."),
        Rule::new("", &["services"], &["create"])
            .audited(AuditTrace::Apply)
            .because("The first apply of a Service makes it."),
        Rule::new("apps", &["deployments/scale", "statefulsets/scale"], &["get", "patch"])
            .because("The count of a workload of target.ref is read and written through its scale alone."),
        Rule::new("apps", &["statefulsets"], &["get", "list", "watch"])
            .because("A StatefulSet of target.ref is watched, by its metadata, which tells who wrote the count last."),
        Rule::new("autoscaling", &["horizontalpodautoscalers"], &["list", "watch", "patch"])
            .because("Autoscalers of the same workload are noticed; the bounds of that of spec.autoscaler are applied."),
        Rule::new("keda.sh", &["scaledobjects"], &["get", "list", "watch", "patch"])
            .audited(AuditTrace::Nowhere)
            .because("The bounds of a ScaledObject of spec.autoscaler are written; it is watched by its metadata."),
        Rule::new("", &["configmaps"], &["get", "list", "watch"])
            .because("Dates may be kept in ConfigMaps (datesFrom). Watched by metadata; only those that are named are read."),
    ]
}
