//! What the Jobs of a DatabaseMigration run: scripts, once and in order.
//!
//! Guarantees: a script that runs in a transaction is applied exactly once, whatever dies and whatever else runs. One
//! that cannot run in one is begun once; where nothing says how it ended, nothing runs until a person or its author's
//! `idempotent` resolves that. The history in the database is the truth, and is read again once the lock is there.
//! Assumes: connections are sessions of the server, not transactions of a pool.
//! Never: asks Kubernetes for anything, or reveals credentials, the text of a script or the contents of rows.

mod access;
mod carry;
mod connection;
mod decision;
mod effects;
mod failure;
mod history;
mod inspect;
mod lock;
mod mysql;
mod progress;
mod rehearse;
mod revert;
mod scripts;
mod wait;

use std::time::Duration;

use tokio_util::sync::CancellationToken;

pub use access::{Access, Certificates};
#[cfg(test)]
pub use decision::{edited, unknown};
pub use failure::Failure;
pub use history::{Row, State};
pub use progress::{Phase, Progress, Step};
pub use scripts::Folders;
pub use wait::{Awaited, wait};

use super::assignment::{Assignment, Mode};
use super::result::{Blocked, BlockedReason, Class, InDoubt, Outcome, RunResult, Server};
use super::sql::mysql::modes::Modes;
use crate::runtime::fail_point;
use carry::{Carrier, Task};
use connection::Connection;
use decision::{Decision, Settled, Work, decide, plan};
use effects::Side;
use history::{Entry, Log};
use lock::{Lock, Patience};
use scripts::Loaded;

/// How many of the applied scripts are reported.
const TOLD: usize = 50;

/// What a run is asked to do, and with what.
#[derive(Clone, Debug)]
pub struct Request {
    /// What to do.
    pub assignment: Assignment,
    /// Where the scripts are.
    pub folders: Folders,
    /// How the database is reached.
    pub access: Access,
}

