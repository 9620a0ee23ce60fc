//! A database that nothing is in, what runs in it, and all that it has by then as text.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

use kit::databases::Server;
use kit::program::Program;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::text::Part;

static BASES: AtomicUsize = AtomicUsize::new(0);

/// What scripts run on.
#[derive(Clone, Copy)]
pub enum Engine<'a> {
    Server(&'a Server),
    Sqlite,
}

impl Engine<'_> {
    pub fn name(self) -> &'static str {
        match self {
            Self::Server(server) => server.engine,
            Self::Sqlite => "SQLite",
        }
    }

    /// Whether a change of a table commits.
    pub fn commits_by_itself(self) -> bool {
        matches!(self.name(), "MariaDB" | "MySQL")
    }

    /// Makes the roles that scripts grant something to.
    pub fn make_roles(self) {
        let Self::Server(server) = self else { return };
        for role in ["reader", "writer"] {
            // Another test may make it at the same moment.
            let sql = match server.engine {
                "PostgreSQL" => format!(
                    "DO $$ BEGIN CREATE ROLE {role}; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
                ),
                _ => format!("CREATE ROLE IF NOT EXISTS {role}"),
            };
            server.sql("", &sql);
        }
    }

    /// The folders of its scripts.
    pub fn folders(self) -> &'static [&'static str] {
        match self.name() {
            "PostgreSQL" => &["postgres"],
            "MariaDB" => &["my", "mariadb"],
            "MySQL" => &["my", "mysql"],
            _ => &["sqlite"],
        }
    }
}

/// A script as it is assigned.
pub struct Assigned {
    pub id: String,
    pub text: String,
    pub is_outside: bool,
}

/// A database.
pub struct Base<'a> {
    pub engine: Engine<'a>,
    name: String,
    folder: TempDir,
}

/// How a run ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub result: Value,
    pub stderr: String,
}

