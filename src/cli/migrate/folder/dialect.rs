//! Engines in the names of files: one folder may have the scripts of several. Pure.

use super::list;
use crate::kinds::databasemigration::assignment::Engine;

/// What files call an engine that gatehouse does not run scripts on.
const OTHERS: [&str; 12] = [
    "clickhouse",
    "cockroach",
    "cockroachdb",
    "crdb",
    "db2",
    "derby",
    "h2",
    "hsqldb",
    "mssql",
    "oracle",
    "spanner",
    "sqlserver",
];

/// The engine that a part of a name means, and whether scripts for it run on this one.
fn is_for(part: &str, engine: Engine) -> Option<bool> {
    let part = part.to_lowercase();
    match part.as_str() {
        "postgres" | "postgresql" | "pgsql" | "pg" | "psql" => Some(engine == Engine::PostgreSQL),
        "mysql" | "mariadb" => Some(matches!(engine, Engine::MySQL | Engine::MariaDB)),
        "sqlite" | "sqlite3" => Some(engine == Engine::SQLite),
        other if OTHERS.contains(&other) => Some(false),
        _ => None,
    }
}

/// The engine of a file such as `NAME.sql.postgres`.
pub(super) fn behind_sql(name: &str) -> Option<&str> {
    let (_, behind) = name.rsplit_once(".sql.")?;
    is_for(behind, Engine::SQLite).map(|_| behind)
}

/// Refuses scripts of other engines.
///
/// # Errors
/// The files, and what to do.
pub(super) fn check(engine: Engine, scripts: &[&str]) -> Result<(), String> {
    let is_other = |name: &&&str| {
        let dotted = name.trim_end_matches(".sql").split('.').any(|part| is_for(part, engine) == Some(false));
        dotted
            || trailing(name).is_some_and(|(stem, part)| {
                is_for(part, engine) == Some(false) && has_sibling(scripts, name, stem)
            })
    };
    let others: Vec<_> = scripts.iter().filter(is_other).map(|name| (*name).to_owned()).collect();
    if others.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{}: by the name not for {engine}, and all scripts of a folder run: give each engine a folder of its own, with all of \
         its scripts",
        list(&others)
    ))
}

/// `schema_mysql.sql` as `schema` and `mysql`.
fn trailing(name: &str) -> Option<(&str, &str)> {
    let stem = name.trim_end_matches(".sql").trim_end_matches(".up").trim_end_matches(".down");
    stem.rsplit_once(['_', '-'])
}

/// Whether another file has the same name for another engine.
fn has_sibling(scripts: &[&str], name: &str, stem: &str) -> bool {
    let others = scripts.iter().filter(|other| **other != name).filter_map(|other| trailing(other));
    let mut others = others.filter(|(other, _)| *other == stem);
    others.any(|(_, part)| is_for(part, Engine::SQLite).is_some())
}
