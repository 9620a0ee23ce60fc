//! Objects and other values, drawn: sound ones, random ones from the schemas, and either with a few changes.
//!
//! Guarantees: the same numbers give the same value.

use std::sync::LazyLock;

use gatehouse::api::{Kind, Version};
use gatehouse::kinds::KINDS;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kit::random::Random;
use random_objects::Source;
use serde_json::{Value, json};

use crate::corpus::EXAMPLES;

static DEFINITIONS: LazyLock<Vec<CustomResourceDefinition>> =
    LazyLock::new(|| KINDS.iter().map(|kind| kind.definition()).collect());

/// One chance in so many.
pub fn one_in(random: &mut Random, many: usize) -> bool {
    random.below(many) == 0
}

/// One of these; there has to be one.
pub fn pick<T: Copy>(random: &mut Random, from: &[T]) -> T {
    *one_of(random, from)
}

/// The same for what is not copied.
pub fn one_of<'a, T>(random: &mut Random, from: &'a [T]) -> &'a T {
    &from[random.below(from.len())]
}

/// A kind.
pub fn kind(random: &mut Random) -> &'static dyn Kind {
    pick(random, KINDS)
}

/// An object of a kind in a version: a sound one more often than not, and mostly with a few changes.
pub fn object(random: &mut Random, kind: &'static dyn Kind, version: Version) -> Value {
    let mut object =
        if one_in(random, 3) { arbitrary(random, kind, version) } else { example(random, kind, version) };
    for _ in 0..pick(random, &[0, 0, 1, 1, 2, 5]) {
        change(random, &mut object);
    }
    object
}

/// Any subset of an object's fields, with nonsense in some.
pub fn arbitrary(random: &mut Random, kind: &'static dyn Kind, version: Version) -> Value {
    let mut source = Source::new(random.draw());
    source.nonsense = pick(random, &[0, 0, 12, 40]);
    let known = |definition: &&CustomResourceDefinition| definition.spec.names.kind == kind.names().kind;
    let definition = DEFINITIONS.iter().find(known).expect("a definition for each kind");
    source.object(definition, version.as_str())
}

/// One of the examples, converted where it is of the other version.
pub fn example(random: &mut Random, kind: &'static dyn Kind, version: Version) -> Value {
    let of_kind: Vec<_> = EXAMPLES.iter().filter(|one| one["kind"] == kind.names().kind).collect();
    let object = pick(random, &of_kind).clone();
    let from = object["apiVersion"].as_str().and_then(|text| Version::of_api_version(text).ok());
    kind.lens().convert(object, from.unwrap_or(version), version)
}

/// A value that a user sends by mistake or in bad faith. A list in a list would soon be all memory.
pub fn junk(random: &mut Random) -> Value {
    match random.below(12) {
        0 => {
            let item = simple_junk(random);
            Value::Array(vec![item; pick(random, &[1, 2, 65, 500])])
        }
        1 => (0..random.below(40)).fold(json!(0), |inner, depth| {
            if depth % 2 == 0 { json!([inner]) } else { json!({ "a": inner }) }
        }),
        _ => simple_junk(random),
    }
}

fn simple_junk(random: &mut Random) -> Value {
    match random.below(14) {
        0 => Value::Null,
        1 => json!(random.below(2) == 0),
        2 => json!([]),
        3 => json!({}),
        4 => json!([0, null, "", {}, []]),
        5 => json!({"k": 0}),
        6 => json!(i64::MIN),
        7 => json!(u64::MAX),
        8 => json!(-0.0),
        9 => json!(1e300),
        10 => json!(random.below(70)),
        11 => json!(i64::from(u32::MAX) + 1),
        _ => json!(text(random)),
    }
}

