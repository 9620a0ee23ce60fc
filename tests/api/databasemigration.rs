//! A DatabaseMigration, from the gate to a database and back into its status.
//!
//! No node is there: a test is the kubelet ([`pod`]). It writes down what the volumes of the pod would have, runs the
//! program that the pod would run, with the arguments of the pod, and reports its exit as a kubelet does. The database is
//! a file of SQLite.

mod approval;
pub mod dying_operator;
mod lost;
mod requirement;
mod series;
pub mod waiting;

use kit::bed::{Bed, Namespace};
use kit::kstatus::kstatus;
use kit::objects::{Ask, Refusal, condition};
use kit::pods::Node;
use serde_json::{Value, json};

use crate::Test;
use crate::policies::{author, grant};

pub const TESTS: &[Test] = &kit::tests![
    scripts_are_applied_once_by_jobs,
    a_script_that_was_edited_after_it_was_applied_is_named,
    a_script_that_fails_leaves_nothing_and_may_be_corrected,
    nothing_is_run_without_approval,
    approval::what_was_approved_is_run_whatever_becomes_of_its_source,
    a_deletion_takes_back_what_it_is_asked_to,
    who_may_not_read_a_secret_may_not_have_it_used,
    the_old_version_is_carried_out_as_well,
    what_has_the_name_of_a_run_is_named_and_left_alone,
    requirement::what_is_required_up_to_a_script_is_awaited_up_to_it,
    requirement::a_ring_of_requirements_is_said,
    lost::a_report_counts_while_a_sidecar_is_at_work,
    lost::a_late_run_is_what_the_history_says_it_is,
    lost::a_run_without_labels_is_still_the_run,
    lost::a_run_whose_job_is_suspended_says_so,
    series::of_two_with_one_series_the_older_goes_on,
    waiting::a_pod_waits_for_the_script_that_it_names,
];

const KIND: &str = "databasemigrations.v1.gatehouse.dev";

fn sqlite(name: &str, scripts: &Value, fields: &Value) -> Value {
    let mut object = json!({"apiVersion": "gatehouse.dev/v1", "kind": "DatabaseMigration", "metadata": {"name": name},
        "spec": {"database": {"engine": "SQLite", "file": {"claimName": "data", "path": "shop.db"}}, "scripts": scripts}});
    json_patch::merge(&mut object["spec"], fields);
    object
}

fn schema(id: &str, up: &str) -> Value {
    json!({"id": id, "kind": "Schema", "up": {"inline": up}})
}

fn config_map(namespace: &Namespace, name: &str, key: &str, text: &str) {
    namespace.create(
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {key: text}}),
    );
}

/// Waits until Ready has that status and reason.
#[track_caller]
fn until_ready(namespace: &Namespace, name: &str, status: &str, reason: &str) -> Value {
    namespace.bed.objects.until(&format!("{KIND}/{name}"), &namespace.name, |found| {
        let ready = condition(found, "Ready");
        let is_current = found["status"]["observedGeneration"] == found["metadata"]["generation"];
        if is_current && ready["status"] == status && ready["reason"] == reason {
            Ok(found.clone())
        } else {
            Err(format!("Ready of {name} is {ready}, and not {status} {reason}"))
        }
    })
}

