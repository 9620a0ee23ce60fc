//! Backups, where they go, and starting from one.

use super::super::v1::{Backup, Destination, EtcdClusterSpec, Medium, Restore};
use crate::api::cron::Schedule;
use crate::api::field::{Fault, Path, Verdict};
use crate::api::{name, time_zone};

/// Backups closer together than this, in minutes, load the cluster for little gain.
const USUAL_MINUTES: u32 = 5;
/// Fewer backups than this leave little choice when one turns out to hold the mistake.
const USUAL_KEEP_LAST: i32 = 3;

pub fn judge(spec: &EtcdClusterSpec, verdict: &mut Verdict) {
    if let Some(backup) = &spec.backup {
        judge_backup(backup, &Path::spec().at("backup"), verdict);
    }
    if let Some(restore) = &spec.restore {
        judge_restore(restore, spec, verdict);
    }
}

fn judge_backup(backup: &Backup, path: &Path, verdict: &mut Verdict) {
    if let Some(text) = &backup.schedule {
        match Schedule::parse(text) {
            Ok(schedule) if schedule.shortest_interval() < USUAL_MINUTES => {
                verdict.warn(format!("spec.backup.schedule: more often than every {USUAL_MINUTES} minutes"));
            }
            Ok(_) => {}
            Err(error) => verdict.deny(Fault::invalid(path.at("schedule"), text, error.to_string())),
        }
    }
    if let Some(zone) = &backup.time_zone {
        if let Err(error) = time_zone::find(zone) {
            verdict.deny(Fault::invalid(path.at("timeZone"), zone, error.to_string()));
        } else if backup.schedule.is_none() {
            verdict.warn("spec.backup.timeZone: has no effect without spec.backup.schedule");
        }
    }
    match &backup.destination {
        Some(destination) => judge_destination(destination, &path.at("destination"), verdict),
        None if backup.schedule.is_some() => {
            verdict
                .deny(Fault::required(path.at("destination"), "a schedule needs a place that backups go to"));
        }
        None if backup.before_upgrade == Some(true) => {
            verdict.deny(Fault::required(
                path.at("destination"),
                "beforeUpgrade needs a place that backups go to",
            ));
        }
        None => {}
    }
    judge_retention(backup, &path.at("retention"), verdict);
}

