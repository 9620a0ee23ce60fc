//! The conversion engine.

/// How the versions of a kind map on each other.
pub struct Lens {}
