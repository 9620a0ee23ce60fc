//! `AdmissionReview` in, `AdmissionReview` out: defaults at `/mutate`, validation at `/validate`. What pods ask for is
//! read by [`super::pods`].
//!
//! Guarantees: all faults of an object in one answer, in the field paths of the version that its author wrote, also
//! where the API server has converted it on the way (`requestKind`); a patch adds what is absent, and puts back what
//! the author's version cannot say; what is not understood is refused.
//!
//! `/mutate` refuses as well. The API server checks structure and CEL between the two hooks, and would report only what
//! *they* found; what no other mutating hook can be expected to mend (anything but a missing field) is therefore
//! reported here, all at once.

use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::Value;
use serde_json::value::RawValue;

use super::audit;
use super::envelope::{self, Objects, Request, Status, bad_request};
use super::json;
use super::response::{
    API_VERSION, KIND, Response, describe_request, document, encoded, group_version_kind, refuse,
};
use super::{Answer, Endpoint, Failure, Report, Surroundings, pods};
use crate::api::field::{FieldError, Path, Reason, Validation, Warning};
use crate::api::validation::{self, Change, Written};
use crate::api::{GROUP, Kind, Version, default};
use crate::kinds;

/// More warnings than these do not help; the API server cuts them all when they get too many.
const MOST_WARNINGS: usize = 16;

/// What is done to objects, as far as rules distinguish.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

impl Operation {
    const ALL: [Self; 4] = [Self::Create, Self::Update, Self::Delete, Self::Connect];

    const fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// A request, read as far as every operation needs it.
struct Admission<'a> {
    request: &'a Request<'a>,
    kind: &'static dyn Kind,
    operation: Operation,
    sub_resource: String,
    /// The version of the objects in the request; of no meaning for a sub-resource of another kind.
    version: Version,
    /// The version that the author wrote.
    author: Version,
    now: Timestamp,
}

/// What is decided.
#[derive(Default)]
struct Decision {
    validation: Validation,
    patch: Option<String>,
    kept: Vec<Path>,
    defaulted: Vec<Path>,
}

/// Answers a review.
pub(super) fn answer(endpoint: Endpoint, body: &[u8], surroundings: &Surroundings) -> Answer {
    let request = match envelope::open(body, API_VERSION, KIND, Objects::default()) {
        Ok(request) => request,
        Err(failure) => return refuse(&super::uid::find(body), &failure),
    };
    let dry_run = request.fields.get("dryRun").is_some_and(|value| value.get() == "true");
    let mut report = Report { uid: request.uid.clone(), dry_run, ..Report::default() };
    let kind = group_version_kind(&request, "kind");
    if endpoint == Endpoint::Mutate && pods::is_one(&request, kind.as_ref()) {
        return pods::answer(&request, report, surroundings.image);
    }
    let decided = read(&request, kind, surroundings.now).and_then(|admission| {
        describe(&mut report, &admission);
        refuse_own_namespace(&admission, surroundings.own_namespace)?;
        let decision = match endpoint {
            Endpoint::Mutate => mutate(&admission),
            _ => validate(&admission),
        };
        decision.map(|decision| (admission, decision))
    });
    match decided {
        Ok((admission, decision)) => respond(&admission, decision, report),
        Err(failure) => {
            Answer { report: Report { code: failure.code, ..report }, ..refuse(&request.uid, &failure) }
        }
    }
}

