//! What may become of a DatabaseMigration that is there, once it has applied something.

use std::collections::{BTreeMap, HashSet};

use crate::api::field::{Fault, Path, Verdict};
use crate::kinds::databasemigration::api::v1::{
    Database, DatabaseMigrationSpec, DatabaseMigrationStatus, History, Script,
};

const IMMUTABLE: &str = "is immutable once a script is applied: make a new object";

pub(super) fn judge(
    new: &DatabaseMigrationSpec,
    old: &DatabaseMigrationSpec,
    status: &DatabaseMigrationStatus,
    verdict: &mut Verdict,
) {
    let is_applied = status.applied_count.unwrap_or_default() > 0;
    if !is_applied {
        return;
    }
    judge_place(&new.database, &old.database, verdict);
    judge_history(new.history.as_ref(), old.history.as_ref(), verdict);
    judge_applied(new, old, status, verdict);
}

fn judge_place(new: &Database, old: &Database, verdict: &mut Verdict) {
    let path = Path::spec().at("database");
    let changed = [
        ("engine", new.engine != old.engine),
        ("host", new.host != old.host),
        ("port", new.port != old.port),
        ("name", new.name != old.name),
        ("file", new.file != old.file),
    ];
    for (field, _) in changed.into_iter().filter(|(_, changed)| *changed) {
        verdict.deny(Fault::forbidden(path.at(field), IMMUTABLE));
    }
}

fn judge_history(new: Option<&History>, old: Option<&History>, verdict: &mut Verdict) {
    let (new, old) = (new.cloned().unwrap_or_default(), old.cloned().unwrap_or_default());
    let path = Path::spec().at("history");
    let changed = [
        ("schema", new.schema != old.schema),
        ("table", new.table != old.table),
        ("series", new.series != old.series),
    ];
    for (field, _) in changed.into_iter().filter(|(_, changed)| *changed) {
        verdict.deny(Fault::forbidden(path.at(field), IMMUTABLE));
    }
}

/// An applied script stays as it was applied. Where its text is a ConfigMap's, the run compares the checksums.
fn judge_applied(
    new: &DatabaseMigrationSpec,
    old: &DatabaseMigrationSpec,
    status: &DatabaseMigrationStatus,
    verdict: &mut Verdict,
) {
    let path = Path::spec().at("scripts");
    let now: BTreeMap<&str, (usize, &Script)> =
        new.scripts.iter().enumerate().map(|(at, script)| (script.id.as_str(), (at, script))).collect();
    let applied: HashSet<&str> = status.applied.iter().flatten().map(|applied| applied.id.as_str()).collect();
    let accepted = |id: &str| new.accept_checksums.as_ref().is_some_and(|accepted| accepted.contains_key(id));
    for before in old.scripts.iter().filter(|script| applied.contains(script.id.as_str())) {
        let id = &before.id;
        let Some((at, script)) = now.get(id.as_str()) else {
            let detail = format!("script {id} is applied and cannot be removed: append a new script");
            verdict.deny(Fault::forbidden(path.clone(), detail));
            continue;
        };
        let changed = [
            ("kind", script.kind != before.kind),
            ("transaction", script.transaction.unwrap_or_default() != before.transaction.unwrap_or_default()),
            ("up", script.up != before.up && !accepted(id)),
        ];
        for (field, _) in changed.into_iter().filter(|(_, changed)| *changed) {
            let detail = format!("script {id} is applied and cannot be changed: append a new script");
            verdict.deny(Fault::forbidden(path.index(*at).at(field), detail));
        }
    }
}
