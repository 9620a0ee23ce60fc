//! What users see of an EtcdCluster that needs attention.

use serde_json::Value;

use super::*;
use crate::controllers::action::RefusedWrite;
use crate::controllers::situations::{self, Situation};
use crate::kinds::etcdcluster::api::v1::EtcdCluster;
use crate::kinds::etcdcluster::metrics::{self, Facts, Tally};
use crate::kinds::etcdcluster::observation::Desired;

/// A cluster of three that serves, until `change`.
struct Case {
    name: &'static str,
    condition: ConditionType,
    series: &'static str,
    spec: fn(&mut Value),
    faults: Vec<FieldError>,
    change: fn(&mut Observation),
    /// Why the pod at an ordinal does not come to serve, in the words of Kubernetes.
    hindrance: Option<(u32, &'static str)>,
}

impl Case {
    fn new(name: &'static str, condition: ConditionType, series: &'static str) -> Self {
        Self { name, condition, series, spec: |_| (), faults: Vec::new(), change: |_| (), hindrance: None }
    }

    fn asks(self, spec: fn(&mut Value)) -> Self {
        Self { spec, ..self }
    }

    fn when(self, change: fn(&mut Observation)) -> Self {
        Self { change, ..self }
    }

    fn because(self, ordinal: u32, words: &'static str) -> Self {
        Self { hindrance: Some((ordinal, words)), ..self }
    }

