//! Carries a text out in MySQL and MariaDB.
//!
//! Guarantees: a statement that the server refused is known to have failed where the error says so, or where the server cannot
//! read it; where some of it may be done, it is in doubt: a call, and a change of rows that no transaction takes back.
//! Assumes: the user of the run sees the tables that its scripts change.

mod walk;

use std::collections::BTreeSet;

use super::super::failure::mysql::{did_nothing, is_of_text};
use super::{Carrier, Class, End, Entry, Failure, State, Task, Text, Way, count, in_doubt};
use crate::kinds::databasemigration::sql::Statement;
use crate::kinds::databasemigration::sql::mysql::read::runs_program;
use crate::kinds::databasemigration::sql::mysql::rules;

/// Words that say what kind of statement one is. None of them is a name.
const KINDS: [&str; 34] = [
    "ALTER",
    "ANALYZE",
    "BEGIN",
    "CALL",
    "CREATE",
    "DATA",
    "DATABASE",
    "DELETE",
    "DROP",
    "EVENT",
    "EXECUTE",
    "FROM",
    "FUNCTION",
    "GRANT",
    "IGNORE",
    "INDEX",
    "INSERT",
    "INTO",
    "LOAD",
    "PREPARE",
    "PROCEDURE",
    "RENAME",
    "REPLACE",
    "REVOKE",
    "SELECT",
    "SET",
    "TABLE",
    "TEMPORARY",
    "TRIGGER",
    "TRUNCATE",
    "UNIQUE",
    "UPDATE",
    "USE",
    "VIEW",
];

