//! The patterns of our definitions in words: a person at a terminal needs an example, not a regular expression.

use std::borrow::Cow;

/// A pattern, its words, and a text that matches it and is in the words.
const PATTERNS: &[(&str, &str, &str)] = &[
    (
        "^([01][0-9]|2[0-3]):[0-5][0-9]$",
        "must be a time of day from 00:00 to 23:59: write \"08:00\"",
        "08:00",
    ),
    (
        "^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$",
        "must be a time of day from 00:00 to 24:00: write \"18:00\"",
        "18:00",
    ),
    (
        r"^((configmap|secret)://([a-z0-9-]{1,63}/)?[a-z0-9][a-z0-9.-]{0,252}/[A-Za-z0-9._-]{1,253}|inline://[\s\S]+)$",
        "must be configmap://NAME/KEY, secret://NAME/KEY or inline://SQL: write \"configmap://shop/001.sql\"",
        "configmap://shop/001.sql",
    ),
    (
        r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$",
        "must be a duration with a unit, which is ms, s, m or h: write \"1m30s\"",
        "1m30s",
    ),
    (
        "^([0-9a-f]{64})?$",
        "must be the 64 hexadecimal digits of status.plan.hash, such as \"\
         0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"",
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    ),
    ("^[-._a-zA-Z0-9]+$", "must have letters, digits, '-', '_' and '.' only, such as \"001.sql\"", "001.sql"),
    (
        "^[A-Za-z0-9._-]+$",
        "must have letters, digits, '-', '_' and '.' only, such as \"001-orders\"",
        "001-orders",
    ),
    (
        "^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?$",
        "must have letters, digits, '-', '_' and '.' only, first and last no '-' or '.', such as \"shop\"",
        "shop",
    ),
    (
        "^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$",
        "must be a relative path of letters, digits, '-', '_' and '.', such as \"data/shop.db\"",
        "data/shop.db",
    ),
    (
        "^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$",
        "must be the name of an IANA time zone, such as \"Europe/Berlin\"",
        "Europe/Berlin",
    ),
    (
        "^[A-Za-z_][A-Za-z0-9_]*$",
        "must have letters, digits and '_' only, first no digit, such as \"schema_history\"",
        "schema_history",
    ),
    (
        "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        "must have lower-case letters, digits and '-' only, first and last no '-', such as \"evening\"",
        "evening",
    ),
    (
        "^sha256:[0-9a-f]{64}$",
        "must be sha256: and 64 hexadecimal digits, such as \"\
         sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"",
        "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    ),
];

/// The rule that a pattern stands for.
pub(super) fn of_pattern(pattern: &str) -> Cow<'static, str> {
    let known = PATTERNS.iter().find(|(known, ..)| *known == pattern);
    known.map_or_else(|| format!("should match '{pattern}'").into(), |(_, words, _)| (*words).into())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use regex::Regex;
    use serde_json::{Value, json};

    use super::*;
    use crate::kinds::KINDS;

    fn patterns(schema: &Value, found: &mut BTreeSet<String>) {
        match schema {
            Value::Object(fields) => {
                found.extend(fields.get("pattern").and_then(Value::as_str).map(str::to_owned));
                fields.values().for_each(|below| patterns(below, found));
            }
            Value::Array(items) => items.iter().for_each(|below| patterns(below, found)),
            _ => {}
        }
    }

    #[test]
    fn each_pattern_of_the_definitions_has_words_with_an_example_that_matches_it() {
        let mut used = BTreeSet::new();
        for kind in KINDS {
            patterns(&json!(kind.definition()), &mut used);
        }
        let known: BTreeSet<_> = PATTERNS.iter().map(|(pattern, ..)| (*pattern).to_owned()).collect();
        assert_eq!(used, known);
        for (pattern, words, example) in PATTERNS {
            assert!(Regex::new(pattern).unwrap().is_match(example), "{pattern}: {example}");
            assert!(words.contains(&format!("\"{example}\"")), "{words}");
        }
    }
}
