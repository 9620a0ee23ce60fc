//! Statements that have no place in a transaction, by their words. Pure.
//!
//! Guarantees: the gate and a run have one list.
//! Never: knows what only the server does. CLUSTER of a partitioned table and DROP SUBSCRIPTION of one with a slot, for
//! example, are refused by the server alone.

/// What PostgreSQL (up to 18) refuses in a transaction, by the first words of a statement in capitals.
#[must_use]
pub fn refused_by_postgres(words: &[&str]) -> Option<&'static str> {
    let has = |word: &str| words.contains(&word);
    let has_pair = |pair: [&str; 2]| words.windows(2).any(|words| words == pair);
    let name = |holds: bool, name: &'static str| holds.then_some(name);
    match words {
        ["VACUUM", ..] => Some("VACUUM"),
        // With the name of a table, it runs in a transaction.
        ["CLUSTER"] | ["CLUSTER", "VERBOSE"] => Some("CLUSTER"),
        ["DISCARD", "ALL", ..] => Some("DISCARD ALL"),
        ["ALTER", "SYSTEM", ..] => Some("ALTER SYSTEM"),
        ["CREATE", "DATABASE", ..] => Some("CREATE DATABASE"),
        ["DROP", "DATABASE", ..] => Some("DROP DATABASE"),
        ["CREATE", "TABLESPACE", ..] => Some("CREATE TABLESPACE"),
        ["DROP", "TABLESPACE", ..] => Some("DROP TABLESPACE"),
        ["CREATE", "INDEX", ..] | ["CREATE", "UNIQUE", "INDEX", ..] => {
            name(has("CONCURRENTLY"), "CREATE INDEX CONCURRENTLY")
        }
        ["DROP", "INDEX", ..] => name(has("CONCURRENTLY"), "DROP INDEX CONCURRENTLY"),
        ["REINDEX", ..] if has("CONCURRENTLY") => Some("REINDEX CONCURRENTLY"),
        // Its options come before what is built.
        ["REINDEX", ..] => {
            let kinds = ["INDEX", "TABLE", "SCHEMA", "DATABASE", "SYSTEM"];
            match words.iter().find(|word| kinds.contains(word)) {
                Some(&"SCHEMA") => Some("REINDEX SCHEMA"),
                Some(&"DATABASE") => Some("REINDEX DATABASE"),
                Some(&"SYSTEM") => Some("REINDEX SYSTEM"),
                _ => None,
            }
        }
        ["ALTER", "DATABASE", ..] => name(has_pair(["SET", "TABLESPACE"]), "ALTER DATABASE SET TABLESPACE"),
        ["ALTER", "TABLE", ..] => {
            let holds = has("DETACH") && words.last() == Some(&"CONCURRENTLY");
            name(holds, "ALTER TABLE DETACH PARTITION CONCURRENTLY")
        }
        ["CREATE", "SUBSCRIPTION", ..] => {
            let is_off = |option| has_pair([option, "FALSE"]) || has_pair([option, "OFF"]);
            name(!is_off("CREATE_SLOT") && !is_off("CONNECT"), "CREATE SUBSCRIPTION")
        }
        ["ALTER", "SUBSCRIPTION", ..] => {
            name(has_pair(["REFRESH", "PUBLICATION"]), "ALTER SUBSCRIPTION REFRESH PUBLICATION")
        }
        _ => None,
    }
}

/// What SQLite refuses in a transaction, by the first words of a statement in capitals.
#[must_use]
pub fn refused_by_sqlite(words: &[&str]) -> Option<&'static str> {
    match words {
        ["VACUUM", ..] => Some("VACUUM"),
        ["PRAGMA", "JOURNAL_MODE", "WAL", ..] | ["PRAGMA", _, "JOURNAL_MODE", "WAL", ..] => {
            Some("PRAGMA journal_mode = WAL")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        text.split([' ', '(', ')', ',', '=']).filter(|word| !word.is_empty()).collect()
    }

    #[test]
    fn what_postgres_refuses_in_a_transaction_is_known() {
        for text in [
            "VACUUM T",
            "CLUSTER",
            "CLUSTER VERBOSE",
            "DISCARD ALL",
            "ALTER SYSTEM SET A = 1",
            "CREATE DATABASE A",
            "DROP DATABASE IF EXISTS A",
            "ALTER DATABASE A SET TABLESPACE B",
            "CREATE TABLESPACE A LOCATION",
            "DROP TABLESPACE A",
            "CREATE INDEX CONCURRENTLY I ON T (A)",
            "CREATE UNIQUE INDEX CONCURRENTLY I ON T (A)",
            "DROP INDEX CONCURRENTLY IF EXISTS I",
            "REINDEX TABLE CONCURRENTLY T",
            "REINDEX (CONCURRENTLY) INDEX I",
            "REINDEX (VERBOSE) SCHEMA S",
            "REINDEX DATABASE D",
            "REINDEX SYSTEM D",
            "ALTER TABLE T DETACH PARTITION P CONCURRENTLY",
            "ALTER TABLE IF EXISTS T DETACH PARTITION P CONCURRENTLY",
            "CREATE SUBSCRIPTION S CONNECTION PUBLICATION P",
            "CREATE SUBSCRIPTION S CONNECTION PUBLICATION P WITH (ENABLED = FALSE)",
            "ALTER SUBSCRIPTION S REFRESH PUBLICATION",
        ] {
            assert!(refused_by_postgres(&words(text)).is_some(), "{text}");
        }
        for text in [
            "CREATE INDEX I ON T (A)",
            "DROP INDEX I",
            "REINDEX TABLE DATABASE",
            "REINDEX INDEX I",
            "CLUSTER T USING I",
            "DISCARD TEMP",
            "ALTER DATABASE A SET LOCK_TIMEOUT = 1",
            "ALTER TABLE T DETACH PARTITION P FINALIZE",
            "ALTER TYPE T ADD VALUE",
            "REFRESH MATERIALIZED VIEW CONCURRENTLY V",
            "CREATE SUBSCRIPTION S CONNECTION PUBLICATION P WITH (CREATE_SLOT = FALSE)",
            "CREATE SUBSCRIPTION S CONNECTION PUBLICATION P WITH (CONNECT = FALSE)",
            "ANALYZE T",
        ] {
            assert_eq!(refused_by_postgres(&words(text)), None, "{text}");
        }
    }

    #[test]
    fn what_sqlite_refuses_in_a_transaction_is_known() {
        for text in ["VACUUM", "VACUUM INTO", "PRAGMA JOURNAL_MODE = WAL", "PRAGMA MAIN JOURNAL_MODE(WAL)"] {
            assert!(refused_by_sqlite(&words(text)).is_some(), "{text}");
        }
        for text in ["PRAGMA JOURNAL_MODE", "PRAGMA JOURNAL_MODE = DELETE", "PRAGMA FOREIGN_KEYS = ON"] {
            assert_eq!(refused_by_sqlite(&words(text)), None, "{text}");
        }
    }
}
