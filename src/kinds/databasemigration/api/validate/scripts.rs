//! Validates the scripts of a DatabaseMigration: each one, and their order.

use std::collections::{HashMap, HashSet};

use crate::api::field::{FieldError, Path, Validation};
use crate::api::name;
use crate::api::script;
use crate::kinds::databasemigration::api::sql::{self, Budget, Read};
use crate::kinds::databasemigration::api::v1::{
    DatabaseMigrationSpec, Engine, KeyReference, Script, ScriptKind, Source, Transaction,
};

/// Bytes of all scripts that are written inline: they go into one ConfigMap, with the run's assignment.
const MOST_INLINE: usize = 900 * 1024;

pub(super) fn validate(
    spec: &DatabaseMigrationSpec,
    before: Option<&DatabaseMigrationSpec>,
    namespace: Option<&str>,
    validation: &mut Validation,
) {
    let path = Path::spec().at("scripts");
    order(&path, &spec.scripts, validation);
    let mut budget = Budget::of_object();
    for (at, script) in spec.scripts.iter().enumerate() {
        let path = path.index(at);
        shape(&path, spec, script, validation);
        for (field, source) in sources(script) {
            validate_source(&path.at(field), source, namespace, validation);
            if !before.is_some_and(|before| is_known(before, &script.id, field, source)) {
                validate_directives(&path.at(field), source, validation);
            }
            let Some(text) = source.inline.as_deref().filter(|text| budget.takes(text)) else { continue };
            if text.trim().is_empty() {
                continue;
            }
            if let Ok(read) = sql::statements(spec.database.engine, text) {
                statements(&path.at(field).at("inline"), spec, script, &read, validation);
            }
        }
    }
    let inline: usize = spec
        .scripts
        .iter()
        .flat_map(sources)
        .filter_map(|(_, source)| source.inline.as_ref())
        .map(String::len)
        .sum();
    if inline > MOST_INLINE {
        let detail = format!("must have at most {MOST_INLINE} bytes inline together, have {inline}");
        validation.reject(FieldError::forbidden(path, detail));
    }
}

/// The texts of a script, each with its field.
pub(super) fn sources(script: &Script) -> impl Iterator<Item = (&'static str, &Source)> {
    [("up", Some(&script.up)), ("down", script.down.as_ref())]
        .into_iter()
        .filter_map(|(field, source)| Some((field, source?)))
}

/// Whether the object had that text before: it may be applied, and is refused by the run where it is not.
fn is_known(before: &DatabaseMigrationSpec, id: &str, field: &str, source: &Source) -> bool {
    let script = before.scripts.iter().find(|script| script.id == id);
    script.is_some_and(|script| sources(script).any(|known| known == (field, source)))
}

/// What a text says to another tool is not read: what the tool would not run would run.
fn validate_directives(path: &Path, source: &Source, validation: &mut Validation) {
    if let Some(directive) = source.inline.as_deref().and_then(script::directive) {
        validation.reject(FieldError::forbidden(path.at("inline"), directive.to_string()));
    }
}

/// The list decides the order; nothing may contradict it.
fn order(path: &Path, scripts: &[Script], validation: &mut Validation) {
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (at, script) in scripts.iter().enumerate() {
        if places.insert(&script.id, at).is_some() {
            validation.reject(FieldError::duplicate(path.index(at), &script.id));
        }
    }
    for (at, script) in scripts.iter().enumerate() {
        let mut seen = HashSet::new();
        for (index, other) in script.depends_on.iter().flatten().enumerate() {
            let path = path.index(at).at("dependsOn").index(index);
            match places.get(other.as_str()) {
                _ if !seen.insert(other) => validation.reject(FieldError::duplicate(path, other)),
                None => {
                    validation.reject(FieldError::invalid(path, other, "must be the id of another script"));
                }
                Some(place) if *place >= at => {
                    let detail = "must come before this script: scripts run in the order of the list";
                    validation.reject(FieldError::invalid(path, other, detail));
                }
                Some(_) => {}
            }
        }
    }
}

