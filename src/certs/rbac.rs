//! The rights that the shared authority needs. Pure.

use crate::rbac::Rule;

/// For the Secret of that name in the own namespace.
#[must_use]
pub fn rules(secret: &str) -> Vec<Rule> {
    vec![
        Rule::new("", &["secrets"], &["create"])
            .because("The authority is made once; a name cannot be given for create."),
        Rule::new("", &["secrets"], &["get", "patch"])
            .named([secret])
            .because("The authority is read each minute and renewed in time. No other Secret is read."),
    ]
}
