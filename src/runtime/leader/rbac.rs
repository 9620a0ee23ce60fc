//! The rights that leader election needs. Pure.

use crate::rbac::Rule;

/// For the Lease of that name in the own namespace.
#[must_use]
pub fn rules(lease: &str) -> Vec<Rule> {
    const GROUP: &str = "coordination.k8s.io";
    vec![
        Rule::new(GROUP, &["leases"], &["create"])
            .because("The first replica of all makes the Lease; a name cannot be given for create."),
        Rule::new(GROUP, &["leases"], &["get", "update"])
            .named([lease])
            .because("The Lease is read, taken, renewed and given back."),
    ]
}
