//! What a person has approved, whatever becomes of where it came from.

use kit::bed::{Bed, Namespace};
use kit::objects::condition;
use kit::pods::Node;
use serde_json::{Value, json};

use super::dying_operator::rows;
use super::{KIND, config_map, sqlite, until_ready};

/// The hash of another plan than that one, once a person is asked to approve it.
#[track_caller]
fn until_asked(namespace: &Namespace, before: &str) -> String {
    namespace.bed.objects.until(&format!("{KIND}/shop"), &namespace.name, |found| {
        let (ready, plan) = (condition(found, "Ready"), &found["status"]["plan"]);
        match plan["hash"].as_str() {
            Some(hash) if ready["reason"] == "AwaitingApproval" && hash != before => Ok(hash.to_owned()),
            _ => Err(format!("no approval is asked for another plan than {before:?}: {ready}, {plan}")),
        }
    })
}

pub fn what_was_approved_is_run_whatever_becomes_of_its_source(bed: &Bed) {
    let namespace = bed.namespace();
    let node = Node::new(&namespace);
    let text = |table: &str| format!("CREATE TABLE {table} (b INTEGER)");
    config_map(&namespace, "sql", "001.sql", &text("planned"));
    let edit = |table: &str| namespace.change("configmap/sql", &json!({"data": {"001.sql": text(table)}}));
    let change = |spec: Value| namespace.change(&format!("{KIND}/shop"), &json!({ "spec": spec }));
    let script =
        json!({"id": "001", "kind": "Schema", "up": {"configMapKeyRef": {"name": "sql", "key": "001.sql"}}});
    namespace.create(&sqlite("shop", &json!([script]), &json!({"approval": {"required": true}})));
    assert_eq!(node.run(&node.next_pod()), 0);
    let planned = until_asked(&namespace, "");

    // An edit before the approval is another plan, which the approval of the first one does not cover.
    edit("approved");
    assert_eq!(node.run(&node.next_pod()), 0);
    let approved = until_asked(&namespace, &planned);
    change(json!({"approval": {"planHash": planned}}));
    until_ready(&namespace, "shop", "False", "AwaitingApproval");
    assert_eq!(node.pods(), 2, "nothing else was run");

    // An edit after the approval changes nothing of it, neither before its run is created nor after that.
    change(json!({"suspend": true, "approval": {"planHash": approved}}));
    let suspended = until_ready(&namespace, "shop", "False", "Suspended");
    assert_eq!(condition(&suspended, "Approved")["status"], "True", "{suspended}");
    edit("edited");
    change(json!({"suspend": null}));
    let pod = node.next_pod();
    edit("edited_again");
    assert_eq!(node.run(&pod), 0);

    // By now the edit is one of an applied script.
    assert_eq!(node.run(&node.next_pod()), 20);
    let blocked = until_ready(&namespace, "shop", "False", "ChecksumMismatch");
    assert_eq!(blocked["status"]["appliedCount"], 1);
    let made = "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE TABLE % (b INTEGER)'";
    assert_eq!(rows(&node.folder.join("claims/data/shop.db"), made), ["approved"]);
}
