//! Names of objects.
//!
//! Guarantees: a label value is never longer than the API server takes, and two objects of one namespace never have
//! the same. The selector of a Deployment cannot be changed, so these labels are permanent.

use std::collections::BTreeMap;

use crate::controllers::cache::{INSTANCE, MANAGED_BY, NAME};
use crate::controllers::manifest::{hash, pairs};

/// The field manager of everything but the count.
pub const MANAGER: &str = "gatehouse-tdset";

/// The field manager of the count.
pub const COUNT_MANAGER: &str = "gatehouse-tdset-count";

/// Has the deletion of a TDSet wait until its workload has the count that it is left with. No other TDSet has it.
pub const FINALIZER: &str = "gatehouse.dev/replicas-on-deletion";

/// What the container and its port are called; the API says so.
pub const CONTAINER: &str = "tdset";

/// Longest value of a label, in bytes.
const LONGEST_LABEL: usize = 63;

/// Bytes of a long name that its label keeps.
const KEPT: usize = 54;

/// Labels that the pods of the TDSet of that name are selected by.
#[must_use]
pub fn selector(tdset: &str) -> BTreeMap<String, String> {
    pairs([(NAME, "tdset"), (INSTANCE, &instance(tdset))])
}

/// Labels of everything that is made for it.
#[must_use]
pub fn labels(tdset: &str) -> BTreeMap<String, String> {
    let mut labels = selector(tdset);
    labels.extend(pairs([MANAGED_BY]));
    labels
}

/// The selector as text.
#[must_use]
pub fn selector_text(tdset: &str) -> String {
    selector(tdset).iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

/// A name as a label's value: itself, or its beginning and a hash of it.
fn instance(name: &str) -> String {
    if name.len() <= LONGEST_LABEL {
        return name.to_owned();
    }
    let hash = hash(name, 4);
    format!("{}-{hash}", &name[..name.floor_char_boundary(KEPT)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_the_name_or_something_short_that_stands_for_it_alone() {
        assert_eq!(instance("shop"), "shop");
        let (one, other) = (instance(&"a".repeat(200)), instance(&"a".repeat(201)));
        assert_eq!(one.len(), LONGEST_LABEL);
        assert_ne!(one, other);
    }
}
