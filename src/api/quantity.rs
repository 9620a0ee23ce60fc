//! Quantities as Kubernetes writes them: `10Gi`, `1500m`, `1e9`, or a plain integer.
//!
//! Guarantees: takes what apimachinery's `resource.ParseQuantity` takes and refuses what it refuses; compares as
//! numbers, so that `1Gi` equals `1024Mi`; what was read is written back unchanged. Magnitudes past 2^63-1 are
//! capped, and what is finer than a billionth is rounded away from zero, as there.
//! Never: computes with floating point.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A quantity on the wire, as its author wrote it: an integer or a string.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Quantity {
    /// `1073741824`
    Integer(i64),
    /// `"1Gi"`; not necessarily well-formed.
    Text(String),
}

impl Quantity {
    /// The number that it stands for.
    ///
    /// # Errors
    /// Where the text is no quantity.
    pub fn amount(&self) -> Result<Amount, QuantityError> {
        match self {
            Self::Integer(number) => Ok(Amount(i128::from(*number) * NANO)),
            Self::Text(text) => text.parse(),
        }
    }

    /// The number of bytes that it stands for: whole and above zero.
    ///
    /// # Errors
    /// Where it is no quantity, zero, negative, or not whole.
    pub fn bytes(&self) -> Result<u64, QuantityError> {
        let amount = self.amount()?;
        let whole = amount.0 / NANO;
        if amount.0 <= 0 {
            return Err(QuantityError::NotPositive);
        }
        if amount.0 % NANO != 0 {
            return Err(QuantityError::Fraction);
        }
        Ok(u64::try_from(whole).unwrap_or(u64::MAX))
    }
}

impl Default for Quantity {
    fn default() -> Self {
        Self::Integer(0)
    }
}

impl From<&str> for Quantity {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => write!(formatter, "{number}"),
            Self::Text(text) => formatter.write_str(text),
        }
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Integer(number) => serializer.serialize_i64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visitor)
    }
}

struct Visitor;

impl de::Visitor<'_> for Visitor {
    type Value = Quantity;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an integer or a string such as \"10Gi\"")
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Quantity, E> {
        Ok(Quantity::Integer(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Quantity, E> {
        Ok(i64::try_from(number).map_or_else(|_| Quantity::Text(number.to_string()), Quantity::Integer))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Quantity, E> {
        Ok(Quantity::Text(number.to_string()))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
        Ok(Quantity::Text(text.to_owned()))
    }
}

impl JsonSchema for Quantity {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "x-kubernetes-int-or-string": true })
    }
}

/// A quantity as a number, in billionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(i128);

impl Amount {
    /// A whole number of units.
    #[must_use]
    pub const fn whole(number: i64) -> Self {
        Self(number as i128 * NANO)
    }

    /// The number in billionths.
    #[must_use]
    pub const fn nanos(self) -> i128 {
        self.0
    }
}

const NANO: i128 = 1_000_000_000;
/// Decimal places of [`NANO`].
const PLACES: i64 = 9;
/// The same, as a number of digits.
const NEAR: usize = 9;
/// The largest magnitude, in billionths: apimachinery caps at 2^63-1.
const LARGEST: i128 = i64::MAX as i128 * NANO;

/// Why a quantity is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The number does not read.
    #[error("must be a quantity such as 10Gi, 500M or 1073741824")]
    Number,
    /// What stands behind the number is no suffix.
    #[error(
        "must be a quantity that ends in one of Ki, Mi, Gi, Ti, Pi, Ei, n, u, m, k, M, G, T, P, E or an exponent such as e9"
    )]
    Suffix,
    /// Zero or negative.
    #[error("must be greater than zero")]
    NotPositive,
    /// Not whole.
    #[error("must be a whole number of bytes, such as 10Gi, 500M or 1073741824")]
    Fraction,
}

