//! `gatehouse migrate run`: what the Jobs of a DatabaseMigration run.
//!
//! Guarantees: the result is one line of JSON on standard output and in the termination message, and the exit code.
//! When the process is asked to end, the statement at work is ended on the server before the process is.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use tokio_util::sync::CancellationToken;

use super::super::duration;
use super::super::ending::{Failure, USAGE};
use super::super::output;
use super::folder::{Found, Listing, Scripts, list};
use super::progress::Teller;
use super::target::{Reach, Target, application, assignment, id, is_there};
use crate::api::checksum::is_checksum;
use crate::api::duration::Duration as Text;
use crate::kinds::databasemigration::assignment::{
    Assignment, Engine, ExistingTables, Mode, OnFailure, OutOfOrder, Resolution, Resolve, Run, Script,
    ScriptKind, Source, Timeouts, Transaction, VERSION,
};
use crate::kinds::databasemigration::result::{Class, LastError, Outcome, RunResult};
use crate::kinds::databasemigration::runner::{self, Folders, Request};
use crate::runtime::clock;
use crate::runtime::signals::Signals;

/// What a kubelet reads, where it has put it there.
const TERMINATION_LOG: &str = "/dev/termination-log";

/// The options of `gatehouse migrate run`.
#[derive(Args, Debug)]
pub struct Options {
    /// File that says what to do. Without it, the other options say so.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["engine", "database", "host", "mode", "baseline", "no_baseline", "out_of_order", "accept_checksum", "resolve"])]
    assignment: Option<PathBuf>,
    /// Folder of the scripts. Without an assignment: its files NAME.sql or NAME.up.sql run in the order of the numbers that
    /// their names begin with, and NAME.down.sql takes NAME back.
    #[arg(long, value_name = "FOLDER")]
    scripts: PathBuf,
    /// Folder of the scripts that come from Secrets.
    #[arg(long, value_name = "FOLDER", requires = "assignment")]
    secret_scripts: Option<PathBuf>,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    reach: Reach,
    /// What to do.
    #[arg(long, value_enum, default_value = "Apply")]
    mode: Mode,
    /// On first contact with a database that has tables: scripts up to this one count as applied.
    #[arg(long, value_name = "ID", value_parser = id)]
    baseline: Option<String>,
    /// On first contact with a database that has tables: all scripts run. Without this option and --baseline, none does.
    #[arg(long, conflicts_with = "baseline")]
    no_baseline: bool,
    /// Whether a script may run although a later one has.
    #[arg(long, value_enum, default_value = "Reject")]
    out_of_order: OutOfOrder,
    /// An applied script that was edited since, and the checksum of its text as it is now; may be there several times. The
    /// history has that checksum from then on, and nothing else changes.
    #[arg(long, value_name = "ID=CHECKSUM", value_parser = accepted)]
    accept_checksum: Vec<(String, String)>,
    /// A script that runs outside of a transaction; may be there several times.
    #[arg(long, value_name = "ID", value_parser = id)]
    without_transaction: Vec<String>,
    /// What became of a script in doubt.
    #[arg(long, value_name = "ID=applied|retry", value_parser = resolve)]
    resolve: Option<Resolve>,
    /// How long one statement may take; 0 for any time.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = time)]
    statement_timeout: Text,
    /// How long one statement may wait for a lock; 0 for any time.
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = time)]
    lock_timeout: Text,
    /// How long to wait for another run, and to try again what met a lock.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration::parse)]
    lock_wait: Duration,
    /// File for the report. Absent: /dev/termination-log, where there is one.
    #[arg(long, value_name = "FILE")]
    termination_log: Option<PathBuf>,
}

/// Runs scripts.
///
/// # Errors
/// There is no runtime for it. The report and the exit code say all else.
pub fn run(options: &Options) -> Result<ExitCode, Failure> {
    let log = options.termination_log.as_deref();
    match options.request() {
        Ok(request) => told(&done(&request)?, log),
        Err(message) => not_begun(options.assignment.as_deref(), message, log),
    }
}

