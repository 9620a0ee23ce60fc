//! What people do: they edit the object and the source of its scripts, approve plans, look at what is in doubt, and do what
//! the status asks for.

use gatehouse::kinds::databasemigration::api::status::Reason;

use super::*;
use crate::look::{asked_for, message, reason};

impl World {
    pub(super) fn edit(&mut self) -> bool {
        let edit = self.edits.remove(0);
        let object = &mut self.object;
        match edit {
            Edit::Source(version) => self.source = Some(version),
            Edit::NoSource => self.source = None,
            Edit::Base(is_ready) => self.is_base_ready = is_ready,
            // An annotation is no part of the spec.
            Edit::Retry => object.retry += 1,
            Edit::AddScript(id) => object.scripts.push(id),
            Edit::Mode(mode) => object.mode = mode,
            Edit::Suspend(is_on) => object.is_suspended = is_on,
            Edit::Retain => object.reverts = false,
            Edit::Delete => object.is_deleting = true,
        }
        let is_of_spec = !matches!(edit, Edit::Source(_) | Edit::NoSource | Edit::Base(_) | Edit::Retry);
        self.object.generation += u16::from(is_of_spec);
        if edit == Edit::Delete && !self.object.has_finalizer {
            self.goes();
        }
        true
    }

    /// A person finds out what became of the script in doubt, and says so. A word that is there already is taken away
    /// first.
    pub(super) fn answer(&mut self, is_slip: bool) -> bool {
        if reason(self.object.status) != Some(Reason::InDoubt) {
            return false;
        }
        let Some((id, doubt)) = self.database.doubt() else { return false };
        let answer = Answer { id, is_applied: doubt.has_landed != is_slip, about: doubt.about, is_slip };
        let before = self.object.resolve;
        if before == Some(answer) && !self.is_used(answer) {
            return false;
        }
        let is_there = before.is_some_and(|before| before.text() == answer.text());
        self.object.resolve = (!is_there).then_some(answer);
        true
    }

    /// Whether the status has that answer as used.
    fn is_used(&self, answer: Answer) -> bool {
        let status = self.object.status.status();
        status.last_run.as_ref().and_then(|last| last.resolved.as_ref()) == Some(&answer.text())
    }

    /// A person approves the plan that the status asks to be approved.
    pub(super) fn approve(&mut self) -> bool {
        let Some(hash) = asked_for(self.object.status) else { return false };
        if self.object.approval == Some(hash) {
            return false;
        }
        self.approved.insert(hash);
        self.object.approval = Some(hash);
        self.object.generation += 1;
        true
    }

    /// A database is restored from before the scripts, while nothing is under way.
    pub(super) fn restore(&mut self) -> bool {
        let is_quiet = self.jobs.iter().all(|job| job.ended.is_some())
            && self.orphans.is_empty()
            && self.operators.iter().all(|operator| operator.pending.is_none());
        // What was asked for before has been done.
        let is_done = || self.look(0).planned(Hand::default()).steps.is_empty();
        if !is_quiet || reason(self.object.status) != Some(Reason::Applied) || !is_done() {
            return false;
        }
        self.database = Database { doubts: self.database.doubts, ..Database::default() };
        self.restored = Some(self.asked());
        true
    }

    /// What is asked for.
    pub fn asked(&self) -> (usize, u16, Option<u8>) {
        (self.edits.len(), self.object.retry, self.source)
    }

    /// A person puts the text back that was applied, or that there was at first.
    fn put_back(&mut self) -> bool {
        let applied = self.database.version_of(2).or(Some(1));
        std::mem::replace(&mut self.source, applied) != applied
    }

    /// A person does what the status asks for.
    pub(super) fn help(&mut self) -> bool {
        match reason(self.object.status) {
            Some(Reason::AwaitingApproval) => self.approve(),
            Some(Reason::InDoubt) => self.answer(false),
            Some(Reason::Suspended) => {
                self.object.generation += 1;
                std::mem::take(&mut self.object.is_suspended)
            }
            Some(Reason::RequirementNotReady) => !std::mem::replace(&mut self.is_base_ready, true),
            // Who deletes an object has deleted what its scripts come from, too, and does not put it back without need.
            Some(Reason::ScriptNotFound) if !self.object.is_deleting => self.source.replace(1).is_none(),
            Some(Reason::ScriptNotFound)
                if message(self.object.status).contains("it is not known whether") =>
            {
                self.put_back()
            }
            // What is in doubt is taken back by the text that it has.
            Some(Reason::RevertFailed) if self.database.doubt().is_some() && self.put_back() => true,
            Some(Reason::ChecksumMismatch) => self.put_back(),
            Some(
                Reason::ScriptFailed
                | Reason::NotReached
                | Reason::RetriesExhausted
                | Reason::DeadlineExceeded
                | Reason::RevertFailed
                | Reason::HistoryDiverged,
            ) => {
                self.object.retry += 1;
                true
            }
            _ => false,
        }
    }
}
