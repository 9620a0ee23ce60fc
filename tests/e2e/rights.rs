//! Least privilege, seen from the API server: what is granted is what the program says that it needs, and each right
//! was used.
//!
//! The API server's audit log names each request that gatehouse made. A right that nothing uses fails the test, and a
//! use that no right allows has failed before.

use std::collections::BTreeSet;
use std::fmt;

use gatehouse::rights::{self, Names, Shows};
use serde_json::Value;

use crate::audit::Line;

/// A single right: one verb on one resource, of one name where the role says so.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    group: String,
    /// `tdsets`, or `tdsets/status`.
    resource: String,
    verb: String,
    name: Option<String>,
}

impl Right {
    /// All rights that these roles grant.
    pub fn of_roles(roles: &[Value]) -> BTreeSet<Self> {
        let mut rights = BTreeSet::new();
        for rule in roles.iter().flat_map(|role| role["rules"].as_array().expect("rules")) {
            let texts = |field: &str| -> Vec<String> {
                let items = rule[field].as_array().into_iter().flatten();
                items.map(|item| item.as_str().expect("a text").to_owned()).collect()
            };
            for group in texts("apiGroups") {
                rights.extend(each(&group, &texts("resources"), &texts("verbs"), &texts("resourceNames")));
            }
        }
        rights
    }

    /// All rights that the program says that it needs, and how the use of each shows.
    pub fn needed() -> Vec<(Self, Shows)> {
        let rules = rights::parts(&Names::DEFAULT).into_iter().flat_map(|part| part.rules);
        let rights = rules.flat_map(|rule| {
            let verbs: Vec<_> = rule.verbs.iter().map(ToString::to_string).collect();
            let rights: Vec<_> = each(rule.group, &rule.resources, &verbs, &rule.names).collect();
            rights.into_iter().map(move |right| (right, rule.shows))
        });
        rights.collect()
    }

    /// Whether this line of the audit log is a use of it.
    pub fn is_used_by(&self, line: &Line, shows: Shows) -> bool {
        let event = line.value();
        let about = &event["objectRef"];
        let verb = match shows {
            Shows::AsApply if line.code() == 201 => "patch",
            Shows::AsApply => return false,
            Shows::AsRequest | Shows::Nowhere => &self.verb,
        };
        about["apiGroup"].as_str().unwrap_or_default() == self.group
            && line.resource() == self.resource
            && event["verb"] == *verb
            && self.name.as_deref().is_none_or(|name| about["name"] == *name || is_list_of(event, name))
    }
}

/// A list or a watch of one object asks by a field, which the authorizer takes for its name.
fn is_list_of(event: &Value, name: &str) -> bool {
    let uri = event["requestURI"].as_str().unwrap_or_default();
    uri.contains(&format!("fieldSelector=metadata.name%3D{name}"))
}

fn each<'a>(
    group: &'a str,
    resources: &'a [String],
    verbs: &'a [String],
    names: &'a [String],
) -> impl Iterator<Item = Right> {
    let names = if names.is_empty() { vec![None] } else { names.iter().cloned().map(Some).collect() };
    resources.iter().flat_map(move |resource| {
        let names = names.clone();
        verbs.iter().flat_map(move |verb| {
            let right =
                |name| Right { group: group.into(), resource: resource.clone(), verb: verb.clone(), name };
            names.clone().into_iter().map(right).collect::<Vec<_>>()
        })
    })
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
