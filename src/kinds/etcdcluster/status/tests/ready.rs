//! What Ready and Degraded say.

use super::*;
use crate::kinds::etcdcluster::observation::Desired;
use crate::kinds::etcdcluster::plan::Plan;

/// Ready and Degraded, as the status has them.
fn told(cluster: &Spec, is_valid: bool, seen: &Observation) -> (String, String) {
    let plan: Plan = plan(&Desired { is_valid, ..cluster.desired(None) }, seen);
    let said = said(&of(cluster, after(&EtcdClusterStatus::default(), 1), seen, &plan));
    (said["Ready"].clone(), said["Degraded"].clone())
}

fn of_three(spec: &serde_json::Value) -> Spec {
    let mut all = json!({"replicas": 3, "version": "3.6.16", "tls": {"mode": "Disabled"}});
    json_patch::merge(&mut all, spec);
    cluster(&all)
}

/// Nothing has been made of it.
fn unmade() -> Observation {
    let seen = seen(&plain());
    Observation {
        record: Record::default(),
        stateful_set: Fact::Absent,
        config: Fact::Absent,
        budget: Fact::Absent,
        pods: Fact::Known(BTreeMap::new()),
        volumes: Fact::Known(BTreeMap::new()),
        statuses: BTreeMap::new(),
        membership: Fact::Unknown,
        last_membership: Fact::Unknown,
        alarms: Fact::Unknown,
        cluster_version: Fact::Unknown,
        ..seen
    }
}

const BEING_MADE: &str = "False Bootstrapping: no member serves yet: the first one is being made";

const HEALTHY: &str = "False Healthy: all members serve and no alarm is armed";

#[test]
fn ready_is_what_the_spec_asks_for_or_else_the_worst_that_holds() {
    let cluster = plain();
    assert_eq!(
        told(&cluster, true, &seen(&cluster)),
        ("True MembersReady: 3 of 3 members serve".to_owned(), HEALTHY.to_owned())
    );
    let mut refused = cluster.clone();
    refused.refused = vec![Path::spec().at("options"), Path::spec().at("pod")];
    let (ready, degraded) = told(&refused, false, &seen(&cluster));
    let refused =
        "False SpecInvalid: the webhook would refuse spec.options and spec.pod: members are left as they are";
    assert_eq!((ready.as_str(), degraded.as_str()), (refused, HEALTHY));
    let (ready, degraded) = told(&of_three(&json!({"replicas": 0})), true, &unmade());
    let stopped = "False Stopped: the cluster is stopped";
    assert_eq!((ready.as_str(), degraded.as_str()), (stopped, stopped));
    let (ready, _) = told(&cluster, true, &without_the_last(&cluster, PodPhase::Starting));
    assert!(ready.starts_with("False MemberDown: c-2"), "{ready}");
}

#[test]
fn a_change_that_has_not_begun_is_not_ready() {
    let asked = of_three(&json!({"replicas": 5}));
    let seen = seen(&plain());
    let (ready, degraded) = told(&asked, true, &seen);
    assert!(ready.starts_with("False ScalingOut: ") && degraded == HEALTHY, "{ready}, {degraded}");
    let paused = of_three(&json!({"replicas": 5, "paused": true}));
    let (ready, _) = told(&paused, true, &seen);
    assert_eq!(ready, "False PausedBySpec: reconciliation is paused: spec.paused is true");
    let (ready, _) = told(&of_three(&json!({"paused": true})), true, &seen);
    assert_eq!(ready, "True PausedBySpec: reconciliation is paused: spec.paused is true");
}

#[test]
fn a_cluster_that_is_being_made_is_not_degraded_until_its_time_is_over() {
    let cluster = plain();
    let (ready, degraded) = told(&cluster, true, &unmade());
    assert!(ready.starts_with("False Bootstrapping: c-0 is being made"), "{ready}");
    assert_eq!(degraded, BEING_MADE);
    let template = cluster.desired(None).template;
    let mut begun = unmade();
    let seed = Operation {
        kind: OperationKind::Bootstrap,
        target: Target::Member(Ordinal(0)),
        phase: Phase::Preparing,
    };
    begun.record.operation = Some(seed);
    let entry = ConfigEntry {
        purpose: Purpose::Seed,
        member: None,
        volume: handle("volume", 0).uid,
        template,
        pod: None,
        raft_index: None,
        skips_check: false,
    };
    let entries = BTreeMap::from([(Ordinal(0), entry)]);
    begun.config =
        Fact::Known(Config { handle: handle("config", 0), owner: Owner::Ours, entries, is_altered: false });
    let mut degraded = |phase, age| {
        begun.pods = Fact::Known([(Ordinal(0), pod(0, template, phase))].into());
        begun.operation_age = age;
        told(&cluster, true, &begun).1
    };
    assert_eq!(degraded(PodPhase::Starting, Age::Fresh), BEING_MADE);
    for (phase, age) in
        [(PodPhase::Starting, Age::PastDeadline), (PodPhase::Failing(Cause::Image), Age::Fresh)]
    {
        let degraded = degraded(phase, age);
        assert!(degraded.starts_with("True MemberDown: c-0"), "{degraded}");
    }
}

#[test]
fn degraded_names_all_that_holds_and_its_reason_is_the_worst() {
    let cluster = plain();
    let mut seen = without_the_last(&cluster, PodPhase::Starting);
    let full = Alarm { member: id(1), kind: AlarmKind::NoSpace };
    seen.alarms = Fact::Known(vec![full]);
    seen.audit = Fact::Known(Audit::Different { revision: 9, minority: [Ordinal(0)].into() });
    let (ready, degraded) = told(&cluster, true, &seen);
    assert_eq!(ready.replacen("False", "True", 1), degraded);
    assert_eq!(
        degraded,
        "True Corrupt: the data of c-0 differ from the others' at revision 9; the database of c-1 has reached its quota, \
         etcd takes no writes; c-2 (etcd starts) does not serve"
    );
}
