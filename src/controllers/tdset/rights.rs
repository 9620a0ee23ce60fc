//! What working TDSets needs. Pure.

use crate::api::GROUP;
use crate::rights::{Rule, Shows};

/// In every namespace whose TDSets are worked.
#[must_use]
pub fn rules() -> Vec<Rule> {
    vec![
        Rule::new(GROUP, &["tdsets"], &["get", "list", "watch"])
            .because("TDSets are watched; one that cannot be decoded is read again as it is stored."),
        Rule::new(GROUP, &["tdsets/status"], &["patch"])
            .because("How a TDSet is doing stands in its status."),
        Rule::new(GROUP, &["tdsets/finalizers"], &["update"]).shows(Shows::Nowhere).because(
            "Owner references that block deletion need it where OwnerReferencesPermissionEnforcement is on.",
        ),
        Rule::new("apps", &["deployments"], &["get", "list", "watch", "patch"])
            .because("A TDSet's Deployment is applied, watched, and its count kept to the timetable."),
        Rule::new("apps", &["deployments"], &["create"])
            .shows(Shows::AsApply)
            .because("The first apply of a Deployment makes it."),
        Rule::new("", &["services"], &["get", "list", "watch", "patch", "delete"])
            .because("A TDSet's Service is applied and watched, and deleted when it is no longer asked for."),
        Rule::new("", &["services"], &["create"])
            .shows(Shows::AsApply)
            .because("The first apply of a Service makes it."),
    ]
}
