//! The history of a series, in a table of the database that is migrated. It is the truth about what has run.
//!
//! Guarantees: a row is written in the transaction of its script, where that has one, and before the script where it has
//! none. Every transaction that writes holds the row of the series in the table of locks, and finds there the process that
//! took it: one whose session the server lost sight of writes nothing once another has begun, also where both are pods of
//! one Job and have its run in common.
//! Never: creates a schema.

mod tables;

use aws_lc_rs::rand;

use super::super::api::v1::AppliedScript;
use super::super::assignment::{Engine, History};
use super::super::result::Class;
use super::connection::{Connection, Value};
use super::failure::Failure;
use crate::runtime::fail_point;

pub(super) use tables::Tables;

/// What a row says of its script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It was begun without a transaction, and nothing says how it ended.
    Running,
    /// It was begun without a transaction, and the database shows whether the statement that it stands at took effect.
    Resumable,
    /// It is applied.
    Applied,
    /// It counts as applied since the first contact.
    Baseline,
    /// It failed, and will run again.
    Failed,
    /// It was taken back.
    Reverted,
}

impl State {
    const ALL: [Self; 6] =
        [Self::Running, Self::Resumable, Self::Applied, Self::Baseline, Self::Failed, Self::Reverted];

    /// As it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Resumable => "resumable",
            Self::Applied => "applied",
            Self::Baseline => "baseline",
            Self::Failed => "failed",
            Self::Reverted => "reverted",
        }
    }

    /// Whether its script has run.
    #[must_use]
    pub const fn is_applied(self) -> bool {
        matches!(self, Self::Applied | Self::Baseline)
    }

    /// Whether its script was begun statement by statement, and has no end in the history.
    #[must_use]
    pub const fn is_begun(self) -> bool {
        matches!(self, Self::Running | Self::Resumable)
    }
}

/// A row of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The script.
    pub id: String,
    /// Its place in the order in which scripts ran.
    pub position: i64,
    /// What it was for.
    pub kind: String,
    /// The checksum of its bytes.
    pub checksum: String,
    /// What became of it.
    pub state: State,
    /// The statement that it stood at, from 1 on.
    pub statement: u32,
    /// The checksum of its bytes before that statement.
    pub done: Option<String>,
    /// Since when it is in that state, RFC 3339.
    pub at: String,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// The run that wrote the row.
    pub run: String,
    /// The uid of the DatabaseMigration that the run was of.
    pub object: Option<String>,
    /// The session that ran it.
    pub session: Option<String>,
}

impl Row {
    /// As it is reported.
    #[must_use]
    pub fn report(&self) -> AppliedScript {
        AppliedScript {
            id: self.id.clone(),
            checksum: Some(self.checksum.clone()),
            applied_at: Some(self.at.clone()),
            duration_ms: self.duration_ms.and_then(|length| i64::try_from(length).ok()),
            run: Some(self.run.clone()),
        }
    }
}

/// A row as it is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'a> {
    pub(super) id: &'a str,
    pub(super) position: i64,
    pub(super) kind: &'a str,
    pub(super) checksum: &'a str,
    pub(super) state: State,
    pub(super) statement: u32,
    pub(super) done: Option<&'a str>,
    pub(super) duration_ms: Option<u64>,
    pub(super) sql_state: Option<&'a str>,
}

/// The history of one series, and who writes it.
#[derive(Clone, Debug)]
pub(super) struct Log {
    tables: Tables,
    series: String,
    run: String,
    /// What this process has in the row of the series, and no other process.
    token: String,
    object: Option<String>,
}

impl Log {
    /// That of an assignment, in the database of the connection.
    pub(super) async fn of(
        connection: &mut Connection,
        history: &History,
        run: &str,
        object: Option<&str>,
    ) -> Result<Self, Failure> {
        let tables = Tables::of(connection, history).await?;
        let series = history.series.clone();
        let token = token(run)?;
        Ok(Self { tables, series, run: run.to_owned(), token, object: object.map(str::to_owned) })
    }

    /// What the lock of this series is called.
    pub(super) fn lock_name(&self) -> String {
        format!("gatehouse/{}/{}", self.tables.name(), self.series)
    }

    /// The name of the table of rows, without that of its schema.
    pub(super) fn table(&self) -> &str {
        self.tables.table()
    }

    /// The history, in the order in which scripts ran; empty where there is no table.
    pub(super) async fn read(&self, connection: &mut Connection) -> Result<Vec<Row>, Failure> {
        if !self.tables.can_be_read(connection).await? {
            return Ok(Vec::new());
        }
        let sql = self.tables.select();
        let rows = connection.rows(&sql, &[Value::Text(&self.series)]).await?;
        rows.into_iter().map(row).collect()
    }

    /// Whether a script is applied; false also where there is no table.
    pub(super) async fn has(&self, connection: &mut Connection, id: &str) -> Result<bool, Failure> {
        let rows = self.read(connection).await?;
        Ok(rows.iter().any(|row| row.id == id && row.state.is_applied()))
    }

