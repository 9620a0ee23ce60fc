//! Parts of all that can happen, each small enough to be looked at whole.

pub mod large;

use gatehouse::kinds::databasemigration::api::status::Reason;
use kit::explore;

use crate::look::{message, reason};
use crate::text::Text;
use crate::world::{Answer, Edit, Faults, Mode, Object, Operator, Surroundings, World};

type Slice = explore::Slice<World>;
type Reach = explore::Reach<World>;

/// One script in a ConfigMap, that is applied.
fn shop() -> Object {
    Object {
        scripts: vec![2],
        mode: Mode::Apply,
        approval: None,
        reverts: false,
        retries: 2,
        is_suspended: false,
        requires: false,
        retry: 0,
        resolve: None,
        generation: 1,
        has_finalizer: false,
        is_deleting: false,
        is_gone: false,
        status: Text::of("{}"),
    }
}

const APPLIED: Reach = ("all is applied, and it says so", |_, world| {
    says(world, Reason::Applied) && world.object.scripts.iter().all(|id| world.database.has(*id))
});
const LET_GO: Reach = ("nothing holds the object any more", |_, world| {
    says(world, Reason::Applied) && !world.object.has_finalizer && !world.jobs.is_empty()
});
const UNTIDY: Reach = ("texts were read without need", |_, world| world.next_uid > 1);

/// That it gives that reason.
macro_rules! says_now {
    ($reason:ident) => {
        (stringify!($reason), |_, world| says(world, Reason::$reason))
    };
}

fn says(world: &World, wanted: Reason) -> bool {
    reason(world.object.status) == Some(wanted)
}

/// Answers are lost.
pub fn lost_answers() -> Slice {
    let mut start = World::new(Object { scripts: vec![1, 2], ..shop() });
    start.edits = vec![Edit::Source(2)];
    start.faults = Faults { lost_answers: 2, expiries: 1, ..Faults::default() };
    let does = &[
        "databasemigration.hold",
        "databasemigration.create-snapshot",
        "databasemigration.create-job",
        "databasemigration.delete-snapshot",
        "databasemigration.release",
    ];
    Slice::new(start, &[APPLIED, LET_GO, UNTIDY], does)
}

/// The operator dies, and runs do.
pub fn deaths() -> Slice {
    let mut start = World::new(Object { scripts: vec![1, 2], retries: 1, ..shop() });
    start.faults = Faults { crashes: 2, kills: 3, ..Faults::default() };
    Slice::new(start, &[APPLIED, says_now!(RetriesExhausted), says_now!(BackingOff)], &[])
}

/// The API server will not have what is to be created.
pub fn refused() -> Slice {
    let mut start = World::new(shop());
    start.edits = vec![Edit::Source(2), Edit::Retry];
    start.faults = Faults { refusals: 3, expiries: 1, ..Faults::default() };
    Slice::new(start, &[APPLIED, says_now!(ApplyFailed)], &[])
}

/// Runs do not reach the server, or fail there, and a person asks for another one.
pub fn failures() -> Slice {
    let mut start = World::new(Object { scripts: vec![1, 2], retries: 1, ..shop() });
    start.edits = vec![Edit::Retry, Edit::Source(2)];
    start.faults = Faults { unreached: 2, failures: 2, crashes: 1, ..Faults::default() };
    let reaches =
        &[APPLIED, says_now!(ScriptFailed), says_now!(DeadlineExceeded), says_now!(RetriesExhausted)];
    Slice::new(start, reaches, &[])
}

/// A leader that was replaced still does what it has planned.
pub fn two_operators() -> Slice {
    let mut start = World::new(Object { scripts: vec![1, 2], ..shop() });
    start.operators.push(Operator::default());
    start.edits = vec![Edit::Source(2)];
    start.faults = Faults { replaced: 1, kills: 1, ..Faults::default() };
    Slice::new(start, &[APPLIED, LET_GO], &[])
}

