//! The database of a DatabaseMigration, and the history in it.

use std::fmt;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::definition::undescribed;
use crate::api::reference::{AuthorityReference, NamedReference};

/// A database.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.engine != 'SQLite' || has(self.file)")
        .message("SQLite needs file").field_path(".file").reason(Reason::FieldValueRequired),
    validation = Rule::new("self.engine == 'SQLite' || !has(self.file)")
        .message("goes with engine SQLite alone").field_path(".file").reason(Reason::FieldValueForbidden),
    validation = Rule::new("self.engine == 'SQLite' || has(self.host)")
        .message("must name the server").field_path(".host").reason(Reason::FieldValueRequired),
    validation = Rule::new("self.engine == 'SQLite' || has(self.name)")
        .message("must name the database").field_path(".name").reason(Reason::FieldValueRequired),
    validation = Rule::new("self.engine == 'SQLite' || has(self.credentialsSecret)")
        .message("must name a Secret with username and password").field_path(".credentialsSecret")
        .reason(Reason::FieldValueRequired),
    validation = Rule::new(
        "self.engine != 'SQLite' || !has(self.host) && !has(self.port) && !has(self.name) && !has(self.credentialsSecret) && !has(self.tls)"
    ).message("host, port, name, credentialsSecret and tls do not go with SQLite").field_path(".engine")
        .reason(Reason::FieldValueForbidden),
)]
pub struct Database {
    /// Kind of the database server: PostgreSQL, MySQL, MariaDB, or SQLite (a file). Immutable once a script is applied.
    pub engine: Engine,

    /// Host name or address of the server. It has to keep the session of a connection: a pooler that hands out a
    /// connection for each transaction does not. Immutable once a script is applied.
    #[schemars(length(min = 1, max = 253))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,

    /// Port of the server, 1 to 65535. Written at creation when absent: 5432 for PostgreSQL, 3306 for MySQL and MariaDB.
    #[schemars(range(min = 1, max = 65535))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,

    /// Name of the database. Immutable once a script is applied.
    #[schemars(length(min = 1, max = 63))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,

    /// The Secret in the same namespace with the user and its password. The operator never reads it: pods mount it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials_secret: Option<CredentialsSecret>,

    /// How the connection is protected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,

    /// The file of a SQLite database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<DatabaseFile>,
}

/// Kind of a database server.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[schemars(transform = undescribed)]
pub enum Engine {
    /// PostgreSQL.
    #[default]
    PostgreSQL,
    /// MySQL.
    MySQL,
    /// MariaDB.
    MariaDB,
    /// SQLite: a file.
    SQLite,
}

impl Engine {
    /// As the field has it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PostgreSQL => "PostgreSQL",
            Self::MySQL => "MySQL",
            Self::MariaDB => "MariaDB",
            Self::SQLite => "SQLite",
        }
    }

    /// The port that its servers listen on; none for a file.
    #[must_use]
    pub const fn port(self) -> Option<u16> {
        match self {
            Self::PostgreSQL => Some(5432),
            Self::MySQL | Self::MariaDB => Some(3306),
            Self::SQLite => None,
        }
    }

    /// Whether it can roll back a change of the schema: MySQL and MariaDB commit before and after each.
    #[must_use]
    pub const fn rolls_back_schema(self) -> bool {
        matches!(self, Self::PostgreSQL | Self::SQLite)
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A Secret with a user and its password.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CredentialsSecret {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// Key with the user. Defaults to username.
    #[schemars(length(min = 1, max = 253))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username_key: Option<String>,

    /// Key with the password. Defaults to password.
    #[schemars(length(min = 1, max = 253))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_key: Option<String>,
}

/// How the connection is protected.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(
        "!has(self.mode) || self.mode in ['Disable', 'Require'] || has(self.caSecret)"
    ).message("VerifyCA and VerifyFull need caSecret, which v1 has").field_path(".mode").reason(Reason::FieldValueForbidden),
    validation = Rule::new(
        "!has(self.mode) || self.mode != 'Disable' || !has(self.caSecret) && !has(self.clientCertSecret)"
    ).message("Disable goes with no certificates").field_path(".mode").reason(Reason::FieldValueForbidden),
)]
pub struct Tls {
    /// Disable (no TLS), Require (TLS, any server certificate), VerifyCA (the server's certificate is of the authority) or
    /// VerifyFull (and it is for the host). Written at creation when absent: VerifyFull where caSecret is given, or else
    /// Require.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<TlsMode>,

    /// The key of a Secret in the same namespace with the certificates of authorities, in PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_secret: Option<AuthorityReference>,

    /// A Secret in the same namespace with the client's certificate: its keys are tls.crt and tls.key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_cert_secret: Option<NamedReference>,
}

/// How a connection is protected.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[schemars(transform = undescribed)]
pub enum TlsMode {
    /// No TLS.
    Disable,
    /// TLS with any server certificate.
    Require,
    /// The server's certificate is of the authority.
    VerifyCA,
    /// And it is for the host.
    VerifyFull,
}

/// The file of a SQLite database.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseFile {
    /// Name of the PersistentVolumeClaim in the same namespace.
    #[schemars(length(min = 1, max = 253))]
    pub claim_name: String,

    /// Path of the file in the volume, such as data/shop.db: no leading slash, and no part of it is "..".
    #[schemars(
        length(min = 1, max = 255),
        regex(pattern = "^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$")
    )]
    pub path: String,
}

/// Where the history of applied scripts is kept. Immutable once a script is applied.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct History {
    /// Schema of the table, for PostgreSQL alone. Defaults to public.
    #[schemars(length(min = 1, max = 58), regex(pattern = "^[A-Za-z_][A-Za-z0-9_]*$"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,

    /// Name of the table. Defaults to gatehouse_migrations.
    #[schemars(length(min = 1, max = 58), regex(pattern = "^[A-Za-z_][A-Za-z0-9_]*$"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,

    /// Name of the line of scripts in that table: each has an order and a lock of its own. Defaults to the name of
    /// this object.
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?$"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
}
