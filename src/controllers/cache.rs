//! A cache of the objects that our objects own, kept up to date by a watch.
//!
//! Guarantees: looking at an object that is there costs no call; one that is not in the cache is asked for, so that
//! an object of another owner, which has no label of ours and is not watched, is not taken for none.
//! Assumes: everything that is made carries the label that is watched for.

use std::fmt::Debug;
use std::sync::Arc;

use futures::stream::{BoxStream, StreamExt as _};
use k8s_openapi::NamespaceResourceScope;
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tracing::warn;

use super::manifest::Place;
use super::outcome::Error;
use super::scope::WatchScope;
use crate::runtime::call::{self, call};

/// The label of everything that is made, and its value.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "gatehouse");

/// Objects of one type that carry [`MANAGED_BY`].
pub struct Cache<Child: Resource<DynamicType = ()> + 'static> {
    client: Client,
    store: Store<Child>,
    trim: fn(&mut Child),
}

impl<Child> Cache<Child>
where
    Child: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static,
{
    /// A cache, and the owners of what changes in it; it is filled while that stream is polled. `trim` takes out of
    /// each object what no controller reads.
    pub fn watch<Owner>(
        client: &Client,
        realm: &WatchScope,
        trim: fn(&mut Child),
    ) -> (Self, BoxStream<'static, ObjectRef<Owner>>)
    where
        Owner: Resource<DynamicType = ()> + 'static,
    {
        let (store, writer) = reflector::store();
        let labelled = watcher::Config::default().labels(&format!("{}={}", MANAGED_BY.0, MANAGED_BY.1));
        let owners = watcher(realm.api::<Child>(client.clone()), labelled)
            .default_backoff()
            .modify(trim)
            .reflect(writer)
            .touched_objects()
            .flat_map(|touched| {
                let owners = match touched {
                    Ok(child) => owners_of(&child),
                    Err(error) => {
                        warn!(resource = %Child::plural(&()), %error, "failed to watch");
                        Vec::new()
                    }
                };
                futures::stream::iter(owners)
            });
        (Self { client: client.clone(), store, trim }, owners.boxed())
    }

    /// Waits until the cache has been filled. False when the process is going down.
    pub async fn filled(&self) -> bool {
        self.store.wait_until_ready().await.is_ok()
    }

    /// The object, if it is in the cache.
    #[must_use]
    pub fn cached(&self, namespace: &str, name: &str) -> Option<Arc<Child>> {
        self.store.get(&ObjectRef::new(name).within(namespace))
    }

    /// The object, wherever it is.
    ///
    /// # Errors
    /// When it is not in the cache and the API server does not say whether it is there.
    pub async fn find(&self, namespace: &str, name: &str) -> Result<Option<Arc<Child>>, Error> {
        if let Some(found) = self.cached(namespace, name) {
            return Ok(Some(found));
        }
        let api = Api::<Child>::namespaced(self.client.clone(), namespace);
        let found = call(api.get_opt(name)).await.map_err(|source: call::Error| {
            let resource = kube::core::ApiResource::erase::<Child>(&());
            let place = Place { resource, namespace: namespace.to_owned(), name: name.to_owned() };
            Error { verb: "read", object: place.to_string(), source }
        })?;
        Ok(found.map(|mut object| {
            (self.trim)(&mut object);
            Arc::new(object)
        }))
    }
}

fn owners_of<Child, Owner>(child: &Child) -> Vec<ObjectRef<Owner>>
where
    Child: Resource<DynamicType = ()>,
    Owner: Resource<DynamicType = ()>,
{
    let namespace = child.namespace();
    let references = child.owner_references().iter();
    references.filter_map(|owner| ObjectRef::from_owner_ref(namespace.as_deref(), owner, ())).collect()
}