fn scripts_are_applied_once_by_jobs(bed: &Bed) {
    let namespace = bed.namespace();
    let node = Node::new(&namespace);
    config_map(&namespace, "sql", "002.sql", "CREATE TABLE b (c INTEGER)");
    namespace.create(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "secret-sql"},
        "stringData": {"003.sql": "INSERT INTO a VALUES (1)"}}));
    let from_map =
        json!({"id": "002", "kind": "Schema", "up": {"configMapKeyRef": {"name": "sql", "key": "002.sql"}}});
    let from_secret = json!({"id": "003", "kind": "Data", "up": {"secretKeyRef": {"name": "secret-sql", "key": "003.sql"}}});
    let scripts = json!([schema("001", "CREATE TABLE a (b INTEGER)"), from_map, from_secret]);
    let created = namespace.create(&sqlite("shop", &scripts, &json!({})));
    assert_eq!(kstatus(&created), "InProgress", "{created}");

    let pod = node.next_pod();
    let job = namespace.get("jobs", &pod.job);
    assert_eq!(
        (&job["spec"]["backoffLimit"], &job["spec"]["podReplacementPolicy"]),
        (&json!(0), &json!("Failed"))
    );
    assert_eq!(job["metadata"]["ownerReferences"][0]["uid"], created["metadata"]["uid"]);
    let spec = &pod.object["spec"];
    assert_eq!(
        (&spec["automountServiceAccountToken"], &spec["restartPolicy"]),
        (&json!(false), &json!("Never"))
    );
    assert_eq!(spec["containers"][0]["command"], json!(["/gatehouse", "migrate", "run"]));
    let snapshot = namespace.get("configmaps", &pod.job);
    assert_eq!(snapshot["immutable"], true);
    assert!(!snapshot["data"].to_string().contains("INSERT"), "a Secret stays where it is: {snapshot}");
    let running = until_ready(&namespace, "shop", "False", "Running");
    assert_eq!(running["status"]["currentRun"]["job"], pod.job.as_str());
    assert_eq!(kstatus(&running), "InProgress", "{running}");

    assert_eq!(node.run(&pod), 0);
    let done = until_ready(&namespace, "shop", "True", "Applied");
    assert_eq!((&done["status"]["phase"], &done["status"]["appliedCount"]), (&json!("Succeeded"), &json!(3)));
    assert_eq!(kstatus(&done), "Current", "{done}");

    let mut more = scripts.as_array().unwrap().clone();
    more.push(schema("004", "CREATE TABLE d (e INTEGER)"));
    namespace.change(&format!("{KIND}/shop"), &json!({"spec": {"scripts": more}}));
    assert_eq!(node.run(&node.next_pod()), 0);
    let done = until_ready(&namespace, "shop", "True", "Applied");
    assert_eq!(done["status"]["appliedCount"], 4);
    let old = namespace.get("databasemigrations.v1alpha1.gatehouse.dev", "shop");
    assert_eq!(
        (&old["status"]["phase"], &old["spec"]["database"]["type"]),
        (&json!("Succeeded"), &json!("sqlite"))
    );
    assert_eq!(node.pods(), 2, "nothing else was run");
}

fn a_script_that_was_edited_after_it_was_applied_is_named(bed: &Bed) {
    let namespace = bed.namespace();
    let node = Node::new(&namespace);
    config_map(&namespace, "sql", "001.sql", "CREATE TABLE a (b INTEGER)");
    let script =
        json!({"id": "001", "kind": "Schema", "up": {"configMapKeyRef": {"name": "sql", "key": "001.sql"}}});
    namespace.create(&sqlite("shop", &json!([script]), &json!({})));
    let pod = node.next_pod();
    // What was planned is what runs, whatever becomes of where it came from.
    namespace.change("configmap/sql", &json!({"data": {"001.sql": "CREATE TABLE c (d INTEGER)"}}));
    assert_eq!(node.run(&pod), 0);
    // The edit is of a script that is applied by now.
    assert_eq!(node.run(&node.next_pod()), 20);
    let blocked = until_ready(&namespace, "shop", "False", "ChecksumMismatch");
    assert_eq!((&blocked["status"]["phase"], kstatus(&blocked)), (&json!("Blocked"), "Failed"));
    assert_eq!(condition(&blocked, "HistoryConsistent")["status"], "False");
    let ready = condition(&blocked, "Ready");
    let message = ready["message"].as_str().unwrap();
    let applied = blocked["status"]["applied"][0]["checksum"].as_str().unwrap();
    // What sha256sum says of the edited text.
    let edited = "sha256:7b347a71c0c2dd390b4a71f58079430db7599194db8524b91cf5897e1514fe81";
    for part in ["001", applied, edited] {
        assert_eq!(message.matches(part).count(), 1, "{part} in {message}");
    }
    namespace.change("configmap/sql", &json!({"data": {"001.sql": "CREATE TABLE a (b INTEGER)"}}));
    assert_eq!(node.run(&node.next_pod()), 0);
    let done = until_ready(&namespace, "shop", "True", "Applied");
    assert_eq!((&done["status"]["appliedCount"], node.pods()), (&json!(1), 3));
}

