//! What is said of a TDSet. Pure: the same facts give the same status, so that between two boundaries nothing is
//! written while nothing happens.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};

use super::resources::names;
use super::view::{Observed, View};
use crate::api::condition::{self, State, Statement};
use crate::api::field::{Fault, Path, Segment};
use crate::api::tdset::status::{ConditionType, Reason};
use crate::api::tdset::v1::{PastTransition, TDSetStatus};
use crate::api::time_zone;

/// The object does not pass the judge of the gate.
pub const INVALID: &str = "Invalid";
/// The object asks for what this release does not do.
pub const NOT_SUPPORTED: &str = "NotSupported";

/// Fields of the spec that make the timetable.
const TIMETABLE: [&str; 5] = ["timeZone", "replicas", "overlap", "windows", "exceptions"];

/// Fields whose values may be secrets: of a fault there or above, nothing is repeated.
const SECRET: [&str; 4] = ["spec", "target", "create", "env"];

/// The status of an object that is worked on.
#[must_use]
pub fn of(view: &View, transition: Option<PastTransition>) -> TDSetStatus {
    let previous = &view.observed.status;
    let reckoned = !view.dates_are_elsewhere();
    let deployment = view.deployment.ours();
    let counts = deployment.and_then(|deployment| deployment.status.as_ref());
    let shown = |transition| view.schedule.shown(transition);
    let upcoming: Vec<_> = view.upcoming.iter().map(shown).collect();
    let generation = view.tdset.metadata.generation;
    TDSetStatus {
        observed_generation: generation,
        active_window: reckoned.then(|| view.effective.source.to_string()),
        scheduled_replicas: reckoned.then_some(view.effective.replicas),
        replicas: deployment.map(|_| counts.and_then(|counts| counts.replicas).unwrap_or(0)),
        ready_replicas: deployment.map(|_| counts.and_then(|counts| counts.ready_replicas).unwrap_or(0)),
        selector: deployment.map(|_| names::selector_text(view.tdset)),
        last_transition: transition.or_else(|| previous.last_transition.clone()),
        next_transition: upcoming.first().filter(|_| reckoned).cloned(),
        upcoming: Some(upcoming).filter(|upcoming| reckoned && !upcoming.is_empty()),
        tzdb: Some(time_zone::database_version().to_owned()),
        conditions: Some(conditions(previous, statements(view), generation, view.observed.now)),
    }
}

/// The status of an object that does not pass the judge of the gate.
#[must_use]
pub fn invalid(metadata: &ObjectMeta, faults: &[Fault], observed: &Observed) -> TDSetStatus {
    let shown: Vec<_> = faults.iter().map(shown).collect();
    let message = shown.join("; ");
    let of_timetable: Vec<_> = faults.iter().filter(|fault| is_of_timetable(&fault.path)).collect();
    let schedule = match of_timetable.as_slice() {
        [] => ConditionType::ScheduleValid.is(true, Reason::Parsed, "the timetable makes sense"),
        [fault] if fault.path == Path::spec().at("timeZone") => {
            ConditionType::ScheduleValid.is(false, Reason::UnknownTimeZone, &*message)
        }
        _ => ConditionType::ScheduleValid.is(false, Reason::InvalidSchedule, &*message),
    };
    let statements = [
        say(ConditionType::Ready, State::False, INVALID, message),
        say(ConditionType::Progressing, State::False, INVALID, "nothing is done until the object is changed"),
        schedule,
    ];
    let generation = metadata.generation;
    TDSetStatus {
        observed_generation: generation,
        last_transition: observed.status.last_transition.clone(),
        conditions: Some(conditions(&observed.status, statements, generation, observed.now)),
        ..TDSetStatus::default()
    }
}

/// The status of an object for which the API server refused a write: as it was, for nothing came of it, and why.
#[must_use]
pub fn refused(metadata: &ObjectMeta, why: String, observed: &Observed) -> TDSetStatus {
    let statement = ConditionType::Ready.is(false, Reason::WriteRefused, why);
    let previous = &observed.status;
    TDSetStatus {
        conditions: Some(conditions(previous, [statement], metadata.generation, observed.now)),
        ..previous.clone()
    }
}

/// A fault without the value that it is about.
fn shown(fault: &Fault) -> String {
    let secret =
        fault.path.segments().iter().zip(SECRET).all(|(step, name)| step == &Segment::Field(name.into()));
    let detail = if secret { String::new() } else { fault.detail.clone() };
    Fault { value: None, detail, ..fault.clone() }.to_string()
}

fn is_of_timetable(path: &Path) -> bool {
    match path.segments() {
        [] | [_] => true,
        [_, field, ..] => TIMETABLE.iter().any(|name| field == &Segment::Field((*name).into())),
    }
}

/// The conditions, those of others too, with `statements` written into them.
fn conditions(
    previous: &TDSetStatus,
    statements: impl IntoIterator<Item = Statement>,
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    let mut conditions = previous.conditions.clone().unwrap_or_default();
    for statement in statements {
        condition::set(&mut conditions, statement, generation, now);
    }
    conditions
}

fn statements(view: &View) -> [Statement; 6] {
    [ready(view), progressing(view), schedule_valid(view), suspended(view), overridden(view), conflict(view)]
}

fn say(about: ConditionType, state: State, reason: &'static str, message: impl Into<String>) -> Statement {
    Statement { about: about.as_str(), state, reason, message: message.into() }
}

