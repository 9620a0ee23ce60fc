//! The input of the status, as data: computed in every reconciliation, whatever could be read. Pure.
//!
//! Guarantees: the cluster is called available only where a linearizable list was read in this reconciliation; what
//! could not be found out is called unknown; members that do not answer stay listed; a spec is reported as reached only
//! after its actions were observed.

use std::collections::BTreeSet;

use serde::Serialize;

use super::cluster_state::ClusterState;
use super::decision::{Decision, Wake};
use super::preconditions::BlockedReason;
use super::upgrade::{Preparation, Refusal, Step};
use super::{certificates, hold, housekeeping, preconditions, recovery, upgrade};
use crate::api::condition::State;
use crate::kinds::etcdcluster::api::status::{condition, reason};
use crate::kinds::etcdcluster::observation::{
    AlarmKind, Certificates, Fact, MemberId, Minor, OperationKind, Ordinal, Owner, PodPhase, RefusedWrite,
    Role, RootPassword, Target, Version,
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
    /// What it is; none: it is counted and has not started, or no member could be asked.
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
    /// Whether the spec is reached: volumes that have not grown yet are in the way of that, and not of Ready.
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
    pub blocked: Option<BlockedReason>,
    /// What the rules say of the version that is asked for.
    pub step: Step,
}

/// What the status says.
pub fn of(cluster: &ClusterState, decision: &Decision) -> Summary {
    let members = members(cluster);
    let problems = problems(cluster, decision);
    let findings = [
        available(cluster),
        progressing(cluster, decision),
        degraded(cluster, &members, &problems),
        quorum_lost(cluster),
        certificates_ready(cluster),
        spec_valid(cluster),
        paused(cluster),
    ];
    Summary {
        findings: [&[ready(cluster, &findings)], findings.as_slice()].concat(),
        problems,
        is_reached: is_reached(cluster, decision),
        version: cluster.seen.answers().map(|(_, status)| status.version).min(),
        cluster_version: cluster.seen.cluster_version.known().copied(),
        leader: cluster.leader(),
        replicas: cluster.membership().map(|membership| membership.members.len()),
        ready_replicas: members.iter().filter(|member| member.is_healthy).count(),
        members,
        blocked: preconditions::blocked(cluster)
            .or_else(|| upgrade::lacks_room(cluster))
            .or_else(|| upgrade::uncompared(cluster)),
        step: upgrade::step(cluster),
    }
}

fn members(cluster: &ClusterState) -> Vec<MemberSummary> {
    let listed = cluster.membership().into_iter().flat_map(|membership| &membership.members);
    let told = cluster.seen.entries().filter(|(_, entry)| !entry.purpose.is_stopped());
    let told = told.map(|(ordinal, _)| ordinal).chain(cluster.remembered().keys().copied());
    let ordinals: BTreeSet<_> = listed.filter_map(|member| member.ordinal).chain(told).collect();
    let leader = cluster.leader();
    let summary = |ordinal| {
        let member = cluster.member(ordinal);
        let status = cluster.status(ordinal);
        let told = cluster.seen.entry(ordinal).found().and_then(|entry| entry.member);
        let told = told.or_else(|| cluster.remembered().get(&ordinal).copied());
        let started = member.filter(|member| member.is_started);
        MemberSummary {
            ordinal,
            id: member.map(|member| member.id).or(told),
            role: started.map(|member| if member.is_learner { Role::Learner } else { Role::Voter }),
            is_started: started.is_some() || status.is_some(),
            version: status.map(|status| status.version),
            is_healthy: cluster.is_healthy(ordinal),
            is_leader: leader == Some(ordinal),
        }
    };
    ordinals.into_iter().map(summary).collect()
}

fn is_reached(cluster: &ClusterState, decision: &Decision) -> bool {
    let rests = decision.actions.is_empty() && decision.record == cluster.seen.record;
    let is_stopped = hold::is_asked_to_stop(cluster);
    let is_rest = rests && decision.record.operation.is_none() && decision.wake == Wake::Later;
    is_rest
        && cluster.desired.is_valid
        && !cluster.desired.is_paused
        && !hold::is_name_taken(cluster.seen)
        && !hold::is_mismatched(cluster.seen)
        && certificates::have_wanted_names(cluster)
        && !cluster
            .seen
            .volumes
            .elements()
            .any(|(_, volume)| volume.owner == Owner::Ours && volume.is_growing())
        && (is_stopped || (is_at_target(cluster) && housekeeping::auth_converged(cluster)))
}

