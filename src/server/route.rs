//! Which paths there are: one for each review, and one more for each kind, so that configurations can tell their
//! webhooks apart in the API server's metrics and in ours.
//!
//! Guarantees: whatever path a client makes up, its label is one of a few. What a review asks for never depends on
//! the kind in its path.

use std::sync::LazyLock;

use crate::kinds::KINDS;
use crate::review::Endpoint;

/// The label of every request that no route takes.
pub const ELSEWHERE: &str = "other";

static OF_KINDS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let of = |endpoint: Endpoint| {
        KINDS.iter().map(move |kind| format!("{}/{}", endpoint.path(), kind.names().plural))
    };
    Endpoint::ALL.into_iter().flat_map(of).collect()
});

/// The label of a request to `endpoint` by `path`: the path where it names a known kind, else the general one.
#[must_use]
pub fn label(endpoint: Endpoint, path: &str) -> &'static str {
    OF_KINDS.iter().find(|known| *known == path).map_or_else(|| endpoint.path(), String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_kind_makes_no_label_of_its_own() {
        for endpoint in Endpoint::ALL {
            let path = endpoint.path();
            assert_eq!(path, format!("/{}", endpoint.name()));
            assert_eq!(label(endpoint, path), path);
            assert_eq!(label(endpoint, &format!("{path}/nobodys")), path);
        }
    }

    #[test]
    fn each_kind_has_its_own_label() {
        for kind in KINDS {
            let path = format!("/convert/{}", kind.names().plural);
            assert_eq!(label(Endpoint::Convert, &path), path);
        }
    }
}
