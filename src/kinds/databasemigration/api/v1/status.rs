//! What the operator says of a DatabaseMigration. The history in the database is the truth: this is what the last run
//! read there.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::definition::undescribed;
use crate::api::words::words;

/// What was found and done last.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseMigrationStatus {
    /// Generation of the spec that the operator has read last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// How far the migration is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,

    /// What is to be run, as a run has found it in the database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanStatus>,

    /// Scripts that are still to be run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_count: Option<i32>,

    /// Scripts that the history in the database has as applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied_count: Option<i32>,

    /// The ConfigMap with the texts of the last run that may have applied some. With deletionPolicy Revert it stays, for a
    /// deletion takes back by them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied_snapshot: Option<String>,

    /// The newest of those scripts, at most 50, in the order in which they were applied.
    #[schemars(length(max = 50))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<Vec<AppliedScript>>,

    /// The run that is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_run: Option<CurrentRun>,

    /// The run that ended last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_run: Option<FinishedRun>,

    /// Why the last run failed. Absent where it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<LastError>,

    /// Version of the database server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_version: Option<String>,

    /// Ready, Reconciling, Stalled, Approved, HistoryConsistent and DatabaseReachable.
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
}

words! {
    /// How far a migration is.
    #[derive(JsonSchema, Default, Deserialize)]
    #[schemars(transform = undescribed)]
    Phase:
    /// It waits: for its scripts, for another migration, for the time of another attempt, or for suspend to end.
    #[default]
    Pending,
    /// A run reads the history.
    Planning,
    /// The plan is known, and a person has to approve it.
    AwaitingApproval,
    /// A run runs scripts.
    Running,
    /// All scripts are applied, or mode is Plan and the plan is known, or mode is Rehearse and the rehearsal went well.
    Succeeded,
    /// A script failed, or the runs could not reach their end.
    Failed,
    /// It is not known how far a script came: a person has to say.
    InDoubt,
    /// The history in the database contradicts the scripts.
    Blocked,
    /// A run takes scripts back, for the object is being deleted.
    Reverting,
    /// All scripts of the object were taken back.
    Reverted,
}

/// What is to be run.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanStatus {
    /// Hash of all scripts, in order: what approval.planHash approves.
    pub hash: String,

    /// Hash of all that the run was to do that made it. Absent where a run has made it that ran scripts, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,

    /// The ConfigMap with the texts that the plan was made of. Where approval is required it stays until the runs of the plan
    /// are over, for they are what runs; then this field is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,

    /// Ids of the scripts that are to be run, at most 256.
    #[schemars(length(max = 256))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<Vec<String>>,

    /// What a person should know before, at most 20.
    #[schemars(length(max = 20))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warnings: Option<Vec<String>>,
}

/// A script that is applied.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppliedScript {
    /// Its id.
    pub id: String,

    /// Its checksum when it was applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,

    /// When it was applied, by the clock of the database server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied_at: Option<String>,

    /// How long it took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<i64>,

    /// The run that applied it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// A run that is under way.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CurrentRun {
    /// Its Job.
    pub job: String,

    /// Hash of all that it is to do.
    pub key: String,

    /// Its number among the runs of the object, from 1.
    pub number: i64,

    /// Which attempt it is, from 1.
    pub attempt: i32,

    /// What it is for: Plan, Rehearse, Apply, Revert or Verify.
    pub purpose: String,

    /// When its Job was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,

    /// The value of the annotation gatehouse.dev/resolve that it goes by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved: Option<String>,

    /// Why no container of it runs, as of the last look. Absent when one runs, or when nothing is known.
    #[schemars(length(max = 1024))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<String>,
}

/// A run that has ended.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FinishedRun {
    /// Its Job.
    pub job: String,

    /// Hash of all that the run was to do: another one asks for another run.
    pub key: String,

    /// Its number among the runs of the object, from 1.
    pub number: i64,

    /// Which attempt it was, from 1.
    pub attempt: i32,

    /// What it was for: Plan, Rehearse, Apply, Revert or Verify.
    pub purpose: String,

    /// The value of the annotation gatehouse.dev/resolve that decides nothing any more: a run went by it, or it was there
    /// before the doubt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved: Option<String>,

    /// The run that has left a script in doubt. Absent when no doubt is known.
    #[schemars(length(max = 128))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,

    /// Scripts that were applied and that the history lacks, until a user asks for another run.
    #[schemars(range(min = 1, max = 256))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<i32>,

    /// How it ended.
    pub outcome: Outcome,

    /// Why, in one word. Absent where it did what it was to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,

    /// Why. Absent where it did what it was to do.
    #[schemars(length(max = 1024))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,

    /// True where a run may have changed the database and did not say what: this one, or one since the last that told
    /// what is applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_changes: Option<bool>,

    /// When that was noticed.
    pub finished_at: Time,
}

words! {
    /// How a run ended.
    #[derive(JsonSchema, Deserialize)]
    #[schemars(transform = undescribed)]
    Outcome:
    /// It did what it was to do.
    Done,
    /// It failed for a passing reason.
    Retryable,
    /// It failed.
    Failed,
    /// It is not known how far a script came.
    InDoubt,
    /// The history in the database contradicts the scripts.
    Blocked,
    /// It ended without a word, or is gone.
    Lost,
}

/// Why a run failed. Never the text of a script, nor what a row holds.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastError {
    /// The script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,

    /// Which of its statements, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statement: Option<String>,

    /// SQLSTATE: the server's code for the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sql_state: Option<String>,

    /// What kind of error it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,

    /// What the server said, without what it may not repeat.
    #[schemars(length(max = 1024))]
    pub message: String,
}
