//! Warnings about a DatabaseMigration that is accepted.

use super::scripts::sources;
use crate::api::field::Validation;
use crate::api::script;
use crate::kinds::databasemigration::api::sql::{self, Budget};
use crate::kinds::databasemigration::api::v1::{
    DatabaseMigrationSpec, Engine, Legacy, Mode, ScriptKind, TlsMode, Transaction,
};

/// Most warnings about scripts.
const MOST_TOLD: usize = 12;

/// The port that poolers listen on.
const POOLER_PORT: i32 = 6432;

pub(super) fn advise(
    spec: &DatabaseMigrationSpec,
    old: Option<&DatabaseMigrationSpec>,
    validation: &mut Validation,
) {
    legacy(spec, old, validation);
    connection(spec, validation);
    let known = |id: &str| {
        let mut known = old.into_iter().flat_map(|old| &old.scripts);
        known.find(|script| script.id == id)
    };
    let mut told = Vec::new();
    let mut budget = Budget::of_object();
    let scripts = spec.scripts.iter().enumerate();
    for (at, script) in scripts.filter(|(_, script)| known(&script.id) != Some(*script)) {
        for (field, source) in sources(script) {
            let warning = |said: &str| format!("spec.scripts[{at}].{field}: {said} (script {})", script.id);
            let Some(text) = &source.inline else { continue };
            if !budget.takes(text) {
                told.push(warning("too long to be looked at here; the run reads all of it"));
                continue;
            }
            let said = of_text(spec.database.engine, text);
            told.extend(said.iter().map(|said| warning(said)));
        }
    }
    let more = told.len().saturating_sub(MOST_TOLD);
    for text in told.into_iter().take(MOST_TOLD) {
        validation.warn(text);
    }
    if more > 0 {
        validation.warn(format!("spec.scripts: {more} more warnings are not shown"));
    }
}

fn of_text(engine: Engine, text: &str) -> Vec<String> {
    let placeholder = script::placeholder(text).map(|line| {
        format!("has a placeholder ${{…}} in line {line}: gatehouse replaces none, and runs it as it is")
    });
    let mut said: Vec<String> = placeholder.into_iter().collect();
    match sql::statements(engine, text) {
        Ok(read) => said.extend(read.iter().flat_map(|one| &one.advice).map(|advice| (*advice).to_owned())),
        Err(why) => said.push(why),
    }
    said.dedup();
    said
}

fn connection(spec: &DatabaseMigrationSpec, validation: &mut Validation) {
    let database = &spec.database;
    if let Some(host) = &database.host
        && (host.contains("bouncer") || host.contains("pooler") || database.port == Some(POOLER_PORT))
    {
        validation.warn(
            "spec.database.host: looks like a pooler; one that pools by transaction breaks locks, name the server itself",
        );
    }
    let mode_of_tls = database.tls.as_ref().and_then(|tls| tls.mode);
    if mode_of_tls == Some(TlsMode::Disable) {
        validation.warn("spec.database.tls.mode: Disable sends the password and all rows in the clear");
    }
    // Which creation wrote where no authority was given yet.
    if mode_of_tls == Some(TlsMode::Require)
        && database.tls.as_ref().is_some_and(|tls| tls.ca_secret.is_some())
    {
        validation.warn(
            "spec.database.tls.mode: Require takes any server certificate; caSecret counts with VerifyCA or VerifyFull",
        );
    }
    let commits = matches!(database.engine, Engine::MySQL | Engine::MariaDB);
    let mode = spec.mode.unwrap_or_default();
    let changes = |kind| kind == ScriptKind::Schema;
    if commits
        && mode != Mode::Plan
        && spec.scripts.iter().any(|script| {
            changes(script.kind) && script.transaction.unwrap_or_default() == Transaction::Required
        })
    {
        validation.warn(format!(
            "spec.scripts: {} commits at each change of a table: a script that fails leaves what came before",
            database.engine.as_str()
        ));
    }
}

/// What is kept of an ancestor and not acted on.
fn legacy(spec: &DatabaseMigrationSpec, old: Option<&DatabaseMigrationSpec>, validation: &mut Validation) {
    let new = spec.legacy.as_ref().filter(|_| old.is_none_or(|old| old.legacy != spec.legacy));
    for field in new.into_iter().flat_map(Legacy::ignored) {
        validation.warn(format!("spec.legacy.{field}: is kept, and not acted on"));
    }
}
