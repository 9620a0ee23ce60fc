//! Workloads of any kind, by their scale subresource; and ConfigMaps with dates.
//!
//! Guarantees: nothing but the scale subresource is read of a workload, and its metadata; a kind is watched from the
//! first time that a TDSet refers to it, by metadata alone; what has not changed is not read again.
//! Assumes nothing of the rights to custom kinds: without the right to watch, workloads are read at each look, and
//! looks are more frequent; without that to scale, the object says what is missing.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use futures::channel::mpsc::{self, UnboundedSender};
use futures::stream::{BoxStream, StreamExt as _};
use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::api::{DynamicObject, PartialObjectMeta};
use kube::core::ApiResource;
use kube::{Api, Client, ResourceExt as _};

use super::observation::{self, Blocker, ObjectKey, Scaled, Writer};
use crate::api::condition::State;
use crate::controllers::diffing_store::DiffingStore;
use crate::controllers::manifest::Place;
use crate::controllers::outcome::Error;
use crate::controllers::scope::WatchScope;
use crate::controllers::state_store::StateStore;
use crate::kinds::tdset::api::status::Reason;
use crate::kinds::tdset::api::v1::Reference;
use crate::runtime::call::{self, call};

type Metadata = PartialObjectMeta<DynamicObject>;

/// Reads them.
pub struct Targets {
    client: Client,
    realm: WatchScope,
    /// The resources of kinds that can be scaled.
    kinds: Mutex<HashMap<(String, String), ApiResource>>,
    watched: Mutex<HashMap<ApiResource, DiffingStore<Metadata>>>,
    begun: UnboundedSender<BoxStream<'static, ObjectKey>>,
    /// What was read last, for each object that asks.
    scales: StateStore<Option<Arc<Scale>>>,
    /// The same of ConfigMaps, by name: an object may ask for several.
    texts: StateStore<HashMap<String, Arc<ConfigMap>>>,
}

/// Whether there is no such kind, or no such object. By the code: of a group that is not served the API server says so
/// in plain text.
fn is_absent(error: &call::Error) -> bool {
    matches!(error, call::Error::Refused(status) if status.code == 404)
}

fn is_forbidden(error: &call::Error) -> bool {
    matches!(error, call::Error::Refused(status) if status.code == 403)
}

impl Targets {
    /// Reads through `client`, and the objects that have changed of those that are watched.
    #[must_use]
    pub fn new(client: Client, realm: WatchScope) -> (Self, BoxStream<'static, ObjectKey>) {
        let (begun, watches) = mpsc::unbounded::<BoxStream<'static, ObjectKey>>();
        let targets = Self {
            client,
            realm,
            kinds: Mutex::default(),
            watched: Mutex::default(),
            begun,
            scales: StateStore::default(),
            texts: StateStore::default(),
        };
        (targets, watches.flatten_unordered(None).boxed())
    }

    /// The metadata of all objects of a resource, watched from now on.
    pub fn watch(&self, resource: &ApiResource) -> DiffingStore<Metadata> {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(objects) = watched.get(resource) {
            return objects.clone();
        }
        let api: Api<Metadata> = match &self.realm {
            WatchScope::All => Api::all_with(self.client.clone(), resource),
            WatchScope::Namespace(name) => Api::namespaced_with(self.client.clone(), name, resource),
        };
        let same = |one: &Metadata, other: &Metadata| one.resource_version() == other.resource_version();
        let (objects, changes) = DiffingStore::watch(api, trim, same);
        let (group, kind) = (resource.group.clone(), resource.kind.clone());
        let subjects = changes.map(move |object| {
            ObjectKey::new(&group, &kind, &object.namespace().unwrap_or_default(), &object.name_any())
        });
        let _nobody_works = self.begun.unbounded_send(subjects.boxed());
        watched.insert(resource.clone(), objects.clone());
        objects
    }

