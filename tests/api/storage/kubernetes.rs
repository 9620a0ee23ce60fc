//! What the migrator of Kubernetes itself leaves behind: `StorageVersionMigration`, on by default from 1.37.

use std::io::Write as _;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use gatehouse::storage::keep::Keeper;
use gatehouse::storage::numbers::Numbers;
use gatehouse::storage::requests::Requests;
use kit::bed::Bed;
use kit::objects::{Ask, condition};
use kit::wait::{eventually, within};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::moving::StopsAtTheEnd;
use super::widgets::{PROBE, Ran, Widgets, run};

const MIGRATIONS: &str = "/apis/storagemigration.k8s.io/v1/storageversionmigrations";

/// It collects what it is to write from the garbage collector, which looks for new definitions every half a minute.
const PATIENCE: Duration = Duration::from_mins(5);

/// Does something while Kubernetes migrates them, and hurries that on. A migration waits until the garbage collector has
/// seen a state of the objects that is as late, which it learns by changes of one of them and else by the minute; and it
/// looks for that later and later, but for changes of its own object.
fn hurried(widgets: &Widgets, work: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    let paths = [widgets.path("v1", PROBE), format!("{MIGRATIONS}/{}", widgets.name)];
    thread::scope(|scope| {
        let _ends = StopsAtTheEnd(&is_over);
        scope.spawn(|| {
            for number in 0.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let change = json!({"metadata": {"annotations": {"hurry": number.to_string()}}});
                for path in &paths {
                    // It may not be there yet, or not any more.
                    drop(widgets.bed.objects.one(Ask::patch(&**path, change.clone())));
                }
                thread::park_timeout(Duration::from_secs(1));
            }
        });
        work();
    });
}

/// It drops a version from `storedVersions` of which etcd still has an object. gatehouse does not believe that.
pub fn what_kubernetes_itself_fails_to_write_is_written(bed: &Bed) {
    let widgets = Widgets::stored_as_v1alpha1(bed, "kubernetes", true);
    widgets.make(20);
    widgets.store_as_v1();
    let lift = widgets.refuse("widget-007");
    is_ended_by_kubernetes(&widgets, "MigrationFailed");
    assert_eq!(widgets.stored_versions(), json!(["v1"]), "Kubernetes says that etcd has nothing else");
    assert!(widgets.in_etcd("v1alpha1").contains(&"widget-007".to_owned()));

    is_doubted(&widgets);
    assert_eq!(widgets.stored_versions(), json!(["v1"]), "who only looks writes nothing");

    is_shown_by_a_leader(&widgets);

    let migrate = || run(bed, &["migrate", &widgets.name, "--grace", "0s"]);
    let ran = migrate();
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.errors.contains("widget-007") && ran.errors.contains("not this one"), "{ran:?}");
    assert_eq!(widgets.in_etcd("v1alpha1"), ["widget-007"], "all others are written");
    assert_eq!(condition(&widgets.definition(), "StorageMigrated")["status"], "False");
    assert_eq!(
        widgets.stored_versions(),
        json!(["v1alpha1", "v1"]),
        "the API server keeps the version again"
    );
    lift();
    let ran = migrate();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(widgets.in_etcd("v1alpha1"), [""; 0]);
    assert_eq!(condition(&widgets.definition(), "StorageMigrated")["status"], "True");
    assert_eq!(
        (widgets.stored_versions(), widgets.held_back("v1alpha1")),
        (json!(["v1"]), json!(["Served", "ManagedFields"]))
    );
}

