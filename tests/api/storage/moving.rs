//! Migrations beside writers, and migrations that do not come to their end.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use kit::bed::Bed;
use kit::objects::{Ask, condition};
use kit::program::Program;
use kit::random::{Random, is_night};
use kit::wait::PATIENCE;
use serde_json::{Value, json};

use super::way::{Way, by_another_way};
use super::widgets::{Widgets, command, run};

/// Clients that write and delete beside a migration.
struct Others<'a> {
    widgets: &'a Widgets<'a>,
    count: usize,
    is_over: AtomicBool,
    /// What each object was written last, as the API server acknowledged it; none where it was deleted.
    acknowledged: Mutex<BTreeMap<usize, Option<u32>>>,
}

/// Whether no other client writes the object of that number: the migration alone can.
const fn is_left_alone(number: usize) -> bool {
    number.is_multiple_of(5)
}

impl Others<'_> {
    /// Writes objects, each of which is its own, in both versions, and deletes one of seven.
    fn write(&self, writer: usize, writers: usize) {
        let mut random = Random(writer as u64);
        let written = (0..self.count).filter(|number| !is_left_alone(*number));
        let own: Vec<_> = written.skip(writer).step_by(writers).collect();
        let mut size = 1;
        while !self.is_over.load(Ordering::Relaxed) {
            let number = random.pick(&own).expect("it has some");
            let version = if random.below(2) == 0 { "v1alpha1" } else { "v1" };
            let path = self.widgets.path_of(version, number);
            size += 1;
            let (ask, then) = if number.is_multiple_of(7) {
                (Ask::delete(path), None)
            } else {
                (Ask::patch(path, json!({"spec": {"size": size}})), Some(size))
            };
            match self.widgets.bed.objects.one(ask) {
                Ok(_) => drop(self.acknowledged.lock().expect("unharmed").insert(number, then)),
                Err(refusal) if refusal.code == 404 && then.is_none() => {}
                Err(refusal) => panic!("{}", refusal.message),
            }
        }
    }

    /// Every object is as it was acknowledged last.
    fn have_lost_nothing(&self) {
        let acknowledged = self.acknowledged.lock().expect("unharmed");
        assert!(acknowledged.values().any(Option::is_some) && acknowledged.values().any(Option::is_none));
        for (number, size) in acknowledged.iter() {
            let found = self.widgets.bed.objects.if_there(Ask::get(self.widgets.path_of("v1", *number)));
            let found = found.map_or(Value::Null, |object| object["spec"]["size"].clone());
            assert_eq!(found, json!(size), "object {number}");
        }
    }
}

/// One object after the other, so that what passes between two looks is counted.
pub const SLOWLY: [&str; 6] = ["--workers", "1", "--chunk-size", "10", "--grace", "0s"];

/// The longest until one of those is as far as it is wanted to be.
const DEATH: Duration = Duration::from_mins(5);

/// The words of a slow migration of them.
pub fn slowly<'a>(widgets: &'a Widgets) -> Vec<&'a str> {
    [&["migrate", &widgets.name][..], &SLOWLY].concat()
}

/// Starts a slow migration by that way to the API server.
pub fn started(widgets: &Widgets, kubeconfig: &Path) -> Program {
    let log = widgets.bed.cluster.folder().join(format!("migrator-{}.log", widgets.group));
    Program::start(&command(kubeconfig, &slowly(widgets)), &log).expect("it starts")
}

/// gatehouse writes, and is killed when a third of the objects is written, when two thirds are, and while it verifies.
pub fn writers_and_deaths_lose_nothing(bed: &Bed) {
    nothing_is_lost(bed, "moving", |widgets, left| {
        let all = left();
        let die = |is_time: &dyn Fn() -> Result<(), String>| {
            let (kubeconfig, way) = by_another_way(bed, bed.cluster.kubeconfig(), "kubeconfig-of-the-dying");
            let migrator = started(widgets, &kubeconfig);
            way.pass_until(all / 2, DEATH, is_time);
            migrator.kill();
            println!("killed with {} of {all} that it alone writes to go", left());
            assert_eq!(widgets.stored_versions(), json!(["v1alpha1", "v1"]));
        };
        for third in [1, 2] {
            die(&|| match left() {
                left if left * 3 <= all * (3 - third) => Ok(()),
                left => Err(format!("it has {left} of {all} to go")),
            });
            assert_ne!(left(), 0, "it was killed before its end");
        }
        die(&|| match place(widgets) {
            place if place["pass"] == 2 => Ok(()),
            place => Err(place.to_string()),
        });
    });
}

