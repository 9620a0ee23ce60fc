//! Resets what a script leaves in its session.
//!
//! Guarantees: the next script, and what gatehouse itself writes, find a session as the server gives it to any client. MySQL
//! and MariaDB take nothing back by a statement (variables, the database that USE turned to, temporary tables), so that there
//! another session takes the place of one in which a script has run. The lock is never free in between. Where no other session
//! is to be had, the one that is there keeps its lock; where the lock could not be passed on, no session is reset any more, so
//! that no script follows. Of PostgreSQL, all is taken back by statements but the last values of sequences, and the locks by
//! name, of which one is ours. A session of SQLite is opened again.

use sqlx::Connection as _;

use super::super::super::assignment::Engine;
use super::super::super::result::Class;
use super::super::access::Wire;
use super::super::failure::Failure;
use super::Connection;
use super::user_lock::{Held, pass};

/// How a session of PostgreSQL begins, and each script in it. All of it may stand in a transaction, as that of a rehearsal
/// is, and on a server that only reads.
pub(in super::super) const RESET: &str = "RESET SESSION AUTHORIZATION; RESET ROLE; RESET ALL; \
    CLOSE ALL; UNLISTEN *; DEALLOCATE ALL; DISCARD TEMP; \
    SET client_min_messages = error; \
    SET tcp_keepalives_idle = 60; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 6";

impl Connection {
    /// Takes back what a script set for the session, and sets what gatehouse needs.
    pub(in super::super) async fn reset(&mut self) -> Result<(), Failure> {
        if matches!(self.lock, Held::Lost) {
            return Err(Failure::new(Class::Busy, "the lock was lost on the way to another session"));
        }
        match self.engine() {
            Engine::PostgreSQL => self.set_up().await,
            Engine::SQLite if self.is_used => self.reopen().await,
            Engine::MySQL | Engine::MariaDB if self.is_used => self.renew().await,
            Engine::MySQL | Engine::MariaDB | Engine::SQLite => Ok(()),
        }
    }

    /// Sets what gatehouse needs.
    pub(super) async fn set_up(&mut self) -> Result<(), Failure> {
        if self.engine() != Engine::PostgreSQL {
            return Ok(());
        }
        // Notices may quote rows, and are not read. What stands between forgets a connection on which nothing is sent
        // while a statement takes long: the server sends what keeps it.
        self.control(RESET).await?;
        // A server that knows it ends what runs for a client that is gone: from PostgreSQL 14 on, and not on every
        // system.
        let known = "SELECT name FROM pg_catalog.pg_settings WHERE name = 'client_connection_check_interval'";
        if self.one(known).await?.is_some() {
            let set = self.control("SET client_connection_check_interval = '5s'").await;
            if let Err(failure) = set.as_ref().map_err(|failure| failure.message.as_str()) {
                tracing::debug!(failure, "the server does not look after clients that are gone");
            }
        }
        Ok(())
    }

    /// Opens the file again: temporary tables and what PRAGMA set go with the session. The lock of the series is on another
    /// file.
    async fn reopen(&mut self) -> Result<(), Failure> {
        let next = Self::to(&self.access).await?;
        let Self { wire, .. } = std::mem::replace(self, next);
        if let Wire::Sqlite(sqlite) = wire {
            sqlite.close().await.map_err(|error| self.access.secrets().failure(&error))?;
        }
        Ok(())
    }

    /// Puts another session in the place of this one. Where none is to be had, this one stays, with its lock. Where the
    /// lock cannot be passed on, this one stays without it.
    async fn renew(&mut self) -> Result<(), Failure> {
        let mut next = Self::to(&self.access).await?;
        // While it is passed on, neither session has all of it.
        let lock = std::mem::replace(&mut self.lock, Held::Lost);
        if let Held::Both(lock_names) = &lock {
            pass(lock_names, self, &mut next).await?;
        }
        next.lock = lock;
        *self = next;
        Ok(())
    }
}
