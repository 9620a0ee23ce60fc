//! What a DatabaseMigration asks for, resolved once. Pure.
//!
//! Guarantees: an absent field has its meaning here, and nothing below gives it another.
//! Assumes: the faults are those that the gate finds, so that an object is valid for both or for neither.

mod series;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::names::{RESOLVE, RETRY};
use crate::api::duration;
use crate::api::field::FieldError;
use crate::api::identity::identity;
use crate::kinds::databasemigration::api::pod::{Items, certificates};
use crate::kinds::databasemigration::api::v1::{
    self, DatabaseFile, DatabaseMigration, DeletionPolicy, Engine, ExistingTables, KeyReference, Mode,
    OnFailure, OutOfOrder, Requirement, Runner, ScriptKind, TlsMode, Transaction,
};
use crate::kinds::databasemigration::assignment::{History, TABLE, Timeouts};

pub use series::Series;

/// A DatabaseMigration, as far as it asks for something.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Who asks.
    pub metadata: ObjectMeta,
    /// What the gate has against the object; then nothing is run.
    pub faults: Vec<FieldError>,
    /// The database.
    pub database: Database,
    /// Where the history is kept.
    pub history: History,
    /// The series that scripts are applied to; none where they are only planned or rehearsed.
    pub series: Option<Series>,
    /// The scripts, in order.
    pub scripts: Vec<Script>,
    /// The last script that the database has already.
    pub baseline: Option<String>,
    /// What is done where the database has tables and no history, and no baseline is named.
    pub existing_tables: Option<ExistingTables>,
    /// What is done with a script before an applied one.
    pub out_of_order: OutOfOrder,
    /// How far to go.
    pub mode: Mode,
    /// The plan that is approved, where approval is required: empty, none is.
    pub approval: Option<String>,
    /// Runs after the first one.
    pub retries: i32,
    /// Time until the second run.
    pub backoff: Duration,
    /// What is done when a script fails.
    pub on_failure: OnFailure,
    /// Checksums that may differ from those of the history.
    pub accept_checksums: BTreeMap<String, String>,
    /// What has to be applied first.
    pub requires: Vec<Requirement>,
    /// What happens to the database when the object is deleted.
    pub deletion_policy: DeletionPolicy,
    /// Whether no run is started.
    pub is_suspended: bool,
    /// The pods.
    pub runner: Runner,
    /// Longest time of a run.
    pub deadline: Duration,
    /// How long a Job stays after its end.
    pub ttl: Duration,
    /// The value of the annotation that asks for another run.
    pub retry: Option<String>,
    /// The value of the annotation with the outcome of a script in doubt.
    pub resolve: Option<String>,
}

/// A database.
#[derive(Clone, Debug)]
pub struct Database {
    /// Its kind.
    pub engine: Engine,
    /// Its server; none with SQLite.
    pub host: Option<String>,
    /// Its port, as far as one is given.
    pub port: Option<u16>,
    /// Its name; empty with SQLite.
    pub name: String,
    /// Its file; none but with SQLite.
    pub file: Option<DatabaseFile>,
    /// How the connection is protected.
    pub tls: TlsMode,
    /// The files with the user and the password.
    pub credentials: Items,
    /// The files with the certificates.
    pub certificates: Items,
    /// The Secrets of the connection, as they are written: other words ask for another run.
    pub reach: String,
}

/// A script.
#[derive(Clone, Debug)]
pub struct Script {
    /// Its id.
    pub id: String,
    /// What it is for.
    pub kind: ScriptKind,
    /// Its text.
    pub up: Source,
    /// The text that reverts it.
    pub down: Option<Source>,
    /// The checksum that the text has to have.
    pub checksum: Option<String>,
    /// Whether it runs in a transaction.
    pub transaction: Transaction,
    /// Whether it may run again after a run whose end is not known.
    pub is_idempotent: bool,
    /// How long its statements may take, as far as that is given.
    pub timeouts: Timeouts,
}

/// Where a text comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// The text itself.
    Inline(String),
    /// A key of a ConfigMap.
    ConfigMap(KeyReference),
    /// A key of a Secret.
    Secret(KeyReference),
    /// No text is given, which the gate rejects.
    Absent,
}

