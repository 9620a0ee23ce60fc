//! A database with a user of its own, scripts in a folder, and runs of the program on them.
//!
//! Guarantees: after every run that ends here, neither the password nor the user of the database is in anything that the
//! run wrote.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use kit::databases::Server;
use kit::program::Program;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A password that breaks URLs, shells and SQL.
pub const PASSWORD: &str = r#"p@:/%'"\ß x"#;

static BEDS: AtomicUsize = AtomicUsize::new(0);

/// A database, and what runs on it.
pub struct Bed<'a> {
    pub server: &'a Server,
    pub name: String,
    pub user: String,
    pub folder: TempDir,
    pub assignment: Value,
}

/// How a run ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub result: Value,
    pub stderr: String,
}

impl<'a> Bed<'a> {
    pub fn new(server: &'a Server) -> Self {
        let number = BEDS.fetch_add(1, Ordering::Relaxed);
        let (name, user) = (format!("base{number}"), format!("user_of_{number}"));
        server.make(&name, &user, PASSWORD);
        let folder = tempfile::tempdir().unwrap();
        for name in ["scripts", "secrets", "credentials"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("credentials/username"), &user).unwrap();
        fs::write(folder.path().join("credentials/password"), PASSWORD).unwrap();
        // What MySQL asks of a user with a password, it asks on an encrypted connection alone.
        let tls = if server.engine == "MySQL" { "Require" } else { "Disable" };
        let assignment = json!({
            "version": 1,
            "database": {
                "engine": server.engine, "host": "127.0.0.1", "port": server.port, "name": name, "tls": tls,
            },
            "history": { "series": "shop" },
            "object": { "namespace": "shop", "name": "shop", "uid": "u1" },
            "run": { "uid": "r1" },
            "mode": "Apply",
            "lockWait": "60s",
            // Tests make tables for themselves before the first run.
            "existingTables": "Ignore",
            "scripts": [],
        });
        Self { server, name, user, folder, assignment }
    }

    /// Writes a script, and adds it to the list where it is not there.
    pub fn script(&mut self, id: &str, text: &str) -> &mut Value {
        let file = format!("{id}.sql");
        fs::write(self.path("scripts").join(&file), text).unwrap();
        let scripts = self.assignment["scripts"].as_array_mut().unwrap();
        if !scripts.iter().any(|script| script["id"] == id) {
            scripts.push(json!({ "id": id, "up": { "file": file } }));
        }
        scripts.iter_mut().find(|script| script["id"] == id).unwrap()
    }

    /// Adds what takes a script back.
    pub fn down(&mut self, id: &str, text: &str) {
        let file = format!("{id}.down.sql");
        fs::write(self.path("scripts").join(&file), text).unwrap();
        let scripts = self.assignment["scripts"].as_array_mut().unwrap();
        let script = scripts.iter_mut().find(|script| script["id"] == id).unwrap();
        script["down"] = json!({ "file": file });
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn sql(&self, text: &str) -> Vec<Vec<String>> {
        self.server.sql(&self.name, text)
    }

    /// The single value of a query.
    #[track_caller]
    pub fn value(&self, text: &str) -> String {
        self.sql(text)[0][0].clone()
    }

    /// The rows of the history, as id and state.
    pub fn history(&self) -> Vec<String> {
        let rows = self.sql("SELECT id, state FROM gatehouse_migrations ORDER BY position, id");
        rows.into_iter().map(|row| row.join(" ")).collect()
    }

    /// The command line of a run of its own, and where its report goes.
    pub fn command(&self, run: &str) -> (Command, PathBuf) {
        self.command_of(run, run)
    }

    /// The same for a process of its own that is of the run with that uid, as each pod of a Job is.
    pub fn command_of(&self, run: &str, uid: &str) -> (Command, PathBuf) {
        let mut assignment = self.assignment.clone();
        assignment["run"] = json!({ "uid": uid });
        let (file, report) = (self.path(&format!("{run}.json")), self.path(&format!("{run}.report")));
        fs::write(&file, assignment.to_string()).unwrap();
        let mut command = Program::gatehouse(kit::gatehouse!(), &["migrate", "run"]);
        command.arg("--assignment").arg(&file).arg("--scripts").arg(self.path("scripts"));
        command.arg("--secret-scripts").arg(self.path("secrets"));
        command.arg("--credentials").arg(self.path("credentials"));
        command.arg("--termination-log").arg(&report);
        (command, report)
    }

    /// Runs the program to its end.
    pub fn run(&self, run: &str) -> Ended {
        let (command, report) = self.command(run);
        self.ended(command, &report)
    }

    pub fn ended(&self, mut command: Command, report: &Path) -> Ended {
        // All that any library could log.
        let output = command.env("GATEHOUSE_LOG", "trace,mio=off").output().unwrap();
        let (stdout, stderr) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        let text = fs::read_to_string(report).unwrap_or_default();
        for written in [&stdout, &stderr, &text] {
            assert!(!written.contains(PASSWORD), "the password is in {written}");
            let json = serde_json::to_string(PASSWORD).unwrap();
            assert!(!written.contains(json.trim_matches('"')), "the password is in {written}");
            assert!(!written.contains(&self.user), "the user is in {written}");
        }
        let result: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        if !result.is_null() {
            assert!(text.len() <= 4096);
            assert_eq!(serde_json::from_str::<Value>(&stdout).unwrap(), result);
        }
        Ended { code: output.status.code(), result, stderr }
    }

    /// Runs the program, which has to do all that is asked.
    #[track_caller]
    pub fn succeeds(&self, run: &str) -> Value {
        let ended = self.run(run);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.result
    }

    /// Runs the program, which has to end with that code.
    #[track_caller]
    pub fn fails(&self, run: &str, code: i32) -> Value {
        let ended = self.run(run);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.stderr.contains("error:"), "{ended:?}");
        ended.result
    }

    /// Starts a run beside the test.
    pub fn start(&self, run: &str) -> (Program, PathBuf) {
        self.start_of(run, run)
    }

    /// Starts a process of the run with that uid beside the test.
    pub fn start_of(&self, run: &str, uid: &str) -> (Program, PathBuf) {
        let (command, report) = self.command_of(run, uid);
        (Program::start(&command, &self.path(&format!("{run}.log"))).unwrap(), report)
    }
}

/// What a run beside the test reported.
pub fn report(file: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}
