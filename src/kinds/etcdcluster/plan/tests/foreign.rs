//! Members and volumes that are not gatehouse's own.

use super::rules::{V3_6, down, planned, rested};
use super::world::World;
use crate::kinds::etcdcluster::actions::Action;
use crate::kinds::etcdcluster::observation::{
    Cause, Fact, Member, MemberId, Observation, Ordinal, Owner, PodPhase, Record, Uid,
};
use crate::kinds::etcdcluster::plan::Plan;

/// The same with a member that another client of etcd has added.
fn with_another(seen: &mut Observation, is_learner: bool) {
    let Fact::Known(membership) = &mut seen.membership else { panic!("members") };
    membership.members.push(Member { id: MemberId(4711), ordinal: None, is_learner, is_started: true });
}

fn removes(plan: &Plan) -> bool {
    plan.actions.iter().any(|action| matches!(action, Action::MemberRemove { .. }))
}

#[test]
fn a_member_of_another_client_makes_none_of_ours_too_many() {
    let (mut desired, mut seen) = rested(3);
    down(&mut seen, 1, PodPhase::Failing(Cause::Other));
    for is_learner in [true, false] {
        let mut seen = seen.clone();
        with_another(&mut seen, is_learner);
        let plan = planned(&desired, &seen);
        assert!(!removes(&plan), "{:#?}", plan.actions);
    }
    desired.replicas = 1;
    assert!(removes(&planned(&desired, &seen)), "one that is too many leaves, the one that is down first");
}

#[test]
fn a_seed_that_fails_on_a_volume_of_another_owner_leaves_that_volume() {
    let mut world = World::new(1, V3_6);
    while world.pods.get(&Ordinal(0)).is_none_or(|process| process.pod.phase != PodPhase::Up) {
        world.rounds(1);
    }
    let (volume, _) = world.volumes.get_mut(&Ordinal(0)).unwrap();
    (volume.owner, volume.handle.uid) = (Owner::Foreign, Uid("another".to_owned()));
    world.pods.get_mut(&Ordinal(0)).unwrap().pod.phase = PodPhase::Failing(Cause::DataForeign);
    world.record = Record::default();
    world.etcd.leader = None;
    let before = world.log.len();
    world.rounds(20);
    let deletes = |action: &Action| matches!(action, Action::DeleteVolume { .. });
    assert!(!world.log[before..].iter().any(deletes), "{:#?}", &world.log[before..]);
}