    /// The workload, as its scale subresource tells; `writer` asks for who wrote its count last, too.
    ///
    /// # Errors
    /// When the API server does not say.
    pub async fn scaled(
        &self,
        uid: &str,
        namespace: &str,
        reference: &Reference,
        writer: bool,
    ) -> Result<Result<Scaled, Blocker>, Error> {
        let resource = match self.resource(reference).await? {
            Ok(resource) => resource,
            Err(blocker) => return Ok(Err(blocker)),
        };
        let place = Place { resource, namespace: namespace.to_owned(), name: reference.name.clone() };
        let objects = self.watch(&place.resource);
        let known = objects.get(namespace, &place.name);
        let version = known.as_ref().and_then(|known| known.resource_version());
        let scale = match self.scales.of(uid) {
            Some(scale) if version.is_some() && scale.metadata.resource_version == version => scale,
            _ => match self.read_scale(&place).await? {
                Ok(scale) => Arc::new(scale),
                Err(blocker) => {
                    self.scales.forget(uid);
                    return Ok(Err(blocker));
                }
            },
        };
        self.scales.update(uid, |last| *last = Some(Arc::clone(&scale)));
        let writer = if !writer {
            Writer::Unknown
        } else if version.is_some() && scale.metadata.resource_version == version {
            known.map_or(Writer::Unknown, |known| Writer::of(&known.metadata))
        } else {
            self.read_writer(&place).await
        };
        Ok(Ok(Scaled { place, scale, writer, watched: objects.is_filled() }))
    }

    /// The resource of the kind, if it can be scaled.
    async fn resource(&self, reference: &Reference) -> Result<Result<ApiResource, Blocker>, Error> {
        let Reference { api_version, kind, .. } = reference;
        let key = (api_version.clone(), kind.clone());
        let known = self.kinds.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(resource) = known {
            return Ok(Ok(resource));
        }
        let list = if api_version.contains('/') {
            call(self.client.list_api_group_resources(api_version)).await
        } else {
            call(self.client.list_core_api_resources(api_version)).await
        };
        let list = match list {
            Ok(list) => list,
            Err(error) if is_absent(&error) => {
                let message = format!("{api_version} is not served by this cluster");
                return Ok(Err(Blocker::ready(Reason::TargetNotFound, message)));
            }
            Err(source) => {
                return Err(Error { verb: "read", object: format!("resources of {api_version}"), source });
            }
        };
        Ok(found(&list, api_version, kind).inspect(|resource| {
            self.kinds.lock().unwrap_or_else(PoisonError::into_inner).insert(key, resource.clone());
        }))
    }

