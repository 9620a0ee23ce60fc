//! How a later run finds out whether a statement of MySQL or MariaDB took effect, if the run that sent it died. Pure.
//!
//! Guarantees: a statement has an effect here only if each way to find it out agrees: all of its objects are as before the
//! statement, or all are as after it. A statement whose form is not known has none.
//! Assumes: the server does all of a definition or nothing, as MySQL 8.0 and MariaDB 10.6 do with tables of InnoDB.

mod alter;

use super::super::Statement;
use super::modes::Modes;
use super::read::{Read, read, runs_program};
use super::tokens::{Kind, Token};
use crate::kinds::databasemigration::api::v1::Engine;

/// How it is found out whether a statement took effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The statement changes rows at most, so that one transaction can have the statement and its row of the history.
    Rows {
        /// The statement has all of its values in its text, so that it takes a moment.
        is_short: bool,
        /// The table or view that gets new rows.
        into: Option<Object>,
    },
    /// The statement leaves the same if it runs once more.
    Repeatable,
    /// The statement makes or removes these objects.
    Objects(Vec<Sign>),
}

/// An object that is there after a statement and not before it, or the other way round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sign {
    /// The object.
    pub object: Object,
    /// The statement makes the object; else the statement removes it.
    pub appears: bool,
}

/// An object of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// What it is.
    pub what: What,
    /// Its schema, or the schema of its table, if the statement names one.
    pub schema: Option<String>,
    /// Its table, if it is a part of a table.
    pub table: Option<String>,
    /// Its name.
    pub name: String,
}

/// A kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A table, a view or a sequence.
    Table,
    /// A column of a table.
    Column,
    /// An index of a table.
    Index,
    /// A constraint of a table.
    Constraint,
    /// A procedure.
    Procedure,
    /// A function.
    Function,
    /// A package of MariaDB.
    Package,
    /// The body of a package.
    PackageBody,
    /// A trigger.
    Trigger,
    /// An event.
    Event,
    /// A database.
    Database,
}

/// The effects of the statements of a text, in their order.
#[must_use]
pub fn effects(engine: Engine, text: &str, statements: &[Statement], modes: Modes) -> Vec<Option<Effect>> {
    let all = read(engine, text, statements, modes);
    // A temporary table hides a table of the same name from a statement, and not from who looks at the objects.
    let has_temporary = statements.iter().any(|statement| statement.has("TEMPORARY"));
    let is_elsewhere = statements.iter().any(|statement| statement.begins(&["USE"]));
    let mut is_hidden = has_temporary;
    let effect = |one: &Read<'_>| {
        is_hidden |= runs_program(one.statement);
        let effect = classify(one)?;
        let is_plain = one.sets_session_alone() || matches!(effect, Effect::Rows { .. });
        let is_named = match &effect {
            Effect::Objects(signs) => !is_elsewhere || signs.iter().all(|sign| sign.object.schema.is_some()),
            Effect::Rows { .. } | Effect::Repeatable => true,
        };
        (is_plain || !is_hidden && is_named).then_some(effect)
    };
    all.iter().map(effect).collect()
}

fn classify(one: &Read<'_>) -> Option<Effect> {
    if one.sets_session_alone() {
        return Some(Effect::Repeatable);
    }
    let words = Words::of(one);
    let rows = Effect::Rows { is_short: false, into: None };
    match one.first() {
        // A rollback uses up the numbers of a sequence.
        "INSERT" | "REPLACE" | "UPDATE" | "DELETE" | "VALUES" | "DO" | "SELECT" | "WITH"
            if one.uses_sequence() =>
        {
            None
        }
        "INSERT" | "REPLACE" => inserted(words),
        "UPDATE" | "DELETE" | "VALUES" | "DO" => Some(rows),
        "SELECT" | "WITH" if !words.has("OUTFILE") && !words.has("DUMPFILE") => Some(rows),
        "GRANT" | "FLUSH" => Some(Effect::Repeatable),
        // MariaDB runs what stands behind another ANALYZE.
        "ANALYZE" | "OPTIMIZE" if is_of_tables(words) => Some(Effect::Repeatable),
        "CREATE" => created(Words::of(one)),
        "DROP" => dropped(Words::of(one)),
        "RENAME" => renamed(Words::of(one)),
        "ALTER" => alter::altered(Words::of(one)),
        _ => None,
    }
}

