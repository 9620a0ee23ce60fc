//! Lists of which no two items are the same.

use std::collections::HashSet;

use serde_json::Value;

/// What makes an item of a list unique.
#[derive(Debug, Default)]
pub(super) enum Unique {
    #[default]
    Nothing,
    Whole,
    Keys(Box<[Box<str>]>),
}

/// Items that are compared one by one, which takes less than a set of them.
const FEW: usize = 16;

impl Unique {
    /// The places of items that are the same as one before them, and what is the same.
    pub(super) fn repeated<'a>(&self, items: &'a [Value]) -> Vec<(usize, &'a Value)> {
        let keys: &[Box<str>] = match self {
            Self::Nothing => return Vec::new(),
            Self::Whole => &[],
            Self::Keys(keys) => keys,
        };
        let own: Vec<Option<&Value>> = match keys {
            [] => items.iter().map(Some).collect(),
            keys => items.iter().flat_map(|item| keys.iter().map(|key| item.get(&**key))).collect(),
        };
        let own: Vec<&[Option<&Value>]> = own.chunks(keys.len().max(1)).collect();
        let mut seen = HashSet::new();
        let is_repeated = |at: &usize| match items.len() {
            ..FEW => own[..*at].contains(&own[*at]),
            _ => !seen.insert(own[*at]),
        };
        let shown = |at: usize| (at, own[at].first().copied().flatten().unwrap_or(&items[at]));
        (0..items.len()).filter(is_repeated).map(shown).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_item_that_comes_again_is_found_among_few_and_among_many() {
        for others in [0, 3 * FEW] {
            let mut items: Vec<_> = (0..others).map(|at| json!({ "name": at, "port": 1 })).collect();
            items.extend([
                json!({ "name": "a", "port": 1 }),
                json!({ "name": "a", "port": 2 }),
                json!({ "name": "a", "port": 1, "more": true }),
                json!("no item"),
                json!({}),
            ]);
            let places = |unique: &Unique| -> Vec<usize> {
                unique.repeated(&items).into_iter().map(|(at, _)| at - others).collect()
            };
            assert_eq!(places(&Unique::Keys(["name".into()].into())), [1, 2, 4]);
            assert_eq!(places(&Unique::Keys(["name".into(), "port".into()].into())), [2, 4]);
            assert!(places(&Unique::Whole).is_empty() && places(&Unique::Nothing).is_empty());
            items.push(items[others].clone());
            assert_eq!(Unique::Whole.repeated(&items), [(others + 5, &items[others])]);
        }
    }
}
