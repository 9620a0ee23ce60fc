//! An SQL script apart from its statements: how its text is encoded, and what it says to other tools in its comments. Pure.
//!
//! Guarantees: takes time in proportion to the text, whatever the text is. A message has no word of the text.
//! Never: reads a statement, so that a text counts whatever its engine is.

use std::fmt;

use super::checksum::checksum;

/// The byte order mark.
const MARK: char = '\u{feff}';

/// The longest beginning of a comment that is looked at.
const LONGEST_COMMENT: usize = 120;

/// A text without the byte order mark before it.
#[must_use]
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix(MARK).unwrap_or(text)
}

/// The text of a file, without a byte order mark.
///
/// # Errors
/// Why the file is no script: the rest of a sentence that begins with the file's name.
pub fn decoded(bytes: &[u8]) -> Result<&str, String> {
    let line = |at: usize| bytes[..at].split(|byte| *byte == b'\n').count();
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err("is encoded in UTF-16: save it in UTF-8".to_owned());
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        format!("is not encoded in UTF-8, as line {} shows: save it in UTF-8", line(error.valid_up_to()))
    })?;
    if let Some(at) = text.find('\0') {
        return Err(format!("has a NUL in line {}, as a text in UTF-16 has: save it in UTF-8", line(at)));
    }
    let without = without_mark(text);
    let follows_end = |at: &usize| without[..*at].trim_end_matches([' ', '\t', '\r']).ends_with(['\n', ';']);
    let joined = without.match_indices(MARK).map(|(at, _)| at).find(follows_end);
    match joined {
        Some(at) => Err(format!(
            "has a byte order mark in line {}, as files have that were joined: delete the mark",
            line(at + text.len() - without.len())
        )),
        None => Ok(without),
    }
}

/// Whether a checksum is of this text, with or without a byte order mark before it.
#[must_use]
pub fn is_of(text: &str, sum: &str) -> bool {
    let text = without_mark(text);
    checksum(text.as_bytes()) == sum || checksum(format!("{MARK}{text}").as_bytes()) == sum
}

/// Whether a checksum is of this text with the line ends of another system.
#[must_use]
pub fn is_of_other_line_ends(text: &str, sum: &str) -> bool {
    let lines = text.replace("\r\n", "\n");
    is_of(&lines, sum) || is_of(&lines.replace('\n', "\r\n"), sum)
}

/// A comment by which a script tells another tool what to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directive {
    /// The tool.
    pub tool: &'static str,
    /// The beginning of the comment, in the words of the tool.
    pub marker: &'static str,
    /// Its line, from 1 on.
    pub line: usize,
    remedy: &'static str,
}

impl fmt::Display for Directive {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tool, marker, line, remedy } = self;
        write!(formatter, "has {marker:?} of {tool} in line {line}, which gatehouse does not read: {remedy}")
    }
}

const SECTIONS: &str = "all sections would run; put the statements that take the script back into a down script, and delete \
                        the lines of the tool";
const CHANGESETS: &str = "put each changeset into a script of its own, and delete the lines of the tool";
const DIRECTIVES: &str = "do in the script what the line asks for, and delete the line";

/// Beginnings of comments in small letters, each with its tool and what to do.
const KNOWN: [(&str, &str, &str); 15] = [
    ("+goose", "goose", SECTIONS),
    ("+migrate", "sql-migrate", SECTIONS),
    ("migrate:up", "dbmate", SECTIONS),
    ("migrate:down", "dbmate", SECTIONS),
    ("rambler up", "rambler", SECTIONS),
    ("rambler down", "rambler", SECTIONS),
    ("create above / drop below", "tern", SECTIONS),
    ("@undo", "MyBatis Migrations", SECTIONS),
    ("!ups", "Play evolutions", SECTIONS),
    ("!downs", "Play evolutions", SECTIONS),
    ("liquibase formatted sql", "Liquibase", CHANGESETS),
    ("changeset ", "Liquibase", CHANGESETS),
    ("atlas:txtar", "Atlas", SECTIONS),
    ("atlas:checkpoint", "Atlas", DIRECTIVES),
    ("atlas:delimiter", "Atlas", DIRECTIVES),
];

