//! What a review may cost, whatever its shape: small parts in every list and map that a definition has, and around it.
//!
//! A few bytes of JSON can make a hundred times as many in memory. Each shape is put into each place, on all paths, as
//! large as 1 MiB and as large as it may be and still be judged. The memory that the process takes above an idle one is
//! held against its limit; how long its answers take is printed.

mod places;

use std::time::{Duration, Instant};

use futures::future::join_all;
use gatehouse::api::Version;
use gatehouse::api::bounded::MOST_PARTS;
use gatehouse::kinds::find;
use kit::random::is_night;
use serde_json::{Value, json};

use self::places::{HERE, Place, SHAPES, Within, counts, fields, filling, places};
use super::{Target, UID};
use crate::program;

/// Bytes that one review may make the process take, above what an idle one has.
const MOST: u64 = 100 << 20;

/// The same for four at a time: two large ones are validated at a time.
const MOST_OF_FOUR: u64 = 200 << 20;

/// Bytes above an idle one that reviews may have left when the next one is measured.
const LEFT: u64 = 20 << 20;

/// A review of a few MiB that takes longer is slow, and measured again.
const SLOW: Duration = Duration::from_millis(150);

/// How often. Neighbours on the machine only slow it down, so the fastest counts.
const AGAIN: usize = 2;

/// What reviews have cost.
struct Cost {
    /// Bytes that the process had at most, above what it has at rest.
    memory: u64,
    /// Until all have their answer.
    time: Duration,
    /// Processor time in milliseconds.
    processor: u64,
    /// The codes of the answers; none where it was allowed or converted.
    codes: Vec<Option<u64>>,
}

impl Cost {
    fn is_slow(&self) -> bool {
        self.time > SLOW * u32::try_from(self.codes.len()).unwrap()
    }

    /// An object of too many parts is refused for that, and another one is not.
    #[track_caller]
    fn was_read(&self, is_too_large: bool, what: &str) {
        for code in &self.codes {
            assert!(*code == Some(504) || (*code == Some(413)) == is_too_large, "{code:?}, {what}");
        }
    }
}

/// The costs that were the highest so far, each with what they were for.
#[derive(Clone, Default)]
struct Highest {
    memory: (u64, String),
    time: (Duration, String),
    processor: u64,
    /// How many were slow.
    slow: usize,
}

impl Highest {
    fn add(&mut self, cost: &Cost, what: &str) {
        if cost.memory >= self.memory.0 {
            self.memory = (cost.memory, what.to_owned());
        }
        if cost.time >= self.time.0 {
            self.time = (cost.time, what.to_owned());
        }
        self.processor = self.processor.max(cost.processor);
        self.slow += usize::from(cost.is_slow());
    }
}

/// A process that is measured, and the bytes that it has at rest.
struct Measured {
    target: Target,
    idle: u64,
}

impl Measured {
    async fn start() -> Self {
        let target = Target::start().await;
        target.is_sane().await;
        Self { idle: target.memory("VmRSS"), target }
    }

    /// What reviews have left is no cost of the next one, and would hide what that takes. Another process is there
    /// sooner than the allocator gives it back.
    async fn rest(&mut self) {
        if self.target.memory("VmRSS") > self.idle + LEFT {
            *self = Self::start().await;
        }
    }

    /// Has `at_a_time` of the same review answered, at once.
    async fn cost(&mut self, path: &str, review: &str, at_a_time: usize) -> Cost {
        self.rest().await;
        let target = &self.target;
        target.forget_the_most();
        let processor = target.processor();
        let ask = format!("{path}?timeout=30s");
        let begun = Instant::now();
        let answers = join_all((0..at_a_time).map(|_| target.ask(&ask, review))).await;
        let time = begun.elapsed();
        let codes = answers.iter().map(|answer| code(path, answer)).collect();
        let memory = target.memory("VmHWM").saturating_sub(self.idle);
        Cost { memory, time, processor: target.processor() - processor, codes }
    }

