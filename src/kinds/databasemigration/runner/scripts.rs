//! The scripts of an assignment, as they lie in their folders.
//!
//! Guarantees: what runs has the checksum that its author pinned and the one that was planned, or nothing runs. How each
//! script can run is known before the first one does. A text that cannot run is refused where it is to run: a script that
//! is applied, or counts so, stays as it is.

use std::path::{Path, PathBuf};

use super::super::api::transaction::{refused_by_postgres, refused_by_sqlite};
use super::super::assignment::{
    Assignment, Engine, Planned, Script, ScriptKind, Source, Transaction, checksum, plan_hash,
};
use super::super::result::{Blocked, BlockedReason};
use crate::api::script;
use crate::kinds::databasemigration::sql::mysql::modes::Modes;
use crate::kinds::databasemigration::sql::mysql::{rules, session};
use crate::kinds::databasemigration::sql::{Statement, split_in};

/// The folders that scripts lie in.
#[derive(Clone, Debug, Default)]
pub struct Folders {
    /// Those of ConfigMaps and those that were written inline.
    pub scripts: PathBuf,
    /// Those of Secrets.
    pub secrets: Option<PathBuf>,
}

/// How a text runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// All of it in one transaction, with its row of the history.
    Transaction,
    /// One statement after the other, each for itself.
    Statements,
    /// In a transaction that may not write.
    Check,
}

/// A text that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// All of it, without a byte order mark.
    pub all: String,
    /// The checksum of its bytes, a byte order mark among them.
    pub checksum: String,
    /// Its statements; none of a text that is refused.
    pub statements: Vec<Statement>,
    /// How it runs.
    pub way: Way,
    /// How the session reads quotes at its beginning.
    pub modes: Modes,
    /// Why it does not run.
    pub refusal: Option<String>,
}

impl Text {
    /// Whether a checksum is of this text. Whether it has a byte order mark does not matter.
    #[must_use]
    pub fn has_checksum(&self, sum: &str) -> bool {
        self.checksum == sum || script::is_of(&self.all, sum)
    }

    /// Whether it has nothing in it, not even a comment.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.all.trim().is_empty()
    }

    /// The checksum of what lies before that statement, counted from 1 on.
    #[must_use]
    pub fn done_before(&self, statement: u32) -> Option<String> {
        self.before(statement).map(|text| checksum(text.as_bytes()))
    }

    /// What lies before that statement, counted from 1 on.
    #[must_use]
    pub fn before(&self, statement: u32) -> Option<&str> {
        let last = usize::try_from(statement).ok()?.checked_sub(2)?;
        let end = self.statements.get(last)?.end;
        self.all.get(..end)
    }

    /// A statement, counted from 1 on.
    #[must_use]
    pub fn statement(&self, number: u32) -> Option<&Statement> {
        self.statements.get(usize::try_from(number).ok()?.checked_sub(1)?)
    }

    /// Whether it can run.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn runs(&self, id: &str) -> Result<(), Box<Blocked>> {
        self.refusal.as_ref().map_or(Ok(()), |why| Err(Box::new(not_runnable(id, why.clone()))))
    }
}

impl Text {
    /// The statements that are to run again in the session of MySQL or MariaDB in which the text goes on.
    ///
    /// # Errors
    /// What a later statement needs and no session has any more.
    pub fn set_again(&self, engine: Engine, from: u32) -> Result<Vec<u32>, String> {
        session::again(engine, &self.all, &self.statements, from, self.modes)
    }
}

/// A script, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// As it was assigned.
    pub script: Script,
    /// What it does.
    pub up: Text,
    /// What takes it back.
    pub down: Option<Text>,
}

/// Why scripts could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("script {id}: failed to read {}: {source}", path.display())]
    Unreadable {
        /// The script.
        id: String,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not what it has to be.
    #[error("{}", .0.message)]
    Blocked(Box<Blocked>),
}

/// Reads the scripts of an assignment, for sessions that begin with these modes.
///
/// # Errors
/// A script that cannot be read, is not the one that was pinned or planned, or cannot run as it says.
pub fn load(assignment: &Assignment, folders: &Folders, modes: Modes) -> Result<Vec<Loaded>, Error> {
    let engine = assignment.database.engine;
    let files = assignment.object.is_none();
    let load = |script: &Script| {
        let which = Which { is_down: false, files, modes };
        let up = text(engine, script, &script.up, folders, which)?;
        let pins = [("checksum", &script.checksum), ("planned", &script.planned)];
        for (field, pinned) in pins.into_iter().filter_map(|(field, pinned)| Some((field, pinned.as_ref()?)))
        {
            compared(&script.id, field, pinned, &up.checksum)?;
        }
        let which = Which { is_down: true, ..which };
        let down = script.down.as_ref().map(|source| text(engine, script, source, folders, which));
        let down = down.transpose()?;
        if let (Some(planned), Some(down)) = (&script.planned_down, &down) {
            compared(&script.id, "plannedDown", planned, &down.checksum)?;
        }
        Ok(Loaded { script: script.clone(), up, down })
    };
    assignment.scripts.iter().map(load).collect()
}

