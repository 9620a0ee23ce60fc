//! Which namespaces are reconciled: all, or some, and never the one in which gatehouse runs.
//!
//! Guarantees: what is outside is neither read nor written, so that rights in these namespaces are enough. In the own
//! namespace objects are read, so that their conditions can say why nothing is made.
//! Each namespace has watches and caches of its own: one that does not exist, or where a right is missing, holds up no
//! other.

use std::collections::BTreeSet;
use std::str::FromStr;

use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Client, Resource};

use crate::api::name;

/// Where objects are worked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// The namespaces that are watched; all, where there are none.
    namespaces: BTreeSet<String>,
    /// The one that gatehouse runs in.
    own: Option<String>,
}

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
        Ok(Self { namespaces: names.collect::<Result<_, _>>()?, own: None })
    }
}

impl Scope {
    /// The namespaces; none, where it is all of them.
    #[must_use]
    pub const fn namespaces(&self) -> &BTreeSet<String> {
        &self.namespaces
    }

    /// The same without that namespace, which gatehouse runs in. Pods there may use its ServiceAccount: who may create
    /// an object there would have whatever gatehouse may do.
    #[must_use]
    pub fn beside(self, own: &str) -> Self {
        Self { own: Some(own.to_owned()), ..self }
    }

    /// Whether objects of that namespace are reconciled where it is watched.
    #[must_use]
    pub fn works(&self, namespace: &str) -> bool {
        self.own.as_deref() != Some(namespace)
    }

    /// What is watched together.
    #[must_use]
    pub fn realms(&self) -> Vec<WatchScope> {
        if self.namespaces.is_empty() {
            return vec![WatchScope::All];
        }
        self.namespaces.iter().cloned().map(WatchScope::Namespace).collect()
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
    fn the_own_namespace_is_not_worked_even_where_it_is_named() {
        for text in ["", "shop,gatehouse-system"] {
            let scope = text.parse::<Scope>().unwrap().beside("gatehouse-system");
            assert_eq!(["shop", "gatehouse-system"].map(|name| scope.works(name)), [true, false]);
        }
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
