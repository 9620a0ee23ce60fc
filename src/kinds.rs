//! The kinds, each in a folder of its own, and their table: routes, definitions and webhook rules are derived from it.

pub mod databasemigration;
pub mod etcdcluster;
pub mod tdset;

use crate::api::Kind;

/// The table of kinds, one row for each: its folder, and what it is at the gate. `$tabulate` is a macro that takes all
/// rows. What the gate has of them is below; what they are as controllers is in `cli::serve::controllers::table`, for
/// nothing here may name a controller.
macro_rules! for_each_kind {
    ($tabulate:ident) => {
        $tabulate! {
            databasemigration::api::DatabaseMigrationKind,
            etcdcluster::api::EtcdClusterKind,
            tdset::api::TDSetKind,
        }
    };
}

macro_rules! kinds {
    ($($folder:ident::api::$kind:ident,)*) => {
        /// Every kind there is.
        pub static KINDS: &[&dyn Kind] = &[$(&$folder::api::$kind),*];
    };
}

pub(crate) use for_each_kind;
for_each_kind!(kinds);

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::situations;

    /// What a page about all kinds says first.
    const TOLD: [&str; 8] = [
        "database-full",
        "quorum-lost",
        "data-differ",
        "paused",
        "upgrade-stalled",
        "spec-refused",
        "target-missing",
        "right-missing",
    ];

    macro_rules! of_kinds {
        ($($folder:ident::api::$kind:ident,)*) => {
            [$((&$folder::api::$kind as &dyn Kind, $folder::situations::all())),*]
        };
    }

    #[test]
    fn what_users_see_is_in_the_docs() {
        situations::hold("docs/situations.md", &TOLD, &for_each_kind!(of_kinds));
    }
}