fn a_script_that_fails_leaves_nothing_and_may_be_corrected(bed: &Bed) {
    let namespace = bed.namespace();
    let node = Node::new(&namespace);
    let secret = "hunter2";
    let wrong = format!("CREATE TABLE a (b TEXT UNIQUE); INSERT INTO a VALUES ('{secret}'), ('{secret}')");
    namespace.create(&sqlite("shop", &json!([schema("001", &wrong)]), &json!({})));
    assert_eq!(node.run(&node.next_pod()), 20);
    let failed = until_ready(&namespace, "shop", "False", "ScriptFailed");
    assert_eq!((&failed["status"]["lastError"]["id"], kstatus(&failed)), (&json!("001"), "Failed"));
    assert!(!failed["status"].to_string().contains(secret) && !node.logs().contains(secret), "{failed}");
    namespace.change(
        &format!("{KIND}/shop"),
        &json!({"spec": {"scripts": [schema("001", "CREATE TABLE a (b TEXT)")]}}),
    );
    assert_eq!(node.run(&node.next_pod()), 0);
    let done = until_ready(&namespace, "shop", "True", "Applied");
    assert_eq!(done["status"].get("lastError"), None, "{done}");
    assert_eq!(node.pods(), 2);
}

fn nothing_is_run_without_approval(bed: &Bed) {
    let namespace = bed.namespace();
    let node = Node::new(&namespace);
    let author = author(&namespace);
    grant(&namespace, "jobs", "batch", &["jobs"]);
    // Of gatehouse's own verbs only `approve` is missing: `*` would have it.
    namespace.change(
        "role/ours",
        &json!({"rules": [{"apiGroups": ["gatehouse.dev"], "resources": ["*"],
        "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"]}]}),
    );
    let scripts = json!([schema("001", "CREATE TABLE a (b INTEGER)")]);
    namespace.create(&sqlite("shop", &scripts, &json!({"approval": {"required": true}})));
    assert_eq!(node.run(&node.next_pod()), 0);
    let waiting = until_ready(&namespace, "shop", "False", "AwaitingApproval");
    let plan = &waiting["status"]["plan"];
    assert_eq!(
        (&plan["pending"], &waiting["status"]["phase"]),
        (&json!(["001"]), &json!("AwaitingApproval"))
    );

    let path = namespace.path(&format!("{KIND}/shop"));
    let approve = json!({"spec": {"approval": {"planHash": plan["hash"]}}});
    let change = |to: &Value| author.one(Ask::patch(path.as_str(), to.clone()));
    refused(&|| change(&approve), "spec.approval.planHash: only users who may approve");
    refused(
        &|| change(&json!({"spec": {"approval": {"required": false}}})),
        "spec.approval.required: only users",
    );
    refused(&|| change(&json!({"spec": {"approval": null}})), "spec.approval.required: only users");
    assert_eq!(node.pods(), 1, "nothing else was run");

    namespace.change(
        "role/ours",
        &json!({"rules": [{"apiGroups": ["gatehouse.dev"], "resources": ["*"], "verbs": ["*"]}]}),
    );
    kit::wait::eventually(|| change(&approve).map_err(|refusal| refusal.message));
    assert_eq!(node.run(&node.next_pod()), 0);
    let done = until_ready(&namespace, "shop", "True", "Applied");
    assert_eq!(condition(&done, "Approved")["status"], "True");
}