/// Texts that mean something somewhere, and some that mean nothing anywhere.
const TEXTS: &[&str] = &[
    "",
    " ",
    "00:00",
    "24:00",
    "23:59",
    "8:00",
    "02:30",
    "25:61",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Local",
    "utc",
    "Mon",
    "Sun",
    "*",
    "w0",
    "w1",
    "2026-02-29",
    "2028-02-29",
    "2026-12-25",
    "9999-12-31",
    "-009999-01-01",
    "2026-10-25T02:30:00+02:00",
    "10Gi",
    "1.5Gi",
    "-1",
    "1e9",
    "1e99999999999",
    "0 2 * * *",
    "@daily",
    "@every 1h",
    "*/7 1-5,9 31 2,feb ?",
    "3.6.16",
    "3.5.999999999999999999999",
    "v3",
    "Automatic",
    "Max",
    "KeepUntilNextTransition",
    "true",
    "50%",
    "-50%",
    "a/b~1c~0d",
    "spec.timeZone",
    "\u{0}",
    "\u{feff}",
    "ÄÖ🙂",
    "\u{202e}",
    "\"",
    "\\",
    "30m",
    "1h",
    "2562047h47m",
    "gatehouse.dev/v1",
    "gatehouse.dev/v1alpha1",
    "TDSet",
    "EtcdCluster",
    "default",
];

/// A text.
pub fn text(random: &mut Random) -> String {
    match random.below(12) {
        0 => "x".repeat(pick(random, &[63, 64, 253, 254, 1025, 5000])),
        1 => (0..random.below(8)).map(|_| any_char(random)).collect(),
        2 => format!("{}{}", pick(random, TEXTS), pick(random, TEXTS)),
        _ => pick(random, TEXTS).to_owned(),
    }
}

fn any_char(random: &mut Random) -> char {
    let code = u32::try_from(random.below(0x11_0000)).ok();
    code.and_then(char::from_u32).unwrap_or('?')
}

/// Changes one place of a value.
pub fn change(random: &mut Random, value: &mut Value) {
    let other = {
        let which = random.below(places(value));
        place(value, which).map_or(Value::Null, |(found, _)| found.clone())
    };
    let which = random.below(places(value));
    match place(value, which) {
        Some((found, _)) => change_here(random, found, other),
        None => *value = junk(random),
    }
}

fn change_here(random: &mut Random, value: &mut Value, other: Value) {
    match (random.below(6), value) {
        (0, Value::Object(fields)) if !fields.is_empty() => {
            let key = fields.keys().nth(random.below(fields.len())).cloned().unwrap_or_default();
            fields.remove(&key);
        }
        (1, Value::Object(fields)) => {
            let key = if one_in(random, 2) { text(random) } else { "replicas".to_owned() };
            fields.insert(key, other);
        }
        (0, Value::Array(items)) if !items.is_empty() => {
            items.remove(random.below(items.len()));
        }
        (1 | 2, Value::Array(items)) if !items.is_empty() => {
            let item = items[random.below(items.len())].clone();
            items.insert(random.below(items.len() + 1), item);
        }
        (3, Value::Array(items)) if items.len() > 1 => {
            let (one, two) = (random.below(items.len()), random.below(items.len()));
            items.swap(one, two);
        }
        (0..=3, Value::Number(number)) => {
            let near = number.as_i64().unwrap_or_default().saturating_add(pick(random, &[-2, -1, 1, 2]));
            *number = near.into();
        }
        (0..=3, Value::String(said)) => *said = text(random),
        (4, value) => *value = other,
        (_, value) => *value = junk(random),
    }
}

/// How many places a value has, itself included.
fn places(value: &Value) -> usize {
    1 + match value {
        Value::Object(fields) => fields.values().map(places).sum(),
        Value::Array(items) => items.iter().map(places).sum(),
        _ => 0_usize,
    }
}

/// The place of that number, counted from the outside; how many are left to count where there is none.
fn place(value: &mut Value, which: usize) -> Option<(&mut Value, usize)> {
    if which == 0 {
        return Some((value, 0));
    }
    let mut left = which - 1;
    let children: Vec<&mut Value> = match value {
        Value::Object(fields) => fields.values_mut().collect(),
        Value::Array(items) => items.iter_mut().collect(),
        _ => Vec::new(),
    };
    for child in children {
        let size = places(child);
        if left < size {
            return place(child, left);
        }
        left -= size;
    }
    None
}

/// Each number in it reads as the one that was written. Of those with a fraction serde_json reads a few a bit beside.
pub fn is_exact(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.values().all(is_exact),
        Value::Array(items) => items.iter().all(is_exact),
        Value::Number(number) if number.is_f64() => {
            number.to_string().parse::<serde_json::Number>().ok().as_ref() == Some(number)
        }
        _ => true,
    }
}