/// Clients write and delete objects while migrations are killed, and while the last migration runs to its end.
fn nothing_is_lost(bed: &Bed, test: &str, die: impl Fn(&Widgets, &dyn Fn() -> usize)) {
    let (count, writers) = if is_night() { (10_000, 20) } else { (300, 4) };
    let widgets = Widgets::stored_as_v1alpha1(bed, test, true);
    widgets.make(count);
    widgets.store_as_v1();
    let others =
        Others { widgets: &widgets, count, is_over: AtomicBool::new(false), acknowledged: Mutex::default() };
    thread::scope(|scope| {
        let stop = StopsAtTheEnd(&others.is_over);
        // What the other clients write shrinks without a migration, and says nothing about it.
        let left = || {
            let left = widgets.in_etcd("v1alpha1").into_iter();
            left.filter(|name| is_left_alone(Widgets::number_of(name))).count()
        };
        for writer in 0..writers {
            let others = &others;
            scope.spawn(move || others.write(writer, writers));
        }
        die(&widgets, &left);
        let ran = run(bed, &["migrate", &widgets.name, "--to", "v1", "--grace", "0s"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        println!("{}", ran.errors);
        drop(stop);
    });
    assert_eq!(widgets.in_etcd("v1alpha1"), [""; 0]);
    assert_eq!(widgets.stored_versions(), json!(["v1"]));
    others.have_lost_nothing();
}

/// Ends what others do, also where an assertion fails.
pub struct StopsAtTheEnd<'a>(pub &'a AtomicBool);

impl Drop for StopsAtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The place that is kept of a migration.
fn place(widgets: &Widgets) -> Value {
    let place = widgets.definition()["metadata"]["annotations"]["gatehouse.dev/storage-migration"].clone();
    place.as_str().map_or(Value::Null, |place| serde_json::from_str(place).expect("JSON"))
}

/// Whether no more objects than that are to be written.
pub fn has_left(widgets: &Widgets, most: usize) -> Result<(), String> {
    match widgets.in_etcd("v1alpha1").len() {
        left if left <= most => Ok(()),
        left => Err(format!("it has {left} objects to go")),
    }
}

/// 200 objects, and a migration that has written some of them, by a way on which nothing passes until it is opened.
pub fn at_work<'a>(bed: &'a Bed, name: &str) -> (Widgets<'a>, Way, Program) {
    let widgets = Widgets::stored_as_v1alpha1(bed, name, false);
    widgets.make(200);
    widgets.store_as_v1();
    let kubeconfig = format!("kubeconfig-of-{name}");
    let (kubeconfig, way) = by_another_way(bed, bed.cluster.kubeconfig(), &kubeconfig);
    let migrator = started(&widgets, &kubeconfig);
    way.pass_until(10, PATIENCE, || has_left(&widgets, 180));
    (widgets, way, migrator)
}

pub fn an_interrupted_run_is_taken_up(bed: &Bed) {
    let (widgets, way, migrator) = at_work(bed, "interrupted");
    migrator.interrupt();
    way.open();
    assert_eq!(migrator.code(), Some(1));
    let left = widgets.in_etcd("v1alpha1").len();
    assert_ne!(left, 0, "it was interrupted before its end");
    let place = place(&widgets);
    let counted = |what: &str| place["tally"][what].as_u64().expect("a number");
    let dealt = counted("rewritten");
    assert!(dealt > 0 && place["pass"] == 1, "{place}");
    let tried = run(bed, &["migrate", &widgets.name, "--dry-run"]);
    assert!(tried.output.contains("tried, all 201 would be written"), "all of them: {tried:?}");

    let ran = run(bed, &["migrate", &widgets.name, "--grace", "0s"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let on = format!("pass 1: goes on after {} objects", dealt + counted("asWanted"));
    assert!(ran.errors.contains(&on), "{on}: {ran:?}");
    let first = ran.errors.lines().find(|line| line.contains("pass 1:") && line.contains("rewritten"));
    let first = first.unwrap_or_else(|| panic!("{ran:?}"));
    // With the object by which the test found out how objects are stored. Those that were written after the page began
    // at which it stopped are no more than a page.
    let rewritten = dealt + u64::try_from(left).expect("a number");
    assert!(first.contains(&format!("201 objects: {rewritten} rewritten")), "{first}");
    assert!(201 - rewritten <= 11, "{first}");
    assert_eq!(widgets.in_etcd("v1alpha1"), [""; 0]);
    let annotations = widgets.definition()["metadata"]["annotations"].clone();
    assert_eq!(annotations["gatehouse.dev/storage-migration"], Value::Null, "the place is taken away");
}

/// As beside a leader that has ended the migration which the command is about.
pub fn an_interrupted_run_says_nothing_of_what_others_have_ended(bed: &Bed) {
    let (widgets, way, migrator) = at_work(bed, "ended");
    let ran = run(bed, &["migrate", &widgets.name, "--grace", "0s"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    migrator.terminate();
    way.open();
    assert_eq!(migrator.code(), Some(1));
    let said = condition(&widgets.definition(), "StorageMigrated");
    assert_eq!((&said["status"], &said["reason"]), (&json!("True"), &json!("Migrated")), "{said}");
    // The place that it has left is none of a migration of now.
    let ran = run(bed, &["migrate", &widgets.name, "--force", "--grace", "0s"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.errors.contains("pass 1: 201 objects"), "from the beginning: {ran:?}");
    assert_eq!(widgets.in_etcd("v1alpha1"), [""; 0]);
}

/// Who says that no object is stored in another version is not believed while a migration has not come to its end.
pub fn what_is_reduced_by_hand_is_verified(bed: &Bed) {
    let (widgets, way, migrator) = at_work(bed, "reduced");
    widgets.reduce_by_hand();
    migrator.terminate();
    way.open();
    assert_eq!(migrator.code(), Some(1));
    assert_ne!(widgets.in_etcd("v1alpha1"), [""; 0], "it was interrupted before its end");
    let said = condition(&widgets.definition(), "StorageMigrated");
    assert_eq!((&said["status"], &said["reason"]), (&json!("False"), &json!("Interrupted")), "{said}");
    assert_eq!(widgets.held_back("v1alpha1")[0], "Stored", "status does not believe it either");
    let ran = run(bed, &["migrate", &widgets.name, "--grace", "0s"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.errors.contains("pass 2: 201 objects: 0 rewritten"), "every object is looked at: {ran:?}");
    assert_eq!((widgets.in_etcd("v1alpha1"), widgets.stored_versions()), (Vec::new(), json!(["v1"])));
    assert_eq!(condition(&widgets.definition(), "StorageMigrated")["status"], "True");
}
