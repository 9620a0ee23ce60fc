//! What a run reports: as JSON in the termination message of its container, and by its exit code.
//!
//! Guarantees: the JSON of [`RunResult::line`] has at most [`LARGEST`] bytes, the most that a kubelet keeps. What does
//! not fit leaves by structure: a message that is longer than any of ours, then in turn the half of the longest among what is
//! applied, what is pending and the warnings (the oldest of `applied`, the last of the others), then the ends of messages.
//! Counts stay true.
//! Never: holds the text of a script, or what rows contain.

use serde::{Deserialize, Serialize};

use super::api::v1::AppliedScript;

/// The most bytes of a termination message.
pub const LARGEST: usize = 4096;

/// All that was asked for is done.
pub const DONE: u8 = 0;
/// It failed, and may go well another time.
pub const RETRYABLE: u8 = 10;
/// It failed, or was not begun, and another try would end the same way.
pub const FAILED: u8 = 20;
/// A script's end is not known.
pub const IN_DOUBT: u8 = 30;

/// The longest text of a message that is always kept.
const SHORTEST_MESSAGE: usize = 200;
/// The longest text of a message for which lists are shortened.
const LONGEST_MESSAGE: usize = LARGEST / 4;

/// What a run reports.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct RunResult {
    /// The version of this format: 1.
    pub version: u32,
    /// Which run it was.
    pub run: String,
    /// How it ended.
    pub outcome: Outcome,
    /// What was to run when it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// The newest of what is applied, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub applied: Vec<AppliedScript>,
    /// How many are applied, those that are not in `applied` too. Absent where the history was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_count: Option<u32>,
    /// How many of them this run applied.
    #[serde(default)]
    pub applied_now: u32,
    /// What this run took back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reverted: Vec<String>,
    /// The script that it stood at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_id: Option<String>,
    /// The statement of that script, from 1 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statement: Option<u32>,
    /// What failed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<LastError>,
    /// Why nothing was begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Blocked>,
    /// The script whose end is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_doubt: Option<InDoubt>,
    /// The server that was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Server>,
}

/// How a run ended.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The history was read, and where scripts were given nothing contradicts them.
    Read,
    /// A plan was made.
    Planned,
    /// What is pending ran and was rolled back.
    Rehearsed,
    /// All scripts are applied.
    Succeeded,
    /// All that was to be taken back is.
    Reverted,
    /// It failed; `lastError` says whether another try may go well.
    Failed,
    /// Nothing was begun: what was found contradicts what was asked for.
    Blocked,
    /// A script's end is not known. Nothing runs until it is resolved.
    InDoubt,
}

/// What is to run.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// Its hash, over all scripts.
    pub hash: String,
    /// The ids of what is to run, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<String>,
    /// How many that are.
    pub pending_count: u32,
    /// What its reader should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The checksums of scripts that came from Secrets, `id` and checksum; with `~` behind the id, of its down script.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secret_checksums: Vec<(String, String)>,
}

/// What failed.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct LastError {
    /// The script, where it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its statement, from 1 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statement: Option<u32>,
    /// The SQLSTATE that the server answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql_state: Option<String>,
    /// What kind of failure it is.
    pub class: Class,
    /// What it is, without what rows or scripts contain.
    pub message: String,
}

/// What kind of failure it is.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The server could not be reached, or went away.
    Connection,
    /// A lock was not to be had in time.
    LockTimeout,
    /// Two transactions waited for each other.
    Deadlock,
    /// Another transaction changed what this one read.
    Serialization,
    /// Another run of the same series was at work.
    Busy,
    /// The server takes no writes, as one that has become a replica.
    ReadOnly,
    /// The process was asked to end.
    Interrupted,
    /// A statement took too long.
    StatementTimeout,
    /// The server does not know this user, or not this password.
    Authentication,
    /// The user may not do that.
    Permission,
    /// The certificate or the encryption of the connection.
    Tls,
    /// The statement does not read.
    Syntax,
    /// A constraint does not hold.
    Constraint,
    /// A value is not one of its type.
    Data,
    /// A check found rows.
    CheckFailed,
    /// An index was left that is not valid.
    InvalidIndex,
    /// What was asked for cannot be done.
    Configuration,
    /// All else.
    Other,
}

impl Class {
    /// Whether another try, with nothing changed, may go well.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::Connection
                | Self::LockTimeout
                | Self::Deadlock
                | Self::Serialization
                | Self::Busy
                | Self::ReadOnly
                | Self::Interrupted
        )
    }
}

