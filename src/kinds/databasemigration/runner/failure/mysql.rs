//! Errors of MySQL and MariaDB. Both have the numbers in common up to 1999; later ones are each its own.

use sqlx::mysql::MySqlDatabaseError;

use super::named::without_values;
use super::{Failure, with_line};
use crate::kinds::databasemigration::result::Class;

/// A failure by its number.
pub(super) fn failure(error: &MySqlDatabaseError) -> Failure {
    let number = error.number();
    Failure {
        sql_state: error.code().map(str::to_owned),
        is_unanswered: matches!(number, 1053 | 1927 | 2006 | 2013),
        ..Failure::new(class(number, error.message()), message(number, error.message()))
    }
}

/// Whether the server takes no writes for now. By the first of these numbers it names whatever option keeps it from a
/// statement.
fn is_read_only(number: u16, said: &str) -> bool {
    number == 1836 || number == 1290 && said.contains("read-only")
}

fn class(number: u16, said: &str) -> Class {
    match number {
        _ if is_read_only(number, said) => Class::ReadOnly,
        1205 | 3572 => Class::LockTimeout,
        1213 => Class::Deadlock,
        1020 => Class::Serialization,
        // With 1226 the user has reached a limit of its account, which holds for a time.
        1040 | 1053 | 1203 | 1226 | 1927 | 2002 | 2006 | 2013 => Class::Connection,
        1044 | 1045 | 1698 => Class::Authentication,
        1142 | 1143 | 1227 | 1370 => Class::Permission,
        1064 | 1149 => Class::Syntax,
        1317 | 1907 | 1969 | 3024 => Class::StatementTimeout,
        1022 | 1048 | 1062 | 1169 | 1216 | 1217 | 1451 | 1452 | 3819 | 4025 => Class::Constraint,
        1264 | 1265 | 1292 | 1366 | 1406 => Class::Data,
        _ => Class::Other,
    }
}

fn message(number: u16, said: &str) -> String {
    match number {
        _ if is_read_only(number, said) => "the server takes no writes: it is read-only".to_owned(),
        1064 | 1149 => with_line("syntax error", line(said)),
        1022 | 1062 => {
            let key = said.rsplit_once(" for key ").map(|(_, key)| key.trim_matches('\''));
            let what = "a value is there already that has to be unique";
            key.map_or_else(|| what.to_owned(), |key| format!("{what}: key {key}"))
        }
        1048 => "a value is null that must not be".to_owned(),
        1216 | 1217 | 1451 | 1452 => "a foreign key has no counterpart".to_owned(),
        3819 | 4025 => "a check constraint does not hold".to_owned(),
        1264 | 1265 | 1292 | 1366 | 1406 => "a value is not one of its type".to_owned(),
        1317 | 1969 | 3024 => "the statement was ended before it was done".to_owned(),
        // About objects, rights and resources: these words name no values but as names.
        1005..=1010
        | 1017
        | 1020
        | 1040
        | 1044..=1046
        | 1049..=1051
        | 1054
        | 1060
        | 1061
        | 1068..=1075
        | 1091
        | 1100
        | 1101
        | 1103
        | 1109
        | 1113
        | 1118
        | 1142
        | 1143
        | 1146
        | 1170
        | 1205
        | 1213
        | 1215
        | 1226
        | 1227
        | 1304
        | 1305
        | 1359
        | 1360
        | 1370
        | 1553
        | 1698 => without_values(said, '\''),
        _ => format!("the server refused the statement, error {number}"),
    }
}

/// The line that a message ends with.
fn line(said: &str) -> Option<u32> {
    said.rsplit_once(" at line ").and_then(|(_, line)| line.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_quote_a_value_are_replaced() {
        assert_eq!(
            message(1062, "Duplicate entry 'a@b.c' for key 'email'"),
            "a value is there already that has to be unique: key email"
        );
        let told = message(1064, "You have an error in your SQL syntax … near 'SELEC secret' at line 3");
        assert_eq!(told, "syntax error in line 3");
        assert_eq!(message(1366, "Incorrect integer value: 'x'"), "a value is not one of its type");
        assert_eq!(message(1644, "raised 'x'"), "the server refused the statement, error 1644");
        assert_eq!(message(1146, "Table 'a.b' doesn't exist"), "Table 'a.b' doesn't exist");
        let limited = "User 'app' has exceeded the 'max_user_connections' resource (current value: 1)";
        assert_eq!((class(1226, limited), &*message(1226, limited)), (Class::Connection, limited));
        let told = message(1054, "Unknown column 'a@b.c' in 'field list'");
        assert_eq!(told, "Unknown column '[redacted]' in 'field list'");
    }

    #[test]
    fn a_server_that_takes_no_writes_is_distinguished_from_one_that_forbids_a_statement() {
        let by = |option: &str| {
            class(
                1290,
                &format!(
                    "The server is running with the {option} option so it cannot execute this statement"
                ),
            )
        };
        assert_eq!([by("--read-only"), by("--super-read-only")], [Class::ReadOnly; 2]);
        assert_eq!(by("--secure-file-priv"), Class::Other);
        assert_eq!(class(1836, "Running in read-only mode"), Class::ReadOnly);
        assert_eq!(class(1792, "Cannot execute statement in a READ ONLY transaction"), Class::Other);
    }
}
