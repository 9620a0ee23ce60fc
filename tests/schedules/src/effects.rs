//! What becomes of the world by the steps of a plan, as the API server would have it.

use std::collections::BTreeSet;

use gatehouse::controllers::api_write::{ApiWrite, Apply, Merge};
use gatehouse::kinds::tdset::names::COUNT_MANAGER;
use serde_json::{Value, json};

use crate::rules::Rule;
use crate::text::Text;
use crate::world::{Deployment, Manual, Owner, Pending, Service, Target, Worker, World};

/// Why a step was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    Conflict,
    Refused,
}

impl World {
    /// Does the next thing; whether that changed anything.
    pub fn perform(&mut self, at: usize, pending: &Pending) -> Result<bool, Failure> {
        let Some((step, written)) = pending.step() else { return Ok(false) };
        match step {
            ApiWrite::Apply(apply) => {
                let kind = apply.manifest.place.resource.kind.as_str();
                match (kind, apply.manager) {
                    ("Deployment", COUNT_MANAGER) => self.apply_count(at, apply, pending),
                    ("Deployment", _) => self.apply_deployment(apply, written, pending),
                    ("Service", _) => self.apply_service(apply, written, pending),
                    _ => Err(Failure::Refused),
                }
            }
            ApiWrite::Merge(merge) if merge.scale => {
                let Some(found) = &self.deployment else { return Err(Failure::Refused) };
                if uid(&merge.manifest.object) != Some(format!("d{}", found.uid)) {
                    return Err(Failure::Conflict);
                }
                self.write_count(at, count(&merge.manifest.object).unwrap_or_default(), pending);
                Ok(pending.planned.seen.deployment.as_ref().map(|found| found.count) != self.count())
            }
            ApiWrite::Merge(merge) if merge.manager == COUNT_MANAGER => self.merge_bounds(at, merge, pending),
            ApiWrite::Merge(merge) => self.write_finalizers(at, merge, pending),
            // A TDSet's objects are applied, not created.
            ApiWrite::Create { .. } => Err(Failure::Refused),
            ApiWrite::Delete { uid, .. } => {
                let Some(found) = &self.service else { return Ok(false) };
                if *uid != format!("s{}", found.uid) {
                    return Err(Failure::Conflict);
                }
                if found.applied == Text::NONE {
                    self.breaks(Rule::ForeignWritten);
                }
                self.service = None;
                self.tell();
                Ok(true)
            }
            ApiWrite::Status { .. } => {
                self.schedules[at].status = self.schedules[at].status.merged(written);
                if let Some(pending) = &mut self.workers[at].pending {
                    pending.is_stale = true;
                }
                self.judge_status(at, pending);
                Ok(true)
            }
            ApiWrite::Event(note) => {
                let is_of_now = self.is_of_now(at, pending);
                if note.action == "Scale" {
                    self.is_silent = false;
                }
                if note.reason == "ReplicasScheduled" && is_of_now && self.eldest() == Some(at) {
                    self.told = self.told.saturating_add(1);
                    if self.told > 1 && !self.is_disturbed {
                        self.breaks(Rule::ToldTwice);
                    }
                }
                Ok(false)
            }
        }
    }

    /// Whether neither the clock nor the schedule has moved since a pass looked at them.
    fn is_of_now(&self, at: usize, pending: &Pending) -> bool {
        let seen = &pending.planned.seen;
        seen.now == self.now() && seen.schedule.generation == self.schedules[at].generation
    }

    fn count(&self) -> Option<i32> {
        self.deployment.as_ref().map(|found| found.count)
    }

