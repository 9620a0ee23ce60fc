//! Three judges, one verdict: the library (which the command line asks as well), the API server with the gate, and
//! the API server with nothing but the definitions.
//!
//! What the library refuses, the API server with the gate refuses for the same fields, and nothing else. What the
//! definitions refuse by themselves (structure and CEL, which hold even where the gate does not answer), the library
//! refuses too, at the same field or one around or in it; and they refuse nothing that the library lets pass.
//!
//! The objects are `examples/`, tables of objects with one fault each, and objects that are [`drawn`] from the definitions.
//! A table says of each who refuses it: [`By::Definition`], or [`By::Gate`] for the rules that CEL cannot say, or not
//! within its limits. Tables test rules; the keywords of the schemas are broken by the drawn objects.

pub mod bare;
mod databasemigration;
mod drawn;
mod dropped_minor;
mod etcdcluster;
mod ratchet;
mod tdset;
mod wrong_types;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use gatehouse::api::validation::{self, Change, Written};
use gatehouse::api::{Kind, Version, default};
use gatehouse::kinds;
use gatehouse::runtime::clock;
use kit::bed::Bed;
use kit::objects::{Ask, Objects, Outcome, Refusal, of};
use kit::root;
use serde_json::{Value, json};

use crate::Test;
use crate::slices::Slices;
pub use ratchet::without_gate;

pub const TESTS: &[Test] = &kit::tests![
    library_gate_and_definitions_agree_on_new_objects,
    library_gate_and_definitions_agree_on_each_keyword_of_the_schemas,
    library_gate_and_definitions_agree_on_changes,
    ratchet::what_was_stored_before_a_rule_takes_every_other_edit,
    wrong_types::what_was_stored_with_other_types_holds_up_nothing,
    dropped_minor::a_cluster_of_a_minor_that_is_no_longer_supported_is_told_and_served,
];

/// Who refuses an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// No one does: it is accepted.
    Nobody,
    /// The definition, by structure or CEL; and the gate, for the same fields.
    Definition,
    /// The gate alone: no rule of the definition says it.
    Gate,
    /// Each of its faults by one or the other.
    Anybody,
}

/// A sound object that rows change.
struct Base {
    kind: &'static str,
    version: &'static str,
    object: &'static str,
}

/// How often an object is tried that an operator writes meanwhile.
const TRIES: usize = 20;

/// A change of a base (a JSON merge patch, as YAML), the fields that are refused for it, and by whom.
///
/// `<text*3>` in it is `text` three times, `#` in that the number of the repetition.
type Row = (&'static str, &'static str, By);

/// What a base is changed to before it is stored, the change of that, the status that was stored meanwhile, the
/// refused fields, and by whom.
type Edit = (&'static str, &'static str, &'static str, &'static str, By);

/// An object of the corpus.
struct Case {
    name: String,
    object: Value,
    refused: BTreeSet<String>,
    by: By,
    /// Whether no other field may be refused.
    is_only: bool,
}

const TABLES: &[(&Base, &[Row], &[Edit])] = &[
    (&databasemigration::NEW, databasemigration::OF_NEW, databasemigration::CHANGES_OF_NEW),
    (&databasemigration::OLD, databasemigration::OF_OLD, databasemigration::CHANGES_OF_OLD),
    (&etcdcluster::NEW, etcdcluster::OF_NEW, etcdcluster::CHANGES_OF_NEW),
    (&etcdcluster::NEW, etcdcluster::OF_CLIENTS, &[]),
    (&etcdcluster::OLD, etcdcluster::OF_OLD, etcdcluster::CHANGES_OF_OLD),
    (&tdset::NEW, tdset::OF_NEW, tdset::CHANGES_OF_NEW),
    (&tdset::NEW, tdset::OF_AUTOSCALERS, &[]),
    (&tdset::NEW, tdset::OF_TARGETS, &[]),
    (&tdset::OLD, tdset::OF_OLD, tdset::CHANGES_OF_OLD),
];

fn library_gate_and_definitions_agree_on_new_objects(bed: &Bed) {
    agree_on(bed, &all());
}

/// The checks of a change take one slice of the cases.
fn library_gate_and_definitions_agree_on_each_keyword_of_the_schemas(bed: &Bed) {
    let slices = Slices::asked().unwrap();
    let cases = drawn::all().into_iter().enumerate().filter(|(place, _)| slices.take(*place));
    agree_on(bed, &cases.map(|(_, case)| case).collect::<Vec<_>>());
}

