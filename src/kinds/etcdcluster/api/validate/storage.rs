//! Validates the storage of members.

use super::super::v1::{EtcdClusterSpec, Medium};
use crate::api::field::{FieldError, Path, Validation};
use crate::api::name;
use crate::api::quantity::Quantity;

/// Etcd's own quota, in bytes: what an absent `options.quotaBackendBytes` means.
const USUAL_QUOTA: u64 = 2 << 30;
/// The largest quota that etcd advises, in bytes.
const MOST_QUOTA: u64 = 8 << 30;

/// What etcd allocates beforehand, in bytes: the file of its log that it writes, and the next one (etcd
/// `server/storage/wal`, `SegmentSizeBytes`). A volume without room for them fills up, and the member ends.
const LOG: u64 = 2 * 64_000_000;

pub fn validate(spec: &EtcdClusterSpec, validation: &mut Validation) {
    let storage = Path::spec().at("storage");
    let written = spec.storage.as_ref().and_then(|storage| storage.size.as_ref());
    let quota = spec.options.as_ref().and_then(|options| options.quota_backend_bytes.as_ref());
    let size = written.and_then(|size| bytes(size, storage.at("size"), validation));
    if let Some((written, size)) = written.zip(size)
        && size < LOG
    {
        let detail = "must be at least 128M: etcd allocates two files of its log beforehand, 64 MB each";
        validation.reject(FieldError::invalid(storage.at("size"), written.to_string(), detail));
    }
    let quota_path = Path::spec().at("options").at("quotaBackendBytes");
    let asked = quota.and_then(|quota| bytes(quota, quota_path.clone(), validation));
    if let (Some(written), Some(quota)) = (quota, asked) {
        validate_quota(written, quota, size, quota_path, validation);
    } else if quota.is_none() && size.is_some_and(|size| size < USUAL_QUOTA) {
        validation.warn(
            "spec.storage.size: less than etcd's quota of 2Gi; set spec.options.quotaBackendBytes below it",
        );
    }
    let Some(given) = &spec.storage else { return };
    if let Some(class) = given.storage_class_name.as_ref().filter(|class| !class.is_empty())
        && let Err(detail) = name::dns_1123_subdomain(class)
    {
        validation.reject(FieldError::invalid(storage.at("storageClassName"), class, detail));
    }
    if given.medium == Some(Medium::Memory) {
        if given.storage_class_name.is_some() {
            validation.warn("spec.storage.storageClassName: has no effect on a cluster in memory");
        }
        if given.reclaim_policy.is_some() {
            validation.warn("spec.storage.reclaimPolicy: has no effect on a cluster in memory");
        }
    }
}

fn validate_quota(
    written: &Quantity,
    quota: u64,
    size: Option<u64>,
    path: Path,
    validation: &mut Validation,
) {
    if quota > MOST_QUOTA {
        validation.warn(format!(
            "spec.options.quotaBackendBytes: {written} is more than the 8Gi that etcd advises"
        ));
    }
    let Some(size) = size else { return };
    if size < quota {
        validation.reject(FieldError::invalid(
            path,
            written.to_string(),
            "must be at most spec.storage.size",
        ));
    } else if size / 2 < quota {
        validation.warn(
            "spec.storage.size: less than twice spec.options.quotaBackendBytes; defragmentation needs room",
        );
    }
}

/// The bytes that a quantity stands for; a fault where it stands for none.
pub fn bytes(quantity: &Quantity, path: Path, validation: &mut Validation) -> Option<u64> {
    match quantity.bytes() {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            let detail = error.to_string();
            validation.reject(match quantity {
                Quantity::Integer(number) => FieldError::invalid(path, *number, detail),
                Quantity::Text(text) => FieldError::invalid(path, text, detail),
            });
            None
        }
    }
}
