//! What a run has to do, from the scripts that it was given and the history that it found. Pure.
//!
//! Guarantees: a script that was edited after it was applied, one that the history has and the list has not, and one that
//! would run behind a later one keep everything from running, and so do a script that is to run and cannot, and tables that
//! are there before the first script where no baseline is named. A script whose end is not known is neither taken for applied
//! nor run again, unless its author or a user decided so; a user's decision counts for what an earlier run has left.

mod edits;
mod first_contact;

use std::collections::BTreeMap;

use super::super::assignment::{Assignment, OutOfOrder, Resolution};
use super::super::result::{Blocked, BlockedReason, InDoubt, Plan};
use super::effects::Side;
use super::history::{Row, State};
use super::scripts::{Loaded, Text, not_runnable};
use crate::api::script;

#[cfg(test)]
pub use edits::edited;
use edits::{edited_text, resumed};
pub use first_contact::is_first_contact;
use first_contact::{counted, unfounded};

/// What the history has as the kind of a script while its down script is at work.
pub const DOWN: &str = "Down";

/// What is known of the database besides its history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The sessions, among those that the history has as at work, that the server still has.
    pub alive: Vec<String>,
    /// By the id of a script that was begun and has no end: the side on which the database is of the statement that the
    /// script stands at, if the database shows that.
    pub sides: BTreeMap<String, Side>,
    /// It has tables of others.
    pub has_tables: bool,
    /// A table where scripts make theirs, if the database has tables of others there and no series has a history in it.
    pub older_table: Option<String>,
}

/// What there is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing: what was found contradicts what was asked for.
    Blocked(Box<Blocked>),
    /// Nothing: a script's end is not known.
    InDoubt(InDoubt),
    /// Nothing yet: another session still runs that script.
    Busy(String),
    /// This.
    Work(Work),
}

/// What there is to do, in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Ids of applied scripts whose other checksum is accepted, with it.
    pub repairs: Vec<(String, String)>,
    /// Ids that count as applied from now on.
    pub baseline: Vec<String>,
    /// The script that was in doubt, and what it is now.
    pub settled: Option<Settled>,
    /// What is to run.
    pub pending: Vec<Pending>,
    /// What a reader of the plan should know.
    pub warnings: Vec<String>,
}

/// What became of a script that was in doubt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The script.
    pub id: String,
    /// What it is now.
    pub state: State,
    /// The statement that it stands at.
    pub statement: u32,
    /// The checksum of its down script before that statement, where some of it has run and some has not.
    pub done: Option<String>,
}

/// A script that is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Its place in the list of scripts.
    pub index: usize,
    /// The statement to begin with, from 1 on.
    pub from: u32,
    /// Some of its down script has run: the rest runs first.
    pub is_half_taken_back: bool,
}

/// What there is to do.
#[must_use]
pub fn decide(assignment: &Assignment, scripts: &[Loaded], rows: &[Row], around: &Surroundings) -> Decision {
    let rows_by_id: BTreeMap<_, _> = rows.iter().map(|row| (row.id.as_str(), row)).collect();
    if let Some(row) = rows.iter().find(|row| row.state.is_begun() && is_alive(row, around)) {
        return Decision::Busy(row.id.clone());
    }
    let mut work = Work::default();
    if let Some(blocked) = diverged(scripts, rows) {
        return Decision::Blocked(Box::new(blocked));
    }
    let mut last_applied = None;
    let baseline = counted(assignment, scripts, rows, around);
    for (index, loaded) in scripts.iter().enumerate() {
        let id = &loaded.script.id;
        if baseline.is_some_and(|last| index <= last) {
            work.baseline.push(id.clone());
            continue;
        }
        let Some(row) = rows_by_id.get(id.as_str()) else {
            work.pending.push(Pending { index, from: 1, is_half_taken_back: false });
            continue;
        };
        match judged(assignment, loaded, row, around, &mut work) {
            Ok(Standing::Applied) => last_applied = Some(id),
            Ok(Standing::Pending(from)) => {
                if let Err(blocked) = finds_its_session(assignment, id, &loaded.up, from) {
                    return Decision::Blocked(blocked);
                }
                work.pending.push(Pending { index, from, is_half_taken_back: false });
            }
            Ok(Standing::HalfTakenBack) => {
                let down = loaded.down.as_ref().filter(|_| work.settled.is_none());
                if let Some(Err(blocked)) =
                    down.map(|down| finds_its_session(assignment, id, down, row.statement))
                {
                    return Decision::Blocked(blocked);
                }
                work.pending.push(Pending { index, from: 1, is_half_taken_back: true });
            }
            Err(Stop::Blocked(blocked)) => return Decision::Blocked(blocked),
            Err(Stop::InDoubt(in_doubt)) => return Decision::InDoubt(in_doubt),
        }
        let late = work.pending.first().map(|first| &scripts[first.index].script.id);
        if let (Some(late), Some(applied), OutOfOrder::Reject) = (late, last_applied, assignment.out_of_order)
        {
            // The one that is applied stands behind the one that is not.
            if applied == id {
                return Decision::Blocked(Box::new(out_of_order(late, applied)));
            }
        }
    }
    if let Some(blocked) =
        unfounded(assignment, scripts, rows, around, &mut work).or_else(|| unfit(scripts, &work))
    {
        return Decision::Blocked(Box::new(blocked));
    }
    work.warnings.extend(placeholders(scripts, &work));
    Decision::Work(work)
}

