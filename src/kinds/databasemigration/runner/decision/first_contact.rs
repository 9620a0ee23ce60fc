//! What counts where a series meets a database that has tables already. Pure.
//!
//! Guarantees: on a database that is older than its scripts nothing runs unless a baseline is named, or that there is none.
//! A baseline that is named and does not count is refused or, where an object has it for all of its databases, reported.

use super::super::super::assignment::{Assignment, ExistingTables};
use super::super::super::result::{Blocked, BlockedReason};
use super::super::history::{Row, State};
use super::super::scripts::Loaded;
use super::{Surroundings, Work, is_half_applied};
use crate::kinds::databasemigration::sql::Statement;

/// Whether no script of the series has changed the database: none has run, or those that did failed and left nothing, as the
/// first ones do where a database has their tables already and no baseline was named.
#[must_use]
pub fn is_first_contact(scripts: &[Loaded], rows: &[Row]) -> bool {
    let has_changed = |row: &Row| is_half_applied(row) && !has_only_set(scripts, row);
    rows.iter().all(|row| row.state == State::Failed && !has_changed(row))
}

/// Whether all that ran of a script before it failed is SET and the like, which ended with its session.
fn has_only_set(scripts: &[Loaded], row: &Row) -> bool {
    let Some(loaded) = scripts.iter().find(|loaded| loaded.script.id == row.id) else { return false };
    let count = usize::try_from(row.statement).unwrap_or_default().saturating_sub(1);
    let ran = loaded.up.statements.get(..count);
    let is_unedited = row.done.is_some() && row.done == loaded.up.done_before(row.statement);
    is_unedited && ran.is_some_and(|ran| ran.iter().all(Statement::sets_session))
}

/// The place of the last script that counts as applied by the baseline.
pub(super) fn counted(
    assignment: &Assignment,
    scripts: &[Loaded],
    rows: &[Row],
    around: &Surroundings,
) -> Option<usize> {
    let counts = around.has_tables && is_first_contact(scripts, rows);
    place(assignment, scripts).filter(|_| counts)
}

fn place(assignment: &Assignment, scripts: &[Loaded]) -> Option<usize> {
    let baseline = assignment.baseline.as_ref()?;
    scripts.iter().position(|loaded| loaded.script.id == *baseline)
}

/// Why pending scripts may not run on what is there; adds what a reader of the plan should know instead.
pub(super) fn unfounded(
    assignment: &Assignment,
    scripts: &[Loaded],
    rows: &[Row],
    around: &Surroundings,
    work: &mut Work,
) -> Option<Blocked> {
    if is_first_contact(scripts, rows) {
        let is_ignored = assignment.existing_tables == Some(ExistingTables::Ignore);
        let table = around.older_table.as_ref().filter(|_| !is_ignored);
        if assignment.baseline.is_some() {
            return None;
        }
        if table.is_none() && around.has_tables {
            work.warnings.push(
                "the database has tables and no history of this series: all scripts run, or name a baseline"
                    .to_owned(),
            );
        }
        return table.map(|table| older(table));
    }
    let last = place(assignment, scripts)?;
    let pending = work.pending.iter().find(|one| one.index <= last)?;
    let ran = rows.iter().find(|row| row.state != State::Failed || is_half_applied(row))?;
    let blocked = late(&scripts[last].script.id, &scripts[pending.index].script.id, ran);
    if assignment.object.is_none() {
        return Some(blocked);
    }
    work.warnings.push(blocked.message);
    None
}

/// The database is older than its scripts.
fn older(table: &str) -> Blocked {
    Blocked {
        reason: BlockedReason::BaselineRequired,
        id: None,
        expected: None,
        found: Some(table.to_owned()),
        message: format!(
            "the database has tables, {table} among them, and no history: name the last script that it has already \
             (--baseline ID, in an object baseline), or have all scripts run on it (--no-baseline, in an object \
             existingTables: Ignore)"
        ),
    }
}

/// A baseline is named after the first contact.
fn late(baseline: &str, pending: &str, ran: &Row) -> Blocked {
    Blocked {
        reason: BlockedReason::BaselineIgnored,
        id: Some(pending.to_owned()),
        expected: None,
        found: Some(ran.id.clone()),
        message: format!(
            "the baseline {baseline} does not count any more, and script {pending} is to run: a baseline counts before any \
             script has run, and {} has; where the database has what {pending} makes, delete the rows of the series from \
             the history and run again, otherwise leave the baseline out",
            ran.id
        ),
    }
}
