//! Errors of a run, in messages that reveal no data.
//!
//! Guarantees: no text of a script, no value of a row, no user name and no password is in a message. Messages of
//! servers are passed on where they name only objects of the schema; where they may quote a value (data, constraints,
//! syntax, what a program raises), the class and the object's name replace them, and a name is shown where it looks
//! like one, since a value in the wrong quotes is taken for a name. DETAIL, HINT and CONTEXT are never
//! read.

pub(super) mod mysql;
mod named;
mod postgres;
mod sqlite;

use std::num::NonZeroU32;

use sqlx::Error;
use sqlx::postgres::PgDatabaseError;
use sqlx::sqlite::SqliteError;

use super::super::result::{Class, LastError};

/// A failure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What kind it is.
    pub class: Class,
    /// The SQLSTATE that the server answered.
    pub sql_state: Option<String>,
    /// The number of the error, where the server is MySQL or MariaDB.
    pub number: Option<u16>,
    /// What it is.
    pub message: String,
    /// The script.
    pub id: Option<String>,
    /// Its statement, from 1 on.
    pub statement: Option<u32>,
    /// Nothing says whether the server did what was asked.
    pub is_unanswered: bool,
    /// The character of the statement that it is about, from 1 on.
    pub position: Option<NonZeroU32>,
}

impl Failure {
    /// A failure that is of no statement.
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        Self {
            class,
            sql_state: None,
            number: None,
            message: message.into(),
            id: None,
            statement: None,
            is_unanswered: false,
            position: None,
        }
    }

    /// The same, of that script.
    #[must_use]
    pub fn of(mut self, id: &str) -> Self {
        self.id.get_or_insert_with(|| id.to_owned());
        self
    }

    /// The same, of that statement.
    #[must_use]
    pub fn at(mut self, statement: u32) -> Self {
        self.statement.get_or_insert(statement);
        self
    }

    /// As it is reported.
    #[must_use]
    pub fn report(&self) -> LastError {
        LastError {
            id: self.id.clone(),
            statement: self.statement,
            sql_state: self.sql_state.clone(),
            class: self.class,
            message: self.message.clone(),
        }
    }
}

/// What is never shown.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    user: String,
    password: String,
}

/// What stands in its place.
const REDACTED: &str = "[redacted]";

impl Secrets {
    /// These.
    #[must_use]
    pub fn of(user: &str, password: &str) -> Self {
        Self { user: user.to_owned(), password: password.to_owned() }
    }

    /// A text without them. A user name counts where it is a word of its own, the password wherever it is.
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        let text =
            if self.password.is_empty() { text.to_owned() } else { text.replace(&self.password, REDACTED) };
        if self.user.is_empty() {
            return text;
        }
        let is_inner = |one: char| one.is_alphanumeric() || one == '_';
        let (mut shown, mut rest) = (String::new(), text.as_str());
        while let Some(at) = rest.find(&self.user) {
            let (before, after) = (&rest[..at], &rest[at + self.user.len()..]);
            let is_word = !before.ends_with(is_inner) && !after.starts_with(is_inner);
            shown.push_str(before);
            shown.push_str(if is_word { REDACTED } else { &self.user });
            rest = after;
        }
        shown + rest
    }

    /// What a library says failed.
    #[must_use]
    pub fn failure(&self, error: &Error) -> Failure {
        let failure = match error {
            Error::Database(error) => {
                if let Some(error) = error.try_downcast_ref::<PgDatabaseError>() {
                    postgres::failure(error)
                } else if let Some(error) = error.try_downcast_ref::<SqliteError>() {
                    sqlite::failure(error)
                } else {
                    Failure::new(Class::Other, "the server refused the statement")
                }
            }
            // What a handshake refuses comes so, too, and no other try ends otherwise.
            Error::Io(error) if is_of_tls(error) => {
                Failure::new(Class::Tls, format!("failed to encrypt the connection: {error}"))
            }
            Error::Io(error) => unanswered(format!("the connection broke off: {error}")),
            Error::Tls(error) => {
                Failure::new(Class::Tls, format!("failed to encrypt the connection: {error}"))
            }
            Error::Configuration(error) => Failure::new(Class::Configuration, error.to_string()),
            Error::Protocol(_) | Error::WorkerCrashed => {
                unanswered("the connection broke off: the answer was not understood".to_owned())
            }
            _ => Failure::new(Class::Other, "the answer of the server was not understood"),
        };
        Failure { message: self.redact(&failure.message), ..failure }
    }

    /// What a session of MySQL or MariaDB answered.
    pub(super) fn refused(&self, error: &super::mysql::Error) -> Failure {
        let failure = mysql::failure(error);
        Failure { message: self.redact(&failure.message), ..failure }
    }

    /// Why MySQL or MariaDB let no session begin.
    pub(super) fn not_let_in(&self, error: &super::mysql::Error) -> Failure {
        let failure = self.refused(error);
        Failure { class: mysql::class_of_entry(error).unwrap_or(failure.class), ..failure }
    }
}

fn is_of_tls(error: &std::io::Error) -> bool {
    error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<rustls::Error>)
}

fn unanswered(message: String) -> Failure {
    Failure { is_unanswered: true, ..Failure::new(Class::Connection, message) }
}

/// A failure of a statement whose message names the line of the script that it is about. `first` is the line on which the
/// statement begins.
#[must_use]
pub fn lined(mut failure: Failure, statement: &str, first: u32) -> Failure {
    let place = failure.position.take().map_or(1, NonZeroU32::get);
    let before = statement.chars().take(usize::try_from(place - 1).unwrap_or_default());
    let further = u32::try_from(before.filter(|one| *one == '\n').count()).unwrap_or_default();
    failure.message = with_line(&failure.message, Some(first.saturating_add(further)));
    failure
}

/// A message with the place that it is about.
fn with_line(message: &str, line: Option<u32>) -> String {
    line.map_or_else(|| message.to_owned(), |line| format!("{message} in line {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_becomes_its_line() {
        let failure = Failure { position: NonZeroU32::new(6), ..Failure::new(Class::Syntax, "syntax error") };
        assert_eq!(lined(failure, "\u{fc}1,\n\nX", 4).message, "syntax error in line 6");
        assert_eq!(lined(Failure::new(Class::Other, "else"), "a\nb", 4).message, "else in line 4");
    }

    #[test]
    fn neither_user_nor_password_is_shown() {
        let secrets = Secrets::of("app", "p@:/%'\"");
        let told = "password p@:/%'\" of user \"app\" on application app_x 'app'@'host'";
        let expected = "password [redacted] of user \"[redacted]\" on application app_x '[redacted]'@'host'";
        assert_eq!(secrets.redact(told), expected);
        assert_eq!(Secrets::of("", "").redact("as it is"), "as it is");
    }
}
