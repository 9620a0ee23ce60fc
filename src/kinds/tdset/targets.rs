//! Workloads of any kind, by their scale subresource.
//!
//! Guarantees: nothing but the scale subresource is read of a workload, and its metadata; a kind is watched as long as a
//! TDSet refers to it, by metadata alone; what has not changed is not read again; and while pods of a workload come and
//! go, its scale is not read more often than each [`PACE`].
//! Assumes nothing of the rights to custom kinds: without the right to watch, workloads are read at each look, and
//! looks are more frequent; without that to scale, the object says what is missing.

mod scaled_object;

pub use scaled_object::scaled_objects;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::channel::mpsc::{self, UnboundedSender};
use futures::stream::{AbortHandle, BoxStream, StreamExt as _, abortable};
use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIResourceList, ObjectMeta};
use kube::api::DynamicObject;
use kube::core::ApiResource;
use kube::{Api, Client, ResourceExt as _};
use tokio::time::Instant;

use super::observation::{self, Blocker, Controller, FoundMetadata, ObjectKey, Scaled, Writer};
use crate::controllers::difference::Difference;
use crate::controllers::diffing_store::DiffingStore;
use crate::controllers::manifest::Place;
use crate::controllers::outcome::Error;
use crate::controllers::paced::{self, paced};
use crate::controllers::scope::WatchScope;
use crate::controllers::state_store::StateStore;
use crate::kinds::tdset::api::status::Reason;
use crate::kinds::tdset::api::v1::Reference;
use crate::runtime::call::{self, call, watching};
use crate::runtime::clock;

/// The API group of the workloads of Kubernetes.
const APPS: &str = "apps";

/// Least time between two reads of a scale whose count has not changed meanwhile.
const PACE: Duration = Duration::from_secs(2);

#[cfg(not(test))]
type Uid = String;
#[cfg(test)]
type Uid = crate::counted::Counted<String>;

/// Reads them.
pub struct Targets {
    client: Client,
    realm: WatchScope,
    /// The resources of kinds that can be scaled.
    kinds: Mutex<HashMap<(String, String), ApiResource>>,
    watched: Mutex<HashMap<ApiResource, Watched>>,
    begun: UnboundedSender<BoxStream<'static, (ObjectKey, Difference)>>,
    /// What was read last, for each object that asks.
    scales: StateStore<Option<Read>>,
    /// The same of ScaledObjects.
    scaled_objects: StateStore<Option<Arc<DynamicObject>>>,
}

/// The objects of a resource.
struct Watched {
    objects: DiffingStore<FoundMetadata>,
    /// Which TDSets ask for them, by uid, and whether the running reconciliation has done so already.
    askers: HashMap<Uid, bool>,
    end: AbortHandle,
}

impl Watched {
    /// Whether a TDSet asks for the objects. Their watch stops otherwise.
    fn is_needed(&self) -> bool {
        if self.askers.is_empty() {
            self.end.abort();
        }
        !self.askers.is_empty()
    }
}

/// What was read of a workload.
#[derive(Clone)]
struct Read {
    scale: Arc<Scale>,
    /// The generation of the workload then, if that is known: the count is of the spec.
    generation: Option<i64>,
    at: Instant,
}

impl Read {
    /// Whether the count that was read is that of the workload as it is known, and not of another one of its name.
    fn has_count_of(&self, known: &FoundMetadata) -> bool {
        let ObjectMeta { uid, generation, .. } = &known.metadata;
        let is_same = || self.generation == *generation && self.scale.metadata.uid == *uid;
        self.is_of(known) || self.generation.is_some() && is_same()
    }

    /// Whether all that was read is.
    fn is_of(&self, known: &FoundMetadata) -> bool {
        self.scale.metadata.resource_version == known.metadata.resource_version
    }

    /// How long it stands for the workload as it is known.
    fn stands(&self, known: &FoundMetadata, now: Instant) -> Option<Duration> {
        if self.is_of(known) {
            return Some(Duration::MAX);
        }
        let age = now.duration_since(self.at);
        PACE.checked_sub(age).filter(|rest| !rest.is_zero() && self.has_count_of(known))
    }
}

/// Whether the API server says that the object has no count: its field is absent (apiextensions-apiserver
/// `pkg/registry/customresource/etcd.go`; kubernetes/kubernetes#111781).
fn is_unset(error: &call::Error) -> bool {
    let call::Error::Refused(status) = error else { return false };
    status.code == 500
        && status.message.contains("the spec replicas field")
        && status.message.contains("does not exist")
}

/// Whether there is no such kind, or no such object. By the code: of a group that is not served the API server says so
/// in plain text.
fn is_absent(error: &call::Error) -> bool {
    matches!(error, call::Error::Refused(status) if status.code == 404)
}

/// Whether there is no object of that name. Where the kind or its scale is not served, nothing is said of any object.
fn is_absent_object(error: &call::Error, name: &str) -> bool {
    let call::Error::Refused(status) = error else { return false };
    status.code == 404 && status.details.as_ref().is_some_and(|details| details.name == name)
}

