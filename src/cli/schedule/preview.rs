//! The preview of a manifest, independent of the output format.
//!
//! Guarantees: the same manifests and the same start give the same previews. Never: asks the time, or writes.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize as _;
use serde_json::Value;

use super::Asked;
use crate::api::field::Path;
use crate::api::time_zone::Shift;
use crate::cli::convert::below;
use crate::cli::input::{self, Document, Input};
use crate::cli::output;
use crate::cli::validate::{self, Opinion};
use crate::kinds::tdset::api::ramp::Ramp;
use crate::kinds::tdset::api::schedule::timeline::{Day, Piece, Span, Timeline};
use crate::kinds::tdset::api::schedule::{Effective, HolidayDates, Schedule, Source, Transition};
use crate::kinds::tdset::api::v1::{AutoscalerKind, RampStep, TDSetSpec};

/// The results for the manifests.
#[derive(Debug, Default)]
pub struct Found {
    /// The timetables, in order.
    pub previews: Vec<Preview>,
    /// Why manifests are refused, a line each.
    pub faults: Vec<String>,
    /// What authors should know, a line each.
    pub warnings: Vec<String>,
}

/// A timetable, and some days of it.
#[derive(Debug)]
pub struct Preview {
    /// Whose it is.
    pub origin: Origin,
    /// The timetable.
    pub schedule: Schedule,
    /// How the count moves.
    pub ramp: Ramp,
    /// The days, in the zone that they are shown in.
    pub timeline: Timeline,
    /// What can decide: the default, the windows and the exceptions, in list order, each with its count.
    pub legend: Vec<Effective>,
    /// The instant of which to tell, with what holds then and what comes next.
    pub moment: Option<Moment>,
    /// What the picture cannot show.
    pub notes: Vec<String>,
}

/// The object of a timetable.
#[derive(Debug)]
pub struct Origin {
    /// The file, `-` for standard input.
    pub file: String,
    /// The document in it, from 1.
    pub document: usize,
    /// Which item, where the document is a list.
    pub item: String,
    /// Kind, namespace and name.
    pub title: String,
}

/// An instant of a timetable.
#[derive(Debug)]
pub struct Moment {
    /// When.
    pub time: Timestamp,
    /// What holds.
    pub now: Effective,
    /// What comes next, within 400 days.
    pub next: Option<Transition>,
}

impl Preview {
    /// The position of a source in the legend.
    #[must_use]
    pub fn position(&self, source: &Source) -> usize {
        self.legend.iter().position(|entry| entry.source == *source).unwrap_or_default()
    }

    /// The positions in the legend of what decides at some time of the days shown.
    #[must_use]
    pub fn seen(&self) -> BTreeSet<usize> {
        self.timeline.spans.iter().map(|span| self.position(&span.what.source)).collect()
    }

    /// The greatest count, at least 1.
    #[must_use]
    pub fn most(&self) -> i32 {
        self.timeline.spans.iter().filter_map(|span| span.what.replicas).max().unwrap_or_default().max(1)
    }

    /// The zone of the timetable, and the one that it is shown in.
    #[must_use]
    pub fn zones(&self) -> (&str, &str) {
        (name(self.schedule.zone()), name(&self.timeline.zone))
    }

    /// Days and zones, as a title says it.
    #[must_use]
    pub fn subtitle(&self) -> String {
        let days = self.timeline.days.len();
        let first = self.timeline.days.first().map(|day| day.date.to_string()).unwrap_or_default();
        let plural = if days == 1 { "" } else { "s" };
        let (own, shown) = self.zones();
        let zone = if own == shown {
            own.to_owned()
        } else {
            format!("as seen in {shown} (the timetable is in {own})")
        };
        format!("{days} day{plural} from {first}, {zone}")
    }

    /// An instant in the zone that the days are shown in: `Sun 2026-10-25 03:00+01:00`.
    #[must_use]
    pub fn shown(&self, time: Timestamp) -> String {
        time.to_zoned(self.timeline.zone.clone()).strftime("%a %Y-%m-%d %H:%M%:z").to_string()
    }

    /// The count of a piece and what decides: `12 sale`.
    #[must_use]
    pub fn what(&self, piece: &Piece) -> String {
        said(&self.timeline.spans[piece.span].what)
    }

    /// What the clocks do on a day: `Sun 2026-10-25 has 25 h: at 03:00 the clocks go back …`.
    pub fn changes(&self, day: &Day) -> impl Iterator<Item = String> {
        let (date, long) = (day.date.strftime("%a %Y-%m-%d").to_string(), length(day.length()));
        day.shifts.iter().map(move |shift| format!("{date} has {long}: {}", self.told(shift)))
    }

