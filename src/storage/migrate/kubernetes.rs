//! Rewriting, left to Kubernetes' own migrator where that is asked for.
//!
//! Guarantees: what it says it has done is not believed: a pass of our own follows, which also puts `storedVersions` back
//! where it failed. One that is at work for the definition is taken up. Where an API server does not serve it, or nothing
//! runs it, gatehouse writes the objects.

use std::time::Duration;

use serde_json::Value;

use super::super::observation::Definition;
use super::super::plan::checkpoint::Checkpoint;
use super::super::plan::kubernetes::{self, Progress, UNHEARD};
use super::super::plan::object::Answer;
use super::{Error, Event, Migration, Patience, refused};
use crate::runtime::{clock, fail_point};

/// How often it is looked at.
const INTERVAL: Duration = Duration::from_secs(1);

const WHAT: &str = "storageversionmigrations of storagemigration.k8s.io";

impl Migration<'_> {
    /// Whether Kubernetes is asked: only where nothing has been begun.
    pub(super) fn is_left_to_kubernetes(
        &self,
        (_, place, rewrites): &(Definition, Checkpoint, bool),
    ) -> bool {
        let is_first = place.pass == 1 && place.next.is_empty();
        self.options.asks_kubernetes && !self.options.is_dry && *rewrites && is_first
    }

    /// Has Kubernetes write the objects, and waits for its end, good or bad; false where this is to end before.
    pub(super) async fn leave_to_kubernetes(&self, definition: &Definition) -> Result<bool, Error> {
        let mut first = Checkpoint::at_pass(1, &definition.uid, definition.generation, "");
        let page = self.page(Patience::Unbounded, definition, &mut first, &mut 1).await?;
        self.is_convertible(definition, &page).await?;
        self.say_begun(definition).await?;
        let Some(mut object) = self.asked_of_kubernetes(definition).await? else {
            self.watch.see(Event::Delegated(
                "the API server has no StorageVersionMigration: gatehouse writes the objects",
            ));
            return Ok(true);
        };
        fail_point::reached("storage: Kubernetes is asked");
        let (name, begun) = (kubernetes::name(definition), clock::instant());
        let end = loop {
            match kubernetes::progress(&object) {
                Progress::Ended(Ok(())) => {
                    break "Kubernetes has written the objects: every one is looked at".to_owned();
                }
                Progress::Ended(Err(why)) => {
                    break format!("Kubernetes failed, gatehouse writes the objects: {why}");
                }
                Progress::Unheard if begun.elapsed() >= UNHEARD => {
                    break "nothing carries out StorageVersionMigrations: gatehouse writes the objects"
                        .to_owned();
                }
                Progress::Unheard => self.watch.see(Event::Delegated("waiting for Kubernetes to begin")),
                Progress::Runs(message) => {
                    self.watch.see(Event::Delegated(&format!("Kubernetes: {message}")));
                }
            }
            if !self.waited(INTERVAL).await {
                return Ok(false);
            }
            object = match self.insist(Patience::Unbounded, || self.requests.migration(&name)).await {
                Answer::Done(object) => object,
                Answer::Refused(status, _) if status.code == 404 => {
                    break "the StorageVersionMigration is gone: gatehouse writes the objects".to_owned();
                }
                _ if self.stop.is_cancelled() => return Ok(false),
                other => return Err(refused("read", WHAT.to_owned(), other)),
            };
        };
        self.watch.see(Event::Delegated(&end));
        // It never runs again, and the condition of the definition says how it ended.
        self.forget_kubernetes(&object).await?;
        Ok(true)
    }

    /// The object by which Kubernetes is asked; none where there is no such API.
    async fn asked_of_kubernetes(&self, definition: &Definition) -> Result<Option<Value>, Error> {
        let name = kubernetes::name(definition);
        let body = kubernetes::object(definition);
        loop {
            match self.insist(Patience::Unbounded, || self.requests.create_migration(&body)).await {
                Answer::Done(object) => return Ok(Some(object)),
                Answer::Refused(status, _) if status.code == 404 => return Ok(None),
                Answer::Refused(status, _) if status.code == 409 => {}
                other => return Err(refused("create", WHAT.to_owned(), other)),
            }
            match self.insist(Patience::Unbounded, || self.requests.migration(&name)).await {
                Answer::Done(object) if matches!(kubernetes::progress(&object), Progress::Ended(_)) => {
                    self.forget_kubernetes(&object).await?;
                }
                Answer::Done(object) => return Ok(Some(object)),
                Answer::Refused(status, _) if status.code == 404 => {}
                other => return Err(refused("read", WHAT.to_owned(), other)),
            }
        }
    }

    async fn forget_kubernetes(&self, object: &Value) -> Result<(), Error> {
        match self.insist(Patience::Unbounded, || self.requests.delete_migration(object)).await {
            Answer::Done(_) => Ok(()),
            // It is gone, or another one by now.
            Answer::Refused(status, _) if matches!(status.code, 404 | 409) => Ok(()),
            other => Err(refused("delete", WHAT.to_owned(), other)),
        }
    }
}