/// Why a run ended before it was done.
enum End {
    Failed(Failure),
    /// The next script had no session of its own to run in. None has failed.
    NoSession(Failure),
    Blocked(Box<Blocked>),
    InDoubt(InDoubt, Option<Box<Failure>>),
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Does what is asked. The outcome is in the report, whatever happened.
pub async fn run(request: &Request, stop: &CancellationToken, progress: &dyn Progress) -> RunResult {
    let mut result = RunResult::of(&request.assignment.run.uid, Outcome::Failed);
    match carried_out(request, stop, progress, &mut result).await {
        Ok(outcome) => result.outcome = outcome,
        Err(End::Blocked(blocked)) => {
            result.outcome = Outcome::Blocked;
            result.blocked = Some(*blocked);
        }
        Err(End::Failed(failure) | End::NoSession(failure)) => told(&mut result, &failure),
        Err(End::InDoubt(in_doubt, failure)) => {
            if let Some(failure) = failure {
                told(&mut result, &failure);
            }
            result.outcome = Outcome::InDoubt;
            result.current_id = Some(in_doubt.id.clone());
            result.statement = Some(in_doubt.statement);
            // A doubt that no earlier run has left is of this run.
            let run = in_doubt.run.or_else(|| Some(result.run.clone()));
            result.in_doubt = Some(InDoubt { run, ..in_doubt });
        }
    }
    fail_point::reached("migrate.report.before");
    result
}

fn told(result: &mut RunResult, failure: &Failure) {
    result.outcome = Outcome::Failed;
    result.current_id.clone_from(&failure.id);
    result.statement = failure.statement;
    result.last_error = Some(failure.report());
}

async fn carried_out(
    request: &Request,
    stop: &CancellationToken,
    progress: &dyn Progress,
    result: &mut RunResult,
) -> Result<Outcome, End> {
    let Request { assignment, folders, access } = request;
    let history = &assignment.history;
    let scripts = scripts_in(assignment, folders, Modes::default())?;
    let hash = scripts::hash(assignment, &scripts);
    // What only reads needs no approval.
    let only_reads = matches!(assignment.mode, Mode::Status | Mode::Plan);
    if !only_reads {
        approved(assignment, &hash)?;
    }
    let leaves_nothing = only_reads || assignment.mode == Mode::Rehearse && access.is_missing();
    let reading = leaves_nothing.then(|| access.reading());
    let mut connection = Connection::to(reading.as_ref().unwrap_or(access)).await?;
    result.server = Some(Server { version: connection.version.clone() });
    // Where the server's sessions read quotes otherwise, statements end otherwise.
    let is_usual = connection.modes == Modes::default();
    let scripts = if is_usual { scripts } else { scripts_in(assignment, folders, connection.modes)? };
    let object = assignment.object.as_ref().map(|object| object.uid.as_str());
    let log = Log::of(&mut connection, history, &assignment.run.uid, object).await?;
    let mut course = Course { request, scripts: &scripts, hash, connection, log, stop, progress, result };
    match assignment.mode {
        Mode::Status => course.read().await,
        Mode::Plan => course.planned().await.map(|_| Outcome::Planned),
        Mode::Rehearse | Mode::Apply | Mode::Revert => {
            let limit = assignment.lock_wait();
            let patience = Patience::of(limit, stop);
            let name = course.log.lock_name();
            let connection = &mut course.connection;
            // A file that is not there is not made, and neither is the file of its lock.
            let _lock = if leaves_nothing {
                None
            } else {
                Some(Lock::take(connection, &name, patience, limit, progress).await?)
            };
            let done = match assignment.mode {
                Mode::Rehearse => course.rehearse(patience).await,
                Mode::Revert => course.revert(patience).await,
                _ => course.apply(patience).await,
            };
            course.read_again().await;
            done
        }
    }
}

fn scripts_in(assignment: &Assignment, folders: &Folders, modes: Modes) -> Result<Vec<Loaded>, End> {
    if assignment.mode == Mode::Status {
        return Ok(Vec::new());
    }
    scripts::load(assignment, folders, modes).map_err(|error| match error {
        scripts::Error::Blocked(blocked) => End::Blocked(blocked),
        error @ scripts::Error::Unreadable { .. } => {
            End::Failed(Failure::new(Class::Configuration, error.to_string()))
        }
    })
}

fn approved(assignment: &Assignment, hash: &str) -> Result<(), End> {
    match &assignment.approved_plan_hash {
        Some(approved) if approved != hash => Err(End::Blocked(Box::new(Blocked {
            reason: BlockedReason::PlanChanged,
            id: None,
            expected: Some(approved.clone()),
            found: Some(hash.to_owned()),
            message: format!("the plan {hash} is not the one that was approved, {approved}"),
        }))),
        _ => Ok(()),
    }
}

/// A run under way.
struct Course<'a> {
    request: &'a Request,
    scripts: &'a [Loaded],
    hash: String,
    connection: Connection,
    log: Log,
    stop: &'a CancellationToken,
    progress: &'a dyn Progress,
    result: &'a mut RunResult,
}

