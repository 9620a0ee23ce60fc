//! Conversion in both directions by the same rows.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Map, Value};

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
        value = value.get(step)?;
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
    let (shown, remembered): (Vec<_>, Vec<_>) = items.iter().map(|item| item_to_spoke(rows, item)).unzip();
    let is_given_back = || list_to_hub(rows, name, Value::Array(shown.clone()), None) == Value::Array(items);
    let coarse = (remembered.iter().any(|one| one.surely_hides(name)) || !is_given_back()).then(|| {
        let memories = shown.iter().zip(remembered);
        let items = memories.map(|(one, memory)| Item {
            shown: digest(one),
            like: likeness(one),
            memory: memory.of(one),
        });
        Coarse::Items { items: items.collect() }
    });
    (Value::Array(shown), coarse)
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
        let Self::Fields(memory) = self else { return false };
        let is_given = |field: &str, value: &Value| {
            let given = name.filter(|name| field == name.field).zip(value.as_str());
            given.is_some_and(|(name, text)| text.starts_with(&*name.prefix))
        };
        !memory.rows.is_empty() || memory.only.iter().any(|(field, value)| !is_given(field, value))
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

impl From<Memory> for Remembered {
    fn from(memory: Memory) -> Self {
        if memory.is_empty() { Self::Nothing } else { Self::Fields(Box::new(memory)) }
    }
}

fn item_to_spoke(rows: &[Row], item: &Value) -> (Value, Remembered) {
    let (fields, bare) = match (item, bare_item(rows)) {
        (Value::Object(fields), bare) => (fields, bare),
        (Value::String(_), Some(_)) => return (item.clone(), Remembered::Whole),
        _ => return (item.clone(), Remembered::Nothing),
    };
    let Some(place) = bare else {
        let (fields, memory) = fields_to_spoke(rows, fields.clone(), Fields::new());
        return (Value::Object(fields), memory.into());
    };
    if !matches!(tree::get(fields, place), Some(Value::String(_))) {
        return (item.clone(), Remembered::Nothing);
    }
    let mut rest = fields.clone();
    let value = tree::take(&mut rest, place).unwrap_or_default();
    (value, Memory { only: rest, ..Memory::default() }.into())
}

