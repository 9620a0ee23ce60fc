//! The two tables of a history, in the words of each engine.

use super::super::super::assignment::{Engine, History};
use super::super::super::result::Class;
use super::super::connection::{Connection, Value};
use super::super::failure::Failure;

/// The tables, by their full names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Tables {
    engine: Engine,
    schema: Option<String>,
    table: String,
}

impl Tables {
    /// Those of a history, in the database of the connection.
    pub(super) async fn of(connection: &mut Connection, history: &History) -> Result<Self, Failure> {
        let engine = connection.engine();
        let schema = match (engine, &history.schema) {
            (Engine::SQLite, _) => None,
            (_, Some(schema)) => Some(schema.clone()),
            (Engine::PostgreSQL, None) => Some("public".to_owned()),
            // Scripts may turn to another database: the history stays where the connection began.
            (Engine::MySQL | Engine::MariaDB, None) => {
                connection.one("SELECT CAST(DATABASE() AS CHAR)").await?
            }
        };
        if schema.as_deref().is_some_and(|schema| schema.contains(['`', '"', '\0'])) {
            let message = "history.schema: the name of the database has a quote: name another schema";
            return Err(Failure::new(Class::Configuration, message));
        }
        Ok(Self { engine, schema, table: history.table.clone() })
    }

    /// The full name of the table, as people write it.
    pub(super) fn name(&self) -> String {
        let schema = self.schema.as_ref().map(|schema| format!("{schema}.")).unwrap_or_default();
        format!("{schema}{}", self.table)
    }

    /// The name of the table alone.
    pub(super) fn table(&self) -> &str {
        &self.table
    }

    /// The schema, where the engine has schemas.
    pub(super) fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    fn quoted(&self, suffix: &str) -> String {
        let quote = if self.is_mysql() { '`' } else { '"' };
        let schema = self.schema.as_ref().map(|schema| format!("{quote}{schema}{quote}."));
        format!("{}{quote}{}{suffix}{quote}", schema.unwrap_or_default(), self.table)
    }

    /// The table of rows.
    fn rows(&self) -> String {
        self.quoted("")
    }

    /// The table of locks.
    pub(super) fn lock(&self) -> String {
        self.quoted("_lock")
    }

    const fn is_mysql(&self) -> bool {
        matches!(self.engine, Engine::MySQL | Engine::MariaDB)
    }

