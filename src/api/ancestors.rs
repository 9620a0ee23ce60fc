//! The published ancestors of the kinds: what their manifests say, as `v1alpha1`.
//!
//! Guarantees: as the lens between our own versions, a manifest maps by a table, for content of any kind; no default
//! is written; every field that is left out, and every meaning that changes on the way, is reported as a [`Note`].
//! Never: validates. What an ancestor accepted and we do not, validation finds.
//!
//! | API version | kind | what it is |
//! |---|---|---|
//! | `stable.example.com/v1alpha1` | EtcdCluster | the shape that `v1alpha1` took over |
//! | `mycompany.com/v1alpha1` | EtcdCluster | the same, with `replicas` for `size` |
//! | `schedule.rs/v1` | TDSet | the shape that `v1alpha1` took over (BackAged/tdset-operator) |
//! | `database.mohitnagaraj.in/v1alpha1` | DatabaseMigration | the shape that `v1alpha1` took over (mohit-nagaraj/kube-shift) |

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::Version;
use super::checksum::is_checksum;
use super::field::{Path, Segment};
use super::lens::{ENVELOPE, Parts, Row, Table, rename, same};

/// A kind of another group that `v1alpha1` succeeds.
#[derive(Debug)]
pub struct Ancestor {
    /// Its group and version, as `apiVersion` has them.
    pub api_version: &'static str,
    /// Its kind, which is ours as well.
    pub kind: &'static str,
    /// The table: where `v1alpha1` (the hub here) has a field of the ancestor (the spoke).
    table: Table,
    /// What fields of the ancestor mean from now on, where that is not what they meant; what cannot be taken over is taken
    /// out.
    changes: fn(&mut Value) -> Vec<Note>,
}

/// Something that the author of a manifest should know of its conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The field, in the version that the author wrote.
    pub path: Path,
    /// What becomes of it.
    pub text: String,
}

impl Note {
    /// `text` about the field at `path`.
    pub fn new(path: Path, text: impl Into<String>) -> Self {
        Self { path, text: text.into() }
    }
}

/// Every ancestor.
pub static ANCESTORS: &[Ancestor] = &[
    Ancestor {
        api_version: "stable.example.com/v1alpha1",
        kind: "EtcdCluster",
        table: Table::of(STABLE),
        changes: |_| Vec::new(),
    },
    Ancestor {
        api_version: "mycompany.com/v1alpha1",
        kind: "EtcdCluster",
        table: Table::of(MY_COMPANY),
        changes: |_| Vec::new(),
    },
    Ancestor {
        api_version: "schedule.rs/v1",
        kind: "TDSet",
        table: Table::of(SCHEDULE_RS),
        changes: timetable_changes,
    },
    Ancestor {
        api_version: "database.mohitnagaraj.in/v1alpha1",
        kind: "DatabaseMigration",
        table: Table::of(DATABASE),
        changes: migration_changes,
    },
];

const STABLE: &[Row] =
    &[same("/spec/size"), same("/spec/version"), same("/spec/storageSize"), same("/spec/backupSchedule")];

const MY_COMPANY: &[Row] = &[
    rename("/spec/replicas", "/spec/size"),
    same("/spec/version"),
    same("/spec/storageSize"),
    same("/spec/backupSchedule"),
];

const SCHEDULE_RS: &[Row] = &[
    same("/spec/container"),
    same("/spec/service"),
    same("/spec/schedulingConfig"),
    same("/spec/defaultReplica"),
    same("/spec/intervalMint"),
];

const DATABASE: &[Row] = &[
    same("/spec/database"),
    same("/spec/migration"),
    same("/spec/validation"),
    same("/spec/rollback"),
    same("/spec/notifications"),
];

/// The ancestor of that API version and kind.
#[must_use]
pub fn find(api_version: &str, kind: &str) -> Option<&'static Ancestor> {
    ANCESTORS.iter().find(|one| one.api_version == api_version && one.kind == kind)
}

