//! Objects of others under our names, and several schedules for one workload.

use gatehouse::runtime::clock;
use kit::bed::{Bed, Namespace};
use kit::wait::eventually;
use serde_json::{Value, json};

use super::{
    TDSETS, delete, for_workload, foreign, label, looks, message, notes, patch, tdset, until_condition,
};
use crate::Test;

pub const TESTS: &[Test] = &kit::tests![
    a_foreign_deployment_is_never_adopted,
    a_foreign_service_is_never_adopted,
    of_two_schedules_the_older_has_the_workload,
    a_made_deployment_is_no_other_owners_workload,
    a_schedule_that_cannot_make_its_deployment_holds_no_other_up,
];

/// Waits until a TDSet has been looked at, from beginning to end, since this was asked. Of two looks that end, one
/// after the other, the second begins after the first label.
#[track_caller]
fn until_looked_at(namespace: &Namespace, name: &str) {
    for colour in ["red", "blue"] {
        let looks = looks(namespace);
        label(namespace, &format!("tdset/{name}"), colour);
        looks.until_over(&[name]);
    }
}

fn a_foreign_deployment_is_never_adopted(bed: &Bed) {
    let namespace = bed.namespace();
    foreign(&namespace, "taken", 2);
    let before = namespace.get("deployment", "taken");
    namespace.create(&tdset("taken", &json!({})));
    until_condition(&namespace, "taken", "Conflict", "True", "NameTaken");
    until_looked_at(&namespace, "taken");
    let after = namespace.get("deployment", "taken");
    assert_eq!(before["spec"], after["spec"]);
    assert!(after["metadata"].get("ownerReferences").is_none());
    namespace.delete("deployment/taken");
    until_condition(&namespace, "taken", "Conflict", "False", "NoConflict");
    namespace.until("deployment/taken", "{.spec.replicas}", "1");
    assert_eq!(notes(&namespace, "taken", "NameTaken").len(), 1, "it is reported once");
}

fn a_foreign_service_is_never_adopted(bed: &Bed) {
    let namespace = bed.namespace();
    let ports = json!([{"port": 1234}]);
    let metadata = json!({"name": "taken"});
    namespace.create(
        &json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": ports}}),
    );
    let before = namespace.get("service", "taken");
    let mut object = tdset("taken", &json!({}));
    object["spec"]["target"]["create"]["servicePort"] = json!(80);
    namespace.create(&object);
    let object = until_condition(&namespace, "taken", "Conflict", "True", "NameTaken");
    assert_eq!(message(&object, "Conflict"), "Service taken exists and is not controlled by this object");
    // The count does not wait for it.
    namespace.until("deployment/taken", "{.spec.replicas}", "1");
    until_looked_at(&namespace, "taken");
    let after = namespace.get("service", "taken");
    assert_eq!(before["spec"], after["spec"]);
    assert!(after["metadata"].get("ownerReferences").is_none());
    namespace.delete("service/taken");
    until_condition(&namespace, "taken", "Conflict", "False", "NoConflict");
    namespace.until("service/taken", "{.spec.ports[0].port}", "80");
}

/// What decides who is older: seconds, and then the uid.
fn age(object: &Value) -> (String, String) {
    let metadata = &object["metadata"];
    let text = |field: &str| metadata[field].as_str().unwrap().to_owned();
    (text("creationTimestamp"), text("uid"))
}

/// Waits until what is created is younger for sure: ages are whole seconds.
fn until_younger(namespace: &Namespace, name: &str) {
    let (created, _) = age(&namespace.get(TDSETS, name));
    eventually(|| if clock::now().to_string()[..19] > created[..19] { Ok(()) } else { Err(created.clone()) });
}

fn of_two_schedules_the_older_has_the_workload(bed: &Bed) {
    let namespace = bed.namespace();
    foreign(&namespace, "web", 1);
    for (name, replicas) in [("red", 3), ("blue", 5)] {
        let fields = json!({"defaultReplicas": replicas});
        namespace.create(&for_workload(name, "apps/v1", "Deployment", "web", &fields));
    }
    let is_red = age(&namespace.get(TDSETS, "red")) < age(&namespace.get(TDSETS, "blue"));
    let (older, younger) = if is_red { (("red", "3"), ("blue", "5")) } else { (("blue", "5"), ("red", "3")) };
    let object = until_condition(&namespace, younger.0, "Conflict", "True", "OtherSchedule");
    let expected = format!("TDSet {} is older and scales Deployment web: the count is left to it", older.0);
    assert_eq!(message(&object, "Conflict"), expected);
    until_condition(&namespace, older.0, "Conflict", "False", "NoConflict");
    namespace.until("deployment/web", "{.spec.replicas}", older.1);
    delete(&namespace, older.0);
    namespace.until("deployment/web", "{.spec.replicas}", younger.1);
    until_condition(&namespace, younger.0, "Conflict", "False", "NoConflict");
}

fn a_made_deployment_is_no_other_owners_workload(bed: &Bed) {
    let namespace = bed.namespace();
    let fields = json!({"defaultReplicas": 5});
    let other = for_workload("other", "apps/v1", "Deployment", "maker", &fields);
    namespace.create(&other);
    until_condition(&namespace, "other", "Ready", "False", "TargetNotFound");
    until_younger(&namespace, "other");
    namespace.create(&tdset("maker", &json!({"defaultReplicas": 3})));
    namespace.until("deployment/maker", "{.spec.replicas}", "3");
    until_condition(&namespace, "other", "Conflict", "True", "ControlledByOther");
    until_condition(&namespace, "maker", "Conflict", "False", "NoConflict");
    patch(&namespace, "maker", &json!({"defaultReplicas": 4}));
    namespace.until("deployment/maker", "{.spec.replicas}", "4");
    // A younger one leaves it alone as well.
    delete(&namespace, "other");
    until_younger(&namespace, "maker");
    namespace.create(&other);
    until_condition(&namespace, "other", "Conflict", "True", "OtherSchedule");
    assert_eq!(namespace.get("deployment", "maker")["spec"]["replicas"], 4);
}

fn a_schedule_that_cannot_make_its_deployment_holds_no_other_up(bed: &Bed) {
    let namespace = bed.namespace();
    foreign(&namespace, "shop", 5);
    namespace.create(&tdset("shop", &json!({"defaultReplicas": 3})));
    until_condition(&namespace, "shop", "Conflict", "True", "NameTaken");
    until_younger(&namespace, "shop");
    namespace.create(&for_workload("hours", "apps/v1", "Deployment", "shop", &json!({})));
    namespace.until("deployment/shop", "{.spec.replicas}", "2");
    until_condition(&namespace, "hours", "Conflict", "False", "NoConflict");
    // Once it has made one, the younger one leaves that alone.
    namespace.delete("deployment/shop");
    namespace.until("deployment/shop", "{.spec.replicas}", "3");
    until_condition(&namespace, "hours", "Conflict", "True", "OtherSchedule");
    assert_eq!(namespace.get("deployment", "shop")["spec"]["replicas"], 3);
}