const BESIDES: Reach = ("two pods are at work", |_, world| {
    !world.orphans.is_empty() && world.jobs.iter().any(|job| job.ended.is_none())
});

/// A Job is deleted, and its pod goes on beside the next run.
pub fn two_runs() -> Slice {
    let mut start = World::new(Object { scripts: vec![1, 2], ..shop() });
    start.faults = Faults { deletions: 2, unseen_deletions: 2, kills: 1, crashes: 1, ..Faults::default() };
    Slice::new(start, &[APPLIED, BESIDES], &[])
}

/// What scripts come from is edited and deleted, also while a run is under way.
pub fn edited_sources() -> Slice {
    let mut start = World::new(Object { scripts: vec![1, 2], ..shop() });
    start.edits = vec![Edit::Source(2), Edit::NoSource, Edit::Source(3)];
    start.faults = Faults { crashes: 1, kills: 1, expiries: 1, ..Faults::default() };
    let reaches = &[APPLIED, says_now!(ScriptNotFound), says_now!(ChecksumMismatch), UNTIDY];
    Slice::new(start, reaches, &["databasemigration.delete-snapshot"])
}

const KEPT: Reach = ("what was approved is applied, and its source is another one", |_, world| {
    says(world, Reason::Applied) && world.source != Some(1) && world.database.version_of(2) == Some(1)
});

/// Nothing is run without approval, and what was approved is what runs.
pub fn approval() -> Slice {
    let mut start = World::new(Object { approval: Some(Text::of("")), ..shop() });
    start.edits = vec![Edit::Source(2), Edit::NoSource];
    start.faults = Faults { approvals: 2, crashes: 1, kills: 1, expiries: 1, ..Faults::default() };
    Slice::new(start, &[APPLIED, KEPT, says_now!(AwaitingApproval)], &[])
}

/// The same while one thing is held up after the other.
pub fn approved_and_held() -> Slice {
    let object = Object { scripts: vec![1, 2], approval: Some(Text::of("")), requires: true, ..shop() };
    let mut start = World::new(object);
    start.is_base_ready = false;
    start.edits = vec![Edit::Base(true), Edit::AddScript(3), Edit::Suspend(true), Edit::Suspend(false)];
    start.faults = Faults { approvals: 2, unreached: 1, ..Faults::default() };
    Slice::new(start, &[APPLIED, says_now!(RequirementNotReady), says_now!(Suspended)], &[])
}

const ASKED_FOR: Reach =
    ("what was approved is applied, and another run was asked for meanwhile", |start, world| {
        says(world, Reason::Applied)
            && world.object.retry > start.object.retry
            && world.source != Some(1)
            && world.database.version_of(2) == Some(1)
    });

/// Another run is asked for, where what was approved waits or was tried, and its source is another one.
pub fn approved_and_asked_for() -> Slice {
    let mut start = World::new(Object { approval: Some(Text::of("")), requires: true, ..shop() });
    start.edits = vec![Edit::Base(false), Edit::Source(2), Edit::Retry, Edit::NoSource, Edit::Base(true)];
    start.faults = Faults { approvals: 2, unreached: 1, crashes: 1, expiries: 1, ..Faults::default() };
    Slice::new(start, &[APPLIED, ASKED_FOR, says_now!(RequirementNotReady)], &[])
}

const SECOND_DOUBT: Reach = ("a script is in doubt a second time", |_, world| world.database.doubts == 2);
const SETTLED: Reach = ("a doubt is settled, and all is applied", |_, world| {
    says(world, Reason::Applied) && world.database.doubts > 0 && world.database.has(2)
});

/// A script is in doubt, and a person says what became of it.
pub fn doubt() -> Slice {
    let mut start = World::new(Object { scripts: vec![1, 2], ..shop() });
    start.faults = Faults { doubts: 2, answers: 3, crashes: 1, unreached: 1, ..Faults::default() };
    Slice::new(start, &[SETTLED, SECOND_DOUBT, says_now!(InDoubt)], &[])
}

