//! What a review may cost, whatever its shape: small parts in every list and map that a definition has.
//!
//! A few bytes of JSON can make a hundred times as many in memory. Each shape is put into each place, on all paths, as
//! large as 1 MiB and as large as it may be and still be judged. The most memory that the process takes is held against
//! its limit; how long its answers take is printed and not asserted.

use std::time::{Duration, Instant};

use futures::future::join_all;
use gatehouse::api::Version;
use gatehouse::api::bounded::MOST_PARTS;
use gatehouse::api::schema;
use gatehouse::kinds::KINDS;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kit::examples::smallest;
use serde_json::{Map, Value, json};

use super::{Target, UID};

/// Bytes that one review may make the process take, above what it had right before.
const MOST: u64 = 100 << 20;

/// The same for four at a time.
const MOST_OF_FOUR: u64 = 200 << 20;

/// Bytes that the process may have above an idle one: it stays within the 512Mi of its container. What reviews have taken
/// goes back to the system within about a second, so that some of it is still there while the next ones are answered.
const MOST_IN_ALL: u64 = 400 << 20;

/// One step to a place.
#[derive(Clone)]
enum Step {
    Field(String),
    Item,
    Key,
}

/// A list or map of a version of a kind, or a field that it does not know.
struct Place {
    kind: &'static str,
    version: Version,
    /// A sound object.
    sound: Value,
    steps: Vec<Step>,
}

impl Place {
    fn name(&self) -> String {
        let steps = self.steps.iter().map(|step| match step {
            Step::Field(name) => format!(".{name}"),
            Step::Item => "[]".to_owned(),
            Step::Key => "{}".to_owned(),
        });
        format!("{} {} {}", self.kind, self.version, steps.collect::<String>())
    }

    /// A sound object but for what is in the place.
    fn object(&self, filling: &str) -> String {
        let mut object = self.sound.clone();
        let mut place = &mut object;
        for step in &self.steps {
            if let (Step::Field(_) | Step::Key, false) = (step, place.is_object()) {
                *place = Value::Object(Map::new());
            }
            place = match step {
                Step::Field(name) => &mut place[name],
                Step::Key => &mut place["a"],
                Step::Item => {
                    *place = json!([null]);
                    &mut place[0]
                }
            };
        }
        *place = "HERE".into();
        object.to_string().replace("\"HERE\"", filling)
    }
}

/// Every list and map below a schema.
fn walk(schema: &JSONSchemaProps, steps: &[Step], found: &mut Vec<Vec<Step>>) {
    let below = |step: Step| [steps, &[step]].concat();
    for (name, field) in schema.properties.iter().flatten() {
        walk(field, &below(Step::Field(name.clone())), found);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(item)) = &schema.items {
        found.push(steps.to_vec());
        walk(item, &below(Step::Item), found);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(value)) = &schema.additional_properties {
        found.push(steps.to_vec());
        walk(value, &below(Step::Key), found);
    }
}

fn places() -> Vec<Place> {
    let mut places = Vec::new();
    for kind in KINDS {
        let definition = kind.definition();
        for version in Version::ALL {
            let field = |names: &[&str]| names.iter().map(|name| Step::Field((*name).to_owned())).collect();
            let mut found: Vec<Vec<Step>> =
                vec![field(&["unknown"]), field(&["spec", "unknown"]), field(&["metadata", "labels"])];
            walk(schema::of(&definition, version).unwrap(), &[], &mut found);
            let mut sound = smallest(*kind, version);
            (sound["metadata"]["name"], sound["metadata"]["namespace"]) = (json!("a"), json!("b"));
            let place = |steps| Place { kind: kind.names().kind, version, sound: sound.clone(), steps };
            places.extend(found.into_iter().map(place));
        }
    }
    places
}

/// What a place is filled with, and how many parts each of it counts.
const SHAPES: [(&str, usize); 6] =
    [("0", 1), ("{}", 7), ("[]", 1), ("[0]", 2), ("keys", 1), ("{\"a\":0}", 8)];

fn filling(shape: &str, count: usize) -> String {
    if shape == "keys" {
        let keys: Vec<_> = (0..count).map(|key| format!("\"{key:x}\":0")).collect();
        return format!("{{{}}}", keys.join(","));
    }
    format!("[{}]", vec![shape; count].join(","))
}

/// How often a shape goes into 1 MiB, and how often into a review that is read to its end.
fn counts(shape: &str, parts: usize) -> [usize; 2] {
    let length = if shape == "keys" { 10 } else { shape.len() + 1 };
    [(1 << 20) / length, (MOST_PARTS - 500) / parts]
}

