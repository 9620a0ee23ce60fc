//! The rights that gatehouse needs to install itself. Pure.

use super::NAME;
use crate::api::GROUP;
use crate::rbac::{AuditTrace, Rule};

/// For the definitions with these plural names, both webhook configurations, and the ClusterRole that owns them.
#[must_use]
pub fn rules(plurals: &[&str], cluster_role: &str) -> Vec<Rule> {
    const REACH: &[&str] = &["get", "list", "watch", "patch"];
    let definitions = ("apiextensions.k8s.io", &["customresourcedefinitions"]);
    let configurations = (
        "admissionregistration.k8s.io",
        &["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
    );
    vec![
        Rule::new(definitions.0, definitions.1, &["create"])
            .audited(AuditTrace::Apply)
            .because("The first apply of a definition makes it; a name cannot be given for create."),
        Rule::new(definitions.0, definitions.1, REACH)
            .named(plurals.iter().map(|plural| format!("{plural}.{GROUP}")))
            .because("Its definitions are applied, waited for, watched and put right."),
        Rule::new(definitions.0, &["customresourcedefinitions/status"], &["patch"])
            .named(plurals.iter().map(|plural| format!("{plural}.{GROUP}")))
            .because("Their status says in which versions objects are stored (StorageMigrated, storedVersions)."),
        Rule::new(configurations.0, configurations.1, &["create"])
            .audited(AuditTrace::Apply)
            .because("The first apply of a webhook configuration makes it."),
        Rule::new(configurations.0, configurations.1, REACH)
            .named([NAME])
            .because("Its webhook configurations are applied, watched and put right."),
        Rule::new(configurations.0, configurations.1, &["delete"]).named([NAME]).audited(AuditTrace::Nowhere).because(
            "A new owner for those of an earlier installation; OwnerReferencesPermissionEnforcement asks for it.",
        ),
        Rule::new("rbac.authorization.k8s.io", &["clusterroles"], &["get"])
            .named([cluster_role])
            .because("The uid of this very ClusterRole: deleting it takes the webhook configurations along."),
    ]
}
