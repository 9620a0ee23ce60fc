//! What a statement of MySQL or MariaDB reads and sets in its session.

use std::collections::BTreeSet;

use super::super::Statement;
use super::modes::Modes;
use super::set::{Follower, Target, assignments};
use super::tokens::{Kind, Lexer, Token};
use crate::kinds::databasemigration::api::v1::Engine;

/// Functions whose value follows from what is written, or from the session.
const PURE: [&str; 36] = [
    "ABS",
    "CAST",
    "CEIL",
    "CEILING",
    "CHAR",
    "COALESCE",
    "CONCAT",
    "CONCAT_WS",
    "CONVERT",
    "DATABASE",
    "DATE",
    "FLOOR",
    "GREATEST",
    "HEX",
    "IF",
    "IFNULL",
    "LEAST",
    "LEFT",
    "LENGTH",
    "LOWER",
    "LPAD",
    "LTRIM",
    "MOD",
    "NULLIF",
    "QUOTE",
    "REPEAT",
    "REPLACE",
    "REVERSE",
    "RIGHT",
    "ROUND",
    "RPAD",
    "RTRIM",
    "SUBSTRING",
    "TRIM",
    "UNHEX",
    "UPPER",
];

/// Functions that read, and change nothing: what they return is another value at another time.
const READING: [&str; 24] = [
    "AND",
    "AVG",
    "COUNT",
    "CURDATE",
    "CURRENT_DATE",
    "CURRENT_TIMESTAMP",
    "EXISTS",
    "FROM",
    "GROUP_CONCAT",
    "IN",
    "MAX",
    "MIN",
    "NOT",
    "NOW",
    "OR",
    "RAND",
    "SCHEMA",
    "SUM",
    "SYSDATE",
    "UNIX_TIMESTAMP",
    "USER",
    "UUID",
    "VERSION",
    "WHERE",
];

/// What the session alone knows.
const OF_SESSION: [&str; 9] = [
    "LAST_INSERT_ID",
    "ROW_COUNT",
    "FOUND_ROWS",
    "@@IDENTITY",
    "@@LAST_INSERT_ID",
    "@@WARNING_COUNT",
    "@@ERROR_COUNT",
    "@@SESSION.LAST_INSERT_ID",
    "@@SESSION.IDENTITY",
];

/// Words whose value is the moment's, without parentheses.
const OF_MOMENT: [&str; 9] = [
    "CURRENT_DATE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "LOCALTIME",
    "LOCALTIMESTAMP",
    "SYSDATE",
    "UTC_DATE",
    "UTC_TIME",
    "UTC_TIMESTAMP",
];

/// A statement with its tokens.
pub struct Read<'a> {
    /// Its text.
    pub text: &'a str,
    /// Its tokens.
    pub tokens: Vec<Token>,
    /// As it was split.
    pub statement: &'a Statement,
    /// Its number, from 1 on.
    pub number: usize,
    modes: Modes,
    engine: Engine,
}

