//! The kinds, each in a folder of its own, and their table: routes, definitions and webhook rules are derived from it.

pub mod databasemigration;
pub mod etcdcluster;
pub mod tdset;

use crate::api::Kind;

/// Every kind there is.
pub static KINDS: &[&dyn Kind] = &[
    &databasemigration::api::DatabaseMigrationKind,
    &etcdcluster::api::EtcdClusterKind,
    &tdset::api::TDSetKind,
];

/// The kind of that name.
#[must_use]
pub fn find(kind: &str) -> Option<&'static dyn Kind> {
    KINDS.iter().copied().find(|one| one.names().kind == kind)
}

/// The kind whose resource has that plural name.
#[must_use]
pub fn find_plural(plural: &str) -> Option<&'static dyn Kind> {
    KINDS.iter().copied().find(|one| one.names().plural == plural)
}
