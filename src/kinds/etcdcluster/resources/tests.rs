//! A cluster to build from, and what holds for all builders.

use random_objects::Source;
use serde_json::{Value, json};

use super::{budget, config, services, stateful_set};
use crate::api::Version as Served;
use crate::controllers::manifest::Manifest;
use crate::kinds::etcdcluster::api::EtcdClusterKind;
use crate::kinds::etcdcluster::api::v1::EtcdCluster;
use crate::kinds::etcdcluster::api::validate::validate;
use crate::kinds::etcdcluster::names;
use crate::kinds::etcdcluster::observation::{ConfigEntry, Ordinal, Purpose, Template, Uid, Version};
use crate::kinds::etcdcluster::spec::Spec;
use crate::properties;

/// The image of the guard.
pub const GUARD: &str = "gatehouse.dev/gatehouse:0.1.0";

/// What the cluster `shop/c` with that spec asks for.
pub fn cluster(spec: &Value) -> Spec {
    Spec::resolve(&object(spec), &[])
}

/// That cluster.
pub fn object(spec: &Value) -> EtcdCluster {
    let object = json!({
        "apiVersion": "gatehouse.dev/v1",
        "kind": "EtcdCluster",
        "metadata": {"name": "c", "namespace": "shop", "uid": "u-1", "generation": 7},
        "spec": spec,
    });
    serde_json::from_value(object).unwrap()
}

/// The usual one, in plain HTTP.
pub fn plain() -> Spec {
    cluster(
        &json!({"replicas": 3, "version": "3.6.16", "storage": {"size": "10Gi"}, "tls": {"mode": "Disabled"}}),
    )
}

/// Another template than that of any spec.
pub const TEMPLATE: Template = Template { version: Version::new(6, 16), revision: 0xab };

fn owned(manifest: &Manifest) {
    let metadata = &manifest.object["metadata"];
    assert_eq!(
        metadata["ownerReferences"],
        json!([{
            "apiVersion": "gatehouse.dev/v1",
            "kind": "EtcdCluster",
            "name": "c",
            "uid": "u-1",
            "controller": true,
            "blockOwnerDeletion": true,
        }]),
        "{}",
        manifest.place
    );
    assert_eq!(metadata["namespace"], "shop");
    assert_eq!(
        metadata["labels"],
        json!({
            "app.kubernetes.io/component": "member",
            "app.kubernetes.io/instance": "c",
            "app.kubernetes.io/managed-by": "gatehouse",
            "app.kubernetes.io/name": "etcd",
        })
    );
}

#[test]
fn everything_that_is_made_belongs_to_its_cluster() {
    let cluster = plain();
    let mut all = services::manifests(&cluster).to_vec();
    all.push(stateful_set::manifest(&cluster, &TEMPLATE, 3, GUARD, true));
    all.push(budget::manifest(&cluster, 2));
    all.push(config::manifest(&cluster, &[("c-0.json".to_owned(), "{}".to_owned())].into()));
    all.iter().for_each(owned);
    let places: Vec<_> = all.iter().map(|manifest| manifest.place.to_string()).collect();
    assert_eq!(
        places,
        [
            "services shop/c",
            "services shop/c-client",
            "statefulsets shop/c",
            "poddisruptionbudgets shop/c",
            "configmaps shop/c-config"
        ]
    );
}

#[test]
fn members_are_found_before_they_are_ready_and_clients_find_voters_alone() {
    let [headless, client] = services::manifests(&plain()).map(|manifest| manifest.object["spec"].clone());
    let members = json!({
        "app.kubernetes.io/component": "member",
        "app.kubernetes.io/instance": "c",
        "app.kubernetes.io/managed-by": "gatehouse",
        "app.kubernetes.io/name": "etcd",
    });
    let mut voters = members.clone();
    voters["gatehouse.dev/role"] = json!("voter");
    let port =
        |name: &str, port: u16| json!({"name": name, "port": port, "protocol": "TCP", "targetPort": name});
    assert_eq!(
        headless,
        json!({
            "clusterIP": "None",
            "publishNotReadyAddresses": true,
            "selector": members,
            "ports": [port("peer", 2380), port("client", 2379)],
        })
    );
    assert_eq!(client, json!({"selector": voters, "ports": [port("client", 2379)]}));
    let budget = &budget::manifest(&plain(), 2).object["spec"];
    let selector = json!({"matchLabels": voters});
    let policy = "AlwaysAllow";
    assert_eq!(
        *budget,
        json!({"minAvailable": 2, "selector": selector, "unhealthyPodEvictionPolicy": policy})
    );
}

