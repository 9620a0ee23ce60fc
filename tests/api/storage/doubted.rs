//! Definitions whose status says too little, or did so until a moment ago.

use gatehouse::storage::numbers::Numbers;
use kit::bed::Bed;
use kit::objects::condition;
use kit::program::Program;
use kit::wait::eventually;
use serde_json::{Value, json};

use super::kubernetes::{kept, write_to_etcd_as_v1alpha1};
use super::widgets::{Ran, Widgets, command, run};

/// The words of a migration of them that begins at once, and more words.
fn migrate(widgets: &Widgets, more: &[&str]) -> Ran {
    run(widgets.bed, &[&["migrate", &widgets.name, "--grace", "0s"], more].concat())
}

/// 20 objects that are migrated to v1, and one of them that etcd holds as v1alpha1 all the same, as after a restore of
/// etcd.
fn with_one_of_v1alpha1<'a>(bed: &'a Bed, test: &str) -> Widgets<'a> {
    let widgets = Widgets::stored_as_v1alpha1(bed, test, true);
    widgets.make(20);
    widgets.store_as_v1();
    let ran = migrate(&widgets, &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    write_to_etcd_as_v1alpha1(&widgets, 7);
    assert_eq!(
        (widgets.in_etcd("v1alpha1"), widgets.stored_versions()),
        (names(&["widget-007"]), json!(["v1"]))
    );
    widgets
}

fn names(all: &[&str]) -> Vec<String> {
    all.iter().map(|name| (*name).to_owned()).collect()
}

fn said(widgets: &Widgets) -> Value {
    condition(&widgets.definition(), "StorageMigrated")
}

/// What a forced run has found stays known to the runs after it, whatever the status says.
pub fn a_forced_run_that_fails_is_not_forgotten(bed: &Bed) {
    let widgets = with_one_of_v1alpha1(bed, "forced");
    let lift = widgets.refuse("widget-007");
    let is_kept = |ran: &Ran| {
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.errors.contains("widget-007") && ran.errors.contains("not this one"), "{ran:?}");
        let said = said(&widgets);
        assert_eq!((&said["status"], &said["reason"]), (&json!("False"), &json!("Kept")), "{said}");
        assert_eq!(widgets.stored_versions(), json!(["v1alpha1", "v1"]), "the version cannot be removed");
        assert_eq!(widgets.in_etcd("v1alpha1"), ["widget-007"]);
    };
    is_kept(&migrate(&widgets, &["--force"]));
    is_kept(&migrate(&widgets, &[]));
    widgets.reduce_by_hand();
    is_kept(&migrate(&widgets, &[]));
    lift();
    let ran = migrate(&widgets, &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!((widgets.in_etcd("v1alpha1"), widgets.stored_versions()), (Vec::new(), json!(["v1"])));
    assert_eq!(said(&widgets)["status"], "True");
}

/// What a status does not name may be stored all the same: that is why a run is forced.
pub fn force_takes_no_fields_away(bed: &Bed) {
    let widgets = with_one_of_v1alpha1(bed, "pruned");
    widgets.apply_with_shade("v1alpha1", &[("v1alpha1", true, false), ("v1", true, true)]);
    let ran = migrate(&widgets, &["--force"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    let why =
        "objects would lose fields that v1 does not know: spec.shade; --lose-fields writes them all the same";
    assert!(ran.errors.contains(why), "{ran:?}");
    assert_eq!(widgets.in_etcd("v1alpha1"), ["widget-007"], "nothing is written");
    assert_eq!((said(&widgets)["status"].clone(), widgets.stored_versions()), (json!("True"), json!(["v1"])));
    let ran = migrate(&widgets, &["--force", "--lose-fields"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!((widgets.in_etcd("v1alpha1"), widgets.stored_versions()), (Vec::new(), json!(["v1"])));
}

/// A leader or a command that waits until every API server has seen a switch says first that objects may be stored
/// otherwise.
pub fn a_switch_is_said_before_its_grace_ends(bed: &Bed) {
    let widgets = Widgets::stored_as_v1alpha1(bed, "switched", true);
    widgets.make(5);
    widgets.store_as_v1();
    let is_migrated = || {
        let ran = migrate(&widgets, &[]);
        assert_eq!((ran.code, &said(&widgets)["status"]), (0, &json!("True")), "{ran:?}");
    };
    let is_said = || {
        eventually(|| {
            let said = said(&widgets);
            if said["status"] == "False" && said["reason"] == "Waiting" {
                Ok(())
            } else {
                Err(said.to_string())
            }
        });
    };
    is_migrated();
    widgets.apply(&[("v1alpha1", true, true), ("v1", true, false)]);
    widgets.until_stored_as("v1alpha1");
    kept(&widgets, Numbers::default(), is_said);

    is_migrated();
    widgets.store_as_v1();
    let log = bed.cluster.folder().join("migrator-that-waits.log");
    let words = ["migrate", &widgets.name, "--grace", "10m"];
    let migrator = Program::start(&command(bed.cluster.kubeconfig(), &words), &log).expect("it starts");
    is_said();
    migrator.interrupt();
    assert_eq!(migrator.code(), Some(1));
    assert_eq!(widgets.stored_versions(), json!(["v1alpha1", "v1"]));
}
