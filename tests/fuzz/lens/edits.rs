//! One edit through the spoke, of an object that says more than the spoke shows.
//!
//! Guarantees: an object that goes down and comes up again is the same; an edit of one field, or of one field of an
//! item, changes that and nothing else; items that are added, taken away or moved change no other item. Not asserted:
//! which of two items is which that the spoke shows alike, once one of them was taken away or moved; then no item is
//! made up. And the names of items in a list whose items say no more than what the spoke shows: they are counted, `w0`,
//! `w1`, and counted again where one is taken away. And the last digit of numbers with a fraction, which serde_json
//! reads a bit beside now and then.

use gatehouse::api::Kind;
use gatehouse::api::lens::Row;
use gatehouse::api::lens::memory;
use kit::random::Random;
use serde_json::{Value, json};

use super::{
    HUB, List, can_carry, down, fields, hold_same, is_clear, kind_of, lists, plain, put, take, up,
    without_empty,
};
use crate::corpus::Input;
use crate::drawn::{self, change, is_exact, junk, one_in, one_of, pick};

/// An object of the hub and an edit: `{"hub": …, "edit": {"set": "/spec/size", "value": 3}}`. Others are `remove` of a
/// place; `item`, the position, with `field` and `value`; `insert` at a position, with `value`; `drop` of one, `swap`
/// of two; `list` is the place of the list in the spoke. `beside` the edit of an item there may be an `insert` or a
/// `drop` of another one.
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
    let places: Vec<_> = fields(kind).collect();
    let (spoke, _) = pick(random, &places);
    let lists: Vec<_> = lists(kind).collect();
    let list = (!lists.is_empty()).then(|| one_of(random, &lists));
    let (one, two) = (random.below(5), random.below(5));
    match (random.below(8), list) {
        (0, _) => json!({"set": spoke, "value": junk(random)}),
        (1, _) => json!({"set": spoke, "value": random.below(9)}),
        (2, _) | (_, None) => json!({"remove": spoke}),
        (3 | 4, Some(list)) => {
            let field = one_of(random, list.items).spoke().unwrap_or("/unknown");
            let value = if one_in(random, 4) { junk(random) } else { json!(random.below(24)) };
            let mut edit = json!({"list": list.spoke, "item": one, "field": field, "value": value});
            match random.below(4) {
                0 => edit["beside"] = json!({"insert": two, "value": item(random, list)}),
                1 => edit["beside"] = json!({"drop": two}),
                _ => {}
            }
            edit
        }
        (5, Some(list)) => json!({"list": list.spoke, "insert": one, "value": item(random, list)}),
        (6, Some(list)) => json!({"list": list.spoke, "drop": one}),
        (_, Some(list)) => json!({"list": list.spoke, "swap": [one, two]}),
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
    if !is_exact(hub) || !is_clear(kind, hub) || memory::is_dropped(&shown["metadata"]["annotations"]) {
        return;
    }
    let why = || format!("unedited, it comes back another one, shown as {shown}");
    hold_same(&plain(&up(kind, &shown)), &plain(hub), why);
    if let Some(place) = edit["list"].as_str() {
        if let Some(list) = lists(kind).find(|list| list.spoke == place) {
            hold_list(kind, list, hub, &shown, edit);
        }
    } else if let Some((spoke, place)) =
        fields(kind).find(|(spoke, _)| edit["set"] == *spoke || edit["remove"] == *spoke)
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
    let why = || format!("{edit} changes something else; the spoke shows {edited}");
    hold_same(&plain(&back), &plain(&expected), why);
}