impl Targets {
    /// Reads through `client`, and the objects that have changed of those that are watched.
    #[must_use]
    pub fn new(client: Client, realm: WatchScope) -> (Self, BoxStream<'static, ObjectKey>) {
        let (begun, watches) = mpsc::unbounded();
        let targets = Self {
            client,
            realm,
            kinds: Mutex::default(),
            watched: Mutex::default(),
            begun,
            scales: StateStore::default(),
            scaled_objects: StateStore::default(),
        };
        (targets, paced(watches.flatten_unordered(None), paced::PAUSE))
    }

    /// A reconciliation of the object of that uid begins.
    pub fn begins(&self, uid: &str) {
        for asks in self.watched().values_mut().filter_map(|one| one.askers.get_mut(uid)) {
            *asks = false;
        }
    }

    /// The reconciliation has asked for all that the object refers to: what it watched before is watched for others
    /// alone.
    pub fn ends(&self, uid: &str) {
        self.let_go(uid, |asked| !asked);
    }

    /// The object of that uid no longer asks for what it is over with, and the watches stop that no TDSet needs any more.
    /// At each reconciliation: the entries of other objects are not looked at.
    fn let_go(&self, uid: &str, is_over: impl Fn(bool) -> bool) {
        self.watched().retain(|_, one| {
            if one.askers.get(uid).is_some_and(|asked| is_over(*asked)) {
                one.askers.remove(uid);
            }
            one.is_needed()
        });
    }

    fn kinds(&self) -> MutexGuard<'_, HashMap<(String, String), ApiResource>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<ApiResource, Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The metadata of all objects of a resource, watched from now on for the object of that uid.
    pub fn watch(&self, uid: &str, resource: &ApiResource) -> DiffingStore<FoundMetadata> {
        let mut watched = self.watched();
        if let Some(one) = watched.get_mut(resource) {
            one.askers.insert(Uid::from(uid), true);
            return one.objects.clone();
        }
        let api: Api<FoundMetadata> = match &self.realm {
            WatchScope::All => Api::all_with(self.client.clone(), resource),
            WatchScope::Namespace(name) => Api::namespaced_with(self.client.clone(), name, resource),
        };
        let (objects, changes) =
            DiffingStore::watch(api, watching(), trim, FoundMetadata::difference, |_| None);
        let (group, kind) = (resource.group.clone(), resource.kind.clone());
        let (subjects, end) = abortable(changes.map(move |(object, difference)| {
            let namespace = object.namespace().unwrap_or_default();
            (ObjectKey::new(&group, &kind, &namespace, &object.name_any()), difference)
        }));
        let _no_receiver = self.begun.unbounded_send(subjects.boxed());
        let askers = HashMap::from([(Uid::from(uid), true)]);
        watched.insert(resource.clone(), Watched { objects: objects.clone(), askers, end });
        objects
    }

    /// The workload, as its scale subresource shows it; `asks_writer`: the counts whose writer matters, also where that
    /// takes another call.
    ///
    /// # Errors
    /// When the API server does not say.
    pub async fn scaled(
        &self,
        uid: &str,
        namespace: &str,
        reference: &Reference,
        asks_writer: impl Fn(i32) -> bool,
    ) -> Result<Result<Scaled, Blocker>, Error> {
        let resource = match self.resource(reference).await? {
            Ok(resource) => resource,
            Err(blocker) => return Ok(Err(blocker)),
        };
        let place = Place { resource, namespace: namespace.to_owned(), name: reference.name.clone() };
        let objects = self.watch(uid, &place.resource);
        let known = known(&objects, namespace, &place.name);
        let now = clock::instant();
        let last = self.scales.of(uid).zip(known.as_deref());
        let stands = last.and_then(|(last, known)| Some((last.stands(known, now)?, last)));
        let stands_for = stands.as_ref().map(|(rest, _)| *rest);
        let mut read = match stands {
            Some((_, last)) => last,
            None => match self.read_scale(&place).await? {
                Ok(scale) => Read { scale: Arc::new(scale), generation: None, at: now },
                Err(blocker) => {
                    self.scales.forget(uid);
                    return Ok(Err(blocker));
                }
            },
        };
        if let Some(known) = known.as_ref().filter(|known| read.is_of(known)) {
            read.generation = known.metadata.generation;
        }
        let scale = Arc::clone(&read.scale);
        let is_of_now = known.as_ref().is_some_and(|known| read.has_count_of(known));
        let is_unset = scale.spec.is_none() && scale.status.is_none();
        self.scales.update(uid, |last| *last = Some(read).filter(|_| !is_unset));
        let count = scale.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(0);
        let asks_writer = asks_writer(count);
        // Who owns the workload does not change from one moment to the next, unlike who wrote its count.
        let metadata = match known {
            Some(known) if is_of_now || !asks_writer => Some(known.metadata.clone()),
            _ => match self.read_metadata(&place).await? {
                Ok(metadata) => metadata,
                Err(blocker) => return Ok(Err(blocker)),
            },
        };
        let is_told = is_of_now || asks_writer;
        let writer = metadata.as_ref().filter(|_| is_told);
        let writer = writer.map_or(Writer::Unknown, |metadata| writer_of(&place.resource, metadata));
        let controller = metadata.as_ref().and_then(Controller::of);
        let watched = objects.is_filled();
        let stands_for = stands_for.filter(|rest| *rest <= PACE);
        Ok(Ok(Scaled { place, scale, is_unset, writer, controller, watched, stands_for }))
    }

