//! Conversion in both directions by the same rows.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::assign::assign;
use super::memory::{Coarse, Item, Memory, digest, likeness};
use super::{ItemName, Row, tree};

type Fields = Map<String, Value>;

/// Hub to spoke, and what the spoke cannot say.
pub(super) fn to_spoke(rows: &[Row], hub: Fields) -> (Fields, Memory) {
    let parts = kept_parts(&hub);
    fields_to_spoke(rows, hub, parts)
}

/// As [`to_spoke`], for an object or an item of a list; `spoke` is what it starts from.
fn fields_to_spoke(rows: &[Row], mut hub: Fields, mut spoke: Fields) -> (Fields, Memory) {
    let mut memory = Memory::default();
    for row in rows {
        match row {
            Row::HubOnly { .. } => {}
            Row::Object { spoke: place, hub: from } => {
                if matches!(tree::get(&hub, from), Some(Value::Object(fields)) if fields.is_empty()) {
                    tree::take(&mut hub, from);
                    tree::put(&mut spoke, place, Value::Object(Fields::new()));
                }
            }
            Row::Field { spoke: place, hub: from } => {
                if let Some(value) = tree::take(&mut hub, from) {
                    tree::put(&mut spoke, place, value);
                }
            }
            Row::Value { spoke: place, hub: from, translation } => {
                let Some(value) = tree::take(&mut hub, from) else {
                    continue;
                };
                let shown = (translation.to_spoke)(&value).unwrap_or_else(|| value.clone());
                if (translation.to_hub)(&shown).unwrap_or_else(|| shown.clone()) != value {
                    let coarse = Coarse::Value { shown: digest(&shown), was: value };
                    memory.rows.insert(from.clone().into_owned(), coarse);
                }
                tree::put(&mut spoke, place, shown);
            }
            Row::List { spoke: place, hub: from, items, name } => {
                let Some(value) = tree::take(&mut hub, from) else {
                    continue;
                };
                let (shown, coarse) = list_to_spoke(items, name.as_ref(), value);
                if let Some(coarse) = coarse {
                    memory.rows.insert(from.clone().into_owned(), coarse);
                }
                tree::put(&mut spoke, place, shown);
            }
        }
    }
    memory.only = only_the_hub(rows, &mut hub);
    tree::fill(&mut spoke, hub);
    (spoke, memory)
}

/// Takes out of what no row has moved all that the spoke has no place for, and what would be taken for something
/// else there. What remains is unknown to both, and passes.
fn only_the_hub(rows: &[Row], rest: &mut Fields) -> Fields {
    let mut only = Fields::new();
    for row in rows {
        if rest.is_empty() {
            break;
        }
        let place = row.spoke().unwrap_or_else(|| row.hub());
        let place = in_the_way(rest, place).unwrap_or(place);
        if let Some(value) = tree::take(rest, place) {
            tree::put(&mut only, place, value);
        }
    }
    only
}

/// What stands where the spoke has an object above `place`, and is none.
fn in_the_way<'a>(fields: &Fields, place: &'a str) -> Option<&'a str> {
    let (part, mut rest) = tree::split(place)?;
    let mut value = fields.get(part)?;
    loop {
        let (step, below) = tree::split(rest)?;
        value = value.as_object()?.get(step)?;
        match value {
            _ if below.is_empty() => return None,
            Value::Object(_) => rest = below,
            _ => return Some(&place[..place.len() - below.len()]),
        }
    }
}

/// Spoke to hub, with what is remembered of the hub.
pub(super) fn to_hub(rows: &[Row], spoke: Fields, mut memory: Memory) -> Fields {
    let parts = kept_parts(&spoke);
    memory.only.retain(|part, _| spoke.contains_key(part));
    fields_to_hub(rows, spoke, memory, parts)
}

/// As [`to_hub`], for an object or an item of a list; `hub` is what it starts from.
fn fields_to_hub(rows: &[Row], mut spoke: Fields, memory: Memory, mut hub: Fields) -> Fields {
    let empty: Vec<_> =
        rows.iter().filter(|row| matches!(row, Row::Object { .. }) && is_empty(&spoke, row)).collect();
    let Memory { only, rows: mut coarse } = memory;
    for row in rows {
        let (Some(place), target) = (row.spoke(), row.hub()) else {
            continue;
        };
        let remembered = coarse.remove(target);
        match row {
            Row::HubOnly { .. } => {}
            Row::Object { .. } => {
                if empty.iter().any(|one| std::ptr::eq(*one, row)) {
                    tree::take(&mut spoke, place);
                    tree::put(&mut hub, target, Value::Object(Fields::new()));
                }
            }
            Row::Field { .. } => {
                if let Some(value) = tree::take(&mut spoke, place) {
                    tree::put(&mut hub, target, value);
                }
            }
            Row::Value { translation, .. } => {
                let Some(value) = tree::take(&mut spoke, place) else {
                    continue;
                };
                let value = match remembered {
                    Some(Coarse::Value { shown, was }) if shown == digest(&value) => was,
                    _ => (translation.to_hub)(&value).unwrap_or(value),
                };
                tree::put(&mut hub, target, value);
            }
            Row::List { items, name, .. } => {
                if let Some(value) = tree::take(&mut spoke, place) {
                    tree::put(&mut hub, target, list_to_hub(items, name.as_ref(), value, remembered));
                }
            }
        }
    }
    tree::fill(&mut hub, without_rows(rows, spoke));
    tree::fill(&mut hub, without_rows(rows, only));
    hub
}

