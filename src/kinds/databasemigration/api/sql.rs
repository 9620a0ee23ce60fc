//! What the text of a script says about itself, as far as it can be read without a database. Pure.
//!
//! Guarantees: bounded in time, memory and depth, whatever the text is: nothing is looked at beyond the [`Budget`] of an
//! object's scripts, and no statement of more than [`MOST_TOKENS`] is parsed, since the drop of a deeply nested tree
//! takes as much of the stack as the tree is deep.
//! Never: refuses what it cannot read. A dialect has more statements than any parser of it; a statement that was not
//! read is reported.

use sqlparser::ast::{
    AlterColumnOperation, AlterTableOperation, AlterTypeOperation, ColumnOption, ObjectType, Statement,
};
use sqlparser::dialect::{Dialect, MySqlDialect, PostgreSqlDialect, SQLiteDialect};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, Tokenizer};

use super::transaction::{refused_by_postgres, refused_by_sqlite};
use super::v1::Engine;
use crate::api::script;

/// Bytes of all scripts of an object that are looked at.
const MOST_BYTES: usize = 64 * 1024;

/// Steps that the parser may take for all scripts of an object.
const MOST_STEPS: u64 = 128 * 1024;

/// Words of a statement that are looked at.
const MOST_WORDS: usize = 64;

/// Tokens of a statement that is parsed.
const MOST_TOKENS: usize = 1000;

/// How deep a statement may be nested.
const DEPTH: usize = 24;

/// How much of an object's scripts is still looked at.
#[derive(Debug)]
pub struct Budget {
    bytes: usize,
    steps: u64,
}

impl Budget {
    /// That of an object.
    #[must_use]
    pub const fn of_object() -> Self {
        Self { bytes: MOST_BYTES, steps: MOST_STEPS }
    }

    /// Whether a text is short enough for what is left.
    pub const fn takes(&mut self, text: &str) -> bool {
        let left = self.bytes.checked_sub(text.len());
        if let Some(left) = left {
            self.bytes = left;
        }
        left.is_some()
    }

    /// Whether a statement can be parsed by what is left. The parser tries one form after the other, such as
    /// `position(a IN b)` before a function of that name, and so may read what is in parentheses twice, at each level.
    fn parses(&mut self, tokens: &[Token]) -> bool {
        let mut level = 0_u32;
        let mut steps = 0_u64;
        for token in tokens {
            match token {
                Token::LParen | Token::LBracket | Token::LBrace => level += 1,
                Token::RParen | Token::RBracket | Token::RBrace => level = level.saturating_sub(1),
                _ => {}
            }
            steps = steps.saturating_add(1_u64.checked_shl(level).unwrap_or(u64::MAX));
        }
        let left = self.steps.checked_sub(steps);
        self.steps = left.unwrap_or(self.steps);
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
    /// It could not be parsed: there may be more to know.
    pub is_unknown: bool,
}

/// The statements of a text; none where it cannot even be split.
#[must_use]
pub fn statements(engine: Engine, text: &str, budget: &mut Budget) -> Option<Vec<Read>> {
    let dialect = dialect(engine);
    let tokens = Tokenizer::new(dialect, script::without_mark(text)).tokenize().ok()?;
    if has_body(&tokens) {
        return None;
    }
    let statements = tokens.split(|token| *token == Token::SemiColon);
    let meaningful = statements.filter(|tokens| tokens.iter().any(|token| !is_blank(token)));
    let mut read: Vec<_> = meaningful.map(|tokens| statement(engine, dialect, tokens, budget)).collect();
    let adds_value = read.iter().any(|one| one.advice.contains(&ADDS_VALUE));
    if read.len() > 1 && adds_value {
        read.iter_mut().take(1).for_each(|one| one.advice.push(USES_VALUE));
    }
    Some(read)
}

/// Whether a routine or a trigger has statements of its own between BEGIN and END: they end where it does not.
fn has_body(tokens: &[Token]) -> bool {
    let is_word = |token: &Token, wanted: &[&str]| match token {
        Token::Word(word) => {
            word.quote_style.is_none() && wanted.iter().any(|wanted| word.value.eq_ignore_ascii_case(wanted))
        }
        _ => false,
    };
    tokens.split(|token| *token == Token::SemiColon).any(|statement| {
        let has = |wanted: &[&str]| statement.iter().any(|token| is_word(token, wanted));
        has(&["CREATE"]) && has(&["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT"]) && has(&["BEGIN"])
    })
}

const ADDS_VALUE: &str = "adds a value to an enum: no statement of the same transaction can use it";
const USES_VALUE: &str = "adds a value to an enum beside other statements: put it into a script of its own";

fn dialect(engine: Engine) -> &'static dyn Dialect {
    match engine {
        Engine::PostgreSQL => &PostgreSqlDialect {},
        Engine::MySQL | Engine::MariaDB => &MySqlDialect {},
        Engine::SQLite => &SQLiteDialect {},
    }
}

