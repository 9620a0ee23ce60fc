//! Splits a script of PostgreSQL into its statements, by the rules of the server's scanner (scan.l) and of psql (psqlscan.l).
//!
//! Guarantees: a semicolon ends a statement exactly where it ends one for the server. The exception is a session in which
//! something else than a plain SET has turned `standard_conforming_strings` off.
//! Never: reads what is meant for psql. A command that begins with a backslash, and rows behind COPY FROM STDIN, are refused
//! by name.

use super::{Begun, Cursor, Statement, Token, not_split};

/// The commands of psql that scripts have, by which its backslash is recognized.
const COMMANDS: [&str; 30] = [
    "c",
    "cd",
    "connect",
    "copy",
    "d",
    "du",
    "dt",
    "echo",
    "elif",
    "else",
    "encoding",
    "endif",
    "g",
    "gexec",
    "gset",
    "i",
    "if",
    "include",
    "include_relative",
    "ir",
    "l",
    "o",
    "pset",
    "q",
    "restrict",
    "set",
    "timing",
    "unrestrict",
    "unset",
    "x",
];

/// The statements of a script.
pub(super) fn split(text: &str) -> Result<Vec<Statement>, String> {
    let mut scanner = Scanner { cursor: Cursor::of(text), has_escapes: false };
    // psql ignores the byte order mark, too.
    if text.starts_with('\u{feff}') {
        scanner.cursor.at = '\u{feff}'.len_utf8();
    }
    let (mut statements, mut open) = (Vec::new(), Open::default());
    while let Some((start, token)) = scanner.next()? {
        if token == Token::Semicolon && open.depth == 0 && open.body == Body::None {
            let statement = std::mem::take(&mut open).begun.ended(start);
            if let Some(statement) = &statement {
                scanner.follow(statement);
            }
            statements.extend(statement);
            continue;
        }
        open.take(&mut scanner.cursor, start, token)?;
    }
    if open.depth > 0 || open.body != Body::None {
        let line = open.begun.start.map_or(1, |(_, line)| line);
        let what = if open.depth > 0 { "a parenthesis of the statement" } else { "the body of the routine" };
        return Err(not_split(what, line));
    }
    statements.extend(open.begun.ended(text.trim_end().len()));
    Ok(statements)
}

/// How far a routine is whose body is of SQL: `BEGIN ATOMIC SELECT 1; SELECT 2; END`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Body {
    /// It has none, or it is over.
    #[default]
    None,
    /// A statement of it, or its END, comes next.
    Start,
    /// Within one of its statements.
    Within,
}

/// The word before this place.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Last {
    #[default]
    Else,
    Begin,
    From,
    To,
}

#[derive(Default)]
struct Open {
    begun: Begun,
    /// How many parentheses are open.
    depth: u32,
    body: Body,
    last: Last,
}

impl Open {
    fn take(&mut self, cursor: &mut Cursor<'_>, start: usize, token: Token<'_>) -> Result<(), String> {
        self.begun.add(cursor, start, token);
        let last = std::mem::take(&mut self.last);
        if self.body == Body::Start {
            self.body = Body::Within;
            if matches!(token, Token::Word(word) if word.eq_ignore_ascii_case("END")) {
                self.body = Body::None;
                return Ok(());
            }
        }
        match token {
            Token::Open => self.depth += 1,
            Token::Close => self.depth = self.depth.saturating_sub(1),
            Token::Semicolon if self.depth == 0 => self.body = Body::Start,
            Token::Word(word) if self.depth == 0 => return self.word(cursor, start, word, last),
            Token::Word(_) | Token::Semicolon | Token::Other => {}
        }
        Ok(())
    }

