//! `gatehouse schedule preview`: the coming days of a timetable, before it is applied to a cluster.
//!
//! Guarantees: what is shown is what the operator will do, by the same code; manifests are validated first, as by
//! `gatehouse validate`, and of a refused one nothing is shown. The time comes from the command line or the clock, here
//! and nowhere below.

mod json;
mod preview;
mod svg;
mod text;

use std::io;
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

use super::ending::{FAILED, Failure, OK, USAGE};
use super::input::Files;
use super::output;
use crate::api::time_zone::{self, ZoneError};
use crate::runtime::clock;

/// What can be done with timetables.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show the days to come of TDSets: when which count holds, and what the clocks do.
    Preview(Options),
}

/// The options of `gatehouse schedule preview`.
#[derive(Args, Debug)]
#[command(
    after_help = "Reads TDSets of both versions and of schedule.rs/v1; objects of other kinds are skipped. Dates of datesFrom are \
                  taken from a ConfigMap of that name among the files. Colours are for terminals where NO_COLOR is not \
                  set, or as --color says.\n\n\
                  Exit codes: 0 shown, 1 an object is refused, 2 the command line is wrong or something could not be \
                  read. Except with 0 nothing is shown."
)]
pub struct Options {
    #[command(flatten)]
    files: Files,
    /// How many local days, 1 to 366.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..=366))]
    days: u16,
    /// Where the preview starts: at a date (2026-10-25), a local time (2026-10-25T14:30) or an instant
    /// (2026-10-25T14:30:00+02:00). [default: now]
    #[arg(long, value_name = "TIME|DATE", value_parser = from)]
    from: Option<Start>,
    /// The time zone whose days are shown, such as America/New_York. [default: that of the timetable]
    #[arg(long, value_name = "ZONE", value_parser = zone)]
    time_zone: Option<TimeZone>,
    /// How it is shown.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// How a timetable is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A picture of characters, for 80 columns.
    #[default]
    Text,
    /// A picture for pages, light and dark.
    Svg,
    /// One JSON document: spans, days and changes of the clocks.
    Json,
}

/// Where a preview starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Date(Date),
    Local(DateTime),
    Instant(Timestamp),
}

/// The days that are asked for.
#[derive(Clone, Debug)]
struct Asked {
    from: Start,
    days: u16,
    zone: Option<TimeZone>,
}

impl Asked {
    /// The first date, and the instant of which to tell.
    fn start(&self, zone: &TimeZone) -> (Date, Option<Timestamp>) {
        match self.from {
            Start::Date(date) => (date, None),
            Start::Local(local) => (local.date(), Some(time_zone::resolve(zone, local))),
            Start::Instant(instant) => (time_zone::reached(zone, instant).date(), Some(instant)),
        }
    }

    /// The instant for which manifests are validated.
    fn judged_at(&self) -> Timestamp {
        let zone = self.zone.clone().unwrap_or(TimeZone::UTC);
        let local = |local| time_zone::resolve(&zone, local);
        match self.from {
            Start::Date(date) => local(date.to_datetime(jiff::civil::Time::midnight())),
            Start::Local(time) => local(time),
            Start::Instant(instant) => instant,
        }
    }
}

fn from(text: &str) -> Result<Start, String> {
    // The shortest form first: a date is a local time to the parser of local times too.
    let date = || text.parse().ok().filter(|_| text.len() == "2026-10-25".len()).map(Start::Date);
    let instant = || text.parse().ok().map(Start::Instant);
    let local = || text.parse().ok().map(Start::Local);
    let found = date().or_else(instant).or_else(local);
    found.ok_or_else(|| {
        "expected a date such as 2026-10-25, a local time such as 2026-10-25T14:30 or an instant such as \
         2026-10-25T14:30:00+02:00"
            .to_owned()
    })
}

fn zone(name: &str) -> Result<TimeZone, ZoneError> {
    time_zone::find(name)
}

/// Does what the command line says.
///
/// # Errors
/// Standard output does not take it.
pub fn run(command: &Command) -> Result<ExitCode, Failure> {
    let Command::Preview(options) = command;
    let input = options.files.read();
    if !input.unreadable.is_empty() {
        input.unreadable.iter().for_each(output::error);
        return Ok(ExitCode::from(USAGE));
    }
    let asked = Asked {
        from: options.from.unwrap_or_else(|| Start::Instant(clock::now())),
        days: options.days,
        zone: options.time_zone.clone(),
    };
    let found = preview::previews(&input, &asked);
    found.warnings.iter().for_each(|line| output::warning(line));
    found.faults.iter().for_each(output::error);
    if !found.faults.is_empty() {
        return Ok(ExitCode::from(FAILED));
    }
    if found.previews.is_empty() {
        output::error("no TDSet in what -f names");
        return Ok(ExitCode::from(USAGE));
    }
    let colours = output::is_coloured(&io::stdout());
    output::print(&match options.output {
        Format::Text => text::render(&found.previews, colours),
        Format::Svg => svg::render(&found.previews),
        Format::Json => json::render(&found.previews)?,
    })?;
    Ok(ExitCode::from(OK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_a_date_a_local_time_or_an_instant() {
        let zone = zone("Europe/Berlin").unwrap();
        let start = |text: &str| {
            let asked = Asked { from: from(text).unwrap(), days: 1, zone: None };
            let (date, instant) = asked.start(&zone);
            (date.to_string(), instant.map(|instant| instant.to_string()))
        };
        let told = |date: &str, instant: &str| (date.to_owned(), Some(instant.to_owned()));
        assert_eq!(start("2026-10-25"), ("2026-10-25".to_owned(), None));
        assert_eq!(start("2026-10-25T02:30"), told("2026-10-25", "2026-10-25T00:30:00Z"));
        assert_eq!(start("2026-10-24T22:30:00Z"), told("2026-10-25", "2026-10-24T22:30:00Z"));
        assert_eq!(start("2026-10-25T14:30:00+02:00"), told("2026-10-25", "2026-10-25T12:30:00Z"));
        for bad in ["", "today", "2026-13-01", "25.10.2026", "14:30"] {
            assert!(from(bad).is_err(), "{bad}");
        }
    }
}
