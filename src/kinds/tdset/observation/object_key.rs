//! The key that identifies an object of the cluster. Pure.

use std::fmt;

use crate::kinds::tdset::api::v1::AutoscalerKind;

/// An object, whatever its version.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// Its API group; empty for the core group.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl ObjectKey {
    /// The object of that name.
    #[must_use]
    pub fn new(group: &str, kind: &str, namespace: &str, name: &str) -> Self {
        let [group, kind, namespace, name] = [group, kind, namespace, name].map(str::to_owned);
        Self { group, kind, namespace, name }
    }

    /// The object that an API version, a kind and a name refer to.
    #[must_use]
    pub fn referred(api_version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        Self::new(group, kind, namespace, name)
    }

    /// The autoscaler of that kind and name.
    #[must_use]
    pub fn autoscaler(kind: AutoscalerKind, namespace: &str, name: &str) -> Self {
        Self::new(kind.group(), kind.as_str(), namespace, name)
    }

    /// The ConfigMap of that name.
    #[must_use]
    pub fn config_map(namespace: &str, name: &str) -> Self {
        Self::new("", "ConfigMap", namespace, name)
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.kind, self.name)
    }
}
