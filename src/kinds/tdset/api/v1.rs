//! TDSet as `gatehouse.dev/v1`: the hub version, stored and reconciled.
//!
//! Wire types only. Times, dates and durations stay the text that was written, so that nothing is re-spelled on
//! the way through; [`super::schedule`] gives them their meaning. An absent field stays absent: what absence means
//! is written by the defaults at creation, never by the schema.

mod ramp;
mod status;
mod target;

use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::api::definition::undescribed;
use crate::api::reference::ConfigMapKey;
use crate::api::words::words;

pub use ramp::{Ramp, RampStep};
pub use status::{PastTransition, Phase, RampStatus, TDSetStatus, Transition};
pub use target::{Create, Pod, Reference, Target};

/// Most windows, and most exceptions, that one object may have.
pub const MOST_RULES: usize = 64;
/// Most replicas that any field may ask for.
pub const MOST_REPLICAS: i32 = 10_000;
/// Most dates that one exception may list.
pub const MOST_DATES: usize = 400;

/// How many replicas a workload has at which time of day, in which season and on which dates.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "gatehouse.dev",
    version = "v1",
    kind = "TDSet",
    plural = "tdsets",
    singular = "tdset",
    shortname = "tds",
    category = "gatehouse",
    namespaced,
    status = "TDSetStatus",
    derive = "PartialEq",
    doc = "TDSet gives a workload its replica count by a timetable: windows of the day, seasons, and exceptions.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "Whether the workload has the replicas that it should have now"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        description = "Why, or why not"
    ),
    printcolumn(
        name = "Window",
        type_ = "string",
        json_path = ".status.activeWindow",
        description = "The window or exception that decides now; empty outside all of them"
    ),
    printcolumn(
        name = "Scheduled",
        type_ = "integer",
        json_path = ".status.scheduledReplicas",
        description = "Replicas that the timetable asks for now"
    ),
    printcolumn(
        name = "Replicas",
        type_ = "integer",
        json_path = ".status.replicas",
        description = "Replicas that the workload has"
    ),
    printcolumn(
        name = "Next",
        type_ = "string",
        json_path = ".status.nextTransition.display",
        description = "When the count changes next, in the schedule's time zone"
    ),
    printcolumn(
        name = "Then",
        type_ = "integer",
        json_path = ".status.nextTransition.replicas",
        description = "Replicas from then on"
    ),
    printcolumn(
        name = "ReadyReplicas",
        type_ = "integer",
        json_path = ".status.readyReplicas",
        description = "Replicas that are ready",
        priority = 1
    ),
    printcolumn(
        name = "Zone",
        type_ = "string",
        json_path = ".spec.timeZone",
        description = "Time zone of the timetable",
        priority = 1
    ),
    printcolumn(
        name = "Suspended",
        type_ = "boolean",
        json_path = ".spec.suspend",
        description = "Whether replica writes are suspended",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[expect(clippy::duplicated_attributes, reason = "columns may have the same type")]
#[serde(rename_all = "camelCase")]
pub struct TDSetSpec {
    /// IANA name of the time zone that all local times and dates of this object are in, such as Europe/Berlin.
    /// Offsets, "Local" and POSIX strings are refused. Written as Etc/UTC at creation when absent.
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$"))]
    #[x_kube(validation = ("self != 'Local'", "must be the name of an IANA time zone, such as Europe/Berlin"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,

    /// True stops all writes of the replica count; other fields of the workload still roll out. Defaults to false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,

    /// Replicas outside every window and exception, 0 to 10000. May be absent with target.ref and without autoscaler:
    /// outside of windows and exceptions the workload is left alone then, and after them it gets back the count that it
    /// had before.
    #[schemars(range(min = 0, max = 10000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_replicas: Option<i32>,

    /// Which window decides where several hold: FirstMatch (the first in list order), Max or Min (the most or the
    /// fewest replicas). Defaults to FirstMatch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Overlap>,

    /// Recurring times of day with a replica count of their own, at most 64.
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub windows: Option<Vec<Window>>,

    /// Dates and spans that beat all windows, at most 64. Spans (between) come first, then dates; among each the
    /// first in list order decides.
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exceptions: Option<Vec<Exception>>,

    /// How fast the count moves towards the scheduled one. If absent, at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ramp: Option<Ramp>,

    /// What becomes of a count that another client wrote, as kubectl scale does: Revert takes it back,
    /// KeepUntilNextTransition lets it stand until the timetable changes next. Defaults to Revert.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manual_scale_policy: Option<ManualScalePolicy>,

    /// What becomes of a workload or an autoscaler that another controller owns, by its owner reference: Respect
    /// leaves it alone, Override writes it all the same. What gatehouse's own kinds own is left alone either way.
    /// Defaults to Respect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller_policy: Option<ControllerPolicy>,

    /// What dates are that cannot be read, for the ConfigMap or its key is missing or a line is no date: Ignore takes
    /// those days for ordinary ones, Hold leaves the count as it is until they can be read. Defaults to Ignore.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_unreadable_dates: Option<UnreadableDates>,

    /// Longest time between two reconciliations, in minutes, 1 to 1440. It never delays a transition. Defaults to 10;
    /// more than 10 acts like 10.
    #[schemars(range(min = 1, max = 1440))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resync_minutes: Option<i32>,

    /// The workload: create has one made, ref names one that is there. Exactly one of the two, for good.
    pub target: Target,

    /// Leaves the count to an autoscaler and sets its bounds instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autoscaler: Option<Autoscaler>,
}

impl TDSetSpec {
    /// The windows, none if absent.
    #[must_use]
    pub fn windows(&self) -> &[Window] {
        self.windows.as_deref().unwrap_or_default()
    }

    /// The exceptions, none if absent.
    #[must_use]
    pub fn exceptions(&self) -> &[Exception] {
        self.exceptions.as_deref().unwrap_or_default()
    }

    /// Whether the count is not written.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        self.suspend.unwrap_or_default()
    }
}