fn is_of_tables(mut words: Words<'_>) -> bool {
    let _is_local = words.skips(&["NO_WRITE_TO_BINLOG"]) || words.skips(&["LOCAL"]);
    words.is("TABLE") || words.is("TABLES")
}

/// Tokens that are read one after the other.
#[derive(Clone, Copy)]
struct Words<'a> {
    text: &'a str,
    tokens: &'a [Token],
}

impl<'a> Words<'a> {
    /// The tokens behind the first word.
    fn of(one: &'a Read<'_>) -> Self {
        Self { text: one.text, tokens: one.tokens.get(1..).unwrap_or_default() }
    }

    fn is(&self, word: &str) -> bool {
        self.tokens.first().is_some_and(|token| token.is(self.text, word))
    }

    fn is_mark(&self, mark: u8) -> bool {
        self.tokens.first().is_some_and(|token| token.kind == Kind::Mark(mark))
    }

    const fn skip(&mut self) {
        if let [_, rest @ ..] = self.tokens {
            self.tokens = rest;
        }
    }

    /// Skips these words, if they come next.
    fn skips(&mut self, words: &[&str]) -> bool {
        let mut ahead = *self;
        for word in words {
            if !ahead.is(word) {
                return false;
            }
            ahead.skip();
        }
        *self = ahead;
        true
    }

    fn has(&self, word: &str) -> bool {
        self.tokens.iter().any(|token| token.is(self.text, word))
    }

    /// A name, without its quotes.
    fn name(&mut self) -> Option<String> {
        let token = self.tokens.first()?;
        let text = token.text(self.text);
        let name = match token.kind {
            Kind::Word => text,
            Kind::Name => text.get(1..text.len() - 1)?,
            _ => return None,
        };
        self.skip();
        (!name.is_empty() && !name.contains(['`', '"', '\\'])).then(|| name.to_owned())
    }

    /// A name, and the schema before it if there is one.
    fn qualified(&mut self) -> Option<(Option<String>, String)> {
        let first = self.name()?;
        if !self.is_mark(b'.') {
            return Some((None, first));
        }
        self.skip();
        Some((Some(first), self.name()?))
    }

    /// An object that has a schema and no table.
    fn object(&mut self, what: What) -> Option<Object> {
        let (schema, name) = self.qualified()?;
        Some(match what {
            What::Database => Object { what, schema: Some(name.clone()), table: None, name },
            _ => Object { what, schema, table: None, name },
        })
    }

    /// An index, before ON and its table.
    fn index(&mut self) -> Option<Object> {
        let name = self.name()?;
        while !self.is("ON") {
            self.tokens.first()?;
            self.skip();
        }
        self.skip();
        let (schema, table) = self.qualified()?;
        Some(Object { what: What::Index, schema, table: Some(table), name })
    }

