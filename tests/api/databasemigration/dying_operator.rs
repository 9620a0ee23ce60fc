//! An operator that dies, or does not hear an answer, once at each point of what it does for DatabaseMigrations, and is
//! started again each time. Each script has to be run by one pod, once, and the status has to come to say so.

use std::path::Path;

use kit::audit::Line;
use kit::bed::{Bed, Namespace};
use kit::objects::Ask;
use kit::operator::Fate;
use kit::pods::Node;
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _};
use tokio::runtime::Builder;

use super::{KIND, schema, sqlite, until_ready};
use crate::Test;
use crate::site::Site;

pub const TESTS: &[Test] = &[
    ("an_operator_that_dies_at_each_point_has_each_script_run_once", |bed| {
        live_with(bed, Fate::Dies, &["before", "after"]);
    }),
    ("an_operator_that_loses_each_answer_has_each_script_run_once", |bed| {
        live_with(bed, Fate::LosesTheAnswer, &["after"]);
    }),
];

/// All that it does.
const STEPS: [&str; 7] =
    ["hold", "release", "create-snapshot", "create-job", "delete-snapshot", "write-status", "publish-event"];

/// A script that would fail or show where it ran a second time.
fn script(id: &str, up: &str, down: &str) -> Value {
    let mut script = schema(id, up);
    script["down"] = json!({"inline": down});
    script
}

/// What a query returns in its only column.
#[track_caller]
pub fn rows(file: &Path, query: &str) -> Vec<String> {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let found = runtime.block_on(async {
        let mut connection = SqliteConnectOptions::new().filename(file).connect().await?;
        sqlx::query_scalar(AssertSqlSafe(query.to_owned())).fetch_all(&mut connection).await
    });
    found.unwrap_or_else(|error| panic!("{query}: {error}"))
}

/// Lets something befall the operator at all points of a life: scripts are applied, one more is, the Job of a run goes,
/// and all of them are taken back.
fn live_with(bed: &Bed, fate: Fate, moments: &[&str]) {
    let namespace = bed.namespace();
    let (site, node) = (Site::new(&namespace), Node::new(&namespace));
    let mortal = site.start(fate);
    let back = "UPDATE a SET b = b || ' is taken back' WHERE b = 'two'";
    namespace.create(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "sql"},
        "stringData": {"up": "INSERT INTO a VALUES ('two')", "down": back}}));
    let secret = |key: &str| json!({"secretKeyRef": {"name": "sql", "key": key}});
    let mut scripts = vec![
        script("001", "CREATE TABLE a (b TEXT)", "DROP TABLE a"),
        json!({"id": "002", "kind": "Schema", "up": secret("up"), "down": secret("down")}),
    ];
    namespace.create(&sqlite("shop", &json!(scripts), &json!({"deletionPolicy": "Revert"})));
    let first = node.next_pod();
    assert_eq!(node.run(&first), 0);
    let applied = |count: i64| {
        let done = until_ready(&namespace, "shop", "True", "Applied");
        let status = &done["status"];
        assert_eq!((&status["phase"], &status["appliedCount"]), (&json!("Succeeded"), &json!(count)));
        assert_eq!((&status["pendingCount"], status.get("currentRun")), (&json!(0), None), "{status}");
        status["lastRun"]["number"].as_i64().unwrap()
    };
    assert_eq!(applied(2), 1);

    let copies = "CREATE TABLE c AS SELECT * FROM a";
    scripts.push(script("003", copies, "CREATE TABLE back AS SELECT * FROM c; DROP TABLE c"));
    namespace.change(&format!("{KIND}/shop"), &json!({"spec": {"scripts": scripts}}));
    assert_eq!(node.run(&node.next_pod()), 0);
    assert_eq!(applied(3), 2);
    let rows = |query: &str| rows(&node.folder.join("claims/data/shop.db"), query);
    assert_eq!(rows("SELECT b FROM c"), ["two"]);

    // The copy that a run read goes when its Job has gone.
    let job = namespace.path(&format!("job/{}", first.job));
    bed.objects.must(Ask::delete(format!("{job}?propagationPolicy=Background")));
    namespace.until_gone(&format!("configmap/{}", first.job));
    assert_eq!(node.pods(), 2, "nothing else was run");

    namespace.delete(&format!("{KIND}/shop"));
    assert_eq!(node.run(&node.next_pod()), 0);
    namespace.until_gone(&format!("{KIND}/shop"));
    assert_eq!(rows("SELECT b FROM back"), ["two"], "003 was taken back first, and once");
    let history = rows("SELECT id || ' ' || state FROM gatehouse_migrations ORDER BY id");
    assert_eq!(history, ["001 reverted", "002 reverted", "003 reverted"]);
    assert_eq!(node.pods(), 3);

    let met = mortal.met();
    println!("{fate:?}: {} times, {} lives", met.len(), mortal.lives());
    let points = STEPS
        .iter()
        .flat_map(|step| moments.iter().map(move |moment| format!("databasemigration.{step}.{moment}")));
    let missed: Vec<_> = points.filter(|point| !met.contains(point)).collect();
    assert_eq!(missed, [""; 0], "never met");
    asked_for_no_secret(&namespace);
}

/// The pods mount what the scripts are in. The operator, who may read any Secret by its name, has not done so.
#[track_caller]
fn asked_for_no_secret(namespace: &Namespace) {
    let log = Line::read_of(&namespace.name, namespace.bed.cluster.audit_log().expect("it is kept"));
    let here: Vec<_> = log.iter().filter(|line| line.is_in(&namespace.name)).map(Line::what).collect();
    for known in ["create jobs", "get configmaps"] {
        assert!(here.iter().any(|what| what == known), "{known} is not among {here:?}");
    }
    // Of all namespaces, too: those have none.
    let is_secret = |line: &&Line| {
        line.resource() == "secrets"
            && (line.is_in(&namespace.name) || line.value()["objectRef"]["namespace"].is_null())
    };
    let secrets: Vec<_> = log.iter().filter(is_secret).map(Line::value).collect();
    assert!(secrets.is_empty(), "{secrets:?}");
}
