//! What the text of a script says about itself, as far as it can be read without a database. Pure.
//!
//! Guarantees: the statements are those that a run reads. Nothing is read beyond the [`Budget`] of an object's scripts, and
//! the time is linear in the length of the text.
//! Never: rejects a text that it cannot read: the run says what is wrong with it.

use super::transaction::{refused_by_postgres, refused_by_sqlite};
use super::v1::Engine;
use crate::api::script;
use crate::kinds::databasemigration::sql::mysql::modes::Modes;
use crate::kinds::databasemigration::sql::{Statement, WORDS, split_in};

/// Bytes of all scripts of an object that are looked at.
const MOST_BYTES: usize = 64 * 1024;

/// How many bytes of an object's scripts are still looked at.
#[derive(Debug)]
pub struct Budget(usize);

impl Budget {
    /// That of an object.
    #[must_use]
    pub const fn of_object() -> Self {
        Self(MOST_BYTES)
    }

    /// Whether a text is short enough for what is left.
    pub const fn takes(&mut self, text: &str) -> bool {
        let left = self.0.checked_sub(text.len());
        if let Some(left) = left {
            self.0 = left;
        }
        left.is_some()
    }
}

/// What one statement is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// Its first words, in capitals: `CREATE INDEX`.
    pub verb: String,
    /// It begins or ends a transaction itself.
    pub controls_transaction: bool,
    /// It cannot run in a transaction.
    pub needs_none: bool,
    /// What a person should know of it.
    pub advice: Vec<&'static str>,
}

/// The statements of a text.
///
/// # Errors
/// The text cannot be split, or it is for another program than the server.
pub fn statements(engine: Engine, text: &str) -> Result<Vec<Read>, String> {
    let split = split_in(engine, script::without_mark(text), Modes::default())?;
    let mut read: Vec<_> = split.iter().map(|one| statement(engine, one)).collect();
    let adds_value = read.iter().any(|one| one.advice.contains(&ADDS_VALUE));
    if read.len() > 1 && adds_value {
        read.iter_mut().take(1).for_each(|one| one.advice.push(USES_VALUE));
    }
    Ok(read)
}

const ADDS_VALUE: &str = "adds a value to an enum: no statement of the same transaction can use it";
const USES_VALUE: &str = "adds a value to an enum beside other statements: put it into a script of its own";

fn statement(engine: Engine, statement: &Statement) -> Read {
    let words: Vec<&str> = statement.words.iter().map(String::as_str).collect();
    let needs_none = needs_none(engine, &words);
    Read {
        verb: words.iter().take(2).copied().collect::<Vec<_>>().join(" "),
        controls_transaction: controls_transaction(&words),
        needs_none,
        advice: if needs_none { Vec::new() } else { advice(engine, &words) },
    }
}

fn controls_transaction(words: &[&str]) -> bool {
    match words {
        ["COMMIT" | "ABORT", ..] | ["BEGIN" | "END"] | ["START", "TRANSACTION", ..] => true,
        ["BEGIN" | "END", next, ..] => {
            matches!(
                *next,
                "TRANSACTION"
                    | "WORK"
                    | "ISOLATION"
                    | "READ"
                    | "DEFERRABLE"
                    | "IMMEDIATE"
                    | "EXCLUSIVE"
                    | "DEFERRED"
            )
        }
        ["ROLLBACK", rest @ ..] => !rest.contains(&"TO"),
        _ => false,
    }
}

fn needs_none(engine: Engine, words: &[&str]) -> bool {
    match engine {
        Engine::PostgreSQL => refused_by_postgres(words).is_some(),
        Engine::SQLite => refused_by_sqlite(words).is_some(),
        Engine::MySQL | Engine::MariaDB => false,
    }
}