    /// The kind of object that comes next, behind what may stand before it.
    fn what(&mut self) -> Option<What> {
        const KINDS: [(&[&str], What); 12] = [
            (&["TABLE"], What::Table),
            (&["VIEW"], What::Table),
            (&["SEQUENCE"], What::Table),
            (&["INDEX"], What::Index),
            (&["PROCEDURE"], What::Procedure),
            (&["FUNCTION"], What::Function),
            (&["PACKAGE", "BODY"], What::PackageBody),
            (&["PACKAGE"], What::Package),
            (&["TRIGGER"], What::Trigger),
            (&["EVENT"], What::Event),
            (&["DATABASE"], What::Database),
            (&["SCHEMA"], What::Database),
        ];
        const BEFORE: [&str; 14] = [
            "AGGREGATE",
            "ALGORITHM",
            "DEFINER",
            "FULLTEXT",
            "IGNORE",
            "INVOKER",
            "MERGE",
            "ONLINE",
            "SECURITY",
            "SPATIAL",
            "SQL",
            "TEMPTABLE",
            "UNDEFINED",
            "UNIQUE",
        ];
        loop {
            if let Some((_, what)) = KINDS.iter().find(|(words, _)| self.skips(words)) {
                return Some(*what);
            }
            let token = self.tokens.first()?;
            let is_before = BEFORE.iter().any(|word| token.is(self.text, word));
            let is_definer = self.is("DEFINER");
            if !is_before && !self.is_mark(b'=') {
                return None;
            }
            self.skip();
            if is_definer && self.is_mark(b'=') {
                self.skip_account();
            }
        }
    }

    /// Skips `= user@host`, in which the host may be part of the token of the user's `@`.
    fn skip_account(&mut self) {
        self.skip();
        self.skip();
        while let Some(token) = self.tokens.first() {
            if token.kind != Kind::Variable && !matches!(token.kind, Kind::Mark(b'@' | b'(' | b')')) {
                return;
            }
            self.skip();
        }
    }
}

fn inserted(mut words: Words<'_>) -> Option<Effect> {
    let is_short = !["SELECT", "TABLE", "WITH"].iter().any(|word| words.has(word));
    while ["LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "INTO"].iter().any(|word| words.is(word)) {
        words.skip();
    }
    let into = words.object(What::Table)?;
    Some(Effect::Rows { is_short, into: Some(into) })
}

fn created(mut words: Words<'_>) -> Option<Effect> {
    let replaces = words.skips(&["OR", "REPLACE"]);
    let is_user = words.is("USER") || words.is("ROLE");
    if is_user {
        words.skip();
        return words.is("IF").then_some(Effect::Repeatable);
    }
    let mut ahead = words;
    let is_view = ahead.what() == Some(What::Table) && words.has("VIEW") && !words.has("TABLE");
    let what = words.what()?;
    // The rows of a query are not a definition.
    if what == What::Table && !is_view && words.has("SELECT") {
        return None;
    }
    // An event may have run and removed itself before anybody looks.
    if what == What::Event {
        return None;
    }
    if replaces {
        return (what != What::Table || is_view).then_some(Effect::Repeatable);
    }
    if words.skips(&["IF", "NOT", "EXISTS"]) {
        return Some(Effect::Repeatable);
    }
    let object = if what == What::Index { words.index()? } else { words.object(what)? };
    Some(Effect::Objects(vec![Sign { object, appears: true }]))
}

fn dropped(mut words: Words<'_>) -> Option<Effect> {
    if words.is("USER") || words.is("ROLE") {
        words.skip();
        return words.is("IF").then_some(Effect::Repeatable);
    }
    let what = words.what()?;
    if words.skips(&["IF", "EXISTS"]) {
        return Some(Effect::Repeatable);
    }
    let object = if what == What::Index { words.index()? } else { words.object(what)? };
    // Some servers remove several objects one after the other.
    (!words.is_mark(b',')).then(|| Effect::Objects(vec![Sign { object, appears: false }]))
}

fn renamed(mut words: Words<'_>) -> Option<Effect> {
    if !words.skips(&["TABLE"]) && !words.skips(&["TABLES"]) {
        return None;
    }
    let from = words.object(What::Table)?;
    if !words.skips(&["TO"]) {
        return None;
    }
    let to = words.object(What::Table)?;
    words.tokens.is_empty().then(|| replaced(from, to))
}

/// The effect of a statement that gives an object another name.
fn replaced(from: Object, to: Object) -> Effect {
    Effect::Objects(vec![Sign { object: from, appears: false }, Sign { object: to, appears: true }])
}

#[cfg(test)]
mod tests;