impl Ancestor {
    /// The object as `v1alpha1`, and what its author should know. What is no JSON object is returned as it is.
    #[must_use]
    pub fn adopt(&self, mut object: Value) -> (Value, Vec<Note>) {
        let mut notes = (self.changes)(&mut object);
        let Value::Object(mut fields) = object else {
            return (object, notes);
        };
        notes.extend(leave_history(&mut fields));
        notes.extend(self.leave_strangers(&mut fields));
        let mut adopted = Map::new();
        for key in ENVELOPE {
            if let Some(value) = fields.remove(key) {
                adopted.insert(key.to_owned(), value);
            }
        }
        adopted.insert("apiVersion".to_owned(), Version::V1Alpha1.api_version().into());
        let parts = Parts { fields, ..Parts::default() };
        adopted.extend(self.table.to_hub(parts).fields);
        (Value::Object(adopted), notes)
    }

    /// The ancestor's path of a field of `v1alpha1`, or that path itself where the ancestor has no such field.
    #[must_use]
    pub fn path(&self, v1alpha1: &Path) -> Path {
        self.table.path(v1alpha1).unwrap_or_else(|| v1alpha1.clone())
    }

    /// Takes out fields that the ancestor does not know, in places that mean something to `v1alpha1`.
    fn leave_strangers(&self, fields: &mut Map<String, Value>) -> Vec<Note> {
        let known = |place| self.table.rows.iter().any(|row| row.spoke() == Some(place));
        let places = self.table.rows.iter().map(Row::hub).filter(|place| !known(place));
        let gone = places.filter_map(|place| {
            let steps: Vec<&str> = place.split('/').skip(1).collect();
            take(fields, &steps)?;
            let path = Path::from(
                steps.into_iter().map(|step| Segment::Field(step.to_owned().into())).collect::<Vec<_>>(),
            );
            Some(Note::new(path, format!("left out: {} has no such field", self.api_version)))
        });
        gone.collect()
    }
}

/// What the old cluster wrote into an object that was read from it. In another group it is a new object, which no
/// API server takes with these in it, or which would wait for ever for a finalizer that no controller removes.
const HISTORY: &[&[&str]] = &[
    &["status"],
    &["metadata", "uid"],
    &["metadata", "resourceVersion"],
    &["metadata", "generation"],
    &["metadata", "creationTimestamp"],
    &["metadata", "deletionTimestamp"],
    &["metadata", "deletionGracePeriodSeconds"],
    &["metadata", "selfLink"],
    &["metadata", "managedFields"],
    &["metadata", "finalizers"],
    &["metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"],
];

fn leave_history(fields: &mut Map<String, Value>) -> Option<Note> {
    let taken = HISTORY.iter().filter(|steps| take(fields, steps).is_some_and(|value| !value.is_null()));
    let names: Vec<_> = taken.map(|steps| steps.join(".")).collect();
    let text = format!("left out, as the old cluster wrote it: {}", names.join(", "));
    (!names.is_empty()).then(|| Note::new(Path::metadata(), text))
}

/// Takes the value at `steps` out, and an object that is left empty by it, but not the outermost one.
fn take(fields: &mut Map<String, Value>, steps: &[&str]) -> Option<Value> {
    let (first, rest) = steps.split_first()?;
    if rest.is_empty() {
        return fields.remove(*first);
    }
    let child = fields.get_mut(*first)?.as_object_mut()?;
    let taken = take(child, rest)?;
    if child.is_empty() && *first != "metadata" && *first != "spec" {
        fields.remove(*first);
    }
    Some(taken)
}

