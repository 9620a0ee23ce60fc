//! Rolls applied scripts back by their down scripts, the latest first.
//!
//! Guarantees: a script is taken back only where all that are to be taken back have a down script; of other
//! DatabaseMigrations and of the baseline nothing is. Of a down script that was cut off, what has run does not run again.
//! Nothing is taken back beneath a script of which some statements have run and others have not: its down script takes all of
//! it back, and it may rest on those before it.

use super::super::assignment::{OnFailure, ScriptKind};
use super::super::result::{Class, Outcome};
use super::carry::Task;
use super::decision::{
    DOWN, Surroundings, answer, begin_down, finds_its_session, is_half_applied, left_in_doubt, without_down,
};
use super::history::{Row, State};
use super::lock::Patience;
use super::scripts::{Loaded, Text, not_runnable};
use super::{Course, End, Entry, Failure, Step, Work, entry, inspect};

impl Course<'_> {
    /// Takes back what this object applied.
    pub(super) async fn revert(&mut self, patience: Patience<'_>) -> Result<Outcome, End> {
        self.settle_shown(patience).await?;
        self.take(patience).await?;
        // Edited and missing scripts keep nothing from being taken back, and a script in doubt does.
        let rows = self.settled_rows().await?;
        let uid = self.request.assignment.object.as_ref().map(|object| &object.uid);
        let own = || rows.iter().rev().filter(|row| row.object.as_ref() == uid);
        if let Some(row) = own().find(|row| is_half_applied(row)) {
            return Err(half_applied(row).into());
        }
        let own = own().filter(|row| row.state == State::Applied);
        let mut tasks = Vec::new();
        for row in own {
            let loaded = self.scripts.iter().find(|loaded| loaded.script.id == row.id);
            match loaded.filter(|loaded| loaded.down.is_some() || loaded.script.kind == ScriptKind::Check) {
                Some(Loaded { down: Some(Text { refusal: Some(why), .. }), .. }) => {
                    return Err(End::Blocked(Box::new(not_runnable(&row.id, why.clone()))));
                }
                Some(loaded) => tasks.push((loaded, row)),
                None => return Err(End::Blocked(Box::new(without_down(&row.id)))),
            }
        }
        let of = tasks.len();
        for (number, (loaded, row)) in tasks.into_iter().enumerate() {
            self.progress.tell(Step::Begun { id: &row.id, number: number + 1, of });
            self.take_back(loaded, row).await?;
        }
        Ok(Outcome::Reverted)
    }

    /// The history, after a user's decision about a script in doubt.
    async fn settled_rows(&mut self) -> Result<Vec<Row>, End> {
        let rows = self.log.read(&mut self.connection).await?;
        self.tell(&rows);
        let around = inspect::surroundings(&mut self.connection, &self.log, self.scripts, &rows).await?;
        if let Some(row) = rows.iter().find(|row| row.state.is_begun()) {
            if row.session.as_ref().is_some_and(|session| around.alive.contains(session)) {
                let message = "the session of another run is still at work";
                return Err(Failure::new(Class::Busy, message).of(&row.id).into());
            }
            let (work, rows) = self.planned().await?;
            self.settle(&work, &rows).await?;
            self.settle_failed(&work, &rows, &around).await?;
            return Ok(self.log.read(&mut self.connection).await?);
        }
        Ok(rows)
    }

    /// The history has as failed, at the statement that is next, what would go on were it to be applied. An `idempotent`
    /// script could run again; here, a person has to say how it ended.
    async fn settle_failed(&mut self, work: &Work, rows: &[Row], around: &Surroundings) -> Result<(), End> {
        let running = rows.iter().find(|row| row.state.is_begun() && row.kind != DOWN);
        let next = |row: &Row| work.pending.iter().find(|one| self.scripts[one.index].script.id == row.id);
        let Some((row, next)) = running.and_then(|row| Some((row, next(row)?))) else { return Ok(()) };
        if around.sides.contains_key(&row.id) {
            return Err(half_applied(row).into());
        }
        if answer(&self.request.assignment, row).is_none() {
            return Err(End::InDoubt(left_in_doubt(row), None));
        }
        let done = self.scripts[next.index].up.done_before(next.from);
        let failed = entry(row, &row.kind, State::Failed, &row.checksum);
        let failed = Entry { statement: next.from, done: done.as_deref(), ..failed };
        Ok(self.write(&failed).await?)
    }

    /// Takes back what this run applied, where that is what follows a failure.
    pub(super) async fn revert_this_run(&mut self, done: &[usize], end: &End) {
        let is_wanted = self.request.assignment.on_failure == OnFailure::RevertThisRun;
        // What is in doubt stays as it is, with all that it rests on; and where a script had no session, none has failed.
        if !is_wanted || !matches!(end, End::Failed(failure) if !failure.class.is_retryable()) {
            return;
        }
        let Ok(rows) = self.log.read(&mut self.connection).await else { return };
        if let Some(row) = rows.iter().find(|row| is_half_applied(row)) {
            tracing::warn!(
                script = row.id,
                "nothing is taken back: some of the script has run, and some has not"
            );
            return;
        }
        for index in done.iter().rev() {
            let loaded = &self.scripts[*index];
            let Some(row) = rows.iter().find(|row| row.id == loaded.script.id) else { return };
            if self.take_back(loaded, row).await.is_err() {
                return;
            }
            self.result.applied_now = self.result.applied_now.saturating_sub(1);
        }
    }

    async fn take_back(&mut self, loaded: &Loaded, row: &Row) -> Result<(), End> {
        let id = &row.id;
        match &loaded.down {
            Some(down) => self.run_down(loaded, down, row).await?,
            None if loaded.script.kind == ScriptKind::Check => {
                self.write(&entry(row, &row.kind, State::Reverted, &row.checksum)).await?;
            }
            None => return Err(End::Blocked(Box::new(without_down(id)))),
        }
        self.result.reverted.push(id.clone());
        Ok(())
    }

    async fn run_down(&mut self, loaded: &Loaded, down: &Text, row: &Row) -> Result<(), End> {
        let from = begin_down(down, row).map_err(End::Blocked)?;
        finds_its_session(&self.request.assignment, &row.id, down, from).map_err(End::Blocked)?;
        let task = Task { loaded, text: down, is_down: true, from, is_apart: false, position: row.position };
        let taken = self.carrier().carry(task).await;
        if let Err(End::Failed(failure) | End::NoSession(failure)) = &taken {
            tracing::warn!(script = row.id, failure = failure.message, "failed to take a script back");
        }
        taken
    }

    /// Runs the rest of the down script of a script that is to run again.
    pub(super) async fn take_back_the_rest(&mut self, loaded: &Loaded) -> Result<(), End> {
        let rows = self.log.read(&mut self.connection).await?;
        let row = rows.iter().find(|row| row.id == loaded.script.id);
        match row.zip(loaded.down.as_ref()) {
            Some((row, down)) => self.run_down(loaded, down, row).await,
            None => Ok(()),
        }
    }
}

/// Why nothing is taken back beneath a script that is half applied, at the statement that is next.
fn half_applied(row: &Row) -> Failure {
    let message = "what stands before it has run, and the rest of the script has not, so that its down script does not take it \
         back: apply the rest first (mode Apply), or undo in the database what has run and delete the row of the script from \
         the history";
    Failure::new(Class::Configuration, message).of(&row.id).at(row.statement)
}
