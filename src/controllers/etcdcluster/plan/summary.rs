//! What the status says of a cluster, as data: computed in every pass, whatever could be read. Pure.
//!
//! Guarantees: the cluster is called available only where a linearizable list was read in this pass; what could not be
//! found out is called unknown; members that do not answer stay listed; that a spec is reached is said only after its
//! effect was seen.

use std::collections::BTreeSet;

use serde::Serialize;

use super::decision::{Decision, Wake};
use super::gate::Closed;
use super::upgrade::{Preparation, Refusal, Step};
use super::view::View;
use super::{gate, housekeeping, recovery, rest, upgrade};
use crate::api::condition::State;
use crate::api::etcdcluster::status::{condition, reason};
use crate::controllers::etcdcluster::observation::{
    AlarmKind, Audit, Certificates, Fact, MemberId, Minor, OperationKind, Ordinal, Role, RootPassword,
    Version,
};

/// One condition, without its words for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Finding {
    /// The condition's type.
    pub about: &'static str,
    /// Whether it holds.
    pub state: State,
    /// Why, in one word.
    pub reason: &'static str,
    /// The member that it is about.
    pub ordinal: Option<Ordinal>,
}

/// One member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct MemberSummary {
    /// Where it is.
    pub ordinal: Ordinal,
    /// Its identity.
    pub id: Option<MemberId>,
    /// What it is; none: it is counted and has not started, or nobody could be asked.
    pub role: Option<Role>,
    /// Whether it has ever started, as far as that is known.
    pub is_started: bool,
    /// What it runs.
    pub version: Option<Version>,
    /// Whether it serves.
    pub is_healthy: bool,
    /// Whether it leads.
    pub is_leader: bool,
}

/// What the status says.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Summary {
    /// The conditions.
    pub findings: Vec<Finding>,
    /// Whether the spec is reached, so that its generation counts as observed.
    pub is_reached: bool,
    /// Lowest version that a member runs.
    pub version: Option<Version>,
    /// The version that the members agreed on.
    pub cluster_version: Option<Minor>,
    /// Who leads.
    pub leader: Option<Ordinal>,
    /// Members that etcd counts.
    pub replicas: Option<usize>,
    /// Members that serve.
    pub ready_replicas: usize,
    /// The members.
    pub members: Vec<MemberSummary>,
    /// What keeps a change from beginning now.
    pub closed: Option<Closed>,
    /// What the rules say of the version that is asked for.
    pub step: Step,
}

/// What the status says.
pub fn of(view: &View, decision: &Decision) -> Summary {
    let members = members(view);
    Summary {
        findings: vec![
            available(view),
            progressing(view, decision),
            degraded(view),
            quorum_lost(view),
            certificates(view),
            spec_valid(view),
            paused(view),
        ],
        is_reached: is_reached(view, decision),
        version: view.seen.answers().map(|(_, status)| status.version).min(),
        cluster_version: view.seen.cluster_version.known().copied(),
        leader: view.leader(),
        replicas: view.membership().map(|membership| membership.members.len()),
        ready_replicas: members.iter().filter(|member| member.is_healthy).count(),
        members,
        closed: gate::check(view).err(),
        step: upgrade::step(view),
    }
}

fn members(view: &View) -> Vec<MemberSummary> {
    let listed = view.membership().into_iter().flat_map(|membership| &membership.members);
    let told = view.seen.entries().filter(|(_, entry)| !entry.purpose.is_stopped());
    let ordinals: BTreeSet<_> =
        listed.filter_map(|member| member.ordinal).chain(told.map(|(ordinal, _)| ordinal)).collect();
    let leader = view.leader();
    let summary = |ordinal| {
        let member = view.member(ordinal);
        let status = view.status(ordinal);
        let told = view.seen.entry(ordinal).found().and_then(|entry| entry.member);
        let started = member.filter(|member| member.is_started);
        MemberSummary {
            ordinal,
            id: member.map(|member| member.id).or(told),
            role: started.map(|member| if member.is_learner { Role::Learner } else { Role::Voter }),
            is_started: started.is_some() || status.is_some(),
            version: status.map(|status| status.version),
            is_healthy: view.is_healthy(ordinal),
            is_leader: leader == Some(ordinal),
        }
    };
    ordinals.into_iter().map(summary).collect()
}