impl Source {
    /// The key of a ConfigMap that the text is in.
    #[must_use]
    pub const fn config_map(&self) -> Option<&KeyReference> {
        if let Self::ConfigMap(reference) = self { Some(reference) } else { None }
    }
}

identity!(Spec);

impl Spec {
    /// What `object` asks for, which has these faults.
    #[must_use]
    pub fn resolve(object: &DatabaseMigration, faults: Vec<FieldError>) -> Self {
        let spec = object.spec.clone();
        let metadata = ObjectMeta { managed_fields: None, ..object.metadata.clone() };
        let annotation = |name: &str| {
            let value = metadata.annotations.as_ref()?.get(name)?;
            (!value.is_empty()).then(|| value.clone())
        };
        let retry = spec.retry.unwrap_or_default();
        let runner = spec.runner.unwrap_or_default();
        let time = |given: Option<&duration::Duration>, absent: Duration| {
            given.and_then(|given| given.get().ok()).unwrap_or(absent)
        };
        // What v1alpha1 calls it.
        let old_deadline = spec.legacy.as_ref().and_then(|legacy| legacy.max_migration_time()?.as_str());
        let old_deadline = old_deadline.map(duration::Duration::from);
        Self {
            series: series(object),
            history: history(object),
            database: database(spec.database),
            scripts: spec.scripts.into_iter().map(script).collect(),
            baseline: spec.baseline,
            existing_tables: spec.existing_tables,
            out_of_order: spec.out_of_order.unwrap_or_default(),
            mode: spec.mode.unwrap_or_default(),
            approval: spec
                .approval
                .filter(|approval| approval.required)
                .map(|approval| approval.plan_hash.unwrap_or_default()),
            retries: retry.limit.unwrap_or(5),
            backoff: time(retry.backoff.as_ref(), Duration::from_secs(30)),
            on_failure: spec.on_failure.unwrap_or_default(),
            accept_checksums: spec.accept_checksums.unwrap_or_default(),
            requires: spec.requires.unwrap_or_default(),
            deletion_policy: spec.deletion_policy.unwrap_or_default(),
            is_suspended: spec.suspend.unwrap_or_default(),
            deadline: time(runner.deadline.as_ref().or(old_deadline.as_ref()), Duration::from_mins(30)),
            ttl: time(runner.ttl.as_ref(), Duration::from_hours(24)),
            retry: annotation(RETRY),
            resolve: annotation(RESOLVE),
            runner,
            faults,
            metadata,
        }
    }

    /// The ConfigMaps that scripts come from.
    #[must_use]
    pub fn config_maps(&self) -> BTreeSet<&str> {
        self.scripts
            .iter()
            .flat_map(texts)
            .filter_map(|text| Some(text.config_map()?.name.as_str()))
            .collect()
    }
}

fn database(given: v1::Database) -> Database {
    let tls = given.tls.as_ref();
    let has_authority = tls.is_some_and(|tls| tls.ca_secret.is_some());
    let absent = if has_authority { TlsMode::VerifyFull } else { TlsMode::Require };
    let json = |text: serde_json::Result<String>| text.unwrap_or_default();
    Database {
        tls: tls.and_then(|tls| tls.mode).unwrap_or(absent),
        certificates: certificates(&given),
        reach: [
            json(serde_json::to_string(&given.credentials_secret)),
            json(serde_json::to_string(&given.tls)),
        ]
        .join(","),
        credentials: given.credentials_secret.map(credentials).unwrap_or_default(),
        engine: given.engine,
        host: given.host,
        port: given.port.and_then(|port| u16::try_from(port).ok()),
        name: given.name.unwrap_or_default(),
        file: given.file,
    }
}

fn credentials(secret: v1::CredentialsSecret) -> Items {
    let key = |given: Option<String>, name: &str| (given.unwrap_or_else(|| name.to_owned()), name.to_owned());
    let keys = [key(secret.username_key, "username"), key(secret.password_key, "password")];
    Items::from([(secret.name, BTreeSet::from(keys))])
}