const CORRECTED: Reach = ("what was corrected is what counts", |start, world| {
    world.faults.slips < start.faults.slips
        && !world.is_misled
        && says(world, Reason::Applied)
        && world.database.has(2)
});

/// A person says the wrong word, and corrects it.
pub fn corrected_answer() -> Slice {
    let mut start = World::new(shop());
    start.faults = Faults { doubts: 1, slips: 1, answers: 2, crashes: 2, ..Faults::default() };
    Slice::new(start, &[SETTLED, CORRECTED], &[])
}

/// A script is in doubt, and the Job of the run that is to settle that is deleted.
pub fn doubt_and_deleted_jobs() -> Slice {
    let mut start = World::new(shop());
    start.faults = Faults { doubts: 2, answers: 3, deletions: 1, unseen_deletions: 1, ..Faults::default() };
    Slice::new(start, &[SETTLED, SECOND_DOUBT], &[])
}

/// A script is in doubt where approval is required, and its source is edited.
pub fn doubt_and_approval() -> Slice {
    let mut start = World::new(Object { approval: Some(Text::of("")), ..shop() });
    start.edits = vec![Edit::Source(2)];
    start.faults = Faults { doubts: 1, answers: 2, approvals: 2, ..Faults::default() };
    Slice::new(start, &[SETTLED], &[])
}

const PLANNED: Reach = ("a plan goes by what a person has said of a doubt", |_, world| {
    says(world, Reason::Planned) && world.database.doubt().is_some()
});

/// A script is in doubt, and what is pending is planned before it is applied, from an edited source.
pub fn doubt_and_plan() -> Slice {
    let mut start = World::new(shop());
    start.edits = vec![Edit::Mode(Mode::Plan), Edit::Source(2), Edit::Mode(Mode::Apply)];
    start.faults = Faults { doubts: 1, answers: 2, crashes: 1, ..Faults::default() };
    Slice::new(start, &[SETTLED, PLANNED], &[])
}

const GONE: Reach = ("it is gone, and so is what it applied", |start, world| {
    world.object.is_gone && start != world && world.database.effects.iter().all(|effect| *effect == 0)
});
const TAKEN_BACK: Reach = ("scripts are taken back", |_, world| {
    world.object.is_deleting && world.database.rows.is_empty() && world.recorded > 1
});

/// It is deleted, and takes back what it has applied, also where the source of the scripts is gone.
pub fn deletion() -> Slice {
    let mut start = World::new(Object { scripts: vec![1, 2], reverts: true, ..shop() });
    start.edits = vec![Edit::NoSource, Edit::Delete];
    start.faults = Faults { crashes: 1, kills: 2, expiries: 1, ..Faults::default() };
    Slice::new(start, &[GONE, TAKEN_BACK], &["databasemigration.release"])
}

/// The same while answers are lost and runs do not reach the server.
pub fn deletion_unheard() -> Slice {
    let mut start = World::new(Object { reverts: true, ..shop() });
    start.edits = vec![Edit::Suspend(true), Edit::NoSource, Edit::Delete];
    start.faults = Faults {
        lost_answers: 1,
        kills: 1,
        unreached: 1,
        deletions: 1,
        unseen_deletions: 1,
        ..Faults::default()
    };
    Slice::new(start, &[GONE, TAKEN_BACK], &[])
}

const UNKNOWN: Reach = ("it is not known which texts were applied", |_, world| {
    says(world, Reason::ScriptNotFound) && message(world.object.status).contains("it is not known whether")
});

/// It is deleted, what its scripts came from is gone, and runs are gone whose end was not observed.
pub fn deletion_unseen() -> Slice {
    let mut start = World::new(Object { reverts: true, ..shop() });
    start.edits = vec![Edit::Source(2), Edit::NoSource, Edit::Delete];
    start.faults = Faults { crashes: 2, kills: 1, deletions: 1, unseen_deletions: 1, ..Faults::default() };
    Slice::new(start, &[GONE, TAKEN_BACK, UNKNOWN], &[])
}

