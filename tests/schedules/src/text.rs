//! Texts that are kept once, so that a world is copied and compared by their numbers.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use gatehouse::kinds::tdset::api::v1::TDSetStatus;
use serde_json::Value;

use crate::effects::merge;

/// JSON that is kept once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Text(usize);

#[derive(Default)]
struct Texts {
    numbers: HashMap<String, usize>,
    all: Vec<Rc<Known>>,
    /// What comes of merging the second into the first.
    merged: HashMap<(Text, Text), Text>,
}

/// What is known of a text.
#[derive(Debug)]
pub struct Known {
    pub json: Value,
    /// What it says as a status, if it is one.
    pub status: TDSetStatus,
}

thread_local! {
    static TEXTS: RefCell<Texts> = RefCell::default();
}

impl Text {
    /// Nothing yet.
    pub const NONE: Self = Self(0);

    pub fn new(json: Value) -> Self {
        TEXTS.with_borrow_mut(|Texts { numbers, all, .. }| {
            let number = numbers.entry(json.to_string()).or_insert_with(|| {
                let status = serde_json::from_value(json.clone()).unwrap_or_default();
                all.push(Rc::new(Known { json, status }));
                all.len()
            });
            Self(*number)
        })
    }

    pub fn known(self) -> Rc<Known> {
        let known = self.0.checked_sub(1).map(|at| TEXTS.with_borrow(|texts| Rc::clone(&texts.all[at])));
        known.unwrap_or_else(|| {
            Rc::new(Known { json: Value::Object(serde_json::Map::new()), status: TDSetStatus::default() })
        })
    }

    /// The text with a patch merged into it.
    pub fn merged(self, patch: Self) -> Self {
        if let Some(merged) = TEXTS.with_borrow(|texts| texts.merged.get(&(self, patch)).copied()) {
            return merged;
        }
        let mut json = self.json();
        merge(&mut json, &patch.json());
        let merged = Self::new(json);
        TEXTS.with_borrow_mut(|texts| texts.merged.insert((self, patch), merged));
        merged
    }

    /// The text with another value of a field, if it has that field.
    pub fn with(self, field: &str, value: Value) -> Self {
        let mut json = self.json();
        let Some(found) = json.pointer_mut(field) else { return self };
        *found = value;
        Self::new(json)
    }

    pub fn json(self) -> Value {
        self.known().json.clone()
    }

    /// Whether it says so of a condition.
    pub fn says(self, about: &str, status: &str) -> bool {
        let known = self.known();
        known.status.conditions.iter().flatten().any(|one| one.type_ == about && one.status == status)
    }
}

/// Whether a status says that something could not be read.
pub fn is_of_the_unread(status: &TDSetStatus) -> bool {
    let mut ready = status.conditions.iter().flatten().filter(|one| one.type_ == "Ready");
    ready.any(|one| {
        one.status == "False" && ["TargetNotReadable", "Forbidden", "DatesNotFound"].contains(&&*one.reason)
    })
}
