//! A lost quorum, and how it is brought back: whole stories.

use super::sequences::{is_settled, says};
use super::world::World;
use crate::api::condition::State;
use crate::api::etcdcluster::status::{condition, reason};
use crate::controllers::etcdcluster::effect::Effect;
use crate::controllers::etcdcluster::observation::{
    Ordinal, Purpose, RecoveryPhase, RecoveryRequest, Version,
};

const V3_6: Version = Version::new(6, 16);

#[test]
fn a_single_member_that_lost_its_volume_is_never_formed_anew() {
    let mut world = World::settled(1, V3_6);
    let before = world.log.len();
    world.wipe(0);
    let plan = world.run();
    assert_eq!(world.log.len(), before);
    assert_eq!(says(&plan, condition::QUORUM_LOST), (State::True, reason::QUORUM_LOST));
    assert_eq!(says(&plan, condition::AVAILABLE), (State::False, reason::QUORUM_LOST));
}

#[test]
fn a_lost_quorum_is_reported_and_nothing_is_wiped_by_itself() {
    let mut world = World::settled(3, V3_6);
    let before = world.log.len();
    world.wipe(1);
    world.wipe(2);
    let plan = world.run();
    assert_eq!(world.log.len(), before);
    assert_eq!(says(&plan, condition::QUORUM_LOST), (State::True, reason::QUORUM_LOST));
}

#[test]
fn a_request_brings_a_lost_quorum_back_from_the_survivor_once() {
    let mut world = World::settled(3, V3_6);
    world.wipe(0);
    world.wipe(2);
    world.desired.recovery = Some(RecoveryRequest { token: "now".to_owned(), survivor: None });
    let plan = world.run();
    assert!(is_settled(&plan), "{plan:#?}");
    assert_eq!((world.ordinals(), world.live_voters()), (vec![0, 1, 2], 3));
    let recovery = world.record.recovery.clone().unwrap();
    assert_eq!((recovery.survivor, recovery.phase), (Some(Ordinal(1)), RecoveryPhase::Done));
    let forced = world.log.iter().filter(|effect| match effect {
        Effect::WriteConfig { entries, .. } => entries.values().any(|entry| entry.purpose == Purpose::Force),
        _ => false,
    });
    assert_eq!(forced.count(), 1);
    world.wipe(0);
    world.wipe(2);
    let before = world.log.len();
    let plan = world.run();
    assert_eq!(world.log.len(), before, "the request was consumed");
    assert_eq!(says(&plan, condition::QUORUM_LOST), (State::True, reason::QUORUM_LOST));
}

#[test]
fn a_survivor_that_restarts_by_itself_at_the_wrong_time_is_started_anew_all_the_same() {
    for rounds in 0..40 {
        let mut world = World::settled(3, V3_6);
        world.wipe(0);
        world.wipe(2);
        world.desired.recovery = Some(RecoveryRequest { token: "now".to_owned(), survivor: None });
        world.rounds(rounds);
        world.pods.remove(&Ordinal(1));
        let plan = world.run();
        assert!(is_settled(&plan), "after {rounds}: {plan:#?}");
        assert_eq!((world.ordinals(), world.live_voters()), (vec![0, 1, 2], 3));
    }
}

#[test]
fn a_request_while_there_is_a_quorum_is_consumed_and_does_nothing() {
    let mut world = World::settled(3, V3_6);
    world.desired.recovery = Some(RecoveryRequest { token: "now".to_owned(), survivor: None });
    let before = world.log.len();
    assert!(is_settled(&world.run()));
    assert_eq!(world.record.recovery.as_ref().unwrap().phase, RecoveryPhase::Cancelled);
    assert!(world.log[before..].iter().all(|effect| matches!(effect, Effect::WriteRecord { .. })));
}
