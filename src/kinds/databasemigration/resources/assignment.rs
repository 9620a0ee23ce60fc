//! The assignment of a run.

use std::collections::BTreeMap;

use super::Planned;
use crate::controllers::manifest::hash;
use crate::kinds::databasemigration::api::v1::KeyReference;
use crate::kinds::databasemigration::assignment::{
    self, Assignment, Database, Mode, Object, Resolution, Resolve, Run, VERSION, checksum, plan_hash,
};
use crate::kinds::databasemigration::observation::{Observed, Purpose};
use crate::kinds::databasemigration::spec::{Script, Source, Spec, texts as sources};

/// Where the file of a SQLite database is mounted.
pub const DATABASE: &str = "/database";

/// The key of a run's ConfigMap that holds its assignment.
pub const ASSIGNMENT: &str = "assignment.json";

/// Bytes of a key.
pub const KEY_LENGTH: usize = 16;

/// The most bytes of what makes a resolution another value.
const LONGEST_MARK: usize = 64;

/// The text of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// Its bytes.
    Known(Vec<u8>),
    /// A key of a Secret, which the operator does not read.
    Secret(KeyReference),
}

/// The texts of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Texts {
    /// Its own.
    pub up: Text,
    /// The one that takes it back.
    pub down: Option<Text>,
}

/// A text that is not there: of which script, and what is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The script.
    pub id: String,
    /// What is missing.
    pub what: String,
}

/// The texts of all scripts, in order.
///
/// # Errors
/// The first that is missing.
pub fn texts(spec: &Spec, observed: &Observed) -> Result<Vec<Texts>, Missing> {
    let of = |script: &Script| {
        let missing = |what| Missing { id: script.id.clone(), what };
        let up = text(&script.up, observed).map_err(missing)?;
        let down = script.down.as_ref().map(|down| text(down, observed)).transpose().map_err(missing)?;
        Ok(Texts { up, down })
    };
    spec.scripts.iter().map(of).collect()
}

/// The texts as they are in the ConfigMap of a run; none where that was made of other scripts.
#[must_use]
pub fn kept(spec: &Spec, snapshot: &BTreeMap<String, Vec<u8>>) -> Option<Vec<Texts>> {
    let told = std::str::from_utf8(snapshot.get(ASSIGNMENT)?).ok()?;
    let told = Assignment::read(told).ok()?;
    if !told.scripts.iter().map(|script| &script.id).eq(spec.scripts.iter().map(|script| &script.id)) {
        return None;
    }
    let text = |at, direction, source: &Source| match source {
        Source::Inline(inline) => Some(Text::Known(inline.clone().into_bytes())),
        Source::Secret(reference) => Some(Text::Secret(reference.clone())),
        Source::ConfigMap(_) | Source::Absent => snapshot.get(&file(at, direction)).cloned().map(Text::Known),
    };
    let of = |(at, script): (usize, &Script)| {
        let down = match &script.down {
            Some(down) => Some(text(at, "down", down)?),
            None => None,
        };
        Some(Texts { up: text(at, "up", &script.up)?, down })
    };
    spec.scripts.iter().enumerate().map(of).collect()
}

fn text(source: &Source, observed: &Observed) -> Result<Text, String> {
    let KeyReference { name, key, .. } = match source {
        Source::Inline(inline) => return Ok(Text::Known(inline.clone().into_bytes())),
        Source::Secret(reference) => return Ok(Text::Secret(reference.clone())),
        Source::ConfigMap(reference) => reference,
        Source::Absent => return Err("no text is given".to_owned()),
    };
    let keys = observed.sources.get(name).ok_or_else(|| format!("ConfigMap {name} does not exist"))?;
    let bytes = keys.get(key).ok_or_else(|| format!("ConfigMap {name} has no key {key}"))?;
    Ok(Text::Known(bytes.clone()))
}

/// The files of a text: by position and direction, since an id may be as long as a key of a ConfigMap may be.
#[must_use]
pub fn file(position: usize, direction: &str) -> String {
    format!("{position:03}.{direction}.sql")
}

