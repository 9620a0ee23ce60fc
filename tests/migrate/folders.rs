//! Folders as other tools have them, below `folders/`: read as they are meant, or refused by the name of a file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kit::databases::Servers;
use kit::program::Program;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::bed::Bed;

/// How a run of the command line ended.
#[derive(Debug)]
struct Ran {
    code: Option<i32>,
    report: Value,
    stderr: String,
}

fn ran(mut command: Command) -> Ran {
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    Ran {
        code: output.status.code(),
        report: serde_json::from_slice(&output.stdout).unwrap_or_default(),
        stderr,
    }
}

/// The command on a file of SQLite.
fn on_file(file: &Path, words: &[&str]) -> Ran {
    let mut command = Program::gatehouse(kit::gatehouse!(), &["migrate"]);
    command.args(words).args(["--engine=SQLite", "--database"]).arg(file);
    ran(command)
}

fn run_on(file: &Path, scripts: &Path, words: &[&str]) -> Ran {
    let scripts = format!("--scripts={}", scripts.display());
    on_file(file, &[&["run", &scripts][..], words].concat())
}

fn given(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/migrate/folders").join(name)
}

/// A folder with these scripts, and the place of a database beside them.
fn written(scripts: &[(&str, &[u8])]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("sql")).unwrap();
    for (name, text) in scripts {
        fs::write(folder.path().join("sql").join(name), text).unwrap();
    }
    let file = folder.path().join("base.db");
    (folder, file)
}