    fn word(&mut self, cursor: &mut Cursor<'_>, start: usize, word: &str, last: Last) -> Result<(), String> {
        let is = |wanted: &str| word.eq_ignore_ascii_case(wanted);
        if last == Last::Begin && is("ATOMIC") && self.is_routine() {
            self.body = Body::Start;
        }
        // The server takes either word in either direction.
        if (is("STDIN") || is("STDOUT")) && self.begun.begins(&["COPY"]) {
            match last {
                Last::From => {
                    return Err(format!(
                        "has COPY FROM STDIN in line {}: only psql reads the rows that follow it; write INSERT \
                         statements (pg_dump --inserts), or COPY from a file of the server",
                        cursor.line_at(start)
                    ));
                }
                Last::To => {
                    return Err(format!(
                        "has COPY TO STDOUT in line {}: gatehouse reads no rows; COPY into a file of the server",
                        cursor.line_at(start)
                    ));
                }
                Last::Else | Last::Begin => {}
            }
        }
        self.last = match () {
            () if is("BEGIN") => Last::Begin,
            () if is("FROM") => Last::From,
            () if is("TO") => Last::To,
            () => Last::Else,
        };
        Ok(())
    }

    fn is_routine(&self) -> bool {
        [&["CREATE", "FUNCTION"][..], &["CREATE", "PROCEDURE"]]
            .iter()
            .chain(&[&["CREATE", "OR", "REPLACE", "FUNCTION"][..], &["CREATE", "OR", "REPLACE", "PROCEDURE"]])
            .any(|words| self.begun.begins(words))
    }
}

struct Scanner<'a> {
    cursor: Cursor<'a>,
    /// Whether a backslash escapes in a string without E: `standard_conforming_strings` is off.
    has_escapes: bool,
}

impl<'a> Scanner<'a> {
    /// What comes next, and where it begins.
    fn next(&mut self) -> Result<Option<(usize, Token<'a>)>, String> {
        self.skip_blank()?;
        if self.cursor.is_at_end() {
            return Ok(None);
        }
        let start = self.cursor.at;
        let first = self.cursor.byte(0);
        self.cursor.at += 1;
        let token = match first {
            b';' => Token::Semicolon,
            b'(' => Token::Open,
            b')' => Token::Close,
            b'\'' => self.string(start, self.has_escapes)?,
            b'"' => {
                if !self.cursor.skip_behind("\"") {
                    return Err(self.unclosed("the quoted name", start));
                }
                Token::Other
            }
            b'$' => self.dollar(start)?,
            b'\\' => return Err(self.command(start)),
            b'0'..=b'9' => {
                self.cursor.skip(|byte| byte.is_ascii_digit());
                Token::Other
            }
            first if begins_name(first) => {
                self.cursor.skip(|byte| begins_name(byte) || byte.is_ascii_digit() || byte == b'$');
                let word = self.cursor.text.get(start..self.cursor.at).unwrap_or_default();
                if word.eq_ignore_ascii_case("E") && self.cursor.byte(0) == b'\'' {
                    self.cursor.at += 1;
                    self.string(start, true)?
                } else {
                    Token::Word(word)
                }
            }
            _ => Token::Other,
        };
        Ok(Some((start, token)))
    }

    fn skip_blank(&mut self) -> Result<(), String> {
        loop {
            match (self.cursor.byte(0), self.cursor.byte(1)) {
                (byte, _) if is_blank(byte) => self.cursor.skip(is_blank),
                (b'-', b'-') => self.cursor.skip(|byte| !is_break(byte)),
                (b'/', b'*') => self.skip_comment()?,
                _ => return Ok(()),
            }
        }
    }

