use serde_json::{Value, json};

use super::*;

fn pod(annotation: &str, spec: &Value) -> Value {
    json!({"metadata": {"labels": {WAIT_FOR_MIGRATION: "true"}, "annotations": {WAIT_FOR_MIGRATION: annotation}},
        "spec": spec})
}

fn postgres() -> Value {
    json!({"database": {"engine": "PostgreSQL", "host": "pg.shop.svc", "name": "sh$(A)op",
            "credentialsSecret": {"name": "app", "passwordKey": "pass"}},
        "history": {"series": "shop"}, "script": "003", "timeout": "90s"})
}

fn faults(annotation: &str) -> Vec<String> {
    let faults = add(&pod(annotation, &json!({"containers": []})), "gatehouse:1").unwrap_err();
    faults.iter().map(ToString::to_string).collect()
}

fn patched(mut pod: Value) -> Value {
    let operations = add(&pod, "gatehouse:1").unwrap();
    let patch: json_patch::Patch = serde_json::from_value(json!(operations)).unwrap();
    json_patch::patch(&mut pod, &patch).unwrap();
    pod
}

#[test]
fn the_container_waits_with_the_credentials_of_the_pod() {
    let pod = patched(pod(&postgres().to_string(), &json!({"containers": [{"name": "app"}]})));
    let container = &pod["spec"]["initContainers"][0];
    assert_eq!(container["command"], json!(["/gatehouse", "migrate", "wait"]));
    assert_eq!(
        container["args"],
        json!([
            "--engine=PostgreSQL",
            "--host=pg.shop.svc",
            "--port=5432",
            "--database=sh$$(A)op",
            "--tls-mode=Require",
            "--series=shop",
            "--min-id=003",
            "--timeout=90s"
        ])
    );
    assert_eq!(container["image"], "gatehouse:1");
    assert_eq!(container["env"][1]["valueFrom"]["secretKeyRef"], json!({"name": "app", "key": "pass"}));
    assert_eq!(container["env"][0]["valueFrom"]["secretKeyRef"], json!({"name": "app", "key": "username"}));
    assert_eq!(pod["spec"]["volumes"], Value::Null);
}

#[test]
fn it_comes_after_the_sidecars_that_begin_the_list_and_before_all_else() {
    let sidecar = json!({"name": "proxy", "restartPolicy": "Always"});
    let spec = json!({"initContainers": [sidecar, {"name": "prepare"}], "volumes": [{"name": "data"}]});
    let mut annotation = postgres();
    annotation["database"]["tls"] =
        json!({"caSecret": {"name": "ca", "key": "root.pem"}, "clientCertSecret": {"name": "client"}});
    let pod = patched(pod(&annotation.to_string(), &spec));
    let names = |list: &str| -> Vec<_> {
        let items = pod["spec"][list].as_array().unwrap();
        items.iter().map(|item| item["name"].as_str().unwrap()).collect()
    };
    assert_eq!(names("initContainers"), ["proxy", "wait-for-migration", "prepare"]);
    assert_eq!(names("volumes"), ["data", "wait-for-migration-tls"]);
    let container = &pod["spec"]["initContainers"][1];
    let args = container["args"].as_array().unwrap();
    assert!(
        args.contains(&json!("--tls-mode=VerifyFull"))
            && args.contains(&json!("--tls=/etc/gatehouse/wait/tls"))
    );
    assert_eq!(container["volumeMounts"][0]["readOnly"], true);
    // Another call, as the API server makes where other webhooks have changed the pod.
    assert_eq!(add(&pod, "gatehouse:2").unwrap(), [Value::Null; 0]);
}

#[test]
fn a_file_is_waited_for_where_its_claim_is_mounted() {
    let annotation = json!({"database": {"engine": "SQLite", "file": {"claimName": "data", "path": "a/shop.db"}},
        "history": {"series": "shop"}, "script": "1"});
    let pod = patched(pod(&annotation.to_string(), &json!({})));
    let container = &pod["spec"]["initContainers"][0];
    assert_eq!(container["args"][1], "--database=/database/a/shop.db");
    assert_eq!(container.get("env"), None);
    assert_eq!(pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"], "data");
}

#[test]
fn what_is_wrong_is_named_in_the_annotation() {
    const PATH: &str = "metadata.annotations[gatehouse.dev/wait-for-migration]";
    let one = |change: &dyn Fn(&mut Value)| {
        let mut annotation = postgres();
        change(&mut annotation);
        let faults = faults(&annotation.to_string());
        assert_eq!(faults.len(), 1, "{faults:?}");
        faults[0].strip_prefix(PATH).unwrap_or_else(|| panic!("{faults:?}")).to_owned()
    };
    let missing =
        |field: &'static str| one(&move |annotation| drop(annotation.as_object_mut().unwrap().remove(field)));
    assert!(missing("script").starts_with(".script: Required value"), "{}", missing("script"));
    assert!(missing("database").starts_with(".database: Required value"), "{}", missing("database"));
    assert!(
        missing("history")
            .starts_with(".history.series: Required value: the series of the DatabaseMigration")
    );
    let typo = one(&|annotation| annotation["database"]["usernameKey"] = "a".into());
    assert_eq!(typo, ".database.usernameKey: Forbidden: unknown field");
    let other = one(&|annotation| annotation["minId"] = "a".into());
    assert_eq!(other, "[minId]: Forbidden: unknown field: expected database, history, script, timeout");
    let host = one(&|annotation| annotation["database"]["host"] = "postgres://a@b".into());
    assert!(host.starts_with(".database.host: Invalid value: \"postgres://a@b\""), "{host}");
    let id = one(&|annotation| annotation["script"] = "a b".into());
    assert!(id.starts_with(".script: Invalid value: \"a b\""), "{id}");
    let timeout = one(&|annotation| annotation["timeout"] = "10".into());
    assert!(timeout.starts_with(".timeout: Invalid value: \"10\": needs a unit"), "{timeout}");
    let timeout = one(&|annotation| annotation["timeout"] = 10.into());
    assert!(timeout.starts_with(".timeout: Invalid value: must be a text"), "{timeout}");
    for text in ["", "[]", "{", "a: b"] {
        let told = faults(text);
        assert!(told.len() == 1 && told[0].starts_with(PATH) && told[0].contains("JSON"), "{told:?}");
    }
}

#[test]
fn a_pod_that_asks_and_does_not_say_for_what_is_refused() {
    let pod = json!({"metadata": {"labels": {WAIT_FOR_MIGRATION: "true"}}});
    assert!(HOOK.is_asked_for(&pod));
    let faults = add(&pod, "gatehouse:1").unwrap_err();
    assert_eq!(
        faults[0].to_string(),
        "metadata.annotations[gatehouse.dev/wait-for-migration]: Required value: the label of that name is set, so this has \
         to say in JSON what the pod waits for: database, history, script, timeout"
    );
    assert!(!HOOK.is_asked_for(&json!({"metadata": {"labels": {WAIT_FOR_MIGRATION: "false"}}})));
    assert!(!HOOK.is_asked_for(&json!({})));
}
