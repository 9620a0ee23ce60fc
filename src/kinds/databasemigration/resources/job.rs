//! The Job of a run.
//!
//! Guarantees: Kubernetes repeats nothing: a run that fails is followed by another one, or by none, as its plan says; a
//! pod is replaced only when it has ended; the pod has no token of the API server, no right that it does not need, and
//! of Secrets only those keys that the object names.
//! Assumes: two pods may run all the same (kubernetes/kubernetes#120790); the lock in the database decides.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{
    Capabilities, ConfigMapVolumeSource, Container, KeyToPath, PersistentVolumeClaimVolumeSource,
    PodSecurityContext, PodSpec, PodTemplateSpec, ProjectedVolumeSource, ResourceRequirements,
    SeccompProfile, SecretProjection, SecurityContext, Volume, VolumeMount, VolumeProjection,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::assignment::{DATABASE, Texts, secret_files};
use super::snapshot::ASSIGNMENT;
use super::{Planned, annotations, labels, metadata};
use crate::controllers::manifest::{Manifest, service_account};
use crate::kinds::databasemigration::names::CONTAINER;
use crate::kinds::databasemigration::observation::Purpose;
use crate::kinds::databasemigration::spec::Spec;

/// The program in the image.
const PROGRAM: &str = "/gatehouse";

/// Where the ConfigMap of the run is mounted.
const SCRIPTS: &str = "/etc/gatehouse/migration/scripts";

/// Where scripts from Secrets are mounted.
const SECRET_SCRIPTS: &str = "/etc/gatehouse/migration/secret-scripts";

/// Where the user and the password are mounted.
const CREDENTIALS: &str = "/etc/gatehouse/migration/credentials";

/// Where certificates are mounted.
const TLS: &str = "/etc/gatehouse/migration/tls";

/// The user of the image.
const USER: i64 = 65532;

/// Seconds from the signal to end until the pod is killed: a statement is cancelled, and what is open is rolled back.
const GRACE: i64 = 60;

/// Seconds that a run may take that changes nothing.
const READING: i64 = 600;

/// The Job of a run.
#[must_use]
pub fn manifest(spec: &Spec, texts: &[Texts], planned: &Planned, image: &str) -> Manifest {
    let seconds = i64::try_from(spec.deadline.as_secs()).unwrap_or(i64::MAX);
    let deadline = if planned.purpose == Purpose::Plan { READING.min(seconds) } else { seconds };
    let job = Job {
        metadata: metadata(spec, planned),
        spec: Some(JobSpec {
            backoff_limit: Some(0),
            completions: Some(1),
            parallelism: Some(1),
            active_deadline_seconds: Some(deadline),
            pod_replacement_policy: Some("Failed".to_owned()),
            ttl_seconds_after_finished: i32::try_from(spec.ttl.as_secs()).ok(),
            template: template(spec, texts, planned, image),
            ..JobSpec::default()
        }),
        status: None,
    };
    Manifest::of(&job).stamped()
}

fn template(spec: &Spec, texts: &[Texts], planned: &Planned, image: &str) -> PodTemplateSpec {
    let runner = spec.runner.clone();
    let volumes = volumes(spec, texts, planned);
    let mounted: Vec<_> = volumes.iter().map(|(volume, path)| mount(volume, path)).collect();
    let container = Container {
        name: CONTAINER.to_owned(),
        image: Some(image.to_owned()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        command: Some([PROGRAM, "migrate", "run"].map(str::to_owned).to_vec()),
        args: Some(arguments(&volumes)),
        resources: Some(runner.resources.unwrap_or_else(resources)),
        security_context: Some(container_security()),
        volume_mounts: Some(mounted),
        ..Container::default()
    };
    PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(runner.labels.unwrap_or_default().into_iter().chain(labels(spec)).collect()),
            annotations: Some(
                runner.annotations.unwrap_or_default().into_iter().chain(annotations(planned)).collect(),
            ),
            ..ObjectMeta::default()
        }),
        spec: Some(PodSpec {
            containers: vec![container],
            volumes: Some(volumes.into_iter().map(|(volume, _)| volume).collect()),
            image_pull_secrets: runner.image_pull_secrets,
            restart_policy: Some("Never".to_owned()),
            termination_grace_period_seconds: Some(GRACE),
            automount_service_account_token: Some(false),
            enable_service_links: Some(false),
            security_context: Some(pod_security()),
            node_selector: runner.node_selector,
            tolerations: runner.tolerations,
            service_account_name: service_account(runner.service_account_name),
            ..PodSpec::default()
        }),
    }
}

