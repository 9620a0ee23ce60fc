//! The two Services: one by which members find each other, one for clients.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::metadata;
use crate::controllers::manifest::Manifest;
use crate::kinds::etcdcluster::names;
use crate::kinds::etcdcluster::spec::Spec;

/// What the port for clients is called.
pub const CLIENT: &str = "client";

/// What the port for members is called.
pub const PEER: &str = "peer";

/// The headless Service, and the one for clients.
#[must_use]
pub fn manifests(spec: &Spec) -> [Manifest; 2] {
    let name = spec.name();
    let headless = ServiceSpec {
        cluster_ip: Some("None".to_owned()),
        // A member that starts has to be found before it is ready: it gets ready by being found.
        publish_not_ready_addresses: Some(true),
        ..service(names::labels(name), &[(PEER, names::PEER_PORT), (CLIENT, names::CLIENT_PORT)])
    };
    let client = ServiceSpec {
        type_: spec.client_service.type_.map(|type_| type_.as_str().to_owned()),
        ..service(names::voters(name), &[(CLIENT, names::CLIENT_PORT)])
    };
    let annotations = spec.client_service.annotations.clone();
    let headless = (metadata(spec, name.to_owned()), headless);
    let client = (ObjectMeta { annotations, ..metadata(spec, names::client(name)) }, client);
    [headless, client].map(|(metadata, service)| {
        let service = Service { metadata, spec: Some(service), status: None };
        Manifest::of(&service).stamped()
    })
}

fn service(selector: BTreeMap<String, String>, ports: &[(&str, u16)]) -> ServiceSpec {
    let port = |(name, port): &(&str, u16)| ServicePort {
        name: Some((*name).to_owned()),
        port: i32::from(*port),
        protocol: Some("TCP".to_owned()),
        target_port: Some(IntOrString::String((*name).to_owned())),
        ..ServicePort::default()
    };
    ServiceSpec {
        selector: Some(selector),
        ports: Some(ports.iter().map(port).collect()),
        ..ServiceSpec::default()
    }
}
