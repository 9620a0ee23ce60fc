//! What the spoke cannot say, as the annotation that carries it.
//!
//! ```json
//! {"only": {"spec": {"timeZone": "Europe/Berlin"}},
//!  "rows": {"/spec/windows": {"items": [{"shown": "6c0f…", "only": {"days": ["Mon"]},
//!                                        "rows": {"/from": {"shown": "9a1b…", "was": "18:30"}}}]}}}
//! ```
//!
//! `only` holds fields that the spoke has no place for. `was` is a value of the hub that the spoke shows coarser,
//! and `shown` the digest of what it shows: as long as the spoke still shows the same, `was` holds.
//! The annotation is made from nothing but the object, and is never trusted to be: stale, forged or broken, it can
//! at most say what its author could have written as `v1`.

use aws_lc_rs::digest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The annotation's key.
pub const ANNOTATION: &str = "gatehouse.dev/conversion";

/// What all annotations of an object may weigh together, keys and values, in bytes: the API server refuses more
/// (apimachinery, `pkg/api/validation`, `TotalAnnotationSizeLimitB`), and an object that a conversion makes larger
/// would make every list fail.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// The bytes left for the loss annotation beside annotations of those `sizes`.
pub fn room(sizes: impl Iterator<Item = usize>) -> usize {
    ANNOTATIONS_LIMIT.saturating_sub(sizes.sum::<usize>() + ANNOTATION.len())
}

/// What stands in the annotation's place when there is no room for it.
const DROPPED: &str = r#"{"dropped":true}"#;

/// What the spoke cannot say of an object, or of an item of a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Fields without a place in the spoke.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(super) only: Map<String, Value>,
    /// By the hub's pointer: what is shown coarser.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub(super) rows: std::collections::BTreeMap<String, Coarse>,
}

/// One row that the spoke shows coarser than it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Coarse {
    /// The items of a list, one by one.
    Items {
        /// In the order of the list.
        items: Vec<Item>,
    },
    /// A single value.
    Value {
        /// The digest of the spoke's value.
        shown: String,
        /// The hub's value.
        was: Value,
    },
}

/// One item of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Item {
    /// The digest of the spoke's item.
    pub(super) shown: String,
    /// What it cannot say.
    #[serde(flatten)]
    pub(super) memory: Memory,
}

impl Memory {
    /// Nothing to remember.
    pub(super) fn is_empty(&self) -> bool {
        self.only.is_empty() && self.rows.is_empty()
    }

    /// Reads an annotation. One that is not of this form says nothing.
    #[must_use]
    pub fn from_annotation(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// Writes the annotation, or none where there is nothing to remember. One of more than `room` bytes is
    /// replaced by a marker, so that the object stays readable; a write through the spoke is then completed from
    /// the stored object ([`super::Lens::carry`]).
    #[must_use]
    pub fn to_annotation(&self, room: usize) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let text = serde_json::to_string(self).unwrap_or_else(|_| DROPPED.to_owned());
        Some(if text.len() > room { DROPPED.to_owned() } else { text })
    }
}

/// The annotation says that there was no room for it.
#[must_use]
pub fn is_dropped(annotation: &str) -> bool {
    annotation == DROPPED
}

/// A short digest of a value, the same for every order of keys.
pub(super) fn digest(value: &Value) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    feed(&mut context, value);
    context.finish().as_ref()[..8].iter().fold(String::with_capacity(16), |mut text, byte| {
        use std::fmt::Write as _;
        _ = write!(text, "{byte:02x}");
        text
    })
}

fn feed(context: &mut digest::Context, value: &Value) {
    match value {
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| *key);
            context.update(b"{");
            for (key, value) in sorted {
                context.update(Value::from(key.as_str()).to_string().as_bytes());
                context.update(b":");
                feed(context, value);
            }
            context.update(b"}");
        }
        Value::Array(items) => {
            context.update(b"[");
            for item in items {
                feed(context, item);
                context.update(b",");
            }
            context.update(b"]");
        }
        scalar => context.update(scalar.to_string().as_bytes()),
    }
}
