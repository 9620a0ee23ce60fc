//! The events of one object, as other controllers have published them.
//!
//! Guarantees: no event of another object. Without the right to list events there is none.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::api::ListParams;
use kube::{Api, Client};
use tracing::debug;

use crate::runtime::call::call;

/// The longest text of an event that is repeated elsewhere, in characters.
const LONGEST: usize = 500;

/// What an event says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Why, in one word.
    pub reason: String,
    /// What has happened, on one line.
    pub text: String,
    /// Whether it is a warning.
    pub is_warning: bool,
}

/// The events of the object of that uid, the latest first.
pub async fn of(client: &Client, namespace: &str, uid: &str) -> Vec<Said> {
    let events: Api<Event> = Api::namespaced(client.clone(), namespace);
    let about = ListParams::default().fields(&format!("involvedObject.uid={uid}"));
    match call(events.list(&about)).await {
        Ok(listed) => sorted(listed.items),
        Err(error) => {
            debug!(namespace, uid, %error, "events could not be listed");
            Vec::new()
        }
    }
}

fn sorted(mut events: Vec<Event>) -> Vec<Said> {
    events.sort_by_key(|event| std::cmp::Reverse(time(event)));
    events.into_iter().map(said).collect()
}

/// When it happened last.
fn time(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref().and_then(|series| series.last_observed_time.as_ref());
    let of_event = series.or(event.event_time.as_ref()).map(|time| time.0);
    of_event.max(event.last_timestamp.as_ref().map(|time| time.0))
}

fn said(event: Event) -> Said {
    let text = event.message.unwrap_or_default();
    Said {
        reason: event.reason.unwrap_or_default(),
        text: one_line(&text),
        is_warning: event.type_.as_deref() == Some("Warning"),
    }
}

/// A text of another program on one line, cut where it is long.
#[must_use]
pub fn one_line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_latest_event_comes_first_by_whichever_time_it_has() {
        let events = [
            json!({"reason": "Old", "lastTimestamp": "2026-11-29T08:00:00Z"}),
            json!({"reason": "Series", "eventTime": "2026-11-29T07:00:00.000000Z",
                "series": {"lastObservedTime": "2026-11-29T08:03:00.000000Z", "count": 9}}),
            json!({"reason": "New", "eventTime": "2026-11-29T08:01:00.000000Z", "type": "Warning", "message": "a\n b"}),
            json!({"reason": "Timeless"}),
        ];
        let events = events.map(|mut event| {
            event["metadata"] = json!({});
            event["involvedObject"] = json!({});
            serde_json::from_value(event).unwrap()
        });
        let said = sorted(events.into());
        let reasons: Vec<_> = said.iter().map(|said| said.reason.as_str()).collect();
        assert_eq!(reasons, ["Series", "New", "Old", "Timeless"]);
        assert_eq!((said[1].text.as_str(), said[1].is_warning, said[0].is_warning), ("a b", true, false));
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(one_line(&"ü".repeat(LONGEST)).chars().count(), LONGEST);
        assert_eq!(one_line(&"ü".repeat(LONGEST + 1)).chars().count(), LONGEST + 1);
    }
}
