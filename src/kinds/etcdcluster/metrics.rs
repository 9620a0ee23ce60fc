//! The metrics of EtcdClusters. Pure.
//!
//! Guarantees: the metrics are what the same reconciliation observed, planned and reports; what could not be found out
//! has no series rather than a wrong one. Labels are of closed sets, but for the names of members and Secrets, of which
//! a cluster has few.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use prometheus_client::registry::Registry;

use super::names;
use super::observation::{AlarmKind, Audit, Desired, MemberId, MemberStatus, Observation};
use super::plan::{MemberSummary, Plan};
use crate::api::condition::State;
use crate::controllers::metrics;
use crate::controllers::object_metrics::{
    self, Metric, ObjectMetricsRegistries, Rows, Sample, counter, gauge,
};
use crate::kinds::etcdcluster::api::status::ConditionType;
use crate::kinds::etcdcluster::api::v1::EtcdClusterStatus;
use crate::kinds::etcdcluster::observation::Role;

/// All of them. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// Where operators show how their EtcdClusters are.
    objects: ObjectMetricsRegistries<Line>,
}

impl metrics::KindMetrics for Metrics {
    type Line = Line;

    fn objects(&self) -> &ObjectMetricsRegistries<Line> {
        &self.objects
    }
}

impl metrics::Metrics for Metrics {
    fn register(&self, registry: &mut Registry) {
        let etcdcluster = registry.sub_registry_with_prefix("gatehouse_etcdcluster");
        etcdcluster.register_collector(Box::new(self.objects.clone()));
    }
}

/// Statuses of conditions, by the names that kube-state-metrics has for them.
const STATES: [(State, &str); 3] =
    [(State::True, "true"), (State::False, "false"), (State::Unknown, "unknown")];

const DESIRED: &str = "desired_replicas";
const MEMBERS: &str = "members";
const READY: &str = "ready_members";
const HAS_QUORUM: &str = "has_quorum";
const HAS_LEADER: &str = "has_leader";
const LEADER_CHANGES: &str = "leader_changes";
const CONDITION: &str = "condition";
const REASON: &str = "condition_reason_info";
const PROBLEM: &str = "problem";
const OPERATION: &str = "operation_start_timestamp_seconds";
const ACTIONS: &str = "actions";
const ALARMS: &str = "alarms";
const SIZE: &str = "database_size_bytes";
const IN_USE: &str = "database_in_use_bytes";
const QUOTA: &str = "database_quota_bytes";
const LAST_READ: &str = "last_quorum_read_timestamp_seconds";
const CERTIFICATES: &str = "certificate_expiry_timestamp_seconds";
const DATA_CONSISTENT: &str = "data_consistent";
const AUDITED: &str = "last_consistency_check_timestamp_seconds";
const BACKED_UP: &str = "last_backup_timestamp_seconds";

/// What is shown of an EtcdCluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line(Rows);

impl object_metrics::Line for Line {
    const METRICS: &'static [Metric] = &[
        gauge(DESIRED, "Voting members that the spec asks for"),
        gauge(MEMBERS, "Members that etcd counts, by role"),
        gauge(READY, "Members that serve"),
        gauge(HAS_QUORUM, "1 where a majority of the voters has just confirmed the member list"),
        gauge(HAS_LEADER, "1 where a member leads"),
        counter(LEADER_CHANGES, "Observed changes of the leader"),
        gauge(CONDITION, "1 for the status that a condition has, 0 for the other two"),
        gauge(REASON, "1 for the reason that a condition has"),
        gauge(PROBLEM, "1 for each thing that needs attention, such as DatabaseQuotaExceeded"),
        gauge(OPERATION, "When the change that is under way began, in seconds since 1970"),
        counter(ACTIONS, "Actions carried out, by action and result"),
        gauge(ALARMS, "Alarms that etcd has armed"),
        gauge(SIZE, "Size of a member's database file"),
        gauge(IN_USE, "Bytes of that file in use"),
        gauge(QUOTA, "Size that the file may grow to"),
        gauge(LAST_READ, "When a majority last confirmed the member list, in seconds since 1970"),
        gauge(CERTIFICATES, "When the certificate in a Secret ends, in seconds since 1970"),
        gauge(
            DATA_CONSISTENT,
            "1 where the voters' data were the same when they were last compared, 0 where not",
        ),
        gauge(AUDITED, "When the voters' data were last compared, in seconds since 1970"),
        gauge(BACKED_UP, "When a backup was last verified, in seconds since 1970"),
    ];

    fn samples(&self, metric: &str) -> Vec<Sample> {
        object_metrics::samples(&self.0, metric)
    }
}

/// The counters of a cluster, by the process that reconciles it.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    leader: Option<MemberId>,
    leader_changes: i64,
    actions: BTreeMap<(&'static str, &'static str), i64>,
    last_read: Option<Timestamp>,
}

impl Tally {
    /// Counts what a reconciliation saw at `now`.
    pub fn look(&mut self, seen: &Observation, plan: &Plan, now: Timestamp) {
        if seen.membership.known().is_some() {
            self.last_read = Some(now);
        }
        let leader = plan.summary.leader.and_then(|ordinal| seen.status(ordinal).found());
        let Some(leader) = leader.map(|status| status.member_id) else { return };
        if self.leader.replace(leader).is_some_and(|before| before != leader) {
            self.leader_changes = self.leader_changes.saturating_add(1);
        }
    }

    /// Counts an action and its result.
    pub fn count(&mut self, action: &'static str, outcome: &'static str) {
        let counted = self.actions.entry((action, outcome)).or_default();
        *counted = counted.saturating_add(1);
    }
}

