//! Runs the pending scripts in one transaction, and rolls it back.
//!
//! Guarantees: nothing that ran stays. What could not be rolled back, and a text in which an end of the transaction would
//! not be seen, is refused before anything runs. Each script has the timeouts and the settings that it would have by itself,
//! and a check may only read.

use super::super::assignment::Engine;
use super::super::result::{Blocked, BlockedReason, Class, Outcome};
use super::carry::{Task, found_nothing, limit_text};
use super::connection::RESET;
use super::lock::Patience;
use super::scripts::{Loaded, Way};
use super::{Course, End, Failure, Step};

/// What follows where the server can look whether its client is still there.
const LOOKS: &str = "; SET LOCAL client_connection_check_interval = '5s'";

impl Course<'_> {
    pub(super) async fn rehearse(&mut self, patience: Patience<'_>) -> Result<Outcome, End> {
        let (work, _) = self.planned_after_others(patience).await?;
        let pending: Vec<_> = work.pending.iter().map(|one| &self.scripts[one.index]).collect();
        if let Some(one) = work.pending.iter().find(|one| one.from > 1 || one.is_half_taken_back) {
            return Err(unfit(&self.scripts[one.index], "some of it has run, and not all"));
        }
        let engine = self.connection.engine();
        let is_postgres = engine == Engine::PostgreSQL;
        for loaded in &pending {
            if loaded.up.way == Way::Statements || !engine.rolls_back_schema() {
                return Err(unfit(loaded, &format!("{engine} could not roll it back")));
            }
            if loaded.up.statements.is_none() {
                let why = "it cannot be split into statements, so that a COMMIT in it would not be seen";
                return Err(unfit(loaded, why));
            }
        }
        let looks =
            "SELECT NULLIF(pg_catalog.current_setting('client_connection_check_interval', true), '0')";
        let looks_after_clients = is_postgres && self.connection.one(looks).await?.is_some();
        self.log.begin(&mut self.connection, None).await?;
        let rehearsed = self.rehearsed(&pending, looks_after_clients).await;
        let ended = self.end_rehearsal(engine).await;
        // SQLite rolls back by itself what is interrupted or finds the disk full, and then has nothing to roll back:
        // what is reported is how the script failed.
        rehearsed?;
        ended?;
        Ok(Outcome::Rehearsed)
    }

    async fn end_rehearsal(&mut self, engine: Engine) -> Result<(), Failure> {
        let rolled_back = self.connection.control("ROLLBACK").await;
        if engine == Engine::SQLite {
            self.connection.control("PRAGMA query_only = 0").await?;
        }
        rolled_back
    }

    async fn rehearsed(&mut self, pending: &[&Loaded], looks_after_clients: bool) -> Result<(), End> {
        for (number, loaded) in pending.iter().enumerate() {
            let id = &loaded.script.id;
            self.progress.tell(Step::Begun { id, number: number + 1, of: pending.len() });
            self.rehearsed_one(loaded, looks_after_clients).await.map_err(|failure| failure.of(id))?;
        }
        Ok(())
    }

    async fn rehearsed_one(&mut self, loaded: &Loaded, looks_after_clients: bool) -> Result<(), Failure> {
        let task = Task { loaded, text: &loaded.up, is_down: false, from: 1, position: 0 };
        let is_check = loaded.up.way == Way::Check;
        let is_postgres = self.connection.engine() == Engine::PostgreSQL;
        let mut carrier = self.carrier();
        carrier.limit_locks(task).await?;
        if is_postgres {
            // What the script before has set does not reach this one, as it would not if both were applied.
            let lock = limit_text(loaded.script.timeouts.lock());
            let looks = if looks_after_clients { LOOKS } else { "" };
            let reset = format!("{RESET}; SET LOCAL lock_timeout = '{lock}'{looks}");
            carrier.connection.control(&reset).await?;
        }
        let transaction = carrier.transaction().await?;
        if is_check {
            // The transaction may write again behind the check: only what is within the savepoint may not.
            let opening = if is_postgres {
                "SAVEPOINT gatehouse_check; SET LOCAL transaction_read_only = on"
            } else {
                "PRAGMA query_only = 1"
            };
            carrier.connection.control(opening).await?;
        }
        let rows = carrier.run_all(task).await?;
        if is_check {
            found_nothing(rows)?;
            let closing = if is_postgres {
                "ROLLBACK TO SAVEPOINT gatehouse_check; RELEASE SAVEPOINT gatehouse_check"
            } else {
                "PRAGMA query_only = 0"
            };
            carrier.connection.control(closing).await?;
        }
        if is_postgres {
            carrier.connection.control("RESET SESSION AUTHORIZATION; RESET ROLE").await?;
        }
        if carrier.transaction().await? != transaction {
            let message = "the script ended the transaction that it was rehearsed in";
            return Err(Failure::new(Class::Configuration, message));
        }
        Ok(())
    }
}

fn unfit(loaded: &Loaded, why: &str) -> End {
    let id = &loaded.script.id;
    End::Blocked(Box::new(Blocked {
        reason: BlockedReason::NotRehearsable,
        id: Some(id.clone()),
        expected: None,
        found: None,
        message: format!("script {id} cannot be rehearsed: {why}"),
    }))
}
