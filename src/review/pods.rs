//! Hooks that pods ask for by a label, at `/mutate`.
//!
//! Guarantees: a pod that asks for nothing is allowed as it is; one that asks for what cannot be read is refused with all
//! that is wrong with it. A pod is looked at when it is created, and never again.

use super::audit;
use super::envelope::{Request, Status, bad_request};
use super::response::{self, Response};
use super::{Answer, Report};
use crate::api::field::FieldError;
use crate::api::pod_hook::PodHook;
use crate::kinds::KINDS;

/// Whether a request for an object of that group, version and kind is about a pod itself.
pub(super) fn is_one(request: &Request, kind: Option<&[String; 3]>) -> bool {
    kind.is_some_and(|[group, version, kind]| group.is_empty() && version == "v1" && kind == "Pod")
        && request.text("subResource").unwrap_or_default().is_empty()
}

/// Every hook there is.
fn hooks() -> impl Iterator<Item = &'static PodHook> {
    KINDS.iter().filter_map(|kind| kind.pod_hook())
}

pub(super) fn answer(request: &Request, mut report: Report, image: &str) -> Answer {
    report.kind = "Pod";
    response::describe_request(&mut report, request);
    if request.text("operation").as_deref() != Some("CREATE") {
        return allowed(request, report, None);
    }
    report.operation = "CREATE";
    let pod = match request.object("object") {
        Ok(Some(pod)) => pod,
        Ok(None) => {
            let failure = bad_request("the request has no object, which CREATE needs".to_owned());
            return response::refuse(&request.uid, &failure);
        }
        Err(failure) => return response::refuse(&request.uid, &failure),
    };
    let mut operations = Vec::new();
    for hook in hooks().filter(|hook| hook.is_asked_for(&pod)) {
        match (hook.add)(&pod, image) {
            Ok(added) => operations.extend(added),
            Err(faults) => {
                let name = ["name", "generateName"].map(|field| pod["metadata"][field].as_str());
                let name = name.into_iter().flatten().next().unwrap_or_default();
                return refused(request, report, name, &faults);
            }
        }
    }
    let patch = (!operations.is_empty()).then(|| response::encoded(&operations));
    allowed(request, report, patch)
}

fn allowed(request: &Request, report: Report, patch: Option<String>) -> Answer {
    let patch_type = patch.as_ref().map(|_| "JSONPatch");
    let response = Response { uid: &request.uid, allowed: true, patch, patch_type, ..Response::default() };
    Answer { body: response::document(response), report: Report { code: 200, ..report } }
}

fn refused(request: &Request, report: Report, name: &str, faults: &[FieldError]) -> Answer {
    let status = Status::invalid("", "Pod", name, faults);
    let code = status.code.unwrap_or_default();
    let faults = faults.iter().map(|fault| fault.path.to_string()).collect();
    let audit_annotations = audit::of_refusal();
    let response =
        Response { uid: &request.uid, status: Some(status), audit_annotations, ..Response::default() };
    Answer { body: response::document(response), report: Report { code, faults, ..report } }
}
