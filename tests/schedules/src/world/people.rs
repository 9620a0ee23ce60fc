//! What people do: they edit schedules, and they scale, delete and make objects beside the operator.

use serde_json::{Value, json};

use super::*;
use crate::text::is_of_the_unread;

/// What a person asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Edit {
    Image,
    Service(bool),
    Suspend(bool),
    Outside(i32),
    /// The count is left to an autoscaler.
    Autoscaler,
    /// The Service has another port.
    Port,
    /// The spec is no longer valid, or is again.
    Break(Option<Broken>),
    /// The schedule is deleted.
    Delete,
}

/// The image that another client gives a Deployment.
pub fn other_image() -> (&'static str, Value) {
    ("/spec/template/spec/containers/0/image", json!("other:1"))
}

/// The port that it gives a Service.
pub fn other_port() -> (&'static str, Value) {
    ("/spec/ports/0/port", json!(9000))
}

impl World {
    pub(super) fn edit(&mut self) -> bool {
        if self.edits.is_empty() {
            return false;
        }
        let edit = self.edits.remove(0);
        let before = self.asks(&self.schedules[0].spec);
        let schedule = &mut self.schedules[0];
        let spec = &mut schedule.spec;
        match edit {
            Edit::Image => spec.image += 1,
            Edit::Service(is_on) => spec.has_service = is_on,
            Edit::Suspend(is_on) => spec.is_suspended = is_on,
            Edit::Outside(count) => spec.outside = count,
            Edit::Autoscaler => spec.target = Target::Autoscaler,
            Edit::Port => spec.port += 1,
            Edit::Break(broken) => spec.broken = broken,
            Edit::Delete => {
                schedule.is_deleting = true;
                schedule.is_gone = !schedule.has_finalizer;
            }
        }
        schedule.generation += 1;
        let is_suspended = schedule.spec.is_suspended;
        if let Some(pending) = &mut self.workers[0].pending {
            pending.is_stale = true;
        }
        self.workers[0].is_told = true;
        if self.schedules[0].is_gone {
            self.workers[0] = Worker::default();
            self.moved();
            self.tell();
        }
        let is_mended = matches!(edit, Edit::Break(_) | Edit::Suspend(false));
        if self.asks(&self.schedules[0].spec) != before || is_suspended || is_mended {
            self.moved();
        }
        true
    }

    pub(super) fn scale(&mut self, owner: Owner) -> bool {
        let count = 9;
        // What a ramp leads to is known of the one that begins with the window.
        let schedule = &self.schedules[0];
        if schedule.spec.is_ramped && schedule.status.known().status.ramp.is_none() {
            return false;
        }
        let Some(found) = self.deployment.as_mut().filter(|found| found.count != count) else { return false };
        (found.count, found.is_observed) = (count, false);
        found.owners = BTreeSet::from([owner]);
        if let Some(eldest) = self.eldest().filter(|eldest| self.schedules[*eldest].spec.lets_stand()) {
            let schedule = &self.schedules[eldest];
            let told = schedule.status.known();
            let told = &told.status;
            // A scale tells no time, so it may have been written before a boundary that is not reported yet.
            let is_told_of_all =
                told.next_transition.as_ref().is_none_or(|next| next.time.0.as_millisecond() > self.now());
            let is_sure = self.workers[eldest].pending.is_none()
                && is_told_of_all
                && told.scheduled_replicas == Some(self.asks(&schedule.spec))
                && !schedule.is_edited()
                && told.active_window.as_deref() == Some(if self.clock == 1 { "office" } else { "" })
                && !schedule.status.says("Suspended", "True")
                && !schedule.status.says("Conflict", "True")
                && !is_of_the_unread(told);
            self.manual = if is_sure { Manual::Stands(count) } else { Manual::Either(count) };
        }
        self.tell();
        true
    }

    pub(super) fn delete(&mut self) -> bool {
        (self.manual, self.is_silent) = (Manual::None, false);
        let is_done = self.deployment.take().is_some();
        self.tell();
        is_done
    }

    pub(super) fn delete_slowly(&mut self) -> bool {
        (self.manual, self.is_silent) = (Manual::None, false);
        let Some(found) = self.deployment.as_mut().filter(|found| !found.is_going) else { return false };
        found.is_going = true;
        self.tell();
        true
    }

    pub(super) fn squat(&mut self) -> bool {
        match (&self.deployment, &self.service) {
            (None, _) => self.deployment = Some(self.foreign(5)),
            (_, None) => self.service = Some(Service { uid: self.uid(), applied: Text::NONE }),
            _ => return false,
        }
        self.tell();
        true
    }

    pub(super) fn change(&mut self) -> bool {
        let write = |applied: &mut Text, (field, value)| {
            let before = std::mem::replace(applied, applied.with(field, value));
            before != *applied
        };
        let has_changed = match (&mut self.service, &mut self.deployment) {
            (Some(found), _) => write(&mut found.applied, other_port()),
            (None, Some(found)) => {
                let has_changed = write(&mut found.applied, other_image());
                found.is_observed &= !has_changed;
                has_changed
            }
            (None, None) => false,
        };
        if has_changed {
            self.tell();
        }
        has_changed
    }

    pub(super) fn write_bounds(&mut self) -> bool {
        let Some(found) = &mut self.autoscaler else { return false };
        *found = Autoscaler { least: 3, most: 4, is_ours: false };
        self.tell();
        true
    }
}
