//! What a migration writes to its definition: its place, a condition, and at last `storedVersions`.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::observation::Definition;
use super::super::plan::checkpoint::{ANNOTATION, Checkpoint};
use super::super::plan::condition::{self, Condition};
use super::super::plan::object::{Answer, reason};
use super::super::plan::{self, End};
use super::{Error, Event, Migration, refused};
use crate::runtime::clock;

/// How often the place is written.
pub(super) const INTERVAL: Duration = Duration::from_secs(2);

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
            Answer::Nothing(why) => self.watch.see(Event::Forgets(&why)),
        }
    }

    pub(super) async fn say_begun(&self, definition: &Definition) -> Result<(), Error> {
        let message = format!("objects are being written as {}", definition.storage_version());
        self.say(definition, &Condition { is_true: false, reason: "Migrating", message }).await
    }

    pub(super) async fn say_interrupted(
        &self,
        definition: &Definition,
        place: &Checkpoint,
    ) -> Result<(), Error> {
        let objects = place.tally.objects();
        let message =
            format!("interrupted in pass {} after {objects} objects: run again to go on", place.pass);
        self.say(definition, &Condition { is_true: false, reason: "Interrupted", message }).await
    }

    pub(super) async fn say_settled(&self, name: &str) -> Result<(), Error> {
        loop {
            let definition = self.definition(name).await?;
            if definition.condition(condition::TYPE).is_some()
                || !plan::is_settled(&definition)
                || self.say_ended(&definition, &End::Said, true).await?
            {
                return Ok(());
            }
        }
    }

    /// Has `storedVersions` name these versions, in this state of the definition alone; the definition as it is then.
    pub(super) async fn restore(
        &self,
        definition: &Definition,
        stored: &[String],
    ) -> Result<Definition, Error> {
        let state = json!({"uid": definition.uid, "resourceVersion": definition.resource_version});
        let body = json!({"metadata": state, "status": {"storedVersions": stored}});
        match self.insist(|| self.requests.patch_definition(&definition.name, &body, true)).await {
            Answer::Done(now) => Ok(now),
            Answer::Refused(status, _) if status.code == 409 => self.definition(&definition.name).await,
            other => Err(refused("write the status of", definition.name.clone(), other)),
        }
    }

    /// Writes a condition, whatever else is written to the definition meanwhile.
    async fn say(&self, definition: &Definition, condition: &Condition) -> Result<(), Error> {
        if self.options.is_dry {
            return Ok(());
        }
        loop {
            let now = self.definition(&definition.name).await?;
            if now.uid != definition.uid || self.write(&now, condition, None).await? {
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
        rewrites: bool,
    ) -> Result<bool, Error> {
        let to = definition.storage_version();
        let migrated = Condition {
            is_true: true,
            reason: "Migrated",
            message: format!("all objects are stored as {to}"),
        };
        match end {
            End::Keep(why) => {
                let message = format!("storedVersions stays as it is: {why}");
                self.write(definition, &Condition { is_true: false, reason: "Kept", message }, None).await
            }
            End::Reduce(_) => self.write(definition, &migrated, Some(json!([to]))).await,
            End::Said => {
                if rewrites || definition.condition(condition::TYPE).is_some() {
                    self.write(definition, &migrated, None).await
                } else {
                    Ok(true)
                }
            }
        }
    }

    /// Writes a condition, and `storedVersions`, into this state of the definition; false where it has another by now.
    async fn write(
        &self,
        definition: &Definition,
        condition: &Condition,
        stored: Option<Value>,
    ) -> Result<bool, Error> {
        let conditions = condition.among(&definition.conditions, clock::now());
        let mut status = json!({});
        if let Some(conditions) = conditions {
            status["conditions"] = json!(conditions);
        }
        if let Some(stored) = stored {
            status["storedVersions"] = stored;
        }
        if status == json!({}) {
            return Ok(true);
        }
        let state = json!({"uid": definition.uid, "resourceVersion": definition.resource_version});
        let body = json!({"metadata": state, "status": status});
        match self.insist(|| self.requests.patch_definition(&definition.name, &body, true)).await {
            Answer::Done(_) => Ok(true),
            Answer::Refused(status, _) if status.code == 409 => Ok(false),
            other => Err(refused("write the status of", definition.name.clone(), other)),
        }
    }
}
