//! Events about changes of a status: published when a problem begins, and not again while it lasts. Pure.
//!
//! Guarantees: what has been reported is in the status, so that the next leader does not report it again. What comes
//! and goes with every start of a pod is reported once by each process.

use std::collections::BTreeSet;

use super::backups;
use crate::api::condition::{self as conditions, State};
use crate::controllers::api_write::Note;
use crate::kinds::etcdcluster::api::status::{ConditionType, Reason};
use crate::kinds::etcdcluster::api::v1::EtcdClusterStatus;
use crate::kinds::etcdcluster::names;
use crate::kinds::etcdcluster::observation::{Alarm, Fact, Observation};

/// Conditions and their reasons that need a user's attention. A member that is down is not among them, for each restart
/// is one, and neither is a full database, whose alarm is reported.
const TOLD: [(ConditionType, State, &[Reason]); 5] = [
    (
        ConditionType::Degraded,
        State::True,
        &[
            Reason::NameTaken,
            Reason::ClusterIDMismatch,
            Reason::QuorumLost,
            Reason::Corrupt,
            Reason::ClaimTerminating,
            Reason::ApplyFailed,
            Reason::Forbidden,
            Reason::UpgradeStalled,
            Reason::LearnerStuck,
            Reason::PodNotRunning,
        ],
    ),
    (ConditionType::SpecValid, State::False, &[Reason::SpecInvalid, Reason::WouldLoseData]),
    (ConditionType::SpecValid, State::True, &[Reason::VolumeCannotGrow]),
    (ConditionType::CertificatesReady, State::False, &[Reason::RootPasswordUnset]),
    (ConditionType::Ready, State::False, &[Reason::NamespaceRefused]),
];

/// The same of backups.
const BACKUPS: (ConditionType, State, &[Reason]) = (
    ConditionType::BackupReady,
    State::False,
    &[Reason::BackupOverdue, Reason::BackupDestinationUnavailable, Reason::DataSuspect, Reason::NameTaken],
);

/// The event that nothing needs attention any more.
const RECOVERED: &str = "Recovered";

/// What a process has reported of what comes and goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reported {
    /// The message about the certificates.
    pub certificates: Option<String>,
    /// The alarms; none: they have not been read yet.
    pub alarms: Option<Vec<Alarm>>,
    /// The last reported reason for which `Degraded` is True, until it is False.
    pub degraded: Option<&'static str>,
}

/// The events of a status that was `previous`, and what is reported with them. `certificates`: a message about them, and
/// whether it is a problem.
pub fn of(
    name: &str,
    (previous, status): (&EtcdClusterStatus, &EtcdClusterStatus),
    seen: &Observation,
    (certificates, is_problem): (Option<&str>, bool),
    before: &Reported,
) -> (Vec<Note>, Reported) {
    let text = certificates.filter(|text| before.certificates.as_deref() != Some(*text));
    let (reason, action) = ("CertificateRotation", "Reconcile");
    let note = text.map(|text| Note { warning: is_problem, reason, action, text: text.to_owned() });
    let (news, degraded) = news(previous, status, before.degraded);
    let alarmed = alarms(name, previous, seen, before.alarms.as_deref());
    let reported = Reported {
        certificates: certificates.map(str::to_owned),
        alarms: seen.alarms.known().cloned().or_else(|| before.alarms.clone()),
        degraded,
    };
    (note.into_iter().chain(alarmed).chain(news).collect(), reported)
}

/// What conditions of `status` say that those of `previous` did not, and the reported reason of `Degraded` from now on.
/// `degraded`: the one before.
fn news(
    previous: &EtcdClusterStatus,
    status: &EtcdClusterStatus,
    degraded: Option<&'static str>,
) -> (Vec<Note>, Option<&'static str>) {
    let mut notes: Vec<_> = TOLD.into_iter().filter_map(|told| begun(previous, status, told)).collect();
    // Between two starts the pod of an upgrade that is stalled is one that merely does not serve yet.
    let again = degraded.filter(|reason| *reason == Reason::UpgradeStalled.as_str());
    notes.retain(|note| again != Some(note.reason));
    notes.extend(over(previous, status, degraded.is_some()));
    let [(about, _, reasons), ..] = TOLD;
    let is_healthy = said(status, about).is_some_and(|(_, why, _)| why == Reason::Healthy.as_str());
    let begun_now = notes.iter().map(|note| note.reason).find(|reason| is_among(reasons, reason));
    let degraded = begun_now.or_else(|| degraded.filter(|_| !is_healthy));
    notes.extend(begun(previous, status, BACKUPS));
    notes.extend(backups::news(previous, status));
    (notes, degraded)
}

