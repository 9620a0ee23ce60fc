//! The API writes of a plan, and the writer that executes them.
//!
//! Guarantees: each call has a limit; nothing is written to an object that is not ours; an event that could not be
//! published holds nothing up.
//!
//! On force. An object that was not there is applied *without* force: should another client have made one of the same
//! name meanwhile, differing fields are a conflict and the object stays theirs; where the manifest is
//! [for a new object alone](Manifest::only_new), any object of that name is. An object known to be ours is applied
//! with its uid and *with* force: the manifest holds only fields that follow from the owner's spec, and a field that
//! another client has taken over there is taken back. What the manifest leaves out, and another client added, stays: a merge
//! removes it, as [`super::deviation`] says.

use std::sync::Arc;

use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions};
use kube::core::Request;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Api, Client, Resource as _, ResourceExt as _};
use serde::Deserialize;
use serde_json::Value;
use tracing::{debug, warn};

use super::manifest::{Manifest, Place};
use super::outcome::Error;
use crate::runtime::call::call;

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum ApiWrite {
    /// Apply a manifest.
    Apply(Apply),
    /// Merge fields into an object or its scale.
    Merge(Merge),
    /// Make an object. One that is there by now is a conflict, and stays as it is.
    Create {
        /// What.
        manifest: Manifest,
        /// As whom.
        manager: &'static str,
    },
    /// Delete the object of that uid at that place. That it is gone is fine.
    Delete {
        /// Where it is.
        place: Place,
        /// Which one it is.
        uid: String,
        /// In which state; none: in any.
        resource_version: Option<String>,
    },
    /// Merge these fields into the object's status.
    ///
    /// Not applied: to apply, the API server has to make sense of the whole object, and answers 500 for one that its
    /// schema does not fit, which is when there is most to say.
    Status {
        /// The fields; null takes one away.
        manifest: Manifest,
        /// As whom.
        manager: &'static str,
    },
    /// Tell of something.
    Event(Note),
}

/// A manifest and how it is applied.
#[derive(Clone, Debug, PartialEq)]
pub struct Apply {
    /// What.
    pub manifest: Manifest,
    /// As whom.
    pub manager: &'static str,
    /// Resource version of the object that is there and ours; then it is applied with force.
    pub seen: Option<String>,
}

/// Fields to merge: into objects that others own, where what is merged is theirs as much as ours; and into objects of
/// ours, to remove what others added, which an apply leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Merge {
    /// The fields, with the uid of the object that they are for.
    pub manifest: Manifest,
    /// As whom.
    pub manager: &'static str,
    /// Whether they belong into its scale subresource.
    pub scale: bool,
    /// Resource version of the object as it was seen.
    pub seen: Option<String>,
}

/// An event of the object that is reconciled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Whether it is a warning.
    pub warning: bool,
    /// Why, in one CamelCase word.
    pub reason: &'static str,
    /// What was done, in one CamelCase word.
    pub action: &'static str,
    /// A sentence.
    pub text: String,
}

/// Why the status of an object does not say how it is.
pub const STATUS_REFUSED: &str = "StatusUpdateFailed";

impl Note {
    /// Of a status that the API server refuses for good, which therefore cannot say so.
    #[must_use]
    pub fn of_refused_status(error: &Error) -> Self {
        Self { warning: true, reason: STATUS_REFUSED, action: "Reconcile", text: error.said() }
    }
}

/// Longest note that the API server takes, in bytes.
const LONGEST_NOTE: usize = 1024;

/// The result of a write.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteOutcome {
    /// Whether it changed anything.
    pub changed: bool,
    /// Resource version of the object afterwards.
    pub resource_version: Option<String>,
    /// The scale afterwards, where it was written.
    pub scale: Option<Arc<Scale>>,
}

impl ApiWrite {
    /// The resource version at which the object was seen that is applied or merged.
    #[must_use]
    pub fn seen(&self) -> Option<&str> {
        match self {
            Self::Apply(apply) => apply.seen.as_deref(),
            Self::Merge(merge) => merge.seen.as_deref(),
            Self::Create { .. } | Self::Delete { .. } | Self::Status { .. } | Self::Event(_) => None,
        }
    }
}

/// Does what plans ask for.
#[derive(Clone)]
pub struct ApiWriter {
    client: Client,
    reporter: Reporter,
}

impl ApiWriter {
    /// Acts through `client`; events are reported by `controller` on this host.
    #[must_use]
    pub fn new(client: Client, controller: &str) -> Self {
        Self { client, reporter: controller.into() }
    }

    /// Does one thing for the object `regarding`.
    ///
    /// # Errors
    /// When the API server refuses it or does not answer.
    pub async fn perform(&self, step: &ApiWrite, regarding: &ObjectReference) -> Result<WriteOutcome, Error> {
        match step {
            ApiWrite::Apply(apply) => self.apply(apply).await,
            ApiWrite::Merge(merge) => self.merge(merge).await,
            ApiWrite::Status { manifest, manager } => self.say(manifest, manager).await,
            ApiWrite::Create { manifest, manager } => self.create(manifest, manager).await,
            ApiWrite::Delete { place, uid, resource_version } => {
                self.delete(place, uid, resource_version.clone()).await
            }
            ApiWrite::Event(note) => {
                let changed = self.publish(note, regarding).await;
                Ok(WriteOutcome { changed, ..WriteOutcome::default() })
            }
        }
    }

