//! What the checks of a change leave out of this tier, and when they run it instead.
//!
//! Guarantees: without `WITH_SLICE` all tests run, as they do at night; with `WITH_SLICE=n` every test that is not in
//! slices, and of the others each in one of [`COUNT`] numbers that follow one another. The tests of a control plane are
//! dealt out in turn, so that no slice takes much longer than another. A test of many cases takes a slice of its cases.

use crate::Module;
use crate::beds::Ground;

/// How many slices there are.
const COUNT: usize = 3;

/// The slices that a run takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slices {
    All,
    /// The one of this number, counted on from the first after the last.
    One(usize),
}

impl Slices {
    /// What the environment asks for.
    pub fn asked() -> Result<Self, String> {
        match std::env::var("WITH_SLICE") {
            Ok(number) if !number.is_empty() => {
                let number: usize =
                    number.parse().map_err(|_| format!("WITH_SLICE={number} is no number"))?;
                println!("slice {} of 0 to {}", number % COUNT, COUNT - 1);
                Ok(Self::One(number % COUNT))
            }
            _ => Ok(Self::All),
        }
    }

    /// Whether the test at this place among those of its control plane is taken.
    pub const fn take(self, place: usize) -> bool {
        match self {
            Self::All => true,
            Self::One(number) => place % COUNT == number,
        }
    }
}

/// Whether the tests of a module are in slices there: what the oldest version repeats of a newer one; and what takes
/// turns on a control plane of its own, waiting for leases, graces and restarts.
pub const fn is_sliced(ground: Ground, module: &Module) -> bool {
    match ground {
        Ground::Oldest => module.grounds.len() > 1,
        Ground::Elections | Ground::Installations | Ground::Removals => true,
        Ground::Newest | Ground::Clocks => false,
    }
}
