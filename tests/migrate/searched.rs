//! What a DatabaseMigration leaves in a cluster and with gatehouse, searched for what must not be shown: on a control
//! plane with gatehouse at its gate, where this machine is the node of the Jobs' pods.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kit::bed::{Bed as ControlPlane, Namespace};
use kit::databases::{Server, Servers};
use kit::objects::http_get;
use kit::pods::Node;
use kit::program::Log;
use kit::wait::eventually;
use serde_json::{Value, json};

use super::bed::{Bed, PASSWORD};
use super::objects::until;

/// What a row holds. No script has it.
const VALUE: &str = "a.person@example.org";

/// A part of the scripts.
const SQL: &str = "upper('told nowhere')";

pub fn nothing_in_a_cluster_shows_credentials_scripts_or_values(servers: &Servers, plane: &ControlPlane) {
    for server in [&servers.postgres, &servers.mariadb] {
        let bed = Bed::new(server);
        let namespace = plane.namespace();
        let node = Node::new(&namespace);
        let secrets = Secrets::of(&bed);
        migrate(&bed, server, &namespace, &node);

        let (objects, resources) = all_objects(&namespace);
        for looked_at in ["configmaps", "databasemigrations", "events", "jobs", "pods", "secrets"] {
            assert!(
                resources.iter().any(|resource| resource == looked_at),
                "{looked_at} is not in {resources:?}"
            );
        }
        for (resource, object) in &objects {
            for (what, forms) in &secrets.0 {
                let is_allowed = matches!(
                    (*what, resource.as_str()),
                    ("password" | "user", "secrets") | ("SQL", "configmaps")
                );
                let found = shows(object, forms);
                assert!(is_allowed || !found, "the {what} is in {resource}: {object}");
            }
        }
        // They are found where they have to be: a search that finds nothing would prove nothing.
        for (what, resource) in [("password", "secrets"), ("user", "secrets"), ("SQL", "configmaps")] {
            let (_, forms) = secrets.0.iter().find(|(name, _)| *name == what).unwrap();
            assert!(
                objects.iter().any(|(of, object)| of == resource && shows(object, forms)),
                "{what} in {resource}"
            );
        }

        let page = plane.gate(|gate| http_get(gate.health, "/metrics"));
        let log = Log::of(&plane.cluster.folder().join("gatehouse-0.log")).text();
        let runs = node.logs();
        assert!(
            page.contains("gatehouse_databasemigration_problem") && page.contains(&namespace.name),
            "{page}"
        );
        assert!(
            log.contains("databasemigration.create-job") && log.contains(&namespace.name),
            "the log is short"
        );
        assert!(runs.contains("23505") || runs.contains("23000"), "{runs}");
        for (what, forms) in &secrets.0 {
            for (place, text) in
                [("/metrics", &page), ("the log of the operator", &log), ("the logs of the runs", &runs)]
            {
                let line = text.lines().find(|line| forms.iter().any(|form| line.contains(form)));
                assert_eq!(line, None, "the {what} is in {place}");
            }
        }
    }
}

