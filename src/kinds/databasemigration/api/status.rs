//! The condition types of a DatabaseMigration, and their reasons.

use crate::api::condition::{condition_types, reasons};

// The first three are those that kstatus knows.
condition_types! {
    /// Everything that the object asks for is done.
    Ready,
    /// Something is on its way without anybody's help.
    Reconciling,
    /// Nothing goes on until a person does something.
    Stalled,
    /// What is to be run is approved.
    Approved,
    /// The history in the database agrees with the scripts.
    HistoryConsistent,
    /// The last run reached the database.
    DatabaseReachable,
}

reasons! {
    /// All scripts are applied.
    Applied,
    /// The plan is known; `mode` asks for no more.
    Planned,
    /// The rehearsal went well; `mode` asks for no more.
    Rehearsed,
    /// All scripts of the object were taken back.
    Reverted,
    /// A run is under way.
    Running,
    /// The container of a run has not started.
    PodNotStarted,
    /// A run reads the history.
    Planning,
    /// A run takes scripts back.
    Reverting,
    /// A run is about to start.
    Starting,
    /// No run is active.
    UpToDate,
    /// `spec.suspend` is true.
    Suspended,
    /// A person has to approve the plan.
    AwaitingApproval,
    /// The plan is approved.
    PlanApproved,
    /// No approval is asked for.
    NotRequired,
    /// Another migration has to be ready first.
    RequirementNotReady,
    /// Migrations require each other in a ring.
    RequirementCycle,
    /// An older migration applies scripts to the same series.
    OtherMigration,
    /// A ConfigMap with a script, or its key, is not there.
    ScriptNotFound,
    /// A script does not have the checksum that the object names.
    ChecksumPinMismatch,
    /// The scripts together are larger than one ConfigMap may be.
    ScriptsTooLarge,
    /// A run failed for a passing reason, and there is another one later.
    BackingOff,
    /// A script failed.
    ScriptFailed,
    /// Runs failed for passing reasons, and there are no more of them.
    RetriesExhausted,
    /// It is not known how far a script came.
    InDoubt,
    /// An applied script has another checksum than the object's.
    ChecksumMismatch,
    /// The history has scripts that the object has not, or the other way round.
    HistoryDiverged,
    /// A script stands before an applied one.
    OutOfOrder,
    /// The database has tables and no history, and the object names no baseline.
    BaselineRequired,
    /// A script is not the one that was planned.
    SourceChanged,
    /// The plan is not the one that was approved.
    PlanChanged,
    /// A script that is to be taken back has none that does so.
    NoDownScript,
    /// A script cannot be rehearsed.
    NotRehearsable,
    /// A script cannot run as its transaction says.
    NotRunnable,
    /// The run took longer than it may.
    DeadlineExceeded,
    /// The run ended without a word, or is gone.
    RunLost,
    /// The history agrees with the scripts.
    Consistent,
    /// No run has read the history yet.
    NotRead,
    /// The last run reached the database.
    Reached,
    /// The last run did not reach the database.
    NotReached,
    /// Deletion waits for the run.
    DeletionWaits,
    /// What the object applied could not be taken back.
    RevertFailed,
    /// The object does not pass the gate's validation.
    SpecInvalid,
    /// The object is in the namespace of gatehouse, where nothing is made.
    NamespaceRefused,
    /// gatehouse lacks a right.
    Forbidden,
    /// The API server refused another write.
    ApplyFailed,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::condition::State;

    #[test]
    fn a_statement_carries_the_words_of_the_api() {
        let statement = ConditionType::HistoryConsistent.is(false, Reason::ChecksumMismatch, "003: …");
        assert_eq!((statement.about, statement.reason), ("HistoryConsistent", "ChecksumMismatch"));
        assert_eq!(statement.state, State::False);
    }
}