/// Whether there are as many voters as are asked for, and their pods are made from what is asked for.
fn is_at_target(cluster: &ClusterState) -> bool {
    u32::try_from(cluster.voter_count()) == Ok(cluster.desired.replicas)
        && upgrade::target(cluster)
            .is_some_and(|target| target == cluster.template() && !upgrade::is_outdated(cluster, target))
}

const fn finding(about: &'static str, state: State, reason: &'static str) -> Finding {
    Finding { about, state, reason, ordinal: None }
}

/// Reasons of CertificatesReady with which something that is asked for does not come about until a person changes it:
/// changes of members, or root's password.
const NEED_A_PERSON: [&str; 3] =
    [reason::SECRET_UNREADABLE, reason::CERTIFICATE_INVALID, reason::ROOT_PASSWORD_UNSET];

/// Whether what the spec asks for serves and can be changed, or else the worst of what keeps it from that.
fn ready(cluster: &ClusterState, findings: &[Finding]) -> Finding {
    let in_the_way = [
        (condition::SPEC_VALID, State::False),
        (condition::DEGRADED, State::True),
        (condition::AVAILABLE, State::False),
        (condition::AVAILABLE, State::Unknown),
        (condition::CERTIFICATES_READY, State::False),
        (condition::PROGRESSING, State::True),
    ];
    let is_in_the_way =
        |one: &Finding| one.about != condition::CERTIFICATES_READY || NEED_A_PERSON.contains(&one.reason);
    let found = |(about, state)| {
        findings.iter().find(|one| one.about == about && one.state == state && is_in_the_way(one))
    };
    let of = |state, reason| finding(condition::READY, state, reason);
    match in_the_way.into_iter().find_map(found) {
        Some(worst) if worst.state == State::Unknown => of(State::Unknown, worst.reason),
        Some(worst) => Finding { ordinal: worst.ordinal, ..of(State::False, worst.reason) },
        None if cluster.desired.is_paused => of(is_at_target(cluster).into(), reason::PAUSED_BY_SPEC),
        None if is_at_target(cluster) && !preconditions::needs_a_person(cluster) => {
            of(State::True, reason::MEMBERS_READY)
        }
        None => of(State::False, reason::CHANGE_PENDING),
    }
}

fn available(cluster: &ClusterState) -> Finding {
    let of = |state, reason| finding(condition::AVAILABLE, state, reason);
    if cluster.membership().is_some() {
        of(State::True, reason::QUORUM_SERVES)
    } else if hold::is_asked_to_stop(cluster) {
        of(State::False, reason::STOPPED)
    } else if cluster.cluster_id().is_none() {
        of(State::False, reason::BOOTSTRAPPING)
    } else if recovery::is_quorum_lost(cluster) {
        of(State::False, reason::QUORUM_LOST)
    } else {
        of(State::Unknown, reason::UNREACHABLE)
    }
}

fn progressing(cluster: &ClusterState, decision: &Decision) -> Finding {
    let of = |state, reason| finding(condition::PROGRESSING, state, reason);
    let Some(operation) = decision.record.operation else {
        let reason = if hold::is_asked_to_stop(cluster) { reason::STOPPED } else { reason::UP_TO_DATE };
        return of(State::False, reason);
    };
    let waits_for_snapshot = upgrade::step(cluster) == Step::Prepare(Preparation::Snapshots);
    let reason = match operation.kind {
        OperationKind::Bootstrap => reason::BOOTSTRAPPING,
        OperationKind::Recover => reason::RECOVERING,
        OperationKind::Replace => reason::REPLACING,
        OperationKind::ScaleIn => reason::SCALING_IN,
        OperationKind::ScaleOut if !cluster.learners().is_empty() => reason::WAITING_FOR_LEARNER,
        OperationKind::ScaleOut => reason::SCALING_OUT,
        OperationKind::Upgrade if waits_for_snapshot => reason::WAITING_FOR_SNAPSHOT,
        OperationKind::Upgrade => reason::UPGRADING,
        OperationKind::Restart => reason::RESTARTING,
    };
    of(State::True, reason)
}

