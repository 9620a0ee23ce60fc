use proptest::prelude::*;

use super::*;
use crate::kinds::etcdcluster::observation::Version;
use crate::kinds::etcdcluster::status::remember;

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn any_target() -> impl Strategy<Value = Target> {
    prop_oneof![
        (0_u32..20).prop_map(|number| Target::Member(Ordinal(number))),
        (0_u64..20, 0_u64..99).prop_map(|(minor, patch)| Target::Version(Version::new(minor, patch))),
        Just(Target::Template),
    ]
}

fn any_record() -> impl Strategy<Value = Record> {
    let kind = proptest::sample::select(OperationKind::ALL.to_vec());
    let phase = proptest::sample::select(Phase::ALL.to_vec());
    let operation =
        (kind, any_target(), phase).prop_map(|(kind, target, phase)| Operation { kind, target, phase });
    let survivor = proptest::option::of((0_u32..9).prop_map(Ordinal));
    let readable = RecoveryPhase::ALL.iter().copied().filter(|phase| *phase != RecoveryPhase::Unreadable);
    let phase = proptest::sample::select(readable.collect::<Vec<_>>());
    let index = 0..=i64::MAX.unsigned_abs();
    let recovery = (".{0,20}", survivor, index, phase, proptest::option::of("[a-f0-9-]{1,36}")).prop_map(
        |(token, survivor, raft_index, phase, pod)| Recovery {
            token,
            survivor,
            raft_index,
            phase,
            pod: pod.map(Uid),
        },
    );
    (any::<Option<u64>>(), proptest::option::of(operation), proptest::option::of(recovery)).prop_map(
        |(cluster, operation, recovery)| Record { cluster_id: cluster.map(ClusterId), operation, recovery },
    )
}

proptest! {
    #![proptest_config(crate::properties::config())]

    #[test]
    fn what_is_remembered_reads_back(first in any_record(), then in any_record()) {
        let status = remember("c", &EtcdClusterStatus::default(), &first, second(1));
        prop_assert_eq!(record(&status), first);
        let status = remember("c", &status, &then, second(2));
        prop_assert_eq!(record(&status), then);
    }

    #[test]
    fn it_survives_the_wire(first in any_record()) {
        let status = remember("c", &EtcdClusterStatus::default(), &first, second(1));
        let wire = serde_json::to_string(&status).unwrap();
        prop_assert_eq!(record(&serde_json::from_str(&wire).unwrap()), first);
    }
}

#[test]
fn an_operation_began_when_it_did_for_as_long_as_it_leads_to_the_same() {
    let at = |previous: &EtcdClusterStatus, target, phase, now| {
        let operation = Some(Operation { kind: OperationKind::ScaleOut, target, phase });
        remember("c", previous, &Record { operation, ..Record::default() }, second(now))
    };
    let began = |status: &EtcdClusterStatus| status.operation.as_ref().unwrap().started_at.clone();
    let third = Target::Member(Ordinal(3));
    let adding = at(&EtcdClusterStatus::default(), third, Phase::Adding, 1);
    let joining = at(&adding, third, Phase::Joining, 2);
    let next = at(&joining, Target::Member(Ordinal(4)), Phase::Adding, 3);
    assert_eq!(began(&joining), Some(Time(second(1))));
    assert_eq!(began(&next), Some(Time(second(3))));
    let shown = joining.operation.unwrap();
    assert_eq!(
        (shown.kind.as_deref(), shown.target.as_deref(), shown.phase.as_deref()),
        (Some("ScaleOut"), Some("c-3"), Some("Joining"))
    );
}

#[test]
fn a_cluster_stays_recorded_and_a_request_consumed_whatever_a_newer_release_wrote() {
    let newer = EtcdClusterStatus {
        cluster_id: Some("a cluster".to_owned()),
        operation: Some(OperationStatus { kind: Some("Migrate".to_owned()), ..OperationStatus::default() }),
        recovery: Some(RecoveryStatus {
            request: Some("auto".to_owned()),
            phase: Some("Resting".to_owned()),
            ..RecoveryStatus::default()
        }),
        ..EtcdClusterStatus::default()
    };
    let read = record(&newer);
    assert!(read.cluster_id.is_some());
    assert_eq!(read.operation, None);
    let recovery = read.recovery.clone().unwrap();
    assert_eq!((recovery.token.as_str(), recovery.phase.is_active()), ("auto", true));
    assert_eq!(remember("c", &newer, &read, second(1)), newer);
}

/// What is announced for a member, at that minute.
fn announced(
    before: &EtcdClusterStatus,
    kind: OperationKind,
    member: u32,
    phase: Phase,
    minute: i64,
) -> EtcdClusterStatus {
    let operation = Operation { kind, target: Target::Member(Ordinal(member)), phase };
    let record = Record { operation: Some(operation), ..record(before) };
    remember("c", before, &record, second(minute * 60))
}

/// Whether one more member may be replaced, by what a status says at that minute.
fn may_replace(status: &EtcdClusterStatus, minute: i64) -> bool {
    let cluster = crate::kinds::etcdcluster::resources::tests::plain();
    let mut seen = crate::kinds::etcdcluster::status::tests::seen(&cluster);
    limit_rates(status, &mut seen, second(minute * 60));
    seen.replacement_age.is_past()
}

#[test]
fn two_replacements_an_hour_are_counted_before_they_are_made_by_any_operator() {
    let empty = EtcdClusterStatus::default();
    let first = announced(&empty, OperationKind::Replace, 1, Phase::Removing, 0);
    assert!(may_replace(&first, 1));
    let grown = announced(&first, OperationKind::Replace, 1, Phase::Adding, 2);
    let second = announced(&grown, OperationKind::ScaleOut, 1, Phase::Removing, 3);
    assert!(!may_replace(&second, 4) && !may_replace(&second, 59));
    assert!(may_replace(&second, 60), "the first is an hour ago");
    let leads = announced(&second, OperationKind::ScaleOut, 1, Phase::RemovingLeader, 5);
    assert_eq!(leads.replacements, second.replacements, "the same removal");
    let third = announced(&second, OperationKind::Replace, 2, Phase::Removing, 62);
    assert_eq!(third.replacements.map(|all| all.len()), Some(2), "what is long ago is forgotten");
}

#[test]
fn members_that_are_no_longer_wanted_are_not_counted() {
    let empty = EtcdClusterStatus::default();
    let shrunk = announced(&empty, OperationKind::ScaleIn, 2, Phase::Removing, 0);
    let shrunk = announced(&shrunk, OperationKind::ScaleIn, 1, Phase::RemovingLeader, 1);
    let prepared = announced(&shrunk, OperationKind::Replace, 0, Phase::MovingLeader, 2);
    assert_eq!(prepared.replacements, None);
}
