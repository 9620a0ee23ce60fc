//! Parts of all that can happen, each small enough to be looked at whole.

mod blind;
mod changed;
mod unowned;

use kit::explore;

pub use blind::{kept_unread, undated, unread, unread_on_a_ramp};
pub use changed::{changed, served_otherwise};
pub use unowned::{unowned, unowned_and_kept, unowned_behind, unowned_on_a_ramp};

use crate::world::{Autoscaler, Broken, Edit, Faults, Spec, Target, World};

type Slice = explore::Slice<World>;
type Reach = explore::Reach<World>;

/// Two replicas, six from 8 to 18 o'clock.
const SHOP: Spec = Spec {
    outside: 2,
    inside: 6,
    image: 1,
    has_service: false,
    port: 80,
    keeps: false,
    is_suspended: false,
    is_ramped: false,
    holds: false,
    broken: None,
    target: Target::Create,
};

const SETTLED_INSIDE: Reach = ("it is settled within the window", |_, world| {
    world.clock == 1 && world.schedules[0].status.says("Ready", "True") && count(world) == Some(6)
});
const OUTSIDE_AGAIN: Reach = ("it is settled after the window", |_, world| {
    world.clock == 2 && world.schedules[0].status.says("Ready", "True") && count(world) == Some(2)
});
const TOLD: Reach = ("a transition is reported", |_, world| world.told > 0);
const STANDS: Reach = ("a count stands", |_, world| world.schedules[0].status.says("ManualOverride", "True"));
const GONE: Reach = ("it is gone", |_, world| world.schedules[0].is_gone);
const CONFLICT: Reach =
    ("it says that another one has it", |_, world| world.schedules[0].status.says("Conflict", "True"));
const LEFT: Reach = ("it is left with 4", |_, world| world.schedules[0].is_gone && count(world) == Some(4));
const BOUND: Reach = ("the bounds are those of the window", |_, world| {
    bounds(world) == Some((6, 12)) && world.schedules[0].status.says("Ready", "True")
});
const TAKEN_OVER: Reach = ("the younger one takes over", |_, world| {
    world.schedules[0].is_gone && count(world) == Some(7) && world.schedules[1].status.says("Ready", "True")
});
const SUSPENDED: Reach = ("it is suspended", |_, world| world.schedules[0].status.says("Suspended", "True"));

fn bounds(world: &World) -> Option<(i32, i32)> {
    world.autoscaler.as_ref().map(|found| (found.least, found.most))
}

fn count(world: &World) -> Option<i32> {
    world.deployment.as_ref().map(|found| found.count)
}

/// It is made, and follows the clock.
pub fn made() -> Slice {
    let mut start = World::new(&[Spec { has_service: true, ..SHOP }]);
    start.evening = 2;
    start.faults = Faults { crashes: 1, lost_answers: 1, deletions: 1, ..Faults::default() };
    Slice::new(
        start,
        &[SETTLED_INSIDE, OUTSIDE_AGAIN, TOLD],
        &[
            "tdset.make-deployment",
            "tdset.make-service",
            "tdset.write-count",
            "tdset.write-status",
            "tdset.publish-event",
        ],
    )
}

/// Its image, its Service and its count are changed.
pub fn edited() -> Slice {
    let mut start = World::new(&[Spec { has_service: true, ..SHOP }]);
    start.edits = vec![Edit::Image, Edit::Service(false), Edit::Outside(3), Edit::Delete];
    start.faults = Faults { crashes: 1, ..Faults::default() };
    Slice::new(
        start,
        &[SETTLED_INSIDE, GONE],
        &["tdset.apply-deployment", "tdset.delete-service", "tdset.write-count"],
    )
}

/// Counts of others stand.
pub fn kept() -> Slice {
    let mut start = World::new(&[Spec { keeps: true, ..SHOP }]);
    start.evening = 2;
    start.faults = Faults { crashes: 1, scales: 1, ..Faults::default() };
    Slice::new(start, &[SETTLED_INSIDE, OUTSIDE_AGAIN, STANDS], &["tdset.write-count"])
}

