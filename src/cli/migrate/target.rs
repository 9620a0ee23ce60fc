//! The database that a command is about, and how it is reached.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::kinds::databasemigration::assignment::{
    Assignment, Database, Engine, History, Mode, TlsMode, is_id, is_identifier,
};
use crate::kinds::databasemigration::runner::{Access, Certificates};

/// The database.
#[derive(Args, Debug)]
pub struct Target {
    /// What the database is.
    #[arg(long, value_enum)]
    pub engine: Option<Engine>,
    /// Its server; for PostgreSQL, MySQL and MariaDB also the path of a socket (PostgreSQL: of its folder).
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// Its port. Absent: 5432 for PostgreSQL, 3306 for MySQL and MariaDB.
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Its name; for SQLite, its file.
    #[arg(long, value_name = "NAME")]
    pub database: Option<String>,
    /// How the connection is encrypted.
    #[arg(long, value_enum, default_value = "Require")]
    pub tls_mode: TlsMode,
    /// Schema of the history table. Absent: public, and for MySQL and MariaDB the database.
    #[arg(long, value_name = "NAME", value_parser = identifier)]
    pub history_schema: Option<String>,
    /// The history table.
    #[arg(long, value_name = "NAME", default_value = "gatehouse_migrations", value_parser = identifier)]
    pub history_table: String,
    /// The series of scripts.
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = id)]
    pub series: String,
}

/// How the database is reached.
#[derive(Args, Debug)]
pub struct Reach {
    /// Folder with the files username and password, such as a mounted Secret. Absent: the variables
    /// GATEHOUSE_DATABASE_USERNAME and GATEHOUSE_DATABASE_PASSWORD.
    #[arg(long, value_name = "FOLDER")]
    credentials: Option<PathBuf>,
    /// The file in that folder that has the user name.
    #[arg(long, value_name = "KEY", default_value = "username")]
    username_key: String,
    /// The file in that folder that has the password.
    #[arg(long, value_name = "KEY", default_value = "password")]
    password_key: String,
    /// Folder with ca.crt, and with tls.crt and tls.key where the server asks for a client certificate.
    #[arg(long, value_name = "FOLDER")]
    tls: Option<PathBuf>,
}

/// The variable that has the password: a command line is not secret.
const PASSWORD: &str = "GATEHOUSE_DATABASE_PASSWORD";
/// The variable that has the user name.
const USERNAME: &str = "GATEHOUSE_DATABASE_USERNAME";

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

impl Target {
    /// The database of the command line.
    pub fn database(&self) -> Result<Database, String> {
        let (Some(engine), Some(name)) = (self.engine, self.database.clone()) else {
            return Err("--engine and --database say which database".to_owned());
        };
        Ok(Database {
            engine,
            host: self.host.clone(),
            port: self.port,
            name,
            file: None,
            tls: self.tls_mode,
        })
    }

    /// The history of the command line.
    pub fn history(&self) -> History {
        History {
            schema: self.history_schema.clone(),
            table: self.history_table.clone(),
            series: self.series.clone(),
        }
    }
}

impl Reach {
    /// How a database is reached.
    pub fn access(&self, database: &Database, application: &str) -> Result<Access, String> {
        let (user, password) = match &self.credentials {
            Some(folder) => {
                let read = |key: &str| {
                    let text = read(&folder.join(key))?;
                    let text = String::from_utf8(text);
                    text.map_err(|_| format!("{} is not UTF-8", folder.join(key).display()))
                };
                (read(&self.username_key)?, read(&self.password_key)?)
            }
            None => (variable(USERNAME), variable(PASSWORD)),
        };
        if user.is_empty() && database.engine != Engine::SQLite {
            return Err(format!(
                "{} needs a user: --credentials names a folder with it, or GATEHOUSE_DATABASE_USERNAME has it",
                database.engine
            ));
        }
        let certificates = self.tls.as_deref().map(certificates).transpose()?.unwrap_or_default();
        let application = application.to_owned();
        Ok(Access {
            database: database.clone(),
            user,
            password,
            certificates,
            application,
            only_reads: false,
        })
    }
}

fn certificates(folder: &Path) -> Result<Certificates, String> {
    let optional = |name: &str| {
        let path = folder.join(name);
        path.exists().then(|| read(&path)).transpose()
    };
    let authority = optional("ca.crt")?;
    let client = match (optional("tls.crt")?, optional("tls.key")?) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => return Err(format!("{} has one of tls.crt and tls.key without the other", folder.display())),
    };
    Ok(Certificates { authority, client })
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("failed to read {}: {error}", path.display()))
}

/// Reads an assignment.
pub fn assignment(path: &Path) -> Result<Assignment, String> {
    let text =
        fs::read_to_string(path).map_err(|error| format!("failed to read {}: {error}", path.display()))?;
    Assignment::read(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Whether what is asked for can be about a database that is not there: a file of SQLite is made by `Apply` alone. An object
/// plans before its first script has made the file.
pub fn is_there(assignment: &Assignment) -> Result<(), String> {
    let Database { engine, name, .. } = &assignment.database;
    if *engine != Engine::SQLite
        || assignment.mode == Mode::Apply
        || assignment.object.is_some()
        || Path::new(name).exists()
    {
        return Ok(());
    }
    Err(format!("--database: the file {name} does not exist, and mode Apply alone makes it"))
}

/// The name by which the server shows the client of a run.
pub fn application(assignment: &Assignment) -> String {
    match &assignment.object {
        Some(object) => format!("gatehouse/{}/{}/{}", object.namespace, object.name, assignment.run.attempt),
        None => "gatehouse".to_owned(),
    }
}

fn identifier(text: &str) -> Result<String, String> {
    is_identifier(text)
        .then(|| text.to_owned())
        .ok_or_else(|| "must be 1 to 58 of A-Z a-z 0-9 _, and not begin with a digit".to_owned())
}

/// The id of a script, or the name of a series.
pub fn id(text: &str) -> Result<String, String> {
    is_id(text).then(|| text.to_owned()).ok_or_else(|| "must be 1 to 128 of A-Z a-z 0-9 . _ -".to_owned())
}
