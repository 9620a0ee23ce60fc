//! A cache of the objects that our objects own, kept up to date by a watch.
//!
//! Guarantees: looking at an object that is there costs no call while the watch goes on; one that is not in the cache is
//! asked for, so that an object of another owner, which has no label of ours and is not watched, is not taken for none, and
//! so is each where the watch has failed for a while; who owns an object is called after it has changed in anything that
//! matters.
//! Assumes: everything that is made carries the label that is watched for.

use std::fmt::Debug;
use std::sync::Arc;

use futures::stream::{self, BoxStream, Stream, StreamExt as _};
use k8s_openapi::NamespaceResourceScope;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

use super::difference::Difference;
use super::diffing_store::{Changed, DiffingStore};
use super::manifest::Place;
use super::outcome::Error;
use super::paced::{self, paced};
use super::scope::WatchScope;
use crate::runtime::call::{call, watching};

/// The label of everything that is made, and its value.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "gatehouse");

/// The label that names the application.
pub const NAME: &str = "app.kubernetes.io/name";

/// The label that names the object for which others are made.
pub const INSTANCE: &str = "app.kubernetes.io/instance";

/// Objects of one type that carry [`MANAGED_BY`].
pub struct Cache<Child: Resource<DynamicType = ()> + 'static> {
    client: Client,
    store: DiffingStore<Child>,
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
    /// each object what no controller reads, and `compare` says how what is left differs from what was before.
    pub fn watch<Owner>(
        client: &Client,
        realm: &WatchScope,
        trim: fn(&mut Child),
        compare: fn(&Child, &Child) -> Difference,
    ) -> (Self, BoxStream<'static, ObjectRef<Owner>>)
    where
        Owner: Resource<DynamicType = ()> + 'static,
    {
        let labelled = watching().labels(&format!("{}={}", MANAGED_BY.0, MANAGED_BY.1));
        let (store, changes) =
            DiffingStore::watch(realm.api(client.clone()), labelled, trim, compare, |_| None);
        (Self { client: client.clone(), store, trim }, paced(owners(changes), paced::PAUSE))
    }

    /// Waits until the cache has been filled. False when the process is going down.
    pub fn filled(&self) -> impl Future<Output = bool> + Send + use<Child> {
        self.store.filled()
    }

    /// Whether the watch goes on, so that changes are noticed.
    #[must_use]
    pub fn is_filled(&self) -> bool {
        self.store.is_filled()
    }

    /// The object, if it is in the cache.
    #[must_use]
    pub fn cached(&self, namespace: &str, name: &str) -> Option<Arc<Child>> {
        self.store.get(namespace, name)
    }

    /// The object, wherever it is.
    ///
    /// # Errors
    /// When it is not in the cache, or the watch has failed for a while, and the API server does not say whether it is there.
    pub async fn find(&self, namespace: &str, name: &str) -> Result<Option<Arc<Child>>, Error> {
        if let Some(found) = self.cached(namespace, name).filter(|_| self.is_filled()) {
            return Ok(Some(found));
        }
        let api = Api::<Child>::namespaced(self.client.clone(), namespace);
        let found = call(api.get_opt(name)).await;
        let found =
            found.map_err(|source| Error::of("read", &Place::named::<Child>(namespace, name))(source))?;
        Ok(found.map(|mut object| {
            (self.trim)(&mut object);
            Arc::new(object)
        }))
    }
}

/// The owners of what has changed, and how much.
fn owners<Child, Owner>(
    changes: impl Stream<Item = Changed<Child>> + Send + 'static,
) -> BoxStream<'static, (ObjectRef<Owner>, Difference)>
where
    Child: Resource<DynamicType = ()> + Send + Sync + 'static,
    Owner: Resource<DynamicType = ()> + 'static,
{
    let owners = |(child, difference): Changed<Child>| {
        stream::iter(owners_of(&*child).into_iter().map(move |owner| (owner, difference)))
    };
    changes.flat_map(owners).boxed()
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

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use futures::channel::mpsc;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::runtime::watcher::Event;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_owner_is_called_for_what_differs_from_what_is_known() {
        let (sender, events) = mpsc::unbounded();
        let compare = |one: &ConfigMap, other: &ConfigMap| Difference::unless(one.data == other.data);
        let (_store, changes) = DiffingStore::of_events("configmaps".to_owned(), events, compare, |_| None);
        let mut calls = owners::<_, ConfigMap>(changes);
        let object = |version: &str, days: &str| -> ConfigMap {
            let owner = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "1", "controller": true}]);
            let metadata =
                json!({"name": "a", "namespace": "b", "resourceVersion": version, "ownerReferences": owner});
            serde_json::from_value(json!({"metadata": metadata, "data": {"days": days}})).unwrap()
        };
        let mut called = |event: &Event<ConfigMap>| {
            sender.unbounded_send(Ok(event.clone())).unwrap();
            let named =
                |(owner, difference): (ObjectRef<ConfigMap>, _)| (owner.name, owner.namespace, difference);
            let mut called: Vec<_> =
                std::iter::from_fn(|| calls.next().now_or_never().flatten()).map(named).collect();
            // As it was and as it is, whose owner is the same.
            called.dedup();
            called
        };
        let owner = |difference| vec![("owner".to_owned(), Some("b".to_owned()), difference)];
        for (event, expected) in [
            (Event::Init, vec![]),
            (Event::InitApply(object("1", "x")), owner(Difference::More)),
            (Event::InitDone, vec![]),
            (Event::Apply(object("2", "x")), vec![]),
            (Event::Apply(object("3", "y")), owner(Difference::More)),
            // The list is read again after the watch was out, and has the change that was missed.
            (Event::Init, vec![]),
            (Event::InitApply(object("4", "z")), owner(Difference::More)),
            (Event::InitDone, vec![]),
            (Event::Delete(object("5", "z")), owner(Difference::More)),
            (Event::Apply(object("6", "z")), owner(Difference::More)),
            // It was deleted while the watch was out.
            (Event::Init, vec![]),
            (Event::InitDone, owner(Difference::More)),
            (Event::Init, vec![]),
            (Event::InitDone, vec![]),
        ] {
            assert_eq!(called(&event), expected, "{event:?}");
        }
    }
}
