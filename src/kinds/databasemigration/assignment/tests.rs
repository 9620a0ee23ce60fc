use serde_json::{Value, json};

use super::*;

fn minimal() -> Value {
    json!({
        "version": 1,
        "database": { "engine": "PostgreSQL", "host": "pg.shop.svc", "name": "shop" },
        "run": { "uid": "r1" },
        "mode": "Apply",
        "scripts": [{ "id": "001", "up": { "file": "001.sql" } }]
    })
}

fn read(value: &Value) -> Result<Assignment, String> {
    Assignment::read(&value.to_string())
}

#[test]
fn what_is_absent_has_its_default() {
    let assignment = read(&minimal()).unwrap();
    assert_eq!(assignment.history.table, "gatehouse_migrations");
    assert_eq!(assignment.history.series, "default");
    assert_eq!(assignment.database.tls, TlsMode::Require);
    assert_eq!(assignment.run.attempt, 1);
    assert_eq!(assignment.lock_wait(), Duration::from_mins(1));
    let script = &assignment.scripts[0];
    assert_eq!(script.transaction, Transaction::Required);
    assert_eq!(script.timeouts.statement(), Some(Duration::from_mins(5)));
    assert_eq!(script.timeouts.lock(), Some(Duration::from_secs(3)));
    let written = serde_json::to_string(&assignment).unwrap();
    assert_eq!(Assignment::read(&written), Ok(assignment));
}

#[test]
fn what_is_wrong_is_named() {
    type Change = fn(&mut Value);
    let cases: [(Change, &str); 11] = [
        (|value| value["version"] = json!(2), "version 2"),
        (|value| value["password"] = json!("x"), "unknown field `password`"),
        (|value| value["database"]["host"] = json!(""), "database.host"),
        (|value| value["history"] = json!({ "table": "a;b" }), "history.table: \"a;b\""),
        (|value| value["history"] = json!({ "series": "" }), "history.series"),
        (|value| value["scripts"][0]["id"] = json!("a b"), "\"a b\""),
        (|value| value["scripts"][0]["up"]["file"] = json!("../x"), "scripts[001].up.file"),
        (|value| value["scripts"][0]["checksum"] = json!("sha256:0"), "scripts[001].checksum"),
        (|value| value["scripts"][0]["timeouts"] = json!({ "lock": "3" }), "scripts[001].timeouts.lock"),
        (|value| value["baseline"] = json!("000"), "baseline: \"000\""),
        (
            |value| {
                let first = value["scripts"][0].clone();
                value["scripts"].as_array_mut().unwrap().push(first);
            },
            "twice",
        ),
    ];
    for (change, said) in cases {
        let mut value = minimal();
        change(&mut value);
        let error = read(&value).unwrap_err();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn no_limit_is_said_by_zero() {
    let timeouts = Timeouts { statement: Some("0".into()), lock: Some("250ms".into()) };
    assert_eq!(timeouts.statement(), None);
    assert_eq!(timeouts.lock(), Some(Duration::from_millis(250)));
}

#[test]
fn a_checksum_is_that_of_sha256sum() {
    let expected = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(checksum(b""), expected);
    assert!(is_checksum(expected) && !is_checksum(&expected.to_uppercase()) && !is_checksum("sha256:"));
}

#[test]
fn each_part_of_a_plan_changes_its_hash() {
    let script = Planned {
        id: "1",
        kind: ScriptKind::Schema,
        transaction: Transaction::Required,
        checksum: "a",
        down: None,
    };
    let other = Planned { id: "2", ..script };
    let here = |change: Value| {
        let mut assignment = json!({
            "version": 1, "run": {"uid": "r", "attempt": 1}, "mode": "Plan",
            "scripts": [{"id": "1", "up": {"file": "1.sql"}}],
            "database": {"engine": "PostgreSQL", "host": "pg", "name": "shop"},
            "history": {"table": "t", "series": "s"},
        });
        json_patch::merge(&mut assignment, &change);
        Assignment::read(&assignment.to_string()).unwrap()
    };
    let lists: [Vec<Planned<'_>>; 9] = [
        vec![],
        vec![script],
        vec![script, other],
        vec![other, script],
        vec![Planned { checksum: "b", ..script }],
        vec![Planned { kind: ScriptKind::Data, ..script }],
        vec![Planned { transaction: Transaction::None, ..script }],
        vec![Planned { down: Some("d"), ..script }],
        vec![Planned { checksum: "ad", ..script }],
    ];
    let mut hashes: BTreeSet<_> =
        lists.iter().map(|scripts| plan_hash(&here(json!({})), scripts.iter().copied())).collect();
    let elsewhere = [
        json!({"history": {"series": "t"}}),
        json!({"history": {"table": "u"}}),
        json!({"database": {"host": "staging"}}),
        json!({"database": {"name": "other"}}),
        json!({"database": {"file": "staging/app.db"}}),
        json!({"database": {"port": 5433}}),
        json!({"baseline": "1"}),
        json!({"outOfOrder": "Allow"}),
        json!({"acceptChecksums": {"1": checksum(b"b")}}),
    ];
    let count = lists.len() + elsewhere.len();
    hashes.extend(elsewhere.into_iter().map(|change| plan_hash(&here(change), [script])));
    assert_eq!(hashes.len(), count);
    assert!(hashes.iter().all(|hash| hash.len() == 64));
    let same = [
        json!({"run": {"uid": "q"}}),
        json!({"mode": "Apply"}),
        json!({"database": {"port": 5432, "tls": "Disable"}}),
    ];
    for change in same {
        assert_eq!(plan_hash(&here(change.clone()), []), plan_hash(&here(json!({})), []), "{change}");
    }
}
