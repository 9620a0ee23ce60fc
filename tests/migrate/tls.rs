//! Encrypted connections.

use kit::databases::{Server, Servers};
use std::fs;

use serde_json::json;

use super::bed::{Bed, Ended};

fn run(bed: &Bed<'_>, name: &str) -> Ended {
    let (mut command, report) = bed.command(name);
    command.arg("--tls").arg(bed.path("tls"));
    bed.ended(command, &report)
}

fn give(bed: &Bed<'_>, server: &Server, files: &[(&str, &str)]) {
    let folder = bed.path("tls");
    let _absent = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).unwrap();
    for (from, to) in files {
        fs::copy(server.folder.path().join(from), folder.join(to)).unwrap();
    }
}

pub fn certificates_are_checked_as_the_mode_says(servers: &Servers) {
    let is_encrypted =
        "CREATE TABLE is_encrypted AS SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let bed = checked(&servers.postgres, is_encrypted);
    assert_eq!(bed.value("SELECT ssl::text FROM is_encrypted"), "true");
}

pub fn certificates_of_mariadb_are_checked_as_the_mode_says(servers: &Servers) {
    let is_encrypted = "CREATE TABLE is_encrypted AS SELECT variable_value AS cipher \
                        FROM information_schema.session_status WHERE variable_name = 'Ssl_cipher'";
    let bed = checked(&servers.mariadb, is_encrypted);
    assert!(bed.value("SELECT cipher FROM is_encrypted").starts_with("TLS_"), "a cipher of TLS 1.3");
}

/// Runs with each mode and certificate, the first of which applies the script.
fn checked<'a>(server: &'a Server, script: &str) -> Bed<'a> {
    let mut bed = Bed::new(server);
    bed.script("001", script);
    let own: &[(&str, &str)] = &[("ca.crt", "ca.crt")];
    let other: &[(&str, &str)] = &[("other.crt", "ca.crt")];
    // The certificate is for 127.0.0.1 alone.
    for (number, (mode, host, files, code)) in [
        ("Require", "localhost", other, 0),
        ("VerifyCA", "localhost", own, 0),
        ("VerifyFull", "127.0.0.1", own, 0),
        ("VerifyCA", "localhost", other, 20),
        ("VerifyFull", "localhost", own, 20),
        ("VerifyFull", "127.0.0.1", &[], 20),
    ]
    .into_iter()
    .enumerate()
    {
        bed.assignment["database"]["tls"] = json!(mode);
        bed.assignment["database"]["host"] = json!(host);
        give(&bed, server, files);
        let ended = run(&bed, &format!("r{number}"));
        assert_eq!(ended.code, Some(code), "{mode} {host} {ended:?}");
        if code != 0 {
            assert_eq!(ended.result["lastError"]["class"], "Tls", "{ended:?}");
        }
    }
    bed
}

pub fn a_client_certificate_lets_in(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    servers.postgres.sql("", "CREATE ROLE by_certificate LOGIN");
    bed.sql("GRANT ALL ON SCHEMA public TO by_certificate");
    fs::write(bed.path("credentials/username"), "by_certificate").unwrap();
    fs::write(bed.path("credentials/password"), "").unwrap();
    bed.assignment["database"]["tls"] = json!("VerifyFull");
    bed.script("001", "CREATE TABLE a ()");
    give(&bed, &servers.postgres, &[("ca.crt", "ca.crt")]);
    assert_eq!(run(&bed, "r1").result["lastError"]["class"], "Authentication");
    give(
        &bed,
        &servers.postgres,
        &[("ca.crt", "ca.crt"), ("client.crt", "tls.crt"), ("client.key", "tls.key")],
    );
    let ended = run(&bed, "r2");
    assert_eq!(ended.code, Some(0), "{ended:?}");
}
