//! A boundary that hundreds share. Their control plane has no controllers, which would be busy for minutes with so many
//! workloads.

use std::time::{Duration, Instant};

use kit::bed::Bed;
use kit::objects::{Ask, of};
use kit::operator::Fate;
use kit::random::is_night;
use kit::wait::{PATIENCE, patient};
use serde_json::{Value, json};
use testbed::Options;

use super::site::{Site, until_transitions};
use super::tdset;
use crate::Alone;
use crate::beds::{WORKS_NONE, ours};

pub const TESTS: &[Alone] = &[("hundreds_share_a_boundary", hundreds_share_a_boundary)];

/// This is about all of them being written once; how fast a release does that, a benchmark tells.
fn hundreds_share_a_boundary() {
    let count = if is_night() { 1_000 } else { 300 };
    let options = Options::from_env().unwrap_or_else(|error| panic!("{error}"));
    let bed = Bed::with_gate(&ours(options, false), kit::gatehouse!(), &WORKS_NONE);
    let bed = bed.unwrap_or_else(|error| panic!("{error}"));
    let namespace = bed.namespace();
    let site = Site::new(&namespace);
    let operator = site.start(Fate::Lives);
    let tdsets = of("v1", &namespace.name, "tdsets");
    let deployments = format!("/apis/apps/v1/namespaces/{}/deployments", namespace.name);
    let rush = site.span("rush", 60, 120, 4);
    let asks = (0..count)
        .map(|at| Ask::post(&*tdsets, tdset(&format!("shop-{at:04}"), &json!({"exceptions": [rush]}))));
    let begun = Instant::now();
    for outcome in bed.objects.all(asks.collect()) {
        outcome.unwrap_or_else(|refusal| panic!("{}", refusal.message));
    }
    println!("{count} were created after {:.1?}", begun.elapsed());
    let until_all = |path: &str, is_so: &dyn Fn(&Value) -> bool| {
        // However slow the machine is, it gets on.
        let (mut most, mut since) = (0, Instant::now());
        while most < count {
            let list = bed.objects.at(path);
            let so_far = list["items"].as_array().expect("a list").iter().filter(|one| is_so(one)).count();
            if so_far > most {
                (most, since) = (so_far, Instant::now());
            }
            assert!(since.elapsed() < patient(PATIENCE), "no more than {most} of {count} for {PATIENCE:?}");
            std::thread::park_timeout(Duration::from_millis(200));
        }
    };
    until_all(&tdsets, &|tdset| tdset["status"]["nextTransition"]["replicas"] == 4);
    println!("{count} were made and told of after {:.1?}", begun.elapsed());

    site.jump(60);
    let begun = Instant::now();
    until_all(&deployments, &|found| found["spec"]["replicas"] == 4);
    let took = begun.elapsed();
    until_all(&tdsets, &|tdset| tdset["status"]["lastTransition"]["to"]["replicas"] == 4);
    let list = bed.objects.at(&tdsets);
    let late = |tdset: &Value| tdset["status"]["lastTransition"]["latenessMs"].as_u64().expect("a number");
    let mut late: Vec<_> = list["items"].as_array().expect("a list").iter().map(late).collect();
    late.sort_unstable();
    println!(
        "{count} counts written within {took:.1?} of their boundary as a list of all shows; \
         half of them within {} ms, the last one after {} ms",
        late[count / 2],
        late[count - 1]
    );
    until_transitions(&operator, count as u64);
    let list = bed.objects.at(&deployments);
    let is_written_once = |found: &&Value| found["metadata"]["generation"] == 2;
    let once = list["items"].as_array().expect("a list").iter().filter(is_written_once).count();
    assert_eq!(once, count, "each is written once");
}