fn is_reached(view: &View, decision: &Decision) -> bool {
    let rests = decision.effects.is_empty() && decision.record == view.seen.record;
    let is_stopped = rest::is_asked_to_stop(view);
    let has_all = u32::try_from(view.voter_count()) == Ok(view.desired.replicas);
    let is_at_target = has_all && upgrade::target(view).is_some_and(|target| target == view.template());
    let is_rest = rests && decision.record.operation.is_none() && decision.wake == Wake::Later;
    is_rest
        && view.desired.is_valid
        && !view.desired.is_paused
        && !rest::is_name_taken(view.seen)
        && !rest::is_mismatched(view.seen)
        && (is_stopped || (is_at_target && housekeeping::is_guarded(view)))
}

const fn finding(about: &'static str, state: State, reason: &'static str) -> Finding {
    Finding { about, state, reason, ordinal: None }
}

fn available(view: &View) -> Finding {
    let of = |state, reason| finding(condition::AVAILABLE, state, reason);
    if view.membership().is_some() {
        of(State::True, reason::QUORUM_SERVES)
    } else if rest::is_asked_to_stop(view) {
        of(State::False, reason::STOPPED)
    } else if view.cluster_id().is_none() {
        of(State::False, reason::BOOTSTRAPPING)
    } else if recovery::is_quorum_lost(view) {
        of(State::False, reason::QUORUM_LOST)
    } else {
        of(State::Unknown, reason::UNREACHABLE)
    }
}

fn progressing(view: &View, decision: &Decision) -> Finding {
    let of = |state, reason| finding(condition::PROGRESSING, state, reason);
    let Some(operation) = decision.record.operation else {
        let reason = if rest::is_asked_to_stop(view) { reason::STOPPED } else { reason::SETTLED };
        return of(State::False, reason);
    };
    let waits_for_snapshot = upgrade::step(view) == Step::Prepare(Preparation::Snapshots);
    let reason = match operation.kind {
        OperationKind::Bootstrap => reason::BOOTSTRAPPING,
        OperationKind::Recover => reason::RECOVERING,
        OperationKind::Replace => reason::REPLACING,
        OperationKind::ScaleIn => reason::SCALING_IN,
        OperationKind::ScaleOut if !view.learners().is_empty() => reason::WAITING_FOR_LEARNER,
        OperationKind::ScaleOut => reason::SCALING_OUT,
        OperationKind::Upgrade if waits_for_snapshot => reason::WAITING_FOR_SNAPSHOT,
        OperationKind::Upgrade => reason::UPGRADING,
        OperationKind::Restart => reason::RESTARTING,
    };
    of(State::True, reason)
}