/// The ids of what is applied, in the order in which it ran.
fn applied(file: &Path) -> Vec<String> {
    let status = on_file(file, &["status"]).report;
    assert_eq!(status["outcome"], "Read", "{status}");
    let applied = status["applied"].as_array().into_iter().flatten();
    applied.map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

pub fn folders_of_other_tools_are_read_in_order(_: &Servers) {
    for (name, expected) in [
        ("golang-migrate", &["000001_orders", "000002_seed", "000003_engine"][..]),
        ("flyway", &["V1__orders", "V1.1__paid", "V2__seed", "V10__all_paid"]),
        ("numbers", &["1_orders", "2_paid", "10_seed"]),
        ("sqlx", &["20260101120000_orders", "20260102120000_paid"]),
        ("atlas", &["20260101120000", "20260102120000_paid"]),
        ("dates", &["2026_01_15_100000_orders", "2026_01_15_100001_paid", "2026_02_01_090000_seed"]),
        ("drizzle", &["0000_orders"]),
        ("one-engine", &["001_orders.sqlite"]),
    ] {
        let (_folder, file) = written(&[]);
        let ran = run_on(&file, &given(name), &[]);
        assert_eq!(ran.code, Some(0), "{name}: {ran:?}");
        assert_eq!(applied(&file), expected, "{name}");
    }
    let (_folder, file) = written(&[]);
    let ran = run_on(&file, &given("golang-migrate"), &[]);
    assert!(ran.stderr.contains("README.md"), "what is left out is named: {ran:?}");
}

pub fn folders_that_mean_something_else_are_refused_by_name(_: &Servers) {
    for (name, parts) in [
        ("flyway-undo", &["U1__orders.sql"][..]),
        ("flyway-repeatable", &["R__names.sql"]),
        ("flyway-baseline", &["B1__orders.sql"]),
        ("flyway-callback", &["afterMigrate.sql"]),
        ("flyway-settings", &["V1__orders.sql.conf"]),
        ("prisma", &["20260101120000_orders/migration.sql", "NAME.sql"]),
        ("diesel", &["2026-01-01-120000_orders/", "NAME.down.sql"]),
        ("diesel-one", &["down.sql"]),
        ("postgrator", &["001.undo.orders.sql", "001.do.orders.sql"]),
        ("db-migrate", &["20260101120000-orders-down.sql"]),
        ("dialects", &["001_orders.cockroach.up.sql", "001_orders.mysql.up.sql"]),
        ("dialects-behind", &["001_orders.sql.postgres"]),
        ("dialects-by-word", &["schema_mysql.sql"]),
        ("engines", &["postgres/, sqlite/"]),
        ("twins", &["1_orders.sql", "01_parts.sql"]),
        ("twins-of-two-tools", &["1_orders.sql", "V1__parts.sql"]),
        ("without-number", &["schema.sql"]),
        ("large-ending", &["002_PARTS.SQL"]),
        ("down-alone", &["002_parts.down.sql"]),
        ("none", &["no script is there", "README.md", "NAME.sql"]),
    ] {
        let (_folder, file) = written(&[]);
        for mode in ["Plan", "Apply"] {
            let ran = run_on(&file, &given(name), &["--mode", mode]);
            assert_eq!((ran.code, &ran.report), (Some(2), &Value::Null), "{name}: {ran:?}");
            for part in parts.iter().chain(&[name]) {
                assert!(ran.stderr.contains(part), "{part}: {ran:?}");
            }
        }
        assert!(!file.exists(), "{name}");
    }
}

pub fn sections_of_other_tools_are_refused_with_their_line(_: &Servers) {
    for (name, script, tool, line) in [
        ("goose", "00001_orders", "goose", 1),
        ("dbmate", "20260101120000_orders", "dbmate", 1),
        ("sql-migrate", "1-orders", "sql-migrate", 2),
        ("rambler", "01_orders", "rambler", 1),
        ("tern", "001_orders", "tern", 3),
        ("liquibase", "orders", "Liquibase", 1),
        ("node-pg-migrate", "1767225600000_orders", "another tool", 4),
        ("mybatis", "20260101120000_orders", "MyBatis Migrations", 4),
        ("shmig", "1767225600-orders", "another tool", 4),
        ("play", "1", "Play evolutions", 1),
    ] {
        let (_folder, file) = written(&[]);
        let ran = run_on(&file, &given(name), &[]);
        let blocked = &ran.report["blocked"];
        assert_eq!(
            (ran.code, &blocked["reason"], &blocked["id"]),
            (Some(20), &json!("NotRunnable"), &json!(script)),
            "{name}: {ran:?}"
        );
        let message = blocked["message"].as_str().unwrap();
        assert!(message.contains(&format!("({script}.sql)")), "{message}");
        assert!(message.contains(&format!("of {tool} in line {line}")), "{message}");
        assert_eq!(applied(&file), [""; 0], "{name}");
    }
}

pub fn a_down_script_with_sections_is_refused_before_its_script_runs(_: &Servers) {
    let (folder, file) = written(&[
        ("1_a.sql", b"CREATE TABLE a (b)"),
        ("1_a.down.sql", b"-- migrate:up\nCREATE TABLE a (b);\n-- migrate:down\nDROP TABLE a"),
    ]);
    let sql = folder.path().join("sql");
    let ran = run_on(&file, &sql, &[]);
    let message = ran.report["blocked"]["message"].as_str().unwrap_or_default().to_owned();
    assert_eq!(ran.code, Some(20), "{ran:?}");
    assert!(
        message.contains("the down script of 1_a (1_a.down.sql)") && message.contains("line 1"),
        "{message}"
    );
    // What is applied stays so, whatever an edit of its down script says: it is refused where it is to run.
    fs::write(sql.join("1_a.down.sql"), "DROP TABLE a").unwrap();
    assert_eq!(run_on(&file, &sql, &[]).code, Some(0));
    fs::write(sql.join("1_a.down.sql"), "-- +goose Down\nDROP TABLE a").unwrap();
    fs::write(sql.join("2_b.sql"), "CREATE TABLE b (c)").unwrap();
    fs::write(sql.join("2_b.down.sql"), "DROP TABLE b").unwrap();
    assert_eq!(run_on(&file, &sql, &[]).report["appliedNow"], 1);
    let ran = run_on(&file, &sql, &["--mode=Revert"]);
    assert_eq!((ran.code, &ran.report["blocked"]["id"]), (Some(20), &json!("1_a")), "{ran:?}");
    assert_eq!(applied(&file).len(), 2, "nothing is taken back where all is asked for and one cannot be");
}

pub fn a_script_that_counts_by_the_baseline_need_not_be_one_that_runs(_: &Servers) {
    let (folder, file) = written(&[("1_other.sql", b"CREATE TABLE old (a)")]);
    let sql = folder.path().join("sql");
    assert_eq!(run_on(&file, &sql, &["--series=other"]).code, Some(0));
    fs::remove_file(sql.join("1_other.sql")).unwrap();
    fs::write(sql.join("1_old.sql"), "-- +goose Up\nCREATE TABLE old (a);\n-- +goose Down\nDROP TABLE old")
        .unwrap();
    fs::write(sql.join("2_latin.sql"), b"INSERT INTO old VALUES ('caf\xe9')").unwrap();
    fs::write(sql.join("3_new.sql"), "CREATE TABLE new (a)").unwrap();
    let ran = run_on(&file, &sql, &["--baseline=2_latin"]);
    assert_eq!((ran.code, &ran.report["appliedNow"]), (Some(0), &json!(1)), "{ran:?}");
}

pub fn a_script_of_comments_alone_counts_as_applied(servers: &Servers) {
    for server in [&servers.postgres, &servers.mariadb] {
        let mut bed = Bed::new(server);
        bed.script("001", "CREATE TABLE a (b int)");
        bed.down("001", "-- stays\n/* as it is */");
        bed.script("002", "-- done on another engine\n\n/* twice */;\n");
        bed.down("002", "");
        bed.script("003", "-- nothing\n")["transaction"] = json!("None");
        bed.script("004", "INSERT INTO a VALUES (1)");
        if server.engine == "PostgreSQL" {
            bed.assignment["mode"] = json!("Rehearse");
            bed.succeeds("r0");
            bed.assignment["mode"] = json!("Apply");
        }
        assert_eq!(bed.succeeds("r1")["appliedNow"], 4);
        assert_eq!(bed.succeeds("r2")["appliedNow"], 0);
        assert_eq!(bed.history(), ["001 applied", "002 applied", "003 applied", "004 applied"]);
        bed.script("005", " \n");
        let blocked = bed.fails("r3", 20)["blocked"].clone();
        assert!(blocked["message"].as_str().unwrap().contains("is empty"), "{blocked}");
        bed.script("005", "-- now it says so");
        bed.succeeds("r4");
        // What an empty file takes back is not known.
        bed.assignment["scripts"].as_array_mut().unwrap().iter_mut().skip(2).for_each(|script| {
            script["down"] = script["up"].clone();
        });
        bed.down("004", "DELETE FROM a");
        bed.assignment["mode"] = json!("Revert");
        let blocked = bed.fails("r5", 20)["blocked"].clone();
        assert_eq!((&blocked["reason"], &blocked["id"]), (&json!("NotRunnable"), &json!("002")), "{blocked}");
        bed.down("002", "-- nothing was done");
        let reverted = bed.succeeds("r6")["reverted"].clone();
        assert_eq!(reverted, json!(["005", "004", "003", "002", "001"]));
        assert_eq!(bed.value("SELECT count(*) FROM a"), "0");
    }
}

pub fn a_byte_order_mark_hides_nothing(servers: &Servers) {
    let (folder, file) = written(&[("1_a.sql", b"\xef\xbb\xbfCOMMIT; CREATE TABLE a (b)")]);
    let sql = folder.path().join("sql");
    let ran = run_on(&file, &sql, &[]);
    let message = ran.report["blocked"]["message"].to_string();
    assert!(ran.code == Some(20) && message.contains("COMMIT in line 1"), "{ran:?}");
    for (text, part) in [
        (&b"CREATE TABLE a (b);\n\xef\xbb\xbfCOMMIT"[..], "byte order mark in line 2"),
        (b"\xff\xfeS\0E\0L\0E\0C\0T\0 \x001\0", "UTF-16"),
        (b"SELECT 1;\nSELECT 'caf\xe9'", "line 2"),
    ] {
        fs::write(sql.join("1_a.sql"), text).unwrap();
        let ran = run_on(&file, &sql, &[]);
        let message = ran.report["blocked"]["message"].as_str().unwrap_or_default().to_owned();
        assert_eq!(ran.code, Some(20), "{ran:?}");
        assert!(message.contains(part) && message.contains("1_a.sql"), "{message}");
    }
    for server in [&servers.postgres, &servers.mariadb] {
        let mut bed = Bed::new(server);
        bed.script("001", "\u{feff}CREATE TABLE a (b int);\nINSERT INTO a VALUES (1);\n");
        assert_eq!(bed.succeeds("r1")["appliedNow"], 1);
        let sum = bed.value("SELECT checksum FROM gatehouse_migrations");
        let marked = fs::read(bed.path("scripts/001.sql")).unwrap();
        assert_eq!(sum, gatehouse::api::checksum::checksum(&marked), "the checksum is that of the file");
        // An editor takes the mark away, or puts it there.
        bed.script("001", "CREATE TABLE a (b int);\nINSERT INTO a VALUES (1);\n");
        bed.succeeds("r2");
        bed.script("002", "SELECT 1");
        bed.succeeds("r3");
        bed.script("002", "\u{feff}SELECT 1");
        bed.succeeds("r4");
        bed.script("001", "CREATE TABLE a (b int);\r\nINSERT INTO a VALUES (1);\r\n");
        let blocked = bed.fails("r5", 20)["blocked"].clone();
        assert_eq!(blocked["reason"], "ChecksumMismatch");
        assert!(blocked["message"].as_str().unwrap().contains("only its line ends differ"), "{blocked}");
        bed.script("001", "CREATE TABLE a (b bigint);\r\nINSERT INTO a VALUES (1);\r\n");
        let blocked = bed.fails("r6", 20)["blocked"].clone();
        assert!(!blocked["message"].as_str().unwrap().contains("line ends"), "{blocked}");
    }
}

pub fn what_is_half_applied_names_the_line_ends_too(servers: &Servers) {
    let mut bed = Bed::new(&servers.mariadb);
    bed.script("001", "CREATE TABLE a (b int);\n\nCREATE TABLE c (d int);\nINSERT INTO absent VALUES (1)");
    bed.fails("r1", 20);
    bed.script("001", "CREATE TABLE a (b int);\r\n\r\nCREATE TABLE c (d int);\r\nINSERT INTO a VALUES (1)");
    let blocked = bed.fails("r2", 20)["blocked"].clone();
    assert!(blocked["message"].as_str().unwrap().contains("only its line ends differ"), "{blocked}");
}

pub fn an_order_by_text_that_was_begun_is_not_changed_in_silence(_: &Servers) {
    let (folder, file) = written(&[("10_c.sql", b"CREATE TABLE c (a)")]);
    let sql = folder.path().join("sql");
    // As text, 10 ran first.
    assert_eq!(run_on(&file, &sql, &[]).code, Some(0));
    fs::write(sql.join("2_b.sql"), "CREATE TABLE b (a)").unwrap();
    let ran = run_on(&file, &sql, &[]);
    assert_eq!((ran.code, &ran.report["blocked"]["reason"]), (Some(20), &json!("OutOfOrder")), "{ran:?}");
    let ran = run_on(&file, &sql, &["--out-of-order=Allow"]);
    assert_eq!((ran.code, applied(&file)), (Some(0), vec!["10_c".to_owned(), "2_b".to_owned()]), "{ran:?}");
    // Once all have run, the order is the order of the history.
    fs::write(sql.join("11_d.sql"), "CREATE TABLE d (a)").unwrap();
    assert_eq!(run_on(&file, &sql, &[]).report["appliedNow"], 1);
}

pub fn placeholders_of_other_tools_are_warned_of(_: &Servers) {
    let (folder, file) = written(&[("1_a.sql", b"CREATE TABLE a (b);\nINSERT INTO a VALUES ('${schema}')")]);
    let ran = run_on(&file, &folder.path().join("sql"), &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("script 1_a has a placeholder ${…} in line 2"), "{ran:?}");
}

pub fn a_file_that_is_not_there_is_no_empty_database(_: &Servers) {
    let (folder, file) = written(&[("1_a.sql", b"CREATE TABLE a (b)")]);
    let sql = folder.path().join("sql");
    let status = on_file(&file, &["status"]);
    assert_eq!(status.code, Some(2), "{status:?}");
    for mode in ["Plan", "Rehearse", "Revert"] {
        let ran = run_on(&file, &sql, &["--mode", mode]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("base.db does not exist"), "{ran:?}");
    }
    // An object plans and rehearses before its first script has made the file.
    let mut assignment = json!({
        "version": 1, "database": { "engine": "SQLite", "name": file }, "run": { "uid": "r" }, "mode": "Plan",
        "object": { "namespace": "a", "name": "b", "uid": "c" }, "scripts": [{ "id": "1_a", "up": { "file": "1_a.sql" } }],
    });
    let path = folder.path().join("assignment.json");
    for (mode, outcome) in [("Plan", "Planned"), ("Rehearse", "Rehearsed")] {
        assignment["mode"] = json!(mode);
        fs::write(&path, assignment.to_string()).unwrap();
        let mut command = Program::gatehouse(kit::gatehouse!(), &["migrate", "run", "--assignment"]);
        command.arg(&path).arg("--scripts").arg(&sql);
        let ran = ran(command);
        assert_eq!((ran.code, &ran.report["outcome"]), (Some(0), &json!(outcome)), "{ran:?}");
    }
    let mut left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["assignment.json", "sql"], "no file is made, not even for a lock");
    assert_eq!(run_on(&file, &sql, &[]).code, Some(0));
    assert_eq!(run_on(&file, &sql, &["--mode=Rehearse"]).code, Some(0));
}

