//! How long a review may take. Pure.
//!
//! The API server tells an admission webhook its patience as `?timeout=10s` and a conversion webhook nothing: there
//! it is 30 s (kubernetes/apiserver `pkg/util/webhook`, kubernetes/apiextensions-apiserver `webhook_converter.go`).

use std::time::Duration;

use crate::review::Endpoint;

/// The longest that any webhook may be given (`timeoutSeconds` of `admissionregistration.k8s.io/v1`).
const LONGEST: Duration = Duration::from_secs(30);

/// What the API server waits for when a configuration does not say.
const ADMISSION_DEFAULT: Duration = Duration::from_secs(10);

/// The `timeout` parameter is not a duration.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid query parameter timeout: {0:?}: expected a positive duration such as 10s or 1m30s")]
pub struct InvalidTimeout(String);

/// The time in which the answer to a request with this `query` has to be under way: nine tenths of the client's
/// patience, so that an answer still gets there.
///
/// # Errors
/// [`InvalidTimeout`], when the query has one.
pub fn of_request(endpoint: Endpoint, query: Option<&str>) -> Result<Duration, InvalidTimeout> {
    let asked = query.unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix("timeout="));
    let patience = match asked {
        None => return Ok(unasked(endpoint)),
        Some(text) => parse_duration(text)
            .filter(|duration| !duration.is_zero())
            .ok_or_else(|| InvalidTimeout(text.chars().take(40).collect()))?,
    };
    Ok(less_margin(patience.min(LONGEST)))
}

/// The same for a request that says nothing of a timeout.
#[must_use]
pub fn unasked(endpoint: Endpoint) -> Duration {
    less_margin(match endpoint {
        Endpoint::Mutate | Endpoint::Validate => ADMISSION_DEFAULT,
        Endpoint::Convert => LONGEST,
    })
}

fn less_margin(patience: Duration) -> Duration {
    patience * 9 / 10
}

/// A duration as Go's `time.ParseDuration` takes it, without a sign: `10s`, `1m30s`, `1.5h`.
///
/// Total: whatever is no duration, or more than fits, is `None`.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    if text.is_empty() {
        return None;
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let number = rest.find(|one: char| !one.is_ascii_digit() && one != '.')?;
        let (value, after) = rest.split_at(number);
        let unit = after.find(|one: char| one.is_ascii_digit() || one == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(unit);
        let seconds = value.parse::<f64>().ok()? * seconds_per(unit)?;
        total = total.checked_add(Duration::try_from_secs_f64(seconds).ok()?)?;
        rest = after;
    }
    Some(total)
}

fn seconds_per(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1e-9,
        "us" | "µs" | "μs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_margin_is_a_tenth_of_what_the_client_waits() {
        let of = |endpoint, query| of_request(endpoint, query).unwrap();
        assert_eq!(of(Endpoint::Validate, Some("timeout=10s")), Duration::from_secs(9));
        assert_eq!(of(Endpoint::Validate, Some("a=b&timeout=2s")), Duration::from_millis(1800));
        assert_eq!(of(Endpoint::Mutate, None), Duration::from_secs(9));
        assert_eq!(of(Endpoint::Convert, None), Duration::from_secs(27));
        assert_eq!(of(Endpoint::Validate, Some("timeout=5h")), Duration::from_secs(27));
    }

    #[test]
    fn durations_read_as_go_reads_them() {
        for (text, milliseconds) in
            [("300ms", 300), ("1.5s", 1500), ("1m30s", 90_000), ("2h45m", 9_900_000), (".5s", 500)]
        {
            assert_eq!(parse_duration(text), Some(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "10", "s", "1x", "-1s", "1s-2s", "1e300s", "1..2s", ".s"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
        assert_eq!(parse_duration(&format!("{}h", "9".repeat(400))), None);
    }

    #[test]
    fn a_timeout_that_is_none_names_what_is_allowed() {
        let error = of_request(Endpoint::Validate, Some("timeout=soon")).unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"invalid query parameter timeout: "soon": expected a positive duration such as 10s or 1m30s"#
        );
        assert!(of_request(Endpoint::Validate, Some("timeout=0s")).is_err());
    }

    proptest! {
        #[test]
        fn no_query_brings_it_down_or_past_the_longest(query in ".{0,60}") {
            for query in [query.clone(), format!("timeout={query}"), format!("timeout={query}s")] {
                if let Ok(deadline) = of_request(Endpoint::Convert, Some(&query)) {
                    prop_assert!(deadline < LONGEST);
                }
            }
        }
    }
}
