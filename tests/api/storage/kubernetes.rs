//! What the migrator of Kubernetes itself leaves behind: `StorageVersionMigration`, on by default from 1.37.

use std::time::Duration;

use kit::bed::Bed;
use kit::objects::{Ask, condition};
use kit::wait::within;
use serde_json::json;

use super::widgets::{Widgets, run};

/// It collects what it is to write from the garbage collector, which looks for new definitions every half a minute.
const PATIENCE: Duration = Duration::from_mins(5);

/// It drops a version from `storedVersions` of which etcd still has an object. gatehouse does not believe that.
pub fn what_kubernetes_itself_fails_to_write_is_written(bed: &Bed) {
    let widgets = Widgets::stored_as_v1alpha1(bed, "kubernetes", true);
    widgets.make(20);
    widgets.store_as_v1();
    let lift = widgets.refuse("widget-007");
    bed.objects.must(Ask::post(
        "/apis/storagemigration.k8s.io/v1/storageversionmigrations",
        json!({"apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration",
            "metadata": {"name": widgets.name},
            "spec": {"resource": {"group": widgets.group, "resource": "widgets"}}}),
    ));
    within(PATIENCE, || {
        let said = condition(&widgets.definition(), "StorageMigrating");
        if said["reason"] == "MigrationFailed" { Ok(()) } else { Err(said.to_string()) }
    });
    assert_eq!(widgets.stored_versions(), json!(["v1"]), "Kubernetes says that etcd has nothing else");
    assert!(widgets.in_etcd("v1alpha1").contains(&"widget-007".to_owned()));

    let migrate = || run(bed, &["migrate", &widgets.name, "--grace", "0s"]);
    let ran = migrate();
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.errors.contains("widget-007") && ran.errors.contains("not this one"), "{ran:?}");
    assert_eq!(widgets.in_etcd("v1alpha1"), ["widget-007"], "all others are written");
    assert_eq!(condition(&widgets.definition(), "StorageMigrated")["status"], "False");
    lift();
    let ran = migrate();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(widgets.in_etcd("v1alpha1"), [""; 0]);
    assert_eq!(condition(&widgets.definition(), "StorageMigrated")["status"], "True");
}