/// Says that nothing was begun. Who runs an assignment reads the report; a person at a command line reads the message.
pub(super) fn not_begun(
    assignment: Option<&Path>,
    message: String,
    termination_log: Option<&Path>,
) -> Result<ExitCode, Failure> {
    let Some(assignment) = assignment else {
        output::error(message);
        return Ok(ExitCode::from(USAGE));
    };
    let mut result = RunResult::of(&run_of(assignment), Outcome::Failed);
    let class = Class::Configuration;
    result.last_error = Some(LastError { id: None, statement: None, sql_state: None, class, message });
    told(&result, termination_log)
}

/// The run that an assignment is of, also where it cannot be carried out.
fn run_of(assignment: &Path) -> String {
    let text = fs::read_to_string(assignment).unwrap_or_default();
    let read: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    read["run"]["uid"].as_str().unwrap_or_default().to_owned()
}

/// Reports how a run ended.
pub(super) fn told(result: &RunResult, termination_log: Option<&Path>) -> Result<ExitCode, Failure> {
    let line = result.line();
    leave(termination_log, &line);
    output::print(&format!("{line}\n"))?;
    for warning in result.plan.iter().flat_map(|plan| &plan.warnings) {
        output::warning(warning);
    }
    for message in messages(result) {
        output::error(message);
    }
    Ok(ExitCode::from(result.code()))
}

/// What went wrong, for people.
fn messages(result: &RunResult) -> Vec<String> {
    let mut messages = Vec::new();
    if let Some(error) = &result.last_error {
        let script = error.id.as_ref().map(|id| format!("script {id}: ")).unwrap_or_default();
        let statement = error.statement.map(|number| format!("statement {number}: ")).unwrap_or_default();
        let state = error.sql_state.as_ref().map(|state| format!(" (SQLSTATE {state})")).unwrap_or_default();
        messages.push(format!("{script}{statement}{}{state}", error.message));
    }
    messages.extend(result.blocked.iter().map(|blocked| blocked.message.clone()));
    if let Some(in_doubt) = &result.in_doubt {
        messages.push(format!(
            "script {0}: nothing says whether its statement {1} was applied: look, and resolve it by {0}=applied or \
             {0}=retry",
            in_doubt.id, in_doubt.statement
        ));
    }
    messages
}

/// Does what is asked; a signal ends it in good order.
pub(super) fn done(request: &Request) -> Result<RunResult, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let teller = Teller::new();
    let result = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let stop = CancellationToken::new();
        let mut running = pin!(runner::run(request, &stop, &teller));
        loop {
            tokio::select! {
                result = &mut running => return Ok::<_, Failure>(result),
                signal = signals.next() => {
                    tracing::warn!(signal, "the process is asked to end: ending the statement first");
                    stop.cancel();
                }
            }
        }
    });
    teller.end();
    result
}

fn leave(termination_log: Option<&Path>, line: &str) {
    let path = termination_log.unwrap_or_else(|| Path::new(TERMINATION_LOG));
    if termination_log.is_none() && !path.exists() {
        return;
    }
    if let Err(error) = fs::write(path, line) {
        // The kubelet takes the end of the log instead.
        tracing::warn!(file = %path.display(), %error, "failed to write the termination message");
    }
}

impl Options {
    fn request(&self) -> Result<Request, String> {
        let assignment = match &self.assignment {
            Some(path) => assignment(path)?,
            None => self.assigned()?,
        };
        is_there(&assignment)?;
        let access = self.reach.access(&assignment.database, &application(&assignment))?;
        let folders = Folders { scripts: self.scripts.clone(), secrets: self.secret_scripts.clone() };
        Ok(Request { assignment, folders, access })
    }