impl Read<'_> {
    pub fn first(&self) -> &str {
        self.statement.words.first().map_or("", String::as_str)
    }

    pub fn place(&self) -> String {
        format!("statement {} in line {}", self.number, self.statement.line)
    }

    fn word(&self, at: usize) -> String {
        self.tokens.get(at).map_or_else(String::new, |token| plain(token.text(self.text)))
    }

    pub fn is_program(&self) -> bool {
        let kinds = ["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE"];
        matches!(self.first(), "CREATE" | "ALTER")
            && self.statement.words.iter().take(12).any(|word| kinds.contains(&word.as_str()))
    }

    /// A call, or a compound statement: it may set any variable.
    pub fn may_set_all(&self) -> bool {
        self.first() != "EXECUTE" && runs_program(self.statement)
    }

    /// Whether it reads or sets a sequence. MySQL has none.
    pub fn uses_sequence(&self) -> bool {
        let functions = ["NEXTVAL", "SETVAL"];
        self.is_of_mariadb()
            && (self.has_word(&functions) || self.has_value("NEXT") || self.reads_last_of_sequence())
    }

    /// Whether it reads the number that a sequence gave to this session last.
    pub fn reads_last_of_sequence(&self) -> bool {
        self.is_of_mariadb() && (self.has_word(&["LASTVAL", "CURRVAL"]) || self.has_value("PREVIOUS"))
    }

    fn is_of_mariadb(&self) -> bool {
        self.engine == Engine::MariaDB
    }

    /// Whether one of these words occurs, also behind a dot, as in `s.NEXTVAL`.
    fn has_word(&self, words: &[&str]) -> bool {
        let mut found = self.tokens.iter().filter(|token| token.kind == Kind::Word);
        found.any(|token| words.iter().any(|word| token.text(self.text).eq_ignore_ascii_case(word)))
    }

    /// `NEXT VALUE` or `PREVIOUS VALUE`.
    fn has_value(&self, which: &str) -> bool {
        self.tokens.windows(2).any(|pair| pair[0].is(self.text, which) && pair[1].is(self.text, "VALUE"))
    }

    /// The values that are the session's alone.
    pub fn of_session(&self) -> Option<String> {
        let found = self.tokens.iter().find(|token| {
            matches!(token.kind, Kind::Word | Kind::Variable)
                && OF_SESSION.contains(&plain(token.text(self.text)).as_str())
        });
        found.map(|token| plain(token.text(self.text)))
    }

    /// Functions, by the words before a parenthesis, that are none of these lists.
    fn calls_others(&self, lists: &[&[&str]]) -> bool {
        self.tokens.windows(2).any(|pair| {
            let is_listed = pair[0].kind == Kind::Word
                && !pair[0].is_qualified
                && lists.iter().any(|list| list.contains(&plain(pair[0].text(self.text)).as_str()));
            matches!(pair[0].kind, Kind::Word | Kind::Name) && pair[1].kind == Kind::Mark(b'(') && !is_listed
        })
    }

    /// Variables that get a value other than by SET: behind INTO, and before `:=`.
    pub fn filled(&self) -> Vec<String> {
        let mut filled = Vec::new();
        let mut is_into = false;
        for (at, token) in self.tokens.iter().enumerate() {
            let next = |ahead: usize| self.tokens.get(at + ahead).map(|token| token.kind);
            let is_assigned = next(1) == Some(Kind::Mark(b':')) && next(2) == Some(Kind::Mark(b'='));
            match token.kind {
                Kind::Variable if is_into || is_assigned || matches!(self.first(), "CALL" | "LOAD") => {
                    filled.push(plain(token.text(self.text)));
                }
                Kind::Variable | Kind::Mark(b',') => {}
                _ => is_into = false,
            }
            is_into |= token.is(self.text, "INTO");
        }
        filled
    }

    /// Variables of the user that it reads, in capitals. The host of a user is none.
    fn variables(&self) -> Vec<String> {
        let mut before = usize::MAX;
        let mut variables = Vec::new();
        for token in &self.tokens {
            let name = plain(token.text(self.text));
            if token.kind == Kind::Variable && !name.starts_with("@@") && token.start != before {
                variables.push(name);
            }
            before = if matches!(token.kind, Kind::Mark(_)) { usize::MAX } else { token.end };
        }
        variables
    }

    /// Variables of the user that it needs, in capitals.
    pub fn needed(&self) -> Vec<String> {
        let filled = self.filled();
        let needed = if self.first() == "SET" { self.read_by_set() } else { self.variables() };
        let is_needed =
            |name: &String| !name.starts_with("@@") && (self.first() == "CALL" || !filled.contains(name));
        needed.into_iter().filter(is_needed).collect()
    }

    /// Whether it only changes the session, and would do the same if it were run again.
    pub fn sets_session_alone(&self) -> bool {
        let reads =
            || self.of_session().is_none() && !self.calls_others(&[&PURE, &READING]) && !self.uses_sequence();
        match self.first() {
            "USE" | "PREPARE" | "DEALLOCATE" => true,
            "SET" => self.statement.sets_session() && reads(),
            "SELECT" => self.statement.has("INTO") && !self.filled().is_empty() && reads(),
            _ => false,
        }
    }

    /// Whether it sets the session to what is written in it.
    pub fn is_pure(&self) -> bool {
        match self.first() {
            "USE" => true,
            "SET" => {
                let is_server = |token: &Token| {
                    token.kind == Kind::Variable && plain(token.text(self.text)).starts_with("@@GLOBAL")
                };
                self.statement.sets_session()
                    && self.of_session().is_none()
                    && !self.calls_others(&[&PURE])
                    && !self.statement.has("FROM")
                    && !self.has_word(&OF_MOMENT)
                    && !self.uses_sequence()
                    && !self.tokens.iter().any(is_server)
            }
            _ => false,
        }
    }

    fn read_by_set(&self) -> Vec<String> {
        let assignments = assignments(Engine::MariaDB, self.text, self.modes);
        let values = assignments.iter().flat_map(|assignment| &assignment.value);
        let variables = values.filter(|token| token.kind == Kind::Variable);
        variables.map(|token| plain(token.text(self.text))).collect()
    }

    pub fn targets(&self) -> Vec<Target> {
        if self.first() != "SET" {
            return Vec::new();
        }
        let assignments = assignments(Engine::MariaDB, self.text, self.modes);
        assignments.into_iter().map(|assignment| assignment.target).collect()
    }

    /// The name behind these words, where it begins with them.
    pub fn named(&self, words: &[&str]) -> Option<String> {
        self.statement.begins(words).then(|| self.word(words.len()))
    }

    /// The temporary tables that a program leaves, in capitals: it makes them, and does not drop them after that.
    pub fn temporary_tables_of_program(&self) -> BTreeSet<String> {
        const BETWEEN: [&str; 5] = ["TEMPORARY", "TABLE", "IF", "NOT", "EXISTS"];
        let words: Vec<_> = self.tokens.iter().map(|token| plain(token.text(self.text))).collect();
        let mut left = BTreeSet::new();
        for (at, word) in
            words.iter().enumerate().filter(|(_, word)| matches!(word.as_str(), "CREATE" | "DROP"))
        {
            let rest = &words[at + 1..];
            let between = rest.iter().take_while(|word| BETWEEN.contains(&word.as_str())).count();
            let is_qualified = rest.get(between + 1).is_some_and(|mark| mark == ".");
            let Some(name) = rest.get(between + if is_qualified { 2 } else { 0 }) else { continue };
            if word == "DROP" {
                left.remove(name);
            } else if rest[..between].iter().any(|word| word == "TEMPORARY") {
                left.insert(name.clone());
            }
        }
        left
    }

    pub fn temporary_table(&self) -> Option<String> {
        let begins = self.statement.begins(&["CREATE", "TEMPORARY", "TABLE"])
            || self.statement.begins(&["CREATE", "OR", "REPLACE", "TEMPORARY", "TABLE"]);
        let at = self.tokens.iter().position(|token| token.is(self.text, "TABLE"))?;
        let skipped = if self.statement.words.iter().take(8).any(|word| word == "EXISTS") { 4 } else { 1 };
        begins.then(|| self.word(at + skipped))
    }
}

