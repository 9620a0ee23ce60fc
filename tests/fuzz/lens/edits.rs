//! One edit through the spoke, of an object that says more than the spoke shows.
//!
//! Guarantees: an object that goes down and comes up again is the same; an edit of one field, or of one field of an item,
//! changes that and nothing else; items that are added, taken away or moved change no other item.
//! Not asserted: which of two items is which that the spoke shows alike, once one of them was taken away or moved; then
//! no item is made up. And the names of items in a list whose items say no more than what the spoke shows: they are
//! counted, `w0`, `w1`, and counted anew where one is taken away. And the last digit of numbers with a fraction, which
//! serde_json reads a bit beside now and then.

use gatehouse::api::Kind;
use gatehouse::api::lens::Row;
use gatehouse::api::lens::memory;
use kit::random::Random;
use serde_json::{Value, json};

use super::{HUB, List, can_carry, down, fields, kind_of, lists, plain, put, take, up, without_empty};
use crate::corpus::Input;
use crate::drawn::{self, change, is_exact, junk, one_in, one_of, pick};

/// An object of the hub and an edit: `{"hub": …, "edit": {"set": "/spec/size", "value": 3}}`. Others are `remove` of a place;
/// `item`, the position, with `field` and `value`; `insert` at a position, with `value`; `drop` of one, `swap` of two;
/// `list` is the place of the list in the spoke.
pub fn make(random: &mut Random, corpus: &[Input]) -> Vec<u8> {
    if one_in(random, 10)
        && let Ok(mut input) = serde_json::from_slice(&one_of(random, corpus).bytes)
    {
        change(random, &mut input);
        return input.to_string().into_bytes();
    }
    let kind = drawn::kind(random);
    let mut hub = drawn::object(random, kind, HUB);
    if one_in(random, 2) && kind.names().kind == "TDSet" {
        let many = random.below(6);
        put(&mut hub, "/spec/windows", (0..many).map(|at| window(random, at)).collect());
    }
    json!({"hub": hub, "edit": edit(random, kind)}).to_string().into_bytes()
}

/// A window of few shapes, so that two are often shown alike.
fn window(random: &mut Random, at: usize) -> Value {
    let minutes = pick(random, &["00", "00", "30"]);
    let mut window = json!({"name": format!("{}{at}", pick(random, &["w", "w", "night"])),
        "from": format!("{:02}:{minutes}", random.below(3)), "to": pick(random, &["05:00", "05:15", "24:00"]), "replicas": random.below(3)});
    if one_in(random, 3) {
        window["days"] = json!([pick(random, &["Mon", "Tue"])]);
    }
    window
}

fn edit(random: &mut Random, kind: &'static dyn Kind) -> Value {
    let places: Vec<_> = fields(kind.lens()).collect();
    let (spoke, _) = pick(random, &places);
    let lists: Vec<_> = lists(kind.lens()).collect();
    let list = one_of(random, &lists);
    let (one, two) = (random.below(5), random.below(5));
    match random.below(8) {
        0 => json!({"set": spoke, "value": junk(random)}),
        1 => json!({"set": spoke, "value": random.below(9)}),
        2 => json!({"remove": spoke}),
        3 | 4 => {
            let field = one_of(random, list.items).spoke().unwrap_or("/unknown");
            let value = if one_in(random, 4) { junk(random) } else { json!(random.below(24)) };
            json!({"list": list.spoke, "item": one, "field": field, "value": value})
        }
        5 => json!({"list": list.spoke, "insert": one, "value": item(random, list)}),
        6 => json!({"list": list.spoke, "drop": one}),
        _ => json!({"list": list.spoke, "swap": [one, two]}),
    }
}

/// A new item, as the spoke has it.
fn item(random: &mut Random, list: &List) -> Value {
    if list.items.iter().any(|row| row.spoke() == Some("")) {
        return json!(format!("new-{}", random.below(3)));
    }
    json!({"startTime": random.below(24), "endTime": random.below(24), "replica": random.below(4)})
}

/// Edits what the spoke shows, and holds what comes up against what was edited.
pub fn check(input: &[u8]) {
    let Ok(input) = serde_json::from_slice::<Value>(input) else { return };
    let (hub, edit) = (&input["hub"], &input["edit"]);
    let (Some(kind), true) = (kind_of(hub, HUB), can_carry(hub)) else { return };
    let shown = down(kind, hub);
    if !is_exact(hub) || memory::is_dropped(&shown["metadata"]["annotations"]) {
        return;
    }
    assert_eq!(plain(&up(kind, &shown)), plain(hub), "unedited, it comes back another one, shown as {shown}");
    if let Some(place) = edit["list"].as_str() {
        if let Some(list) = lists(kind.lens()).find(|list| list.spoke == place) {
            hold_list(kind, list, hub, &shown, edit);
        }
    } else if let Some((spoke, place)) =
        fields(kind.lens()).find(|(spoke, _)| edit["set"] == *spoke || edit["remove"] == *spoke)
    {
        hold_field(kind, (spoke, place), hub, &shown, edit);
    }
}

