//! One reconciliation of one object, the same for all kinds.
//!
//! ```text
//!  read ─▶ resolve ─▶ observe ─▶ plan ─▶ execute ─▶ remember, requeue
//!           pure                 pure       │
//!                                           └─ report: the status and its events, before the actions or after them
//! ```
//!
//! Guarantees: an object that cannot be decoded, or that has faults, says so in its conditions; one that is being
//! deleted and does not wait for us is left alone, and so is one in the namespace of gatehouse, until it is deleted;
//! every action has a fail point before it and one after it; what the API server refuses for good is in the observation
//! of the next reconciliation, which comes soon, so that the status says it; a refusal holds up only those later
//! actions that need what was refused.
//! Never: decides anything about a kind. What is decided is in [`Reconciler::plan`], which is pure.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Resource as _;
use kube::core::object::HasStatus as _;
use tracing::{info, warn};

use super::action::{self, Action as _, Failure, RefusedWrite};
use super::api_write::Note;
use super::outcome::{Class, Error, Outcome};
use super::plan::Progress;
use super::reconciler::{Context, Execution, Identity, Pass, Read, Reconciler, State, Step};
use super::status::StatusRole;
use super::unworked::{self, Cause};
use super::{Watched, finalizer, named};
use crate::api::Version;
use crate::api::field::FieldError;
use crate::api::validation::{self, Written};
use crate::runtime::clock;

/// When to look again where something is seen otherwise than the status says.
const AT_ONCE: Duration = Duration::from_millis(200);

/// When to look again where a watch should have fired before.
const SOON: Duration = Duration::from_secs(1);

/// The longest time until what was refused is tried again.
const REFUSED: Duration = Duration::from_mins(1);

/// Reconciles an object.
///
/// # Errors
/// When the API server does not answer, is in trouble, or another client wrote first.
pub async fn reconcile<Kind: Reconciler>(
    kind: &Kind,
    context: &Context<Kind>,
    watched: Arc<Watched<Kind::Object>>,
    state: &mut State<Kind>,
) -> Result<Outcome, Error> {
    let object = match kind.read(context, watched).await? {
        Read::Found(object) => object,
        Read::Gone => return Ok(Outcome::Leaving),
        Read::Later(pause) => return Ok(Outcome::Waiting(pause)),
    };
    let (metadata, now) = (object.meta(), clock::now());
    let is_deleting = metadata.deletion_timestamp.is_some();
    if is_deleting && !finalizer::is_on(metadata, Kind::IDENTITY.finalizer) {
        context.hide(kind, metadata);
        return Ok(Outcome::Leaving);
    }
    if !is_deleting && !context.scope.works(metadata.namespace.as_deref().unwrap_or_default()) {
        context.hide(kind, metadata);
        return unworked::report(context, &object, Cause::InOwnNamespace, state, now).await; // effect
    }
    let Ok(mut object) = object.read() else {
        return leave_undecodable(kind, context, &object, state, now).await; // effect
    };
    state.unworked = None;
    if let Some(status) = state.written.newer_than(object.meta().resource_version.as_deref()) {
        *object.status_mut() = Some(status.clone());
    }
    let spec = Kind::resolve(&object, || faults::<Kind>(&object), &mut state.own); // pure
    let pass = Pass { kind, context, object: &object, spec: &spec, now };
    let seen = Box::pin(Kind::observe(pass, state)).await?; // effect
    let plan = Kind::plan(&object, &spec, &seen, now, None); // pure
    let execution = Execution { pass, seen: &seen, plan: &plan };
    Kind::remember(&execution, &mut state.own, Step::Planned); // effect
    let is_record = Kind::IDENTITY.status == StatusRole::Record;
    if is_record {
        report(&execution, state).await?; // effect
    }
    let progress = Box::pin(execute(&execution, state)).await?; // effect
    let had_refused = std::mem::replace(&mut state.refused, progress.refused.clone()).is_some();
    match &progress.refused {
        _ if is_record => {}
        None => {
            if Kind::defers_report(&execution, &mut state.own, progress.is_changed) {
                return Ok(Outcome::Waiting(SOON));
            }
            report(&execution, state).await?; // effect
        }
        Some(refused) => {
            let plan = Kind::plan(&object, &spec, &seen, now, Some(refused)); // pure
            report(&Execution { plan: &plan, ..execution }, state).await?; // effect
        }
    }
    let outcome = Kind::finish(execution, &mut state.own, &progress).await; // effect
    Ok(match outcome {
        outcome if state.refused.is_some() => {
            Outcome::Refused(outcome.again().unwrap_or(REFUSED).min(REFUSED))
        }
        _ if had_refused && is_record => Outcome::Waiting(AT_ONCE),
        outcome => outcome,
    })
}

