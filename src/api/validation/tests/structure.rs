//! What an object means is validated beside what its schema refuses.

use super::*;
use crate::api::field::Segment;
use crate::kinds::KINDS;

/// Examples of each kind that use most of its fields, and faults that go into each.
const EXAMPLES: [(&str, &[(&str, &str)]); 9] = [
    (
        include_str!("../../../../examples/etcdcluster/production.yaml"),
        &[("/spec/backup/schedule", "0 25 * * *"), ("/metadata/name", "a.b")],
    ),
    (include_str!("../../../../examples/etcdcluster/minimal.yaml"), &[("/metadata/name", "a.b")]),
    (
        include_str!("../../../../examples/etcdcluster/classic-v1alpha1.yaml"),
        &[("/spec/version", "3.1.0"), ("/spec/backupSchedule", "0 25 * * *")],
    ),
    (include_str!("../../../../examples/tdset/office-hours.yaml"), &[("/spec/timeZone", "CET+1")]),
    (include_str!("../../../../examples/tdset/night.yaml"), &[("/spec/timeZone", "CET+1")]),
    (include_str!("../../../../examples/tdset/autoscaled.yaml"), &[("/spec/timeZone", "Europe/Berlni")]),
    (include_str!("../../../../examples/tdset/classic.yaml"), &[("/metadata/name", "9")]),
    (
        include_str!("../../../../examples/databasemigration/production.yaml"),
        &[("/spec/scripts/2/up/inline", "COMMIT"), ("/metadata/name", "A")],
    ),
    (include_str!("../../../../examples/databasemigration/classic.yaml"), &[("/metadata/name", "A")]),
];

fn example(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

/// The errors of a new object.
fn faults(object: &Value) -> Vec<FieldError> {
    let kind = crate::kinds::find(object["kind"].as_str().unwrap()).unwrap();
    let version = Version::of_api_version(object["apiVersion"].as_str().unwrap()).unwrap();
    let new = Written { version, object };
    let now = "2026-11-21T12:00:00Z".parse().unwrap();
    validate(kind, &Change { new, old: None, author: version, now }).errors
}

/// The paths of all fields and items below a value.
fn places(value: &Value, path: &Path, found: &mut Vec<Path>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                found.push(path.at(name.clone()));
                places(value, &path.at(name.clone()), found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                found.push(path.index(index));
                places(value, &path.index(index), found);
            }
        }
        _ => {}
    }
}

fn place<'a>(object: &'a mut Value, path: &Path) -> &'a mut Value {
    path.segments().iter().fold(object, |value, step| match step {
        Segment::Field(name) => &mut value[&**name],
        Segment::Key(name) => &mut value[name.as_str()],
        Segment::Index(index) => &mut value[index],
    })
}

/// Whether a field is another one, or below it, however the keys of maps are written.
fn is_within(path: &Path, other: &Path) -> bool {
    let plain = |path: &Path| format!("{path}.").replace('[', ".").replace(']', "");
    plain(path).starts_with(&plain(other))
}

/// Values of which no schema takes all.
fn strangers() -> [Value; 4] {
    [json!({"x": [1]}), json!([[1]]), json!(true), json!("No such thing")]
}