/// Why nothing was begun.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Blocked {
    /// In one word.
    pub reason: BlockedReason,
    /// The script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What was expected: a checksum, a hash, an id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What was found instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// What is wrong and what to do.
    pub message: String,
}

/// Why nothing was begun, in one word.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockedReason {
    /// A script was edited after it was applied.
    ChecksumMismatch,
    /// A script is not the one that its author pinned, or that was planned.
    SourceChanged,
    /// The plan is not the one that was approved.
    PlanChanged,
    /// The history has a script that there is no more.
    HistoryDiverged,
    /// A script is to run although a later one has.
    OutOfOrder,
    /// The database has tables and no history, and no baseline is named.
    BaselineRequired,
    /// A baseline is named and does not count, since scripts have run.
    BaselineIgnored,
    /// A script that is to be taken back has no down script.
    NoDownScript,
    /// A script cannot be rehearsed.
    NotRehearsable,
    /// A script cannot run as its `transaction` says.
    NotRunnable,
}

/// A script whose end is not known.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct InDoubt {
    /// The script.
    pub id: String,
    /// The statement that it stood at, from 1 on.
    pub statement: u32,
    /// The run that has left it so: another doubt about the same script is of another run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// A server.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Server {
    /// As it calls its version.
    pub version: String,
}

impl RunResult {
    /// The report of a run of which nothing else is known.
    #[must_use]
    pub fn of(run: &str, outcome: Outcome) -> Self {
        Self {
            version: super::assignment::VERSION,
            run: run.to_owned(),
            outcome,
            plan: None,
            applied: Vec::new(),
            applied_count: None,
            applied_now: 0,
            reverted: Vec::new(),
            current_id: None,
            statement: None,
            last_error: None,
            blocked: None,
            in_doubt: None,
            server: None,
        }
    }

    /// The exit code that says the same.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self.outcome {
            Outcome::Read
            | Outcome::Planned
            | Outcome::Rehearsed
            | Outcome::Succeeded
            | Outcome::Reverted => DONE,
            Outcome::Failed if self.last_error.as_ref().is_some_and(|error| error.class.is_retryable()) => {
                RETRYABLE
            }
            Outcome::Failed | Outcome::Blocked => FAILED,
            Outcome::InDoubt => IN_DOUBT,
        }
    }

    /// One line of JSON that fits into a termination message.
    #[must_use]
    pub fn line(&self) -> String {
        let mut kept = self.clone();
        loop {
            // Nothing in it fails to be written.
            let line = serde_json::to_string(&kept).unwrap_or_default();
            if line.len() <= LARGEST || !kept.shorten() {
                return line;
            }
        }
    }

    /// Leaves out the half of the list that takes the most, and the last one of a list once none has more than one.
    /// False where all lists are empty.
    fn halve_the_longest(&mut self) -> bool {
        let mut none = Plan::default();
        let plan = self.plan.as_mut().unwrap_or(&mut none);
        let applied = self.applied.iter().map(|one| {
            one.id.len() + [&one.checksum, &one.run].into_iter().flatten().map(String::len).sum::<usize>()
        });
        let several = |count: usize, bytes: usize| if count > 1 { bytes } else { 0 };
        let applied = several(self.applied.len(), applied.sum());
        let pending = several(plan.pending.len(), bytes(&plan.pending));
        let warnings = several(plan.warnings.len(), bytes(&plan.warnings));
        match applied.max(pending).max(warnings) {
            0 if !plan.warnings.is_empty() => plan.warnings.clear(),
            0 if !plan.pending.is_empty() => plan.pending.clear(),
            0 if !self.applied.is_empty() => self.applied.clear(),
            0 => return false,
            most if most == warnings => plan.warnings.truncate(plan.warnings.len() / 2),
            most if most == pending => plan.pending.truncate(plan.pending.len() / 2),
            _ => drop(self.applied.drain(..self.applied.len() / 2)),
        }
        true
    }

    /// Cuts a message that is longer than that; false where none is.
    fn cut_message(&mut self, longest: usize) -> bool {
        let error = self.last_error.as_mut().map(|error| &mut error.message);
        let blocked = self.blocked.as_mut().map(|blocked| &mut blocked.message);
        let message = [error, blocked].into_iter().flatten().find(|message| message.len() > longest);
        message.map(|message| cut(message, SHORTEST_MESSAGE)).is_some()
    }

    /// Leaves out what matters least; false where nothing is left to leave out.
    fn shorten(&mut self) -> bool {
        if self.cut_message(LONGEST_MESSAGE) || self.halve_the_longest() {
            return true;
        }
        if !self.reverted.is_empty() {
            self.reverted.truncate(self.reverted.len() / 2);
            return true;
        }
        if self.cut_message(SHORTEST_MESSAGE) {
            return true;
        }
        // Checksums of Secrets are what a plan is approved by: they leave last.
        match &mut self.plan {
            Some(plan) if !plan.secret_checksums.is_empty() => {
                plan.secret_checksums.truncate(plan.secret_checksums.len() / 2);
                true
            }
            _ => false,
        }
    }
}

