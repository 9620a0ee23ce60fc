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
use crate::kinds::etcdcluster::api::status::{ConditionType, Reason};
use crate::kinds::etcdcluster::observation::{
    AlarmKind, Certificates, Fact, MemberId, Minor, OperationKind, Ordinal, Owner, PodPhase, RefusedWrite,
    Role, RootPassword, Target, Version,
};

/// One condition, without its words for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Finding {
    /// The condition's type.
    pub about: ConditionType,
    /// Whether it holds.
    pub state: State,
    /// Why, in one word.
    pub reason: Reason,
    /// The member that it is about.
    pub ordinal: Option<Ordinal>,
}

/// What needs attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Problem {
    /// What it is, in one word.
    pub reason: Reason,
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

const fn finding(about: ConditionType, state: State, reason: Reason) -> Finding {
    Finding { about, state, reason, ordinal: None }
}

/// Reasons of CertificatesReady with which something that is asked for does not come about until a person changes it:
/// changes of members, or root's password.
const NEED_A_PERSON: [Reason; 3] =
    [Reason::SecretUnreadable, Reason::CertificateInvalid, Reason::RootPasswordUnset];

/// Whether what the spec asks for serves and can be changed, or else the worst of what keeps it from that.
fn ready(cluster: &ClusterState, findings: &[Finding]) -> Finding {
    let in_the_way = [
        (ConditionType::SpecValid, State::False),
        (ConditionType::Degraded, State::True),
        (ConditionType::Available, State::False),
        (ConditionType::Available, State::Unknown),
        (ConditionType::CertificatesReady, State::False),
        (ConditionType::Progressing, State::True),
    ];
    let is_in_the_way =
        |one: &Finding| one.about != ConditionType::CertificatesReady || NEED_A_PERSON.contains(&one.reason);
    let found = |(about, state)| {
        findings.iter().find(|one| one.about == about && one.state == state && is_in_the_way(one))
    };
    let of = |state, reason| finding(ConditionType::Ready, state, reason);
    match in_the_way.into_iter().find_map(found) {
        Some(worst) if worst.state == State::Unknown => of(State::Unknown, worst.reason),
        Some(worst) => Finding { ordinal: worst.ordinal, ..of(State::False, worst.reason) },
        None if cluster.desired.is_paused => of(is_at_target(cluster).into(), Reason::PausedBySpec),
        None if is_at_target(cluster) && !preconditions::needs_a_person(cluster) => {
            of(State::True, Reason::MembersReady)
        }
        None => of(State::False, Reason::ChangePending),
    }
}

fn available(cluster: &ClusterState) -> Finding {
    let of = |state, reason| finding(ConditionType::Available, state, reason);
    if cluster.membership().is_some() {
        of(State::True, Reason::QuorumServes)
    } else if hold::is_asked_to_stop(cluster) {
        of(State::False, Reason::Stopped)
    } else if cluster.cluster_id().is_none() {
        of(State::False, Reason::Bootstrapping)
    } else if recovery::is_quorum_lost(cluster) {
        of(State::False, Reason::QuorumLost)
    } else {
        of(State::Unknown, Reason::Unreachable)
    }
}

fn progressing(cluster: &ClusterState, decision: &Decision) -> Finding {
    let of = |state, reason| finding(ConditionType::Progressing, state, reason);
    let Some(operation) = decision.record.operation else {
        let reason = if hold::is_asked_to_stop(cluster) { Reason::Stopped } else { Reason::UpToDate };
        return of(State::False, reason);
    };
    let waits_for_snapshot = upgrade::step(cluster) == Step::Prepare(Preparation::Snapshots);
    let reason = match operation.kind {
        OperationKind::Bootstrap => Reason::Bootstrapping,
        OperationKind::Recover => Reason::Recovering,
        OperationKind::Replace => Reason::Replacing,
        OperationKind::ScaleIn => Reason::ScalingIn,
        OperationKind::ScaleOut if !cluster.learners().is_empty() => Reason::WaitingForLearner,
        OperationKind::ScaleOut => Reason::ScalingOut,
        OperationKind::Upgrade if waits_for_snapshot => Reason::WaitingForSnapshot,
        OperationKind::Upgrade => Reason::Upgrading,
        OperationKind::Restart => Reason::Restarting,
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
        (lacks_right, Reason::Forbidden, None),
        (hold::is_name_taken(cluster.seen), Reason::NameTaken, None),
        (!hold::is_name_taken(cluster.seen) && taken.is_some(), Reason::NameTaken, taken),
        (hold::is_mismatched(cluster.seen), Reason::ClusterIDMismatch, None),
        (is_quorum_lost, Reason::QuorumLost, None),
        (cluster.seen.suspects_data(), Reason::Corrupt, None),
    ];
    let held = cluster.held_claims().map(|ordinal| (true, Reason::ClaimTerminating, Some(ordinal)));
    let others = [
        (cluster.seen.has_alarm(AlarmKind::NoSpace), Reason::DatabaseQuotaExceeded, None),
        (cluster.seen.refused.is_some() && !lacks_right, Reason::ApplyFailed, None),
        (is_stalled, Reason::UpgradeStalled, first),
        (learner.is_some() && cluster.seen.operation_age.is_past(), Reason::LearnerStuck, learner),
    ];
    let hindered = hindered.iter().map(|ordinal| (counts_pods, Reason::PodNotRunning, Some(*ordinal)));
    let down = (counts_pods && other.is_some(), Reason::MemberDown, other);
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
    let of = |state, reason| finding(ConditionType::Degraded, state, reason);
    match problems.first() {
        Some(worst) => Finding { ordinal: worst.ordinal, ..of(State::True, worst.reason) },
        None if members.iter().any(|member| member.is_healthy) => of(State::False, Reason::Healthy),
        None if hold::is_asked_to_stop(cluster) => of(State::False, Reason::Stopped),
        None if cluster.cluster_id().is_none() => of(State::False, Reason::Bootstrapping),
        None => of(State::Unknown, Reason::Unreachable),
    }
}

