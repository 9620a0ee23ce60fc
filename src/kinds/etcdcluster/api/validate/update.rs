//! Which changes of an existing cluster are allowed, by the stored object and its status.

use super::super::rules;
use super::super::status::{ConditionType, Operation};
use super::super::v1::{EtcdClusterSpec, EtcdClusterStatus, Medium};
use super::super::versions::{self, ALLOW_DOWNGRADE, Refusal, Version, parse, parse_reported};
use super::{Cluster, replicas, version};
use crate::api::field::{FieldError, Path, Validation};

/// The message for a change of an immutable field.
const IMMUTABLE: &str = "is immutable: make a new cluster";

pub fn validate(new: &Cluster<'_>, old: &Cluster<'_>, validation: &mut Validation) {
    let (seen, allows_downgrade) = (&old.status, new.allows_downgrade);
    let (new, old) = (&new.spec, &old.spec);
    validate_immutable(new, old, validation);
    validate_size(new, old, validation);
    validate_version(new, old, &Runs::of(old, seen, allows_downgrade), validation);
    validate_replicas(new, old, seen, validation);
    if new.version != old.version && new.replicas != old.replicas {
        validation.warn(
            "spec.version and spec.replicas change together: the upgrade comes first, then the members",
        );
    }
}

fn validate_immutable(new: &EtcdClusterSpec, old: &EtcdClusterSpec, validation: &mut Validation) {
    let storage = Path::spec().at("storage");
    if new.medium() != old.medium() {
        validation.reject(FieldError::forbidden(storage.at("medium"), IMMUTABLE));
    }
    if new.storage_class().unwrap_or_default() != old.storage_class().unwrap_or_default() {
        validation.reject(FieldError::forbidden(storage.at("storageClassName"), IMMUTABLE));
    }
    if new.tls_mode() != old.tls_mode() {
        validation.reject(FieldError::forbidden(Path::spec().at("tls").at("mode"), IMMUTABLE));
    }
    if new.authenticates() != old.authenticates() {
        validation.reject(FieldError::forbidden(Path::spec().at("auth").at("enabled"), IMMUTABLE));
    }
}

fn validate_size(new: &EtcdClusterSpec, old: &EtcdClusterSpec, validation: &mut Validation) {
    let size = |spec: &EtcdClusterSpec| spec.storage.as_ref().and_then(|storage| storage.size.clone());
    let (Some(after), Some(before)) = (size(new), size(old)) else { return };
    let (Ok(more), Ok(less)) = (after.bytes(), before.bytes()) else { return };
    if more < less {
        validation.reject(FieldError::invalid(
            Path::spec().at("storage").at("size"),
            after.to_string(),
            format!("must be at least {before}: a volume can grow and never shrink"),
        ));
    } else if more > less && new.medium() == Medium::PersistentVolume {
        validation
            .warn("spec.storage.size: volumes grow only where their StorageClass has allowVolumeExpansion");
    }
}

fn operation(seen: &EtcdClusterStatus) -> Option<Operation> {
    seen.operation.as_ref()?.kind.as_deref().and_then(Operation::named)
}

/// What a version is measured by.
struct Runs {
    /// The lowest version that a member runs.
    lowest: Option<Version>,
    /// All versions that members run.
    all: Vec<Version>,
    /// The highest minor that members run, or have agreed on.
    minor: u64,
    is_upgrading: bool,
    allows_downgrade: bool,
}

impl Runs {
    fn of(old: &EtcdClusterSpec, seen: &EtcdClusterStatus, allows_downgrade: bool) -> Self {
        let reported = |text: &Option<String>| text.as_deref().and_then(parse_reported);
        let lowest = reported(&seen.version).or_else(|| old.version.as_deref().and_then(parse));
        let agreed = reported(&seen.cluster_version).map_or(0, |agreed| agreed.minor);
        let members = seen.members.iter().flatten().filter_map(|member| reported(&member.version));
        Self {
            minor: lowest.map_or(0, |lowest| lowest.minor).max(agreed),
            all: members.chain(lowest).collect(),
            lowest,
            is_upgrading: operation(seen) == Some(Operation::Upgrade),
            allows_downgrade,
        }
    }
}

