//! Migrations that go on from a place that was kept, and those whose definition is another one by then.

use std::time::{Duration, Instant};

use kit::audit::Line;
use kit::bed::{Bed, NAMESPACE};
use kit::objects::{Ask, condition};
use kit::wait::{PATIENCE, eventually};
use serde_json::{Value, json};

use super::moving::{at_work, has_left, slowly, started};
use super::users;
use super::way::by_another_way;
use super::widgets::{Widgets, run, run_as};

/// The annotation of a definition that has the place.
const PLACE: &str = "gatehouse.dev/storage-migration";

/// How often it is written.
const INTERVAL: Duration = Duration::from_secs(10);

/// The place that a definition has.
fn place_of(definition: &Value) -> Option<Value> {
    serde_json::from_str(definition["metadata"]["annotations"][PLACE].as_str()?).ok()
}

/// How many objects are before a place.
fn before(place: &Value) -> usize {
    let counted = |what: &str| place["tally"][what].as_u64().expect("a number");
    let all: u64 = ["rewritten", "asWanted", "overtaken", "failed"].map(counted).iter().sum();
    usize::try_from(all).expect("a number")
}

/// The objects in the order in which they are listed, as `namespace/name`.
fn listed(widgets: &Widgets) -> Vec<String> {
    let list = widgets.bed.objects.at(&format!("/apis/{}/v1/widgets", widgets.group));
    list["items"].as_array().expect("a list").iter().map(|object| named(&object["metadata"])).collect()
}

fn named(about: &Value) -> String {
    let text = |field: &str| about[field].as_str().expect("a text");
    format!("{}/{}", text("namespace"), text("name"))
}

/// A crash leaves the place of up to ten seconds before. What is before it is neither listed nor written again.
pub fn a_run_that_is_killed_is_taken_up_at_its_place(bed: &Bed) {
    let widgets = Widgets::stored_as_v1alpha1(bed, "killed", true);
    widgets.make(400);
    widgets.store_as_v1();
    let (kubeconfig, way) = by_another_way(bed, bed.cluster.kubeconfig(), "kubeconfig-of-the-killed");
    let migrator = started(&widgets, &kubeconfig);
    way.pass_until(10, PATIENCE, || has_left(&widgets, 370));
    // It gets nothing done until it is time to keep the place.
    let begun = Instant::now();
    eventually(|| if begun.elapsed() > INTERVAL { Ok(()) } else { Err("it is not time yet") });
    let kept = || place_of(&widgets.definition()).ok_or_else(|| "no place is kept".to_owned());
    let place = way.pass_until(10, PATIENCE, kept);
    migrator.kill();
    let left = widgets.in_etcd("v1alpha1").len();
    assert_ne!(left, 0, "it was killed before its end");
    let done = before(&place);
    assert!(place["pass"] == 1 && (1..400).contains(&done), "{place}");

    let all = listed(&widgets);
    let kubeconfig = users::migrator(&widgets, (NAMESPACE, "taken-up"));
    let ran = run_as(&kubeconfig, &slowly(&widgets));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.errors.contains(&format!("pass 1: goes on after {done} objects")), "{place} {ran:?}");
    assert_eq!((widgets.in_etcd("v1alpha1").len(), widgets.stored_versions()), (0, json!(["v1"])));

    let asked = Line::read_of("taken-up", bed.cluster.audit_log().expect("it is kept"));
    let pages: Vec<_> =
        asked.iter().enumerate().filter_map(|(at, line)| Some((at, continued(line)?))).collect();
    assert_eq!(pages[0].1, place["next"].as_str().expect("a token"), "the first page");
    let (second, _) = pages.iter().find(|(_, token)| token.is_empty()).expect("a second pass");
    let of_first = asked[..*second].iter().filter(|line| line.what() == "patch widgets/status");
    let patched: Vec<_> = of_first.map(|line| named(&line.value()["objectRef"])).collect();
    assert_eq!(patched, all[done..], "those of the first pass");
}

/// The token by which a request lists widgets, which is empty at the beginning; none of another request.
fn continued(line: &Line) -> Option<String> {
    let uri = line.value()["requestURI"].as_str()?;
    let (_, token) = uri.split_once("continue=").filter(|_| line.what() == "list widgets")?;
    Some(token.replace("%3D", "=").replace("%2B", "+"))
}

