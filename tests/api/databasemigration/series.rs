//! Several objects with one series of one history.

use gatehouse::runtime::clock;
use kit::bed::Bed;
use kit::kstatus::kstatus;
use kit::objects::condition;
use kit::pods::Node;
use kit::wait::eventually;
use serde_json::{Value, json};

use super::{KIND, schema, sqlite, until_ready};

/// What decides who is older: seconds, and then the uid.
fn age(object: &Value) -> (String, String) {
    let text = |field: &str| object["metadata"][field].as_str().unwrap().to_owned();
    (text("creationTimestamp"), text("uid"))
}

pub fn of_two_with_one_series_the_older_goes_on(bed: &Bed) {
    let namespace = bed.namespace();
    let node = Node::new(&namespace);
    let of = |name: &str, fields: &Value| {
        let script = schema("001", &format!("CREATE TABLE {name} (b INTEGER)"));
        let mut object = sqlite(name, &json!([script]), &json!({"history": {"series": "shop"}}));
        json_patch::merge(&mut object["spec"], fields);
        object
    };
    let suspended = json!({"suspend": true});
    let mut both = ["red", "blue"].map(|name| namespace.create(&of(name, &suspended)));
    both.sort_by_key(age);
    let [older, younger] = both.each_ref().map(|object| object["metadata"]["name"].as_str().unwrap());
    let blocked = until_ready(&namespace, younger, "False", "OtherMigration");
    assert_eq!((&blocked["status"]["phase"], kstatus(&blocked)), (&json!("Blocked"), "Failed"));
    let message = condition(&blocked, "Ready")["message"].as_str().unwrap().to_owned();
    assert!(
        message.starts_with(&format!("DatabaseMigration {older} is older and applies series shop")),
        "{message}"
    );
    until_ready(&namespace, older, "False", "Suspended");

    for name in [younger, older] {
        namespace.change(&format!("{KIND}/{name}"), &json!({"spec": {"suspend": null}}));
    }
    let pod = node.next_pod();
    assert_eq!(pod.object["metadata"]["labels"]["app.kubernetes.io/instance"], older);
    assert_eq!(node.run(&pod), 0);
    until_ready(&namespace, older, "True", "Applied");
    until_ready(&namespace, younger, "False", "OtherMigration");
    assert_eq!(node.pods(), 1, "nothing else was run");

    // A run that only reads does not block others, and others do not block it.
    let script = json!({"scripts": both[0]["spec"]["scripts"]});
    let mut reads = script.clone();
    reads["mode"] = json!("Plan");
    namespace.create(&of("reader", &reads));
    assert_eq!(node.run(&node.next_pod()), 0);
    until_ready(&namespace, "reader", "True", "Planned");
    namespace.change(&format!("{KIND}/{younger}"), &json!({"spec": {"history": {"series": "other"}}}));
    assert_eq!(node.run(&node.next_pod()), 0);
    let done = until_ready(&namespace, younger, "True", "Applied");
    assert_eq!(done["status"]["appliedCount"], 1);

    // The next in line has its turn when the older one is gone.
    let (created, _) = age(&both[0]);
    eventually(|| {
        let now = clock::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        if now > created { Ok(()) } else { Err("it would be as old") }
    });
    namespace.create(&of("green", &script));
    until_ready(&namespace, "green", "False", "OtherMigration");
    namespace.delete(&format!("{KIND}/{older}"));
    assert_eq!(node.run(&node.next_pod()), 0);
    until_ready(&namespace, "green", "True", "Applied");
    assert_eq!(node.pods(), 4);
}