    /// A change of the clocks: `at 03:00 the clocks go back to 02:00 (+02:00 to +01:00)`.
    #[must_use]
    pub fn told(&self, shift: &Shift) -> String {
        let way = if shift.after > shift.before { "forward" } else { "back" };
        let offset = |time: Timestamp| time.to_zoned(self.timeline.zone.clone()).strftime("%:z").to_string();
        let before = shift.time.checked_sub(jiff::SignedDuration::from_nanos(1)).unwrap_or(shift.time);
        format!(
            "at {} the clocks go {way} to {} ({} to {})",
            shift.before.strftime("%H:%M"),
            shift.after.strftime("%H:%M"),
            offset(before),
            offset(shift.time)
        )
    }
}

/// What decides, as a person says it.
pub fn name_of(source: &Source) -> String {
    match source {
        Source::Default => "outside all windows".to_owned(),
        Source::Window(name) => name.to_string(),
        Source::Exception(name) => format!("exception {name}"),
    }
}

/// A count, or that the workload is left alone.
pub fn count_of(what: &Effective) -> String {
    what.replicas.map_or_else(|| "as is".to_owned(), |replicas| replicas.to_string())
}

/// A count and what decides, as a person says it: `12 sale`.
pub fn said(what: &Effective) -> String {
    format!("{} {}", count_of(what), name_of(&what.source))
}

