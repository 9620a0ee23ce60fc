//! Validates the database of a DatabaseMigration.

use core::net::Ipv6Addr;

use crate::api::field::{FieldError, Path, Validation};
use crate::kinds::databasemigration::api::v1::{Database, DatabaseMigrationSpec, Engine, Mode, Tls, TlsMode};

pub(super) fn validate(spec: &DatabaseMigrationSpec, validation: &mut Validation) {
    let (path, database) = (Path::spec().at("database"), &spec.database);
    if database.engine == Engine::SQLite {
        validate_file(&path, database, validation);
    } else {
        validate_server(&path, database, validation);
    }
    if let Some(tls) = &database.tls {
        validate_tls(&path.at("tls"), tls, validation);
    }
    if spec.mode == Some(Mode::Rehearse) && matches!(database.engine, Engine::MySQL | Engine::MariaDB) {
        let detail = format!(
            "Rehearse rolls back, which {} cannot do with a change of a table: use mode Plan, or a copy of the database",
            database.engine.as_str()
        );
        validation.reject(FieldError::forbidden(Path::spec().at("mode"), detail));
    }
    if database.engine != Engine::PostgreSQL
        && spec.history.as_ref().is_some_and(|history| history.schema.is_some())
    {
        let detail =
            format!("goes with PostgreSQL alone: {} has the table in the database", database.engine.as_str());
        validation.reject(FieldError::forbidden(Path::spec().at("history").at("schema"), detail));
    }
}

fn validate_file(path: &Path, database: &Database, validation: &mut Validation) {
    if database.file.is_none() {
        validation.reject(FieldError::required(path.at("file"), "SQLite needs file"));
    }
    let given = [
        database.host.is_some(),
        database.port.is_some(),
        database.name.is_some(),
        database.credentials_secret.is_some(),
        database.tls.is_some(),
    ];
    if given.contains(&true) {
        let detail = "host, port, name, credentialsSecret and tls do not go with SQLite";
        validation.reject(FieldError::forbidden(path.at("engine"), detail));
    }
}

fn validate_server(path: &Path, database: &Database, validation: &mut Validation) {
    if database.file.is_some() {
        validation.reject(FieldError::forbidden(path.at("file"), "goes with engine SQLite alone"));
    }
    match database.host.as_deref() {
        None => validation.reject(FieldError::required(path.at("host"), "must name the server")),
        Some(host) if !is_host(host) => {
            let detail = "must be a host name or an address, without a scheme, a user or a port: the port goes into the \
                          field port";
            validation.reject(FieldError::invalid(path.at("host"), host, detail));
        }
        Some(_) => {}
    }
    if database.name.as_deref().is_none_or(|name| name.trim().is_empty()) {
        validation.reject(FieldError::required(path.at("name"), "must name the database"));
    }
    if database.credentials_secret.is_none() {
        let detail = "must name a Secret with username and password";
        validation.reject(FieldError::required(path.at("credentialsSecret"), detail));
    }
}

/// Whether it may be a host. Names are left to the resolver; but what has a colon is an address of IPv6, with or without
/// brackets and a zone, and never a host with its port.
fn is_host(host: &str) -> bool {
    if host.contains(|one: char| one.is_whitespace() || "/@?#".contains(one)) {
        return false;
    }
    if !host.contains([':', '[', ']']) {
        return true;
    }
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let address = address.split_once('%').map_or(address, |(address, _)| address);
    address.parse::<Ipv6Addr>().is_ok()
}

fn validate_tls(path: &Path, tls: &Tls, validation: &mut Validation) {
    let has_authority = tls.ca_secret.is_some();
    match tls.mode {
        Some(TlsMode::VerifyCA | TlsMode::VerifyFull) if !has_authority => {
            // Under the mode, which v1alpha1 has too.
            validation.reject(FieldError::forbidden(
                path.at("mode"),
                "VerifyCA and VerifyFull need caSecret, which v1 has",
            ));
        }
        Some(TlsMode::Disable) if has_authority || tls.client_cert_secret.is_some() => {
            validation.reject(FieldError::forbidden(path.at("mode"), "Disable goes with no certificates"));
        }
        _ => {}
    }
}
