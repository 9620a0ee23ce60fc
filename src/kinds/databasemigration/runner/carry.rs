//! Executes one text of a script, and writes its row of the history.
//!
//! Guarantees, of a text that runs in a transaction: it and its row are committed together or not at all. Of one that runs
//! statement by statement: the history has the statement before the server does, so that after a crash it is known which
//! one is in doubt. A statement that the server refused is known to have failed, and is tried again; one that was not
//! answered is in doubt, and so is one that was refused and may have committed some of what it did. Of all: each try begins
//! with the reset of the session, so that a reset that fails is a failure before a text and never one of the text that is
//! done.

mod limits;
pub(super) mod mysql;

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::super::assignment::{Engine, Script, ScriptKind};
use super::super::result::{Class, InDoubt};
use super::End;
use super::connection::Connection;
use super::decision::DOWN;
use super::failure::{Failure, lined};
use super::history::{Entry, Log, State};
use super::inspect::{invalid_indexes, left_by};
use super::lock::Patience;
use super::progress::{Progress, Step};
use super::scripts::{Loaded, Text, Way};
use crate::runtime::{clock, fail_point};
pub(super) use limits::{closing, left_as_found, limit_text};

/// What a script waits before it is tried again for the first time; twice as long each time.
const PAUSE: Duration = Duration::from_millis(500);
/// The longest of these pauses.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// What carries texts out.
pub(super) struct Carrier<'a> {
    pub(super) connection: &'a mut Connection,
    pub(super) log: &'a Log,
    pub(super) stop: &'a CancellationToken,
    pub(super) progress: &'a dyn Progress,
    /// For how long what met a lock is tried again.
    pub(super) lock_wait: Duration,
}

/// A text that is to be carried out.
#[derive(Clone, Copy)]
pub(super) struct Task<'a> {
    pub(super) loaded: &'a Loaded,
    pub(super) text: &'a Text,
    pub(super) is_down: bool,
    /// The statement to begin with, from 1 on.
    pub(super) from: u32,
    /// It runs statement by statement, whatever its text could do.
    pub(super) is_apart: bool,
    pub(super) position: i64,
}

impl<'a> Task<'a> {
    fn script(&self) -> &'a Script {
        &self.loaded.script
    }

    fn id(&self) -> &'a str {
        &self.loaded.script.id
    }

    /// What was begun statement by statement goes on so, also where what is left of it could run in a transaction.
    const fn way(&self) -> Way {
        if self.from > 1 || self.is_apart { Way::Statements } else { self.text.way }
    }

    /// Whether a statement of PostgreSQL that failed may have done some of what it does, which is not to be done twice.
    fn may_be_half_done(&self, statement: u32) -> bool {
        let statement = self.text.statement(statement);
        let runs_again = self.script().idempotent && !self.is_down;
        !runs_again && statement.is_some_and(|statement| statement.may_commit_within(&self.text.all))
    }

    /// How long a statement may wait for one lock. What is done concurrently consists of waits for others; such a statement
    /// of PostgreSQL is the only one of its script.
    fn lock_limit(&self) -> Option<Duration> {
        let limit = self.script().timeouts.lock();
        let is_concurrent = || self.text.statement(1).is_some_and(|one| one.has("CONCURRENTLY"));
        limit.filter(|_| self.way() != Way::Statements || !is_concurrent())
    }

    fn entry(&self, state: State) -> Entry<'a> {
        let kind = match self.script().kind {
            _ if self.is_down && state.is_begun() => DOWN,
            ScriptKind::Schema => "Schema",
            ScriptKind::Data => "Data",
            ScriptKind::Check => "Check",
        };
        // The history has the checksum of what was applied, also while it is taken back.
        let checksum = &self.loaded.up.checksum;
        let position = self.position;
        Entry {
            id: self.id(),
            position,
            kind,
            checksum,
            state,
            statement: 1,
            done: None,
            duration_ms: None,
            sql_state: None,
        }
    }

    /// What the history has where all went well.
    const fn done(&self) -> State {
        if self.is_down { State::Reverted } else { State::Applied }
    }

    /// What it has where the server refused: a script that could not be taken back is still applied.
    const fn failed(&self) -> State {
        if self.is_down { State::Applied } else { State::Failed }
    }
}

