//! Reads what a run needs from a database besides its history.

use std::collections::{BTreeMap, BTreeSet};

use super::super::assignment::Engine;
use super::connection::{Connection, Value};
use super::decision::{DOWN, Surroundings, is_first_contact};
use super::effects::{self, Side};
use super::failure::Failure;
use super::history::{Log, Row, State};
use super::lock;
use super::scripts::Loaded;

/// What is known besides the history.
pub(super) async fn surroundings(
    connection: &mut Connection,
    log: &Log,
    scripts: &[Loaded],
    rows: &[Row],
) -> Result<Surroundings, Failure> {
    let mut alive = Vec::new();
    let mut sides = BTreeMap::new();
    for row in rows.iter().filter(|row| row.state.is_begun()) {
        if let Some(session) = &row.session
            && is_alive(connection, log, session).await?
        {
            alive.push(session.clone());
        } else if let Some(side) = side(connection, scripts, row).await? {
            sides.insert(row.id.clone(), side);
        }
    }
    // Asked only where the answer counts.
    if !is_first_contact(scripts, rows) {
        return Ok(Surroundings { alive, sides, ..Surroundings::default() });
    }
    let has_tables = table(connection, log, Among::All).await?.is_some();
    let is_older = has_tables && !log.has_others(connection).await?;
    let older_table = if is_older { table(connection, log, Among::Near).await? } else { None };
    Ok(Surroundings { alive, sides, has_tables, older_table })
}

/// Whether the statement at which a script stopped took effect. Unknown if the script was edited since, or if its run did not
/// look at the database before the statement.
async fn side(connection: &mut Connection, scripts: &[Loaded], row: &Row) -> Result<Option<Side>, Failure> {
    let loaded = scripts.iter().find(|loaded| loaded.script.id == row.id);
    let is_shown = row.state == State::Resumable && row.kind != DOWN;
    match loaded.filter(|loaded| is_shown && loaded.up.has_checksum(&row.checksum)) {
        Some(loaded) => effects::side(connection, &loaded.up, row.statement).await,
        None => Ok(None),
    }
}

/// Whether a session may still be at work.
async fn is_alive(connection: &mut Connection, log: &Log, session: &str) -> Result<bool, Failure> {
    if connection.engine() != Engine::PostgreSQL {
        // The lock goes with the session: its holder knows that no other run is at work, and a run that only reads
        // checks whether it is held.
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

/// Which tables are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Among {
    /// Those of the whole database.
    All,
    /// Those in the schemas where scripts make tables that they name without a schema, and in the schema of the history.
    Near,
}

/// A table that is neither of the history nor of an extension, such as the tables of PostGIS.
async fn table(connection: &mut Connection, log: &Log, among: Among) -> Result<Option<String>, Failure> {
    let table = log.table();
    let lock = format!("{table}_lock");
    let (sql, schema) = match connection.engine() {
        Engine::PostgreSQL => (
            format!(
                "SELECT n.nspname || '.' || c.relname FROM pg_catalog.pg_class c \
                 JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
                 WHERE c.relkind IN ('r', 'p') AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%' \
                 AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_class'::regclass \
                 AND d.objid = c.oid AND d.deptype = 'e') AND c.relname NOT IN (?, ?){} ORDER BY 1 LIMIT 1",
                match among {
                    Among::All => "",
                    Among::Near =>
                        " AND (n.nspname = ANY (pg_catalog.current_schemas(false)) OR n.nspname = ?)",
                }
            ),
            log.schema().filter(|_| among == Among::Near),
        ),
        Engine::MySQL | Engine::MariaDB => (
            "SELECT CAST(table_name AS CHAR) FROM information_schema.tables WHERE table_schema = DATABASE() \
             AND table_name NOT IN (?, ?) ORDER BY 1 LIMIT 1"
                .to_owned(),
            None,
        ),
        Engine::SQLite => (
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
             AND name NOT IN (?, ?) ORDER BY 1 LIMIT 1"
                .to_owned(),
            None,
        ),
    };
    let values = [Value::Text(table), Value::Text(&lock), Value::from(schema)];
    let rows = connection.rows(&sql, &values[..sql.matches('?').count()]).await?;
    Ok(rows.into_iter().next().and_then(|row| row.into_iter().next()).flatten())
}

