//! What a reconciliation reports beside the status and its events: a trace, and metrics.

use super::execute::Execution;
use super::metrics::{self, Line};
use super::state::ReconcileState;
use super::trace::{self, Reconciliation, Trace};
use crate::controllers::named;

/// The line of the trace with what was seen and is planned; none where the trace is off, or nothing is new.
pub fn trace(trace: &Trace, execution: &Execution<'_>, state: &mut ReconcileState) -> Option<u64> {
    if !trace::is_on() {
        return None;
    }
    let (desired, seen) = (&execution.seen.desired, &execution.seen.observation);
    let plan = &execution.plan.detail.decided;
    let facts = trace::digest(desired, seen);
    let before = state.traced.replace(facts);
    if plan.actions.is_empty() && before == Some(facts) {
        return None;
    }
    let object = named(execution.object);
    trace.reconciliation(&Reconciliation { object: &object, uid: execution.spec.uid(), desired, seen, plan })
}

/// The metrics.
pub fn metrics(execution: &Execution<'_>, state: &mut ReconcileState) -> Line {
    let (seen, plan) = (&execution.seen.observation, &execution.plan.detail.decided);
    state.tally.look(seen, plan, execution.now);
    metrics::of(&metrics::Facts {
        name: &execution.name(),
        desired: &execution.seen.desired,
        seen,
        plan,
        status: &execution.plan.status,
        certificates: &execution.seen.certificates.ends,
        tally: &state.tally,
        audited: state.audit.found_at(),
    })
}