/// The hash of the plan that these scripts are.
#[must_use]
pub fn hash(assignment: &Assignment, scripts: &[Loaded]) -> String {
    let planned = scripts.iter().map(|loaded| Planned {
        id: &loaded.script.id,
        kind: loaded.script.kind,
        transaction: loaded.script.transaction,
        checksum: &loaded.up.checksum,
        down: loaded.down.as_ref().map(|down| down.checksum.as_str()),
    });
    plan_hash(assignment, planned)
}

fn compared(id: &str, field: &str, expected: &str, found: &str) -> Result<(), Error> {
    if expected == found {
        return Ok(());
    }
    Err(Error::Blocked(Box::new(Blocked {
        reason: BlockedReason::SourceChanged,
        id: Some(id.to_owned()),
        expected: Some(expected.to_owned()),
        found: Some(found.to_owned()),
        message: format!("script {id} is {found}, and its {field} says {expected}"),
    })))
}

/// Which text of a script it is, and how messages name it.
#[derive(Clone, Copy)]
struct Which {
    is_down: bool,
    /// How the session reads quotes at its beginning.
    modes: Modes,
    /// A person gave the files their names.
    files: bool,
}

impl Which {
    fn named(self, id: &str, file: &str) -> String {
        let which = if self.is_down { "the down script of " } else { "script " };
        if self.files { format!("{which}{id} ({file})") } else { format!("{which}{id}") }
    }
}

fn text(
    engine: Engine,
    script: &Script,
    source: &Source,
    folders: &Folders,
    which: Which,
) -> Result<Text, Error> {
    let id = &script.id;
    let folder: &Path = if source.secret {
        let message = || format!("script {id} comes from a Secret: --secret-scripts names no folder");
        folders.secrets.as_deref().ok_or_else(|| Error::Blocked(Box::new(not_runnable(id, message()))))?
    } else {
        &folders.scripts
    };
    let path = folder.join(&source.file);
    let unreadable = |source| Error::Unreadable { id: id.clone(), path: path.clone(), source };
    let bytes = std::fs::read(&path).map_err(unreadable)?;
    let text = read(engine, which.modes, script, &bytes, which.is_down);
    let refusal = text.refusal.map(|why| format!("{} {why}", which.named(id, &source.file)));
    Ok(Text { refusal, ..text })
}

/// Reads a text, and how it runs.
fn read(engine: Engine, modes: Modes, script: &Script, bytes: &[u8], is_down: bool) -> Text {
    let decoded = script::decoded(bytes);
    // A text that is no UTF-8 does not run; it is not taken for an empty one.
    let all = decoded
        .as_ref()
        .map_or_else(|_| String::from_utf8_lossy(bytes).into_owned(), |text| (*text).to_owned());
    let split = split_in(engine, &all, modes);
    let directed = decoded.and_then(|text| match script::directive(text) {
        Some(directive) => Err(directive.to_string()),
        None => Ok(text),
    });
    let way = directed.and_then(|text| way(engine, script, text, split.as_ref(), is_down));
    Text {
        checksum: checksum(bytes),
        statements: split.unwrap_or_default(),
        way: way.as_ref().copied().unwrap_or(Way::Transaction),
        refusal: way.err(),
        modes,
        all,
    }
}

/// Why a script does not run.
pub(super) fn not_runnable(id: &str, message: String) -> Blocked {
    Blocked {
        reason: BlockedReason::NotRunnable,
        id: Some(id.to_owned()),
        expected: None,
        found: None,
        message,
    }
}

