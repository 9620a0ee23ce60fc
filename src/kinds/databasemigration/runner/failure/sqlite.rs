//! What SQLite says failed.

use sqlx::error::DatabaseError as _;
use sqlx::sqlite::SqliteError;

use super::Failure;
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
        1 if is_about_objects(said) => return (Class::Other, said.to_owned()),
        _ => (Class::Other, "the statement was refused"),
    };
    let names_columns = ["UNIQUE constraint failed: ", "NOT NULL constraint failed: "];
    let columns = names_columns.iter().find_map(|prefix| said.strip_prefix(prefix));
    (class, columns.map_or_else(|| own.to_owned(), |columns| format!("{own}: {columns}")))
}

fn is_about_objects(said: &str) -> bool {
    let begins = ["no such table", "no such column", "no such index", "table ", "index ", "duplicate column"];
    begins.iter().any(|begin| said.starts_with(begin))
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
        assert_eq!(told(1, "unrecognized token: \"'secret\"").1, "the statement was refused");
        assert_eq!(told(5, "database is locked").0, Class::LockTimeout);
    }
}
