//! One run of a series at a time.
//!
//! Guarantees: the lock is asked for again and again, and never waited for on the server: a session that waits there holds
//! a snapshot that CREATE INDEX CONCURRENTLY waits for in turn. It is the session's, so that it goes with it.
//! Assumes: nothing stands between that hands one session to several clients; where something does, the row of the series
//! in the history keeps a run from writing once another has begun.

use std::fs::{File, TryLockError};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use tokio_util::sync::CancellationToken;

use super::super::assignment::Engine;
use super::super::result::Class;
use super::connection::user_lock::{Held, LockNames, got, let_go};
use super::connection::{Connection, Value};
use super::failure::Failure;
use super::progress::{Progress, Step};
use crate::runtime::clock;

/// Between two times that the lock is asked for.
const PAUSE: Duration = Duration::from_secs(1);

/// What keeps others out, until it is dropped and the session ends.
#[derive(Debug)]
pub(super) struct Lock {
    _file: Option<File>,
}

/// How long one may go on to wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience<'a> {
    until: tokio::time::Instant,
    stop: &'a CancellationToken,
}

impl<'a> Patience<'a> {
    /// From now on.
    pub(super) fn of(limit: Duration, stop: &'a CancellationToken) -> Self {
        Self { until: clock::instant() + limit, stop }
    }

    /// Waits a little, or fails with `failure` where it has waited long enough.
    ///
    /// # Errors
    /// `failure`, or that the process is asked to end.
    pub(super) async fn pause(&self, pause: Duration, failure: Failure) -> Result<(), Failure> {
        if clock::instant() + pause > self.until {
            return Err(failure);
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => Ok(()),
            () = self.stop.cancelled() => {
                Err(Failure::new(Class::Interrupted, "the process was asked to end while it waited"))
            }
        }
    }
}

impl Lock {
    /// Takes it, as soon as it is free.
    ///
    /// # Errors
    /// Another session holds it all the time.
    pub(super) async fn take(
        connection: &mut Connection,
        name: &str,
        patience: Patience<'_>,
        limit: Duration,
        progress: &dyn Progress,
    ) -> Result<Self, Failure> {
        let mut is_told = false;
        loop {
            if let Some(lock) = Self::asked(connection, name).await? {
                return Ok(lock);
            }
            if !std::mem::replace(&mut is_told, true) {
                progress.tell(Step::Waiting { patience: limit });
            }
            let message = format!("another run was at work for {} s", limit.as_secs());
            // Two that wait do not ask in step.
            let jitter = Duration::from_millis(u64::from(std::process::id() % 250));
            patience.pause(PAUSE + jitter, Failure::new(Class::Busy, message)).await?;
        }
    }

    async fn asked(connection: &mut Connection, name: &str) -> Result<Option<Self>, Failure> {
        let is_taken = match connection.engine() {
            Engine::PostgreSQL => {
                let sql = "SELECT pg_catalog.pg_try_advisory_lock(?)::text";
                let answer = connection.rows(sql, &[Value::Number(key(name))]).await?;
                answer.first().and_then(|row| row.first()?.as_deref()) == Some("true")
            }
            Engine::MySQL | Engine::MariaDB => {
                let lock_names = lock_names(name);
                if !got(connection, &lock_names[0], 0).await? {
                    false
                } else if got(connection, &lock_names[1], 0).await? {
                    connection.lock = Held::Both(lock_names);
                    true
                } else {
                    let_go(connection, &lock_names[0]).await?;
                    false
                }
            }
            Engine::SQLite => return file(&connection.access().database.name),
        };
        Ok(is_taken.then_some(Self { _file: None }))
    }
}

/// What MySQL calls it.
fn lock_names(name: &str) -> LockNames {
    let key = key(name);
    [format!("gatehouse/{key:x}"), format!("gatehouse/{key:x}/2")]
}

/// Whether a run has that lock, for what only reads: asking takes nothing from a run that begins meanwhile.
pub(super) async fn is_taken(connection: &mut Connection, name: &str) -> Result<bool, Failure> {
    match connection.engine() {
        // It shows the session itself.
        Engine::PostgreSQL => Ok(false),
        Engine::MySQL | Engine::MariaDB => {
            let [first, second] = lock_names(name);
            let sql = "SELECT CAST(COALESCE(IS_USED_LOCK(?), IS_USED_LOCK(?)) AS CHAR)";
            let rows = connection.rows(sql, &[Value::Text(&first), Value::Text(&second)]).await?;
            Ok(rows.first().is_some_and(|row| row.first().is_some_and(Option::is_some)))
        }
        Engine::SQLite => is_file_locked(&connection.access().database.name),
    }
}

/// The lock as a number.
fn key(name: &str) -> i64 {
    let hash = digest(&SHA256, name.as_bytes());
    hash.as_ref().iter().take(8).fold(0_i64, |key, byte| (key << 8) | i64::from(*byte))
}

/// The file that stands for the lock of a database that is a file.
fn lock_file(database: &str) -> String {
    format!("{database}.gatehouse-lock")
}

fn is_file_locked(database: &str) -> Result<bool, Failure> {
    let path = lock_file(database);
    // What only reads makes no file.
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(not_locked(&path, &error)),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(not_locked(&path, &error)),
    }
}

fn not_locked(path: &str, error: &std::io::Error) -> Failure {
    Failure::new(Class::Configuration, format!("failed to lock {path}: {error}"))
}

/// The lock of a database that is a file: on a file beside it, since SQLite's own locks are of single transactions.
fn file(database: &str) -> Result<Option<Lock>, Failure> {
    let path = lock_file(database);
    let file = File::options().create(true).write(true).truncate(false).open(&path);
    let file = file.map_err(|error| not_locked(&path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(Lock { _file: Some(file) })),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(not_locked(&path, &error)),
    }
}