    /// Comments may have comments within.
    fn skip_comment(&mut self) -> Result<(), String> {
        let start = self.cursor.at;
        let mut depth = 0_u32;
        loop {
            match (self.cursor.byte(0), self.cursor.byte(1)) {
                (b'/', b'*') => {
                    depth += 1;
                    self.cursor.at += 2;
                }
                (b'*', b'/') => {
                    depth -= 1;
                    self.cursor.at += 2;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                _ if self.cursor.is_at_end() => return Err(self.unclosed("the comment", start)),
                _ => {
                    self.cursor.at += 1;
                    self.cursor.skip(|byte| byte != b'/' && byte != b'*');
                }
            }
        }
    }

    /// Moves to the end of a string whose quote is open. It may go on in another line: `E'a'` and below it `'b'`.
    fn string(&mut self, start: usize, has_escapes: bool) -> Result<Token<'a>, String> {
        loop {
            self.cursor.skip(|byte| byte != b'\'' && !(has_escapes && byte == b'\\'));
            match (self.cursor.byte(0), self.cursor.byte(1)) {
                (b'\\', _) | (b'\'', b'\'') => {
                    self.cursor.at = (self.cursor.at + 2).min(self.cursor.text.len());
                }
                (b'\'', _) => {
                    self.cursor.at += 1;
                    if !self.goes_on() {
                        return Ok(Token::Other);
                    }
                }
                _ => return Err(self.unclosed("the quoted text", start)),
            }
        }
    }

    /// Moves into the part of a string in a later line; false, and no move, without one.
    fn goes_on(&mut self) -> bool {
        let end = self.cursor.at;
        let mut has_break = false;
        loop {
            match (self.cursor.byte(0), self.cursor.byte(1)) {
                (byte, _) if is_blank(byte) => {
                    has_break |= is_break(byte);
                    self.cursor.at += 1;
                }
                (b'-', b'-') => self.cursor.skip(|byte| !is_break(byte)),
                (b'\'', _) if has_break => {
                    self.cursor.at += 1;
                    return true;
                }
                _ => {
                    self.cursor.at = end;
                    return false;
                }
            }
        }
    }

    /// Moves behind text in dollar quotes, or a parameter's number.
    fn dollar(&mut self, start: usize) -> Result<Token<'a>, String> {
        let begin = self.cursor.at;
        if begins_name(self.cursor.byte(0)) {
            self.cursor.skip(|byte| begins_name(byte) || byte.is_ascii_digit());
        }
        if self.cursor.byte(0) != b'$' {
            self.cursor.at = begin;
            return Ok(Token::Other);
        }
        self.cursor.at += 1;
        let quote = self.cursor.text.get(start..self.cursor.at).unwrap_or_default();
        if self.cursor.skip_behind(quote) {
            Ok(Token::Other)
        } else {
            Err(self.unclosed("the text in dollar quotes", start))
        }
    }

    fn unclosed(&mut self, what: &str, start: usize) -> String {
        not_split(what, self.cursor.line_at(start))
    }

    /// Why a backslash outside of quotes is refused.
    fn command(&mut self, start: usize) -> String {
        let line = self.cursor.line_at(start);
        self.cursor.skip(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        let name = self.cursor.text.get(start + 1..self.cursor.at).unwrap_or_default();
        if COMMANDS.contains(&name) {
            return format!(
                "has \\{name} in line {line}: a command of psql, which the server does not know; remove it"
            );
        }
        format!(
            "has a backslash outside of quotes in line {line}: gatehouse knows no commands of psql; remove it"
        )
    }

    /// Reads what follows a SET as the server will.
    fn follow(&mut self, statement: &Statement) {
        const SETTING: &str = "STANDARD_CONFORMING_STRINGS";
        if !statement.has(SETTING) || !(statement.begins(&["SET"]) || statement.begins(&["RESET"])) {
            return;
        }
        let text = self.cursor.text.get(statement.start..statement.end).unwrap_or_default();
        let value = text.rsplit(['=', ' ', '\t', '\n', '\r']).next().unwrap_or_default();
        let value = value.trim_matches('\'').to_ascii_lowercase();
        self.has_escapes = matches!(value.as_str(), "off" | "false" | "no" | "0" | "f" | "n");
    }
}

const fn is_break(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0b | 0x0c) || is_break(byte)
}

/// Whether a name may begin so; every character beyond ASCII may be of one.
const fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

#[cfg(test)]
mod tests;
