//! Errors of SQLite.

use sqlx::error::DatabaseError as _;
use sqlx::sqlite::SqliteError;

use super::Failure;
use super::named::name;
use crate::kinds::databasemigration::result::Class;

/// A failure by its result code. SQLite has no SQLSTATE.
pub(super) fn failure(error: &SqliteError) -> Failure {
    let code = error.code().and_then(|code| code.parse().ok()).unwrap_or(1);
    let (class, message) = told(code, error.message());
    Failure::new(class, message)
}

fn told(code: i32, said: &str) -> (Class, String) {
    // The lower byte is the primary result code.
    let (class, own) = match code & 0xff {
        5 | 6 => (Class::LockTimeout, "the database is locked"),
        8 => (Class::Permission, "the database is read-only"),
        9 => (Class::StatementTimeout, "the statement was ended before it was done"),
        10 => (Class::Connection, "the file cannot be read or written"),
        13 => (Class::Other, "the disk is full"),
        14 => (Class::Configuration, "the file cannot be opened"),
        19 => (Class::Constraint, "a constraint does not hold"),
        20 => (Class::Data, "a value is not one of its type"),
        26 => (Class::Configuration, "the file is no database"),
        _ if said.ends_with("syntax error") => (Class::Syntax, "syntax error"),
        1 => return (Class::Other, about_objects(said).unwrap_or_else(|| REFUSED.to_owned())),
        _ => (Class::Other, REFUSED),
    };
    let names_columns = ["UNIQUE constraint failed: ", "NOT NULL constraint failed: "];
    let columns = names_columns.iter().find_map(|prefix| said.strip_prefix(prefix));
    (class, columns.map_or_else(|| own.to_owned(), |columns| format!("{own}: {columns}")))
}

const REFUSED: &str = "the statement was refused";

/// Messages about objects, with their names where they look like names.
fn about_objects(said: &str) -> Option<String> {
    let begins = ["no such table: ", "no such column: ", "no such index: ", "duplicate column name: "];
    if let Some((begin, rest)) = begins.iter().find_map(|begin| Some((begin, said.strip_prefix(begin)?))) {
        // What is in quotes is followed by advice.
        let named = rest.split_once(" - should this be").map_or(rest, |(named, _)| named);
        return Some(format!("{begin}{}", name(named.trim_matches('"'))));
    }
    for begin in ["table ", "index "] {
        let Some(rest) = said.strip_prefix(begin) else { continue };
        if let Some(named) = rest.strip_suffix(" already exists") {
            return Some(format!("{begin}{} already exists", name(named)));
        }
        if let Some((table, column)) = rest.split_once(" has no column named ") {
            return Some(format!("{begin}{} has no column named {}", name(table), name(column)));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_quote_the_script_are_replaced() {
        assert_eq!(told(1, "near \"SELEC\": syntax error"), (Class::Syntax, "syntax error".to_owned()));
        let unique = "a constraint does not hold: users.email".to_owned();
        assert_eq!(told(2067, "UNIQUE constraint failed: users.email"), (Class::Constraint, unique));
        assert_eq!(told(1, "no such table: x").1, "no such table: x");
        let column = "no such column: \"a@b.c\" - should this be a string literal in single-quotes?";
        assert_eq!(told(1, column).1, "no such column: [redacted]");
        assert_eq!(told(1, "no such column: t.email").1, "no such column: t.email");
        assert_eq!(
            told(1, "table a has no column named John Smith").1,
            "table a has no column named [redacted]"
        );
        assert_eq!(told(1, "table a already exists").1, "table a already exists");
        assert_eq!(told(1, "unrecognized token: \"'secret\"").1, "the statement was refused");
        assert_eq!(told(5, "database is locked").0, Class::LockTimeout);
    }
}
