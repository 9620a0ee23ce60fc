//! The request to bring a cluster back from a lost quorum. It is validated when it is made: later it stands for what
//! was asked once.

use super::super::recovery::{self, ANNOTATION};
use super::super::status::ConditionType;
use super::super::v1::Medium;
use super::Cluster;
use crate::api::field::{FieldError, Path, Validation};

pub fn validate(new: &Cluster, old: Option<&Cluster>, validation: &mut Validation) {
    let Some(request) = new.recovery else { return };
    if old.is_some_and(|old| old.recovery == Some(request)) {
        return;
    }
    let path = Path::metadata().at("annotations").key(ANNOTATION);
    if let Err(detail) = recovery::read(request, new.name) {
        validation.reject(FieldError::invalid(path, request, detail));
        return;
    }
    let storage = new.spec.storage.as_ref();
    if storage.is_some_and(|storage| storage.medium == Some(Medium::Memory)) {
        validation.reject(FieldError::forbidden(
            path,
            "the member that is kept has to be started again, and data in memory end with their pod",
        ));
        return;
    }
    let status = old.map(|old| &old.status);
    let mut conditions = status.into_iter().flat_map(|status| status.conditions.iter().flatten());
    if !conditions.any(|one| one.type_ == ConditionType::QuorumLost.as_str() && one.status == "True") {
        validation.warn(format!(
            "{path}: no lost quorum has been seen (condition QuorumLost): while a majority answers, the request comes \
             to nothing, and has to be recreated with another text"
        ));
    }
}
