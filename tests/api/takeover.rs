//! What an earlier build made is left as it is: no pod is restarted because this build takes over.
//!
//! `GATEHOUSE_BEFORE` names the controllers of the earlier build; `make nightly PART=takeover` builds them. The objects are
//! those of `tests/golden`. No pod starts here: what is compared are the pods that Kubernetes' own controllers make.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kit::bed::{Bed, Namespace};
use kit::operator::Fate;
use kit::wait::eventually;
use serde_json::{Value, json};

use crate::Test;
use crate::site::Site;

pub const TESTS: &[Test] = &kit::tests![what_an_earlier_build_made_is_left_as_it_is];

/// The name of these tests: they run where ignored ones are asked for.
pub const TITLE: &str = "::takeover::";

/// The resource of each object, its golden file, how many pods it has while none starts, and two changes of its spec that
/// need no other pods: once the second is observed, the reconciliation of the first is over.
const OBJECTS: [(&str, &str, usize, [&str; 2]); 6] = [
    ("etcdclusters", "minimal", 1, PROTECTED),
    ("etcdclusters", "plain-http", 1, PROTECTED),
    ("etcdclusters", "in-memory", 1, PROTECTED),
    ("tdsets", "minimal", 2, LOOKED_AT),
    ("tdsets", "everything", 0, LOOKED_AT), // what its pods need is not there
    ("databasemigrations", "minimal", 1, KEPT),
];
const PROTECTED: [&str; 2] = [r#"{"deletionProtection": true}"#, r#"{"deletionProtection": false}"#];
const LOOKED_AT: [&str; 2] = [r#"{"resyncMinutes": 7}"#, r#"{"resyncMinutes": 8}"#];
const KEPT: [&str; 2] = [r#"{"deletionPolicy": "Revert"}"#, r#"{"deletionPolicy": "Retain"}"#];

fn what_an_earlier_build_made_is_left_as_it_is(bed: &Bed) {
    let before = std::env::var_os("GATEHOUSE_BEFORE").map(PathBuf::from);
    let before = before.expect("GATEHOUSE_BEFORE: an earlier build, as make nightly PART=takeover has it");
    let namespace = bed.namespace();
    let site = Site::new(&namespace);
    let operator = site.start_of(before, Fate::Lives);
    for (resource, file, ..) in OBJECTS {
        namespace.create(&object(resource, file));
    }
    let expected: usize = OBJECTS.iter().map(|(_, _, pods, _)| pods).sum();
    eventually(|| {
        let pods = bed.objects.list("pods", &namespace.name, "")?.len();
        if pods == expected {
            Ok(())
        } else {
            Err(format!("{pods} of {expected} pods: {:#?}", made(&namespace)))
        }
    });
    observes(&namespace);
    let found = made(&namespace);
    drop(operator);

    let _operator = site.start(Fate::Lives);
    observes(&namespace);
    assert_eq!(made(&namespace), found);
}

/// An object of `tests/golden`, by a name that no other has.
fn object(resource: &str, file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{resource}/{file}.yaml"));
    let text = fs::read_to_string(&path).expect("a golden object");
    let golden: Value = serde_saphyr::from_str(&text).expect("YAML");
    json!({"apiVersion": golden["apiVersion"], "kind": golden["kind"], "spec": golden["spec"],
        "metadata": {"name": format!("{resource}-{file}")}})
}

/// Changes all objects, twice, and waits until the operator has observed it.
fn observes(namespace: &Namespace) {
    for change in 0..2 {
        for (resource, file, _, changes) in OBJECTS {
            let (path, spec) = (format!("{resource}/{resource}-{file}"), changes[change]);
            let spec: Value = serde_json::from_str(spec).expect("JSON");
            let changed = namespace.change(&path, &json!({"spec": spec}));
            let generation = &changed["metadata"]["generation"];
            namespace.bed.objects.until(&path, &namespace.name, |found| {
                let observed = &found["status"]["observedGeneration"];
                if observed == generation {
                    Ok(())
                } else {
                    Err(format!("{path}: {observed} of {generation}"))
                }
            });
        }
    }
}

/// The pods, by their uids, and what the workloads make them from. What a StatefulSet makes pods from may be written
/// without a restart: its annotation says what counts.
fn made(namespace: &Namespace) -> BTreeMap<String, Value> {
    let named = |resource: &str, seen: &dyn Fn(&Value) -> Value| {
        let objects = namespace.bed.objects.list(resource, &namespace.name, "").expect("a list");
        let seen = objects.iter().map(|object| {
            let name = object["metadata"]["name"].as_str().expect("a name");
            (format!("{resource}/{name}"), seen(object))
        });
        seen.collect::<Vec<_>>()
    };
    let revision = "/spec/template/metadata/annotations/gatehouse.dev~1template";
    [
        named("pods", &|pod| json!([pod["metadata"]["uid"], pod["metadata"]["deletionTimestamp"]])),
        named("statefulsets", &|set| {
            json!([set["spec"]["replicas"], set.pointer(revision).expect("a template")])
        }),
        named("deployments", &|made| json!([made["spec"]["replicas"], made["spec"]["template"]])),
        named("jobs", &|job| job["metadata"]["uid"].clone()),
    ]
    .into_iter()
    .flatten()
    .collect()
}
