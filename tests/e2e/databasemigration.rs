//! DatabaseMigrations whose Jobs run, in gatehouse's own image.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use kit::databases::Server;
use kit::objects::condition;
use kit::process;
use kit::random::is_night;
use kit::wait::{PATIENCE, eventually, timeout};
use serde_json::{Value, json};

use crate::Test;
use crate::cluster::{BUSYBOX, Bed, Namespace};
use crate::release::{NAMESPACE, Way};

pub const TESTS: &[Test] = &kit::tests![scripts_are_applied_and_taken_back, scripts_are_applied_to_servers];

/// Without gatehouse and without the API server, for a while.
pub const ALONE: &[Test] = &kit::tests![a_run_outlives_gatehouse_and_the_api_server];

/// The label and the annotation by which pods wait.
const WAIT: &str = "gatehouse.dev/wait-for-migration";

/// The claim that the database is in.
const CLAIM: &str = "database";

fn migration(ids: &[&str]) -> Value {
    let script = |id: &&str| {
        json!({"id": id, "kind": "Schema", "up": {"configMapKeyRef": {"name": "sql", "key": format!("{id}.sql")}},
            "down": {"inline": format!("DROP TABLE \"{id}\"")}})
    };
    json!({"apiVersion": "gatehouse.dev/v1", "kind": "DatabaseMigration", "metadata": {"name": "shop"},
        "spec": {"database": {"engine": "SQLite", "file": {"claimName": CLAIM, "path": "shop.db"}},
            "scripts": ids.iter().map(script).collect::<Vec<_>>(), "deletionPolicy": "Revert",
            "retry": {"limit": 5, "backoff": "1s"}}})
}

/// Waits until so many scripts are applied and Ready says so.
fn until_applied(namespace: &Namespace<'_>, count: u32) {
    namespace.until("databasemigration/shop", |found| {
        let ready = condition(found, "Ready");
        let is_current = found["status"]["observedGeneration"] == found["metadata"]["generation"];
        let is_applied = ready["reason"] == "Applied" && found["status"]["appliedCount"] == count;
        if is_current && is_applied {
            Ok(())
        } else {
            Err(format!("{count} scripts are not applied: {ready}"))
        }
    });
}

/// A claim for a database.
pub fn claim(namespace: &Namespace<'_>, name: &str) {
    namespace.apply(&json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "64Mi"}}}}));
}

/// A pod of an application, which waits for the script of that id.
fn application(script: &str) -> Value {
    let wait = json!({"database": {"engine": "SQLite", "file": {"claimName": CLAIM, "path": "shop.db"}},
        "history": {"series": "shop"}, "script": script});
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "application", "labels": {WAIT: "true"}, "annotations": {WAIT: wait.to_string()}},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [
            {"name": "app", "image": BUSYBOX, "command": ["/bin/busybox", "sleep", "3600"]}]}})
}

fn scripts_are_applied_and_taken_back(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("migrations");
    bed.kubectl(&["label", "namespace", "migrations", &format!("{WAIT}=Fail")]).ok();
    claim(&namespace, CLAIM);
    let tables =
        ["1", "2", "3"].map(|id| (format!("{id}.sql"), json!(format!("CREATE TABLE \"{id}\" (a INTEGER)"))));
    let data: Value = tables.into_iter().collect::<serde_json::Map<_, _>>().into();
    namespace
        .apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sql"}, "data": data}));
    namespace.apply(&migration(&["1", "2"]));
    // As a pipeline waits.
    let ready = ["wait", "--for=condition=Ready", "databasemigration/shop", &timeout(PATIENCE)];
    namespace.kubectl(&ready).ok();
    let shop = namespace.get("databasemigration/shop").expect("it is there");
    assert_eq!(shop["status"]["appliedCount"], 2, "{}", shop["status"]);
    namespace.apply(&application("3"));
    namespace.until("pod/application", |pod| {
        let waits = &pod["status"]["initContainerStatuses"][0];
        if waits["state"]["running"].is_object() { Ok(()) } else { Err(waits.to_string()) }
    });

    // Of a Job that is gone the texts stay that a deletion takes back, until another run has applied some; what it has
    // applied is not run again.
    let jobs = namespace.list("jobs", "app.kubernetes.io/instance=shop");
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    let run = jobs[0]["metadata"]["name"].as_str().expect("a name").to_owned();
    namespace.kubectl(&["delete", "job", &run, &timeout(PATIENCE)]).ok();
    let texts = format!("configmap/{run}");
    namespace.get(&texts).expect("the texts of what was applied");
    let waits = namespace.get("pod/application").expect("a pod");
    assert_eq!(waits["status"]["phase"], "Pending", "{}", waits["status"]);
    namespace.apply(&migration(&["1", "2", "3"]));
    until_applied(&namespace, 3);
    namespace.until_gone(&texts);
    namespace.until("pod/application", |pod| {
        if pod["status"]["phase"] == "Running" { Ok(()) } else { Err(pod["status"].to_string()) }
    });
    namespace.kubectl(&["delete", "pod", "application"]).ok();

    namespace.kubectl(&["delete", "databasemigration", "shop", &timeout(PATIENCE)]).ok();
    // All tables are gone, so that they can be made again.
    namespace.apply(&migration(&["1", "2", "3"]));
    until_applied(&namespace, 3);
    namespace.kubectl(&["delete", "databasemigration", "shop", &timeout(PATIENCE)]).ok();
}

