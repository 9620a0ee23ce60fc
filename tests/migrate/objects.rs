//! DatabaseMigrations on a control plane with gatehouse at its gate, where this machine is the node of the Jobs' pods.

use kit::bed::{Bed as ControlPlane, LEADING, Namespace};
use kit::databases::Servers;
use kit::objects::condition;
use kit::pods::Node;
use serde_json::{Value, json};
use testbed::Options;

use super::bed::{Bed, PASSWORD};

const KIND: &str = "databasemigrations.v1.gatehouse.dev";

/// Of the gate, on top of what every installed one has.
const INSTALLED: [&str; 6] =
    ["--webhook-url", "https://127.0.0.1:0", "--drain-delay", "100ms", "--drain-deadline", "1s"];

/// A control plane, and a gate that logs all that any library could.
pub fn control_plane() -> Result<ControlPlane, String> {
    let options = Options::from_env().map_err(|error| error.to_string())?;
    let options = Options { existing: None, controller_manager: true, ..options };
    let plane = ControlPlane::start(&options, kit::gatehouse!())?;
    assert!(
        plane.cluster.has_controller_manager(),
        "kube-controller-manager makes the pods: run `make tools`"
    );
    let mut command = plane.serve("gatehouse", &[&INSTALLED[..], LEADING].concat());
    command.env("GATEHOUSE_LOG", "trace,mio=off");
    let gate = plane.start_gate(&command)?;
    gate.wait_for("installed")?;
    plane.set_gate(Some(gate));
    Ok(plane)
}

/// Waits until `Ready` has this reason.
pub fn until(namespace: &Namespace<'_>, name: &str, reason: &str) -> Value {
    namespace.bed.objects.until(&format!("{KIND}/{name}"), &namespace.name, |found| {
        let ready = condition(found, "Ready");
        if ready["reason"] == reason { Ok(found.clone()) } else { Err(format!("Ready of {name} is {ready}")) }
    })
}

/// Waits until a deletion would wait for nothing, so that gatehouse may be gone by then.
pub fn until_released(namespace: &Namespace<'_>, name: &str) {
    namespace.bed.objects.until(&format!("{KIND}/{name}"), &namespace.name, |found| {
        let finalizers = &found["metadata"]["finalizers"];
        if finalizers.is_null() { Ok(()) } else { Err(format!("{name} has the finalizers {finalizers}")) }
    });
}

fn annotate(namespace: &Namespace<'_>, name: &str, annotation: &str, value: &str) {
    let change = json!({"metadata": {"annotations": {annotation: value}}});
    namespace.change(&format!("databasemigration/{name}"), &change);
}

/// A script that cannot run in a transaction, killed in the middle: a person says what became of it. A requirement, a
/// password that was wrong, and another run for the asking.
pub fn a_doubt_is_settled_by_the_word_of_a_person(servers: &Servers, plane: &ControlPlane) {
    let bed = Bed::new(&servers.postgres);
    let namespace = plane.namespace();
    let node = Node::new(&namespace);
    let secret = |password: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"},
            "stringData": {"username": bed.user, "password": password}})
    };
    namespace.create(&secret("wrong"));
    let create = |name: &str, change: &Value| {
        let mut object = json!({"apiVersion": "gatehouse.dev/v1", "kind": "DatabaseMigration",
            "metadata": {"name": name},
            "spec": {"retry": {"backoff": "1s"}, "database": {"engine": "PostgreSQL", "host": "127.0.0.1",
                "port": bed.server.port, "name": bed.name, "credentialsSecret": {"name": "db"},
                "tls": {"mode": "Disable"}}}});
        object["spec"]["scripts"] = change["scripts"].clone();
        object["spec"]["requires"] = change["requires"].clone();
        namespace.create(&object);
    };
    let slow = "CREATE TABLE slow AS SELECT 1 AS s FROM pg_sleep(600)";
    create(
        "shop",
        &json!({"requires": [{"name": "base"}],
        "scripts": [{"id": "001", "kind": "Schema", "transaction": "None", "up": {"inline": slow}}]}),
    );
    until(&namespace, "shop", "RequirementNotReady");
    create(
        "base",
        &json!({"scripts": [{"id": "000", "kind": "Schema", "up": {"inline": "CREATE TABLE a (b int)"}}]}),
    );
    assert_eq!(node.run(&node.next_pod()), 20);
    until(&namespace, "base", "NotReached");
    namespace.change("secret/db", &json!({"stringData": {"password": PASSWORD}}));
    annotate(&namespace, "base", "gatehouse.dev/retry", "corrected");
    assert_eq!(node.run(&node.next_pod()), 0);
    until(&namespace, "base", "Applied");
    until_released(&namespace, "base");

    // The session that asked so before may still be seen, and has asked for these words: only the script begins so.
    let script = "FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' \
                  AND ltrim(query, E'\\n') LIKE 'CREATE TABLE slow%'";
    let sleeps = format!("SELECT count(*)::text {script}");
    let at_work = || if bed.value(&sleeps) == "1" { Ok(()) } else { Err("no script sleeps".to_owned()) };
    let pod = node.next_pod();
    let held = namespace.get(KIND, "shop")["metadata"]["finalizers"].clone();
    assert_eq!(held, json!(["gatehouse.dev/database-migration"]), "a deletion waits for a run");
    node.kill(&pod, at_work);
    bed.sql(&format!("SELECT pg_terminate_backend(pid) {script}"));
    assert_eq!(node.run(&node.next_pod()), 30);
    let found = until(&namespace, "shop", "InDoubt");
    assert!(
        condition(&found, "Ready")["message"].as_str().unwrap().contains("gatehouse.dev/resolve=001=applied")
    );
    assert_eq!(bed.history(), ["000 applied", "001 running"]);
    bed.sql("CREATE TABLE slow (s int)");
    annotate(&namespace, "shop", "gatehouse.dev/resolve", "001=applied");
    assert_eq!(node.run(&node.next_pod()), 0);
    until(&namespace, "shop", "Applied");
    until_released(&namespace, "shop");
    assert_eq!(bed.history(), ["000 applied", "001 applied"]);
    assert_eq!(bed.value("SELECT count(*)::text FROM slow"), "0", "it was not run again");
}
