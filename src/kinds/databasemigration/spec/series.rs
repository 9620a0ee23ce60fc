//! The history that a DatabaseMigration writes, to find two objects that write the same one. Pure.
//!
//! Assumes: a host is looked up as in a pod of the object's namespace.
//! Never: knows that two hosts outside of the cluster are one server. What two runs there would do to each other, their
//! lock and the history hold back.

use crate::kinds::databasemigration::api::v1::{Database, Engine};

/// The domain of a cluster, where nothing else is set.
const CLUSTER_DOMAIN: [&str; 2] = ["cluster", "local"];

/// The schema of the history in PostgreSQL, where none is named.
const PUBLIC: &str = "public";

/// Where the history is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// The schema; none: that of the engine.
    pub schema: Option<String>,
    /// The table.
    pub table: String,
    /// The line of scripts in it.
    pub series: String,
}

/// A series in a table of a database.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Series {
    /// The server, or the volume of a file.
    server: String,
    /// The database, or the file.
    database: String,
    /// The schema of the table. That of MySQL and MariaDB is a database.
    schema: String,
    table: String,
    name: String,
}

impl Series {
    /// The one that an object of that namespace writes.
    #[must_use]
    pub fn of(namespace: &str, database: &Database, history: &History) -> Self {
        let name = database.name.clone().unwrap_or_default();
        let schema = history.schema.clone();
        let (database, server, schema) = match database.engine {
            Engine::SQLite => {
                let file = database.file.clone().unwrap_or_default();
                (file.path, format!("claim {}", file.claim_name), String::new())
            }
            Engine::PostgreSQL => {
                (name, server("postgresql", namespace, database), schema.unwrap_or_else(|| PUBLIC.to_owned()))
            }
            // A client of the one talks to the other.
            Engine::MySQL | Engine::MariaDB => {
                (String::new(), server("mysql", namespace, database), schema.unwrap_or(name))
            }
        };
        Self { server, database, schema, table: history.table.clone(), name: history.series.clone() }
    }
}

fn server(protocol: &str, namespace: &str, database: &Database) -> String {
    let host = host(namespace, database.host.as_deref().unwrap_or_default());
    let port = database.port.or_else(|| database.engine.port()).unwrap_or_default();
    format!("{protocol} {host} {port}")
}

/// A Service has several names: the shortest that all namespaces know is taken.
fn host(namespace: &str, host: &str) -> String {
    let host = host.trim_end_matches('.').to_lowercase();
    let labels: Vec<_> = host.split('.').collect();
    match labels.as_slice() {
        [name] if !name.contains(':') => format!("{name}.{namespace}.svc"),
        [name, namespace] | [name, namespace, "svc"] => format!("{name}.{namespace}.svc"),
        [name, namespace, "svc", domain @ ..] if domain == CLUSTER_DOMAIN => {
            format!("{name}.{namespace}.svc")
        }
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn series(database: &Value, history: &Value) -> Series {
        let text = |field: &str| history[field].as_str().map(str::to_owned);
        let history = History {
            schema: text("schema"),
            table: text("table").unwrap_or_else(|| "t".to_owned()),
            series: text("series").unwrap_or_else(|| "s".to_owned()),
        };
        Series::of("shop", &serde_json::from_value(database.clone()).unwrap(), &history)
    }

    #[test]
    fn a_server_is_the_same_by_each_of_its_names() {
        let at = |host: &str| series(&json!({"engine": "PostgreSQL", "host": host, "name": "a"}), &json!({}));
        for same in ["pg.shop", "pg.shop.svc", "PG.shop.svc.cluster.local", "pg.shop.svc.cluster.local."] {
            assert_eq!(at("pg"), at(same), "{same}");
        }
        for other in ["pg.other", "pg.shop.svc.example.org", "pg2", "10.0.0.1", "::1"] {
            assert_ne!(at("pg"), at(other), "{other}");
        }
        assert_eq!(host("shop", "2001:db8::1"), "2001:db8::1");
    }

    #[test]
    fn what_is_not_said_is_what_a_run_takes() {
        let postgres = json!({"engine": "PostgreSQL", "host": "pg", "name": "a"});
        let with = |field: &str, value: Value| {
            let mut database = postgres.clone();
            database[field] = value;
            series(&database, &json!({}))
        };
        let plain = series(&postgres, &json!({}));
        assert_eq!(plain, with("port", json!(5432)));
        assert_eq!(plain, series(&postgres, &json!({"schema": "public"})));
        assert_eq!(plain, with("credentialsSecret", json!({"name": "other"})));
        for other in [with("port", json!(5433)), with("name", json!("b")), with("engine", json!("MySQL"))] {
            assert_ne!(plain, other);
        }
        for field in ["schema", "table", "series"] {
            assert_ne!(plain, series(&postgres, &json!({field: "other"})), "{field}");
        }
        let of = |engine: &str, name: &str| json!({"engine": engine, "host": "db", "name": name});
        let in_a = series(&of("MySQL", "a"), &json!({}));
        assert_eq!(in_a, series(&of("MariaDB", "a"), &json!({})));
        assert_eq!(in_a, series(&of("MySQL", "b"), &json!({"schema": "a"})), "the history is in a");
        let file = |claim: &str| json!({"engine": "SQLite", "file": {"claimName": claim, "path": "a.db"}});
        assert_eq!(series(&file("x"), &json!({})), series(&file("x"), &json!({"schema": "other"})));
        assert_ne!(series(&file("x"), &json!({})), series(&file("y"), &json!({})));
    }
}