impl Carrier<'_> {
    /// Carries a text out.
    pub(super) async fn carry(&mut self, task: Task<'_>) -> Result<(), End> {
        let begun = clock::instant();
        let patience = Patience::of(self.lock_wait, self.stop);
        let (mut task, mut pause) = (task, PAUSE);
        let mut goes_on = false;
        self.fits(task).map_err(|failure| failure.of(task.id()))?;
        loop {
            if !goes_on {
                self.begin_session(task).await?;
            }
            if self.is_mysql() && !task.is_apart {
                let is_apart = self.has_to_be_apart(task).await;
                task.is_apart = is_apart.map_err(|failure| failure.of(task.id()))?;
            }
            let tried = match task.way() {
                Way::Transaction => self.in_transaction(task, begun).await,
                Way::Check => self.check(task, begun).await.map_err(End::from),
                Way::Statements if self.is_mysql() => self.one_by_one(&mut task, begun, goes_on).await,
                Way::Statements => self.by_statements(&mut task, begun).await,
            };
            let failure = match tried {
                Ok(()) => {
                    self.progress.tell(Step::Done { id: task.id(), took: begun.elapsed() });
                    return Ok(());
                }
                Err(End::Failed(failure)) => failure.of(task.id()),
                Err(end) => return Err(end),
            };
            let may_pass =
                matches!(failure.class, Class::LockTimeout | Class::Deadlock | Class::Serialization);
            // The statement that is tried again needs the session that it had.
            goes_on = may_pass && self.is_mysql() && task.way() == Way::Statements;
            if !goes_on {
                self.reset_where_possible().await;
            }
            if !may_pass || patience.pause(pause, failure.clone()).await.is_err() {
                self.note(task, &failure).await;
                return Err(failure.into());
            }
            self.progress.tell(Step::Again { id: task.id(), message: &failure.message });
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Takes back what was set in the session before this text. Where that fails, no text has.
    async fn begin_session(&mut self, task: Task<'_>) -> Result<(), End> {
        let reset = self.connection.reset().await;
        reset.map_err(|failure| {
            let message = format!("no session for script {}: {}", task.id(), failure.message);
            End::NoSession(Failure { message, ..failure })
        })
    }

    /// The same behind a text, where it can be done. Where it cannot, the history is written all the same, which looks at the
    /// row of the series first; the next try or script does not begin before the reset is done.
    async fn reset_where_possible(&mut self) {
        if let Err(failure) = self.connection.reset().await {
            tracing::warn!(failure = failure.message, "failed to reset the session of a script");
        }
    }

    /// Notes in the history that a transaction failed, where it can.
    async fn note(&mut self, task: Task<'_>, failure: &Failure) {
        if task.way() == Way::Statements || task.is_down || failure.is_unanswered {
            return;
        }
        let statement = failure.statement.unwrap_or(1);
        let entry = Entry { statement, sql_state: failure.sql_state.as_deref(), ..task.entry(State::Failed) };
        if let Err(failure) = self.log.write_alone(self.connection, &entry).await {
            tracing::debug!(failure = failure.message, "the history does not have the failure");
        }
    }

    async fn in_transaction(&mut self, task: Task<'_>, begun: tokio::time::Instant) -> Result<(), End> {
        self.limit_locks(task).await?;
        let lock = limit_text(task.script().timeouts.lock());
        self.log.begin(self.connection, Some(&lock)).await?;
        let done = self.within(task, begun).await;
        fail_point::reached("migrate.commit.before");
        let ended = self.log.end(self.connection, done).await;
        fail_point::reached("migrate.commit.after");
        match ended {
            Err(failure) if self.connection.keeps_rows => Err(self.partly_done(task, failure).await),
            ended => ended.map_err(End::from),
        }
    }

    async fn within(&mut self, task: Task<'_>, begun: tokio::time::Instant) -> Result<(), Failure> {
        self.log.fence(self.connection).await?;
        let transaction = self.transaction().await?;
        self.run_all(task).await?;
        if self.engine() == Engine::PostgreSQL {
            self.connection.control(&closing(task)).await?;
            left_as_found(transaction.as_deref(), self.transaction().await?.as_deref())?;
        }
        let entry = Entry { duration_ms: Some(milliseconds(begun)), ..task.entry(task.done()) };
        self.log.write(self.connection, &entry).await
    }

    /// Runs all statements of a text in the transaction that is open.
    pub(super) async fn run_all(&mut self, task: Task<'_>) -> Result<u64, Failure> {
        if self.engine() == Engine::PostgreSQL {
            let limit = limit_text(task.script().timeouts.statement());
            self.connection.control(&format!("SET LOCAL statement_timeout = '{limit}'")).await?;
        }
        self.connection.seal(true);
        let ran = self.run_each(task).await;
        self.connection.seal(false);
        ran.map_err(|failure| match failure.class {
            // The transaction of a check takes no writes, whatever its server does.
            Class::ReadOnly if task.text.way == Way::Check && self.engine() == Engine::PostgreSQL => {
                Failure { class: Class::Permission, ..failure }
            }
            _ => failure,
        })
    }

    async fn run_each(&mut self, task: Task<'_>) -> Result<u64, Failure> {
        let mut rows = 0;
        for number in 1..=count(task.text) {
            let ran = self.run_one(task, number).await;
            rows += ran.map_err(|failure| needing_none(task, number, failure.at(number)))?;
        }
        Ok(rows)
    }

    async fn check(&mut self, task: Task<'_>, begun: tokio::time::Instant) -> Result<(), Failure> {
        let (opening, closing) = match self.engine() {
            Engine::PostgreSQL => ("BEGIN READ ONLY", "ROLLBACK"),
            Engine::MySQL | Engine::MariaDB => ("START TRANSACTION READ ONLY", "ROLLBACK"),
            Engine::SQLite => ("PRAGMA query_only = 1; BEGIN", "ROLLBACK; PRAGMA query_only = 0"),
        };
        self.limit_locks(task).await?;
        self.connection.control(opening).await?;
        if self.engine() == Engine::PostgreSQL {
            let lock = limit_text(task.script().timeouts.lock());
            self.connection.control(&format!("SET LOCAL lock_timeout = '{lock}'")).await?;
        }
        let rows = self.run_all(task).await;
        let closed = self.connection.control(closing).await;
        // The failure of the check is reported, however the check ended.
        found_nothing(rows?)?;
        closed?;
        let entry = Entry { duration_ms: Some(milliseconds(begun)), ..task.entry(State::Applied) };
        self.log.write_alone(self.connection, &entry).await
    }

    async fn by_statements(&mut self, task: &mut Task<'_>, begun: tokio::time::Instant) -> Result<(), End> {
        let before = invalid_indexes(self.connection).await?;
        let last = count(task.text);
        for number in task.from..=last {
            // Another try begins here.
            task.from = number;
            let done = task.text.done_before(number);
            let entry = Entry { statement: number, done: done.as_deref(), ..task.entry(State::Running) };
            self.log.write_alone(self.connection, &entry).await?;
            self.limit_locks(*task).await?;
            self.limit_statement(*task).await?;
            fail_point::reached("migrate.statement.before");
            let ran = self.run_one(*task, number).await;
            fail_point::reached("migrate.statement.after");
            let Err(failure) = ran else { continue };
            let failure = failure.of(task.id()).at(number);
            if failure.is_unanswered || task.may_be_half_done(number) {
                return Err(in_doubt(*task, number, failure));
            }
            self.reset_where_possible().await;
            let after = invalid_indexes(self.connection).await.unwrap_or_default();
            let new = after.into_iter().filter(|index| !before.contains(index)).collect();
            let left = left_by(&task.text.all, &before, new);
            let failure = if left.is_empty() { failure } else { leaving(failure, &left) };
            self.refused(*task, number, done.as_deref(), &failure).await?;
            return Err(failure.into());
        }
        self.leave_session().await.map_err(|failure| in_doubt(*task, last, failure))?;
        let after = invalid_indexes(self.connection).await?;
        let left = left_by(&task.text.all, &before, after);
        if !task.is_down && !left.is_empty() {
            let failure = Failure::new(Class::InvalidIndex, "the statement was answered as done").at(last);
            let failure = leaving(failure, &left);
            self.refused(*task, last, task.text.done_before(last).as_deref(), &failure).await?;
            return Err(failure.into());
        }
        let entry =
            Entry { statement: last, duration_ms: Some(milliseconds(begun)), ..task.entry(task.done()) };
        let written = self.log.write_alone(self.connection, &entry).await;
        written.map_err(|failure| in_doubt(*task, last, failure))
    }

    /// Ends what statements left in their session, so that what the history says next is the truth.
    async fn leave_session(&mut self) -> Result<(), Failure> {
        if self.engine().rolls_back_schema() {
            return self.connection.reset().await;
        }
        // Without autocommit, the last ones are not committed yet.
        self.connection.control("COMMIT").await?;
        self.reset_where_possible().await;
        Ok(())
    }

    /// The history has that the server refused a statement.
    async fn refused(
        &mut self,
        task: Task<'_>,
        statement: u32,
        done: Option<&str>,
        failure: &Failure,
    ) -> Result<(), End> {
        let sql_state = failure.sql_state.as_deref();
        let entry = task.entry(task.failed());
        // By its kind, the rest of a down script is known as what there is to do.
        let kind = if task.is_down && done.is_some() { DOWN } else { entry.kind };
        let entry = Entry { kind, statement, done, sql_state, ..entry };
        let written = self.log.write_alone(self.connection, &entry).await;
        written.map_err(|failure| in_doubt(task, statement, failure))
    }

    async fn run_one(&mut self, task: Task<'_>, number: u32) -> Result<u64, Failure> {
        let Some(statement) = task.text.statement(number) else { return Ok(0) };
        let text = &task.text.all[statement.start..statement.end];
        let watch = self.watch(task);
        match self.engine() {
            Engine::MySQL | Engine::MariaDB => {
                let ran = self.connection.run(text, watch).await;
                let failure = ran.failure.or_else(|| mysql::several_answers(statement, ran.statements));
                failure.map_or(Ok(ran.rows), |failure| Err(mysql::placed(failure, statement)))
            }
            Engine::PostgreSQL | Engine::SQLite => {
                let placed = |failure| lined(failure, text, statement.line);
                if may_hide_an_end(text) {
                    let is_one = self.connection.reads_one(text).await;
                    is_one.map_err(placed)?;
                }
                let ran = self.connection.run(text, watch).await;
                ran.failure.map_or(Ok(ran.rows), |failure| Err(placed(failure)))
            }
        }
    }

    fn engine(&self) -> Engine {
        self.connection.engine()
    }

    fn is_mysql(&self) -> bool {
        matches!(self.engine(), Engine::MySQL | Engine::MariaDB)
    }
}

/// The outcome of a statement is unknown: it is in doubt, unless the script may run again.
fn in_doubt(task: Task<'_>, statement: u32, failure: Failure) -> End {
    let failure = failure.of(task.id()).at(statement);
    if task.script().idempotent && !task.is_down {
        return End::Failed(Failure { class: Class::Connection, ..failure });
    }
    End::InDoubt(InDoubt { id: task.id().to_owned(), statement, run: None }, Some(Box::new(failure)))
}

/// A check that returned rows failed.
pub(super) fn found_nothing(rows: u64) -> Result<(), Failure> {
    if rows == 0 {
        return Ok(());
    }
    Err(Failure::new(Class::CheckFailed, format!("the check returned {rows} rows and must return none")))
}

/// Whether a statement may have another one in it, in case the server reads it otherwise, and that one may end the
/// transaction.
fn may_hide_an_end(text: &str) -> bool {
    let text = text.to_ascii_uppercase();
    text.contains(';')
        && ["COMMIT", "END", "ROLLBACK", "ABORT", "PREPARE"].iter().any(|word| text.contains(word))
}

/// The failure of a statement that the server refuses in a transaction, with what to do.
fn needing_none(task: Task<'_>, number: u32, failure: Failure) -> Failure {
    let sets = task.text.statement(number).is_some_and(|statement| statement.begins(&["SET"]));
    match failure.sql_state.as_deref() {
        Some("2D000") => {}
        Some("25001") if !sets => {}
        _ => return failure,
    }
    let message = format!(
        "{}: put the statement into a script of its own with transaction: None (--without-transaction ID)",
        failure.message
    );
    Failure { message, ..failure }
}

fn leaving(failure: Failure, left: &[String]) -> Failure {
    let message = format!(
        "{}; left is an index that is not valid: {}: drop it (DROP INDEX CONCURRENTLY) before the script runs again",
        failure.message,
        left.join(", ")
    );
    Failure { class: Class::InvalidIndex, message, ..failure }
}

fn count(text: &Text) -> u32 {
    u32::try_from(text.statements.len()).unwrap_or(u32::MAX)
}

fn milliseconds(begun: tokio::time::Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}
