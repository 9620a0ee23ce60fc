//! Splits a script of MySQL or MariaDB into its statements.

use sqlparser::dialect::MySqlDialect;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Whitespace};

use super::{Statement, WORDS};

/// The statements of a script.
///
/// # Errors
/// Where the text cannot be split.
pub(super) fn split(text: &str) -> Result<Vec<Statement>, String> {
    let mut tokenizer = Tokenizer::new(&MySqlDialect {}, text).with_unescape(false);
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
                if comment.starts_with('!') || comment.starts_with("M!") =>
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

    fn texts(text: &str) -> Vec<&str> {
        split(text).unwrap().iter().map(|one| &text[one.start..one.end]).collect()
    }

    #[test]
    fn the_body_of_a_stored_program_stays_whole() {
        let text = "CREATE PROCEDURE p()\nBEGIN\n IF 1 THEN SELECT CASE WHEN 1 THEN 2 END; END IF;\n\
                    CASE 1 WHEN 1 THEN SELECT 1; END CASE;\n WHILE 0 DO SELECT 1; END WHILE;\nEND;\nSELECT 2";
        assert_eq!(texts(text).len(), 2, "{:?}", texts(text));
    }

    #[test]
    fn a_table_with_the_names_of_programs_and_blocks_is_no_program() {
        let text = "CREATE TABLE event (begin datetime, `end` datetime);\nINSERT INTO event VALUES (1, 2);\nSELECT 1";
        assert_eq!(texts(text).len(), 3, "{:?}", texts(text));
        let text = "CREATE DEFINER = root@localhost EVENT e ON SCHEDULE EVERY 1 DAY DO BEGIN SELECT 1; SELECT 2; END; SELECT 3";
        assert_eq!(texts(text).len(), 2, "{:?}", texts(text));
    }

    #[test]
    fn what_the_server_runs_in_a_comment_counts() {
        for text in ["/*!40101 SET a = 1 */", "/*!SET a = 1 */", "/*M!100100 SET a = 1 */"] {
            assert_eq!(texts(&format!("SELECT 1; {text};\nSELECT 2")), ["SELECT 1", text, "SELECT 2"]);
        }
        assert_eq!(split("/* SET a = 1 */;").unwrap().len(), 0);
    }
}
