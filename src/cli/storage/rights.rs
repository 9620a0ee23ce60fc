//! The rights that a user needs for a migration, checked before anything is written.

use crate::storage::observation::Definition;
use crate::storage::plan;
use crate::storage::plan::managed_fields::Policy;
use crate::storage::plan::object::{Answer, reason};
use crate::storage::requests::{Requests, Right};

const DEFINITIONS: &str = "customresourcedefinitions";
const STATUS: &str = "customresourcedefinitions/status";
const GROUP: &str = "apiextensions.k8s.io";

/// What is asked for.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    /// Which managed fields are taken away.
    pub(super) policy: Policy,
    /// Whether nothing is to be written.
    pub(super) is_dry: bool,
}

/// What the user may not do that a migration of this definition does, a dry run or a real one; each as
/// `verb resource of group`.
///
/// # Errors
/// The API server does not say.
pub(super) async fn missing(
    requests: &Requests,
    definition: &Definition,
    asked: Asked,
) -> Result<Vec<String>, String> {
    let has_status = definition.asked_version().is_some_and(|version| version.has_status);
    let plural = definition.plural.as_str();
    let patched = if has_status { format!("{plural}/status") } else { plural.to_owned() };
    let (group, name) = (definition.group.as_str(), definition.name.as_str());
    let mut rights = vec![
        Right { verb: "list", group, resource: plural, name: "" },
        Right { verb: "patch", group, resource: &patched, name: "" },
        Right { verb: "get", group: GROUP, resource: DEFINITIONS, name },
    ];
    if !asked.is_dry {
        rights.push(Right { verb: "patch", group: GROUP, resource: STATUS, name });
    }
    if definition.converted_versions().next().is_some() {
        rights.push(Right { verb: "get", group, resource: plural, name: "" });
    }
    if has_status && plan::may_clean(definition, asked.policy) {
        rights.push(Right { verb: "patch", group, resource: plural, name: "" });
    }
    let mut missing = Vec::new();
    for right in rights {
        match requests.may(&right).await {
            Answer::Done(true) => {}
            Answer::Done(false) => {
                missing.push(format!("{} {} of {}", right.verb, right.resource, right.group));
            }
            Answer::Refused(status, _) => return Err(reason(&status)),
            Answer::Nothing(why) | Answer::Unreached(why) => return Err(why),
        }
    }
    Ok(missing)
}
