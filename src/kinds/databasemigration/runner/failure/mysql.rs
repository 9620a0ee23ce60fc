//! Errors of MySQL and MariaDB. Both have the numbers in common up to 1999; later ones are each its own.

use super::named::{name, without_values};
use super::{Failure, unanswered, with_line};
use crate::kinds::databasemigration::result::Class;
use crate::kinds::databasemigration::runner::mysql::Error;

/// A failure by its number.
pub(super) fn failure(error: &Error) -> Failure {
    let (number, state, said) = match error {
        Error::Refused { number, state, message } => (*number, state.clone(), message.as_str()),
        Error::Broken(_) | Error::Unreadable => return unanswered(error.to_string()),
        Error::Tls(why) => {
            return Failure::new(Class::Tls, format!("failed to encrypt the connection: {why}"));
        }
        Error::WantsEncryption => return Failure::new(Class::Tls, error.to_string()),
        Error::Plugin(_) => return Failure::new(Class::Authentication, error.to_string()),
    };
    Failure {
        sql_state: state,
        number: Some(number),
        is_unanswered: matches!(number, 1053 | 1927 | 2006 | 2013),
        ..Failure::new(class(number, said), message(number, said))
    }
}

/// The class of an error by which a server lets no session begin. Once one has begun, the same numbers are of a statement.
pub(super) fn class_of_entry(error: &Error) -> Option<Class> {
    match error {
        // The user, its password, its host, its account, or its right to the database.
        Error::Refused { number: 1044 | 1045 | 1129 | 1130 | 1698 | 1862 | 3118 | 3159 | 4151, .. } => {
            Some(Class::Authentication)
        }
        _ => None,
    }
}

/// Whether the number says of a statement that it did nothing at all, whatever its tables can take back.
pub(in super::super) const fn did_nothing(number: u16) -> bool {
    matches!(
        number,
        1044 | 1045
            | 1046
            | 1049
            | 1051
            | 1054
            | 1064
            | 1109
            | 1136
            | 1142
            | 1143
            | 1146
            | 1149
            | 1227
            | 1305
            | 1318
            | 1370
    )
}

/// Whether the number says that a text cannot be read, whatever the database has.
pub(in super::super) const fn is_of_text(number: u16) -> bool {
    matches!(
        number,
        1064 | 1149 | 1193 | 1308..=1310 | 1313 | 1314 | 1319..=1324 | 1327 | 1330..=1333 | 1337 | 1338 | 1407 | 1413
    )
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
        1044 | 1045 | 1142 | 1143 | 1227 | 1370 | 1410 | 1419 | 1698 => Class::Permission,
        1064 | 1149 => Class::Syntax,
        1317 | 1907 | 1969 | 3024 => Class::StatementTimeout,
        1022 | 1048 | 1062 | 1169 | 1216 | 1217 | 1364 | 1451 | 1452 | 3819 | 4025 => Class::Constraint,
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
        1048 => format!("{} and must not be", without_values(said, '\'').replace(" cannot be", " is")),
        1005 => not_created(said),
        1217 | 1451 => foreign_key("other rows refer to the row that would go", said),
        1216 | 1452 => foreign_key("the row refers to one that is not there", said),
        1153 => "the statement is longer than max_allowed_packet of the server".to_owned(),
        3819 | 4025 => "a check constraint does not hold".to_owned(),
        1264 | 1265 | 1292 | 1366 | 1406 => "a value is not one of its type".to_owned(),
        1317 | 1969 | 3024 => "the statement was ended before it was done".to_owned(),
        _ if names_objects(number) => without_values(said, '\''),
        _ => format!("the server refused the statement, error {number}"),
    }
}

/// Whether the message of an error is about objects, rights and resources: its words name no values but as names.
#[rustfmt::skip]
const fn names_objects(number: u16) -> bool {
    matches!(
        number,
        1006..=1010 | 1017 | 1020 | 1040 | 1044..=1046 | 1049..=1051 | 1054 | 1060 | 1061 | 1063
        | 1067..=1075 | 1089 | 1091 | 1100 | 1101 | 1103 | 1109 | 1113 | 1115 | 1118 | 1136 | 1142
        | 1143 | 1146 | 1170 | 1171 | 1205 | 1213 | 1215 | 1226 | 1227 | 1235 | 1239 | 1243 | 1253
        | 1267 | 1273 | 1286 | 1293 | 1294 | 1304 | 1305 | 1318 | 1347 | 1356 | 1359 | 1360 | 1364
        | 1370 | 1396 | 1419 | 1553 | 1568 | 1698 | 1824 | 1826 | 1828..=1833 | 1846 | 3730 | 3780
        | 4031
    )
}