/// Hours and minutes, such as `25 h` or `23 h 30 min`.
pub fn length(duration: jiff::SignedDuration) -> String {
    let minutes = duration.as_mins();
    match (minutes / 60, minutes % 60) {
        (hours, 0) => format!("{hours} h"),
        (0, minutes) => format!("{minutes} min"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

fn name(zone: &TimeZone) -> &str {
    zone.iana_name().unwrap_or("UTC")
}

/// Validates all TDSets of the input, and computes their days.
#[must_use]
pub(super) fn previews(input: &Input, asked: &Asked) -> Found {
    let mut found = Found::default();
    for document in &input.documents {
        for (place, object) in document.objects() {
            if object.get("kind").and_then(Value::as_str) == Some("TDSet") {
                one(input, document, &place, &object, asked, &mut found);
            }
        }
    }
    found
}

fn one(input: &Input, document: &Document, place: &Path, object: &Value, asked: &Asked, found: &mut Found) {
    let title = input::title(object);
    let opinion = opinion(object, asked.judged_at());
    if opinion.skipped {
        return;
    }
    let tell = |path: &Path, text: &str| {
        output::finding(document, place, &title, path, text, document.line(&below(place, path)))
    };
    found.warnings.extend(opinion.warnings.iter().map(|note| tell(&note.path, &note.text)));
    found.faults.extend(opinion.faults.iter().map(|fault| tell(&fault.path, &fault.message())));
    if !opinion.faults.is_empty() {
        return;
    }
    let origin = Origin {
        file: document.file.clone(),
        document: document.number,
        item: place.to_string(),
        title: output::one_line(&title),
    };
    match preview(input, origin, &opinion.hub, asked) {
        Ok(preview) => found.previews.push(preview),
        Err(error) => found.faults.push(tell(&Path::spec(), &error)),
    }
}

/// The validation of a new object; one that is stored already is taken to be of the time when it was created, so that
/// what is over since is no fault.
fn opinion(object: &Value, at: Timestamp) -> Opinion {
    let opinion = validate::opinion(object, at);
    let created = object.pointer("/metadata/creationTimestamp").and_then(Value::as_str);
    match created.and_then(|text| text.parse::<Timestamp>().ok()) {
        Some(created) if !opinion.faults.is_empty() => validate::opinion(object, created.min(at)),
        _ => opinion,
    }
}

fn preview(input: &Input, origin: Origin, hub: &Value, asked: &Asked) -> Result<Preview, String> {
    let spec = TDSetSpec::deserialize(&hub["spec"]).map_err(|error| error.to_string())?;
    let told = |faults: Vec<crate::api::field::FieldError>| {
        faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    let schedule = Schedule::parse(&spec).map_err(told)?;
    let ramp = Ramp::parse(spec.ramp.as_ref()).map_err(told)?;
    let mut notes = notes(&spec);
    let namespace = hub.pointer("/metadata/namespace").and_then(Value::as_str);
    let schedule = schedule.with_dates(&dates(input, namespace, &spec, &mut notes));
    let zone = asked.zone.clone().unwrap_or_else(|| schedule.zone().clone());
    let (first, instant) = asked.start(&zone);
    let timeline = schedule.timeline(&zone, first, asked.days, ramp);
    notes.extend(glides(&spec, &timeline));
    let moment =
        instant.map(|time| Moment { time, now: schedule.effective(time), next: schedule.next_change(time) });
    Ok(Preview { origin, legend: legend(&spec), schedule, ramp, timeline, moment, notes })
}

fn legend(spec: &TDSetSpec) -> Vec<Effective> {
    let windows = spec.windows().iter().map(|one| Effective {
        source: Source::Window(Arc::from(one.name.as_str())),
        replicas: Some(one.replicas),
    });
    let exceptions = spec.exceptions().iter().filter_map(|one| {
        Some(Effective {
            source: Source::Exception(Arc::from(one.name.as_str())),
            replicas: Some(one.replicas?),
        })
    });
    let default = Effective { source: Source::Default, replicas: spec.default_replicas };
    std::iter::once(default).chain(windows).chain(exceptions).collect()
}

/// What else decides about the count.
fn notes(spec: &TDSetSpec) -> Vec<String> {
    let mut notes = Vec::new();
    if spec.is_suspended() {
        notes.push("suspend is true: no count is written until it is not".to_owned());
    }
    if let Some(autoscaler) = &spec.autoscaler {
        let (kind, name) = (autoscaler.kind.unwrap_or_default(), &autoscaler.name);
        let (field, sleeps) = match kind {
            AutoscalerKind::HorizontalPodAutoscaler => {
                ("minReplicas", "; where they are 0, so is the workload")
            }
            AutoscalerKind::ScaledObject => ("minReplicaCount", ""),
        };
        let kind = kind.as_str();
        notes.push(format!("the counts become {field} of the {kind} {name}, which may add to them{sleeps}"));
    }
    notes
}

/// The dates that the spec takes from elsewhere, as far as they are among the files.
fn dates(input: &Input, namespace: Option<&str>, spec: &TDSetSpec, notes: &mut Vec<String>) -> HolidayDates {
    let mut dates = HolidayDates::default();
    for exception in spec.exceptions() {
        let Some(key) = exception.dates_from.as_ref().map(|from| &from.config_map_key_ref) else { continue };
        match config_map(input, namespace, &key.name, &key.key) {
            // The other lines count.
            Some(text) => notes.extend(
                dates
                    .read(&exception.name, &text)
                    .err()
                    .map(|errors| format!("ConfigMap {} {}: {errors}", key.name, key.key)),
            ),
            None => notes.push(format!(
                "exception {}: its dates are in the ConfigMap {}, key {}, and not among the files: not shown",
                exception.name, key.name, key.key
            )),
        }
    }
    dates
}

fn config_map(input: &Input, namespace: Option<&str>, name: &str, key: &str) -> Option<String> {
    let objects = input.documents.iter().flat_map(Document::objects);
    objects.map(|(_, object)| object).find_map(|object| {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let same = text("/apiVersion") == Some("v1")
            && text("/kind") == Some("ConfigMap")
            && text("/metadata/name") == Some(name)
            && (namespace.is_none() || text("/metadata/namespace").is_none_or(|one| Some(one) == namespace));
        same.then(|| object.get("data")?.get(key)?.as_str().map(str::to_owned)).flatten()
    })
}

/// What the ramp makes of the picture.
fn glides(spec: &TDSetSpec, timeline: &Timeline) -> Vec<String> {
    let Some(ramp) = &spec.ramp else { return Vec::new() };
    let pace = |way: &str, step: Option<&RampStep>| match step {
        Some(RampStep { step, every }) => {
            let step = match step {
                k8s_openapi::apimachinery::pkg::util::intstr::IntOrString::Int(number) => number.to_string(),
                k8s_openapi::apimachinery::pkg::util::intstr::IntOrString::String(text) => text.clone(),
            };
            format!("{way} by {step} every {every}")
        }
        None => format!("{way} at once"),
    };
    let mut notes =
        vec![format!("ramp: {}, {}", pace("up", ramp.up.as_ref()), pace("down", ramp.down.as_ref()))];
    let slowest = timeline.spans.iter().filter_map(|span| {
        let glide = span.glide?;
        Some((glide.arrives?.duration_since(span.start), glide, span))
    });
    if let Some((time, glide, span)) = slowest.max_by_key(|(time, ..)| *time) {
        let to = count_of(&span.what);
        notes.push(format!("ramp: the longest way here, {} to {to}, takes {time:#}", glide.from));
    }
    let late = |span: &&Span| span.glide.is_some_and(|glide| glide.arrives.is_none());
    let late: Vec<_> = timeline.spans.iter().filter(late).collect();
    if let Some(first) = late.first() {
        let reached = first.glide.map(|glide| glide.reached).unwrap_or_default();
        notes.push(format!(
            "ramp: {} of the spans shown end before their count is reached, the first one at {reached} of {}",
            late.len(),
            count_of(&first.what)
        ));
    }
    notes
}
