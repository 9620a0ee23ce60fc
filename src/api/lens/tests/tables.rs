//! A third version, whose table is data that is read at run time.

use proptest::prelude::*;
use random_objects::Source;
use serde_json::{Value, json};

use super::super::{Parts, Room, Row, Table, Translation, between};
use super::{HUB, SPOKE, lens};
use crate::kinds::tdset::api::TDSetKind;
use crate::properties;

/// Between `v1alpha1` and `v1`: windows with names and days, and times as minutes of the day.
const V1BETA1: &str = r#"[
    {"spoke": "/spec/count", "hub": "/spec/defaultReplicas"},
    {"spoke": "/spec/zone", "hub": "/spec/timeZone"},
    {"spoke": "/spec/periods", "hub": "/spec/windows", "items": [
        {"spoke": "/title", "hub": "/name"},
        {"spoke": "/begin", "hub": "/from", "translation": "minutes"},
        {"spoke": "/end", "hub": "/to", "translation": "minutes"},
        {"spoke": "/days", "hub": "/days"},
        {"spoke": "/count", "hub": "/replicas"},
        {"hub": "/season"}, {"hub": "/maxReplicas"}, {"hub": "/enabled"}
    ]},
    {"hub": "/spec/suspend"}, {"hub": "/spec/overlap"}, {"hub": "/spec/exceptions"}, {"hub": "/spec/ramp"},
    {"hub": "/spec/manualScalePolicy"}, {"hub": "/spec/target"}, {"hub": "/spec/autoscaler"}, {"hub": "/spec/resyncMinutes"},
    {"spoke": "/status", "hub": "/status"}
]"#;

const ROOM: Room = Room { surely: usize::MAX, exactly: &|| usize::MAX };

fn table() -> Table {
    let rows: Vec<Value> = serde_json::from_str(V1BETA1).unwrap();
    Table { rows: rows.iter().map(row).collect() }
}

fn row(row: &Value) -> Row {
    let text = |field: &str| row[field].as_str().map(|text| text.to_owned().into());
    let hub = text("hub").unwrap();
    match (text("spoke"), row["items"].as_array(), row["translation"].as_str()) {
        (None, ..) => Row::HubOnly { hub },
        (Some(spoke), Some(items), _) => {
            Row::List { spoke, hub, items: items.iter().map(self::row).collect(), name: None }
        }
        (Some(spoke), None, Some("minutes")) => {
            Row::Value { spoke, hub, translation: Translation { to_hub: clock, to_spoke: minutes } }
        }
        (Some(spoke), None, _) => Row::Field { spoke, hub },
    }
}

fn clock(minutes: &Value) -> Option<Value> {
    let minutes = minutes.as_u64().filter(|minutes| *minutes < 24 * 60)?;
    Some(format!("{:02}:{:02}", minutes / 60, minutes % 60).into())
}

fn minutes(time: &Value) -> Option<Value> {
    let (hour, minute) = time.as_str()?.split_once(':')?;
    let number =
        |text: &str, most: u64| text.parse().ok().filter(|number: &u64| text.len() == 2 && *number <= most);
    Some((number(hour, 23)? * 60 + number(minute, 59)?).into())
}

fn parts(object: &Value) -> Parts {
    let fields =
        object.as_object().unwrap().iter().filter(|(key, _)| ["spec", "status"].contains(&key.as_str()));
    Parts { fields: fields.map(|(key, value)| (key.clone(), value.clone())).collect(), ..Parts::default() }
}

proptest! {
    #![proptest_config(crate::properties::config())]

    #[test]
    fn through_a_table_that_was_read_nothing_is_lost(seed: u64) {
        let (beta, alpha) = (table(), lens().table(SPOKE).unwrap());
        let hub = parts(&properties::object(&mut Source::new(seed), &TDSetKind, HUB));
        let shown = between(hub.clone(), None, Some(&beta), &ROOM);
        prop_assert_eq!(&between(shown.clone(), Some(&beta), None, &ROOM), &hub);
        // From one spoke to another and back, by way of the hub.
        let old = between(shown.clone(), Some(&beta), Some(alpha), &ROOM);
        prop_assert_eq!(&old, &between(hub, None, Some(alpha), &ROOM));
        prop_assert_eq!(between(old, Some(alpha), Some(&beta), &ROOM), shown);
    }
}

#[test]
fn an_edit_in_one_spoke_is_seen_in_the_other() {
    let (beta, alpha) = (table(), lens().table(SPOKE).unwrap());
    let window =
        |from: &str| json!({"name": "office", "from": from, "to": "18:00", "days": ["Mon"], "replicas": 6});
    let hub = parts(
        &json!({"spec": {"defaultReplicas": 2, "timeZone": "Europe/Berlin", "windows": [window("08:30")]}}),
    );
    let mut old = between(hub.clone(), None, Some(alpha), &ROOM);
    old.fields["spec"]["schedulingConfig"][0]["startTime"] = json!(9);
    let shown = between(old, Some(alpha), Some(&beta), &ROOM);
    let period = json!({"title": "office", "begin": 540, "end": 1080, "days": ["Mon"], "count": 6});
    assert_eq!(shown.fields["spec"]["periods"], json!([period]));
    assert_eq!(shown.fields["spec"]["zone"], "Europe/Berlin");
    let back = between(shown, Some(&beta), None, &ROOM);
    assert_eq!(back.fields["spec"]["windows"], json!([window("09:00")]));
}