/// The texts that are known, by file.
#[must_use]
pub fn files(texts: &[Texts]) -> BTreeMap<String, Vec<u8>> {
    let known = |text: &Text| match text {
        Text::Known(bytes) => Some(bytes.clone()),
        Text::Secret(_) => None,
    };
    each(texts).filter_map(|(file, text)| Some((file, known(text)?))).collect()
}

/// The keys of Secrets that texts are in, by file.
#[must_use]
pub fn secret_files(texts: &[Texts]) -> BTreeMap<String, KeyReference> {
    let secret = |text: &Text| match text {
        Text::Known(_) => None,
        Text::Secret(reference) => Some(reference.clone()),
    };
    each(texts).filter_map(|(file, text)| Some((file, secret(text)?))).collect()
}

fn each(texts: &[Texts]) -> impl Iterator<Item = (String, &Text)> {
    texts.iter().enumerate().flat_map(|(at, texts)| {
        let down = texts.down.as_ref().map(|down| (file(at, "down"), down));
        std::iter::once((file(at, "up"), &texts.up)).chain(down)
    })
}

/// The hash of the plan; none where a text is in a Secret: then the run reports it.
#[must_use]
pub fn hash_of_plan(spec: &Spec, texts: &[Texts]) -> Option<String> {
    let known = |text: &Text| match text {
        Text::Known(bytes) => Some(checksum(bytes)),
        Text::Secret(_) => None,
    };
    let mut sums = Vec::with_capacity(texts.len());
    for texts in texts {
        let down = match &texts.down {
            Some(down) => Some(known(down)?),
            None => None,
        };
        sums.push((known(&texts.up)?, down));
    }
    let planned = spec.scripts.iter().zip(&sums).map(|(script, (up, down))| assignment::Planned {
        id: &script.id,
        kind: script.kind,
        transaction: script.transaction,
        checksum: up,
        down: down.as_deref(),
    });
    Some(plan_hash(&build(spec, texts, &without_approver(Purpose::Plan, None)), planned))
}

/// A script that has another checksum than the object names for it: its id, and the one that it has.
#[must_use]
pub fn pin_that_differs(spec: &Spec, texts: &[Texts]) -> Option<(String, String)> {
    spec.scripts.iter().zip(texts).find_map(|(script, texts)| {
        let Text::Known(bytes) = &texts.up else { return None };
        let sum = checksum(bytes);
        (script.checksum.as_ref()? != &sum).then(|| (script.id.clone(), sum))
    })
}

/// A run without a number.
fn without_approver(purpose: Purpose, approved: Option<&str>) -> Planned {
    let approved = approved.map(str::to_owned);
    Planned { key: String::new(), number: 0, attempt: 0, purpose, resolve: None, approved }
}

/// What identifies all that a run for that purpose is to do, and behind a dot the annotation that asks for another one:
/// another key asks for another run.
#[must_use]
pub fn key(spec: &Spec, texts: &[Texts], purpose: Purpose, approved: Option<&str>) -> String {
    // A run that another one follows for the same purpose differs in nothing but its number and its attempt.
    let assignment =
        serde_json::to_string(&build(spec, texts, &without_approver(purpose, approved))).unwrap_or_default();
    let secrets: Vec<_> = secret_files(texts).into_values().map(|one| (one.name, one.key)).collect();
    // Who has the object name another ConfigMap means other texts than those of the plan, whatever these are.
    let references = spec.scripts.iter().flat_map(sources).map(Source::config_map);
    let references: Vec<_> = references.filter(|_| purpose == Purpose::Plan).collect();
    let secrets = serde_json::to_string(&secrets).unwrap_or_default();
    let references = serde_json::to_string(&references).unwrap_or_default();
    let reach = &spec.database.reach;
    let work = hash(&format!("{assignment}[{reach},{secrets},{references},null]"), KEY_LENGTH);
    match &spec.retry {
        Some(retry) => format!("{work}.{}", hash(retry, KEY_LENGTH)),
        None => work,
    }
}