/// Comments that are headings and nothing else, in several tools and by hand.
const UP: [&str; 4] = ["up", "up migration", "migrate up", "migration up"];
/// Their counterparts.
const DOWN: [&str; 6] = ["down", "down migration", "migrate down", "migration down", "undo", "rollback"];

/// The first comment by which a text tells another tool what to run.
#[must_use]
pub fn directive(text: &str) -> Option<Directive> {
    let mut headings = Headings::default();
    for (line, number) in without_mark(text).lines().zip(1..) {
        let Some(comment) = comment(line) else {
            headings.pass(line);
            continue;
        };
        if let Some((marker, tool, remedy)) = KNOWN.into_iter().find(|(marker, ..)| begins(&comment, marker))
        {
            return Some(Directive { tool, marker: marker.trim_end(), line: number, remedy });
        }
        headings.read(&comment, number);
    }
    let line = headings.sections()?;
    Some(Directive { tool: "another tool", marker: "Down", line, remedy: SECTIONS })
}

fn begins(comment: &str, marker: &str) -> bool {
    let Some(rest) = comment.strip_prefix(marker) else { return false };
    // A changeset is called author:id.
    let is_changeset = |rest: &str| {
        let name = rest.split_whitespace().next().unwrap_or_default();
        name.split_once(':').is_some_and(|(author, id)| !author.is_empty() && !id.is_empty())
    };
    if marker.ends_with(' ') {
        is_changeset(rest)
    } else {
        !rest.starts_with(|next: char| next.is_alphanumeric())
    }
}

/// A line that is a comment, in small letters and without what frames it.
fn comment(line: &str) -> Option<String> {
    let line = line.trim_start();
    if !line.starts_with("--") && !line.starts_with('#') {
        return None;
    }
    let is_frame = |one: char| one.is_whitespace() || matches!(one, '-' | '#' | '/' | '=' | '*' | '[' | ']');
    let begun = line.trim_start_matches(is_frame);
    let cut: String = begun.chars().take(LONGEST_COMMENT).collect();
    Some(cut.trim_end_matches(is_frame).to_lowercase())
}

/// Headings of sections: a comment with the word alone may mean anything, and counts beside its counterpart.
#[derive(Default)]
struct Headings {
    has_up: bool,
    down: Option<usize>,
    has_statements: bool,
}

impl Headings {
    /// A line that is no comment.
    fn pass(&mut self, line: &str) {
        self.has_statements |= self.down.is_some() && !line.trim().is_empty();
    }

    fn read(&mut self, comment: &str, line: usize) {
        let words = comment.trim_start_matches(['+', '@', '!']).trim_end_matches(':');
        self.has_up |= UP.contains(&words);
        if self.down.is_none() && DOWN.contains(&words) {
            self.down = Some(line);
        }
    }

    fn sections(self) -> Option<usize> {
        self.down.filter(|_| self.has_up && self.has_statements)
    }
}