impl Course<'_> {
    async fn read(&mut self) -> Result<Outcome, End> {
        let rows = self.log.read(&mut self.connection).await?;
        self.tell(&rows);
        let around = inspect::surroundings(&mut self.connection, &self.log, self.scripts, &rows).await?;
        let running = rows.iter().find(|row| row.state == State::Running);
        match running {
            Some(row) if row.session.as_ref().is_none_or(|session| !around.alive.contains(session)) => {
                Err(End::InDoubt(decision::left_in_doubt(row), None))
            }
            _ => Ok(Outcome::Read),
        }
    }

    /// Reports what is applied after the last script, also after one that failed: its failure is what ends the run.
    async fn read_again(&mut self) {
        // What a script set may hide rows. Where no other session is to be had, this one is asked all the same.
        if let Err(failure) = self.connection.reset().await {
            tracing::debug!(
                failure = failure.message,
                "the history is read in the session of the last script"
            );
        }
        if let Ok(rows) = self.log.read(&mut self.connection).await {
            self.tell(&rows);
        }
    }

    /// What there is to do, once no other session is at work.
    async fn planned(&mut self) -> Result<(Work, Vec<Row>), End> {
        let rows = self.log.read(&mut self.connection).await?;
        self.tell(&rows);
        let assignment = &self.request.assignment;
        let around = inspect::surroundings(&mut self.connection, &self.log, self.scripts, &rows).await?;
        match decide(assignment, self.scripts, &rows, &around) {
            Decision::Work(work) => {
                self.result.plan = Some(plan(self.hash.clone(), self.scripts, &work));
                Ok((work, rows))
            }
            Decision::Blocked(blocked) => Err(End::Blocked(blocked)),
            Decision::InDoubt(in_doubt) => {
                let failure = self.doubt(&in_doubt, &rows);
                Err(End::InDoubt(in_doubt, failure.map(Box::new)))
            }
            Decision::Busy(id) => {
                let message = "the session of another run is still at work";
                Err(Failure::new(Class::Busy, message).of(&id).into())
            }
        }
    }

    /// What a person has to look at, by its line.
    fn doubt(&self, in_doubt: &InDoubt, rows: &[Row]) -> Option<Failure> {
        let loaded = self.scripts.iter().find(|loaded| loaded.script.id == in_doubt.id)?;
        let is_down = rows.iter().any(|row| row.id == in_doubt.id && row.kind == decision::DOWN);
        let text = if is_down { loaded.down.as_ref()? } else { &loaded.up };
        let statement = text.statement(in_doubt.statement)?;
        let message = format!(
            "it is not known how the statement in line {}{} ended: look whether it took effect, and resolve the script with \
             applied or retry",
            statement.line,
            carry::mysql::kind(statement)
        );
        Some(Failure::new(Class::Connection, message).of(&in_doubt.id).at(in_doubt.statement))
    }

    /// The same, after a session that is still at work without the lock has come to its end.
    async fn planned_after_others(&mut self, patience: Patience<'_>) -> Result<(Work, Vec<Row>), End> {
        loop {
            match self.planned().await {
                Err(End::Failed(failure)) if failure.class == Class::Busy => {
                    patience.pause(Duration::from_secs(1), failure).await?;
                }
                planned => return planned,
            }
        }
    }

    async fn apply(&mut self, patience: Patience<'_>) -> Result<Outcome, End> {
        self.settle_shown(patience).await?;
        // What blocks is reported before any script runs.
        self.planned_after_others(patience).await?;
        self.take(patience).await?;
        let (work, rows) = self.planned().await?;
        self.settle(&work, &rows).await?;
        let first = next_position(&rows) + i64::try_from(work.baseline.len()).unwrap_or_default();
        let mut done = Vec::new();
        let of = work.pending.len();
        for ((pending, number), position) in work.pending.iter().zip(1..).zip(first..) {
            let loaded = &self.scripts[pending.index];
            self.progress.tell(Step::Begun { id: &loaded.script.id, number, of });
            let task = Task {
                loaded,
                text: &loaded.up,
                is_down: false,
                from: pending.from,
                is_apart: false,
                position,
            };
            let mut carried = Ok(());
            if pending.is_half_taken_back {
                carried = self.take_back_the_rest(loaded).await;
            }
            if carried.is_ok() {
                carried = self.carrier().carry(task).await;
            }
            if let Err(end) = carried {
                self.revert_this_run(&done, &end).await;
                return Err(end);
            }
            self.result.applied_now += 1;
            done.push(pending.index);
        }
        Ok(Outcome::Succeeded)
    }

    /// Has the history say what the database shows of a statement at which a run died, or that the script is in doubt. A
    /// statement that may run again stays as it is if nothing of its script has run for certain.
    async fn settle_shown(&mut self, patience: Patience<'_>) -> Result<(), End> {
        let is_shown = |row: &&Row| row.state == State::Resumable;
        let rows = self.log.read(&mut self.connection).await?;
        if rows.iter().find(is_shown).is_none() {
            return Ok(());
        }
        self.take(patience).await?;
        let rows = self.log.read(&mut self.connection).await?;
        let around = inspect::surroundings(&mut self.connection, &self.log, self.scripts, &rows).await?;
        for row in rows.iter().filter(is_shown) {
            let next = match around.sides.get(&row.id) {
                Some(Side::Either) if row.statement == 1 => continue,
                Some(Side::Before | Side::Either) => row.statement,
                Some(Side::After) => row.statement.saturating_add(1),
                None => {
                    self.log.doubt(&mut self.connection, &row.id).await?;
                    continue;
                }
            };
            let loaded = self.scripts.iter().find(|loaded| loaded.script.id == row.id);
            let done = loaded.and_then(|loaded| loaded.up.done_before(next));
            let failed = entry(row, &row.kind, State::Failed, &row.checksum);
            self.write(&Entry { statement: next, done: done.as_deref(), ..failed }).await?;
        }
        Ok(())
    }

    /// Takes the row of the series. A transaction of a client that is gone may still hold it.
    async fn take(&mut self, patience: Patience<'_>) -> Result<(), End> {
        loop {
            match self.log.take(&mut self.connection).await {
                Err(failure) if failure.class == Class::LockTimeout => {
                    patience.pause(Duration::from_secs(1), failure).await?;
                }
                taken => return taken.map_err(End::from),
            }
        }
    }

    /// Writes what is decided and needs no script to run.
    async fn settle(&mut self, work: &Work, rows: &[Row]) -> Result<(), End> {
        let loaded = |id: &str| self.scripts.iter().find(|loaded| loaded.script.id == id);
        let row = |id: &str| rows.iter().find(|row| row.id == id);
        if let Some(Settled { id, state, statement, done }) = &work.settled {
            if let (Some(loaded), State::Applied, None) = (loaded(id), state, done) {
                let invalid = inspect::invalid_indexes(&mut self.connection).await?;
                let left = inspect::left_by(&loaded.up.all, &invalid, invalid.clone());
                if !left.is_empty() {
                    let message = format!(
                        "the script counts as applied, and yet the index {} is not valid: drop it (DROP INDEX \
                         CONCURRENTLY) and resolve the script with retry",
                        left.join(", ")
                    );
                    return Err(Failure::new(Class::InvalidIndex, message).of(id).into());
                }
            }
            if let Some(row) = row(id) {
                let kind = match (&*row.kind, done) {
                    (decision::DOWN, None) => "Schema",
                    (kind, _) => kind,
                };
                let done = done.as_deref();
                let entry = Entry { statement: *statement, done, ..entry(row, kind, *state, &row.checksum) };
                self.write(&entry).await?;
            }
        }
        for (id, checksum) in &work.repairs {
            self.log.accept(&mut self.connection, id, checksum).await?;
        }
        let counted = work.baseline.iter().filter_map(|id| loaded(id));
        let baseline: Vec<_> = counted
            .zip(next_position(rows)..)
            .map(|(loaded, position)| Entry {
                id: &loaded.script.id,
                position,
                kind: "Schema",
                checksum: &loaded.up.checksum,
                state: State::Baseline,
                statement: 1,
                done: None,
                duration_ms: None,
                sql_state: None,
            })
            .collect();
        // With some of its rows alone, the history would have the rest run.
        if !baseline.is_empty() {
            self.log.write_together(&mut self.connection, &baseline).await?;
        }
        Ok(())
    }

    async fn write(&mut self, entry: &Entry<'_>) -> Result<(), Failure> {
        self.log.write_alone(&mut self.connection, entry).await
    }

    fn carrier(&mut self) -> Carrier<'_> {
        Carrier {
            connection: &mut self.connection,
            log: &self.log,
            stop: self.stop,
            progress: self.progress,
            lock_wait: self.request.assignment.lock_wait(),
        }
    }

    /// Reports what is applied.
    fn tell(&mut self, rows: &[Row]) {
        let applied: Vec<_> = rows.iter().filter(|row| row.state.is_applied()).collect();
        self.result.applied_count = Some(u32::try_from(applied.len()).unwrap_or(u32::MAX));
        let newest = applied.iter().skip(applied.len().saturating_sub(TOLD));
        self.result.applied = newest.map(|row| row.report()).collect();
    }
}

/// A row again, with another state or checksum.
fn entry<'a>(row: &'a Row, kind: &'a str, state: State, checksum: &'a str) -> Entry<'a> {
    Entry {
        id: &row.id,
        position: row.position,
        kind,
        checksum,
        state,
        statement: row.statement,
        done: row.done.as_deref(),
        duration_ms: row.duration_ms,
        sql_state: None,
    }
}

fn next_position(rows: &[Row]) -> i64 {
    rows.iter().map(|row| row.position).max().unwrap_or(0) + 1
}