fn a_deletion_takes_back_what_it_is_asked_to(bed: &Bed) {
    let namespace = bed.namespace();
    let node = Node::new(&namespace);
    let mut script = schema("001", "CREATE TABLE a (b INTEGER)");
    script["down"] = json!({"inline": "DROP TABLE a"});
    namespace.create(&sqlite("shop", &json!([script]), &json!({"deletionPolicy": "Revert"})));
    assert_eq!(node.run(&node.next_pod()), 0);
    until_ready(&namespace, "shop", "True", "Applied");
    namespace.delete(&format!("{KIND}/shop"));
    let pod = node.next_pod();
    until_ready(&namespace, "shop", "False", "Reverting");
    assert_eq!(node.run(&pod), 0);
    namespace.until_gone(&format!("{KIND}/shop"));
    // The table is gone, so that it can be made again.
    namespace.create(&sqlite("again", &json!([schema("001", "CREATE TABLE a (b INTEGER)")]), &json!({})));
    assert_eq!(node.run(&node.next_pod()), 0);
    until_ready(&namespace, "again", "True", "Applied");
}

/// The refusal of a policy. The authorizer may not have heard yet of what was granted a moment ago.
#[track_caller]
fn refused(ask: &dyn Fn() -> Result<Value, Refusal>, because: &str) {
    kit::wait::eventually(|| match ask() {
        Err(refusal) if refusal.code == 403 && refusal.message.contains(because) => Ok(()),
        other => Err(format!("{other:?}, and not {because}")),
    });
}

fn who_may_not_read_a_secret_may_not_have_it_used(bed: &Bed) {
    let namespace = bed.namespace();
    let author = author(&namespace);
    let server = |credentials: &str| {
        json!({"apiVersion": "gatehouse.dev/v1", "kind": "DatabaseMigration", "metadata": {"name": "shop"},
            "spec": {"suspend": true, "scripts": [schema("001", "SELECT 1")], "database": {"engine": "PostgreSQL",
                "host": "nowhere.invalid", "name": "shop", "credentialsSecret": {"name": credentials}}}})
    };
    let create = |object: Value| author.one(Ask::create(&object, &namespace.name));
    refused(&|| create(server("db")), "spec.scripts has jobs.batch made in namespace");
    grant(&namespace, "jobs", "batch", &["jobs"]);
    refused(
        &|| create(server("db")),
        "spec.database.credentialsSecret: names a Secret that its author may not read",
    );
    let rule =
        json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["db"], "verbs": ["get"]});
    namespace.create(&json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "db"}, "rules": [rule]}));
    namespace.create(&json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "db"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "db"},
        "subjects": [{"kind": "ServiceAccount", "namespace": kit::bed::NAMESPACE, "name": crate::policies::account_of(&namespace)}]}));
    kit::wait::eventually(|| create(server("db")).map_err(|refusal| refusal.message));
    let mut other = server("other");
    other["metadata"]["name"] = json!("other");
    refused(&|| create(other.clone()), "spec.database.credentialsSecret: names a Secret");
    let mut by_secret = server("db");
    by_secret["metadata"]["name"] = json!("by-secret");
    by_secret["spec"]["scripts"][0]["up"] = json!({"secretKeyRef": {"name": "db", "key": "password"}});
    refused(&|| create(by_secret.clone()), "spec: names Secrets for scripts");
    let certified = ["caSecret", "clientCertSecret"].map(|field| {
        let mut certified = server("db");
        certified["metadata"]["name"] = json!(format!("by-{}", field.to_lowercase()));
        certified["spec"]["database"]["tls"] = json!({ field: {"name": "db"} });
        certified
    });
    for certified in &certified {
        refused(&|| create(certified.clone()), "spec: names Secrets for scripts or certificates");
    }
    grant(&namespace, "secrets", "", &["secrets"]);
    for certified in &certified {
        kit::wait::eventually(|| create(certified.clone()).map_err(|refusal| refusal.message));
    }
    let mut elsewhere = server("db");
    elsewhere["metadata"]["name"] = json!("elsewhere");
    let reference = json!({"namespace": "kube-system", "name": "sql", "key": "001.sql"});
    elsewhere["spec"]["scripts"][0]["up"] = json!({"configMapKeyRef": reference});
    let refusal = bed.objects.one(Ask::create(&elsewhere, &namespace.name)).expect_err("refused");
    let expected = "spec.scripts[0].up.configMapKeyRef.namespace";
    assert!(refusal.fields.iter().eq([expected]), "{refusal:?}");
}