impl Carrier<'_> {
    /// A failure before anything runs where the server would break off the connection at a statement.
    pub(super) fn fits(&self, task: Task<'_>) -> Result<(), Failure> {
        let Some(longest) = self.connection.longest else { return Ok(()) };
        let statements = &task.text.statements;
        let rest = statements.iter().zip(1_u32..).skip(usize::try_from(task.from - 1).unwrap_or_default());
        let long =
            rest.map(|(one, number)| (one, number, one.end - one.start)).find(|(.., size)| *size > longest);
        long.map_or(Ok(()), |(one, number, size)| {
            let message = format!(
                "the statement in line {} has {size} bytes, and the server takes max_allowed_packet = {}: write it as several \
                 statements, or raise the limit",
                one.line,
                longest + 1
            );
            Err(Failure::new(Class::Other, message).at(number))
        })
    }

    /// Whether the text has to run statement by statement, though it only changes rows: no transaction takes back what it
    /// does.
    pub(super) async fn has_to_be_apart(&mut self, task: Task<'_>) -> Result<bool, Failure> {
        if task.way() != Way::Transaction || !self.changes_plain_tables(&task.text.all).await {
            return Ok(false);
        }
        let statements = &task.text.statements;
        match rules::refused_apart(&task.text.all, statements) {
            Some(why) => Err(Failure::new(Class::Configuration, format!("the script {why}"))),
            None => Ok(true),
        }
    }

    /// What a script set before the statement that it goes on with is of a session that is gone: sets it again.
    async fn set_again(&mut self, task: Task<'_>) -> Result<(), End> {
        if task.from == 1 {
            return Ok(());
        }
        self.limit_locks(task).await.map_err(|failure| failure.of(task.id()))?;
        for number in task
            .text
            .set_again(self.engine(), task.from)
            .map_err(|why| Failure::new(Class::Configuration, why).of(task.id()))?
        {
            let ran = self.run_one(task, number).await;
            ran.map_err(|failure| cannot_set_again(failure).of(task.id()).at(number))?;
        }
        Ok(())
    }

    /// Whether a statement that was refused may have done some of what it does, which is not to be done twice.
    async fn may_have_done_some(&mut self, task: Task<'_>, statement: &Statement, failure: &Failure) -> bool {
        if task.script().idempotent && !task.is_down {
            return false;
        }
        let text = &task.text.all[statement.start..statement.end];
        // A program may have read another text when it failed so.
        if runs_program(statement)
            && failure.number.is_some_and(is_of_text)
            && self.connection.unreadable(text).await == failure.number
        {
            return false;
        }
        match statement.words.first().map(String::as_str) {
            Some("CALL") => !is_about_what_is_called(text, failure),
            Some("EXECUTE") => may_execute_program(task.text),
            Some("INSERT" | "UPDATE" | "DELETE" | "REPLACE" | "LOAD" | "WITH") => {
                !failure.number.is_some_and(did_nothing) && self.changes_plain_tables(text).await
            }
            _ => runs_program(statement),
        }
    }

    /// Whether a text names a table whose changes no transaction takes back. Where that is not known, it does.
    async fn changes_plain_tables(&mut self, text: &str) -> bool {
        let Some(tables) = self.plain_tables().await else { return true };
        if tables.is_empty() {
            return false;
        }
        let text = text.to_lowercase();
        let is_inner = |one: char| one.is_alphanumeric() || matches!(one, '_' | '$');
        let words: BTreeSet<_> = text.split(|one: char| !is_inner(one)).collect();
        let has =
            |name: &str| if name.chars().all(is_inner) { words.contains(name) } else { text.contains(name) };
        // The table, and its database where that is another one.
        tables.iter().any(|row| row.iter().flatten().all(|name| has(name)))
    }

    /// Whether a statement of a text may change a table whose changes no transaction takes back, also by a trigger, a function or a view
    /// that has another name for it. Where that is not known, it may.
    async fn may_change_plain_tables(&mut self, text: &str) -> bool {
        let text = text.to_lowercase();
        let Some(tables) = self.plain_tables().await.filter(|_| !text.contains("mysql")) else { return true };
        if tables.is_empty() {
            return false;
        }
        let is_near = |row: &Vec<Option<String>>| {
            row.get(1).and_then(Option::as_ref).is_none_or(|schema| text.contains(schema.as_str()))
        };
        let own = "NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')";
        let programs = format!(
            "SELECT '1' FROM information_schema.triggers WHERE trigger_schema {own} \
             UNION ALL SELECT '1' FROM information_schema.routines \
             WHERE routine_schema {own} AND routine_type = 'FUNCTION' \
             UNION ALL SELECT '1' FROM information_schema.views WHERE table_schema {own} LIMIT 1"
        );
        tables.iter().any(is_near)
            || self.connection.rows(&programs, &[]).await.map_or(true, |found| !found.is_empty())
    }

    /// The tables whose changes no transaction takes back, each with its database if that is another one.
    async fn plain_tables(&mut self) -> Option<Vec<Vec<Option<String>>>> {
        let sql = "SELECT LOWER(table_name), IF(table_schema = DATABASE(), NULL, LOWER(table_schema)) \
                   FROM information_schema.tables WHERE table_type NOT IN ('VIEW', 'SYSTEM VIEW') \
                   AND table_schema NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys') \
                   AND engine NOT IN (SELECT engine FROM information_schema.engines WHERE transactions = 'YES')";
        self.connection.rows(sql, &[]).await.ok()
    }

    /// A transaction was rolled back, and left rows of tables that take nothing back: all of the script is in doubt.
    pub(super) async fn partly_done(&mut self, task: Task<'_>, failure: Failure) -> End {
        let last = count(task.text);
        let message = format!(
            "{}; tables that know no transactions keep the rows that the script has changed before: remove them and resolve the \
             script with retry, which runs all of it again, or do the rest and resolve it with applied",
            failure.message
        );
        let failure = Failure { message, ..failure };
        self.reset_where_possible().await;
        // Without a checksum of what is done, it runs from its beginning.
        let entry = Entry { statement: last, ..task.entry(State::Running) };
        if let Err(failure) = self.log.write_alone(self.connection, &entry).await {
            tracing::warn!(failure = failure.message, "the history does not have the doubt");
        }
        in_doubt(task, last, failure)
    }
}

/// The server refused to set the session again.
fn cannot_set_again(failure: Failure) -> Failure {
    if failure.is_unanswered || failure.class.is_retryable() {
        return failure;
    }
    let message = format!(
        "the script cannot go on: the server now refuses an earlier statement that has to run again in the new session: {}",
        failure.message
    );
    Failure { class: Class::Configuration, message, ..failure }
}

/// Whether an error is about the procedure that is called, so that none of it has run.
fn is_about_what_is_called(text: &str, failure: &Failure) -> bool {
    if !matches!(failure.number, Some(1305 | 1318 | 1370)) {
        return false;
    }
    let called = text.split_once(|one: char| one.is_whitespace()).map_or("", |(_, rest)| rest);
    let called = called.split(['(', ';']).next().unwrap_or_default().replace('`', "");
    let called = called.trim().rsplit('.').next().unwrap_or_default().trim();
    let mut words = failure.message.split([' ', ';', '\'', '`']);
    words.any(|word| word.rsplit_once('.').is_some_and(|(_, name)| name.eq_ignore_ascii_case(called)))
}