/// The options of `gatehouse migrate run`.
fn arguments(volumes: &[(Volume, &'static str)]) -> Vec<String> {
    let options = [("--secret-scripts", SECRET_SCRIPTS), ("--credentials", CREDENTIALS), ("--tls", TLS)];
    let has = |path: &str| volumes.iter().any(|(_, mounted)| *mounted == path);
    let given =
        options.into_iter().filter(|(_, path)| has(path)).map(|(option, path)| format!("{option}={path}"));
    [format!("--assignment={SCRIPTS}/{ASSIGNMENT}"), format!("--scripts={SCRIPTS}")]
        .into_iter()
        .chain(given)
        .collect()
}

/// The volumes, and where each is mounted.
fn volumes(spec: &Spec, texts: &[Texts], planned: &Planned) -> Vec<(Volume, &'static str)> {
    let of = |name: &str| Volume { name: name.to_owned(), ..Volume::default() };
    let snapshot = ConfigMapVolumeSource { name: planned.name(spec), ..ConfigMapVolumeSource::default() };
    let mut volumes = vec![(Volume { config_map: Some(snapshot), ..of("scripts") }, SCRIPTS)];
    let mut project = |name: &str, items: BTreeMap<String, BTreeSet<(String, String)>>, path| {
        if !items.is_empty() {
            volumes.push((Volume { projected: Some(projected(items)), ..of(name) }, path));
        }
    };
    project("secret-scripts", scripts(texts), SECRET_SCRIPTS);
    project("credentials", credentials(spec), CREDENTIALS);
    project("tls", certificates(spec), TLS);
    if let Some(file) = &spec.database.file {
        let claim =
            PersistentVolumeClaimVolumeSource { claim_name: file.claim_name.clone(), read_only: None };
        volumes.push((Volume { persistent_volume_claim: Some(claim), ..of("database") }, DATABASE));
    }
    volumes
}

/// Keys of Secrets and the files that they become, by Secret.
type Items = BTreeMap<String, BTreeSet<(String, String)>>;

fn projected(items: Items) -> ProjectedVolumeSource {
    let source = |(name, keys): (String, BTreeSet<(String, String)>)| VolumeProjection {
        secret: Some(SecretProjection {
            name,
            items: Some(keys.into_iter().map(|(key, path)| KeyToPath { key, path, mode: None }).collect()),
            optional: None,
        }),
        ..VolumeProjection::default()
    };
    ProjectedVolumeSource {
        sources: Some(items.into_iter().map(source).collect()),
        default_mode: Some(0o440),
    }
}

fn scripts(texts: &[Texts]) -> Items {
    let mut items = Items::new();
    for (file, reference) in secret_files(texts) {
        items.entry(reference.name).or_default().insert((reference.key, file));
    }
    items
}

fn credentials(spec: &Spec) -> Items {
    let Some(secret) = &spec.database.credentials_secret else { return Items::new() };
    let key = |given: &Option<String>, absent: &str| given.clone().unwrap_or_else(|| absent.to_owned());
    let user = (key(&secret.username_key, "username"), "username".to_owned());
    let password = (key(&secret.password_key, "password"), "password".to_owned());
    Items::from([(secret.name.clone(), BTreeSet::from([user, password]))])
}

fn certificates(spec: &Spec) -> Items {
    let mut items = Items::new();
    let Some(tls) = &spec.database.tls else { return items };
    if let Some(authority) = &tls.ca_secret {
        let key = authority.key.clone().unwrap_or_else(|| "ca.crt".to_owned());
        items.entry(authority.name.clone()).or_default().insert((key, "ca.crt".to_owned()));
    }
    if let Some(client) = &tls.client_cert_secret {
        let pair = ["tls.crt", "tls.key"].map(|key| (key.to_owned(), key.to_owned()));
        items.entry(client.name.clone()).or_default().extend(pair);
    }
    items
}

fn mount(volume: &Volume, path: &str) -> VolumeMount {
    let is_database = path == DATABASE;
    VolumeMount {
        name: volume.name.clone(),
        mount_path: path.to_owned(),
        read_only: (!is_database).then_some(true),
        ..VolumeMount::default()
    }
}

/// What it takes to pass scripts on one by one. Given at all, for a quota admits no pod without.
fn resources() -> ResourceRequirements {
    let of = |cpu: &str, memory: &str| {
        let amounts = [("cpu", cpu), ("memory", memory)];
        amounts.map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned()))).into()
    };
    ResourceRequirements {
        requests: Some(of("10m", "32Mi")),
        limits: Some(of("1", "256Mi")),
        ..ResourceRequirements::default()
    }
}

fn pod_security() -> PodSecurityContext {
    PodSecurityContext {
        run_as_non_root: Some(true),
        run_as_user: Some(USER),
        run_as_group: Some(USER),
        fs_group: Some(USER),
        seccomp_profile: Some(SeccompProfile { type_: "RuntimeDefault".to_owned(), localhost_profile: None }),
        ..PodSecurityContext::default()
    }
}

fn container_security() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        privileged: Some(false),
        read_only_root_filesystem: Some(true),
        capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), add: None }),
        ..SecurityContext::default()
    }
}
