//! The annotations of a review in the audit log: short ones, which the API server puts beside the request.
//!
//! Guarantees: nothing where an object was allowed as it was written in the present version, so that the common answer
//! stays small; no values, only paths and numbers; a text of no more than [`LONGEST`] bytes, and no control character
//! in it, since a path has keys in it that users make up.
//! Assumes: the API server puts the webhook's name and a slash before each key, and throws a key away that is then no
//! qualified name (apiserver, `pkg/admission/attributes.go`): at most 63 of `A-Za-z0-9-_.` behind the slash. For texts
//! it has no limit at webhooks; those of its own policies end at 10 KiB, and these stay far below.

use std::collections::BTreeMap;

use crate::api::Version;
use crate::api::field::{FieldError, Path};

/// Annotations by their keys.
pub(super) type Audit = BTreeMap<&'static str, String>;

/// Bytes of one text.
const LONGEST: usize = 1024;

/// Paths of one text; the others are counted.
const MOST_PATHS: usize = 8;

/// Characters of one path.
const LONGEST_PATH: usize = 100;

const VERDICT: &str = "verdict";
const ERRORS: &str = "errors";
const KEPT: &str = "kept";
const DEFAULTED: &str = "defaulted";
const WRITTEN_AS: &str = "written-as";

/// The result for an object.
pub(super) struct Written<'a> {
    pub(super) is_allowed: bool,
    /// The version that its author used.
    pub(super) author: Version,
    pub(super) faults: &'a [FieldError],
    /// Fields that were not given and keep what is stored.
    pub(super) kept: &'a [Path],
    /// Fields that were not given and were written for the first time.
    pub(super) defaulted: &'a [Path],
}

impl Written<'_> {
    pub(super) fn annotations(&self) -> Audit {
        let mut audit = Audit::new();
        let faults: Vec<_> = self.faults.iter().map(|fault| &fault.path).collect();
        audit.extend(listed(ERRORS, &faults));
        // What is refused is not written.
        if self.is_allowed {
            audit.extend(listed(KEPT, &self.kept.iter().collect::<Vec<_>>()));
            audit.extend(listed(DEFAULTED, &self.defaulted.iter().collect::<Vec<_>>()));
        }
        if self.author != Version::V1 {
            audit.insert(WRITTEN_AS, self.author.as_str().to_owned());
        }
        if !self.is_allowed || !audit.is_empty() {
            audit.insert(VERDICT, if self.is_allowed { "allowed" } else { "denied" }.to_owned());
        }
        audit
    }
}

/// For a request that was not processed.
pub(super) fn of_refusal() -> Audit {
    Audit::from([(VERDICT, "denied".to_owned())])
}

/// `3: spec.defaultReplicas, spec.windows[0].from, ...`: how many there are, and the first of them.
fn listed(key: &'static str, paths: &[&Path]) -> Option<(&'static str, String)> {
    if paths.is_empty() {
        return None;
    }
    let mut text = format!("{}:", paths.len());
    let mut told = 0;
    for path in paths.iter().take(MOST_PATHS) {
        let path = path.to_string();
        let path: String = path.chars().filter(|letter| !letter.is_control()).take(LONGEST_PATH).collect();
        let between = if told == 0 { " " } else { ", " };
        if text.len() + between.len() + path.len() + REST.len() > LONGEST {
            break;
        }
        text.push_str(between);
        text.push_str(&path);
        told += 1;
    }
    if told < paths.len() {
        text.push_str(REST);
    }
    Some((key, text))
}

/// Stands for the paths that are left out.
const REST: &str = ", ...";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::field::Reason;

    const PLAIN: Written<'static> =
        Written { is_allowed: true, author: Version::V1, faults: &[], kept: &[], defaulted: &[] };

    fn replicas() -> Path {
        Path::spec().at("replicas")
    }

    #[test]
    fn a_plain_allow_says_nothing() {
        assert_eq!(PLAIN.annotations(), Audit::new());
    }

    #[test]
    fn each_thing_that_happened_is_reported_by_its_path() {
        let fields = [replicas(), Path::spec().at("windows").index(0)];
        let told = Written { kept: &fields[..1], defaulted: &fields, author: Version::V1Alpha1, ..PLAIN };
        let expected = [
            (VERDICT, "allowed"),
            (KEPT, "1: spec.replicas"),
            (DEFAULTED, "2: spec.replicas, spec.windows[0]"),
            (WRITTEN_AS, "v1alpha1"),
        ];
        assert_eq!(told.annotations(), expected.map(|(key, text)| (key, text.to_owned())).into());
        let faults = [FieldError::new(replicas(), Reason::Invalid, "secret")];
        let told = Written { is_allowed: false, faults: &faults, kept: &fields, ..PLAIN }.annotations();
        let expected = [(VERDICT, "denied"), (ERRORS, "1: spec.replicas")];
        assert_eq!(told, expected.map(|(key, text)| (key, text.to_owned())).into());
    }

    #[test]
    fn the_api_server_takes_every_key_and_text() {
        let keys: Vec<_> = (0..50).map(|_| Path::spec().key("\u{1f980}\n".repeat(5000))).collect();
        let faults: Vec<_> =
            keys.iter().map(|path| FieldError::new(path.clone(), Reason::Invalid, "")).collect();
        for is_allowed in [true, false] {
            let written = Written {
                is_allowed,
                author: Version::V1Alpha1,
                faults: &faults,
                kept: &keys,
                defaulted: &keys,
            };
            for (key, text) in written.annotations() {
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
                assert!(key.len() <= 63 && key.bytes().all(is_plain), "{key}");
                assert!(text.len() <= LONGEST && !text.contains(char::is_control), "{key}: {text}");
            }
        }
    }
}
