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
        11 => (Class::Other, "the file is damaged"),
        13 => (Class::Other, "the disk is full"),
        14 => (Class::Configuration, "the file cannot be opened"),
        18 => (Class::Data, "a text or a blob is too long"),
        19 if code == COMMIT_HOOK => {
            (Class::Configuration, "the script ended the transaction that it ran in")
        }
        19 if code == DATATYPE => (Class::Data, "a value is not one of its type"),
        19 if code == FOREIGN_KEY => (Class::Constraint, "a foreign key has no counterpart"),
        19 if code == TRIGGER => (Class::Constraint, "a trigger refused the change"),
        19 => (Class::Constraint, "a constraint does not hold"),
        20 => (Class::Data, "a value is not one of its type"),
        26 => (Class::Configuration, "the file is no database"),
        _ if said.ends_with("syntax error") || said == "incomplete input" => (Class::Syntax, "syntax error"),
        _ if said.starts_with("unrecognized token") => (Class::Syntax, "syntax error"),
        1 => return (Class::Other, known(said).unwrap_or_else(|| REFUSED.to_owned())),
        _ => (Class::Other, REFUSED),
    };
    let columns = CONSTRAINTS.iter().find_map(|known| slots(known, said));
    let columns = columns.map(|columns| columns.into_iter().map(listed).collect::<Vec<_>>().join(" "));
    (class, columns.map_or_else(|| own.to_owned(), |columns| format!("{own}: {columns}")))
}

/// What the hook answers that keeps a script in its transaction (SQLITE_CONSTRAINT_COMMITHOOK).
const COMMIT_HOOK: i32 = 531;
/// SQLITE_CONSTRAINT_FOREIGNKEY.
const FOREIGN_KEY: i32 = 787;
/// What RAISE answers (SQLITE_CONSTRAINT_TRIGGER).
const TRIGGER: i32 = 1811;
/// SQLITE_CONSTRAINT_DATATYPE.
const DATATYPE: i32 = 3091;

const REFUSED: &str = "the statement was refused";

/// What names the columns or the name of a constraint.
const CONSTRAINTS: [&str; 4] = [
    "UNIQUE constraint failed: %",
    "NOT NULL constraint failed: %",
    "CHECK constraint failed: %",
    "cannot store % value in % column %",
];

/// What SQLite says of objects and of the form of a statement. A `%` stands for names and numbers.
const KNOWN: &[&str] = &[
    "% values for % columns",
    "% may not be used as a window function",
    "AUTOINCREMENT is only allowed on an INTEGER PRIMARY KEY",
    "Cannot add a NOT NULL column with default value NULL",
    "Cannot add a PRIMARY KEY column",
    "Cannot add a REFERENCES column with non-NULL default value",
    "Cannot add a UNIQUE column",
    "Cannot add a column to a view",
    "Cannot add a column with non-constant default",
    "FOREIGN KEY constraint failed",
    "ON CONFLICT clause does not match any PRIMARY KEY or UNIQUE constraint",
    "PRIMARY KEY missing on table %",
    "SELECTs to the left and right of % do not have the same number of result columns",
    "a GROUP BY clause is required before HAVING",
    "ambiguous column name: %",
    "cannot DETACH database within transaction",
    "cannot INSERT into generated column %",
    "cannot UPDATE generated column %",
    "cannot VACUUM - SQL statements in progress",
    "cannot VACUUM from within a transaction",
    "cannot change into wal mode from within a transaction",
    "cannot change out of wal mode from within a transaction",
    "cannot create % on view",
    "cannot create INSTEAD OF trigger on table: %",
    "cannot create trigger on system table",
    "cannot drop % column: %",
    "cannot drop column %: no other columns exist",
    "cannot drop column from view %",
    "cannot modify % because it is a view",
    "cannot rename columns of view %",
    "cannot start a transaction within a transaction",
    "database % is already in use",
    "database % is locked",
    "default value of column [%] is not constant",
    "duplicate column name: %",
    "error in % % after %: no such column: %",
    "error in % % after %: no such table: %",
    "error in % %: no such column: %",
    "error in % %: no such function: %",
    "error in % %: no such table: %",
    "expected % columns for % but got %",
    "foreign key mismatch - % referencing %",
    "foreign key on % should reference only one column of table %",
    "index % already exists",
    "index associated with UNIQUE or PRIMARY KEY constraint cannot be dropped",
    "misuse of aggregate function %()",
    "misuse of aggregate: %()",
    "misuse of window function %()",
    "no such collation sequence: %",
    "no such column: %",
    "no such column: % - should this be a string literal in single-quotes?",
    "no such database: %",
    "no such function: %",
    "no such index: %",
    "no such module: %",
    "no such savepoint: %",
    "no such table: %",
    "no such trigger: %",
    "no such view: %",
    "no such window: %",
    "no tables specified",
    "non-deterministic use of %() in %",
    "number of columns in foreign key does not match the number of columns in the referenced table",
    "object name reserved for internal use: %",
    "sub-select returns % columns - expected %",
    "table % already exists",
    "table % has % columns but % values were supplied",
    "table % has more than one primary key",
    "table % has no column named %",
    "table % may not be altered",
    "table % may not be dropped",
    "table % may not be modified",
    "there is already a table named %",
    "there is already an index named %",
    "there is already another table or index with this name: %",
    "too many columns on %",
    "too many terms in % BY clause",
    "trigger % already exists",
    "unable to open database: %",
    "unknown column % in foreign key definition",
    "unknown database %",
    "use DROP TABLE to delete table %",
    "use DROP VIEW to delete view %",
    "view % already exists",
    "view % is circularly defined",
    "views may not be indexed",
    "virtual tables may not be altered",
    "virtual tables may not be indexed",
    "wrong number of arguments to function %()",
];

