//! A migration that comes after another one.

use kit::bed::{Bed, Namespace};
use kit::objects::condition;
use kit::pods::Node;
use serde_json::{Value, json};

use super::{KIND, schema, sqlite, until_ready};

pub fn what_is_required_up_to_a_script_is_awaited_up_to_it(bed: &Bed) {
    let namespace = bed.namespace();
    let node = Node::new(&namespace);
    let scripts = |count: usize| -> Value {
        let all = [schema("1", "CREATE TABLE a (b INTEGER)"), schema("2", "CREATE TABLE c (d INTEGER)")];
        all[..count].to_vec().into()
    };
    namespace.create(&sqlite("base", &scripts(1), &json!({})));
    assert_eq!(node.run(&node.next_pod()), 0);
    until_ready(&namespace, "base", "True", "Applied");

    // What is required is ready, and does not have the script.
    let after = json!({"requires": [{"name": "base", "minId": "2"}]});
    namespace.create(&sqlite("shop", &json!([schema("1", "CREATE TABLE e AS SELECT d FROM c")]), &after));
    until_waiting(&namespace, "DatabaseMigration base has no script 2");
    assert_eq!(node.pods(), 1, "nothing else was run");

    // It has the script, which has not run.
    namespace.change(&format!("{KIND}/base"), &json!({"spec": {"scripts": scripts(2)}}));
    let pod = node.next_pod();
    assert_eq!(pod.object["metadata"]["labels"]["app.kubernetes.io/instance"], "base");
    until_waiting(&namespace, "DatabaseMigration base is not ready");
    assert_eq!(node.pods(), 2, "nothing else was run");
    assert_eq!(node.run(&pod), 0);
    assert_eq!(node.run(&node.next_pod()), 0);
    until_ready(&namespace, "shop", "True", "Applied");
}

/// Waits until the second one says that this holds it up.
#[track_caller]
fn until_waiting(namespace: &Namespace, why: &str) {
    namespace.bed.objects.until(&format!("{KIND}/shop"), &namespace.name, |found| {
        let ready = condition(found, "Ready");
        let is_held_up = ready["reason"] == "RequirementNotReady" && ready["message"] == why;
        if is_held_up { Ok(()) } else { Err(format!("Ready is {ready}, and not for {why}")) }
    });
}

pub fn a_ring_of_requirements_is_said(bed: &Bed) {
    let namespace = bed.namespace();
    let node = Node::new(&namespace);
    let create = |name: &str, required: &str| {
        let script = schema("1", &format!("CREATE TABLE {name} (b INTEGER)"));
        namespace.create(&sqlite(name, &json!([script]), &json!({"requires": [{"name": required}]})));
    };
    for (name, required) in [("red", "green"), ("green", "blue"), ("blue", "red")] {
        create(name, required);
    }
    create("outside", "red");
    for (name, ring) in [
        ("red", "red requires green requires blue requires red"),
        ("green", "green requires blue requires red requires green"),
        ("blue", "blue requires red requires green requires blue"),
    ] {
        let blocked = until_ready(&namespace, name, "False", "RequirementCycle");
        let ready = condition(&blocked, "Ready");
        let message = ready["message"].as_str().unwrap();
        assert!(message.contains(ring), "{message}");
        assert_eq!(condition(&blocked, "Stalled")["status"], "True", "{blocked}");
    }
    until_ready(&namespace, "outside", "False", "RequirementNotReady");
    assert_eq!(node.pods(), 0, "nothing is run");

    namespace.change(&format!("{KIND}/blue"), &json!({"spec": {"requires": null}}));
    for name in ["blue", "green", "red", "outside"] {
        let pod = node.next_pod();
        assert_eq!(pod.object["metadata"]["labels"]["app.kubernetes.io/instance"], name);
        assert_eq!(node.run(&pod), 0);
        until_ready(&namespace, name, "True", "Applied");
    }
}
