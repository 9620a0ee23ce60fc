//! The reconciliations of operators in real clusters, planned again: an operator logs them with
//! `GATEHOUSE_LOG=info,gatehouse::reconciles=trace`.
//!
//! Guarantees: each reconciliation comes out as it was logged, or the place where it differs is named; the rules of
//! [`rules`] hold for each reconciliation, and those of one and of all after it for each cluster; what was
//! carried out is what was planned, in that order; lines that were lost on the way are counted.
//! Assumes: the release is the one that logged them.
//!
//! What it shows: that a plan hangs on nothing but the facts that are logged with it, and that what is carried out is
//! the plan. Never: that a plan is right. Both sides are the same `plan`, of one commit where a run is checked at its
//! end, and of the commit that wrote them where a trace is kept (`tests/traces`). The rules are written apart from the
//! plan; they are what a wrong plan breaks.

pub mod log;
pub mod replay;
pub mod rules;
mod sequence;
