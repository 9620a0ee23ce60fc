use super::*;
use crate::controllers::object_metrics::Line as _;
use crate::kinds::etcdcluster::observation::{
    Age, Alarm, Fact, Operation, OperationKind, Ordinal, Phase, Target,
};
use crate::kinds::etcdcluster::plan::plan;
use crate::kinds::etcdcluster::resources::tests::plain;
use crate::kinds::etcdcluster::spec::Spec;
use crate::kinds::etcdcluster::status::tests::{answer, id, second, seen, status};

fn wanted(cluster: &Spec) -> Desired {
    cluster.desired(None)
}

/// The lines of the page, without namespace and name; those of `metric` where one is given.
fn lines(cluster: &Spec, seen: &Observation, tally: &Tally, metric: Option<&str>) -> Vec<String> {
    let desired = wanted(cluster);
    let plan = plan(&desired, seen);
    let status = status(cluster, &EtcdClusterStatus::default(), seen);
    let certificates = BTreeMap::from([("c-ca".to_owned(), second(900))]);
    let facts = Facts {
        name: "c",
        desired: &desired,
        seen,
        plan: &plan,
        status: &status,
        certificates: &certificates,
        tally,
        audited: Some(second(50)),
    };
    let line = of(&facts);
    let known = |name: &str| Line::METRICS.iter().any(|metric| metric.name == name);
    assert!(line.0.iter().all(|(name, _)| known(name)), "{line:?}");
    let text = |name: &str, Sample { labels, value }: Sample| {
        let labels: Vec<_> = labels.iter().map(|(label, text)| format!("{label}={text}")).collect();
        format!("{name}{{{}}} {value}", labels.join(","))
    };
    let metrics = Line::METRICS.iter().filter(|one| metric.is_none_or(|metric| metric == one.name));
    metrics.flat_map(|one| line.samples(one.name).into_iter().map(|sample| text(one.name, sample))).collect()
}

#[test]
fn a_condition_has_a_series_for_each_status_and_one_for_its_reason() {
    let cluster = plain();
    let seen = seen(&cluster);
    let of = |metric| lines(&cluster, &seen, &Tally::default(), Some(metric));
    let said = of(CONDITION);
    assert_eq!(said.len(), 3 * ConditionType::ALL.len());
    let ready = [
        "condition{condition=Ready,status=true} 1",
        "condition{condition=Ready,status=false} 0",
        "condition{condition=Ready,status=unknown} 0",
    ];
    assert_eq!(said[..3], ready);
    let reasons = of(REASON);
    assert_eq!(reasons.len(), ConditionType::ALL.len());
    assert_eq!(reasons[0], "condition_reason_info{condition=Ready,reason=MembersReady} 1");
    assert_eq!(of(PROBLEM), [""; 0]);
    let mut full = seen.clone();
    full.alarms = Fact::Known(vec![Alarm { member: id(1), kind: AlarmKind::NoSpace }]);
    assert_eq!(
        lines(&cluster, &full, &Tally::default(), Some(PROBLEM)),
        ["problem{problem=DatabaseQuotaExceeded} 1"]
    );
}

#[test]
fn a_cluster_at_rest_has_these_numbers_and_no_others() {
    let cluster = plain();
    let mut seen = seen(&cluster);
    seen.audit = Fact::Known(Audit::Equal);
    let mut tally = Tally::default();
    tally.look(&seen, &plan(&wanted(&cluster), &seen), second(90));
    tally.count("member-add", "done");
    tally.count("member-add", "done");
    let mut all = lines(&cluster, &seen, &tally, None);
    all.retain(|line| !line.starts_with("condition"));
    assert_eq!(
        all,
        [
            "desired_replicas{} 3",
            "members{role=voter} 3",
            "members{role=learner} 0",
            "members{role=unstarted} 0",
            "ready_members{} 3",
            "has_quorum{} 1",
            "has_leader{} 1",
            "leader_changes{} 0",
            "actions{action=member-add,result=done} 2",
            "alarms{type=NOSPACE} 0",
            "alarms{type=CORRUPT} 0",
            "database_size_bytes{member=c-0} 4096",
            "database_size_bytes{member=c-1} 4096",
            "database_size_bytes{member=c-2} 4096",
            "database_in_use_bytes{member=c-0} 2048",
            "database_in_use_bytes{member=c-1} 2048",
            "database_in_use_bytes{member=c-2} 2048",
            "database_quota_bytes{member=c-0} 2147483648",
            "database_quota_bytes{member=c-1} 2147483648",
            "database_quota_bytes{member=c-2} 2147483648",
            "last_quorum_read_timestamp_seconds{} 90",
            "certificate_expiry_timestamp_seconds{secret=c-ca} 900",
            "data_consistent{} 1",
            "last_consistency_check_timestamp_seconds{} 50",
        ]
    );
}

