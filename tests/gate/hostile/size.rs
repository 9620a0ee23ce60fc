//! Bodies that are large, many or slow.

use std::time::{Duration, Instant};

use futures::future::join_all;
use kit::random::is_night;
use kit::wait::{PATIENCE, eventually_async};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use super::{Target, UID, admission, as_sent, cluster, conversion, old_cluster, refusal};
use crate::support::{read_answer, within};

const ADMISSION_LIMIT: usize = 8 << 20;
const CONVERSION_LIMIT: usize = 32 << 20;

/// A sound object of about `size` bytes.
fn large_cluster(size: usize) -> Value {
    let mut object = cluster(3);
    let variables = (0..50).map(|index| json!({"name": format!("V{index}"), "value": "x".repeat(size / 50)}));
    object["spec"]["pod"] = json!({"env": variables.collect::<Vec<_>>()});
    object
}

/// An update of three MiB: twice that in one review.
fn large_update() -> String {
    let mut review = admission(&large_cluster(3 << 20));
    review["request"]["operation"] = "UPDATE".into();
    review["request"]["oldObject"] = review["request"]["object"].clone();
    let text = review.to_string();
    assert!((6 << 20..ADMISSION_LIMIT).contains(&text.len()));
    text
}

#[tokio::test]
async fn the_largest_legal_review_is_judged_and_one_over_the_limit_is_refused() {
    let target = Target::start().await;
    let update = large_update();
    for path in ["/mutate", "/validate"] {
        let answer = target.ask(path, update.clone()).await;
        assert_eq!(answer["response"]["allowed"], true, "{answer:.500}");
        let wrong = update.replacen("\"replicas\":3", "\"replicas\":9", 1);
        let (code, message, _) = refusal(path, &target.ask(path, wrong).await);
        assert_eq!(code, 422);
        assert!(message.contains("spec.replicas"), "{message:.300}");
        assert!(message.len() < 1000, "an answer holds no object");
    }
    for (path, review, limit) in [
        ("/mutate", admission(&cluster(3)), ADMISSION_LIMIT),
        ("/validate", admission(&cluster(3)), ADMISSION_LIMIT),
        ("/convert", conversion(&[cluster(3)], "v1alpha1"), CONVERSION_LIMIT),
    ] {
        let padded = |length: usize| {
            let text = review.to_string();
            let room = length - text.len();
            text + &" ".repeat(room)
        };
        let whole = target.ask(path, padded(limit)).await;
        let fine = whole["response"]["allowed"] == true || whole["response"]["result"]["status"] == "Success";
        assert!(fine, "{path}: {whole:.300}");
        let (code, message, uid) = refusal(path, &target.ask(path, padded(limit + 1)).await);
        assert_eq!((code, uid.as_str()), (413, UID), "{message}");
        assert!(message.contains(&format!("at most {limit} bytes")), "{message}");
    }
    target.is_sane().await;
}

#[tokio::test]
async fn a_body_that_trickles_is_answered_when_its_time_is_over() {
    let target = Target::start().await;
    let (mut reader, mut writer) = tokio::io::split(target.connect().await.0);
    let body = as_sent(&admission(&large_cluster(100_000)));
    let (head, tail) = body.split_at(body.find("\"name\"").unwrap());
    let first = format!(
        "POST /validate?timeout=1s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{head}",
        body.len()
    );
    let tail = tail.to_owned();
    let trickle = tokio::spawn(async move {
        writer.write_all(first.as_bytes()).await?;
        let mut beat = tokio::time::interval(Duration::from_millis(5));
        for byte in tail.bytes() {
            beat.tick().await;
            writer.write_all(&[byte]).await?;
            writer.flush().await?;
        }
        Ok::<_, std::io::Error>(())
    });
    let answer = within(read_answer(&mut reader)).await;
    assert_eq!(answer.status, 200);
    trickle.abort();
    let (code, message, uid) = refusal("/validate", &answer.body);
    assert_eq!((code, uid.as_str()), (504, UID), "{message}");
    assert!(message.contains("reading the review took longer"), "{message}");
    target.is_sane().await;
}