/// The spoke has this object, and nothing in it.
fn is_empty(spoke: &Fields, row: &Row) -> bool {
    let found = row.spoke().and_then(|place| tree::get(spoke, place));
    found.and_then(Value::as_object).is_some_and(Map::is_empty)
}

/// The parts of the object that are there, empty: an object without `spec` stays one.
fn kept_parts(fields: &Fields) -> Fields {
    let objects = fields.iter().filter(|(_, value)| value.is_object());
    objects.map(|(part, _)| (part.clone(), Value::Object(Fields::new()))).collect()
}

/// `fields` without those that a row writes in the hub: what rides along must not stand in for them.
fn without_rows(rows: &[Row], mut fields: Fields) -> Fields {
    for row in rows {
        if fields.is_empty() {
            break;
        }
        if row.spoke().is_some() && !matches!(row, Row::Object { .. }) {
            tree::take(&mut fields, row.hub());
        }
    }
    fields
}

/// What the items hide is put together only for a list that its spoke's alone does not give back: a list of what is no
/// item would otherwise take a thousand times its size.
fn list_to_spoke(rows: &[Row], name: Option<&ItemName>, value: Value) -> (Value, Option<Coarse>) {
    let Value::Array(items) = value else {
        return (value, None);
    };
    // The items as they are, as long as none is found to hide something.
    let (mut kept, mut hides) = (Vec::new(), false);
    let to_spoke = |item: Value| {
        kept.extend((!hides).then(|| item.clone()));
        let (shown, remembered) = item_to_spoke(rows, item);
        hides |= remembered.surely_hides(name);
        (shown, remembered)
    };
    let (shown, remembered): (Vec<_>, Vec<_>) = items.into_iter().map(to_spoke).unzip();
    let is_given_back = || list_to_hub(rows, name, Value::Array(shown.clone()), None) == Value::Array(kept);
    let coarse = (hides || !is_given_back()).then(|| of_items(&shown, remembered));
    (Value::Array(shown), coarse)
}

/// What is remembered of each item of a list, beside what the spoke shows of it.
fn of_items(shown: &[Value], remembered: Vec<Remembered>) -> Coarse {
    let memories = shown.iter().zip(remembered);
    let items = memories.map(|(one, memory)| Item {
        shown: digest(one),
        like: likeness(one),
        memory: memory.of(one),
    });
    Coarse::Items { items: items.collect() }
}

/// Remembers the names of items also where those of the spoke would be given the same: in another list each item is to
/// keep its own. `hub` is what the memory was made of.
pub(super) fn remember_names(rows: &[Row], hub: &Fields, memory: &mut Memory) {
    for row in rows {
        let Row::List { hub: place, items: rows, name: Some(_), .. } = row else { continue };
        if memory.rows.contains_key(&**place) {
            continue;
        }
        let Some(Value::Array(items)) = tree::get(hub, place) else { continue };
        let (shown, remembered): (Vec<_>, Vec<_>) =
            items.iter().map(|item| item_to_spoke(rows, item.clone())).unzip();
        memory.rows.insert(place.clone().into_owned(), of_items(&shown, remembered));
    }
}

/// What is remembered of an item.
enum Remembered {
    Nothing,
    /// The whole item, which passes as it is: it is not to be taken for the short form of another one.
    Whole,
    Fields(Box<Memory>),
}

impl Remembered {
    /// The spoke's item alone does not give all of it back: it is more than a name that the item would be given.
    fn surely_hides(&self, name: Option<&ItemName>) -> bool {
        matches!(self, Self::Fields(memory) if is_more_than_a_name(memory, name))
    }

    fn of(self, item: &Value) -> Memory {
        match self {
            Self::Nothing => Memory::default(),
            Self::Whole => {
                let coarse = Coarse::Value { shown: digest(item), was: item.clone() };
                Memory { rows: [(String::new(), coarse)].into(), ..Memory::default() }
            }
            Self::Fields(memory) => *memory,
        }
    }
}