    fn situation(self) -> Situation {
        let mut object = json!({
            "apiVersion": "gatehouse.dev/v1",
            "kind": "EtcdCluster",
            "metadata": {"name": self.name, "namespace": "default", "uid": "u-1", "generation": 7},
            "spec": {"replicas": 3, "version": "3.6.16", "storage": {"size": "10Gi"}, "tls": {"mode": "Disabled"}},
        });
        let resolve = |object: &Value, faults: &[FieldError]| {
            let cluster: EtcdCluster = serde_json::from_value(object.clone()).unwrap();
            Spec::resolve(&cluster, faults)
        };
        let served = resolve(&object, &[]);
        let before = status(&served, &EtcdClusterStatus::default(), &seen(&served));
        (self.spec)(&mut object["spec"]);
        let spec = resolve(&object, &self.faults);
        let mut seen = seen(&served);
        (self.change)(&mut seen);
        let desired = Desired { is_valid: self.faults.is_empty(), ..spec.desired(None) };
        let plan = plan(&desired, &seen);
        let hindrances = self.hindrance.map(|(ordinal, words)| (Ordinal(ordinal), words.to_owned()));
        let hindrances = hindrances.into_iter().collect();
        let said = StatusInputs { hindrances: &hindrances, ..after(&before, 1) };
        let after = of(&spec, said, &seen, &plan);
        let reported = Reported { alarms: Some(Vec::new()), ..Reported::default() };
        let (events, _) = events(self.name, (&before, &after), &seen, (None, false), &reported);
        let page = situations::page(
            "gatehouse_etcdcluster",
            self.name,
            metrics::of(&Facts {
                name: self.name,
                desired: &desired,
                seen: &seen,
                plan: &plan,
                status: &after,
                certificates: &BTreeMap::new(),
                tally: &Tally::default(),
                audited: None,
            }),
        );
        object["status"] = serde_json::to_value(&after).unwrap();
        Situation { object, events, page, condition: self.condition.as_str(), series: self.series }
    }
}

fn without_a_quorum(seen: &mut Observation) {
    for ordinal in [1, 2] {
        seen.statuses.insert(Ordinal(ordinal), Fact::Unknown);
    }
    seen.membership = Fact::Unknown;
    seen.alarms = Fact::Unknown;
    seen.cluster_version = Fact::Unknown;
}

/// A member's pod is gone, and another one is not made.
fn without_a_pod(seen: &mut Observation) {
    seen.statuses.remove(&Ordinal(2));
    if let Fact::Known(pods) = &mut seen.pods {
        pods.remove(&Ordinal(2));
    }
    seen.hindered.slow = [Ordinal(2)].into();
}

/// The first pod of the new template has not come up in time.
fn stalled(seen: &mut Observation) {
    seen.record.operation = Some(Operation {
        kind: OperationKind::Upgrade,
        target: Target::Version(Version::new(6, 17)),
        phase: Phase::Rolling,
    });
    seen.operation_age = Age::PastDeadline;
    seen.statuses.insert(Ordinal(2), Fact::Unknown);
    if let Fact::Known(pods) = &mut seen.pods
        && let Some(pod) = pods.get_mut(&Ordinal(2))
    {
        pod.phase = PodPhase::Failing(Cause::Image);
    }
}

/// All of them.
pub fn all() -> Vec<Situation> {
    let problem = ConditionType::Degraded;
    let cases = [
        Case::new(
            "database-full",
            problem,
            "gatehouse_etcdcluster_problem{problem=\"DatabaseQuotaExceeded\"}",
        )
        .when(|seen| seen.alarms = Fact::Known(vec![Alarm { member: id(1), kind: AlarmKind::NoSpace }])),
        Case::new("quorum-lost", problem, "gatehouse_etcdcluster_has_quorum").when(without_a_quorum),
        Case::new("data-differ", problem, "gatehouse_etcdcluster_data_consistent").when(|seen| {
            seen.audit = Fact::Known(Audit::Different { revision: 9, minority: [Ordinal(2)].into() });
        }),
        Case::new("pod-refused", problem, "gatehouse_etcdcluster_problem{problem=\"PodNotRunning\"}")
            .when(without_a_pod)
            .because(
                2,
                "no pod is made: pods \"pod-refused-2\" is forbidden: exceeded quota: small, requested: pods=1, used: \
                 pods=20, limited: pods=20",
            ),
        Case::new(
            "certificate-refused",
            ConditionType::CertificatesReady,
            "gatehouse_etcdcluster_condition_reason_info{condition=\"CertificatesReady\",reason=\"CertificateInvalid\"}",
        )
        .asks(|spec| spec["tls"] = json!({"mode": "Automatic"}))
        .when(|seen| seen.certificates = Certificates::Unfit),
        Case::new("claim-deleted", problem, "gatehouse_etcdcluster_problem{problem=\"ClaimTerminating\"}")
            .when(|seen| {
                let Fact::Known(volumes) = &mut seen.volumes else { panic!("volumes") };
                volumes.get_mut(&Ordinal(2)).unwrap().is_deleting = true;
            }),
        Case::new(
            "paused",
            ConditionType::Paused,
            "gatehouse_etcdcluster_condition{condition=\"Paused\",status=\"true\"}",
        )
        .asks(|spec| spec["paused"] = true.into()),
        Case::new("upgrade-stalled", problem, "gatehouse_etcdcluster_problem{problem=\"UpgradeStalled\"}")
            .asks(|spec| spec["version"] = "3.6.17".into())
            .when(stalled),
        Case {
            faults: vec![FieldError::new(Path::spec().at("replicas"), Fault::Invalid, "must be at most 9")],
            ..Case::new(
                "spec-refused",
                ConditionType::SpecValid,
                "gatehouse_etcdcluster_condition{condition=\"SpecValid\",status=\"false\"}",
            )
            .asks(|spec| spec["replicas"] = 11.into())
        },
        Case::new("right-missing", problem, "gatehouse_etcdcluster_problem{problem=\"Forbidden\"}").when(
            |seen| {
                let why = "failed to apply poddisruptionbudgets default/right-missing: Forbidden (403): User \
                       \"system:serviceaccount:gatehouse-system:gatehouse\" cannot patch resource \
                       \"poddisruptionbudgets\" in API group \"policy\" in the namespace \"default\"";
                seen.refused = Some(RefusedWrite { action: "apply-budget".to_owned(), why: why.to_owned() });
            },
        ),
    ];
    cases.into_iter().map(Case::situation).collect()
}
