//! `gatehouse storage migrate`: all objects of definitions, written in their storage version.
//!
//! Guarantees: nothing is written where a right is missing that is needed later; SIGINT and SIGTERM end it in good order,
//! and the next run goes on from there; a second one ends it at once, which loses nothing either.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tokio_util::sync::CancellationToken;

use super::super::bar;
use super::super::duration;
use super::super::ending::{FAILED, Failure, OK, USAGE};
use super::super::output;
use super::progress::Progress;
use super::{Chunks, connect, looking, read, rights};
use crate::runtime::signals::Signals;
use crate::runtime::supervisor::chain;
use crate::storage::observation::Definition;
use crate::storage::plan::managed_fields::Policy;
use crate::storage::plan::tally::Tally;
use crate::storage::plan::{Goal, Held};
use crate::storage::requests::Requests;
use crate::storage::{Error, Migration, Options as Way, Outcome};

/// The options of `gatehouse storage migrate`.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
#[command(
    after_help = "Every object is patched with a patch that changes nothing, which the API server writes where it was stored in \
                  another version; then all of them again, until none is written. After that status.storedVersions of the \
                  definition is the storage version alone, unless an object could not be written or the definition has \
                  changed. Objects that others write or delete meanwhile are left to them.\n\n\
                  Rights: list of the objects, and get where a webhook converts them; patch of their status where they have one, and else of the objects, where \
                  managed fields are taken away as well; get of \
                  customresourcedefinitions and, without --dry-run, patch of customresourcedefinitions/status; for --all also list of \
                  customresourcedefinitions. With patch of customresourcedefinitions, a run that ends early is taken up by \
                  the next one where it stood (annotation gatehouse.dev/storage-migration); without it, that one begins \
                  again. Nothing of gatehouse has to be in the cluster.\n\n\
                  Exit codes: 0 all objects are stored in the storage version, 1 an object could not be written or the run \
                  was interrupted: run it again; 2 the command line is wrong, or a definition cannot be migrated to that \
                  version."
)]
pub struct Options {
    /// Names of definitions, such as tdsets.gatehouse.dev.
    #[arg(value_name = "CRD", required_unless_present = "all", conflicts_with = "all")]
    definitions: Vec<String>,
    /// All definitions whose objects may be stored in another version than their storage version, those that
    /// Kubernetes' own migrator has migrated since, and those whose condition StorageMigrated is False.
    #[arg(long)]
    all: bool,
    /// The version that objects are to be stored in: an error where it is not the storage version of a definition.
    #[arg(long, value_name = "VERSION", conflicts_with = "all")]
    to: Option<String>,
    /// Write nothing: have the API server say what it would refuse.
    #[arg(long)]
    dry_run: bool,
    /// Patch the objects although storedVersions names the storage version alone. It names all versions of the definition
    /// until every object is verified.
    #[arg(long)]
    force: bool,
    /// Write objects although no webhook converts them, and the schema of the storage version lacks fields of the
    /// version that they may be stored in (with --force, of any version): those fields are lost.
    #[arg(long)]
    lose_fields: bool,
    /// Which entries of managed fields are taken away. Where a webhook converts, a manager of such an entry owns again
    /// what it applies next; where none does, its fields are kept under the storage version.
    #[arg(long, value_enum, default_value_t)]
    managed_fields: ManagedFields,
    /// How many patches are under way at most. Fewer are where the API server answers slowly or has no time.
    #[arg(long, value_name = "COUNT", default_value_t = Way::default().workers,
        value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: u16,
    #[command(flatten)]
    chunks: Chunks,
    /// How long ago the definition has to have been written, so that every API server has seen it.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration::parse)]
    grace: Duration,
}

/// Which entries of managed fields are taken away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ManagedFields {
    /// None.
    Keep,
    /// Those of versions that are not served.
    #[default]
    Unserved,
    /// Those of all versions but the storage version.
    Others,
}

impl From<ManagedFields> for Policy {
    fn from(fields: ManagedFields) -> Self {
        match fields {
            ManagedFields::Keep => Self::Keep,
            ManagedFields::Unserved => Self::Unserved,
            ManagedFields::Others => Self::Others,
        }
    }
}

