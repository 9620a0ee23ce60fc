//! Splits a script of MySQL or MariaDB as the client of the engine does, and as the server takes statements.
//!
//! Guarantees: the time is linear in the length of the text. Quotes are read in the mode that the session has, and that the
//! script sets. The body of a stored program stays whole, with DELIMITER and without it. A text that is not closed is
//! refused.
//! Assumes: the server refuses two statements in one text, and a statement that is cut off (see `runner/mysql.rs`).

mod blocks;
pub mod effect;
pub mod modes;
pub mod read;
pub mod rules;
pub mod session;
pub mod set;
pub mod tokens;

#[cfg(test)]
mod tests;

use blocks::Blocks;
use modes::Modes;
use set::Follower;
use tokens::{Kind, Lexer, Token, Unclosed};

use super::{Statement, WORDS};
use crate::kinds::databasemigration::api::v1::Engine;

/// The statements of a script, in a session that begins with these modes.
///
/// # Errors
/// Where the text cannot be split.
pub fn split(engine: Engine, text: &str, modes: Modes) -> Result<Vec<Statement>, String> {
    let mut reader = Reader {
        engine,
        text,
        lexer: Lexer::new(engine, text, modes),
        follower: Follower::new(modes),
        open: None,
        statements: Vec::new(),
    };
    reader.read()?;
    Ok(reader.statements)
}

/// A statement whose end is not seen yet.
struct Open {
    start: usize,
    line: u32,
    words: Vec<String>,
    blocks: Blocks,
}

struct Reader<'a> {
    engine: Engine,
    text: &'a str,
    lexer: Lexer<'a>,
    follower: Follower,
    open: Option<Open>,
    statements: Vec<Statement>,
}

impl Reader<'_> {
    fn read(&mut self) -> Result<(), String> {
        while let Some(token) = self.lexer.next(self.open.is_none()).map_err(unclosed)? {
            match token.kind {
                Kind::Delimiter => self.close(token.start)?,
                // What the server runs of a comment goes to it with the rest of the comment.
                Kind::Mark(b';') if self.lexer.hint.is_none() && !self.is_within_program() => {
                    self.close(token.start)?;
                }
                _ if self.sets_delimiter(&token) => {
                    self.close(token.start)?;
                    self.set_delimiter(&token)?;
                }
                _ => self.take(&token),
            }
        }
        self.close(self.text.trim_end().len())
    }

    fn is_within_program(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.blocks.is_open())
    }

    fn take(&mut self, token: &Token) {
        let (hint, oracle) = (self.lexer.hint, self.lexer.modes.oracle);
        let open = self.open.get_or_insert_with(|| {
            let (start, line) = hint.unwrap_or((token.start, token.line));
            Open { start, line, words: Vec::new(), blocks: Blocks::new(oracle) }
        });
        if token.kind == Kind::Word && open.words.len() < WORDS {
            open.words.push(token.text(self.text).to_uppercase());
        }
        open.blocks.take(token, self.text, self.lexer.is_before_colon());
    }

    fn close(&mut self, end: usize) -> Result<(), String> {
        let Some(open) = self.open.take() else { return Ok(()) };
        if open.blocks.is_open() {
            return Err(format!(
                "cannot be split into statements: the END of the statement in line {} is missing",
                open.line
            ));
        }
        let Open { start, line, words, .. } = open;
        if words.first().is_some_and(|word| word == "SET") {
            let statement = self.text.get(start..end).unwrap_or_default();
            self.lexer.modes = self.follower.follow(self.engine, statement);
        }
        self.statements.push(Statement { start, end, line, words });
        Ok(())
    }

    /// Whether the token is the command that sets the delimiter, which is the client's and none of the server's. Within a
    /// statement it is a name, unless it stands on a line of its own and another delimiter is missing before it.
    fn sets_delimiter(&self, token: &Token) -> bool {
        if !token.is(self.text, "DELIMITER") {
            return false;
        }
        if self.open.is_none() {
            return true;
        }
        if !self.lexer.begins_line(token.start) {
            return false;
        }
        let rest = self.lexer.line_ahead();
        let is_mark = |argument: &str| !argument.contains(|one: char| one.is_alphanumeric());
        rest.starts_with([' ', '\t']) && rest.split_whitespace().next().is_some_and(is_mark)
    }

    fn set_delimiter(&mut self, token: &Token) -> Result<(), String> {
        let line = token.line;
        let argument = self.lexer.take_line().trim();
        let argument = match argument.chars().next() {
            Some(quote @ ('\'' | '"' | '`')) => argument[1..].split(quote).next().unwrap_or_default(),
            _ => argument.split_whitespace().next().unwrap_or_default(),
        };
        if argument.is_empty() || argument.contains('\\') {
            return Err(format!(
                "has DELIMITER in line {line} without a delimiter, or with a backslash in it"
            ));
        }
        self.lexer.delimiter = (argument != ";").then(|| argument.to_owned());
        Ok(())
    }
}

fn unclosed(Unclosed { what, line }: Unclosed) -> String {
    format!("cannot be split into statements: the {what} that begins in line {line} is not closed")
}
