//! The result of a read: known, absent, or unknown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Ordinal;

/// Something that was looked for. That it could not be found out is not that it is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Fact<T> {
    /// It is there.
    Known(T),
    /// It was looked for and is not there.
    Absent,
    /// It could not be found out.
    Unknown,
}

impl<T> Fact<T> {
    /// The value, where it is known.
    #[must_use]
    pub const fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Absent | Self::Unknown => None,
        }
    }

    /// The same about a reference.
    #[must_use]
    pub const fn as_ref(&self) -> Fact<&T> {
        match self {
            Self::Known(value) => Fact::Known(value),
            Self::Absent => Fact::Absent,
            Self::Unknown => Fact::Unknown,
        }
    }

    /// What follows from the value; whether it is there stays as it is.
    #[must_use]
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Self::Known(value) => Fact::Known(change(value)),
            Self::Absent => Fact::Absent,
            Self::Unknown => Fact::Unknown,
        }
    }

    /// Whether it is there and `holds` of it.
    #[must_use]
    pub fn is_known_and(&self, holds: impl FnOnce(&T) -> bool) -> bool {
        self.known().is_some_and(holds)
    }

    /// Whether it was looked for and is not there.
    #[must_use]
    pub const fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// Whether it could not be found out.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }
}

impl<'a, T> Fact<&'a T> {
    /// The value, where it is known, for as long as what it was read from.
    #[must_use]
    pub const fn found(self) -> Option<&'a T> {
        match self {
            Fact::Known(value) => Some(value),
            Fact::Absent | Fact::Unknown => None,
        }
    }
}

impl<T> Fact<BTreeMap<Ordinal, T>> {
    /// The element at an ordinal: absent only from a list that is known.
    #[must_use]
    pub fn get(&self, ordinal: Ordinal) -> Fact<&T> {
        match self {
            Self::Known(list) => list.get(&ordinal).map_or(Fact::Absent, Fact::Known),
            Self::Absent => Fact::Absent,
            Self::Unknown => Fact::Unknown,
        }
    }

    /// The elements; none where the list is not known.
    pub fn elements(&self) -> impl Iterator<Item = (Ordinal, &T)> {
        self.known().into_iter().flat_map(|list| list.iter().map(|(ordinal, element)| (*ordinal, element)))
    }
}

/// Time, as far as a plan has to know: whether it is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Age {
    /// The deadline lies ahead.
    Fresh,
    /// The deadline has passed.
    PastDeadline,
}

impl Age {
    /// Whether the deadline has passed.
    #[must_use]
    pub const fn is_past(self) -> bool {
        matches!(self, Self::PastDeadline)
    }

    /// Whether the deadline lies ahead.
    #[must_use]
    pub const fn is_fresh(self) -> bool {
        matches!(self, Self::Fresh)
    }
}
