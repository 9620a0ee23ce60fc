//! The assignment of a run: a file beside the scripts.
//!
//! Guarantees: a file that names an unknown field, or another version, is refused. The hash of a plan depends on what
//! would run and on nothing else: not on the mode, and not on what has run already, so that it stays the same while a
//! plan is carried out.
//! Never: contains credentials, or the text of a script.

mod hash;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::api::duration;

pub use hash::{Planned, plan_hash};

pub use super::api::v1::{Engine, ExistingTables, OnFailure, OutOfOrder, ScriptKind, TlsMode, Transaction};
pub use crate::api::checksum::{checksum, is_checksum};

/// The version of this format.
pub const VERSION: u32 = 1;

/// How long one statement may take, unless the spec says otherwise.
pub const STATEMENT_TIMEOUT: &str = "5m";
/// How long one statement may wait for a lock, unless the spec says otherwise.
pub const LOCK_TIMEOUT: &str = "3s";
/// How long a run waits for another run of the same series, unless the spec says otherwise.
pub const LOCK_WAIT: &str = "1m";
/// The table of the history, unless the spec says otherwise.
pub const TABLE: &str = "gatehouse_migrations";
/// The longest id of a script.
pub const LONGEST_ID: usize = 128;
/// The longest name of a history table: PostgreSQL cuts names at 63 bytes, and a second table has a suffix.
pub const LONGEST_TABLE: usize = 58;

/// What a run is asked to do.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Assignment {
    /// The version of this format: 1.
    pub version: u32,
    /// The database.
    pub database: Database,
    /// Where the history is kept.
    #[serde(default)]
    pub history: History,
    /// The DatabaseMigration that asks; absent where a person does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<Object>,
    /// Which run this is.
    pub run: Run,
    /// What is done.
    pub mode: Mode,
    /// The scripts, in the order in which they run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scripts: Vec<Script>,
    /// On first contact with a database that has tables: the scripts up to this one count as applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// What is done on first contact with a database that has tables, where no baseline is named. Absent: Refuse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub existing_tables: Option<ExistingTables>,
    /// Whether a script may run although a later one has.
    #[serde(default)]
    pub out_of_order: OutOfOrder,
    /// What follows a script that fails.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// Ids of applied scripts whose bytes have changed since, each with the checksum that is accepted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub accept_checksums: BTreeMap<String, String>,
    /// The outcome of a script in doubt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolve: Option<Resolve>,
    /// How long to wait for another run of the same series, and to try again after lock timeouts. Absent: 1 minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_wait: Option<duration::Duration>,
    /// The hash of the plan that was approved: with another one nothing runs. Absent: no approval is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_plan_hash: Option<String>,
}

/// A database.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Database {
    /// What it is.
    pub engine: Engine,
    /// Its server; absent for SQLite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Its port. Absent: that of the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Its name; for SQLite, the path of its file.
    pub name: String,
    /// For SQLite, which file it is, wherever it is mounted: its claim, and the path there. Absent where a person asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// How the connection is encrypted. Absent: Require; for SQLite nothing is.
    #[serde(default = "require")]
    pub tls: TlsMode,
}

const fn require() -> TlsMode {
    TlsMode::Require
}

/// Where the history is kept, in the database itself.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct History {
    /// The schema of the table. Absent: `public` for PostgreSQL, and for the others the database itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The table.
    #[serde(default = "table")]
    pub table: String,
    /// The series: order and lock are those of one series in one database.
    #[serde(default = "series")]
    pub series: String,
}

impl Default for History {
    fn default() -> Self {
        Self { schema: None, table: table(), series: series() }
    }
}

fn table() -> String {
    TABLE.to_owned()
}

fn series() -> String {
    "default".to_owned()
}

/// The DatabaseMigration that asks.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Object {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid: what it applied it may revert.
    pub uid: String,
}

/// Which run this is.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Run {
    /// What no other run has.
    pub uid: String,
    /// How often this was tried, from 1 on.
    #[serde(default = "first")]
    pub attempt: u32,
}

const fn first() -> u32 {
    1
}

/// What is done.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// The history is read. Scripts are not looked at.
    #[value(name = "Status", alias = "status")]
    Status,
    /// The history is compared with the scripts. Nothing is written.
    #[value(name = "Plan", alias = "plan")]
    Plan,
    /// What is pending runs in one transaction that is rolled back. It takes the locks that applying takes.
    #[value(name = "Rehearse", alias = "rehearse")]
    Rehearse,
    /// What is pending runs.
    #[value(name = "Apply", alias = "apply")]
    Apply,
    /// What this object applied is taken back by the down scripts, the latest first.
    #[value(name = "Revert", alias = "revert")]
    Revert,
}

/// A script.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Script {
    /// What the history calls it: 1 to 128 of `A-Z a-z 0-9 . _ -`.
    pub id: String,
    /// What it is for.
    #[serde(default)]
    pub kind: ScriptKind,
    /// Where its text is.
    pub up: Source,
    /// Where the text is that takes it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<Source>,
    /// The checksum that its author gave, `sha256:` and 64 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// The checksum that it had when it was planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<String>,
    /// The checksum that the down script had then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_down: Option<String>,
    /// Whether it runs in a transaction.
    #[serde(default)]
    pub transaction: Transaction,
    /// Without a transaction: it may run from its start after a run whose end is not known.
    #[serde(default)]
    pub idempotent: bool,
    /// How long its statements may take.
    #[serde(default)]
    pub timeouts: Timeouts,
}

/// Where a text is.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Source {
    /// The name of its file below the folder of scripts.
    pub file: String,
    /// It comes from a Secret and lies in the folder of those.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secret: bool,
}

