//! The status of a TDSet. Pure: the same facts give the same status, so that between two boundaries nothing is
//! written while nothing happens.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};

use super::conditions::statements;
use super::facts::Facts;
use super::target::View;
use crate::api::condition::{self, Statement};
use crate::api::field::{FieldError, Path, Segment};
use crate::api::time_zone;
use crate::kinds::tdset::api::status::{ConditionType, Reason};
use crate::kinds::tdset::api::v1::{PastTransition, RampStatus, TDSetStatus};
use crate::kinds::tdset::names;
use crate::kinds::tdset::observation::Observed;

/// Fields of the spec that make the timetable.
const TIMETABLE: [&str; 5] = ["timeZone", "defaultReplicas", "overlap", "windows", "exceptions"];

/// Fields whose values may be secrets: of a fault there or above, nothing is repeated.
const SECRET: [&str; 4] = ["spec", "target", "create", "env"];

/// The status of an object that is reconciled.
#[must_use]
pub fn of(view: View, transition: Option<PastTransition>) -> TDSetStatus {
    let View { facts, moment, target } = view;
    let previous = &facts.observed.status;
    let is_known = facts.is_timetable_known;
    let upcoming = moment.outlook.shown(moment.time);
    let generation = facts.spec.metadata.generation;
    let workload = workload(facts);
    TDSetStatus {
        observed_generation: generation,
        active_window: is_known.then(|| moment.phase.window.clone()),
        scheduled_replicas: moment.phase.replicas.filter(|_| is_known),
        replicas_before: target.replicas_before,
        replicas: workload.replicas,
        ready_replicas: workload.ready,
        selector: workload.selector,
        last_transition: transition.or_else(|| previous.last_transition.clone()),
        ramp: ramp(view),
        next_transition: upcoming.first().filter(|_| is_known).cloned(),
        upcoming: (is_known && !upcoming.is_empty()).then(|| upcoming.to_vec()),
        tzdb: Some(time_zone::database_version().to_owned()),
        conditions: Some(conditions(previous, statements(view), generation, facts.observed.now)),
    }
}

/// The ramp that the count is on. One whose first step was refused has not begun. One that is interrupted by what cannot be
/// read goes on afterwards, unless the timetable asks for something else meanwhile, or an edit may have changed its pace.
fn ramp(View { facts, moment, target }: View) -> Option<RampStatus> {
    let Observed { status, remembered, .. } = facts.observed;
    if facts.is_unread() {
        let is_known = facts.is_timetable_known;
        let leads_on = |ramp: &&RampStatus| !is_known || target.scheduled == Some(ramp.to);
        let is_over = facts.is_edited || is_known && moment.is_changed(facts);
        let reported = status.ramp.as_ref().filter(|_| !is_over);
        return remembered.carried.ramp.as_ref().filter(leads_on).or(reported).cloned();
    }
    let ramp = target.ramp.clone()?;
    (status.ramp.as_ref() == Some(&ramp) || !facts.is_count_refused()).then_some(ramp)
}

/// The conditions about the workload.
#[derive(Default)]
struct Workload {
    replicas: Option<i32>,
    ready: Option<i32>,
    selector: Option<String>,
}

fn workload(facts: &Facts) -> Workload {
    if let Some(scaled) = facts.scaled() {
        let selector = scaled.selector().map(str::to_owned);
        return Workload { replicas: scaled.has(), ready: None, selector };
    }
    let Some(deployment) = facts.deployment.ours() else { return Workload::default() };
    let [replicas, ready, ..] = deployment.numbers();
    Workload {
        replicas: Some(replicas),
        ready: Some(ready),
        selector: Some(names::selector_text(facts.spec.name())),
    }
}

/// The status of an object that does not pass the gate's validation.
#[must_use]
pub fn invalid(metadata: &ObjectMeta, faults: &[FieldError], observed: &Observed) -> TDSetStatus {
    let generation = metadata.generation;
    let conditions = conditions(&observed.status, invalid_statements(faults), generation, observed.now);
    TDSetStatus {
        observed_generation: generation,
        replicas_before: observed.status.replicas_before,
        last_transition: observed.status.last_transition.clone(),
        conditions: Some(conditions),
        ..TDSetStatus::default()
    }
}

/// What the conditions of an object with these faults say.
#[must_use]
pub fn invalid_statements(faults: &[FieldError]) -> [Statement; 3] {
    let shown: Vec<_> = faults.iter().map(shown).collect();
    let message = shown.join("; ");
    let of_timetable: Vec<_> = faults.iter().filter(|fault| is_of_timetable(&fault.path)).collect();
    let schedule = match of_timetable.as_slice() {
        [] => ConditionType::ScheduleValid.is(true, Reason::Valid, "the timetable is valid"),
        [fault] if fault.path == Path::spec().at("timeZone") => {
            ConditionType::ScheduleValid.is(false, Reason::UnknownTimeZone, &*message)
        }
        _ => ConditionType::ScheduleValid.is(false, Reason::InvalidSchedule, &*message),
    };
    [
        ConditionType::Ready.is(false, Reason::SpecInvalid, message),
        ConditionType::Progressing.is(
            false,
            Reason::SpecInvalid,
            "gatehouse does nothing until the object is changed",
        ),
        schedule,
    ]
}

/// The condition of an object in the namespace of gatehouse.
#[must_use]
pub fn in_own_namespace(message: String) -> Statement {
    ConditionType::Ready.is(false, Reason::NamespaceRefused, message)
}

/// The status of an object that is being deleted and cannot be let go: as it was, and why.
#[must_use]
pub fn held_up(metadata: &ObjectMeta, (reason, why): (Reason, &str), observed: &Observed) -> TDSetStatus {
    let statement = ConditionType::Ready.is(false, reason, why);
    let previous = &observed.status;
    TDSetStatus {
        conditions: Some(conditions(previous, [statement], metadata.generation, observed.now)),
        ..previous.clone()
    }
}

/// A fault without the value that it is about.
fn shown(fault: &FieldError) -> String {
    let secret =
        fault.path.segments().iter().zip(SECRET).all(|(step, name)| step == &Segment::Field(name.into()));
    let detail = if secret { String::new() } else { fault.detail.clone() };
    FieldError { value: None, detail, ..fault.clone() }.to_string()
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
