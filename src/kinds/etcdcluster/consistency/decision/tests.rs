use super::*;

fn prints(hashes: &[u32]) -> Vec<Print> {
    let print =
        |(ordinal, hash): (u32, &u32)| Print { ordinal: Ordinal(ordinal), hash: *hash, compact_revision: 5 };
    (0..).zip(hashes).map(print).collect()
}

fn different(minority: &[u32]) -> Audit {
    let minority = minority.iter().copied().map(Ordinal).collect();
    Audit::Different { revision: 9, minority }
}

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn those_that_differ_from_a_majority_are_named_and_without_one_none_is() {
    for (hashes, expected) in [
        (&[1, 1][..], Audit::Equal),
        (&[1, 1, 1, 1, 1], Audit::Equal),
        (&[1, 2, 1], different(&[1])),
        (&[1, 1, 2, 3, 1], different(&[2, 3])),
        (&[1, 2], different(&[])),
        (&[1, 2, 3], different(&[])),
        (&[1, 1, 2, 2], different(&[])),
        (&[1, 1, 2, 3], different(&[])),
    ] {
        assert_eq!(verdict(9, &prints(hashes)), Fact::Known(expected), "{hashes:?}");
    }
}

#[test]
fn hashes_of_other_keys_tell_nothing() {
    for hashes in [[1, 1, 1], [1, 1, 2]] {
        let mut prints = prints(&hashes);
        prints[2].compact_revision = 6;
        assert_eq!(verdict(9, &prints), Fact::Unknown);
    }
}

#[test]
fn one_voter_has_none_to_differ_from() {
    assert_eq!(verdict(9, &prints(&[1])), Fact::Absent);
    assert_eq!(verdict(9, &[]), Fact::Absent);
}

#[test]
fn followers_that_agree_say_nothing_of_their_leader() {
    for reach in [Reach::Followers, Reach::None] {
        assert_eq!(verdict_within(reach, 9, &prints(&[1, 1])), Fact::Absent);
        assert_eq!(verdict_within(reach, 9, &prints(&[1])), Fact::Absent);
        assert_eq!(verdict_within(reach, 9, &prints(&[1, 2])), Fact::Known(different(&[])));
    }
    assert_eq!(verdict_within(Reach::All, 9, &prints(&[1, 1])), Fact::Known(Audit::Equal));
    let mut course = ConsistencyCheckState::default();
    course.heard(Fact::Known(Audit::Equal), second(0));
    course.heard(Fact::Absent, second(3600));
    assert_eq!(course.recall(None), Fact::Unknown, "what was equal an hour ago is not said any more");
    assert_eq!(course.age(second(3600)), Age::Fresh, "pods wait for no more than that");
    assert!(!course.is_due(second(7199)) && course.is_due(second(7200)));
}

#[test]
fn a_difference_is_said_when_it_was_seen_twice() {
    let mut course = ConsistencyCheckState::default();
    assert_eq!(course.recall(Some(1)), Fact::Unknown);
    course.heard(Fact::Known(Audit::Equal), second(0));
    assert_eq!(course.recall(Some(1)), Fact::Known(Audit::Equal));
    assert!(!course.is_due(second(3599)) && course.is_due(second(3600)));

    course.heard(Fact::Known(different(&[1])), second(3600));
    assert_eq!(course.recall(Some(1)), Fact::Unknown, "no longer equal, not yet different");
    assert!(course.is_due(second(3600)), "the second look is the next reconciliation's");
    course.heard(Fact::Known(different(&[1])), second(3630));
    assert_eq!(course.recall(Some(1)), Fact::Known(different(&[1])));
    assert_eq!(course.found_at(), Some(second(3630)));
    assert!(!course.is_due(second(4229)) && course.is_due(second(4230)));

    course.heard(Fact::Known(Audit::Equal), second(4230));
    assert_eq!(course.recall(Some(1)), Fact::Known(Audit::Equal), "it is over");
}

#[test]
fn two_looks_that_name_others_are_not_two_of_one_difference() {
    let mut course = ConsistencyCheckState::default();
    course.heard(Fact::Known(different(&[1])), second(0));
    course.heard(Fact::Known(different(&[2])), second(1));
    assert_eq!(course.recall(None), Fact::Unknown);
    course.heard(Fact::Known(different(&[2])), second(2));
    assert_eq!(course.recall(None), Fact::Known(different(&[2])));
}

#[test]
fn a_look_that_tells_nothing_takes_nothing_back() {
    let mut course = ConsistencyCheckState::default();
    course.heard(Fact::Known(different(&[1])), second(0));
    course.heard(Fact::Unknown, second(1));
    assert!(!course.is_due(second(600)) && course.is_due(second(601)));
    course.heard(Fact::Known(different(&[1])), second(601));
    course.heard(Fact::Unknown, second(1201));
    assert_eq!(course.recall(None), Fact::Known(different(&[1])));
    assert_eq!(course.found_at(), Some(second(601)));
}