    async fn read_scale(&self, place: &Place) -> Result<Result<Scale, Blocker>, Error> {
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &place.namespace, &place.resource);
        match call(api.get_scale(&place.name)).await {
            Ok(scale) => Ok(Ok(scale)),
            Err(error) if is_absent(&error) => {
                // The kind itself may be gone, or have lost its scale.
                self.kinds
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .retain(|_, one| *one != place.resource);
                let message = format!("{} {} does not exist", place.resource.kind, place.name);
                Ok(Err(Blocker::ready(Reason::TargetNotFound, message)))
            }
            Err(error) if is_forbidden(&error) => {
                let resource = format!("{}/scale", place.resource.plural);
                Ok(Err(Blocker::forbidden("get and patch", &resource, &place.resource.group)))
            }
            Err(source) => Err(Error { verb: "read the scale of", object: place.to_string(), source }),
        }
    }

    /// Who wrote the count last, where the watch does not tell yet.
    async fn read_writer(&self, place: &Place) -> Writer {
        let api: Api<Metadata> = Api::namespaced_with(self.client.clone(), &place.namespace, &place.resource);
        match call(api.get(&place.name)).await {
            Ok(mut found) => {
                observation::trim(&mut found.metadata);
                Writer::of(&found.metadata)
            }
            Err(_) => Writer::Unknown,
        }
    }

    /// What a key of a ConfigMap holds.
    ///
    /// # Errors
    /// When the API server does not say.
    pub async fn text(
        &self,
        uid: &str,
        namespace: &str,
        name: &str,
        key: &str,
    ) -> Result<Result<String, Blocker>, Error> {
        let resource = ApiResource::erase::<ConfigMap>(&());
        let objects = self.watch(&resource);
        let version = objects.get(namespace, name).and_then(|known| known.resource_version());
        let found = match self.texts.of(uid).remove(name) {
            Some(found) if version.is_some() && found.metadata.resource_version == version => found,
            _ => {
                let api = Api::<ConfigMap>::namespaced(self.client.clone(), namespace);
                match call(api.get(name)).await {
                    Ok(found) => Arc::new(found),
                    Err(error) if is_absent(&error) => {
                        self.texts.update(uid, |texts| texts.remove(name));
                        let message = format!("ConfigMap {name} does not exist");
                        return Ok(Err(Blocker::dates(State::False, Reason::DatesNotFound, message)));
                    }
                    Err(error) if is_forbidden(&error) => {
                        let Blocker { reason, message, .. } = Blocker::forbidden("get", "configmaps", "");
                        return Ok(Err(Blocker::dates(State::Unknown, reason, message)));
                    }
                    Err(source) => {
                        let place =
                            Place { resource, namespace: namespace.to_owned(), name: name.to_owned() };
                        return Err(Error { verb: "read", object: place.to_string(), source });
                    }
                }
            }
        };
        self.texts.update(uid, |texts| texts.insert(name.to_owned(), Arc::clone(&found)));
        let text = found.data.as_ref().and_then(|data| data.get(key)).cloned();
        Ok(text.ok_or_else(|| {
            let message = format!("ConfigMap {name} has no key {key}");
            Blocker::dates(State::False, Reason::DatesNotFound, message)
        }))
    }

    /// Forgets what was read for an object.
    pub fn forget(&self, uid: &str) {
        self.scales.forget(uid);
        self.texts.forget(uid);
    }

    /// Only the objects of these uids are left.
    pub fn forget_all_but(&self, uids: &HashSet<String>) {
        self.scales.forget_all_but(uids);
        self.texts.forget_all_but(uids);
    }
}

/// The resource of a kind in a list of resources, if it has a scale subresource.
fn found(list: &APIResourceList, api_version: &str, kind: &str) -> Result<ApiResource, Blocker> {
    let Some(resource) = list.resources.iter().find(|one| one.kind == kind && !one.name.contains('/')) else {
        let message = format!("{api_version} has no kind {kind} in this cluster");
        return Err(Blocker::ready(Reason::TargetNotFound, message));
    };
    let plural = &resource.name;
    let scale = format!("{plural}/scale");
    if !resource.namespaced || !list.resources.iter().any(|one| one.name == scale) {
        let message = format!("{kind} of {api_version} has no scale subresource");
        return Err(Blocker::ready(Reason::TargetNotScalable, message));
    }
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    Ok(ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.clone(),
    })
}

fn trim(object: &mut Metadata) {
    observation::trim(&mut object.metadata);
    (object.metadata.labels, object.metadata.annotations, object.metadata.owner_references) =
        (None, None, None);
}

impl fmt::Debug for Targets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Targets")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_kind_is_found_by_its_name_and_has_to_have_a_scale() {
        let one = |name: &str, kind: &str, namespaced: bool| json!({"name": name, "kind": kind, "singularName": "", "namespaced": namespaced, "verbs": []});
        let resources = [
            one("widgets", "Widget", true),
            one("widgets/scale", "Scale", true),
            one("widgets/status", "Widget", true),
            one("plains", "Plain", true),
            one("plains/status", "Plain", true),
            one("wides", "Wide", false),
            one("wides/scale", "Scale", false),
        ];
        let list: APIResourceList =
            serde_json::from_value(json!({"groupVersion": "example.com/v1", "resources": resources}))
                .unwrap();
        let resource = found(&list, "example.com/v1", "Widget").unwrap();
        assert_eq!(
            (resource.plural.as_str(), resource.group.as_str(), resource.version.as_str()),
            ("widgets", "example.com", "v1")
        );
        for (kind, reason) in [
            ("Plain", Reason::TargetNotScalable),
            ("Wide", Reason::TargetNotScalable),
            ("None", Reason::TargetNotFound),
        ] {
            assert_eq!(found(&list, "example.com/v1", kind).unwrap_err().reason, reason, "{kind}");
        }
    }
}