/// `schedule.rs/v1` held a window where `startTime <= hour < endTime`, so none that passes midnight, and it never
/// made the Service that `service` asks for (BackAged/tdset-operator, `controllers/schedule.go`).
fn timetable_changes(object: &mut Value) -> Vec<Note> {
    let mut notes = Vec::new();
    if object.pointer("/spec/service").is_some_and(|service| !service.is_null()) {
        let text = "schedule.rs/v1 never made a Service; gatehouse.dev makes it";
        notes.push(Note::new(Path::spec().at("service"), text));
    }
    let windows = object.pointer("/spec/schedulingConfig").and_then(Value::as_array);
    for (index, window) in windows.into_iter().flatten().enumerate() {
        let hour = |name| window.get(name).and_then(Value::as_i64);
        let (Some(start), Some(end)) = (hour("startTime"), hour("endTime")) else { continue };
        let text = match start.cmp(&end) {
            Ordering::Less => continue,
            Ordering::Equal => {
                format!("{start} to {end} never holds; gatehouse.dev refuses it in a new object")
            }
            Ordering::Greater => {
                format!("{start} to {end} never held in schedule.rs/v1; gatehouse.dev takes it past midnight")
            }
        };
        notes.push(Note::new(Path::spec().at("schedulingConfig").index(index), text));
    }
    notes
}