/// How a text runs, or why it does not.
fn way(
    engine: Engine,
    script: &Script,
    text: &str,
    split: Result<&Vec<Statement>, &String>,
    is_down: bool,
) -> Result<Way, String> {
    let statements = split.map_err(Clone::clone)?;
    if statements.is_empty() {
        return nothing_to_do(script, text, is_down);
    }
    if !engine.rolls_back_schema()
        && let Some(why) = statements.iter().find_map(rules::refusal)
    {
        return Err(why);
    }
    for statement in statements.iter().filter(|_| engine.rolls_back_schema()) {
        fits(engine, script, text, statement)?;
    }
    if script.kind == ScriptKind::Check && !is_down {
        return Ok(Way::Check);
    }
    if script.transaction == Transaction::None {
        if engine.rolls_back_schema() && statements.len() > 1 {
            return Err(format!(
                "has {} statements: without a transaction a script has one, so that each is known to have run",
                statements.len()
            ));
        }
        return Ok(Way::Statements);
    }
    let changes_rows = |statement: &Statement| match statement.words.first().map(String::as_str) {
        Some("INSERT" | "UPDATE" | "DELETE" | "REPLACE" | "SELECT" | "WITH" | "VALUES") => true,
        // The others commit what was done before them, or are refused in a transaction.
        Some("SET") => rules::may_set_in_transaction(statement, &text[statement.start..statement.end]),
        _ => false,
    };
    let is_transaction = engine.rolls_back_schema() || statements.iter().all(changes_rows);
    if !is_transaction && let Some(why) = rules::refused_apart(text, statements) {
        return Err(why);
    }
    Ok(if is_transaction { Way::Transaction } else { Way::Statements })
}

/// How a text without a statement runs: one engine has nothing to do where another one has.
fn nothing_to_do(script: &Script, text: &str, is_down: bool) -> Result<Way, String> {
    if text.trim().is_empty() {
        return Err("is empty: where there is nothing to do, have a comment in it that says so".to_owned());
    }
    if script.kind == ScriptKind::Check && !is_down {
        return Err("is a Check and has no statement".to_owned());
    }
    Ok(Way::Transaction)
}

/// Whether a statement may stand in a script; why not.
fn fits(engine: Engine, script: &Script, text: &str, statement: &Statement) -> Result<(), String> {
    let (first, line) = (statement.words.first().map(String::as_str).unwrap_or_default(), statement.line);
    let ends = match first {
        "ROLLBACK" => !statement.has("TO"),
        "BEGIN" | "START" | "COMMIT" | "END" | "ABORT" => true,
        "PREPARE" => statement.begins(&["PREPARE", "TRANSACTION"]),
        _ => false,
    };
    if ends {
        return Err(format!("has {first} in line {line}: gatehouse begins and ends transactions itself"));
    }
    let words: Vec<_> = statement.words.iter().map(String::as_str).collect();
    let refused = match engine {
        Engine::PostgreSQL => refused_by_postgres(&words),
        Engine::SQLite => refused_by_sqlite(&words),
        Engine::MySQL | Engine::MariaDB => None,
    };
    if let Some(refused) = refused.filter(|_| script.transaction == Transaction::Required) {
        return Err(format!(
            "has {refused} in line {line}, which {engine} refuses in a transaction: put it into a script of its own with \
             transaction: None (--without-transaction ID)"
        ));
    }
    if engine == Engine::PostgreSQL && changes_encoding(text, statement) {
        return Err(format!(
            "has {first} {} in line {line}: gatehouse sends scripts in UTF-8; store the script in UTF-8 and remove the \
             statement",
            if statement.has("NAMES") { "NAMES" } else { "client_encoding" }
        ));
    }
    Ok(())
}

