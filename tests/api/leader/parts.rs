//! The gate and the controllers: neither is felt by the other.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use kit::bed::Bed;
use kit::objects::{Ask, Refusal, of};
use kit::wait::eventually;
use serde_json::{Value, json};

use super::{House, is_ready, metric, tdset};
use crate::installed::until_guarded;
use crate::tdset::mortal::STEPS;

/// Where a controller panics, once at each.
const PANICS: [&str; 2] = ["tdset.make-deployment.before", "tdset.write-status.after"];

/// Sends reviews one after the other until it is dropped: creations that store nothing.
struct Reviews<'a> {
    ends: &'a AtomicBool,
    answered: &'a AtomicUsize,
}

impl Reviews<'_> {
    /// Waits until so many more have been answered.
    #[track_caller]
    fn until_more(&self, count: usize) {
        let wanted = self.answered.load(Ordering::Relaxed) + count;
        eventually(|| match self.answered.load(Ordering::Relaxed) {
            answered if answered < wanted => Err(format!("{answered} of {wanted} reviews are answered")),
            _ => Ok(()),
        });
    }
}

impl Drop for Reviews<'_> {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}

/// Does something while reviews are sent, each of which has to be answered as the rules say.
fn under_reviews(house: &House, act: impl FnOnce(&Reviews)) {
    let (ends, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let path = of("v1", &house.namespace.name, "tdsets") + "?dryRun=All";
    let objects = &house.bed.objects;
    let call = || -> Vec<Result<Value, Refusal>> {
        let mut unexpected = Vec::new();
        while !ends.load(Ordering::Relaxed) {
            let allowed = objects.one(Ask::post(&*path, tdset("asked", &json!({}))));
            let denied = objects.one(Ask::post(&*path, tdset("asked", &json!({"timeZone": "Nowhere/Else"}))));
            unexpected.extend([allowed].into_iter().filter(Result::is_err));
            let is_denied = matches!(&denied, Err(refusal) if refusal.message.contains("spec.timeZone"));
            unexpected.extend([denied].into_iter().filter(|_| !is_denied));
            answered.fetch_add(2, Ordering::Relaxed);
        }
        unexpected
    };
    thread::scope(|scope| {
        let sent = scope.spawn(call);
        act(&Reviews { ends: &ends, answered: &answered });
        let unexpected = sent.join().expect("reviews are sent");
        assert!(unexpected.is_empty(), "{} of {answered:?}: {:?}", unexpected.len(), unexpected.first());
    });
}

pub fn a_panic_in_a_controller_is_not_felt_at_the_gate(bed: &Bed) {
    let house = House::begin(bed);
    let points = bed.cluster.folder().join(format!("points-of-{}", house.namespace.name));
    let all =
        STEPS.iter().flat_map(|step| ["before", "after"].map(|moment| format!("tdset.{step}.{moment}")));
    let passed: Vec<_> = all.filter(|point| !PANICS.contains(&point.as_str())).collect();
    fs::write(&points, passed.join("\n") + "\n").expect("a file");
    let mut command = house.command("gatehouse", &["--drain-delay", "100ms", "--drain-deadline", "1s"]);
    command.env("GATEHOUSE_FAIL_POINTS", format!("panic:{}", points.display()));
    let replica = house.replica_of(&command);
    replica.logs("leading");
    until_guarded(bed, &house.namespace.name);
    assert_eq!(metric(&replica, "gatehouse_controllers_starts_total"), Some(1));
    let first = house.lease();

    under_reviews(&house, |reviews| {
        reviews.until_more(10);
        house.tdset("shop", &json!({}));
        house.until_replicas("shop", 1);
        eventually(|| match metric(&replica, "gatehouse_controllers_starts_total") {
            Some(3) => Ok(()),
            other => Err(format!("controllers started: {other:?}")),
        });
        // They work again: an object that is made after that, and another change of the one before.
        house.namespace.until("tdset/shop", "{.status.scheduledReplicas}", "1");
        house.tdset("later", &json!({"replicas": 2}));
        house.until_replicas("later", 2);
        house.works("shop", 3);
        reviews.until_more(10);
    });

    let panicked = replica.logs("a panic");
    assert_eq!(panicked["said"], "a fail point was reached");
    let ended = replica.logs("task ended, will restart it");
    assert_eq!(
        (ended["task"].as_str(), ended["error"].as_str()),
        (Some("controllers"), Some("the leader's work ended unexpectedly: the work panicked"))
    );
    let met = fs::read_to_string(&points).expect("a file");
    assert_eq!(met.lines().skip(passed.len()).collect::<Vec<_>>(), PANICS);
    let last = house.lease();
    assert_ne!(last.holder, first.holder, "each life stands for itself");
    // It was released each time: whoever only waits for its end waits for its duration.
    assert_eq!(last.transitions, first.transitions + 2);
    assert!(is_ready(&replica));
    assert_eq!(metric(&replica, "gatehouse_leader"), Some(1));
    assert_eq!(metric(&replica, "gatehouse_panics_total"), Some(0), "no review panicked");
    // It ends as ever.
    assert!(replica.into_program().stop(), "it ends well");
    assert_eq!(house.lease().holder, "");
}