    fn apply_deployment(&mut self, apply: &Apply, applied: Text, pending: &Pending) -> Result<bool, Failure> {
        let given = count(&apply.manifest.object);
        let of = uid(&apply.manifest.object);
        let Some(found) = &mut self.deployment else {
            if of.is_some() {
                return Err(Failure::Conflict);
            }
            let spec = &pending.planned.seen.schedule.spec;
            let is_counted = spec.target == Target::Create;
            if is_counted && given != Some(pending.planned.seen.asks) {
                self.breaks(Rule::MadeWithAnotherCount);
            }
            let owners = given.map(|_| Owner::Template).into_iter().collect();
            let uid = self.uid();
            self.deployment = Some(Deployment {
                uid,
                applied,
                count: given.unwrap_or(1),
                owners,
                has: 0,
                is_observed: false,
                is_going: false,
            });
            self.tell();
            return Ok(true);
        };
        if of.is_some_and(|of| of != format!("d{}", found.uid)) {
            return Err(Failure::Conflict);
        }
        if is_for_new(apply) {
            return Err(Failure::Conflict);
        }
        let is_foreign = found.applied == Text::NONE;
        let before = found.clone();
        if found.applied != applied {
            found.is_observed = false;
        }
        found.applied = applied;
        if let Some(given) = given {
            found.owners.insert(Owner::Template);
            found.count = given;
        } else if found.owners.remove(&Owner::Template) && found.owners.is_empty() {
            found.count = 1;
        }
        let (has_changed, is_lost) = (*found != before, given.is_none() && found.count != before.count);
        if is_lost {
            self.breaks(Rule::CountLost);
        }
        if is_foreign {
            self.breaks(Rule::ForeignWritten);
        }
        if has_changed {
            self.put_back(pending);
            self.tell();
        }
        Ok(has_changed)
    }

    fn apply_count(&mut self, at: usize, apply: &Apply, pending: &Pending) -> Result<bool, Failure> {
        let Some(found) = &self.deployment else { return Err(Failure::Conflict) };
        if uid(&apply.manifest.object) != Some(format!("d{}", found.uid)) {
            return Err(Failure::Conflict);
        }
        let wanted = count(&apply.manifest.object).unwrap_or_default();
        let is_others = found.owners.iter().any(|owner| *owner != Owner::Count);
        if wanted != found.count && is_others && apply.seen.is_none() {
            return Err(Failure::Conflict);
        }
        let before = found.clone();
        self.write_count(at, wanted, pending);
        if let Some(found) = &mut self.deployment {
            found.owners.insert(Owner::Count);
        }
        let has_changed = self.deployment.as_ref() != Some(&before);
        if has_changed {
            self.tell();
        }
        Ok(has_changed)
    }

    /// Writes a count as its manager, which thereby has it alone.
    fn write_count(&mut self, at: usize, wanted: i32, pending: &Pending) {
        let is_eldest = self.eldest() == Some(at);
        let is_unheld =
            pending.planned.seen.schedule.spec.target.leaves_something() && !self.schedules[at].has_finalizer;
        let is_of_now = self.is_of_now(at, pending);
        let is_forgotten = pending.planned.seen.schedule.spec.target == Target::Lent
            && self.schedules[at].status.known().status.replicas_before.is_none();
        let manual = self.manual;
        let is_out_of_bounds = self.autoscaler.as_ref().is_some_and(|found| found.least != wanted);
        let is_unset = pending.planned.seen.schedule.spec.target == Target::Unset;
        let is_other = |found: &&mut Deployment| found.count != wanted || is_unset && found.owners.is_empty();
        let Some(found) = self.deployment.as_mut().filter(is_other) else { return };
        let taken = manual == Manual::Stands(found.count);
        // It begins at the first contact, which is not reported; and of a ramp only its beginning is reported.
        let is_first = pending.planned.seen.schedule.status.known().status.active_window.is_none();
        let is_scaled = found.owners.iter().any(|owner| matches!(owner, Owner::Scale | Owner::Edit(_)));
        let is_step = pending.planned.seen.schedule.spec.is_ramped && !is_scaled;
        let is_foreign = found.applied == Text::NONE;
        let status = pending.planned.seen.schedule.status.known();
        let is_told = status.status.next_transition.is_some() && found.owners.contains(&Owner::Count);
        let (outside, inside) =
            (pending.planned.seen.schedule.spec.outside, pending.planned.seen.schedule.spec.inside);
        let is_undone =
            pending.planned.seen.is_behind && is_told && (found.count, wanted) == (inside, outside);
        found.count = wanted;
        found.is_observed = false;
        found.owners = BTreeSet::from([Owner::Count]);
        let was_going = pending.planned.seen.deployment.as_ref().is_some_and(|found| found.is_going);
        let is_leaving = pending.planned.seen.schedule.is_deleting;
        let spec = &pending.planned.seen.schedule.spec;
        let is_referred = spec.target.is_foreign();
        let is_woken = spec.target.is_autoscaled() && wanted > 0 && pending.refused.is_none();
        let is_past_the_line = spec.is_ramped && self.clock == 1 && wanted > self.line(spec);
        let rules = [
            (Rule::RampOutpaced, is_past_the_line),
            (Rule::ControlledWritten, spec.target.is_controlled()),
            (Rule::CountedBeforeFinalizer, is_unheld),
            (Rule::OwnCountForgotten, is_forgotten),
            (Rule::ForeignWritten, is_foreign && !is_referred),
            (Rule::HeldCountWritten, !is_eldest),
            (Rule::ManualCountTakenBack, taken && !is_leaving),
            (Rule::CountWrittenWhileSuspended, spec.is_suspended && !is_leaving),
            (Rule::WrittenWhileGoing, was_going),
            (Rule::Undone, is_undone),
            (Rule::AutoscaledCountWritten, pending.planned.seen.is_scaled),
            (Rule::AutoscaledCountWritten, spec.target.is_autoscaled() && !pending.is_of_sleep(wanted)),
            (Rule::WokenOutOfBounds, is_woken && is_out_of_bounds),
        ];
        for (rule, _) in rules.into_iter().filter(|(_, is_broken)| *is_broken) {
            self.breaks(rule);
        }
        let is_news = !is_first && !is_step || pending.is_news();
        self.is_silent |= is_news && is_of_now && !is_leaving && manual == Manual::None;
        if is_scaled && !is_first && !pending.is_news() && !is_leaving {
            self.take_back(pending);
        }
        self.tell();
    }