#[test]
fn what_could_not_be_found_out_has_no_series() {
    let cluster = plain();
    let mut dark = seen(&cluster);
    dark.quorum_loss_age = Age::Fresh;
    for status in dark.statuses.values_mut() {
        *status = Fact::Unknown;
    }
    (dark.membership, dark.last_membership) = (Fact::Unknown, Fact::Unknown);
    (dark.alarms, dark.cluster_version) = (Fact::Unknown, Fact::Unknown);
    let tally = Tally::default();
    for metric in [MEMBERS, ALARMS, SIZE, IN_USE, QUOTA, LAST_READ, DATA_CONSISTENT] {
        assert_eq!(lines(&cluster, &dark, &tally, Some(metric)), [""; 0], "{metric}");
    }
    let conditions = lines(&cluster, &dark, &tally, Some(CONDITION));
    let unknown = "condition{condition=Available,status=unknown} 1".to_owned();
    assert!(conditions.contains(&unknown), "{conditions:?}");
    assert_eq!(lines(&cluster, &dark, &tally, Some(READY)), ["ready_members{} 0"]);
    assert_eq!(lines(&cluster, &dark, &tally, Some(HAS_QUORUM)), ["has_quorum{} 0"]);
    assert_eq!(lines(&cluster, &dark, &tally, Some(HAS_LEADER)), ["has_leader{} 0"]);
}

#[test]
fn a_cluster_that_is_not_there_yet_lacks_no_quorum() {
    let cluster = plain();
    let mut seen = seen(&cluster);
    seen.record.cluster_id = None;
    (seen.membership, seen.last_membership) = (Fact::Unknown, Fact::Unknown);
    for metric in [HAS_QUORUM, HAS_LEADER] {
        assert_eq!(lines(&cluster, &seen, &Tally::default(), Some(metric)), [""; 0], "{metric}");
    }
}

#[test]
fn alarms_an_operation_and_data_that_differ_are_numbers_too() {
    let cluster = plain();
    let mut seen = seen(&cluster);
    seen.alarms = Fact::Known(vec![Alarm { member: id(1), kind: AlarmKind::NoSpace }]);
    seen.audit = Fact::Known(Audit::Different { revision: 9, minority: [Ordinal(2)].into() });
    let (kind, target) = (OperationKind::ScaleOut, Target::Member(Ordinal(3)));
    seen.record.operation = Some(Operation { kind, target, phase: Phase::Adding });
    let lines = |metric| lines(&cluster, &seen, &Tally::default(), Some(metric));
    assert_eq!(lines(ALARMS), ["alarms{type=NOSPACE} 1", "alarms{type=CORRUPT} 0"]);
    assert_eq!(lines(DATA_CONSISTENT), ["data_consistent{} 0"]);
    assert_eq!(lines(OPERATION), ["operation_start_timestamp_seconds{type=ScaleOut} 1"]);
}

#[test]
fn a_quorum_that_no_member_could_be_asked_about_has_no_number() {
    let cluster = plain();
    let mut seen = seen(&cluster);
    seen.membership = Fact::Unknown;
    let lines = |seen: &Observation| {
        [HAS_QUORUM, HAS_LEADER].map(|metric| lines(&cluster, seen, &Tally::default(), Some(metric)).len())
    };
    assert_eq!(lines(&seen), [1, 1], "no majority answered");
    seen.pods = Fact::Unknown;
    seen.statuses.clear();
    assert_eq!(lines(&seen), [0, 0]);
}

#[test]
fn another_leader_is_counted_and_a_missing_one_is_not() {
    let cluster = plain();
    let mut tally = Tally::default();
    let mut look = |leader: Option<u32>| {
        let mut seen = seen(&cluster);
        for ordinal in 0..3 {
            let status = MemberStatus { leader: leader.map(id), ..answer(ordinal) };
            seen.statuses.insert(Ordinal(ordinal), Fact::Known(status));
        }
        tally.look(&seen, &plan(&wanted(&cluster), &seen), second(1));
        tally.leader_changes
    };
    let counted: Vec<_> = [Some(1), Some(1), None, Some(1), Some(2), None, Some(0)].map(&mut look).to_vec();
    assert_eq!(counted, [0, 0, 0, 0, 1, 1, 2]);
}
