//! Validates the version of etcd.

use super::super::v1::EtcdClusterSpec;
use super::super::versions::{self, SUPPORTED};
use crate::api::field::{FieldError, Path, Validation};

pub fn path() -> Path {
    Path::spec().at("version")
}

pub fn validate(spec: &EtcdClusterSpec, validation: &mut Validation) {
    let Some(text) = &spec.version else { return };
    let Some(version) = versions::parse(text) else {
        let bare = text.trim_start_matches('v');
        let hint = match versions::parse(bare) {
            Some(_) => format!("must have no leading v: write {bare}"),
            None => "must be 3.<minor>.<patch>, such as 3.6.16".to_owned(),
        };
        validation.reject(FieldError::invalid(path(), text, hint));
        return;
    };
    let Some(minor) = versions::find(version.minor) else {
        validation.reject(FieldError::not_supported(path(), text, SUPPORTED));
        return;
    };
    if minor.end_of_life {
        validation.warn(format!("spec.version: etcd 3.{} gets no fixes any more", minor.minor));
    }
    if version.patch < minor.sound_patch {
        validation.warn(format!(
            "spec.version: {version} can lose data; 3.{}.{} has the fix",
            minor.minor, minor.sound_patch
        ));
    } else if version.patch > minor.newest_patch {
        validation.warn(format!(
            "spec.version: {version} is newer than what this release was tested with (3.{}.{})",
            minor.minor, minor.newest_patch
        ));
    }
}