fn advice(engine: Engine, words: &[&str]) -> Vec<&'static str> {
    // A longer statement may have it behind the words that are known.
    let lacks = |word: &str| words.len() < WORDS && !words.contains(&word);
    match words {
        ["DROP", "TABLE", ..] => vec!["drops a table and its rows"],
        ["TRUNCATE", ..] => vec!["removes all rows of a table"],
        ["DELETE", ..] if lacks("WHERE") => vec!["deletes without WHERE: all rows of a table"],
        ["UPDATE", ..] if lacks("WHERE") => vec!["updates without WHERE: all rows of a table"],
        ["CREATE", "INDEX", ..] | ["CREATE", "UNIQUE", "INDEX", ..]
            if engine == Engine::PostgreSQL && !words.contains(&"CONCURRENTLY") =>
        {
            vec!["creates an index without CONCURRENTLY: writes wait until it is built"]
        }
        ["ALTER", "TYPE", rest @ ..] if has(rest, &["ADD", "VALUE"]) => vec![ADDS_VALUE],
        ["ALTER", "TABLE", rest @ ..] => {
            clauses(rest).filter_map(|(verb, clause)| change(verb, clause)).collect()
        }
        _ => Vec::new(),
    }
}

/// The clauses of an ALTER TABLE: the verb of each, and what follows it. Words do not say where a comma lies, so that a
/// verb within a clause begins another one.
fn clauses<'a>(words: &'a [&'a str]) -> impl Iterator<Item = (&'a str, &'a [&'a str])> {
    let is_verb = |word: &&str| matches!(*word, "ADD" | "ALTER" | "CHANGE" | "DROP" | "MODIFY" | "RENAME");
    let verbs = words.iter().enumerate().filter(move |(_, word)| is_verb(word));
    verbs.map(move |(at, verb)| {
        let rest = &words[at + 1..];
        (*verb, &rest[..rest.iter().position(is_verb).unwrap_or(rest.len())])
    })
}

fn change(verb: &str, clause: &[&str]) -> Option<&'static str> {
    let begins = |known: &[&str]| clause.first().is_some_and(|first| known.contains(first));
    // The column that has a default has it by one of these.
    let filled = ["AS", "AUTO_INCREMENT", "BIGSERIAL", "DEFAULT", "GENERATED", "SERIAL", "SMALLSERIAL"];
    match verb {
        "ADD" if begins(&["CONSTRAINT", "CHECK", "PRIMARY", "UNIQUE", "FOREIGN", "INDEX", "KEY"]) => None,
        "ADD" if has(clause, &["NOT", "NULL"]) && !clause.iter().any(|word| filled.contains(word)) => {
            Some("adds a column NOT NULL without DEFAULT: fails where rows exist")
        }
        "ALTER" if has(clause, &["SET", "NOT", "NULL"]) => {
            Some("sets a column NOT NULL: all rows are read while the table is locked")
        }
        // A column may be called so.
        "ALTER" if clause.windows(2).any(|pair| pair[0] == "TYPE" && pair[1] != "SET") => {
            Some("changes the type of a column: the table may be rewritten while it is locked")
        }
        "DROP" if begins(&["COLUMN"]) => Some("drops a column and its values"),
        "RENAME" if !begins(&["CONSTRAINT", "INDEX", "KEY"]) => {
            Some("renames: pods of the old release fail from then on")
        }
        _ => None,
    }
}