/// A message that is known, with its names if they look like names.
fn known(said: &str) -> Option<String> {
    let mut fitting = KNOWN.iter().filter_map(|known| Some((known, slots(known, said)?)));
    // A longer message of the same begin has more that is not a name.
    let first = fitting.next()?;
    let (known, slots) = fitting.fold(first, |best, one| if one.0.len() > best.0.len() { one } else { best });
    let mut parts = known.split('%');
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for (slot, part) in slots.into_iter().zip(parts) {
        shown += &listed(slot);
        shown += part;
    }
    // What is in quotes was meant as a text.
    Some(shown.trim_end_matches(" - should this be a string literal in single-quotes?").to_owned())
}

/// What stands in place of each `%`; nothing if a text is another message.
fn slots<'a>(known: &str, said: &'a str) -> Option<Vec<&'a str>> {
    let mut parts = known.split('%').peekable();
    let mut rest = said.strip_prefix(parts.next()?)?;
    let mut slots = Vec::new();
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        let end = if is_last { rest.strip_suffix(part)?.len() } else { rest.find(part)? };
        slots.push(&rest[..end]);
        rest = &rest[end + part.len()..];
    }
    rest.is_empty().then_some(slots)
}

/// Names with commas between, each if it looks like a name, or a number.
fn listed(slot: &str) -> String {
    let one = |one: &str| {
        let inner = one.trim_matches('"');
        if inner.bytes().all(|byte| byte.is_ascii_digit()) {
            inner.to_owned()
        } else {
            name(inner).to_owned()
        }
    };
    slot.split(", ").map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_quote_the_script_are_replaced() {
        assert_eq!(told(1, "near \"SELEC\": syntax error"), (Class::Syntax, "syntax error".to_owned()));
        let unique = "a constraint does not hold: users.email, users.name".to_owned();
        let said = "UNIQUE constraint failed: users.email, users.name";
        assert_eq!(told(2067, said), (Class::Constraint, unique));
        let check = told(275, "CHECK constraint failed: email <> 'a@b.c'").1;
        assert_eq!(check, "a constraint does not hold: [redacted]");
        let stored = told(3091, "cannot store TEXT value in INTEGER column a.b");
        assert_eq!(stored.1, "a value is not one of its type: TEXT INTEGER a.b");
        assert_eq!(told(1, "no such table: x").1, "no such table: x");
        let column = "no such column: \"a@b.c\" - should this be a string literal in single-quotes?";
        assert_eq!(told(1, column).1, "no such column: [redacted]");
        assert_eq!(told(1, "no such column: t.email").1, "no such column: t.email");
        assert_eq!(
            told(1, "table a has no column named John Smith").1,
            "table a has no column named [redacted]"
        );
        assert_eq!(told(1, "table a already exists").1, "table a already exists");
        assert_eq!(told(1, "unrecognized token: \"'secret\"").1, "syntax error");
        assert_eq!(told(1, "what no version says: secret").1, "the statement was refused");
        assert_eq!(told(5, "database is locked").0, Class::LockTimeout);
    }

    #[test]
    fn causes_are_named() {
        for said in [
            "no such function: sqrt",
            "cannot VACUUM from within a transaction",
            "table orders has 3 columns but 2 values were supplied",
            "2 values for 3 columns",
            "there is already an index named i",
            "view v already exists",
            "wrong number of arguments to function abs()",
            "ambiguous column name: id",
            "error in view v: no such table: main.a",
            "foreign key mismatch - b referencing a",
        ] {
            assert_eq!(told(1, said), (Class::Other, said.to_owned()));
        }
        assert_eq!(
            told(1, "foreign key mismatch - \"b\" referencing \"a@b.c\"").1,
            "foreign key mismatch - b referencing [redacted]"
        );
        assert_eq!(told(531, "constraint failed").1, "the script ended the transaction that it ran in");
    }
}