    /// The assignment that the command line is.
    fn assigned(&self) -> Result<Assignment, String> {
        let database = self.target.database()?;
        let scripts = self.found(database.engine)?;
        let accept_checksums = self.accepted(&scripts)?;
        let assignment = Assignment {
            version: VERSION,
            database,
            history: self.target.history(),
            object: None,
            run: Run { uid: run_uid(), attempt: 1 },
            mode: self.mode,
            scripts,
            baseline: self.baseline.clone(),
            existing_tables: self.no_baseline.then_some(ExistingTables::Ignore),
            out_of_order: self.out_of_order,
            on_failure: OnFailure::default(),
            accept_checksums,
            resolve: self.resolve.clone(),
            lock_wait: Some(Text(format!("{}ms", self.lock_wait.as_millis()))),
            approved_plan_hash: None,
        };
        assignment.checked()
    }

    /// The edited scripts that are accepted, with their checksums.
    fn accepted(&self, scripts: &[Script]) -> Result<BTreeMap<String, String>, String> {
        let mut accepted = BTreeMap::new();
        for (id, checksum) in &self.accept_checksum {
            if !scripts.iter().any(|script| script.id == *id) {
                return Err(format!("--accept-checksum: {id:?} is none of the scripts"));
            }
            if accepted.insert(id.clone(), checksum.clone()).is_some() {
                return Err(format!("--accept-checksum: {id:?} is there twice"));
            }
        }
        Ok(accepted)
    }

    /// The scripts of the folder.
    fn found(&self, engine: Engine) -> Result<Vec<Script>, String> {
        let scripts = Listing::of(&self.scripts)?.scripts(engine);
        let Scripts { found, skipped } =
            scripts.map_err(|why| format!("--scripts {}: {why}", self.scripts.display()))?;
        if !skipped.is_empty() {
            tracing::warn!(skipped = list(&skipped), "files and folders that are no scripts are left out");
        }
        let scripts: Vec<_> = found.into_iter().map(|found| self.script(found)).collect();
        let unknown = |id: &&String| !scripts.iter().any(|script| script.id == **id);
        if let Some(id) = self.without_transaction.iter().find(unknown) {
            return Err(format!("--without-transaction: {id:?} is none of the scripts"));
        }
        Ok(scripts)
    }

    fn script(&self, Found { id, up, down }: Found) -> Script {
        let file = |file: String| Source { file, secret: false };
        let is_without = self.without_transaction.contains(&id);
        Script {
            up: file(up),
            down: down.map(file),
            kind: ScriptKind::default(),
            checksum: None,
            planned: None,
            planned_down: None,
            transaction: if is_without { Transaction::None } else { Transaction::Required },
            idempotent: false,
            timeouts: Timeouts {
                statement: Some(self.statement_timeout.clone()),
                lock: Some(self.lock_timeout.clone()),
            },
            id,
        }
    }
}

/// What no other run has.
pub(super) fn run_uid() -> String {
    format!("{}-{}", clock::now().as_millisecond(), std::process::id())
}

fn time(text: &str) -> Result<Text, String> {
    duration::parse(text).map(|_| Text(text.to_owned()))
}

fn accepted(text: &str) -> Result<(String, String), String> {
    let (script, checksum) = text.split_once('=').ok_or("expected ID=CHECKSUM")?;
    if !is_checksum(checksum) {
        return Err("the checksum must be sha256: and 64 hexadecimal digits in small letters".to_owned());
    }
    Ok((id(script)?, checksum.to_owned()))
}

fn resolve(text: &str) -> Result<Resolve, String> {
    let expected = || "expected ID=applied or ID=retry".to_owned();
    let (script, resolution) = text.rsplit_once('=').ok_or_else(expected)?;
    let resolution = match resolution {
        "applied" => Resolution::Applied,
        "retry" => Resolution::Retry,
        _ => return Err(expected()),
    };
    Ok(Resolve { id: id(script)?, resolution })
}
