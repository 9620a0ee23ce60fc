//! What absent fields of a DatabaseMigration mean.
//!
//! Only what depends on another field is written: the port on the engine, the mode of TLS on whether an authority is
//! given. What is always the same stands in the description of its field.

use serde_json::{Value, json};

use super::v1::Engine;
use crate::api::default::{Context, Field};

/// The fields that creation writes.
pub static DEFAULTS: [Field; 2] = [
    Field::new(&["spec", "database", "port"], port).beside(&["spec", "database", "host"]),
    Field::new(&["spec", "database", "tls", "mode"], tls_mode).beside(&["spec", "database", "host"]),
];

fn port(context: &Context) -> Option<Value> {
    Some(json!(engine(context)?.port()?))
}

fn tls_mode(context: &Context) -> Option<Value> {
    engine(context)?.port()?;
    let authority = context.object.pointer("/spec/database/tls/caSecret");
    let has_authority = authority.is_some_and(|authority| !authority.is_null());
    Some(json!(if has_authority { "VerifyFull" } else { "Require" }))
}

fn engine(context: &Context) -> Option<Engine> {
    serde_json::from_value(context.object.pointer("/spec/database/engine")?.clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Version;
    use crate::api::default::complete;
    use crate::kinds::databasemigration::api::DatabaseMigrationKind;

    fn completed(database: &Value) -> Value {
        let mut object = json!({"spec": {"database": database}});
        assert!(complete(&DatabaseMigrationKind, &mut object, None, Version::V1).warnings.is_empty());
        object["spec"]["database"].clone()
    }

    #[test]
    fn the_port_is_that_of_the_engine_and_the_server_is_verified_where_it_can_be() {
        let plain = completed(&json!({"engine": "PostgreSQL", "host": "pg"}));
        assert_eq!((&plain["port"], &plain["tls"]), (&json!(5432), &json!({"mode": "Require"})));
        let tls = json!({"caSecret": {"name": "ca"}});
        let verified = completed(&json!({"engine": "MariaDB", "host": "db", "tls": tls}));
        assert_eq!((&verified["port"], &verified["tls"]["mode"]), (&json!(3306), &json!("VerifyFull")));
    }

    #[test]
    fn what_is_given_stays_and_a_file_gets_neither() {
        let given = json!({"engine": "MySQL", "host": "db", "port": 3307, "tls": {"mode": "Disable"}});
        assert_eq!(completed(&given), given);
        let file = json!({"engine": "SQLite", "file": {"claimName": "a", "path": "b"}});
        assert_eq!(completed(&file), file);
        for partial in [json!({}), json!({"host": "a"}), json!({"host": "a", "engine": "Oracle"}), json!(3)] {
            assert_eq!(completed(&partial), partial);
        }
    }
}
