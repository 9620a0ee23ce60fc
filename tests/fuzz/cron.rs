//! Schedules of cron: `{"schedule": "0 2 * * *", "zone": "Europe/Berlin", "now": "2026-03-29T12:00:00Z"}`.
//!
//! Guarantees: what reads is what the rule in the definition takes; the times at which a schedule was due are those
//! that a look at every minute finds, each once and the latest first, also where clocks change; two of them are never
//! nearer than is said. Not asserted: that the rule refuses what does not read because of a line break or another odd
//! space. What follows `*-` is not looked at, and there the rule takes them: `*-9\n,*` is one field for it, and two for
//! all others.
//! Assumes: years in which all clocks differ by whole minutes.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use gatehouse::api::cron::{CEL_RULE, CronError, Schedule};
use gatehouse::api::time_zone;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp};
use kit::random::Random;
use regex::Regex;
use serde_json::{Value, json};

use crate::corpus::Input;
use crate::drawn::{self, one_in, one_of, pick};
use crate::text::break_up;
use crate::zones;

/// The rule of the definition, as the API server runs it.
static RULE: LazyLock<Regex> = LazyLock::new(|| {
    let rule = CEL_RULE.strip_prefix("self.matches(r'").and_then(|rule| rule.strip_suffix("')"));
    Regex::new(rule.expect("the rule is a match")).expect("the rule is an expression")
});

/// Minutes that are looked at one by one.
const LOOKED_AT: i64 = 12 * 60;

/// A schedule, mostly one that reads, and a time, often soon after the clocks have changed.
pub fn make(random: &mut Random, corpus: &[Input]) -> Vec<u8> {
    let mut schedule = match random.below(12) {
        0 => drawn::text(random),
        1 => pick(random, &["@yearly", "@monthly", "@weekly", "@daily", "@hourly", "@every 5m", "@Daily"])
            .to_owned(),
        2 => kept(random, corpus),
        _ => fields(random),
    };
    if one_in(random, 6) {
        let mut broken = schedule.into_bytes();
        break_up(random, &mut broken);
        schedule = String::from_utf8_lossy(&broken).into_owned();
    }
    let (zone, now) = zones::draw(random);
    json!({"schedule": schedule, "zone": zone, "now": now.to_string()}).to_string().into_bytes()
}

fn kept(random: &mut Random, corpus: &[Input]) -> String {
    let input: Option<Value> = serde_json::from_slice(&one_of(random, corpus).bytes).ok();
    input.and_then(|input| Some(input["schedule"].as_str()?.to_owned())).unwrap_or_default()
}

fn fields(random: &mut Random) -> String {
    let bounds = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)];
    let fields = bounds.map(|(low, high)| {
        let parts = (0..pick(random, &[1, 1, 1, 2, 3])).map(|_| part(random, low, high)).collect::<Vec<_>>();
        parts.join(",")
    });
    fields.join(pick(random, &[" ", " ", " ", "  ", "\t", "\n", "\u{a0}"]))
}

fn part(random: &mut Random, low: usize, high: usize) -> String {
    let mut number = || low + random.below(high - low + 1);
    let (one, two) = (number(), number());
    let (from, to) = (one.min(two), one.max(two));
    let range = match random.below(9) {
        0..=2 => "*".to_owned(),
        3 => "?".to_owned(),
        4 => format!("{from}-{to}"),
        5 => format!("{one}-{two}"),
        6 => format!("0{one}"),
        7 => pick(random, &["sun", "MON", "Feb", "dec", "jan-mar", "*-9", "60", "32", "0", "+5", "-1"])
            .to_owned(),
        _ => one.to_string(),
    };
    match random.below(4) {
        0 => {
            format!("{range}/{}", pick(random, &["1", "2", "5", "15", "7", "100", "0", "+3", "99999999999"]))
        }
        _ => range,
    }
}

/// Holds a schedule against its laws.
pub fn check(input: &[u8]) {
    let Ok(input) = serde_json::from_slice::<Value>(input) else { return };
    let text = input["schedule"].as_str().unwrap_or_default();
    let read = Schedule::parse(text);
    hold_rule(text, read.as_ref());
    let Ok(schedule) = read else { return };
    let zone = input["zone"].as_str().and_then(|name| time_zone::find(name).ok());
    let now: Option<Timestamp> = input["now"].as_str().and_then(|now| now.parse().ok());
    let (Some(zone), Some(now)) = (zone, now) else { return };
    if zones::is_whole(now) {
        hold_past(text, &schedule, &zone, now);
        hold_interval(text, &schedule, now);
    }
}

/// The rule takes what reads, and of the rest only what has its numbers in the wrong order, or no day.
fn hold_rule(text: &str, read: Result<&Schedule, &CronError>) {
    let takes = RULE.is_match(text);
    // Any space divides fields, and the rule knows two of them.
    if text.chars().any(|one| one.is_whitespace() && one != ' ' && one != '\t') {
        return;
    }
    match read {
        Ok(_) => assert!(takes, "{text:?} reads, and the rule refuses it"),
        Err(CronError::Reversed { .. } | CronError::Never) => {}
        Err(error) => assert!(!takes, "{text:?} does not read, and the rule takes it: {error}"),
    }
}