fn script(given: v1::Script) -> Script {
    let timeouts = given.timeouts.unwrap_or_default();
    Script {
        id: given.id,
        kind: given.kind,
        up: source(given.up),
        down: given.down.map(source),
        checksum: given.checksum,
        transaction: given.transaction.unwrap_or_default(),
        is_idempotent: given.idempotent.unwrap_or_default(),
        timeouts: Timeouts { statement: timeouts.statement, lock: timeouts.lock },
    }
}

fn source(given: v1::Source) -> Source {
    match given {
        v1::Source { inline: Some(text), .. } => Source::Inline(text),
        v1::Source { secret_key_ref: Some(reference), .. } => Source::Secret(reference),
        v1::Source { config_map_key_ref: Some(reference), .. } => Source::ConfigMap(reference),
        v1::Source { .. } => Source::Absent,
    }
}

/// Where the history of an object is kept.
fn history(object: &DatabaseMigration) -> History {
    let history = object.spec.history.clone().unwrap_or_default();
    History {
        schema: history.schema,
        table: history.table.unwrap_or_else(|| TABLE.to_owned()),
        series: history.series.or_else(|| object.metadata.name.clone()).unwrap_or_default(),
    }
}

/// The series that an object applies its scripts to; none where it only plans or rehearses them.
#[must_use]
pub fn series(object: &DatabaseMigration) -> Option<Series> {
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    let applies = object.spec.mode.unwrap_or_default() == Mode::Apply;
    applies.then(|| Series::of(namespace, &object.spec.database, &history(object)))
}

/// The texts of a script: its own, and the one that reverts it.
pub fn texts(script: &Script) -> impl Iterator<Item = &Source> {
    std::iter::once(&script.up).chain(&script.down)
}

/// How far another object goes, and the ids of its scripts.
#[must_use]
pub fn goal(object: &DatabaseMigration) -> (Mode, Vec<String>) {
    let ids = object.spec.scripts.iter().map(|script| script.id.clone()).collect();
    (object.spec.mode.unwrap_or_default(), ids)
}

/// Names of what another object of the namespace may change for this one: ConfigMaps with scripts, and other migrations.
#[must_use]
pub fn subjects(object: &DatabaseMigration) -> (BTreeSet<String>, BTreeSet<String>) {
    let texts = object.spec.scripts.iter().flat_map(|script| std::iter::once(&script.up).chain(&script.down));
    let references = texts.filter_map(|text| text.config_map_key_ref.as_ref());
    let config_maps = references.map(|reference| reference.name.clone()).collect();
    let others = object.spec.requires.iter().flatten().map(|requirement| requirement.name.clone()).collect();
    (config_maps, others)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_absent_field_has_its_meaning() {
        let object: DatabaseMigration = serde_json::from_value(json!({
            "apiVersion": "gatehouse.dev/v1", "kind": "DatabaseMigration",
            "metadata": {"name": "shop", "namespace": "a", "uid": "1", "annotations": {"gatehouse.dev/retry": ""}},
            "spec": {"database": {"engine": "PostgreSQL", "host": "pg", "name": "shop"}, "approval": {"required": false, "planHash": "x"},
                "scripts": [{"id": "1", "kind": "Schema", "up": {"configMapKeyRef": {"name": "sql", "key": "1"}}}],
                "requires": [{"name": "base"}]},
        }))
        .unwrap();
        let spec = Spec::resolve(&object, Vec::new());
        assert_eq!(
            (spec.history.table.as_str(), spec.history.series.as_str()),
            ("gatehouse_migrations", "shop")
        );
        let database = &spec.database;
        assert_eq!((database.tls, spec.mode, spec.approval), (TlsMode::Require, Mode::Apply, None));
        let script = &spec.scripts[0];
        assert_eq!((script.transaction, script.is_idempotent), (Transaction::Required, false));
        assert_eq!((spec.retries, spec.backoff, spec.retry), (5, Duration::from_secs(30), None));
        let (config_maps, others) = subjects(&object);
        assert!(config_maps.contains("sql") && others.contains("base"));
    }
}
