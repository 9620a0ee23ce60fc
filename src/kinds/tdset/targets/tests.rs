use serde_json::json;

use super::scaled_object::scaled_objects;
use super::*;
use crate::counted;

#[tokio::test]
async fn a_reconciliation_looks_at_no_entry_of_another_object() {
    // No API server is asked: the watches wait for a reader.
    let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
    let (targets, _watches) = Targets::new(Client::try_from(config).unwrap(), WatchScope::All);
    let deployments = ApiResource::erase::<k8s_openapi::api::apps::v1::Deployment>(&());
    let kinds = [deployments, scaled_objects()];
    for number in 0..1_000 {
        for kind in &kinds {
            targets.watch(&number.to_string(), kind);
        }
    }
    let askers = || kinds.each_ref().map(|kind| targets.watched().get(kind).map(|one| one.askers.len()));
    // Entries whose hashes begin alike are compared, too.
    let is_cheap = |what: &str, step: &dyn Fn()| {
        let looks = counted::looks(step);
        assert!(looks < 50, "{what} looks at {looks} entries");
    };
    is_cheap("begin", &|| targets.begins("7"));
    is_cheap("watch", &|| drop(targets.watch("7", &kinds[0])));
    is_cheap("end", &|| targets.ends("7"));
    assert_eq!(askers(), [Some(1_000), Some(999)], "it has asked for one");
    is_cheap("end", &|| targets.ends("7"));
    is_cheap("end", &|| targets.ends("none"));
    assert_eq!(askers(), [Some(1_000), Some(999)]);
    is_cheap("forget", &|| targets.forget("7"));
    assert_eq!(askers(), [Some(999); 2]);
    let walk = counted::looks(|| {
        let watched = targets.watched();
        let mut askers = watched.values().flat_map(|one| one.askers.keys());
        assert!(askers.all(|uid| &**uid != "7"));
    });
    assert!(walk >= 2 * 999, "a walk is counted: {walk}");
    for number in (0..1_000).filter(|number| *number != 8) {
        targets.forget(&number.to_string());
    }
    targets.begins("8");
    targets.watch("8", &kinds[1]);
    targets.ends("8");
    assert_eq!(askers(), [None, Some(1)], "gatehouse stops watching a kind once no TDSet asks for it");
}

#[test]
fn who_applied_a_workload_without_its_count_did_not_write_that() {
    let entry = json!({"manager": "argocd-controller", "operation": "Apply", "time": "2026-01-01T00:00:00Z",
        "fieldsV1": {"f:spec": {"f:template": {}}}});
    let metadata = json!({"creationTimestamp": "2025-01-01T00:00:00Z", "managedFields": [entry]});
    let mut metadata: ObjectMeta = serde_json::from_value(metadata).unwrap();
    observation::trim(&mut metadata);
    let deployments = ApiResource::erase::<k8s_openapi::api::apps::v1::Deployment>(&());
    assert_eq!(writer_of(&deployments, &metadata), Writer::Unknown);
    // Of a custom kind the field is not known: it may be.
    assert!(matches!(writer_of(&scaled_objects(), &metadata), Writer::Other(_)));
}

#[test]
fn a_scale_is_read_again_at_once_where_the_count_may_be_another() {
    let object = |version: &str, generation: i64| -> FoundMetadata {
        serde_json::from_value(
            json!({"metadata": {"name": "web", "resourceVersion": version, "generation": generation}}),
        )
        .unwrap()
    };
    let at = clock::instant();
    let scale = serde_json::from_value(json!({"metadata": {"resourceVersion": "7"}})).unwrap();
    let read = Read { scale: Arc::new(scale), generation: Some(3), at };
    let after = |known: &FoundMetadata, millis: u64| read.stands(known, at + Duration::from_millis(millis));
    assert_eq!(after(&object("7", 3), 9_000), Some(Duration::MAX), "nothing has changed");
    assert_eq!(after(&object("8", 3), 500), Some(Duration::from_millis(1_500)));
    assert_eq!(after(&object("8", 3), 2_000), None);
    assert_eq!(after(&object("8", 4), 500), None, "the spec has changed");
    let mut other = object("8", 3);
    other.metadata.uid = Some("other".to_owned());
    assert_eq!(after(&other, 500), None, "it is another one of its name");
    let read = Read { generation: None, ..read.clone() };
    assert_eq!(read.stands(&object("8", 3), at), None, "it is unknown of which count that is");
}

#[test]
fn a_kind_is_found_by_its_name_and_has_to_have_a_scale() {
    let one = |name: &str, kind: &str, namespaced: bool| json!({"name": name, "kind": kind, "singularName": "", "namespaced": namespaced, "verbs": []});
    let resources = [
        one("widgets", "Widget", true),
        one("widgets/scale", "Scale", true),
        one("widgets/status", "Widget", true),
        one("plains", "Plain", true),
        one("plains/status", "Plain", true),
        one("wides", "Wide", false),
        one("wides/scale", "Scale", false),
    ];
    let list: APIResourceList =
        serde_json::from_value(json!({"groupVersion": "example.com/v1", "resources": resources})).unwrap();
    let resource = found(&list, "example.com/v1", "Widget").unwrap();
    assert_eq!(
        (resource.plural.as_str(), resource.group.as_str(), resource.version.as_str()),
        ("widgets", "example.com", "v1")
    );
    for (kind, reason) in [
        ("Plain", Reason::TargetNotScalable),
        ("Wide", Reason::TargetNotScalable),
        ("None", Reason::TargetNotFound),
    ] {
        assert_eq!(found(&list, "example.com/v1", kind).unwrap_err().reason, reason, "{kind}");
    }
}
