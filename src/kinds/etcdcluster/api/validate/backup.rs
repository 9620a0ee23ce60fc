//! Validates backups and their destinations.

use super::super::rules;
use super::super::v1::{Backup, Destination};
use super::Cluster;
use crate::api::cron::Schedule;
use crate::api::field::{FieldError, Path, Validation};
use crate::api::{name, time_zone};

/// Backups closer together than this, in minutes, load the cluster for little gain.
const USUAL_MINUTES: u32 = 5;
/// Fewer backups than this leave little choice when one turns out to hold the mistake.
const USUAL_KEEP_LAST: i32 = 3;

pub fn validate(cluster: &Cluster<'_>, validation: &mut Validation) {
    if let Some(backup) = &cluster.spec.backup {
        validate_backup(backup, cluster.name, &Path::spec().at("backup"), validation);
    }
    if cluster.spec.restore.is_some() {
        unsupported(Path::spec().at("restore"), validation);
    }
}

fn validate_backup(backup: &Backup, cluster: &str, path: &Path, validation: &mut Validation) {
    if let Some(text) = &backup.schedule {
        match Schedule::parse(text) {
            Ok(schedule) if schedule.shortest_interval() < USUAL_MINUTES => {
                validation
                    .warn(format!("spec.backup.schedule: more often than every {USUAL_MINUTES} minutes"));
            }
            Ok(_) => {}
            Err(error) => {
                validation.reject(FieldError::invalid(path.at("schedule"), text, error.to_string()));
            }
        }
    }
    if let Some(zone) = &backup.time_zone {
        if let Err(error) = time_zone::find(zone) {
            validation.reject(FieldError::invalid(path.at("timeZone"), zone, error.to_string()));
        } else if backup.schedule.is_none() {
            validation.warn("spec.backup.timeZone: has no effect without spec.backup.schedule");
        }
    }
    match &backup.destination {
        Some(destination) => validate_destination(destination, cluster, &path.at("destination"), validation),
        None if backup.schedule.is_some() => {
            validation.reject(FieldError::required(
                path.at("destination"),
                "a schedule needs a place that backups go to",
            ));
        }
        None if backup.before_upgrade == Some(true) => {
            validation.reject(FieldError::required(
                path.at("destination"),
                "beforeUpgrade needs a place that backups go to",
            ));
        }
        None => {}
    }
    validate_retention(backup, &path.at("retention"), validation);
}

fn validate_retention(backup: &Backup, path: &Path, validation: &mut Validation) {
    let Some(retention) = &backup.retention else { return };
    if let Some(count) = retention.keep_last {
        if count < 1 {
            validation.reject(FieldError::invalid(path.at("keepLast"), count, "must be at least 1"));
        } else if count < USUAL_KEEP_LAST {
            validation.warn(format!(
                "spec.backup.retention.keepLast: fewer than {USUAL_KEEP_LAST} leave little choice"
            ));
        }
    }
    if let Some(age) = &retention.max_age {
        let detail = match age.get() {
            Ok(time) if !time.is_zero() => return,
            Ok(_) => "must be longer than nothing, such as 720h".to_owned(),
            Err(error) => error.to_string(),
        };
        validation.reject(FieldError::invalid(path.at("maxAge"), age.as_str(), detail));
    }
}

fn validate_destination(destination: &Destination, cluster: &str, path: &Path, validation: &mut Validation) {
    let stores = [("s3", &destination.s3), ("gcs", &destination.gcs), ("azure", &destination.azure)];
    for (field, _) in stores.iter().filter(|(_, store)| store.is_some()) {
        unsupported(path.at(*field), validation);
    }
    let path = path.at("persistentVolumeClaim");
    let Some(claim) = &destination.persistent_volume_claim else {
        if stores.iter().all(|(_, store)| store.is_none()) {
            validation.reject(FieldError::required(path, "the volume that backups go to"));
        }
        return;
    };
    if let Err(detail) = name::dns_1123_subdomain(&claim.claim_name) {
        validation.reject(FieldError::invalid(path.at("claimName"), &claim.claim_name, detail));
    } else if is_members(&claim.claim_name, cluster) {
        let detail = "must not be the claim of a member: backups would fill its volume, and go with it";
        validation.reject(FieldError::invalid(path.at("claimName"), &claim.claim_name, detail));
    }
    if let Some(given) = &claim.path {
        validate_path(given, path.at("path"), validation);
    }
}

/// Whether a claim is one that the StatefulSet of the cluster makes: `data-<name>-<ordinal>`.
fn is_members(claim: &str, cluster: &str) -> bool {
    let member = claim.strip_prefix("data-");
    let number = member.and_then(|member| member.strip_prefix(cluster)?.strip_prefix('-'));
    number.is_some_and(|text| text.parse::<u32>().is_ok_and(|number| number.to_string() == text))
}

/// What this release cannot do is refused, so that users do not wait for it.
fn unsupported(path: Path, validation: &mut Validation) {
    validation.reject(FieldError::forbidden(path, rules::UNSUPPORTED.1));
}

/// A relative path that stays below where it starts.
fn validate_path(given: &str, path: Path, validation: &mut Validation) {
    let detail = if given.starts_with('/') {
        "must be relative: without a slash at its beginning"
    } else if given.split('/').any(|segment| segment == "..") {
        "must not contain .."
    } else if given.chars().any(|one| one.is_control() || one == '\\') {
        "must not contain backslashes or control characters"
    } else {
        return;
    };
    validation.reject(FieldError::invalid(path, given, detail));
}
