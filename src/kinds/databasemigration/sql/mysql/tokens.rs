//! The tokens of a script of MySQL or MariaDB.
//!
//! Guarantees: each byte is read once, so that the time is linear in the length of the text. A quote and a comment end
//! where the server ends them, in the mode that counts at that place.

use super::modes::Modes;
use crate::kinds::databasemigration::api::v1::Engine;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A word or a number, without quotes.
    Word,
    /// A name in quotes.
    Name,
    /// A string.
    Text,
    /// A variable, with its `@`.
    Variable,
    /// Another byte.
    Mark(u8),
    /// The delimiter that the script has set.
    Delimiter,
}

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Where it begins, in bytes.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// The line that it begins on, from 1 on.
    pub line: u32,
    /// It follows a dot, so that a word is a name and no keyword.
    pub is_qualified: bool,
}

impl Token {
    /// Its text.
    #[must_use]
    pub fn text<'a>(&self, text: &'a str) -> &'a str {
        text.get(self.start..self.end).unwrap_or_default()
    }

    /// Whether it is that keyword.
    #[must_use]
    pub fn is(&self, text: &str, word: &str) -> bool {
        self.kind == Kind::Word && !self.is_qualified && self.text(text).eq_ignore_ascii_case(word)
    }
}

/// A quote or a comment that is not closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unclosed {
    /// What is not closed.
    pub what: &'static str,
    /// The line that it begins on.
    pub line: u32,
}

/// Reads tokens.
#[derive(Clone, Debug)]
pub struct Lexer<'a> {
    text: &'a str,
    /// The next byte.
    at: usize,
    line: u32,
    engine: Engine,
    /// How quotes are read.
    pub modes: Modes,
    /// The delimiter, where it is not the semicolon.
    pub delimiter: Option<String>,
    /// Where the comment begins that the server runs, and its line, while one is open.
    pub hint: Option<(usize, u32)>,
    is_after_dot: bool,
    is_after_as: bool,
}

impl<'a> Lexer<'a> {
    /// At the beginning of a text.
    #[must_use]
    pub const fn new(engine: Engine, text: &'a str, modes: Modes) -> Self {
        Self {
            text,
            at: 0,
            line: 1,
            engine,
            modes,
            delimiter: None,
            hint: None,
            is_after_dot: false,
            is_after_as: false,
        }
    }

    /// The next token.
    ///
    /// # Errors
    /// A quote or a comment is not closed.
    pub fn next(&mut self, is_between: bool) -> Result<Option<Token>, Unclosed> {
        self.skip_blanks(is_between)?;
        let Some(first) = self.byte(0) else {
            return match self.hint {
                Some((_, line)) => Err(Unclosed { what: "comment", line }),
                None => Ok(None),
            };
        };
        let (start, line) = (self.at, self.line);
        let is_qualified = std::mem::take(&mut self.is_after_dot);
        let is_after_as = std::mem::take(&mut self.is_after_as);
        let kind = match first {
            _ if self.is_at_delimiter() => {
                self.skip(self.delimiter.as_ref().map_or(0, String::len));
                Kind::Delimiter
            }
            b'$' if is_after_as && self.skip_dollars()? => Kind::Text,
            _ if is_inner(first) => {
                self.word();
                self.is_after_as = self.text[start..self.at].eq_ignore_ascii_case("AS");
                Kind::Word
            }
            b'\'' | b'"' | b'`' => self.quoted(first)?,
            b'@' => self.variable()?,
            first => {
                self.skip(1);
                self.is_after_dot = first == b'.';
                Kind::Mark(first)
            }
        };
        Ok(Some(Token { kind, start, end: self.at, line, is_qualified }))
    }

    /// Whether a single colon follows, as behind a label.
    #[must_use]
    pub fn is_before_colon(&self) -> bool {
        let rest = self.rest().trim_start();
        rest.starts_with(':') && !rest.starts_with(":=")
    }

    /// Whether only blanks stand before a place on its line.
    #[must_use]
    pub fn begins_line(&self, at: usize) -> bool {
        let before = self.text.get(..at).unwrap_or_default().as_bytes();
        let mut before = before.iter().rev().take_while(|byte| **byte != b'\n');
        before.all(u8::is_ascii_whitespace)
    }

