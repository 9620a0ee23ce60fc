//! Access to a database: credentials, certificates, and the connection that follows from them.
//!
//! Guarantees: credentials are fields of the connection and never a URL, so that any character may be in them; what is
//! printed for debugging has none of them. Statements are not logged.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection as _, PgConnection, SqliteConnection};

use super::super::assignment::{Database, Engine, TlsMode};
use super::super::result::Class;
use super::failure::{Failure, Secrets};
use super::mysql::{self, Trust};

/// How long a server may take to let a client in.
const PATIENCE: Duration = Duration::from_secs(15);

/// How a database is reached.
#[derive(Clone)]
pub struct Access {
    /// The database.
    pub database: Database,
    /// The user. Empty for SQLite.
    pub user: String,
    /// The password. Empty: none.
    pub password: String,
    /// The certificates.
    pub certificates: Certificates,
    /// What the server shows of this client.
    pub application: String,
    /// Nothing is written: a file of SQLite that is not there is read as an empty database, and is not made.
    pub only_reads: bool,
}

/// Certificates, as PEM.
#[derive(Clone, Default)]
pub struct Certificates {
    /// That of the authority.
    pub authority: Option<Vec<u8>>,
    /// That of the client, and its key.
    pub client: Option<(Vec<u8>, Vec<u8>)>,
}

impl fmt::Debug for Access {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Access").field("database", &self.database).finish_non_exhaustive()
    }
}

/// A connection of one of the engines.
pub(super) enum Wire {
    /// To PostgreSQL.
    Postgres(PgConnection),
    /// To MySQL or MariaDB.
    MySql(mysql::Session),
    /// To a file.
    Sqlite(SqliteConnection),
}

impl Access {
    /// What is never shown.
    #[must_use]
    pub fn secrets(&self) -> Secrets {
        Secrets::of(&self.user, &self.password)
    }

    /// The same for what writes nothing.
    #[must_use]
    pub fn reading(&self) -> Self {
        Self { only_reads: true, ..self.clone() }
    }

    /// Whether it is a file of SQLite that is not there.
    pub(super) fn is_missing(&self) -> bool {
        self.database.engine == Engine::SQLite && !Path::new(&self.database.name).exists()
    }

    /// Connects.
    pub(super) async fn connect(&self) -> Result<Wire, Failure> {
        if matches!(self.database.tls, TlsMode::VerifyCA | TlsMode::VerifyFull)
            && self.certificates.authority.is_none()
            && self.database.engine != Engine::SQLite
        {
            let message =
                format!("tls {:?} needs the certificate of an authority: ca.crt", self.database.tls);
            return Err(Failure::new(Class::Tls, message));
        }
        let connected = tokio::time::timeout(PATIENCE, self.dialled()).await;
        let connected = connected.unwrap_or_else(|_| {
            Err(Failure::new(Class::Connection, format!("no answer within {} s", PATIENCE.as_secs())))
        });
        connected.map_err(|failure| Failure {
            message: format!("failed to connect to {}: {}", self.place(), failure.message),
            is_unanswered: false,
            ..failure
        })
    }

    fn place(&self) -> String {
        let Database { engine, host, port, name, .. } = &self.database;
        match host {
            Some(host) => format!("{engine} at {host}:{}", port.or(engine.port()).unwrap_or_default()),
            None => format!("{engine} in {name}"),
        }
    }

    /// The server; an address of IPv6 without its brackets, in which no certificate names it.
    fn host(&self) -> &str {
        self.database.host.as_deref().unwrap_or_default().trim_matches(['[', ']'])
    }

    async fn dialled(&self) -> Result<Wire, Failure> {
        let failure = |error: sqlx::Error| self.secrets().failure(&error);
        match self.database.engine {
            Engine::PostgreSQL => {
                PgConnection::connect_with(&self.postgres()).await.map(Wire::Postgres).map_err(failure)
            }
            Engine::MySQL | Engine::MariaDB => {
                let session = mysql::Session::open(&self.mysql()).await.map(Wire::MySql);
                session.map_err(|error| self.secrets().not_let_in(&error))
            }
            Engine::SQLite => {
                SqliteConnection::connect_with(&self.sqlite()).await.map(Wire::Sqlite).map_err(failure)
            }
        }
    }

    fn postgres(&self) -> PgConnectOptions {
        let database = &self.database;
        let host = self.host();
        let mut options = PgConnectOptions::new_without_pgpass()
            .host(host)
            .port(database.port.unwrap_or(5432))
            .username(&self.user)
            .password(&self.password)
            .database(&database.name)
            .application_name(&self.application)
            .statement_cache_capacity(0)
            .ssl_mode(match database.tls {
                TlsMode::Disable => PgSslMode::Disable,
                TlsMode::Require => PgSslMode::Require,
                TlsMode::VerifyCA => PgSslMode::VerifyCa,
                TlsMode::VerifyFull => PgSslMode::VerifyFull,
            });
        if host.starts_with('/') {
            options = options.socket(host);
        }
        if let Some(authority) = &self.certificates.authority {
            options = options.ssl_root_cert_from_pem(authority.clone());
        }
        if let Some((certificate, key)) = &self.certificates.client {
            options = options.ssl_client_cert_from_pem(certificate).ssl_client_key_from_pem(key);
        }
        options.disable_statement_logging()
    }

    fn mysql(&self) -> mysql::Options {
        let database = &self.database;
        mysql::Options {
            host: self.host().to_owned(),
            port: database.port.unwrap_or(3306),
            user: self.user.clone(),
            password: self.password.clone(),
            database: database.name.clone(),
            application: self.application.clone(),
            trust: match database.tls {
                TlsMode::Disable => Trust::Plain,
                TlsMode::Require => Trust::Any,
                TlsMode::VerifyCA => Trust::Authority,
                TlsMode::VerifyFull => Trust::Host,
            },
            authority: self.certificates.authority.clone(),
            identity: self.certificates.client.clone(),
        }
    }

    fn sqlite(&self) -> SqliteConnectOptions {
        // Foreign keys are as SQLite has them by default: not enforced, unless a script says so.
        let options = SqliteConnectOptions::new();
        let options = if self.only_reads && self.is_missing() {
            options.in_memory(true)
        } else {
            options.filename(&self.database.name).create_if_missing(!self.only_reads)
        };
        options.foreign_keys(false).statement_cache_capacity(0).disable_statement_logging()
    }
}