/// A count that another person writes stands, and the API server says when it was written.
pub fn kept_by_its_time() -> Slice {
    let spec = Spec { target: Target::Reference(None), keeps: true, ..SHOP };
    let mut start = World::new(&[spec]).with_foreign(5);
    start.evening = 2;
    start.faults = Faults { counts: 1, crashes: 1, ..Faults::default() };
    Slice::new(start, &[SETTLED_INSIDE, OUTSIDE_AGAIN, STANDS], &["tdset.write-scale"])
}

/// A foreign workload.
pub fn referred() -> Slice {
    let spec = Spec { target: Target::Reference(None), keeps: true, ..SHOP };
    let mut start = World::new(&[spec]).with_foreign(5);
    start.evening = 2;
    start.faults = Faults { lost_answers: 1, scales: 1, ..Faults::default() };
    Slice::new(start, &[SETTLED_INSIDE, OUTSIDE_AGAIN, STANDS], &["tdset.write-scale"])
}

/// The same, to be left with 4.
pub fn left() -> Slice {
    let mut start = World::new(&[Spec { target: Target::Reference(Some(4)), ..SHOP }]).with_foreign(5);
    start.edits = vec![Edit::Delete];
    start.faults = Faults { crashes: 1, conflicts: 1, refusals: 1, ..Faults::default() };
    Slice::new(
        start,
        &[SETTLED_INSIDE, LEFT],
        &["tdset.write-scale", "tdset.add-finalizer", "tdset.remove-finalizer"],
    )
}

/// An autoscaler has the count.
pub fn autoscaled() -> Slice {
    let mut start = World::new(&[Spec { target: Target::Autoscaler, ..SHOP }]);
    start.autoscaler = Some(Autoscaler { least: 1, most: 9, is_ours: false });
    start.edits = vec![Edit::Image];
    start.faults = Faults { lost_answers: 1, scales: 1, bounds: 1, ..Faults::default() };
    Slice::new(start, &[BOUND], &["tdset.write-bounds", "tdset.make-deployment"])
}

/// The count is handed over to an autoscaler.
pub fn handed_over() -> Slice {
    let mut start = World::new(&[SHOP]);
    start.autoscaler = Some(Autoscaler { least: 1, most: 9, is_ours: false });
    start.edits = vec![Edit::Autoscaler, Edit::Image];
    start.faults = Faults { crashes: 1, refusals: 1, ..Faults::default() };
    Slice::new(start, &[BOUND], &["tdset.write-count", "tdset.write-bounds"])
}

const GIVEN_BACK: Reach = ("its own count is given back", |_, world| {
    let told = world.schedules[0].status.known();
    world.clock == 2 && told.status.replicas_before.is_none() && count(world) == Some(5)
});

const ASLEEP_AGAIN: Reach = ("it sleeps after the window", |_, world| {
    world.clock == 2 && world.schedules[0].status.says("Ready", "True") && count(world) == Some(0)
});
const AWAKE: Reach = ("it is awake within the window, and bound", |_, world| {
    world.clock == 1
        && bounds(world) == Some((6, 12))
        && count(world) == Some(6)
        && world.schedules[0].status.says("Ready", "True")
});

/// It sleeps beside an autoscaler outside of the window.
pub fn sleeping() -> Slice {
    let mut start = World::new(&[Spec { target: Target::Autoscaler, outside: 0, ..SHOP }]);
    start.autoscaler = Some(Autoscaler { least: 1, most: 9, is_ours: false });
    start.evening = 2;
    start.faults = Faults { crashes: 1, lost_answers: 1, scales: 1, ..Faults::default() };
    Slice::new(start, &[ASLEEP_AGAIN, AWAKE], &["tdset.write-count", "tdset.write-bounds"])
}

const LEFT_BOUND: Reach = ("it is left with its bounds, as it is", |_, world| {
    world.schedules[0].is_gone && bounds(world) == Some((3, 8)) && count(world) == Some(6)
});
const LEFT_AWAKE: Reach = ("it is woken as it is left", |_, world| {
    world.schedules[0].is_gone && bounds(world) == Some((3, 8)) && count(world) == Some(3)
});