/// Does one thing after the other. One that cannot be done ends it, unless those after it do not need it.
async fn execute<Kind: Reconciler>(
    execution: &Execution<'_, Kind>,
    state: &mut State<Kind>,
) -> Result<Progress, Error> {
    let mut progress = Progress::default();
    let has_lasted = std::mem::take(&mut state.is_lasting);
    for action in &execution.plan.actions {
        let name = action.name();
        let lost = || Failure::Api(execution.lost(name));
        let done = action.points().around(Kind::execute(*execution, action), lost).await; // effect
        execution.context.reconciliations.acted(Kind::IDENTITY.name, name, action::result(done.as_ref()));
        let note = Kind::executed(execution, &mut state.own, action, done.as_ref());
        let object = || named(execution.object);
        let failure = match done {
            Ok(executed) => {
                progress.is_changed |= executed.changed;
                // What is done once more has its events once more.
                state.published.retain(|_| !executed.changed);
                state.failed = state.failed.take().filter(|(failed, _)| *failed != name);
                if action.is_logged() {
                    info!(controller = Kind::IDENTITY.name, object = object(), action = name, "carried out");
                }
                if let Some(note) = note {
                    execution.tell(note).await; // effect
                }
                continue;
            }
            Err(failure) => failure,
        };
        let why = failure.to_string();
        warn!(controller = Kind::IDENTITY.name, object = object(), action = name, why, "not carried out");
        if let Some(note) = note {
            let failed = Some((name, note.text.clone()));
            if state.failed != failed {
                state.failed = failed;
                execution.tell(note).await; // effect
            }
        }
        progress.is_incomplete = true;
        // What has failed for long enough stays so for a user, whatever it is.
        let is_lasting =
            has_lasted && matches!(&failure, Failure::Api(error) if error.class() == Class::Transient);
        let is_lasting = is_lasting && Kind::IDENTITY.status == StatusRole::Report;
        state.is_lasting |= is_lasting;
        match failure {
            Failure::Api(error) if error.class() != Class::Permanent && !is_lasting => return Err(error),
            failure if (is_lasting || failure.is_permanent()) && action.reports_refusal() => {
                let refused = || RefusedWrite { action: name.to_owned(), why };
                progress.refused.get_or_insert_with(refused);
            }
            _ => {}
        }
        if action.holds_up_others() {
            break;
        }
    }
    Ok(progress)
}

/// Writes the status where it says something new, and publishes the events that go with it.
async fn report<Kind: Reconciler>(
    execution: &Execution<'_, Kind>,
    state: &mut State<Kind>,
) -> Result<(), Error> {
    let is_record = Kind::IDENTITY.status == StatusRole::Record;
    if !is_record {
        publish_ahead(execution, state).await; // effect
    }
    let written = write_status(execution, state).await?; // effect
    state.published.clear();
    if is_record {
        publish(execution).await; // effect
    }
    if let Some(version) = written.as_deref().filter(|_| !is_record) {
        state.written.set(version, execution.plan.status.clone());
    }
    Kind::remember(execution, &mut state.own, Step::Reported { is_written: written.is_some() });
    Ok(())
}

/// Writes the status where it says something new. A status that the API server refuses for good cannot say so: an event
/// does, once.
async fn write_status<Kind: Reconciler>(
    execution: &Execution<'_, Kind>,
    state: &mut State<Kind>,
) -> Result<Option<String>, Error> {
    let written = execution.write_status().await; // effect
    match &written {
        Ok(_) => state.is_status_refused = false,
        Err(error) if error.is_refusal_for_good() => {
            if !std::mem::replace(&mut state.is_status_refused, true) {
                execution.tell(Note::of_refused_status(error)).await; // effect
            }
        }
        Err(_) => {}
    }
    written
}

/// Publishes the events that go with the status.
async fn publish<Kind: Reconciler>(execution: &Execution<'_, Kind>) {
    for note in &execution.plan.events {
        execution.tell(note.clone()).await; // effect
    }
}

/// The same before the status is written: each that was published once, however often that fails.
async fn publish_ahead<Kind: Reconciler>(execution: &Execution<'_, Kind>, state: &mut State<Kind>) {
    let notes = &execution.plan.events;
    state.published.retain(|note| notes.contains(note));
    for note in notes {
        let is_new = !state.published.contains(note);
        if is_new && execution.tell(note.clone()).await {
            state.published.push(note.clone());
        }
    }
}

/// What the gate has against an object as it is stored.
fn faults<Kind: Reconciler>(object: &Kind::Object) -> Vec<FieldError> {
    let object = serde_json::to_value(object).unwrap_or_default();
    validation::stored(Kind::IDENTITY.kind, Written { version: Version::V1, object: &object }).errors
}

/// Reports an object that cannot be decoded, or lets it go.
async fn leave_undecodable<Kind: Reconciler>(
    kind: &Kind,
    context: &Context<Kind>,
    object: &Watched<Kind::Object>,
    state: &mut State<Kind>,
    now: Timestamp,
) -> Result<Outcome, Error> {
    context.hide(kind, object.meta());
    let Identity { finalizer, manager, keeps_undecodable, .. } = Kind::IDENTITY;
    if object.meta().deletion_timestamp.is_none() || keeps_undecodable {
        return unworked::report(context, object, Cause::Undecodable, state, now).await; // effect
    }
    let released = finalizer::write::<Kind::Object>(object.meta(), finalizer, false, manager);
    context.writer.perform(&released, &object.object_ref(&())).await?; // effect
    Ok(Outcome::Waiting(SOON))
}