pub fn an_edited_script_is_accepted_by_its_checksum(_: &Servers) {
    let (folder, file) =
        written(&[("1_a.sql", b"CREATE TABLE a (b INTEGER);"), ("2_b.sql", b"CREATE TABLE b (c INTEGER);")]);
    let sql = folder.path().join("sql");
    assert_eq!(run_on(&file, &sql, &[]).code, Some(0));
    for (name, text) in [("1_a", "CREATE TABLE a (b INTEGER); -- edited"), ("2_b", "-- edited")] {
        fs::write(sql.join(format!("{name}.sql")), text).unwrap();
    }
    fs::write(sql.join("3_c.sql"), "CREATE TABLE c (d INTEGER);").unwrap();
    let checksum = |words: &[&str]| {
        let ran = run_on(&file, &sql, words);
        assert_eq!(ran.code, Some(20), "{ran:?}");
        assert_eq!(ran.report["blocked"]["reason"], "ChecksumMismatch", "{ran:?}");
        assert!(ran.stderr.contains("--accept-checksum"), "{ran:?}");
        let [id, found] = ["id", "found"].map(|field| ran.report["blocked"][field].as_str().unwrap());
        format!("--accept-checksum={id}={found}")
    };
    let first = checksum(&[]);
    // The checksum of another text is none of this one.
    let other = first.replace("=1_a=", "=2_b=");
    assert_eq!(checksum(&[&other]), first);
    let second = checksum(&[&first]);
    assert!(second.starts_with("--accept-checksum=2_b="), "{second}");
    assert_eq!(run_on(&file, &sql, &[&first, &second, "--mode=Plan"]).code, Some(0));
    assert_eq!(applied(&file), ["1_a", "2_b"], "nothing has run");
    assert_eq!(run_on(&file, &sql, &[&first, &second]).report["appliedNow"], 1);
    let again = run_on(&file, &sql, &[]);
    assert_eq!((again.code, &again.report["appliedNow"]), (Some(0), &json!(0)), "the history has them");
    let unknown = first.replace("=1_a=", "=9_z=");
    for (words, named) in [
        (&[&*unknown][..], "\"9_z\" is none of the scripts"),
        (&[&*first, &*first], "\"1_a\" is there twice"),
        (&["--accept-checksum=1_a"], "expected ID=CHECKSUM"),
        (&["--accept-checksum=1_a=sha256:0"], "sha256: and 64 hexadecimal digits"),
        (&["--accept-checksum=-=sha256:0"], "sha256: and 64 hexadecimal digits"),
    ] {
        let ran = run_on(&file, &sql, words);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(named), "{named}: {ran:?}");
    }
}