/// An index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Index {
    /// With its schema.
    pub(super) name: String,
    /// The table that it is of, without its schema.
    table: String,
}

/// The indexes of PostgreSQL that are not valid and are not being built.
pub(super) async fn invalid_indexes(connection: &mut Connection) -> Result<BTreeSet<Index>, Failure> {
    if connection.engine() != Engine::PostgreSQL {
        return Ok(BTreeSet::new());
    }
    // That of a partitioned table, of the kind I, is not valid until all its parts have theirs.
    let sql = "SELECT n.nspname || '.' || c.relname, t.relname::text FROM pg_catalog.pg_index i \
               JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid \
               JOIN pg_catalog.pg_class t ON t.oid = i.indrelid \
               JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
               WHERE NOT i.indisvalid AND c.relkind = 'i' AND NOT EXISTS (SELECT 1 \
               FROM pg_catalog.pg_stat_progress_create_index p WHERE p.index_relid = i.indexrelid)";
    let rows = connection.rows(sql, &[]).await?;
    let index = |row: Vec<Option<String>>| {
        let mut row = row.into_iter().flatten();
        Some(Index { name: row.next()?, table: row.next()? })
    };
    Ok(rows.into_iter().filter_map(index).collect())
}

/// Those of the indexes that a script is answerable for, by name. It names them; or they were not there before it, and it
/// names their table, or it builds the indexes of a whole schema or database and so names none. What another session
/// left meanwhile is none of them.
pub(super) fn left_by(text: &str, before: &BTreeSet<Index>, after: BTreeSet<Index>) -> Vec<String> {
    let text = text.to_lowercase();
    let is_inner = |one: char| one.is_alphanumeric() || one == '_';
    let words: BTreeSet<_> = text.split(|one: char| !is_inner(one)).collect();
    let has = |name: &str| {
        let name = name.to_lowercase();
        if name.chars().all(is_inner) { words.contains(&*name) } else { text.contains(&name) }
    };
    let names_none = has("reindex") && !has("index") && !has("table");
    let is_left = |index: &Index| {
        let name = index.name.split_once('.').map_or(&*index.name, |(_, name)| name);
        // REINDEX CONCURRENTLY builds another one beside each.
        let digits = name.trim_end_matches(|one: char| one.is_ascii_digit());
        let built_for = digits.strip_suffix("_ccnew").or_else(|| digits.strip_suffix("_ccold"));
        let is_new = !before.contains(index);
        has(name) || is_new && (names_none || has(&index.table) || built_for.is_some_and(has))
    };
    after.into_iter().filter(is_left).map(|index| index.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<Index> {
        let index = |name: &&str| {
            let (name, table) = name.split_once(" of ").unwrap_or((name, "else"));
            Index { name: name.to_owned(), table: table.to_owned() }
        };
        names.iter().map(index).collect()
    }

    #[test]
    fn an_invalid_index_counts_where_the_script_names_it() {
        let text = "CREATE INDEX CONCURRENTLY IF NOT EXISTS Orders_idx ON orders (a)";
        let both = set(&["public.orders_idx", "public.other"]);
        assert_eq!(left_by(text, &both, both.clone()), ["public.orders_idx"]);
        assert_eq!(left_by(text, &set(&["a.b"]), set(&["a.b"])), [""; 0]);
        let strange = set(&["public.Of orders of x"]);
        assert_eq!(left_by("REINDEX INDEX \"Of orders\"", &strange, strange.clone()), ["public.Of orders"]);
    }

    #[test]
    fn a_new_one_counts_where_the_script_names_its_table_or_none() {
        let none = set(&[]);
        let new = set(&["public.orders_a_idx of orders", "public.of_another_session of bills"]);
        assert_eq!(
            left_by("CREATE INDEX CONCURRENTLY ON orders (a)", &none, new.clone()),
            ["public.orders_a_idx"]
        );
        assert_eq!(left_by("VACUUM", &none, new.clone()), [""; 0]);
        assert_eq!(left_by("REINDEX DATABASE CONCURRENTLY shop", &none, new).len(), 2);
        let beside = set(&["public.x_ccnew1 of orders", "public.y_ccnew of bills"]);
        assert_eq!(left_by("REINDEX INDEX CONCURRENTLY x", &none, beside), ["public.x_ccnew1"]);
    }
}