/// What was due is what a look at every minute finds.
fn hold_past(text: &str, schedule: &Schedule, zone: &TimeZone, now: Timestamp) {
    let told = Told::read(text);
    let begin = now - SignedDuration::from_mins(LOOKED_AT);
    let found = looked_at(&told, zone, begin, now);
    let past = schedule.past(zone, now, found.len() + 1);
    let in_order = past.windows(2).all(|pair| pair[0] > pair[1]);
    assert!(in_order, "{text:?} was due in no order, or twice at once: {past:?}");
    let recent: Vec<_> = past.iter().copied().filter(|time| *time > begin).collect();
    let found: Vec<_> = found.into_iter().rev().collect();
    assert_eq!(recent, found, "{text:?} was due at other times than those on the left");
}

/// Every minute after `begin` up to `now` at which the schedule is due.
fn looked_at(told: &Told, zone: &TimeZone, begin: Timestamp, now: Timestamp) -> BTreeSet<Timestamp> {
    let second = begin.as_second() - begin.as_second().rem_euclid(60);
    let minutes =
        (0..=LOOKED_AT + 1).map(|minute| Timestamp::from_second(second + minute * 60).unwrap_or(now));
    let shown = minutes.filter(|time| {
        let local = zone.to_datetime(*time);
        told.is_due(local) && !is_second_pass(zone, local, *time)
    });
    shown.filter(|time| begin < *time && *time <= now).collect()
}

fn is_second_pass(zone: &TimeZone, local: DateTime, time: Timestamp) -> bool {
    match zone.to_ambiguous_timestamp(local).offset() {
        AmbiguousOffset::Fold { before, .. } => before.to_timestamp(local).is_ok_and(|first| first < time),
        _ => false,
    }
}

/// No two times are nearer than is said, and some are as near where every day is one on which it is due.
fn hold_interval(text: &str, schedule: &Schedule, now: Timestamp) {
    let told = schedule.shortest_interval();
    let past = schedule.past(&TimeZone::UTC, now, 100);
    let between = past.windows(2).map(|pair| pair[0].duration_since(pair[1]).as_mins());
    let shortest = between.min().unwrap_or(i64::MAX);
    assert!(shortest >= i64::from(told), "{text:?}: {shortest} minutes between two, but {told} are reported");
    let spans_a_day = past
        .first()
        .zip(past.last())
        .is_some_and(|(last, first)| last.duration_since(*first).as_hours() > 24);
    if spans_a_day && Told::read(text).is_daily() {
        assert_eq!(
            shortest,
            i64::from(told),
            "{text:?}: so many minutes between two, and as many are reported"
        );
    }
}

/// The numbers of a schedule that reads, read once more.
struct Told {
    /// Minutes, hours, days, months and weekdays.
    sets: Vec<BTreeSet<u32>>,
    /// Whether each of them leaves the choice to others.
    stars: Vec<bool>,
}

impl Told {
    fn read(text: &str) -> Self {
        let text = match text {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            text => text,
        };
        let bounds = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)];
        let fields: Vec<_> =
            text.split_whitespace().zip(bounds).map(|(field, bounds)| set(field, bounds)).collect();
        let (sets, stars) = fields.into_iter().unzip();
        Self { sets, stars }
    }

    fn is_due(&self, local: DateTime) -> bool {
        let weekday = local.weekday().to_sunday_zero_offset();
        let shown = [local.minute(), local.hour(), local.day(), local.month(), weekday];
        let has: Vec<_> = self
            .sets
            .iter()
            .zip(shown)
            .map(|(set, shown)| set.contains(&u32::from(shown.unsigned_abs())))
            .collect();
        let day = if self.stars[2] || self.stars[4] { has[2] && has[4] } else { has[2] || has[4] };
        has[0] && has[1] && has[3] && day
    }

    fn is_daily(&self) -> bool {
        let [_, _, days, months, weekdays] = &self.sets[..] else { return false };
        days.len() == 31 && months.len() == 12 && weekdays.len() == 7
    }
}

/// The numbers of a field, and whether it is a star.
fn set(field: &str, (low, high): (u32, u32)) -> (BTreeSet<u32>, bool) {
    let mut set = BTreeSet::new();
    let mut star = false;
    for part in field.split(',').filter(|part| !part.is_empty()) {
        let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
        let step_by = step.map_or(1, |step| number(step).max(1));
        let (from, to) = match range.split_once('-').unwrap_or((range, "")) {
            ("*" | "?", _) => {
                star |= step_by == 1;
                (low, high)
            }
            (from, "") => (number(from), if step.is_some() { high } else { number(from) }),
            (from, to) => (number(from), number(to)),
        };
        set.extend((from..=to).filter(|one| (one - from) % step_by == 0));
    }
    (set, star)
}

/// A number or a name.
fn number(text: &str) -> u32 {
    const MONTHS: &str = "janfebmaraprmayjunjulaugsepoctnovdec";
    const DAYS: &str = "sunmontuewedthufrisat";
    let lower = text.to_ascii_lowercase();
    let place = |names: &str| {
        names.find(&lower).filter(|_| lower.len() == 3).and_then(|at| u32::try_from(at / 3).ok())
    };
    let named = place(MONTHS).map(|at| at + 1).or_else(|| place(DAYS));
    named.unwrap_or_else(|| lower.trim_start_matches('+').parse().unwrap_or(u32::MAX))
}
