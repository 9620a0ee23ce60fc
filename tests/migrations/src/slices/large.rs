//! What is too large to be looked at whole.

use super::*;

/// Of what may happen, all but a wrong answer, a restored database, and a Job that is deleted before it was seen.
const ALL: Faults = Faults {
    crashes: 2,
    lost_answers: 2,
    refusals: 2,
    kills: 3,
    doubts: 2,
    unreached: 2,
    failures: 2,
    deletions: 2,
    unseen_deletions: 0,
    expiries: 3,
    days: 2,
    replaced: 9,
    restores: 0,
    answers: 3,
    deadlines: 0,
    evictions: 0,
    slips: 0,
    approvals: 4,
};

fn edits() -> Vec<Edit> {
    vec![
        Edit::Source(2),
        Edit::Suspend(true),
        Edit::NoSource,
        Edit::Source(1),
        Edit::Suspend(false),
        Edit::Base(false),
        Edit::Retry,
        Edit::Mode(Mode::Plan),
        Edit::Base(true),
        Edit::Mode(Mode::Apply),
        Edit::NoSource,
        Edit::Delete,
    ]
}

/// All of it happens to one object, whose plans have to be approved.
pub fn life_of_approved_scripts() -> Slice {
    let approval = Some(Text::of(""));
    let object = Object { scripts: vec![1, 2], approval, requires: true, reverts: true, ..shop() };
    let mut start = World::new(object);
    (start.edits, start.faults) = (edits(), ALL);
    Slice::new(start, &[], &[])
}
