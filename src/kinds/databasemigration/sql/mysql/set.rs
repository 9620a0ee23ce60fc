//! The assignments of SET statements, and the `sql_mode` that follows from them.

use std::collections::BTreeMap;

use super::modes::{BITS, Modes};
use super::tokens::{Kind, Lexer, Token};
use crate::kinds::databasemigration::api::v1::Engine;

/// Follows what SET does to the `sql_mode`, also by variables, as dumps restore it.
#[derive(Clone, Debug)]
pub struct Follower {
    first: Modes,
    now: Modes,
    variables: BTreeMap<String, Modes>,
}

impl Follower {
    /// In a session that begins with these.
    #[must_use]
    pub const fn new(first: Modes) -> Self {
        Self { first, now: first, variables: BTreeMap::new() }
    }

    /// The modes after a SET statement.
    pub fn follow(&mut self, engine: Engine, statement: &str) -> Modes {
        for assignment in assignments(engine, statement, self.now) {
            let Some(value) = self.value(statement, &assignment.value) else { continue };
            match &assignment.target {
                Target::User(name) => {
                    self.variables.insert(name.clone(), value);
                }
                Target::Session(name) if name == "SQL_MODE" => self.now = value,
                Target::Session(_) | Target::Elsewhere(_) => {}
            }
        }
        self.now
    }

    /// The modes that an expression stands for, where it says any.
    fn value(&self, text: &str, tokens: &[Token]) -> Option<Modes> {
        let first = tokens.first()?;
        if tokens.len() == 1 && matches!(first.kind, Kind::Word | Kind::Name) {
            return Some(self.named(text, first));
        }
        let mut texts = tokens.iter().filter(|token| token.kind == Kind::Text);
        let mut modes = Modes::default();
        for token in tokens.iter().filter(|token| token.kind == Kind::Variable) {
            let name = token.text(text).to_ascii_uppercase();
            let known = if name == "@@GLOBAL.SQL_MODE" {
                Some(self.first)
            } else if name.ends_with("SQL_MODE") && name.starts_with("@@") {
                Some(self.now)
            } else {
                self.variables.get(&name).copied()
            };
            modes = modes.with(known.unwrap_or_default());
        }
        let of = |token: &Token| Modes::of(token.text(text).trim_matches(['\'', '"']));
        if tokens.iter().any(|token| token.is(text, "REPLACE")) {
            modes = texts.next().map_or(modes, |replaced| modes.without(of(replaced)));
        }
        Some(texts.fold(modes, |modes, token| modes.with(of(token))))
    }

    /// The modes of one word: a number, or a name without the quotes of a string.
    fn named(&self, text: &str, token: &Token) -> Modes {
        let word = token.text(text).trim_matches(['`', '"']);
        if token.is(text, "DEFAULT") {
            return self.first;
        }
        match word.parse::<u64>() {
            Ok(number) => {
                let set = BITS.iter().filter(|(bits, _)| number & bits != 0);
                set.fold(Modes::default(), |modes, (_, of)| modes.with(*of))
            }
            Err(_) => Modes::of(word),
        }
    }
}

/// What SET gives a value to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A variable of the user, with its `@`, in capitals.
    User(String),
    /// A variable of the session, in capitals.
    Session(String),
    /// A variable of the server, or another thing that is not the session's.
    Elsewhere(String),
}

/// One of the assignments of a SET statement.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// What gets the value.
    pub target: Target,
    /// The value.
    pub value: Vec<Token>,
}

