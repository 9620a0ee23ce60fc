//! Whether the API server serves our kinds.
//!
//! Guarantees: reads the discovery documents of our group alone, which every authenticated user may (ClusterRole
//! `system:discovery`), so that no right in the cluster is needed to know.

use std::time::Duration;

use kube::Client;

use super::Served;
use crate::api::GROUP;
use crate::kinds::KINDS;
use crate::runtime::call::{self, call};

/// The first pause between two looks, which then grow longer.
const FIRST: Duration = Duration::from_millis(100);
/// The longest.
const LONGEST: Duration = Duration::from_secs(2);

/// Waits until the API server serves every kind in each of these versions. `missing` gets what it waits for.
pub async fn until_served(client: &Client, wanted: &Served, missing: impl Fn(String)) {
    let mut pause = FIRST;
    loop {
        match first_missing(client, wanted).await {
            Ok(None) => return,
            Ok(Some(resource)) => missing(format!("{resource} is not served yet")),
            Err(error) => missing(format!("the API server does not say what it serves: {error}")),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST);
    }
}

/// The first kind that is not served, as `tdsets.v1.gatehouse.dev`.
async fn first_missing(client: &Client, wanted: &Served) -> Result<Option<String>, call::Error> {
    for version in wanted.versions() {
        let served = match call(client.list_api_group_resources(version.api_version())).await {
            Ok(list) => list.resources,
            // The reason is missing where a whole version is: that answer is plain text.
            Err(call::Error::Refused(status)) if status.code == 404 => Vec::new(),
            Err(error) => return Err(error),
        };
        let mut plurals = KINDS.iter().map(|kind| kind.names().plural);
        let missing = plurals.find(|plural| served.iter().all(|one| one.name != *plural));
        if let Some(plural) = missing {
            return Ok(Some(format!("{plural}.{version}.{GROUP}")));
        }
    }
    Ok(None)
}
