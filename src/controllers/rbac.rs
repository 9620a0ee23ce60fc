//! The rights that the controllers of all kinds need. Pure.

use crate::rbac::Rule;

/// In every namespace whose objects are reconciled.
#[must_use]
pub fn rules() -> Vec<Rule> {
    vec![
        Rule::new("events.k8s.io", &["events"], &["create"])
            .because("Events report what was done for an object."),
    ]
}