    /// A count is taken back from a client that has written it, three times without more ado.
    fn take_back(&mut self, pending: &Pending) {
        if is_at_once(&mut self.taken_back, pending.planned.seen.now) {
            self.breaks(Rule::TakenBackAtOnce);
        }
    }

    /// What was made is put back after another client has changed it, likewise.
    fn put_back(&mut self, pending: &Pending) {
        if is_at_once(&mut self.put_back, pending.planned.seen.now) {
            self.breaks(Rule::PutBackAtOnce);
        }
    }

    fn apply_service(&mut self, apply: &Apply, applied: Text, pending: &Pending) -> Result<bool, Failure> {
        let of = uid(&apply.manifest.object);
        let Some(found) = &mut self.service else {
            if of.is_some() {
                return Err(Failure::Conflict);
            }
            self.service = Some(Service { uid: self.uid(), applied });
            self.tell();
            return Ok(true);
        };
        if of.is_some_and(|of| of != format!("s{}", found.uid)) || is_for_new(apply) {
            return Err(Failure::Conflict);
        }
        let is_foreign = found.applied == Text::NONE;
        let has_changed = found.applied != applied;
        found.applied = applied;
        if is_foreign {
            self.breaks(Rule::ForeignWritten);
        }
        if has_changed {
            self.put_back(pending);
            self.tell();
        }
        Ok(has_changed)
    }

    fn merge_bounds(&mut self, at: usize, merge: &Merge, pending: &Pending) -> Result<bool, Failure> {
        let bound = |field: &str| {
            let bound = merge.manifest.object["spec"][field].as_i64();
            bound.map(|bound| i32::try_from(bound).expect("a count"))
        };
        let spec = &pending.planned.seen.schedule.spec;
        let is_unheld = spec.target.leaves_something() && !self.schedules[at].has_finalizer;
        let is_leaving = pending.planned.seen.schedule.is_deleting;
        let Some(found) = &mut self.autoscaler else { return Err(Failure::Conflict) };
        let before = found.clone();
        let (least, most) = (bound("minReplicas"), bound("maxReplicas"));
        let (least, most) = (least.unwrap_or(found.least), most.unwrap_or(found.most));
        if least > most {
            return Err(Failure::Refused);
        }
        (found.least, found.most) = (least, most);
        found.is_ours = true;
        let has_changed = *found != before;
        if has_changed {
            let is_of_now = self.is_of_now(at, pending);
            self.is_silent |= before.is_ours && is_of_now && pending.is_news() && !is_leaving;
            if is_unheld {
                self.breaks(Rule::CountedBeforeFinalizer);
            }
            self.tell();
        }
        Ok(has_changed)
    }

