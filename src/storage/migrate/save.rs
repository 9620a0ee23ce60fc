//! What a migration writes to its definition: its place, a condition, and at last `storedVersions`.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::observation::Definition;
use super::super::plan::checkpoint::{ANNOTATION, Checkpoint};
use super::super::plan::condition::{Condition, INTERRUPTED, UNABLE};
use super::super::plan::ending;
use super::super::plan::object::{Answer, reason};
use super::super::plan::tally::Tally;
use super::super::plan::{self, End};
use super::{Error, Event, Migration, Patience, refused};
use crate::runtime::clock;
use crate::runtime::supervisor::chain;

/// How often the place is written.
pub(super) const INTERVAL: Duration = Duration::from_secs(10);

impl Migration<'_> {
    /// Writes a place down. Where that fails, what takes the migration up begins at an earlier place.
    pub(super) async fn save(&self, definition: &Definition, place: &Checkpoint) {
        self.annotate(definition, &json!(place.text())).await;
    }

    /// Takes the place away.
    pub(super) async fn forget(&self, definition: &Definition) {
        if definition.checkpoint.is_some() {
            self.annotate(definition, &Value::Null).await;
        }
    }

    async fn annotate(&self, definition: &Definition, text: &Value) {
        if self.options.is_dry {
            return;
        }
        // The uid keeps it from another definition of that name.
        let body = json!({"metadata": {"uid": definition.uid, "annotations": {ANNOTATION: text}}});
        match self.requests.patch_definition(&definition.name, &body, false).await {
            Answer::Done(_) => {}
            Answer::Refused(status, _) => self.watch.see(Event::Forgets(&reason(&status))),
            Answer::Nothing(why) | Answer::Unreached(why) => self.watch.see(Event::Forgets(&why)),
        }
    }

    pub(super) async fn say_begun(&self, definition: &Definition) -> Result<(), Error> {
        let message = format!("objects are being written as {}", definition.storage_version());
        let begun = Condition { is_true: false, reason: "Migrating", message };
        self.say(Patience::Unbounded, definition, |_| Some(begun.clone())).await
    }

    /// Says that objects may be stored in another version, where it says that they are not.
    pub(super) async fn say_waiting(&self, definition: &Definition) -> Result<(), Error> {
        let waiting = |now: &Definition| plan::is_untrue(now).then(|| ending::waiting(now));
        self.say(Patience::Short, definition, waiting).await
    }

    /// Says that it is not done, unless another client has done it meanwhile and says so. That `storedVersions` names the
    /// storage version alone proves nothing: a person may have written that.
    pub(super) async fn say_interrupted(
        &self,
        definition: &Definition,
        place: &Checkpoint,
    ) -> Result<(), Error> {
        let objects = place.tally.objects();
        let message =
            format!("interrupted in pass {} after {objects} objects: run again to go on", place.pass);
        let interrupted = Condition { is_true: false, reason: INTERRUPTED, message };
        self.say(Patience::Unbounded, definition, |now| {
            let is_done = now.says_migrated() && !plan::is_untrue(now);
            (!is_done).then(|| interrupted.clone())
        })
        .await
    }

    /// Says why it cannot be carried out, where objects may be stored in another version. Asks once: what is wrong may be
    /// that the API server does not answer.
    pub(in super::super) async fn say_failed(&self, definition: &Definition, error: &Error) {
        let reason = if matches!(error, Error::Held(_)) { "Held" } else { UNABLE };
        let failed = Condition::failed(reason, &chain(error));
        if self.options.is_dry {
            return;
        }
        if let Answer::Done(now) = self.requests.definition(&definition.name).await
            && now.uid == definition.uid
            && !now.is_deleted
            && !plan::is_stored_as_wanted(&now)
            && let Some(body) = status_body(&now, Some(&failed), None)
        {
            drop(self.requests.patch_definition(&now.name, &body, true).await);
        }
    }

    pub(in super::super) async fn say_settled(&self, name: &str) -> Result<(), Error> {
        loop {
            let definition = self.definition(name).await?;
            if definition.says_migrated()
                || !plan::is_stored_as_wanted(&definition)
                || self.write(Patience::Short, &definition, &ending::migrated(&definition), None).await?
            {
                return Ok(());
            }
        }
    }

    /// Has `storedVersions` name these versions, in this state of the definition alone; the definition as it is then. It
    /// does not say at any time that all objects are stored as they should be, and names other versions.
    pub(super) async fn restore(
        &self,
        definition: &Definition,
        stored: &[String],
    ) -> Result<Definition, Error> {
        let waiting = definition.says_migrated().then(|| ending::waiting(definition));
        let Some(body) = status_body(definition, waiting.as_ref(), Some(json!(stored))) else {
            return Ok(definition.clone());
        };
        let ask = || self.requests.patch_definition(&definition.name, &body, true);
        match self.insist(Patience::Short, ask).await {
            Answer::Done(now) => Ok(now),
            Answer::Refused(status, _) if status.code == 409 => self.definition(&definition.name).await,
            other => Err(refused("write the status of", definition.name.clone(), other)),
        }
    }

    /// Writes a condition where there is one to write, by what the definition is then, whatever else is written to it
    /// meanwhile.
    async fn say(
        &self,
        patience: Patience,
        definition: &Definition,
        condition: impl Fn(&Definition) -> Option<Condition>,
    ) -> Result<(), Error> {
        if self.options.is_dry {
            return Ok(());
        }
        loop {
            let now = self.read(patience, &definition.name).await?;
            let Some(condition) = condition(&now).filter(|_| now.uid == definition.uid) else {
                return Ok(());
            };
            if self.write(patience, &now, &condition, None).await? {
                return Ok(());
            }
        }
    }

    /// Writes what the last pass leads to, into the state of the definition that this was decided by; false where it has
    /// another state by now.
    pub(super) async fn say_ended(
        &self,
        definition: &Definition,
        end: &End,
        (last, rewrites): (&Tally, bool),
    ) -> Result<bool, Error> {
        let Some(condition) = ending::of_end(definition, end, last, rewrites) else { return Ok(true) };
        let reduced = matches!(end, End::Reduce(_)).then(|| json!([definition.storage_version()]));
        self.write(Patience::Unbounded, definition, &condition, reduced).await
    }

    /// Writes a condition, and `storedVersions`, into this state of the definition; false where it has another by now.
    async fn write(
        &self,
        patience: Patience,
        definition: &Definition,
        condition: &Condition,
        stored: Option<Value>,
    ) -> Result<bool, Error> {
        let Some(body) = status_body(definition, Some(condition), stored) else { return Ok(true) };
        let ask = || self.requests.patch_definition(&definition.name, &body, true);
        match self.insist(patience, ask).await {
            Answer::Done(_) => Ok(true),
            Answer::Refused(status, _) if status.code == 409 => Ok(false),
            other => Err(refused("write the status of", definition.name.clone(), other)),
        }
    }
}

/// What writes a condition, and `storedVersions`, into this state of the definition; none where both are there.
fn status_body(
    definition: &Definition,
    condition: Option<&Condition>,
    stored: Option<Value>,
) -> Option<Value> {
    let mut status = json!({});
    // Kubernetes' own migrator writes the time of its end by a clock beside the API server's.
    let now = definition.read_at.unwrap_or_else(clock::now);
    if let Some(conditions) = condition.and_then(|condition| condition.among(&definition.conditions, now)) {
        status["conditions"] = json!(conditions);
    }
    if let Some(stored) = stored {
        status["storedVersions"] = stored;
    }
    let state = json!({"uid": definition.uid, "resourceVersion": definition.resource_version});
    (status != json!({})).then(|| json!({"metadata": state, "status": status}))
}
