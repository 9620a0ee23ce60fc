//! The operator: its looks, and its steps one after the other, as the API server has them.

use gatehouse::controllers::action::Action as _;
use gatehouse::controllers::manifest::Manifest;
use gatehouse::kinds::databasemigration::actions::Action;
use gatehouse::kinds::databasemigration::names::{ATTEMPT, KEY, NUMBER, PURPOSE, RESOLVED};
use gatehouse::kinds::databasemigration::observation::Purpose;

use crate::faults::Hand;
use crate::look::{Planned, Step, ageless};
use crate::text::Text;
use crate::world::{Job, Pending, Snapshot, World};

impl World {
    /// Reads, and plans. Where nothing is to be done, nothing comes of it.
    pub fn pass(&mut self, at: usize, hand: Hand) -> bool {
        let object = &self.object;
        if self.operators[at].pending.is_some() || object.is_deleting && !object.has_finalizer {
            return false;
        }
        let planned = self.look(at).planned(hand);
        self.operators[at].refused = None;
        if !planned.steps.is_empty() {
            self.operators[at].pending = Some(Pending { planned, done: 0 });
        }
        true
    }

    /// Does the next thing of what was planned. What cannot be done ends the reconciliation.
    pub fn step(&mut self, at: usize) -> bool {
        let Some(Pending { planned, done }) = self.operators[at].pending.clone() else { return false };
        let is_done = match planned.steps[done] {
            Step::Status => self.write_status(&planned),
            Step::Act(action) => self.perform(&planned, &planned.plan.actions[action]),
        };
        let is_over = !is_done || done + 1 == planned.steps.len();
        self.operators[at].pending = (!is_over).then_some(Pending { planned, done: done + 1 });
        if self.object.is_gone {
            self.operators.iter_mut().for_each(|operator| operator.pending = None);
        }
        true
    }

    /// The reconciliation ends, and starts again.
    pub fn give_up(&mut self, at: usize) -> bool {
        self.operators[at].pending = None;
        true
    }

    pub fn crash(&mut self, at: usize) -> bool {
        self.operators[at].refused = None;
        self.give_up(at)
    }

    /// The next action is refused for good, which the next reconciliation tells.
    pub fn refuse(&mut self, at: usize) -> bool {
        let Some(Pending { planned, done }) = &self.operators[at].pending else { return false };
        let Step::Act(action) = planned.steps[*done] else { return false };
        self.operators[at].refused = Some(planned.plan.actions[action].name());
        self.give_up(at)
    }

    /// A status is written only into the object as it was read, but for its annotations.
    fn write_status(&mut self, planned: &Planned) -> bool {
        let (now, then) = (&self.object, &planned.seen.object);
        let is_same = now.generation == then.generation
            && now.is_deleting == then.is_deleting
            && now.has_finalizer == then.has_finalizer
            && ageless(now.status) == ageless(then.status);
        if !is_same {
            return false;
        }
        let age = |status: Text| {
            let status = status.status();
            status.last_run.as_ref().map(|last| (last.number, last.finished_at.clone()))
        };
        let mut status = planned.status;
        if let (Some((before, time)), Some((after, _))) = (age(now.status), age(status))
            && before == after
        {
            let mut aged = (*status.status()).clone();
            aged.last_run.iter_mut().for_each(|last| last.finished_at = time.clone());
            status = Text::of_status(&aged);
        }
        self.object.status = status;
        self.judge_status(planned);
        true
    }

    fn perform(&mut self, planned: &Planned, action: &Action) -> bool {
        match action {
            Action::Hold if self.object.is_deleting => false,
            Action::Hold => {
                self.object.has_finalizer = true;
                true
            }
            Action::Release => self.release(planned),
            Action::CreateSnapshot(manifest) => self.create_snapshot(manifest),
            Action::CreateJob(manifest) => self.create_job(planned, manifest),
            Action::DeleteSnapshot { name, uid } => self.delete_snapshot(name, uid),
        }
    }

    /// Lets the object go where it is as it was decided on.
    fn release(&mut self, planned: &Planned) -> bool {
        let (now, then) = (&self.object, &planned.seen.object);
        let is_same = now.generation == then.generation
            && now.is_deleting == then.is_deleting
            && ageless(now.status) == ageless(planned.status);
        if !is_same {
            return false;
        }
        self.object.has_finalizer = false;
        if self.object.is_deleting {
            self.goes();
        }
        true
    }

    /// The object is gone, and what it owns with it.
    pub fn goes(&mut self) {
        self.judge_leave();
        self.object.is_gone = true;
        self.operators.iter_mut().for_each(|operator| operator.pending = None);
        self.jobs.clear();
        self.snapshots.clear();
    }

    fn create_snapshot(&mut self, manifest: &Manifest) -> bool {
        let (name, text) = (Text::of(&manifest.place.name), Text::of(&manifest.object.to_string()));
        let uid = self.next_uid;
        self.snapshots.entry(name).or_insert(Snapshot { uid, text }).text == text
    }

    fn delete_snapshot(&mut self, name: &str, uid: &str) -> bool {
        let name = Text::of(name);
        let Some(found) = self.snapshots.get(&name) else { return true };
        if found.uid.to_string() != uid {
            return false;
        }
        self.judge_deletion(name);
        self.snapshots.remove(&name);
        self.next_uid += 1;
        true
    }

    fn create_job(&mut self, planned: &Planned, manifest: &Manifest) -> bool {
        let (name, text) = (Text::of(&manifest.place.name), Text::of(&manifest.object.to_string()));
        if let Some(found) = self.jobs.iter().find(|job| job.name == name) {
            return found.manifest == text;
        }
        let annotations = &manifest.object["metadata"]["annotations"];
        let told = |name: &str| annotations[name].as_str().expect("an annotation");
        let job = Job {
            name,
            key: Text::of(told(KEY)),
            number: told(NUMBER).parse().expect("a number"),
            attempt: told(ATTEMPT).parse().expect("a number"),
            purpose: Purpose::named(told(PURPOSE)).expect("a purpose"),
            resolved: annotations[RESOLVED].as_str().map(Text::of),
            answer: planned.seen.object.resolve,
            told: self.snapshots.get(&name).map(|found| found.text),
            manifest: text,
            ended: None,
            shown: self.around.shown(),
        };
        self.judge_job(planned, &job);
        self.settled = None;
        self.jobs.push(job);
        self.jobs.sort_by_key(|job| job.number);
        true
    }
}
