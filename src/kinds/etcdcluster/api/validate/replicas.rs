//! Validates the number of members.

use super::super::v1::{EtcdClusterSpec, Medium};
use crate::api::field::{FieldError, Path, Validation};

/// Most voting members: each write waits for a majority of them.
pub const MOST: i64 = 7;
/// More members than this make writes slower and little else.
const USUAL_MOST: i64 = 5;
/// Largest step that passes without a word.
const USUAL_STEP: i64 = 2;

pub fn path() -> Path {
    Path::spec().at("replicas")
}

pub fn validate(spec: &EtcdClusterSpec, validation: &mut Validation) {
    let Some(replicas) = spec.replicas else { return };
    validate_count(replicas.into(), validation);
    let memory = spec.medium() == Medium::Memory;
    if memory && replicas == 0 {
        validation.reject(FieldError::forbidden(
            path(),
            "a cluster in memory cannot be stopped, its data would be gone; use at least 1, or delete it",
        ));
    }
    if memory && (1..=2).contains(&replicas) {
        validation.warn(format!(
            "spec.replicas: a cluster in memory of {replicas} loses its data with any one pod; use 3 or 5"
        ));
    }
}

pub fn validate_count(replicas: i64, validation: &mut Validation) {
    if !(0..=MOST).contains(&replicas) {
        validation.reject(FieldError::invalid(
            path(),
            replicas,
            format!("must be between 0 (stopped) and {MOST}"),
        ));
    } else if replicas > 0 && replicas % 2 == 0 {
        let fewer = replicas - 1;
        validation.warn(format!("spec.replicas: {replicas} members tolerate no more failures than {fewer}"));
    } else if replicas > USUAL_MOST {
        validation.warn(format!("spec.replicas: more than {USUAL_MOST} members make writes slower"));
    }
}

pub fn validate_step(replicas: i64, old: i64, validation: &mut Validation) {
    if replicas > 0 && old > 0 && replicas.abs_diff(old) > USUAL_STEP.unsigned_abs() {
        validation.warn(format!(
            "spec.replicas: {old} to {replicas} is done one member at a time and takes a while"
        ));
    }
}
