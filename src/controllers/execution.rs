//! The calls by which a reconciliation reads and changes objects.
//!
//! Guarantees: an object that is there is changed or deleted only if it is the very one that was seen, which the API
//! server checks in the same request.

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::object::HasStatus as _;
use kube::{Api, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::action::Failure;
use super::api_write::{ApiWrite, Merge, Note, WriteOutcome};
use super::manifest::{Manifest, Place};
use super::outcome::{Class, Error};
use super::reconciler::{Execution, Pass, Reconciler, StatusOf};
use super::status::StatusRole;
use super::{finalizer, status};
use crate::runtime::call::{self, call};

/// How often the status of an object is written into which other clients write meanwhile.
const STATUS_TRIES: usize = 5;

impl<Kind: Reconciler> Pass<'_, Kind> {
    /// The objects of a type in the object's namespace.
    #[must_use]
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.context.client.clone(), &self.namespace())
    }

    /// The name of the object.
    #[must_use]
    pub fn name(&self) -> String {
        self.object.name_any()
    }

    /// The namespace of the object.
    #[must_use]
    pub fn namespace(&self) -> String {
        self.object.namespace().unwrap_or_default()
    }

    /// An object of that name in the same namespace.
    #[must_use]
    pub fn place<K: Resource<DynamicType = ()>>(&self, name: &str) -> Place {
        Place::named::<K>(&self.namespace(), name)
    }

    /// The object of that name in the same namespace, as it is now.
    ///
    /// # Errors
    /// When the API server does not say.
    pub async fn read<K>(&self, name: &str) -> Result<Option<K>, Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + std::fmt::Debug + DeserializeOwned,
    {
        call(self.api::<K>().get_opt(name)).await.map_err(Error::of("read", &self.place::<K>(name)))
    }
}