fn agree_on(bed: &Bed, cases: &[Case]) {
    let bare = bare::beside(bed);
    let _turn = bare.turn_of_many();
    let (guarded, unguarded) = (bed.namespace(), bare.bed.namespace());
    let now = clock::now();
    let judged: Vec<_> = cases.iter().map(|case| judged(&case.object, None, now)).collect();
    let create = |namespace: &str, object: &Value| {
        Ask::post(format!("{}?dryRun=All", collection(namespace, object)), object.clone())
    };
    let with_gate = bed.objects.all(cases.iter().map(|case| create(&guarded.name, &case.object)).collect());
    let without = judged.iter().map(|judged| create(&unguarded.name, &judged.mended));
    let without = bare.bed.objects.all(without.collect());
    let mut doubts = String::new();
    for (((case, judged), with_gate), without) in cases.iter().zip(&judged).zip(&with_gate).zip(&without) {
        compare(case, judged, with_gate, without, &mut doubts);
    }
    assert!(doubts.is_empty(), "of {} objects:\n{doubts}", cases.len());
}

fn library_gate_and_definitions_agree_on_changes(bed: &Bed) {
    let bare = bare::beside(bed);
    let _turn = bare.turn_of_many();
    let (guarded, unguarded) = (bed.namespace(), bare.bed.namespace());
    let mut cases = Vec::new();
    let mut stored = Vec::new();
    for &(base, _, edits) in TABLES {
        for (before, after, status, refused, by) in edits {
            let mut old = base.changed(before);
            old["metadata"]["name"] = format!("edited-{}", cases.len()).into();
            let object = patched(old.clone(), after);
            let name = format!("{} {} {before} -> {after} {status}", base.version, base.kind);
            cases.push(Case::of(name, object, refused, *by));
            stored.push((judged(&old, None, clock::now()).mended, yaml(status)));
        }
    }
    let mut in_gate = store(&bed.objects, &guarded.name, &stored);
    let in_bare = store(&bare.bed.objects, &unguarded.name, &stored);
    let now = clock::now();
    let with_gate = replace_all(&bed.objects, &guarded.name, &cases, &stored, &mut in_gate);
    let judged: Vec<_> =
        cases.iter().zip(&in_gate).map(|(case, old)| judged(&case.object, Some(old), now)).collect();
    let without = judged.iter().zip(&in_bare);
    let without = without.map(|(judged, old)| replace(&unguarded.name, old, &judged.mended));
    let without = bare.bed.objects.all(without.collect());
    let mut doubts = String::new();
    for (((case, judged), with_gate), without) in cases.iter().zip(&judged).zip(&with_gate).zip(&without) {
        compare(case, judged, with_gate, without, &mut doubts);
    }
    assert!(doubts.is_empty(), "of {} changes:\n{doubts}", cases.len());
}

