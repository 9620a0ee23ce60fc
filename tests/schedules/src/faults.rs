//! Planted faults: an operator that does one thing wrong. Each has to be found, by the rule that names it.

use std::sync::Arc;

use gatehouse::controllers::api_write::ApiWrite;
use gatehouse::controllers::manifest::{Manifest, Place};
use gatehouse::kinds::tdset::actions;
use gatehouse::kinds::tdset::api::v1::TDSet;
use gatehouse::kinds::tdset::names::{COUNT_MANAGER, MANAGER};
use gatehouse::kinds::tdset::observation::{Observed, Scaled, Writer};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use kube::Resource as _;
use kube::core::ApiResource;
use serde_json::{Value, json};

use crate::observations::{Plan, Seen};
use crate::text::{Text, is_of_the_unread};
use crate::world::{CLOCK, Target};

/// What is wrong with the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// It takes a Deployment of its name for its own.
    Adopts,
    /// It does not claim a count that came with the template.
    ClaimsNothing,
    /// It does not ask who else schedules the workload.
    IgnoresTheElder,
    /// It looks every ten minutes, whatever the timetable says.
    Oversleeps,
    /// It takes every count for its own.
    TakesCountsBack,
    /// It forgets that a count stands while something cannot be read.
    ForgetsWhatStands,
    /// It lets a workload go without the count that it is to be left with.
    LeavesNoCount,
    /// It writes another count without having written down the one that it is to give back.
    NotesNothing,
    /// It writes the finalizer last.
    FinalizesLast,
    /// It writes the time of the look into the status.
    TellsTheTime,
    /// It makes Deployments without a count.
    MakesWithoutCount,
    /// It says that all is well as soon as it has planned so.
    SaysWhatItPlanned,
    /// It writes counts while it is suspended.
    IgnoresSuspension,
    /// It deletes a Service that is not its own.
    DeletesAnyService,
    /// It never writes the bounds of an autoscaler.
    LeavesBounds,
    /// It writes the count that an autoscaler has.
    ForgetsTheAutoscaler,
    /// It tells of everything twice.
    TellsTwice,
    /// It is content with no count.
    Flaps,
    /// It leaves the status as it was where some of a pass is refused.
    FreezesTheStatus,
    /// It lets a ramp set out again in each pass of which some is refused.
    ForgetsRampsInRefusals,
    /// It lets a ramp set out again with each edit.
    ForgetsRampsInEdits,
    /// It lets a ramp set out again once what could not be read can be.
    ForgetsRampsUnread,
    /// It tells of no transition that something held back.
    ResumesInSilence,
    /// It does not ask which controller owns a workload.
    IgnoresControllers,
    /// It does not ask that of a workload that it is to leave with a count.
    LeavesWhatIsControlled,
    /// It tells of no count that it takes back.
    TakesBackInSilence,
    /// It wakes a workload before its autoscaler has its bounds.
    WakesFirst,
    /// It wakes no workload.
    NeverWakes,
    /// It lets an autoscaler go without the bounds that it is to be left with.
    LeavesOldBounds,
    /// It lets a workload go that sleeps.
    LeavesAsleep,
    /// It does not ask for autoscalers of other owners.
    IgnoresAutoscalers,
    /// It writes the count of what is being deleted.
    WritesWhatGoes,
    /// It does what its clock says, whatever was done already.
    TrustsItsClock,
    /// It does not wait in a contest.
    NeverWaits,
    /// It puts back at once what another client changes each time.
    PutsBackAtOnce,
    /// It takes a Service that another client has changed for whole.
    LeavesTheService,
    /// It does not say who is in a contest.
    NamesNobody,
    /// It tells of no count that it writes where the status says already that it is asked for.
    GoesBackInSilence,
}

/// The operator's hand, with at most one fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Hand(pub Option<Fault>);

impl Hand {
    fn has(self, fault: Fault) -> bool {
        self.0 == Some(fault)
    }

