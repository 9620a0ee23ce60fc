//! Our own definitions, which a webhook converts. The test takes turns on its control plane.

use std::collections::BTreeSet;
use std::process::Command;

use gatehouse::kinds::KINDS;
use kit::bed::{Bed, Namespace};
use kit::objects::{Ask, condition, http_get};
use kit::program::Gate;
use kit::wait::eventually;
use serde_json::{Value, json};

use super::widgets::{refuse, run, stored_in};
use crate::beds::WORKS_NONE;
use crate::corpus::{self, bare};
use crate::installed;

/// The definitions of all kinds. There are objects of two of them; one without objects is something else to read.
pub fn definitions() -> Vec<String> {
    KINDS.iter().map(|kind| kind.names().definition()).collect()
}

/// The names of our objects that etcd holds in a version.
pub fn in_etcd(bed: &Bed, version: &str) -> Vec<String> {
    let all = KINDS.iter().flat_map(|kind| stored_in(bed, &format!("gatehouse.dev/{}", kind.names().plural)));
    all.filter(|(_, stored)| stored == version).map(|(name, _)| name).collect()
}

/// So many objects of each kind.
const COUNT: usize = 20;

pub fn tdset() -> Value {
    json!({"container": {"image": "shop", "port": 80}, "defaultReplica": 0,
        "schedulingConfig": [{"startTime": 8, "endTime": 18, "replica": 0}]})
}

fn cluster() -> Value {
    json!({"size": 0, "version": "3.6.16"})
}

/// Objects that etcd holds as v1alpha1, of definitions that store v1; nothing of gatehouse is there.
pub fn made_as_v1alpha1(bed: &Bed) -> Namespace<'_> {
    installed::clear(bed);
    let namespace = bed.namespace();
    installed::apply_definitions(bed, &namespace.name, "v1alpha1");
    let of = |kind: &str, name: String, spec: Value| json!({"apiVersion": "gatehouse.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    let objects = (0..COUNT).flat_map(|number| {
        [
            of("TDSet", format!("shop-{number}"), tdset()),
            of("EtcdCluster", format!("main-{number}"), cluster()),
        ]
    });
    let asks = objects.map(|object| Ask::create(&object, &namespace.name)).collect();
    for outcome in bed.objects.all(asks) {
        outcome.unwrap_or_else(|refusal| panic!("{}", refusal.message));
    }
    installed::apply_definitions(bed, &namespace.name, "v1");
    assert_eq!(in_etcd(bed, "v1alpha1").len(), 2 * COUNT);
    namespace
}

pub fn are_all_v1(namespace: &Namespace) {
    let bed = namespace.bed;
    assert_eq!(in_etcd(bed, "v1alpha1"), [""; 0]);
    assert_eq!(in_etcd(bed, "v1").len(), 2 * COUNT);
    for kind in KINDS {
        let plural = kind.names().plural;
        let definition = bed.objects.at(&installed::definition(plural));
        assert_eq!(definition["status"]["storedVersions"], json!(["v1"]), "{plural}");
    }
    for (plural, name, spec) in [("tdsets", "shop-7", tdset()), ("etcdclusters", "main-7", cluster())] {
        let read = namespace.get(&format!("{plural}.v1alpha1.gatehouse.dev"), name);
        assert_eq!(read["spec"], spec, "as it was written");
    }
}

/// Waits until the API server asks the gate to convert.
pub fn until_converted(namespace: &Namespace) {
    for (plural, name, field) in [("tdsets", "shop-0", "windows"), ("etcdclusters", "main-0", "replicas")] {
        eventually(|| {
            let read = namespace.get(&format!("{plural}.v1.gatehouse.dev"), name);
            if read["spec"][field].is_null() { Err(read.to_string()) } else { Ok(()) }
        });
    }
}

