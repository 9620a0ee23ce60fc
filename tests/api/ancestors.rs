//! The manifests of the kinds that ours descend from: converted, applied, worked, and read back in both versions.

use kit::bed::{Bed, Namespace};
use kit::call::Call;
use kit::root;
use kit::wait::eventually;
use serde_json::{Value, json};

use crate::Test;

pub const TESTS: &[Test] = &[
    ("their_manifests_live_on_as_v1", |bed| live_on(bed, "v1")),
    ("their_manifests_live_on_as_v1alpha1", |bed| live_on(bed, "v1alpha1")),
];

/// What `gatehouse convert` makes of all of them.
fn converted(to: &str) -> Vec<Value> {
    let folder = root().join("examples/ancestors");
    let words = ["convert", "--explicit", "--to", to, "-o", "json", "-f", folder.to_str().expect("UTF-8")];
    let output = Call::gatehouse(kit::gatehouse!(), &words).ok();
    let list: Value = serde_json::from_str(&output).expect("JSON");
    list["items"].as_array().expect("a List").clone()
}

/// What is asked for is there, whatever has been added.
fn assert_holds(found: &Value, asked: &Value, what: &str) {
    match (found, asked) {
        (Value::Object(found), Value::Object(asked)) => {
            for (key, value) in asked {
                assert_holds(found.get(key).unwrap_or(&Value::Null), value, &format!("{what}.{key}"));
            }
        }
        _ => assert_eq!(found, asked, "{what}"),
    }
}

fn live_on(bed: &Bed, version: &str) {
    let namespace = bed.namespace();
    for mut object in converted(version) {
        object["metadata"]["namespace"] = json!(namespace.name);
        assert_eq!(object["apiVersion"], format!("gatehouse.dev/{version}"));
        namespace.kubectl(&["apply"]).input(object.to_string()).ok();
    }
    for served in ["v1", "v1alpha1"] {
        for asked in converted(served) {
            let (kind, name) = (asked["kind"].as_str().unwrap(), asked["metadata"]["name"].as_str().unwrap());
            let found = namespace.get(&format!("{}s.{served}.gatehouse.dev", kind.to_lowercase()), name);
            assert_holds(&found["spec"], &asked["spec"], &format!("{kind} {name} as {served}: spec"));
            if kind == "TDSet" {
                is_worked(&namespace, name);
            }
        }
    }
}

fn is_worked(namespace: &Namespace, name: &str) {
    namespace.until_created(&format!("deployment/{name}"));
    // The status is written after the Deployment.
    let deployment = eventually(|| {
        let scheduled = namespace.get("tdset", name)["status"]["scheduledReplicas"].clone();
        let deployment = namespace.get("deployment", name);
        let count = &deployment["spec"]["replicas"];
        if *count == scheduled { Ok(deployment) } else { Err(format!("{name}: {count} of {scheduled}")) }
    });
    assert_eq!(
        deployment["spec"]["template"]["spec"]["containers"][0]["image"], "crccheck/hello-world",
        "{name}"
    );
}