impl<Kind: Reconciler> Execution<'_, Kind> {
    /// The object as it is stored now: the status may have been written since it was observed.
    ///
    /// # Errors
    /// When it is gone, or the API server does not say.
    pub async fn live(&self) -> Result<Kind::Object, Failure> {
        let live: Option<Kind::Object> = self.read(&self.name()).await?;
        let live = live.filter(|live| live.meta().uid == self.object.meta().uid);
        live.ok_or_else(|| Failure::moved("the object is gone"))
    }

    /// Has the deletion of the object wait for us, which cannot begin once it is being deleted; or lets the object go,
    /// once it is.
    ///
    /// # Errors
    /// When it is refused, or there is no answer.
    pub async fn set_finalizer(&self, on: bool) -> Result<(), Failure> {
        let live = self.live().await?;
        match (live.meta().deletion_timestamp.is_some(), on) {
            (true, true) => Err(Failure::moved("the object is being deleted")),
            (false, false) => Err(Failure::moved("the object is not being deleted")),
            _ => {
                let write = Self::finalizer(live.meta(), on);
                self.write(&write).await
            }
        }
    }

    /// Has no deletion of the object wait for us any more, also one that is to come, where the object is as it was decided
    /// on: a spec or a status that was written meanwhile may have given the deletion something to do.
    ///
    /// Assumes: the status was reported before.
    ///
    /// # Errors
    /// When the object is another one by now, the API server refuses, or there is no answer.
    pub async fn withdraw_finalizer(&self) -> Result<(), Failure> {
        let live = self.live().await?;
        let (new, old) = (live.meta(), self.object.meta());
        let is_same = new.generation == old.generation
            && new.deletion_timestamp.is_some() == old.deletion_timestamp.is_some()
            && stored_status(&live) == Some(json!(self.plan.status));
        if !is_same {
            return Err(Failure::moved("the object was changed meanwhile"));
        }
        self.write(&Self::finalizer(new, false)).await
    }

    /// The write that puts the finalizer on the object of that metadata, or takes it off.
    fn finalizer(metadata: &ObjectMeta, on: bool) -> ApiWrite {
        finalizer::write::<Kind::Object>(metadata, Kind::IDENTITY.finalizer, on, Kind::IDENTITY.manager)
    }

    /// Does one thing through the API server.
    ///
    /// # Errors
    /// When it is refused, or there is no answer.
    pub async fn perform(&self, step: &ApiWrite) -> Result<WriteOutcome, Error> {
        self.context.writer.perform(step, &self.object.object_ref(&())).await
    }

    /// The same where what it makes does not matter.
    ///
    /// # Errors
    /// As [`Self::perform`].
    pub async fn write(&self, step: &ApiWrite) -> Result<(), Failure> {
        self.perform(step).await?;
        Ok(())
    }

    /// Merges fields into the very object that was seen, or, without a version, into the one of that uid.
    ///
    /// # Errors
    /// As [`Self::perform`].
    pub async fn merge<K: Resource<DynamicType = ()>>(
        &self,
        name: &str,
        uid: &str,
        version: Option<&str>,
        fields: Value,
    ) -> Result<(), Failure> {
        let mut manifest = Manifest { place: self.place::<K>(name), object: fields };
        manifest.object["metadata"]["uid"] = json!(uid);
        if let Some(version) = version {
            manifest.object["metadata"]["resourceVersion"] = json!(version);
        }
        let (manager, seen) = (Kind::IDENTITY.manager, version.map(str::to_owned));
        self.write(&ApiWrite::Merge(Merge { manifest, manager, scale: false, seen })).await
    }

    /// Publishes an event of the object; whether it was published. One that cannot be is logged, and holds nothing up.
    pub async fn tell(&self, note: Note) -> bool {
        let points = Kind::IDENTITY.event_points;
        let told = points.around(self.perform(&ApiWrite::Event(note)), || self.lost(points.name())).await;
        told.is_ok_and(|told| told.changed)
    }

    /// Writes the status where it says something new; the resource version that this makes.
    ///
    /// # Errors
    /// When it is refused, or there is no answer.
    pub async fn write_status(&self) -> Result<Option<String>, Error> {
        let (metadata, manager) = (self.object.meta(), Kind::IDENTITY.manager);
        let empty = StatusOf::<Kind>::default();
        let change = (self.object.status().unwrap_or(&empty), &self.plan.status);
        let write = status::write::<Kind::Object, _>(metadata, change, Kind::IDENTITY.status, manager);
        let Some(mut write) = write else { return Ok(None) };
        let points = Kind::IDENTITY.status_points;
        let mut more = 1..STATUS_TRIES;
        loop {
            let written = points.around(self.perform(&write), || self.lost(points.name())).await;
            let error = match written {
                Ok(written) => return Ok(written.resource_version),
                Err(error) => error,
            };
            if error.class() != Class::Conflict || more.next().is_none() {
                return Err(error);
            }
            let again = match Kind::IDENTITY.status {
                StatusRole::Report => {
                    let live = self.live().await.ok();
                    live.and_then(|live| status::write_beside_others(&live, change, manager))
                }
                StatusRole::Record => self.same_but_for_metadata().await.and_then(|live| {
                    status::write::<Kind::Object, _>(&live, change, Kind::IDENTITY.status, manager)
                }),
            };
            write = again.ok_or(error)?;
        }
    }

    /// The metadata of the object as it is now, where all that has changed since it was read are labels and annotations,
    /// which other clients may write all the time: spec, status and deletion are as they were.
    async fn same_but_for_metadata(&self) -> Option<ObjectMeta> {
        let live = self.live().await.ok()?;
        let (new, old) = (live.meta(), self.object.meta());
        let is_same = new.generation == old.generation
            && new.deletion_timestamp == old.deletion_timestamp
            && new.finalizers == old.finalizers
            && stored_status(&live) == stored_status(self.object);
        is_same.then(|| new.clone())
    }

    /// What it is to have done something whose answer is lost.
    #[must_use]
    pub fn lost(&self, verb: &'static str) -> Error {
        let object = Place::of(self.object).to_string();
        Error { verb, object, source: call::Error::Timeout }
    }

    /// A call about an object of that name failed.
    #[must_use]
    pub fn failed<K: Resource<DynamicType = ()>>(
        &self,
        verb: &'static str,
        name: &str,
        source: call::Error,
    ) -> Failure {
        Failure::Api(Error::of(verb, &self.place::<K>(name))(source))
    }
}

/// The status of an object as JSON.
fn stored_status<Object: Serialize>(object: &Object) -> Option<Value> {
    serde_json::to_value(object).ok()?.get("status").cloned()
}
