//! What a run looks at in a database besides its history.

use std::collections::BTreeSet;

use super::super::assignment::Engine;
use super::connection::{Connection, Value};
use super::decision::Surroundings;
use super::failure::Failure;
use super::history::{Log, Row, State};
use super::lock;

/// What is known besides the history.
pub(super) async fn surroundings(
    connection: &mut Connection,
    log: &Log,
    rows: &[Row],
) -> Result<Surroundings, Failure> {
    let mut alive = Vec::new();
    let running = rows.iter().filter(|row| row.state == State::Running);
    for session in running.filter_map(|row| row.session.as_ref()) {
        if is_alive(connection, log, session).await? {
            alive.push(session.clone());
        }
    }
    // Asked only where the answer counts.
    let has_tables = rows.is_empty() && has_tables(connection, log.table()).await?;
    Ok(Surroundings { alive, has_tables })
}

/// Whether a session may still be at work.
async fn is_alive(connection: &mut Connection, log: &Log, session: &str) -> Result<bool, Failure> {
    if connection.engine() != Engine::PostgreSQL {
        // The lock goes with the session: who has it knows that nobody else is at work, and who only reads looks whether
        // anybody has it.
        return Ok(connection.access().only_reads && lock::is_taken(connection, &log.lock_name()).await?);
    }
    if session == connection.session {
        return Ok(false);
    }
    let (process, begun) = session.split_once('/').unwrap_or((session, ""));
    // Of the sessions of another user the beginning is hidden: what is not known is not gone.
    let sql = "SELECT 1::text FROM pg_catalog.pg_stat_activity WHERE pid::text = ? \
               AND (backend_start IS NULL OR extract(epoch FROM backend_start)::text = ?)";
    let found = connection.rows(sql, &[Value::Text(process), Value::Text(begun)]).await?;
    Ok(!found.is_empty())
}

async fn has_tables(connection: &mut Connection, table: &str) -> Result<bool, Failure> {
    let lock = format!("{table}_lock");
    let sql = match connection.engine() {
        Engine::PostgreSQL => {
            "SELECT 1::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             WHERE c.relkind IN ('r', 'p') AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%' \
             AND c.relname NOT IN (?, ?) LIMIT 1"
        }
        Engine::MySQL | Engine::MariaDB => {
            "SELECT '1' FROM information_schema.tables WHERE table_schema = DATABASE() \
             AND table_name NOT IN (?, ?) LIMIT 1"
        }
        Engine::SQLite => {
            "SELECT '1' FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
             AND name NOT IN (?, ?) LIMIT 1"
        }
    };
    Ok(!connection.rows(sql, &[Value::Text(table), Value::Text(&lock)]).await?.is_empty())
}

/// The indexes of PostgreSQL that are not valid and that nobody builds, by their full names.
pub(super) async fn invalid_indexes(connection: &mut Connection) -> Result<BTreeSet<String>, Failure> {
    if connection.engine() != Engine::PostgreSQL {
        return Ok(BTreeSet::new());
    }
    // That of a partitioned table, of the kind I, is not valid until all its parts have theirs.
    let sql = "SELECT n.nspname || '.' || c.relname FROM pg_catalog.pg_index i \
               JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid \
               JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
               WHERE NOT i.indisvalid AND c.relkind = 'i' AND NOT EXISTS (SELECT 1 \
               FROM pg_catalog.pg_stat_progress_create_index p WHERE p.index_relid = i.indexrelid)";
    let rows = connection.rows(sql, &[]).await?;
    Ok(rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect())
}

/// Those of the indexes that a script is answerable for: they were not there before it, or it names them.
pub(super) fn left_by(text: &str, before: &BTreeSet<String>, after: BTreeSet<String>) -> Vec<String> {
    let is_named = |index: &str| {
        let name = index.rsplit('.').next().unwrap_or(index).to_lowercase();
        let is_inner = |one: char| one.is_alphanumeric() || one == '_';
        let mut words = text.split(|one: char| !is_inner(one));
        words.any(|word| word.to_lowercase() == name)
    };
    after.into_iter().filter(|index| !before.contains(index) || is_named(index)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_index_counts_where_it_is_new_or_named() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let text = "CREATE INDEX CONCURRENTLY IF NOT EXISTS Orders_idx ON orders (a)";
        let (before, after) =
            (set(&["public.orders_idx", "public.other"]), set(&["public.orders_idx", "public.other"]));
        assert_eq!(left_by(text, &before, after), ["public.orders_idx"]);
        assert_eq!(left_by("REINDEX", &set(&[]), set(&["public.x_ccnew"])), ["public.x_ccnew"]);
        assert_eq!(left_by(text, &set(&["a.b"]), set(&["a.b"])), [""; 0]);
    }
}
