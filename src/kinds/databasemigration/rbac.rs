//! The rights that reconciling DatabaseMigrations needs. Pure.
//!
//! Never: Secrets. The pods of a run mount them, and a user who names a Secret in an object must be allowed to read it.

use crate::api::GROUP;
use crate::rbac::{AuditTrace, Rule};

/// In every namespace whose DatabaseMigrations are reconciled.
#[must_use]
pub fn rules() -> Vec<Rule> {
    vec![
        Rule::new(GROUP, &["databasemigrations"], &["get", "list", "watch"])
            .because("DatabaseMigrations are watched, and read again before anything is done."),
        Rule::new(GROUP, &["databasemigrations"], &["patch"])
            .because("The deletion of a DatabaseMigration waits for a run, or for what is to be taken back."),
        Rule::new(GROUP, &["databasemigrations/status"], &["patch"])
            .because("How a DatabaseMigration is doing stands in its status."),
        Rule::new(GROUP, &["databasemigrations/finalizers"], &["update"]).audited(AuditTrace::Nowhere).because(
            "Owner references that block deletion need it where OwnerReferencesPermissionEnforcement is on.",
        ),
        Rule::new("batch", &["jobs"], &["list", "watch", "create", "get"])
            .because("A Job runs the scripts of a DatabaseMigration. None is deleted: it goes by its time to live."),
        Rule::new("", &["pods"], &["list", "watch"])
            .because("What a run reports is the termination message of its pod. Watched by metadata."),
        Rule::new("", &["configmaps"], &["get", "list", "watch", "create", "delete"]).because(
            "Scripts may be kept in ConfigMaps, which are watched by metadata; those that a run reads are a copy.",
        ),
    ]
}
