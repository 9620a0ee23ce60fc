//! The definitions of our kinds, with the conversion stanza that needs an address. Pure.
//!
//! Guarantees: every version that an object may be stored in is there; the hub is served, whichever others are not.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, WebhookConversion,
};
use serde::{Deserialize, Serialize};

use super::{Plan, address, annotations};
use crate::api::{UnknownVersion, Version};
use crate::kinds::KINDS;

/// The versions by which API servers serve our kinds. The others stay in the definitions, since objects may be stored
/// in them; clients cannot ask for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Served(BTreeSet<Version>);

/// These versions cannot be the ones that are served.
#[derive(Debug, thiserror::Error)]
pub enum InvalidServed {
    /// There is no such version.
    #[error(transparent)]
    Unknown(#[from] UnknownVersion),
    /// gatehouse asks for its own objects by the hub.
    #[error("{0:?} lacks v1, by which gatehouse itself works: expected v1, or v1,v1alpha1")]
    LacksHub(String),
}

impl Default for Served {
    fn default() -> Self {
        Self(Version::ALL.into())
    }
}

impl Served {
    /// The hub alone, which is always served.
    #[must_use]
    pub fn hub() -> Self {
        Self([Version::V1].into())
    }

    /// Which they are.
    #[must_use]
    pub fn versions(&self) -> impl DoubleEndedIterator<Item = Version> + '_ {
        self.0.iter().copied()
    }

    fn has(&self, name: &str) -> bool {
        self.versions().any(|version| version.as_str() == name)
    }
}

impl FromStr for Served {
    type Err = InvalidServed;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let versions: BTreeSet<Version> =
            text.split(',').map(|one| one.trim().parse()).collect::<Result<_, _>>()?;
        if versions.contains(&Version::V1) {
            Ok(Self(versions))
        } else {
            Err(InvalidServed::LacksHub(text.to_owned()))
        }
    }
}

impl TryFrom<String> for Served {
    type Error = InvalidServed;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Served> for String {
    fn from(served: Served) -> Self {
        served.to_string()
    }
}

/// The newest first, as it is asked for.
impl fmt::Display for Served {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.versions().rev().map(Version::as_str).collect();
        formatter.write_str(&names.join(","))
    }
}

/// The definitions of all kinds.
#[must_use]
pub fn all(plan: &Plan) -> Vec<CustomResourceDefinition> {
    KINDS.iter().map(|kind| with_conversion(kind.definition(), plan)).collect()
}

fn serve(definition: &mut CustomResourceDefinition, served: &Served) {
    for version in &mut definition.spec.versions {
        version.served = served.has(&version.name);
    }
}

/// The names of the definitions of all kinds.
pub fn names() -> impl Iterator<Item = String> {
    KINDS.iter().map(|kind| kind.names().definition())
}

/// `definition`, converted by this gate, and served in the versions of the plan.
#[must_use]
pub fn with_conversion(mut definition: CustomResourceDefinition, plan: &Plan) -> CustomResourceDefinition {
    definition.spec.conversion = Some(CustomResourceConversion {
        strategy: "Webhook".to_owned(),
        webhook: Some(WebhookConversion {
            client_config: Some(address::of_conversion(plan)),
            conversion_review_versions: vec!["v1".to_owned()],
        }),
    });
    serve(&mut definition, &plan.served);
    definition.metadata.annotations.get_or_insert_default().extend(annotations());
    definition
}

#[cfg(test)]
mod tests;