fn quorum_lost(cluster: &ClusterState) -> Finding {
    let of = |state, reason| finding(ConditionType::QuorumLost, state, reason);
    if cluster.membership().is_some() {
        of(State::False, Reason::QuorumPresent)
    } else if hold::is_asked_to_stop(cluster) {
        of(State::False, Reason::Stopped)
    } else if cluster.cluster_id().is_none() {
        of(State::False, Reason::Bootstrapping)
    } else if recovery::is_quorum_lost(cluster) {
        of(State::True, Reason::QuorumLost)
    } else {
        of(State::Unknown, Reason::Unreachable)
    }
}

fn certificates_ready(cluster: &ClusterState) -> Finding {
    let (state, reason) = match cluster.seen.certificates {
        Certificates::Disabled => (State::True, Reason::TLSDisabled),
        Certificates::Valid if !certificates::have_wanted_names(cluster) => {
            (State::False, Reason::CertificatesPending)
        }
        Certificates::Valid => root_password(cluster),
        _ if !certificates::actions(cluster).is_empty() => (State::False, Reason::CertificatesPending),
        Certificates::Expiring => (State::False, Reason::CertificateExpiring),
        Certificates::Missing => (State::False, Reason::SecretUnreadable),
        Certificates::Unfit => (State::False, Reason::CertificateInvalid),
    };
    finding(ConditionType::CertificatesReady, state, reason)
}

/// What the password of root makes of certificates that are valid.
fn root_password(cluster: &ClusterState) -> (State, Reason) {
    let has_served = cluster.cluster_id().is_some() && cluster.desired.replicas > 0;
    match &cluster.seen.root_password {
        Fact::Known(RootPassword::Outdated { .. }) => (State::False, Reason::RootPasswordOutdated),
        Fact::Known(RootPassword::Barred | RootPassword::Unreadable(_)) => {
            (State::False, Reason::RootPasswordUnset)
        }
        Fact::Unknown if has_served => (State::Unknown, Reason::Unreachable),
        Fact::Known(RootPassword::Current) | Fact::Absent | Fact::Unknown => {
            (State::True, Reason::CertificatesValid)
        }
    }
}

/// A version that members may not be brought to is a fault of the spec, even where the gate let it in; so is whatever
/// would drop the data.
fn spec_valid(cluster: &ClusterState) -> Finding {
    let of = |state, reason| finding(ConditionType::SpecValid, state, reason);
    let exists = cluster.cluster_id().is_some();
    let stops_memory = cluster.desired.is_in_memory && cluster.desired.replicas == 0 && exists;
    match upgrade::step(cluster) {
        _ if !cluster.desired.is_valid || stops_memory => of(State::False, Reason::SpecInvalid),
        _ if recovery::drops_data(cluster) => of(State::False, Reason::WouldLoseData),
        Step::Refused(Refusal::DropsData) => of(State::False, Reason::WouldLoseData),
        Step::Refused(_) if exists => of(State::False, Reason::SpecInvalid),
        _ if housekeeping::fixed_volumes(cluster.desired.volume_size, cluster.seen).next().is_some() => {
            of(State::True, Reason::VolumeCannotGrow)
        }
        _ => of(State::True, Reason::Valid),
    }
}

fn paused(cluster: &ClusterState) -> Finding {
    let reason = if cluster.desired.is_paused { Reason::PausedBySpec } else { Reason::NotPaused };
    finding(ConditionType::Paused, State::from(cluster.desired.is_paused), reason)
}
