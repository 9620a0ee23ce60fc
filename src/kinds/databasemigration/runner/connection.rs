//! One session with a database, whatever its engine is.
//!
//! Guarantees: an error that leaves here is a [`Failure`], which gives nothing away. Every wait for the server has an end:
//! a limit, the wish of the process to end, or the server's own limits.
//! Assumes: statements written here use `?` for their values and have no other question mark.

mod reset;
mod second_session;
pub(super) mod user_lock;

use std::fmt::{self, Write as _};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use sqlx::{AssertSqlSafe, Either, Executor as _, Row as _, SqlSafeStr as _};
use tokio_util::sync::CancellationToken;

use super::super::assignment::Engine;
use super::super::result::Class;
use super::access::{Access, Wire};
use super::failure::{Failure, Secrets};
use super::mysql;
use super::progress::{Progress, Step};
use crate::kinds::databasemigration::sql::mysql::modes::Modes;
use crate::runtime::clock;
use second_session::SecondSession;

pub(super) use reset::RESET;

/// How many steps of SQLite's machine lie between two looks at whether to go on.
const STEPS: i32 = 1000;
/// How long a server may take to end a statement that it was asked to end.
const UNTIL_CANCELLED: Duration = Duration::from_secs(10);
/// How long a server may take to say how far it is.
const UNTIL_TOLD: Duration = Duration::from_secs(2);
/// Between two words about a statement that takes long.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);

/// The warning of MySQL and MariaDB that a ROLLBACK has left rows.
const NOT_ROLLED_BACK: &str = "1196";

/// A value of a statement.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    /// A text.
    Text(&'a str),
    /// A number.
    Number(i64),
    /// No text.
    Null,
    /// No number.
    NoNumber,
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<Option<&'a str>> for Value<'a> {
    fn from(text: Option<&'a str>) -> Self {
        text.map_or(Self::Null, Self::Text)
    }
}

/// One session.
pub(super) struct Connection {
    wire: Wire,
    access: Access,
    secrets: Secrets,
    /// How the server calls this session.
    pub(super) session: String,
    /// As the server calls its version.
    pub(super) version: String,
    /// How it reads quotes at its beginning.
    pub(super) modes: Modes,
    /// How many bytes the server takes of a text, where it has a limit.
    pub(super) longest: Option<usize>,
    /// The last ROLLBACK has left rows of tables that take nothing back.
    pub(super) keeps_rows: bool,
    /// The lock that it has, where that goes with the session and has to be passed on to the next one.
    pub(super) lock: user_lock::Held,
    /// A script has run in it.
    is_used: bool,
    is_halted: Arc<AtomicBool>,
    /// SQLite rolls back what is to be committed.
    is_sealed: Arc<AtomicBool>,
}

/// What ends a statement besides the server.
#[derive(Clone, Copy)]
pub(super) struct Watch<'a> {
    /// The process is asked to end.
    pub(super) stop: &'a CancellationToken,
    /// How long it may take, whatever the script set.
    pub(super) limit: Option<Duration>,
    /// How long it may wait for one lock of PostgreSQL, whatever the script set.
    pub(super) lock_limit: Option<Duration>,
    /// Who hears of it.
    pub(super) progress: &'a dyn Progress,
    /// The script that it is of.
    pub(super) id: &'a str,
}

/// The outcome of a text of statements.
#[derive(Debug, Default)]
pub(super) struct Ran {
    /// How many statements were done.
    pub(super) statements: u32,
    /// How many rows they returned.
    pub(super) rows: u64,
    /// How many warnings the server has of the last one, where it counts them.
    pub(super) warnings: u16,
    /// How the next one failed.
    pub(super) failure: Option<Failure>,
}

impl Ran {
    fn failed(failure: Failure) -> Self {
        Self { failure: Some(failure), ..Self::default() }
    }
}

macro_rules! on {
    ($wire:expr, $session:ident => $own:expr, $connection:ident => $body:expr) => {
        match $wire {
            Wire::Postgres($connection) => $body,
            Wire::MySql($session) => $own,
            Wire::Sqlite($connection) => $body,
        }
    };
}

macro_rules! query {
    ($sql:expr, $values:expr) => {{
        let mut query = sqlx::query(AssertSqlSafe($sql)).persistent(false);
        for value in $values {
            query = match *value {
                Value::Text(text) => query.bind(text.to_owned()),
                Value::Number(number) => query.bind(number),
                Value::Null => query.bind(None::<String>),
                Value::NoNumber => query.bind(None::<i64>),
            };
        }
        query
    }};
}