    /// The rest of the line, which is skipped.
    pub fn take_line(&mut self) -> &'a str {
        let text = self.text;
        let rest = text.get(self.at..).unwrap_or_default();
        let line = rest.split('\n').next().unwrap_or_default();
        self.at += line.len();
        line
    }

    /// The rest of the line.
    #[must_use]
    pub fn line_ahead(&self) -> &str {
        self.rest().split('\n').next().unwrap_or_default()
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    /// Skips bytes, of which no line break is missed.
    fn skip(&mut self, bytes: usize) {
        let end = (self.at + bytes).min(self.text.len());
        for byte in &self.text.as_bytes()[self.at..end] {
            self.line = self.line.saturating_add(u32::from(*byte == b'\n'));
        }
        self.at = end;
    }

    fn starts_with(&self, prefix: &str) -> bool {
        self.text.as_bytes().get(self.at..).is_some_and(|rest| rest.starts_with(prefix.as_bytes()))
    }

    fn is_at_delimiter(&self) -> bool {
        self.delimiter.as_deref().is_some_and(|delimiter| self.starts_with(delimiter))
    }

    /// Skips blanks and comments. Between two statements a line may be a comment that begins with `--` and no blank, as
    /// for the client of the engine.
    fn skip_blanks(&mut self, is_between: bool) -> Result<(), Unclosed> {
        while let Some(byte) = self.byte(0) {
            if byte.is_ascii_whitespace() || byte == 0x0b {
                self.skip(1);
            } else if self.is_at_delimiter() {
                return Ok(());
            } else if byte == b'#' || self.starts_with("--") && (is_between || self.is_dashed()) {
                self.take_line();
            } else if self.starts_with("/*") {
                self.comment()?;
            } else if self.hint.is_some() && self.starts_with("*/") {
                self.skip(2);
                self.hint = None;
            } else {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Whether two dashes begin a comment: a blank, a control character or the end follows.
    fn is_dashed(&self) -> bool {
        self.byte(2).is_none_or(|byte| byte.is_ascii_whitespace() || byte.is_ascii_control())
    }

    /// A comment, of which only the opening is skipped where the server runs the text in it.
    fn comment(&mut self) -> Result<(), Unclosed> {
        let (start, line) = (self.at, self.line);
        if self.hint.is_none()
            && let Some(opening) = self.executed()
        {
            self.skip(opening);
            self.hint = Some((start, line));
            return Ok(());
        }
        let is_versioned = self.starts_with("/*!") || self.starts_with("/*M!");
        self.skip(2);
        let mut nested = 0;
        while self.byte(0).is_some() {
            if self.starts_with("*/") {
                self.skip(2);
                if nested == 0 {
                    return Ok(());
                }
                nested -= 1;
            } else if is_versioned && self.starts_with("/*") {
                self.skip(2);
                nested += 1;
            } else {
                self.skip(1);
            }
        }
        Err(Unclosed { what: "comment", line })
    }

    /// The length of the opening of a comment whose text the server runs. Servers of which the versions are 99 and more do
    /// not exist: such a comment is for a program that reads the script.
    fn executed(&self) -> Option<usize> {
        let is_maria = self.engine == Engine::MariaDB;
        let (opening, is_marked) = match self.text.as_bytes().get(self.at..)? {
            [b'/', b'*', b'!', ..] => (3, false),
            [b'/', b'*', b'M', b'!', ..] if is_maria => (4, true),
            _ => return None,
        };
        let digits = self.rest().get(opening..).unwrap_or_default().bytes();
        let digits = digits.take(6).take_while(u8::is_ascii_digit).count();
        let digits = if digits < 5 { 0 } else { digits };
        let version = self.rest().get(opening..opening + digits).unwrap_or_default();
        let runs = version.parse::<u32>().map_or(true, |version| {
            if is_maria {
                version < 990_000 && (is_marked || !(50_700..=99_999).contains(&version))
            } else {
                version < 99_000
            }
        });
        runs.then_some(opening + digits)
    }

    fn word(&mut self) {
        while self.byte(0).is_some_and(is_inner) && !self.is_at_delimiter() {
            self.at += 1;
        }
    }

    fn quoted(&mut self, quote: u8) -> Result<Kind, Unclosed> {
        let line = self.line;
        let is_name = quote == b'`' || quote == b'"' && self.modes.ansi_quotes;
        let escapes = !is_name && !self.modes.no_backslash_escapes;
        self.skip(1);
        while let Some(byte) = self.byte(0) {
            if byte == b'\\' && escapes || byte == quote && self.byte(1) == Some(quote) {
                self.skip(2);
            } else if byte == quote {
                self.skip(1);
                return Ok(if is_name { Kind::Name } else { Kind::Text });
            } else {
                self.skip(1);
            }
        }
        Err(Unclosed { what: "quote", line })
    }

    /// `@name`, `@'name'`, `@@session.name`, and the host of a user.
    fn variable(&mut self) -> Result<Kind, Unclosed> {
        self.skip(1);
        if self.byte(0) == Some(b'@') {
            self.skip(1);
        }
        if let Some(quote @ (b'\'' | b'"' | b'`')) = self.byte(0) {
            self.quoted(quote)?;
            return Ok(Kind::Variable);
        }
        while self.byte(0).is_some_and(|byte| is_inner(byte) || byte == b'.') && !self.is_at_delimiter() {
            self.at += 1;
        }
        // `@@session.`sql_mode``
        if self.text[..self.at].ends_with('.') && self.byte(0) == Some(b'`') {
            self.quoted(b'`')?;
        }
        Ok(Kind::Variable)
    }

    /// A text between dollars, as MySQL has it for programs in other languages.
    fn skip_dollars(&mut self) -> Result<bool, Unclosed> {
        let line = self.line;
        let rest = self.rest();
        let Some(tag) = rest[1..].find('$').map(|end| &rest[..end + 2]) else { return Ok(false) };
        if self.engine != Engine::MySQL || !tag.bytes().all(is_inner) {
            return Ok(false);
        }
        let Some(end) = rest[tag.len()..].find(tag) else { return Err(Unclosed { what: "quote", line }) };
        let length = tag.len() + end + tag.len();
        self.skip(length);
        Ok(true)
    }
}

/// Whether a byte is one of a word: letters, digits, `_`, `$`, and all of other scripts.
const fn is_inner(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}
