//! What holds for a script whatever it sets: how long its statements take and wait for locks, its transaction, and the
//! encoding in which it is sent.
//!
//! Guarantees: the server keeps the limits itself. A script may turn the limits of PostgreSQL off; a [`Watch`] on this side
//! keeps them then, with some grace.

use std::time::Duration;

use super::super::super::assignment::Engine;
use super::super::super::result::Class;
use super::super::connection::Watch;
use super::super::failure::Failure;
use super::{Carrier, Task, Way};

/// How much longer than the server's own limit ours is, so that the server ends the statement itself where it can.
const GRACE: Duration = Duration::from_secs(1);
/// What MySQL takes for no limit: a year.
const NO_LIMIT_SECONDS: u128 = 31_536_000;
/// What SQLite takes for no limit: 24 days.
const NO_LIMIT_MILLISECONDS: u128 = 2_147_483_647;

impl Carrier<'_> {
    /// Sets the time that statements wait for locks, where it is the session's.
    pub(in super::super) async fn limit_locks(&mut self, task: Task<'_>) -> Result<(), Failure> {
        let limit = task.script().timeouts.lock();
        let sql = match self.engine() {
            Engine::PostgreSQL if task.way() != Way::Statements => return Ok(()),
            Engine::PostgreSQL => {
                // What is done concurrently consists of waits for others, which the lock timeout would end.
                format!("SET lock_timeout = '{}'", limit_text(task.lock_limit()))
            }
            Engine::MySQL | Engine::MariaDB => {
                let seconds = limit.map_or(NO_LIMIT_SECONDS, |limit| limit.as_millis().div_ceil(1000));
                format!(
                    "SET SESSION lock_wait_timeout = {seconds}, SESSION innodb_lock_wait_timeout = {seconds}"
                )
            }
            Engine::SQLite => {
                format!(
                    "PRAGMA busy_timeout = {}",
                    limit.map_or(NO_LIMIT_MILLISECONDS, |limit| limit.as_millis())
                )
            }
        };
        self.connection.control(&sql).await
    }

    pub(super) async fn limit_statement(&mut self, task: Task<'_>) -> Result<(), Failure> {
        if self.engine() != Engine::PostgreSQL {
            return Ok(());
        }
        let limit = limit_text(task.script().timeouts.statement());
        self.connection.control(&format!("SET statement_timeout = '{limit}'")).await
    }

    /// The open transaction and the encoding of what is sent, if the engine reports them.
    pub(in super::super) async fn transaction(&mut self) -> Result<Option<String>, Failure> {
        if self.engine() != Engine::PostgreSQL {
            return Ok(None);
        }
        let sql =
            "SELECT pg_catalog.txid_current()::text || ' ' || pg_catalog.current_setting('client_encoding')";
        self.connection.one(sql).await
    }

    /// What ends a statement besides the server, whose own limits a script can turn off.
    pub(super) fn watch<'w>(&self, task: Task<'w>) -> Watch<'w>
    where
        Self: 'w,
    {
        let is_postgres = self.engine() == Engine::PostgreSQL;
        let limit = task.script().timeouts.statement();
        Watch {
            stop: self.stop,
            limit: if is_postgres { limit.map(|limit| limit + GRACE) } else { limit },
            lock_limit: task.lock_limit().filter(|_| is_postgres),
            progress: self.progress,
            id: task.id(),
        }
    }
}

/// What PostgreSQL does behind a script and before its commit: whatever the script set, no limit is off while deferred
/// triggers run, and no message for a client comes between the answers.
pub(in super::super) fn closing(task: Task<'_>) -> String {
    let timeouts = &task.script().timeouts;
    format!(
        "RESET SESSION AUTHORIZATION; RESET ROLE; UNLISTEN *; SET LOCAL lock_timeout = '{}'; \
         SET LOCAL statement_timeout = '{}'",
        limit_text(timeouts.lock()),
        limit_text(timeouts.statement())
    )
}

/// Whether a script is still in the transaction that it began in, and left the encoding alone.
pub(in super::super) fn left_as_found(before: Option<&str>, after: Option<&str>) -> Result<(), Failure> {
    if before == after {
        return Ok(());
    }
    let transaction = |state: Option<&str>| state.and_then(|state| Some(state.split_once(' ')?.0.to_owned()));
    let message = if transaction(before) == transaction(after) {
        "the script changed client_encoding: gatehouse sends scripts in UTF-8; store the script in UTF-8 and leave it"
    } else {
        "the script ended the transaction that it ran in"
    };
    Err(Failure::new(Class::Configuration, message))
}

/// A limit as PostgreSQL reads it; 0 is none.
pub(in super::super) fn limit_text(limit: Option<Duration>) -> String {
    format!("{}ms", limit.map_or(0, |limit| limit.as_millis().max(1)))
}
