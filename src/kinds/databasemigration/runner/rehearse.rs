//! Runs the pending scripts in one transaction, and rolls it back.
//!
//! Guarantees: nothing that ran stays. A script that only runs without a transaction is skipped and reported. Each script
//! has the timeouts and the settings that it would have by itself, and a check may only read. What PostgreSQL defers to the
//! commit of a script runs behind the script.

use super::super::assignment::Engine;
use super::super::result::{Blocked, BlockedReason, Outcome};
use super::carry::{Task, closing, found_nothing, left_as_found, limit_text};
use super::connection::{Connection, RESET};
use super::lock::Patience;
use super::scripts::{Loaded, Way};
use super::{Course, End, Failure, Step};
use crate::kinds::databasemigration::sql::Statement;

/// What follows where the server can look whether its client is still there.
const LOOKS: &str = "; SET LOCAL client_connection_check_interval = '5s'";

/// The constraints that a script may defer, and the constraints among them that are INITIALLY DEFERRED. Several constraints
/// of a schema may have one name: the name counts if all of them are deferrable alike.
const DEFERRABLE: &str = "SELECT pg_catalog.string_agg(name, ', '), \
    pg_catalog.string_agg(name, ', ') FILTER (WHERE is_deferred) \
    FROM (SELECT pg_catalog.format('%I.%I', n.nspname, c.conname) AS name, \
    pg_catalog.bool_and(c.condeferred) AS is_deferred \
    FROM pg_catalog.pg_constraint c JOIN pg_catalog.pg_namespace n ON n.oid = c.connamespace \
    WHERE pg_catalog.has_schema_privilege(n.oid, 'USAGE') GROUP BY n.nspname, c.conname \
    HAVING pg_catalog.bool_and(c.condeferrable) \
    AND pg_catalog.bool_and(c.condeferred) = pg_catalog.bool_or(c.condeferred)) AS alike";

impl Course<'_> {
    pub(super) async fn rehearse(&mut self, patience: Patience<'_>) -> Result<Outcome, End> {
        let (work, _) = self.planned_after_others(patience).await?;
        if let Some(one) = work.pending.iter().find(|one| one.from > 1 || one.is_half_taken_back) {
            return Err(unfit(&self.scripts[one.index].script.id, "some of it has run, and not all"));
        }
        let engine = self.connection.engine();
        let is_postgres = engine == Engine::PostgreSQL;
        let pending = work.pending.iter().map(|one| &self.scripts[one.index]);
        if let Some(loaded) = pending.clone().next().filter(|_| !engine.rolls_back_schema()) {
            return Err(unfit(&loaded.script.id, &format!("{engine} could not roll it back")));
        }
        let (skipped, pending): (Vec<_>, Vec<_>) = pending.partition(|one| one.up.way == Way::Statements);
        self.report_skipped(&skipped);
        let looks =
            "SELECT NULLIF(pg_catalog.current_setting('client_connection_check_interval', true), '0')";
        let looks_after_clients = is_postgres && self.connection.one(looks).await?.is_some();
        self.log.begin(&mut self.connection, None).await?;
        let rehearsed = self.rehearsed(&pending, &skipped, looks_after_clients).await;
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

    /// Reports the scripts that only run without a transaction, which a rehearsal cannot roll back.
    fn report_skipped(&mut self, skipped: &[&Loaded]) {
        let Some(plan) = &mut self.result.plan else { return };
        let warning = |loaded: &&Loaded| {
            format!("script {} runs without a transaction, so that it is not rehearsed", loaded.script.id)
        };
        plan.warnings.extend(skipped.iter().map(warning));
    }

    async fn rehearsed(
        &mut self,
        pending: &[&Loaded],
        skipped: &[&Loaded],
        looks_after_clients: bool,
    ) -> Result<(), End> {
        for (number, loaded) in pending.iter().enumerate() {
            let id = &loaded.script.id;
            self.progress.tell(Step::Begun { id, number: number + 1, of: pending.len() });
            let rehearsed = self.rehearsed_one(loaded, looks_after_clients).await;
            let Err(failure) = rehearsed else { continue };
            if number > 0 && needs_commit(loaded, &failure) {
                let why = format!(
                    "{}; a script ahead of it has to be committed first, and a rehearsal commits none",
                    failure.message
                );
                return Err(unfit(id, &why));
            }
            let place = |id: &str| self.scripts.iter().position(|one| one.script.id == id);
            let before = skipped.iter().rfind(|one| place(&one.script.id) < place(id));
            let failure = failure.of(id);
            return Err(match before {
                Some(before) => behind_skipped(failure, &before.script.id),
                None => failure.into(),
            });
        }
        Ok(())
    }

    async fn rehearsed_one(&mut self, loaded: &Loaded, looks_after_clients: bool) -> Result<(), Failure> {
        let task = Task { loaded, text: &loaded.up, is_down: false, from: 1, is_apart: false, position: 0 };
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
            carrier.connection.control(&closing(task)).await?;
            run_deferred(loaded, carrier.connection).await?;
        }
        left_as_found(transaction.as_deref(), carrier.transaction().await?.as_deref())
    }
}

/// Checks and runs what PostgreSQL defers to the commit, and defers again what is deferred by itself. `ALL` would count for
/// the constraints of later scripts, too: if the script has set it, they are deferred until the end of their script.
async fn run_deferred(loaded: &Loaded, connection: &mut Connection) -> Result<(), Failure> {
    let sets_all = |statement: &Statement| statement.begins(&["SET", "CONSTRAINTS", "ALL"]);
    if loaded.up.statements.iter().any(sets_all) {
        connection.control("SET CONSTRAINTS ALL DEFERRED").await?;
    }
    let mut names = connection.rows(DEFERRABLE, &[]).await?.into_iter().flatten();
    let (all, deferred) = (names.next().flatten(), names.next().flatten());
    if let Some(all) = all {
        connection.control(&format!("SET CONSTRAINTS {all} IMMEDIATE")).await?;
    }
    if let Some(deferred) = deferred {
        connection.control(&format!("SET CONSTRAINTS {deferred} DEFERRED")).await?;
    }
    Ok(())
}

/// Whether a script failed since a script ahead of it, which would be committed, is only rehearsed: it uses a value that was
/// added to an enum.
fn needs_commit(loaded: &Loaded, failure: &Failure) -> bool {
    let adds_value = |statement: &Statement| {
        statement.begins(&["ALTER", "TYPE"]) && statement.has("ADD") && statement.has("VALUE")
    };
    failure.sql_state.as_deref() == Some("55P04") && !loaded.up.statements.iter().any(adds_value)
}

/// A failure that a script may owe to one that was not rehearsed.
fn behind_skipped(failure: Failure, skipped: &str) -> End {
    let message = format!(
        "{}; script {skipped} ahead of it runs without a transaction, and was not rehearsed",
        failure.message
    );
    Failure { message, ..failure }.into()
}

fn unfit(id: &str, why: &str) -> End {
    End::Blocked(Box::new(Blocked {
        reason: BlockedReason::NotRehearsable,
        id: Some(id.to_owned()),
        expected: None,
        found: None,
        message: format!("script {id} cannot be rehearsed: {why}"),
    }))
}