fn degraded(view: &View) -> Finding {
    let of = |reason| finding(condition::DEGRADED, State::True, reason);
    let differs = view.seen.audit.is_known_and(|audit| *audit != Audit::Equal);
    let learner = view.learners().first().map(|(ordinal, _)| *ordinal);
    let counted = members(view);
    let down = counted.iter().find(|member| !member.is_healthy && Some(member.ordinal) != learner);
    let ordinal = down.map(|member| member.ordinal);
    let taken = rest::taken_volume(view.seen);
    if rest::is_name_taken(view.seen) {
        of(reason::NAME_TAKEN)
    } else if taken.is_some() {
        Finding { ordinal: taken, ..of(reason::NAME_TAKEN) }
    } else if rest::is_mismatched(view.seen) {
        of(reason::CLUSTER_ID_MISMATCH)
    } else if recovery::is_quorum_lost(view) && !rest::is_asked_to_stop(view) {
        of(reason::QUORUM_LOST)
    } else if view.seen.has_alarm(AlarmKind::Corrupt) || differs {
        of(reason::CORRUPT)
    } else if view.seen.has_alarm(AlarmKind::NoSpace) {
        of(reason::DATABASE_QUOTA_EXCEEDED)
    } else if upgrade::is_stalled(view) {
        Finding { ordinal, ..of(reason::UPGRADE_STALLED) }
    } else if learner.is_some() && view.seen.operation_age.is_past() {
        Finding { ordinal: learner, ..of(reason::LEARNER_STUCK) }
    } else if ordinal.is_some() && !rest::is_asked_to_stop(view) {
        Finding { ordinal, ..of(reason::MEMBER_DOWN) }
    } else {
        finding(condition::DEGRADED, State::False, reason::HEALTHY)
    }
}

fn quorum_lost(view: &View) -> Finding {
    let of = |state, reason| finding(condition::QUORUM_LOST, state, reason);
    if view.membership().is_some() {
        of(State::False, reason::QUORUM_PRESENT)
    } else if rest::is_asked_to_stop(view) {
        of(State::False, reason::STOPPED)
    } else if view.cluster_id().is_none() {
        of(State::False, reason::BOOTSTRAPPING)
    } else if recovery::is_quorum_lost(view) {
        of(State::True, reason::QUORUM_LOST)
    } else {
        of(State::Unknown, reason::UNREACHABLE)
    }
}

fn certificates(view: &View) -> Finding {
    let (state, reason) = match view.seen.certificates {
        Certificates::Disabled => (State::True, reason::TLS_DISABLED),
        Certificates::Valid => root_password(view),
        Certificates::Expiring => (State::False, reason::CERTIFICATE_EXPIRING),
        Certificates::Missing => (State::False, reason::SECRET_UNREADABLE),
        Certificates::Unfit => (State::False, reason::CERTIFICATE_INVALID),
    };
    finding(condition::CERTIFICATES_READY, state, reason)
}

/// What the password of root makes of certificates that are valid.
fn root_password(view: &View) -> (State, &'static str) {
    let has_served = view.cluster_id().is_some() && view.desired.replicas > 0;
    match &view.seen.root_password {
        Fact::Known(RootPassword::Outdated { .. }) => (State::False, reason::ROOT_PASSWORD_OUTDATED),
        Fact::Known(RootPassword::Barred | RootPassword::Unreadable(_)) => {
            (State::False, reason::ROOT_PASSWORD_UNSET)
        }
        Fact::Unknown if has_served => (State::Unknown, reason::UNREACHABLE),
        Fact::Known(RootPassword::Current) | Fact::Absent | Fact::Unknown => {
            (State::True, reason::CERTIFICATES_VALID)
        }
    }
}

/// A version that members may not be brought to is a fault of the spec, whoever let it in; so is whatever would drop the
/// data.
fn spec_valid(view: &View) -> Finding {
    let of = |state, reason| finding(condition::SPEC_VALID, state, reason);
    let exists = view.cluster_id().is_some();
    let stops_memory = view.desired.is_in_memory && view.desired.replicas == 0 && exists;
    match upgrade::step(view) {
        _ if !view.desired.is_valid || stops_memory => of(State::False, reason::INVALID),
        _ if recovery::drops_data(view) => of(State::False, reason::WOULD_LOSE_DATA),
        Step::Refused(Refusal::DropsData) => of(State::False, reason::WOULD_LOSE_DATA),
        Step::Refused(_) if exists => of(State::False, reason::INVALID),
        _ => of(State::True, reason::VALID),
    }
}

fn paused(view: &View) -> Finding {
    let reason = if view.desired.is_paused { reason::PAUSED_BY_SPEC } else { reason::NOT_PAUSED };
    finding(condition::PAUSED, State::from(view.desired.is_paused), reason)
}