/// How long statements may take.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Timeouts {
    /// One statement. Absent: 5 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statement: Option<duration::Duration>,
    /// Its wait for a lock. Absent: 3 seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<duration::Duration>,
}

impl Timeouts {
    /// How long one statement may take; nothing where it has no limit, said by 0.
    #[must_use]
    pub fn statement(&self) -> Option<Duration> {
        limit(self.statement.as_ref(), STATEMENT_TIMEOUT)
    }

    /// How long it may wait for a lock; nothing where it has no limit, said by 0.
    #[must_use]
    pub fn lock(&self) -> Option<Duration> {
        limit(self.lock.as_ref(), LOCK_TIMEOUT)
    }
}

fn limit(given: Option<&duration::Duration>, absent: &str) -> Option<Duration> {
    let given = given.and_then(|given| given.get().ok());
    given.or_else(|| duration::parse(absent).ok()).filter(|limit| !limit.is_zero())
}

/// The outcome of a script in doubt, as a user found out.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Resolve {
    /// The script.
    pub id: String,
    /// The outcome of the statement that it was at.
    #[serde(rename = "as")]
    pub resolution: Resolution,
}

/// The outcome of a statement in doubt.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum Resolution {
    /// It was applied: the script goes on behind it.
    Applied,
    /// It was not: it runs again.
    Retry,
}

impl Assignment {
    /// Reads an assignment.
    ///
    /// # Errors
    /// Which field is wrong, and what is allowed.
    pub fn read(text: &str) -> Result<Self, String> {
        let assignment: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        assignment.checked()
    }

    /// Itself, where it can be carried out.
    ///
    /// # Errors
    /// Which field is wrong, and what is allowed.
    pub fn checked(self) -> Result<Self, String> {
        if self.version != VERSION {
            return Err(format!(
                "version {} is unknown: this gatehouse reads version {VERSION}",
                self.version
            ));
        }
        if self.database.engine != Engine::SQLite && self.database.host.as_ref().is_none_or(String::is_empty)
        {
            return Err(format!("database.host: {} needs a host", self.database.engine));
        }
        if self.database.name.is_empty() {
            return Err("database.name: must not be empty".to_owned());
        }
        let identifiers = [
            ("history.schema", self.history.schema.as_deref()),
            ("history.table", Some(&self.history.table)),
        ];
        for (field, name) in identifiers.into_iter().filter_map(|(field, name)| Some((field, name?))) {
            if !is_identifier(name) {
                return Err(format!(
                    "{field}: {name:?} must be 1 to {LONGEST_TABLE} of A-Z a-z 0-9 _, and not begin with a digit"
                ));
            }
        }
        if !is_id(&self.history.series) {
            return Err(format!("history.series: {:?} {ID_RULE}", self.history.series));
        }
        let mut seen = BTreeSet::new();
        for script in &self.scripts {
            script.check()?;
            if !seen.insert(&script.id) {
                return Err(format!("scripts[{}]: the id is there twice", script.id));
            }
        }
        let scripts_named = [
            ("baseline", self.baseline.as_ref()),
            ("resolve.id", self.resolve.as_ref().map(|resolve| &resolve.id)),
        ];
        for (field, id) in scripts_named.into_iter().filter_map(|(field, id)| Some((field, id?))) {
            if !seen.contains(id) {
                return Err(format!("{field}: {id:?} is none of the scripts"));
            }
        }
        if let Some(Err(error)) = self.lock_wait.as_ref().map(duration::Duration::get) {
            return Err(format!("lockWait: {error}"));
        }
        Ok(self)
    }

    /// How long to wait for another run of the same series.
    #[must_use]
    pub fn lock_wait(&self) -> Duration {
        limit(self.lock_wait.as_ref(), LOCK_WAIT).unwrap_or_default()
    }
}

impl Script {
    fn check(&self) -> Result<(), String> {
        let id = &self.id;
        if !is_id(id) {
            return Err(format!("scripts: the id {id:?} {ID_RULE}"));
        }
        let sources = [("up", Some(&self.up)), ("down", self.down.as_ref())];
        for (field, source) in sources.into_iter().filter_map(|(field, source)| Some((field, source?))) {
            let file = &source.file;
            if file.is_empty() || file.starts_with('.') || file.contains(['/', '\0']) {
                return Err(format!("scripts[{id}].{field}.file: {file:?} must be the name of a file"));
            }
        }
        let sums =
            [("checksum", &self.checksum), ("planned", &self.planned), ("plannedDown", &self.planned_down)];
        for (field, sum) in sums.into_iter().filter_map(|(field, sum)| Some((field, sum.as_ref()?))) {
            if !is_checksum(sum) {
                return Err(format!(
                    "scripts[{id}].{field}: {sum:?} must be sha256: and 64 hexadecimal digits"
                ));
            }
        }
        let limits = [("statement", &self.timeouts.statement), ("lock", &self.timeouts.lock)];
        for (field, limit) in limits {
            if let Some(Err(error)) = limit.as_ref().map(duration::Duration::get) {
                return Err(format!("scripts[{id}].timeouts.{field}: {error}"));
            }
        }
        Ok(())
    }
}

const ID_RULE: &str = "must be 1 to 128 of A-Z a-z 0-9 . _ -";

/// Whether a script or a series may be called that.
#[must_use]
pub fn is_id(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !text.is_empty() && text.len() <= LONGEST_ID && text.bytes().all(is_allowed)
}

/// Whether a schema or the history table may be called that.
#[must_use]
pub fn is_identifier(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !text.is_empty()
        && text.len() <= LONGEST_TABLE
        && text.bytes().all(is_allowed)
        && !text.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests;
