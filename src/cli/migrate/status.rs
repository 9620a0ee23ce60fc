//! `gatehouse migrate status`: what is applied, by the history in the database.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::super::ending::Failure;
use super::super::output;
use super::run::{done, not_begun, run_uid, told};
use super::target::{Reach, Target, application, assignment, is_there};
use crate::kinds::databasemigration::assignment::{Assignment, Mode, OnFailure, OutOfOrder, Run, VERSION};
use crate::kinds::databasemigration::result::{Outcome, RunResult};
use crate::kinds::databasemigration::runner::{Folders, Request};

/// The options of `gatehouse migrate status`.
#[derive(Args, Debug)]
pub struct Options {
    /// File that says which database and which series. Without it, the other options say so.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["engine", "database", "host"])]
    assignment: Option<PathBuf>,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    reach: Reach,
    /// File for the report. Absent: /dev/termination-log, where there is one.
    #[arg(long, value_name = "FILE")]
    termination_log: Option<PathBuf>,
}

/// Says what is applied: as a table on a terminal, as one line of JSON elsewhere.
///
/// # Errors
/// There is no runtime for it. The report and the exit code say all else.
pub fn run(options: &Options) -> Result<ExitCode, Failure> {
    let log = options.termination_log.as_deref();
    let request = match options.request() {
        Ok(request) => request,
        Err(message) => return not_begun(options.assignment.as_deref(), message, log),
    };
    let result = done(&request)?;
    if !stdout().is_terminal() {
        return told(&result, log);
    }
    output::print(&table(&result))?;
    if let Some(error) = &result.last_error {
        output::error(&error.message);
    }
    Ok(ExitCode::from(result.code()))
}

impl Options {
    fn request(&self) -> Result<Request, String> {
        let assignment = match &self.assignment {
            Some(path) => Assignment { mode: Mode::Status, ..assignment(path)? },
            None => Assignment {
                version: VERSION,
                database: self.target.database()?,
                history: self.target.history(),
                object: None,
                run: Run { uid: run_uid(), attempt: 1 },
                mode: Mode::Status,
                scripts: Vec::new(),
                baseline: None,
                existing_tables: None,
                out_of_order: OutOfOrder::default(),
                on_failure: OnFailure::default(),
                accept_checksums: BTreeMap::new(),
                resolve: None,
                lock_wait: None,
                approved_plan_hash: None,
            }
            .checked()?,
        };
        is_there(&assignment)?;
        let access = self.reach.access(&assignment.database, &application(&assignment))?;
        Ok(Request { assignment, folders: Folders::default(), access })
    }
}

fn table(result: &RunResult) -> String {
    let longest = result.applied.iter().map(|applied| applied.id.len()).max().unwrap_or_default().max(2);
    let mut lines = Vec::new();
    if !result.applied.is_empty() {
        lines.push(format!("{:longest$}  {:24}  {:>9}  CHECKSUM", "ID", "APPLIED", "TOOK"));
    }
    for applied in &result.applied {
        let took = applied.duration_ms.map_or_else(|| "baseline".to_owned(), |took| format!("{took} ms"));
        let [at, checksum] =
            [&applied.applied_at, &applied.checksum].map(|text| text.as_deref().unwrap_or_default());
        let checksum = checksum.get(..19).unwrap_or(checksum);
        lines.push(format!("{:longest$}  {at:24}  {took:>9}  {checksum}", applied.id));
    }
    if result.outcome != Outcome::Failed {
        lines.push(format!("{} applied", result.applied_count.unwrap_or_default()));
    }
    if let Some(in_doubt) = &result.in_doubt {
        lines.push(format!("in doubt: {}, statement {}", in_doubt.id, in_doubt.statement));
    }
    lines.join("\n") + "\n"
}
