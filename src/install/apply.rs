//! Writes one of our cluster-wide objects, and waits until it is in force.
//!
//! Guarantees: server-side apply under a field manager of its own, so that fields which others own stay theirs; an
//! object that holds all we want already is not written (the API server drops an apply without effect, and with it
//! the change of resource version that would reset every watch); what other clients added beside what we want, such as a
//! condition of a webhook, is removed; each call has a limit; an error names its object.
//! Never: compares values by itself. The API server knows its defaults and normal forms better than any copy of them.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, Resource, ResourceExt as _};
use semver::Version;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::INSTALLED_BY;
use crate::controllers::deviation;
use crate::runtime::call::{self, call};

/// Who owns the fields.
pub const MANAGER: &str = "gatehouse-install";
/// Conflicts are rare, and gone when tried again.
const ATTEMPTS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// An object could not be written, or did not come into force.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A call to the API server failed.
    #[error("failed to {verb} {object}: {source}")]
    Call {
        /// What was tried.
        verb: &'static str,
        /// `validatingwebhookconfigurations/gatehouse`.
        object: String,
        /// Why.
        source: call::Error,
    },
    /// A definition is there, but not served.
    #[error("{object} is not established after {} s: {reason}", .waited.as_secs())]
    NotEstablished {
        /// Which definition.
        object: String,
        /// How long it was waited for.
        waited: Duration,
        /// What its conditions say.
        reason: String,
    },
}

impl Error {
    /// A right is missing, or a policy refuses.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Call { source, .. } if source.is_forbidden())
    }
}

/// Whose objects are written over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Anybody's.
    Always,
    /// Anybody's but those of a newer release of gatehouse, whose definitions may have fields that this one lacks: API
    /// servers would drop them from what is written.
    UnlessNewerRelease,
    /// Anybody's but those of another release of gatehouse. In a rolling update two of them run side by side: the one that
    /// started last decides, and the other does not undo its work.
    UnlessOtherRelease,
}

/// The result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It was all there.
    Unchanged,
    /// It is now.
    Written,
    /// It belongs to another release.
    LeftAlone,
}

/// Brings about what `decide` wants in place of the object that is there.
///
/// # Errors
/// When the API server refuses it or does not answer.
pub(super) async fn apply<K>(
    api: &Api<K>,
    name: &str,
    policy: Policy,
    decide: impl Fn(Option<&K>) -> K,
) -> Result<Applied, Error>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
{
    let failed = |verb| {
        let object = describe::<K>(name);
        move |source| Error::Call { verb, object, source }
    };
    let mut attempt = 0;
    loop {
        let before = call(api.get_opt(name)).await.map_err(failed("read"))?;
        let wanted = decide(before.as_ref());
        if before.as_ref().is_some_and(|live| policy.leaves_alone(live, &wanted)) {
            if policy == Policy::UnlessNewerRelease {
                tracing::warn!(
                    object = describe::<K>(name),
                    "left alone, since a newer release wrote it: after a rollback, start with --replace-newer"
                );
            }
            return Ok(Applied::LeftAlone);
        }
        let version = before.and_then(|before| before.resource_version());
        match write(api, name, &wanted, version.as_ref()).await {
            Err(error) if error.is_lost_race() && attempt < ATTEMPTS => {
                tokio::time::sleep(FIRST_PAUSE * 2_u32.pow(attempt)).await;
                attempt += 1;
            }
            Err(error) => return Err(failed("apply")(error)),
            Ok(after) => {
                let removed = remove_added(api, name, &wanted, &after).await.map_err(failed("patch"))?;
                if !removed && after.resource_version() == version {
                    return Ok(Applied::Unchanged);
                }
                tracing::info!(object = describe::<K>(name), "applied");
                return Ok(Applied::Written);
            }
        }
    }
}

/// The object of that name, as it is.
///
/// # Errors
/// When it is not there, or the API server does not answer.
pub(super) async fn read<K>(api: &Api<K>, name: &str) -> Result<K, Error>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let failed = |source| Error::Call { verb: "read", object: describe::<K>(name), source };
    call(api.get(name)).await.map_err(failed)
}

/// The annotations of the object of that name; none where it is not there.
///
/// # Errors
/// When the API server does not answer.
pub(super) async fn annotations<K>(api: &Api<K>, name: &str) -> Result<BTreeMap<String, String>, Error>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let failed = |source| Error::Call { verb: "read", object: describe::<K>(name), source };
    let live = call(api.get_metadata_opt(name)).await.map_err(failed)?;
    Ok(live.and_then(|live| live.metadata.annotations).unwrap_or_default())
}