/// How many bytes these texts take.
fn bytes(texts: &[String]) -> usize {
    texts.iter().map(String::len).sum()
}

/// Cuts a text at that many bytes, or before the character that would be cut in two.
fn cut(text: &mut String, most: usize) {
    text.truncate((0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(number: usize) -> AppliedScript {
        AppliedScript {
            id: format!("{number:0>128}"),
            checksum: Some(super::super::assignment::checksum(&number.to_be_bytes())),
            applied_at: Some("2026-11-24T21:00:00.000Z".to_owned()),
            duration_ms: Some(12),
            run: Some("r1".to_owned()),
        }
    }

    #[test]
    fn what_does_not_fit_leaves_by_structure() {
        let mut result = RunResult::of("r1", Outcome::Failed);
        result.applied = (0..50).map(applied).collect();
        result.applied_count = Some(50);
        result.plan = Some(Plan {
            hash: "a".repeat(64),
            pending: (0..200).map(|number| format!("{number:0>128}")).collect(),
            pending_count: 200,
            warnings: vec!["w".repeat(3000); 10],
            secret_checksums: Vec::new(),
        });
        result.last_error = Some(LastError {
            id: Some("i".repeat(128)),
            statement: Some(1),
            sql_state: Some("42P01".to_owned()),
            class: Class::Other,
            message: "ä\u{1}".repeat(3000),
        });
        let line = result.line();
        assert!(line.len() <= LARGEST, "{}", line.len());
        let read: RunResult = serde_json::from_str(&line).unwrap();
        assert_eq!(read.applied.last(), result.applied.last(), "the newest");
        let (plan, made) = (read.plan.unwrap(), result.plan.unwrap());
        assert_eq!((read.applied_count, plan.pending_count), (Some(50), 200));
        assert!(!plan.pending.is_empty() && made.pending.starts_with(&plan.pending), "{:?}", plan.pending);
        let error = read.last_error.unwrap();
        assert_eq!(error.sql_state.as_deref(), Some("42P01"));
        assert!(error.message.starts_with('ä') && error.message.len() <= SHORTEST_MESSAGE);
    }

    #[test]
    fn the_newest_of_what_is_applied_stays() {
        let mut result = RunResult::of("r1", Outcome::Succeeded);
        result.applied = (0..20).map(applied).collect();
        let read: RunResult = serde_json::from_str(&result.line()).unwrap();
        assert!(!read.applied.is_empty());
        assert_eq!(read.applied.last(), result.applied.last());
        let small = RunResult::of("r1", Outcome::Planned);
        assert_eq!(serde_json::from_str::<RunResult>(&small.line()).unwrap(), small);
    }

    #[test]
    fn the_exit_code_says_whether_to_try_again() {
        let failed = |class| {
            let mut result = RunResult::of("r1", Outcome::Failed);
            let message = String::new();
            result.last_error =
                Some(LastError { id: None, statement: None, sql_state: None, class, message });
            result.code()
        };
        for class in [
            Class::Connection,
            Class::LockTimeout,
            Class::Deadlock,
            Class::Serialization,
            Class::Busy,
            Class::ReadOnly,
        ] {
            assert_eq!(failed(class), RETRYABLE, "{class:?}");
        }
        for class in [Class::Syntax, Class::StatementTimeout, Class::CheckFailed, Class::Authentication] {
            assert_eq!(failed(class), FAILED, "{class:?}");
        }
        assert_eq!(RunResult::of("r", Outcome::Succeeded).code(), DONE);
        assert_eq!(RunResult::of("r", Outcome::Blocked).code(), FAILED);
        assert_eq!(RunResult::of("r", Outcome::InDoubt).code(), IN_DOUBT);
    }
}
