//! Names of objects.
//!
//! Guarantees: the name of a run is that of no other run of any object, as long as the numbers of an object's runs rise;
//! a label value is never longer than the API server takes, for the gate takes no longer name.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::controllers::cache::{INSTANCE, MANAGED_BY, NAME};
use crate::controllers::manifest::pairs;

/// The field manager.
pub const MANAGER: &str = "gatehouse-databasemigration";

/// Has the deletion of a DatabaseMigration wait for a run, or for what its deletion policy asks for. No other one has it.
pub const FINALIZER: &str = "gatehouse.dev/database-migration";

/// The container that runs the scripts.
pub const CONTAINER: &str = "migrate";

/// The value of [`NAME`].
pub const APPLICATION: &str = "databasemigration";

/// The label with the uid of the object that something is made for: another one of its name has another.
pub const OWNER: &str = "gatehouse.dev/owner-uid";

/// The label of pods with the uid of their Job, by which the Job controller counts them.
pub const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";

/// The annotation of a Job with the hash of all that its run is to do.
pub const KEY: &str = "gatehouse.dev/run-key";

/// The annotation of a Job with its number among the runs of the object.
pub const NUMBER: &str = "gatehouse.dev/run-number";

/// The annotation of a Job with the attempt that it is, from 1.
pub const ATTEMPT: &str = "gatehouse.dev/run-attempt";

/// The annotation of a Job with what it is for.
pub const PURPOSE: &str = "gatehouse.dev/run-purpose";

/// The annotation of a Job with the resolution that it was given.
pub const RESOLVED: &str = "gatehouse.dev/run-resolve";

/// The annotation of an object that asks for another run: any new value does.
pub const RETRY: &str = "gatehouse.dev/retry";

/// The annotation of an object with the outcome of a script in doubt: `ID=applied` or `ID=retry`.
pub const RESOLVE: &str = "gatehouse.dev/resolve";

/// Characters of a key that are in the name of its run.
const SHOWN: usize = 8;

/// The name of a run: of its Job, and of the ConfigMap that it reads.
#[must_use]
pub fn run(object: &str, key: &str, number: i64) -> String {
    let shown: String = key.chars().take(SHOWN).collect();
    format!("{object}-{shown}-{number}")
}

/// Labels of everything that is made for the object of that name and uid.
#[must_use]
pub fn labels(object: &str, uid: &str) -> BTreeMap<String, String> {
    pairs([(NAME, APPLICATION), (INSTANCE, object), (OWNER, uid), MANAGED_BY])
}

/// The selector of that, as text.
#[must_use]
pub fn selector_text(uid: &str) -> String {
    format!("{}={},{OWNER}={uid}", MANAGED_BY.0, MANAGED_BY.1)
}

/// Whether an object is made for the object of that uid: its owner says so, or its label.
#[must_use]
pub fn is_owned(metadata: &ObjectMeta, uid: &str) -> bool {
    let label = metadata.labels.as_ref().and_then(|labels| labels.get(OWNER));
    let mut owners = metadata.owner_references.iter().flatten();
    label.is_some_and(|label| label == uid) || owners.any(|owner| owner.uid == uid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::databasemigration::api::validate::LONGEST_NAME;

    #[test]
    fn the_longest_name_of_a_run_is_a_label() {
        let name = run(&"a".repeat(LONGEST_NAME), "0123456789abcdef", 99_999_999);
        assert_eq!((name.len(), &name[44..]), (62, "-01234567-99999999"));
    }
}