/// Scripts that succeed, break a unique constraint, are no SQL, and a password that is wrong.
fn migrate(bed: &Bed, server: &Server, namespace: &Namespace, node: &Node) {
    bed.sql("CREATE TABLE people (mail varchar(99) UNIQUE)");
    bed.sql(&format!("INSERT INTO people VALUES ('{VALUE}')"));
    if server.engine == "PostgreSQL" {
        bed.sql(&format!("GRANT ALL ON people TO {}", bed.user));
    }
    let text = |text: &str| format!("{text} /* {SQL} */");
    // The row's value comes about in the database: no script has it.
    let doubled = text(&format!("INSERT INTO people SELECT lower('{}')", VALUE.to_uppercase()));
    let texts =
        json!({"first": text("CREATE TABLE a (b integer)"), "doubled": doubled, "wrong": text("SELEC 1")});
    namespace.create(
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sql"}, "data": texts}),
    );
    for (name, password) in [("db", PASSWORD.to_owned()), ("old", format!("old {PASSWORD}"))] {
        namespace.create(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
            "stringData": {"username": bed.user, "password": password}}));
    }
    let create = |name: &str, secret: &str, keys: &[&str]| {
        let script = |key: &&str| json!({"id": key, "kind": "Schema", "up": {"configMapKeyRef": {"name": "sql", "key": key}}});
        let scripts: Vec<_> = keys.iter().map(script).collect();
        namespace.create(&json!({"apiVersion": "gatehouse.dev/v1", "kind": "DatabaseMigration", "metadata": {"name": name},
            "spec": {"scripts": scripts, "existingTables": "Ignore", "database": {"engine": server.engine, "host": "127.0.0.1", "port": server.port,
                "name": bed.name, "credentialsSecret": {"name": secret}, "tls": {"mode": "Disable"}}}}));
        let pod = node.next_pod();
        let code = node.run(&pod);
        let snapshot = namespace.get("configmaps", &pod.job);
        assert!(snapshot["data"].to_string().contains(SQL), "{snapshot}");
        code
    };
    let until = |name: &str, reason: &str| until(namespace, name, reason);
    assert_eq!(create("succeeds", "db", &["first"]), 0);
    until("succeeds", "Applied");
    assert_eq!(create("violates", "db", &["doubled"]), 20);
    let violated = until("violates", "ScriptFailed");
    let state = if server.engine == "PostgreSQL" { "23505" } else { "23000" };
    assert_eq!(violated["status"]["lastError"]["sqlState"], state, "{violated}");
    assert_eq!(create("is-wrong", "db", &["wrong"]), 20);
    until("is-wrong", "ScriptFailed");
    assert_eq!(create("is-refused", "old", &["first"]), 20);
    until("is-refused", "NotReached");
    assert_eq!(node.pods(), 4);
    // The event of the last end comes after its condition.
    eventually(|| {
        let events = namespace.bed.objects.list("events", &namespace.name, "")?;
        let is_told =
            |event: &Value| event["reason"] == "RunFailed" && event["involvedObject"]["name"] == "is-refused";
        if events.iter().any(is_told) { Ok(()) } else { Err(format!("no event of its end in {events:?}")) }
    });
}

/// What must not be shown, each by name and in the forms in which it could be.
struct Secrets([(&'static str, Vec<String>); 4]);

impl Secrets {
    fn of(bed: &Bed) -> Self {
        let forms = |text: &str| {
            let json = serde_json::to_string(text).unwrap().trim_matches('"').to_owned();
            let url: Vec<_> = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
            let debug = format!("{text:?}").trim_matches('"').to_owned();
            vec![text.to_owned(), STANDARD.encode(text), json, url.concat(), debug]
        };
        Self([
            ("password", forms(PASSWORD)),
            ("user", forms(&bed.user)),
            ("SQL", forms(SQL)),
            ("value", forms(VALUE)),
        ])
    }
}

/// Whether one of the forms is in a text or a name anywhere in that.
fn shows(value: &Value, forms: &[String]) -> bool {
    let is_in = |text: &str| forms.iter().any(|form| text.contains(form));
    match value {
        Value::String(text) => is_in(text),
        Value::Array(items) => items.iter().any(|item| shows(item, forms)),
        Value::Object(fields) => fields.iter().any(|(name, field)| is_in(name) || shows(field, forms)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The objects of a namespace, each with its resource: of all resources and versions that the API server lists. And
/// those resources.
fn all_objects(namespace: &Namespace) -> (Vec<(String, Value)>, Vec<String>) {
    let at = |path: &str| namespace.bed.objects.at(path);
    let groups = at("/apis");
    let versions =
        groups["groups"].as_array().unwrap().iter().flat_map(|group| group["versions"].as_array().unwrap());
    let mut places = vec!["/api/v1".to_owned()];
    places.extend(versions.map(|version| format!("/apis/{}", version["groupVersion"].as_str().unwrap())));
    let (mut objects, mut resources) = (Vec::new(), Vec::new());
    for place in places {
        for resource in at(&place)["resources"].as_array().unwrap() {
            let verbs = resource["verbs"].as_array().unwrap();
            if resource["namespaced"] != true || !verbs.contains(&json!("list")) {
                continue;
            }
            let name = resource["name"].as_str().unwrap().to_owned();
            let list = at(&format!("{place}/namespaces/{}/{name}", namespace.name));
            let items = list["items"].as_array().cloned().unwrap_or_default();
            objects.extend(items.into_iter().map(|item| (name.clone(), item)));
            resources.push(name);
        }
    }
    (objects, resources)
}
