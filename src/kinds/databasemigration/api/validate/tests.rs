use serde_json::json;

use super::*;
use crate::api::validation::{self, Change, Written};
use crate::api::{Kind as _, Version};
use crate::kinds::databasemigration::api::DatabaseMigrationKind;

fn object(change: &Value) -> Value {
    let mut object = json!({
        "metadata": {"name": "shop", "namespace": "a"},
        "spec": {
            "database": {"engine": "PostgreSQL", "host": "pg", "port": 5432, "name": "shop",
                "credentialsSecret": {"name": "db"}, "tls": {"mode": "Require"}},
            "scripts": [
                {"id": "001", "kind": "Schema", "up": {"inline": "CREATE TABLE a (b int)"}},
                {"id": "002", "kind": "Data", "up": {"configMapKeyRef": {"name": "sql", "key": "002.sql"}}},
            ],
        },
    });
    json_patch::merge(&mut object, change);
    object
}

fn faults(change: &Value) -> Vec<String> {
    validate(&object(change), None).errors.iter().map(ToString::to_string).collect()
}

fn script(script: &Value) -> Vec<String> {
    faults(&json!({"spec": {"scripts": [script]}}))
}

fn warnings(change: &Value) -> Vec<String> {
    validate(&object(change), None).warnings.iter().map(ToString::to_string).collect()
}

#[track_caller]
fn tells(told: &[String], field: &str, part: &str) {
    assert!(
        told.len() == 1 && told[0].starts_with(&format!("{field}: ")) && told[0].contains(part),
        "{told:#?}"
    );
}

#[test]
fn what_a_text_says_to_another_tool_is_refused_unless_the_object_had_it() {
    let goose = "-- +goose Up\nCREATE TABLE a (b int);\n-- +goose Down\nDROP TABLE a";
    let of = |field: &str, text: &str| {
        let mut script = json!({"id": "001", "kind": "Schema", "up": {"inline": "SELECT 1"}});
        script[field] = json!({"inline": text});
        object(&json!({"spec": {"scripts": [script]}}))
    };
    for field in ["up", "down"] {
        let stored = of(field, goose);
        let told: Vec<_> = validate(&stored, None).errors.iter().map(ToString::to_string).collect();
        tells(&told, &format!("spec.scripts[0].{field}.inline"), "goose in line 1");
        assert!(!told[0].contains("CREATE"), "{told:?}");
        // A controller meets an object that was stored before the rule as a change of nothing.
        assert!(validate(&stored, Some(&stored)).accepted());
        let edited = of(field, &format!("{goose} CASCADE"));
        assert!(!validate(&edited, Some(&stored)).accepted());
    }
}

#[test]
fn comments_alone_a_mark_and_a_placeholder_are_no_faults() {
    let of = |kind: &str, text: &str| json!({"spec": {"scripts": [{"id": "1", "kind": kind, "up": {"inline": text}}]}});
    for text in ["-- done on another engine", "\u{feff}-- done\nSELECT 1", "\u{feff}CREATE TABLE a (b int)"] {
        assert_eq!(faults(&of("Schema", text)), [""; 0], "{text}");
        assert_eq!(warnings(&of("Schema", text)), [""; 0], "{text}");
    }
    tells(&faults(&of("Schema", "\u{feff}COMMIT")), "spec.scripts[0].up.inline", "COMMIT");
    tells(&faults(&of("Check", "-- nothing")), "spec.scripts[0].up.inline", "a Check");
    let told = warnings(&of("Schema", "SELECT 1;\nSELECT '${schema}'"));
    assert!(told.iter().any(|told| told.contains("placeholder ${…} in line 2")), "{told:?}");
}

#[test]
fn a_sound_object_is_accepted_in_silence() {
    assert_eq!(validate(&object(&json!({})), None), Validation::default());
}