fn hold_list(kind: &dyn Kind, list: List, hub: &Value, shown: &Value, edit: &Value) {
    let items = |object: &Value, place: &str| object.pointer(place).and_then(Value::as_array).cloned();
    let (Some(before), Some(looks)) = (items(hub, list.hub), items(shown, list.spoke)) else { return };
    let Some(change) = Change::of(edit, looks.len()) else { return };
    let (mut edited, mut expected) = (looks.clone(), before.clone());
    if change.make(list, edit, &mut edited, &mut expected).is_none() {
        return;
    }
    let beside = Change::of(&edit["beside"], looks.len()).filter(|beside| change.is_clear_beside(*beside));
    let is_told = beside.is_none_or(|beside| is_told(change, beside, edit, &looks, &edited));
    if let Some(beside) = beside {
        beside.make(list, &edit["beside"], &mut edited, &mut expected);
    }
    let mut written = shown.clone();
    assert!(put(&mut written, list.spoke, Value::Array(edited)), "a list that is there can be replaced");
    let mut back = up(kind, &written);
    let after = back.pointer_mut(list.hub).map(Value::take).and_then(|items| items.as_array().cloned());
    let after = after.unwrap_or_default();
    assert_eq!(after.len(), expected.len(), "{edit} changes the number of items");
    let mut rest = hub.clone();
    put(&mut rest, list.hub, Value::Null);
    hold_same(&plain(&back), &plain(&rest), || format!("{edit} changes something beside the list"));

    let in_place = matches!(change, Change::Field(_)) && beside.is_none();
    let is_remembered = shown["metadata"]["annotations"][memory::key(list.hub).0].is_string();
    let [after, expected, before] =
        [after, expected, before].map(|items| named(items, is_remembered || in_place));
    let added = beside.unwrap_or(change);
    let after = added.without_new(after);
    let new = if beside.is_some() { &edit["beside"]["value"] } else { &edit["value"] };
    let is_new = |look: &Value| matches!(added, Change::Insert(_)) && look == new;
    let is_alone = |look: &Value| looks.iter().filter(|one| *one == look).count() < 2 && !is_new(look);
    if in_place || is_told && looks.iter().all(is_alone) {
        let (after, expected) = (Value::Array(after), Value::Array(added.without_new(expected)));
        hold_same(&after, &expected, || format!("{edit} changes another item; the spoke shows {written}"));
    } else if beside.is_none() {
        hold_known(&after, &before);
    }
}

/// The edited item is more like what it was than like the one that is dropped, and the new one is less like that; and
/// it is now like no other one.
fn is_told(change: Change, beside: Change, edit: &Value, looks: &[Value], edited: &[Value]) -> bool {
    let Change::Field(at) = change else { return false };
    let common = |one: &Value, other: &Value| {
        let fields = one.as_object().into_iter().flatten();
        fields.filter(|(name, value)| other.get(name) == Some(value)).count()
    };
    let (was, is) = (&looks[at], &edited[at]);
    let (one, other) = match beside {
        Change::Drop(gone) => (is, &looks[gone]),
        _ => (&edit["beside"]["value"], was),
    };
    common(one, other) < common(is, was) && !looks.contains(is) && edit["beside"]["value"] != *is
}

/// The items, without their names where those are counted.
fn named(mut items: Vec<Value>, keeps_names: bool) -> Vec<Value> {
    for fields in items.iter_mut().filter_map(Value::as_object_mut).filter(|_| !keeps_names) {
        fields.remove("name");
    }
    items
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

    /// Another item is added or taken away beside the edit of one.
    fn is_clear_beside(self, beside: Self) -> bool {
        match (self, beside) {
            (Self::Field(_), Self::Insert(_)) => true,
            (Self::Field(at), Self::Drop(gone)) => at != gone,
            _ => false,
        }
    }

    /// Makes it in what the spoke shows and in what the hub should say then; none where it changes nothing.
    fn make(self, list: List, edit: &Value, shown: &mut Vec<Value>, hub: &mut Vec<Value>) -> Option<()> {
        match self {
            Self::Field(at) => edit_item(list, edit, &mut shown[at], &mut hub[at])?,
            Self::Insert(at) => {
                shown.insert(at, edit["value"].clone());
                hub.insert(at, Value::Null);
            }
            Self::Drop(at) => {
                shown.remove(at);
                hub.remove(at);
            }
            Self::Swap(one, two) => {
                shown.swap(one, two);
                hub.swap(one, two);
            }
        }
        Some(())
    }

    /// The items but the one that it adds.
    fn without_new(self, mut items: Vec<Value>) -> Vec<Value> {
        if let Self::Insert(at) = self {
            items.remove(at);
        }
        items
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
