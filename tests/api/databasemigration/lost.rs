//! Runs beside a real Job controller, which deletes pods before it says that a Job has failed.

use kit::bed::{Bed, Namespace};
use kit::objects::condition;
use kit::pods::{Node, Pod};
use serde_json::{Value, json};

use super::{KIND, schema, sqlite, until_ready};

fn change_job(namespace: &Namespace, pod: &Pod, change: &Value) {
    namespace.change(&format!("job/{}", pod.job), change);
}

fn name(pod: &Pod) -> String {
    format!("pod/{}", pod.object["metadata"]["name"].as_str().expect("a name"))
}

fn until_gone(namespace: &Namespace, pod: &Pod) {
    namespace.until_gone(&name(pod));
}

fn message(object: &Value) -> String {
    condition(object, "Ready")["message"].as_str().expect("a message").to_owned()
}

/// A file with one table, and a second one that is to be made.
fn scripts(count: usize) -> Value {
    let all = [schema("1", "CREATE TABLE a (b INTEGER)"), schema("2", "CREATE TABLE c (d INTEGER)")];
    all[..count].to_vec().into()
}

pub fn a_report_counts_while_a_sidecar_is_at_work(bed: &Bed) {
    let namespace = bed.namespace();
    let node = Node::new(&namespace);
    namespace.create(&sqlite("shop", &scripts(1), &json!({})));
    let pod = node.next_pod();
    assert_eq!(node.run_beside_a_sidecar(&pod), 0);
    until_ready(&namespace, "shop", "True", "Applied");
    let job = namespace.get("jobs", &pod.job);
    assert_eq!(job["status"]["active"], 1, "{job}");
    // What follows does not wait for the sidecar either.
    namespace.change(&format!("{KIND}/shop"), &json!({"spec": {"scripts": scripts(2)}}));
    assert_eq!(node.run(&node.next_pod()), 0);
    let done = until_ready(&namespace, "shop", "True", "Applied");
    assert_eq!((&done["status"]["appliedCount"], node.pods()), (&json!(2), 2));
}

pub fn a_late_run_is_what_the_history_says_it_is(bed: &Bed) {
    let namespace = bed.namespace();
    let node = Node::new(&namespace);
    let late = json!({"spec": {"activeDeadlineSeconds": 1}});
    namespace.create(&sqlite("shop", &scripts(1), &json!({})));
    // It does all, and its pod is gone before a kubelet has said so.
    let pod = node.next_pod();
    assert_eq!(node.execute(&pod).0, 0);
    change_job(&namespace, &pod, &late);
    until_gone(&namespace, &pod);
    assert_eq!(node.run(&node.next_pod()), 0);
    let done = until_ready(&namespace, "shop", "True", "Applied");
    assert_eq!((&done["status"]["lastRun"]["purpose"], node.pods()), (&json!("Verify"), 2));

    // It has done nothing.
    namespace.change(&format!("{KIND}/shop"), &json!({"spec": {"scripts": scripts(2)}}));
    let pod = node.next_pod();
    change_job(&namespace, &pod, &late);
    until_gone(&namespace, &pod);
    assert_eq!(node.run(&node.next_pod()), 0);
    let failed = until_ready(&namespace, "shop", "False", "DeadlineExceeded");
    let said = message(&failed);
    assert!(said.ends_with("1 scripts are pending, as the history says since"), "{said}");
    assert_eq!(condition(&failed, "HistoryConsistent")["status"], "True", "{failed}");
}

pub fn a_run_without_labels_is_still_the_run(bed: &Bed) {
    let namespace = bed.namespace();
    let node = Node::new(&namespace);
    namespace.create(&sqlite("shop", &scripts(1), &json!({})));
    let pod = node.next_pod();
    until_ready(&namespace, "shop", "False", "Running");
    let unlabelled = json!({"metadata": {"labels": {"gatehouse.dev/owner-uid": null, "app.kubernetes.io/managed-by": null,
        "app.kubernetes.io/name": null, "app.kubernetes.io/instance": null}}});
    let mut bare = unlabelled.clone();
    bare["metadata"]["annotations"] =
        json!({"gatehouse.dev/run-key": null, "gatehouse.dev/run-number": null});
    change_job(&namespace, &pod, &bare);
    namespace.change(&name(&pod), &unlabelled);
    // The operator has looked since, and starts no run beside it.
    namespace.change(&format!("{KIND}/shop"), &json!({"spec": {"scripts": scripts(2)}}));
    until_ready(&namespace, "shop", "False", "Running");
    let jobs = namespace.bed.objects.list("jobs", &namespace.name, "").expect("jobs");
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    assert_eq!(node.run(&pod), 0);
    let next = node.next_pod();
    assert_ne!(next.job, pod.job);
    assert_eq!(node.run(&next), 0);
    let done = until_ready(&namespace, "shop", "True", "Applied");
    assert_eq!(done["status"]["appliedCount"], 2);
}

pub fn a_run_whose_job_is_suspended_says_so(bed: &Bed) {
    let namespace = bed.namespace();
    let node = Node::new(&namespace);
    namespace.create(&sqlite("shop", &scripts(1), &json!({})));
    let pod = node.next_pod();
    until_ready(&namespace, "shop", "False", "Running");
    change_job(&namespace, &pod, &json!({"spec": {"suspend": true}}));
    let held = until_ready(&namespace, "shop", "False", "PodNotStarted");
    let said = message(&held);
    assert!(said.ends_with(&format!("set spec.suspend of Job {} to false", pod.job)), "{said}");
    until_gone(&namespace, &pod);
    change_job(&namespace, &pod, &json!({"spec": {"suspend": false}}));
    let again = node.next_pod();
    assert_eq!((&again.job, node.run(&again)), (&pod.job, 0));
    until_ready(&namespace, "shop", "True", "Applied");
}