/// Whether runs with these keys are to do the same, also where a person has asked for another run meanwhile.
#[must_use]
pub fn is_same_work(one: &str, other: &str) -> bool {
    let work = |key: &str| key.split('.').next().map(str::to_owned);
    work(one) == work(other)
}

/// Whether a person asks by the key `wanted` for a run that the key `before` did not ask for. An annotation that was
/// removed asks for nothing.
#[must_use]
pub fn asks_again(before: &str, wanted: &str) -> bool {
    let asked = |key: &str| key.split_once('.').map(|(_, asked)| asked.to_owned());
    asked(wanted).is_some_and(|wanted| asked(before) != Some(wanted))
}

/// Whether a run with the key `before` was to do all that the key `wanted` asks for.
#[must_use]
pub fn covers(before: &str, wanted: &str) -> bool {
    is_same_work(before, wanted) && !asks_again(before, wanted)
}

/// The assignment of a run.
#[must_use]
pub fn build(spec: &Spec, texts: &[Texts], planned: &Planned) -> Assignment {
    let database = &spec.database;
    let file = database.file.as_ref();
    let path = file.map(|file| format!("{DATABASE}/{}", file.path));
    Assignment {
        version: VERSION,
        database: Database {
            engine: database.engine,
            host: database.host.clone(),
            port: database.port,
            name: path.unwrap_or_else(|| database.name.clone()),
            file: file.map(|file| format!("{}/{}", file.claim_name, file.path)),
            tls: database.tls,
        },
        history: spec.history.clone(),
        object: Some(Object {
            namespace: spec.namespace().to_owned(),
            name: spec.name().to_owned(),
            uid: spec.uid().to_owned(),
        }),
        run: Run {
            uid: format!("{}.{}", spec.uid(), planned.number),
            attempt: u32::try_from(planned.attempt).unwrap_or(1),
        },
        mode: match planned.purpose {
            Purpose::Plan | Purpose::Verify => Mode::Plan,
            Purpose::Rehearse => Mode::Rehearse,
            Purpose::Apply => Mode::Apply,
            Purpose::Revert => Mode::Revert,
        },
        scripts: spec
            .scripts
            .iter()
            .zip(texts)
            .enumerate()
            .map(|(at, (script, texts))| assigned(at, script, texts))
            .collect(),
        baseline: spec.baseline.clone(),
        // What is absent stays so: another assignment asks for another run.
        existing_tables: spec.existing_tables,
        out_of_order: spec.out_of_order,
        on_failure: spec.on_failure,
        accept_checksums: spec.accept_checksums.clone(),
        resolve: planned.resolve.as_deref().and_then(resolution),
        lock_wait: None,
        approved_plan_hash: planned.approved.clone(),
    }
}

/// The resolution that an annotation says: `ID=applied` or `ID=retry`, and behind an `@` what makes it another value.
#[must_use]
pub fn resolution(annotation: &str) -> Option<Resolve> {
    let (id, word) = annotation.split_once('=')?;
    let (word, mark) = word.split_once('@').unwrap_or((word, ""));
    if mark.len() > LONGEST_MARK {
        return None;
    }
    let resolution = match word {
        "applied" => Resolution::Applied,
        "retry" => Resolution::Retry,
        _ => return None,
    };
    Some(Resolve { id: id.to_owned(), resolution })
}

fn assigned(position: usize, script: &Script, texts: &Texts) -> assignment::Script {
    let source = |direction, text: &Text| assignment::Source {
        file: file(position, direction),
        secret: matches!(text, Text::Secret(_)),
    };
    let sum = |text: &Text| match text {
        Text::Known(bytes) => Some(checksum(bytes)),
        Text::Secret(_) => None,
    };
    assignment::Script {
        id: script.id.clone(),
        kind: script.kind,
        up: source("up", &texts.up),
        down: texts.down.as_ref().map(|down| source("down", down)),
        checksum: script.checksum.clone(),
        planned: sum(&texts.up),
        planned_down: texts.down.as_ref().and_then(sum),
        transaction: script.transaction,
        idempotent: script.is_idempotent,
        timeouts: script.timeouts.clone(),
    }
}