fn list_to_hub(rows: &[Row], name: Option<&ItemName>, value: Value, coarse: Option<Coarse>) -> Value {
    let Value::Array(items) = value else { return value };
    let remembered = match coarse {
        Some(Coarse::Items { items }) => items,
        _ => Vec::new(),
    };
    let (memories, _) = assign(&items, remembered);
    let new: Vec<bool> = memories.iter().map(Option::is_none).collect();
    let memories = memories.into_iter().map(Option::unwrap_or_default);
    let mut converted: Vec<Value> =
        items.into_iter().zip(memories).map(|(item, memory)| item_to_hub(rows, item, memory)).collect();
    if let Some(name) = name {
        name_items(&mut converted, &new, name);
    }
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

/// Which memory belongs to which item of the spoke's list, and which belong to none. An item that is shown as it was
/// keeps its own, wherever it has moved to; an item that was edited keeps what its edit did not touch, also where others
/// were added, moved or taken away.
fn assign(items: &[Value], remembered: Vec<Item>) -> (Vec<Option<Memory>>, Vec<Memory>) {
    let mut assigned: Vec<Option<Memory>> = vec![None; items.len()];
    if remembered.is_empty() {
        return (assigned, Vec::new());
    }
    let as_many = items.len() == remembered.len();
    let mut free: Vec<Option<Item>> = remembered.into_iter().map(Some).collect();
    let digests: Vec<_> = items.iter().map(digest).collect();
    for ((slot, memory), shown) in free.iter_mut().zip(&mut assigned).zip(&digests) {
        *memory = slot.take_if(|item| item.shown == *shown).map(|item| item.memory);
    }
    let mut elsewhere: HashMap<&str, usize> = HashMap::new();
    for (_, shown) in assigned.iter().zip(&digests).filter(|(memory, _)| memory.is_none()) {
        *elsewhere.entry(shown).or_default() += 1;
    }
    let mut moved: HashMap<String, VecDeque<Memory>> = HashMap::new();
    let mut rest = Vec::new();
    for (place, item) in free.into_iter().enumerate().filter_map(|(place, item)| Some((place, item?))) {
        match elsewhere.get_mut(item.shown.as_str()).filter(|left| **left > 0) {
            Some(left) => {
                *left -= 1;
                moved.entry(item.shown).or_default().push_back(item.memory);
            }
            None => rest.push((place, item)),
        }
    }
    for (memory, shown) in assigned.iter_mut().zip(&digests).filter(|(memory, _)| memory.is_none()) {
        *memory = moved.get_mut(shown).and_then(VecDeque::pop_front);
    }
    let edited: Vec<usize> = (0..items.len()).filter(|index| assigned[*index].is_none()).collect();
    let pairs = alike(items, &edited, &rest, as_many);
    let mut rest: Vec<_> = rest.into_iter().map(|(_, item)| Some(item.memory)).collect();
    for (index, of) in pairs {
        assigned[index] = rest[of].take();
    }
    (assigned, rest.into_iter().flatten().collect())
}

/// More comparisons than these are not made: items are then taken in their order.
const MOST_COMPARED: usize = 1 << 20;

/// Pairs edited items with what is left of the remembered ones, each with its place: those that have most in common
/// first, and of several such pairs those in the same place, and then the first. What has nothing in common makes a pair
/// only in the same place of a list of as many items as there were: there all of an item was edited.
fn alike(items: &[Value], edited: &[usize], rest: &[(usize, Item)], as_many: bool) -> Vec<(usize, usize)> {
    let looks: Vec<_> = edited.iter().map(|index| likeness(&items[*index])).collect();
    let looked: usize = looks.iter().map(|look| look.len() + 1).sum();
    let remembered: usize = rest.iter().map(|(_, item)| item.like.len() + 1).sum();
    if looked.saturating_mul(remembered) > MOST_COMPARED {
        return edited.iter().copied().zip(0..rest.len()).collect();
    }
    let common = |look: &[u16], item: &Item| look.iter().filter(|bits| item.like.contains(bits)).count();
    let mut choices = Vec::new();
    for (look, index) in looks.iter().zip(edited) {
        for (of, (place, item)) in rest.iter().enumerate() {
            let (common, stays) = (common(look, item), as_many && place == index);
            if common > 0 || stays {
                choices.push((Reverse(common), !stays, *index, of));
            }
        }
    }
    choices.sort_unstable();
    let (mut paired, mut taken) = (HashSet::new(), HashSet::new());
    let mut pairs = Vec::new();
    for (_, _, index, of) in choices {
        if !paired.contains(&index) && !taken.contains(&of) {
            paired.insert(index);
            taken.insert(of);
            pairs.push((index, of));
        }
    }
    pairs
}

/// The first list of the spoke of which an item took the place of another one, so that what only the hub says of that
/// is gone.
pub(super) fn list_of_a_lost<'a>(rows: &'a [Row], spoke: &Fields, memory: &Memory) -> Option<&'a str> {
    rows.iter().find_map(|row| {
        let Some(Coarse::Items { items: remembered }) = memory.rows.get(row.hub()) else { return None };
        let items = tree::get(spoke, row.spoke()?)?.as_array()?;
        let (assigned, left) = assign(items, remembered.clone());
        let is_lost = assigned.iter().any(Option::is_none) && left.iter().any(|memory| !memory.is_empty());
        row.spoke().filter(|_| is_lost)
    })
}

/// Names the `new` items that have no name by their position, and past names that are taken.
fn name_items(items: &mut [Value], new: &[bool], name: &ItemName) {
    let mut taken: HashSet<String> =
        items.iter().filter_map(|item| item.get(&*name.field)?.as_str().map(str::to_owned)).collect();
    let mut beyond = items.len()..;
    for (index, item) in items.iter_mut().enumerate() {
        let Value::Object(fields) = item else { continue };
        if fields.contains_key(&*name.field) || !new[index] {
            continue;
        }
        let mut free = format!("{}{index}", name.prefix);
        while !taken.insert(free.clone()) {
            free = format!("{}{}", name.prefix, beyond.next().unwrap_or(usize::MAX));
        }
        fields.shift_insert(0, name.field.clone().into_owned(), free.into());
    }
}