/// A foreign key by its name and its table, where the server says them.
fn foreign_key(what: &str, said: &str) -> String {
    let quoted: Vec<_> = said.split('`').skip(1).step_by(2).collect();
    let table = said.split_once('(').map_or("", |(_, rest)| rest);
    let table = table.split(", CONSTRAINT").next().unwrap_or_default().replace('`', "");
    let key = said.split_once("CONSTRAINT `").and_then(|(_, rest)| rest.split('`').next());
    match key.filter(|_| quoted.len() > 2) {
        Some(key) => format!("{what}: foreign key {} of {}", name(key), name(&table)),
        None => format!("{what}: a foreign key"),
    }
}

/// A table that cannot be created, with the reason that MariaDB has as a number of its storage engine.
fn not_created(said: &str) -> String {
    let table = said.split_once("table ").and_then(|(_, rest)| rest.split(" (errno").next());
    let table = table.unwrap_or_default().replace(['`', '\''], "");
    let number = said.split_once("errno: ").map(|(_, rest)| rest);
    let number: String = number.unwrap_or_default().chars().take_while(char::is_ascii_digit).collect();
    let why = match number.as_str() {
        "121" => "a constraint of that name is there already".to_owned(),
        "150" => "a foreign key is not formed correctly: its columns and those that it refers to need the same types, and those \
                  an index"
            .to_owned(),
        number => format!("errno {number}"),
    };
    format!("the table {} cannot be created: {why}", name(&table))
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
        assert_eq!(message(1048, "Column 'a' cannot be null"), "Column 'a' is null and must not be");
        assert_eq!(message(1644, "raised 'x'"), "the server refused the statement, error 1644");
        assert_eq!(message(1146, "Table 'a.b' doesn't exist"), "Table 'a.b' doesn't exist");
        let limited = "User 'app' has exceeded the 'max_user_connections' resource (current value: 1)";
        assert_eq!((class(1226, limited), &*message(1226, limited)), (Class::Connection, limited));
        let told = message(1054, "Unknown column 'a@b.c' in 'field list'");
        assert_eq!(told, "Unknown column '[redacted]' in 'field list'");
    }

    #[test]
    fn what_is_met_most_is_in_words() {
        let key = "(`shop`.`child`, CONSTRAINT `fk_p` FOREIGN KEY (`p`) REFERENCES `parent` (`id`))";
        for (number, said, shown) in [
            (
                1451,
                format!("Cannot delete or update a parent row: a foreign key constraint fails {key}"),
                "other rows refer to the row that would go: foreign key fk_p of shop.child",
            ),
            (
                1452,
                format!("Cannot add or update a child row: a foreign key constraint fails {key}"),
                "the row refers to one that is not there: foreign key fk_p of shop.child",
            ),
            (1217, "Cannot delete".to_owned(), "other rows refer to the row that would go: a foreign key"),
            (
                1005,
                "Can't create table `shop`.`child` (errno: 150 \"Foreign key constraint is incorrectly formed\")".to_owned(),
                "the table shop.child cannot be created: a foreign key is not formed correctly: its columns and those that it \
                 refers to need the same types, and those an index",
            ),
            (1364, "Field 'a' doesn't have a default value".to_owned(), "Field 'a' doesn't have a default value"),
            (
                1136,
                "Column count doesn't match value count at row 1".to_owned(),
                "Column count doesn't match value count at row 1",
            ),
            (1067, "Invalid default value for 'a'".to_owned(), "Invalid default value for 'a'"),
            (1273, "Unknown collation: 'utf8mb4_0900_ai_ci'".to_owned(), "Unknown collation: 'utf8mb4_0900_ai_ci'"),
            (
                1833,
                "Cannot change column 'a': used in a foreign key constraint 'fk' of table 'shop.b'".to_owned(),
                "Cannot change column 'a': used in a foreign key constraint 'fk' of table 'shop.b'",
            ),
            (
                3780,
                "Referencing column 'a' and referenced column 'b' in foreign key constraint 'c' are incompatible.".to_owned(),
                "Referencing column 'a' and referenced column 'b' in foreign key constraint 'c' are incompatible.",
            ),
            (
                3730,
                "Cannot drop table 'a' referenced by a foreign key constraint 'b' on table 'c'.".to_owned(),
                "Cannot drop table 'a' referenced by a foreign key constraint 'b' on table 'c'.",
            ),
        ] {
            assert_eq!(message(number, &said), shown);
        }
    }

    #[test]
    fn a_right_that_lacks_is_of_the_script_once_a_session_has_begun() {
        for number in [1044, 1045, 1698] {
            let error = Error::Refused { number, state: None, message: String::new() };
            assert_eq!(failure(&error).class, Class::Permission);
            assert_eq!(class_of_entry(&error), Some(Class::Authentication));
        }
        let error = Error::Refused { number: 1049, state: None, message: String::new() };
        assert_eq!(class_of_entry(&error), None);
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