/// The assignments of a SET statement; none for SET NAMES and the like, and none for SET STATEMENT, which ends with its
/// statement.
#[must_use]
pub fn assignments(engine: Engine, statement: &str, modes: Modes) -> Vec<Assignment> {
    let mut lexer = Lexer::new(engine, statement, modes);
    let (mut parts, mut parens) = (vec![Vec::new()], 0_u32);
    while let Ok(Some(token)) = lexer.next(false) {
        match token.kind {
            Kind::Mark(b'(') => parens += 1,
            Kind::Mark(b')') => parens = parens.saturating_sub(1),
            Kind::Mark(b',') if parens == 0 => {
                parts.push(Vec::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = parts.last_mut() {
            last.push(token);
        }
    }
    if parts[0].get(1).is_some_and(|token| token.is(statement, "STATEMENT")) {
        return Vec::new();
    }
    parts.iter().filter_map(|part| assignment(statement, part)).collect()
}

fn assignment(statement: &str, part: &[Token]) -> Option<Assignment> {
    let at = part.iter().position(|token| token.kind == Kind::Mark(b'='))?;
    let (before, value) = (&part[..at], part[at + 1..].to_vec());
    let named: Vec<_> = before.iter().filter(|token| token.kind != Kind::Mark(b':')).collect();
    let last = named.last()?;
    let name = last.text(statement).to_ascii_uppercase().replace(['`', '\'', '"'], "");
    let is_of = |scope: &str| named.iter().any(|token| token.is(statement, scope));
    let elsewhere = ["GLOBAL", "PERSIST", "PERSIST_ONLY"];
    let target = if last.kind == Kind::Variable && !name.starts_with("@@") {
        Target::User(name)
    } else {
        let scoped = name.trim_start_matches('@').to_owned();
        let (scope, bare) = scoped.rsplit_once('.').unwrap_or(("", &scoped));
        if elsewhere.contains(&scope) || elsewhere.iter().any(|scope| is_of(scope)) {
            Target::Elsewhere(bare.to_owned())
        } else {
            Target::Session(bare.to_owned())
        }
    };
    Some(Assignment { target, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_modes_are_followed_through_what_dumps_write() {
        let mut follower = Follower::new(Modes::default());
        let ansi = Modes { ansi_quotes: true, ..Modes::default() };
        let plain = Modes { no_backslash_escapes: true, ..Modes::default() };
        for (statement, expected) in [
            ("SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='ANSI_QUOTES'", ansi),
            ("SET GLOBAL sql_mode = 'NO_BACKSLASH_ESCAPES'", ansi),
            ("SET SQL_MODE=@OLD_SQL_MODE", Modes::default()),
            ("/*!50003 SET sql_mode = 'STRICT_TRANS_TABLES,ANSI' */", ansi),
            ("SET SESSION sql_mode = ''", Modes::default()),
            ("SET @@session.sql_mode := CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPES')", plain),
            ("SET sql_mode = REPLACE(@@sql_mode, 'NO_BACKSLASH_ESCAPES', '')", Modes::default()),
            ("SET @m = 'ANSI_QUOTES'", Modes::default()),
            ("SET @@sql_mode = @m", ansi),
            ("SET sql_mode = DEFAULT", Modes::default()),
            ("SET sql_mode = 1048576", plain),
            ("SET sql_mode = ANSI_QUOTES", ansi),
            ("SET STATEMENT sql_mode = 'NO_BACKSLASH_ESCAPES', max_statement_time = 1 FOR SELECT 1", ansi),
            ("SET SESSION sql_mode = \"NO_BACKSLASH_ESCAPES\"", plain),
            ("SET sql_mode = `ansi`", ansi),
            ("SET sql_mode = @@GLOBAL.sql_mode", Modes::default()),
            ("SET @@sql_mode := ORACLE", Modes { oracle: true, ..ansi }),
            ("SET sql_mode = PIPES_AS_CONCAT", Modes::default()),
            ("SET sql_mode = 262144", ansi),
            ("SET sql_mode = NO_BACKSLASH_ESCAPES", plain),
            ("SET NAMES utf8mb4", plain),
        ] {
            assert_eq!(follower.follow(Engine::MariaDB, statement), expected, "{statement}");
        }
        assert!(Modes::of("REAL_AS_FLOAT,ORACLE").oracle);
    }
}
