//! What must not be shown. That the password and the user are not, every run of every test checks (`bed.rs`).

use super::bed::{Bed, PASSWORD};
use kit::databases::Servers;

/// What rows and scripts contain.
const VALUE: &str = "a.person@example.org";

pub fn neither_credentials_nor_values_are_shown(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    let table =
        format!("CREATE TABLE a (b text UNIQUE, n int CHECK (n > 0)); INSERT INTO a VALUES ('{VALUE}', 1)");
    bed.script("001", &table);
    bed.succeeds("r0");
    let cases = [
        ("23505", "Constraint", format!("INSERT INTO a VALUES ('{VALUE}', 2)")),
        ("23514", "Constraint", format!("INSERT INTO a VALUES ('{VALUE}1', -1)")),
        ("22P02", "Data", format!("INSERT INTO a VALUES ('x', '{VALUE}')")),
        ("42601", "Syntax", format!("SELEC '{VALUE}'")),
        ("42601", "Syntax", format!("SELECT 1 '{VALUE}'")),
        ("P0001", "Other", format!("DO $$ BEGIN RAISE EXCEPTION '{VALUE} {}'; END $$", "$")),
        ("22012", "Data", format!("DO $$ BEGIN RAISE NOTICE '{VALUE}'; PERFORM 1 / 0; END $$")),
        (
            "22012",
            "Data",
            format!(
                "SET client_min_messages = debug1; DO $$ BEGIN RAISE WARNING '{VALUE}'; PERFORM 1 / 0; END $$"
            ),
        ),
        ("42703", "Other", format!("INSERT INTO a (b) VALUES (\"{VALUE}\")")),
        ("42703", "Other", format!("SELECT a.\"{VALUE}\" FROM a")),
        ("42501", "Permission", format!("SET SESSION AUTHORIZATION root; SELECT '{VALUE}'")),
    ];
    for (number, (state, class, text)) in cases.iter().enumerate() {
        bed.script("002", text);
        let ended = bed.run(&format!("r{}", number + 1));
        assert_eq!(ended.code, Some(20), "{ended:?}");
        let error = &ended.result["lastError"];
        assert_eq!(
            (error["sqlState"].as_str(), error["class"].as_str()),
            (Some(*state), Some(*class)),
            "{error}"
        );
        assert!(!ended.stderr.contains(VALUE) && !ended.result.to_string().contains(VALUE), "{ended:?}");
    }
    let history = bed.sql("SELECT gatehouse_migrations::text FROM gatehouse_migrations");
    let history = format!("{history:?}");
    assert!(
        !history.contains(VALUE) && !history.contains(PASSWORD) && !history.contains(&bed.user),
        "{history}"
    );
}

pub fn a_wrong_password_is_not_shown(servers: &Servers) {
    for server in [&servers.postgres, &servers.mariadb] {
        let mut bed = Bed::new(server);
        bed.script("001", "SELECT 1");
        std::fs::write(bed.path("credentials/password"), "wr@ng'secret").unwrap();
        let ended = bed.run("r1");
        assert_eq!(ended.code, Some(20), "{ended:?}");
        assert_eq!(ended.result["lastError"]["class"], "Authentication");
        assert!(!ended.stderr.contains("wr@ng") && !ended.result.to_string().contains("wr@ng"), "{ended:?}");
        bed.assignment["database"]["port"] = serde_json::json!(1);
        let ended = bed.run("r2");
        assert_eq!((ended.code, ended.result["lastError"]["class"].as_str()), (Some(10), Some("Connection")));
    }
}
