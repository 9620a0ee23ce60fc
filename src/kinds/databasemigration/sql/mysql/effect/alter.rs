//! What ALTER makes and removes. Pure.
//!
//! Guarantees: a clause that is not known leaves the whole statement without an effect, because that clause may bring back
//! what another clause removes.

use super::{Effect, Object, Sign, What, Words, replaced};
use crate::kinds::databasemigration::sql::mysql::tokens::Kind;

/// A clause of ALTER TABLE.
enum Clause {
    /// The clause makes and removes objects; `is_conditional`: with IF EXISTS or IF NOT EXISTS.
    Objects { signs: Vec<(What, String, bool)>, is_conditional: bool },
    /// The clause makes an index or a constraint to which the server gives a name.
    Unnamed,
    /// The clause leaves the same if it runs once more.
    Repeatable,
    /// The clause renames the table.
    Renamed(Option<String>, String),
}

/// First words of clauses that leave the same if they run once more.
const REPEATABLE: [&str; 32] = [
    "ALGORITHM",
    "ALTER",
    "AUTO_INCREMENT",
    "AVG_ROW_LENGTH",
    "CHARACTER",
    "CHARSET",
    "CHECKSUM",
    "COLLATE",
    "COMMENT",
    "COMPRESSION",
    "CONVERT",
    "DEFAULT",
    "DELAY_KEY_WRITE",
    "DISABLE",
    "ENABLE",
    "ENCRYPTION",
    "ENGINE",
    "FORCE",
    "INSERT_METHOD",
    "KEY_BLOCK_SIZE",
    "LOCK",
    "MAX_ROWS",
    "MIN_ROWS",
    "MODIFY",
    "ORDER",
    "PACK_KEYS",
    "PAGE_COMPRESSED",
    "ROW_FORMAT",
    "STATS_AUTO_RECALC",
    "STATS_PERSISTENT",
    "STATS_SAMPLE_PAGES",
    "TABLESPACE",
];

pub(super) fn altered(mut words: Words<'_>) -> Option<Effect> {
    let mut of_database = words;
    match of_database.what()? {
        What::Table if words.has("VIEW") && !words.has("TABLE") => return Some(Effect::Repeatable),
        What::Table => {}
        What::Procedure | What::Function | What::Database => return Some(Effect::Repeatable),
        _ => return None,
    }
    let is_table =
        words.skips(&["TABLE"]) || words.skips(&["ONLINE", "TABLE"]) || words.skips(&["IGNORE", "TABLE"]);
    if !is_table {
        return None;
    }
    let is_conditional_table = words.skips(&["IF", "EXISTS"]);
    let (schema, table) = words.qualified()?;
    if words.skips(&["WAIT"]) {
        words.skip();
    }
    words.skips(&["NOWAIT"]);
    let clauses: Option<Vec<_>> = parts(words).into_iter().map(clause).collect();
    let clauses = clauses?;
    if clauses.iter().any(|clause| matches!(clause, Clause::Renamed(..))) {
        return renamed(schema, table, &clauses);
    }
    let has_unnamed = clauses.iter().any(|clause| matches!(clause, Clause::Unnamed));
    let may_repeat = |clause: &Clause| match clause {
        Clause::Objects { is_conditional, .. } => *is_conditional,
        Clause::Repeatable => true,
        Clause::Unnamed | Clause::Renamed(..) => false,
    };
    if clauses.iter().all(may_repeat) {
        return Some(Effect::Repeatable);
    }
    let signs: Vec<_> = clauses
        .into_iter()
        .flat_map(|clause| match clause {
            Clause::Objects { signs, .. } => signs,
            Clause::Unnamed | Clause::Repeatable | Clause::Renamed(..) => Vec::new(),
        })
        .collect();
    let is_named = |what: What| matches!(what, What::Index | What::Constraint);
    if is_conditional_table
        || signs.is_empty()
        || has_unnamed && signs.iter().any(|(what, ..)| is_named(*what))
    {
        return None;
    }
    let sign = |(what, name, appears)| Sign {
        object: Object { what, schema: schema.clone(), table: Some(table.clone()), name },
        appears,
    };
    Some(Effect::Objects(signs.into_iter().map(sign).collect()))
}

fn renamed(schema: Option<String>, table: String, clauses: &[Clause]) -> Option<Effect> {
    let [Clause::Renamed(to_schema, to)] = clauses else { return None };
    let object =
        |schema: Option<String>, name: String| Object { what: What::Table, schema, table: None, name };
    let to = object(to_schema.clone().or_else(|| schema.clone()), to.clone());
    let from = object(schema, table);
    Some(replaced(from, to))
}

