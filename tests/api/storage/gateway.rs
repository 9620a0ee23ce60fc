//! A definition of a real project with two versions and no webhook, whose objects have no namespace: GatewayClass.

use kit::bed::Bed;
use kit::deploy;
use kit::objects::Ask;
use kit::wait::eventually;
use serde_json::{Value, json};

use super::widgets::{held_back, run, stored_in};

const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gatewayclasses.gateway.networking.k8s.io";
const NAME: &str = "gatewayclasses.gateway.networking.k8s.io";
const COUNT: usize = 5;

/// As the project ships it, which stores v1; or as it did before.
fn define(bed: &Bed, stored: &str) {
    let mut all = deploy::objects(include_str!("gatewayclasses.yaml"));
    let mut definition = all.remove(0);
    for version in definition["spec"]["versions"].as_array_mut().expect("versions") {
        let is_stored = version["name"] == stored;
        version["storage"] = is_stored.into();
    }
    bed.objects.must(Ask::apply(&definition, "", ""));
    bed.until_established(NAME);
}

fn path(version: &str, name: &str) -> String {
    format!("/apis/gateway.networking.k8s.io/{version}/gatewayclasses/{name}")
}

fn class(version: &str, name: &str) -> Value {
    json!({"apiVersion": format!("gateway.networking.k8s.io/{version}"), "kind": "GatewayClass",
        "metadata": {"name": name}, "spec": {"controllerName": "example.dev/gateways"}})
}

fn in_etcd(bed: &Bed, version: &str) -> Vec<String> {
    let all = stored_in(bed, "gateway.networking.k8s.io/gatewayclasses").into_iter();
    all.filter(|(name, stored)| stored == version && name != "probe").map(|(name, _)| name).collect()
}

/// Waits until objects are written in that version.
fn until_stored_as(bed: &Bed, version: &str) {
    let mut tried = 0;
    eventually(|| {
        tried += 1;
        let mut probe = class("v1", "probe");
        probe["spec"]["description"] = format!("tried {tried} times").into();
        let body = probe.clone();
        let path = path("v1", "probe") + "?fieldManager=kit&force=true";
        bed.objects.one(Ask { method: "APPLY", path, body }).map_err(|refusal| refusal.message)?;
        let all = stored_in(bed, "gateway.networking.k8s.io/gatewayclasses");
        let wanted = ("probe".to_owned(), version.to_owned());
        if all.contains(&wanted) { Ok(()) } else { Err(format!("{all:?}")) }
    });
}

pub fn a_definition_of_the_gateway_api_is_migrated(bed: &Bed) {
    define(bed, "v1beta1");
    until_stored_as(bed, "v1beta1");
    let name = |number: usize| format!("class-{number}");
    for number in 0..COUNT {
        let place = path("v1beta1", "");
        bed.objects.must(Ask::post(place.trim_end_matches('/'), class("v1beta1", &name(number))));
    }
    define(bed, "v1");
    until_stored_as(bed, "v1");
    assert_eq!(in_etcd(bed, "v1beta1").len(), COUNT);
    let stored = || bed.objects.at(DEFINITION)["status"]["storedVersions"].clone();
    assert_eq!(stored(), json!(["v1beta1", "v1"]));
    assert_eq!(held_back(bed, NAME, "v1beta1"), json!(["Stored", "Served", "ManagedFields"]));

    let ran = run(bed, &["migrate", NAME, "--to", "v1", "--grace", "0s"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!((in_etcd(bed, "v1beta1").len(), in_etcd(bed, "v1").len()), (0, COUNT));
    assert_eq!(stored(), json!(["v1"]));
    assert_eq!(held_back(bed, NAME, "v1beta1"), json!(["Served", "ManagedFields"]));
    for number in 0..COUNT {
        let read = bed.objects.at(&path("v1beta1", &name(number)));
        assert_eq!(read["spec"], class("v1beta1", "")["spec"], "as it was written");
    }
    bed.objects.discard(vec![DEFINITION.to_owned()]);
}
