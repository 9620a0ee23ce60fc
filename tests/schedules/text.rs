//! Texts that are kept once, so that a world is copied and compared by their numbers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use gatehouse::api::tdset::v1::TDSetStatus;
use serde_json::Value;

use crate::effects::merge;

/// JSON that is kept once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Text(usize);

#[derive(Default)]
struct Texts {
    numbers: HashMap<String, usize>,
    all: Vec<Arc<Known>>,
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

static TEXTS: Mutex<Option<Texts>> = Mutex::new(None);

impl Text {
    /// Nothing yet.
    pub const NONE: Self = Self(0);

    pub fn new(json: Value) -> Self {
        let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
        let Texts { numbers, all, .. } = texts.get_or_insert_default();
        let text = json.to_string();
        if let Some(number) = numbers.get(&text) {
            return Self(*number);
        }
        let status = serde_json::from_value(json.clone()).unwrap_or_default();
        all.push(Arc::new(Known { json, status }));
        numbers.insert(text, all.len());
        Self(all.len())
    }

    pub fn known(self) -> Arc<Known> {
        let texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.0.checked_sub(1).and_then(|at| texts.as_ref()?.all.get(at).cloned());
        drop(texts);
        known.unwrap_or_else(|| {
            Arc::new(Known { json: Value::Object(serde_json::Map::new()), status: TDSetStatus::default() })
        })
    }

    /// The text with a patch merged into it.
    pub fn merged(self, patch: Self) -> Self {
        let texts = || TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(merged) = texts().get_or_insert_default().merged.get(&(self, patch)) {
            return *merged;
        }
        let mut json = self.json();
        merge(&mut json, &patch.json());
        let merged = Self::new(json);
        texts().get_or_insert_default().merged.insert((self, patch), merged);
        merged
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