/// The first script that is to run and cannot. A down script that is blank is refused where it is to run.
fn unfit(scripts: &[Loaded], work: &Work) -> Option<Blocked> {
    let refusal = |loaded: &Loaded, is_half_taken_back: bool| {
        let down = loaded.down.as_ref().filter(|down| is_half_taken_back || !down.is_blank());
        let down = down.and_then(|down| down.refusal.clone());
        loaded.up.refusal.clone().or(down).map(|why| not_runnable(&loaded.script.id, why))
    };
    work.pending.iter().find_map(|one| refusal(&scripts[one.index], one.is_half_taken_back))
}

/// Most scripts that one kind of warning is about.
const MOST_WARNINGS: usize = 5;

/// Warnings about what other tools replace in a script.
fn placeholders(scripts: &[Loaded], work: &Work) -> Vec<String> {
    let pending = work.pending.iter().map(|one| &scripts[one.index]);
    let found = pending.filter_map(|loaded| Some((&loaded.script.id, script::placeholder(&loaded.up.all)?)));
    let warning = |(id, line)| {
        format!(
            "script {id} has a placeholder ${{…}} in line {line}: gatehouse replaces none, and runs it as it is"
        )
    };
    found.map(warning).take(MOST_WARNINGS).collect()
}

fn is_alive(row: &Row, around: &Surroundings) -> bool {
    row.session.as_ref().is_some_and(|session| around.alive.contains(session))
}

/// How a script stands whose row there is.
enum Standing {
    Applied,
    Pending(u32),
    HalfTakenBack,
}

/// Why nothing runs.
enum Stop {
    Blocked(Box<Blocked>),
    InDoubt(InDoubt),
}

impl From<Box<Blocked>> for Stop {
    fn from(blocked: Box<Blocked>) -> Self {
        Self::Blocked(blocked)
    }
}

fn judged(
    assignment: &Assignment,
    loaded: &Loaded,
    row: &Row,
    around: &Surroundings,
    work: &mut Work,
) -> Result<Standing, Stop> {
    let id = &row.id;
    if let Some(side) = around.sides.get(id).filter(|_| is_resolved(assignment, row)) {
        work.warnings.push(unneeded(row, *side));
    }
    match row.state {
        State::Applied if is_half_taken_back(row) => {
            resumed_down(loaded, row)?;
            Ok(Standing::HalfTakenBack)
        }
        State::Applied | State::Baseline => {
            if loaded.up.has_checksum(&row.checksum) {
                return Ok(Standing::Applied);
            }
            let found = &loaded.up.checksum;
            if assignment.accept_checksums.get(id) == Some(found) {
                work.repairs.push((id.clone(), found.clone()));
                return Ok(Standing::Applied);
            }
            Err(Stop::Blocked(Box::new(edited_text(&loaded.up, row))))
        }
        State::Reverted => Ok(Standing::Pending(1)),
        State::Failed => {
            if is_resolved(assignment, row) {
                work.warnings.push(unused(row));
            }
            Ok(Standing::Pending(resumed(&loaded.up, row, row.statement)?))
        }
        State::Running | State::Resumable if row.kind == DOWN => taken_back(assignment, loaded, row, work),
        State::Running | State::Resumable => match resolution(assignment, row, around) {
            Some(Resolution::Applied) => {
                let next = row.statement.saturating_add(1);
                let count = loaded.up.statements.len();
                if usize::try_from(row.statement).is_ok_and(|done| done >= count) {
                    if !loaded.up.has_checksum(&row.checksum) {
                        return Err(Stop::Blocked(Box::new(edited_text(&loaded.up, row))));
                    }
                    let statement = row.statement;
                    work.settled =
                        Some(Settled { id: id.clone(), state: State::Applied, statement, done: None });
                    return Ok(Standing::Applied);
                }
                resumed(&loaded.up, row, row.statement)?;
                if !loaded.up.has_checksum(&row.checksum) {
                    return Err(Stop::Blocked(Box::new(edited_text(&loaded.up, row))));
                }
                Ok(Standing::Pending(next))
            }
            Some(Resolution::Retry) => Ok(Standing::Pending(resumed(&loaded.up, row, row.statement)?)),
            None if loaded.script.idempotent => Ok(Standing::Pending(1)),
            None => Err(Stop::InDoubt(left_in_doubt(row))),
        },
    }
}

