//! Durations as Go writes them: `100ms`, `1h30m`, `1.5s`.
//!
//! Guarantees: takes what Go's `time.ParseDuration` takes, within its range of about 292 years; what was read is
//! written back unchanged. Own and not `kube::core::Duration`, which panics on a number that overflows.

use std::borrow::Cow;
use std::fmt;
use std::time;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A duration on the wire, as its author wrote it; not necessarily well-formed.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, Hash)]
#[serde(transparent)]
pub struct Duration(pub String);

/// The CEL rule for a field of this type.
pub const CEL_RULE: &str =
    "self.matches('^[-+]?0$|^[+]?(([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+$')";
/// What that rule says.
pub const CEL_MESSAGE: &str = "must be a duration such as 100ms, 90s or 1h30m";

/// Why a duration is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// It does not read.
    #[error("must be a duration such as 100ms, 90s or 1h30m")]
    Syntax,
    /// A number stands without a unit.
    #[error("needs a unit: one of ns, us, ms, s, m, h, as in 90s or 1h30m")]
    Unit,
    /// It is below zero.
    #[error("must not be negative")]
    Negative,
    /// It does not fit.
    #[error("is too long: at most 2562047h (292 years)")]
    TooLong,
}

impl Duration {
    /// How long it is.
    ///
    /// # Errors
    /// Where the text is no duration, or a negative one.
    pub fn get(&self) -> Result<time::Duration, DurationError> {
        parse(&self.0)
    }

    /// The text, as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Duration {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl JsonSchema for Duration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "maxLength": 64 })
    }
}

/// Reads a duration in Go's syntax.
///
/// # Errors
/// Where the text is no duration, or a negative one.
pub fn parse(text: &str) -> Result<time::Duration, DurationError> {
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(time::Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(DurationError::Syntax);
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (nanos, left) = term(rest)?;
        total = total
            .checked_add(nanos)
            .filter(|sum| i64::try_from(*sum).is_ok())
            .ok_or(DurationError::TooLong)?;
        rest = left;
    }
    if negative && total > 0 {
        return Err(DurationError::Negative);
    }
    Ok(time::Duration::from_nanos(total))
}

/// One number with its unit, in nanoseconds, and what stands behind it.
fn term(text: &str) -> Result<(u64, &str), DurationError> {
    let (whole, rest) = digits(text);
    let (fraction, rest) = rest.strip_prefix('.').map_or(("", rest), digits);
    if whole.is_empty() && fraction.is_empty() {
        return Err(DurationError::Syntax);
    }
    let end = rest.find(|one: char| one == '.' || one.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(end);
    let unit: u64 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "" => return Err(DurationError::Unit),
        _ => return Err(DurationError::Syntax),
    };
    let mut number: u64 = 0;
    for digit in whole.bytes() {
        number = number
            .checked_mul(10)
            .and_then(|number| number.checked_add(u64::from(digit - b'0')))
            .ok_or(DurationError::TooLong)?;
    }
    let mut part = 0;
    let mut place = unit;
    for digit in fraction.bytes() {
        place /= 10;
        part += u64::from(digit - b'0') * place;
    }
    let nanos =
        number.checked_mul(unit).and_then(|nanos| nanos.checked_add(part)).ok_or(DurationError::TooLong)?;
    Ok((nanos, rest))
}

/// Splits off the leading digits.
fn digits(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|one| !one.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_go_reads_is_read() {
        for (text, nanos) in [
            ("0", 0),
            ("-0", 0),
            ("100ms", 100_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1.5s", 1_500_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("3us", 3_000),
            ("3µs", 3_000),
            ("+720h", 2_592_000_000_000_000),
        ] {
            assert_eq!(parse(text), Ok(time::Duration::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn what_go_refuses_is_refused() {
        for (text, error) in [
            ("", DurationError::Syntax),
            ("-", DurationError::Syntax),
            ("1", DurationError::Unit),
            ("1h30", DurationError::Unit),
            ("1d", DurationError::Syntax),
            ("h", DurationError::Syntax),
            (".s", DurationError::Syntax),
            ("1 s", DurationError::Syntax),
            ("--1s", DurationError::Syntax),
            ("-1s", DurationError::Negative),
            ("3000000h", DurationError::TooLong),
            ("99999999999999999999999h", DurationError::TooLong),
        ] {
            assert_eq!(parse(text), Err(error), "{text:?}");
        }
    }

    proptest::proptest! {
        #![proptest_config(crate::properties::config())]

        #[test]
        fn no_text_is_fatal(text in "[-+0-9.a-zµ]{0,40}") {
            let _ = parse(&text);
        }
    }
}
