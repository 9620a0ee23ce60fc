//! The counts of a pass, and the objects that it could not write, by name and reason up to a bound.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How many failures are kept with their names, and how many reasons are counted.
const KEPT: usize = 20;

/// The longest reason that is kept, in bytes.
const LONGEST_REASON: usize = 512;

/// How many failures a sentence names, and the longest reason in it.
const NAMED: usize = 3;
const LONGEST_NAMED: usize = 200;

/// The result for one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was stored in another version, or another form, and has been written in this one.
    Rewritten,
    /// It was stored as it would be written: nothing was.
    AsWanted,
    /// It has been written since it was listed, and thereby in this version: by another client, or by a try of ours that
    /// got no answer.
    WrittenSince,
    /// It is gone.
    Gone,
    /// It could not be written.
    Failed(String),
}

/// An object that could not be written, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The object: `namespace/name`.
    pub object: String,
    /// The API server's message.
    pub reason: String,
}

impl Failure {
    /// The namespace of the object, where it has one, and its name.
    #[must_use]
    pub fn place(&self) -> (Option<&str>, &str) {
        let place = self.object.split_once('/');
        place.map_or((None, self.object.as_str()), |(namespace, name)| (Some(namespace), name))
    }
}

/// What a pass has done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Tally {
    /// Objects that were written.
    pub rewritten: u64,
    /// Objects that were stored as wanted.
    pub as_wanted: u64,
    /// Objects that were written or deleted meanwhile.
    pub overtaken: u64,
    /// Objects whose managed fields lost entries of versions that are not served.
    pub cleaned: u64,
    /// Objects whose managed fields still have such entries, since they were written meanwhile.
    pub uncleaned: u64,
    /// Objects that could not be written.
    pub failed: u64,
    /// The first of them.
    #[serde(skip)]
    pub failures: Vec<Failure>,
    /// An object that was written.
    #[serde(skip)]
    pub example: Option<String>,
}

impl Tally {
    /// Adds the result for an object.
    pub fn add(&mut self, object: &impl fmt::Display, fate: Fate, cleans: bool) {
        match fate {
            Fate::Rewritten => {
                self.rewritten += 1;
                self.cleaned += u64::from(cleans);
                self.example.get_or_insert_with(|| object.to_string());
            }
            Fate::AsWanted => self.as_wanted += 1,
            Fate::WrittenSince => {
                self.overtaken += 1;
                self.uncleaned += u64::from(cleans);
            }
            Fate::Gone => self.overtaken += 1,
            Fate::Failed(mut reason) => {
                self.failed += 1;
                if self.failures.len() < KEPT {
                    reason.truncate(reason.floor_char_boundary(LONGEST_REASON));
                    self.failures.push(Failure { object: object.to_string(), reason });
                }
            }
        }
    }

    /// Objects that have been dealt with.
    #[must_use]
    pub const fn objects(&self) -> u64 {
        self.rewritten + self.as_wanted + self.overtaken + self.failed
    }

    /// The first objects that could not be written, each with the reason, as the end of a sentence; empty without any.
    #[must_use]
    pub fn named(&self) -> String {
        if self.failures.is_empty() {
            return String::new();
        }
        let one = |Failure { object, reason }: &Failure| {
            format!("{object}: {}", &reason[..reason.floor_char_boundary(LONGEST_NAMED)])
        };
        let named: Vec<_> = self.failures.iter().take(NAMED).map(one).collect();
        let more = match self.failed.saturating_sub(named.len() as u64) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        format!(": {}{more}", named.join("; "))
    }

    /// How many failures are not kept by name.
    #[must_use]
    pub fn unnamed(&self) -> u64 {
        self.failed.saturating_sub(self.failures.len() as u64)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} objects: {} rewritten", self.objects(), self.rewritten)?;
        if self.cleaned > 0 {
            write!(formatter, " ({} of them lost managed fields of versions not served)", self.cleaned)?;
        }
        write!(formatter, ", {} stored as wanted", self.as_wanted)?;
        if self.overtaken > 0 {
            write!(formatter, ", {} written or deleted meanwhile", self.overtaken)?;
        }
        if self.uncleaned > 0 {
            let left = self.uncleaned;
            write!(formatter, " ({left} of them still have managed fields of versions not served)")?;
        }
        if self.failed > 0 {
            write!(formatter, ", {} not written", self.failed)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_all_counted_and_named_up_to_a_bound() {
        let mut tally = Tally::default();
        for number in 0..KEPT + 3 {
            tally.add(&format!("a/{number}"), Fate::Failed("ä".repeat(400)), false);
        }
        tally.add(&"a/b", Fate::Rewritten, true);
        tally.add(&"a/c", Fate::Gone, true);
        assert_eq!(tally.uncleaned, 0);
        tally.add(&"a/d", Fate::WrittenSince, true);
        tally.add(&"a/e", Fate::WrittenSince, false);
        assert_eq!(tally.uncleaned, 1);
        assert_eq!((tally.failed, tally.failures.len(), tally.unnamed()), (23, 20, 3));
        assert!(tally.failures.iter().all(|failure| failure.reason.len() <= LONGEST_REASON));
        assert_eq!(tally.failures[2].place(), (Some("a"), "2"));
        let wide = Failure { object: "b".to_owned(), reason: String::new() };
        assert_eq!(wide.place(), (None, "b"));
        let named = tally.named();
        assert!(named.starts_with(": a/0: ä") && named.ends_with("; and 20 more"), "{named}");
        assert!(named.contains("; a/2: ") && !named.contains("a/3") && named.len() < 700, "{named}");
        assert_eq!(Tally { failed: 4, ..Tally::default() }.named(), "", "their names were not kept");
        assert_eq!((tally.objects(), tally.cleaned, tally.example.as_deref()), (27, 1, Some("a/b")));
    }
}