pub fn our_objects_move_to_v1(bed: &Bed) {
    let _turn = bed.turn();
    let namespace = made_as_v1alpha1(bed);
    // Its controllers migrate nothing where they do not work all namespaces.
    // Without what converts, a write would take fields away.
    let early = run(bed, &["migrate", "tdsets.gatehouse.dev", "--grace", "0s"]);
    assert_eq!(early.code, 2, "{early:?}");
    assert!(early.errors.contains("objects would lose fields that v1 does not know: spec."), "{early:?}");
    assert_eq!(in_etcd(bed, "v1alpha1").len(), 2 * COUNT);
    let _gate = bed.install(&WORKS_NONE).unwrap_or_else(|error| panic!("{error}"));
    until_converted(&namespace);
    let ran = run(bed, &["migrate", "--all", "--grace", "0s"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    are_all_v1(&namespace);
    let again = run(bed, &["migrate", "--all"]);
    assert!(again.output.contains("no definition has objects"), "{again:?}");
}

/// A gate that works all namespaces, by a clock that says that the definitions are old enough.
pub fn leading(bed: &Bed) -> Command {
    let clock = bed.cluster.folder().join("clock-of-the-migration");
    std::fs::write(&clock, "PT10M").expect("a file");
    let words = ["--webhook-url", "https://127.0.0.1:0", "--drain-delay", "100ms", "--drain-deadline", "1s"];
    let mut command = bed.serve("gatehouse", &words);
    command.env("GATEHOUSE_CLOCK", &clock);
    command
}

/// Whether a definition says that its objects are migrated.
pub fn is_migrated(bed: &Bed, plural: &str) -> bool {
    condition(&bed.objects.at(&installed::definition(plural)), "StorageMigrated")["status"] == "True"
}

/// One dies when it has written an object, one when it has been through all objects, one when all is written and not
/// yet reported.
pub fn leaders_that_die_are_followed_by_one_that_ends(bed: &Bed) {
    let _turn = bed.turn();
    let namespace = made_as_v1alpha1(bed);
    let points = bed.cluster.folder().join("deaths-of-leaders");
    let deaths = || std::fs::read_to_string(&points).unwrap_or_default().lines().count();
    let mut command = leading(bed);
    // The next one waits as long for the lease of one that has died. A machine that is busy renews a shorter one too late.
    command.args(["--lease-duration", "8s"]);
    command.env("GATEHOUSE_FAIL_POINTS", format!("kill:{}:storage", points.display()));
    let mut left = Vec::new();
    let last = loop {
        let before = deaths();
        let gate = bed.start_gate(&command);
        let has_ended = eventually(|| {
            if deaths() > before {
                Ok(false)
            } else if KINDS.iter().all(|kind| is_migrated(bed, kind.names().plural)) {
                Ok(true)
            } else {
                Err(format!("{before} have died, and this one has not ended: {:?}", gate.as_ref().err()))
            }
        });
        left.push(in_etcd(bed, "v1alpha1").len());
        if has_ended {
            break gate;
        }
    };
    println!("objects of v1alpha1 after each leader: {left:?}");
    assert_eq!(deaths(), 3, "{left:?}");
    let is_on_its_way = |left: &usize| (1..2 * COUNT).contains(left);
    assert!(left.iter().any(is_on_its_way), "one has died between two objects: {left:?}");
    are_all_v1(&namespace);
    drop(last);
}

/// What the leader says while one object cannot be written, by every means that it has.
fn is_told_of_one_that_cannot_be_written(namespace: &Namespace, gate: &Gate) {
    let bed = namespace.bed;
    let message = bed.objects.until("crd/tdsets.gatehouse.dev", "", |definition| {
        let said = condition(definition, "StorageMigrated");
        let is_kept = said["status"] == "False" && said["reason"] == "Kept";
        if is_kept {
            Ok(said["message"].as_str().expect("a message").to_owned())
        } else {
            Err(said.to_string())
        }
    });
    let named = format!("{}/shop-7: ", namespace.name);
    let is_named = |told: &str| told.contains(&named) && told.contains("not this one");
    assert!(is_named(&message), "{message}");
    assert_eq!(
        bed.objects.at(&installed::definition("tdsets"))["status"]["storedVersions"],
        json!(["v1alpha1", "v1"])
    );
    let is_event = |news: &Value| {
        news["reason"] == "StorageMigrationFailed"
            && news["type"] == "Warning"
            && news["involvedObject"]["name"] == "tdsets.gatehouse.dev"
            && is_named(news["message"].as_str().unwrap_or_default())
    };
    eventually(|| {
        let news = bed.objects.list("events", "default", "").expect("events");
        if news.iter().any(is_event) { Ok(()) } else { Err(json!(news).to_string()) }
    });
    let of = "definition=\"tdsets.gatehouse.dev\"";
    for series in ["failing_objects", "older_versions"] {
        until_shown(gate, &format!("gatehouse_storage_{series}{{{of}}} 1"));
    }
    let page = until_shown(gate, &format!("gatehouse_storage_remaining_objects{{{of}}} 0"));
    let counted = |result: &str| counted(&page, result);
    assert!(counted("failed") >= 2, "in two passes: {page}");
    let all: usize = ["rewritten", "as_wanted", "overtaken", "failed"].map(counted).iter().sum();
    assert!(all >= 2 * COUNT, "each object in each pass: {page}");
    eventually(|| match in_etcd(bed, "v1alpha1") {
        left if left == ["shop-7"] => Ok(()),
        left => Err(format!("{left:?}")),
    });
    is_not_misled(bed);
}

/// How many TDSets a gate has dealt with in that way, by what it shows.
fn counted(page: &str, result: &str) -> usize {
    let of = format!("definition=\"tdsets.gatehouse.dev\",result=\"{result}\"");
    let series = format!("gatehouse_storage_objects_total{{{of}}} ");
    let found = page.lines().find_map(|line| line.strip_prefix(&*series));
    found.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("no {series}: {page}"))
}

/// A person has the definition say that no object is stored in another version. The leader knows of one.
fn is_not_misled(bed: &Bed) {
    let status = installed::definition("tdsets") + "/status";
    bed.objects.must(Ask::patch(status, json!({"status": {"storedVersions": ["v1"]}})));
    bed.objects.until("crd/tdsets.gatehouse.dev", "", |definition| {
        let said = condition(definition, "StorageMigrated");
        let stored = &definition["status"]["storedVersions"];
        assert_eq!(said["status"], "False", "{said}");
        if *stored == json!(["v1alpha1", "v1"]) && said["reason"] == "Kept" {
            Ok(())
        } else {
            Err(format!("{stored}: {said}"))
        }
    });
}

/// Waits until a gate shows that line; the page that has it.
pub fn until_shown(gate: &Gate, line: &str) -> String {
    eventually(|| {
        let page = http_get(gate.health, "/metrics");
        if page.lines().any(|shown| shown == line) { Ok(page) } else { Err(format!("no {line} in {page}")) }
    })
}

/// Has the control plane that has our definitions and no operator for a while, and leaves it as it was.
pub fn on_bare(bed: &Bed, test: fn(&Bed)) {
    let bare = bare::beside(bed);
    let _turn = bare.turn_of_one();
    test(&bare.bed);
    installed::clear(&bare.bed);
    corpus::without_gate(bare);
}

pub fn the_leader_moves_our_objects_to_v1(bed: &Bed) {
    on_bare(bed, are_moved_by_the_leader);
}

fn are_moved_by_the_leader(bed: &Bed) {
    let namespace = made_as_v1alpha1(bed);
    let lift = refuse(bed, ("gatehouse.dev", "v1alpha1", "tdsets"), "shop-7");
    let command = leading(bed);
    let gate = bed.start_gate(&command).unwrap_or_else(|error| panic!("{error}"));
    gate.logs("installed");
    is_told_of_one_that_cannot_be_written(&namespace, &gate);
    // From here on it gets there by itself.
    lift();
    for name in definitions() {
        bed.objects.until(&format!("crd/{name}"), "", |definition| {
            let said = condition(definition, "StorageMigrated");
            if said["status"] == "True" { Ok(()) } else { Err(said.to_string()) }
        });
    }
    are_all_v1(&namespace);
    // The events come after the condition, and the numbers after the events.
    let expected: BTreeSet<_> = definitions().into_iter().collect();
    eventually(|| {
        let news = bed.objects.list("events", "default", "").expect("events");
        let told = news.iter().filter(|news| news["reason"] == "StorageMigrated");
        let told: BTreeSet<_> =
            told.map(|news| news["involvedObject"]["name"].as_str().expect("a name").to_owned()).collect();
        if told == expected { Ok(()) } else { Err(format!("events of {told:?}")) }
    });
    for name in &expected {
        until_shown(&gate, &format!("gatehouse_storage_older_versions{{definition=\"{name}\"}} 0"));
    }
    until_shown(&gate, "gatehouse_storage_failing_objects{definition=\"tdsets.gatehouse.dev\"} 0");

    // What a command says that a person ended beside it.
    let conditions = bed.objects.at(&installed::definition("tdsets"))["status"]["conditions"].clone();
    let mut conditions = conditions.as_array().cloned().expect("conditions");
    let said = conditions.iter_mut().find(|one| one["type"] == "StorageMigrated").expect("it is there");
    (said["status"], said["reason"]) = ("False".into(), "Interrupted".into());
    let status = installed::definition("tdsets") + "/status";
    let looked_at = || counted(&http_get(gate.health, "/metrics"), "as_wanted");
    let before = looked_at();
    bed.objects.must(Ask::patch(status, json!({"status": {"conditions": conditions}})));
    eventually(|| if is_migrated(bed, "tdsets") { Ok(()) } else { Err("it stays so") });
    assert!(looked_at() >= before + COUNT, "each object is looked at before that is said");
    are_all_v1(&namespace);
}
