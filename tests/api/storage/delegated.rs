//! Rewriting that is left to Kubernetes by default, where Kubernetes' own controllers work.

use gatehouse::kinds::KINDS;
use kit::audit::Line;
use kit::bed::{Bed, NAMESPACE};
use kit::objects::{condition, of};
use kit::wait::within;
use serde_json::json;

use super::kubernetes::{PATIENCE, asked_for, has_written_five, hurried, hurried_for};
use super::ours::{are_all_v1, is_migrated, leading_by_default, made_as_v1alpha1, until_shown};
use super::users::{self, rule};
use super::widgets::{Widgets, run, run_as};
use crate::installed;

/// How often a ServiceAccount of gatehouse's namespace has asked for that.
fn asked(bed: &Bed, account: &str, what: &str) -> usize {
    let lines = Line::read_of(account, bed.cluster.audit_log().expect("it is kept"));
    lines.iter().filter(|line| line.what() == what && line.code() < 300).count()
}

/// A leader with the rights that are shipped, and without a setting of its own.
pub fn a_leader_has_kubernetes_move_our_objects_to_v1(bed: &Bed) {
    let _turn = bed.turn();
    let namespace = made_as_v1alpha1(bed);
    let gate = bed.start_gate(&leading_by_default(bed)).unwrap_or_else(|error| panic!("{error}"));
    let plurals = KINDS.iter().map(|kind| kind.names().plural);
    let migrations: Vec<_> =
        plurals.clone().map(|plural| format!("{plural}.gatehouse.dev.gatehouse")).collect();
    let of_each = [("tdsets", "shop-0"), ("etcdclusters", "main-0")];
    let objects = of_each.map(|(plural, name)| format!("{}/{name}", of("v1", &namespace.name, plural)));
    hurried(bed, &migrations, &objects, || {
        within(PATIENCE, || {
            let left: Vec<_> = plurals.clone().filter(|plural| !is_migrated(bed, plural)).collect();
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}: {}", gate.log().end())) }
        });
    });
    are_all_v1(&namespace);
    for plural in plurals {
        // Of the third kind there is no object.
        let (name, is_asked) = (format!("{plural}.gatehouse.dev"), plural != "databasemigrations");
        let lines = gate.log().from_the_start()();
        let told = lines.iter().filter(|line| line["definition"] == *name);
        let told: Vec<_> = told.filter_map(|line| line["message"].as_str()).collect();
        let of_kubernetes: Vec<_> = told.iter().filter(|text| text.contains("Kubernetes")).collect();
        let last = "Kubernetes has written the objects: every one is looked at";
        assert_eq!(of_kubernetes.last().is_some_and(|text| **text == last), is_asked, "{name}: {told:?}");
        assert!(of_kubernetes.windows(2).all(|two| two[0] != two[1]), "said once: {told:?}");
        let definition = bed.objects.at(&installed::definition(plural));
        assert_eq!(condition(&definition, "StorageMigrating").is_null(), !is_asked, "{name}");
        assert_eq!(asked_for(bed, &name), None, "it is taken away");
        until_shown(&gate, &format!("gatehouse_storage_delegated{{definition=\"{name}\"}} 0"));
    }
    for (verb, most) in [("create", 2), ("delete", 2), ("get", usize::MAX)] {
        let count = asked(bed, "gatehouse", &format!("{verb} storageversionmigrations"));
        assert!((2..=most).contains(&count), "{verb}: {count}");
    }
    drop(gate);
    installed::clear(bed);
}

