//! What comes before a migration writes objects.
//!
//! Guarantees: before anything is waited for or given up, the status of the definition says that objects may be stored in
//! another version where they may be, and names every such version.

use std::time::Duration;

use super::super::observation::Definition;
use super::super::plan::checkpoint::Checkpoint;
use super::super::plan::{self, Begin, Goal, Held};
use super::{Error, Event, Migration};

/// What a migration begins with.
pub(super) struct Beginning {
    /// The definition as it is then.
    pub(super) definition: Definition,
    /// Where it begins.
    pub(super) place: Checkpoint,
    /// Whether objects are written.
    pub(super) rewrites: bool,
}

impl Migration<'_> {
    /// Waits until it can begin; none where it is to end before. What the definition named at first is believed as long as
    /// its spec is the same.
    pub(super) async fn begin(&self, name: &str) -> Result<Option<Beginning>, Error> {
        let mut known: Option<Definition> = None;
        let mut definition = self.definition(name).await?;
        let mut goal =
            Goal { ignores_place: plan::ignores_place(&definition, &self.goal), ..self.goal.clone() };
        if self.options.is_dry {
            (goal.is_dry, goal.grace) = (true, Duration::ZERO);
        }
        loop {
            if !definition.may_name_too_few() {
                known = Some(definition.clone());
            }
            let named = known.as_ref().filter(|known| known.is_in_state_of(&definition));
            goal.named = named.map(|known| known.stored.clone());
            let begin = plan::begin(&definition, &goal);
            if goal.ignores_place
                && definition.checkpoint.is_some()
                && (begin.is_ok() || definition.says_migrated())
            {
                // First of all: a run after an early end of this one would go on from there.
                self.forget(&definition).await;
                definition.checkpoint = None;
            }
            if let Some(now) = self.disclosed(&definition, &goal, &begin).await? {
                definition = now;
                continue;
            }
            match begin? {
                Begin::Rewrite(place) => {
                    return Ok(Some(Beginning { definition, place, rewrites: true }));
                }
                Begin::Clean(place) => {
                    return Ok(Some(Beginning { definition, place, rewrites: false }));
                }
                Begin::Wait(time) => {
                    self.watch.see(Event::Waits(time));
                    if !self.waited(time).await {
                        return Ok(None);
                    }
                    let now = self.definition(name).await?;
                    // It was waited for, whatever the clock of the API server shows.
                    if now.is_in_state_of(&definition) {
                        goal.grace = Duration::ZERO;
                    }
                    definition = now;
                }
            }
        }
    }

    /// Writes to the status of a definition what it has to say before objects are written, and before that is waited for
    /// or given up; the definition as it is then, and none where there is nothing to write.
    async fn disclosed(
        &self,
        definition: &Definition,
        goal: &Goal,
        begin: &Result<Begin, Held>,
    ) -> Result<Option<Definition>, Error> {
        if self.options.is_dry || definition.is_deleted {
            return Ok(None);
        }
        // Where nothing comes of what is forced, what the status says is as good as before.
        let goal = Goal { is_forced: goal.is_forced && begin.is_ok(), ..goal.clone() };
        if let Some(all) = plan::restored(definition, &goal) {
            return self.restore(definition, &all).await.map(Some);
        }
        let is_put_off = matches!(begin, Ok(Begin::Wait(_)) | Err(_));
        if !is_put_off || !plan::is_untrue(definition) {
            return Ok(None);
        }
        self.say_waiting(definition).await?;
        self.definition(&definition.name).await.map(Some)
    }
}