/// Which of several windows decides.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[schemars(transform = undescribed)]
pub enum Overlap {
    /// The first one in list order.
    #[default]
    FirstMatch,
    /// The one with the most replicas.
    Max,
    /// The one with the fewest replicas.
    Min,
}

/// What becomes of a count that another client wrote.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[schemars(transform = undescribed)]
pub enum ManualScalePolicy {
    /// It is taken back at once.
    #[default]
    Revert,
    /// It stands until the timetable changes next.
    KeepUntilNextTransition,
}

/// What becomes of what another controller owns.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[schemars(transform = undescribed)]
pub enum ControllerPolicy {
    /// It is left alone.
    #[default]
    Respect,
    /// It is written all the same.
    Override,
}

/// What dates are that cannot be read.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[schemars(transform = undescribed)]
pub enum UnreadableDates {
    /// Ordinary days.
    #[default]
    Ignore,
    /// The count is left as it is.
    Hold,
}

/// A day of the week.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[schemars(transform = undescribed)]
pub enum Day {
    /// Monday.
    Mon,
    /// Tuesday.
    Tue,
    /// Wednesday.
    Wed,
    /// Thursday.
    Thu,
    /// Friday.
    Fri,
    /// Saturday.
    Sat,
    /// Sunday.
    Sun,
}

/// A recurring time of day with a replica count of its own.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(
    "self.from != self.to || oldSelf.hasValue() && oldSelf.value().from == oldSelf.value().to"
).message("from and to must differ: a window of no length is never active").field_path(".to").optional_old_self(true))]
pub struct Window {
    /// Name of the window, unique in the object; it shows in status and events.
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,

    /// Local time at which the window starts, "HH:MM" from 00:00 to 23:59. In a spring gap it starts at the gap's
    /// end, in an autumn overlap at the first pass.
    #[schemars(length(max = 5), regex(pattern = "^([01][0-9]|2[0-3]):[0-5][0-9]$"))]
    pub from: String,

    /// Local time at which the window ends, "HH:MM" from 00:00 to 24:00, itself no longer part of it. Earlier than
    /// from means on the next day.
    #[schemars(length(max = 5), regex(pattern = "^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$"))]
    pub to: String,

    /// Days of the week on which the window starts: Mon, Tue, Wed, Thu, Fri, Sat, Sun. Defaults to every day.
    #[schemars(length(min = 1, max = 7))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub days: Option<Vec<Day>>,

    /// First and last local date on which the window starts. Defaults to all year, every year.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub season: Option<Season>,

    /// Replicas while the window holds, 0 to 10000.
    #[schemars(range(min = 0, max = 10000))]
    pub replicas: i32,

    /// The autoscaler's upper bound while the window holds, 1 to 10000, at least replicas. It goes with
    /// autoscaler; absent means autoscaler.maxReplicas.
    #[schemars(range(min = 1, max = 10000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_replicas: Option<i32>,

    /// False takes the window out of the timetable. Defaults to true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// First and last date on which a window starts.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("has(self.first) || has(self.last)", "at least one of first and last is required"),
    validation = Rule::new("!has(self.first) || !has(self.last) || self.first <= self.last")
        .message("must not be before first").field_path(".last"),
)]
pub struct Season {
    /// First local date, such as 2026-11-01, inclusive. If absent, there is no first one.
    #[schemars(schema_with = "date")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,

    /// Last local date, such as 2026-12-24, inclusive. If absent, there is no last one.
    #[schemars(schema_with = "date")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
}

