//! The definitions of our kinds, with the conversion stanza that needs an address. Pure.
//!
//! Guarantees: every version that an object may be stored in is there; the hub is served, whichever others are not.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, WebhookConversion,
};

use super::{INSTALLED_BY, Plan, SERVED_VERSIONS, address, annotations};
use crate::api::{UnknownVersion, Version};
use crate::kinds::KINDS;

/// The versions by which API servers serve our kinds. The others stay in the definitions, since objects may be stored
/// in them; clients cannot ask for them.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// The same as a gate writes them, with its own setting noted in them: gates with another one keep to that.
#[must_use]
pub fn installed(plan: &Plan) -> Vec<CustomResourceDefinition> {
    let mut all = all(plan);
    for definition in &mut all {
        note(definition, &plan.served);
    }
    all
}

/// A definition of [`installed`] for an object with those annotations which a gate of the same release with another
/// setting wrote last: with the versions served that this one wants. All else is the same for both, the conversion and
/// the bundle among it, so that each of them may put that right. None where no such gate wrote it.
#[must_use]
pub fn as_noted(
    wanted: &CustomResourceDefinition,
    plan: &Plan,
    live: &BTreeMap<String, String>,
) -> Option<(CustomResourceDefinition, Served)> {
    let release = wanted.metadata.annotations.as_ref()?.get(INSTALLED_BY);
    let noted = live.get(SERVED_VERSIONS).filter(|_| live.get(INSTALLED_BY) == release)?;
    // What no gate writes was changed by a person, and is put right like any other change.
    let served = noted.parse::<Served>().ok().filter(|served| *served != plan.served)?;
    let mut definition = wanted.clone();
    serve(&mut definition, &served);
    note(&mut definition, &served);
    Some((definition, served))
}

fn note(definition: &mut CustomResourceDefinition, served: &Served) {
    let noted = (SERVED_VERSIONS.to_owned(), served.to_string());
    definition.metadata.annotations.get_or_insert_default().extend([noted]);
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
