//! What is too large to be looked at whole.

use super::*;

/// Of what may happen, all but a wrong answer and a restored database.
const ALL: Faults = Faults {
    crashes: 2,
    lost_answers: 2,
    refusals: 2,
    kills: 3,
    doubts: 2,
    unreached: 2,
    failures: 2,
    deletions: 2,
    expiries: 3,
    days: 2,
    replaced: 9,
    restores: 0,
    answers: 3,
    slips: 0,
    approvals: 4,
};

fn edits() -> Vec<Edit> {
    vec![
        Edit::Source(2),
        Edit::Suspend(true),
        Edit::NoSource,
        Edit::AddScript(3),
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

fn life(object: Object) -> World {
    let mut start = World::new(Object { requires: true, reverts: true, ..object });
    (start.edits, start.faults) = (edits(), ALL);
    start
}

/// All of it happens to one object.
pub fn life_of_scripts() -> Slice {
    Slice::new(life(Object { scripts: vec![1, 2], ..shop() }), &[], &[])
}

/// The same where approval is required.
pub fn life_of_approved_scripts() -> Slice {
    Slice::new(life(Object { scripts: vec![1, 2], approval: Some(Text::of("")), ..shop() }), &[], &[])
}

/// The same of two operators that each believe to be the only one.
pub fn life_with_two_operators() -> Slice {
    let mut start = life(Object { scripts: vec![1, 2], reverts: false, ..shop() });
    start.operators.push(Operator::default());
    start.faults = Faults { deletions: 0, ..ALL };
    Slice::new(start, &[], &[])
}
