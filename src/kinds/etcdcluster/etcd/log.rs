//! A line of etcd's log. Pure.

use serde_json::Value;

/// A line, as JSON or in the parts between tabs that `log-format: console` makes of it, of which the last is JSON. Neither
/// leaves a tab or the end of a line as it came, so that no client writes a line of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// How bad it is, such as `fatal`.
    pub level: String,
    /// The message.
    pub message: String,
    /// What it names besides.
    pub fields: Value,
}

impl Line {
    /// Reads a line; none where it is not of etcd's log.
    #[must_use]
    pub fn read(line: &str) -> Option<Self> {
        if let Ok(fields) = serde_json::from_str::<Value>(line) {
            let text = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            return Some(Self { level: text("level"), message: text("msg"), fields });
        }
        let mut parts = line.split('\t').skip(1);
        let (level, _caller, message) = (parts.next()?, parts.next()?, parts.next()?);
        let fields = parts.next().and_then(|fields| serde_json::from_str(fields).ok()).unwrap_or(Value::Null);
        Some(Self { level: level.to_owned(), message: message.to_owned(), fields })
    }

    /// A field that is a text.
    #[must_use]
    pub fn text(&self, field: &str) -> &str {
        self.fields.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// A field that is a number.
    #[must_use]
    pub fn number(&self, field: &str) -> Option<i64> {
        self.fields.get(field).and_then(Value::as_i64)
    }
}