/// It says more of an item than a name like those that items are given.
fn is_more_than_a_name(memory: &Memory, name: Option<&ItemName>) -> bool {
    let is_given = |field: &str, value: &Value| {
        let given = name.filter(|name| field == name.field).zip(value.as_str());
        let number = given.and_then(|(name, text)| text.strip_prefix(&*name.prefix));
        number.is_some_and(|number| number.parse::<usize>().is_ok())
    };
    !memory.rows.is_empty() || memory.only.iter().any(|(field, value)| !is_given(field, value))
}

impl From<Memory> for Remembered {
    fn from(memory: Memory) -> Self {
        if memory.is_empty() { Self::Nothing } else { Self::Fields(Box::new(memory)) }
    }
}

fn item_to_spoke(rows: &[Row], item: Value) -> (Value, Remembered) {
    match (item, bare_item(rows)) {
        (Value::Object(fields), None) => {
            let (fields, memory) = fields_to_spoke(rows, fields, Fields::new());
            (Value::Object(fields), memory.into())
        }
        (Value::Object(mut fields), Some(place))
            if matches!(tree::get(&fields, place), Some(Value::String(_))) =>
        {
            let value = tree::take(&mut fields, place).unwrap_or_default();
            (value, Memory { only: fields, ..Memory::default() }.into())
        }
        (text @ Value::String(_), Some(_)) => (text, Remembered::Whole),
        (item, _) => (item, Remembered::Nothing),
    }
}

fn list_to_hub(rows: &[Row], name: Option<&ItemName>, value: Value, coarse: Option<Coarse>) -> Value {
    let Value::Array(items) = value else { return value };
    let remembered = match coarse {
        Some(Coarse::Items { items }) => items,
        _ => Vec::new(),
    };
    let (memories, _) = assign(&items, remembered);
    let unnamed = |(item, memory): (&Value, &Option<Memory>)| {
        name.filter(|name| memory.is_none() && item.get(&*name.field).is_none())
    };
    let unnamed: Vec<Option<&ItemName>> = items.iter().zip(&memories).map(unnamed).collect();
    let all = items.into_iter().zip(memories);
    let to_hub = |(item, memory): (_, Option<Memory>)| item_to_hub(rows, item, memory.unwrap_or_default());
    let mut converted: Vec<Value> = all.map(to_hub).collect();
    name_items(&mut converted, &unnamed);
    Value::Array(converted)
}

fn item_to_hub(rows: &[Row], item: Value, memory: Memory) -> Value {
    match (item, bare_item(rows)) {
        (Value::Object(fields), None) => Value::Object(fields_to_hub(rows, fields, memory, Fields::new())),
        (Value::String(text), Some(place)) if !memory.rows.contains_key("") => {
            let mut fields = Fields::new();
            tree::put(&mut fields, place, text.into());
            tree::fill(&mut fields, memory.only);
            Value::Object(fields)
        }
        (other, _) => other,
    }
}

/// Where the hub's item holds what is the whole item in the spoke.
fn bare_item(rows: &[Row]) -> Option<&str> {
    rows.iter().find(|row| row.spoke() == Some("")).map(Row::hub)
}

/// The first list of the spoke of which an item took the place of another one, so that what only the hub says of that
/// is gone. A name that it was given is no loss.
pub(super) fn list_of_a_lost<'a>(rows: &'a [Row], spoke: &Fields, memory: &Memory) -> Option<&'a str> {
    rows.iter().find_map(|row| {
        let Row::List { name, .. } = row else { return None };
        let Some(Coarse::Items { items: remembered }) = memory.rows.get(row.hub()) else { return None };
        let items = tree::get(spoke, row.spoke()?)?.as_array()?;
        let (assigned, left) = assign(items, remembered.clone());
        let is_lost = assigned.iter().any(Option::is_none)
            && left.iter().any(|memory| is_more_than_a_name(memory, name.as_ref()));
        row.spoke().filter(|_| is_lost)
    })
}

/// Names the `unnamed` items by their position, and past names that are taken.
fn name_items(items: &mut [Value], unnamed: &[Option<&ItemName>]) {
    let Some(name) = unnamed.iter().flatten().next() else { return };
    let names = items.iter().filter_map(|item| item.get(&*name.field)?.as_str().map(str::to_owned));
    let taken: HashSet<String> = names.collect();
    let mut beyond = items.len()..;
    for (index, item) in items.iter_mut().enumerate().filter(|(index, _)| unnamed[*index].is_some()) {
        let Value::Object(fields) = item else { continue };
        let mut free = format!("{}{index}", name.prefix);
        while taken.contains(&free) {
            free = format!("{}{}", name.prefix, beyond.next().unwrap_or(usize::MAX));
        }
        fields.entry(&*name.field).or_insert_with(|| free.into());
    }
}