/// Applies `wanted`; with a version, only if that is still the newest: what was read of the object then holds at the
/// moment of writing.
async fn write<K>(api: &Api<K>, name: &str, wanted: &K, version: Option<&String>) -> Result<K, call::Error>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
{
    let mut wanted = wanted.clone();
    wanted.meta_mut().resource_version = version.cloned();
    let params = PatchParams::apply(MANAGER).force();
    call(api.patch(name, &params, &Patch::Apply(&wanted))).await
}

/// Removes what other clients added beside what is wanted, which an apply leaves; whether there was anything.
async fn remove_added<K>(api: &Api<K>, name: &str, wanted: &K, live: &K) -> Result<bool, call::Error>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
{
    let Some(patch) = deviation::removal(wanted, live, MANAGER) else { return Ok(false) };
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    let after = call(api.patch(name, &params, &Patch::Merge(&patch))).await?;
    Ok(after.resource_version() != live.resource_version())
}

impl Policy {
    /// Whether an object stays as it is because of who wrote it. Without the annotation, a person took it off: that is
    /// a change to undo like any other.
    fn leaves_alone<K: Resource>(self, live: &K, wanted: &K) -> bool {
        let both =
            |annotation| Some((live.annotations().get(annotation)?, wanted.annotations().get(annotation)?));
        match self {
            Self::Always => false,
            Self::UnlessOtherRelease => both(INSTALLED_BY).is_some_and(|(theirs, ours)| theirs != ours),
            Self::UnlessNewerRelease => {
                both(INSTALLED_BY).is_some_and(|(theirs, ours)| is_newer(theirs, ours))
            }
        }
    }
}

/// Whether `theirs` is a release after `ours`. What is no release is none.
fn is_newer(theirs: &str, ours: &str) -> bool {
    match (Version::parse(theirs), Version::parse(ours)) {
        (Ok(theirs), Ok(ours)) => theirs > ours,
        _ => false,
    }
}

/// Waits until a definition's objects are served.
///
/// # Errors
/// When it takes longer than `limit`; the conditions of the definition say why.
pub async fn established(client: &Client, name: &str, limit: Duration) -> Result<(), Error> {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    let condition = await_condition(api.clone(), name, conditions::is_crd_established());
    if matches!(tokio::time::timeout(limit, condition).await, Ok(Ok(_))) {
        return Ok(());
    }
    let object = describe::<CustomResourceDefinition>(name);
    let live = call(api.get(name)).await.map_err(|source| Error::Call {
        verb: "read",
        object: object.clone(),
        source,
    })?;
    Err(Error::NotEstablished { object, waited: limit, reason: doubts(&live) })
}

/// What a definition's conditions have against it.
fn doubts(definition: &CustomResourceDefinition) -> String {
    let conditions = definition.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let doubts: Vec<_> = conditions
        .filter(|one| (one.type_ == "NonStructuralSchema") == (one.status == "True"))
        .map(|one| {
            format!("{} is {}: {}", one.type_, one.status, one.message.as_deref().unwrap_or("no message"))
        })
        .collect();
    if doubts.is_empty() {
        return "it has no conditions yet".to_owned();
    }
    doubts.join("; ")
}

pub(super) fn describe<K: Resource<DynamicType = ()>>(name: &str) -> String {
    format!("{}/{name}", K::plural(&()))
}

#[cfg(test)]
mod tests {
    use kube::api::ObjectMeta;

    use super::*;

    #[test]
    fn the_release_that_started_last_decides() {
        let annotated = |release: &str| {
            let all = BTreeMap::from([(INSTALLED_BY.to_owned(), release.to_owned())]);
            ObjectMeta { annotations: Some(all), ..ObjectMeta::default() }
        };
        let metadata = annotated("1.2.0");
        let wanted = CustomResourceDefinition { metadata, ..CustomResourceDefinition::default() };
        let left = |release| {
            let metadata = annotated(release);
            let live = CustomResourceDefinition { metadata, ..CustomResourceDefinition::default() };
            [Policy::Always, Policy::UnlessNewerRelease, Policy::UnlessOtherRelease]
                .map(|policy| policy.leaves_alone(&live, &wanted))
        };
        assert_eq!(left("1.2.0"), [false; 3]);
        assert_eq!(left("1.1.0"), [false, false, true]);
        assert_eq!(left("1.3.0"), [false, true, true]);
        let bare = CustomResourceDefinition::default();
        assert!(!Policy::UnlessOtherRelease.leaves_alone(&bare, &wanted));
    }
}
