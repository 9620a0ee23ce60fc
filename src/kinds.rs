//! The table of kinds: routes, definitions, webhook rules and controllers are derived from it.

use crate::api::{Kind, etcdcluster, tdset};

/// Every kind there is.
pub static KINDS: &[&dyn Kind] = &[&etcdcluster::EtcdClusterKind, &tdset::TDSetKind];

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