/// A password that breaks URLs, shells and SQL.
const PASSWORD: &str = r#"p@:/%'"\ x"#;

/// The address at which pods reach this machine: that by which it reaches their node.
fn this_machine(bed: &Bed) -> String {
    let node = bed.list("nodes", "").remove(0);
    let addresses = node["status"]["addresses"].as_array().expect("addresses");
    let address = addresses.iter().find(|address| address["type"] == "InternalIP").expect("one of its own");
    let node: IpAddr = address["address"].as_str().unwrap_or_default().parse().expect("an address");
    // Nothing is sent: to connect only chooses the way.
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a socket");
    socket.connect((node, 9)).expect("a way to the node");
    socket.local_addr().expect("an address").ip().to_string()
}

fn scripts_are_applied_to_servers(bed: &Bed, way: Way) {
    bed.deployed(way);
    let machine = this_machine(bed);
    let servers = Server::start_all(Some(&machine)).unwrap_or_else(|why| panic!("{why}"));
    for (server, namespace) in [(&servers.postgres, "on-postgresql"), (&servers.mariadb, "on-mariadb")] {
        let namespace = bed.namespace(namespace);
        is_applied_to(server, &machine, &namespace);
    }
}

fn is_applied_to(server: &Server, machine: &str, namespace: &Namespace<'_>) {
    server.make("shop", "clerk", PASSWORD);
    namespace.apply(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "shop"},
        "stringData": {"username": "clerk", "password": PASSWORD}}));
    let is_postgres = server.engine == "PostgreSQL";
    // The certificate is not for the address by which pods reach this machine.
    let tls = if is_postgres {
        let authority = fs::read_to_string(server.folder.path().join("ca.crt")).expect("a certificate");
        namespace.apply(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "authority"},
            "stringData": {"ca.crt": authority}}));
        json!({"mode": "VerifyCA", "caSecret": {"name": "authority"}})
    } else {
        json!({"mode": "Disable"})
    };
    let index = if is_postgres { "INDEX CONCURRENTLY" } else { "INDEX" };
    let script = |id: &str, up: &str| json!({"id": id, "kind": "Schema", "up": {"inline": up}});
    let mut outside = script("3", &format!("CREATE {index} by_name ON orders (name)"));
    outside["transaction"] = json!("None");
    let mut migration = json!({"apiVersion": "gatehouse.dev/v1", "kind": "DatabaseMigration",
        "metadata": {"name": "shop"}, "spec": {
            "database": {"engine": server.engine, "host": machine, "port": server.port, "name": "shop",
                "credentialsSecret": {"name": "shop"}, "tls": tls},
            "scripts": [script("1", "CREATE TABLE orders (name varchar(9))"),
                script("2", "INSERT INTO orders VALUES ('first')"), outside]}});
    namespace.apply(&migration);
    until_applied(namespace, 3);
    assert_eq!(server.sql("shop", "SELECT name FROM orders"), [["first"]]);
    let history = server.sql("shop", "SELECT id, state FROM gatehouse_migrations ORDER BY position");
    assert_eq!(history, [["1", "applied"], ["2", "applied"], ["3", "applied"]]);

    // A script that has run is not what it was: nothing else runs.
    migration["spec"]["scripts"][1]["up"]["inline"] = json!("INSERT INTO orders VALUES ('edited')");
    let refusal = namespace.try_apply(&migration).expect_err("it is refused");
    assert!(refusal.contains("append a new script"), "{refusal}");

    // A script that fails is named.
    migration["spec"]["scripts"][1]["up"]["inline"] = json!("INSERT INTO orders VALUES ('first')");
    let added = script("4", "INSERT INTO absent VALUES ('x')");
    migration["spec"]["scripts"].as_array_mut().expect("scripts").push(added);
    namespace.apply(&migration);
    let failed = namespace.until("databasemigration/shop", |found| match &found["status"]["lastError"] {
        Value::Null => Err(found["status"].to_string()),
        _ => Ok(found["status"].clone()),
    });
    assert_eq!((&failed["lastError"]["id"], &failed["appliedCount"]), (&json!("4"), &json!(3)), "{failed}");
    assert_eq!(server.sql("shop", "SELECT name FROM orders"), [["first"]]);
}