/// Migrates one definition after the other.
pub(super) async fn run(options: &Options) -> Result<ExitCode, Failure> {
    let mut signals = Signals::listen()?;
    let requests = connect().await?;
    let stop = CancellationToken::new();
    let work = migrate(options, &requests, &stop);
    tokio::pin!(work);
    let code = loop {
        tokio::select! {
            code = &mut work => break code?,
            signal = signals.next() => {
                if stop.is_cancelled() {
                    break FAILED;
                }
                bar::clear();
                output::note(&format!("{signal}: ends when what is under way is answered"));
                stop.cancel();
            }
        }
    };
    Ok(ExitCode::from(code))
}

async fn migrate(options: &Options, requests: &Requests, stop: &CancellationToken) -> Result<u8, Failure> {
    let look = looking(requests, options.chunks);
    let mut names = options.definitions.clone();
    if options.all {
        let all = look.definitions().await?;
        let is_meant = |one: &&Definition| !one.maybe_stored().is_empty() || one.is_unverified();
        names.extend(all.iter().filter(is_meant).map(|one| one.name.clone()));
    }
    let definitions = match read(&look, &names).await {
        Ok(definitions) => definitions,
        Err(code) => return Ok(code),
    };
    let mut lacks = false;
    for definition in &definitions {
        let asked = rights::Asked { policy: options.managed_fields.into(), is_dry: options.dry_run };
        let missing = rights::missing(requests, definition, asked).await?;
        if !missing.is_empty() {
            output::error(format!("{}: this needs the rights to {}", definition.name, missing.join(", ")));
            lacks = true;
        }
    }
    if lacks {
        return Ok(FAILED);
    }
    let mut worst = OK;
    for name in &names {
        if stop.is_cancelled() {
            return Ok(FAILED);
        }
        worst = worst.max(migrate_one(options, requests, stop, name).await?);
    }
    if names.is_empty() {
        output::print("no definition has objects that may be stored in another version\n")?;
    }
    Ok(worst)
}

async fn migrate_one(
    options: &Options,
    requests: &Requests,
    stop: &CancellationToken,
    name: &str,
) -> Result<u8, Failure> {
    let goal = Goal {
        to: options.to.clone(),
        loses_fields: options.lose_fields,
        is_forced: options.force,
        managed_fields: options.managed_fields.into(),
        grace: options.grace,
        ..Goal::default()
    };
    let way = Way { chunk: options.chunks.chunk_size, workers: options.workers, is_dry: options.dry_run };
    let progress = Progress::of(name);
    let migration = Migration { requests, goal, options: way, stop: stop.clone(), watch: &progress };
    let outcome = migration.run(name).await;
    drop(progress);
    let (code, text, tally) = match outcome {
        Ok(outcome) => told(outcome),
        Err(error) => {
            output::error(chain(&error));
            let is_usage = matches!(
                error,
                Error::NoDefinition(_)
                    | Error::Held(
                        Held::NoSuchVersion { .. } | Held::OtherVersion { .. } | Held::LosesFields { .. }
                    )
            );
            return Ok(if is_usage { USAGE } else { FAILED });
        }
    };
    for failure in &tally.failures {
        output::error(output::one_line(&format!("{name} {}: {}", failure.object, failure.reason)));
    }
    if tally.unnamed() > 0 && !tally.failures.is_empty() {
        output::error(format!("{name}: and {} more", tally.unnamed()));
    }
    output::print(&format!("{name}: {text}\n"))?;
    Ok(code)
}

/// The exit code for an outcome, what is said about it, and what the last pass did.
fn told(outcome: Outcome) -> (u8, String, Tally) {
    match outcome {
        Outcome::Migrated { dropped, last } => {
            let dropped = match dropped.as_slice() {
                [] => String::new(),
                dropped => format!("; storedVersions names {} no more", dropped.join(", ")),
            };
            (OK, format!("migrated, {last}{dropped}"), last)
        }
        Outcome::Cleaned(tally) => {
            let text = format!("nothing is stored in another version; managed fields: {tally}");
            (if tally.failed + tally.uncleaned > 0 { FAILED } else { OK }, text, tally)
        }
        Outcome::Kept { why, last } => {
            // The objects that failed have a line each.
            let why = if last.failures.is_empty() { why.told(&last) } else { why.to_string() };
            (FAILED, format!("storedVersions stays as it is: {why}"), last)
        }
        Outcome::Tried(tally) if tally.failed > 0 => {
            (FAILED, format!("tried, {} would not be written", tally.failed), tally)
        }
        Outcome::Tried(tally) => (OK, format!("tried, all {} would be written", tally.objects()), tally),
        Outcome::Interrupted(tally) => {
            (FAILED, format!("interrupted after {} objects: run again to go on", tally.objects()), tally)
        }
    }
}