fn shape(path: &Path, spec: &DatabaseMigrationSpec, script: &Script, validation: &mut Validation) {
    let transaction = script.transaction.unwrap_or_default();
    if script.idempotent == Some(true) && transaction != Transaction::None {
        validation.reject(FieldError::forbidden(path.at("idempotent"), "goes with transaction None alone"));
    }
    if script.kind == ScriptKind::Check && script.down.is_some() {
        let detail = "a Check changes nothing that could be taken back";
        validation.reject(FieldError::forbidden(path.at("down"), detail));
    }
    let pinned = spec.accept_checksums.as_ref().and_then(|accepted| accepted.get(&script.id));
    if let (Some(pin), Some(accepted)) = (&script.checksum, pinned)
        && pin != accepted
    {
        let detail = "must be the checksum of the script: acceptChecksums has another one";
        validation.reject(FieldError::invalid(path.at("checksum"), pin, detail));
    }
}

fn validate_source(path: &Path, source: &Source, namespace: Option<&str>, validation: &mut Validation) {
    let given =
        [source.inline.is_some(), source.config_map_key_ref.is_some(), source.secret_key_ref.is_some()];
    match given.into_iter().filter(|given| *given).count() {
        1 => {}
        0 => {
            let detail = "exactly one of inline, configMapKeyRef and secretKeyRef is required";
            validation.reject(FieldError::required(path.clone(), detail));
        }
        _ => {
            let detail = "exactly one of inline, configMapKeyRef and secretKeyRef may be given";
            validation.reject(FieldError::forbidden(path.clone(), detail));
        }
    }
    if let Some(text) = &source.inline {
        let path = path.at("inline");
        if text.trim().is_empty() {
            validation.reject(FieldError::required(
                path,
                "must have a statement, or a comment that says that there is nothing to do",
            ));
        } else if text.contains('\0') {
            validation.reject(FieldError::forbidden(path, "must not have a NUL character"));
        }
    }
    let references =
        [("configMapKeyRef", &source.config_map_key_ref), ("secretKeyRef", &source.secret_key_ref)];
    for (field, reference) in references.into_iter().filter_map(|(field, one)| Some((field, one.as_ref()?))) {
        validate_reference(&path.at(field), reference, namespace, validation);
    }
}

fn validate_reference(
    path: &Path,
    reference: &KeyReference,
    namespace: Option<&str>,
    validation: &mut Validation,
) {
    if let Err(detail) = name::dns_1123_subdomain(&reference.name) {
        validation.reject(FieldError::invalid(path.at("name"), &reference.name, detail));
    }
    if matches!(reference.key.as_str(), "." | "..") {
        validation.reject(FieldError::invalid(path.at("key"), &reference.key, "must be a key of it"));
    }
    if let (Some(given), Some(own)) = (&reference.namespace, namespace)
        && given != own
    {
        let detail = format!("must be {own}, the namespace of this object");
        validation.reject(FieldError::invalid(path.at("namespace"), given, detail));
    }
}

/// What is surely wrong with the statements of a text.
fn statements(
    path: &Path,
    spec: &DatabaseMigrationSpec,
    script: &Script,
    read: &[Read],
    validation: &mut Validation,
) {
    let transaction = script.transaction.unwrap_or_default();
    if read.is_empty() && script.kind == ScriptKind::Check {
        validation.reject(FieldError::required(path.clone(), "a Check must have a statement"));
    }
    for one in read {
        let verb = &one.verb;
        if one.controls_transaction {
            let detail = format!("{verb}: a script must not begin or end transactions itself");
            validation.reject(FieldError::forbidden(path.clone(), detail));
        } else if one.needs_none && transaction == Transaction::Required {
            let detail = format!(
                "{verb} cannot run in a transaction: it needs transaction None, in a script of its own"
            );
            validation.reject(FieldError::forbidden(path.clone(), detail));
        }
    }
    // MySQL and MariaDB commit at each change of a table, so that their scripts go statement by statement anyway.
    let by_statement = matches!(spec.database.engine, Engine::MySQL | Engine::MariaDB);
    if transaction == Transaction::None && read.len() > 1 && !by_statement {
        let detail = format!("must have one statement with transaction None, has {}", read.len());
        validation.reject(FieldError::forbidden(path.clone(), detail));
    }
}
