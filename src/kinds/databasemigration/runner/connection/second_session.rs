//! Reaches the server beside a session that is busy: to end its statement, and to look at what it does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::{AssertSqlSafe, Row as _};

use super::super::super::assignment::Engine;
use super::super::access::{Access, Wire};
use super::super::failure::Failure;
use super::super::progress::Phase;
use super::streamed;
use crate::runtime::clock;

/// The shortest and the longest time between two looks at what a session waits for.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(1));

/// What reaches the server beside a session that is busy.
pub(super) struct SecondSession<'a> {
    pub(super) access: &'a Access,
    pub(super) session: &'a str,
    pub(super) is_halted: &'a AtomicBool,
}

impl SecondSession<'_> {
    /// Asks the server to end what the session does.
    pub(super) async fn cancel(&self) {
        self.is_halted.store(true, Ordering::Relaxed);
        let engine = self.access.database.engine;
        let sql = match engine {
            Engine::PostgreSQL => format!("SELECT pg_catalog.pg_cancel_backend({})", self.process()),
            Engine::MySQL | Engine::MariaDB => format!("KILL QUERY {}", self.session),
            Engine::SQLite => return,
        };
        let asked = async {
            let mut wire = self.access.connect().await?;
            streamed(&mut wire, &self.access.secrets(), &sql).await.failure.map_or(Ok(()), Err)
        };
        if let Err(failure) = asked.await {
            tracing::warn!(failure = failure.message, "failed to ask the server to end the statement");
        }
    }

    /// Ends once a session of PostgreSQL has waited for one lock for longer than that. A script can turn off the server's
    /// own limit (`SET lock_timeout = 0` is in each dump). The limit here is exceeded by two looks at most.
    pub(super) async fn waited_too_long(&self, limit: Option<Duration>) {
        let limit = limit.filter(|_| self.access.database.engine == Engine::PostgreSQL);
        let Some(limit) = limit else { return std::future::pending().await };
        let pause = (limit / 4).clamp(PAUSES.0, PAUSES.1);
        let mut wire = None;
        let mut waiting: Option<(String, tokio::time::Instant)> = None;
        loop {
            tokio::time::sleep(pause).await;
            let lock = match self.awaited_lock(&mut wire).await {
                Ok(lock) => lock,
                Err(failure) => {
                    tracing::debug!(
                        failure = failure.message,
                        "failed to look at the locks of the statement"
                    );
                    wire = None;
                    continue;
                }
            };
            waiting = match (lock, waiting) {
                (Some(lock), Some((before, since))) if lock == before => {
                    if since.elapsed() >= limit {
                        return;
                    }
                    Some((before, since))
                }
                (Some(lock), _) => Some((lock, clock::instant())),
                (None, _) => None,
            };
        }
    }

    /// The lock that the session waits for, as the server shows it; from PostgreSQL 14 on with the time since when.
    async fn awaited_lock(&self, wire: &mut Option<Wire>) -> Result<Option<String>, Failure> {
        let sql = format!(
            "SELECT CASE WHEN a.wait_event_type = 'Lock' THEN (SELECT l::text FROM pg_catalog.pg_locks l \
             WHERE l.pid = a.pid AND NOT l.granted LIMIT 1) END FROM pg_catalog.pg_stat_get_activity({}) a",
            self.process()
        );
        let opened = match wire.take() {
            Some(opened) => opened,
            None => self.access.connect().await?,
        };
        let Wire::Postgres(postgres) = wire.insert(opened) else { return Ok(None) };
        let found =
            sqlx::query_scalar::<_, Option<String>>(AssertSqlSafe(sql)).fetch_optional(postgres).await;
        found.map(Option::flatten).map_err(|error| self.access.secrets().failure(&error))
    }

    /// How far the statement is, where the server shows it.
    pub(super) async fn phase(&self) -> Option<Phase> {
        if self.access.database.engine != Engine::PostgreSQL {
            return None;
        }
        let sql = format!(
            "SELECT phase, COALESCE(NULLIF(blocks_done, 0), tuples_done)::text, \
             COALESCE(NULLIF(blocks_total, 0), tuples_total)::text \
             FROM pg_catalog.pg_stat_progress_create_index WHERE pid = {}",
            self.process()
        );
        let mut wire = self.access.connect().await.ok()?;
        let Wire::Postgres(connection) = &mut wire else { return None };
        let row = sqlx::query(AssertSqlSafe(sql)).fetch_optional(connection).await.ok()??;
        let number = |column: usize| row.try_get::<String, _>(column).ok()?.parse().ok();
        Some(Phase { name: row.try_get(0).ok()?, done: number(1)?, total: number(2)? })
    }

    /// The process of PostgreSQL that is this session.
    fn process(&self) -> &str {
        self.session.split('/').next().unwrap_or_default()
    }
}
