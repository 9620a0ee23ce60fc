//! Whether an operator that worked real clusters did what its plan says, and whether that was safe: the passes that it
//! told of (`GATEHOUSE_LOG=info,gatehouse::passes=trace`), planned again.
//!
//! Guarantees: each pass comes out as it was told, or the place where it does not is named; the rules of [`rules`] hold
//! for each pass, and those of [`course`] for what follows upon it; what was carried out is what was planned, in that
//! order; lines that were lost on the way are counted.
//! Assumes: the release is the one that told them.

pub mod again;
mod course;
pub mod log;
pub mod rules;
