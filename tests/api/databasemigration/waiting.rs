//! Pods that wait for a script.

use std::process::{Child, Command, Stdio};

use kit::bed::{Bed, Namespace};
use kit::objects::{Ask, Outcome};
use kit::pods::Node;
use kit::wait::eventually;
use serde_json::{Value, json};

use super::{KIND, schema, sqlite, until_ready};

const LABEL: &str = "gatehouse.dev/wait-for-migration";

/// A pod of an application, which asks to wait for a script of the series `shop`.
pub fn pod(name: &str, script: &str) -> Value {
    let wait = json!({"database": {"engine": "SQLite", "file": {"claimName": "data", "path": "shop.db"}},
        "history": {"series": "shop"}, "script": script});
    let container = |name: &str| json!({"name": name, "image": "gatehouse.dev/none"});
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {LABEL: "true"}, "annotations": {LABEL: wait.to_string()}},
        "spec": {"initContainers": [container("prepare")], "containers": [container("app")]}})
}

/// Has the pods of a namespace ask, by that policy, and waits until they do.
pub fn let_pods_ask(namespace: &Namespace, policy: &str) {
    let path = format!("/api/v1/namespaces/{}", namespace.name);
    namespace.bed.objects.must(Ask::patch(path, json!({"metadata": {"labels": {LABEL: policy}}})));
    let mut asked = pod("asked", "1");
    asked["metadata"]["annotations"] = json!({});
    eventually(|| match create(namespace, &asked, "?dryRun=All") {
        Err(refusal) if refusal.message.contains(LABEL) => Ok(()),
        other => Err(format!("the gate is not asked: {other:?}")),
    });
}

pub fn create(namespace: &Namespace, pod: &Value, query: &str) -> Outcome {
    let path = format!("/api/v1/namespaces/{}/pods{query}", namespace.name);
    namespace.bed.objects.one(Ask::post(path, pod.clone()))
}

pub fn init_containers(pod: &Value) -> Vec<&str> {
    let containers = pod["spec"]["initContainers"].as_array().expect("init containers");
    containers.iter().map(|container| container["name"].as_str().expect("a name")).collect()
}

/// The program that the first init container runs, with its claim in this node's folder.
fn started(node: &Node, pod: &Value) -> Child {
    let container = &pod["spec"]["initContainers"][0];
    let words = container["args"].as_array().expect("options").iter();
    let claim = node.folder.join("claims/data");
    let words = words.map(|word| {
        let word = word.as_str().expect("a text");
        word.replace("=/database/", &format!("={}/", claim.display()))
    });
    Command::new(kit::gatehouse!())
        .args(["migrate", "wait"])
        .args(words)
        .env_clear()
        .stderr(Stdio::null())
        .spawn()
        .expect("the program")
}

pub fn a_pod_waits_for_the_script_that_it_names(bed: &Bed) {
    let namespace = bed.namespace();
    namespace.until_created("serviceaccount/default");
    let plain = create(&namespace, &pod("plain", "2"), "").expect("a pod");
    assert_eq!(init_containers(&plain), ["prepare"], "of a namespace without the label");
    let_pods_ask(&namespace, "Fail");

    let refused = create(&namespace, &pod("refused", "not an id"), "").expect_err("it is refused");
    let expected = format!("metadata.annotations[{LABEL}].script: Invalid value");
    assert!(refused.message.contains(&expected), "{}", refused.message);
    let mut unasking = pod("unasking", "2");
    unasking["metadata"]["labels"] = json!({});
    assert_eq!(init_containers(&create(&namespace, &unasking, "").expect("a pod")), ["prepare"]);

    let application = create(&namespace, &pod("application", "2"), "").expect("a pod");
    assert_eq!(init_containers(&application), ["wait-for-migration", "prepare"]);
    let node = Node::new(&namespace);
    let mut waiting = started(&node, &application);
    let scripts = |count: usize| -> Value {
        let all = [schema("1", "CREATE TABLE a (b INTEGER)"), schema("2", "CREATE TABLE c (d INTEGER)")];
        all[..count].to_vec().into()
    };
    namespace.create(&sqlite("shop", &scripts(1), &json!({})));
    assert_eq!(node.run(&node.next_pod()), 0);
    until_ready(&namespace, "shop", "True", "Applied");
    assert_eq!(waiting.try_wait().expect("its state"), None, "the first script is not the awaited one");
    namespace.change(&format!("{KIND}/shop"), &json!({"spec": {"scripts": scripts(2)}}));
    assert_eq!(node.run(&node.next_pod()), 0);
    assert!(waiting.wait().expect("its end").success());
}
