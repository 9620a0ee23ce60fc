//! Splits a script into its statements, as the program of its engine does. Pure.
//!
//! Guarantees: statements are slices of the text, as their author wrote them; quoted text, comments, dollar quotes and the
//! bodies of stored programs stay whole. A text that cannot be split is refused and not guessed at. The time
//! grows with the length of the text.

pub mod mysql;
mod postgres;
mod sqlite;

use super::api::v1::Engine;
use mysql::modes::Modes;

/// How many words of a statement are kept.
pub const WORDS: usize = 64;

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Where it begins, in bytes.
    pub start: usize,
    /// Where it ends, before its semicolon.
    pub end: usize,
    /// The line that it begins on, from 1 on.
    pub line: u32,
    /// Its first unquoted words in capitals.
    pub words: Vec<String>,
}

impl Statement {
    /// Whether it begins with these words.
    #[must_use]
    pub fn begins(&self, words: &[&str]) -> bool {
        self.words.len() >= words.len() && words.iter().zip(&self.words).all(|(one, other)| one == other)
    }

    /// Whether it has that word near its beginning.
    #[must_use]
    pub fn has(&self, word: &str) -> bool {
        self.words.iter().any(|one| one == word)
    }

    /// Whether it may commit some of what it does before it fails: it runs a stored program, or a block that commits.
    #[must_use]
    pub fn may_commit_within(&self, text: &str) -> bool {
        let has_commit = || text[self.start..self.end].to_uppercase().contains("COMMIT");
        match self.words.first().map(String::as_str) {
            Some("CALL" | "EXECUTE") => true,
            Some("DO") => has_commit(),
            _ => false,
        }
    }

    /// Whether all that it does is to change the session that it runs in, as the words of MySQL are.
    #[must_use]
    pub fn sets_session(&self) -> bool {
        // For the server, for the next transaction, or another statement.
        let others = [
            "DEFAULT",
            "GLOBAL",
            "PASSWORD",
            "PERSIST",
            "PERSIST_ONLY",
            "RESOURCE",
            "STATEMENT",
            "TRANSACTION",
        ];
        match self.words.first().map(String::as_str) {
            Some("USE") => true,
            Some("SET") => !self.words.get(1).is_some_and(|word| others.contains(&word.as_str())),
            _ => false,
        }
    }
}

/// The statements of a script, in a session that begins with these modes if it is one of MySQL or MariaDB.
///
/// # Errors
/// The text cannot be split, or it is for another program than the server.
pub fn split_in(engine: Engine, text: &str, modes: Modes) -> Result<Vec<Statement>, String> {
    match engine {
        Engine::PostgreSQL => postgres::split(text),
        Engine::MySQL | Engine::MariaDB => mysql::split(engine, text, modes),
        Engine::SQLite => sqlite::split(text),
    }
}

/// The same in a session with the usual modes.
#[cfg(test)]
pub fn split(engine: Engine, text: &str) -> Result<Vec<Statement>, String> {
    split_in(engine, text, Modes::default())
}

/// What lies at one place of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    /// An unquoted word.
    Word(&'a str),
    /// An opening parenthesis.
    Open,
    /// A closing parenthesis.
    Close,
    /// A semicolon.
    Semicolon,
    /// All else: what is quoted, numbers, operators.
    Other,
}

/// A place in a text that only moves forward, and its line.
struct Cursor<'a> {
    text: &'a str,
    at: usize,
    /// Up to where lines are counted.
    counted: usize,
    line: u32,
}

impl<'a> Cursor<'a> {
    const fn of(text: &'a str) -> Self {
        Self { text, at: 0, counted: 0, line: 1 }
    }

    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    /// The byte so many places further on; 0 behind the end.
    fn byte(&self, further: usize) -> u8 {
        self.rest().get(further).copied().unwrap_or_default()
    }

    fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    /// Moves over all bytes that fit.
    fn skip(&mut self, fits: impl Fn(u8) -> bool) {
        self.at += self.rest().iter().take_while(|byte| fits(**byte)).count();
    }

    /// Moves behind the next such text; to the end, and false, without one.
    fn skip_behind(&mut self, wanted: &str) -> bool {
        let found = self.text.get(self.at..).and_then(|rest| rest.find(wanted));
        self.at = found.map_or(self.text.len(), |found| self.at + found + wanted.len());
        found.is_some()
    }

    /// The line of a place that is not before any other whose line was asked for.
    fn line_at(&mut self, place: usize) -> u32 {
        let passed = self.text.as_bytes().get(self.counted..place).unwrap_or_default();
        let breaks = passed.split(|byte| *byte == b'\n').count() - 1;
        self.line = self.line.saturating_add(u32::try_from(breaks).unwrap_or(u32::MAX));
        self.counted = self.counted.max(place);
        self.line
    }
}

/// A statement whose end is not there yet.
#[derive(Default)]
struct Begun {
    start: Option<(usize, u32)>,
    words: Vec<String>,
}

impl Begun {
    /// Adds what lies at `start`.
    fn add(&mut self, cursor: &mut Cursor<'_>, start: usize, token: Token<'_>) {
        if self.start.is_none() {
            self.start = Some((start, cursor.line_at(start)));
        }
        if let Token::Word(word) = token
            && self.words.len() < WORDS
        {
            self.words.push(word.to_uppercase());
        }
    }

    fn begins(&self, words: &[&str]) -> bool {
        self.words.len() >= words.len() && words.iter().zip(&self.words).all(|(one, other)| one == other)
    }

    /// The statement that ends there; nothing where only blanks and comments lie.
    fn ended(self, end: usize) -> Option<Statement> {
        let words = self.words;
        self.start.map(|(start, line)| Statement { start, end, line, words })
    }
}

/// Why a text cannot be split.
fn not_split(why: &str, line: u32) -> String {
    format!("cannot be split into statements: {why} in line {line} has no end")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_commit_before_it_fails_is_known() {
        let may = |text: &str| split(Engine::PostgreSQL, text).unwrap()[0].may_commit_within(text);
        for text in ["CALL p()", "/* now */ call p(1)", "DO $$ BEGIN UPDATE a SET b = 1; commit; END $$"] {
            assert!(may(text), "{text}");
        }
        for text in
            ["DO $$ BEGIN UPDATE a SET b = 1; END $$", "SELECT call()", "INSERT INTO a VALUES ('COMMIT')"]
        {
            assert!(!may(text), "{text}");
        }
    }

    #[test]
    fn what_changes_the_session_alone_is_distinguished_from_what_does_more() {
        let sets = |text: &str| split(Engine::MariaDB, text).unwrap()[0].sets_session();
        for text in [
            "USE shop",
            "SET @x = 1",
            "set session sql_mode = ''",
            "SET NAMES utf8mb4",
            "/*!40101 SET a = 1 */",
        ] {
            assert!(sets(text), "{text}");
        }
        for text in [
            "SET PASSWORD = ''",
            "SET GLOBAL a = 1",
            "SET STATEMENT a = 1 FOR INSERT INTO b VALUES (1)",
            "SET TRANSACTION READ ONLY",
            "SET DEFAULT ROLE a TO b",
            "INSERT INTO a VALUES (1)",
        ] {
            assert!(!sets(text), "{text}");
        }
    }
}