#[test]
fn the_database_has_all_that_its_engine_needs() {
    let database = |change: Value| faults(&json!({"spec": {"database": change}}));
    tells(&database(json!({"host": null})), "spec.database.host", "name the server");
    tells(&database(json!({"host": "postgres://pg"})), "spec.database.host", "without a scheme");
    for host in ["pg:5433", "10.0.0.1:5433", "[2001:db8::1]:5433", "[pg]", "2001:db8::x"] {
        let told = database(json!({ "host": host }));
        tells(&told, "spec.database.host", "the port goes into the field port");
        assert!(told[0].contains(host), "{told:?}");
    }
    for host in ["pg.shop.svc", "10.0.0.1", "2001:db8::1", "[2001:db8::1]", "fe80::1%eth0", "::ffff:10.0.0.1"]
    {
        assert_eq!(database(json!({ "host": host })), [""; 0], "{host}");
    }
    tells(&database(json!({"name": null})), "spec.database.name", "name the database");
    tells(&database(json!({"credentialsSecret": null})), "spec.database.credentialsSecret", "Secret");
    tells(&database(json!({"tls": {"mode": "VerifyFull"}})), "spec.database.tls.mode", "caSecret");
    let file = json!({"claimName": "a", "path": "b"});
    tells(&database(json!({"file": file})), "spec.database.file", "SQLite");
    let sqlite = json!({"spec": {"database": {"engine": "SQLite", "host": null, "port": null, "name": null,
        "credentialsSecret": null, "tls": null, "file": file}}});
    assert_eq!(faults(&sqlite), [""; 0]);
    tells(
        &database(json!({"engine": "SQLite", "file": file})),
        "spec.database.engine",
        "do not go with SQLite",
    );
    let schema = json!({"spec": {"database": {"engine": "MariaDB"}, "history": {"schema": "x"}}});
    tells(&faults(&schema), "spec.history.schema", "PostgreSQL alone");
}

#[test]
fn the_list_decides_the_order_and_nothing_contradicts_it() {
    let two = |first: Value, second: Value| {
        let mut scripts = [
            json!({"id": "1", "kind": "Schema", "up": {"inline": "SELECT 1"}}),
            json!({"id": "2", "kind": "Schema", "up": {"inline": "SELECT 1"}}),
        ];
        json_patch::merge(&mut scripts[0], &first);
        json_patch::merge(&mut scripts[1], &second);
        faults(&json!({"spec": {"scripts": scripts}}))
    };
    assert_eq!(two(json!({}), json!({"dependsOn": ["1"]})), [""; 0]);
    tells(&two(json!({"dependsOn": ["2"]}), json!({})), "spec.scripts[0].dependsOn[0]", "before this script");
    tells(&two(json!({}), json!({"dependsOn": ["2"]})), "spec.scripts[1].dependsOn[0]", "before this script");
    tells(&two(json!({}), json!({"dependsOn": ["3"]})), "spec.scripts[1].dependsOn[0]", "another script");
    tells(&two(json!({}), json!({"id": "1"})), "spec.scripts[1]", "Duplicate");
}

#[test]
fn a_script_has_one_text_that_can_run_as_it_says() {
    let of = |up: Value| script(&json!({"id": "1", "kind": "Schema", "up": up}));
    tells(&of(json!({})), "spec.scripts[0].up", "exactly one");
    let both = json!({"inline": "SELECT 1", "configMapKeyRef": {"name": "a", "key": "b"}});
    tells(&of(both), "spec.scripts[0].up", "exactly one");
    tells(&of(json!({"inline": " \n"})), "spec.scripts[0].up.inline", "statement");
    tells(&of(json!({"inline": "SELECT '\0'"})), "spec.scripts[0].up.inline", "NUL");
    let elsewhere = json!({"configMapKeyRef": {"namespace": "b", "name": "x", "key": "y"}});
    tells(&of(elsewhere), "spec.scripts[0].up.configMapKeyRef.namespace", "must be a");
    tells(
        &of(json!({"inline": "BEGIN; SELECT 1"})),
        "spec.scripts[0].up.inline",
        "begin or end transactions",
    );
    let index = "CREATE INDEX CONCURRENTLY i ON a (b)";
    tells(&of(json!({"inline": index})), "spec.scripts[0].up.inline", "needs transaction None");
    let none = |text: &str| {
        script(&json!({"id": "1", "kind": "Schema", "transaction": "None", "up": {"inline": text}}))
    };
    assert_eq!(none(index), [""; 0]);
    tells(&none(&format!("{index}; SELECT 1")), "spec.scripts[0].up.inline", "one statement");
}

