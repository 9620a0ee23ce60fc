use proptest::prelude::*;

use super::*;

mod race;

const SECOND: Duration = Duration::from_secs(1);

fn seconds(count: u64) -> Moment {
    SECOND * u32::try_from(count).unwrap()
}

fn candidate() -> Term {
    Term::new("me".to_owned(), Pace::of(seconds(15)))
}

fn record(holder: &str, renewed: i64) -> Record {
    Record {
        holder: holder.to_owned(),
        seconds: 15,
        transitions: 7,
        acquired: Some(Timestamp::UNIX_EPOCH),
        renewed: Some(Timestamp::from_second(renewed).unwrap()),
    }
}

fn found(holder: &str, renewed: i64) -> Answer {
    Answer::Found(record(holder, renewed), renewed.to_string())
}

/// What the API server answers to a claim that it takes.
fn written(claim: &Claim, version: &str) -> Answer {
    let record = Record {
        holder: claim.holder.clone(),
        seconds: claim.seconds,
        transitions: claim.transitions,
        acquired: Some(Timestamp::UNIX_EPOCH),
        renewed: Some(Timestamp::UNIX_EPOCH),
    };
    Answer::Written(record, version.to_owned())
}

#[track_caller]
fn claim(term: &Term, now: Moment) -> Claim {
    match term.next(now) {
        Action::Write(claim) => claim,
        other => panic!("expected a write, and it is {other:?}"),
    }
}

/// One that leads since `now`, by a lease that it made.
fn leader(now: Moment) -> Term {
    let mut term = candidate();
    term.heard(Answer::Absent, now, now);
    let claim = claim(&term, now);
    assert_eq!(term.heard(written(&claim, "1"), now, now), Some(Change::Won));
    term
}

#[test]
fn the_paces_are_those_of_client_go() {
    let pace = Pace::of(seconds(15));
    assert_eq!((pace.deadline, pace.retry, pace.call), (seconds(10), seconds(2), seconds(5)));
}

#[test]
fn a_lease_that_is_not_there_is_made() {
    let mut term = candidate();
    assert_eq!(term.next(Moment::ZERO), Action::Read);
    term.heard(Answer::Absent, Moment::ZERO, Moment::ZERO);
    let claim = claim(&term, Moment::ZERO);
    assert_eq!((claim.version, claim.transitions, claim.acquired), (None, 0, None));
    assert_eq!((claim.holder.as_str(), claim.seconds), ("me", 15));
}

#[test]
fn the_term_begins_when_the_claim_was_sent() {
    let mut term = candidate();
    term.heard(Answer::Absent, Moment::ZERO, Moment::ZERO);
    let claim = claim(&term, Moment::ZERO);
    assert_eq!(term.heard(written(&claim, "1"), seconds(1), seconds(4)), Some(Change::Won));
    assert_eq!(term.until(), Some(seconds(11)));
    assert_eq!(term.tick(seconds(10)), None);
    assert_eq!(term.tick(seconds(11)), Some(Loss::Deadline));
    assert_eq!(term.until(), None);
    assert_eq!(term.next(seconds(11)), Action::Read, "and stands again");
}

#[test]
fn a_claim_whose_answer_comes_after_its_term_wins_nothing() {
    let mut term = candidate();
    term.heard(Answer::Absent, Moment::ZERO, Moment::ZERO);
    let claim = claim(&term, Moment::ZERO);
    assert_eq!(term.heard(written(&claim, "1"), Moment::ZERO, seconds(10)), None);
    assert_eq!((term.until(), term.next(seconds(10))), (None, Action::Read));
}

#[test]
fn a_released_lease_is_taken_at_once() {
    let mut term = candidate();
    term.heard(found("", 5), seconds(1), seconds(1));
    let claim = claim(&term, seconds(1));
    assert_eq!((claim.version.as_deref(), claim.transitions), (Some("5"), 8));
    assert_eq!(claim.acquired, None, "acquired by this claim");
}

#[test]
fn a_lease_of_another_is_looked_at_until_it_has_not_changed_for_its_duration() {
    let mut term = candidate();
    term.heard(found("other", 0), seconds(1), seconds(2));
    assert_eq!(term.next(seconds(2)), Action::Wait(seconds(3)), "two seconds after the last look began");
    for now in (3..17).step_by(2) {
        assert_eq!(term.next(seconds(now)), Action::Read);
        term.heard(found("other", 0), seconds(now), seconds(now));
    }
    assert_eq!(term.next(seconds(16)), Action::Wait(seconds(17)), "not a retry later than it may be taken");
    assert_eq!(term.next(seconds(17)), Action::Read, "never taken unseen");
    term.heard(found("other", 0), seconds(17), seconds(17));
    assert_eq!(claim(&term, seconds(17)).transitions, 8);
}

