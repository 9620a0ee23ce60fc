//! Sequences that show something in particular.

use kit::membership::trace::Step::{
    self, Add, Join, Kill, List, MoveLeader, Promote, Remove, Restart, Wait, Wipe, Write,
};

use super::run::UNKNOWN;

/// A name, the voters that form the cluster, and what is done to them.
pub type Script = (&'static str, u32, &'static [Step]);

pub const ALL: [Script; 9] = [
    ("dead-learner", 1, DEAD_LEARNER),
    ("dead-learner-elsewhere", 3, DEAD_LEARNER_ELSEWHERE),
    ("one-of-four-down", 4, ONE_OF_FOUR_DOWN),
    ("spare-of-four", 4, SPARE_OF_FOUR),
    ("no-quorum", 3, NO_QUORUM),
    ("removals", 3, REMOVALS),
    ("replacement", 3, REPLACEMENT),
    ("asked-of-learners", 2, ASKED_OF_LEARNERS),
    ("handing-over", 3, HANDING_OVER),
];

/// The leader hands over to the first one.
const fn first_leads(asked: u64) -> Step {
    MoveLeader { asked, to: 1 }
}

/// A learner that had caught up is promoted though it is down, and that costs the quorum.
const DEAD_LEARNER: &[Step] = &[
    Add { asked: 1, id: 2, place: 1 },
    Promote { asked: 1, id: 2 },
    Join(2),
    Write { asked: 1 },
    Write { asked: 1 },
    Kill(2),
    Promote { asked: 1, id: 2 },
    Write { asked: 1 },
    Restart(2),
    Write { asked: 1 },
    List { asked: 2 },
];

/// A new leader has not heard of a learner that is down.
const DEAD_LEARNER_ELSEWHERE: &[Step] = &[
    Wait,
    first_leads(2),
    first_leads(3),
    Add { asked: 1, id: 4, place: 3 },
    Join(4),
    Write { asked: 1 },
    Kill(4),
    MoveLeader { asked: 1, to: 2 },
    Promote { asked: 2, id: 4 },
    Promote { asked: 3, id: 4 },
    Restart(4),
    Write { asked: 2 },
    Promote { asked: 2, id: 4 },
    Promote { asked: 3, id: 4 },
];

/// With three of four a fifth is added.
const ONE_OF_FOUR_DOWN: &[Step] = &[
    Wait,
    Kill(4),
    Wait,
    Write { asked: 1 },
    Add { asked: 1, id: 5, place: 4 },
    Join(5),
    Promote { asked: 1, id: 5 },
    Promote { asked: 2, id: 5 },
    Remove { asked: 1, id: 4 },
    Write { asked: 5 },
];

/// A voter that runs goes though another one is down, and the next one does not.
const SPARE_OF_FOUR: &[Step] = &[
    Kill(4),
    Wait,
    first_leads(2),
    first_leads(3),
    MoveLeader { asked: 1, to: 4 },
    Remove { asked: 1, id: 3 },
    Wait,
    Remove { asked: 1, id: 2 },
    Remove { asked: 2, id: 1 },
    Add { asked: 1, id: 5, place: 4 },
    Remove { asked: 1, id: 4 },
    Remove { asked: 1, id: 4 },
    Write { asked: 2 },
];

/// Nothing is changed, and nothing that was asked for in vain comes about.
const NO_QUORUM: &[Step] = &[
    Wait,
    first_leads(2),
    first_leads(3),
    Write { asked: 1 },
    Kill(2),
    Write { asked: 3 },
    Kill(3),
    Write { asked: 1 },
    List { asked: 1 },
    Add { asked: 1, id: 4, place: 3 },
    Remove { asked: 1, id: 2 },
    MoveLeader { asked: 1, to: 2 },
    Promote { asked: 1, id: 2 },
    Kill(1),
    List { asked: 1 },
    Restart(2),
    Restart(3),
    Write { asked: 2 },
    Restart(1),
    Write { asked: 1 },
];

/// Of the leader, by a member of itself, and of the last one.
const REMOVALS: &[Step] = &[
    Remove { asked: 1, id: 2 },
    Wait,
    Remove { asked: 1, id: UNKNOWN },
    first_leads(2),
    first_leads(3),
    Write { asked: 1 },
    Remove { asked: 1, id: 1 },
    Write { asked: 2 },
    MoveLeader { asked: 3, to: 2 },
    Remove { asked: 3, id: 3 },
    Write { asked: 2 },
    Remove { asked: 2, id: 2 },
];

/// A volume is lost, and its member replaced.
const REPLACEMENT: &[Step] = &[
    Wait,
    Write { asked: 1 },
    Wipe(2),
    Write { asked: 1 },
    Remove { asked: 3, id: 2 },
    Remove { asked: 3, id: 2 },
    Wait,
    Add { asked: 1, id: 4, place: 1 },
    Add { asked: 3, id: 5, place: 1 },
    Add { asked: 3, id: 5, place: 3 },
    Join(4),
    Promote { asked: 3, id: 4 },
    Kill(1),
    Write { asked: 4 },
    Restart(1),
    Write { asked: 1 },
];

/// What is proposed while a leader waits for a dead heir is dropped, wherever it was asked for.
const HANDING_OVER: &[Step] = &[
    Wait,
    first_leads(2),
    first_leads(3),
    Kill(2),
    Wait,
    MoveLeader { asked: 1, to: 2 },
    Remove { asked: 3, id: 2 },
    Write { asked: 3 },
    MoveLeader { asked: 1, to: 2 },
    Write { asked: 1 },
    Write { asked: 1 },
    MoveLeader { asked: 1, to: 2 },
    Add { asked: 3, id: 4, place: 3 },
    Write { asked: 3 },
    Remove { asked: 3, id: 2 },
    Write { asked: 1 },
];

/// A learner does nothing for others.
const ASKED_OF_LEARNERS: &[Step] = &[
    Wait,
    Add { asked: 2, id: 3, place: 2 },
    Join(3),
    Write { asked: 3 },
    List { asked: 3 },
    Add { asked: 3, id: 4, place: 3 },
    Promote { asked: 3, id: 3 },
    Remove { asked: 3, id: 3 },
    MoveLeader { asked: 3, to: 3 },
    MoveLeader { asked: 1, to: 3 },
    MoveLeader { asked: 2, to: 3 },
    Add { asked: 1, id: 4, place: 2 },
    Remove { asked: 1, id: 3 },
    Remove { asked: 1, id: 3 },
];