impl std::str::FromStr for Amount {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err(QuantityError::Number);
        }
        let (negative, unsigned) = match text.as_bytes()[0] {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (whole, rest) = digits(unsigned);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), digits);
        let magnitude = match Suffix::read(suffix)? {
            Suffix::Decimal(exponent) => decimal(whole, fraction, exponent),
            Suffix::Binary(bits) => binary(whole, fraction, bits),
        };
        let magnitude = magnitude.unwrap_or(LARGEST).min(LARGEST);
        Ok(Self(if negative { -magnitude } else { magnitude }))
    }
}

/// Splits off the leading digits.
fn digits(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|one| !one.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// What a number is multiplied by.
enum Suffix {
    /// A power of ten.
    Decimal(i64),
    /// A power of two.
    Binary(u32),
}

impl Suffix {
    fn read(suffix: &str) -> Result<Self, QuantityError> {
        Ok(match suffix {
            "" => Self::Decimal(0),
            "n" => Self::Decimal(-9),
            "u" => Self::Decimal(-6),
            "m" => Self::Decimal(-3),
            "k" => Self::Decimal(3),
            "M" => Self::Decimal(6),
            "G" => Self::Decimal(9),
            "T" => Self::Decimal(12),
            "P" => Self::Decimal(15),
            "E" => Self::Decimal(18),
            "Ki" => Self::Binary(10),
            "Mi" => Self::Binary(20),
            "Gi" => Self::Binary(30),
            "Ti" => Self::Binary(40),
            "Pi" => Self::Binary(50),
            "Ei" => Self::Binary(60),
            _ => {
                let exponent = suffix
                    .strip_prefix(['e', 'E'])
                    .and_then(|exponent| exponent.parse::<i64>().ok())
                    .ok_or_else(|| {
                        if suffix.starts_with(|one: char| one.is_ascii_alphabetic()) {
                            QuantityError::Suffix
                        } else {
                            QuantityError::Number
                        }
                    })?;
                Self::Decimal(exponent)
            }
        })
    }
}

/// The number in billionths; none where it is past every bound.
fn decimal(whole: &str, fraction: &str, exponent: i64) -> Option<i128> {
    let whole = whole.trim_start_matches('0');
    if whole.is_empty() && fraction.bytes().all(|one| one == b'0') {
        return Some(0);
    }
    let length = i64::try_from(whole.len()).ok()?;
    let point = length.saturating_add(exponent).saturating_add(PLACES);
    let mut kept: i128 = 0;
    let mut place = 0;
    let mut rounded = false;
    for digit in whole.bytes().chain(fraction.bytes()) {
        if place < point {
            kept = kept.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
            place += 1;
        } else if digit != b'0' {
            rounded = true;
            break;
        }
    }
    while place < point && kept != 0 {
        kept = kept.checked_mul(10)?;
        place += 1;
    }
    Some(kept + i128::from(rounded))
}

/// The number in billionths; none where it is past every bound.
fn binary(whole: &str, fraction: &str, bits: u32) -> Option<i128> {
    let (near, far) = fraction.split_at(fraction.len().min(NEAR));
    let mut number: i128 = 0;
    for digit in whole.trim_start_matches('0').bytes().chain(format!("{near:0<NEAR$}").bytes()) {
        number = number.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
    }
    // The places past a billionth, from the last one on: what they come to once they are multiplied.
    let mut carried: i128 = 0;
    let mut rounded = false;
    for digit in far.bytes().rev() {
        let product = (i128::from(digit - b'0') << bits) + carried;
        rounded |= product % 10 != 0;
        carried = product / 10;
    }
    number.checked_mul(1 << bits)?.checked_add(carried)?.checked_add(i128::from(rounded))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(text: &str) -> Option<i128> {
        text.parse::<Amount>().ok().map(Amount::nanos)
    }

    #[test]
    fn what_go_accepts_has_the_same_value() {
        let table: &[(&str, i128)] = &[
            ("0", 0),
            ("10Gi", (10 << 30) * NANO),
            ("1Ki", 1024 * NANO),
            ("1.5Gi", 1536 * (1 << 20) * NANO),
            ("0.5Ki", 512 * NANO),
            ("1500m", 1_500_000_000),
            ("1u", 1000),
            ("1n", 1),
            ("0.1n", 1),
            ("-0.1n", -1),
            ("1k", 1000 * NANO),
            ("500M", 500_000_000 * NANO),
            ("1E", 1_000_000_000_000_000_000 * NANO),
            ("1Ei", (1 << 60) * NANO),
            ("1e3", 1000 * NANO),
            ("1E3", 1000 * NANO),
            ("1e+3", 1000 * NANO),
            ("1e-3", 1_000_000),
            ("12.5e1", 125 * NANO),
            ("+5", 5 * NANO),
            ("-5Gi", -5 * (1 << 30) * NANO),
            (".5", 500_000_000),
            ("5.", 5 * NANO),
            ("1.G", 1_000_000_000 * NANO),
            ("007", 7 * NANO),
            ("0e100", 0),
            ("1e100", LARGEST),
            ("-1e100", -LARGEST),
            ("100Ei", LARGEST),
            ("9223372036854775808", LARGEST),
            ("1e-100", 1),
            ("1e-9223372036854775808", 1),
            ("1e9223372036854775807", LARGEST),
            ("0.0000000001Ei", 115_292_150_460_684_698), // 115292150.46… rounded up
            ("0.0000000000000000005Ei", 576_460_753),    // 0.576…, of which no digit is too far behind
            ("0.00000000000000000000000000000000000001Ei", 1),
            ("0.99999999999999999999Ki", 1024 * NANO),
            ("8191.99999999999999999999999999Pi", LARGEST),
        ];
        for (text, value) in table {
            assert_eq!(nanos(text), Some(*value), "{text}");
        }
    }

    #[test]
    fn what_go_refuses_is_refused() {
        for text in [
            "",
            "1.1.M",
            "1+1.0M",
            "0.1mi",
            "0.1am",
            "aoeu",
            ".5i",
            "1i",
            "-3.01i",
            "-3.01e-",
            "10GB",
            "10gi",
            "10 Gi",
            " 1",
            "1 ",
            "1KI",
            "1K",
            "e",
            "1e",
            "1e1.5",
            "0x10",
            "--1",
            "1_000",
            "1e99999999999999999999",
        ] {
            assert!(nanos(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn the_same_number_written_otherwise_is_equal() {
        assert_eq!(nanos("1Gi"), nanos("1024Mi"));
        assert_eq!(nanos("1000m"), nanos("1"));
        assert!(nanos("10G") < nanos("10Gi"));
    }

    #[test]
    fn bytes_are_whole_and_positive() {
        let of = |text: &str| Quantity::from(text).bytes();
        assert_eq!(of("1Gi"), Ok(1 << 30));
        assert_eq!(Quantity::Integer(7).bytes(), Ok(7));
        assert_eq!(of("0"), Err(QuantityError::NotPositive));
        assert_eq!(of("-1Gi"), Err(QuantityError::NotPositive));
        assert_eq!(of("1500m"), Err(QuantityError::Fraction));
        assert_eq!(of("1.5Ki"), Ok(1536));
        assert_eq!(of("10GB"), Err(QuantityError::Suffix));
        assert_eq!(of("ten"), Err(QuantityError::Suffix));
        assert_eq!(of("1,5Gi"), Err(QuantityError::Number));
    }

    #[test]
    fn what_was_read_is_written_back() {
        for text in ["\"1024Mi\"", "1073741824", "\"\"", "-3"] {
            let read: Quantity = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), text);
        }
    }

    proptest::proptest! {
        #![proptest_config(crate::properties::config())]

        #[test]
        fn no_text_is_fatal(text in "\\PC{0,40}") {
            let _ = text.parse::<Amount>();
        }

        #[test]
        fn integers_keep_their_order(one in proptest::num::i64::ANY, other in proptest::num::i64::ANY) {
            let parse = |number: i64| number.to_string().parse::<Amount>().unwrap();
            let capped = |number: i64| number.max(-i64::MAX);
            proptest::prop_assert_eq!(parse(one).cmp(&parse(other)), capped(one).cmp(&capped(other)));
        }
    }
}