/// Whether a statement runs a stored program, or is a compound one.
#[must_use]
pub fn runs_program(statement: &Statement) -> bool {
    match statement.words.first().map(String::as_str) {
        Some("CALL" | "EXECUTE" | "IF" | "CASE" | "LOOP" | "WHILE" | "REPEAT" | "FOR" | "DECLARE") => true,
        Some("BEGIN") => is_block(statement),
        _ => statement.words.get(1).is_some_and(|word| {
            matches!(word.as_str(), "BEGIN" | "LOOP" | "WHILE" | "REPEAT" | "FOR")
                && !["CREATE", "ALTER", "DROP", "SELECT", "INSERT", "UPDATE", "DELETE", "SET", "WITH"]
                    .contains(&statement.words[0].as_str())
        }),
    }
}

/// Whether a BEGIN begins a block, and no transaction.
#[must_use]
pub fn is_block(statement: &Statement) -> bool {
    statement.words.get(1).is_some_and(|word| word != "WORK")
}

/// A name in capitals, without its quotes.
pub fn plain(name: &str) -> String {
    name.replace(['`', '"', '\''], "").to_uppercase()
}

/// The tokens of all statements, each in the mode that the ones before it have set.
#[must_use]
pub fn read<'a>(engine: Engine, text: &'a str, statements: &'a [Statement], modes: Modes) -> Vec<Read<'a>> {
    let mut follower = Follower::new(modes);
    let mut modes = modes;
    let mut all = Vec::with_capacity(statements.len());
    for (statement, number) in statements.iter().zip(1..) {
        let text = text.get(statement.start..statement.end).unwrap_or_default();
        let mut lexer = Lexer::new(engine, text, modes);
        let mut tokens = Vec::new();
        while let Ok(Some(token)) = lexer.next(false) {
            tokens.push(token);
        }
        all.push(Read { text, tokens, statement, number, modes, engine });
        if statement.begins(&["SET"]) {
            modes = follower.follow(engine, text);
        }
    }
    all
}
