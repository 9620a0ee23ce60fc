//! Logs: text on a terminal, one JSON object a line elsewhere, always on standard error.
//!
//! Guarantees: the log has no line of sqlx, because such a line may quote rows. The log has a panic's message only if the
//! message was known at compile time, because a formatted message may contain user input. A serving process never waits
//! for the reader of its log ([`Writing`]).

use std::io::{self, IsTerminal};

use clap::ValueEnum;
use tracing_subscriber::filter::{EnvFilter, FilterExt, ParseError, filter_fn};
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{Layer, Registry, fmt};

pub use super::lines::Dropped;
use super::lines::{Flush, Lines};
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

/// Who writes lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// The thread that logs, which waits until standard error has taken the line: what ends soon, and what becomes
    /// another program.
    Direct,
    /// A thread of its own, for which nothing waits: for servers.
    Queued,
}

/// Logging that has begun. `main` holds it, and drops it last: what waits is written then.
#[derive(Debug)]
pub struct Logging {
    flush: Option<Flush>,
    dropped: Dropped,
}

impl Logging {
    /// How many lines were dropped.
    #[must_use]
    pub const fn dropped(&self) -> &Dropped {
        &self.dropped
    }

    /// Writes what waits; whether standard error took all of it.
    #[must_use]
    pub fn end(self) -> bool {
        self.flush.as_ref().is_none_or(Flush::flush)
    }
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
    /// Another client logs already.
    #[error("failed to start logging")]
    Taken(#[from] TryInitError),
    /// The system starts no thread.
    #[error("failed to start logging")]
    Thread(#[from] io::Error),
}

/// kube's controller puts a span with the object's name around each reconciliation and everything that it awaits. Our own
/// lines name the object, and making and entering the span takes a tenth of the time of a reconciliation. What
/// [`FILTER_VARIABLE`] says of this target comes after it, and holds.
const WITHOUT_SPANS: &str = "kube_runtime::controller=warn";

/// Starts logging for the whole process. `filter` is that of [`FILTER_VARIABLE`]; without one, `info`.
///
/// # Errors
/// [`Error`]: a filter that is not understood, a second call, or no thread.
pub fn init(format: LogFormat, filter: Option<&str>, writing: Writing) -> Result<Logging, Error> {
    let filter = EnvFilter::builder()
        .parse(directives(filter))
        .map_err(|source| Error::Filter { value: filter.unwrap_or_default().to_owned(), source })?;
    let terminal = io::stderr().is_terminal();
    let text = match format {
        LogFormat::Auto => terminal,
        LogFormat::Text => true,
        LogFormat::Json => false,
    };
    let (output, logging) = output(writing)?;
    let lines: Box<dyn Layer<Registry> + Send + Sync> = if text {
        fmt::layer().with_ansi(terminal).with_writer(output).boxed()
    } else {
        fmt::layer().json().flatten_event(true).with_span_list(false).with_writer(output).boxed()
    };
    let filter = filter.and(filter_fn(|of| may_be_shown(of.target())));
    tracing_subscriber::registry().with(lines.with_filter(filter)).try_init()?;
    log_panics();
    Ok(logging)
}

/// True if lines of this target may be logged. The filter of a user cannot enable sqlx, because sqlx logs statements and
/// server notices, and both may quote rows.
fn may_be_shown(target: &str) -> bool {
    !target.starts_with("sqlx")
}

/// All directives of a filter; an empty one is as good as none.
fn directives(filter: Option<&str>) -> String {
    let given = filter.filter(|filter| !filter.trim().is_empty()).unwrap_or("info");
    format!("{WITHOUT_SPANS},{given}")
}

fn output(writing: Writing) -> io::Result<(BoxMakeWriter, Logging)> {
    if writing == Writing::Direct {
        let logging = Logging { flush: None, dropped: Dropped::default() };
        return Ok((BoxMakeWriter::new(io::stderr), logging));
    }
    let (lines, flush) = Lines::to(io::stderr())?;
    let logging = Logging { flush: Some(flush), dropped: lines.dropped() };
    Ok((BoxMakeWriter::new(move || lines.clone()), logging))
}

fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, said = %PanicMessage(panic.payload()), "a panic");
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_logged_and_info_without_a_word() {
        for (filter, is_info, level) in [
            (None, true, "info"),
            (Some(" "), true, "info"),
            (Some("warn"), false, "warn"),
            (Some("warn,gatehouse=debug"), false, "debug"),
            (Some("info,kube_runtime::controller=info"), true, "info"),
        ] {
            let text = EnvFilter::builder().parse(directives(filter)).unwrap();
            assert_eq!(text.to_string().split(',').any(|one| one == "info"), is_info, "{filter:?}: {text}");
            assert_eq!(text.max_level_hint().unwrap().to_string(), level, "{filter:?}");
            let spans = text.to_string().contains(WITHOUT_SPANS);
            assert_eq!(spans, !filter.is_some_and(|filter| filter.contains("controller")), "{text}");
        }
    }
}