/// All that needs attention. What a member that is being made cannot do yet is none, until its time is over.
fn problems(cluster: &ClusterState, decision: &Decision) -> Vec<Problem> {
    let learner = cluster.learners().first().map(|(ordinal, _)| *ordinal);
    let is_stranger = |ordinal| {
        let told = cluster.seen.status(ordinal).found();
        told.is_some_and(|told| cluster.cluster_id().is_some_and(|ours| told.cluster_id != ours))
    };
    let hindered = hindered(cluster);
    let is_excused = |ordinal| {
        let is_new = learner == Some(ordinal) || is_being_made(cluster, decision, ordinal);
        is_new && !hindered.contains(&ordinal) || is_stranger(ordinal)
    };
    let down = members(cluster).into_iter().map(|member| (member.ordinal, member.is_healthy));
    let down =
        down.filter(|(ordinal, is_healthy)| !is_healthy && !is_excused(*ordinal)).map(|(ordinal, _)| ordinal);
    let down: Vec<_> = down.collect();
    let taken = hold::taken_volume(cluster.seen);
    let is_stopped = hold::is_asked_to_stop(cluster);
    let is_quorum_lost = recovery::is_quorum_lost(cluster) && !is_stopped;
    let is_stalled = upgrade::is_stalled(cluster);
    let counts_pods = !is_stopped && !is_quorum_lost && !is_stalled;
    let first = down.first().copied();
    let other = down.iter().copied().find(|ordinal| !hindered.contains(ordinal));
    // Nothing else can be put right without it.
    let lacks_right = cluster.seen.refused.as_ref().is_some_and(RefusedWrite::lacks_right);
    let severe = [
        (lacks_right, reason::FORBIDDEN, None),
        (hold::is_name_taken(cluster.seen), reason::NAME_TAKEN, None),
        (!hold::is_name_taken(cluster.seen) && taken.is_some(), reason::NAME_TAKEN, taken),
        (hold::is_mismatched(cluster.seen), reason::CLUSTER_ID_MISMATCH, None),
        (is_quorum_lost, reason::QUORUM_LOST, None),
        (cluster.seen.suspects_data(), reason::CORRUPT, None),
    ];
    let held = cluster.held_claims().map(|ordinal| (true, reason::CLAIM_TERMINATING, Some(ordinal)));
    let others = [
        (cluster.seen.has_alarm(AlarmKind::NoSpace), reason::DATABASE_QUOTA_EXCEEDED, None),
        (cluster.seen.refused.is_some() && !lacks_right, reason::APPLY_FAILED, None),
        (is_stalled, reason::UPGRADE_STALLED, first),
        (learner.is_some() && cluster.seen.operation_age.is_past(), reason::LEARNER_STUCK, learner),
    ];
    let hindered = hindered.iter().map(|ordinal| (counts_pods, reason::POD_NOT_RUNNING, Some(*ordinal)));
    let down = (counts_pods && other.is_some(), reason::MEMBER_DOWN, other);
    let all = severe.into_iter().chain(held).chain(others).chain(hindered).chain([down]);
    let all = all.filter(|(holds, ..)| *holds);
    all.map(|(_, reason, ordinal)| Problem { reason, ordinal }).collect()
}

/// The ordinals whose pods do not come to run, of those that have to have one, members or not.
fn hindered(cluster: &ClusterState) -> Vec<Ordinal> {
    let is_up = |ordinal: Ordinal| cluster.status(ordinal).is_some();
    cluster.seen.hindered.all().filter(|ordinal| !is_up(*ordinal)).collect()
}

/// Whether a member is being made that has not served yet, is in time, and has a pod that may still come up.
fn is_being_made(cluster: &ClusterState, decision: &Decision, ordinal: Ordinal) -> bool {
    let fails = cluster.seen.pod(ordinal).is_known_and(|pod| matches!(pod.phase, PodPhase::Failing(_)));
    !fails
        && decision.record.operation.is_some_and(|operation| {
            matches!(operation.kind, OperationKind::Bootstrap | OperationKind::ScaleOut)
                && operation.target == Target::Member(ordinal)
                && !cluster.seen.operation_age.is_past()
        })
}

