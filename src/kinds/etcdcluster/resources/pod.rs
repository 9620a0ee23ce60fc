//! The pod of a member: the guard that lets etcd start, and etcd.
//!
//! Guarantees: nothing runs with more rights than it needs; no probe stops a member that is slow, follows, or has an
//! alarm; what the spec lays over the pod wins, but over the names by which others find it.
//!
//! Traps that shape the probes: `/health` fails on every member while an alarm is armed, which would empty the Service
//! of a cluster without space; `/readyz` fails on a learner, and is not there before 3.5.11; what is not serializable
//! fails without a leader. A defragmentation blocks the answer for as long as it takes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, ConfigMapVolumeSource, Container, ContainerPort, EmptyDirVolumeSource, HTTPGetAction,
    LocalObjectReference, PodAffinityTerm, PodAntiAffinity, PodSecurityContext, PodSpec, PodTemplateSpec,
    Probe, SecretVolumeSource, SecurityContext, Volume, WeightedPodAffinityTerm,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::etcd;
use crate::api::pod::{PROGRAM, PullPolicy, downward, mount, unprivileged, unprivileged_container, volume};
use crate::controllers::manifest::pairs;
use crate::kinds::etcdcluster::names;
use crate::kinds::etcdcluster::observation::Template;
use crate::kinds::etcdcluster::spec::{Pod, Spec};

/// Seconds that a member has to stop, unless the spec says so.
const GRACE_SECONDS: i64 = 30;

/// Where the volume of a member is mounted.
const VOLUME: &str = "/var/lib/etcd";

/// Where the ConfigMap is mounted.
const CONFIG: &str = "/etc/gatehouse/config";

/// The folder that the two containers share.
const WORK: &str = "/gatehouse-run";

/// The volume of [`CONFIG`].
const CONFIG_VOLUME: &str = "config";

/// The volume of [`WORK`].
const WORK_VOLUME: &str = "gatehouse";

/// What every probe asks for; see the traps above.
const HEALTH: &str = "/health?serializable=true&exclude=NOSPACE&exclude=CORRUPT";

/// What the pods of a cluster are made from.
#[must_use]
pub fn template(spec: &Spec, template: &Template, guard_image: &str) -> PodTemplateSpec {
    let labels = names::labels(spec.name());
    let annotations = pairs([(names::TEMPLATE, &names::template_text(template))]);
    let mut overlay = spec.pod.clone();
    let pod = PodSpec {
        init_containers: Some(vec![guard(spec, template, guard_image, &overlay)]),
        containers: vec![member(spec, template, &overlay)],
        volumes: Some(volumes(spec)),
        image_pull_secrets: pull_secrets(spec),
        automount_service_account_token: Some(false),
        // Etcd takes the variables of a Service by the name of etcd for its own, and warns.
        enable_service_links: Some(false),
        termination_grace_period_seconds: Some(
            overlay.termination_grace_period_seconds.unwrap_or(GRACE_SECONDS),
        ),
        ..PodSpec::default()
    };
    overlay.affinity.get_or_insert_with(|| apart(labels.clone()));
    overlay.security_context.get_or_insert_with(unprivileged_pod);
    for constraint in overlay.topology_spread_constraints.iter_mut().flatten() {
        // A constraint without a selector counts no pod: it shall count those of this cluster.
        constraint.label_selector.get_or_insert_with(|| selector(labels.clone()));
    }
    overlay.template(labels, annotations, pod)
}

/// What images are pulled with, etcd's and our own.
#[must_use]
pub fn pull_secrets(spec: &Spec) -> Option<Vec<LocalObjectReference>> {
    let secrets = spec.image.pull_secrets.as_ref()?;
    Some(secrets.iter().map(|name| LocalObjectReference { name: name.clone() }).collect())
}

/// Lets etcd start once the operator says so, on the volume that it says. It has the resources of etcd: it costs
/// nothing, for the larger of the two counts, and the pod stays in the class that its author wanted.
fn guard(spec: &Spec, template: &Template, image: &str, overlay: &Pod) -> Container {
    let mut arguments = vec![
        "--member=$(POD_NAME)".to_owned(),
        format!("--cluster={}", spec.uid()),
        format!("--template={}", names::template_text(template)),
        format!("--config={CONFIG}"),
        format!("--data={VOLUME}"),
        format!("--work={WORK}"),
    ];
    if spec.storage.is_in_memory {
        arguments.push("--volume=pod".to_owned());
    }
    Container {
        name: names::GUARD.to_owned(),
        image: Some(image.to_owned()),
        image_pull_policy: Some(PullPolicy::IfNotPresent.as_str().to_owned()),
        command: Some(vec![PROGRAM.to_owned(), "etcd".to_owned(), "guard".to_owned()]),
        args: Some(arguments),
        env: Some(vec![downward("POD_NAME", "metadata.name"), downward("POD_UID", "metadata.uid")]),
        resources: overlay.resources.clone(),
        security_context: Some(container_security(overlay)),
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        volume_mounts: Some(vec![
            mount(names::DATA, VOLUME, false),
            mount(CONFIG_VOLUME, CONFIG, true),
            mount(WORK_VOLUME, WORK, false),
        ]),
        ..Container::default()
    }
}

