//! The history that a DatabaseMigration writes, to find two objects that write the same one. Pure.
//!
//! Assumes: a host is looked up as in a pod of the object's namespace.
//! Never: knows that two hosts outside of the cluster are one server. What two runs there would do to each other, their
//! lock and the history hold back.

use std::net::{IpAddr, Ipv4Addr};

use crate::kinds::databasemigration::api::v1::{Database, Engine};
use crate::kinds::databasemigration::assignment::History;

/// The domain of a cluster, where nothing else is set.
const CLUSTER_DOMAIN: [&str; 2] = ["cluster", "local"];

/// The schema of the history in PostgreSQL, where none is named.
const PUBLIC: &str = "public";

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
    let port = database.port.or_else(|| database.engine.port().map(i32::from)).unwrap_or_default();
    format!("{protocol} {host} {port}")
}

/// One name for all names of a host. An address is itself, however it is written. A Service, and a pod with a name in a
/// Service, has several names: the shortest that all namespaces know is taken.
fn host(namespace: &str, host: &str) -> String {
    let host = host.trim_end_matches('.').to_lowercase();
    if let Some(address) = address(&host) {
        return address;
    }
    let labels: Vec<_> = host.split('.').collect();
    let labels = labels.as_slice();
    let inside = labels.strip_suffix(&CLUSTER_DOMAIN).filter(|inside| inside.last() == Some(&"svc"));
    match inside.unwrap_or(labels) {
        [name] => format!("{name}.{namespace}.svc"),
        [name, namespace] | [name, namespace, "svc"] => format!("{name}.{namespace}.svc"),
        [pod, name, namespace] | [pod, name, namespace, "svc"] => format!("{pod}.{name}.{namespace}.svc"),
        _ => host,
    }
}

/// The address that a host is, in its shortest form; none when it is a name.
fn address(host: &str) -> Option<String> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let (bare, zone) = bare.split_once('%').map_or((bare, None), |(bare, zone)| (bare, Some(zone)));
    let address = bare.parse::<IpAddr>().ok().or_else(|| inet_address(bare).map(IpAddr::V4))?;
    let address = address.to_canonical();
    Some(zone.map_or_else(|| address.to_string(), |zone| format!("{address}%{zone}")))
}

/// An address of IPv4 as inet_aton reads it: one to four numbers, in octal, decimal or hexadecimal digits, of which the
/// last one fills the bytes that are left. A resolver takes it before it looks for a name.
fn inet_address(host: &str) -> Option<Ipv4Addr> {
    let numbers = host.split('.').map(inet_number).collect::<Option<Vec<_>>>()?;
    let (last, bytes) = numbers.split_last()?;
    let shift = u32::try_from(bytes.len()).ok().filter(|count| *count < 4)?.checked_mul(8)?;
    if *last > u32::MAX.checked_shr(shift)? || bytes.iter().any(|byte| *byte > u32::from(u8::MAX)) {
        return None;
    }
    let first = bytes.iter().zip([24, 16, 8]).fold(0, |all, (byte, place)| all | byte << place);
    Some(Ipv4Addr::from(first | last))
}

fn inet_number(digits: &str) -> Option<u32> {
    let (digits, radix) = match digits.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None if digits.len() > 1 && digits.starts_with('0') => (digits, 8),
        None => (digits, 10),
    };
    let is_plain = digits.chars().all(|digit| digit.is_digit(radix));
    if is_plain { u32::from_str_radix(digits, radix).ok() } else { None }
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

    fn server_at(host: &str) -> Series {
        series(&json!({"engine": "PostgreSQL", "host": host, "name": "a"}), &json!({}))
    }

    #[test]
    fn a_server_is_the_same_by_each_of_its_names() {
        for same in ["pg.shop", "pg.shop.svc", "PG.shop.svc.cluster.local", "pg.shop.svc.cluster.local."] {
            assert_eq!(server_at("pg"), server_at(same), "{same}");
        }
        for same in ["pg-0.pg.shop.svc", "pg-0.pg.shop.svc.cluster.local", "PG-0.pg.shop"] {
            assert_eq!(server_at("pg-0.pg.shop"), server_at(same), "{same}");
        }
        assert_eq!(server_at("db.example.org"), server_at("DB.Example.org."));
        for other in ["pg.other", "pg.shop.svc.example.org", "pg2", "10.0.0.1", "::1", "pg-0.pg.shop"] {
            assert_ne!(server_at("pg"), server_at(other), "{other}");
        }
    }

    #[test]
    fn an_address_is_the_same_however_it_is_written() {
        for (address, others) in [
            ("::1", &["0:0:0:0:0:0:0:1", "[::1]", "0000::0001", "::0.0.0.1"][..]),
            ("2001:db8::a", &["2001:DB8:0:0::A", "[2001:db8:0::a]"][..]),
            (
                "10.0.0.1",
                &[
                    "::ffff:10.0.0.1",
                    "[::FFFF:a00:1]",
                    "10.1",
                    "10.0.1",
                    "0xa.0.0.1",
                    "012.0.0.1",
                    "167772161",
                ][..],
            ),
            ("127.0.0.1", &["127.1", "127.0.1", "0x7f000001", "127.0.0.1."][..]),
            ("fe80::1%eth0", &["[fe80:0::1%eth0]"][..]),
        ] {
            for other in others {
                assert_eq!(server_at(address), server_at(other), "{address} and {other}");
            }
        }
        for (one, other) in [
            ("127.1", "127.1.0.0"),
            ("fe80::1%eth0", "fe80::1%eth1"),
            ("::1", "127.0.0.1"),
            ("10.0.0.256", "10.0.1.0"),
            ("1.2.3.4.5", "1.2.3.4"),
            ("08.0.0.1", "8.0.0.1"),
            ("+1", "1"),
            ("0x", "0"),
            ("4294967296", "0"),
        ] {
            assert_ne!(server_at(one), server_at(other), "{one} and {other}");
        }
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