    fn write_finalizers(&mut self, at: usize, merge: &Merge, pending: &Pending) -> Result<bool, Failure> {
        if pending.is_stale || self.workers[at].pending.as_ref().is_some_and(|now| now.is_stale) {
            return Err(Failure::Conflict);
        }
        let finalizers = merge.manifest.object["metadata"]["finalizers"].as_array().map_or(0, Vec::len);
        self.schedules[at].has_finalizer = finalizers > 0;
        if finalizers == 0 && self.schedules[at].is_deleting {
            let found = pending.planned.seen.deployment.as_ref().map(|found| found.count);
            if let Target::Reference(left) = self.schedules[at].spec.target
                && self.eldest() == Some(at)
                && found.is_some()
                && found != left
            {
                self.breaks(Rule::LeftWithAnotherCount);
            }
            if self.schedules[at].spec.target == Target::Bounded && self.eldest() == Some(at) {
                let seen = &pending.planned.seen;
                let bounds = seen.autoscaler.as_ref().map(|found| (found.least, found.most));
                if bounds.is_some_and(|bounds| bounds != (3, 8)) {
                    self.breaks(Rule::LeftWithOtherBounds);
                }
                if found == Some(0) {
                    self.breaks(Rule::LeftAsleep);
                }
            }
            self.schedules[at].is_gone = true;
            self.workers[at] = Worker::default();
            self.moved();
            self.tell();
        }
        Ok(true)
    }
}

impl Pending {
    /// Whether that count has a workload sleep beside its autoscaler, or wakes it: then it is not the autoscaler's.
    fn is_of_sleep(&self, wanted: i32) -> bool {
        let seen = &self.planned.seen;
        let has = seen.deployment.as_ref().map(|found| found.count);
        if wanted == 0 { seen.asks == 0 || seen.is_behind } else { has == Some(0) }
    }

    /// Whether what is asked for is another count than the status told of when it was planned, or than one that was held
    /// back until then.
    fn is_news(&self) -> bool {
        let seen = &self.planned.seen;
        let told = &seen.schedule.status.known().status;
        let is_told = told.active_window.is_some();
        seen.schedule.status.says("Suspended", "True")
            || is_told && told.scheduled_replicas != seen.schedule.spec.said(seen.asks)
    }
}

/// Whether that is done once more without a pause that was done three times already. Ten minutes without it end that.
fn is_at_once(times: &mut Vec<i64>, now: i64) -> bool {
    times.retain(|last| now - last < 600_000);
    let last = times.last().filter(|_| times.len() >= 3);
    let is_at_once = last.is_some_and(|last| now - last < 60_000);
    times.push(now);
    is_at_once
}

fn uid(object: &Value) -> Option<String> {
    object["metadata"]["uid"].as_str().map(str::to_owned)
}

/// Whether it is applied only where there is none.
fn is_for_new(apply: &Apply) -> bool {
    apply.manifest.object["metadata"].get("resourceVersion").is_some()
}

fn count(object: &Value) -> Option<i32> {
    object["spec"]["replicas"].as_i64().map(|count| i32::try_from(count).expect("a count"))
}

/// What a step writes: all that is kept of what is applied, or what is merged into the status.
pub fn written(step: &ApiWrite) -> Text {
    let mut object = match step {
        ApiWrite::Apply(apply) => apply.manifest.object.clone(),
        ApiWrite::Status { manifest, .. } => return Text::new(manifest.object["status"].clone()),
        ApiWrite::Create { .. } | ApiWrite::Merge(_) | ApiWrite::Delete { .. } | ApiWrite::Event(_) => {
            return Text::NONE;
        }
    };
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|name, _| !["uid", "resourceVersion"].contains(&name.as_str()));
    }
    if let Some(spec) = object["spec"].as_object_mut() {
        spec.remove("replicas");
    }
    Text::new(object)
}

/// RFC 7396.
pub fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    let into = into.as_object_mut().expect("an object");
    for (field, value) in patch {
        if value.is_null() {
            into.remove(field);
        } else {
            merge(into.entry(field).or_insert(Value::Null), value);
        }
    }
}