/// The next run of the same work has the next number.
fn what_has_the_name_of_a_run_is_named_and_left_alone(bed: &Bed) {
    let namespace = bed.namespace();
    let node = Node::new(&namespace);
    namespace.create(&sqlite("shop", &json!([schema("001", "CREATE TABLE a (b INTEGER)")]), &json!({})));
    let pod = node.next_pod();
    assert_eq!(node.run(&pod), 0);
    until_ready(&namespace, "shop", "True", "Applied");
    let name = format!("{}-2", pod.job.strip_suffix("-1").expect("the first run"));
    config_map(&namespace, &name, "a", "theirs");
    let again = json!({"metadata": {"annotations": {"gatehouse.dev/retry": "now"}}});
    namespace.change(&format!("{KIND}/shop"), &again);
    let refused = until_ready(&namespace, "shop", "False", "ApplyFailed");
    let ready = condition(&refused, "Ready");
    let expected = format!(
        "configmaps {}/{name} is there and belongs to another owner: delete it, or give this object another name",
        namespace.name
    );
    assert_eq!(ready["message"], json!(expected));
    assert_eq!(namespace.get("configmaps", &name)["data"], json!({"a": "theirs"}));

    namespace.delete(&format!("configmap/{name}"));
    assert_eq!(node.run(&node.next_pod()), 0);
    until_ready(&namespace, "shop", "True", "Applied");
}

fn the_old_version_is_carried_out_as_well(bed: &Bed) {
    let namespace = bed.namespace();
    let old = json!({"apiVersion": "gatehouse.dev/v1alpha1", "kind": "DatabaseMigration", "metadata": {"name": "userdb"},
    "spec": {
        "database": {"type": "postgresql", "connectionSecret": "db", "host": "nowhere.invalid", "database": "userdb"},
        "migration": {"strategy": "rolling", "parallel": true, "scripts": [
            {"name": "a", "type": "schema", "source": "inline://CREATE TABLE a (b int)", "timeout": "2m"}]},
    }});
    let (created, warnings) = bed.objects.warned(Ask::create(&old, &namespace.name));
    let created = created.expect("it is accepted");
    for field in ["spec.migration.strategy", "spec.migration.parallel"] {
        assert!(
            warnings.iter().any(|one| one.contains(field) && one.contains("not acted on")),
            "{warnings:?}"
        );
    }
    assert_eq!(created["spec"]["migration"], old["spec"]["migration"]);
    assert_eq!(
        (&created["spec"]["database"]["port"], &created["spec"]["database"]["sslMode"]),
        (&json!(5432), &json!("require"))
    );
    let node = Node::new(&namespace);
    let pod = node.next_pod();
    let snapshot = namespace.get("configmaps", &pod.job);
    let told: Value = serde_json::from_str(snapshot["data"]["assignment.json"].as_str().unwrap()).unwrap();
    assert_eq!((&told["database"]["port"], &told["database"]["tls"]), (&json!(5432), &json!("Require")));
    assert_eq!(
        (&told["scripts"][0]["timeouts"]["statement"], &told["mode"]),
        (&json!("2m"), &json!("Apply"))
    );
    assert_eq!(snapshot["data"]["000.up.sql"], "CREATE TABLE a (b int)");
    let volumes = pod.object["spec"]["volumes"].as_array().unwrap();
    let credentials = volumes.iter().find(|volume| volume["name"] == "credentials").unwrap();
    assert_eq!(credentials["projected"]["sources"][0]["secret"]["name"], "db");
}
