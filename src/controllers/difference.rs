//! How much of an object a change was about. Pure.

/// How an object differs from what it was, as far as a reconciliation looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// In nothing.
    Nothing,
    /// In numbers that are only shown.
    Numbers,
    /// In more than that.
    More,
}

impl Difference {
    /// It differs, unless it is the same.
    #[must_use]
    pub const fn unless(is_same: bool) -> Self {
        if is_same { Self::Nothing } else { Self::More }
    }
}
