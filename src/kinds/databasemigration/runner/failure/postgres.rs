//! Errors of PostgreSQL.

use std::num::NonZeroU32;

use sqlx::postgres::{PgDatabaseError, PgErrorPosition};

use super::Failure;
use super::named::without_values;
use crate::kinds::databasemigration::result::Class;

/// A failure by its SQLSTATE.
pub(super) fn failure(error: &PgDatabaseError) -> Failure {
    let position = match error.position() {
        Some(PgErrorPosition::Original(position)) => u32::try_from(position).ok().and_then(NonZeroU32::new),
        _ => None,
    };
    let named = Named { constraint: error.constraint(), table: error.table(), column: error.column() };
    let code = error.code();
    let class = class(code);
    Failure {
        sql_state: Some(code.to_owned()),
        is_unanswered: code.starts_with("08") || code.starts_with("57P"),
        position,
        ..Failure::new(class, message(code, error.message(), &named))
    }
}

/// What the server names beside its message.
struct Named<'a> {
    constraint: Option<&'a str>,
    table: Option<&'a str>,
    column: Option<&'a str>,
}

fn class(code: &str) -> Class {
    match code {
        "57P01" | "57P02" | "57P03" | "53300" => Class::Connection,
        "55P03" => Class::LockTimeout,
        "40P01" => Class::Deadlock,
        "40001" => Class::Serialization,
        "25006" => Class::ReadOnly,
        "57014" => Class::StatementTimeout,
        "42501" => Class::Permission,
        "42601" => Class::Syntax,
        _ => match code.get(..2) {
            Some("08") => Class::Connection,
            Some("28") => Class::Authentication,
            Some("23") => Class::Constraint,
            Some("22") => Class::Data,
            _ => Class::Other,
        },
    }
}

fn message(code: &str, said: &str, named: &Named<'_>) -> String {
    let object = [("constraint", named.constraint), ("table", named.table), ("column", named.column)];
    let object = object.into_iter().filter_map(|(what, name)| Some(format!(" {what} {}", name?)));
    let object: Vec<_> = object.collect();
    let object = if object.is_empty() { String::new() } else { format!(":{}", object.join(",")) };
    let own = match code {
        "23505" => Some("a value is there already that has to be unique"),
        "23503" => Some("a foreign key has no counterpart"),
        "23502" => Some("a value is null that must not be"),
        "23514" => Some("a check constraint does not hold"),
        "42601" => Some("syntax error"),
        "P0001" => Some("the script raised an exception"),
        "2D000" => Some("the statement ends its own transaction"),
        "P0004" => Some("an assertion of the script does not hold"),
        _ => match code.get(..2) {
            Some("23") => Some("a constraint does not hold"),
            Some("22") => Some("a value is not one of its type"),
            // About objects, settings, rights and resources: these words name no values but as names.
            Some(
                "08" | "0A" | "25" | "28" | "2B" | "3D" | "3F" | "40" | "42" | "53" | "54" | "55" | "57",
            ) => None,
            _ => Some("the server refused the statement"),
        },
    };
    own.map_or_else(|| without_values(said, '"'), |own| format!("{own}{object}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_may_quote_a_value_are_replaced() {
        let named = Named { constraint: Some("users_email_key"), table: Some("users"), column: None };
        for code in ["23505", "22P02", "42601", "P0001", "XX000", "23514"] {
            let told = message(code, "the server quotes 'a@b.c'", &named);
            assert!(!told.contains("a@b.c"), "{code}: {told}");
            assert!(told.contains("users_email_key"), "{code}: {told}");
        }
        let none = Named { constraint: None, table: None, column: None };
        assert_eq!(message("42P01", "relation \"x\" does not exist", &none), "relation \"x\" does not exist");
    }

    #[test]
    fn a_name_that_may_be_a_value_is_replaced() {
        let none = Named { constraint: None, table: None, column: None };
        let told = message("42703", "column \"a@b.c\" does not exist", &none);
        assert_eq!(told, "column \"[redacted]\" does not exist");
    }

    #[test]
    fn classes_follow_the_sqlstate() {
        for (code, expected) in [
            ("55P03", Class::LockTimeout),
            ("40P01", Class::Deadlock),
            ("40001", Class::Serialization),
            ("25006", Class::ReadOnly),
            ("57P01", Class::Connection),
            ("08006", Class::Connection),
            ("28P01", Class::Authentication),
            ("42P01", Class::Other),
        ] {
            assert_eq!(class(code), expected, "{code}");
        }
    }
}