/// The source of the metrics.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The cluster's name.
    pub name: &'a str,
    /// What is asked for.
    pub desired: &'a Desired,
    /// What was seen.
    pub seen: &'a Observation,
    /// What is done about it.
    pub plan: &'a Plan,
    /// What is said.
    pub status: &'a EtcdClusterStatus,
    /// When certificates end, by Secret.
    pub certificates: &'a BTreeMap<String, Timestamp>,
    /// What has been counted.
    pub tally: &'a Tally,
    /// When the members' data were last compared.
    pub audited: Option<Timestamp>,
}

/// The numbers.
#[must_use]
pub fn of(facts: &Facts) -> Line {
    let Facts { desired, seen, plan, tally, .. } = facts;
    let mut rows = vec![(DESIRED, Sample::plain(desired.replicas.into()))];
    let mut plain = |name, value: Option<i64>| rows.extend(value.map(|value| (name, Sample::plain(value))));
    let is_expected = seen.record.cluster_id.is_some() && desired.replicas > 0;
    plain(READY, count(plan.summary.ready_replicas));
    // Without the list of pods no member was asked.
    let is_asked = is_expected && !seen.pods.is_unknown();
    plain(HAS_QUORUM, is_asked.then(|| seen.membership.known().is_some().into()));
    plain(HAS_LEADER, is_asked.then(|| plan.summary.leader.is_some().into()));
    plain(LEADER_CHANGES, Some(tally.leader_changes));
    plain(LAST_READ, tally.last_read.map(Timestamp::as_second));
    plain(DATA_CONSISTENT, seen.audit.known().map(|audit| (*audit == Audit::Equal).into()));
    plain(AUDITED, facts.audited.map(Timestamp::as_second));
    let backed_up =
        facts.status.backup.as_ref().and_then(|backup| backup.last_success.as_ref()?.time.as_ref());
    plain(BACKED_UP, backed_up.map(|time| time.0.as_second()));
    rows.extend(labelled(facts));
    rows.extend(members(plan));
    rows.extend(databases(facts.name, seen));
    Line(rows)
}

fn count(count: usize) -> Option<i64> {
    i64::try_from(count).ok()
}

fn row(name: &'static str, labels: &[(&'static str, &str)], value: i64) -> (&'static str, Sample) {
    (name, Sample::labelled(labels, value))
}

/// Conditions, the operation, actions, alarms and certificates.
fn labelled(facts: &Facts) -> Rows {
    let said =
        facts.status.conditions.iter().flatten().filter(|one| ConditionType::named(&one.type_).is_some());
    let conditions = said.flat_map(|one| {
        let about = ("condition", one.type_.as_str());
        let states = STATES.into_iter().map(move |(state, name)| {
            row(CONDITION, &[about, ("status", name)], (one.status == state.as_str()).into())
        });
        states.chain([row(REASON, &[about, ("reason", one.reason.as_str())], 1)])
    });
    let problems: BTreeSet<_> =
        facts.plan.summary.problems.iter().map(|problem| problem.reason.as_str()).collect();
    let problems = problems.into_iter().map(|problem| (PROBLEM, Sample::problem(problem)));
    let operation = facts.status.operation.as_ref().and_then(|operation| {
        let began = operation.started_at.as_ref()?.0.as_second();
        Some(row(OPERATION, &[("type", operation.kind.as_deref()?)], began))
    });
    let actions = facts.tally.actions.iter();
    let actions = actions.map(|((action, outcome), counted)| {
        row(ACTIONS, &[("action", action), ("result", outcome)], *counted)
    });
    let armed = |kind: AlarmKind| {
        let alarms = facts.seen.alarms.known()?.iter().filter(|alarm| alarm.kind == kind);
        Some(row(ALARMS, &[("type", kind.as_str())], count(alarms.count())?))
    };
    let alarms = AlarmKind::ALL.into_iter().filter_map(armed);
    let ends = facts.certificates.iter();
    let ends = ends.map(|(secret, end)| row(CERTIFICATES, &[("secret", secret)], end.as_second()));
    conditions.chain(problems).chain(operation).chain(actions).chain(alarms).chain(ends).collect()
}

/// How many of each role etcd counts, where it says so.
fn members(plan: &Plan) -> Rows {
    if plan.summary.replicas.is_none() {
        return Vec::new();
    }
    let of = |role: &str, wanted: fn(&MemberSummary) -> bool| {
        let counted = plan.summary.members.iter().filter(|member| wanted(member)).count();
        Some(row(MEMBERS, &[("role", role)], count(counted)?))
    };
    let rows = [
        of("voter", |member| member.role == Some(Role::Voter)),
        of("learner", |member| member.role == Some(Role::Learner)),
        of("unstarted", |member| member.role.is_none() && !member.is_started),
    ];
    rows.into_iter().flatten().collect()
}

/// One of the sizes that a member tells.
type SizeOf = fn(&MemberStatus) -> u64;

/// The databases of the members that answered.
fn databases(name: &str, seen: &Observation) -> Rows {
    let sizes: [(&str, SizeOf); 3] = [
        (SIZE, |status| status.db_size),
        (IN_USE, |status| status.db_size_in_use),
        (QUOTA, |status| status.quota),
    ];
    let answers: Vec<_> = seen.answers().collect();
    let rows = sizes.iter().flat_map(|(metric, size)| {
        answers.iter().filter_map(move |(ordinal, status)| {
            let member = names::member(name, *ordinal);
            Some(row(metric, &[("member", &member)], i64::try_from(size(status)).ok()?))
        })
    });
    rows.collect()
}

#[cfg(test)]
mod tests;