/// A foreign workload that sleeps beside its autoscaler, which is to be left with bounds of its own.
pub fn left_bounded() -> Slice {
    let spec = Spec { target: Target::Bounded, outside: 0, keeps: true, ..SHOP };
    let mut start = World::new(&[spec]).with_foreign(5);
    start.autoscaler = Some(Autoscaler { least: 1, most: 9, is_ours: false });
    start.edits = vec![Edit::Delete];
    start.faults = Faults { crashes: 1, refusals: 1, ..Faults::default() };
    Slice::new(
        start,
        &[AWAKE, LEFT_BOUND, LEFT_AWAKE],
        &["tdset.write-scale", "tdset.write-bounds", "tdset.add-finalizer", "tdset.remove-finalizer"],
    )
}

/// A foreign workload whose count is its own outside of the window.
pub fn lent() -> Slice {
    let spec = Spec { target: Target::Lent, outside: 5, ..SHOP };
    let mut start = World::new(&[spec]).with_foreign(5);
    start.evening = 2;
    start.faults = Faults { crashes: 1, lost_answers: 1, refusals: 1, ..Faults::default() };
    Slice::new(start, &[SETTLED_INSIDE, GIVEN_BACK], &["tdset.write-scale", "tdset.write-status"])
}

/// Two schedules for one workload, of which the older one goes.
pub fn two_schedules() -> Slice {
    let elder = Spec { target: Target::Reference(None), ..SHOP };
    let younger = Spec { outside: 3, inside: 7, ..elder.clone() };
    let mut start = World::new(&[elder, younger]).with_foreign(5);
    start.edits = vec![Edit::Delete];
    start.faults = Faults { crashes: 1, ..Faults::default() };
    Slice::new(start, &[SETTLED_INSIDE, TAKEN_OVER], &["tdset.write-scale"])
}

/// Foreign objects stand where its own are to be.
pub fn taken() -> Slice {
    let mut start = World::new(&[Spec { has_service: true, ..SHOP }]);
    start.edits = vec![Edit::Service(false)];
    start.faults = Faults { deletions: 1, squatters: 2, ..Faults::default() };
    Slice::new(start, &[CONFLICT, SETTLED_INSIDE], &["tdset.make-deployment"])
}

/// It is suspended, and goes on.
pub fn suspended() -> Slice {
    let mut start = World::new(&[SHOP]);
    start.edits = vec![Edit::Suspend(true), Edit::Image, Edit::Suspend(false)];
    start.faults = Faults { scales: 1, ..Faults::default() };
    Slice::new(start, &[SETTLED_INSIDE, SUSPENDED], &["tdset.apply-deployment"])
}

const RAMPING: Reach = ("it is on its ramp", |_, world| {
    let told = world.schedules[0].status.known();
    world.clock == 1 && told.status.ramp.is_some() && count(world) == Some(3)
});
const REFUSED: Reach = ("a count is refused at its time", |_, world| {
    let told = world.schedules[0].status.known();
    let is_refused =
        |one: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| one.reason == "CountRefused";
    world.clock == 1 && told.status.conditions.iter().flatten().any(is_refused)
});

/// Some of what it makes and writes is refused, again and again.
pub fn refused() -> Slice {
    let mut start = World::new(&[Spec { has_service: true, ..SHOP }]);
    start.evening = 2;
    start.faults = Faults { refusals: 3, ..Faults::default() };
    Slice::new(start, &[SETTLED_INSIDE, OUTSIDE_AGAIN, REFUSED], &["tdset.make-service", "tdset.write-count"])
}

/// The same while the count moves.
pub fn refused_on_a_ramp() -> Slice {
    let mut start = World::new(&[Spec { has_service: true, is_ramped: true, ..SHOP }]);
    start.edits = vec![Edit::Service(false)];
    start.faults = Faults { refusals: 3, ..Faults::default() };
    Slice::new(start, &[RAMPING], &["tdset.make-service", "tdset.delete-service", "tdset.write-count"])
}

/// Something else is changed while the count moves.
pub fn edited_on_a_ramp() -> Slice {
    let mut start = World::new(&[Spec { is_ramped: true, ..SHOP }]);
    start.edits = vec![Edit::Image, Edit::Service(true), Edit::Image];
    start.faults = Faults { conflicts: 1, ..Faults::default() };
    Slice::new(start, &[RAMPING], &["tdset.apply-deployment", "tdset.write-count"])
}