fn member(spec: &Spec, template: &Template, overlay: &Pod) -> Container {
    let repository = &spec.image.repository;
    let program = format!("{WORK}{PROGRAM}");
    let command = [&program, "etcd", "run", "--work", WORK, "--data", VOLUME, "--", "/usr/local/bin/etcd"];
    let command = command.into_iter().map(str::to_owned);
    let file = format!("--config-file={WORK}/etcd.yaml");
    let mut mounts = vec![mount(names::DATA, VOLUME, false), mount(WORK_VOLUME, WORK, true)];
    if let Some(secrets) = spec.secrets() {
        mounts.extend(secrets.mounts().into_iter().map(|(name, _, path)| mount(name, path, true)));
    }
    Container {
        name: names::ETCD.to_owned(),
        image: Some(format!("{repository}:v{}", template.version)),
        image_pull_policy: Some(spec.image.pull_policy.as_str().to_owned()),
        command: Some(command.chain([file]).chain(etcd::arguments(spec)).collect()),
        env: overlay.env.clone(),
        ports: Some(vec![
            port("client", names::CLIENT_PORT),
            port("peer", names::PEER_PORT),
            port("metrics", names::METRICS_PORT),
        ]),
        resources: overlay.resources.clone(),
        // A log of hours may have to be read, and a database to be fetched: half an hour.
        startup_probe: Some(probe(2, 5, 900)),
        // Ten minutes: a busy member is not made better by a restart, only one that hangs for good.
        liveness_probe: Some(probe(10, 10, 60)),
        readiness_probe: Some(probe(5, 5, 3)),
        security_context: Some(container_security(overlay)),
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        volume_mounts: Some(mounts),
        ..Container::default()
    }
}

fn volumes(spec: &Spec) -> Vec<Volume> {
    let mut volumes = vec![
        Volume {
            config_map: Some(ConfigMapVolumeSource {
                name: names::config(spec.name()),
                // The pod of a first member waits for it, and can say so once it runs.
                optional: Some(true),
                ..ConfigMapVolumeSource::default()
            }),
            ..volume(CONFIG_VOLUME)
        },
        Volume { empty_dir: Some(EmptyDirVolumeSource::default()), ..volume(WORK_VOLUME) },
    ];
    if spec.storage.is_in_memory {
        let size = Quantity(spec.storage.size.to_string());
        let memory = EmptyDirVolumeSource { medium: Some("Memory".to_owned()), size_limit: Some(size) };
        volumes.push(Volume { empty_dir: Some(memory), ..volume(names::DATA) });
    }
    if let Some(secrets) = spec.secrets() {
        volumes.extend(secrets.mounts().into_iter().map(|(name, secret, _)| Volume {
            secret: Some(SecretVolumeSource {
                secret_name: Some(secret.to_owned()),
                ..SecretVolumeSource::default()
            }),
            ..volume(name)
        }));
    }
    volumes
}

/// Members keep apart by node where they can: a node that goes takes one of them.
fn apart(labels: BTreeMap<String, String>) -> Affinity {
    let preferred = WeightedPodAffinityTerm {
        weight: 100,
        pod_affinity_term: PodAffinityTerm {
            label_selector: Some(selector(labels)),
            topology_key: "kubernetes.io/hostname".to_owned(),
            ..PodAffinityTerm::default()
        },
    };
    Affinity {
        pod_anti_affinity: Some(PodAntiAffinity {
            preferred_during_scheduling_ignored_during_execution: Some(vec![preferred]),
            ..PodAntiAffinity::default()
        }),
        ..Affinity::default()
    }
}

fn selector(labels: BTreeMap<String, String>) -> LabelSelector {
    LabelSelector { match_labels: Some(labels), match_expressions: None }
}

/// Security settings of pods, unless the spec has others.
#[must_use]
pub fn unprivileged_pod() -> PodSecurityContext {
    PodSecurityContext {
        // A database of many files is not gone through at every start.
        fs_group_change_policy: Some("OnRootMismatch".to_owned()),
        ..unprivileged()
    }
}

/// Security settings of both containers of a member, because each writes what the other reads; and of all others.
#[must_use]
pub fn container_security(overlay: &Pod) -> SecurityContext {
    overlay.container_security_context.clone().unwrap_or_else(unprivileged_container)
}

fn port(name: &str, number: u16) -> ContainerPort {
    ContainerPort {
        name: Some(name.to_owned()),
        container_port: i32::from(number),
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    }
}

/// Seconds between two questions, seconds for an answer, and how many may fail in a row.
fn probe(period: i32, timeout: i32, failures: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(HEALTH.to_owned()),
            port: IntOrString::String("metrics".to_owned()),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(period),
        timeout_seconds: Some(timeout),
        failure_threshold: Some(failures),
        ..Probe::default()
    }
}

#[cfg(test)]
mod tests;