#[test]
fn clients_get_the_service_that_the_spec_asks_for_and_members_theirs() {
    let asked =
        json!({"clientService": {"type": "LoadBalancer", "annotations": {"example.com/pool": "outside"}}});
    let [headless, client] = services::manifests(&cluster(&asked)).map(|manifest| manifest.object);
    assert_eq!(headless, services::manifests(&cluster(&json!({})))[0].object);
    assert_eq!(client["spec"]["type"], "LoadBalancer");
    assert_eq!(client["metadata"]["annotations"]["example.com/pool"], "outside");
}

/// A release that no longer supports a minor leaves what was made for its members: they go on, and are found.
#[test]
fn members_of_a_minor_that_is_no_longer_supported_are_as_before() {
    let of = |version: &str| {
        let spec = json!({"replicas": 3, "version": version, "storage": {"size": "10Gi"}});
        let object = object(&spec);
        let said = validate(&serde_json::to_value(&object).unwrap(), None);
        let spec = Spec::resolve(&object, &said.errors);
        let desired = spec.desired(None);
        let mut set = stateful_set::manifest(&spec, &desired.template, desired.replicas, GUARD, true).object;
        // A digest of all that is compared here.
        set["metadata"]["annotations"].take();
        let services = services::manifests(&spec).map(|manifest| manifest.object);
        let budget = budget::manifest(&spec, 2).object;
        (desired.is_valid, json!([set, services, budget]).to_string().replace(version, "VERSION"))
    };
    let (known, dropped) = (of("3.6.16"), of("3.4.30"));
    assert!(known.0 && !dropped.0, "its version is refused");
    assert_eq!(dropped.1, known.1);
}

#[test]
fn any_spec_that_decodes_is_built_from_and_what_is_built_is_settled() {
    let mut built = 0;
    for seed in 0..1000 {
        let mut source = Source::new(seed);
        source.nonsense = if seed % 2 == 0 { 0 } else { 8 };
        let object = properties::object(&mut source, &EtcdClusterKind, Served::V1);
        let Ok(cluster) = serde_json::from_value::<EtcdCluster>(object) else { continue };
        let spec = Spec::resolve(&cluster, &[]);
        let desired = spec.desired(None);
        let template = desired.template;
        let entry = ConfigEntry {
            purpose: Purpose::Join,
            member: None,
            volume: Uid("v".to_owned()),
            template,
            pod: Some(Uid("p".to_owned())),
            raft_index: None,
            skips_check: false,
        };
        let data = config::data(&spec, &[(Ordinal(1), entry)].into(), &[Ordinal(0), Ordinal(1)]);
        assert_eq!(data.len(), 2);
        let manifest = stateful_set::manifest(&spec, &template, desired.replicas, GUARD, false);
        assert!(!manifest.missing_from(&manifest.object), "{seed}: {:#}", manifest.object);
        let annotation = &manifest.object["spec"]["template"]["metadata"]["annotations"][names::TEMPLATE];
        assert_eq!(annotation, &names::template_text(&template));
        built += 1;
    }
    assert!(built > 100, "{built}");
}

/// A pod that is not ready serves no client, and would hold up a drain for as long as it is not. Data in memory end
/// with it.
#[test]
fn a_member_that_is_not_ready_can_be_evicted_where_its_data_stay() {
    let policy =
        |spec: &Spec| budget::manifest(spec, 2).object["spec"].get("unhealthyPodEvictionPolicy").cloned();
    assert_eq!(policy(&plain()), Some(json!("AlwaysAllow")));
    assert_eq!(policy(&cluster(&json!({"storage": {"medium": "Memory"}}))), None);
}
