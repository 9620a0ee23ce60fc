//! What a reconciliation acts with: what it has read and decided, and the calls that change something.
//!
//! Guarantees: an object that is there is changed or deleted only if it is the very one that was seen, which the API
//! server checks in the same request.

use k8s_openapi::NamespaceResourceScope;
use kube::core::ApiResource;
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::fail_points::FailPoints;
use super::manifest::{Manifest, Place};
use super::outcome::{Class, Error};
use super::reconcile::Reconciler;
use super::status::{self, Change};
use super::step::{Effect, Merge, Note, Step};
use crate::runtime::call::{self, call};

/// One thing that a plan may ask for.
pub trait Action: Send + Sync {
    /// The fail points around it.
    fn points(&self) -> FailPoints;

    /// What it is called in logs and metrics.
    fn name(&self) -> &'static str {
        self.points().name()
    }

    /// Whether actions after it need what it does.
    fn holds_up_others(&self) -> bool {
        true
    }

    /// Whether the status says that it is refused. Not where a condition of its own does.
    fn reports_refusal(&self) -> bool {
        true
    }
}

/// What became of an action that was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    /// Whether something is otherwise now.
    pub changed: bool,
}

/// A write that the API server refuses until somebody changes something: a quota, a policy, a right that is missing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RefusedWrite {
    /// The action that it was a part of.
    pub action: String,
    /// What the API server said.
    pub why: String,
}

/// Why an action was not carried out, or not surely.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Something has moved since it was decided on.
    #[error("{0}")]
    Moved(String),
    /// This installation may not do it.
    #[error("{0}")]
    Forbidden(&'static str),
    /// Another server than the API server said no, or its answer was lost.
    #[error("{source}")]
    Elsewhere {
        /// What it said.
        source: Box<dyn std::error::Error + Send + Sync>,
        /// Whether it surely has not been done.
        is_undone: bool,
    },
    /// The API server said no, or its answer was lost.
    #[error("{}", .0.said())]
    Api(#[from] Error),
}

impl Failure {
    /// Something has moved.
    pub fn moved(why: impl Into<String>) -> Self {
        Self::Moved(why.into())
    }

    /// Whether trying again is of no use until somebody changes something.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Forbidden(_) => true,
            Self::Api(error) => error.class() == Class::Permanent,
            Self::Moved(_) | Self::Elsewhere { .. } => false,
        }
    }
}

/// What a reconciliation has read and decided, and whoever acts.
#[derive(Debug)]
pub struct Execution<'a, Kind: Reconciler> {
    /// Who acts.
    pub kind: &'a Kind,
    /// The object, as it was read.
    pub object: &'a Kind::Object,
    /// What it asks for.
    pub spec: &'a Kind::Spec,
    /// What was read.
    pub seen: &'a Kind::Observation,
    /// What is decided.
    pub plan: &'a Kind::Plan,
    /// The status as it was written last, and what it says from now on.
    pub status: &'a Change<Kind::Status>,
}

impl<Kind: Reconciler> Clone for Execution<'_, Kind> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Kind: Reconciler> Copy for Execution<'_, Kind> {}

impl<Kind: Reconciler> Execution<'_, Kind> {
    /// The objects of a type in the object's namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.kind.client().clone(), &self.namespace())
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
    pub fn place<K: Resource<DynamicType = ()>>(&self, name: &str) -> Place {
        Place { resource: ApiResource::erase::<K>(&()), namespace: self.namespace(), name: name.to_owned() }
    }

    /// That object as it is now.
    ///
    /// # Errors
    /// When the API server does not say.
    pub async fn read<K>(&self, name: &str) -> Result<Option<K>, Failure>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + std::fmt::Debug + DeserializeOwned,
    {
        let found = call(self.api::<K>().get_opt(name)).await;
        found.map_err(|source| self.failed::<K>("read", name, source))
    }

    /// Does one thing through the API server.
    ///
    /// # Errors
    /// When it is refused, or there is no answer.
    pub async fn perform(&self, step: &Step) -> Result<Effect, Error> {
        self.kind.interpreter().perform(step, &self.object.object_ref(&())).await
    }

    /// The same where what it makes does not matter.
    ///
    /// # Errors
    /// As [`Self::perform`].
    pub async fn write(&self, step: &Step) -> Result<(), Failure> {
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
        let (manager, seen) = (Kind::MANAGER, version.map(str::to_owned));
        self.write(&Step::Merge(Merge { manifest, manager, scale: false, seen })).await
    }

    /// Publishes an event of the object. One that cannot be published is logged, and holds nothing up.
    pub async fn tell(&self, note: Note) {
        let points = Kind::EVENT_POINTS;
        let _told = points.around(self.perform(&Step::Event(note)), || self.lost(points.name())).await;
    }

    /// Writes the status where it says something new; the resource version that this makes.
    ///
    /// # Errors
    /// When it is refused, or there is no answer.
    pub async fn write_status(&self) -> Result<Option<String>, Error> {
        let (metadata, manager) = (self.object.meta(), Kind::MANAGER);
        let write = status::write::<Kind::Object, _>(metadata, self.status, Kind::PRECONDITION, manager);
        let Some(write) = write else { return Ok(None) };
        let points = Kind::STATUS_POINTS;
        Ok(points.around(self.perform(&write), || self.lost(points.name())).await?.resource_version)
    }

    /// What it is to have done something whose answer is lost.
    #[must_use]
    pub fn lost(&self, verb: &'static str) -> Error {
        let object = Place::of(self.object).to_string();
        Error { verb, object, source: call::Error::Timeout }
    }

    /// A call about an object of that name failed.
    pub fn failed<K: Resource<DynamicType = ()>>(
        &self,
        verb: &'static str,
        name: &str,
        source: call::Error,
    ) -> Failure {
        Failure::Api(Error { verb, object: self.place::<K>(name).to_string(), source })
    }
}