fn is_resolved(assignment: &Assignment, row: &Row) -> bool {
    assignment.resolve.as_ref().is_some_and(|resolve| resolve.id == row.id)
}

/// An answer about a script of which the database shows how far it is.
fn unneeded(row: &Row, side: Side) -> String {
    let has = match side {
        Side::Before => "has not taken effect, and runs",
        Side::Either => "may run again, and runs",
        Side::After => "has taken effect, and does not run again",
    };
    format!(
        "the answer about script {} counts for nothing: the database shows that its statement {} {has}",
        row.id, row.statement
    )
}

/// How the statement ended that a script stands at: as the database shows, or else as a user says.
fn resolution(assignment: &Assignment, row: &Row, around: &Surroundings) -> Option<Resolution> {
    match around.sides.get(&row.id) {
        Some(Side::Before | Side::Either) => Some(Resolution::Retry),
        Some(Side::After) => Some(Resolution::Applied),
        None => answer(assignment, row),
    }
}

/// An answer about a script that is not in doubt.
fn unused(row: &Row) -> String {
    format!(
        "the answer about script {} counts for nothing: the script is not in doubt and goes on with statement {}; if you have \
         already done what that statement does, take it out of the script",
        row.id, row.statement
    )
}

/// A user's decision about the script of a row. Not where this run has left it so, or a later one of the same object:
/// the person has looked at what was before.
pub fn answer(assignment: &Assignment, row: &Row) -> Option<Resolution> {
    let resolve = assignment.resolve.as_ref().filter(|resolve| resolve.id == row.id)?;
    let number = |run: &str| {
        let uid = &assignment.object.as_ref()?.uid;
        run.strip_prefix(uid.as_str())?.strip_prefix('.')?.parse::<u64>().ok()
    };
    let is_since = number(&row.run).zip(number(&assignment.run.uid)).is_some_and(|(left, own)| left >= own);
    (!is_since).then_some(resolve.resolution)
}

/// The doubt that a row is.
#[must_use]
pub fn left_in_doubt(row: &Row) -> InDoubt {
    InDoubt { id: row.id.clone(), statement: row.statement, run: Some(row.run.clone()) }
}

/// Whether some of the script has run, or may have, and some has not: what it rests on is not taken back beneath it. What
/// failed in a transaction has done nothing, and neither has a script whose first statement was refused.
#[must_use]
pub fn is_half_applied(row: &Row) -> bool {
    match row.state {
        State::Failed => row.done.is_some(),
        State::Running | State::Resumable => row.kind != DOWN,
        State::Applied | State::Baseline | State::Reverted => false,
    }
}

/// Whether some of the down script has run, and some has not.
#[must_use]
pub fn is_half_taken_back(row: &Row) -> bool {
    row.state == State::Applied && row.kind == DOWN && row.done.is_some()
}

/// How a script stands whose down script was at work.
fn taken_back(
    assignment: &Assignment,
    loaded: &Loaded,
    row: &Row,
    work: &mut Work,
) -> Result<Standing, Stop> {
    let id = row.id.clone();
    let next = match answer(assignment, row) {
        Some(Resolution::Applied) => row.statement.saturating_add(1),
        Some(Resolution::Retry) => row.statement,
        None => return Err(Stop::InDoubt(left_in_doubt(row))),
    };
    if next == 1 {
        work.settled = Some(Settled { id, state: State::Applied, statement: 1, done: None });
        return Ok(Standing::Applied);
    }
    let down = resumed_down(loaded, row)?;
    let count = down.statements.len();
    if usize::try_from(next).is_ok_and(|next| next > count) {
        work.settled = Some(Settled { id, state: State::Reverted, statement: row.statement, done: None });
        return Ok(Standing::Pending(1));
    }
    let done = down.done_before(next);
    work.settled = Some(Settled { id, state: State::Applied, statement: next, done });
    Ok(Standing::HalfTakenBack)
}

