//! How fast objects are migrated, beside what the API server can do and beside its other users. Figures are printed; what
//! is asserted is that all of it was done.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use kit::bed::Bed;
use kit::objects::{Ask, Objects};
use kit::random::is_night;
use serde_json::json;

use super::widgets::{Widgets, run};

pub fn it_is_measured_beside_bare_patches(bed: &Bed) {
    let count = if is_night() { 10_000 } else { 300 };
    let widgets = Widgets::stored_as_v1alpha1(bed, "measured", true);
    widgets.make(count);
    widgets.store_as_v1();
    let quiet =
        others_wait(bed, || thread::park_timeout(Duration::from_secs(if is_night() { 10 } else { 1 })));

    let begun = Instant::now();
    let mut ran = None;
    let during = others_wait(bed, || ran = Some(run(bed, &["migrate", &widgets.name, "--grace", "0s"])));
    let took = begun.elapsed();
    let ran = ran.expect("it has run");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(widgets.in_etcd("v1alpha1"), [""; 0]);

    // The same patches of as many objects, 16 at a time whatever comes of them.
    let others = Widgets::stored_as_v1alpha1(bed, "unpaced", true);
    others.make(count);
    others.store_as_v1();
    let asks = (0..count).map(|number| Ask::patch(others.path_of("v1", number) + "/status", json!({})));
    let asks = asks.collect();
    let begun = Instant::now();
    let outcomes = bed.objects.all(asks);
    let unpaced = begun.elapsed();
    assert!(outcomes.iter().all(Result::is_ok));
    assert_eq!(others.in_etcd("v1alpha1"), [""; 0]);

    // As many patches at a time, each of which changes something.
    let asks =
        (0..count).map(|number| Ask::patch(widgets.path_of("v1", number), json!({"spec": {"size": 2}})));
    let asks = asks.collect();
    let begun = Instant::now();
    let outcomes = bed.objects.all(asks);
    let bare = begun.elapsed();
    assert!(outcomes.iter().all(Result::is_ok));

    let rates: Vec<_> =
        ran.errors.lines().filter_map(|line| line.rsplit_once("; ")).map(|(_, rate)| rate).collect();
    assert_eq!(rates.len(), 2, "two passes: {ran:?}");
    let rate = |time: Duration| f64::from(u32::try_from(count).expect("a number")) / time.as_secs_f64();
    println!(
        "figure: {count} objects migrated in {took:.1?}, {} written, {} verified; the same patches, 16 at a time \
         {:.0}/s; patches that change something {:.0}/s; reads of others {quiet} before, {during} during",
        rates[0],
        rates[1],
        rate(unpaced),
        rate(bare)
    );
}

/// How long another user waits for each of its reads meanwhile.
fn others_wait(bed: &Bed, work: impl FnOnce()) -> String {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let user = scope.spawn(|| {
            let objects = Objects::new(bed.cluster.kubeconfig());
            let mut waits = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let begun = Instant::now();
                objects.at("/api/v1/namespaces/default");
                waits.push(begun.elapsed());
                thread::park_timeout(Duration::from_millis(10));
            }
            waits.sort_unstable();
            waits
        });
        work();
        is_over.store(true, Ordering::Relaxed);
        let waits = user.join().expect("it reads");
        let at = |share: usize| waits[(waits.len() * share / 100).min(waits.len() - 1)];
        format!("p50 {:.1?}, p99 {:.1?}", at(50), at(99))
    })
}
