//! `gatehouse crds`: the definitions of the kinds.
//!
//! Guarantees: the same text from every run of a release. The conversion stanza, which needs the address and the
//! certificate of a running gate, is not in it: `gatehouse serve` writes that.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::ending::{Failure, OK};
use super::output::{self, Format};
use crate::kinds::KINDS;

/// The options of `gatehouse crds`.
#[derive(Args, Debug)]
pub struct Options {
    /// How the definitions are written. As JSON they are one List.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// Prints the definitions.
///
/// # Errors
/// Standard output does not take them.
pub fn run(options: &Options) -> Result<ExitCode, Failure> {
    let definitions: Result<Vec<Value>, _> =
        KINDS.iter().map(|kind| serde_json::to_value(kind.definition())).collect();
    output::print(&options.output.write(&definitions?)?)?;
    Ok(ExitCode::from(OK))
}
