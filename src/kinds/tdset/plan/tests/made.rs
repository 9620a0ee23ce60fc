//! The Deployment and the Service that are made, and what others do to them.

use super::*;

#[test]
fn what_is_not_there_is_made_with_its_count_and_without_force() {
    let plan = plan(&shop(), &Cluster::empty(EARLY).0);
    let expected = ["apply Deployment 2 as gatehouse-tdset", "apply Service null as gatehouse-tdset"];
    assert_eq!(verbs(&plan.work), expected);
    for step in &plan.work {
        let ApiWrite::Apply(Apply { manifest, .. }) = step else { panic!("{step:?}") };
        // Whatever has that name meanwhile has another one.
        assert_eq!(manifest.object["metadata"]["resourceVersion"], "1");
    }
}

#[test]
fn a_count_that_another_client_wrote_is_taken_back() {
    let shop = shop();
    let mut cluster = Cluster::settled(&shop, EARLY);
    cluster.edit(|deployment| scale(deployment, 9, "kubectl"));
    assert_eq!(verbs(&cluster.pass(&shop).work), ["apply! Deployment 2 as gatehouse-tdset-count"]);
    let plan = cluster.pass(&shop);
    assert_eq!(plan.transition, None);
}

#[test]
fn a_field_that_another_client_changed_is_taken_back_and_what_it_added_stays() {
    type Edit = fn(&mut Deployment);
    let shop = shop();
    let cluster = Cluster::settled(&shop, EARLY);
    let edits: [(Edit, bool); 4] = [
        (|deployment| pod(deployment).containers[0].image = Some("other".to_owned()), true),
        (|deployment| deployment.metadata.labels = None, true),
        (
            |deployment| deployment.metadata.owner_references.as_mut().unwrap()[0].controller = Some(true),
            false,
        ),
        (|deployment| pod(deployment).dns_policy = Some("ClusterFirst".to_owned()), false),
    ];
    for (at, (edit, undone)) in edits.into_iter().enumerate() {
        let mut cluster = cluster.clone();
        cluster.edit(edit);
        let claims = verbs(&cluster.pass(&shop).work);
        assert_eq!(claims == ["apply Deployment 2 as gatehouse-tdset-count"], undone, "{at}: {claims:?}");
        let work = verbs(&plan(&shop, &cluster.0).work);
        assert_eq!(work == ["apply! Deployment null as gatehouse-tdset"], undone, "{at}: {work:?}");
    }
}

fn pod(deployment: &mut Deployment) -> &mut k8s_openapi::api::core::v1::PodSpec {
    deployment.spec.as_mut().unwrap().template.spec.as_mut().unwrap()
}

#[test]
fn a_suspended_one_rolls_out_and_leaves_the_count_alone() {
    let mut cluster = Cluster::settled(&shop(), EARLY).at(OPENING);
    let mut paused = json!(changed("/spec/suspend", json!(true)));
    paused["spec"]["target"]["create"]["image"] = "shop:2".into();
    let paused: TDSet = serde_json::from_value(paused).unwrap();
    let works = [0; 2].map(|_| verbs(&cluster.pass(&paused).work));
    let count = ["apply Deployment 2 as gatehouse-tdset-count"];
    assert_eq!(works, [count, ["apply! Deployment null as gatehouse-tdset"]]);
    cluster.edit(|deployment| scale(deployment, 9, "kubectl"));
    let plan = cluster.pass(&paused);
    assert_eq!((verbs(&plan.work), plan.transition), (vec![], None));
    assert_eq!(plan.status.scheduled_replicas, Some(6));
    assert_eq!(condition(&plan.status, ConditionType::Suspended).0, "True");
    assert_eq!(condition(&plan.status, ConditionType::Ready).1, "SuspendedBySpec");
}

#[test]
fn an_object_of_another_owner_is_never_written_and_is_reported_once() {
    let shop = shop();
    let mut cluster = Cluster::settled(&shop, EARLY);
    cluster.edit(|deployment| deployment.metadata.owner_references = None);
    let first = cluster.clone().at(OPENING).pass(&shop);
    assert_eq!(verbs(&first.work), [""; 0]);
    let message = "Deployment shop exists and is not controlled by this object";
    let conflict = condition(&first.status, ConditionType::Conflict);
    assert_eq!(conflict, ("True".to_owned(), "NameTaken".to_owned(), message.to_owned()));
    assert_eq!(condition(&first.status, ConditionType::Ready).0, "False");
    assert_eq!(verbs(&first.report), [format!("NameTaken: {message}"), "status".to_owned()]);
    cluster.0.status = first.status;
    assert_eq!(verbs(&cluster.at(OPENING).pass(&shop).report), [""; 0]);
}

#[test]
fn a_service_of_another_owner_holds_up_no_count() {
    let shop = shop();
    let mut cluster = Cluster::settled(&shop, EARLY).at(OPENING);
    Arc::make_mut(cluster.0.service.as_mut().unwrap()).metadata.owner_references = None;
    assert_eq!(verbs(&cluster.pass(&shop).work), ["apply! Deployment 6 as gatehouse-tdset-count"]);
    assert_eq!(condition(&cluster.pass(&shop).status, ConditionType::Conflict).0, "True");
}