/// The token of the place has become too old: the API server gives another, and the run goes on by that.
pub fn a_place_that_has_become_too_old_loses_no_object(bed: &Bed) {
    let (widgets, way, migrator) = at_work(bed, "old");
    migrator.interrupt();
    way.open();
    assert_eq!(migrator.code(), Some(1));
    let place = place_of(&widgets.definition()).expect("a place");
    let token = place["next"].as_str().expect("a token").replace('=', "%3D");
    assert_ne!(token, "", "it is within a pass");
    forget_the_past(&widgets);
    let page = format!("/apis/{}/v1/widgets?limit=1&continue={token}", widgets.group);
    eventually(|| match bed.objects.one(Ask::get(&*page)) {
        Err(refusal) if refusal.code == 410 => Ok(()),
        other => Err(format!("{:?}", other.map(|page| page["metadata"].clone()))),
    });

    let ran = run(bed, &["migrate", &widgets.name, "--grace", "0s"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let done = before(&place);
    assert!(ran.errors.contains(&format!("pass 1: goes on after {done} objects")), "{ran:?}");
    assert!(ran.errors.contains("pass 1: 201 objects: "), "each is looked at once: {ran:?}");
    assert_eq!((widgets.in_etcd("v1alpha1").len(), widgets.in_etcd("v1").len()), (0, 200));
    assert_eq!(widgets.stored_versions(), json!(["v1"]));
}

/// Has etcd forget all that was before now. The API server remembers it for as long as its cache lives, which ends where
/// the names of the definition change; that they were changed, it takes back. A cache of other objects that has not
/// read so far yet stands still: etcd leaves out what they were before (`etcd event received with PrevKv=nil`).
fn forget_the_past(widgets: &Widgets) {
    let etcdctl = |words: &[&str]| {
        let mut command = widgets.bed.cluster.etcdctl().expect("an etcd of our own");
        let ran = command.args(words).output().expect("etcdctl runs");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        ran.stdout
    };
    let read: Value = serde_json::from_slice(&etcdctl(&["get", "nothing", "-w", "json"])).expect("JSON");
    etcdctl(&["compact", &read["header"]["revision"].to_string()]);
    let status = format!("{}/status", widgets.path_of_definition());
    let names = json!({"status": {"acceptedNames": {"shortNames": ["wi"]}}});
    widgets.bed.objects.must(Ask::patch(status, names));
}

/// What is known of all objects is known of the definition that a run began with.
pub fn a_definition_that_is_changed_meanwhile_keeps_its_versions(bed: &Bed) {
    let (widgets, way, migrator) = at_work(bed, "changed");
    let change = json!({"spec": {"names": {"categories": ["changed"]}}});
    bed.objects.must(Ask::patch(widgets.path_of_definition(), change));
    way.open();
    assert_eq!(migrator.code(), Some(1));
    assert_eq!(widgets.in_etcd("v1alpha1"), [""; 0], "all the same");
    assert_eq!(widgets.stored_versions(), json!(["v1alpha1", "v1"]));
    let said = condition(&widgets.definition(), "StorageMigrated");
    assert_eq!((&said["status"], &said["reason"]), (&json!("False"), &json!("Kept")), "{said}");
    let why = "storedVersions stays as it is: the definition has been changed meanwhile: run again";
    assert_eq!(said["message"], why);
    let ran = run(bed, &["migrate", &widgets.name, "--grace", "0s"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.errors.contains("pass 1: 201 objects: 0 rewritten"), "from the beginning: {ran:?}");
    assert_eq!(widgets.stored_versions(), json!(["v1"]));
}

/// Another definition has the name by the time that the run ends: nothing is known of its objects.
pub fn a_definition_that_is_made_again_meanwhile_keeps_its_versions(bed: &Bed) {
    let (widgets, way, migrator) = at_work(bed, "again");
    bed.objects.must(Ask::delete(widgets.path_of_definition()));
    bed.objects.until_gone(&format!("crd/{}", widgets.name), "");
    widgets.make_again();
    way.open();
    let log = migrator.log().path().to_owned();
    let code = migrator.code();
    assert_eq!(code, Some(1), "{}", std::fs::read_to_string(log).expect("a log"));
    assert_eq!(widgets.stored_versions(), json!(["v1alpha1", "v1"]));
    let definition = widgets.definition();
    assert_eq!(condition(&definition, "StorageMigrated"), Value::Null);
    assert_eq!(place_of(&definition), None);
}