/// The reviews of an object: what is asked, and the whole text.
fn reviews(place: &Place, filling: &str) -> Vec<(&'static str, String)> {
    let object = place.object(filling);
    let kind = json!({"group": "gatehouse.dev", "version": place.version.as_str(), "kind": place.kind});
    let admission = |operation: &str, old: &str| {
        format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"{UID}","kind":{kind},
            "requestKind":{kind},"name":"a","namespace":"b","operation":"{operation}","object":{object}{old}}}}}"#
        )
    };
    let other = Version::ALL.into_iter().find(|version| *version != place.version).unwrap();
    let conversion = format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{{"uid":"{UID}",
        "desiredAPIVersion":"{}","objects":[{object}]}}}}"#,
        other.api_version()
    );
    let update = admission("UPDATE", &format!(r#","oldObject":{object}"#));
    vec![
        ("/mutate", admission("CREATE", "")),
        ("/mutate", update.clone()),
        ("/validate", update),
        ("/convert", conversion),
    ]
}

/// What reviews have cost.
#[derive(Clone, Default)]
struct Cost {
    /// Bytes above what the process had.
    memory: u64,
    /// Bytes that it had at most.
    most: u64,
    /// Until all have their answer.
    time: Duration,
    /// Processor time in milliseconds.
    processor: u64,
}

/// The costs that were the highest so far, each with its place.
#[derive(Default)]
struct Highest {
    memory: (u64, String),
    time: (Duration, String),
    processor: u64,
}

impl Highest {
    fn add(&mut self, cost: &Cost, place: &str) {
        if cost.memory >= self.memory.0 {
            self.memory = (cost.memory, place.to_owned());
        }
        if cost.time >= self.time.0 {
            self.time = (cost.time, place.to_owned());
        }
        self.processor = self.processor.max(cost.processor);
    }
}

/// Has `at_a_time` of the same review answered, at once.
async fn cost(target: &Target, path: &str, review: &str, at_a_time: usize) -> Cost {
    target.forget_the_most();
    let (before, processor) = (target.memory("VmRSS"), target.processor());
    let path = format!("{path}?timeout=30s");
    let begun = Instant::now();
    let answers = join_all((0..at_a_time).map(|_| target.ask(&path, review))).await;
    let time = begun.elapsed();
    for answer in answers {
        assert_eq!(answer["response"]["uid"], UID, "{answer:.300}");
        // A machine that is too busy to answer in time shows nothing of memory either.
        let code = &answer["response"]["status"]["code"];
        assert!(*code == 413 || *code == 422 || *code == Value::Null || *code == 504, "{answer:.300}");
    }
    let most = target.memory("VmHWM");
    let memory = most.saturating_sub(before);
    Cost { memory, most, time, processor: target.processor() - processor }
}

/// Each shape in one place of so many, on all paths.
async fn table(each: usize, at_a_time: usize, most: u64) {
    let target = Target::start().await;
    target.is_sane().await;
    let idle = target.memory("VmRSS");
    let places = places();
    println!("{at_a_time} at a time | shape | bytes | MiB more, place | ms, place | processor ms");
    for (turn, (shape, parts)) in SHAPES.into_iter().enumerate() {
        for count in counts(shape, parts) {
            let mut highest: [(&str, Highest); 4] = Default::default();
            let mut size = 0;
            for place in places.iter().skip(turn).step_by(each) {
                for (highest, (path, review)) in
                    highest.iter_mut().zip(reviews(place, &filling(shape, count)))
                {
                    size = size.max(review.len());
                    let (cost, name) = (cost(&target, path, &review, at_a_time).await, place.name());
                    for (bytes, most) in [(cost.memory, most), (cost.most.saturating_sub(idle), MOST_IN_ALL)]
                    {
                        let taken = bytes >> 20;
                        assert!(bytes <= most, "{path}: {taken} MiB, {shape} x {count} in {name}");
                    }
                    highest.0 = path;
                    highest.1.add(&cost, &name);
                }
            }
            let most =
                highest.iter().map(|(_, highest)| (highest.memory.0 >> 20, highest.time.0.as_millis()));
            let (mib, ms) = most.fold((0, 0), |(mib, ms), one| (mib.max(one.0), ms.max(one.1)));
            println!("figure: {at_a_time} at a time, {shape} x {count}: {mib} MiB, {ms} ms");
            for (path, Highest { memory, time, processor }) in highest {
                let (mib, ms) = (memory.0 >> 20, time.0.as_millis());
                println!("{path} | {shape} | {size} | {mib}, {} | {ms}, {} | {processor}", memory.1, time.1);
            }
        }
    }
    target.is_sane().await;
}

/// How many times the processor time of so many labels eight times as many take, at most. With a step that looks at
/// each of them for each other it would be 64.
const MOST_TIMES: f64 = 24.0;

#[tokio::test]
async fn eight_times_the_labels_take_about_eight_times_as_long() {
    let target = Target::start().await;
    target.is_sane().await;
    let mut each = Vec::new();
    // As often that both take about a second, of which the system tells hundredths.
    for (labels, times) in [(4_000, 200_u32), (32_000, 25)] {
        let wrong: Map<_, _> = (0..labels).map(|label| (format!("label-{label}"), json!(0))).collect();
        let mut object = super::cluster(3);
        object["spec"]["pod"] = json!({"labels": wrong});
        let review = super::admission(&object).to_string();
        let begun = target.processor();
        for _ in 0..times {
            let (code, ..) =
                super::refusal("/validate", &target.ask("/validate?timeout=30s", &*review).await);
            assert!(code == 413 || code == 422, "{code}");
        }
        each.push(f64::from(u32::try_from(target.processor() - begun).unwrap()) / f64::from(times));
    }
    let times = each[1] / each[0];
    println!(
        "figure: 4,000 wrongly typed labels take {:.1} ms, 32,000 {:.1} ms: {times:.1} times",
        each[0], each[1]
    );
    assert!(times < MOST_TIMES, "{times:.1} times");
}

/// How many places one in is looked at, but for the night, when all are.
fn one_in(places: usize) -> usize {
    if std::env::var("NIGHTLY").is_ok_and(|set| set == "1") { 1 } else { places }
}

#[tokio::test]
async fn no_shape_of_a_review_takes_much_more_than_its_size() {
    table(one_in(97), 1, MOST).await;
}

#[tokio::test]
async fn four_of_a_kind_take_no_more_than_two() {
    table(one_in(191), 4, MOST_OF_FOUR).await;
}
