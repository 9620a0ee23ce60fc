use serde_json::json;

use super::*;
use crate::kinds::etcdcluster::observation::{AlarmKind, MemberId};
use crate::kinds::etcdcluster::resources::tests::plain;
use crate::kinds::etcdcluster::status::tests::{id, seen};

/// A status with a condition of that type, status, reason and message.
fn says(about: ConditionType, state: &str, reason: Reason, message: &str) -> EtcdClusterStatus {
    serde_json::from_value(json!({"conditions": [{
        "type": about, "status": state, "reason": reason, "message": message,
        "lastTransitionTime": "2026-11-21T00:00:00Z",
    }]}))
    .unwrap()
}

fn degraded(reason: Reason) -> EtcdClusterStatus {
    let state = if reason == Reason::Healthy { "False" } else { "True" };
    says(ConditionType::Degraded, state, reason, "because")
}

fn told(previous: &EtcdClusterStatus, status: &EtcdClusterStatus) -> Vec<(bool, &'static str)> {
    news(previous, status, None).0.into_iter().map(|note| (note.warning, note.reason)).collect()
}

#[test]
fn what_needs_attention_is_reported_when_it_begins_and_when_it_is_over() {
    let nothing = EtcdClusterStatus::default();
    for reason in [
        Reason::NameTaken,
        Reason::ClusterIDMismatch,
        Reason::QuorumLost,
        Reason::Corrupt,
        Reason::UpgradeStalled,
        Reason::LearnerStuck,
    ] {
        let status = degraded(reason);
        assert_eq!(told(&nothing, &status), [(true, reason.as_str())]);
        assert_eq!(told(&degraded(Reason::Healthy), &status), [(true, reason.as_str())]);
        assert_eq!(told(&degraded(Reason::MemberDown), &status), [(true, reason.as_str())]);
        assert_eq!(told(&status, &status), [], "{reason:?} is not told again");
        assert_eq!(told(&status, &degraded(Reason::Healthy)), [(false, RECOVERED)]);
        assert_eq!(news(&nothing, &status, None).0[0].text, "because");
    }
}

#[test]
fn that_root_cannot_get_its_password_is_reported_and_that_it_gets_one_is_not() {
    let says = |state, reason| says(ConditionType::CertificatesReady, state, reason, "because");
    let (valid, unset) = (says("True", Reason::CertificatesValid), says("False", Reason::RootPasswordUnset));
    let outdated = says("False", Reason::RootPasswordOutdated);
    assert_eq!(told(&valid, &unset), [(true, "RootPasswordUnset")]);
    for (previous, status) in
        [(&unset, &unset), (&unset, &outdated), (&outdated, &valid), (&valid, &outdated)]
    {
        assert_eq!(told(previous, status), []);
    }
}

#[test]
fn what_comes_with_every_restart_is_not_reported() {
    let (healthy, down) = (degraded(Reason::Healthy), degraded(Reason::MemberDown));
    for (previous, status) in
        [(&healthy, &down), (&down, &healthy), (&EtcdClusterStatus::default(), &healthy)]
    {
        assert_eq!(told(previous, status), []);
    }
}

#[test]
fn an_upgrade_that_is_stalled_is_reported_once_however_often_its_pod_starts() {
    let (healthy, stalled) = (degraded(Reason::Healthy), degraded(Reason::UpgradeStalled));
    let (down, lost) = (degraded(Reason::MemberDown), degraded(Reason::QuorumLost));
    let reasons = |course: &[&EtcdClusterStatus]| {
        let mut degraded = None;
        let steps = course.windows(2).map(|pair| {
            let (notes, reported) = news(pair[0], pair[1], degraded);
            degraded = reported;
            notes
        });
        steps.flatten().map(|note| note.reason).collect::<Vec<_>>()
    };
    let course = [&healthy, &down, &stalled, &down, &stalled, &down, &healthy, &healthy, &down, &stalled];
    assert_eq!(reasons(&course), ["UpgradeStalled", RECOVERED, "UpgradeStalled"]);
    assert_eq!(reasons(&[&lost, &down, &lost, &down]).len(), 1, "a quorum that is lost again is");
}