    async fn apply(&self, apply: &Apply) -> Result<WriteOutcome, Error> {
        let place = &apply.manifest.place;
        let mut params = PatchParams::apply(apply.manager);
        params.force = apply.seen.is_some();
        let patch = Patch::Apply(&apply.manifest.object);
        let answer = call(self.patch(place, &place.name, &params, &patch)).await;
        let after = answer.map_err(Error::of("apply", place))?;
        let changed = apply.seen.is_none() || apply.seen != after;
        debug!(object = %place, manager = apply.manager, changed, "applied");
        Ok(WriteOutcome { changed, resource_version: after, ..WriteOutcome::default() })
    }

    async fn merge(&self, merge: &Merge) -> Result<WriteOutcome, Error> {
        let place = &merge.manifest.place;
        let params = PatchParams { field_manager: Some(merge.manager.to_owned()), ..PatchParams::default() };
        let patch = Patch::Merge(&merge.manifest.object);
        let (after, scale) = if merge.scale {
            let answer = call(self.api(place).patch_scale(&place.name, &params, &patch)).await;
            let scale = answer.map_err(Error::of("patch the scale of", place))?;
            (scale.metadata.resource_version.clone(), Some(Arc::new(scale)))
        } else {
            let answer = call(self.patch(place, &place.name, &params, &patch)).await;
            (answer.map_err(Error::of("patch", place))?, None)
        };
        let changed = merge.seen.is_none() || merge.seen != after;
        debug!(object = %place, manager = merge.manager, changed, "merged");
        Ok(WriteOutcome { changed, resource_version: after, scale })
    }

    async fn say(&self, manifest: &Manifest, manager: &str) -> Result<WriteOutcome, Error> {
        let place = &manifest.place;
        let params = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
        let patch = Patch::Merge(&manifest.object);
        let subresource = format!("{}/status", place.name);
        let answer = call(self.patch(place, &subresource, &params, &patch)).await;
        let after = answer.map_err(Error::of("write the status of", place))?;
        debug!(object = %place, "status written");
        Ok(WriteOutcome { changed: true, resource_version: after, ..WriteOutcome::default() })
    }

    async fn create(&self, manifest: &Manifest, manager: &str) -> Result<WriteOutcome, Error> {
        let place = &manifest.place;
        let params = PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() };
        let object = serde_json::from_value(manifest.object.clone()).map_err(kube::Error::SerdeError);
        let api = self.api(place);
        let answer = call(async { api.create(&params, &object?).await }).await;
        let after = answer.map_err(Error::of("create", place))?.resource_version();
        debug!(object = %place, manager, "created");
        Ok(WriteOutcome { changed: true, resource_version: after, ..WriteOutcome::default() })
    }

    async fn delete(
        &self,
        place: &Place,
        uid: &str,
        resource_version: Option<String>,
    ) -> Result<WriteOutcome, Error> {
        let only = Preconditions { uid: Some(uid.to_owned()), resource_version };
        let params = DeleteParams { preconditions: Some(only), ..DeleteParams::background() };
        match call(self.api(place).delete(&place.name, &params)).await {
            Ok(_) => Ok(WriteOutcome { changed: true, ..WriteOutcome::default() }),
            Err(error) if error.is_not_found() => Ok(WriteOutcome::default()),
            Err(error) => Err(Error::of("delete", place)(error)),
        }
    }

    /// Publishes an event; whether that was done. Each by a recorder of its own: a recorder folds events of one reason
    /// into the first one's note, and the notes are what differs.
    async fn publish(&self, note: &Note, regarding: &ObjectReference) -> bool {
        let mut text = note.text.clone();
        text.truncate(text.floor_char_boundary(LONGEST_NOTE));
        let event = Event {
            type_: if note.warning { EventType::Warning } else { EventType::Normal },
            reason: note.reason.to_owned(),
            note: Some(text),
            action: note.action.to_owned(),
            secondary: None,
        };
        let recorder = Recorder::new(self.client.clone(), self.reporter.clone());
        let published = call(recorder.publish(&event, regarding)).await;
        published
            .inspect_err(|error| warn!(reason = note.reason, %error, "failed to publish an event"))
            .is_ok()
    }

    /// Patches an object, or a subresource `name/status`; the resource version that this makes. Metadata are asked for
    /// alone, and nothing else is read of them: managed fields are most of what is answered.
    async fn patch(
        &self,
        place: &Place,
        name: &str,
        params: &PatchParams,
        patch: &Patch<&Value>,
    ) -> kube::Result<Option<String>> {
        let objects = DynamicObject::url_path(&place.resource, Some(&place.namespace));
        let request = Request::new(objects).patch_metadata(name, params, patch);
        let request = request.map_err(kube::Error::BuildRequest)?;
        let written: Written = self.client.request(request).await?;
        Ok(written.metadata.resource_version)
    }

    fn api(&self, place: &Place) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &place.namespace, &place.resource)
    }
}

/// What is read of an object that was written.
#[derive(Deserialize)]
struct Written {
    metadata: Versioned,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Versioned {
    resource_version: Option<String>,
}
