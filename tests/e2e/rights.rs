//! Least privilege, seen from the API server: each right that is granted was used.
//!
//! The API server's audit log names each request that gatehouse made. What the shipped roles grant is taken apart
//! into single rights, and each has to be met by a request. A right that nothing uses fails the test, and a use
//! that no right allows has failed before.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

/// A single right: one verb on one resource, of one name where the role says so.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    group: String,
    /// `tdsets`, or `tdsets/status`.
    resource: String,
    verb: String,
    name: Option<String>,
}

/// What no request shows, because the API server asks for it by itself while it admits another one.
///
/// `update` of `tdsets/finalizers`: the admission plugin OwnerReferencesPermissionEnforcement asks for it when an
/// object is written whose owner reference blocks the owner's deletion. The plugin is on in this cluster, so without
/// that right no Deployment of a TDSet would come about.
const ASKED_BY_ADMISSION: [(&str, &str, &str); 1] = [("gatehouse.dev", "tdsets/finalizers", "update")];

impl Right {
    /// All rights that these roles grant.
    pub fn of_roles(roles: &[Value]) -> BTreeSet<Self> {
        let mut rights = BTreeSet::new();
        for rule in roles.iter().flat_map(|role| items(&role["rules"])) {
            let names: Vec<_> = items(&rule["resourceNames"]).map(|name| Some(text(name))).collect();
            let names = if names.is_empty() { vec![None] } else { names };
            for group in items(&rule["apiGroups"]) {
                for resource in items(&rule["resources"]) {
                    for verb in items(&rule["verbs"]) {
                        rights.extend(names.iter().map(|name| Self {
                            group: text(group),
                            resource: text(resource),
                            verb: text(verb),
                            name: name.clone(),
                        }));
                    }
                }
            }
        }
        rights
    }

    /// Whether this line of the audit log is a use of it.
    pub fn is_used_by(&self, event: &Value) -> bool {
        let about = &event["objectRef"];
        let resource = match about["subresource"].as_str() {
            Some(subresource) => format!("{}/{subresource}", about["resource"].as_str().unwrap_or_default()),
            None => about["resource"].as_str().unwrap_or_default().to_owned(),
        };
        about["apiGroup"].as_str().unwrap_or_default() == self.group
            && resource == self.resource
            && event["verb"] == *self.verb
            && self.name.as_deref().is_none_or(|name| about["name"] == *name)
    }

    /// Whether requests can show it.
    pub fn is_visible(&self) -> bool {
        !ASKED_BY_ADMISSION.contains(&(&self.group, &self.resource, &self.verb))
    }
}

impl fmt::Display for Right {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(formatter, ".{}", self.group)?;
        }
        match &self.name {
            Some(name) => write!(formatter, " {name}"),
            None => Ok(()),
        }
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