/// It has succeeded, and gatehouse looks at every object all the same before it says so itself.
pub fn what_kubernetes_itself_has_written_is_verified(bed: &Bed) {
    let widgets = Widgets::stored_as_v1alpha1(bed, "verified", true);
    widgets.make(20);
    widgets.store_as_v1();
    is_ended_by_kubernetes(&widgets, "MigrationSucceeded");
    assert_eq!(widgets.stored_versions(), json!(["v1"]));
    // As another API server has written it that had not seen the switch.
    write_to_etcd_as_v1alpha1(&widgets, 7);
    assert_eq!(widgets.in_etcd("v1alpha1"), ["widget-007"]);

    let ran = run(bed, &["migrate", &widgets.name, "--grace", "0s"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    has_found(&ran, 21, 20);
    assert_eq!((widgets.in_etcd("v1alpha1"), widgets.stored_versions()), (Vec::new(), json!(["v1"])));
    assert_eq!(condition(&widgets.definition(), "StorageMigrated")["status"], "True");
    let again = run(bed, &["migrate", &widgets.name]);
    assert!(again.output.contains("nothing is stored in another version"), "once: {again:?}");
}

/// The first pass of that run found so many of all the objects stored as wanted, and wrote the others. Where the API
/// server wrote one and did not answer in time, the second try meets a conflict, and the object counts as written meanwhile.
fn has_found(ran: &Ran, all: u32, as_wanted: u32) {
    let is_said = |line: &str| {
        line.contains(&format!("pass 1: {all} objects: "))
            && line.contains(&format!("rewritten, {as_wanted} stored as wanted"))
            && !line.contains("not written")
    };
    assert!(ran.errors.lines().any(is_said), "{ran:?}");
}

/// Has Kubernetes migrate them, which comes to that end.
fn is_ended_by_kubernetes(widgets: &Widgets, how: &str) {
    widgets.bed.objects.must(Ask::post(
        MIGRATIONS,
        json!({"apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration",
            "metadata": {"name": widgets.name},
            "spec": {"resource": {"group": widgets.group, "resource": "widgets"}}}),
    ));
    hurried(widgets, || {
        within(PATIENCE, || {
            let said = condition(&widgets.definition(), "StorageMigrating");
            if said["reason"] == how { Ok(()) } else { Err(said.to_string()) }
        });
    });
}

/// Writes the object of that number to etcd itself, as it is but for its version.
pub fn write_to_etcd_as_v1alpha1(widgets: &Widgets, number: usize) {
    let (namespace, name) = widgets.place(number);
    let key = format!("/registry/{}/widgets/{namespace}/{name}", widgets.group);
    let etcdctl = |words: &[&str]| {
        let mut command = widgets.bed.cluster.etcdctl().expect("an etcd of our own");
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        command
    };
    let read = etcdctl(&["get", &key, "--print-value-only"]).output().expect("etcdctl runs");
    let mut object: Value = serde_json::from_slice(&read.stdout).expect("an object");
    object["apiVersion"] = format!("{}/v1alpha1", widgets.group).into();
    let mut write = etcdctl(&["put", &key]).spawn().expect("etcdctl runs");
    let mut input = write.stdin.take().expect("a pipe");
    input.write_all(object.to_string().as_bytes()).expect("etcdctl reads");
    drop(input);
    assert!(write.wait().expect("it ends").success());
}

/// What is shown does not rely on `storedVersions` either.
fn is_doubted(widgets: &Widgets) {
    let bed = widgets.bed;
    let shown = run(bed, &["status", &widgets.name]);
    let row = shown.output.lines().find(|line| line.starts_with(&widgets.name)).expect("a row");
    assert_eq!(row.split_whitespace().nth(3), Some("v1alpha1"), "{shown:?}");
    assert!(shown.output.contains("Kubernetes' own migration failed"), "{shown:?}");
    let held = widgets.held_back("v1alpha1");
    assert_eq!(held[0], "Stored", "{held}");
    // Definitions of other tests come and go.
    eventually(|| {
        let tried = run(bed, &["migrate", "--all", "--dry-run"]);
        let told = format!("{}: tried, 1 would not be written", widgets.name);
        if tried.output.contains(&told) { Ok(()) } else { Err(format!("{tried:?}")) }
    });
}

/// The metric of the alert, by one that keeps this definition as the leader keeps ours.
fn is_shown_by_a_leader(widgets: &Widgets) {
    let numbers = Numbers::default();
    let mut registry = Registry::default();
    numbers.register(&mut registry);
    let wanted = format!("gatehouse_storage_older_versions{{definition=\"{}\"}} 1", widgets.name);
    kept(widgets, numbers, || {
        eventually(|| {
            let mut page = String::new();
            encode(&mut page, &registry).expect("a page");
            if page.contains(&wanted) { Ok(()) } else { Err(format!("no {wanted} in {page}")) }
        });
    });
}

/// Does something while this definition is kept as the leader keeps ours.
pub fn kept<T>(widgets: &Widgets, numbers: Numbers, work: impl FnOnce() -> T) -> T {
    let stop = CancellationToken::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            widgets.bed.objects.with(async |client| {
                let (requests, definitions) = (Requests::through(client.clone()), vec![widgets.name.clone()]);
                Keeper { requests, client, definitions, numbers }.run(&stop).await;
            });
        });
        let _stops = stop.clone().drop_guard();
        work()
    })
}