/// Whether something needs attention. A cluster of which no member serves is not called healthy.
fn degraded(cluster: &ClusterState, members: &[MemberSummary], problems: &[Problem]) -> Finding {
    let of = |state, reason| finding(condition::DEGRADED, state, reason);
    match problems.first() {
        Some(worst) => Finding { ordinal: worst.ordinal, ..of(State::True, worst.reason) },
        None if members.iter().any(|member| member.is_healthy) => of(State::False, reason::HEALTHY),
        None if hold::is_asked_to_stop(cluster) => of(State::False, reason::STOPPED),
        None if cluster.cluster_id().is_none() => of(State::False, reason::BOOTSTRAPPING),
        None => of(State::Unknown, reason::UNREACHABLE),
    }
}

fn quorum_lost(cluster: &ClusterState) -> Finding {
    let of = |state, reason| finding(condition::QUORUM_LOST, state, reason);
    if cluster.membership().is_some() {
        of(State::False, reason::QUORUM_PRESENT)
    } else if hold::is_asked_to_stop(cluster) {
        of(State::False, reason::STOPPED)
    } else if cluster.cluster_id().is_none() {
        of(State::False, reason::BOOTSTRAPPING)
    } else if recovery::is_quorum_lost(cluster) {
        of(State::True, reason::QUORUM_LOST)
    } else {
        of(State::Unknown, reason::UNREACHABLE)
    }
}

fn certificates_ready(cluster: &ClusterState) -> Finding {
    let (state, reason) = match cluster.seen.certificates {
        Certificates::Disabled => (State::True, reason::TLS_DISABLED),
        Certificates::Valid if !certificates::have_wanted_names(cluster) => {
            (State::False, reason::CERTIFICATES_PENDING)
        }
        Certificates::Valid => root_password(cluster),
        _ if !certificates::actions(cluster).is_empty() => (State::False, reason::CERTIFICATES_PENDING),
        Certificates::Expiring => (State::False, reason::CERTIFICATE_EXPIRING),
        Certificates::Missing => (State::False, reason::SECRET_UNREADABLE),
        Certificates::Unfit => (State::False, reason::CERTIFICATE_INVALID),
    };
    finding(condition::CERTIFICATES_READY, state, reason)
}

/// What the password of root makes of certificates that are valid.
fn root_password(cluster: &ClusterState) -> (State, &'static str) {
    let has_served = cluster.cluster_id().is_some() && cluster.desired.replicas > 0;
    match &cluster.seen.root_password {
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

/// A version that members may not be brought to is a fault of the spec, even where the gate let it in; so is whatever
/// would drop the data.
fn spec_valid(cluster: &ClusterState) -> Finding {
    let of = |state, reason| finding(condition::SPEC_VALID, state, reason);
    let exists = cluster.cluster_id().is_some();
    let stops_memory = cluster.desired.is_in_memory && cluster.desired.replicas == 0 && exists;
    match upgrade::step(cluster) {
        _ if !cluster.desired.is_valid || stops_memory => of(State::False, reason::INVALID),
        _ if recovery::drops_data(cluster) => of(State::False, reason::WOULD_LOSE_DATA),
        Step::Refused(Refusal::DropsData) => of(State::False, reason::WOULD_LOSE_DATA),
        Step::Refused(_) if exists => of(State::False, reason::INVALID),
        _ if housekeeping::fixed_volumes(cluster.desired.volume_size, cluster.seen).next().is_some() => {
            of(State::True, reason::VOLUME_CANNOT_GROW)
        }
        _ => of(State::True, reason::VALID),
    }
}

fn paused(cluster: &ClusterState) -> Finding {
    let reason = if cluster.desired.is_paused { reason::PAUSED_BY_SPEC } else { reason::NOT_PAUSED };
    finding(condition::PAUSED, State::from(cluster.desired.is_paused), reason)
}