    /// The schema of its tables, where the engine has schemas.
    pub(super) fn schema(&self) -> Option<&str> {
        self.tables.schema()
    }

    /// Whether the table has rows of another series: gatehouse has made tables in this database.
    pub(super) async fn has_others(&self, connection: &mut Connection) -> Result<bool, Failure> {
        if !self.tables.can_be_read(connection).await? {
            return Ok(false);
        }
        let sql = self.tables.select_others();
        Ok(!connection.rows(&sql, &[Value::Text(&self.series)]).await?.is_empty())
    }

    /// Makes what is missing, and puts this process into the row of the series: another one that held it writes no more.
    pub(super) async fn take(&self, connection: &mut Connection) -> Result<(), Failure> {
        if !self.tables.exist(connection).await? {
            let created = connection.control(&self.tables.create(connection.engine())).await;
            // A run of another series may have made them at the same time.
            if created.is_err() && !self.tables.exist(connection).await? {
                created?;
            }
        }
        self.begin(connection, None).await?;
        let taken = self.take_row(connection).await;
        self.end(connection, taken).await
    }

    async fn take_row(&self, connection: &mut Connection) -> Result<(), Failure> {
        let lock = self.tables.lock();
        let now = self.tables.now();
        let update = format!("UPDATE {lock} SET run = ?, taken_at = {now} WHERE series = ?");
        let taken =
            connection.execute(&update, &[Value::Text(&self.token), Value::Text(&self.series)]).await?;
        if taken == 0 && !self.holds(connection).await? {
            let insert = format!("INSERT INTO {lock} (series, run, taken_at) VALUES (?, ?, {now})");
            connection.execute(&insert, &[Value::Text(&self.series), Value::Text(&self.token)]).await?;
        }
        Ok(())
    }

    /// Whether the row of the series is this process's; holds the row until the transaction ends.
    async fn holds(&self, connection: &mut Connection) -> Result<bool, Failure> {
        let found = connection.rows(&self.tables.select_lock(), &[Value::Text(&self.series)]).await?;
        Ok(found.first().and_then(|row| row.first()?.as_deref()) == Some(self.token.as_str()))
    }

    /// Begins a transaction. With a lock timeout, the row of the series is not waited for any longer.
    pub(super) async fn begin(&self, connection: &mut Connection, lock: Option<&str>) -> Result<(), Failure> {
        let begin = match connection.engine() {
            Engine::PostgreSQL => format!(
                "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL lock_timeout = '{}'",
                lock.unwrap_or("3s")
            ),
            Engine::MySQL | Engine::MariaDB => "START TRANSACTION READ WRITE".to_owned(),
            Engine::SQLite => "BEGIN IMMEDIATE".to_owned(),
        };
        connection.control(&begin).await.map_err(|failure| match failure.sql_state.as_deref() {
            // A standby of PostgreSQL knows no transaction that writes.
            Some("0A000") => Failure { class: Class::ReadOnly, ..failure },
            _ => failure,
        })
    }

    /// Sees that this process still has the row of the series, and holds it until the transaction ends.
    pub(super) async fn fence(&self, connection: &mut Connection) -> Result<(), Failure> {
        if self.holds(connection).await? {
            return Ok(());
        }
        Err(self.taken_over())
    }

    fn taken_over(&self) -> Failure {
        Failure::new(Class::Busy, format!("another run took over the series {}", self.series))
    }

    /// Commits where all went well, and rolls back otherwise.
    pub(super) async fn end<T>(
        &self,
        connection: &mut Connection,
        done: Result<T, Failure>,
    ) -> Result<T, Failure> {
        match done {
            Ok(done) => match connection.control("COMMIT").await {
                Ok(()) => Ok(done),
                Err(failure) => {
                    // SQLite leaves a transaction open whose commit met a reader.
                    if connection.engine() == Engine::SQLite {
                        let _rolled_back = connection.control("ROLLBACK").await;
                    }
                    Err(failure)
                }
            },
            Err(failure) => {
                // A connection that broke off has nothing to roll back.
                let _rolled_back = connection.roll_back().await;
                Err(failure)
            }
        }
    }

    /// Writes a row in the transaction that is open, in place of the one that was there.
    pub(super) async fn write(&self, connection: &mut Connection, entry: &Entry<'_>) -> Result<(), Failure> {
        let session = connection.session.clone();
        let own = [Value::Text(&self.series), Value::Text(entry.id)];
        connection.execute(&self.tables.delete(), &own).await?;
        let number = |number: u64| Value::Number(i64::try_from(number).unwrap_or(i64::MAX));
        let values = [
            own[0],
            own[1],
            Value::Number(entry.position),
            Value::Text(entry.kind),
            Value::Text(entry.checksum),
            Value::Text(entry.state.as_str()),
            Value::Number(i64::from(entry.statement)),
            Value::from(entry.done),
            entry.duration_ms.map_or(Value::NoNumber, number),
            Value::Text(&self.run),
            Value::from(self.object.as_deref()),
            Value::Text(&session),
            Value::from(entry.sql_state),
            Value::Text(env!("CARGO_PKG_VERSION")),
        ];
        connection.execute(&self.tables.insert(), &values).await.map(|_| ())
    }

