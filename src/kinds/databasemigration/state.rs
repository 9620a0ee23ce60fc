//! The state that a process keeps of a DatabaseMigration between two reconciliations. Pure.
//!
//! Guarantees: nothing. All that decides is in objects, and a run's history is in the database.

/// What is remembered of a DatabaseMigration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReconcileState {
    /// The Job whose end was counted last.
    pub counted: Option<String>,
}
