//! What differs for a reason that is known, what is refused by design, and the steps of a long folder.

use super::base::Engine;

/// Scripts that gatehouse does not run as the client does, by engine and name, with the fault.
pub const KNOWN: &[(&str, &str, &str)] = &[
    (
        "SQLite",
        "sqlite/rest.sql: updates and deletes with a limit",
        "the SQLite in gatehouse is built without SQLITE_ENABLE_UPDATE_DELETE_LIMIT",
    ),
    ("MariaDB", "my/data.sql: what counts changed rows", NO_ROW_COUNT),
    ("MySQL", "my/data.sql: what counts changed rows", NO_ROW_COUNT),
];

const NO_ROW_COUNT: &str =
    "ROW_COUNT() is refused where a row of the history is written before each statement";

/// Texts that gatehouse refuses, and words of what it reports.
pub fn refused(engine: Engine<'_>) -> Vec<(&'static str, &'static [&'static str])> {
    match engine.name() {
        "PostgreSQL" => vec![
            ("CREATE TABLE t (a int); COMMIT; CREATE TABLE u (a int);", &["COMMIT"]),
            ("BEGIN; CREATE TABLE t (a int);", &["BEGIN"]),
            ("START TRANSACTION; SELECT 1;", &["START"]),
            ("CREATE TABLE t (a int); ROLLBACK;", &["ROLLBACK"]),
            ("CREATE TABLE t (a int);\nABORT;", &["ABORT"]),
            ("CREATE TABLE t (a int); SELECT 'open", &["line 1"]),
            ("CREATE TABLE t (a int);\nSELECT $x$ open;", &["line 2"]),
        ],
        "MariaDB" | "MySQL" => vec![
            ("CREATE TABLE t (a INT); COMMIT;", &["COMMIT"]),
            ("START TRANSACTION; CREATE TABLE t (a INT);", &["START"]),
            ("CREATE TABLE t (a INT); ROLLBACK;", &["ROLLBACK"]),
            ("CREATE TABLE t (a INT);\nINSERT INTO t VALUES ('open);", &["line 2"]),
        ],
        _ => vec![
            ("BEGIN; CREATE TABLE t (a);", &["BEGIN"]),
            ("CREATE TABLE t (a); COMMIT;", &["COMMIT"]),
            ("CREATE TABLE t (a); END TRANSACTION;", &["END"]),
            ("CREATE TABLE t (a); ROLLBACK;", &["ROLLBACK"]),
            ("CREATE TABLE t (a);\nINSERT INTO t VALUES ('open);", &["line 2"]),
        ],
    }
}

/// A step of a folder of hundreds.
pub fn of_folder(engine: Engine<'_>, number: usize) -> String {
    let before = number - 1;
    match number % 6 {
        1 => format!(
            "CREATE TABLE t{number} (id INTEGER PRIMARY KEY, body VARCHAR(90) DEFAULT 'x;');\n\
             INSERT INTO t{number} (id) VALUES ({number});\n"
        ),
        2 => format!(
            "ALTER TABLE t{before} ADD COLUMN n INTEGER; -- step; {number}\nUPDATE t{before} SET n = {number};\n"
        ),
        3 => format!("-- nothing to do; for {}\n", engine.name()),
        4 => format!("CREATE VIEW v{number} AS SELECT id, ';' AS s FROM t{};\n", number - 3),
        5 => format!(
            "/* many; rows */\nINSERT INTO t{0} (id, body) VALUES (1001, 'it''s;'), (1002, NULL);\n\
             DELETE FROM t{0} WHERE id = 1002;\n",
            number - 4
        ),
        _ => format!("CREATE INDEX i{number} ON t{} (n);\n", number - 5),
    }
}
