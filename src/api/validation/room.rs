//! The room that the spoke has for what only the hub can say: the annotations of an object.
//!
//! Guarantees: no write by the spoke is taken of an object that the spoke could not show whole, whatever the write says:
//! it would store the object without the rest. Neither is one that makes such an object.
//! Assumes: the object that is stored comes with a review in the version of the request, so that the marker is in it.

use serde_json::Value;

use super::{Change, Kind, Version, Written};
use crate::api::field::{FieldError, Path, Reason};
use crate::api::lens::memory;

/// An object lighter than this has annotations that fit, however its text is escaped.
const SURELY_FITS: usize = 32 * 1024;

/// The error for a write by the spoke of an object, old or new, that was read without what did not fit.
pub(super) fn unreadable(change: &Change) -> Option<FieldError> {
    let is_marked = |written: &Written| {
        let annotations = written.object.pointer("/metadata/annotations");
        written.version != Version::V1 && annotations.is_some_and(memory::is_dropped)
    };
    [Some(change.new), change.old].iter().flatten().any(is_marked).then(|| {
        let detail = "v1alpha1 cannot show all of this object, because the rest does not fit into annotations of 256 KiB; a \
                      write by v1alpha1 would drop the rest: write the object as gatehouse.dev/v1";
        FieldError::new(Path::spec(), Reason::Forbidden, detail)
    })
}

/// The error for an object of the hub that the spoke could not show.
pub(super) fn no_room(change: &Change) -> FieldError {
    let detail = "the part of the object that only v1 has does not fit into annotations of 256 KiB, in which v1alpha1 shows it";
    let annotations = change.new.object.pointer("/metadata/annotations");
    let is_applied = annotations.is_some_and(|annotations| annotations.get(LAST_APPLIED).is_some());
    let help = if is_applied { BY_APPLY } else { "make the object or its annotations smaller" };
    FieldError::new(Path::spec(), Reason::TooLong, format!("{detail}: {help}"))
}

/// The annotation in which `kubectl apply` keeps what it applied.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What to do where that makes an object too large.
pub const BY_APPLY: &str =
    "kubectl apply puts a copy of the object into one of them: use kubectl apply --server-side";

/// The warning for such an object that was stored before.
pub(super) const HAD_NO_ROOM: &str =
    "spec: v1alpha1 cannot show all of this object, and cannot write it: more than 256 KiB of annotations";

/// Whether the spoke can show a sound object of the hub.
pub(super) fn has_room(kind: &dyn Kind, hub: &Value) -> bool {
    if weight(hub) < SURELY_FITS {
        return true;
    }
    let shown = kind.lens().convert(hub.clone(), Version::V1, Version::V1Alpha1);
    !shown.pointer("/metadata/annotations").is_some_and(memory::is_dropped)
}

/// About how long an object's text is, in bytes, without writing it.
fn weight(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.iter().map(|(key, value)| key.len() + 4 + weight(value)).sum(),
        Value::Array(items) => items.iter().map(|item| 1 + weight(item)).sum(),
        Value::String(text) => text.len() + 2,
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}
