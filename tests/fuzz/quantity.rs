//! Two quantities: `["1.5Gi", "1536Mi"]`.
//!
//! Guarantees: a quantity is what exact arithmetic makes of its text; two compare as these do; what was read is written
//! back, and reads as the same.

use std::sync::LazyLock;

use gatehouse::api::quantity::{Amount, Quantity, QuantityError};
use kit::random::Random;
use num_bigint::BigUint;
use regex::Regex;
use serde_json::{Value, json};

use crate::corpus::Input;
use crate::drawn::{self, one_in, one_of, pick};
use crate::text::break_up;

/// What reads, in all.
static FORM: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^([+-]?)([0-9]*)(?:\.([0-9]*))?(|[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)$")
        .expect("this is an expression")
});

/// Decimal places that an amount keeps.
const PLACES: i64 = 9;

const SUFFIXES: &[&str] = &[
    "",
    "",
    "n",
    "u",
    "m",
    "k",
    "M",
    "G",
    "T",
    "P",
    "E",
    "Ki",
    "Mi",
    "Gi",
    "Ti",
    "Pi",
    "Ei",
    "K",
    "gi",
    "i",
    "e3",
    "E3",
    "e-3",
    "e+9",
    "e0",
    "e",
    "e100",
    "e-100",
    "e9223372036854775807",
    "e-9223372036854775808",
    "e99999999999999999999",
    "GB",
];

/// Two quantities, which are often near each other.
pub fn make(random: &mut Random, corpus: &[Input]) -> Vec<u8> {
    let one = if one_in(random, 10) { kept(random, corpus) } else { quantity(random) };
    let mut two = if one_in(random, 2) { quantity(random) } else { one.clone() };
    if let (true, Some(text)) = (one_in(random, 3), two.as_str()) {
        let mut near = text.as_bytes().to_vec();
        break_up(random, &mut near);
        two = String::from_utf8_lossy(&near).into();
    }
    json!([one, two]).to_string().into_bytes()
}

fn kept(random: &mut Random, corpus: &[Input]) -> Value {
    let input: Option<Value> = serde_json::from_slice(&one_of(random, corpus).bytes).ok();
    input.map(|input| input[random.below(2)].clone()).unwrap_or_default()
}

fn quantity(random: &mut Random) -> Value {
    let digits = |random: &mut Random| {
        let many = pick(random, &[0, 1, 1, 2, 3, 9, 10, 18, 19, 20, 30, 60]);
        let any = (0..many).map(|_| char::from(b'0' + pick(random, &[0, 0, 0, 1, 5, 9]))).collect::<String>();
        if one_in(random, 20) { "9223372036854775807".to_owned() } else { any }
    };
    let (sign, whole, suffix) =
        (pick(random, &["", "", "", "+", "-"]), digits(random), pick(random, SUFFIXES));
    let fraction = if one_in(random, 2) { format!(".{}", digits(random)) } else { String::new() };
    match random.below(20) {
        0 => drawn::junk(random),
        1 => json!(random.draw() >> random.below(64)),
        _ => json!(format!("{sign}{whole}{fraction}{suffix}")),
    }
}

/// Holds both against exact arithmetic, and against each other.
pub fn check(input: &[u8]) {
    let Ok(Value::Array(both)) = serde_json::from_slice(input) else { return };
    let amounts: Vec<_> = both.iter().filter_map(amount).collect();
    if let [(one, exact_one), (two, exact_two)] = &amounts[..] {
        assert_eq!(one.cmp(two), exact_one.cmp(exact_two), "{both:?} compare otherwise than exactly");
    }
}

/// The amount of a quantity, and in exact billionths; none where it is no quantity.
fn amount(written: &Value) -> Option<(Amount, i128)> {
    let quantity: Quantity = serde_json::from_value(written.clone()).ok()?;
    let again = serde_json::to_value(&quantity).expect("a quantity can be written");
    let read: Quantity = serde_json::from_value(again.clone()).expect("what was written can be read");
    assert_eq!(read, quantity, "{written} is written as {again}");
    if !written.is_f64() && written.as_u64().is_none_or(|number| i64::try_from(number).is_ok()) {
        assert_eq!(&again, written, "it is written otherwise");
    }
    let text = quantity.to_string();
    let (amount, exact) = (quantity.amount(), exact(&text));
    // An integer is not capped at one less than the least.
    if matches!(quantity, Quantity::Integer(i64::MIN)) {
        return None;
    }
    assert_eq!(
        amount.as_ref().ok().map(|amount| amount.nanos()),
        exact,
        "{text:?} is another amount than the exact one"
    );
    let printed = Quantity::from(text.as_str()).amount();
    assert_eq!(printed, amount, "{text:?} reads otherwise as a text");
    hold_bytes(&quantity, exact);
    Some((amount.ok()?, exact?))
}

fn hold_bytes(quantity: &Quantity, exact: Option<i128>) {
    const NANO: i128 = 1_000_000_000;
    let bytes = quantity.bytes();
    match exact {
        None => assert!(bytes.is_err(), "{quantity} is no quantity and has bytes"),
        Some(..=0) => assert_eq!(bytes, Err(QuantityError::NotPositive), "{quantity}"),
        Some(exact) if exact % NANO != 0 => assert_eq!(bytes, Err(QuantityError::Fraction), "{quantity}"),
        Some(exact) => assert_eq!(bytes.map(i128::from), Ok(exact / NANO), "{quantity}"),
    }
}

/// What a text stands for in billionths, rounded away from zero and capped as the API server does; none where it is no
/// quantity.
fn exact(text: &str) -> Option<i128> {
    let parts = FORM.captures(text).filter(|_| !text.is_empty())?;
    let part = |at: usize| parts.get(at).map_or("", |part| part.as_str());
    let (whole, fraction, suffix) = (part(2), part(3), part(4));
    let (ten, bits) = power(suffix)?;
    let all = format!("0{whole}{fraction}");
    let digits = BigUint::parse_bytes(all.as_bytes(), 10)?;
    let largest = BigUint::from(i64::MAX.unsigned_abs()) * 10_u32.pow(9);
    let shift = ten.saturating_add(PLACES).saturating_sub(i64::try_from(fraction.len()).ok()?);
    let magnitude = if digits == BigUint::ZERO {
        digits
    } else if shift > 60 {
        largest.clone()
    } else if shift < -i64::try_from(all.len()).ok()? - 60 {
        BigUint::from(1_u8)
    } else {
        let scale = BigUint::from(10_u8).pow(u32::try_from(shift.unsigned_abs()).ok()?);
        let digits = digits << bits;
        if shift >= 0 { digits * scale } else { (digits + &scale - 1_u8) / scale }
    };
    let magnitude = i128::try_from(magnitude.min(largest)).ok()?;
    Some(if part(1) == "-" { -magnitude } else { magnitude })
}

/// The powers of ten and of two that a suffix stands for.
fn power(suffix: &str) -> Option<(i64, u32)> {
    const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
    if let Some(bits) = (10..).step_by(10).zip(BINARY).find(|(_, name)| *name == suffix) {
        return Some((0, bits.0));
    }
    let named = (-9..).step_by(3).zip(DECIMAL).find(|(_, name)| *name == suffix).map(|(ten, _)| ten);
    Some((named.or_else(|| suffix.get(1..)?.parse().ok())?, 0))
}
