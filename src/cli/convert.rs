//! `gatehouse convert`: manifests in another version, by the gate's own tables.
//!
//! Guarantees: every document comes out in its place, those of other kinds unchanged; nothing is validated, and nothing
//! defaulted unless that is asked for; what is left out, kept although no version knows it, or means something else
//! afterwards is a warning.
//! All or nothing: where an object cannot be converted or a file not be read, nothing is written.

mod cluster;

use std::process::ExitCode;

use clap::Args;
use serde_json::{Map, Value, json};

use super::ending::{FAILED, Failure, OK, USAGE};
use super::input::{self, Document, Files, Subject};
use super::output::{self, Format};
use crate::api::ancestors::Note;
use crate::api::field::{FieldError, Path, Segment};
use crate::api::{Kind, Version, default};

/// The options of `gatehouse convert`.
#[derive(Args, Debug)]
#[command(
    mut_arg("filename", |files| files.required(false).required_unless_present("from_cluster")),
    after_help = "Besides our own versions it reads those of the ancestors: EtcdCluster of stable.example.com/v1alpha1 and \
                  mycompany.com/v1alpha1, TDSet of schedule.rs/v1, DatabaseMigration of database.mohitnagaraj.in/v1alpha1. Scalars without quotes are read as kubectl reads them \
                  (YAML 1.1): yes, no, on and off are booleans, 010 is eight. Comments are not kept.\n\n\
                  Exit codes: 0 converted, 1 an object is of a group, kind or version that does not exist, 2 the command line is wrong or \
                  something could not be read. Except with 0 nothing is written."
)]
pub struct Options {
    #[command(flatten)]
    files: Files,
    /// Write the manifests of the objects that a cluster has, of all our kinds: without status, uid, managed fields,
    /// finalizers and annotations of gatehouse.dev, and without objects that others make. Needs the right to list them.
    #[arg(long, conflicts_with_all = ["filename", "explicit"])]
    from_cluster: bool,
    /// The namespace of the objects. [default: that of the kubeconfig's context]
    #[arg(short, long, value_name = "NAME", requires = "from_cluster")]
    namespace: Option<String>,
    /// The objects of all namespaces.
    #[arg(short = 'A', long, requires = "from_cluster", conflicts_with = "namespace")]
    all_namespaces: bool,
    /// The version to convert to: v1 or v1alpha1.
    #[arg(long, value_name = "VERSION", default_value = "v1")]
    to: Version,
    /// Write down what absent fields mean where the other version would give them another meaning, such as
    /// spec.tls.mode: Disabled of an EtcdCluster that comes from v1alpha1 or from an ancestor.
    #[arg(long)]
    explicit: bool,
    /// How the objects are written. Several objects as JSON are one List.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// Converts its input.
///
/// # Errors
/// Standard output does not take it.
pub fn run(options: &Options) -> Result<ExitCode, Failure> {
    if options.from_cluster {
        let manifests = cluster::manifests(options.namespace.as_deref(), options.all_namespaces, options.to)?;
        output::print(&options.output.write(&manifests)?)?;
        return Ok(ExitCode::from(OK));
    }
    let input = options.files.read();
    if !input.unreadable.is_empty() {
        input.unreadable.iter().for_each(output::error);
        return Ok(ExitCode::from(USAGE));
    }
    if !input.commented.is_empty() {
        output::warning(&format!("comments are not kept: {}", input.commented.join(", ")));
    }
    let mut converted = Vec::new();
    let mut failed = false;
    for document in &input.documents {
        let mut conversion = Conversion { document, options, failed: false };
        converted.push((conversion.value(document.value(), &Path::root()), &document.node));
        failed |= conversion.failed;
    }
    if failed {
        return Ok(ExitCode::from(FAILED));
    }
    output::print(&options.output.write_as(converted.iter().map(|(value, node)| (value, Some(*node))))?)?;
    Ok(ExitCode::from(OK))
}

/// The conversion of one document.
struct Conversion<'a> {
    document: &'a Document,
    options: &'a Options,
    failed: bool,
}

