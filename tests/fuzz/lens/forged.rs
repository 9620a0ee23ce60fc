//! Annotations of conversions that were forged, broken, or taken from another object.
//!
//! Guarantees: they fail nothing, never stay in the hub, never stand in for what the spoke shows or leaves out, add no
//! part to an object, and make of it no more than so many times its size.
//! Not asserted: what they say of values that the spoke shows coarser. An author could have written it as `v1`, and it
//! is judged as if. And the last digit of numbers with a fraction, which serde_json reads a bit beside now and then.

use gatehouse::api::Kind;
use gatehouse::api::lens::Row;
use gatehouse::api::lens::memory::{self, PREFIX};
use kit::random::Random;
use serde_json::{Map, Value, json};

use super::{HUB, SPOKE, can_carry, down, fields, hold_same, is_clear, kind_of, lists, plain, put, rows, up};
use crate::corpus::Input;
use crate::drawn::{self, change, is_exact, junk, one_in, one_of, pick, text};
use crate::text::break_up;

/// How large the hub's object may be, as a factor of the spoke's, and in all.
const TIMES: usize = 30;
const MORE: usize = 64 * 1024;

/// An object of the spoke with some such annotations; now and then a kept one that was changed.
pub fn make(random: &mut Random, corpus: &[Input]) -> Vec<u8> {
    if one_in(random, 8)
        && let Ok(mut object) = serde_json::from_slice(&one_of(random, corpus).bytes)
    {
        change(random, &mut object);
        return object.to_string().into_bytes();
    }
    let kind = drawn::kind(random);
    let mut object = drawn::object(random, kind, SPOKE);
    for _ in 0..=random.below(3) {
        forge(random, kind, &mut object);
    }
    object.to_string().into_bytes()
}

/// Adds annotations to an object: those of another one, and some that are made up. Leaves alone what cannot have any.
pub fn forge(random: &mut Random, kind: &'static dyn Kind, object: &mut Value) {
    let other = drawn::object(random, kind, HUB);
    let mut shown = down(kind, &other);
    let taken = shown.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    let mut annotations = taken.map(std::mem::take).unwrap_or_default();
    annotations.retain(|_, _| one_in(random, 2));
    for said in annotations.values_mut() {
        if let (true, Some(said_text)) = (one_in(random, 3), said.as_str()) {
            let mut broken = said_text.as_bytes().to_vec();
            break_up(random, &mut broken);
            *said = String::from_utf8_lossy(&broken).into();
        }
    }
    for _ in 0..random.below(3) {
        annotations.insert(key(random, kind), said(random).into());
    }
    if can_carry(object) {
        put(object, "/metadata/annotations/of", Value::Null);
        let own = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
        if let Some(own) = own {
            own.remove("of");
            own.append(&mut annotations);
        }
    }
}

/// The name of an annotation: one of a row, one below it, or anything.
fn key(random: &mut Random, kind: &'static dyn Kind) -> String {
    let row = one_of(random, rows(kind));
    let place = if one_in(random, 2) { row.hub() } else { row.spoke().unwrap_or_else(|| row.hub()) };
    let place = match random.below(6) {
        0 => format!("{place}/{}", text(random)),
        1 => place.rsplit_once('/').map_or(String::new(), |(above, _)| above.to_owned()),
        2 => format!("{place}{}", "/a".repeat(pick(random, &[1, 100, 128, 129, 3000]))),
        _ => place.to_owned(),
    };
    match random.below(5) {
        0 => format!("{PREFIX}{}", text(random)),
        1 => format!("{PREFIX}{}-0011223344556677", place.trim_start_matches('/').replace('/', ".")),
        2 => memory::key(&place).0,
        _ => format!("{PREFIX}{}", place.trim_start_matches('/').replace('/', ".")),
    }
}

/// What an annotation says: something of the form that is read, or anything.
fn said(random: &mut Random) -> String {
    let item = |random: &mut Random| {
        json!({"shown": "0011223344556677", "like": [random.below(70_000)], "only": {"name": text(random), "days": junk(random)},
            "rows": {"/from": {"shown": "x", "was": junk(random)}, "": {"shown": "y", "was": junk(random)}}})
    };
    let said = match random.below(6) {
        0 => json!({"shown": text(random), "was": junk(random)}),
        1 => json!({"items": (0..random.below(5)).map(|_| item(random)).collect::<Vec<_>>()}),
        2 => json!({format!("/spec{}", "/b".repeat(pick(random, &[1, 100, 127, 128, 5000]))): junk(random)}),
        3 => return text(random),
        _ => junk(random),
    };
    said.to_string()
}

/// Holds what comes up against what the spoke shows.
pub fn check(input: &[u8]) {
    let Ok(object) = serde_json::from_slice::<Value>(input) else { return };
    let (Some(kind), true) = (kind_of(&object, SPOKE), can_carry(&object)) else { return };
    let hub = up(kind, &object);
    let annotations = hub["metadata"]["annotations"].as_object();
    let ours = annotations.into_iter().flat_map(Map::keys).find(|key| key.starts_with(PREFIX));
    assert!(ours.is_none(), "{ours:?} stays in the hub");
    let size = hub.to_string().len();
    assert!(size <= input.len() * TIMES + MORE, "{size} bytes come of {}", input.len());
    hold_shown(kind, &object, &hub);
    let parts = |object: &Value| {
        let keys = object.as_object().into_iter().flat_map(Map::keys).filter(|key| *key != "metadata");
        let mut keys: Vec<_> = keys.cloned().collect();
        keys.sort_unstable();
        keys
    };
    assert_eq!(parts(&hub), parts(&object), "another part");
    let again = down(kind, &hub);
    if is_exact(&hub) && is_clear(kind, &hub) && !memory::is_dropped(&again["metadata"]["annotations"]) {
        let why = || format!("what came up comes back another one, shown as {again}");
        hold_same(&plain(&up(kind, &again)), &plain(&hub), why);
    }
}

/// What the spoke shows, the hub has, and what the spoke leaves out, nothing else adds.
fn hold_shown(kind: &dyn Kind, shown: &Value, hub: &Value) {
    for (spoke, place) in fields(kind) {
        assert_eq!(hub.pointer(place), shown.pointer(spoke), "{place} is not what {spoke} says");
    }
    for list in lists(kind) {
        let (Some(shown), Some(of_hub)) = (shown.pointer(list.spoke), hub.pointer(list.hub)) else {
            continue;
        };
        let (Some(shown), Some(of_hub)) = (shown.as_array(), of_hub.as_array()) else { continue };
        assert_eq!(shown.len(), of_hub.len(), "{} has another number of items", list.hub);
        for (shown, of_hub) in shown.iter().zip(of_hub) {
            hold_item(list.items, shown, of_hub);
        }
    }
}

fn hold_item(rows: &[Row], shown: &Value, hub: &Value) {
    for row in rows {
        match row {
            Row::Field { spoke, hub: place } if shown.is_object() && !spoke.is_empty() => {
                assert_eq!(
                    hub.pointer(place),
                    shown.pointer(spoke),
                    "{place} of an item is not what {spoke} says"
                );
            }
            Row::Field { spoke, hub: place } if spoke.is_empty() && shown.is_string() && hub.is_object() => {
                assert_eq!(hub.pointer(place), Some(shown), "{place} of an item is another one");
            }
            _ => {}
        }
    }
}