fn validate_version(new: &EtcdClusterSpec, old: &EtcdClusterSpec, runs: &Runs, validation: &mut Validation) {
    let of = |spec: &EtcdClusterSpec| spec.version.as_deref().and_then(parse);
    let (Some(after), Some(before), Some(lowest)) = (of(new), of(old), runs.lowest) else { return };
    if after == before {
        return;
    }
    if let Some(detail) = refused_step(after, lowest, runs) {
        validation.reject(FieldError::invalid(version::path(), after.to_string(), detail));
    } else if after < lowest {
        validation.warn(format!("spec.version: {after} is older than {lowest}, which runs"));
    }
}

/// Why etcd cannot go from what runs to `after`.
fn refused_step(after: Version, lowest: Version, runs: &Runs) -> Option<String> {
    if let Some(refusal) = versions::refused_downgrade(after, runs.minor, runs.allows_downgrade) {
        return Some(words(refusal, after, lowest, runs));
    }
    if runs.is_upgrading && !runs.all.contains(&after) {
        return Some(format!(
            "members are on their way to another version: wait until status.version says that they are there, or \
             set {lowest} to roll back"
        ));
    }
    let refusal = versions::refused_upgrade(after, lowest.minor, Some(lowest))?;
    Some(words(refusal, after, lowest, runs))
}

fn words(refusal: Refusal, after: Version, lowest: Version, runs: &Runs) -> String {
    let minor = runs.minor;
    match refusal {
        Refusal::SkipsMinor => {
            format!("must be at most one minor above {lowest}, which runs: first 3.{}", lowest.minor + 1)
        }
        Refusal::SourcePatch(least) => {
            format!("needs every member at {least} or later before, {lowest} runs")
        }
        Refusal::Backwards => format!(
            "must not be lower than 3.{}: members are at 3.{minor}, and etcd goes one minor down at most",
            minor.saturating_sub(1).max(versions::FIRST_DOWNGRADE - 1)
        ),
        Refusal::TargetPatch(least) => {
            format!("must be 3.{}.{} or later, from which members can come back", after.minor, least.patch)
        }
        Refusal::DowngradeNotAllowed => format!(
            "is a lower minor than 3.{minor}, at which members are: take a backup, and allow it by the annotation \
             {ALLOW_DOWNGRADE}: \"true\""
        ),
    }
}

fn validate_replicas(
    new: &EtcdClusterSpec,
    old: &EtcdClusterSpec,
    seen: &EtcdClusterStatus,
    validation: &mut Validation,
) {
    let (Some(after), Some(before)) = (new.replicas, old.replicas) else { return };
    if after == before {
        return;
    }
    replicas::validate_step(after.into(), before.into(), validation);
    let (grows, shrinks) = (after > before, after < before && after > 0);
    let under_way = operation(seen);
    match under_way {
        Some(Operation::ScaleOut) if shrinks => validation
            .warn("spec.replicas: a member is being added: it is removed again where it is no longer wanted"),
        Some(Operation::ScaleIn) if grows => {
            validation.warn("spec.replicas: a member is being removed: another one is added after that");
        }
        _ => {}
    }
    let detail = match under_way {
        Some(Operation::Recover) if shrinks => rules::RECOVERING,
        _ if shrinks && quorum_lost(seen) => rules::WITHOUT_QUORUM,
        _ => {
            if shrinks {
                warn_of_failed_members(after, before, seen, validation);
            }
            return;
        }
    };
    validation.reject(FieldError::invalid(replicas::path(), after, detail));
}

fn quorum_lost(seen: &EtcdClusterStatus) -> bool {
    seen.conditions
        .iter()
        .flatten()
        .any(|one| one.type_ == ConditionType::QuorumLost.as_str() && one.status == "True")
}

/// Fewer members than the failed ones and a majority need each of the others to answer.
fn warn_of_failed_members(after: i32, before: i32, seen: &EtcdClusterStatus, validation: &mut Validation) {
    let failed = seen.members.iter().flatten().filter(|member| member.healthy == Some(false)).count();
    let majority = before / 2 + 1;
    if failed > 0 && i32::try_from(failed).unwrap_or(i32::MAX).saturating_add(majority) > after {
        validation.warn(format!(
            "spec.replicas: {failed} members do not answer; {after} leave no room for another failure"
        ));
    }
}