fn ready(view: &View) -> Statement {
    let about = ConditionType::Ready;
    let unsupported = view.unsupported();
    if !unsupported.is_empty() {
        let message = format!("not acted on by this release: {}", unsupported.join(", "));
        return say(about, State::False, NOT_SUPPORTED, message);
    }
    if let Some(taken) = taken(view) {
        return about.is(false, Reason::NameTaken, taken);
    }
    let Some(deployment) = view.deployment.ours() else {
        return about.is(false, Reason::PodsNotReady, "the Deployment is not there yet");
    };
    let count = count(deployment);
    let ready = ready_replicas(deployment);
    let message = format!("{} of {count} replicas are ready", ready.min(count));
    match view.wanted() {
        _ if ready < count || !is_seen(deployment) => about.is(false, Reason::PodsNotReady, message),
        None => about.is(true, Reason::SuspendedBySpec, format!("{message}; the count is not written")),
        Some(wanted) if wanted == count => about.is(true, Reason::AsScheduled, message),
        Some(wanted) => about.is(false, Reason::PodsNotReady, format!("{message}, {wanted} are scheduled")),
    }
}

fn progressing(view: &View) -> Statement {
    let about = ConditionType::Progressing;
    let ramp = match view.tdset.spec.ramp {
        Some(_) => "; spec.ramp is not acted on by this release: the count moves at once",
        None => "",
    };
    let Some(_) = view.create() else {
        return say(about, State::False, NOT_SUPPORTED, "nothing is done");
    };
    let Some(deployment) = view.deployment.ours() else {
        let foreign = view.deployment.is_foreign();
        let message = if foreign { "nothing is done" } else { "the Deployment is about to be made" };
        let reason = if foreign { Reason::NameTaken } else { Reason::RollingOut };
        return about.is(!foreign, reason, message);
    };
    let status = deployment.status.clone().unwrap_or_default();
    let (count, has) = (count(deployment), status.replicas.unwrap_or(0));
    let updated = status.updated_replicas.unwrap_or(0);
    let unavailable = count.saturating_sub(status.available_replicas.unwrap_or(0));
    if view.wanted().is_some_and(|wanted| wanted != count)
        || !is_seen(deployment)
        || has != count
        || updated < has
    {
        let message =
            format!("{updated} of {count} replicas are of the current template, {has} in all{ramp}");
        about.is(true, Reason::RollingOut, message)
    } else if unavailable > 0 {
        about.is(
            !is_stuck(&status),
            Reason::PodsNotReady,
            format!("{unavailable} replicas are not available{ramp}"),
        )
    } else {
        about.is(false, Reason::Settled, format!("nothing moves{ramp}"))
    }
}

/// Whether the Deployment has given up waiting for its pods.
fn is_stuck(status: &DeploymentStatus) -> bool {
    status.conditions.iter().flatten().any(|one| one.type_ == "Progressing" && one.status == "False")
}

fn schedule_valid(view: &View) -> Statement {
    if view.dates_are_elsewhere() {
        let message = "spec.exceptions[*].datesFrom is not acted on by this release: the dates are not known";
        return say(ConditionType::ScheduleValid, State::Unknown, NOT_SUPPORTED, message);
    }
    ConditionType::ScheduleValid.is(true, Reason::Parsed, "the timetable makes sense")
}

fn suspended(view: &View) -> Statement {
    let about = ConditionType::Suspended;
    if view.suspended() {
        about.is(true, Reason::SuspendedBySpec, "spec.suspend is true: the count is not written")
    } else {
        about.is(false, Reason::NotSuspended, "the count follows the timetable")
    }
}

fn overridden(view: &View) -> Statement {
    let about = ConditionType::ManualOverride;
    if view.keeps_manual_counts() {
        let message = "spec.manualScale KeepUntilNextTransition is not acted on by this release: \
                       a count that somebody else writes is taken back";
        return say(about, State::False, NOT_SUPPORTED, message);
    }
    about.is(false, Reason::NotOverridden, "a count that somebody else writes is taken back")
}

fn conflict(view: &View) -> Statement {
    let about = ConditionType::Conflict;
    match taken(view) {
        Some(taken) => about.is(true, Reason::NameTaken, taken),
        None => about.is(false, Reason::NoConflict, "nobody else has a hand in it"),
    }
}

/// What stands where something is to be made.
fn taken(view: &View) -> Option<String> {
    let create = view.create()?;
    let kinds = [
        (view.deployment.is_foreign(), "Deployment"),
        (create.service_port.is_some() && view.service.is_foreign(), "Service"),
    ];
    let kinds: Vec<_> = kinds.into_iter().filter_map(|(foreign, kind)| foreign.then_some(kind)).collect();
    let name = view.tdset.metadata.name.as_deref().unwrap_or_default();
    let message = format!("{} {name} exists and is not controlled by this object", kinds.join(" and "));
    (!kinds.is_empty()).then_some(message)
}

/// The count that a Deployment has; absent means 1.
#[must_use]
pub fn count(deployment: &Deployment) -> i32 {
    deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

fn ready_replicas(deployment: &Deployment) -> i32 {
    deployment.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0)
}

/// Whether the Deployment's status speaks of its spec as it is now.
fn is_seen(deployment: &Deployment) -> bool {
    let observed = deployment.status.as_ref().and_then(|status| status.observed_generation);
    observed >= deployment.metadata.generation
}
