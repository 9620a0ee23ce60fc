//! What a reconciliation reports beside the status: events, a trace, and metrics.

use super::execute::Execution;
use super::metrics::{self, Line};
use super::state::ReconcileState;
use super::status;
use super::trace::{self, Reconciliation, Trace};
use crate::controllers::api_write::Note;
use crate::controllers::named;

/// The line of the trace with what was seen and is planned; none where the trace is off, or nothing is new.
pub fn trace(trace: &Trace, execution: &Execution<'_>, state: &mut ReconcileState) -> Option<u64> {
    if !trace::is_on() {
        return None;
    }
    let (desired, seen) = (&execution.seen.desired, &execution.seen.observation);
    let facts = trace::digest(desired, seen);
    let before = state.traced.replace(facts);
    if execution.plan.actions.is_empty() && before == Some(facts) {
        return None;
    }
    let (object, plan) = (named(execution.object), execution.plan);
    trace.reconciliation(&Reconciliation { object: &object, uid: execution.spec.uid(), desired, seen, plan })
}

/// The metrics.
pub fn metrics(execution: &Execution<'_>, state: &mut ReconcileState) -> Line {
    let seen = &execution.seen.observation;
    state.tally.look(seen, execution.plan, execution.now);
    metrics::of(&metrics::Facts {
        name: &execution.name(),
        desired: &execution.seen.desired,
        seen,
        plan: execution.plan,
        status: execution.status,
        certificates: &execution.seen.certificates.ends,
        tally: &state.tally,
        audited: state.audit.found_at(),
    })
}

/// The events of what the status says newly, and of the certificates.
pub fn events(execution: &Execution<'_>, state: &mut ReconcileState) -> Vec<Note> {
    let (name, seen) = (execution.name(), &execution.seen.observation);
    let before = execution.object.status.clone().unwrap_or_default();
    let mut notes: Vec<_> = certificates(execution, state).into_iter().collect();
    notes.extend(status::alarms(&name, &before, seen, &mut state.alarms));
    notes.extend(status::news(&before, execution.status, &mut state.degraded));
    notes
}

/// What there is to say of the certificates, once.
fn certificates(execution: &Execution<'_>, state: &mut ReconcileState) -> Option<Note> {
    let standing = &execution.seen.certificates;
    let words = standing.words.clone();
    let is_news = std::mem::replace(&mut state.certificates, words.clone()) != words;
    let text = words.filter(|_| is_news)?;
    let (warning, reason, action) = (standing.is_problem, "CertificateRotation", "Reconcile");
    Some(Note { warning, reason, action, text })
}
