//! The Job of a run.
//!
//! Guarantees: Kubernetes repeats nothing: a run that fails is followed by another one, or by none, as its plan says; a
//! pod is replaced only when it has ended; the pod has no token of the API server, no right that it does not need, and
//! of Secrets only those keys that the object names.
//! Assumes: two pods may run all the same (kubernetes/kubernetes#120790); the lock in the database decides.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, Container, PersistentVolumeClaimVolumeSource, PodSpec, PodTemplateSpec, Volume,
};

use super::assignment::{ASSIGNMENT, DATABASE, Texts, secret_files};
use super::{Planned, annotations, labels, metadata};
use crate::api::pod::{PROGRAM, mount, unprivileged, unprivileged_container, volume};
use crate::controllers::manifest::Manifest;
use crate::kinds::databasemigration::api::pod::{Items, projected, resources};
use crate::kinds::databasemigration::names::CONTAINER;
use crate::kinds::databasemigration::spec::Spec;

/// Where the ConfigMap of the run is mounted.
const SCRIPTS: &str = "/etc/gatehouse/migration/scripts";

/// Where scripts from Secrets are mounted.
const SECRET_SCRIPTS: &str = "/etc/gatehouse/migration/secret-scripts";

/// Where the user and the password are mounted.
const CREDENTIALS: &str = "/etc/gatehouse/migration/credentials";

/// Where certificates are mounted.
const TLS: &str = "/etc/gatehouse/migration/tls";

/// Who may read a mounted Secret: the group of the pod.
const MODE: i32 = 0o440;

/// Seconds from the signal to end until the pod is killed: a statement is cancelled, and what is open is rolled back.
const GRACE: i64 = 60;

/// Seconds that a run may take that changes nothing.
const READING: i64 = 600;

/// The Job of a run.
#[must_use]
pub fn manifest(spec: &Spec, texts: &[Texts], planned: &Planned, image: &str) -> Manifest {
    let seconds = i64::try_from(spec.deadline.as_secs()).unwrap_or(i64::MAX);
    let deadline = if planned.purpose.only_reads() { READING.min(seconds) } else { seconds };
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
    let mut runner = spec.runner.clone();
    let volumes = volumes(spec, texts, planned);
    let mounted = volumes.iter().map(|(volume, path)| mount(&volume.name, path, *path != DATABASE));
    let container = Container {
        name: CONTAINER.to_owned(),
        image: Some(image.to_owned()),
        image_pull_policy: Some(runner.image_pull_policy.unwrap_or_default().as_str().to_owned()),
        command: Some([PROGRAM, "migrate", "run"].map(str::to_owned).to_vec()),
        args: Some(arguments(&volumes)),
        resources: Some(runner.resources.take().unwrap_or_else(resources)),
        security_context: Some(
            runner.container_security_context.take().unwrap_or_else(unprivileged_container),
        ),
        volume_mounts: Some(mounted.collect()),
        // Of a program that could not report, the end of its log is reported.
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        ..Container::default()
    };
    let pod = PodSpec {
        containers: vec![container],
        volumes: Some(volumes.into_iter().map(|(volume, _)| volume).collect()),
        image_pull_secrets: runner.image_pull_secrets.take(),
        restart_policy: Some("Never".to_owned()),
        termination_grace_period_seconds: Some(GRACE),
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        ..PodSpec::default()
    };
    runner.security_context.get_or_insert_with(unprivileged);
    runner.template(labels(spec), annotations(planned), pod)
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
    let snapshot = ConfigMapVolumeSource { name: planned.name(spec), ..ConfigMapVolumeSource::default() };
    let mut volumes = vec![(Volume { config_map: Some(snapshot), ..volume("scripts") }, SCRIPTS)];
    let mut project = |name: &str, items: BTreeMap<String, BTreeSet<(String, String)>>, path| {
        if !items.is_empty() {
            volumes.push((Volume { projected: Some(projected(items, MODE)), ..volume(name) }, path));
        }
    };
    project("secret-scripts", scripts(texts), SECRET_SCRIPTS);
    project("credentials", spec.database.credentials.clone(), CREDENTIALS);
    project("tls", spec.database.certificates.clone(), TLS);
    if let Some(file) = &spec.database.file {
        let claim =
            PersistentVolumeClaimVolumeSource { claim_name: file.claim_name.clone(), read_only: None };
        volumes.push((Volume { persistent_volume_claim: Some(claim), ..volume("database") }, DATABASE));
    }
    volumes
}

fn scripts(texts: &[Texts]) -> Items {
    let mut items = Items::new();
    for (file, reference) in secret_files(texts) {
        items.entry(reference.name).or_default().insert((reference.key, file));
    }
    items
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::kinds::databasemigration::api::v1::DatabaseMigration;
    use crate::kinds::databasemigration::observation::Purpose;

    #[test]
    fn the_settings_of_the_runner_replace_the_defaults() {
        let built = |runner: &Value| {
            let object = json!({
                "apiVersion": "gatehouse.dev/v1", "kind": "DatabaseMigration",
                "metadata": {"name": "shop", "namespace": "a", "uid": "1"},
                "spec": {"database": {"engine": "SQLite", "file": {"claimName": "a", "path": "b"}},
                    "scripts": [{"id": "1", "kind": "Schema", "up": {"inline": "SELECT 1"}}], "runner": runner},
            });
            let object: DatabaseMigration = serde_json::from_value(object).unwrap();
            let planned = Planned {
                key: "k".to_owned(),
                number: 1,
                attempt: 1,
                purpose: Purpose::Apply,
                resolve: None,
                approved: None,
            };
            let job = manifest(&Spec::resolve(&object, Vec::new()), &[], &planned, "gatehouse:1");
            job.object["spec"]["template"].clone()
        };
        let pods = built(&json!({}));
        assert_eq!(pods["spec"]["securityContext"], json!(unprivileged()));
        let container = &pods["spec"]["containers"][0];
        assert_eq!(container["securityContext"], json!(unprivileged_container()));
        assert_eq!(container["imagePullPolicy"], "IfNotPresent");
        let pods = built(&json!({
            "labels": {"team": "a", "gatehouse.dev/owner-uid": "stolen"},
            "schedulerName": "second", "dnsPolicy": "Default", "securityContext": {"fsGroup": 7},
            "containerSecurityContext": {"runAsUser": 8}, "imagePullPolicy": "Always",
        }));
        let labels = &pods["metadata"]["labels"];
        assert_eq!((&labels["team"], &labels["gatehouse.dev/owner-uid"]), (&json!("a"), &json!("1")));
        assert_eq!(
            (&pods["spec"]["schedulerName"], &pods["spec"]["dnsPolicy"]),
            (&json!("second"), &json!("Default"))
        );
        assert_eq!(pods["spec"]["securityContext"], json!({"fsGroup": 7}));
        let container = &pods["spec"]["containers"][0];
        assert_eq!(container["securityContext"], json!({"runAsUser": 8}));
        assert_eq!(container["imagePullPolicy"], "Always");
    }
}