    /// The same, held against the memory that it may take. A program that is not optimized is always slow.
    async fn limited(&mut self, path: &str, review: &str, at_a_time: usize, most: u64, what: &str) -> Cost {
        let mut cost = self.cost(path, review, at_a_time).await;
        for _ in 0..if program::is_given() { AGAIN } else { 0 } {
            if cost.is_slow() {
                let again = self.cost(path, review, at_a_time).await;
                cost =
                    Cost { memory: cost.memory.max(again.memory), time: cost.time.min(again.time), ..cost };
            }
        }
        assert!(cost.memory <= most, "{path}: {} MiB, {what}", cost.memory >> 20);
        cost
    }
}

/// The code of an answer, which is one of those that a review gets whose text is sound.
fn code(path: &str, answer: &Value) -> Option<u64> {
    assert_eq!(answer["response"]["uid"], UID, "{answer:.300}");
    let field = if path == "/convert" { "result" } else { "status" };
    let code = answer["response"][field]["code"].as_u64();
    // A machine that is too busy to answer in time shows nothing of memory either.
    let is_late = code == Some(504) && !program::is_given();
    assert!(is_late || matches!(code, None | Some(400 | 413 | 422)), "{path}: {answer:.300}");
    code
}

const PATHS: [&str; 3] = ["/mutate", "/validate", "/convert"];

/// Each shape in one place of so many, on all paths.
async fn table(each: usize, at_a_time: usize, most: u64) {
    let mut measured = Measured::start().await;
    let places = places();
    let mut of_all: [Highest; 3] = Default::default();
    let (begun, mut asked, mut answered) = (Instant::now(), 0, 0);
    println!("{at_a_time} at a time, above {} MiB of an idle process", measured.idle >> 20);
    println!("path | shape | MiB more, place | ms, place | processor ms");
    for (turn, (shape, parts)) in SHAPES.into_iter().enumerate() {
        for count in counts(shape, parts) {
            let mut of_shape: [Highest; 3] = Default::default();
            let filling = filling(shape, count);
            for place in places.iter().skip(turn % each).step_by(each) {
                if place.steps.is_empty() && shape != "keys" {
                    continue;
                }
                let what = format!("{shape} x {count} in {}", place.name());
                for (path, review) in place.reviews(&filling) {
                    let cost = measured.limited(path, &review, at_a_time, most, &what).await;
                    if place.is_counted() {
                        cost.was_read(count * parts > MOST_PARTS, &what);
                    }
                    (asked, answered) = (asked + 1, answered + cost.time.as_millis());
                    let path = PATHS.iter().position(|one| *one == path).unwrap();
                    of_shape[path].add(&cost, &place.name());
                    of_all[path].add(&cost, &what);
                }
            }
            for (path, Highest { memory, time, processor, .. }) in PATHS.iter().zip(of_shape) {
                let (mib, ms) = (memory.0 >> 20, time.0.as_millis());
                println!("{path} | {shape} x {count} | {mib}, {} | {ms}, {} | {processor}", memory.1, time.1);
            }
        }
    }
    for (path, Highest { memory, time, slow, .. }) in PATHS.iter().zip(of_all) {
        let (mib, ms) = (memory.0 >> 20, time.0.as_millis());
        println!(
            "figure: {at_a_time} at a time, {path}: {mib} MiB above idle ({}), {ms} ms ({}), \
             {slow} take more than 150 ms each",
            memory.1, time.1
        );
    }
    println!(
        "{asked} reviews of {} places in {} s, of which answers take {answered} ms",
        places.len(),
        begun.elapsed().as_secs()
    );
    measured.target.is_sane().await;
}

/// How many places one in is looked at, but for the night, when all are.
fn one_in(places: usize) -> usize {
    if is_night() { 1 } else { places }
}

#[tokio::test]
async fn no_shape_of_a_review_takes_much_more_than_its_size() {
    table(one_in(97), 1, MOST).await;
}

