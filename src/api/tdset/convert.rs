//! How the versions of TDSet map on each other.

use crate::api::lens::Lens;

/// The table of rows.
#[must_use]
pub fn lens() -> &'static Lens {
    static LENS: Lens = Lens {};
    &LENS
}