const fn is_blank(token: &Token) -> bool {
    matches!(token, Token::Whitespace(_) | Token::EOF)
}

fn statement(engine: Engine, dialect: &'static dyn Dialect, tokens: &[Token], budget: &mut Budget) -> Read {
    let words: Vec<String> = tokens
        .iter()
        .filter_map(|token| match token {
            Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_uppercase()),
            _ => None,
        })
        .take(MOST_WORDS)
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut read = Read {
        verb: words.iter().take(2).copied().collect::<Vec<_>>().join(" "),
        controls_transaction: controls_transaction(&words),
        needs_none: needs_none(engine, &words),
        ..Read::default()
    };
    // Statements that only end a transaction, and those that no parser of this kind knows, are named by their words.
    if read.controls_transaction || read.needs_none {
        return read;
    }
    let parsed = (tokens.len() <= MOST_TOKENS && budget.parses(tokens)).then(|| {
        let parser = Parser::new(dialect).with_recursion_limit(DEPTH);
        parser.with_tokens(tokens.to_vec()).parse_statement().ok()
    });
    match parsed.flatten() {
        Some(parsed) => read.advice = advice(engine, &parsed),
        None => read.is_unknown = true,
    }
    read
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

fn advice(engine: Engine, statement: &Statement) -> Vec<&'static str> {
    match statement {
        Statement::Drop { object_type: ObjectType::Table, .. } => vec!["drops a table and its rows"],
        Statement::Truncate(_) => vec!["removes all rows of a table"],
        Statement::Delete(delete) if delete.selection.is_none() => {
            vec!["deletes without WHERE: all rows of a table"]
        }
        Statement::Update(update) if update.selection.is_none() => {
            vec!["updates without WHERE: all rows of a table"]
        }
        Statement::CreateIndex(index) if engine == Engine::PostgreSQL && !index.concurrently => {
            vec!["creates an index without CONCURRENTLY: writes wait until it is built"]
        }
        Statement::AlterType(alter) if matches!(alter.operation, AlterTypeOperation::AddValue(_)) => {
            vec![ADDS_VALUE]
        }
        Statement::AlterTable(alter) => alter.operations.iter().filter_map(operation).collect(),
        _ => Vec::new(),
    }
}