    /// The scale of the workload of that object was written, and is now so.
    pub fn wrote(&self, uid: &str, scale: Arc<Scale>) {
        let read = Read { scale, generation: None, at: clock::instant() };
        self.scales.update(uid, |last| *last = Some(read));
    }

    /// The resource of the kind, if it can be scaled.
    async fn resource(&self, reference: &Reference) -> Result<Result<ApiResource, Blocker>, Error> {
        let Reference { api_version, kind, .. } = reference;
        let key = (api_version.clone(), kind.clone());
        let known = self.kinds().get(&key).cloned();
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
            self.kinds().insert(key, resource.clone());
        }))
    }

    async fn read_scale(&self, place: &Place) -> Result<Result<Scale, Blocker>, Error> {
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &place.namespace, &place.resource);
        match call(api.get_scale(&place.name)).await {
            Ok(scale) => Ok(Ok(scale)),
            Err(error) if is_unset(&error) => {
                let metadata = match self.read_metadata(place).await? {
                    Ok(metadata) => metadata.unwrap_or_default(),
                    Err(blocker) => return Ok(Err(blocker)),
                };
                // The version is not given: it would be taken for that of a count that was read.
                let metadata = ObjectMeta { uid: metadata.uid, name: metadata.name, ..ObjectMeta::default() };
                Ok(Ok(Scale { metadata, spec: None, status: None }))
            }
            Err(error) if is_absent(&error) => {
                // The kind itself may be gone, or have lost its scale.
                self.kinds().retain(|_, one| *one != place.resource);
                let message = format!("{} {} does not exist", place.resource.kind, place.name);
                Ok(Err(if is_absent_object(&error, &place.name) {
                    Blocker::absent(message)
                } else {
                    Blocker::ready(Reason::TargetNotFound, message)
                }))
            }
            Err(error) if error.is_forbidden() => {
                let resource = format!("{}/scale", place.resource.plural);
                Ok(Err(Blocker::forbidden("get and patch", &resource, &place.resource.group)))
            }
            Err(error) => Err(Error::of("read the scale of", place)(error)),
        }
    }

    /// The metadata of a workload, where the watch does not tell yet; none where it is not there, or is of a custom kind
    /// and may not be read. One of a kind of Kubernetes may be an EtcdCluster's, which is never scaled, and only they tell.
    async fn read_metadata(&self, place: &Place) -> Result<Result<Option<ObjectMeta>, Blocker>, Error> {
        let api: Api<FoundMetadata> =
            Api::namespaced_with(self.client.clone(), &place.namespace, &place.resource);
        match call(api.get(&place.name)).await {
            Ok(mut found) => {
                trim(&mut found);
                Ok(Ok(Some(found.metadata)))
            }
            Err(error) if error.is_forbidden() && place.resource.group == APPS => {
                Ok(Err(Blocker::forbidden("get, list and watch", &place.resource.plural, APPS)))
            }
            Err(error) if error.is_forbidden() || is_absent(&error) => Ok(Ok(None)),
            Err(error) => Err(Error::of("read", place)(error)),
        }
    }

    /// The resource version of an object, as its watch sent it, which begins with that if the object of that uid is the
    /// first one that asks.
    pub fn version(&self, uid: &str, resource: &ApiResource, namespace: &str, name: &str) -> Option<String> {
        known(&self.watch(uid, resource), namespace, name)?.resource_version()
    }

    /// Whether changes of the objects of a resource are noticed.
    pub fn watches(&self, resource: &ApiResource) -> bool {
        self.watched().get(resource).is_some_and(|one| one.objects.is_filled())
    }

    /// Forgets what was read for an object, and what was watched for it.
    pub fn forget(&self, uid: &str) {
        self.let_go(uid, |_| true);
        self.scales.forget(uid);
        self.scaled_objects.forget(uid);
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

/// Who wrote the count of a workload. Of the kinds of Kubernetes the field is known: where no manager owns it, the
/// writer is unknown, and is not the client that applied the rest.
fn writer_of(resource: &ApiResource, metadata: &ObjectMeta) -> Writer {
    if resource.group == APPS && !observation::is_owned(metadata) {
        Writer::Unknown
    } else {
        Writer::of(metadata)
    }
}

/// What the watch sends of an object, while it runs.
fn known(objects: &DiffingStore<FoundMetadata>, namespace: &str, name: &str) -> Option<Arc<FoundMetadata>> {
    objects.get(namespace, name).filter(|_| objects.is_filled())
}

fn trim(object: &mut FoundMetadata) {
    observation::trim_owners(&mut object.metadata);
    (object.metadata.labels, object.metadata.annotations) = (None, None);
}

impl fmt::Debug for Targets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Targets")
    }
}

#[cfg(test)]
mod tests;