impl Connection {
    /// Connects.
    pub(super) async fn to(access: &Access) -> Result<Self, Failure> {
        let wire = access.connect().await?;
        let secrets = access.secrets();
        let (is_halted, is_sealed) = (Arc::default(), Arc::default());
        let mut connection = Self {
            wire,
            access: access.clone(),
            secrets,
            session: String::new(),
            version: String::new(),
            modes: Modes::default(),
            longest: None,
            keeps_rows: false,
            lock: user_lock::Held::Nothing,
            is_used: false,
            is_halted,
            is_sealed,
        };
        connection.greet().await?;
        Ok(connection)
    }

    async fn greet(&mut self) -> Result<(), Failure> {
        if let Wire::Sqlite(sqlite) = &mut self.wire {
            let (is_halted, is_sealed) = (Arc::clone(&self.is_halted), Arc::clone(&self.is_sealed));
            let mut handle = sqlite.lock_handle().await.map_err(|error| self.secrets.failure(&error))?;
            handle.set_progress_handler(STEPS, move || !is_halted.load(Ordering::Relaxed));
            handle.set_commit_hook(move || !is_sealed.load(Ordering::Relaxed));
        }
        let (session, version) = match self.engine() {
            Engine::PostgreSQL => (
                "SELECT pid || '/' || extract(epoch FROM backend_start) FROM pg_catalog.pg_stat_activity \
                 WHERE pid = pg_catalog.pg_backend_pid()",
                "SELECT pg_catalog.current_setting('server_version')",
            ),
            Engine::MySQL | Engine::MariaDB => return self.greet_mysql().await,
            Engine::SQLite => ("SELECT 'file'", "SELECT sqlite_version()"),
        };
        self.session = self.one(session).await?.unwrap_or_default();
        self.version = self.one(version).await?.unwrap_or_default();
        self.set_up().await
    }

    async fn greet_mysql(&mut self) -> Result<(), Failure> {
        let sql = "SELECT CONNECTION_ID(), VERSION(), @@SESSION.sql_mode, @@SESSION.max_allowed_packet";
        let mut row = self.rows(sql, &[]).await?.into_iter().next().unwrap_or_default().into_iter();
        let mut next = || row.next().flatten().unwrap_or_default();
        (self.session, self.version) = (next(), next());
        self.modes = Modes::of(&next());
        // The command is a byte of its own.
        self.longest = next().parse::<usize>().ok().map(|longest| longest.saturating_sub(1));
        Ok(())
    }

    /// What the other end is.
    pub(super) const fn engine(&self) -> Engine {
        self.access.database.engine
    }

    /// How it was reached.
    pub(super) const fn access(&self) -> &Access {
        &self.access
    }