#[test]
fn what_was_found_is_not_of_other_members() {
    let mut course = ConsistencyCheckState::default();
    course.recall(Some(1));
    course.heard(Fact::Known(different(&[1])), second(0));
    course.heard(Fact::Known(different(&[1])), second(1));
    assert_eq!(course.recall(None), Fact::Known(different(&[1])), "the member list is unknown now");
    assert_eq!(course.recall(Some(2)), Fact::Known(UNNAMED), "one that is left may have the wrong ones");
    assert!(course.is_due(second(2)));
    course.heard(Fact::Known(Audit::Equal), second(3));
    assert_eq!(course.recall(Some(3)), Fact::Unknown, "what was equal is not of other members");
}

#[test]
fn that_data_differ_is_not_forgotten_with_the_alarm_of_a_member_that_is_gone() {
    let mut course = ConsistencyCheckState::default();
    course.suspect([MemberId(7)].into());
    course.recall(Some(1));
    course.heard(Fact::Known(different(&[1])), second(0));
    course.heard(Fact::Known(different(&[1])), second(1));
    for alarmed in [BTreeSet::from([MemberId(7)]), BTreeSet::new()] {
        course.suspect(alarmed);
        assert_eq!(course.recall(Some(2)), Fact::Known(UNNAMED));
    }
    assert!(course.is_due(second(2)));
    let mut alone = course.clone();
    alone.heard(Fact::Absent, second(2));
    assert_eq!(alone.recall(Some(2)), Fact::Unknown, "one voter has none to differ from");
    course.heard(Fact::Known(Audit::Equal), second(2));
    assert_eq!(course.recall(Some(2)), Fact::Known(Audit::Equal));
}

#[test]
fn what_the_status_says_is_taken_up_until_data_have_been_compared() {
    let mut course = ConsistencyCheckState::default();
    course.begin(true, "a", second(0));
    assert!(course.is_due(second(0)));
    assert_eq!(course.recall(Some(1)), Fact::Known(UNNAMED));
    assert_eq!(course.found_at(), None, "they were not compared yet");
    let mut equal = course.clone();
    equal.heard(Fact::Known(Audit::Equal), second(1));
    equal.begin(true, "a", second(2));
    assert_eq!(equal.recall(Some(1)), Fact::Known(Audit::Equal));
    course.heard(Fact::Known(different(&[1])), second(1));
    assert_eq!(
        course.recall(Some(1)),
        Fact::Known(different(&[1])),
        "a second look of its own is not needed"
    );
    course.heard(Fact::Known(Audit::Equal), second(2));
    assert_eq!(course.recall(Some(2)), Fact::Unknown);
    course.begin(true, "a", second(2));
    assert_eq!(course.recall(Some(2)), Fact::Unknown, "the status still speaks of other members");
}

#[test]
fn clusters_that_a_process_takes_over_are_compared_one_by_one_within_the_hour() {
    let begins = |number: u32| {
        let mut course = ConsistencyCheckState::default();
        course.begin(false, &format!("{number:08x}-0f3e-4d6a-9c59-0d1c5c1b7f6e"), second(0));
        course.recall(Some(1));
        assert!(course.is_due(second(3600)));
        (0..=60).find(|minute| course.is_due(second(minute * 60))).unwrap()
    };
    let minutes: BTreeSet<_> = (0..100_u32).map(|number| begins(number.wrapping_mul(0x9e37_79b9))).collect();
    assert!(minutes.len() > 30, "{minutes:?}");
}

#[test]
fn a_new_alarm_has_the_data_compared_again_whatever_was_found_before() {
    let alarmed = |ids: &[u64]| ids.iter().copied().map(MemberId).collect::<BTreeSet<_>>();
    let mut course = ConsistencyCheckState::default();
    course.recall(Some(1));
    course.heard(Fact::Known(Audit::Equal), second(0));
    course.suspect(alarmed(&[]));
    assert_eq!(course.recall(Some(1)), Fact::Known(Audit::Equal));
    course.suspect(alarmed(&[7]));
    assert_eq!(course.recall(Some(1)), Fact::Unknown, "it was found before the alarm");
    assert!(course.is_due(second(1)));
    course.heard(Fact::Unknown, second(1));
    assert!(!course.is_due(second(30)) && course.is_due(second(31)), "sooner than without an alarm");
    course.heard(Fact::Known(Audit::Equal), second(31));
    course.suspect(alarmed(&[7]));
    assert_eq!(course.recall(Some(1)), Fact::Known(Audit::Equal), "the same alarm is no news");
    course.suspect(alarmed(&[7, 8]));
    assert_eq!(course.recall(Some(1)), Fact::Unknown);
}

#[test]
fn a_comparison_counts_for_a_restart_for_ten_minutes_unless_it_has_to_be_repeated() {
    let mut course = ConsistencyCheckState::default();
    assert_eq!(course.age(second(0)), Age::PastDeadline);
    for told in [Fact::Known(Audit::Equal), Fact::Unknown] {
        course.heard(told, second(0));
        assert_eq!((course.age(second(599)), course.age(second(600))), (Age::Fresh, Age::PastDeadline));
    }
    course.heard(Fact::Known(different(&[1])), second(700));
    assert_eq!(course.age(second(701)), Age::PastDeadline, "seen once");
    course.heard(Fact::Known(different(&[1])), second(702));
    assert_eq!(course.age(second(703)), Age::Fresh, "what was found holds everything up");
}
