//! Timetables: `{"spec": {…}, "now": "2026-03-29T00:30:00Z"}`.
//!
//! Guarantees: what is announced comes in order, each change once; between two of them nothing changes, and at each
//! instant that decides which the words of the spec say; the days to come have no hole.
//! Assumes: the rule of [`crate::zones`] for when a local time is reached, which is held here too.

use gatehouse::api::time_zone;
use gatehouse::kinds::tdset::api::ramp::Ramp;
use gatehouse::kinds::tdset::api::schedule::{Effective, HolidayDates, Schedule, Transition, timeline};
use gatehouse::kinds::tdset::api::v1::{self, Day, Overlap, TDSetSpec};
use jiff::civil::{Date, DateTime, Time};
use jiff::{SignedDuration, Timestamp};
use kit::random::Random;
use serde_json::{Value, json};

use crate::corpus::Input;
use crate::drawn::{self, change, one_in, one_of, pick};
use crate::zones;

/// Changes that are looked at.
const MOST: usize = 24;

/// Instants between `now` and two days later that are asked about.
const ASKED: i32 = 48;

/// How far ahead changes are announced.
const HORIZON: SignedDuration = SignedDuration::from_hours(400 * 24);

/// A timetable with boundaries near a time at which clocks often change, mostly a sound one.
pub fn make(random: &mut Random, corpus: &[Input]) -> Vec<u8> {
    if one_in(random, 10)
        && let Ok(mut input) = serde_json::from_slice(&one_of(random, corpus).bytes)
    {
        change(random, &mut input);
        return input.to_string().into_bytes();
    }
    let (zone, now) = zones::draw(random);
    let today = now.to_zoned(jiff::tz::TimeZone::UTC).date();
    let windows: Vec<_> = (0..random.below(5)).map(|at| window(random, at, today)).collect();
    let exceptions: Vec<_> = (0..random.below(4)).map(|at| exception(random, at, now)).collect();
    let mut spec = json!({"timeZone": zone, "defaultReplicas": random.below(4), "windows": windows, "exceptions": exceptions,
        "overlap": pick(random, &["FirstMatch", "Max", "Min"]), "target": {"create": {"image": "a", "port": 80}}});
    if one_in(random, 5) {
        change(random, &mut spec);
    }
    let dates = if one_in(random, 4) {
        drawn::text(random)
    } else {
        format!("{}\n# none\n\n{today}", near(random, today))
    };
    json!({"spec": spec, "now": now.to_string(), "dates": dates}).to_string().into_bytes()
}

/// A date some days away.
fn near(random: &mut Random, date: Date) -> Date {
    let days = i64::try_from(random.below(7)).unwrap_or_default() - 3;
    date.checked_add(SignedDuration::from_hours(24 * days)).unwrap_or(date)
}

fn clock(random: &mut Random) -> String {
    // Half of all boundaries lie in the small hours, where clocks change.
    let hour = if one_in(random, 2) { random.below(4) } else { random.below(24) };
    format!("{hour:02}:{:02}", pick(random, &[0, 0, 15, 30, 59]))
}

fn window(random: &mut Random, at: usize, today: Date) -> Value {
    let to = if one_in(random, 5) { "24:00".to_owned() } else { clock(random) };
    let mut window =
        json!({"name": format!("w{at}"), "from": clock(random), "to": to, "replicas": random.below(4)});
    if one_in(random, 3) {
        window["days"] =
            json!([pick(random, &["Mon", "Tue", "Sat", "Sun"]), pick(random, &["Wed", "Thu", "Fri"])]);
    }
    if one_in(random, 4) {
        let (one, two) = (near(random, today), near(random, today));
        window["season"] = json!({"first": one.min(two).to_string(), "last": one.max(two).to_string()});
    }
    if one_in(random, 10) {
        window["enabled"] = json!(false);
    }
    window
}