    /// Does a statement of ours; how many rows it changed.
    pub(super) async fn execute(&mut self, sql: &str, values: &[Value<'_>]) -> Result<u64, Failure> {
        let sql = self.numbered(sql);
        let secrets = &self.secrets;
        on!(&mut self.wire,
        session => {
            let done = session.run(&written(&sql, values)).await;
            done.map(|answers| answers.affected).map_err(|error| secrets.refused(&error))
        },
        connection => {
            let done = query!(sql, values).execute(&mut *connection).await;
            done.map(|done| done.rows_affected()).map_err(|error| secrets.failure(&error))
        })
    }

    /// Asks by a statement of ours whose columns are all texts.
    pub(super) async fn rows(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<Vec<Vec<Option<String>>>, Failure> {
        let sql = self.numbered(sql);
        let secrets = &self.secrets;
        on!(&mut self.wire,
        session => {
            session.rows(&written(&sql, values)).await.map_err(|error| secrets.refused(&error))
        },
        connection => {
            let rows = query!(sql, values).fetch_all(&mut *connection).await;
            let rows: sqlx::Result<_> = rows.and_then(|rows| {
                let texts = rows.iter().map(|row| {
                    (0..row.columns().len()).map(|column| row.try_get::<Option<String>, _>(column)).collect()
                });
                texts.collect()
            });
            rows.map_err(|error| secrets.failure(&error))
        })
    }

    /// The first column of the first row.
    pub(super) async fn one(&mut self, sql: &str) -> Result<Option<String>, Failure> {
        let rows = self.rows(sql, &[]).await?;
        Ok(rows.into_iter().next().and_then(|row| row.into_iter().next()).flatten())
    }

    /// Statements of ours without values, as text.
    pub(super) async fn control(&mut self, sql: &str) -> Result<(), Failure> {
        if matches!(self.wire, Wire::MySql(_)) {
            for sql in sql.split("; ") {
                self.warned(sql).await?;
            }
            return Ok(());
        }
        streamed(&mut self.wire, &self.secrets, sql).await.failure.map_or(Ok(()), Err)
    }

    /// Whether PostgreSQL reads a text as one statement.
    pub(super) async fn reads_one(&mut self, text: &str) -> Result<(), Failure> {
        let Wire::Postgres(postgres) = &mut self.wire else { return Ok(()) };
        let prepared = postgres.prepare(AssertSqlSafe(text.to_owned()).into_sql_str()).await;
        let failure = match prepared {
            Ok(_) => return Ok(()),
            Err(error) => self.secrets.failure(&error),
        };
        // A syntax error has a place; several statements have none.
        let has_several = failure.class == Class::Syntax && failure.position.is_none();
        let message = "the server reads several statements in what ends with one semicolon: is standard_conforming_strings off?";
        Err(if has_several { Failure { message: message.to_owned(), ..failure } } else { failure })
    }

    /// The number of the error by which MySQL or MariaDB cannot read a text, of which nothing runs here.
    pub(super) async fn unreadable(&mut self, text: &str) -> Option<u16> {
        let Wire::MySql(session) = &mut self.wire else { return None };
        match session.prepare(text).await {
            Err(mysql::Error::Refused { number, .. }) => Some(number),
            Ok(()) | Err(_) => None,
        }
    }

    /// From now on SQLite rolls back what is to be committed, or commits it again.
    pub(super) fn seal(&self, is_sealed: bool) {
        self.is_sealed.store(is_sealed, Ordering::Relaxed);
    }

    /// Rolls back.
    pub(super) async fn roll_back(&mut self) -> Result<(), Failure> {
        self.keeps_rows = false;
        if self.warned("ROLLBACK").await? > 0 {
            let warnings = self.rows("SHOW WARNINGS", &[]).await?;
            self.keeps_rows = warnings
                .iter()
                .any(|row| row.get(1).is_some_and(|code| code.as_deref() == Some(NOT_ROLLED_BACK)));
        }
        Ok(())
    }

    /// Whether each statement is a transaction of its own, and none is open.
    pub(super) const fn commits_by_itself(&self) -> bool {
        matches!(&self.wire, Wire::MySql(session) if session.commits_by_itself())
    }

    /// Whether a transaction of MySQL or MariaDB is open, as the last answer has it.
    pub(super) const fn is_in_transaction(&self) -> bool {
        matches!(&self.wire, Wire::MySql(session) if session.is_in_transaction())
    }

    /// The same for one statement; how many warnings it has left.
    pub(super) async fn warned(&mut self, sql: &str) -> Result<u16, Failure> {
        let ran = streamed(&mut self.wire, &self.secrets, sql).await;
        ran.failure.map_or(Ok(ran.warnings), Err)
    }

    /// Runs a text of statements, until it is done, fails, or what watches it ends it.
    pub(super) async fn run(&mut self, text: &str, watch: Watch<'_>) -> Ran {
        if watch.stop.is_cancelled() {
            return Ran::failed(interrupted());
        }
        self.is_used = true;
        let Self { wire, secrets, access, session, is_halted, .. } = self;
        is_halted.store(false, Ordering::Relaxed);
        let second = SecondSession { access, session, is_halted };
        // No other statement has phases.
        let has_phases =
            access.database.engine == Engine::PostgreSQL && text.to_ascii_uppercase().contains("INDEX");
        let begun = clock::instant();
        let mut running = pin!(streamed(wire, secrets, text));
        let mut waited = pin!(second.waited_too_long(watch.lock_limit));
        let mut ended: Option<Failure> = None;
        let mut give_up = None;
        let mut words = tokio::time::interval_at(begun + REPORT_INTERVAL, REPORT_INTERVAL);
        loop {
            let over = watch.limit.filter(|_| ended.is_none()).map(|limit| begun + limit);
            tokio::select! {
                biased;
                mut ran = &mut running => {
                    // The answer to a statement that was ended says only that it was.
                    if let (Some(failure), Some(ended)) = (&mut ran.failure, ended) {
                        let is_unanswered = failure.is_unanswered;
                        *failure = Failure { is_unanswered, sql_state: failure.sql_state.take(), ..ended };
                    }
                    return ran;
                }
                () = watch.stop.cancelled(), if ended.is_none() => ended = Some(interrupted()),
                () = until(over), if over.is_some() => ended = Some(too_long()),
                () = &mut waited, if ended.is_none() => ended = Some(locked_out()),
                () = until(give_up), if give_up.is_some() => {
                    let message = "the server did not end the statement when it was asked to";
                    return Ran::failed(Failure { is_unanswered: true, ..Failure::new(Class::Connection, message) });
                }
                _ = words.tick() => {
                    let asked = async { if has_phases { second.phase().await } else { None } };
                    let phase = tokio::time::timeout(UNTIL_TOLD, asked).await.ok().flatten();
                    watch.progress.tell(Step::Running { id: watch.id, elapsed: begun.elapsed(), phase: phase.as_ref() });
                    continue;
                }
            }
            if give_up.is_none() {
                give_up = Some(clock::instant() + UNTIL_CANCELLED);
                // The statement goes on to be read meanwhile: a server may be slow to let another client in.
                tokio::select! {
                    biased;
                    mut ran = &mut running => {
                        if let (Some(failure), Some(ended)) = (&mut ran.failure, ended) {
                            *failure = Failure { is_unanswered: failure.is_unanswered, ..ended };
                        }
                        return ran;
                    }
                    () = second.cancel() => {}
                }
            }
        }
    }

    /// The statement with its values counted where the engine counts them.
    fn numbered(&self, sql: &str) -> String {
        if self.engine() != Engine::PostgreSQL {
            return sql.to_owned();
        }
        let mut parts = sql.split('?');
        let mut numbered = parts.next().unwrap_or_default().to_owned();
        for (index, part) in parts.enumerate() {
            // Writing to a string does not fail.
            let _written = write!(numbered, "${}{part}", index + 1);
        }
        numbered
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Connection").field("session", &self.session).finish_non_exhaustive()
    }
}

async fn streamed(wire: &mut Wire, secrets: &Secrets, text: &str) -> Ran {
    let mut ran = Ran::default();
    let is_postgres = matches!(wire, Wire::Postgres(_));
    on!(wire,
    session => match session.run(text).await {
        Ok(answers) => {
            ran.statements = answers.count;
            ran.rows = answers.rows;
            ran.warnings = answers.warnings;
        }
        Err(error) => ran.failure = Some(secrets.refused(&error)),
    },
    connection => {
        let mut results = sqlx::raw_sql(AssertSqlSafe(text.to_owned())).fetch_many(&mut *connection);
        while let Some(result) = results.next().await {
            match result {
                Ok(Either::Left(_)) => ran.statements += 1,
                Ok(Either::Right(_)) => ran.rows += 1,
                // A message that came behind the answer, such as that of a NOTIFY.
                Err(sqlx::Error::Protocol(_)) if is_postgres && ran.statements > 0 => break,
                Err(sqlx::Error::Protocol(_)) if is_postgres => {
                    ran.failure = Some(not_understood());
                    break;
                }
                Err(error) => {
                    ran.failure = Some(secrets.failure(&error));
                    break;
                }
            }
        }
    });
    ran
}

fn not_understood() -> Failure {
    let message =
        "the answer of the server was not understood: rows for a client (COPY), or another client_encoding";
    Failure { is_unanswered: true, ..Failure::new(Class::Other, message) }
}

/// A statement of ours with its values in it, for MySQL and MariaDB.
fn written(sql: &str, values: &[Value<'_>]) -> String {
    let mut parts = sql.split('?');
    let mut written = parts.next().unwrap_or_default().to_owned();
    for (part, value) in parts.zip(values) {
        match value {
            Value::Text(text) => written.push_str(&mysql::literal(text)),
            Value::Number(number) => written.push_str(&number.to_string()),
            Value::Null | Value::NoNumber => written.push_str("NULL"),
        }
        written.push_str(part);
    }
    written
}

fn interrupted() -> Failure {
    Failure::new(Class::Interrupted, "the process was asked to end, and ended the statement")
}

fn too_long() -> Failure {
    Failure::new(Class::StatementTimeout, "the statement took longer than its timeout")
}

fn locked_out() -> Failure {
    Failure::new(Class::LockTimeout, "the statement waited for a lock for longer than its timeout")
}

async fn until(time: Option<tokio::time::Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Certificates;
    use super::*;
    use crate::kinds::databasemigration::assignment::Database;

    #[tokio::test]
    async fn a_sealed_session_of_sqlite_commits_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("base.db").display().to_string();
        let database: Database =
            serde_json::from_value(serde_json::json!({ "engine": "SQLite", "name": name })).unwrap();
        let access = Access {
            database,
            user: String::new(),
            password: String::new(),
            certificates: Certificates::default(),
            application: String::new(),
            only_reads: false,
        };
        let mut connection = Connection::to(&access).await.unwrap();
        connection.control("BEGIN").await.unwrap();
        connection.seal(true);
        let hidden = "CREATE TABLE a (b); COMMIT; CREATE TABLE c (d)";
        let failure = connection.control(hidden).await.unwrap_err();
        assert_eq!(failure.message, "the script ended the transaction that it ran in");
        connection.control("CREATE TABLE c (d)").await.unwrap_err();
        connection.seal(false);
        assert_eq!(connection.one("SELECT name FROM sqlite_master").await.unwrap(), None);
        connection.control("CREATE TABLE a (b)").await.unwrap();
    }
}
