//! How TDSet `v1alpha1` and `v1` map on each other.
//!
//! Hours of `v1alpha1` are wall-clock hours in the object's time zone, which is UTC unless `v1` said otherwise. They
//! are not recalculated to UTC: that would need a date (a zone has two offsets), and an hour edited through
//! `v1alpha1` would be read back in the zone that the object keeps.

use std::borrow::Cow;

use serde_json::Value;

use crate::api::Version;
use crate::api::lens::{
    ItemName, Lens, Row, Table, Translation, hub_only, list, object, rename, same, translated,
};

/// The tables.
pub static LENS: Lens = Lens { spokes: Cow::Borrowed(&[(Version::V1Alpha1, Table::of(V1ALPHA1))]) };

const V1ALPHA1: &[Row] = &[
    object("/spec/container", "/spec/target/create"),
    rename("/spec/container/image", "/spec/target/create/image"),
    rename("/spec/container/port", "/spec/target/create/port"),
    rename("/spec/service/port", "/spec/target/create/servicePort"),
    list(
        "/spec/schedulingConfig",
        "/spec/windows",
        WINDOW,
        Some(ItemName { field: Cow::Borrowed("name"), prefix: Cow::Borrowed("w") }),
    ),
    rename("/spec/defaultReplica", "/spec/defaultReplicas"),
    rename("/spec/intervalMint", "/spec/resyncMinutes"),
    hub_only("/spec/timeZone"),
    hub_only("/spec/suspend"),
    hub_only("/spec/overlap"),
    hub_only("/spec/exceptions"),
    hub_only("/spec/ramp"),
    hub_only("/spec/manualScalePolicy"),
    hub_only("/spec/controllerPolicy"),
    hub_only("/spec/onUnreadableDates"),
    hub_only("/spec/target"),
    hub_only("/spec/autoscaler"),
    same("/status/observedGeneration"),
    same("/status/activeWindow"),
    same("/status/scheduledReplicas"),
    same("/status/replicas"),
    same("/status/readyReplicas"),
    same("/status/nextTransition"),
    same("/status/conditions"),
    hub_only("/status/replicasBefore"),
    hub_only("/status/selector"),
    hub_only("/status/lastTransition"),
    hub_only("/status/ramp"),
    hub_only("/status/upcoming"),
    hub_only("/status/tzdb"),
];

/// A window. Its hours are rounded outward where `v1alpha1` cannot say the minutes.
const WINDOW: &[Row] = &[
    translated("/startTime", "/from", Translation { to_hub: clock, to_spoke: hour_before }),
    translated("/endTime", "/to", Translation { to_hub: clock, to_spoke: hour_after }),
    rename("/replica", "/replicas"),
    hub_only("/name"),
    hub_only("/days"),
    hub_only("/season"),
    hub_only("/maxReplicas"),
    hub_only("/enabled"),
];

/// `18` is `"18:00"`.
fn clock(hour: &Value) -> Option<Value> {
    let hour = HOURS.get(usize::try_from(hour.as_u64()?).ok()?)?;
    Some((*hour).into())
}

const HOURS: [&str; 24] = [
    "00:00", "01:00", "02:00", "03:00", "04:00", "05:00", "06:00", "07:00", "08:00", "09:00", "10:00",
    "11:00", "12:00", "13:00", "14:00", "15:00", "16:00", "17:00", "18:00", "19:00", "20:00", "21:00",
    "22:00", "23:00",
];

/// The hour that a window's start lies in.
fn hour_before(time: &Value) -> Option<Value> {
    let (hour, _) = hour_and_minute(time)?;
    (hour <= 23).then(|| hour.into())
}

/// The first full hour at or past a window's end; midnight is 0, as an end of `v1alpha1` it wraps.
fn hour_after(time: &Value) -> Option<Value> {
    let (hour, minute) = hour_and_minute(time)?;
    let full = if minute > 0 { hour + 1 } else { hour };
    (full <= 24).then(|| (full % 24).into())
}

fn hour_and_minute(time: &Value) -> Option<(u64, u64)> {
    let (hour, minute) = time.as_str()?.split_once(':')?;
    let number = |text: &str| (text.len() == 2).then(|| text.parse::<u64>().ok()).flatten();
    Some((number(hour)?, number(minute).filter(|minute| *minute <= 59)?))
}