fn operation(operation: &AlterTableOperation) -> Option<&'static str> {
    match operation {
        AlterTableOperation::AddColumn { column_def, .. } => {
            let has = |wanted: fn(&ColumnOption) -> bool| {
                column_def.options.iter().any(|option| wanted(&option.option))
            };
            let not_null = has(|option| matches!(option, ColumnOption::NotNull));
            let filled = has(|option| !matches!(option, ColumnOption::NotNull | ColumnOption::Null));
            (not_null && !filled).then_some("adds a column NOT NULL without DEFAULT: fails where rows exist")
        }
        AlterTableOperation::AlterColumn { op: AlterColumnOperation::SetNotNull, .. } => {
            Some("sets a column NOT NULL: all rows are read while the table is locked")
        }
        AlterTableOperation::AlterColumn { op: AlterColumnOperation::SetDataType { .. }, .. } => {
            Some("changes the type of a column: the table may be rewritten while it is locked")
        }
        AlterTableOperation::DropColumn { .. } => Some("drops a column and its values"),
        AlterTableOperation::RenameColumn { .. } | AlterTableOperation::RenameTable { .. } => {
            Some("renames: pods of the old release fail from then on")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(engine: Engine, text: &str) -> Vec<Read> {
        statements(engine, text, &mut Budget::of_object()).unwrap()
    }

    /// A text that cannot be split.
    fn is_whole(engine: Engine, text: &str) -> bool {
        statements(engine, text, &mut Budget::of_object()).is_none()
    }

    #[test]
    fn a_text_is_split_where_its_statements_end() {
        let text = "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 1; SELECT 2 $$; -- a; b\n SELECT ';' ; ;";
        assert_eq!(read(Engine::PostgreSQL, text).len(), 2);
        assert!(read(Engine::PostgreSQL, " -- nothing\n ;").is_empty());
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
            ("ALTER TABLE a ALTER COLUMN b SET NOT NULL", "NOT NULL"),
            ("ALTER TABLE a ALTER COLUMN b TYPE bigint", "rewritten"),
            ("ALTER TABLE a RENAME COLUMN b TO c", "renames"),
            ("ALTER TABLE a RENAME TO c", "renames"),
            ("ALTER TABLE a DROP COLUMN b", "drops a column"),
            ("ALTER TYPE a ADD VALUE 'b'", "enum"),
        ] {
            let read = read(Engine::PostgreSQL, text);
            assert!(read[0].advice.iter().any(|advice| advice.contains(part)), "{text}: {read:?}");
        }
        for text in [
            "DELETE FROM a WHERE b",
            "ALTER TABLE a ADD COLUMN b int NOT NULL DEFAULT 0",
            "CREATE TABLE a (b int NOT NULL)",
            "SELECT 1",
        ] {
            assert_eq!(read(Engine::PostgreSQL, text)[0].advice, [""; 0], "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_unknown_and_no_text_goes_too_deep() {
        assert!(read(Engine::PostgreSQL, "FROBNICATE the table")[0].is_unknown);
        assert!(is_whole(Engine::PostgreSQL, "SELECT 'open"));
        let trigger = "CREATE TRIGGER a AFTER INSERT ON b BEGIN UPDATE c SET d = 1; END";
        assert!(is_whole(Engine::SQLite, trigger));
        for text in ["(".repeat(30_000), "1+".repeat(30_000), "NOT ".repeat(15_000), "[".repeat(30_000)] {
            let read = read(Engine::PostgreSQL, &format!("SELECT {text}1"));
            assert!(read[0].is_unknown);
        }
        let wide = format!("SELECT {}1", "1+".repeat(450));
        assert!(!read(Engine::PostgreSQL, &wide)[0].is_unknown);
    }

    /// Twice as long for each level: a debug build took 3.5 s for 20 of them.
    #[test]
    fn what_the_parser_would_read_over_and_over_is_unknown() {
        let nested = |opened: &str, levels: usize, closed: &str| {
            format!("SELECT {}a{}", opened.repeat(levels), closed.repeat(levels))
        };
        for engine in [Engine::PostgreSQL, Engine::MySQL, Engine::MariaDB, Engine::SQLite] {
            for opened in ["position(", "substring(", "(", "f((", "overlay(", "cast(("] {
                let closed = if opened.ends_with("((") { "))" } else { ")" };
                let text = nested(opened, 20, closed);
                assert!(read(engine, &text)[0].is_unknown, "{engine:?} {text}");
            }
        }
        assert!(!read(Engine::PostgreSQL, &nested("lower(", 8, ")"))[0].is_unknown);

        // Many that are each short enough are not, together.
        let one = nested("position(", 11, ")") + ";";
        let read = read(Engine::PostgreSQL, &one.repeat(300));
        let unread = read.iter().position(|one| one.is_unknown);
        assert!(unread.is_some_and(|first| (1..60).contains(&first)), "{unread:?}");
    }
}
