//! The manifests of the kind that DatabaseMigration descends from, carried out.

use std::fs;

use kit::bed::Bed as ControlPlane;
use kit::call::Call;
use kit::databases::{Server, Servers};
use kit::pods::Node;
use kit::{deploy, root};
use serde_json::{Value, json};

use super::bed::{Bed, PASSWORD};
use super::objects::until;

/// What `gatehouse convert` makes of a file below `examples`.
fn converted(file: &str) -> Value {
    let path = root().join("examples").join(file);
    let words = ["convert", "--explicit", "-o", "json", "-f", path.to_str().unwrap()];
    serde_json::from_str(&Call::gatehouse(kit::gatehouse!(), &words).ok()).unwrap()
}

/// A sample, by its file, and what it runs on.
struct Sample<'a> {
    file: String,
    server: &'a Server,
    scripts: usize,
    /// What returns nothing of a database without rows, and fails where the scripts have not run.
    query: &'static str,
}

fn samples(servers: &Servers) -> [Sample<'_>; 3] {
    let sample = |name: &str, server, scripts, query| Sample {
        file: format!("ancestors/database_v1alpha1_{name}.yaml"),
        server,
        scripts,
        query,
    };
    [
        sample("databasemigration", &servers.postgres, 3, "SELECT id, profile FROM users"),
        sample("databasemigration_bluegreen", &servers.postgres, 3, "SELECT id, email FROM accounts_v2"),
        sample("databasemigration_mysql", &servers.mariadb, 2, "SELECT id, status FROM orders"),
    ]
}

pub fn their_samples_run(servers: &Servers) {
    let texts = &converted("databasemigration/scripts-of-ancestors.yaml")["data"];
    for Sample { file, server, scripts, .. } in samples(servers) {
        let migration = converted(&file);
        let mut bed = Bed::new(server);
        for script in migration["spec"]["scripts"].as_array().unwrap() {
            let source = &script["up"]["configMapKeyRef"];
            assert_eq!(source["name"], "migrations");
            let text = texts[source["key"].as_str().unwrap()].as_str().unwrap();
            bed.script(script["id"].as_str().unwrap(), text)["kind"] = script["kind"].clone();
        }
        assert_eq!(bed.succeeds("r1")["appliedNow"], scripts, "{file}");
        assert_eq!(bed.succeeds("r2")["appliedNow"], 0, "{file}");
    }
}

/// As objects, with nothing changed but where their servers are: what they say of encryption, of the database and of
/// Secrets holds.
pub fn their_samples_are_reconciled(servers: &Servers, plane: &ControlPlane) {
    let namespace = plane.namespace();
    let node = Node::new(&namespace);
    let here = |mut object: Value| {
        object["metadata"]["namespace"] = json!(namespace.name);
        object
    };
    namespace.create(&here(converted("databasemigration/scripts-of-ancestors.yaml")));
    for Sample { file, server, scripts, query } in samples(servers) {
        let mut migration = here(converted(&file));
        let name = migration["metadata"]["name"].as_str().unwrap().to_owned();
        let settings = migration["spec"]["database"].clone();
        let (database, secret) = (settings["name"].as_str().unwrap(), &settings["credentialsSecret"]["name"]);
        let user = format!("user_of_{database}");
        server.make(database, &user, PASSWORD);
        namespace.create(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret},
            "stringData": {"username": user, "password": PASSWORD}}));
        migration["spec"]["database"]["host"] = json!("127.0.0.1");
        migration["spec"]["database"]["port"] = json!(server.port);
        namespace.create(&migration);
        assert_eq!(node.run(&node.next_pod()), 0, "{file}");
        let done = until(&namespace, &name, "Applied");
        assert_eq!(done["status"]["appliedCount"], scripts, "{file}");
        assert_eq!(done["spec"]["database"]["tls"]["mode"], "Require", "{file}");

        let ids = migration["spec"]["scripts"].as_array().unwrap().iter();
        let expected: Vec<_> = ids.map(|script| [script["id"].as_str().unwrap(), "applied"]).collect();
        let history = server.sql(database, "SELECT id, state FROM gatehouse_migrations ORDER BY position");
        assert_eq!(history, expected, "{file}");
        assert!(server.sql(database, query).is_empty(), "{file}");

        // A client that reads the old version finds fields without effect as they were written.
        let text = fs::read_to_string(root().join("examples").join(&file)).unwrap();
        let written = deploy::objects(&text).remove(0);
        let old = namespace.get("databasemigrations.v1alpha1.gatehouse.dev", &name);
        for part in [
            "migration/strategy",
            "migration/parallel",
            "migration/batchSize",
            "validation",
            "rollback",
            "notifications",
        ] {
            let pointer = format!("/spec/{part}");
            let (kept, written) = (old.pointer(&pointer), written.pointer(&pointer));
            assert!(written.is_some(), "{file} has no {part}");
            assert_eq!(kept, written, "{file}: {part}");
        }
    }
    assert_eq!(node.pods(), 3, "nothing else was run");
}
