//! JSON in any spelling that a client may choose, and texts with parts that are broken.
//!
//! Guarantees: [`written`] without quirks is what `serde_json` writes.

use std::fmt::Write as _;

use kit::random::Random;
use serde_json::Value;

use crate::drawn::{junk, one_in, pick};

/// Writes a value. One place in `seldom` is written in a way that the value does not tell: keys twice, escapes, spaces,
/// numbers that no type holds, lone surrogates. 0 is for none.
pub fn written(random: &mut Random, value: &Value, seldom: usize) -> Vec<u8> {
    let mut text = String::new();
    write(random, value, seldom, &mut text);
    text.into_bytes()
}

fn write(random: &mut Random, value: &Value, seldom: usize, into: &mut String) {
    let quirk = seldom > 0 && one_in(random, seldom);
    if quirk && one_in(random, 4) {
        into.push_str(pick(random, &[" ", "\t\n", "\r\n   "]));
    }
    match value {
        Value::Object(fields) => {
            into.push('{');
            let mut is_first = true;
            for (key, value) in fields {
                let times = if quirk && one_in(random, 3) { 2 } else { 1 };
                for _ in 0..times {
                    if !std::mem::take(&mut is_first) {
                        into.push(',');
                    }
                    write_string(random, key, seldom, into);
                    into.push(':');
                    let other = (times == 2 && one_in(random, 2)).then(|| junk(random));
                    write(random, other.as_ref().unwrap_or(value), seldom, into);
                }
            }
            into.push('}');
        }
        Value::Array(items) => {
            into.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    into.push(',');
                }
                write(random, item, seldom, into);
            }
            into.push(']');
        }
        Value::String(said) => write_string(random, said, seldom, into),
        Value::Number(number) if quirk => into.push_str(&odd_number(random, &number.to_string())),
        other => into.push_str(&other.to_string()),
    }
}

/// The same number, or one that is not.
fn odd_number(random: &mut Random, number: &str) -> String {
    match random.below(6) {
        0 => format!("{number}.0"),
        1 => format!("{number}e0"),
        2 => format!("{number}{}", "0".repeat(pick(random, &[1, 20, 400]))),
        3 => "1e400".to_owned(),
        4 => format!("-{number}"),
        _ => format!("{number}.{}1", "0".repeat(30)),
    }
}

fn write_string(random: &mut Random, said: &str, seldom: usize, into: &mut String) {
    if seldom == 0 || !one_in(random, seldom) {
        into.push_str(&Value::from(said).to_string());
        return;
    }
    into.push('"');
    for unit in said.encode_utf16() {
        // Writing into a text does not fail.
        let _written = write!(into, "\\u{unit:04x}");
    }
    if one_in(random, 8) {
        into.push_str(pick(random, &["\\ud800", "\\udc00\\ud800", "\\u0000", "\\/"]));
    }
    into.push('"');
}

/// What is put into texts.
const PARTS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    ":",
    ",",
    "null",
    "true",
    "0",
    "-",
    "1e999",
    "\"uid\":\"x\",",
    "\"request\":{",
    "\"kind\":\"TDSet\",",
    "\\u0000",
    "\\ud83d",
    "\u{feff}",
    " ",
    "\n",
    "/",
    "*",
    "-",
    ".",
    "e9",
    "Ki",
    "99999999999999999999",
    "[[[[[[[[[[[[[[[[",
    "{\"a\":{\"a\":{\"a\":",
    "\"uid\":null,",
    "@",
    "24:00",
];

/// Breaks a text in some places, or cuts it off.
pub fn break_up(random: &mut Random, text: &mut Vec<u8>) {
    for _ in 0..pick(random, &[1, 1, 1, 2, 4]) {
        let at = random.below(text.len() + 1);
        let most = pick(random, &[1, 4, 40]);
        let end = (at + 1 + random.below(most)).min(text.len());
        match random.below(8) {
            0 => text.truncate(at),
            1 | 2 => drop(text.splice(at..end, [])),
            3 => {
                let again = text[at..end].to_vec();
                drop(text.splice(at..at, again));
            }
            4 if at < text.len() => text[at] ^= 1 << random.below(8),
            5 => {
                let more = pick(random, PARTS).repeat(pick(random, &[1, 1, 3, 200]));
                drop(text.splice(at..at, more.into_bytes()));
            }
            _ => drop(text.splice(at..at, pick(random, PARTS).bytes())),
        }
    }
}
