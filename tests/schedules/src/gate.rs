//! What the gate has against a spec.

use gatehouse::api::field::{FieldError, Path, Reason};

use crate::world::Broken;

/// Its faults where that is not valid.
pub fn faults(broken: Option<Broken>) -> Vec<FieldError> {
    let fault = |path: Path| FieldError::new(path, Reason::Invalid, "is not valid");
    let create = || Path::spec().at("target").at("create");
    match broken {
        None => Vec::new(),
        Some(Broken::TimeZone) => vec![fault(Path::spec().at("timeZone"))],
        Some(Broken::More) => vec![fault(Path::spec().at("windows")), fault(create().at("env"))],
    }
}
