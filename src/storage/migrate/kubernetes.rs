//! Rewriting, left to Kubernetes' own migrator.
//!
//! Guarantees: what it says it has done is not believed: a pass of our own follows. One that is at work for the definition
//! is taken up, and one that has ended is not made again. Where the API server does not have it or may not be asked,
//! where nothing runs it, and where it does not come to its end, gatehouse writes the objects.

use std::time::Duration;

use serde_json::Value;

use super::super::observation::Definition;
use super::super::plan::checkpoint::Checkpoint;
use super::super::plan::kubernetes::{self, Progress};
use super::super::plan::object::Answer;
use super::super::plan::tally::Tally;
use super::super::plan::writer::{self, Asked};
use super::{Error, Event, Migration, Outcome, Patience, refused};
use crate::runtime::supervisor::chain;
use crate::runtime::{clock, fail_point};

/// How often it is looked at.
const INTERVAL: Duration = Duration::from_secs(1);

const WHAT: &str = "storageversionmigrations of storagemigration.k8s.io";

impl Migration<'_> {
    /// Has Kubernetes write the objects where it is asked to, and makes all passes after that.
    pub(super) async fn rewrite(
        &self,
        definition: &Definition,
        place: Checkpoint,
        known: Option<Definition>,
    ) -> Result<Outcome, Error> {
        let asked = writer::asked(self.options.writer, definition, &place, self.goal.is_forced);
        if asked == Asked::Nothing {
            return self.passes(definition, place, true).await;
        }
        let interrupted = Ok(Outcome::Interrupted(Tally::default()));
        let Some(is_written) = self.leave_to_kubernetes(definition, asked).await? else {
            return interrupted;
        };
        // What it has left behind says where to begin; it has reduced `storedVersions`, which said more before.
        let Some(begun) = self.begin(&definition.name, known).await? else { return interrupted };
        let (after, place, rewrites) = (begun.definition, begun.place, begun.rewrites);
        let place =
            if rewrites && is_written { writer::place_after(definition, &after, place) } else { place };
        self.passes(&after, place, rewrites).await
    }

    /// Has Kubernetes write the objects, and waits for its end, good or bad; whether it says that it has written all, none
    /// where this is to end before.
    async fn leave_to_kubernetes(
        &self,
        definition: &Definition,
        asked: Asked,
    ) -> Result<Option<bool>, Error> {
        let mut first = Checkpoint::at_pass(1, &definition.uid, definition.generation, "");
        let page = self.page(Patience::Unbounded, definition, &mut first, &mut 1).await?;
        self.is_convertible(definition, &page).await?;
        if page.items.is_empty() {
            return Ok(Some(false));
        }
        // Before anything that Kubernetes says about its end: it is then known that gatehouse has something to verify.
        self.say_begun(definition).await?;
        let object = match self.migration_by_kubernetes(definition, asked).await {
            Ok(Some(object)) => object,
            Ok(None) => return Ok(Some(false)),
            Err(why) => {
                self.take_back(&why);
                return Ok(Some(false));
            }
        };
        fail_point::reached("storage: Kubernetes is asked");
        self.say_delegated(definition, &kubernetes::name(definition)).await?;
        let objects = 1 + page.metadata.remaining_item_count.unwrap_or_default();
        let Some((end, object)) = self.end_by_kubernetes(definition, object, objects).await else {
            return Ok(None);
        };
        fail_point::reached("storage: Kubernetes has ended");
        match &end {
            Ok(()) => {
                let text = "Kubernetes has written the objects: every one is looked at";
                self.watch.see(Event::TakenBack(text));
            }
            Err(why) => self.take_back(why),
        }
        self.forget_kubernetes(&object).await;
        Ok(Some(end.is_ok()))
    }

    fn take_back(&self, why: &str) {
        self.watch.see(Event::TakenBack(&format!("gatehouse writes the objects: {why}")));
    }

    /// The object by which Kubernetes is asked: the one that is there, or else a new one if one is asked for.
    ///
    /// # Errors
    /// Why there is none.
    async fn migration_by_kubernetes(
        &self,
        definition: &Definition,
        asked: Asked,
    ) -> Result<Option<Value>, String> {
        let name = kubernetes::name(definition);
        if asked == Asked::New {
            let body = kubernetes::object(definition);
            match self.insist(Patience::Unbounded, || self.requests.create_migration(&body)).await {
                Answer::Done(object) => return Ok(Some(object)),
                Answer::Refused(status, _) if status.code == 404 => {
                    return Err("the API server has no StorageVersionMigration".to_owned());
                }
                // Of a run that ended early, or of one beside this.
                Answer::Refused(status, _) if status.code == 409 => {}
                other => return Err(chain(&refused("create", WHAT.to_owned(), other))),
            }
        }
        match self.insist(Patience::Unbounded, || self.requests.migration(&name)).await {
            Answer::Done(object) => Ok(Some(object)),
            _ if asked == Asked::Known => Ok(None),
            other => Err(chain(&refused("read", format!("{WHAT} {name}"), other))),
        }
    }

    /// Waits for the end; why it is one without all objects written, and the object as it was last. None where this is to
    /// end before.
    async fn end_by_kubernetes(
        &self,
        definition: &Definition,
        mut object: Value,
        objects: u64,
    ) -> Option<(Result<(), String>, Value)> {
        let (name, begun) = (kubernetes::name(definition), clock::instant());
        let (mut known, mut since) = (Progress::Unheard, begun);
        loop {
            let progress = match kubernetes::progress(&object) {
                Progress::Ended(end) => {
                    return Some((end.map_err(|why| format!("Kubernetes failed: {why}")), object));
                }
                progress => progress,
            };
            if progress != known {
                (known, since) = (progress, clock::instant());
            }
            if let Some(why) = kubernetes::given_up(&known, begun.elapsed(), since.elapsed(), objects) {
                return Some((Err(why), object));
            }
            self.watch.see(Event::Delegated(&known.to_string()));
            if !self.waited(INTERVAL).await {
                return None;
            }
            object = match self.insist(Patience::Unbounded, || self.requests.migration(&name)).await {
                Answer::Done(object) => object,
                _ if self.stop.is_cancelled() => return None,
                Answer::Refused(status, _) if status.code == 404 => {
                    return Some((Err(format!("StorageVersionMigration {name} is gone")), object));
                }
                other => {
                    return Some((Err(chain(&refused("read", format!("{WHAT} {name}"), other))), object));
                }
            };
        }
    }

    /// Takes the object away: it never runs again, and the condition of the definition says how it ended.
    async fn forget_kubernetes(&self, object: &Value) {
        match self.insist(Patience::Unbounded, || self.requests.delete_migration(object)).await {
            Answer::Done(_) => {}
            // It is gone, or another one by now.
            Answer::Refused(status, _) if matches!(status.code, 404 | 409) => {}
            other => {
                self.watch.see(Event::TakenBack(&chain(&refused("delete", WHAT.to_owned(), other))));
            }
        }
    }
}
