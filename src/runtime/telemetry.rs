//! Logs: text on a terminal, one JSON object a line elsewhere, always on standard error.
//!
//! Guarantees: what a panic says reaches the log only as far as it was known at compile time, since a formatted
//! message may hold what a user wrote.

use std::io::{self, IsTerminal};

use clap::ValueEnum;
use tracing_subscriber::filter::{EnvFilter, LevelFilter, ParseError};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{Layer, Registry, fmt};

use super::tasks::PanicMessage;

/// The variable that says what is logged, in `tracing`'s filter syntax: `info`, `gatehouse=debug,kube=warn`.
pub const FILTER_VARIABLE: &str = "GATEHOUSE_LOG";

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    #[default]
    Auto,
    /// For people.
    Text,
    /// For machines.
    Json,
}

/// Why logging could not begin.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The filter is not understood.
    #[error("invalid filter {value:?} in {FILTER_VARIABLE}: expected level or target=level, comma-separated")]
    Filter {
        /// As it was given.
        value: String,
        /// What is wrong with it.
        source: ParseError,
    },
    /// Somebody else logs already.
    #[error("failed to start logging")]
    Taken(#[from] TryInitError),
}

/// Starts logging for the whole process. `filter` is that of [`FILTER_VARIABLE`]; without one, `info`.
///
/// # Errors
/// [`Error`]: a filter that is not understood, or a second call.
pub fn init(format: LogFormat, filter: Option<&str>) -> Result<(), Error> {
    let filter = EnvFilter::builder()
        .with_default_directive(LevelFilter::INFO.into())
        .parse(filter.unwrap_or_default())
        .map_err(|source| Error::Filter { value: filter.unwrap_or_default().to_owned(), source })?;
    let terminal = io::stderr().is_terminal();
    let text = match format {
        LogFormat::Auto => terminal,
        LogFormat::Text => true,
        LogFormat::Json => false,
    };
    let lines: Box<dyn Layer<Registry> + Send + Sync> = if text {
        fmt::layer().with_ansi(terminal).with_writer(io::stderr).boxed()
    } else {
        fmt::layer().json().flatten_event(true).with_span_list(false).with_writer(io::stderr).boxed()
    };
    tracing_subscriber::registry().with(lines.with_filter(filter)).try_init()?;
    log_panics();
    Ok(())
}

fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, message = %PanicMessage(panic.payload()), "a panic");
    }));
}