/// `database.mohitnagaraj.in/v1alpha1` held checksums against the script as it was loaded, by equality of text, and took
/// any; it never read `sslMode` for MySQL and MariaDB (mohit-nagaraj/kube-shift, `internal/database`).
fn migration_changes(object: &mut Value) -> Vec<Note> {
    let mut notes = Vec::new();
    let database = |name: &str| object.pointer(&format!("/spec/database/{name}")).and_then(Value::as_str);
    if let (Some("mysql" | "mariadb"), None) = (database("type"), database("sslMode")) {
        let text = "database.mohitnagaraj.in/v1alpha1 never used TLS for this engine; gatehouse.dev requires it unless \
                    sslMode is disable";
        notes.push(Note::new(Path::spec().at("database").at("sslMode"), text));
    }
    let scripts = object.pointer_mut("/spec/migration/scripts").and_then(Value::as_array_mut);
    for (index, script) in scripts.into_iter().flatten().enumerate() {
        let Some(fields) = script.as_object_mut() else { continue };
        let checksum = fields.get("checksum").and_then(Value::as_str);
        if checksum.is_some_and(|checksum| !is_checksum(checksum)) {
            fields.remove("checksum");
            let path = Path::spec().at("migration").at("scripts").index(index).at("checksum");
            notes.push(Note::new(
                path,
                "left out: no script has it, for it is not sha256: and 64 hexadecimal digits",
            ));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds;

    fn adopt(object: Value) -> (Value, Vec<String>) {
        let text = |name: &str| object[name].as_str().unwrap().to_owned();
        let ancestor = find(&text("apiVersion"), &text("kind")).unwrap();
        let (adopted, notes) = ancestor.adopt(object);
        (adopted, notes.iter().map(|note| format!("{}: {}", note.path, note.text)).collect())
    }

    #[test]
    fn every_ancestor_has_a_kind_of_ours() {
        for ancestor in ANCESTORS {
            assert!(kinds::find(ancestor.kind).is_some(), "{ancestor:?}");
        }
    }

    #[test]
    fn every_place_of_a_table_is_a_field_of_v1alpha1() {
        for ancestor in ANCESTORS {
            let kind = kinds::find(ancestor.kind).unwrap();
            let schema = kind.schemas().of(Version::V1Alpha1);
            for row in ancestor.table.rows.iter() {
                let name = row.hub().strip_prefix("/spec/").unwrap();
                let object = json!({ "spec": { name: null } });
                assert!(schema.unknown_fields(&object).is_empty(), "{row:?}");
            }
        }
    }

    #[test]
    fn replicas_of_my_company_become_the_size() {
        let (adopted, notes) = adopt(json!({
            "apiVersion": "mycompany.com/v1alpha1", "kind": "EtcdCluster", "metadata": { "name": "a" },
            "spec": { "version": "3.5.9", "replicas": 3, "storageSize": "10Gi", "backupSchedule": "0 2 * * *" }
        }));
        assert_eq!(
            adopted,
            json!({
                "apiVersion": "gatehouse.dev/v1alpha1", "kind": "EtcdCluster", "metadata": { "name": "a" },
                "spec": { "version": "3.5.9", "size": 3, "storageSize": "10Gi", "backupSchedule": "0 2 * * *" }
            })
        );
        assert!(notes.is_empty(), "{notes:?}");
    }

    #[test]
    fn a_field_that_the_ancestor_lacks_is_not_taken_for_ours() {
        let (adopted, notes) = adopt(json!({
            "apiVersion": "mycompany.com/v1alpha1", "kind": "EtcdCluster", "spec": { "size": 5 }
        }));
        assert_eq!(adopted["spec"], json!({}));
        assert_eq!(notes, ["spec.size: left out: mycompany.com/v1alpha1 has no such field"]);
    }

    #[test]
    fn an_unknown_field_is_kept_for_its_reader_to_name() {
        let (adopted, _) = adopt(json!({
            "apiVersion": "stable.example.com/v1alpha1", "kind": "EtcdCluster", "spec": { "size": 1, "pod": {} }
        }));
        assert_eq!(adopted["spec"], json!({ "size": 1, "pod": {} }));
    }

    #[test]
    fn what_the_old_cluster_wrote_stays_behind() {
        let (adopted, notes) = adopt(json!({
            "apiVersion": "schedule.rs/v1", "kind": "TDSet",
            "metadata": { "name": "a", "uid": "u", "creationTimestamp": null,
                          "annotations": { "kubectl.kubernetes.io/last-applied-configuration": "{}" } },
            "spec": {}, "status": { "conditions": [] }
        }));
        let expected = json!({
            "apiVersion": "gatehouse.dev/v1alpha1", "kind": "TDSet", "metadata": { "name": "a" }, "spec": {}
        });
        assert_eq!(adopted, expected);
        assert_eq!(
            notes,
            ["metadata: left out, as the old cluster wrote it: status, metadata.uid, \
              metadata.annotations.kubectl.kubernetes.io/last-applied-configuration"]
        );
    }

    #[test]
    fn windows_that_change_their_meaning_are_named() {
        let window = |start: i64, end: i64| json!({ "startTime": start, "endTime": end, "replica": 1 });
        let (adopted, notes) = adopt(json!({
            "apiVersion": "schedule.rs/v1", "kind": "TDSet",
            "spec": { "schedulingConfig": [window(8, 18), window(22, 6), window(3, 3), "?"], "service": { "port": 80 } }
        }));
        assert_eq!(adopted["spec"]["schedulingConfig"][1], window(22, 6));
        assert_eq!(
            notes,
            [
                "spec.service: schedule.rs/v1 never made a Service; gatehouse.dev makes it",
                "spec.schedulingConfig[1]: 22 to 6 never held in schedule.rs/v1; gatehouse.dev takes it past midnight",
                "spec.schedulingConfig[2]: 3 to 3 never holds; gatehouse.dev refuses it in a new object",
            ]
        );
    }

    #[test]
    fn what_a_migration_cannot_keep_is_left_out_and_named() {
        let script = |checksum: &str| json!({ "name": "a", "checksum": checksum });
        let sound = format!("sha256:{}", "a".repeat(64));
        let (adopted, notes) = adopt(json!({
            "apiVersion": "database.mohitnagaraj.in/v1alpha1", "kind": "DatabaseMigration",
            "spec": { "database": { "type": "mysql" }, "migration": { "scripts": [script("sha256:abc"), script(&sound), 3] } }
        }));
        assert_eq!(adopted["spec"]["migration"]["scripts"], json!([{ "name": "a" }, script(&sound), 3]));
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[1].starts_with("spec.migration.scripts[0].checksum: left out"), "{notes:?}");
    }

    #[test]
    fn faults_are_reported_where_the_ancestor_has_the_field() {
        let ancestor = find("mycompany.com/v1alpha1", "EtcdCluster").unwrap();
        assert_eq!(ancestor.path(&Path::spec().at("size")).to_string(), "spec.replicas");
        assert_eq!(ancestor.path(&Path::metadata().at("name")).to_string(), "metadata.name");
    }

    #[test]
    fn any_content_is_adopted() {
        for ancestor in ANCESTORS {
            for object in
                [json!(3), json!({}), json!({ "spec": 3, "metadata": [] }), json!({ "spec": { "size": {} } })]
            {
                let _ = ancestor.adopt(object);
            }
        }
    }
}