/// Tries to write an object over the stored one.
fn replace(namespace: &str, stored: &Value, object: &Value) -> Ask {
    let mut object = object.clone();
    object["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
    Ask::put(format!("{}?dryRun=All", path(namespace, &object)), object)
}

/// What comes of all cases where an operator writes to the stored objects as well: one that it has changed meanwhile
/// gets its status again, and is tried again.
fn replace_all(
    objects: &Objects,
    namespace: &str,
    cases: &[Case],
    stored: &[(Value, Value)],
    now: &mut [Value],
) -> Vec<Outcome> {
    let is_overtaken = |outcome: &Outcome| outcome.as_ref().is_err_and(|refusal| refusal.code == 409);
    let asks = cases.iter().zip(&*now).map(|(case, old)| replace(namespace, old, &case.object));
    let mut outcomes = objects.all(asks.collect());
    for (place, outcome) in outcomes.iter_mut().enumerate() {
        let mut tries = 1;
        while is_overtaken(outcome) {
            assert!(
                tries < TRIES,
                "{}: written by another client at each of {TRIES} tries",
                cases[place].name
            );
            tries += 1;
            now[place] = tell(objects, namespace, &stored[place..=place]).remove(0);
            *outcome = objects.one(replace(namespace, &now[place], &cases[place].object));
        }
    }
    outcomes
}

/// Stores these objects with their status, as their own version; what is stored then.
fn store(objects: &Objects, namespace: &str, wanted: &[(Value, Value)]) -> Vec<Value> {
    let asks = wanted.iter().map(|(object, _)| Ask::create(object, namespace));
    for (outcome, (object, _)) in objects.all(asks.collect()).into_iter().zip(wanted) {
        outcome.unwrap_or_else(|refusal| panic!("{object}: {}", refusal.message));
    }
    tell(objects, namespace, wanted)
}

/// Writes the status of stored objects; what is stored then. Where an operator has written its own before that was
/// read, it is written once more.
fn tell(objects: &Objects, namespace: &str, wanted: &[(Value, Value)]) -> Vec<Value> {
    let write = |(object, status): &(Value, Value)| {
        let body = if status.is_null() { json!({}) } else { json!({"status": status}) };
        // Tables have the status of v1; the object is read back in its own version.
        Ask::patch(path_in("v1", namespace, object) + "/status", body)
    };
    let read = |(object, _): &(Value, Value)| Ask::get(path(namespace, object));
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    let written = objects.all(wanted.iter().map(write).collect());
    let found = objects.all(wanted.iter().map(read).collect());
    let told = written.into_iter().zip(found).zip(wanted).map(|((written, found), wanted)| {
        let name = &wanted.0;
        let mut written = written.unwrap_or_else(|why| panic!("status of {name}: {}", why.message));
        let mut found = found.expect("it is there");
        for _ in 1..TRIES {
            if version(&written) != version(&found) {
                written = objects.must(write(wanted));
                found = objects.must(read(wanted));
            }
        }
        assert_eq!(version(&written), version(&found), "{name}: overwritten at each of {TRIES} tries");
        found
    });
    told.collect()
}

/// Every object of the corpus.
fn all() -> Vec<Case> {
    let mut cases = examples();
    for &(base, rows, _) in TABLES {
        for (change, refused, by) in rows {
            let name = format!("{} {} {:.160}", base.version, base.kind, change);
            cases.push(Case::of(name, base.changed(change), refused, *by));
        }
    }
    cases
}

/// The shipped examples: those in `rejected` say in their first line which fields are refused.
fn examples() -> Vec<Case> {
    let mut cases = Vec::new();
    for folder in fs::read_dir(root().join("examples")).expect("examples").flatten() {
        for file in fs::read_dir(folder.path()).expect("a folder of examples").flatten() {
            if file.path().extension().is_none_or(|extension| extension != "yaml") {
                continue;
            }
            let text = fs::read_to_string(file.path()).expect("an example");
            let object: Value = serde_saphyr::from_str(&text).expect("YAML");
            if object["apiVersion"].as_str().is_none_or(|one| !one.starts_with("gatehouse.dev/")) {
                continue;
            }
            let name = file.path().display().to_string();
            let refused = text.lines().next().and_then(|line| line.strip_prefix("# refused: "));
            assert_eq!(refused.is_some(), folder.file_name() == "rejected", "{name}");
            let by = if refused.is_some() { By::Anybody } else { By::Nobody };
            cases.push(Case::of(name, object, refused.unwrap_or_default(), by));
        }
    }
    assert!(cases.len() > 10, "the examples have moved");
    cases
}

/// What the library says of an object.
struct Judged {
    /// The object as the mutating hook leaves it, in its author's version.
    mended: Value,
    refused: BTreeSet<String>,
    /// What is refused when it comes as the hub, as it does to the mutating hook.
    as_hub: BTreeSet<String>,
}

fn judged(object: &Value, old: Option<&Value>, now: jiff::Timestamp) -> Judged {
    let kind = kind(object);
    let version = version(object);
    let written = |object| Written { version: self::version(object), object };
    let change = Change { new: written(object), old: old.map(written), author: version, now };
    let (hub, _) = default::completed(kind, &change);
    let mended = kind.lens().convert(hub.clone().into_owned(), Version::V1, version);
    let old = old.map(|old| Written { version: self::version(old), object: old });
    let refused = |written: Written| {
        let verdict = validation::validate(kind, &Change { new: written, old, author: version, now });
        verdict.errors.iter().map(|fault| fault.path.to_string()).collect::<BTreeSet<_>>()
    };
    let as_written = refused(Written { version, object: &mended });
    let as_hub = refused(Written { version: Version::V1, object: &hub });
    Judged { mended, refused: as_written, as_hub }
}

/// Writes down every disagreement about a case.
fn compare(case: &Case, judged: &Judged, with_gate: &Outcome, without: &Outcome, doubts: &mut String) {
    let Judged { refused, as_hub, .. } = judged;
    let mut doubt = |text: String| writeln!(doubts, "- {}: {text}", case.name).expect("memory");
    let is_refused =
        |by: &BTreeSet<String>| case.refused.is_subset(by) && (!case.is_only || case.refused == *by);
    if !is_refused(refused) {
        doubt(format!("the library refuses {refused:?}, the table {:?}", case.refused));
    }
    // What only the old version requires, the hub does not miss.
    if !as_hub.is_subset(refused) {
        doubt(format!("the library refuses {refused:?}, and in the hub's version {as_hub:?}"));
    }
    match with_gate.as_ref().map_err(|refusal| (fields(refusal, refused), &refusal.message)) {
        Ok(_) if !refused.is_empty() => doubt(format!("the gate accepts, the library refuses {refused:?}")),
        // If required fields alone are missing, the definition refuses them before any rule is asked.
        Err((fields, message)) if !(is_refused(&fields) && fields.is_subset(refused)) => {
            doubt(format!("the gate refuses {fields:?}, the library {refused:?}: {message:.300}"));
        }
        _ => {}
    }
    match without.as_ref().map_err(|refusal| (fields(refusal, refused), &refusal.message)) {
        Ok(_) if case.by == By::Definition => {
            doubt(format!("the definition accepts, the library refuses {refused:?}"));
        }
        Ok(_) => {}
        Err((fields, message)) => {
            let near =
                |field: &String| refused.iter().any(|one| is_within(one, field) || is_within(field, one));
            if fields.is_empty() || !fields.iter().all(near) {
                doubt(format!("the definition refuses {fields:?}, the library {refused:?}: {message:.300}"));
            } else if case.by == By::Definition && !case.is_only && !is_refused(&fields) {
                doubt(format!("the definition refuses {fields:?}, and not {:?}", case.refused));
            } else if case.by == By::Gate {
                doubt(format!("the definition refuses {fields:?} too: not a rule of the gate alone"));
            }
        }
    }
}

/// Whether `field` is `other` or lies in it.
fn is_within(field: &str, other: &str) -> bool {
    field.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

impl Case {
    /// One of which these fields are refused, and no other.
    fn of(name: String, object: Value, refused: &str, by: By) -> Self {
        Self { name, object, refused: set(refused), by, is_only: true }
    }
}

impl Base {
    fn changed(&self, change: &str) -> Value {
        let mut object = json!({"apiVersion": format!("gatehouse.dev/{}", self.version), "kind": self.kind,
            "metadata": {"name": "sound"}});
        json_patch::merge(&mut object, &yaml(self.object));
        patched(object, change)
    }
}

fn patched(mut object: Value, change: &str) -> Value {
    if !change.is_empty() {
        json_patch::merge(&mut object, &yaml(change));
    }
    object
}

fn yaml(text: &str) -> Value {
    let long = repeated(text);
    if long.is_empty() {
        return Value::Null;
    }
    serde_saphyr::from_str(&long).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A text with its `<text*3>` written out.
fn repeated(text: &str) -> String {
    let mut long = String::new();
    let mut rest = text;
    while let Some((before, from)) = rest.split_once('<') {
        let (repeated, after) = from.split_once('>').expect("a repetition ends");
        let (part, times) = repeated.rsplit_once('*').expect("a repetition has its number");
        long += before;
        for index in 0..times.parse::<usize>().expect("a number") {
            long += &part.replace('#', &index.to_string());
        }
        rest = after;
    }
    long + rest
}

fn set(fields: &str) -> BTreeSet<String> {
    repeated(fields).split(", ").filter(|field| !field.is_empty()).map(ToOwned::to_owned).collect()
}

/// The fields of a refusal. The API server's own checks write the key of a map as `.key`, begin a path with a dot where
/// they go by the scale subresource, and have a cause without a field that says that CEL was not asked. The field of an
/// integer that is beyond its format stands in the message alone.
fn fields(refusal: &Refusal, refused: &BTreeSet<String>) -> BTreeSet<String> {
    let plain = |field: &str| field.replace('[', ".").replace(']', "");
    let named = refusal.fields.iter().map(String::as_str).filter(|field| *field != "<nil>");
    let beyond = refusal.message.split(BEYOND).skip(1);
    let beyond = beyond.filter_map(|rest| rest.split_once(" in ")?.1.split([' ', ',']).next());
    named
        .chain(beyond)
        .map(|field| {
            let field = field.trim_start_matches('.');
            refused.iter().find(|one| plain(one) == plain(field)).map_or(field, String::as_str).to_owned()
        })
        .collect()
}

/// What the API server says of an integer that is beyond its format.
const BEYOND: &str = "Checked value must be of type integer with format";

fn kind(object: &Value) -> &'static dyn Kind {
    kinds::find(object["kind"].as_str().expect("a kind")).expect("one of ours")
}

fn version(object: &Value) -> Version {
    object["apiVersion"].as_str().expect("a version").parse().expect("one of ours")
}

/// The path of the collection that an object belongs to.
fn collection(namespace: &str, object: &Value) -> String {
    of(version(object).as_str(), namespace, kind(object).names().plural)
}

/// The path of an object, in its own version.
fn path(namespace: &str, object: &Value) -> String {
    path_in(version(object).as_str(), namespace, object)
}

fn path_in(version: &str, namespace: &str, object: &Value) -> String {
    let name = object["metadata"]["name"].as_str().expect("a name");
    format!("{}/{name}", of(version, namespace, kind(object).names().plural))
}
