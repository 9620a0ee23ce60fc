//! Items of a list that was edited, and what is remembered of those that it had.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::Value;

use super::memory::{Item, Memory, digest, likeness};

/// Which memory belongs to which item of the spoke's list, and which belong to none. An item that is shown as it was
/// keeps its own, wherever it has moved to; an item that was edited keeps what its edit did not touch, also where others
/// were added, moved or taken away.
pub(super) fn assign(items: &[Value], remembered: Vec<Item>) -> (Vec<Option<Memory>>, Vec<Memory>) {
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
