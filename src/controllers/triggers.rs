//! Requests for reconciliations, from watches of objects that gatehouse made or that a user names.
//!
//! Guarantees: only the metadata of these objects is watched. The objects themselves are read when they are needed.

use std::fmt::Debug;

use futures::future;
use futures::stream::{BoxStream, StreamExt as _};
use k8s_openapi::NamespaceResourceScope;
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::{self, watcher};
use kube::{Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tracing::warn;

use super::Watched;
use super::cache::{INSTANCE, MANAGED_BY, NAME};
use super::scope::WatchScope;
use crate::runtime::call::watching;

/// Requests for reconciliations.
pub type Triggers<Object> = BoxStream<'static, ObjectRef<Watched<Object>>>;

/// The owners of the objects of a type that come, go or change. The label [`INSTANCE`] of an object names its owner;
/// `application` is the value of the label [`NAME`].
pub fn by_label<Child, Owner>(client: &Client, realm: &WatchScope, application: &str) -> Triggers<Owner>
where
    Child: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    Child: Clone + Debug + DeserializeOwned + Send + 'static,
    Owner: Resource<DynamicType = ()> + 'static,
{
    let (managed, gatehouse) = MANAGED_BY;
    let labels = format!("{managed}={gatehouse},{NAME}={application}");
    let owner = |child: PartialObjectMeta<Child>| {
        let name = child.labels().get(INSTANCE)?;
        Some(ObjectRef::new(name).within(&child.namespace()?))
    };
    changes::<Child>(client, realm, watching().labels(&labels))
        .filter_map(move |child| future::ready(owner(child)))
        .boxed()
}

/// The objects of a type that come, go or change.
pub fn changes<Child>(
    client: &Client,
    realm: &WatchScope,
    config: watcher::Config,
) -> BoxStream<'static, PartialObjectMeta<Child>>
where
    Child: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    Child: Clone + Debug + DeserializeOwned + Send + 'static,
{
    let metadata = realm.api::<PartialObjectMeta<Child>>(client.clone());
    let warn = |error: &watcher::Error| warn!(resource = %Child::plural(&()), %error, "failed to watch");
    watcher(metadata, config)
        .default_backoff()
        .touched_objects()
        .filter_map(move |touched| future::ready(touched.inspect_err(warn).ok()))
        .boxed()
}