/// A workload that a controller of our own owns, with a schedule that goes.
pub fn controlled() -> Slice {
    let mut start = World::new(&[Spec { target: Target::Controlled, ..SHOP }]).with_foreign(5);
    start.edits = vec![Edit::Delete];
    start.faults = Faults { crashes: 1, scales: 1, ..Faults::default() };
    Slice::new(
        start,
        &[CONFLICT, GONE],
        &["tdset.write-status", "tdset.add-finalizer", "tdset.remove-finalizer"],
    )
}

/// A person scales, and the count is taken back.
pub fn taken_back() -> Slice {
    let mut start = World::new(&[Spec { target: Target::Reference(None), ..SHOP }]).with_foreign(5);
    start.evening = 2;
    start.faults = Faults { scales: 2, ..Faults::default() };
    Slice::new(start, &[SETTLED_INSIDE, OUTSIDE_AGAIN], &["tdset.write-scale", "tdset.publish-event"])
}

/// What is asked for is changed and changed back, beside a window.
pub fn returned() -> Slice {
    let mut start = World::new(&[SHOP]);
    start.evening = 2;
    start.edits = vec![Edit::Outside(3), Edit::Outside(2)];
    Slice::new(start, &[SETTLED_INSIDE, OUTSIDE_AGAIN], &["tdset.write-count", "tdset.publish-event"])
}

const CONTESTED: Reach = ("the count waits in a contest", |_, world| {
    let status = world.schedules[0].status;
    status.says("Conflict", "True") && status.says("Ready", "False") && count(world) == Some(9)
});
const CALM_AGAIN: Reach = ("a contest is over", |_, world| {
    world.later > 600_000 && world.schedules[0].status.says("Conflict", "False") && count(world) == Some(2)
});

/// Another client writes the count again each time that it is taken back.
pub fn contested() -> Slice {
    let mut start = World::new(&[Spec { target: Target::Reference(None), ..SHOP }]).with_foreign(5);
    start.evening = 0;
    start.faults = Faults { crashes: 1, scales: 4, ..Faults::default() };
    Slice::new(
        start,
        &[CONTESTED, CALM_AGAIN],
        &["tdset.write-scale", "tdset.write-status", "tdset.publish-event"],
    )
}

const STEADY: Reach = ("a clock is behind, and nothing is undone", |_, world| {
    let told = world.schedules[0].status.known();
    world.is_behind && count(world) == Some(6) && told.status.scheduled_replicas == Some(6)
});

/// Another operator takes over right after a boundary, and its clock is behind.
pub fn behind() -> Slice {
    let mut start = World::new(&[Spec { target: Target::Reference(None), ..SHOP }]).with_foreign(5);
    start.edits = vec![Edit::Suspend(true)];
    start.faults = Faults { handovers: 1, scales: 1, ..Faults::default() };
    Slice::new(start, &[SETTLED_INSIDE, STEADY], &["tdset.write-scale"])
}

/// The same of a workload that is woken then.
pub fn woken_behind() -> Slice {
    let spec = Spec { target: Target::Bounded, outside: 0, ..SHOP };
    let mut start = World::new(&[spec]).with_foreign(5);
    start.autoscaler = Some(Autoscaler { least: 1, most: 9, is_ours: false });
    start.edits = vec![Edit::Outside(2)];
    start.faults = Faults { handovers: 1, ..Faults::default() };
    Slice::new(start, &[AWAKE, STEADY], &["tdset.write-scale"])
}

const UNREAD: Reach = ("it says that something cannot be read", |_, world| {
    let told = world.schedules[0].status.known();
    told.status.conditions.iter().flatten().any(|one| one.reason == "TargetNotReadable")
});

/// An autoscaler of another owner has the count.
pub fn scaled_by_another() -> Slice {
    let mut start = World::new(&[Spec { target: Target::Reference(None), ..SHOP }]).with_foreign(5);
    start.is_scaled = true;
    start.faults = Faults { crashes: 1, scales: 1, ..Faults::default() };
    Slice::new(start, &[CONFLICT], &["tdset.write-status"])
}