/// The line of the first placeholder `${name}`, which other tools replace.
#[must_use]
pub fn placeholder(text: &str) -> Option<usize> {
    let is_name = |one: char| one.is_alphanumeric() || matches!(one, '_' | '.' | ':' | '-');
    let is_placeholder = |at: &usize| {
        let inner = text[at + 2..].split('}').next().unwrap_or_default();
        !inner.is_empty() && inner.len() < text.len() - at - 2 && inner.chars().all(is_name)
    };
    let at = text.match_indices("${").map(|(at, _)| at).find(is_placeholder)?;
    Some(text[..at].matches('\n').count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_file_has_no_mark_and_is_utf_8() {
        assert_eq!(decoded(b"\xef\xbb\xbfSELECT 1"), Ok("SELECT 1"));
        assert_eq!(decoded("SELECT '\u{feff}'".as_bytes()), Ok("SELECT '\u{feff}'"), "a value");
        for (bytes, part) in [
            (&b"\xff\xfeS\0E\0"[..], "UTF-16"),
            (b"\xfe\xff\0S\0E", "UTF-16"),
            (b"S\0E\0L\0", "NUL in line 1"),
            (b"SELECT 1;\n\nSELECT 'caf\xe9'", "line 3"),
            (b"\xef\xbb\xbfSELECT 1;\n\xef\xbb\xbfCOMMIT", "byte order mark in line 2"),
            (b"SELECT 1; \xef\xbb\xbfCOMMIT", "byte order mark in line 1"),
        ] {
            let error = decoded(bytes).unwrap_err();
            assert!(error.contains(part) && !error.contains("caf"), "{error}");
        }
    }

    #[test]
    fn a_checksum_counts_with_and_without_the_mark_and_line_ends_are_recognized() {
        let (bare, marked) = ("SELECT 1;\nSELECT 2\n", "\u{feff}SELECT 1;\nSELECT 2\n");
        for text in [bare, marked] {
            for sum in [checksum(bare.as_bytes()), checksum(marked.as_bytes())] {
                assert!(is_of(text, &sum));
            }
        }
        let other = "SELECT 1;\r\nSELECT 2\r\n";
        assert!(!is_of(bare, &checksum(other.as_bytes())));
        for (text, sum) in [(bare, other), (other, bare), (other, marked), ("SELECT 1;\nSELECT 2\r\n", bare)]
        {
            assert!(is_of_other_line_ends(text, &checksum(sum.as_bytes())), "{text:?}");
        }
        assert!(!is_of_other_line_ends(bare, &checksum(b"SELECT 1;\nSELECT 3\n")));
    }

    #[test]
    fn what_a_script_says_to_another_tool_is_found_with_its_line() {
        for (text, tool, line) in [
            ("-- +goose Up\nCREATE TABLE a (b int);\n-- +goose Down\nDROP TABLE a;", "goose", 1),
            ("\u{feff}--+goose NO TRANSACTION", "goose", 1),
            ("CREATE TABLE a (b int);\r\n  -- +GOOSE DOWN\r\nDROP TABLE a;", "goose", 2),
            ("-- +migrate Up notransaction", "sql-migrate", 1),
            ("-- migrate:up transaction:false", "dbmate", 1),
            ("SELECT 1;\n\n--migrate:down\nSELECT 2", "dbmate", 3),
            ("-- rambler up", "rambler", 1),
            ("SELECT 1;\n---- create above / drop below ----\nSELECT 2", "tern", 2),
            ("SELECT 1;\n--//@UNDO\nSELECT 2", "MyBatis Migrations", 2),
            ("# --- !Ups\nSELECT 1;\n# --- !Downs\nSELECT 2", "Play evolutions", 1),
            ("--liquibase formatted sql", "Liquibase", 1),
            ("-- changeset me:1 dbms:postgresql", "Liquibase", 1),
            ("-- atlas:txtar\n\n-- migration.sql --\nSELECT 1", "Atlas", 1),
            ("-- atlas:delimiter \\n\\n", "Atlas", 1),
            ("-- Up Migration\nSELECT 1;\n-- Down Migration\nSELECT 2", "another tool", 3),
            ("-- ==== UP ====\nSELECT 1;\n-- ==== DOWN ====\nSELECT 2", "another tool", 3),
            ("-- Down:\nSELECT 2;\n-- Up:\nSELECT 1", "another tool", 1),
        ] {
            let found = directive(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((found.tool, found.line), (tool, line), "{text}");
        }
    }

    #[test]
    fn what_is_said_to_people_is_no_directive() {
        for text in [
            "-- goose is a tool with +goose Up\nSELECT 1",
            "-- migrate:upwards of the old table",
            "-- changeset of May: orders",
            "-- down\nSELECT 1",
            "-- Up\nSELECT 1;\n-- Down\n-- DROP TABLE a;\n",
            "-- rollback is not possible\n-- up to here\nSELECT 1",
            "-- atlas:nolint\nDROP TABLE a",
            "INSERT INTO a VALUES ('-- +goose Down')",
        ] {
            assert_eq!(directive(text), None, "{text}");
        }
    }

    #[test]
    fn a_placeholder_is_found_with_its_line() {
        assert_eq!(placeholder("SELECT 1;\nCREATE TABLE ${schema}.a (b int)"), Some(2));
        assert_eq!(placeholder("SELECT '${flyway:defaultSchema}'"), Some(1));
        for text in ["SELECT '${}'", "SELECT '${a b}'", "SELECT '${open", "SELECT $1, '$a'"] {
            assert_eq!(placeholder(text), None, "{text}");
        }
    }
}