#[test]
fn a_count_that_is_kept_outlives_a_service_of_another_owner() {
    let kept = changed("/spec/manualScalePolicy", json!("KeepUntilNextTransition"));
    let mut cluster = Cluster::settled(&kept, EARLY);
    Arc::make_mut(cluster.0.service.as_mut().unwrap()).metadata.owner_references = None;
    cluster.pass(&kept);
    cluster.edit(|deployment| scale(deployment, 9, "kubectl"));
    for service in [cluster.0.service.clone(), None] {
        cluster.0.service = service;
        for _ in 0..2 {
            cluster.pass(&kept);
        }
        let stands = condition(&cluster.0.status, ConditionType::ManualOverride).0;
        assert_eq!((cluster.0.deployment.as_ref().unwrap().replicas(), stands.as_str()), (9, "True"));
    }
    assert_eq!(condition(&cluster.0.status, ConditionType::Conflict).1, "NoConflict");
}

#[test]
fn a_service_goes_with_its_port_if_it_is_ours() {
    let without = changed("/spec/target/create/servicePort", Value::Null);
    let mut cluster = Cluster::settled(&shop(), EARLY);
    assert_eq!(verbs(&plan(&without, &cluster.0).work), ["delete Service s"]);
    Arc::make_mut(cluster.0.service.as_mut().unwrap()).metadata.owner_references = None;
    let plan = plan(&without, &cluster.0);
    assert_eq!(verbs(&plan.work), [""; 0]);
    assert_eq!(condition(&plan.status, ConditionType::Conflict).0, "False");
}

#[test]
fn what_is_being_deleted_is_not_written() {
    let mut cluster = Cluster::settled(&shop(), EARLY).at(OPENING);
    cluster.edit(|deployment| deployment.metadata.deletion_timestamp = Some(Time(at(EARLY))));
    assert_eq!(verbs(&plan(&shop(), &cluster.0).work), [""; 0]);
}

#[test]
fn the_pods_are_what_the_spec_says_and_are_selected_whatever_it_says() {
    let create = json!({
        "image": "shop:1", "port": 8000, "command": ["a"], "args": ["b"], "workingDir": "/c",
        "env": [{"name": "A", "value": "1"}], "envFrom": [{"secretRef": {"name": "s"}}],
        "resources": {"limits": {"cpu": "1"}}, "imagePullPolicy": "Always", "imagePullSecrets": [{"name": "p"}],
        "livenessProbe": {"periodSeconds": 1}, "readinessProbe": {"periodSeconds": 2},
        "startupProbe": {"periodSeconds": 3}, "lifecycle": {"preStop": {"sleep": {"seconds": 4}}},
        "securityContext": {"runAsUser": 5}, "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        "pod": {
            "labels": {"team": "x", "app.kubernetes.io/instance": "stolen"}, "annotations": {"note": "y"},
            "nodeSelector": {"disk": "ssd"}, "affinity": {"nodeAffinity": {}}, "tolerations": [{"key": "k"}],
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}],
            "priorityClassName": "high", "schedulerName": "second", "runtimeClassName": "sandbox", "serviceAccountName": "robot", "securityContext": {"fsGroup": 6},
            "terminationGracePeriodSeconds": 7, "dnsPolicy": "None",
            "dnsConfig": {"nameservers": ["10.0.0.1"], "options": [{"name": "ndots", "value": "1"}]}, "volumes": [{"name": "v", "emptyDir": {}}],
        },
    });
    let tdset = changed("/spec/target/create", create.clone());
    let spec = Spec::resolve(&tdset, vec![]);
    let made = deployment::deployment(&spec, spec.create().unwrap()).object;
    let pod = &made["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    for (field, value) in create.as_object().unwrap() {
        match field.as_str() {
            "port" => assert_eq!(container["ports"][0]["containerPort"], *value),
            "imagePullSecrets" => assert_eq!(pod[field], *value),
            "pod" => {}
            _ => assert_eq!(container[field], *value, "{field}"),
        }
    }
    let is_metadata = |field: &str| ["labels", "annotations"].contains(&field);
    for (field, value) in create["pod"].as_object().unwrap().iter().filter(|(field, _)| !is_metadata(field)) {
        assert_eq!(pod[field], *value, "{field}");
    }
    let labels =
        json!({"team": "x", "app.kubernetes.io/instance": "shop", "app.kubernetes.io/name": "tdset"});
    assert_eq!(made["spec"]["template"]["metadata"], json!({"labels": labels, "annotations": {"note": "y"}}));
    let selector = json!({"app.kubernetes.io/instance": "shop", "app.kubernetes.io/name": "tdset"});
    assert_eq!(made["spec"]["selector"], json!({"matchLabels": selector}));
    assert_eq!((&container["name"], &made["spec"]["replicas"]), (&json!("tdset"), &Value::Null));
    let owner = &made["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["controller"], &owner["blockOwnerDeletion"], &owner["uid"]),
        (&json!(true), &json!(true), &json!("1"))
    );
    let back: Deployment = serde_json::from_value(made).unwrap();
    assert_eq!(back.labels()["app.kubernetes.io/managed-by"], "gatehouse");
}