fn read<'a>(
    request: &'a Request<'a>,
    kind: Option<[String; 3]>,
    now: Timestamp,
) -> Result<Admission<'a>, Failure> {
    let operation = request.text("operation").unwrap_or_default();
    let operation = Operation::ALL.into_iter().find(|one| one.name() == operation).ok_or_else(|| {
        bad_request(format!(
            "request.operation: unknown operation {operation:?}: expected CREATE, UPDATE, DELETE or CONNECT"
        ))
    })?;
    let sub_resource = request.text("subResource").unwrap_or_default();
    let resource = || {
        let resource = request.fields.get("resource").and_then(json::fields);
        ["group", "resource"]
            .map(|key| resource.as_ref().and_then(|fields| fields.text(key)).unwrap_or_default())
    };
    let [group, version, name] = kind.ok_or_else(|| bad_request("the request has no kind".to_owned()))?;
    let unknown = || {
        let [_, plural] = resource();
        bad_request(format!(
            "unknown kind {name:?} of {group}/{version} ({plural}/{sub_resource}): expected one of {GROUP}"
        ))
    };
    if sub_resource == "scale" {
        let [resource_group, plural] = resource();
        let ours = resource_group == GROUP;
        let kind = kinds::find_plural(&plural).filter(|_| ours).ok_or_else(unknown)?;
        let (version, author) = (Version::V1, Version::V1);
        return Ok(Admission { request, kind, operation, sub_resource, version, author, now });
    }
    let kind = kinds::find(&name).filter(|_| group == GROUP).ok_or_else(unknown)?;
    let version: Version = version.parse().map_err(|error| bad_request(format!("request.kind: {error}")))?;
    let author = if has_the_same(request, "requestKind", "kind") {
        version
    } else {
        let written = group_version_kind(request, "requestKind")
            .filter(|[group, _, other]| group == GROUP && *other == name);
        written.and_then(|[_, version, _]| version.parse().ok()).unwrap_or(version)
    };
    Ok(Admission { request, kind, operation, sub_resource, version, author, now })
}

/// Both fields say the same in the same words, as those of most requests do.
fn has_the_same(request: &Request, one: &str, other: &str) -> bool {
    let text = |field| request.fields.get(field).map(RawValue::get);
    text(one) == text(other)
}

/// A pod in gatehouse's own namespace may use its ServiceAccount: no user may have one created there.
fn refuse_own_namespace(admission: &Admission, own_namespace: Option<&str>) -> Result<(), Failure> {
    let Some(own) = own_namespace.filter(|_| admission.operation == Operation::Create) else { return Ok(()) };
    if admission.request.text("namespace").as_deref() != Some(own) {
        return Ok(());
    }
    let plural = admission.kind.names().plural;
    let message = format!(
        "{plural} are refused in namespace {own:?}, which is gatehouse's own: its pods may use the ServiceAccount of \
         gatehouse; create the object in another namespace"
    );
    Err(Failure { code: 403, reason: "Forbidden", message })
}

fn describe(report: &mut Report, admission: &Admission) {
    report.kind = admission.kind.names().kind;
    report.operation = admission.operation.name();
    describe_request(report, admission.request);
}

impl Admission<'_> {
    /// The object under `name`, which has to be there.
    fn object(&self, name: &str) -> Result<Cow<'_, Value>, Failure> {
        let object = self.request.object(name)?;
        let object = object.ok_or_else(|| {
            bad_request(format!("the request has no {name}, which {} needs", self.operation.name()))
        })?;
        if object.is_object() { Ok(object) } else { Err(bad_request(format!("request.{name} is no object"))) }
    }

    fn change<'b>(&self, version: Version, object: &'b Value, old: Option<&'b Value>) -> Change<'b> {
        let new = Written { version, object };
        let old = old.map(|object| Written { version: self.version, object });
        Change { new, old, author: self.author, now: self.now }
    }

    fn old(&self) -> Result<Option<Cow<'_, Value>>, Failure> {
        (self.operation == Operation::Update).then(|| self.object("oldObject")).transpose()
    }
}