#[test]
fn a_spec_that_is_refused_is_reported_once() {
    let valid = says(ConditionType::SpecValid, "True", Reason::Valid, "the rules of the gate hold");
    let invalid = says(ConditionType::SpecValid, "False", Reason::SpecInvalid, "no");
    assert_eq!(told(&valid, &invalid), [(true, "SpecInvalid")]);
    let other = says(ConditionType::SpecValid, "False", Reason::SpecInvalid, "no, and otherwise");
    assert_eq!(told(&invalid, &other), []);
    let memory = says(ConditionType::SpecValid, "False", Reason::WouldLoseData, "no");
    assert_eq!(told(&invalid, &memory), [(true, "WouldLoseData")]);
}

#[test]
fn a_volume_that_cannot_grow_is_reported_once() {
    let with = |reason: Reason| {
        says(ConditionType::SpecValid, "True", reason, "data-c-0: the class lets no volume grow")
    };
    // What decides is the reason, whatever the message says.
    let (before, after) = (with(Reason::Valid), with(Reason::VolumeCannotGrow));
    let (notes, _) = news(&before, &after, None);
    assert_eq!(notes.len(), 1);
    assert!(notes[0].warning && notes[0].reason == "VolumeCannotGrow");
    assert_eq!(notes[0].text, "data-c-0: the class lets no volume grow");
    assert_eq!(told(&after, &after), []);
    assert_eq!(told(&after, &before), []);
}

fn with_alarms(armed: &[Alarm]) -> Observation {
    Observation { alarms: Fact::Known(armed.to_vec()), ..seen(&plain()) }
}

#[test]
fn an_alarm_is_reported_when_it_is_armed_and_when_it_is_disarmed() {
    let status = EtcdClusterStatus::default();
    let full = Alarm { member: id(1), kind: AlarmKind::NoSpace };
    let gone = Alarm { member: MemberId(0xbb), kind: AlarmKind::Corrupt };
    let unnamed = Alarm { member: MemberId(0), kind: AlarmKind::Corrupt };
    let mut reported = Reported::default();
    let mut told = |armed: &[Alarm]| {
        let (notes, now) = of("c", (&status, &status), &with_alarms(armed), (None, false), &reported);
        reported = now;
        notes.into_iter().map(|note| format!("{}: {}", note.reason, note.text)).collect::<Vec<_>>()
    };
    assert_eq!(told(&[]), [""; 0]);
    assert_eq!(told(&[full]), ["AlarmRaised: alarm NOSPACE of member c-1 is armed"]);
    assert_eq!(told(&[full]), [""; 0]);
    assert_eq!(
        told(&[unnamed, gone]),
        [
            "AlarmRaised: alarm CORRUPT of a member that is unknown is armed",
            "AlarmRaised: alarm CORRUPT of member bb, which is gone, is armed",
            "AlarmDisarmed: alarm NOSPACE of member c-1 is disarmed",
        ]
    );
}

#[test]
fn alarms_that_are_not_known_are_neither_armed_nor_disarmed() {
    let armed = vec![Alarm { member: id(1), kind: AlarmKind::NoSpace }];
    let reported = Reported { alarms: Some(armed), ..Reported::default() };
    let unknown = Observation { alarms: Fact::Unknown, ..seen(&plain()) };
    let status = EtcdClusterStatus::default();
    let events = of("c", (&status, &status), &unknown, (None, false), &reported);
    assert_eq!(events, (Vec::new(), reported));
}

#[test]
fn a_process_that_begins_does_not_tell_what_the_status_speaks_of() {
    let armed = [Alarm { member: id(1), kind: AlarmKind::NoSpace }];
    let tell = |previous: &EtcdClusterStatus| alarms("c", previous, &with_alarms(&armed), None).len();
    assert_eq!(tell(&degraded(Reason::DatabaseQuotaExceeded)), 0);
    assert_eq!(tell(&degraded(Reason::Healthy)), 1);
}

#[test]
fn a_message_about_certificates_is_reported_once() {
    let status = EtcdClusterStatus::default();
    let mut reported = Reported::default();
    let mut texts = |message: Option<&str>| {
        let (notes, now) = of("c", (&status, &status), &with_alarms(&[]), (message, true), &reported);
        reported = now;
        notes.into_iter().map(|note| note.text).collect::<Vec<_>>()
    };
    assert_eq!(texts(Some("ends soon")), ["ends soon"]);
    assert_eq!(texts(Some("ends soon")), [""; 0]);
    assert_eq!(texts(None), [""; 0]);
    assert_eq!(texts(Some("ends soon")), ["ends soon"]);
}