    /// Changes what is seen.
    pub fn mislead(self, tdset: &TDSet, observed: &mut Observed) {
        self.mislead_about_the_deployment(tdset, observed);
        let owner = || tdset.controller_owner_ref(&()).into_iter().collect::<Vec<_>>();
        if self.has(Fault::DeletesAnyService)
            && let Some(found) = &mut observed.service
        {
            Arc::make_mut(found).metadata.owner_references.get_or_insert_with(owner);
        }
        let [_, morning, evening] = CLOCK.map(|time| time.parse().expect("a time"));
        if self.has(Fault::NotesNothing)
            && (morning..evening).contains(&observed.now)
            && let Some(Ok(found)) = &observed.target
        {
            observed.status.replicas_before.get_or_insert_with(|| found.count());
        }
        if self.has(Fault::IgnoresTheElder) {
            observed.holder = None;
        }
        if self.has(Fault::IgnoresAutoscalers) {
            observed.autoscalers.clear();
        }
        if let Some(contest) = &mut observed.remembered.contest {
            if self.has(Fault::NeverWaits) {
                contest.until = observed.now;
            }
            if self.has(Fault::NamesNobody) {
                contest.managers.clear();
            }
        }
        if self.has(Fault::PutsBackAtOnce)
            && let Some(contest) = &mut observed.remembered.repair_contest
        {
            contest.until = observed.now;
        }
        observed.remembered.whole.service |= self.has(Fault::LeavesTheService) && observed.service.is_some();
        if self.has(Fault::ForgetsRampsInEdits)
            && observed.status.observed_generation != tdset.metadata.generation
        {
            observed.status.ramp = None;
            observed.status.scheduled_replicas = observed.status.replicas;
        }
        let is_leaving = tdset.metadata.deletion_timestamp.is_some();
        if (self.has(Fault::IgnoresControllers) || self.has(Fault::LeavesWhatIsControlled) && is_leaving)
            && let Some(Ok(Scaled { controller, .. })) = &mut observed.target
        {
            *controller = None;
        }
        if observed.unread_object.is_none() && observed.unread.is_none() && is_of_the_unread(&observed.status)
        {
            self.mislead_after_the_unread(observed);
        }
        if self.has(Fault::TakesCountsBack) {
            if let Some(found) = &mut observed.deployment {
                Arc::make_mut(found).metadata.managed_fields = None;
            }
            if let Some(Ok(Scaled { writer, .. })) = &mut observed.target {
                *writer = Writer::Ours;
            }
        }
    }

    /// Changes what the status told while something could not be read.
    fn mislead_after_the_unread(self, observed: &mut Observed) {
        if self.has(Fault::ForgetsWhatStands) {
            let conditions = observed.status.conditions.iter_mut().flatten();
            let standing = conditions.filter(|one| one.type_ == "ManualOverride");
            standing.for_each(|one| "False".clone_into(&mut one.status));
        }
        if self.has(Fault::ForgetsRampsUnread) {
            observed.status.ramp = None;
        }
    }

    /// Changes what is seen of the Deployment.
    fn mislead_about_the_deployment(self, tdset: &TDSet, observed: &mut Observed) {
        let Some(metadata) = observed.deployment.as_mut().map(|found| &mut Arc::make_mut(found).metadata)
        else {
            return;
        };
        match self.0 {
            Some(Fault::Adopts) => {
                metadata
                    .owner_references
                    .get_or_insert_with(|| tdset.controller_owner_ref(&()).into_iter().collect());
            }
            Some(Fault::ClaimsNothing) => {
                let count = FieldsV1(json!({"f:spec": {"f:replicas": {}}}));
                metadata.managed_fields.get_or_insert_default().push(ManagedFieldsEntry {
                    manager: Some(COUNT_MANAGER.to_owned()),
                    fields_v1: Some(count),
                    ..ManagedFieldsEntry::default()
                });
            }
            Some(Fault::WritesWhatGoes) => metadata.deletion_timestamp = None,
            _ => {}
        }
    }

    /// Changes what is said where some of it was refused.
    pub fn spoil_refused(self, seen: &Seen, observed: &Observed, plan: &mut Plan) {
        if self.has(Fault::FreezesTheStatus) {
            plan.report.retain(|step| !matches!(step, ApiWrite::Status { .. }));
            let mut status = json!(observed.status);
            status["ramp"] = json!(null);
            status["selector"] = json!(seen.now.to_string());
            plan.report.extend(plan.whole.actions.first().map(|_| said(&status)));
        }
        if self.has(Fault::ForgetsRampsInRefusals) {
            for step in &mut plan.report {
                if let ApiWrite::Status { manifest, .. } = step {
                    manifest.object["status"]["ramp"] = json!(null);
                    manifest.object["status"]["scheduledReplicas"] = json!(seen.asks);
                    manifest.object["status"]["activeWindow"] = json!("other");
                }
            }
        }
    }