/// Whether a prepared statement of a script may run a program: where its text is not written in the script, or may have a
/// call in it.
fn may_execute_program(text: &Text) -> bool {
    text.statements.iter().any(|statement| {
        let part = text.all[statement.start..statement.end].to_ascii_uppercase();
        match statement.words.first().map(String::as_str) {
            Some("SET" | "PREPARE" | "EXECUTE") => {
                let reads = part.contains("FROM")
                    && !part.contains("INFORMATION_SCHEMA")
                    && !part.starts_with("PREPARE");
                part.contains("CALL") || part.contains("BEGIN") || reads
            }
            Some("SELECT") => part.contains('@'),
            Some("CALL") => true,
            _ => false,
        }
    })
}

/// A failure of a statement, with its place in the script and its kind.
pub(super) fn placed(failure: Failure, statement: &Statement) -> Failure {
    let (message, line) = match failure.message.rsplit_once(" in line ") {
        Some((message, line)) => (message, line.parse::<u32>().unwrap_or(1)),
        None => (failure.message.as_str(), 1),
    };
    let line = statement.line.saturating_add(line.saturating_sub(1));
    let message = format!("{message} in line {line}{}", kind(statement));
    Failure { message, ..failure }
}

/// The kind of a statement, in parentheses.
pub(in super::super) fn kind(statement: &Statement) -> String {
    let words = statement.words.iter().take(3).take_while(|word| KINDS.contains(&word.as_str()));
    let words: Vec<_> = words.map(String::as_str).collect();
    if words.is_empty() { String::new() } else { format!(" ({})", words.join(" ")) }
}

/// A server that takes one statement in a text has answered several times to one that has one answer.
pub(super) fn several_answers(statement: &Statement, answers: u32) -> Option<Failure> {
    if answers < 2 || runs_program(statement) {
        return None;
    }
    let message = format!("the server answered {answers} times to one statement: what it ran is not known");
    Some(Failure { is_unanswered: true, ..Failure::new(Class::Other, message) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::databasemigration::assignment::Engine;
    use crate::kinds::databasemigration::sql::split;

    fn refused(number: u16, message: &str) -> Failure {
        Failure { number: Some(number), ..Failure::new(Class::Other, message) }
    }

    #[test]
    fn an_error_about_what_is_called_says_that_nothing_ran() {
        let none = refused(1305, "PROCEDURE shop.nope does not exist");
        for text in ["CALL nope()", "CALL shop.nope(1)", "call `Nope`", "CALL `shop` . `nope` (1)"] {
            assert!(is_about_what_is_called(text, &none), "{text}");
        }
        assert!(!is_about_what_is_called("CALL other()", &none), "of the body");
        let arguments =
            refused(1318, "Incorrect number of arguments for PROCEDURE shop.nope; expected 1, got 0");
        assert!(is_about_what_is_called("CALL nope()", &arguments));
        let denied = refused(1370, "execute command denied to user 'a'@'b' for routine 'shop.nope'");
        assert!(is_about_what_is_called("CALL nope()", &denied));
        assert!(!is_about_what_is_called("CALL nope()", &refused(1205, "shop.nope ")));
    }

    #[test]
    fn a_failure_has_the_line_of_the_script_and_the_kind() {
        let text = "SELECT 1;\n\nCREATE TABLE secret (\n a int,\n b oops)";
        let statements = split(Engine::MariaDB, text).unwrap();
        let message = |said: &str| placed(Failure::new(Class::Other, said), &statements[1]).message;
        assert_eq!(message("syntax error in line 3"), "syntax error in line 5 (CREATE TABLE)");
        assert_eq!(
            message("Table 'a.b' doesn't exist"),
            "Table 'a.b' doesn't exist in line 3 (CREATE TABLE)"
        );
    }

    #[test]
    fn several_answers_are_those_of_a_program_or_a_fault() {
        let answers = |text: &str| several_answers(&split(Engine::MariaDB, text).unwrap()[0], 2);
        for text in [
            "CALL p()",
            "EXECUTE st",
            "BEGIN NOT ATOMIC SELECT 1; SELECT 2; END",
            "l: LOOP SELECT 1; END LOOP",
        ] {
            assert_eq!(answers(text), None, "{text}");
        }
        for text in ["SELECT 1", "INSERT INTO begin VALUES (1)", "CREATE TABLE a (begin int)"] {
            assert!(answers(text).unwrap().is_unanswered, "{text}");
        }
    }
}
