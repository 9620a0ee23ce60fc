//! Which changes of a DatabaseMigration are allowed once it has applied something.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::api::field::{FieldError, Path, Validation};
use crate::api::script;
use crate::kinds::databasemigration::api::v1::{
    Database, DatabaseMigrationSpec, DatabaseMigrationStatus, History, Script, Source,
};

const IMMUTABLE: &str = "is immutable once a script is applied: make a new object";

pub(super) fn validate(
    new: &DatabaseMigrationSpec,
    old: &DatabaseMigrationSpec,
    status: &DatabaseMigrationStatus,
    validation: &mut Validation,
) {
    let is_applied = status.applied_count.unwrap_or_default() > 0;
    if !is_applied {
        return;
    }
    validate_place(&new.database, &old.database, validation);
    validate_history(new.history.as_ref(), old.history.as_ref(), validation);
    validate_applied(new, old, status, validation);
}

fn validate_place(new: &Database, old: &Database, validation: &mut Validation) {
    let path = Path::spec().at("database");
    let changed = [
        ("engine", new.engine != old.engine),
        ("host", new.host != old.host),
        ("port", new.port != old.port),
        ("name", new.name != old.name),
        ("file", new.file != old.file),
    ];
    for (field, _) in changed.into_iter().filter(|(_, changed)| *changed) {
        validation.reject(FieldError::forbidden(path.at(field), IMMUTABLE));
    }
}

fn validate_history(new: Option<&History>, old: Option<&History>, validation: &mut Validation) {
    let (new, old) = (new.cloned().unwrap_or_default(), old.cloned().unwrap_or_default());
    let path = Path::spec().at("history");
    let changed = [
        ("schema", new.schema != old.schema),
        ("table", new.table != old.table),
        ("series", new.series != old.series),
    ];
    for (field, _) in changed.into_iter().filter(|(_, changed)| *changed) {
        validation.reject(FieldError::forbidden(path.at(field), IMMUTABLE));
    }
}

/// An applied script stays as it was applied. A text in a ConfigMap or a Secret may be another one, or another one's
/// name: the run compares the checksums.
fn validate_applied(
    new: &DatabaseMigrationSpec,
    old: &DatabaseMigrationSpec,
    status: &DatabaseMigrationStatus,
    validation: &mut Validation,
) {
    let path = Path::spec().at("scripts");
    let now: BTreeMap<&str, (usize, &Script)> =
        new.scripts.iter().enumerate().map(|(at, script)| (script.id.as_str(), (at, script))).collect();
    let applied = Applied::of(status, &old.scripts);
    let accepted = |id: &str| new.accept_checksums.as_ref().is_some_and(|accepted| accepted.contains_key(id));
    for before in old.scripts.iter().filter(|script| applied.has(&script.id)) {
        let id = &before.id;
        let Some((at, script)) = now.get(id.as_str()) else {
            let detail = format!("script {id} is applied and cannot be removed: append a new script");
            validation.reject(FieldError::forbidden(path.clone(), detail));
            continue;
        };
        let changed = [
            ("kind", script.kind != before.kind),
            ("transaction", script.transaction.unwrap_or_default() != before.transaction.unwrap_or_default()),
            ("up", is_edited(&script.up, &before.up, applied.checksum(id)) && !accepted(id)),
        ];
        for (field, _) in changed.into_iter().filter(|(_, changed)| *changed) {
            let detail = format!("script {id} is applied and cannot be changed: append a new script");
            validation.reject(FieldError::forbidden(path.index(*at).at(field), detail));
        }
    }
}

/// Whether an applied text has changed, as far as the object shows.
fn is_edited(now: &Source, before: &Source, applied: Option<&str>) -> bool {
    match (&now.inline, applied) {
        (Some(inline), Some(applied)) => !script::is_of(inline, applied),
        (Some(inline), None) => before.inline.as_ref().is_some_and(|before| before != inline),
        (None, _) => false,
    }
}

/// What is applied, as far as the status shows: it lists the newest, with their checksums.
struct Applied<'a> {
    listed: HashMap<&'a str, Option<&'a str>>,
    others: HashSet<&'a str>,
}

impl<'a> Applied<'a> {
    fn of(status: &'a DatabaseMigrationStatus, scripts: &'a [Script]) -> Self {
        let listed = status.applied.iter().flatten();
        let pending = status.plan.as_ref().and_then(|plan| plan.pending.as_ref()).into_iter().flatten();
        let pending: HashSet<_> = pending.map(String::as_str).collect();
        let ids = scripts.iter().map(|script| script.id.as_str());
        let others: HashSet<_> = ids.filter(|id| !pending.contains(id)).collect();
        // Where more of them are not pending than are applied, some were added since the last run.
        let is_known = usize::try_from(status.applied_count.unwrap_or_default()) == Ok(others.len());
        Self {
            listed: listed.map(|one| (one.id.as_str(), one.checksum.as_deref())).collect(),
            others: if is_known { others } else { HashSet::new() },
        }
    }

    fn has(&self, id: &str) -> bool {
        self.listed.contains_key(id) || self.others.contains(id)
    }

    fn checksum(&self, id: &str) -> Option<&'a str> {
        self.listed.get(id).copied().flatten()
    }
}