fn hold_field(kind: &dyn Kind, (spoke, place): (&str, &str), hub: &Value, shown: &Value, edit: &Value) {
    let (mut edited, mut expected) = (shown.clone(), hub.clone());
    if edit.get("remove").is_some() {
        take(&mut edited, spoke);
        take(&mut expected, place);
    } else {
        let value = edit["value"].clone();
        let is_there = |object: &Value, place: &str| {
            let above = place.split('/').nth(1).unwrap_or_default();
            object.get(above).is_some_and(Value::is_object)
        };
        let can_be = is_there(hub, place)
            && put(&mut edited, spoke, value.clone())
            && put(&mut expected, place, value);
        if !can_be {
            return;
        }
    }
    // An object that the edit leaves empty may go with its last field.
    let (back, expected) = (without_empty(&up(kind, &edited)), without_empty(&expected));
    assert_eq!(plain(&back), plain(&expected), "{edit} changes something else; the spoke shows {edited}");
}

fn hold_list(kind: &dyn Kind, list: List, hub: &Value, shown: &Value, edit: &Value) {
    let (Some(Value::Array(before)), Some(Value::Array(looks))) =
        (hub.pointer(list.hub), shown.pointer(list.spoke))
    else {
        return;
    };
    let Some(change) = Change::of(edit, looks.len()) else { return };
    let (mut items, mut expected) = (looks.clone(), before.clone());
    let new = match change {
        Change::Field(at) => {
            let done = edit_item(list, edit, &mut items[at], &mut expected[at]);
            if done.is_none() {
                return;
            }
            None
        }
        Change::Insert(at) => {
            items.insert(at, edit["value"].clone());
            expected.insert(at, Value::Null);
            Some(at)
        }
        Change::Drop(at) => {
            items.remove(at);
            expected.remove(at);
            None
        }
        Change::Swap(one, two) => {
            items.swap(one, two);
            expected.swap(one, two);
            None
        }
    };
    let mut edited = shown.clone();
    let is_put = put(&mut edited, list.spoke, Value::Array(items));
    assert!(is_put, "a list that is there can be replaced");
    let mut back = up(kind, &edited);
    let mut after = back.pointer_mut(list.hub).map(Value::take).unwrap_or_default();
    let after = after.as_array_mut().map(std::mem::take).unwrap_or_default();
    assert_eq!(after.len(), expected.len(), "{edit} changes the number of items");
    let mut rest = hub.clone();
    put(&mut rest, list.hub, Value::Null);
    assert_eq!(plain(&back), plain(&rest), "{edit} changes something beside the list");
    let is_remembered = shown["metadata"]["annotations"][memory::key(list.hub).0].is_string();
    let in_place = matches!(change, Change::Field(_));
    let kept = |items: Vec<Value>| {
        items.into_iter().map(|item| nameless(item, is_remembered || in_place)).collect::<Vec<_>>()
    };
    let (mut after, mut expected) = (kept(after), kept(expected));
    if let Some(new) = new {
        (after[new], expected[new]) = (Value::Null, Value::Null);
    }
    let look_of_new = new.map(|_| &edit["value"]);
    let is_distinct =
        |look: &Value| looks.iter().filter(|one| *one == look).count() < 2 && look_of_new != Some(look);
    if in_place || looks.iter().all(is_distinct) {
        assert_eq!(after, expected, "{edit} changes another item; the spoke shows {edited}");
    } else {
        hold_known(&after, &before_and_new(before, is_remembered));
    }
}

/// Of items that are shown alike, none is made up.
fn hold_known(after: &[Value], before: &[Value]) {
    let mut left = before.to_vec();
    let mut strange = 0;
    for item in after {
        match left.iter().position(|one| one == item) {
            Some(at) => drop(left.swap_remove(at)),
            None => strange += 1,
        }
    }
    assert!(strange <= 1, "{strange} items are not of those that were there: {after:?}");
}

fn before_and_new(before: &[Value], is_remembered: bool) -> Vec<Value> {
    before.iter().map(|item| nameless(item.clone(), is_remembered)).chain([Value::Null]).collect()
}

/// The item, without its name where names are counted.
fn nameless(mut item: Value, is_remembered: bool) -> Value {
    if let (false, Some(fields)) = (is_remembered, item.as_object_mut()) {
        fields.shift_remove("name");
    }
    item
}

/// What is done to a list.
#[derive(Clone, Copy)]
enum Change {
    Field(usize),
    Insert(usize),
    Drop(usize),
    Swap(usize, usize),
}

impl Change {
    /// Reads an edit of a list with so many items; none where it has no such item.
    fn of(edit: &Value, many: usize) -> Option<Self> {
        let number = |value: &Value| usize::try_from(value.as_u64()?).ok();
        let below = |value: &Value| number(value).filter(|at| *at < many);
        below(&edit["item"])
            .map(Self::Field)
            .or_else(|| number(&edit["insert"]).filter(|at| *at <= many).map(Self::Insert))
            .or_else(|| below(&edit["drop"]).map(Self::Drop))
            .or_else(|| Some(Self::Swap(below(&edit["swap"][0])?, below(&edit["swap"][1])?)))
    }
}

/// Changes a field of an item on both sides; none where the item has no such field.
fn edit_item(list: List, edit: &Value, shown: &mut Value, hub: &mut Value) -> Option<()> {
    let row = list.items.iter().find(|row| row.spoke().is_some_and(|place| edit["field"] == place))?;
    let place = row.spoke()?;
    let value = edit["value"].clone();
    if place.is_empty() || !shown.is_object() || shown.pointer(place) == Some(&value) {
        return None;
    }
    let meant = match row {
        Row::Value { translation, .. } => (translation.to_hub)(&value).unwrap_or_else(|| value.clone()),
        _ => value.clone(),
    };
    (put(shown, place, value) && put(hub, row.hub(), meant)).then_some(())
}
