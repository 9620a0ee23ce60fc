//! Splits a script into its statements.
//!
//! Guarantees: statements are slices of the text, as their author wrote them; quoted text, comments, dollar quotes and the
//! bodies of stored programs stay whole. A text that cannot be split is refused and not guessed at.

use sqlparser::dialect::{Dialect, MySqlDialect, PostgreSqlDialect, SQLiteDialect};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Whitespace};

use super::super::assignment::Engine;

/// How many words of a statement are kept.
const WORDS: usize = 64;

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

/// The statements of a script.
///
/// # Errors
/// Where the text cannot be split.
pub fn split(engine: Engine, text: &str) -> Result<Vec<Statement>, String> {
    let dialect: &dyn Dialect = match engine {
        Engine::PostgreSQL => &PostgreSqlDialect {},
        Engine::MySQL | Engine::MariaDB => &MySqlDialect {},
        Engine::SQLite => &SQLiteDialect {},
    };
    let mut tokenizer = Tokenizer::new(dialect, text).with_unescape(false);
    let tokens = tokenizer.tokenize_with_location();
    // What is wrong may quote the text; where it is does not.
    let tokens = tokens.map_err(|error| {
        format!("cannot be split into statements: quotes or characters in line {}", error.location.line)
    })?;
    let lines = Lines::of(text);
    let mut statements = Vec::new();
    let mut open = Open::default();
    for TokenWithSpan { token, span } in &tokens {
        match token {
            Token::SemiColon if open.depth == 0 => {
                let end = lines.offset(text, span.start)?;
                if !text[end..].starts_with(';') {
                    return Err(format!("cannot be split into statements: line {}", span.start.line));
                }
                statements.extend(std::mem::take(&mut open).closed(end));
            }
            // The server runs what is in such a comment.
            Token::Whitespace(Whitespace::MultiLineComment(comment))
                if engine.port() == Some(3306) && (comment.starts_with('!') || comment.starts_with("M!")) =>
            {
                open.begin(&lines, text, span.start)?;
            }
            Token::Whitespace(_) | Token::EOF => {}
            token => {
                open.begin(&lines, text, span.start)?;
                open.take(token);
            }
        }
    }
    statements.extend(open.closed(text.trim_end().len()));
    Ok(statements)
}

/// Where the comment begins that the server runs, for what the tokenizer found at `at` in one: it counts the places in such
/// a comment without the `/*!` and the version.
fn hint_at(text: &str, at: usize) -> Option<usize> {
    let hint = text.get(..at + 3).and_then(|before| before.rfind("/*!"))?;
    let inner = text[hint + 3..].trim_start_matches(|one: char| one.is_ascii_digit());
    let blank = inner.len() - inner.trim_start().len();
    (hint + blank == at).then_some(hint)
}

/// What is created that may have statements in it.
const PROGRAMS: [&str; 4] = ["EVENT", "FUNCTION", "PROCEDURE", "TRIGGER"];

/// What is created that has none, though such a word may follow as a name.
const OTHERS: [&str; 8] = ["DATABASE", "INDEX", "POLICY", "SCHEMA", "SEQUENCE", "TABLE", "TYPE", "VIEW"];

/// A statement whose end is not seen yet.
#[derive(Default)]
struct Open {
    begun: Option<(usize, u32)>,
    words: Vec<String>,
    /// How many blocks of a stored program are open.
    depth: u32,
    /// Whether a stored program is created, as the first word says that says what is.
    is_program: Option<bool>,
    has_ended: bool,
}

impl Open {
    fn begin(&mut self, lines: &Lines, text: &str, at: Location) -> Result<(), String> {
        if self.begun.is_none() {
            let line = u32::try_from(at.line).unwrap_or(u32::MAX);
            let at = lines.offset(text, at)?;
            self.begun = Some((hint_at(text, at).unwrap_or(at), line));
        }
        Ok(())
    }

    fn take(&mut self, token: &Token) {
        let Token::Word(word) = token else {
            self.has_ended = false;
            return;
        };
        if word.quote_style.is_some() {
            self.has_ended = false;
            return;
        }
        let word = word.value.to_uppercase();
        let is_created = self.words.first().is_some_and(|first| first == "CREATE");
        if is_created && self.is_program.is_none() {
            let is_program = PROGRAMS.contains(&word.as_str());
            self.is_program = (is_program || OTHERS.contains(&word.as_str())).then_some(is_program);
        }
        // `END IF` and the like end what opened no block here; the CASE of `END CASE` opens none.
        let follows_end = std::mem::take(&mut self.has_ended);
        if follows_end && matches!(word.as_str(), "IF" | "LOOP" | "WHILE" | "REPEAT") {
            self.depth += 1;
        } else if self.is_program == Some(true) {
            match word.as_str() {
                "BEGIN" => self.depth += 1,
                "CASE" if self.depth > 0 && !follows_end => self.depth += 1,
                "END" if self.depth > 0 => {
                    self.depth -= 1;
                    self.has_ended = true;
                }
                _ => {}
            }
        }
        if self.words.len() < WORDS {
            self.words.push(word);
        }
    }

