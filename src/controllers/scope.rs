//! Where objects are worked: in all namespaces, or in some.
//!
//! Guarantees: what is outside is neither read nor written, so that rights in these namespaces are enough.
//! Each namespace has watches and caches of its own: one that does not exist, or where a right is missing, holds up no
//! other.

use std::collections::BTreeSet;
use std::str::FromStr;

use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Client, Resource};

use crate::api::name;

/// The namespaces whose objects are worked; all, where there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope(BTreeSet<String>);

/// This is no list of namespaces.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("namespace {name:?} {allowed}")]
pub struct InvalidNamespace {
    name: String,
    allowed: &'static str,
}

impl FromStr for Scope {
    type Err = InvalidNamespace;

    /// Takes names with commas between them. No name at all means all namespaces.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let names = text.split(',').map(str::trim).map(|name| match name::dns_1123_label(name) {
            Ok(()) => Ok(name.to_owned()),
            Err(allowed) => Err(InvalidNamespace { name: name.to_owned(), allowed }),
        });
        Ok(Self(names.collect::<Result<_, _>>()?))
    }
}

impl Scope {
    /// The namespaces; none, where it is all of them.
    #[must_use]
    pub const fn namespaces(&self) -> &BTreeSet<String> {
        &self.0
    }

    /// What is watched together.
    #[must_use]
    pub fn realms(&self) -> Vec<WatchScope> {
        if self.0.is_empty() {
            return vec![WatchScope::All];
        }
        self.0.iter().cloned().map(WatchScope::Namespace).collect()
    }
}

/// What is watched together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchScope {
    /// All namespaces.
    All,
    /// One.
    Namespace(String),
}

impl WatchScope {
    /// The objects of a type in it.
    #[must_use]
    pub fn api<K>(&self, client: Client) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        match self {
            Self::All => Api::all(client),
            Self::Namespace(name) => Api::namespaced(client, name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_means_all_namespaces() {
        for text in ["", " "] {
            let scope: Scope = text.parse().unwrap();
            assert_eq!((scope.namespaces().len(), scope.realms()), (0, vec![WatchScope::All]));
        }
    }

    #[test]
    fn a_namespace_that_is_named_twice_is_watched_once() {
        let scope: Scope = "shop, depot,shop".parse().unwrap();
        let realms = ["depot", "shop"].map(|name| WatchScope::Namespace(name.to_owned()));
        assert_eq!(scope.realms(), realms);
    }

    #[test]
    fn what_is_no_namespace_is_named_with_what_is_allowed() {
        for (text, name) in [("shop,Depot", "Depot"), ("shop,", ""), ("a.b", "a.b")] {
            let message = text.parse::<Scope>().unwrap_err().to_string();
            assert!(
                message.starts_with(&format!("namespace {name:?} must be a DNS-1123 label")),
                "{message}"
            );
        }
    }
}
