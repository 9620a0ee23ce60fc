//! The offline commands, by the built binary, on real files.

#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Ran {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Its result, read back by a YAML reader that is not ours.
    fn documents(&self) -> Vec<Value> {
        serde_saphyr::from_multiple(&self.out).unwrap()
    }

    #[track_caller]
    fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatehouse"));
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).env_remove("GATEHOUSE_LOG");
    command
}

fn gatehouse(arguments: &[&str]) -> Ran {
    Ran::of(command(arguments).output().unwrap())
}

/// As [`gatehouse`], with a text on standard input.
fn piped(arguments: &[&str], text: &str) -> Ran {
    let mut child = command(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    Ran::of(child.wait_with_output().unwrap())
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    folder
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

const NAMESPACE: &str =
    "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n  labels:\n    \"on\": \"off\"\n";

const CLUSTER: &str = "\
apiVersion: gatehouse.dev/v1
kind: EtcdCluster
metadata:
  name: store
  namespace: shop
spec:
  replicas: 3
  version: \"3.6.16\"
  storage:
    size: 10Gi
    storageClassName: fast
  tls:
    mode: Automatic
  backup:
    schedule: 0 2 * * *
    timeZone: Europe/Berlin
    destination:
      persistentVolumeClaim:
        claimName: backups
  deletionProtection: true
";

const TIMETABLE: &str = "\
apiVersion: gatehouse.dev/v1
kind: TDSet
metadata:
  name: till
  annotations:
    owner: shop
spec:
  timeZone: Europe/Berlin
  defaultReplicas: 3
  windows:
  - name: evening
    from: \"17:45\"
    to: \"24:00\"
    days:
    - Mon
    - Fri
    replicas: 5
  target:
    create:
      image: registry.example.com/till:2
      port: 8000
";

#[test]
fn every_manifest_of_an_ancestor_becomes_one_that_the_gate_accepts() {
    for to in ["v1", "v1alpha1"] {
        let converted =
            gatehouse(&["convert", "--explicit", "--to", to, "-f", "examples/ancestors"]).expect(0);
        let documents = converted.documents();
        assert!(documents.len() >= 5, "{}", converted.out);
        for document in documents {
            assert_eq!(document["apiVersion"], format!("gatehouse.dev/{to}"), "{document}");
        }
        piped(&["validate", "-f", "-"], &converted.out).expect(0);
    }
}

#[test]
fn an_ancestor_says_what_it_said() {
    let file = "examples/ancestors/etcdcluster-mycompany.com.yaml";
    let converted = gatehouse(&["convert", "-f", file]).expect(0);
    assert_eq!(
        converted.documents(),
        [json!({
            "apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": { "name": "my-etcd" },
            "spec": {
                "replicas": 3, "version": "3.5.9", "storage": { "size": "10Gi" },
                "backup": { "schedule": "0 2 * * *" }
            }
        })]
    );
    assert!(converted.err.contains("spec.tls.mode: absent: it means \"Disabled\""), "{}", converted.err);
}

#[test]
fn a_window_past_midnight_is_reported_with_document_path_and_line() {
    let manifest = format!(
        "{NAMESPACE}---\napiVersion: schedule.rs/v1\nkind: TDSet\nmetadata:\n  name: night\nspec:\n  container:\n    \
         image: a\n    port: 80\n  schedulingConfig:\n    - startTime: 22\n      endTime: 6\n      replica: 1\n  \
         defaultReplica: 3\n"
    );
    let converted = piped(&["convert", "-f", "-"], &manifest).expect(0);
    assert_eq!(
        converted.err,
        "warning: -:doc 2 TDSet night: spec.schedulingConfig[0]: 22 to 6 never held in schedule.rs/v1; \
         gatehouse.dev takes it past midnight (line 17)\n"
    );
    assert_eq!(converted.documents()[1]["spec"]["windows"][0]["to"], "06:00");
}

#[test]
fn there_and_back_again_is_the_same() {
    for manifest in [CLUSTER, TIMETABLE] {
        let old = piped(&["convert", "--to", "v1alpha1", "-f", "-"], manifest).expect(0);
        assert!(old.out.contains("\n    conversion.gatehouse.dev/spec."), "{}", old.out);
        let new = piped(&["convert", "--to", "v1", "-f", "-"], &old.out).expect(0);
        let original: Vec<Value> = serde_saphyr::from_multiple(manifest).unwrap();
        assert_eq!(new.documents(), original);
        assert!(!new.err.contains("left out"), "{}", new.err);
    }
}

#[test]
fn conversion_to_the_same_version_changes_no_byte_of_plain_yaml() {
    let converted = piped(&["convert", "-f", "-"], CLUSTER).expect(0);
    assert_eq!((converted.out.as_str(), converted.err.as_str()), (CLUSTER, ""));
}

#[test]
fn other_kinds_pass_in_their_place() {
    let manifest = format!("{NAMESPACE}---\n{CLUSTER}---\n{NAMESPACE}");
    let converted = piped(&["convert", "--to", "v1alpha1", "-f", "-"], &manifest).expect(0);
    let kinds: Vec<_> = converted.documents().iter().map(|document| document["kind"].clone()).collect();
    assert_eq!(kinds, ["Namespace", "EtcdCluster", "Namespace"]);
    assert!(converted.out.starts_with(&format!("{NAMESPACE}---\n")), "{}", converted.out);
}

#[test]
fn the_items_of_a_list_are_converted_where_they_are() {
    let cluster: Value = serde_saphyr::from_str(CLUSTER).unwrap();
    let namespace: Value = serde_saphyr::from_str(NAMESPACE).unwrap();
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": [namespace, cluster, { "apiVersion": "gatehouse.dev/v1", "kind": "TDSetList", "items": [] }] });
    let arguments = ["convert", "--to", "v1alpha1", "-o", "json", "-f", "-"];
    let converted = piped(&arguments, &list.to_string()).expect(0);
    let converted: Value = serde_json::from_str(&converted.out).unwrap();
    assert_eq!(converted["kind"], "List");
    assert_eq!(converted["items"][0], namespace);
    assert_eq!(converted["items"][1]["spec"]["size"], 3);
    assert_eq!(converted["items"][2]["apiVersion"], "gatehouse.dev/v1alpha1");
}

#[test]
fn several_documents_as_json_are_one_list() {
    let converted =
        piped(&["convert", "-o", "json", "-f", "-"], &format!("{CLUSTER}---\n{TIMETABLE}")).expect(0);
    let list: Value = serde_json::from_str(&converted.out).unwrap();
    assert_eq!((&list["kind"], list["items"].as_array().map(Vec::len)), (&json!("List"), Some(2)));
    piped(&["validate", "-f", "-"], &converted.out).expect(0);
}

#[test]
fn a_folder_is_read_by_path_and_hidden_files_are_not() {
    let folder = folder(&[
        ("b.yml", TIMETABLE),
        ("a/z.yaml", CLUSTER),
        ("c.json", r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}"#),
        (".hidden/broken.yaml", "a: ["),
        ("note.txt", "a: ["),
    ]);
    let converted = gatehouse(&["convert", "-f", text(folder.path())]).expect(0);
    let kinds: Vec<_> = converted.documents().iter().map(|document| document["kind"].clone()).collect();
    assert_eq!(kinds, ["EtcdCluster", "TDSet", "Namespace"]);
}

#[test]
fn an_unknown_field_is_kept_by_convert_and_refused_by_validate() {
    let manifest = CLUSTER.replace("  replicas: 3\n", "  replicass: 3\n");
    let converted = piped(&["convert", "--to", "v1alpha1", "-f", "-"], &manifest).expect(0);
    assert_eq!(converted.documents()[0]["spec"]["replicass"], 3);
    assert!(
        converted.err.contains("spec.replicass: kept, although gatehouse.dev/v1 has no such field (line 7)"),
        "{}",
        converted.err
    );
    let judged = piped(&["validate", "-f", "-"], &manifest).expect(1);
    assert_eq!(
        judged.out,
        "-:doc 1 EtcdCluster shop/store: spec.replicass: Forbidden: unknown field of gatehouse.dev/v1 (line 7)\n"
    );
    assert!(judged.err.ends_with("0 accepted, 1 refused\n"), "{}", judged.err);
}

#[test]
fn comments_are_reported_once() {
    let folder =
        folder(&[("a.yaml", "# one\na: 1 # two\n"), ("b.yaml", "b: 1\n"), ("c.yaml", "c: 1 # three\n")]);
    let converted = gatehouse(&["convert", "-f", text(folder.path())]).expect(0);
    assert_eq!(converted.err.lines().count(), 1, "{}", converted.err);
    assert!(converted.err.contains("a.yaml, ") && converted.err.contains("c.yaml"), "{}", converted.err);
}

#[test]
fn broken_yaml_is_reported_with_file_line_and_excerpt_and_nothing_is_written() {
    let folder = folder(&[("broken.yaml", "a: 1\nb: [1, 2\nc: 3\n"), ("good.yaml", CLUSTER)]);
    let converted = gatehouse(&["convert", "-f", text(folder.path())]).expect(2);
    assert_eq!(converted.out, "");
    assert!(converted.err.contains("broken.yaml:3:"), "{}", converted.err);
    assert!(converted.err.contains("b: [1, 2"), "{}", converted.err);
    let judged = gatehouse(&["validate", "-f", text(folder.path())]).expect(2);
    assert!(judged.err.ends_with("1 accepted, 0 refused, 1 unreadable\n"), "{}", judged.err);
}

#[test]
fn a_key_that_occurs_twice_is_broken_yaml() {
    let manifest = CLUSTER.replace("  replicas: 3\n", "  replicas: 3\n  replicas: 5\n");
    for command in ["convert", "validate"] {
        let ran = piped(&[command, "-f", "-"], &manifest).expect(2);
        assert!(ran.err.contains("duplicate mapping key: replicas"), "{}", ran.err);
    }
}

#[test]
fn a_version_that_does_not_exist_fails_both() {
    let manifest = CLUSTER.replace("gatehouse.dev/v1", "gatehouse.dev/v2");
    let converted = piped(&["convert", "-f", "-"], &manifest).expect(1);
    assert_eq!(converted.out, "");
    assert!(
        converted.err.contains("apiVersion: Unsupported value: \"gatehouse.dev/v2\""),
        "{}",
        converted.err
    );
    piped(&["validate", "-f", "-"], &manifest).expect(1);
}

#[test]
fn a_version_that_yaml_takes_for_a_number_asks_for_quotes() {
    let judged = piped(&["validate", "-f", "-"], &CLUSTER.replace("\"3.6.16\"", "3.6")).expect(1);
    assert!(
        judged.out.contains("spec.version: Invalid value: 3.6: must be of type string; "),
        "{}",
        judged.out
    );
    assert!(judged.out.contains("needs quotes (line 8)"), "{}", judged.out);
}

#[test]
fn the_verdict_as_json_holds_every_object() {
    let manifest = format!("{NAMESPACE}---\n{CLUSTER}---\n{}", CLUSTER.replace("replicas", "replicass"));
    let judged = piped(&["validate", "-o", "json", "-f", "-"], &manifest).expect(1);
    let report: Value = serde_json::from_str(&judged.out).unwrap();
    assert_eq!(report["accepted"], false);
    assert_eq!(report["summary"], json!({ "accepted": 1, "refused": 1, "skipped": 1, "unreadable": 0 }));
    let verdicts: Vec<_> =
        report["objects"].as_array().unwrap().iter().map(|object| object["verdict"].clone()).collect();
    assert_eq!(verdicts, ["skipped", "accepted", "refused"]);
    assert_eq!(report["objects"][2]["faults"][0]["field"], "spec.replicass");
    assert_eq!(report["objects"][2]["document"], 3);
}

#[test]
fn what_cannot_be_read_is_a_wrong_command_line() {
    let empty = folder(&[]);
    for arguments in [
        &["validate", "-f", "no/such/file.yaml"][..],
        &["convert", "-f", "no/such/file.yaml"],
        &["validate", "-f", text(empty.path())],
        &["validate"],
        &["convert", "--to", "v3", "-f", "-"],
    ] {
        let ran = gatehouse(arguments).expect(2);
        assert!(ran.err.starts_with("error: "), "{}", ran.err);
    }
    let ran = piped(&["validate", "-f", "-"], "# nothing\n").expect(2);
    assert!(ran.err.contains("no objects"), "{}", ran.err);
}

#[test]
fn the_examples_are_accepted_and_each_rejected_one_is_not() {
    for folder in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")).unwrap() {
        let folder = folder.unwrap().path();
        if !folder.is_dir() {
            continue;
        }
        if !folder.ends_with("rejected") {
            gatehouse(&["validate", "-f", text(&folder)]).expect(0);
            continue;
        }
        for file in fs::read_dir(folder).unwrap() {
            gatehouse(&["validate", "-f", text(&file.unwrap().path())]).expect(1);
        }
    }
}

#[test]
fn a_reader_that_stops_reading_is_no_error() {
    let mut child = command(&["crds"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    Ran::of(child.wait_with_output().unwrap()).expect(0);
}

#[test]
fn the_definitions_are_printed_as_yaml_and_as_json() {
    let yaml = gatehouse(&["crds"]).expect(0).documents();
    let json: Value = serde_json::from_str(&gatehouse(&["crds", "-o", "json"]).expect(0).out).unwrap();
    assert_eq!(json["items"].as_array(), Some(&yaml));
    assert!(yaml.iter().all(|definition| definition["kind"] == "CustomResourceDefinition"));
}

#[test]
fn generated_files_are_written_compared_and_printed() {
    let folder = tempfile::tempdir().unwrap();
    let deploy = text(folder.path());
    let missing = gatehouse(&["manifests", "--check", deploy]).expect(1);
    assert!(missing.err.contains("crds/etcdclusters.yaml is not what is generated"), "{}", missing.err);
    gatehouse(&["manifests", "--write", deploy]).expect(0);
    gatehouse(&["manifests", "--check", deploy]).expect(0);
    let file = folder.path().join("crds/tdsets.yaml");
    let content = fs::read_to_string(&file).unwrap();
    fs::write(&file, content.replace("TDSet", "TDset")).unwrap();
    let differs = gatehouse(&["manifests", "--check", deploy]).expect(1);
    assert!(differs.err.contains("crds/tdsets.yaml"), "{}", differs.err);
    let printed = gatehouse(&["manifests"]).expect(0);
    assert!(printed.out.contains("# Source: crds/tdsets.yaml\n"), "{}", printed.out);
    assert!(printed.documents().len() >= 2);
}

#[test]
fn a_byte_order_mark_before_a_manifest_hides_nothing() {
    let folder = folder(&[("mark.yaml", &format!("\u{feff}{CLUSTER}"))]);
    let judged = gatehouse(&["validate", "-f", text(folder.path())]).expect(0);
    assert!(judged.err.contains("1 accepted"), "{}", judged.err);
}