    fn closed(self, end: usize) -> Option<Statement> {
        let words = self.words;
        self.begun.map(|(start, line)| Statement { start, end, line, words })
    }
}

/// Where each line of a text begins, in bytes.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self(std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect())
    }

    fn offset(&self, text: &str, at: Location) -> Result<usize, String> {
        let number = |number: u64| usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        let place = number(at.line).and_then(|line| self.0.get(line)).zip(number(at.column));
        let offset = place.map(|(begin, column)| {
            let line = &text[*begin..];
            begin + line.char_indices().nth(column).map_or(line.len(), |(at, _)| at)
        });
        offset.ok_or_else(|| format!("cannot be split into statements: line {}", at.line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(engine: Engine, text: &str) -> Vec<&str> {
        split(engine, text).unwrap().iter().map(|one| &text[one.start..one.end]).collect()
    }

    #[test]
    fn semicolons_inside_of_something_end_nothing() {
        let text = "-- a; b\nINSERT INTO t VALUES ('a;''b', \"c;d\"); /* ; /* ; */ */\n\
                    CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $x$ BEGIN; END; $x$;\n\
                    SELECT E'\\';' ;\n; ";
        assert_eq!(
            texts(Engine::PostgreSQL, text),
            [
                "INSERT INTO t VALUES ('a;''b', \"c;d\")",
                "CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $x$ BEGIN; END; $x$",
                "SELECT E'\\';' ",
            ]
        );
    }

    #[test]
    fn the_body_of_a_stored_program_stays_whole() {
        let text = "CREATE PROCEDURE p()\nBEGIN\n IF 1 THEN SELECT CASE WHEN 1 THEN 2 END; END IF;\n\
                    CASE 1 WHEN 1 THEN SELECT 1; END CASE;\n WHILE 0 DO SELECT 1; END WHILE;\nEND;\nSELECT 2";
        assert_eq!(texts(Engine::MariaDB, text).len(), 2, "{:?}", texts(Engine::MariaDB, text));
        let text = "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT CASE WHEN true THEN 1 END; END; SELECT 3";
        assert_eq!(texts(Engine::PostgreSQL, text).len(), 2);
        let text = "CREATE TRIGGER t AFTER INSERT ON a BEGIN UPDATE b SET c = 1; END; SELECT 1;";
        assert_eq!(texts(Engine::SQLite, text).len(), 2);
    }

    #[test]
    fn a_table_with_the_names_of_programs_and_blocks_is_no_program() {
        let text = "CREATE TABLE event (begin datetime, `end` datetime);\nINSERT INTO event VALUES (1, 2);\nSELECT 1";
        assert_eq!(texts(Engine::MariaDB, text).len(), 3, "{:?}", texts(Engine::MariaDB, text));
        let text = "CREATE DEFINER = root@localhost EVENT e ON SCHEDULE EVERY 1 DAY DO BEGIN SELECT 1; SELECT 2; END; SELECT 3";
        assert_eq!(texts(Engine::MariaDB, text).len(), 2, "{:?}", texts(Engine::MariaDB, text));
    }

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
    fn lines_and_words_are_those_of_the_statement() {
        let text = "\u{fc}berall();\r\n\n  create index concurrently \"x;y\" on t (a);";
        let statements = split(Engine::PostgreSQL, text).unwrap();
        assert_eq!((statements.len(), statements[1].line), (2, 3));
        assert!(statements[1].begins(&["CREATE", "INDEX"]) && statements[1].has("CONCURRENTLY"));
        assert_eq!(
            &text[statements[1].start..statements[1].end],
            "create index concurrently \"x;y\" on t (a)"
        );
        assert_eq!(split(Engine::PostgreSQL, "-- nothing\n/* ; */ ;"), Ok(Vec::new()));
    }

    #[test]
    fn what_the_server_runs_in_a_comment_counts() {
        for text in ["/*!40101 SET a = 1 */", "/*!SET a = 1 */", "/*M!100100 SET a = 1 */"] {
            assert_eq!(
                texts(Engine::MariaDB, &format!("SELECT 1; {text};\nSELECT 2")),
                ["SELECT 1", text, "SELECT 2"]
            );
        }
        assert_eq!(split(Engine::MariaDB, "/* SET a = 1 */;").unwrap().len(), 0);
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

    #[test]
    fn an_open_quote_is_refused_without_its_text() {
        let error = split(Engine::PostgreSQL, "SELECT 1;\nSELECT 'secret").unwrap_err();
        assert!(error.contains("line 2") && !error.contains("secret"), "{error}");
    }
}