/// Whether PostgreSQL would read what follows in another encoding than that in which it is sent.
fn changes_encoding(text: &str, statement: &Statement) -> bool {
    let sets = |setting| {
        [&["SET", setting][..], &["SET", "SESSION", setting], &["SET", "LOCAL", setting]]
            .iter()
            .any(|words| statement.begins(words))
    };
    if !sets("CLIENT_ENCODING") && !sets("NAMES") {
        return false;
    }
    let given = text[statement.start..statement.end].trim_end();
    let value = given.rsplit(|one: char| one == '=' || one.is_ascii_whitespace()).next().unwrap_or_default();
    let value: String = value.chars().filter(char::is_ascii_alphanumeric).collect();
    !["utf8", "unicode", "default", "sqlascii"].contains(&value.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way_of(engine: Engine, transaction: Transaction, text: &str) -> Result<Way, String> {
        let source = Source { file: "a".into(), secret: false };
        let script = Script {
            id: "a".into(),
            kind: ScriptKind::Schema,
            up: source,
            down: None,
            checksum: None,
            planned: None,
            planned_down: None,
            transaction,
            idempotent: false,
            timeouts: crate::kinds::databasemigration::assignment::Timeouts::default(),
        };
        way(engine, &script, text, split_in(engine, text, Modes::default()).as_ref(), false)
    }

    #[test]
    fn a_script_runs_as_its_engine_can() {
        use Engine::{MariaDB, PostgreSQL, SQLite};
        let two = "CREATE TABLE a (b int); INSERT INTO a VALUES (1)";
        assert_eq!(way_of(PostgreSQL, Transaction::Required, two), Ok(Way::Transaction));
        assert_eq!(way_of(SQLite, Transaction::Required, two), Ok(Way::Transaction));
        assert_eq!(way_of(MariaDB, Transaction::Required, two), Ok(Way::Statements), "DDL commits");
        let rows = "INSERT INTO a VALUES (1); UPDATE a SET b = 2";
        assert_eq!(way_of(MariaDB, Transaction::Required, rows), Ok(Way::Transaction));
        let set = "SET foreign_key_checks = 0; INSERT INTO a VALUES (1); SET @password = 'x'";
        assert_eq!(way_of(MariaDB, Transaction::Required, set), Ok(Way::Transaction));
        for commits in [
            "SET autocommit = 0",
            "SET @@session.`autocommit` = 1",
            "SET foreign_key_checks = 0, autocommit = 1",
            "SET PASSWORD = 'x'",
            "SET STATEMENT max_statement_time = 1 FOR ALTER TABLE a ADD b int",
            "SET @old = @@session.sql_log_bin, @@session.sql_log_bin = 0",
            "SET SESSION binlog_format = 'ROW'",
            "SET gtid_next = 'AUTOMATIC'",
            "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "SET @@transaction_isolation = 'SERIALIZABLE'",
            "USE other",
        ] {
            let text = format!("INSERT INTO a VALUES (1); {commits}");
            assert_eq!(way_of(MariaDB, Transaction::Required, &text), Ok(Way::Statements), "{commits}");
        }
        assert_eq!(way_of(PostgreSQL, Transaction::None, "VACUUM"), Ok(Way::Statements));
        assert_eq!(way_of(MariaDB, Transaction::None, two), Ok(Way::Statements));
    }

    #[test]
    fn what_would_break_a_transaction_is_refused() {
        for (text, said) in [
            ("SELECT 1; COMMIT; SELECT 2", "COMMIT in line 1"),
            ("BEGIN; SELECT 1; END", "BEGIN"),
            ("ROLLBACK", "ROLLBACK"),
            ("COPY a FROM STDIN", "COPY FROM STDIN"),
            (" \n", "is empty"),
        ] {
            let error = way_of(Engine::PostgreSQL, Transaction::Required, text).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        for transaction in [Transaction::Required, Transaction::None] {
            assert_eq!(way_of(Engine::PostgreSQL, transaction, "-- nothing\n;"), Ok(Way::Transaction));
        }
        for (text, said) in [
            ("SELECT 1;\nVACUUM", "has VACUUM in line 2, which PostgreSQL refuses"),
            ("CREATE INDEX CONCURRENTLY i ON t (a)", "--without-transaction"),
            ("SELECT (1; COMMIT", "cannot be split"),
            ("SET client_encoding = 'LATIN1'", "has SET client_encoding in line 1"),
            ("SET NAMES 'latin1'", "has SET NAMES in line 1"),
        ] {
            let error = way_of(Engine::PostgreSQL, Transaction::Required, text).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        for text in
            ["SET client_encoding TO 'utf-8'", "SET LOCAL client_encoding=UTF8", "SET NAMES 'UNICODE'"]
        {
            assert_eq!(
                way_of(Engine::PostgreSQL, Transaction::Required, text),
                Ok(Way::Transaction),
                "{text}"
            );
        }
        let error = way_of(Engine::SQLite, Transaction::Required, "\u{feff}COMMIT").unwrap_err();
        assert!(error.contains("has COMMIT in line 1"), "{error}");
        let error = way_of(Engine::SQLite, Transaction::Required, "VACUUM").unwrap_err();
        assert!(error.contains("has VACUUM in line 1, which SQLite refuses"), "{error}");
        let savepoint = "SAVEPOINT a; ROLLBACK TO SAVEPOINT a";
        assert_eq!(way_of(Engine::PostgreSQL, Transaction::Required, savepoint), Ok(Way::Transaction));
        let error = way_of(Engine::PostgreSQL, Transaction::None, "SELECT 1; SELECT 2").unwrap_err();
        assert!(error.contains("2 statements"), "{error}");
    }
}