/// Kubernetes stops at the first object that it cannot write. gatehouse goes on by itself from there, also when it is run
/// again, unless Kubernetes is named.
pub fn what_kubernetes_fails_at_is_left_to_gatehouse(bed: &Bed) {
    let widgets = Widgets::stored_as_v1alpha1(bed, "once", true);
    widgets.make(20);
    widgets.store_as_v1();
    let lift = widgets.refuse("widget-007");
    let account = "asks-kubernetes";
    let rules = [
        rule(&widgets.group, &["widgets", "widgets/status"], &["get", "list", "patch"]),
        rule(
            "apiextensions.k8s.io",
            &["customresourcedefinitions", "customresourcedefinitions/status"],
            &["get", "patch"],
        ),
        rule("storagemigration.k8s.io", &["storageversionmigrations"], &["create", "get", "delete"]),
    ];
    let read = format!("/apis/{}/v1/widgets", widgets.group);
    let kubeconfig = users::account(bed, (NAMESPACE, account), &rules, &read);
    let by = |writer: &str| {
        let words = ["migrate", &widgets.name, "--grace", "0s", "--rewrite-by", writer];
        hurried_for(&widgets, &format!("{}.gatehouse", widgets.name), || run_as(&kubeconfig, &words))
    };
    let are_asked = |wanted: usize| {
        for verb in ["create", "delete"] {
            assert_eq!(asked(bed, account, &format!("{verb} storageversionmigrations")), wanted, "{verb}");
        }
    };
    for is_first in [true, false] {
        let ran = by("auto");
        assert_eq!(ran.code, 1, "{ran:?}");
        let why = "gatehouse writes the objects: Kubernetes failed: ";
        assert_eq!(ran.errors.contains(why), is_first, "{ran:?}");
        assert!(ran.errors.contains("widget-007") && ran.errors.contains("not this one"), "{ran:?}");
        assert_eq!(widgets.in_etcd("v1alpha1"), ["widget-007"], "all others are written");
        assert_eq!(widgets.stored_versions(), json!(["v1alpha1", "v1"]));
        let definition = widgets.definition();
        assert_eq!(condition(&definition, "StorageMigrating")["reason"], "MigrationFailed");
        assert_eq!(condition(&definition, "StorageMigrated")["reason"], "Kept");
        are_asked(1);
    }
    lift();
    let ran = by("kubernetes");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.errors.contains("Kubernetes has written the objects"), "{ran:?}");
    assert!(ran.errors.contains("pass 2: 21 objects: 0 rewritten"), "by Kubernetes: {ran:?}");
    assert!(!ran.errors.contains("pass 3: "), "one pass of gatehouse is enough: {ran:?}");
    assert_eq!((widgets.in_etcd("v1alpha1"), widgets.stored_versions()), (Vec::new(), json!(["v1"])));
    assert_eq!(condition(&widgets.definition(), "StorageMigrated")["status"], "True");
    are_asked(2);
}

/// Only who names Kubernetes needs the right to ask it.
pub fn who_may_not_ask_kubernetes_writes(bed: &Bed) {
    let widgets = Widgets::stored_as_v1alpha1(bed, "unasked", true);
    widgets.make(5);
    widgets.store_as_v1();
    let kubeconfig = users::migrator(&widgets, (NAMESPACE, "asks-gatehouse"));
    let by =
        |writer| run_as(&kubeconfig, &["migrate", &widgets.name, "--grace", "0s", "--rewrite-by", writer]);
    let ran = by("kubernetes");
    assert_eq!(ran.code, 1, "{ran:?}");
    let missing = "this needs the rights to create storageversionmigrations of storagemigration.k8s.io, get ";
    assert!(ran.errors.contains(missing), "{ran:?}");
    assert_eq!(widgets.in_etcd("v1alpha1").len(), 5, "nothing was begun");

    let ran = by("auto");
    let why = "unable to create storageversionmigrations of storagemigration.k8s.io: ";
    has_written_five(&widgets, &ran, why);
}

/// Where no controller of Kubernetes works, its migration never begins. It is given three minutes, and taken away.
pub fn a_migration_that_nothing_carries_out_is_taken_back(bed: &Bed) {
    let widgets = Widgets::stored_as_v1alpha1(bed, "unheard", true);
    widgets.make(5);
    widgets.store_as_v1();
    let ran = run(bed, &["migrate", &widgets.name, "--grace", "0s", "--rewrite-by", "auto"]);
    assert!(ran.errors.contains("waiting for Kubernetes to begin"), "{ran:?}");
    has_written_five(&widgets, &ran, "nothing carries out StorageVersionMigrations");
    assert_eq!(asked_for(bed, &widgets.name), None, "it is taken away");
}