/// What absent fields mean, and what an update through the old version could not say.
fn mutate(admission: &Admission) -> Result<Decision, Failure> {
    let main = admission.sub_resource.is_empty();
    if !main || !matches!(admission.operation, Operation::Create | Operation::Update) {
        return Ok(Decision::default());
    }
    let object = admission.object("object")?;
    let old = admission.old()?;
    let (kind, version) = (admission.kind, admission.version);
    let (hub, additions) = default::completed(kind, &admission.change(version, &object, old.as_deref()));
    let mended = match version {
        Version::V1 => hub,
        version @ Version::V1Alpha1 => {
            Cow::Owned(kind.lens().convert(hub.into_owned(), Version::V1, version))
        }
    };
    let change = admission.change(version, &mended, old.as_deref());
    let mut validation = validation::errors(kind, &change);
    if validation.errors.iter().all(|fault| fault.reason == Reason::Required) {
        // Left to the validating hook, which comes after all mutating ones, and warns as well.
        validation = Validation { errors: Vec::new(), warnings: additions.warnings };
    }
    // What is refused is not patched, and mostly nothing was added, which is sooner seen than what.
    let is_other = validation.accepted() && matches!(mended, Cow::Owned(_)) && *object != *mended;
    let patch = is_other.then(|| json_patch::diff(&object, &mended)).filter(|patch| !patch.is_empty());
    let patch = patch.map(|patch| encoded(&patch));
    Ok(Decision { validation, patch, kept: additions.kept, defaulted: additions.defaulted })
}

fn validate(admission: &Admission) -> Result<Decision, Failure> {
    let validation = match (admission.operation, admission.sub_resource.as_str()) {
        (Operation::Create | Operation::Update, "") => {
            let (object, old) = (admission.object("object")?, admission.old()?);
            let change = admission.change(admission.version, &object, old.as_deref());
            validation::validate(admission.kind, &change)
        }
        (Operation::Update, "scale") => scale(admission)?,
        // Nothing that a rule forbids. Deletions are asked about by configurations of older releases.
        (Operation::Update, "status") | (Operation::Delete, "") => Validation::default(),
        (operation, sub_resource) => {
            let what = format!("{} of sub-resource {sub_resource:?}", operation.name());
            return Err(bad_request(format!("unexpected {what}: no rule of this gate asks for it")));
        }
    };
    Ok(Decision { validation, ..Decision::default() })
}

/// A new count by way of `/scale`, which shows nothing else of the object.
fn scale(admission: &Admission) -> Result<Validation, Failure> {
    let replicas = |object: &Value| object.pointer("/spec/replicas").map_or(Some(0), Value::as_i64);
    let new = admission.object("object")?;
    let old = admission.object("oldObject")?;
    let Some(new) = replicas(&new) else {
        let fault = FieldError::new(Path::spec().at("replicas"), Reason::TypeInvalid, "must be an integer");
        return Ok(Validation { errors: vec![fault], warnings: Vec::new() });
    };
    Ok(admission.kind.validate_scale(new, replicas(&old).unwrap_or(new)))
}

fn respond(admission: &Admission, decision: Decision, report: Report) -> Answer {
    let Decision { validation, patch, kept, defaulted } = decision;
    let name = admission.request.text("name").unwrap_or_default();
    let mut warnings: Vec<String> = Vec::new();
    for warning in validation.warnings.iter().map(Warning::as_str) {
        if warnings.len() < MOST_WARNINGS && !warnings.iter().any(|known| known == warning) {
            warnings.push(warning.to_owned());
        }
    }
    let status = (!validation.accepted())
        .then(|| Status::invalid(GROUP, admission.kind.names().kind, &name, &validation.errors));
    let report = Report {
        code: status.as_ref().and_then(|status| status.code).unwrap_or(200),
        faults: validation.errors.iter().map(|fault| fault.path.to_string()).collect(),
        ..report
    };
    let written = audit::Written {
        is_allowed: status.is_none(),
        author: admission.author,
        faults: &validation.errors,
        kept: &kept,
        defaulted: &defaulted,
    };
    let response = Response {
        uid: &admission.request.uid,
        allowed: status.is_none(),
        status,
        patch_type: patch.as_ref().map(|_| "JSONPatch"),
        patch,
        warnings: &warnings,
        audit_annotations: written.annotations(),
    };
    Answer { body: document(response), report }
}