impl Conversion<'_> {
    /// An object, or a list of them.
    fn value(&mut self, mut value: Value, place: &Path) -> Value {
        if !input::is_list(&value) {
            return self.object(value, place);
        }
        // A list of one of our kinds has a version as well.
        if let Some(kind) = value["kind"].as_str().and_then(|kind| kind.strip_suffix("List"))
            && let Ok(Subject::Ours(..) | Subject::Ancestor(..)) =
                input::subject(&json!({ "apiVersion": value["apiVersion"], "kind": kind }))
        {
            value["apiVersion"] = self.options.to.api_version().into();
        }
        if let Some(Value::Array(items)) = value.get_mut("items") {
            for (index, item) in items.iter_mut().enumerate() {
                *item = self.value(item.take(), &place.at("items").index(index));
            }
        }
        value
    }

    fn object(&mut self, object: Value, place: &Path) -> Value {
        let title = input::title(&object);
        match convert(object, self.options.to, self.options.explicit) {
            Ok((object, notes)) => {
                for note in notes {
                    let line = self.document.line(&below(place, &note.path));
                    let Note { path, text } = note;
                    output::warning(&output::finding(self.document, place, &title, &path, &text, line));
                }
                object
            }
            Err(fault) => {
                let line = self.document.line(&below(place, &fault.path));
                let message = fault.message();
                output::error(output::finding(self.document, place, &title, &fault.path, &message, line));
                self.failed = true;
                Value::Null
            }
        }
    }
}

/// `path` in the object at `place`.
pub(super) fn below(place: &Path, path: &Path) -> Path {
    place.segments().iter().chain(path.segments()).cloned().collect::<Vec<_>>().into()
}

/// Converts an object, and returns warnings for its author. `explicit` writes down what absent fields mean in the
/// version that they are absent from, where that differs.
///
/// # Errors
/// It is of our group, and of no kind or version that there is.
pub fn convert(object: Value, to: Version, explicit: bool) -> Result<(Value, Vec<Note>), FieldError> {
    match input::subject(&object)? {
        Subject::Other => Ok((object, Vec::new())),
        Subject::Ours(kind, from) => Ok(between(kind, object, from, to, explicit)),
        Subject::Ancestor(ancestor, kind) => {
            let (adopted, mut notes) = ancestor.adopt(object);
            let (converted, more) = between(kind, adopted, Version::V1Alpha1, to, explicit);
            notes.extend(more.into_iter().map(|note| Note { path: ancestor.path(&note.path), ..note }));
            Ok((converted, notes))
        }
    }
}

fn between(
    kind: &dyn Kind,
    mut object: Value,
    from: Version,
    to: Version,
    explicit: bool,
) -> (Value, Vec<Note>) {
    let mut notes = Vec::new();
    for path in unknown_fields(kind, from, &object) {
        let text = if gains_meaning(kind, &object, &path, from, to) {
            remove(&mut object, &path);
            format!("left out: {} has no such field, and in {to} it means something", from.api_version())
        } else {
            format!("kept, although {} has no such field", from.api_version())
        };
        notes.push(Note::new(path, text));
    }
    if from == to {
        return (object, notes);
    }
    let mut hub = kind.lens().convert(object, from, Version::V1);
    for absence in absences(kind, &hub, from, to) {
        match absence.meant {
            Some(meant) if explicit => put(&mut hub, &absence.path, meant),
            _ => notes.push(absence.note(kind, from, to)),
        }
    }
    (kind.lens().convert(hub, Version::V1, to), notes)
}

/// The fields of an object that its version does not know.
pub(super) fn unknown_fields(kind: &dyn Kind, version: Version, object: &Value) -> Vec<Path> {
    kind.schemas().of(version).unknown_fields(object)
}