const LEFT: Reach =
    ("it is gone, and what it applied is left", |_, world| world.object.is_gone && world.database.has(2));

/// What takes scripts back fails, and is left.
pub fn deletion_that_fails() -> Slice {
    let mut start = World::new(Object { reverts: true, ..shop() });
    start.edits = vec![Edit::Delete, Edit::Retry, Edit::Retain];
    start.faults = Faults { failures: 2, crashes: 1, ..Faults::default() };
    Slice::new(start, &[GONE, LEFT, says_now!(RevertFailed), says_now!(DeletionWaits)], &[])
}

/// What takes a script back is in doubt.
pub fn deletion_in_doubt() -> Slice {
    let mut start = World::new(Object { reverts: true, ..shop() });
    start.edits = vec![Edit::NoSource, Edit::Delete];
    start.faults = Faults { doubts: 2, answers: 3, unreached: 1, ..Faults::default() };
    Slice::new(start, &[GONE, SECOND_DOUBT], &[])
}

const ASKED: Reach = ("an approval is asked for what takes back", |_, world| {
    world.object.is_deleting && says(world, Reason::AwaitingApproval)
});

/// Nothing is taken back by scripts without approval.
pub fn deletion_approved() -> Slice {
    let mut start = World::new(Object { approval: Some(Text::of("")), reverts: true, ..shop() });
    start.edits = vec![Edit::Source(2), Edit::Delete];
    start.faults = Faults { approvals: 2, crashes: 1, expiries: 1, ..Faults::default() };
    Slice::new(start, &[GONE, ASKED], &[])
}

/// What was planned after it was applied is not what is taken back.
pub fn deletion_of_a_plan() -> Slice {
    let mut start = World::new(Object { reverts: true, ..shop() });
    start.edits = vec![Edit::Mode(Mode::Plan), Edit::Source(11), Edit::NoSource, Edit::Delete];
    start.faults = Faults { expiries: 2, crashes: 1, ..Faults::default() };
    Slice::new(start, &[GONE, TAKEN_BACK], &[])
}

/// A leader that was replaced still gives its run an answer, and a script is in doubt again.
pub fn two_operators_and_a_doubt() -> Slice {
    let mut start = World::new(shop());
    start.operators.push(Operator::default());
    start.faults = Faults { replaced: 2, doubts: 2, answers: 2, ..Faults::default() };
    Slice::new(start, &[SETTLED, SECOND_DOUBT], &[])
}

/// What is pending is rehearsed, planned and applied, one after the other.
pub fn rehearsal_and_plan() -> Slice {
    let mut start = World::new(Object { scripts: vec![1], mode: Mode::Rehearse, ..shop() });
    start.edits = vec![Edit::Mode(Mode::Plan), Edit::AddScript(3), Edit::Mode(Mode::Apply)];
    start.faults = Faults { kills: 1, failures: 1, crashes: 1, ..Faults::default() };
    Slice::new(start, &[APPLIED, says_now!(Rehearsed), says_now!(Planned)], &[])
}

const LACKS: Reach = ("it says that a restored database lacks what was applied", |_, world| {
    world.restored.is_some() && says(world, Reason::HistoryDiverged)
});

const VERIFIED: Reach = ("it is applied, and was looked for again", |_, world| {
    world.recorded > 1 && says(world, Reason::Applied) && world.jobs.len() > 1
});

/// Each day it is looked whether what was applied still is, and an older database is restored.
pub fn verification() -> Slice {
    let mut start = World::new(shop());
    start.edits = vec![Edit::AddScript(3), Edit::Retry];
    start.faults = Faults { days: 2, restores: 1, unreached: 1, crashes: 1, ..Faults::default() };
    Slice::new(start, &[APPLIED, LACKS, VERIFIED], &[])
}