/// The down script, of which nothing that has run was edited.
fn resumed_down<'a>(loaded: &'a Loaded, row: &Row) -> Result<&'a Text, Box<Blocked>> {
    let down = loaded.down.as_ref().ok_or_else(|| Box::new(without_down(&row.id)))?;
    down.runs(&row.id)?;
    resumed(down, row, row.statement)?;
    Ok(down)
}

/// A script is to be taken back that cannot be.
#[must_use]
pub fn without_down(id: &str) -> Blocked {
    Blocked {
        reason: BlockedReason::NoDownScript,
        id: Some(id.to_owned()),
        expected: None,
        found: None,
        message: format!("script {id} cannot be taken back: it has no down script"),
    }
}

/// Whether the session in which a text goes on has all that the session had in which it was begun.
pub fn finds_its_session(
    assignment: &Assignment,
    id: &str,
    text: &Text,
    from: u32,
) -> Result<(), Box<Blocked>> {
    let engine = assignment.database.engine;
    if engine.rolls_back_schema() || from == 1 {
        return Ok(());
    }
    text.set_again(engine, from).map(|_| ()).map_err(|why| {
        let message = format!(
            "script {id} cannot go on with its statement {from} in another session: {why}. Write the value into the script: SET \
             it before it is used, at statement {from} or behind; or move what has not run into a script of its own"
        );
        Box::new(Blocked {
            reason: BlockedReason::NotRunnable,
            id: Some(id.to_owned()),
            expected: None,
            found: None,
            message,
        })
    })
}

/// The statement at which the down script of an applied script begins.
pub fn begin_down(down: &Text, row: &Row) -> Result<u32, Box<Blocked>> {
    down.runs(&row.id)?;
    if is_half_taken_back(row) { resumed(down, row, row.statement) } else { Ok(1) }
}

fn diverged(scripts: &[Loaded], rows: &[Row]) -> Option<Blocked> {
    let is_known = |row: &&Row| scripts.iter().any(|loaded| loaded.script.id == row.id);
    let counts = |row: &&Row| row.state.is_applied() || row.state.is_begun();
    let row = rows.iter().filter(counts).find(|row| !is_known(row))?;
    Some(unknown(&row.id, &row.checksum))
}

/// The history has a script that there is no more.
#[must_use]
pub fn unknown(id: &str, checksum: &str) -> Blocked {
    Blocked {
        reason: BlockedReason::HistoryDiverged,
        id: Some(id.to_owned()),
        expected: Some(checksum.to_owned()),
        found: None,
        message: format!("the history has script {id} ({checksum}), which is none of the scripts"),
    }
}

fn out_of_order(late: &str, applied: &str) -> Blocked {
    Blocked {
        reason: BlockedReason::OutOfOrder,
        id: Some(late.to_owned()),
        expected: None,
        found: Some(applied.to_owned()),
        message: format!(
            "script {late} is to run although {applied}, which stands behind it, has: move it to the end, or allow \
             outOfOrder"
        ),
    }
}

/// The plan that the work is.
#[must_use]
pub fn plan(hash: String, scripts: &[Loaded], work: &Work) -> Plan {
    let pending: Vec<_> = work.pending.iter().map(|one| scripts[one.index].script.id.clone()).collect();
    let mut secret_checksums = Vec::new();
    for loaded in scripts {
        let (script, id) = (&loaded.script, &loaded.script.id);
        if script.up.secret {
            secret_checksums.push((id.clone(), loaded.up.checksum.clone()));
        }
        if let Some(down) =
            loaded.down.as_ref().filter(|_| script.down.as_ref().is_some_and(|down| down.secret))
        {
            secret_checksums.push((format!("{id}~"), down.checksum.clone()));
        }
    }
    Plan {
        hash,
        pending_count: u32::try_from(pending.len()).unwrap_or(u32::MAX),
        pending,
        warnings: work.warnings.clone(),
        secret_checksums,
    }
}

#[cfg(test)]
mod tests;
