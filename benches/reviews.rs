//! What a review costs, step by step: decoding, validating, defaulting and converting objects of about 2 kB and 10 kB,
//! and whole reviews from bytes to bytes.
//!
//! ```text
//! cargo bench --bench reviews
//! cargo bench --bench reviews -- convert
//! ```
//!
//! Nothing is asserted. The allocator is the program's.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot begin ends")]

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use gatehouse::api::bounded::{self, Twice};
use gatehouse::api::default::complete;
use gatehouse::api::validation::{Change, Written, validate};
use gatehouse::api::{Kind, Version};
use gatehouse::kinds;
use gatehouse::review::{Endpoint, Surroundings};
use jiff::Timestamp;
use kit::examples::smallest;
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() {
    divan::main();
}

/// Environment variables: an object of about 2 kB, and one of about 10 kB.
const SIZES: [usize; 2] = [4, 130];

/// The kinds that are measured: all.
fn names() -> Vec<&'static str> {
    kinds::KINDS.iter().map(|kind| kind.names().kind).collect()
}

fn now() -> Timestamp {
    "2026-11-21T12:00:00Z".parse().unwrap()
}

fn kind(name: &str) -> &'static dyn Kind {
    kinds::find(name).unwrap()
}

/// A sound object in `v1`, as the API server sends it. That of a kind without a line here is an example, whose size is
/// its own.
fn object(kind: &str, variables: usize) -> Value {
    let env: Vec<_> = (0..variables)
        .map(|at| json!({"name": format!("VARIABLE_{at}"), "value": "something to say"}))
        .collect();
    let spec = match kind {
        "TDSet" => json!({"defaultReplicas": 2, "timeZone": "Europe/Berlin",
            "windows": [
                {"name": "office", "from": "08:30", "to": "18:15", "days": ["Mon", "Tue", "Wed", "Thu", "Fri"], "replicas": 9},
                {"name": "evening", "from": "18:15", "to": "23:00", "days": ["Mon", "Tue"], "replicas": 4},
                {"name": "saturday", "from": "10:00", "to": "16:00", "days": ["Sat"], "replicas": 3}],
            "exceptions": [{"name": "holidays", "dates": ["2026-12-24", "2026-12-25", "2026-12-26"], "replicas": 1}],
            "target": {"create": {"image": "registry.example.org/shop:1.4.2", "port": 8080, "servicePort": 80, "env": env,
                "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}}}}}),
        "DatabaseMigration" => {
            let scripts = env.iter().enumerate().map(|(at, variable)| {
                let statement = format!("UPDATE shop SET note = '{}'", variable["value"].as_str().unwrap());
                json!({"id": format!("{at:03}_note"), "kind": "Data", "up": {"inline": statement}})
            });
            json!({"database": {"engine": "PostgreSQL", "host": "postgres.default.svc", "port": 5432, "name": "shop",
                    "credentialsSecret": {"name": "shop-db"}},
                "scripts": scripts.collect::<Vec<_>>()})
        }
        "EtcdCluster" => {
            json!({"replicas": 3, "version": "3.6.16", "storage": {"size": "10Gi", "storageClassName": "fast"},
            "tls": {"mode": "Automatic"}, "options": {"quotaBackendBytes": "2Gi", "snapshotCount": 10000},
            "backup": {"schedule": "0 2 * * *", "timeZone": "Europe/Berlin", "retention": {"keepLast": 7},
                "destination": {"persistentVolumeClaim": {"claimName": "backups"}}},
            "pod": {"env": env, "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}})
        }
        _ => smallest(self::kind(kind), Version::V1)["spec"].take(),
    };
    let managed: serde_json::Map<_, _> =
        (0..30).map(|at| (format!("f:field{at}"), json!({".": {}, "f:inner": {}}))).collect();
    json!({"apiVersion": "gatehouse.dev/v1", "kind": kind, "metadata": {"name": "shop", "namespace": "default",
            "uid": "5f0c2a57-9f6f-4e4a-8b62-0c7f6a2d9f3e", "generation": 3, "creationTimestamp": "2026-11-01T12:00:00Z",
            "labels": {"app.kubernetes.io/name": "shop"},
            "managedFields": [{"manager": "kubectl", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": managed}]},
        "spec": spec})
}

fn old(kind_name: &str, variables: usize) -> Value {
    kind(kind_name).lens().convert(object(kind_name, variables), Version::V1, Version::V1Alpha1)
}

fn admission(kind: &str, operation: &str, object: &Value, old: Option<&Value>) -> String {
    let kind = json!({"group": "gatehouse.dev", "version": "v1", "kind": kind});
    let mut review = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "kind": kind, "requestKind": kind, "name": "shop",
        "namespace": "default", "operation": operation, "userInfo": {"username": "somebody"}, "object": object}});
    if let Some(old) = old {
        review["request"]["oldObject"] = old.clone();
    }
    review.to_string()
}

fn conversion(to: Version, objects: &[Value]) -> String {
    json!({"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "request": {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "desiredAPIVersion": to.api_version(), "objects": objects}})
    .to_string()
}

#[divan::bench(args = names(), consts = SIZES)]
fn decode<const VARIABLES: usize>(bencher: Bencher, kind: &str) {
    let text = object(kind, VARIABLES).to_string();
    bencher
        .counter(BytesCount::of_str(&text))
        .bench(|| bounded::tree(black_box(&text), Twice::Refused).unwrap());
}

#[divan::bench(args = names(), consts = SIZES)]
fn validate_a_creation<const VARIABLES: usize>(bencher: Bencher, name: &str) {
    let object = object(name, VARIABLES);
    let new = Written { version: Version::V1, object: &object };
    let change = Change { new, old: None, author: Version::V1, now: now() };
    bencher.bench(|| validate(kind(name), black_box(&change)));
}

#[divan::bench(args = names())]
fn default(bencher: Bencher, name: &str) {
    let object = json!({"metadata": {"name": "a"}, "spec": {}});
    bencher.with_inputs(|| object.clone()).bench_values(|mut object| {
        complete(kind(name), &mut object, None, Version::V1);
        object
    });
}

#[divan::bench(args = names(), consts = SIZES)]
fn convert_down<const VARIABLES: usize>(bencher: Bencher, name: &str) {
    let object = object(name, VARIABLES);
    let input = || object.clone();
    bencher
        .with_inputs(input)
        .bench_values(|object| kind(name).lens().convert(object, Version::V1, Version::V1Alpha1));
}

#[divan::bench(args = names(), consts = SIZES)]
fn convert_up<const VARIABLES: usize>(bencher: Bencher, name: &str) {
    let object = old(name, VARIABLES);
    let input = || object.clone();
    bencher
        .with_inputs(input)
        .bench_values(|object| kind(name).lens().convert(object, Version::V1Alpha1, Version::V1));
}

fn answers(bencher: Bencher, endpoint: Endpoint, review: &str) {
    bencher
        .counter(BytesCount::of_str(review))
        .bench(|| endpoint.answer(black_box(review.as_bytes()), &Surroundings::at(now())));
}

#[divan::bench(args = names(), consts = SIZES)]
fn review_validate<const VARIABLES: usize>(bencher: Bencher, kind: &str) {
    let object = object(kind, VARIABLES);
    answers(bencher, Endpoint::Validate, &admission(kind, "UPDATE", &object, Some(&object)));
}

#[divan::bench(args = names(), consts = SIZES)]
fn review_deny<const VARIABLES: usize>(bencher: Bencher, kind: &str) {
    let mut object = object(kind, VARIABLES);
    object["spec"]["timeZone"] = json!("Local");
    let wrong = match kind {
        "TDSet" => "/spec/defaultReplicas",
        "DatabaseMigration" => "/spec/database/port",
        "EtcdCluster" => "/spec/replicas",
        _ => "/spec",
    };
    *object.pointer_mut(wrong).unwrap() = json!("three");
    answers(bencher, Endpoint::Validate, &admission(kind, "CREATE", &object, None));
}

#[divan::bench(args = names(), consts = SIZES)]
fn review_mutate<const VARIABLES: usize>(bencher: Bencher, kind: &str) {
    answers(bencher, Endpoint::Mutate, &admission(kind, "CREATE", &object(kind, VARIABLES), None));
}

#[divan::bench(args = names(), consts = [1, 100])]
fn review_convert_down<const OBJECTS: usize>(bencher: Bencher, kind: &str) {
    let objects = vec![object(kind, SIZES[0]); OBJECTS];
    answers(bencher, Endpoint::Convert, &conversion(Version::V1Alpha1, &objects));
}

#[divan::bench(args = names(), consts = [1, 100])]
fn review_convert_up<const OBJECTS: usize>(bencher: Bencher, kind: &str) {
    let objects = vec![old(kind, SIZES[0]); OBJECTS];
    answers(bencher, Endpoint::Convert, &conversion(Version::V1, &objects));
}
