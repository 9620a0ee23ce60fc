//! The Lease that replicas elect a leader by: what it says, and who has held it.

use jiff::Timestamp;
use kit::bed::Bed;
use serde_json::Value;

use crate::installed::LEASE;

/// What a Lease says.
pub struct Lease {
    pub holder: String,
    pub transitions: u64,
    pub acquired: Timestamp,
    pub renewed: Timestamp,
}

impl Lease {
    pub fn of(spec: &Value) -> Self {
        let time = |field: &str| spec[field].as_str().expect("a time").parse().expect("a time");
        Self {
            holder: spec["holderIdentity"].as_str().unwrap_or_default().to_owned(),
            transitions: spec["leaseTransitions"].as_u64().expect("a count"),
            acquired: time("acquireTime"),
            renewed: time("renewTime"),
        }
    }
}

/// The version that it has.
pub fn version(bed: &Bed) -> Value {
    bed.objects.at(LEASE)["metadata"]["resourceVersion"].clone()
}

/// Who has held it since that version of it, one after the other; empty where it was released.
pub fn holders_since(bed: &Bed, before: &Value) -> Vec<String> {
    let (leases, name) = LEASE.rsplit_once('/').expect("a path");
    let place = format!("{leases}?fieldSelector=metadata.name%3D{name}");
    let (before, now) = (before.as_str().expect("a version"), version(bed));
    let is_now = |event: &Value| event["object"]["metadata"]["resourceVersion"] == now;
    let events = bed.objects.events_until(&place, before, is_now);
    let holder =
        |event: &Value| event["object"]["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
    let mut holders: Vec<_> = events.iter().map(holder).collect();
    holders.dedup();
    holders
}