impl<'a> Base<'a> {
    pub fn new(engine: Engine<'a>) -> Self {
        let number = BASES.fetch_add(1, Ordering::Relaxed);
        let folder = tempfile::tempdir().unwrap();
        let name = match engine {
            Engine::Server(server) => {
                let name = format!("corpus{number}");
                // PostgreSQL writes each page into its log otherwise.
                let is_postgres = server.engine == "PostgreSQL";
                let how = if is_postgres { "STRATEGY = FILE_COPY" } else { "CHARACTER SET utf8mb4" };
                server.sql("", &format!("CREATE DATABASE {name} {how}"));
                name
            }
            Engine::Sqlite => folder.path().join("base.db").to_str().unwrap().to_owned(),
        };
        Self { engine, name, folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a script by the engine's own client.
    pub fn by_client(&self, part: &Part) -> Result<(), String> {
        let file = self.path("client.sql");
        let mut command = match self.engine {
            Engine::Server(server) if server.engine == "PostgreSQL" => {
                let mut command = server.client("psql");
                command.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-f"]).arg(&file);
                command.args((!part.is_outside).then_some("-1")).arg(&self.name);
                command
            }
            Engine::Server(server) => {
                let mut command = server.client(if server.engine == "MySQL" { "mysql" } else { "mariadb" });
                command.args(["--comments", &self.name]);
                command
            }
            Engine::Sqlite => {
                let mut command = Command::new("sqlite3");
                let read = format!(".read {}", file.display());
                let words =
                    if part.is_outside { vec![read] } else { vec!["BEGIN".into(), read, "COMMIT".into()] };
                command.args(["-bail", &self.name]).args(words);
                command
            }
        };
        let text = if self.engine.commits_by_itself() { part.for_client() } else { part.text.clone() };
        fs::write(&file, text).unwrap();
        said(command.stdin(File::open(&file).unwrap()).output().unwrap()).map(drop)
    }

    /// Runs scripts by gatehouse.
    pub fn by_gatehouse(&self, scripts: &[Assigned], run: &str, with: &With) -> Ended {
        let folder = self.path(run);
        fs::create_dir_all(folder.join("scripts")).unwrap();
        let assigned = scripts.iter().map(|Assigned { id, text, is_outside }| {
            fs::write(folder.join("scripts").join(id), text).unwrap();
            let transaction = if *is_outside { "None" } else { "Required" };
            json!({ "id": id, "up": { "file": id }, "transaction": transaction })
        });
        let database = match self.engine {
            Engine::Server(server) => json!({
                "engine": server.engine, "host": "127.0.0.1", "port": server.port, "name": self.name, "tls": "Disable",
            }),
            Engine::Sqlite => json!({ "engine": "SQLite", "name": self.name }),
        };
        let mut assignment = json!({
            "version": 1, "database": database, "run": { "uid": run }, "mode": with.mode.unwrap_or("Apply"), "lockWait": "60s",
            "scripts": assigned.collect::<Vec<_>>(),
        });
        if let Some((id, word)) = with.answer {
            assignment["resolve"] = json!({ "id": id, "as": word });
        }
        fs::write(folder.join("assignment"), assignment.to_string()).unwrap();
        let mut command = Program::gatehouse(&program(), &["migrate", "run"]);
        command.arg("--assignment").arg(folder.join("assignment"));
        command.arg("--scripts").arg(folder.join("scripts"));
        command.arg("--termination-log").arg(folder.join("report"));
        if let Some(point) = &with.death {
            let reached = folder.join("points");
            command.env("GATEHOUSE_FAIL_POINTS", format!("kill:{}:{point}", reached.display()));
        }
        self.ended(command)
    }

    /// Runs all scripts of a folder by gatehouse.
    pub fn folder_by_gatehouse(&self, scripts: &std::path::Path) -> Ended {
        let mut command = Program::gatehouse(&program(), &["migrate", "run"]);
        command.args(["--engine", self.engine.name(), "--database", &self.name, "--tls-mode", "Disable"]);
        if let Engine::Server(server) = self.engine {
            command.args(["--host", "127.0.0.1", "--port", &server.port.to_string()]);
        }
        command.arg("--scripts").arg(scripts).arg("--termination-log").arg(self.path("report"));
        self.ended(command)
    }

    fn ended(&self, mut command: Command) -> Ended {
        command.env("GATEHOUSE_DATABASE_USERNAME", "root").env("GATEHOUSE_DATABASE_PASSWORD", "");
        // The log as users have it: two lines a statement cost more than the statement.
        command.env_remove("GATEHOUSE_LOG");
        let output = command.current_dir(self.folder.path()).output().unwrap();
        let result = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let errors = stderr.lines().filter(|line| line.starts_with("error"));
        Ended { code: output.status.code(), result, stderr: errors.collect::<Vec<_>>().join("\n") }
    }

    /// Resets the numbers of rows that a rollback has used up, as a person does before the answer `retry`.
    pub fn reset_numbers(&self) {
        let Engine::Server(server) = self.engine else { return };
        if server.engine == "PostgreSQL" {
            return;
        }
        let numbered = format!(
            "SELECT table_name FROM information_schema.columns WHERE table_schema = '{}' AND extra LIKE '%auto_increment%'",
            self.name
        );
        for table in server.sql("", &numbered).into_iter().flatten() {
            server.sql(&self.name, &format!("ALTER TABLE `{table}` AUTO_INCREMENT = 1"));
        }
    }

    /// All that it has, without the tables of the history.
    pub fn dump(&self) -> String {
        self.try_dump().unwrap()
    }

    /// The same. A database whose run died may have a view without its table, which no program dumps.
    pub fn try_dump(&self) -> Result<String, String> {
        let dumped = match self.engine {
            Engine::Server(server) if server.engine == "PostgreSQL" => Ok(self.dump_of_postgres(server, &[])),
            Engine::Server(server) => {
                self.dump_of_my(server, &["--skip-add-drop-table"]).map(|text| text + &self.grants(server))
            }
            Engine::Sqlite => Ok(self.dump_of_sqlite()),
        };
        let renamed = |text: String| text.replace(&self.name, "BASE");
        dumped.map(renamed).map_err(renamed)
    }

    /// The engine's own dump, in a form that gatehouse takes.
    pub fn loadable_dump(&self) -> String {
        match self.engine {
            Engine::Server(server) if server.engine == "PostgreSQL" => {
                self.dump_of_postgres(server, &["--inserts"])
            }
            Engine::Server(server) => self.dump_of_my(server, &["--skip-add-locks"]).unwrap(),
            Engine::Sqlite => {
                let dumped =
                    said(Command::new("sqlite3").args(["-bail", &self.name, ".dump"]).output().unwrap());
                let transaction = ["BEGIN TRANSACTION;", "COMMIT;"];
                let dumped = dumped.unwrap();
                let lines = dumped.lines().filter(|line| !transaction.contains(line));
                lines.collect::<Vec<_>>().join("\n")
            }
        }
    }

    fn dump_of_postgres(&self, server: &Server, options: &[&str]) -> String {
        let mut command = server.client("pg_dump");
        command.args(options).args(["--exclude-table=public.gatehouse_migrations*", &self.name]);
        // Half of the time went into compiling queries that run once.
        command.env("PGOPTIONS", "-c jit=off");
        let text = said(command.output().unwrap()).unwrap();
        // Each dump has another word there.
        let lines = text
            .lines()
            .filter(|line| !line.starts_with(r"\restrict ") && !line.starts_with(r"\unrestrict "));
        lines.collect::<Vec<_>>().join("\n")
    }

    fn dump_of_my(&self, server: &Server, options: &[&str]) -> Result<String, String> {
        let is_mysql = server.engine == "MySQL";
        let mut command = server.client(if is_mysql { "mysqldump" } else { "mariadb-dump" });
        command.args(["--routines", "--triggers", "--events", "--skip-comments", "--hex-blob"]).args(options);
        for table in ["gatehouse_migrations", "gatehouse_migrations_lock"] {
            command.arg(format!("--ignore-table={}.{table}", self.name));
        }
        said(command.arg(&self.name).output().unwrap())
    }

    fn grants(&self, server: &Server) -> String {
        let of_table = |(table, columns)| {
            let name = &self.name;
            format!(
                "SELECT CONCAT_WS('/', '{table}', {columns}) AS one FROM mysql.{table} WHERE Db = '{name}'"
            )
        };
        let tables = [
            ("tables_priv", "User, Table_name, Table_priv, Column_priv"),
            ("columns_priv", "User, Table_name, Column_name, Column_priv"),
            ("procs_priv", "User, Routine_name, Routine_type, Proc_priv"),
        ];
        let query = tables.map(of_table).join(" UNION ALL ");
        format!("{:?}", server.sql("", &format!("{query} ORDER BY 1")))
    }

    fn dump_of_sqlite(&self) -> String {
        let mut command = Command::new("sqlite3");
        command.args(["-bail", &self.name]);
        // Nothing is committed: a run may go on with this database and its history.
        let drops = "BEGIN; DROP TABLE IF EXISTS gatehouse_migrations; DROP TABLE IF EXISTS gatehouse_migrations_lock; \
                     DROP TABLE IF EXISTS sqlite_stat4";
        let values = "PRAGMA user_version; PRAGMA application_id; PRAGMA encoding; PRAGMA auto_vacuum; \
                      PRAGMA page_size; PRAGMA journal_mode; PRAGMA integrity_check; PRAGMA foreign_key_check";
        said(command.args([drops, ".dump", values]).output().unwrap()).unwrap()
    }
}

impl Drop for Base<'_> {
    fn drop(&mut self) {
        if let Engine::Server(server) = self.engine {
            let forced = if server.engine == "PostgreSQL" { " WITH (FORCE)" } else { "" };
            let dropped = server.try_sql("", &format!("DROP DATABASE {}{forced}", self.name));
            if let Err(error) = dropped {
                println!("{}: {error}", self.name);
            }
        }
    }
}

/// The program of this build, or the one whose figures are asked for.
fn program() -> PathBuf {
    std::env::var_os("GATEHOUSE_PROGRAM").map_or_else(|| kit::gatehouse!().to_owned(), PathBuf::from)
}

/// What a run has beside its scripts.
#[derive(Default)]
pub struct With<'a> {
    /// The mode, where it is not `Apply`.
    pub mode: Option<&'a str>,
    /// The script in doubt, and what a person says of it.
    pub answer: Option<(&'a str, &'a str)>,
    /// The point that the process dies at.
    pub death: Option<String>,
}

/// What a program printed; what it complained of where it failed.
fn said(output: Output) -> Result<String, String> {
    let [printed, complained] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    if output.status.success() { Ok(printed) } else { Err(format!("{complained}{printed}")) }
}