fn is_among(reasons: &[Reason], word: &str) -> bool {
    Reason::named(word).is_some_and(|reason| reasons.contains(&reason))
}

/// State, reason and message of a condition.
fn said(status: &EtcdClusterStatus, about: ConditionType) -> Option<(&str, &str, &str)> {
    let condition = conditions::find(status.conditions.as_deref()?, about.as_str())?;
    Some((&condition.status, &condition.reason, &condition.message))
}

fn begun(
    previous: &EtcdClusterStatus,
    status: &EtcdClusterStatus,
    (about, state, reasons): (ConditionType, State, &[Reason]),
) -> Option<Note> {
    let (is, why, text) = said(status, about)?;
    let reason = Reason::named(why).filter(|why| is == state.as_str() && reasons.contains(why))?;
    let is_news = said(previous, about).is_none_or(|(was, before, _)| (was, before) != (is, why));
    is_news.then(|| Note {
        warning: true,
        reason: reason.as_str(),
        action: "Reconcile",
        text: text.to_owned(),
    })
}

/// Nothing needs attention any more, and something did that was reported; `is_reported`: by this process.
fn over(previous: &EtcdClusterStatus, status: &EtcdClusterStatus, is_reported: bool) -> Option<Note> {
    let [(about, _, reasons), ..] = TOLD;
    let (_, _, text) = said(status, about).filter(|(_, why, _)| *why == Reason::Healthy.as_str())?;
    let is_over =
        is_reported || said(previous, about).is_some_and(|(_, before, _)| is_among(reasons, before));
    is_over.then(|| Note { warning: false, reason: RECOVERED, action: "Reconcile", text: text.to_owned() })
}

/// Alarms that were armed or disarmed since those that are `reported`. A process that has just begun takes those that the
/// status mentions as reported.
fn alarms(
    name: &str,
    previous: &EtcdClusterStatus,
    seen: &Observation,
    reported: Option<&[Alarm]>,
) -> Vec<Note> {
    let Fact::Known(armed) = &seen.alarms else { return Vec::new() };
    let of_alarms = [Reason::Corrupt, Reason::DatabaseQuotaExceeded];
    let is_mentioned =
        || said(previous, ConditionType::Degraded).is_some_and(|(_, why, _)| is_among(&of_alarms, why));
    let set = |alarms: &[Alarm]| alarms.iter().copied().collect::<BTreeSet<_>>();
    let before = reported.map_or_else(|| if is_mentioned() { set(armed) } else { BTreeSet::new() }, set);
    let armed = set(armed);
    let note = |alarm: &Alarm, warning, reason, action, verb: &str| {
        let (kind, whose) = (alarm.kind.as_str(), whose(name, seen, alarm));
        Note { warning, reason, action, text: format!("alarm {kind} of {whose} is {verb}") }
    };
    let raised = armed.difference(&before);
    let raised = raised.map(|alarm| note(alarm, true, "AlarmRaised", "Reconcile", "armed"));
    let gone = before.difference(&armed);
    raised.chain(gone.map(|alarm| note(alarm, false, "AlarmDisarmed", "DisarmAlarm", "disarmed"))).collect()
}

fn whose(name: &str, seen: &Observation, alarm: &Alarm) -> String {
    let list = [&seen.membership, &seen.last_membership].into_iter().find_map(Fact::known);
    let ordinal = list.and_then(|list| list.find(alarm.member)).and_then(|member| member.ordinal);
    match ordinal {
        Some(ordinal) => format!("member {}", names::member(name, ordinal)),
        None if alarm.member.0 == 0 => "a member that is unknown".to_owned(),
        None => format!("member {:x}, which is gone,", alarm.member.0),
    }
}

#[cfg(test)]
mod tests;
