//! Names: of the cluster, of what it refers to, and of what is laid over its pods.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::super::rules;
use super::super::v1::{ClientService, EtcdClusterSpec, Image, Pod};
use super::Cluster;
use crate::api::field::{Fault, Path, Verdict};
use crate::api::{dns, name};

/// Longest name of a cluster. Its CronJob is `<name>-backup`, and a CronJob's name has at most 52 characters, because
/// its Jobs append eleven (kubernetes, `pkg/apis/batch/validation`); a StatefulSet has the same bound from its
/// revision label (kubernetes/kubernetes#64023).
const LONGEST: usize = 45;

/// Seconds that a member may be given to stop, as [`rules::GRACE`] has them.
const GRACE_SECONDS: RangeInclusive<i64> = 10..=3600;

/// Labels that select the pods, and cannot be another's.
const OWN_LABELS: &[&str] =
    &["app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by"];

pub fn judge(cluster: &Cluster, verdict: &mut Verdict) {
    match cluster.generate_name {
        Some(base) => judge_base(base, verdict),
        None => judge_name(cluster.name, verdict),
    }
    judge_references(&cluster.spec, verdict);
    if let Some(service) = &cluster.spec.client_service {
        judge_service(service, &Path::spec().at("clientService"), verdict);
    }
    if let Some(pod) = &cluster.spec.pod {
        judge_pod(pod, &Path::spec().at("pod"), verdict);
    }
}

fn judge_name(given: &str, verdict: &mut Verdict) {
    let path = Path::metadata().at("name");
    if given.is_empty() {
        verdict.deny(Fault::required(path, "name or generateName is needed"));
    } else if let Err(detail) = name::dns_1035_label(given) {
        verdict.deny(Fault::invalid(path, given, detail));
    } else if given.len() > LONGEST {
        verdict.deny(Fault::invalid(
            path,
            given,
            format!("must have at most {LONGEST} characters, so that the names made of it fit"),
        ));
    }
}

/// What the API server appends are five letters or digits (apiserver, `pkg/storage/names`).
fn judge_base(base: &str, verdict: &mut Verdict) {
    const APPENDED: &str = "bcdfg";
    let path = Path::metadata().at("name");
    let longest = LONGEST - APPENDED.len();
    if base.len() > longest {
        let detail = format!(
            "metadata.generateName must have at most {longest} characters, so that the names made of it fit"
        );
        verdict.deny(Fault::invalid(path, base, detail));
    } else if let Err(detail) = name::dns_1035_label(&format!("{base}{APPENDED}")) {
        verdict.deny(Fault::invalid(path, base, format!("metadata.generateName {detail}")));
    }
}

fn judge_references(spec: &EtcdClusterSpec, verdict: &mut Verdict) {
    let Some(image) = &spec.image else { return };
    let path = Path::spec().at("image");
    if let Some(repository) = &image.repository
        && !is_repository(repository)
    {
        verdict.deny(Fault::invalid(
            path.at("repository"),
            repository,
            "must be a repository without tag and digest, such as quay.io/coreos/etcd",
        ));
    }
    judge_pull_secrets(image, &path.at("pullSecrets"), verdict);
}

fn judge_pull_secrets(image: &Image, path: &Path, verdict: &mut Verdict) {
    for (index, secret) in image.pull_secrets.iter().flatten().enumerate() {
        if let Err(detail) = name::dns_1123_subdomain(&secret.name) {
            verdict.deny(Fault::invalid(path.index(index).at("name"), &secret.name, detail));
        }
    }
}

/// Lower-case path segments after an optional host and port.
fn is_repository(text: &str) -> bool {
    let (host, path) = match text.split_once('/') {
        Some((host, path)) if host.contains(['.', ':']) || host == "localhost" => (Some(host), path),
        _ => (None, text),
    };
    let plain = |part: &str, extra: &[u8]| {
        !part.is_empty() && part.bytes().all(|one| is_lower(one) || extra.contains(&one))
    };
    host.is_none_or(|host| plain(&host.to_ascii_lowercase(), b".-:"))
        && path.split('/').all(|segment| plain(segment, b"._-"))
}

const fn is_lower(one: u8) -> bool {
    one.is_ascii_lowercase() || one.is_ascii_digit()
}

fn judge_service(service: &ClientService, path: &Path, verdict: &mut Verdict) {
    let path = path.at("annotations");
    judge_keys(service.annotations.as_ref(), &path, verdict);
    let own = |key: &&String| key.starts_with("gatehouse.dev/");
    for key in service.annotations.iter().flat_map(BTreeMap::keys).filter(own) {
        verdict.deny(Fault::forbidden(path.key(key), "annotations of gatehouse.dev are the operator's"));
    }
}

fn judge_pod(pod: &Pod, path: &Path, verdict: &mut Verdict) {
    let named = [
        ("priorityClassName", &pod.priority_class_name),
        ("serviceAccountName", &pod.service_account_name),
        ("schedulerName", &pod.scheduler_name),
        ("runtimeClassName", &pod.runtime_class_name),
    ];
    for (field, given) in named {
        if let Some(given) = given
            && let Err(detail) = name::dns_1123_subdomain(given)
        {
            verdict.deny(Fault::invalid(path.at(field), given, detail));
        }
    }
    judge_labels(pod.labels.as_ref(), &path.at("labels"), verdict);
    judge_keys(pod.annotations.as_ref(), &path.at("annotations"), verdict);
    if let Some(seconds) = pod.termination_grace_period_seconds.filter(|given| !GRACE_SECONDS.contains(given))
    {
        verdict.deny(Fault::invalid(path.at("terminationGracePeriodSeconds"), seconds, rules::GRACE.1));
    }
    dns::judge(None, pod.dns_config.as_ref(), path, verdict);
    for (index, variable) in pod.env.iter().flatten().enumerate() {
        if variable.name.starts_with("ETCD_") {
            verdict.deny(Fault::forbidden(
                path.at("env").index(index).at("name"),
                format!("{} is a flag of etcd: use spec.options", variable.name),
            ));
        }
    }
}

fn judge_keys(map: Option<&BTreeMap<String, String>>, path: &Path, verdict: &mut Verdict) {
    for key in map.into_iter().flat_map(BTreeMap::keys) {
        if let Err(detail) = name::qualified_name(key) {
            verdict.deny(Fault::invalid(path.key(key), key, detail));
        }
    }
}

fn judge_labels(map: Option<&BTreeMap<String, String>>, path: &Path, verdict: &mut Verdict) {
    judge_keys(map, path, verdict);
    for (key, value) in map.into_iter().flatten() {
        if OWN_LABELS.contains(&key.as_str()) || key.starts_with("gatehouse.dev/") {
            verdict.deny(Fault::forbidden(path.key(key), "the operator finds the pods by this label"));
        }
        if let Err(detail) = name::label_value(value) {
            verdict.deny(Fault::invalid(path.key(key), value, detail));
        }
    }
}
