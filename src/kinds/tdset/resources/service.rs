//! The Service in front of the pods, where `target.create.servicePort` is given.

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::metadata;
use crate::controllers::manifest::Manifest;
use crate::kinds::tdset::api::v1::Create;
use crate::kinds::tdset::names;
use crate::kinds::tdset::spec::Spec;

/// The Service, or none where none is asked for.
#[must_use]
pub fn service(spec: &Spec, create: &Create) -> Option<Manifest> {
    let port = create.service_port?;
    let service = Service {
        metadata: metadata(spec),
        spec: Some(ServiceSpec {
            selector: Some(names::selector(spec.name())),
            ports: Some(vec![ServicePort {
                name: Some(names::CONTAINER.to_owned()),
                port,
                protocol: Some("TCP".to_owned()),
                // By name, so that while another port rolls out each pod is reached at its own.
                target_port: Some(IntOrString::String(names::CONTAINER.to_owned())),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        status: None,
    };
    Some(Manifest::of(&service).stamped())
}
