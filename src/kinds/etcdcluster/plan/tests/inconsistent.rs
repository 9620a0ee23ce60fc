//! A member that does not start because its data differ from another member's, as it says itself.

use super::rules::{down, finding, planned, pod, rested};
use crate::api::condition::State;
use crate::kinds::etcdcluster::actions::Action;
use crate::kinds::etcdcluster::api::status::{ConditionType, Reason};
use crate::kinds::etcdcluster::observation::{
    Age, Audit, Cause, Certificates, Fact, MemberId, Observation, Ordinal, OwnPrint, PodPhase, Role,
};
use crate::kinds::etcdcluster::plan::BlockedReason;

fn id(seen: &Observation, ordinal: u32) -> MemberId {
    seen.membership.known().unwrap().at(Ordinal(ordinal)).unwrap().id
}

/// The member at an ordinal does not start, and says that its data differ.
fn ends(seen: &mut Observation, ordinal: u32, phase: PodPhase) {
    let member = id(seen, ordinal);
    down(seen, ordinal, phase);
    pod(seen, ordinal).own_print = Some(OwnPrint { member, revision: 9, compact_revision: -1, hash: 7 });
}

fn differ(seen: &mut Observation, ordinals: &[u32]) {
    let minority = ordinals.iter().copied().map(Ordinal).collect();
    seen.audit = Fact::Known(Audit::Different { revision: 9, minority });
}

#[test]
fn it_is_replaced_once_the_others_are_found_to_agree_without_it() {
    // The kubelet starts it again and again.
    for phase in [PodPhase::Failing(Cause::Inconsistent), PodPhase::Starting] {
        let (desired, mut seen) = rested(3);
        ends(&mut seen, 1, phase);
        let plan = planned(&desired, &seen);
        assert_eq!(plan.actions, [], "its word alone is a suspicion");
        assert_eq!(plan.summary.blocked, Some(BlockedReason::Inconsistent(Ordinal(1))));
        assert!(plan.is_at_rest(), "the others are asked for their data");
        assert_eq!(finding(&plan, ConditionType::Degraded), (State::True, Reason::MemberDown));

        differ(&mut seen, &[1]);
        let plan = planned(&desired, &seen);
        assert!(
            matches!(plan.actions.as_slice(), [Action::MemberRemove { ordinal, .. }] if *ordinal == Ordinal(1)),
            "{:?}",
            plan.actions
        );
        assert_eq!(finding(&plan, ConditionType::Degraded), (State::True, Reason::Corrupt));
    }
}

#[test]
fn it_is_not_replaced_where_no_majority_is_found_without_it_or_nothing_may_be_replaced() {
    let (desired, mut seen) = rested(3);
    ends(&mut seen, 1, PodPhase::Failing(Cause::Inconsistent));
    for minority in [&[][..], &[0], &[2]] {
        let mut seen = seen.clone();
        differ(&mut seen, minority);
        assert_eq!(planned(&desired, &seen).actions, [], "{minority:?}");
    }
    differ(&mut seen, &[1]);
    let unfit = Observation { certificates: Certificates::Unfit, ..seen.clone() };
    let too_often = Observation { replacement_age: Age::Fresh, ..seen.clone() };
    let mut without_another = seen.clone();
    down(&mut without_another, 2, PodPhase::Failing(Cause::Other));
    // The member at the ordinal is another one by now.
    let mut of_another = seen.clone();
    pod(&mut of_another, 1).own_print =
        Some(OwnPrint { member: MemberId(99), revision: 9, compact_revision: -1, hash: 7 });
    // It was found to differ while it ran, and has no word of its own: a person chooses.
    let mut without_word = seen.clone();
    pod(&mut without_word, 1).own_print = None;
    for seen in [unfit, too_often, without_another, of_another, without_word] {
        assert_eq!(planned(&desired, &seen).actions, []);
    }
}

#[test]
fn of_two_members_neither_is_replaced() {
    let (desired, mut seen) = rested(2);
    ends(&mut seen, 1, PodPhase::Failing(Cause::Inconsistent));
    // No majority agrees without it.
    differ(&mut seen, &[]);
    assert_eq!(planned(&desired, &seen).actions, []);
}

#[test]
fn it_comes_before_an_upgrade_that_is_under_way_and_a_learner_goes_at_once() {
    let (mut desired, mut seen) = rested(3);
    desired.template.revision += 1;
    ends(&mut seen, 1, PodPhase::Failing(Cause::Inconsistent));
    differ(&mut seen, &[1]);
    assert!(matches!(planned(&desired, &seen).actions.as_slice(), [Action::MemberRemove { .. }]));

    let (desired, mut seen) = rested(3);
    ends(&mut seen, 2, PodPhase::Failing(Cause::Inconsistent));
    let Fact::Known(list) = &mut seen.membership else { panic!("a list") };
    list.members
        .iter_mut()
        .filter(|member| member.ordinal == Some(Ordinal(2)))
        .for_each(|member| member.is_learner = true);
    pod(&mut seen, 2).role = Some(Role::Learner);
    let plan = planned(&desired, &seen);
    assert!(matches!(plan.actions.as_slice(), [Action::MemberRemove { .. }]), "{:?}", plan.actions);
}
