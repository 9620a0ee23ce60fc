//! A boundary that hundreds share. Their control plane has no controllers, which would be busy for minutes with so many
//! workloads.

use std::time::{Duration, Instant};

use kit::bed::{Bed, Namespace};
use kit::objects::Ask;
use kit::operator::Fate;
use kit::random::is_night;
use kit::wait::{PATIENCE, eventually, patient};
use serde_json::{Value, json};
use testbed::Options;

use super::tdset;
use crate::Alone;
use crate::beds::{WORKS_NONE, ours};
use crate::site::{Site, until_transitions};

pub const TESTS: &[Alone] = &kit::tests![hundreds_share_a_boundary];

/// This is about all of them being written once; how fast a release does that, a benchmark tells.
fn hundreds_share_a_boundary() {
    let count = if is_night() { 1_000 } else { 150 };
    let options = Options::from_env().unwrap_or_else(|error| panic!("{error}"));
    let bed = Bed::with_gate(&ours(options, false), kit::gatehouse!(), &WORKS_NONE);
    let bed = bed.unwrap_or_else(|error| panic!("{error}"));
    let namespace = bed.namespace();
    let site = Site::new(&namespace);
    let operator = site.start(Fate::Lives);
    let rush = site.span("rush", 60, 120, 4);
    let asks = (0..count).map(|at| {
        Ask::create(&tdset(&format!("shop-{at:04}"), &json!({"exceptions": [rush]})), &namespace.name)
    });
    let begun = Instant::now();
    create_all(&bed, asks.collect());
    println!("{count} were created after {:.1?}", begun.elapsed());
    until_all(&namespace, "tdsets", count, |tdset| tdset["status"]["nextTransition"]["replicas"] == 4);
    println!("{count} were made and told of after {:.1?}", begun.elapsed());

    site.jump(60);
    let begun = Instant::now();
    let is_written = |found: &Value| found["spec"]["replicas"] == 4;
    until_all(&namespace, "deployments", count, is_written);
    let took = begun.elapsed();
    let is_told = |tdset: &Value| tdset["status"]["lastTransition"]["to"]["replicas"] == 4;
    let tdsets = until_all(&namespace, "tdsets", count, is_told);
    let late = |tdset: &Value| tdset["status"]["lastTransition"]["latenessMs"].as_u64().expect("a number");
    let mut late: Vec<_> = tdsets.iter().map(late).collect();
    late.sort_unstable();
    println!(
        "{count} counts written within {took:.1?} of their boundary as a list of all shows; \
         half of them within {} ms, the last one after {} ms",
        late[count / 2],
        late[count - 1]
    );
    until_transitions(&operator, count as u64);
    let deployments = until_all(&namespace, "deployments", count, is_written);
    let is_written_once = |found: &Value| found["metadata"]["generation"] == 2;
    assert!(deployments.iter().all(is_written_once), "each is written once");
}

/// Makes them all. What an API server that is too busy does not make is asked for again, as any client would.
fn create_all(bed: &Bed, mut left: Vec<Ask>) {
    eventually(|| {
        let mut outcomes = bed.objects.all(left.clone()).into_iter();
        left.retain(|_| match outcomes.next() {
            Some(Err(refusal)) if refusal.code >= 500 => true,
            Some(Err(refusal)) if refusal.code != 409 => panic!("{}", refusal.message),
            _ => false,
        });
        if left.is_empty() { Ok(()) } else { Err(format!("{} are not made", left.len())) }
    });
}

/// Waits until all objects of a resource are so, for as long as more of them become so: however slow the machine is, it
/// gets on.
fn until_all(
    namespace: &Namespace,
    resource: &str,
    count: usize,
    is_so: impl Fn(&Value) -> bool,
) -> Vec<Value> {
    let (mut most, mut since) = (0, Instant::now());
    loop {
        // A busy API server may not answer.
        let list = namespace.bed.objects.list(resource, &namespace.name, "").unwrap_or_default();
        let so_far = list.iter().filter(|one| is_so(one)).count();
        if so_far == count {
            return list;
        }
        if so_far > most {
            (most, since) = (so_far, Instant::now());
        }
        assert!(since.elapsed() < patient(PATIENCE), "no more than {most} of {count} {resource} are so");
        std::thread::park_timeout(Duration::from_millis(200));
    }
}