fn has(words: &[&str], wanted: &[&str]) -> bool {
    words.windows(wanted.len()).any(|words| words == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(engine: Engine, text: &str) -> Vec<Read> {
        statements(engine, text).unwrap()
    }

    #[test]
    fn the_statements_are_those_of_a_run() {
        let text = "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 1; SELECT 2 $$; -- a; b\n SELECT ';' ; ;";
        assert_eq!(read(Engine::PostgreSQL, text).len(), 2);
        assert!(read(Engine::PostgreSQL, " -- nothing\n ;").is_empty());
        let trigger = "CREATE TRIGGER a AFTER INSERT ON b BEGIN UPDATE c SET d = 1; END";
        assert_eq!(read(Engine::SQLite, trigger)[0].advice, [""; 0]);
        assert!(statements(Engine::PostgreSQL, "SELECT 'open").unwrap_err().contains("in line 1 has no end"));
    }

    #[test]
    fn what_ends_a_transaction_and_what_needs_none_is_recognized() {
        for text in
            ["COMMIT", "begin", "BEGIN ISOLATION LEVEL SERIALIZABLE", "START TRANSACTION", "ROLLBACK", "end"]
        {
            assert!(read(Engine::PostgreSQL, text)[0].controls_transaction, "{text}");
        }
        for text in ["ROLLBACK TO SAVEPOINT a", "SAVEPOINT a", "SELECT 1"] {
            assert!(!read(Engine::PostgreSQL, text)[0].controls_transaction, "{text}");
        }
        for text in [
            "create unique index concurrently i on t (a)",
            "DROP INDEX CONCURRENTLY IF EXISTS i",
            "REINDEX TABLE CONCURRENTLY t",
            "VACUUM t",
            "ALTER SYSTEM SET a = 1",
            "CREATE DATABASE a",
        ] {
            assert!(read(Engine::PostgreSQL, text)[0].needs_none, "{text}");
        }
        assert!(!read(Engine::PostgreSQL, "CREATE INDEX i ON t (a)")[0].needs_none);
        assert!(!read(Engine::MySQL, "CREATE DATABASE a")[0].needs_none);
    }

    #[test]
    fn what_a_person_should_know_is_reported() {
        for (text, part) in [
            ("DROP TABLE a", "drops a table"),
            ("TRUNCATE a", "all rows"),
            ("DELETE FROM a", "without WHERE"),
            ("UPDATE a SET b = 1", "without WHERE"),
            ("CREATE INDEX i ON a (b)", "CONCURRENTLY"),
            ("ALTER TABLE a ADD COLUMN b int NOT NULL", "NOT NULL without DEFAULT"),
            ("ALTER TABLE a ADD b int DEFAULT 0 NOT NULL, ADD c int NOT NULL", "NOT NULL without DEFAULT"),
            ("ALTER TABLE a ALTER COLUMN b SET NOT NULL", "sets a column NOT NULL"),
            ("ALTER TABLE a ALTER COLUMN b TYPE bigint", "rewritten"),
            ("ALTER TABLE a ALTER type SET DATA TYPE bigint", "rewritten"),
            ("ALTER TABLE a ALTER \"b\" TYPE bigint", "rewritten"),
            ("ALTER TABLE a RENAME COLUMN b TO c", "renames"),
            ("ALTER TABLE a RENAME TO c", "renames"),
            ("ALTER TABLE a ADD b int, DROP COLUMN c", "drops a column"),
            ("ALTER TYPE a ADD VALUE 'b'", "enum"),
        ] {
            let read = read(Engine::PostgreSQL, text);
            assert!(read[0].advice.iter().any(|advice| advice.contains(part)), "{text}: {read:?}");
        }
        for text in [
            "DELETE FROM a WHERE b",
            "ALTER TABLE a ADD COLUMN b int NOT NULL DEFAULT 0",
            "ALTER TABLE a ADD COLUMN type text, ALTER COLUMN b DROP NOT NULL, ALTER COLUMN type SET DEFAULT 1",
            "ALTER TABLE a ADD CONSTRAINT c CHECK (b IS NOT NULL), DROP CONSTRAINT d, RENAME CONSTRAINT e TO f",
            "CREATE TABLE a (b int NOT NULL)",
            "SELECT 1",
        ] {
            assert_eq!(read(Engine::PostgreSQL, text)[0].advice, [""; 0], "{text}");
        }
        let long = format!("UPDATE a SET b = {} WHERE c", ["d"; 70].join(" + "));
        assert_eq!(read(Engine::PostgreSQL, &long)[0].advice, [""; 0], "the word lies further on");
        let two = read(Engine::PostgreSQL, "ALTER TYPE a ADD VALUE 'b'; SELECT 1");
        assert_eq!(two[0].advice, [ADDS_VALUE, USES_VALUE]);
    }
}