/// Dates or a span that beat all windows.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "[has(self.dates), has(self.datesFrom), has(self.between)].exists_one(given, given)",
        "exactly one of dates, datesFrom and between is required"
    ),
    validation = Rule::new("!has(self.between) || has(self.replicas)").message("between needs replicas").field_path(".replicas"),
    validation = Rule::new("!has(self.between) || !has(self.skipWindows)")
        .message("skipWindows goes with dates, not with between").field_path(".skipWindows"),
    validation = Rule::new("has(self.replicas) || has(self.skipWindows)")
        .message("at least one of replicas and skipWindows is required").field_path(".replicas"),
)]
pub struct Exception {
    /// Name of the exception, unique in the object; status shows it as exception/<name>.
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,

    /// Local dates, such as 2026-12-25, at most 400.
    #[schemars(schema_with = "dates")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dates: Option<Vec<String>>,

    /// Takes the dates from elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dates_from: Option<DatesFrom>,

    /// Names of windows that do not happen where they would start on one of the dates; "*" means all.
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 63)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_windows: Option<Vec<String>>,

    /// Replicas, 0 to 10000, from local midnight to local midnight of each date, or for the whole span.
    #[schemars(range(min = 0, max = 10000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,

    /// The autoscaler's upper bound during that time, 1 to 10000, at least replicas. It goes with
    /// autoscaler; absent means autoscaler.maxReplicas.
    #[schemars(range(min = 1, max = 10000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_replicas: Option<i32>,

    /// One absolute span of time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between: Option<Between>,
}

/// Where the dates of an exception come from.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DatesFrom {
    /// A key of a ConfigMap in the same namespace: one date a line, such as 2026-12-25; "#" starts a comment. A line that
    /// is no date is named in the condition ScheduleValid; onUnreadableDates says what happens then.
    pub config_map_key_ref: ConfigMapKey,
}

/// One absolute span of time.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.end > self.start").message("must be after start").field_path(".end"))]
pub struct Between {
    /// First instant, RFC 3339 with an offset, such as 2026-11-27T06:00:00+01:00.
    #[schemars(length(max = 40), extend("format" = "date-time"))]
    pub start: String,

    /// End, itself no longer part of the span, RFC 3339 with an offset.
    #[schemars(length(max = 40), extend("format" = "date-time"))]
    pub end: String,
}

/// The autoscaler that keeps the count.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Autoscaler {
    /// Kind of the autoscaler: HorizontalPodAutoscaler, or ScaledObject (KEDA). Written as HorizontalPodAutoscaler at
    /// creation when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<AutoscalerKind>,

    /// Name of the autoscaler, in the same namespace; it has to scale the target. The scheduled count becomes its lower
    /// bound. Where that is 0 and a HorizontalPodAutoscaler cannot have it, the workload itself is scaled to 0, where
    /// the autoscaler is inactive, and back; the count of the workload is never written otherwise.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// Its upper bound, 1 to 10000, where no window and no exception with one of its own holds. If absent, the upper
    /// bound is not written; then no window and no exception may have one.
    #[schemars(range(min = 1, max = 10000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_replicas: Option<i32>,

    /// The bounds that it is left with when this object is deleted. If absent, it keeps those that it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_deletion: Option<BoundsOnDeletion>,
}

/// The bounds that an autoscaler is left with.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.maxReplicas) || self.maxReplicas >= self.minReplicas")
    .message("must not be below minReplicas").field_path(".maxReplicas"))]
pub struct BoundsOnDeletion {
    /// Its lower bound, 0 to 10000.
    #[schemars(range(min = 0, max = 10000))]
    pub min_replicas: i32,

    /// Its upper bound, 1 to 10000. If absent, it keeps the one that it has.
    #[schemars(range(min = 1, max = 10000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_replicas: Option<i32>,
}

words! {
    /// Kind of an autoscaler.
    #[derive(JsonSchema, Default, Deserialize)]
    #[schemars(transform = undescribed)]
    AutoscalerKind:
    /// A HorizontalPodAutoscaler of the API group autoscaling.
    #[default]
    HorizontalPodAutoscaler,
    /// A ScaledObject of KEDA.
    ScaledObject,
}

impl AutoscalerKind {
    /// Its API group.
    #[must_use]
    pub const fn group(self) -> &'static str {
        match self {
            Self::HorizontalPodAutoscaler => "autoscaling",
            Self::ScaledObject => "keda.sh",
        }
    }
}

fn date(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "date", "maxLength": 10})
}

fn dates(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "minItems": 1,
        "maxItems": MOST_DATES,
        "items": date(generator),
        "x-kubernetes-list-type": "set",
    })
}
