//! The command line.
//!
//! Exit codes, the same for every command: 0 it worked, 1 it failed or found faults, 2 the command line is wrong or
//! what it names could not be read. `migrate run` and `migrate status` say more by 10, 20 and 30 in place of 1.

mod bar;
mod connect;
pub mod convert;
pub mod crds;
mod duration;
mod ending;
pub mod etcd;
pub mod input;
pub mod manifests;
pub mod migrate;
pub mod output;
pub mod schedule;
pub mod serve;
mod storage;
pub mod validate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::runtime::supervisor::chain;
use crate::runtime::telemetry::{self, FILTER_VARIABLE, LogFormat, Logging, Writing};
use ending::{FAILED, Failure, OK};

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    version,
    about,
    propagate_version = true,
    after_help = "Exit codes: 0 it worked, 1 it failed or found faults, 2 the command line is wrong or what it names \
                  could not be read.\n\
                  GATEHOUSE_LOG filters the log: info, or gatehouse=debug,kube=warn."
)]
pub struct Cli {
    /// How log lines look: text on a terminal and JSON elsewhere, unless said otherwise.
    #[arg(long, global = true, value_enum, default_value_t, env = "GATEHOUSE_LOG_FORMAT")]
    pub log_format: LogFormat,
    /// When results and messages have colours.
    #[arg(long, global = true, value_enum, default_value_t)]
    pub color: output::Color,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What gatehouse can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the gate, and run the controllers.
    Serve(Box<serve::Options>),
    /// What runs in the pods of an EtcdCluster.
    #[command(subcommand, hide = true)]
    Etcd(etcd::Command),
    /// Convert manifests to another version, those of the ancestors too.
    Convert(convert::Options),
    /// Validate manifests by the rules of the webhooks, without a cluster.
    Validate(validate::Options),
    /// Run the scripts of a DatabaseMigration, say what is applied, and wait for it.
    #[command(subcommand)]
    Migrate(migrate::Command),
    /// Preview timetables.
    #[command(subcommand)]
    Schedule(schedule::Command),
    /// Show the versions that objects are stored in, and migrate them.
    #[command(subcommand)]
    Storage(storage::Command),
    /// Print the definitions of the kinds.
    Crds(crds::Options),
    /// Print, write or compare the generated files below deploy.
    Manifests(manifests::Options),
}

/// Does what the command line says.
#[must_use]
pub fn run(cli: Cli) -> ExitCode {
    cli.color.apply();
    let filter = std::env::var(FILTER_VARIABLE).ok();
    let writing = match cli.command {
        Command::Serve(_) => Writing::Queued,
        // One of them becomes etcd, which would take lines that wait with it.
        _ => Writing::Direct,
    };
    let logging = match telemetry::init(cli.log_format, filter.as_deref(), writing) {
        Ok(logging) => logging,
        Err(error) => {
            output::error(chain(&error));
            return ExitCode::from(FAILED);
        }
    };
    let done = cli.command.run(&logging);
    // Where the log stands still, its last line is not read either.
    let is_heard = logging.end();
    match done {
        Ok(code) => code,
        Err(error) => {
            if is_heard {
                output::error(chain(&*error));
            }
            ExitCode::from(FAILED)
        }
    }
}

impl Command {
    fn run(self, logging: &Logging) -> Result<ExitCode, Failure> {
        match self {
            Self::Serve(options) => serve::run(*options, logging).map(|()| ExitCode::from(OK)),
            Self::Etcd(command) => etcd::run(&command),
            Self::Convert(options) => convert::run(&options),
            Self::Validate(options) => validate::run(&options),
            Self::Migrate(command) => migrate::run(&command),
            Self::Schedule(command) => schedule::run(&command),
            Self::Storage(command) => storage::run(command),
            Self::Crds(options) => crds::run(&options),
            Self::Manifests(options) => manifests::run(&options),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
