//! What the pods that run scripts and those that wait for them have in common. Pure.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{
    KeyToPath, ProjectedVolumeSource, ResourceRequirements, SecretProjection, VolumeProjection,
};

use super::v1::Database;
use crate::api::pod;

/// Keys of Secrets and the files that they become, by Secret.
pub type Items = BTreeMap<String, BTreeSet<(String, String)>>;

/// A volume of these keys, as files of that mode.
#[must_use]
pub fn projected(items: Items, mode: i32) -> ProjectedVolumeSource {
    let source = |(name, keys): (String, BTreeSet<(String, String)>)| VolumeProjection {
        secret: Some(SecretProjection {
            name,
            items: Some(keys.into_iter().map(|(key, path)| KeyToPath { key, path, mode: None }).collect()),
            optional: None,
        }),
        ..VolumeProjection::default()
    };
    ProjectedVolumeSource { sources: Some(items.into_iter().map(source).collect()), default_mode: Some(mode) }
}

/// The files with the certificates of a database: ca.crt, tls.crt and tls.key, as far as it has them.
#[must_use]
pub fn certificates(database: &Database) -> Items {
    let mut items = Items::new();
    let Some(tls) = &database.tls else { return items };
    if let Some(authority) = &tls.ca_secret {
        let key = authority.key.clone().unwrap_or_else(|| "ca.crt".to_owned());
        items.entry(authority.name.clone()).or_default().insert((key, "ca.crt".to_owned()));
    }
    if let Some(client) = &tls.client_cert_secret {
        let pair = ["tls.crt", "tls.key"].map(|key| (key.to_owned(), key.to_owned()));
        items.entry(client.name.clone()).or_default().extend(pair);
    }
    items
}

/// Resources of a container that passes scripts on one by one, or reads their history.
#[must_use]
pub fn resources() -> ResourceRequirements {
    pod::resources("32Mi", "256Mi")
}