#[test]
fn what_the_wall_clock_of_others_says_counts_for_nothing() {
    for renewed in [0, 4_000_000_000] {
        let mut term = candidate();
        term.heard(found("other", renewed), seconds(1), seconds(1));
        assert_eq!(term.next(seconds(1)), Action::Wait(seconds(3)));
    }
}

#[test]
fn the_duration_that_the_holder_wrote_is_what_counts() {
    let mut term = candidate();
    let long = Record { seconds: 60, ..record("other", 0) };
    let answer = Answer::Found(long, "1".to_owned());
    term.heard(answer.clone(), Moment::ZERO, Moment::ZERO);
    term.heard(answer.clone(), seconds(59), seconds(59));
    assert!(matches!(term.next(seconds(59)), Action::Wait(_)));
    term.heard(answer, seconds(60), seconds(60));
    assert!(matches!(term.next(seconds(60)), Action::Write(_)));
}

#[test]
fn a_lost_race_is_followed_by_a_look_and_is_no_loss() {
    let mut term = leader(Moment::ZERO);
    assert_eq!(term.heard(Answer::LostRace, seconds(2), seconds(2)), None);
    assert_eq!(term.next(seconds(2)), Action::Read);
    assert_eq!(term.heard(found("me", 3), seconds(2), seconds(2)), None);
    assert_eq!(claim(&term, seconds(2)).version.as_deref(), Some("3"));
    assert_eq!(term.until(), Some(seconds(10)), "looking is not renewing");
}

#[test]
fn a_holder_without_answer_tries_the_same_again_until_its_deadline() {
    let mut term = leader(Moment::ZERO);
    let first = claim(&term, seconds(2));
    assert_eq!(term.heard(Answer::Silence, seconds(2), seconds(7)), None);
    assert_eq!(claim(&term, seconds(7)), first);
    assert_eq!(term.tick(seconds(9)), None);
    assert_eq!(term.tick(seconds(10)), Some(Loss::Deadline));
}

#[test]
fn a_follower_without_answer_looks_again_at_its_pace() {
    let mut term = candidate();
    assert_eq!(term.heard(Answer::Silence, Moment::ZERO, Duration::from_millis(3)), None);
    assert_eq!(term.next(Duration::from_millis(3)), Action::Wait(seconds(2)));
    assert_eq!(term.next(seconds(2)), Action::Read);
}

#[test]
fn a_holder_that_finds_another_one_has_lost() {
    let mut term = leader(Moment::ZERO);
    term.heard(Answer::LostRace, seconds(2), seconds(2));
    let lost = term.heard(found("other", 9), seconds(2), seconds(2));
    assert_eq!(lost, Some(Change::Lost(Loss::Taken("other".to_owned()))));
    assert_eq!(term.until(), None);
    assert!(matches!(term.next(seconds(2)), Action::Wait(_)));
}

#[test]
fn a_claim_of_unknown_outcome_is_found_to_be_ours_and_renewed() {
    let mut term = candidate();
    term.heard(Answer::Absent, Moment::ZERO, Moment::ZERO);
    term.heard(Answer::Silence, Moment::ZERO, seconds(5));
    assert_eq!(term.next(seconds(5)), Action::Read);
    term.heard(found("me", 1), seconds(5), seconds(5));
    let claim = claim(&term, seconds(5));
    assert_eq!((claim.transitions, claim.acquired), (7, Some(Timestamp::UNIX_EPOCH)), "no new term");
}

#[test]
fn a_lease_that_was_deleted_is_no_freer_than_before() {
    let mut term = candidate();
    term.heard(found("other", 0), Moment::ZERO, Moment::ZERO);
    term.heard(Answer::Absent, seconds(2), seconds(2));
    assert_eq!(term.next(seconds(2)), Action::Wait(seconds(4)));
    term.heard(Answer::Absent, seconds(15), seconds(15));
    assert_eq!(claim(&term, seconds(15)).version, None);
    let mut holder = leader(Moment::ZERO);
    holder.heard(Answer::LostRace, seconds(2), seconds(2));
    holder.heard(Answer::Absent, seconds(2), seconds(2));
    assert_eq!(claim(&holder, seconds(2)).version, None, "its holder makes it again");
}

#[test]
fn only_who_has_resigned_releases_and_only_its_own() {
    let mut term = leader(Moment::ZERO);
    assert_eq!(term.release(), None, "it leads");
    term.resign(seconds(1));
    let claim = term.release().unwrap();
    assert_eq!((claim.holder.as_str(), claim.seconds, claim.version.as_deref()), ("", 1, Some("1")));
    term.heard(found("other", 3), seconds(1), seconds(1));
    assert_eq!(term.release(), None, "it is another's");
    assert_eq!(candidate().release(), None, "nothing is known");
}
