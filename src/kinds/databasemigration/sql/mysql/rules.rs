//! What gatehouse cannot run in MySQL and MariaDB.

use super::super::Statement;
use super::read::is_block;

/// Values that the session has of the statement directly before.
const OF_THE_ONE_BEFORE: [&str; 6] = [
    "ROW_COUNT(",
    "FOUND_ROWS(",
    "@@WARNING_COUNT",
    "@@ERROR_COUNT",
    "GET DIAGNOSTICS",
    "GET CURRENT DIAGNOSTICS",
];

/// Variables that no client may change in a transaction.
const NOT_IN_TRANSACTION: [&str; 14] = [
    "@@TRANSACTION_ISOLATION",
    "@@TRANSACTION_READ_ONLY",
    "AUTOCOMMIT",
    "BINLOG_DIRECT_NON_TRANSACTIONAL_UPDATES",
    "BINLOG_FORMAT",
    "EXPLICIT_DEFAULTS_FOR_TIMESTAMP",
    "GTID_DOMAIN_ID",
    "GTID_NEXT",
    "GTID_SEQ_NO",
    "PSEUDO_",
    "SESSION_TRACK_GTIDS",
    "SKIP_REPLICATION",
    "SQL_LOG_BIN",
    "TX_ISOLATION",
];

/// Whether a SET can stand in a transaction: it commits nothing, and the server does not refuse it there.
#[must_use]
pub fn may_set_in_transaction(statement: &Statement, text: &str) -> bool {
    let others = ["DEFAULT", "PASSWORD", "STATEMENT", "TRANSACTION"];
    let text = text.to_ascii_uppercase();
    !others.iter().any(|word| statement.begins(&["SET", word]))
        && !NOT_IN_TRANSACTION.iter().any(|name| text.contains(name))
}

/// Why a script that has this statement does not run.
#[must_use]
pub fn refusal(statement: &Statement) -> Option<String> {
    let words: Vec<_> = statement.words.iter().map(String::as_str).collect();
    let (what, why) = match *words.as_slice() {
        ["LOCK" | "UNLOCK", "TABLE" | "TABLES", ..] => {
            let why = "the lock would keep gatehouse from its history: leave LOCK TABLES and UNLOCK TABLES out (mysqldump and \
                       mariadb-dump do so with --skip-add-locks)";
            ("LOCK TABLES", why)
        }
        ["LOCK" | "UNLOCK", ..] => ("LOCK", "the lock would keep gatehouse from its history"),
        ["START", "TRANSACTION", ..] => (
            "START TRANSACTION",
            "gatehouse begins and ends transactions itself: leave START TRANSACTION and COMMIT out (phpMyAdmin exports them \
             unless it is asked not to enclose the export in a transaction)",
        ),
        ["BEGIN", ..] if !is_block(statement) => ("BEGIN", OWN),
        ["COMMIT", ..] => ("COMMIT", OWN),
        ["ROLLBACK", ..] if !words.contains(&"TO") => ("ROLLBACK", OWN),
        ["XA", ..] => ("XA", OWN),
        ["END", ..] => ("END", "no BEGIN stands before it"),
        ["SOURCE", ..] => ("SOURCE", "it is a command of the client, and gatehouse reads no other file"),
        _ => return None,
    };
    Some(format!("has {what} in line {}: {why}", statement.line))
}

const OWN: &str = "gatehouse begins and ends transactions itself";

/// Why a script does not run statement by statement: the history is written between two statements, so that a statement does
/// not find what the session has of the one before it.
#[must_use]
pub fn refused_apart(text: &str, statements: &[Statement]) -> Option<String> {
    let capitals = text.to_ascii_uppercase();
    if !OF_THE_ONE_BEFORE.iter().any(|value| capitals.contains(value)) {
        return None;
    }
    let is_program = |statement: &Statement| {
        let kinds = ["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE"];
        super::read::runs_program(statement)
            || statement.words.iter().take(12).any(|word| kinds.contains(&&**word))
    };
    statements.iter().filter(|statement| !is_program(statement)).find_map(|statement| {
        let part = capitals.get(statement.start..statement.end)?;
        let value = OF_THE_ONE_BEFORE.iter().find(|value| part.contains(*value))?;
        Some(format!(
            "has {} in line {}, and runs statement by statement because it does more than to change rows: gatehouse writes its \
             history between two statements, so that the session does not know the one before. Put both into a stored \
             procedure, or changes of rows into a script of their own",
            value.trim_end_matches('('),
            statement.line
        ))
    })
}
