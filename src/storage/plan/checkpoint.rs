//! Where a migration stands, in an annotation of the definition: what takes it up goes on from there.
//!
//! Guarantees: a place is taken up only in the same object with the same spec, for the same version; a pass in which an
//! object could not be written is begun again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::tally::Tally;

/// As whom a migration writes.
pub const MANAGER: &str = "gatehouse-storage";

/// The annotation that a place is written to.
pub const ANNOTATION: &str = "gatehouse.dev/storage-migration";

/// The end of a page whose objects have all been dealt with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checkpoint {
    /// The definition.
    pub uid: String,
    /// The state of its spec.
    pub generation: i64,
    /// The version that objects are written in.
    pub to: String,
    /// Which pass this is, from 1 on.
    pub pass: u32,
    /// Where the next page begins, in the API server's words; empty at the beginning of the pass.
    pub next: String,
    /// What the pass has done so far.
    pub tally: Tally,
}

impl Checkpoint {
    /// The place at the beginning of a pass over the objects of that definition.
    #[must_use]
    pub fn at_pass(pass: u32, uid: &str, generation: i64, to: &str) -> Self {
        let (uid, to) = (uid.to_owned(), to.to_owned());
        Self { uid, generation, to, pass, next: String::new(), tally: Tally::default() }
    }

    /// The same pass at its beginning.
    #[must_use]
    pub fn again(&self) -> Self {
        Self::at_pass(self.pass, &self.uid, self.generation, &self.to)
    }

    /// Where to go on where the API server no longer knows this place: at the one that it gives instead, or else at the
    /// beginning of the pass.
    #[must_use]
    pub fn after_expiry(&self, instead: Option<String>) -> Self {
        match instead.filter(|next| *next != self.next && !next.is_empty()) {
            Some(next) => Self { next, ..self.clone() },
            None => self.again(),
        }
    }

    /// Where to begin: at the place that is known, if that is one of the same migration, and otherwise here.
    #[must_use]
    pub fn or_where(self, known: Option<&Self>) -> Self {
        let is_of_same = |known: &&Self| {
            (&known.uid, known.generation, &known.to) == (&self.uid, self.generation, &self.to)
        };
        match known.filter(is_of_same) {
            None => self,
            Some(known) if known.tally.failed > 0 => known.again(),
            Some(known) => known.clone(),
        }
    }

    /// As the annotation has it.
    #[must_use]
    pub fn text(&self) -> String {
        // A struct of texts and numbers can be written.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The place that annotations have; none where they have none that can be read.
#[must_use]
pub fn of(annotations: Option<&BTreeMap<String, String>>) -> Option<Checkpoint> {
    serde_json::from_str(annotations?.get(ANNOTATION)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_taken_up_in_the_same_migration_alone() {
        let beginning = Checkpoint::at_pass(1, "u", 3, "v1");
        let mut known = Checkpoint { pass: 2, next: "token".to_owned(), ..beginning.clone() };
        known.tally.rewritten = 500;
        let text = BTreeMap::from([(ANNOTATION.to_owned(), known.text())]);
        let read = of(Some(&text));
        assert_eq!(beginning.clone().or_where(read.as_ref()), known);
        for other in [
            Checkpoint { uid: "other".to_owned(), ..known.clone() },
            Checkpoint { generation: 4, ..known.clone() },
            Checkpoint { to: "v2".to_owned(), ..known.clone() },
        ] {
            assert_eq!(beginning.clone().or_where(Some(&other)), beginning);
        }
        known.tally.failed = 1;
        assert_eq!(beginning.clone().or_where(Some(&known)), known.again(), "what failed is tried again");
        assert_eq!(of(Some(&BTreeMap::from([(ANNOTATION.to_owned(), "{}".to_owned())]))), None);
        assert_eq!(of(None), None);
    }
    #[test]
    fn a_pass_goes_on_after_its_place_has_expired() {
        let beginning = Checkpoint::at_pass(2, "u", 1, "v1");
        let mut known = Checkpoint { next: "old".to_owned(), ..beginning.clone() };
        known.tally.rewritten = 7;
        let fresh = Checkpoint { next: "fresh".to_owned(), ..known.clone() };
        assert_eq!(known.after_expiry(Some("fresh".to_owned())), fresh, "what was written counts");
        for no_other in [None, Some(String::new()), Some("old".to_owned())] {
            assert_eq!(known.after_expiry(no_other), beginning);
        }
    }
}