#[tokio::test]
async fn four_of_a_kind_take_no_more_than_two() {
    table(one_in(191), 4, MOST_OF_FOUR).await;
}

/// A conversion of as many small objects as so many bytes have room for.
fn many_objects(place: &Place, bytes: usize) -> String {
    let object =
        json!({"apiVersion": place.version.api_version(), "kind": place.kind, "metadata": {"name": "a"}});
    let object = object.to_string();
    let count = (bytes - 300) / (object.len() + 1);
    let review = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {"uid": UID, "desiredAPIVersion": place.other(), "objects": [HERE]}});
    review.to_string().replace(&format!("\"{HERE}\""), &vec![object; count].join(","))
}

#[tokio::test]
async fn many_small_objects_take_no_more_than_a_large_one() {
    let mut measured = Measured::start().await;
    let mut highest = Highest::default();
    for place in places().iter().filter(|place| place.within == Within::Text) {
        for bytes in [1 << 20, 8 << 20] {
            let what = format!("{} {}, {} MiB of objects", place.kind, place.version, bytes >> 20);
            let review = many_objects(place, bytes);
            // Each object takes its time.
            let cost = measured.cost("/convert", &review, 1).await;
            assert!(cost.memory <= MOST, "{} MiB, {what}", cost.memory >> 20);
            highest.add(&cost, &what);
        }
    }
    let (mib, ms) = (highest.memory.0 >> 20, highest.time.0.as_millis());
    println!(
        "figure: many small objects: {mib} MiB above idle ({}), {ms} ms ({})",
        highest.memory.1, highest.time.1
    );
}

/// How many times the processor time of so many keys or items eight times as many take, at most. With a step that
/// looks at each of them for each other it would be 64.
const MOST_TIMES: f64 = 12.0;

/// Milliseconds of processor time that one review takes, over so many that the hundredths of a second which the system
/// tells are a small part. The first ones have the system hand out memory, and neighbours only add to it: the least counts.
async fn processor(target: &Target, path: &str, review: &str) -> f64 {
    let mut least = f64::INFINITY;
    for _ in 0..=AGAIN {
        let (begun, mut asked) = (target.processor(), 0);
        while target.processor() - begun < 200 {
            let answer = target.ask(&format!("{path}?timeout=30s"), review).await;
            assert_eq!(answer["response"]["uid"], UID, "{answer:.300}");
            asked += 1;
        }
        let taken = f64::from(u32::try_from(target.processor() - begun).unwrap());
        least = least.min(taken / f64::from(asked));
    }
    least
}

#[tokio::test]
async fn eight_times_as_much_takes_about_eight_times_as_long() {
    let target = Target::start().await;
    target.is_sane().await;
    for (kind, version, steps, shape) in [
        ("EtcdCluster", Version::V1, fields(&["metadata", "labels"]), "keys"),
        ("EtcdCluster", Version::V1, fields(&["spec", "pod", "nodeSelector"]), "keys"),
        ("EtcdCluster", Version::V1Alpha1, fields(&["spec", "unknown"]), "keys"),
        ("TDSet", Version::V1, fields(&["spec", "windows"]), "0"),
        ("TDSet", Version::V1Alpha1, fields(&["spec", "schedulingConfig"]), "0"),
    ] {
        let place = Place::of(find(kind).unwrap(), version, Within::Object, steps);
        let [few, many] = [4_000, 32_000].map(|count| {
            let [(_, create), _, _, (_, convert)] = place.reviews(&filling(shape, count));
            [create.clone(), create, convert]
        });
        for (path, (few, many)) in PATHS.iter().zip(few.iter().zip(&many)) {
            let (few, many) = (processor(&target, path, few).await, processor(&target, path, many).await);
            let times = many / few;
            println!(
                "figure: {path}: 4,000 in {} take {few:.1} ms, 32,000 {many:.1} ms: {times:.1} times",
                place.name()
            );
            assert!(times < MOST_TIMES, "{path}: {times:.1} times, {}", place.name());
        }
    }
}
