//! What a script leaves in its session, taken back.
//!
//! Guarantees: the next script, and what gatehouse itself writes, find a session as the server gives it to any client. MySQL
//! and MariaDB take nothing back by a statement (variables, the database that USE turned to, temporary tables), so that there
//! another session takes the place of one in which a script has run. The lock is never free in between.

use super::super::super::assignment::Engine;
use super::super::failure::Failure;
use super::{Connection, user_lock};

/// How a session of PostgreSQL begins, and each script in it.
pub(in super::super) const ANEW: &str = "RESET SESSION AUTHORIZATION; RESET ROLE; RESET ALL; \
    SET client_min_messages = error; \
    SET tcp_keepalives_idle = 60; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 6";

impl Connection {
    /// Takes back what a script set for the session, and sets what gatehouse needs.
    pub(in super::super) async fn reset(&mut self) -> Result<(), Failure> {
        match self.engine() {
            Engine::PostgreSQL => self.set_up().await,
            Engine::MySQL | Engine::MariaDB if self.is_used => self.renew().await,
            Engine::MySQL | Engine::MariaDB | Engine::SQLite => Ok(()),
        }
    }

    /// Sets what gatehouse needs.
    pub(super) async fn set_up(&mut self) -> Result<(), Failure> {
        if self.engine() != Engine::PostgreSQL {
            return Ok(());
        }
        // Notices may quote rows, and nobody reads them. What stands between forgets a connection on which nothing is sent
        // while a statement takes long: the server sends what keeps it.
        self.control(ANEW).await?;
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

    /// Puts another session in the place of this one. Where that is not to be had, this one stays.
    async fn renew(&mut self) -> Result<(), Failure> {
        let mut next = Self::to(&self.access).await?;
        if let Some(halves) = self.lock.clone() {
            user_lock::pass(&halves, self, &mut next).await?;
            next.lock = Some(halves);
        }
        *self = next;
        Ok(())
    }
}
