//! Applications that wait for a script.

use std::fs;
use std::process::Command;

use kit::databases::Servers;
use kit::program::Program;

use super::bed::{Bed, PASSWORD};

/// The command that waits for a script, with the credentials of that folder.
fn wait(bed: &Bed<'_>, credentials: &str, id: &str, timeout: &str) -> Command {
    let mut command = Program::gatehouse(kit::gatehouse!(), &["migrate", "wait", "--host", "127.0.0.1"]);
    let port = bed.server.port.to_string();
    command.args(["--engine", bed.server.engine, "--port", &port, "--tls-mode", "Disable"]);
    command.args(["--database", &bed.name, "--series", "shop", "--min-id", id, "--timeout", timeout]);
    command.arg("--credentials").arg(bed.path(credentials));
    command
}

pub fn an_application_waits_for_a_script(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.script("001", "CREATE TABLE a ()");
    let early = bed.ended(wait(&bed, "credentials", "001", "0s"), &bed.path("none"));
    assert_eq!(early.code, Some(1));
    assert!(early.stderr.contains("script 001 of the series shop is not applied"), "{}", early.stderr);
    let waiting = Program::start(&wait(&bed, "credentials", "001", "2m"), &bed.path("wait.log")).unwrap();
    waiting.logs("waiting");
    bed.succeeds("r1");
    assert_eq!(waiting.code(), Some(0));
    assert_eq!(bed.ended(wait(&bed, "credentials", "002", "0s"), &bed.path("none")).code, Some(1));
}

pub fn an_application_needs_to_read_the_history_alone(servers: &Servers) {
    for server in [&servers.postgres, &servers.mariadb] {
        let mut bed = Bed::new(server);
        bed.script("001", "CREATE TABLE a (b int)");
        bed.succeeds("r1");
        let reader = format!("reader_{}", bed.name);
        let quoted = PASSWORD.replace('\'', "''");
        if server.engine == "PostgreSQL" {
            bed.sql(&format!("CREATE ROLE {reader} LOGIN PASSWORD '{quoted}'"));
            bed.sql(&format!("GRANT SELECT ON gatehouse_migrations TO {reader}"));
        } else {
            let quoted = quoted.replace('\\', r"\\");
            bed.sql(&format!("CREATE USER {reader}@'%' IDENTIFIED BY '{quoted}'"));
            bed.sql(&format!("GRANT SELECT ON gatehouse_migrations TO {reader}@'%'"));
        }
        let folder = bed.path("reader");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("username"), &reader).unwrap();
        fs::write(folder.join("password"), PASSWORD).unwrap();
        let ended = bed.ended(wait(&bed, "reader", "001", "0s"), &bed.path("none"));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let ended = bed.ended(wait(&bed, "reader", "002", "0s"), &bed.path("none"));
        assert_eq!(ended.code, Some(1), "{ended:?}");
    }
}