    /// The time, also within a transaction.
    pub(super) const fn now(&self) -> &'static str {
        match self.engine {
            Engine::PostgreSQL => "pg_catalog.clock_timestamp()",
            Engine::MySQL | Engine::MariaDB => "UTC_TIMESTAMP(3)",
            Engine::SQLite => "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')",
        }
    }

    /// Whether the table of rows is there. Who only reads may have a right to that table alone, and MySQL hides the other.
    pub(super) async fn can_be_read(&self, connection: &mut Connection) -> Result<bool, Failure> {
        self.is_there(connection, &self.table).await
    }

    /// Whether both tables are there.
    pub(super) async fn exist(&self, connection: &mut Connection) -> Result<bool, Failure> {
        let lock = format!("{}_lock", self.table);
        Ok(self.is_there(connection, &self.table).await? && self.is_there(connection, &lock).await?)
    }

    async fn is_there(&self, connection: &mut Connection, table: &str) -> Result<bool, Failure> {
        let name = Value::Text(table);
        let found = match (self.engine, self.schema.as_deref()) {
            (Engine::SQLite, _) | (_, None) => {
                let sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND name = ?";
                connection.rows(sql, &[name]).await?
            }
            (_, Some(schema)) => {
                // Not information_schema: that of PostgreSQL hides what this user may not touch.
                let sql = if self.is_mysql() {
                    "SELECT CAST(table_name AS CHAR) FROM information_schema.tables \
                     WHERE table_schema = ? AND table_name = ?"
                } else {
                    "SELECT c.relname::text FROM pg_catalog.pg_class c \
                     JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
                     WHERE n.nspname = ? AND c.relname = ?"
                };
                connection.rows(sql, &[Value::Text(schema), name]).await?
            }
        };
        Ok(!found.is_empty())
    }

    /// The statements that make them.
    pub(super) fn create(&self, engine: Engine) -> String {
        let (text, long, time, number) = match engine {
            Engine::PostgreSQL => ("text", "text", "timestamptz", "bigint"),
            // Ids that differ by a capital are two.
            Engine::MySQL | Engine::MariaDB => (
                "varchar(128) CHARACTER SET ascii COLLATE ascii_bin",
                "varchar(255) CHARACTER SET utf8mb4",
                "datetime(3)",
                "bigint",
            ),
            Engine::SQLite => ("text", "text", "text", "integer"),
        };
        let (rows, lock) = (self.rows(), self.lock());
        let options = if self.is_mysql() { " ENGINE=InnoDB" } else { "" };
        format!(
            "CREATE TABLE IF NOT EXISTS {rows} (series {text} NOT NULL, id {text} NOT NULL, \
             position {number} NOT NULL, kind {text} NOT NULL, checksum {text} NOT NULL, state {text} NOT NULL, \
             statement_no {number} NOT NULL, done_checksum {text}, changed_at {time} NOT NULL, \
             duration_ms {number}, run {long} NOT NULL, object_uid {long}, session {long}, sql_state {text}, \
             tool_version {text} NOT NULL, PRIMARY KEY (series, id)){options}; \
             CREATE TABLE IF NOT EXISTS {lock} (series {text} NOT NULL PRIMARY KEY, run {long} NOT NULL, \
             taken_at {time} NOT NULL){options}"
        )
    }

    /// The rows of a series, in the order in which scripts ran.
    pub(super) fn select(&self) -> String {
        let (text, at) = match self.engine {
            Engine::PostgreSQL => {
                ("text", "to_char(changed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')")
            }
            Engine::MySQL | Engine::MariaDB => {
                ("char", "CONCAT(LEFT(DATE_FORMAT(changed_at, '%Y-%m-%dT%H:%i:%s.%f'), 23), 'Z')")
            }
            Engine::SQLite => ("text", "changed_at"),
        };
        let columns = ["id", "position", "kind", "checksum", "state", "statement_no", "done_checksum"];
        let behind = ["duration_ms", "run", "object_uid", "session"];
        let cast = |column: &&str| format!("CAST({column} AS {text})");
        let columns: Vec<_> = columns.iter().map(cast).collect();
        let behind: Vec<_> = behind.iter().map(cast).collect();
        // PostgreSQL takes a bare `position` for the output column, which is a text: 10 would come before 9.
        format!(
            "SELECT {}, CAST({at} AS {text}), {} FROM {} h WHERE h.series = ? ORDER BY h.position, h.id",
            columns.join(", "),
            behind.join(", "),
            self.rows()
        )
    }

    /// A row of another series.
    pub(super) fn select_others(&self) -> String {
        format!(
            "SELECT id FROM {} WHERE series <> ? AND state IN ('applied', 'baseline') LIMIT 1",
            self.rows()
        )
    }

    /// The run that has the row of a series, which is held until the transaction ends.
    pub(super) fn select_lock(&self) -> String {
        let hold = if self.engine == Engine::SQLite { "" } else { " FOR UPDATE" };
        format!("SELECT run FROM {} WHERE series = ?{hold}", self.lock())
    }

    /// Takes out the row of a script.
    pub(super) fn delete(&self) -> String {
        format!("DELETE FROM {} WHERE series = ? AND id = ?", self.rows())
    }

    /// Gives the row of a script another checksum.
    pub(super) fn accept(&self) -> String {
        format!("UPDATE {} SET checksum = ? WHERE series = ? AND id = ?", self.rows())
    }

    /// Has a script in doubt whose end the database was to show.
    pub(super) fn doubt(&self) -> String {
        format!(
            "UPDATE {} SET state = 'running' WHERE series = ? AND id = ? AND state = 'resumable'",
            self.rows()
        )
    }

    /// Has the row of a script that is at work stand at another statement. Both rows are locked, so that no other process
    /// takes the series over in between.
    pub(super) fn advance(&self) -> String {
        let (rows, lock, now) = (self.rows(), self.lock(), self.now());
        format!(
            "UPDATE {rows} r JOIN {lock} l ON l.series = r.series SET r.state = ?, r.statement_no = ?, r.done_checksum = ?, \
             r.changed_at = {now}, l.taken_at = {now} WHERE r.series = ? AND r.id = ? AND r.run = ? \
             AND r.state IN ('running', 'resumable') AND l.run = ?"
        )
    }

    /// Puts one in.
    pub(super) fn insert(&self) -> String {
        let now = self.now();
        format!(
            "INSERT INTO {} (series, id, position, kind, checksum, state, statement_no, done_checksum, duration_ms, \
             run, object_uid, session, sql_state, tool_version, changed_at) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {now})",
            self.rows()
        )
    }
}