fn judge_retention(backup: &Backup, path: &Path, verdict: &mut Verdict) {
    let Some(retention) = &backup.retention else { return };
    if let Some(count) = retention.keep_last {
        if count < 1 {
            verdict.deny(Fault::invalid(path.at("keepLast"), count, "must be at least 1"));
        } else if count < USUAL_KEEP_LAST {
            verdict.warn(format!(
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
        verdict.deny(Fault::invalid(path.at("maxAge"), age.as_str(), detail));
    }
}

fn judge_restore(restore: &Restore, spec: &EtcdClusterSpec, verdict: &mut Verdict) {
    let path = Path::spec().at("restore");
    if spec.storage.as_ref().and_then(|storage| storage.medium) == Some(Medium::Memory) {
        verdict.deny(Fault::forbidden(path.clone(), "a cluster in memory cannot be restored"));
    }
    let from = path.at("from");
    judge_destination(&restore.from.destination, &from.at("destination"), verdict);
    if restore.from.name.is_empty() {
        verdict.deny(Fault::required(from.at("name"), "name of a snapshot, or latest"));
    } else {
        judge_path(&restore.from.name, from.at("name"), verdict);
    }
    if let Some(bump) = restore.bump_revision.filter(|bump| *bump < 0) {
        verdict.deny(Fault::invalid(path.at("bumpRevision"), bump, "must not be negative"));
    }
}

/// Exactly one place, and nothing in it that leads elsewhere or gives a password away.
fn judge_destination(destination: &Destination, path: &Path, verdict: &mut Verdict) {
    let given: Vec<&str> = [
        ("persistentVolumeClaim", destination.persistent_volume_claim.is_some()),
        ("s3", destination.s3.is_some()),
        ("gcs", destination.gcs.is_some()),
        ("azure", destination.azure.is_some()),
    ]
    .into_iter()
    .filter_map(|(field, given)| given.then_some(field))
    .collect();
    match given.split_first() {
        None => verdict.deny(Fault::required(
            path.clone(),
            "exactly one of persistentVolumeClaim, s3, gcs and azure is needed",
        )),
        Some((first, others)) => {
            for other in others {
                verdict.deny(Fault::forbidden(
                    path.at((*other).to_owned()),
                    format!("{first} is given as well; one place only"),
                ));
            }
        }
    }
    if let Some(claim) = &destination.persistent_volume_claim {
        let path = path.at("persistentVolumeClaim");
        judge_name(&claim.claim_name, path.at("claimName"), verdict);
        judge_optional_path(claim.path.as_ref(), path.at("path"), verdict);
    }
    judge_stores(destination, path, verdict);
}

fn judge_stores(destination: &Destination, path: &Path, verdict: &mut Verdict) {
    if let Some(s3) = &destination.s3 {
        let path = path.at("s3");
        judge_bucket(&s3.bucket, path.at("bucket"), verdict);
        judge_optional_path(s3.prefix.as_ref(), path.at("prefix"), verdict);
        judge_endpoint(s3.endpoint.as_ref(), path.at("endpoint"), verdict);
        if let Some(secret) = &s3.secret_ref {
            judge_name(&secret.name, path.at("secretRef").at("name"), verdict);
        }
    }
    if let Some(gcs) = &destination.gcs {
        let path = path.at("gcs");
        judge_bucket(&gcs.bucket, path.at("bucket"), verdict);
        judge_optional_path(gcs.prefix.as_ref(), path.at("prefix"), verdict);
        if let Some(secret) = &gcs.secret_ref {
            judge_name(&secret.name, path.at("secretRef").at("name"), verdict);
        }
    }
    if let Some(azure) = &destination.azure {
        let path = path.at("azure");
        judge_bucket(&azure.container, path.at("container"), verdict);
        judge_optional_path(azure.prefix.as_ref(), path.at("prefix"), verdict);
        judge_endpoint(azure.endpoint.as_ref(), path.at("endpoint"), verdict);
        if let Some(secret) = &azure.secret_ref {
            judge_name(&secret.name, path.at("secretRef").at("name"), verdict);
        }
    }
}

fn judge_name(given: &str, path: Path, verdict: &mut Verdict) {
    if let Err(detail) = name::dns_1123_subdomain(given) {
        verdict.deny(Fault::invalid(path, given, detail));
    }
}

fn judge_bucket(given: &str, path: Path, verdict: &mut Verdict) {
    let sound =
        given.bytes().all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || b".-_".contains(&one));
    if !sound || given.is_empty() {
        let detail = "must be a name of lower-case letters, digits, '-', '_' and '.', such as etcd-backups";
        verdict.deny(Fault::invalid(path, given, detail));
    }
}

fn judge_optional_path(given: Option<&String>, path: Path, verdict: &mut Verdict) {
    if let Some(given) = given {
        judge_path(given, path, verdict);
    }
}

/// A relative path that stays below where it starts.
fn judge_path(given: &str, path: Path, verdict: &mut Verdict) {
    let detail = if given.starts_with('/') {
        "must be relative: without a slash at its beginning"
    } else if given.split('/').any(|segment| segment == "..") {
        "must not contain .."
    } else if given.chars().any(|one| one.is_control() || one == '\\') {
        "must not contain backslashes or control characters"
    } else {
        return;
    };
    verdict.deny(Fault::invalid(path, given, detail));
}

fn judge_endpoint(given: Option<&String>, path: Path, verdict: &mut Verdict) {
    let Some(given) = given else { return };
    let Some((scheme, rest)) =
        given.split_once("://").filter(|(scheme, _)| ["https", "http"].contains(scheme))
    else {
        verdict.deny(Fault::invalid(path, given, "must be a URL such as https://minio.example.com:9000"));
        return;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        // The value would show the password.
        verdict
            .deny(Fault::forbidden(path, "must not hold credentials: put them into the Secret of secretRef"));
    } else if authority.is_empty() || given.chars().any(char::is_whitespace) {
        verdict.deny(Fault::invalid(path, given, "must be a URL such as https://minio.example.com:9000"));
    } else if scheme == "http" {
        verdict.warn(format!("{path}: backups and credentials cross the network readable over http"));
    }
}