#[tokio::test]
async fn ten_thousand_objects_of_both_versions_come_back_in_their_order() {
    let target = Target::start().await;
    let objects: Vec<_> = (0..10_000)
        .map(|index| {
            let mut object = if index % 3 == 0 { cluster(index % 8) } else { old_cluster("") };
            object["metadata"]["name"] = format!("n{index}").into();
            object
        })
        .collect();
    for to in ["v1", "v1alpha1"] {
        let answer = target.ask("/convert", conversion(&objects, to).to_string()).await;
        assert_eq!(answer["response"]["uid"], UID);
        assert_eq!(answer["response"]["result"]["status"], "Success");
        let converted = answer["response"]["convertedObjects"].as_array().unwrap();
        assert_eq!(converted.len(), objects.len());
        for (index, (before, after)) in objects.iter().zip(converted).enumerate() {
            assert_eq!(after["apiVersion"], format!("gatehouse.dev/{to}"), "{index}");
            assert_eq!(after["metadata"]["name"], before["metadata"]["name"], "{index}");
            assert_eq!(after["metadata"]["namespace"], "b", "{index}");
            let size = |object: &Value| {
                object["spec"].get("size").or_else(|| object["spec"].get("replicas")).cloned()
            };
            assert_eq!(size(after), size(before), "{index}");
        }
    }
    target.is_sane().await;
}

#[tokio::test]
async fn nothing_but_reviews_is_served_there() {
    let target = Target::start().await;
    for path in ["/", "/metrics", "/validate/a/b", "/../etc/passwd", "/%2e%2e/etc", "/mutate%00"] {
        let answer = within(target.client.post(target.url(path)).body("{}").send()).await.unwrap();
        assert_eq!(answer.status(), 404, "{path}");
    }
    let mut smuggler = target.connect().await;
    let both = "POST /validate HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 4\r\n\
                transfer-encoding: chunked\r\n\r\n0\r\n\r\nPOST /validate HTTP/1.1\r\nhost: a\r\n\r\n";
    smuggler.send(both).await;
    let answer = smuggler.answer().await;
    assert!(answer.status == 400 || answer.body["response"]["allowed"] == false, "{answer:?}");
    target.is_sane().await;
}

/// Bytes of memory that the container has as it is deployed: in `requests` what is kept for it, in `limits` what it may
/// have before the kernel ends it.
fn container(what: &str) -> u64 {
    let deployment = include_str!("../../../deploy/base/deployment.yaml");
    let resources = deployment.split_once(&format!(" {what}:\n")).unwrap().1;
    let memory = resources.lines().find_map(|line| line.trim().strip_prefix("memory: ")).unwrap();
    memory.strip_suffix("Mi").unwrap().parse::<u64>().unwrap() << 20
}

/// How often a review is asked for whose time runs out each time, at most.
const TRIES: usize = 20;

/// Has a large update judged. One that its time ran out for, on a busy machine, is asked for again; how many times.
async fn judged(target: &Target, update: &str) -> usize {
    let mut late = 0;
    loop {
        let answer = target.ask("/validate?timeout=30s", update).await;
        if answer["response"]["status"]["code"] != 504 {
            assert_eq!(answer["response"]["allowed"], true, "{answer:.300}");
            return late;
        }
        late += 1;
        assert!(late < TRIES, "{} bytes were not judged within 30 s, {TRIES} times in a row", update.len());
    }
}

/// Bytes of a burst that the process may keep.
const KEPT: u64 = 40 << 20;

/// After a burst, when memory is looked at.
const SOON: Duration = Duration::from_secs(15);

/// What the program takes that the tests are built with. What the image takes is measured by
/// `large_objects_take_no_more_memory_than_is_promised` in `tests/e2e/memory.rs`.
#[tokio::test]
async fn a_burst_of_large_reviews_stays_within_the_memory_of_the_container() {
    let target = Target::start().await;
    target.is_sane().await;
    let before = target.memory("VmRSS");
    let own = target.memory("RssAnon");
    let update = large_update();
    let late: usize = join_all((0..25).map(|_| judged(&target, &update))).await.into_iter().sum();
    let ended = Instant::now();
    target.is_sane().await;
    let most = target.memory("VmHWM");
    let mib = |bytes: u64| bytes >> 20;
    println!("figure: at rest: {} MiB, all but {} of which are pages of files", mib(before), mib(own));
    println!("figure: 25 reviews of 6 MB: {} MiB at most; {late} late", mib(most));
    assert!(before < container("requests"), "{} MiB at rest", mib(before));
    assert!(most < container("limits"), "{} MiB at most", mib(most));
    // Nothing asks for memory from here on.
    let given_back = || {
        let after = target.memory("VmRSS");
        if after <= before + KEPT { Ok(after) } else { Err(format!("{} MiB are kept", mib(after - before))) }
    };
    if is_night() {
        tokio::time::sleep_until((ended + SOON).into()).await;
        let after = given_back().unwrap();
        println!("figure: {} s after 25 reviews of 6 MB: {} MiB", SOON.as_secs(), mib(after));
    } else {
        eventually_async(PATIENCE, async || given_back(), String::new).await;
    }
}