#[test]
fn what_may_have_to_be_taken_back_can_be() {
    tells(
        &faults(&json!({"spec": {"deletionPolicy": "Revert", "scripts": [
            {"id": "1", "kind": "Schema", "up": {"inline": "SELECT 1"}},
            {"id": "2", "kind": "Check", "up": {"inline": "SELECT 1"}}]}})),
        "spec.scripts[0].down",
        "deletionPolicy Revert",
    );
    let kept =
        json!({"id": "1", "kind": "Schema", "up": {"inline": "SELECT 1"}, "down": {"inline": "SELECT 2"}});
    assert_eq!(faults(&json!({"spec": {"onFailure": "RevertThisRun", "scripts": [kept]}})), [""; 0]);
    let rehearsed = json!({"spec": {"mode": "Rehearse", "scripts": [
        {"id": "1", "kind": "Schema", "transaction": "None", "up": {"inline": "VACUUM"}}]}});
    assert_eq!(faults(&rehearsed), [""; 0], "it is skipped");
}

#[test]
fn only_what_can_be_rolled_back_is_rehearsed() {
    let rehearsed =
        |engine: &str| faults(&json!({"spec": {"mode": "Rehearse", "database": {"engine": engine}}}));
    assert_eq!(rehearsed("PostgreSQL"), [""; 0]);
    for engine in ["MySQL", "MariaDB"] {
        tells(&rehearsed(engine), "spec.mode", &format!("which {engine} cannot do"));
        assert_eq!(faults(&json!({"spec": {"mode": "Plan", "database": {"engine": engine}}})), [""; 0]);
    }
}

#[test]
fn references_name_something_and_durations_have_bounds() {
    tells(&faults(&json!({"spec": {"baseline": "000"}})), "spec.baseline", "id of a script");
    let sum = format!("sha256:{}", "0".repeat(64));
    tells(
        &faults(&json!({"spec": {"acceptChecksums": {"9": sum}}})),
        "spec.acceptChecksums[9]",
        "id of a script",
    );
    tells(&faults(&json!({"spec": {"requires": [{"name": "shop"}]}})), "spec.requires[0].name", "another");
    tells(&faults(&json!({"spec": {"runner": {"deadline": "5s"}}})), "spec.runner.deadline", "1m to 168h");
    tells(
        &faults(&json!({"spec": {"runner": {"schedulerName": "a_b"}}})),
        "spec.runner.schedulerName",
        "DNS-1123",
    );
    tells(&faults(&json!({"spec": {"retry": {"backoff": "5"}}})), "spec.retry.backoff", "unit");
    tells(&faults(&json!({"metadata": {"name": "a".repeat(45)}})), "metadata.name", "at most 44");
    tells(&faults(&json!({"metadata": {"name": "a.b"}})), "metadata.name", "Jobs");
}

fn update(change: &Value, applied: &Value) -> Vec<String> {
    let old = object(&json!({"status": {"appliedCount": 1, "applied": applied}}));
    let mut new = old.clone();
    json_patch::merge(&mut new, change);
    validate(&new, Some(&old)).errors.iter().map(ToString::to_string).collect()
}