fn exception(random: &mut Random, at: usize, now: Timestamp) -> Value {
    let name = format!("e{at}");
    let today = now.to_zoned(jiff::tz::TimeZone::UTC).date();
    let seconds = |random: &mut Random| {
        SignedDuration::from_secs(i64::try_from(random.below(100_000)).unwrap_or_default())
    };
    match random.below(4) {
        0 => {
            let start = now + seconds(random);
            json!({"name": name, "between": {"start": start.to_string(), "end": (start + seconds(random)).to_string()}, "replicas": 9})
        }
        1 => {
            json!({"name": name, "datesFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}, "replicas": 8})
        }
        2 => {
            json!({"name": name, "dates": [near(random, today).to_string()], "skipWindows": [pick(random, &["*", "w0", "w1"])]})
        }
        _ => {
            json!({"name": name, "dates": [near(random, today).to_string(), near(random, today).to_string()], "replicas": 7})
        }
    }
}

/// Holds a timetable against its laws, and against the words of its spec.
pub fn check(input: &[u8]) {
    let Ok(input) = serde_json::from_slice::<Value>(input) else { return };
    let Ok(spec) = serde_json::from_value::<TDSetSpec>(input["spec"].clone()) else { return };
    if !has_names(&spec) {
        return;
    }
    let Some(now) = input["now"].as_str().and_then(|now| now.parse::<Timestamp>().ok()) else { return };
    let schedule = match Schedule::parse(&spec) {
        Ok(schedule) => schedule,
        Err(faults) => {
            assert!(faults.iter().all(|fault| fault.path.to_string().starts_with("spec.")), "{faults:?}");
            assert!(!faults.is_empty(), "it is refused without a fault");
            return;
        }
    };
    let mut dates = HolidayDates::default();
    for exception in spec.exceptions().iter().filter(|one| one.dates.is_none() && one.between.is_none()) {
        // What is no date is reported, and none of it counts.
        let _told = dates.read(&exception.name, input["dates"].as_str().unwrap_or_default());
    }
    let schedule = schedule.with_dates(&dates);
    let changes = schedule.upcoming(now, MOST);
    hold_order(&schedule, now, &changes);
    if !zones::is_whole(now) {
        return;
    }
    let told = Told { spec: &spec, dates: &dates };
    hold_between(&schedule, now, &changes, &told);
    hold_days(&schedule, now, &spec);
}

/// Each window and each exception has a name of its own, or else a change from one to the next shows none. The API
/// server takes no others: they are keys.
fn has_names(spec: &TDSetSpec) -> bool {
    let are_distinct = |mut names: Vec<&str>| {
        names.sort_unstable();
        names.windows(2).all(|pair| pair[0] != pair[1])
    };
    are_distinct(spec.windows().iter().map(|one| one.name.as_str()).collect())
        && are_distinct(spec.exceptions().iter().map(|one| one.name.as_str()).collect())
}

/// Changes follow one another, and each changes something.
fn hold_order(schedule: &Schedule, now: Timestamp, changes: &[Transition]) {
    let (mut time, mut what) = (now, schedule.effective(now));
    for change in changes {
        assert!(change.time > time, "a change at {} comes after {time}", change.time);
        assert!(change.from == what && change.to != what, "{what:?}, then {change:?}");
        let just_before = change.time - SignedDuration::from_nanos(1);
        assert_eq!(schedule.effective(change.time), change.to, "at {}", change.time);
        assert_eq!(schedule.effective(just_before), change.from, "just before {}", change.time);
        assert_eq!(
            schedule.next_change(just_before).as_ref(),
            Some(change),
            "announced otherwise at {just_before}"
        );
        (time, what) = (change.time, change.to.clone());
    }
    assert!(time.duration_since(now) <= HORIZON, "{time} is further away than changes are announced");
}

/// Between two changes nothing changes, and what holds is what the spec says in words.
fn hold_between(schedule: &Schedule, now: Timestamp, changes: &[Transition], told: &Told) {
    let first = schedule.effective(now);
    let last = changes.last().filter(|_| changes.len() == MOST).map_or(Timestamp::MAX, |change| change.time);
    for asked in 0..ASKED {
        // No divisor of an hour, so that all minutes of it come by.
        let at = now + SignedDuration::from_secs(3607) * asked;
        if at >= last {
            break;
        }
        let known = changes.iter().rev().find(|change| change.time <= at).map_or(&first, |change| &change.to);
        assert_eq!(&schedule.effective(at), known, "at {at} what was announced is not so");
        assert_eq!(
            told.at(at, time_zone::reached(schedule.zone(), at)),
            shown(known),
            "at {at} the spec says otherwise"
        );
        zones::hold_clock(schedule.zone(), at);
    }
}

fn shown(what: &Effective) -> (String, Option<i32>) {
    (what.source.to_string(), what.replicas)
}

/// Days without a hole, and each second of them in one place.
fn hold_days(schedule: &Schedule, now: Timestamp, spec: &TDSetSpec) {
    let ramp = Ramp::parse(spec.ramp.as_ref()).unwrap_or_default();
    let first = time_zone::reached(schedule.zone(), now).date();
    let shown = schedule.timeline(schedule.zone(), first, 2, ramp);
    let mut time = shown.start;
    for span in &shown.spans {
        assert!(span.start == time && span.end >= span.start, "a hole at {time}: {span:?}");
        assert_eq!(schedule.effective(span.start), span.what, "at {}", span.start);
        time = span.end;
    }
    assert_eq!(time, shown.end, "the last span ends elsewhere");
    let lengths = shown.days.iter().map(timeline::Day::length);
    let length = lengths.fold(SignedDuration::ZERO, |sum, length| sum + length);
    let whole = shown.end.duration_since(shown.start);
    // Clocks that go back over midnight show once more what is of the day before, which was not asked for.
    let shifts = time_zone::shifts(schedule.zone(), shown.start, shown.end);
    let goes_back = shifts.iter().any(|shift| shift.after.date() < first);
    assert!(length == whole || goes_back && length < whole, "days of {length:?} in a time of {whole:?}");
}

/// A spec, and what it says in the words of its fields.
struct Told<'a> {
    spec: &'a TDSetSpec,
    dates: &'a HolidayDates,
}

impl Told<'_> {
    /// The name and the count at an instant at which the clock has shown `reached`.
    fn at(&self, now: Timestamp, reached: DateTime) -> (String, Option<i32>) {
        let exceptions = self.spec.exceptions();
        let spanned = exceptions.iter().find(|one| is_between(one, now));
        let dated =
            || exceptions.iter().find(|one| one.replicas.is_some() && self.has_date(one, reached.date()));
        if let Some(exception) = spanned.or_else(dated) {
            return (
                format!("exception/{}", exception.name),
                exception.replicas.or(self.spec.default_replicas),
            );
        }
        let mut holding = self.spec.windows().iter().filter(|window| self.holds(window, reached));
        let decides = match self.spec.overlap.unwrap_or_default() {
            Overlap::FirstMatch => holding.next(),
            Overlap::Max => holding.reduce(|best, one| if one.replicas > best.replicas { one } else { best }),
            Overlap::Min => holding.reduce(|best, one| if one.replicas < best.replicas { one } else { best }),
        };
        decides.map_or((String::new(), self.spec.default_replicas), |window| {
            (window.name.clone(), Some(window.replicas))
        })
    }

    fn has_date(&self, exception: &v1::Exception, date: Date) -> bool {
        match (&exception.between, &exception.dates) {
            (Some(_), _) => false,
            (None, Some(dates)) => dates.contains(&date.to_string()),
            (None, None) => self.dates.of(&exception.name).contains(&date),
        }
    }

    /// Whether the window holds that started today or yesterday.
    fn holds(&self, window: &v1::Window, reached: DateTime) -> bool {
        let today = reached.date();
        [Some(today), today.yesterday().ok()].into_iter().flatten().any(|start| {
            let end = if window.to < window.from { start.tomorrow().unwrap_or(start) } else { start };
            self.starts(window, start)
                && local(start, &window.from) <= reached
                && reached < local(end, &window.to)
        })
    }

    fn starts(&self, window: &v1::Window, date: Date) -> bool {
        let week = [Day::Mon, Day::Tue, Day::Wed, Day::Thu, Day::Fri, Day::Sat, Day::Sun];
        let weekday = week[usize::from(date.weekday().to_monday_zero_offset().unsigned_abs())];
        let season = window.season.clone().unwrap_or_default();
        let text = date.to_string();
        let skips = |one: &v1::Exception| {
            let mut names = one.skip_windows.iter().flatten();
            self.has_date(one, date) && names.any(|name| *name == "*" || *name == window.name)
        };
        window.enabled != Some(false)
            && window.days.as_ref().is_none_or(|days| days.contains(&weekday))
            && season.first.is_none_or(|first| first <= text)
            && season.last.is_none_or(|last| text <= last)
            && !self.spec.exceptions().iter().any(skips)
    }
}

fn is_between(exception: &v1::Exception, now: Timestamp) -> bool {
    let instant = |text: &str| text.parse::<Timestamp>().ok();
    let span = exception.between.as_ref().and_then(|span| Some((instant(&span.start)?, instant(&span.end)?)));
    span.is_some_and(|(start, end)| start <= now && now < end)
}

fn local(date: Date, text: &str) -> DateTime {
    if text == "24:00" {
        return date.tomorrow().unwrap_or(date).to_datetime(Time::midnight());
    }
    let number = |part: Option<&str>| part.and_then(|part| part.parse().ok()).unwrap_or_default();
    date.at(number(text.get(..2)), number(text.get(3..)), 0, 0)
}
