//! Validates names: of the cluster, of objects that it refers to, and in overrides of its pods.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::super::rules;
use super::super::v1::{ClientService, EtcdClusterSpec, Image, Pod};
use super::Cluster;
use crate::api::dns::DnsPolicy;
use crate::api::field::{FieldError, Path, Validation};
use crate::api::name;
use crate::api::pod;

/// Longest name of a cluster. Its CronJob is `<name>-backup`, and a CronJob's name has at most 52 characters, because
/// its Jobs append eleven (kubernetes, `pkg/apis/batch/validation`); a StatefulSet has the same bound from its
/// revision label (kubernetes/kubernetes#64023).
const LONGEST: usize = 45;

/// Seconds that a member may be given to stop, as [`rules::GRACE`] has them.
const GRACE_SECONDS: RangeInclusive<i64> = 10..=3600;

/// Labels that select the pods, and cannot be another's.
const OWN_LABELS: &[&str] =
    &["app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by"];

pub fn validate(cluster: &Cluster, validation: &mut Validation) {
    match cluster.generate_name {
        Some(base) => validate_base(base, validation),
        None => validate_name(cluster.name, validation),
    }
    validate_references(&cluster.spec, validation);
    if let Some(service) = &cluster.spec.client_service {
        validate_service(service, &Path::spec().at("clientService"), validation);
    }
    if let Some(pod) = &cluster.spec.pod {
        validate_pod(pod, &Path::spec().at("pod"), validation);
    }
}

fn validate_name(given: &str, validation: &mut Validation) {
    let path = Path::metadata().at("name");
    if given.is_empty() {
        validation.reject(FieldError::required(path, "name or generateName is needed"));
    } else if let Err(detail) = name::dns_1035_label(given) {
        validation.reject(FieldError::invalid(path, given, detail));
    } else if given.len() > LONGEST {
        validation.reject(FieldError::invalid(
            path,
            given,
            format!("must have at most {LONGEST} characters, so that the names made of it fit"),
        ));
    }
}

/// What the API server appends are five letters or digits (apiserver, `pkg/storage/names`).
fn validate_base(base: &str, validation: &mut Validation) {
    const APPENDED: &str = "bcdfg";
    let path = Path::metadata().at("name");
    let longest = LONGEST - APPENDED.len();
    if base.len() > longest {
        let detail = format!(
            "metadata.generateName must have at most {longest} characters, so that the names made of it fit"
        );
        validation.reject(FieldError::invalid(path, base, detail));
    } else if let Err(detail) = name::dns_1035_label(&format!("{base}{APPENDED}")) {
        validation.reject(FieldError::invalid(path, base, format!("metadata.generateName {detail}")));
    }
}

fn validate_references(spec: &EtcdClusterSpec, validation: &mut Validation) {
    let Some(image) = &spec.image else { return };
    let path = Path::spec().at("image");
    if let Some(repository) = &image.repository
        && !is_repository(repository)
    {
        validation.reject(FieldError::invalid(
            path.at("repository"),
            repository,
            "must be a repository without tag and digest, such as quay.io/coreos/etcd",
        ));
    }
    validate_pull_secrets(image, &path.at("pullSecrets"), validation);
}

fn validate_pull_secrets(image: &Image, path: &Path, validation: &mut Validation) {
    for (index, secret) in image.pull_secrets.iter().flatten().enumerate() {
        if let Err(detail) = name::dns_1123_subdomain(&secret.name) {
            validation.reject(FieldError::invalid(path.index(index).at("name"), &secret.name, detail));
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

fn validate_service(service: &ClientService, path: &Path, validation: &mut Validation) {
    let path = path.at("annotations");
    pod::validate_keys(service.annotations.as_ref(), &path, validation);
    let own = |key: &&String| key.starts_with("gatehouse.dev/");
    for key in service.annotations.iter().flat_map(BTreeMap::keys).filter(own) {
        validation
            .reject(FieldError::forbidden(path.key(key), "annotations of gatehouse.dev are the operator's"));
    }
}

fn validate_pod(pod: &Pod, path: &Path, validation: &mut Validation) {
    pod.validate(path, validation);
    let is_own = |key: &&String| OWN_LABELS.contains(&key.as_str()) || key.starts_with("gatehouse.dev/");
    for key in pod.labels.iter().flat_map(BTreeMap::keys).filter(is_own) {
        let path = path.at("labels").key(key);
        validation.reject(FieldError::forbidden(path, "the operator finds the pods by this label"));
    }
    if let Some(seconds) = pod.termination_grace_period_seconds.filter(|given| !GRACE_SECONDS.contains(given))
    {
        validation.reject(FieldError::invalid(
            path.at("terminationGracePeriodSeconds"),
            seconds,
            rules::GRACE.1,
        ));
    }
    if pod.dns_policy == Some(DnsPolicy::Default) {
        let detail =
            "members find each other by the cluster's DNS, which the nodes' name servers do not know";
        validation.reject(FieldError::invalid(path.at("dnsPolicy"), "Default", detail));
    }
    for (index, variable) in pod.env.iter().flatten().enumerate() {
        if variable.name.starts_with("ETCD_") {
            validation.reject(FieldError::forbidden(
                path.at("env").index(index).at("name"),
                format!("{} is a flag of etcd: use spec.options", variable.name),
            ));
        }
    }
}