/// Whether the field at `path`, unknown where it stands, would be taken for a known one after the conversion.
fn gains_meaning(kind: &dyn Kind, object: &Value, path: &Path, from: Version, to: Version) -> bool {
    let mut alone = object.clone();
    for other in unknown_fields(kind, from, object).iter().filter(|other| *other != path) {
        remove(&mut alone, other);
    }
    unknown_fields(kind, to, &kind.lens().convert(alone, from, to)).is_empty()
}

/// Removes the field at `path`.
pub(super) fn remove(object: &mut Value, path: &Path) {
    let Some((last, above)) = path.segments().split_last() else { return };
    let place = above.iter().try_fold(object, |value, step| match step {
        Segment::Field(name) => value.get_mut(name.as_ref()),
        Segment::Key(name) => value.get_mut(name),
        Segment::Index(index) => value.get_mut(index),
    });
    if let Some(Value::Object(fields)) = place {
        match last {
            Segment::Field(name) => fields.remove(name.as_ref()),
            Segment::Key(name) => fields.remove(name),
            Segment::Index(_) => None,
        };
    }
}

/// An absent field that a new object is given other values for when it is written in the other version.
struct Absence {
    /// The hub's.
    path: Path,
    meant: Option<Value>,
    means: Option<Value>,
}

impl Absence {
    fn note(&self, kind: &dyn Kind, from: Version, to: Version) -> Note {
        let shown = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), Value::to_string);
        let (before, after) = (shown(self.meant.as_ref()), shown(self.means.as_ref()));
        let path = kind.lens().table(from).and_then(|table| table.path(&self.path));
        let hint = if self.meant.is_some() { " (--explicit writes it down)" } else { "" };
        let text =
            format!("absent: it means {before} in a new {from} object, and {after} in a new {to} one{hint}");
        Note::new(path.unwrap_or_else(|| self.path.clone()), text)
    }
}

fn absences(kind: &dyn Kind, hub: &Value, from: Version, to: Version) -> Vec<Absence> {
    let stored = ["/metadata/uid", "/metadata/creationTimestamp"];
    if stored.iter().any(|pointer| hub.pointer(pointer).is_some_and(|value| !value.is_null())) {
        return Vec::new();
    }
    let defaulted = |version| {
        let mut object = hub.clone();
        default::complete(kind, &mut object, None, version);
        object
    };
    let mut absences = Vec::new();
    differences(&defaulted(from), &defaulted(to), &Path::root(), &mut |path, meant, means| {
        absences.push(Absence { path: path.clone(), meant: meant.cloned(), means: means.cloned() });
    });
    absences
}

/// Puts a value where there is none, with the objects above it.
fn put(object: &mut Value, path: &Path, value: Value) {
    let mut place = object;
    for step in path.segments() {
        let Segment::Field(name) = step else { return };
        if place.is_null() {
            *place = Value::Object(Map::new());
        }
        let Value::Object(fields) = place else { return };
        place = fields.entry(name.as_ref()).or_insert(Value::Null);
    }
    *place = value;
}