const NOT_READY: Reach =
    ("it says what is missing", |_, world| world.schedules[0].status.says("Ready", "False"));

/// The autoscaler that it names is not there.
pub fn without_an_autoscaler() -> Slice {
    let mut start = World::new(&[Spec { target: Target::Bounded, ..SHOP }]).with_foreign(5);
    start.edits = vec![Edit::Delete];
    Slice::new(start, &[NOT_READY, GONE], &["tdset.add-finalizer", "tdset.remove-finalizer"])
}

/// The spec is not valid for a while, and the Service gets another port.
pub fn invalid() -> Slice {
    let mut start = World::new(&[Spec { has_service: true, ..SHOP }]);
    let broken = [Some(Broken::TimeZone), Some(Broken::More), None].map(Edit::Break);
    start.edits = broken.into_iter().chain([Edit::Port]).collect();
    Slice::new(start, &[SETTLED_INSIDE, NOT_READY], &["tdset.apply-service", "tdset.write-count"])
}

/// A workload of whose count nothing is known: none was ever written.
pub fn unset() -> Slice {
    let mut start = World::new(&[Spec { target: Target::Unset, outside: 0, ..SHOP }]).with_foreign(0);
    if let Some(found) = &mut start.deployment {
        found.owners.clear();
    }
    start.edits = vec![Edit::Delete];
    start.faults = Faults { crashes: 1, ..Faults::default() };
    Slice::new(start, &[SETTLED_INSIDE, GONE], &["tdset.write-scale", "tdset.remove-finalizer"])
}

/// A Deployment is deleted, which takes its time.
pub fn going() -> Slice {
    let mut start = World::new(&[SHOP]);
    start.edits = vec![Edit::Image];
    start.faults = Faults { slow_deletions: 1, ..Faults::default() };
    Slice::new(start, &[SETTLED_INSIDE], &["tdset.make-deployment", "tdset.write-count"])
}

/// A schedule is suspended that gives a count back.
pub fn lent_and_suspended() -> Slice {
    let mut start = World::new(&[Spec { target: Target::Lent, outside: 5, ..SHOP }]).with_foreign(5);
    start.evening = 2;
    start.edits = vec![Edit::Suspend(true), Edit::Suspend(false)];
    Slice::new(start, &[SETTLED_INSIDE, GIVEN_BACK, SUSPENDED], &["tdset.write-scale"])
}

/// A tool writes the count that applies its repository again and again, and never stands.
pub fn applied() -> Slice {
    let mut start = World::new(&[Spec { target: Target::Applied, keeps: true, ..SHOP }]).with_foreign(5);
    start.faults = Faults { scales: 1, ..Faults::default() };
    Slice::new(start, &[SETTLED_INSIDE], &["tdset.write-scale"])
}

/// A workload that another controller owns.
pub fn owned() -> Slice {
    let mut start = World::new(&[Spec { target: Target::Owned, ..SHOP }]).with_foreign(5);
    start.edits = vec![Edit::Delete];
    Slice::new(start, &[CONFLICT, GONE], &["tdset.write-status"])
}

/// A Deployment that sleeps beside an autoscaler is deleted, which takes its time.
pub fn going_asleep() -> Slice {
    let mut start = World::new(&[Spec { target: Target::Autoscaler, outside: 0, ..SHOP }]);
    start.autoscaler = Some(Autoscaler { least: 1, most: 9, is_ours: false });
    start.faults = Faults { slow_deletions: 1, ..Faults::default() };
    Slice::new(start, &[AWAKE], &["tdset.make-deployment", "tdset.write-bounds"])
}

const TOO_MANY: Reach = ("it says that the autoscaler cannot have as many", |_, world| {
    world.autoscaler.as_ref().is_some_and(|found| found.least == 12)
        && world.schedules[0].status.says("Ready", "False")
});

/// More replicas are asked for than the ceiling allows.
pub fn out_of_range() -> Slice {
    let mut start = World::new(&[Spec { target: Target::Bounded, inside: 20, ..SHOP }]).with_foreign(5);
    start.autoscaler = Some(Autoscaler { least: 1, most: 9, is_ours: false });
    Slice::new(start, &[TOO_MANY], &["tdset.write-bounds"])
}
