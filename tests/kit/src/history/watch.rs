//! What etcd says happened: its service Watch, from a revision on.

use std::time::Duration;

use gatehouse::kinds::etcdcluster::etcd::{Client, Error, Rpc};

use super::record::Event;
use crate::etcd::KeyValue;
use crate::wait::patient;

/// How long there may be silence while more has to come.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone, PartialEq, prost::Message)]
struct WatchRequest {
    #[prost(message, optional, tag = "1")]
    create: Option<WatchCreate>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct WatchCreate {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    range_end: Vec<u8>,
    #[prost(int64, tag = "3")]
    start_revision: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct WatchResponse {
    #[prost(bool, tag = "4")]
    canceled: bool,
    #[prost(int64, tag = "5")]
    compact_revision: i64,
    #[prost(string, tag = "6")]
    cancel_reason: String,
    #[prost(message, repeated, tag = "11")]
    events: Vec<Change>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Change {
    /// 0 for a write, 1 for a deletion.
    #[prost(int32, tag = "1")]
    kind: i32,
    #[prost(message, required, tag = "2")]
    after: KeyValue,
}

impl Rpc for WatchRequest {
    type Answer = WatchResponse;
    const PATH: &'static str = "/etcdserverpb.Watch/Watch";
    const DOING: &'static str = "watch keys";
}

/// Why the history could not be read.
#[derive(Debug)]
#[expect(dead_code, reason = "shown where a test fails")]
pub enum NoHistory {
    Call(Error),
    Canceled { reason: String, compact_revision: i64 },
    Ended,
}

/// All changes of the keys `<prefix>/<digit>` after one revision and up to another, at which the key `<prefix>/end` was
/// written.
pub async fn events(client: &Client, prefix: &str, after: i64, until: i64) -> Result<Vec<Event>, NoHistory> {
    let create = WatchCreate {
        key: format!("{prefix}/").into_bytes(),
        range_end: format!("{prefix}0").into_bytes(), // the byte after the slash
        start_revision: after + 1,
    };
    let request = WatchRequest { create: Some(create) };
    let mut answers = client.stream(request, true, patient(PATIENCE)).await.map_err(NoHistory::Call)?;
    let mut events = Vec::new();
    loop {
        let answer =
            answers.next(patient(PATIENCE)).await.map_err(NoHistory::Call)?.ok_or(NoHistory::Ended)?;
        if answer.canceled {
            let (reason, compact_revision) = (answer.cancel_reason, answer.compact_revision);
            return Err(NoHistory::Canceled { reason, compact_revision });
        }
        for change in answer.events {
            let revision = change.after.mod_revision;
            let name = &change.after.key[prefix.len() + 1..];
            if let [digit @ b'0'..=b'9'] = name {
                let value = (change.kind == 0).then(|| number(&change.after.value));
                events.push(Event { revision, key: digit - b'0', value });
            }
            if revision >= until {
                return Ok(events);
            }
        }
    }
}

/// The value that was written as these bytes; 0, which never is, for what no writer wrote.
pub fn number(bytes: &[u8]) -> u64 {
    std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok()).unwrap_or_default()
}