/// What two objects that have become of one differ in.
fn differences(
    one: &Value,
    other: &Value,
    path: &Path,
    found: &mut impl FnMut(&Path, Option<&Value>, Option<&Value>),
) {
    let (Value::Object(fields), Value::Object(others)) = (one, other) else {
        if one != other {
            found(path, Some(one), Some(other));
        }
        return;
    };
    let keys: Map<String, Value> =
        fields.keys().chain(others.keys()).map(|key| (key.clone(), Value::Null)).collect();
    for key in keys.keys() {
        let path = path.at(key.clone());
        match (fields.get(key), others.get(key)) {
            (Some(one), Some(other)) => differences(one, other, &path, found),
            (one, other) => found(&path, one, other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(object: Value, to: Version) -> (Value, Vec<String>) {
        let (converted, notes) = convert(object, to, false).unwrap();
        (converted, notes.iter().map(|note| format!("{}: {}", note.path, note.text)).collect())
    }

    fn etcd(version: Version, spec: &Value) -> Value {
        json!({ "apiVersion": version.api_version(), "kind": "EtcdCluster", "metadata": { "name": "a" }, "spec": spec })
    }

    const FULL: &str =
        r#"{"replicas": 3, "version": "3.6.16", "storage": {"size": "1Gi"}, "tls": {"mode": "Disabled"}}"#;

    #[test]
    fn an_unknown_field_is_kept_and_named() {
        let mut spec: Value = serde_json::from_str(FULL).unwrap();
        spec["replicass"] = 5.into();
        let (converted, notes) = notes(etcd(Version::V1, &spec), Version::V1Alpha1);
        assert_eq!(converted["spec"]["replicass"], 5);
        assert_eq!(notes, ["spec.replicass: kept, although gatehouse.dev/v1 has no such field"]);
    }

    #[test]
    fn an_unknown_field_never_gains_a_meaning() {
        let spec = json!({ "size": 1, "version": "3.6.16", "paused": true, "other": 1 });
        let (converted, notes) = notes(etcd(Version::V1Alpha1, &spec), Version::V1);
        assert_eq!(converted["spec"]["paused"], Value::Null);
        assert_eq!(converted["spec"]["other"], 1);
        assert!(notes[0].starts_with("spec.other: kept, "), "{notes:?}");
        assert!(notes[1].starts_with("spec.paused: left out: "), "{notes:?}");
    }

    #[test]
    fn an_absence_that_means_something_else_is_reported() {
        let (converted, notes) = notes(etcd(Version::V1Alpha1, &json!({ "version": "3.6.16" })), Version::V1);
        assert_eq!(converted["spec"], json!({ "version": "3.6.16" }), "nothing is defaulted");
        assert_eq!(
            notes,
            [
                "spec.size: absent: it means 1 in a new v1alpha1 object, and 3 in a new v1 one (--explicit writes it down)",
                r#"spec.tls.mode: absent: it means "Disabled" in a new v1alpha1 object, and "Automatic" in a new v1 one (--explicit writes it down)"#,
            ]
        );
    }

    #[test]
    fn what_an_absence_means_is_written_down_where_that_is_asked_for() {
        let object = etcd(Version::V1Alpha1, &json!({ "backupSchedule": "@daily" }));
        let (converted, notes) = convert(object, Version::V1, true).unwrap();
        assert_eq!(notes, []);
        assert_eq!(
            converted["spec"],
            json!({
                "replicas": 1,
                "tls": { "mode": "Disabled" },
                "backup": {
                    "schedule": "@daily",
                    "destination": { "persistentVolumeClaim": { "claimName": "a-backup" } }
                }
            })
        );
    }

    #[test]
    fn a_stored_object_has_its_defaults_already() {
        let mut object = etcd(Version::V1Alpha1, &json!({}));
        object["metadata"]["uid"] = "u".into();
        assert_eq!(notes(object, Version::V1).1, Vec::<String>::new());
    }

    #[test]
    fn a_version_that_does_not_exist_is_refused() {
        let fault = convert(json!({ "apiVersion": "gatehouse.dev/v2", "kind": "TDSet" }), Version::V1, false)
            .unwrap_err();
        assert_eq!(
            fault.to_string(),
            "apiVersion: Unsupported value: \"gatehouse.dev/v2\": \
             supported values: \"gatehouse.dev/v1alpha1\", \"gatehouse.dev/v1\""
        );
        assert!(
            convert(json!({ "apiVersion": "gatehouse.dev/v1", "kind": "Deployment" }), Version::V1, false)
                .is_err()
        );
    }

    #[test]
    fn other_kinds_pass_whatever_they_are() {
        for other in [
            json!(3),
            json!({}),
            json!({ "apiVersion": "schedule.rs/v1", "kind": "Other", "spec": { "a": 1 } }),
        ] {
            assert_eq!(convert(other.clone(), Version::V1, false).unwrap(), (other, Vec::new()));
        }
    }
}