    /// Changes what is planned.
    pub fn spoil(self, seen: &Seen, plan: &mut Plan) {
        let is_scale = |step: &ApiWrite| matches!(step, ApiWrite::Merge(merge) if merge.scale);
        let writes_bounds = |step: &ApiWrite| matches!(step, ApiWrite::Merge(merge) if merge.manager == COUNT_MANAGER && !merge.scale);
        let Some(fault) = self.0 else { return };
        match fault {
            Fault::Oversleeps => {
                let now = Timestamp::from_millisecond(seen.now).expect("a time");
                plan.wake = now.checked_add(SignedDuration::from_hours(12)).ok();
            }
            Fault::LeavesNoCount if seen.schedule.is_deleting && plan.work.iter().any(is_scale) => {
                let mut finalizers = seen.clone();
                finalizers.deployment = None;
                plan.work.clone_from(&finalizers.planned(Self::default()).plan.work);
            }
            Fault::TellsTheTime => {
                for step in &mut plan.report {
                    if let ApiWrite::Status { manifest, .. } = step {
                        manifest.object["status"]["selector"] = json!(seen.now.to_string());
                    }
                }
            }
            Fault::MakesWithoutCount => {
                for step in &mut plan.work {
                    if let ApiWrite::Apply(apply) = step
                        && apply.seen.is_none()
                        && let Some(spec) = apply.manifest.object["spec"].as_object_mut()
                    {
                        spec.remove("replicas");
                    }
                }
            }
            Fault::SaysWhatItPlanned => {
                let mut after = seen.clone();
                if let Some(found) = &mut after.deployment {
                    (found.count, found.has, found.is_observed) = (seen.asks, seen.asks, true);
                    plan.report.clone_from(&after.planned(Self::default()).plan.report);
                }
            }
            Fault::IgnoresSuspension if seen.schedule.spec.is_suspended => {
                let mut other = seen.clone();
                other.schedule.spec.is_suspended = false;
                plan.work.clone_from(&other.planned(Self::default()).plan.work);
            }
            Fault::ForgetsTheAutoscaler => {
                let mut other = seen.clone();
                other.schedule.spec.target = Target::Create;
                plan.work.extend_from_slice(&other.planned(Self::default()).plan.work);
            }
            Fault::TellsTwice => {
                let events: Vec<_> =
                    plan.report.iter().filter(|step| matches!(step, ApiWrite::Event(_))).cloned().collect();
                plan.report.extend(events);
            }
            Fault::Flaps if seen.deployment.as_ref().is_some_and(|found| found.count == seen.asks) => {
                let mut other = seen.clone();
                (other.schedule.spec.outside, other.schedule.spec.inside) = (seen.asks + 1, seen.asks + 1);
                plan.work.clone_from(&other.planned(Self::default()).plan.work);
            }
            Fault::LeavesBounds => plan.work.retain(|step| !writes_bounds(step)),
            fault => fault.rearrange(seen, plan),
        }
    }
}

impl Fault {
    /// Takes out of a plan the events that such a fault leaves out, or brings its steps into another order.
    fn rearrange(self, seen: &Seen, plan: &mut Plan) {
        let status = seen.schedule.status;
        let is_held = ["Suspended", "Conflict"].iter().any(|about| status.says(about, "True"));
        let is_told = status.known().status.scheduled_replicas == Some(seen.asks);
        let leaves = |write: &str| {
            seen.schedule.is_deleting && plan.work.iter().any(|step| actions::points(step).name() == write)
        };
        let left_out = match self {
            Self::TrustsItsClock if seen.is_behind => {
                let mut other = seen.clone();
                other.schedule.status = Text::NONE;
                return plan.work.clone_from(&other.planned(Hand::default()).plan.work);
            }
            Self::LeavesOldBounds if leaves("tdset.write-bounds") => {
                plan.work = seen.unbound();
                return;
            }
            Self::LeavesAsleep if leaves("tdset.write-scale") => {
                plan.work = seen.unbound();
                return;
            }
            Self::ResumesInSilence if is_held => "ReplicasScheduled",
            Self::GoesBackInSilence if is_told && !is_held => "ReplicasScheduled",
            Self::TakesBackInSilence => "ReplicasReverted",
            Self::WakesFirst => {
                return plan.work.sort_by_key(|step| actions::points(step).name() == "tdset.write-bounds");
            }
            Self::NeverWakes if seen.asks > 0 && seen.schedule.spec.target.is_autoscaled() => {
                return plan.work.retain(|step| actions::points(step).name() != "tdset.write-count");
            }
            Self::FinalizesLast => {
                return plan.work.sort_by_key(|step| actions::points(step).name() == "tdset.add-finalizer");
            }
            _ => return,
        };
        plan.report.retain(|step| !matches!(step, ApiWrite::Event(note) if note.reason == left_out));
        if left_out == "ReplicasScheduled" {
            plan.whole.detail.transition = None;
        }
    }
}

impl Seen {
    /// The work where there is no autoscaler.
    fn unbound(&self) -> Vec<ApiWrite> {
        let other = Self { autoscaler: None, ..self.clone() };
        other.planned(Hand::default()).plan.work.clone()
    }
}

/// The write of a status.
fn said(status: &Value) -> ApiWrite {
    let object = json!({"status": status});
    let place = Place {
        resource: ApiResource::erase::<TDSet>(&()),
        namespace: "default".to_owned(),
        name: "shop".to_owned(),
    };
    ApiWrite::Status { manifest: Manifest { place, object }, manager: MANAGER }
}
