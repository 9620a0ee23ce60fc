//! The CronJob that takes backups, and the Job of a backup before an upgrade, which runs the same.
//!
//! Guarantees: `kubectl create job --from=cronjob/<name>-backup` takes one at any time, with a schedule or without; while
//! the data of members may differ, the schedule takes none, and none is deleted for one that a person asks for; the pod
//! has no token of the API server, and no right that it does not need.
//! Assumes: the cluster is recorded, and its members are known. Before that there is nothing to take a backup of.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec, Job, JobSpec, JobTemplateSpec};
use k8s_openapi::api::core::v1::{
    Container, PersistentVolumeClaimVolumeSource, PodSpec, PodTemplateSpec, SecretVolumeSource, Volume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{metadata, pod};
use crate::api::pod::{PROGRAM, PullPolicy, downward, mount, resources, volume};
use crate::controllers::manifest::{Manifest, pairs};
use crate::kinds::etcdcluster::api::v1::EtcdClusterStatus;
use crate::kinds::etcdcluster::names;
use crate::kinds::etcdcluster::observation::Version;
use crate::kinds::etcdcluster::spec::{Backup, Destination, Pod, Retention, Spec};

/// The container that takes a backup, and the volume that it goes to.
pub const BACKUP: &str = "backup";

/// Where that volume is mounted.
const DESTINATION: &str = "/backup";

/// The volume with the client's certificate.
const CLIENT_TLS: &str = "client-tls";

/// Where that is mounted.
const CLIENT_TLS_PATH: &str = "/etc/gatehouse/tls/client";

/// The variable with the name of the Job.
const JOB: &str = "JOB";

/// The schedule of a CronJob that has none: it rests.
const NEVER: &str = "@yearly";

/// Seconds by which a backup may begin too late; after that it is a missed one.
const STARTING_DEADLINE: i64 = 3600;

/// Seconds that a Job may take.
const DEADLINE: i64 = 3600;

/// How often a Job tries again.
const RETRIES: i32 = 3;

/// Jobs that succeeded, and that failed, and are left to be looked at.
const HISTORY: i32 = 3;

/// Seconds after which a Job before an upgrade is deleted once it has ended. As long its backup is a recent one, or
/// nothing is tried again.
const RECENT: i32 = 1800;

/// Labels of what takes backups: no Service and no PodDisruptionBudget counts it among the members.
#[must_use]
pub fn labels(spec: &Spec) -> BTreeMap<String, String> {
    let mut labels = names::labels(spec.name());
    labels.extend(pairs([(names::COMPONENT, BACKUP)]));
    labels
}

/// The selector of it, as text.
#[must_use]
pub fn selector_text(spec: &Spec) -> String {
    labels(spec).iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

/// The CronJob; none where there is to be none. Without a schedule, of a stopped cluster, and while the data of members
/// are suspect, it rests.
#[must_use]
pub fn cron_job(
    spec: &Spec,
    status: Option<&EtcdClusterStatus>,
    are_data_suspect: bool,
    image: &str,
) -> Option<Manifest> {
    let mut backup = spec.backup.clone()?;
    if are_data_suspect {
        backup.retention = Retention::default();
    }
    let job = job_spec(spec, status, &backup, image)?;
    let rests = backup.is_suspended || backup.schedule.is_none() || spec.replicas == 0 || are_data_suspect;
    let cron_job = CronJob {
        metadata: of_backups(spec, names::backup(spec.name())),
        spec: Some(CronJobSpec {
            schedule: backup.schedule.clone().unwrap_or_else(|| NEVER.to_owned()),
            time_zone: Some(backup.time_zone.clone()),
            suspend: Some(rests),
            concurrency_policy: Some("Forbid".to_owned()),
            starting_deadline_seconds: Some(STARTING_DEADLINE),
            successful_jobs_history_limit: Some(HISTORY),
            failed_jobs_history_limit: Some(HISTORY),
            job_template: JobTemplateSpec { metadata: Some(labelled(spec)), spec: Some(job) },
        }),
        status: None,
    };
    Some(Manifest::of(&cron_job).stamped())
}

/// The Job before an upgrade to `version`; none where a backup cannot be taken.
#[must_use]
pub fn job(spec: &Spec, status: Option<&EtcdClusterStatus>, version: Version, image: &str) -> Option<Job> {
    let job = job_spec(spec, status, spec.backup.as_ref()?, image)?;
    Some(Job {
        metadata: of_backups(spec, names::backup_before(spec.name(), version)),
        spec: Some(JobSpec { ttl_seconds_after_finished: Some(RECENT), ..job }),
        status: None,
    })
}

/// Where pods of a template write backups to; none where they write none.
#[must_use]
pub fn destination(template: &PodTemplateSpec) -> Option<Destination> {
    let pod = template.spec.as_ref()?;
    let volume = pod.volumes.iter().flatten().find(|volume| volume.name == BACKUP)?;
    let container = pod.containers.iter().find(|container| container.name == BACKUP)?;
    let folder = format!("--destination={DESTINATION}/");
    let path = container.args.iter().flatten().find_map(|argument| argument.strip_prefix(&folder))?;
    let claim = volume.persistent_volume_claim.as_ref()?.claim_name.clone();
    Some(Destination { claim, path: path.to_owned() })
}

fn of_backups(spec: &Spec, name: String) -> ObjectMeta {
    ObjectMeta { labels: Some(labels(spec)), ..metadata(spec, name) }
}

/// Of the Jobs.
fn labelled(spec: &Spec) -> ObjectMeta {
    ObjectMeta { labels: Some(labels(spec)), ..ObjectMeta::default() }
}

fn job_spec(
    spec: &Spec,
    status: Option<&EtcdClusterStatus>,
    backup: &Backup,
    image: &str,
) -> Option<JobSpec> {
    let destination = backup.destination.as_ref()?;
    let arguments = arguments(spec, status?, backup, destination)?;
    Some(JobSpec {
        backoff_limit: Some(RETRIES),
        active_deadline_seconds: Some(DEADLINE),
        template: template(spec, destination, arguments, image),
        ..JobSpec::default()
    })
}

/// The pods, with the settings of members that do not concern their place: a mesh or a policy may go by labels.
fn template(spec: &Spec, destination: &Destination, arguments: Vec<String>, image: &str) -> PodTemplateSpec {
    let source = PersistentVolumeClaimVolumeSource { claim_name: destination.claim.clone(), read_only: None };
    let mut volumes = vec![Volume { persistent_volume_claim: Some(source), ..volume(BACKUP) }];
    let mut mounts = vec![mount(BACKUP, DESTINATION, false)];
    if let Some(secrets) = spec.secrets() {
        let source =
            SecretVolumeSource { secret_name: Some(secrets.client.clone()), ..SecretVolumeSource::default() };
        volumes.push(Volume { secret: Some(source), ..volume(CLIENT_TLS) });
        mounts.push(mount(CLIENT_TLS, CLIENT_TLS_PATH, true));
    }
    let container = Container {
        name: BACKUP.to_owned(),
        image: Some(image.to_owned()),
        image_pull_policy: Some(PullPolicy::IfNotPresent.as_str().to_owned()),
        command: Some(vec![PROGRAM.to_owned(), "etcd".to_owned(), "snapshot".to_owned()]),
        args: Some(arguments),
        // Only its pods know the name of the Job.
        env: Some(vec![downward(JOB, "metadata.labels['batch.kubernetes.io/job-name']")]),
        resources: Some(resources("64Mi", "512Mi")),
        security_context: Some(pod::container_security(&spec.pod)),
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        volume_mounts: Some(mounts),
        ..Container::default()
    };
    let pod = PodSpec {
        containers: vec![container],
        volumes: Some(volumes),
        image_pull_secrets: pod::pull_secrets(spec),
        // Each attempt leaves a pod of its own, with what it had to say.
        restart_policy: Some("Never".to_owned()),
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        ..PodSpec::default()
    };
    let mut given = Pod {
        affinity: None,
        topology_spread_constraints: None,
        priority_class_name: None,
        scheduler_name: None,
        runtime_class_name: None,
        ..spec.pod.clone()
    };
    given.security_context.get_or_insert_with(pod::unprivileged_pod);
    given.template(labels(spec), BTreeMap::new(), pod)
}

/// The options of `gatehouse etcd snapshot`; none while the cluster is not recorded, or its members are not known.
fn arguments(
    spec: &Spec,
    status: &EtcdClusterStatus,
    backup: &Backup,
    Destination { path, .. }: &Destination,
) -> Option<Vec<String>> {
    let endpoints = status.endpoints.as_ref().filter(|endpoints| !endpoints.is_empty())?;
    let (namespace, name) = (spec.namespace(), spec.name());
    let mut arguments = vec![
        format!("--namespace={namespace}"),
        format!("--name={name}"),
        format!("--cluster={}", spec.uid()),
        format!("--cluster-id={}", status.cluster_id.as_ref()?),
        format!("--destination={DESTINATION}/{path}"),
        format!("--job=$({JOB})"),
    ];
    arguments.extend(endpoints.iter().map(|endpoint| format!("--endpoint={endpoint}")));
    if spec.tls.is_some() {
        arguments.push(format!("--tls={CLIENT_TLS_PATH}"));
    }
    let retention = backup.retention.clone();
    arguments.extend(retention.keep_last.map(|count| format!("--keep-last={count}")));
    arguments.extend(retention.max_age.map(|age| format!("--max-age={age}")));
    Some(arguments)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::{GUARD, cluster};
    use super::*;

    fn recorded() -> EtcdClusterStatus {
        EtcdClusterStatus {
            cluster_id: Some("c1".to_owned()),
            endpoints: Some(vec!["https://c-0.c.shop.svc:2379".to_owned()]),
            ..EtcdClusterStatus::default()
        }
    }

    fn claim() -> Value {
        json!({"persistentVolumeClaim": {"claimName": "backups"}})
    }

    fn made(backup: &Value, more: &Value) -> Value {
        let mut spec = json!({"backup": backup});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        cron_job(&cluster(&spec), Some(&recorded()), false, GUARD).unwrap().object
    }

    #[test]
    fn a_schedule_becomes_one_and_nothing_runs_beside_itself() {
        let backup = json!({"schedule": "0 2 * * *", "timeZone": "Europe/Berlin", "destination": claim(),
            "retention": {"keepLast": 5, "maxAge": "720h"}});
        let made = made(&backup, &json!({}));
        assert_eq!((&made["metadata"]["name"], &made["kind"]), (&json!("c-backup"), &json!("CronJob")));
        assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], "u-1");
        let spec = &made["spec"];
        assert_eq!(
            (&spec["schedule"], &spec["timeZone"], &spec["suspend"], &spec["concurrencyPolicy"]),
            (&json!("0 2 * * *"), &json!("Europe/Berlin"), &json!(false), &json!("Forbid"))
        );
        let pod = &spec["jobTemplate"]["spec"]["template"];
        assert_eq!(pod["metadata"]["labels"]["app.kubernetes.io/component"], "backup");
        let container = &pod["spec"]["containers"][0];
        assert_eq!(container["command"], json!(["/gatehouse", "etcd", "snapshot"]));
        assert_eq!(
            container["args"],
            json!([
                "--namespace=shop",
                "--name=c",
                "--cluster=u-1",
                "--cluster-id=c1",
                "--destination=/backup/shop/c",
                "--job=$(JOB)",
                "--endpoint=https://c-0.c.shop.svc:2379",
                "--tls=/etc/gatehouse/tls/client",
                "--keep-last=5",
                "--max-age=720h",
            ])
        );
    }

    #[test]
    fn what_runs_has_no_token_no_privileges_and_the_clients_certificate_alone() {
        let made = made(&json!({"destination": claim()}), &json!({}));
        let pod = &made["spec"]["jobTemplate"]["spec"]["template"]["spec"];
        assert_eq!(pod["automountServiceAccountToken"], false);
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        let container = &pod["containers"][0];
        assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
        assert_eq!(container["securityContext"]["capabilities"]["drop"], json!(["ALL"]));
        assert_eq!(container["image"], GUARD);
        assert_eq!(pod["volumes"][1]["secret"]["secretName"], "c-client-tls");
        assert_eq!(pod["volumes"][0]["persistentVolumeClaim"]["claimName"], "backups");
    }

    #[test]
    fn a_quota_and_a_mesh_take_it_for_one_of_the_members_pods() {
        let pod = json!({"labels": {"team": "shop", "app.kubernetes.io/component": "x"},
            "annotations": {"mesh": "off"}});
        let made = made(&json!({"destination": claim()}), &json!({"pod": pod}));
        let pod = &made["spec"]["jobTemplate"]["spec"]["template"];
        assert_eq!(pod["metadata"]["labels"]["team"], "shop");
        assert_eq!(pod["metadata"]["labels"]["app.kubernetes.io/component"], "backup");
        assert_eq!(pod["metadata"]["annotations"], json!({"mesh": "off"}));
        let resources = &pod["spec"]["containers"][0]["resources"];
        for amounts in ["requests", "limits"] {
            assert!(resources[amounts]["cpu"].is_string() && resources[amounts]["memory"].is_string());
        }
    }

    #[test]
    fn each_mode_of_tls_has_its_client() {
        let volumes = |tls: Value| {
            let made = made(&json!({"destination": claim()}), &json!({"tls": tls}));
            made["spec"]["jobTemplate"]["spec"]["template"]["spec"]["volumes"].clone()
        };
        assert_eq!(volumes(json!({"mode": "Disabled"})).as_array().unwrap().len(), 1);
        let named = volumes(json!({"mode": "Secrets", "secrets": {"clientRef": {"name": "mine"}}}));
        assert_eq!(named[1]["secret"]["secretName"], "mine");
    }

    #[test]
    fn without_a_schedule_suspended_and_stopped_it_rests_and_can_be_asked_all_the_same() {
        let daily = json!({"schedule": "@daily", "destination": claim()});
        assert_eq!(made(&daily, &json!({}))["spec"]["suspend"], false);
        assert_eq!(made(&daily, &json!({"replicas": 0}))["spec"]["suspend"], true);
        assert_eq!(made(&json!({"destination": claim()}), &json!({}))["spec"]["suspend"], true);
        let suspended = json!({"schedule": "@daily", "suspend": true, "destination": claim()});
        let suspended = made(&suspended, &json!({}));
        assert_eq!(
            (&suspended["spec"]["suspend"], &suspended["spec"]["schedule"]),
            (&json!(true), &json!("@daily"))
        );
    }

    #[test]
    fn while_data_are_suspect_the_schedule_takes_none_and_none_is_deleted() {
        let backup = json!({"schedule": "@daily", "destination": claim(), "retention": {"keepLast": 5}});
        let asked = cluster(&json!({"backup": backup}));
        let of = |are_data_suspect| {
            let made = cron_job(&asked, Some(&recorded()), are_data_suspect, GUARD).unwrap().object;
            let arguments = &made["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["args"];
            (made["spec"]["suspend"].clone(), arguments.as_array().unwrap().contains(&json!("--keep-last=5")))
        };
        assert_eq!((of(false), of(true)), ((json!(false), true), (json!(true), false)));
    }

    #[test]
    fn there_is_none_where_none_is_asked_for_or_can_be_taken() {
        let s3 = json!({"s3": {"bucket": "abc"}});
        for spec in [json!({}), json!({"backup": {}}), json!({"backup": {"destination": s3}})] {
            assert_eq!(cron_job(&cluster(&spec), Some(&recorded()), false, GUARD), None, "{spec}");
        }
        let asked = cluster(&json!({"backup": {"destination": claim()}}));
        assert_eq!(cron_job(&asked, Some(&EtcdClusterStatus::default()), false, GUARD), None);
        assert_eq!(cron_job(&asked, None, false, GUARD), None);
    }

    #[test]
    fn a_job_before_an_upgrade_runs_the_same_under_a_name_of_its_own() {
        let (cluster, status) = (cluster(&json!({"backup": {"destination": claim()}})), recorded());
        let job = job(&cluster, Some(&status), Version::new(7, 3), GUARD).unwrap();
        assert_eq!(job.metadata.name.as_deref(), Some("c-backup-3-7-3"));
        assert_eq!(job.metadata.owner_references.as_ref().unwrap()[0].uid, "u-1");
        let cron_job = cron_job(&cluster, Some(&status), false, GUARD).unwrap().object;
        let template = serde_json::to_value(&job.spec.as_ref().unwrap().template).unwrap();
        assert_eq!(template, cron_job["spec"]["jobTemplate"]["spec"]["template"]);
        let goes_to = destination(&job.spec.as_ref().unwrap().template);
        assert_eq!(goes_to.as_ref(), cluster.backup_destination());
        assert!(job.spec.unwrap().ttl_seconds_after_finished.is_some());
    }
}
