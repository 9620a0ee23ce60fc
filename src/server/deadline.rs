//! How long a review may take. Pure.
//!
//! The API server sends its timeout to an admission webhook as `?timeout=10s`, and none to a conversion webhook: there
//! it is 30 s (kubernetes/apiserver `pkg/util/webhook`, kubernetes/apiextensions-apiserver `webhook_converter.go`).

use std::time::Duration;

use crate::api::duration;
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
        Some(text) => duration::parse(text)
            .ok()
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
    fn a_timeout_that_is_none_names_what_is_allowed() {
        let error = of_request(Endpoint::Validate, Some("timeout=soon")).unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"invalid query parameter timeout: "soon": expected a positive duration such as 10s or 1m30s"#
        );
        assert!(of_request(Endpoint::Validate, Some("timeout=0s")).is_err());
    }

    proptest! {
        #![proptest_config(crate::properties::config())]

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
