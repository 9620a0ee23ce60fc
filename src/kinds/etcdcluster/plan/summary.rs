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
use super::{certificates, gate, housekeeping, recovery, rest, upgrade};
use crate::api::condition::State;
use crate::kinds::etcdcluster::api::status::{condition, reason};
use crate::kinds::etcdcluster::observation::{
    AlarmKind, Audit, Certificates, Fact, MemberId, Minor, OperationKind, Ordinal, PodPhase, Role,
    RootPassword, Target, Version,
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

/// What needs attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Problem {
    /// What it is, in one word.
    pub reason: &'static str,
    /// The member that has it.
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
    /// All that needs attention, the worst first.
    pub problems: Vec<Problem>,
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
    let problems = problems(view, decision);
    let findings = [
        available(view),
        progressing(view, decision),
        degraded(&problems),
        quorum_lost(view),
        certificates_ready(view),
        spec_valid(view),
        paused(view),
    ];
    Summary {
        findings: [&[ready(view, &findings)], findings.as_slice()].concat(),
        problems,
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
    let is_rest = rests && decision.record.operation.is_none() && decision.wake == Wake::Later;
    is_rest
        && view.desired.is_valid
        && !view.desired.is_paused
        && !rest::is_name_taken(view.seen)
        && !rest::is_mismatched(view.seen)
        && (is_stopped || (is_at_target(view) && housekeeping::is_guarded(view)))
}

/// Whether there are as many voters as are asked for, and their pods are made from what is asked for.
fn is_at_target(view: &View) -> bool {
    u32::try_from(view.voter_count()) == Ok(view.desired.replicas)
        && upgrade::target(view).is_some_and(|target| target == view.template())
}

const fn finding(about: &'static str, state: State, reason: &'static str) -> Finding {
    Finding { about, state, reason, ordinal: None }
}

/// Whether what the spec asks for serves, or else the worst of what keeps it from that.
fn ready(view: &View, findings: &[Finding]) -> Finding {
    let in_the_way = [
        (condition::SPEC_VALID, State::False),
        (condition::DEGRADED, State::True),
        (condition::AVAILABLE, State::False),
        (condition::AVAILABLE, State::Unknown),
        (condition::PROGRESSING, State::True),
    ];
    let found = |(about, state)| findings.iter().find(|one| one.about == about && one.state == state);
    let of = |state, reason| finding(condition::READY, state, reason);
    match in_the_way.into_iter().find_map(found) {
        Some(worst) if worst.state == State::Unknown => of(State::Unknown, worst.reason),
        Some(worst) => Finding { ordinal: worst.ordinal, ..of(State::False, worst.reason) },
        None if is_at_target(view) => of(State::True, reason::MEMBERS_READY),
        None if view.desired.is_paused => of(State::False, reason::PAUSED_BY_SPEC),
        None => of(State::False, reason::CHANGE_PENDING),
    }
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

/// All that needs attention. What a member that is being made cannot do yet is none, until its time is over.
fn problems(view: &View, decision: &Decision) -> Vec<Problem> {
    let differs = view.seen.audit.is_known_and(|audit| *audit != Audit::Equal);
    let learner = view.learners().first().map(|(ordinal, _)| *ordinal);
    let is_stranger = |ordinal| {
        let told = view.seen.status(ordinal).found();
        told.is_some_and(|told| view.cluster_id().is_some_and(|ours| told.cluster_id != ours))
    };
    let is_excused =
        |ordinal| learner == Some(ordinal) || is_being_made(view, decision, ordinal) || is_stranger(ordinal);
    let down = members(view).into_iter().map(|member| (member.ordinal, member.is_healthy));
    let down =
        down.filter(|(ordinal, is_healthy)| !is_healthy && !is_excused(*ordinal)).map(|(ordinal, _)| ordinal);
    let down: Vec<_> = down.collect();
    let taken = rest::taken_volume(view.seen);
    let is_stopped = rest::is_asked_to_stop(view);
    let is_quorum_lost = recovery::is_quorum_lost(view) && !is_stopped;
    let is_stalled = upgrade::is_stalled(view);
    let is_down = !down.is_empty() && !is_stopped && !is_quorum_lost && !is_stalled;
    let first = down.first().copied();
    let all = [
        (rest::is_name_taken(view.seen), reason::NAME_TAKEN, None),
        (!rest::is_name_taken(view.seen) && taken.is_some(), reason::NAME_TAKEN, taken),
        (rest::is_mismatched(view.seen), reason::CLUSTER_ID_MISMATCH, None),
        (is_quorum_lost, reason::QUORUM_LOST, None),
        (view.seen.has_alarm(AlarmKind::Corrupt) || differs, reason::CORRUPT, None),
        (view.seen.has_alarm(AlarmKind::NoSpace), reason::DATABASE_QUOTA_EXCEEDED, None),
        (view.seen.refused.is_some(), reason::WRITE_REFUSED, None),
        (is_stalled, reason::UPGRADE_STALLED, first),
        (learner.is_some() && view.seen.operation_age.is_past(), reason::LEARNER_STUCK, learner),
        (is_down, reason::MEMBER_DOWN, first),
    ];
    let all = all.into_iter().filter(|(holds, ..)| *holds);
    all.map(|(_, reason, ordinal)| Problem { reason, ordinal }).collect()
}

/// Whether a member is being made that has not served yet, is in time, and has a pod that may still come up.
fn is_being_made(view: &View, decision: &Decision, ordinal: Ordinal) -> bool {
    let fails = view.seen.pod(ordinal).is_known_and(|pod| matches!(pod.phase, PodPhase::Failing(_)));
    !fails
        && decision.record.operation.is_some_and(|operation| {
            matches!(operation.kind, OperationKind::Bootstrap | OperationKind::ScaleOut)
                && operation.target == Target::Member(ordinal)
                && !view.seen.operation_age.is_past()
        })
}

fn degraded(problems: &[Problem]) -> Finding {
    let worst = problems.first();
    worst.map_or(finding(condition::DEGRADED, State::False, reason::HEALTHY), |worst| Finding {
        ordinal: worst.ordinal,
        ..finding(condition::DEGRADED, State::True, worst.reason)
    })
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

fn certificates_ready(view: &View) -> Finding {
    let (state, reason) = match view.seen.certificates {
        Certificates::Disabled => (State::True, reason::TLS_DISABLED),
        Certificates::Valid => root_password(view),
        _ if !certificates::keep(view).is_empty() => (State::False, reason::CERTIFICATES_PENDING),
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