/// It is deleted while it is looked whether what was applied still is.
pub fn deletion_while_verified() -> Slice {
    let mut start = World::new(Object { reverts: true, ..shop() });
    start.edits = vec![Edit::Delete];
    start.faults = Faults { days: 1, restores: 1, kills: 1, crashes: 1, expiries: 1, ..Faults::default() };
    Slice::new(start, &[GONE, TAKEN_BACK], &[])
}

/// It is suspended, and waits for what has to be applied first.
pub fn held() -> Slice {
    let mut start = World::new(Object { scripts: vec![1, 2], is_suspended: true, requires: true, ..shop() });
    start.is_base_ready = false;
    start.edits = vec![Edit::Suspend(false), Edit::Base(true), Edit::AddScript(3), Edit::Suspend(true)];
    start.faults = Faults { crashes: 1, kills: 1, ..Faults::default() };
    Slice::new(start, &[APPLIED, says_now!(Suspended), says_now!(RequirementNotReady)], &[])
}

/// Runs have no time left, and what the API server has of them lags behind.
pub fn late_runs() -> Slice {
    let mut start = World::new(Object { scripts: vec![1, 2], retries: 1, ..shop() });
    start.around = Surroundings { takes_time: true, has_sidecar: false };
    start.faults = Faults { deadlines: 1, doubts: 1, answers: 1, crashes: 1, ..Faults::default() };
    Slice::new(start, &[APPLIED, SETTLED, LOST, says_now!(DeadlineExceeded), says_now!(InDoubt)], &[])
}

const LOST: Reach = ("a run has done all, its report is lost, and it says so after a look", |_, world| {
    let last = world.object.status.status().last_run.clone();
    says(world, Reason::Applied) && last.is_some_and(|last| last.purpose == "Verify")
});

/// Nodes are drained.
pub fn drained_nodes() -> Slice {
    let mut start = World::new(Object { scripts: vec![1, 2], retries: 0, ..shop() });
    start.around = Surroundings { takes_time: true, has_sidecar: false };
    start.faults = Faults { evictions: 1, doubts: 1, answers: 1, expiries: 1, ..Faults::default() };
    Slice::new(start, &[APPLIED, LOST, says_now!(RetriesExhausted)], &[])
}

const REPORTED: Reach = ("a report counts while the sidecar is at work", |_, world| {
    says(world, Reason::Applied) && world.jobs.iter().any(|job| !job.is_finished())
});

/// Each pod has a container besides that does not end.
pub fn sidecar() -> Slice {
    let mut start = World::new(Object { scripts: vec![1, 2], retries: 1, ..shop() });
    start.around = Surroundings { takes_time: true, has_sidecar: true };
    start.edits = vec![Edit::AddScript(3)];
    start.faults = Faults { deadlines: 1, doubts: 1, answers: 2, crashes: 1, ..Faults::default() };
    Slice::new(start, &[APPLIED, REPORTED, LOST, SETTLED], &[])
}

/// What takes scripts back has no time left.
pub fn late_reverts() -> Slice {
    let mut start = World::new(Object { reverts: true, ..shop() });
    start.around = Surroundings { takes_time: true, has_sidecar: false };
    start.edits = vec![Edit::NoSource, Edit::Delete];
    start.faults = Faults { deadlines: 1, doubts: 1, ..Faults::default() };
    Slice::new(start, &[GONE, TAKEN_BACK], &[])
}

/// An answer is there before there is a doubt, as in a manifest that keeps it.
pub fn answer_before_the_doubt() -> Slice {
    let resolve = Some(Answer { id: 2, is_applied: true, about: 0, is_slip: false });
    let mut start = World::new(Object { resolve, ..shop() });
    start.faults = Faults { doubts: 2, answers: 4, crashes: 1, unreached: 1, ..Faults::default() };
    Slice::new(start, &[SETTLED, SECOND_DOUBT, says_now!(InDoubt)], &[])
}