/// Rows that a script counts one by one, so that it is still at it when everything else is killed: for some seconds, and
/// for a minute at night.
fn rows() -> u32 {
    if is_night() { 300_000_000 } else { 30_000_000 }
}

fn a_run_outlives_gatehouse_and_the_api_server(bed: &Bed, way: Way) {
    bed.deployed(way);
    bed.until_whole();
    let namespace = bed.namespace("outlived");
    claim(&namespace, CLAIM);
    let rows = rows();
    let long = format!(
        "CREATE TABLE counted (rows INTEGER); \
         WITH RECURSIVE each (row) AS (SELECT 1 UNION ALL SELECT row + 1 FROM each WHERE row < {rows}) \
         INSERT INTO counted SELECT count(*) FROM each"
    );
    let once = format!("SELECT * FROM counted WHERE rows <> {rows} OR (SELECT count(*) FROM counted) <> 1");
    let script = |id: &str, kind: &str, up: &str| json!({"id": id, "kind": kind, "up": {"inline": up}});
    namespace.apply(&json!({"apiVersion": "gatehouse.dev/v1", "kind": "DatabaseMigration",
        "metadata": {"name": "shop"}, "spec": {
            "database": {"engine": "SQLite", "file": {"claimName": CLAIM, "path": "shop.db"}},
            "scripts": [script("1", "Schema", &long), script("2", "Check", &once)]}}));
    let run = eventually(|| {
        let pods = namespace.list("pods", "app.kubernetes.io/instance=shop");
        let uids = pods.iter().filter_map(|pod| pod["metadata"]["uid"].as_str());
        let mut runs = uids.flat_map(|uid| process::of_pod(uid, &["gatehouse", "migrate", "run"]));
        runs.next().ok_or_else(|| "no script is being run".to_owned())
    });
    // Until no process is left that could see it end.
    process::freeze(run);
    let gates = bed.list("pods", NAMESPACE);
    bed.cluster.kill_api_server().unwrap_or_else(|error| panic!("{error}"));
    for gate in gates {
        let uid = gate["metadata"]["uid"].as_str().expect("a uid");
        process::of_pod(uid, &["gatehouse", "serve"]).into_iter().for_each(process::kill);
    }
    process::thaw(run);
    process::until_ended(run);
    bed.cluster.start_api_server().unwrap_or_else(|error| panic!("{error}"));
    until_applied(&namespace, 2);
    // The run that was under way did it, and no other one was started.
    assert_eq!(namespace.list("jobs", "app.kubernetes.io/instance=shop").len(), 1);
    bed.until_whole();
    // kube-proxy, whose watches ended with the API server, hears of it some time after the pods are ready.
    let mut asked = migration(&["1"]);
    asked["metadata"]["name"] = json!("asked");
    eventually(|| namespace.kubectl(&["apply", "--dry-run=server"]).input(asked.to_string()).run());
    namespace.kubectl(&["delete", "databasemigration", "shop", &timeout(PATIENCE)]).ok();
}
