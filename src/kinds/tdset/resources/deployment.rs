//! The Deployment of `target.create`.
//!
//! The count is not in it. Server-side apply takes a field away when its manager no longer sends it, and a Deployment
//! without a count gets 1. So the count has a manager of its own, which is silent while `suspend` is set, and what is
//! applied here can roll out without touching it. Only a new Deployment is made with its count, so that it never
//! starts with another one. The manager of the count claims that one before the template is applied again.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{Container, ContainerPort, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::json;

use super::metadata;
use crate::api::pod::PullPolicy;
use crate::controllers::manifest::{Manifest, Place};
use crate::kinds::tdset::api::v1::Create;
use crate::kinds::tdset::names;
use crate::kinds::tdset::observation::FoundDeployment;
use crate::kinds::tdset::spec::Spec;

/// All of the Deployment but its count.
#[must_use]
pub fn deployment(spec: &Spec, create: &Create) -> Manifest {
    Manifest::of(&built(spec, create)).stamped()
}

/// The same with a count, to be made.
#[must_use]
pub fn with_count(mut deployment: Manifest, replicas: i32) -> Manifest {
    if let Some(spec) = deployment.object.get_mut("spec") {
        spec["replicas"] = replicas.into();
    }
    deployment
}

/// Nothing but the count of a Deployment that is there.
#[must_use]
pub fn count(of: &FoundDeployment, replicas: i32) -> Manifest {
    let uid = of.metadata.uid.as_deref().unwrap_or_default();
    Manifest::part(Place::of(of), uid, json!({"spec": {"replicas": replicas}}))
}

fn built(spec: &Spec, create: &Create) -> Deployment {
    let selector = names::selector(spec.name());
    Deployment {
        metadata: metadata(spec),
        spec: Some(DeploymentSpec {
            selector: LabelSelector { match_labels: Some(selector.clone()), match_expressions: None },
            template: template(create, selector),
            ..DeploymentSpec::default()
        }),
        status: None,
    }
}

/// The pods, with what the spec has for them, and with the labels that they are selected by, which win.
fn template(create: &Create, selector: BTreeMap<String, String>) -> PodTemplateSpec {
    let mut given = create.pod.as_deref().cloned().unwrap_or_default();
    let pod = PodSpec {
        containers: vec![container(create)],
        image_pull_secrets: create.image_pull_secrets.clone(),
        termination_grace_period_seconds: given.termination_grace_period_seconds,
        volumes: given.volumes.take(),
        ..PodSpec::default()
    };
    given.template(selector, BTreeMap::new(), pod)
}

fn container(create: &Create) -> Container {
    Container {
        name: names::CONTAINER.to_owned(),
        image: Some(create.image.clone()),
        image_pull_policy: create.image_pull_policy.map(PullPolicy::as_str).map(str::to_owned),
        command: create.command.clone(),
        args: create.args.clone(),
        working_dir: create.working_dir.clone(),
        ports: Some(vec![ContainerPort {
            name: Some(names::CONTAINER.to_owned()),
            container_port: create.port,
            protocol: Some("TCP".to_owned()),
            ..ContainerPort::default()
        }]),
        env: create.env.clone(),
        env_from: create.env_from.clone(),
        resources: create.resources.clone(),
        liveness_probe: create.liveness_probe.as_deref().cloned(),
        readiness_probe: create.readiness_probe.as_deref().cloned(),
        startup_probe: create.startup_probe.as_deref().cloned(),
        lifecycle: create.lifecycle.as_deref().cloned(),
        security_context: create.security_context.as_deref().cloned(),
        volume_mounts: create.volume_mounts.clone(),
        ..Container::default()
    }
}