    /// Gives the row of a script another checksum, in a transaction of its own: when it was applied, and by what, stays.
    pub(super) async fn accept(
        &self,
        connection: &mut Connection,
        id: &str,
        checksum: &str,
    ) -> Result<(), Failure> {
        let values = [Value::Text(checksum), Value::Text(&self.series), Value::Text(id)];
        self.update(connection, &self.tables.accept(), &values).await
    }

    /// Notes that a script is in doubt which the database was to show, and leaves the run that has begun it.
    pub(super) async fn doubt(&self, connection: &mut Connection, id: &str) -> Result<(), Failure> {
        self.update(connection, &self.tables.doubt(), &[Value::Text(&self.series), Value::Text(id)]).await
    }

    /// Changes rows in a transaction of its own.
    async fn update(
        &self,
        connection: &mut Connection,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<(), Failure> {
        self.begin(connection, None).await?;
        let updated = match self.fence(connection).await {
            Ok(()) => connection.execute(sql, values).await.map(|_| ()),
            Err(failure) => Err(failure),
        };
        self.end(connection, updated).await
    }

    /// Notes in MySQL and MariaDB that a script that is at work has come to another statement: in one statement, which
    /// finds this process in the row of the series. Where that does not do, in a transaction of its own.
    pub(super) async fn advance(
        &self,
        connection: &mut Connection,
        entry: &Entry<'_>,
    ) -> Result<(), Failure> {
        if connection.commits_by_itself() {
            match self.advance_within(connection, entry).await {
                Err(failure) if !failure.is_unanswered => {}
                advanced => return advanced,
            }
        }
        self.write_alone(connection, entry).await
    }

    /// The same in the transaction that is open.
    pub(super) async fn advance_within(
        &self,
        connection: &mut Connection,
        entry: &Entry<'_>,
    ) -> Result<(), Failure> {
        let values = [
            Value::Text(entry.state.as_str()),
            Value::Number(i64::from(entry.statement)),
            Value::from(entry.done),
            Value::Text(&self.series),
            Value::Text(entry.id),
            Value::Text(&self.run),
            Value::Text(&self.token),
        ];
        match connection.execute(&self.tables.advance(), &values).await? {
            0 => Err(self.taken_over()),
            _ => Ok(()),
        }
    }

    /// Writes a row in a transaction of its own.
    pub(super) async fn write_alone(
        &self,
        connection: &mut Connection,
        entry: &Entry<'_>,
    ) -> Result<(), Failure> {
        self.write_together(connection, std::slice::from_ref(entry)).await
    }

    /// Writes rows in one transaction: all of them, or none.
    pub(super) async fn write_together(
        &self,
        connection: &mut Connection,
        entries: &[Entry<'_>],
    ) -> Result<(), Failure> {
        self.begin(connection, None).await?;
        let written = self.write_fenced(connection, entries).await;
        self.end(connection, written).await
    }

    async fn write_fenced(&self, connection: &mut Connection, entries: &[Entry<'_>]) -> Result<(), Failure> {
        self.fence(connection).await?;
        for entry in entries {
            self.write(connection, entry).await?;
            fail_point::reached("migrate.row.written");
        }
        Ok(())
    }
}

/// What this process writes as the holder of a series: the run, and a random part, since two pods of a Job have the same
/// run.
fn token(run: &str) -> Result<String, Failure> {
    let mut random = [0; 8];
    rand::fill(&mut random)
        .map_err(|_| Failure::new(Class::Other, "failed to begin the run: the system has no random bytes"))?;
    Ok(format!("{run}/{:016x}", u64::from_be_bytes(random)))
}

fn row(columns: Vec<Option<String>>) -> Result<Row, Failure> {
    let mut columns = columns.into_iter();
    let mut next = || columns.next().flatten();
    let (id, position, kind, checksum) = (next(), next(), next(), next());
    let (state, statement, done, at) = (next(), next(), next(), next());
    let (duration, run, object, session) = (next(), next(), next(), next());
    let known = state.as_deref().and_then(|state| State::ALL.into_iter().find(|one| one.as_str() == state));
    let id = id.unwrap_or_default();
    let Some(state) = known else {
        let message =
            format!("the history has the state {:?} of {id}, which is none", state.unwrap_or_default());
        return Err(Failure::new(Class::Configuration, message));
    };
    Ok(Row {
        id,
        position: position.and_then(|position| position.parse().ok()).unwrap_or_default(),
        kind: kind.unwrap_or_default(),
        checksum: checksum.unwrap_or_default(),
        state,
        statement: statement.and_then(|statement| statement.parse().ok()).unwrap_or(1),
        done,
        at: at.unwrap_or_default(),
        duration_ms: duration.and_then(|duration| duration.parse().ok()),
        run: run.unwrap_or_default(),
        object,
        session,
    })
}
