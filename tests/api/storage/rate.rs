//! How fast objects are migrated, beside what the API server can do and beside its other users. Figures are printed; what
//! is asserted is that all of it was done.
//!
//! All loops are beside the same user, who reads, and the bare ones send what a migration sends: patches by the status
//! that name the state of the object, 16 at a time. Who reads and who writes are ServiceAccounts: API priority and
//! fairness exempts an administrator. The machine is not the same from minute to minute, so a migration is measured first
//! and last.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use kit::bed::Bed;
use kit::objects::{Ask, Objects};
use kit::random::is_night;
use serde_json::{Value, json};

use super::users::{account, rule};
use super::widgets::{Widgets, run_as};

/// What the other user reads.
const READ: &str = "/api/v1/namespaces/default";

/// The kubeconfigs of who reads and who writes. The audit log has nothing of either.
struct Users {
    reader: PathBuf,
    writer: PathBuf,
}

impl Users {
    fn of(bed: &Bed, all: &[Widgets]) -> Self {
        let definitions = ["customresourcedefinitions", "customresourcedefinitions/status"];
        let mut rules = vec![rule("apiextensions.k8s.io", &definitions, &["get", "patch"])];
        let objects = ["widgets", "widgets/status"];
        rules.extend(all.iter().map(|one| rule(&one.group, &objects, &["list", "patch"])));
        let list = format!("/apis/{}/v1/widgets", all[0].group);
        let writer = account(bed, ("default", "measured-writer"), &rules, &list);
        let reads = [rule("", &["namespaces"], &["get"])];
        let reader = account(bed, ("default", "measured-reader"), &reads, READ);
        Self { reader, writer }
    }
}

pub fn it_is_measured_beside_bare_patches(bed: &Bed) {
    let count = if is_night() { 10_000 } else { 200 };
    let made = ["measured", "unpaced", "measured-last"].map(|test| {
        let widgets = Widgets::stored_as_v1alpha1(bed, test, true);
        widgets.make(count);
        widgets.store_as_v1();
        widgets
    });
    let users = &Users::of(bed, &made);
    let [first, unpaced, last] = &made;
    let quiet = Duration::from_secs(if is_night() { 10 } else { 1 });
    let ((), quiet) = beside_a_reader(users, || thread::park_timeout(quiet));

    let (before, reads) = migrated(first, users);
    let asks = guarded(unpaced, &json!({}));
    let (rewriting, reads_of_bare) = patched(users, asks);
    assert_eq!(unpaced.in_etcd("v1alpha1"), [""; 0], "they are what rewrites");
    let asks = guarded(unpaced, &json!({"size": 2}));
    let (changing, _) = patched(users, asks);
    let (after, _) = migrated(last, users);

    let written = f64::midpoint(before[0], after[0]);
    println!(
        "figure: {count} objects: migrations wrote {:.0}/s first and {:.0}/s last, and verified {:.0}/s and {:.0}/s",
        before[0], after[0], before[1], after[1]
    );
    println!(
        "figure: the same guarded patches without a migration, 16 at a time: {rewriting:.0}/s, ratio {:.2}; guarded \
         patches that change a field: {changing:.0}/s, ratio {:.2}, for which the API server neither reads etcd again \
         nor patches twice",
        written / rewriting,
        written / changing
    );
    println!(
        "figure: reads of another user: {quiet} alone, {reads} beside a migration, {reads_of_bare} beside bare patches"
    );
}

/// Migrates them: how many objects a second it wrote and verified, by its own account, and the reads of another user.
fn migrated(widgets: &Widgets, users: &Users) -> ([f64; 2], String) {
    let words = ["migrate", &widgets.name, "--grace", "0s"];
    let (ran, reads) = beside_a_reader(users, || run_as(&users.writer, &words));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(widgets.in_etcd("v1alpha1"), [""; 0]);
    let rate = |line: &str| line.rsplit_once("; ")?.1.strip_suffix(" objects/s")?.parse().ok();
    let rates: Vec<f64> = ran.errors.lines().filter_map(rate).collect();
    (rates.try_into().unwrap_or_else(|rates| panic!("two passes: {rates:?} in {ran:?}")), reads)
}

/// Patches of all objects by their status, each of which names the object as it is, with this as its status.
fn guarded(widgets: &Widgets, status: &Value) -> Vec<Ask> {
    let all = widgets.bed.objects.at(&format!("/apis/{}/v1/widgets", widgets.group));
    let items = all["items"].as_array().cloned().expect("a list");
    let patch = |item: &Value| {
        let metadata = &item["metadata"];
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let path = format!(
            "/apis/{}/v1/namespaces/{}/widgets/{}/status",
            widgets.group,
            text(&metadata["namespace"]),
            text(&metadata["name"])
        );
        let state = json!({"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]});
        let mut body = json!({"metadata": state});
        if *status != json!({}) {
            body["status"] = status.clone();
        }
        Ask::patch(path, body)
    };
    items.iter().map(patch).collect()
}

/// Sends them: how many a second were answered, and the reads of another user.
fn patched(users: &Users, asks: Vec<Ask>) -> (f64, String) {
    let count = f64::from(u32::try_from(asks.len()).expect("a number"));
    let writer = Objects::new(&users.writer);
    // Its connections are there before anything is measured.
    let list = &asks[0].path[..asks[0].path.find("/namespaces/").expect("a namespace")];
    drop(writer.all(vec![Ask::get(format!("{list}/widgets?limit=1")); 16]));
    let (took, reads) = beside_a_reader(users, || {
        let begun = Instant::now();
        let outcomes = writer.all(asks);
        let took = begun.elapsed();
        assert!(outcomes.iter().all(Result::is_ok));
        took
    });
    (count / took.as_secs_f64(), reads)
}

/// Does something, and tells how long another user waits for each read meanwhile.
fn beside_a_reader<T>(users: &Users, work: impl FnOnce() -> T) -> (T, String) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let user = scope.spawn(|| {
            let objects = Objects::new(&users.reader);
            let mut waits = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let begun = Instant::now();
                objects.at(READ);
                waits.push(begun.elapsed());
                thread::park_timeout(Duration::from_millis(10));
            }
            waits.sort_unstable();
            waits
        });
        let done = {
            let _ends = Ends(&is_over);
            work()
        };
        let waits = user.join().expect("it reads");
        let at = |share: usize| waits[(waits.len() * share / 100).min(waits.len() - 1)];
        (done, format!("p50 {:.1?}, p99 {:.1?}", at(50), at(99)))
    })
}

/// Ends what goes on beside, also where an assertion fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