/// The parts of a list that commas outside of parentheses divide.
fn parts(words: Words<'_>) -> Vec<Words<'_>> {
    let mut depth = 0_u32;
    let parts = words.tokens.split(|token| {
        match token.kind {
            Kind::Mark(b'(') => depth += 1,
            Kind::Mark(b')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && token.kind == Kind::Mark(b',')
    });
    parts.map(|tokens| Words { text: words.text, tokens }).collect()
}

fn clause(mut words: Words<'_>) -> Option<Clause> {
    if words.has("PARTITION") || words.has("PARTITIONS") || words.has("PARTITIONING") {
        return None;
    }
    if words.skips(&["ADD"]) {
        return added(words);
    }
    if words.skips(&["DROP"]) {
        return removed(words);
    }
    if words.skips(&["CHANGE"]) {
        words.skips(&["COLUMN"]);
        words.skips(&["IF", "EXISTS"]);
        let (from, to) = (words.name()?, words.name()?);
        return Some(moved(What::Column, from, to));
    }
    if words.skips(&["RENAME"]) {
        return renames(words);
    }
    REPEATABLE.iter().any(|word| words.is(word)).then_some(Clause::Repeatable)
}

/// A name that becomes another one. Two such clauses, run again, may bring both back.
fn moved(what: What, from: String, to: String) -> Clause {
    if from.eq_ignore_ascii_case(&to) {
        return Clause::Repeatable;
    }
    Clause::Objects { signs: vec![(what, from, false), (what, to, true)], is_conditional: false }
}

fn renames(mut words: Words<'_>) -> Option<Clause> {
    let what = if words.skips(&["COLUMN"]) {
        What::Column
    } else if words.skips(&["INDEX"]) || words.skips(&["KEY"]) {
        What::Index
    } else {
        let _is_there = words.skips(&["TO"]) || words.skips(&["AS"]);
        let (schema, table) = words.qualified()?;
        return Some(Clause::Renamed(schema, table));
    };
    words.skips(&["IF", "EXISTS"]);
    let from = words.name()?;
    let to = words.skips(&["TO"]).then(|| words.name())??;
    Some(moved(what, from, to))
}

fn added(mut words: Words<'_>) -> Option<Clause> {
    const OTHERS: [&str; 5] = ["PERIOD", "SYSTEM", "VECTOR", "PARTITION", "TABLE"];
    if OTHERS.iter().any(|word| words.is(word)) {
        return None;
    }
    if words.skips(&["CONSTRAINT"]) {
        return constrained(words);
    }
    if words.skips(&["PRIMARY", "KEY"]) {
        return Some(single(What::Index, "PRIMARY".to_owned(), true, false));
    }
    if words.skips(&["FOREIGN", "KEY"]) || words.is("CHECK") {
        return Some(Clause::Unnamed);
    }
    let is_index = ["UNIQUE", "FULLTEXT", "SPATIAL"].iter().any(|word| words.skips(&[word]));
    let is_index = words.skips(&["INDEX"]) || words.skips(&["KEY"]) || is_index;
    if !is_index {
        words.skips(&["COLUMN"]);
    }
    let is_conditional = words.skips(&["IF", "NOT", "EXISTS"]);
    match is_index {
        true if words.is_mark(b'(') || words.is("USING") => Some(Clause::Unnamed),
        true => Some(single(What::Index, words.name()?, true, is_conditional)),
        false if words.is_mark(b'(') => columns(words, is_conditional),
        false => Some(single(What::Column, words.name()?, true, is_conditional)),
    }
}

/// Columns in parentheses, without an index among them.
fn columns(words: Words<'_>, is_conditional: bool) -> Option<Clause> {
    const OTHERS: [&str; 9] =
        ["CHECK", "CONSTRAINT", "FOREIGN", "FULLTEXT", "INDEX", "KEY", "PRIMARY", "SPATIAL", "UNIQUE"];
    let (first, last) = (words.tokens.first()?, words.tokens.last()?);
    if first.kind != Kind::Mark(b'(') || last.kind != Kind::Mark(b')') {
        return None;
    }
    let inner = Words { text: words.text, tokens: words.tokens.get(1..words.tokens.len() - 1)? };
    let column = |mut part: Words<'_>| {
        let is_other = OTHERS.iter().any(|word| part.is(word));
        part.name().filter(|_| !is_other).map(|name| (What::Column, name, true))
    };
    let signs: Option<Vec<_>> = parts(inner).into_iter().map(column).collect();
    Some(Clause::Objects { signs: signs?, is_conditional })
}

fn constrained(mut words: Words<'_>) -> Option<Clause> {
    let is_conditional = words.skips(&["IF", "NOT", "EXISTS"]);
    let is_kind =
        |words: &Words<'_>| ["PRIMARY", "UNIQUE", "FOREIGN", "CHECK"].iter().any(|word| words.is(word));
    let name = if is_kind(&words) { None } else { Some(words.name()?) };
    if words.skips(&["PRIMARY", "KEY"]) {
        return Some(single(What::Index, "PRIMARY".to_owned(), true, is_conditional));
    }
    if words.skips(&["UNIQUE"]) {
        let _is_named_so = words.skips(&["INDEX"]) || words.skips(&["KEY"]);
        // Which of two names an index gets is the server's.
        let has_other_name = !words.is_mark(b'(') && !words.is("USING");
        return match name {
            Some(_) if has_other_name => None,
            Some(name) => Some(single(What::Index, name, true, is_conditional)),
            None => Some(Clause::Unnamed),
        };
    }
    if !is_kind(&words) {
        return None;
    }
    Some(name.map_or(Clause::Unnamed, |name| single(What::Constraint, name, true, is_conditional)))
}

fn removed(mut words: Words<'_>) -> Option<Clause> {
    if words.skips(&["PRIMARY", "KEY"]) {
        return Some(single(What::Index, "PRIMARY".to_owned(), false, false));
    }
    if words.is("PERIOD") || words.is("SYSTEM") {
        return None;
    }
    let what = if words.skips(&["FOREIGN", "KEY"]) || words.skips(&["CONSTRAINT"]) || words.skips(&["CHECK"])
    {
        What::Constraint
    } else if words.skips(&["INDEX"]) || words.skips(&["KEY"]) {
        What::Index
    } else {
        words.skips(&["COLUMN"]);
        What::Column
    };
    let is_conditional = words.skips(&["IF", "EXISTS"]);
    Some(single(what, words.name()?, false, is_conditional))
}

fn single(what: What, name: String, appears: bool, is_conditional: bool) -> Clause {
    Clause::Objects { signs: vec![(what, name, appears)], is_conditional }
}