#[test]
fn what_a_schema_refuses_hides_no_fault_elsewhere_and_adds_none() {
    let (mut planted, mut wrong) = (0, Vec::new());
    for (text, faulty) in EXAMPLES {
        let mut object = example(text);
        for (pointer, value) in faulty {
            *object.pointer_mut(pointer).unwrap() = json!(value);
        }
        let before = faults(&object);
        assert!(before.len() >= faulty.len(), "{before:?}");
        let mut all = Vec::new();
        places(&object["spec"], &Path::spec(), &mut all);
        for path in all {
            let is_apart =
                |fault: &FieldError| !is_within(&fault.path, &path) && !is_within(&path, &fault.path);
            for stranger in strangers() {
                let mut planting = object.clone();
                *place(&mut planting, &path) = stranger.clone();
                let kind = crate::kinds::find(object["kind"].as_str().unwrap()).unwrap();
                let version = Version::of_api_version(object["apiVersion"].as_str().unwrap()).unwrap();
                let structure = kind.schemas().of(version).faults(&planting, 100);
                if structure.is_empty() {
                    continue;
                }
                planted += 1;
                let found = faults(&planting);
                let case = format!("{stranger} at {path} of {} {}", object["apiVersion"], object["kind"]);
                // Without a service that can be read it is not known whether one is made.
                let is_unknown = |fault: &FieldError| {
                    fault.detail.ends_with("the Service is named so") && path.to_string() == "spec.service"
                };
                let hidden = before.iter().filter(|fault| is_apart(fault) && !is_unknown(fault));
                let hidden = hidden.filter(|fault| !found.contains(fault));
                wrong.extend(hidden.map(|fault| format!("{fault} is hidden by {case}")));
                // The planted value has removed the window, the script or the field that the other field needs.
                let refers = |fault: &FieldError| {
                    ["must be the name of a window", "must be the id of", "needs "]
                        .iter()
                        .any(|begin| fault.detail.starts_with(begin))
                };
                let is_known = |fault: &FieldError| {
                    before.contains(fault) || is_within(&fault.path, &path) || refers(fault)
                };
                let added = found.iter().filter(|fault| !is_known(fault));
                wrong.extend(added.map(|fault| format!("{fault} is added by {case}")));
            }
        }
    }
    assert!(planted > 500, "{planted}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Objects, and the fields of all of their faults.
fn incomplete() -> Vec<(Value, &'static [&'static str])> {
    let set = |windows: Value| {
        let mut set = of_kind("TDSet", &sound("TDSet"));
        set["spec"]["timeZone"] = json!("CET+1");
        set["spec"]["windows"] = windows;
        set
    };
    let window = |change: Value| {
        let mut window = json!({"name": "a", "from": "08:00", "to": "09:00", "replicas": 1});
        json_patch::merge(&mut window, &change);
        window
    };
    vec![
        (
            set(json!([window(json!({"days": ["Monday"]}))])),
            &["spec.windows[0].days[0]", "spec.timeZone"][..],
        ),
        (set(json!([window(json!({"name": null}))])), &["spec.windows[0].name", "spec.timeZone"]),
        (
            set(json!([window(json!({"name": null})), window(json!({"name": null}))])),
            &["spec.windows[0].name", "spec.windows[1].name", "spec.windows[1]", "spec.timeZone"],
        ),
        (set(json!([window(json!({"from": 8}))])), &["spec.windows[0].from", "spec.timeZone"]),
        (
            set(json!(["a", window(json!({"to": "08:00"}))])),
            &["spec.windows[0]", "spec.windows[1].to", "spec.timeZone"],
        ),
        (set(json!({"a": 1})), &["spec.windows", "spec.timeZone"]),
        (
            set((0..70).map(|at| window(json!({"name": format!("w{at}")}))).collect()),
            &["spec.windows", "spec.timeZone"],
        ),
        (
            of_kind("TDSet", &json!({"timeZone": "CET+1", "defaultReplicas": 1})),
            &["spec.target", "spec.timeZone"],
        ),
        (
            of_kind("TDSet", &json!({"timeZone": "CET+1", "target": {"create": {"image": "a"}}})),
            &["spec.target.create.port", "spec.defaultReplicas", "spec.timeZone"],
        ),
        (
            cluster(&json!({"version": "v3.6.16", "backup": {"destination": {"persistentVolumeClaim": {}}}})),
            &["spec.backup.destination.persistentVolumeClaim.claimName", "spec.version"],
        ),
        (
            of_kind("DatabaseMigration", &json!({"scripts": [{"id": "1", "up": {"inline": "COMMIT"}}]})),
            &["spec.database", "spec.scripts[0].kind", "spec.scripts[0].up.inline"],
        ),
        (
            of_kind(
                "DatabaseMigration",
                &json!({"database": {"engine": "Oracle", "name": "a", "host": "a@b", "credentialsSecret": {"name": "a"}}, "scripts": []}),
            ),
            &["spec.database.engine", "spec.scripts"],
        ),
    ]
}

#[test]
fn a_missing_field_hides_no_fault_elsewhere() {
    for (object, expected) in incomplete() {
        let mut found: Vec<_> = faults(&object).iter().map(|fault| fault.path.to_string()).collect();
        let mut expected: Vec<_> = expected.iter().map(|path| (*path).to_owned()).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{:#?}", faults(&object));
    }
}

#[test]
fn a_name_in_what_could_not_be_read_may_be_referred_to() {
    let mut set = of_kind("TDSet", &sound("TDSet"));
    set["spec"]["exceptions"] = json!([{"name": "a", "dates": ["2030-01-01"], "skipWindows": ["night"]}]);
    let fields = |windows: Value| -> Vec<_> {
        let mut set = set.clone();
        set["spec"]["windows"] = windows;
        faults(&set).iter().map(|fault| fault.path.to_string()).collect()
    };
    let night = json!({"name": "night", "from": "20:00", "to": "06:00", "replicas": 1});
    assert_eq!(fields(json!([night])), [""; 0]);
    assert_eq!(fields(json!({"night": night})), ["spec.windows"]);
    assert_eq!(fields(json!(["night"])), ["spec.windows[0]"]);
    assert_eq!(fields(json!(["day"])), ["spec.windows[0]", "spec.exceptions[0].skipWindows[0]"]);
    let many =
        (0..80).map(|at| json!({"name": format!("w{at}"), "from": "08:00", "to": "09:00", "replicas": 1}));
    assert_eq!(fields(many.chain([night]).collect()), ["spec.windows"]);
}

/// Objects at random, of any structure.
#[test]
fn a_fault_that_depends_on_no_stand_in_is_in_the_answer() {
    for seed in crate::properties::seeds(200) {
        let mut source = random_objects::Source::new(seed);
        source.nonsense = 12;
        for kind in KINDS {
            let object = crate::properties::object(&mut source, *kind, Version::V1);
            let schema = kind.schemas().of(Version::V1);
            let structure = schema.faults(&object, MOST_FAULTS + 1);
            if structure.len() > MOST_FAULTS / 2 {
                continue;
            }
            let answer = faults(&object);
            for fault in &structure {
                assert!(answer.contains(fault), "{seed}: {fault} of {object}");
            }
            let [Some(first), Some(second)] =
                [StandIns::First, StandIns::Second].map(|which| schema.sound(&object, which, None))
            else {
                continue;
            };
            assert_eq!(first.replaced, second.replaced, "{seed}");
            for sound in [&first, &second] {
                let left = schema.faults(&sound.object, MOST_FAULTS);
                assert_eq!(
                    schema.sound(&sound.object, StandIns::First, None).map(|again| again.replaced),
                    None,
                    "{seed}: {left:?}"
                );
            }
            let both = kind.validate(&second.object, None, None).errors;
            for fault in kind.validate(&first.object, None, None).errors {
                let is_apart = !first.replaced.iter().any(|path| fault.path.is_within(path));
                let is_new = !structure.iter().any(|known| known.path == fault.path);
                let shown = fault.path.value(&object).map(Value::to_string).unwrap_or_default();
                let is_in =
                    |path: &Path| path.value(&object).is_some_and(|value| value.to_string().contains(&shown));
                let is_name = fault.reason == Reason::Invalid && first.replaced.iter().any(is_in);
                if is_apart && is_new && !is_name && both.contains(&fault) && answer.len() < MOST_FAULTS {
                    assert!(answer.contains(&fault), "{seed}: {fault} of {object}");
                }
            }
        }
    }
}