#[test]
fn an_object_with_a_port_in_its_host_still_takes_other_edits() {
    let author = Version::V1;
    let stored = object(&json!({"apiVersion": author.api_version(), "kind": "DatabaseMigration",
        "spec": {"database": {"host": "pg:5433"}}}));
    let faults = |change: &Value| {
        let mut new = stored.clone();
        json_patch::merge(&mut new, change);
        let written = |object| Written { version: author, object };
        let now = jiff::Timestamp::UNIX_EPOCH;
        let change = Change { new: written(&new), old: Some(written(&stored)), author, now };
        let errors = validation::validate(&DatabaseMigrationKind, &change).errors;
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(faults(&json!({"metadata": {"labels": {"a": "b"}}})), [""; 0]);
    assert_eq!(faults(&json!({"spec": {"suspend": true}})), [""; 0]);
    assert_eq!(faults(&json!({"spec": {"database": {"host": "pg"}}})), [""; 0]);
    tells(&faults(&json!({"spec": {"database": {"host": "pg:5434"}}})), "spec.database.host", "field port");
}

#[test]
fn what_is_applied_stays_as_it_was_applied() {
    let applied = json!([{"id": "001"}]);
    tells(
        &update(&json!({"spec": {"database": {"host": "other"}}}), &applied),
        "spec.database.host",
        "immutable",
    );
    tells(
        &update(&json!({"spec": {"history": {"series": "x"}}}), &applied),
        "spec.history.series",
        "immutable",
    );
    let second = object(&json!({}))["spec"]["scripts"][1].clone();
    tells(&update(&json!({"spec": {"scripts": [second]}}), &applied), "spec.scripts", "append a new script");
    let mut first = object(&json!({}))["spec"]["scripts"][0].clone();
    first["up"]["inline"] = "CREATE TABLE c (d int)".into();
    let edited = json!({"spec": {"scripts": [first, second]}});
    tells(&update(&edited, &applied), "spec.scripts[0].up", "append a new script");
    assert_eq!(update(&edited, &json!([{"id": "000"}])), [""; 0]);
    let credentials = json!({"spec": {"database": {"credentialsSecret": {"name": "new"}}}});
    assert_eq!(update(&credentials, &applied), [""; 0]);
}

/// Of an object with these scripts, of which so many are applied and others are not; whether edits of each are denied.
fn protected(status: &Value, ids: &[&str]) -> Vec<bool> {
    let script = |id: &&str| json!({"id": id, "kind": "Schema", "up": {"inline": "CREATE TABLE a (b int)"}});
    let scripts: Vec<_> = ids.iter().map(script).collect();
    let old = object(&json!({"spec": {"scripts": scripts}, "status": status}));
    let is_denied = |at: usize| {
        let mut new = old.clone();
        new["spec"]["scripts"][at]["up"]["inline"] = "DROP TABLE a".into();
        !validate(&new, Some(&old)).errors.is_empty()
    };
    (0..ids.len()).map(is_denied).collect()
}

#[test]
fn what_the_status_is_too_short_for_is_protected_too() {
    let ids = ["1", "2", "3"];
    let newest = json!([{"id": "2"}]);
    let status = json!({"appliedCount": 2, "pendingCount": 1, "applied": newest, "plan": {"hash": "", "pending": ["3"]}});
    assert_eq!(protected(&status, &ids), [true, true, false]);
    let status = json!({"appliedCount": 3, "pendingCount": 0, "plan": {"hash": ""}});
    assert_eq!(protected(&status, &ids), [true, true, true]);
    // 3 was added since the last run, so that one of the first two may be it.
    let status = json!({"appliedCount": 2, "pendingCount": 0, "applied": newest, "plan": {"hash": ""}});
    assert_eq!(protected(&status, &ids), [false, true, false]);
}

#[test]
fn an_applied_text_may_lie_elsewhere() {
    let sum = crate::api::checksum::checksum(b"CREATE TABLE a (b int)");
    let moved = |from: &Value, to: &Value| {
        let object = |up: &Value| {
            let scripts = json!([{"id": "1", "kind": "Schema", "up": up}]);
            let applied = json!([{"id": "1", "checksum": sum}]);
            object(&json!({"spec": {"scripts": scripts}, "status": {"appliedCount": 1, "applied": applied}}))
        };
        let faults = validate(&object(to), Some(&object(from))).errors;
        faults.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let generated = |hash: &str| json!({"configMapKeyRef": {"name": format!("sql-{hash}"), "key": "1"}});
    let inline = |text: &str| json!({"inline": text});
    // As kustomize renames a ConfigMap with each change of any of its keys.
    assert_eq!(moved(&generated("a"), &generated("b")), [""; 0]);
    assert_eq!(moved(&inline("CREATE TABLE a (b int)"), &generated("b")), [""; 0]);
    assert_eq!(moved(&generated("a"), &inline("CREATE TABLE a (b int)")), [""; 0]);
    tells(&moved(&generated("a"), &inline("DROP TABLE a")), "spec.scripts[0].up", "append a new script");
}

#[test]
fn an_authority_that_is_not_used_is_reported() {
    let with = |mode: &str| {
        let tls = json!({"mode": mode, "caSecret": {"name": "ca", "key": "ca.crt"}});
        warnings(&json!({"spec": {"database": {"tls": tls}}}))
    };
    tells(&with("Require"), "spec.database.tls.mode", "VerifyFull");
    assert_eq!([with("VerifyCA"), with("VerifyFull")], [[""; 0]; 2]);
}

#[test]
fn fields_of_an_ancestor_stay_and_only_the_longest_time_is_validated() {
    let limits = |value: Value| json!({"validation": {"other": 1, "performanceThresholds": value}});
    let of_hub = |value: Value| json!({"spec": {"legacy": limits(value)}});
    assert_eq!(faults(&of_hub(json!({"maxMigrationTime": "2h", "other": [1]}))), [""; 0]);
    let field = "spec.legacy.validation.performanceThresholds.maxMigrationTime";
    for (value, part) in [(json!("1s"), "1m to 168h"), (json!(60), "unit"), (json!({"a": 1}), "duration")] {
        tells(&faults(&of_hub(json!({"maxMigrationTime": value}))), field, part);
    }
    let told = warnings(&json!({"spec": {"legacy": {"validation": {
        "preChecks": [], "performanceThresholds": {"maxMigrationTime": "2h"}}}}}));
    assert_eq!(told, ["spec.legacy.validation.preChecks: is kept, and not acted on"]);
    let schemas = DatabaseMigrationKind.schemas();
    let of_spoke = json!({"spec": limits(json!({"other": {"a": [1]}}))});
    assert!(schemas.of(Version::V1Alpha1).unknown_fields(&of_spoke).is_empty());
    assert!(schemas.of(Version::V1).unknown_fields(&of_hub(json!({"other": 1}))).is_empty());
}

#[test]
fn what_is_risky_is_reported_once() {
    let risky = json!({"spec": {"database": {"host": "pgbouncer", "tls": {"mode": "Disable"}}, "scripts": [
        {"id": "1", "kind": "Schema", "up": {"inline": "DROP TABLE a"}},
        {"id": "2", "kind": "Schema", "up": {"inline": "SELECT 'open"}}]}});
    let told = warnings(&risky);
    for part in ["looks like a pooler", "in the clear", "drops a table", "in line 1 has no end"] {
        assert!(told.iter().any(|one| one.contains(part)), "{part}: {told:#?}");
    }
    let mut labelled = object(&risky);
    labelled["metadata"]["labels"] = json!({"a": "b"});
    assert_eq!(validate(&labelled, Some(&object(&risky))).warnings, []);
    let legacy = json!({"spec": {"legacy": {"migration": {"strategy": "rolling", "parallel": true}}}});
    let told = warnings(&legacy);
    assert_eq!(
        told,
        [
            "spec.legacy.migration.parallel: is kept, and not acted on",
            "spec.legacy.migration.strategy: is kept, and not acted on"
        ]
    );
}
