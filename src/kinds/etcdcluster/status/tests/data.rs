//! Data that differ, are lost or need room, and how they come back.

use super::*;

#[test]
fn a_lost_quorum_is_named_and_how_it_comes_back() {
    let cluster = plain();
    let mut seen = without_the_last(&cluster, PodPhase::Up);
    seen.statuses.insert(Ordinal(1), Fact::Unknown);
    seen.membership = Fact::Unknown;
    let said = said(&status(&cluster, &EtcdClusterStatus::default(), &seen));
    assert_eq!(
        said["QuorumLost"],
        "True QuorumLost: fewer voters than a majority answer: c-1 and c-2 do not answer"
    );
    assert!(said["Degraded"].contains("no member is removed and no volume is wiped until they come back"));
    assert!(said["Available"].starts_with("False QuorumLost"));
}

#[test]
fn what_becomes_of_a_request_to_recover_is_reported() {
    let asked = |text: Option<&str>, change: fn(&mut Observation)| {
        let mut cluster = plain();
        cluster.recovery = text.map(str::to_owned);
        let mut seen = without_the_last(&cluster, PodPhase::Up);
        seen.statuses.insert(Ordinal(1), Fact::Unknown);
        seen.membership = Fact::Unknown;
        change(&mut seen);
        let said = said(&status(&cluster, &EtcdClusterStatus::default(), &seen));
        (said["Degraded"].clone(), said["Progressing"].clone())
    };
    let as_it_is = |_: &mut Observation| {};
    let acted_on = |seen: &mut Observation| {
        seen.record.recovery = Some(Recovery {
            token: "auto".to_owned(),
            survivor: Some(Ordinal(0)),
            raft_index: 100,
            phase: RecoveryPhase::Done,
            pod: None,
        });
    };
    let suspect = |seen: &mut Observation| {
        if let Some(Fact::Known(told)) = seen.statuses.get_mut(&Ordinal(0)) {
            told.corrupt = [told.member_id].into();
        }
    };
    for (text, change, end) in [
        (
            Some("auto"),
            suspect as fn(&mut Observation),
            "the recovery that is asked for does not choose c-0, since the data of members differ, or may: annotation \
             gatehouse.dev/recover-quorum may name the member to go on from",
        ),
        (None, as_it_is, "or a recovery is asked for by annotation gatehouse.dev/recover-quorum"),
        (Some("c-2"), as_it_is, "the recovery that is asked for waits until c-2 answers as a voter"),
        (Some("auto"), acted_on, "was acted on: another text is another request"),
    ] {
        let (degraded, _) = asked(text, change);
        assert!(degraded.starts_with("True QuorumLost") && degraded.ends_with(end), "{degraded}");
    }
    let (degraded, _) = asked(Some("yes"), as_it_is);
    assert!(degraded.contains("annotation gatehouse.dev/recover-quorum must be auto or"), "{degraded}");
    let (_, progressing) = asked(Some("auto"), as_it_is);
    assert_eq!(
        progressing,
        "True Recovering: the data of c-0 are kept, up to entry 100 of the log; the other members are being stopped; \
         their volumes are kept; waiting for c-1 and c-2 to end"
    );
}

/// Two of three do not answer, and what is asked for by annotation.
fn without_a_quorum(cluster: &Spec) -> Observation {
    let mut seen = without_the_last(cluster, PodPhase::Up);
    seen.statuses.insert(Ordinal(1), Fact::Unknown);
    seen.membership = Fact::Unknown;
    seen
}

#[test]
fn no_message_proposes_a_recovery_of_data_in_memory() {
    let mut cluster = cluster(&json!({
        "replicas": 3, "version": "3.6.16", "tls": {"mode": "Disabled"}, "storage": {"medium": "Memory"},
    }));
    for request in [None, Some("auto"), Some("c-2")] {
        cluster.recovery = request.map(str::to_owned);
        let seen = without_a_quorum(&cluster);
        let degraded = said(&status(&cluster, &EtcdClusterStatus::default(), &seen))["Degraded"].clone();
        assert_eq!(
            degraded,
            "True QuorumLost: fewer voters than a majority answer: c-1 and c-2 do not answer; the quorum is back once a \
             majority answers: data in memory end with their pods, and no recovery can be made of them",
            "{request:?}"
        );
    }
}

#[test]
fn a_survivor_whose_claim_is_being_deleted_is_named_and_so_is_what_keeps_its_data() {
    for (request, expected) in [
        (
            Some("c-0"),
            "the recovery that is asked for does not begin from c-0, whose claim is being deleted: its data would end with \
             its pod",
        ),
        (
            Some("auto"),
            "the recovery that is asked for does not begin from c-0, whose claim is being deleted: its data would end with \
             its pod",
        ),
        (None, "or a recovery is asked for by annotation gatehouse.dev/recover-quorum"),
    ] {
        let mut cluster = plain();
        cluster.recovery = request.map(str::to_owned);
        let mut seen = without_a_quorum(&cluster);
        let Fact::Known(volumes) = &mut seen.volumes else { panic!("volumes") };
        volumes.get_mut(&Ordinal(0)).unwrap().is_deleting = true;
        let degraded = said(&status(&cluster, &EtcdClusterStatus::default(), &seen))["Degraded"].clone();
        assert!(degraded.contains(expected), "{degraded}");
        let way = "claim data-c-0 is being deleted, and its data go with the pod of c-0, which is neither restarted nor \
                   stopped; they stay where its PersistentVolume has the reclaim policy Retain";
        assert!(degraded.ends_with(way), "{degraded}");
    }
}

#[test]
fn an_earlier_spec_is_not_said_to_heal_data_that_differ() {
    let cluster = plain();
    let of = |cause| {
        let mut seen = without_the_last(&cluster, PodPhase::Failing(cause));
        seen.record.operation = Some(Operation {
            kind: OperationKind::Upgrade,
            target: Target::Version(Version::new(6, 16)),
            phase: Phase::Rolling,
        });
        said(&status(&cluster, &EtcdClusterStatus::default(), &seen))["Degraded"].clone()
    };
    let heals = "; revert the spec to recover";
    let (image, inconsistent) = (of(Cause::Image), of(Cause::Inconsistent));
    assert!(image.starts_with("True UpgradeStalled") && image.ends_with(heals), "{image}");
    assert!(inconsistent.starts_with("True UpgradeStalled"), "{inconsistent}");
    assert!(
        inconsistent.contains("its data differ from another member's") && !inconsistent.contains(heals),
        "{inconsistent}"
    );
}

#[test]
fn alarms_and_strangers_are_named() {
    let cluster = plain();
    let with = |kind, member| {
        let mut seen = seen(&cluster);
        seen.alarms = Fact::Known(vec![Alarm { member, kind }]);
        status(&cluster, &EtcdClusterStatus::default(), &seen)
    };
    let full = with(AlarmKind::NoSpace, id(1));
    assert_eq!(
        said(&full)["Degraded"],
        "True DatabaseQuotaExceeded: the database of c-1 has reached its quota, etcd takes no writes"
    );
    assert_eq!(full.members.unwrap()[1].healthy, Some(false));
    assert_eq!(
        said(&with(AlarmKind::Corrupt, MemberId(0)))["Degraded"],
        "True Corrupt: etcd suspects the data of a member: gatehouse compares all members' before it replaces one"
    );
    let mut seen = seen(&cluster);
    seen.statuses.insert(Ordinal(2), Fact::Known(Answer { cluster_id: ClusterId(0xd), ..answer(2) }));
    assert_eq!(
        said(&status(&cluster, &EtcdClusterStatus::default(), &seen))["Degraded"],
        "True ClusterIDMismatch: c-2 is not of etcd cluster c1: nothing is changed until a person has looked"
    );
}

#[test]
fn members_whose_data_differ_are_named_and_at_which_revision() {
    let cluster = plain();
    let with = |minority: &[u32]| {
        let minority = minority.iter().copied().map(Ordinal).collect();
        let mut seen = seen(&cluster);
        seen.audit = Fact::Known(Audit::Different { revision: 9, minority });
        said(&status(&cluster, &EtcdClusterStatus::default(), &seen))
    };
    let named = with(&[2]);
    assert_eq!(named["Degraded"], "True Corrupt: the data of c-2 differ from the others' at revision 9");
    assert_eq!(named["Progressing"], "False UpToDate: no change is under way: the data of members differ");
    assert_eq!(
        with(&[])["Degraded"],
        "True Corrupt: the members' data differ at revision 9, and it is not known whose are wrong"
    );
}

#[test]
fn whose_data_are_not_compared_for_their_size_is_said() {
    let cluster = plain();
    let with = |in_use: u64, restarts: bool| {
        let mut seen = seen(&cluster);
        let Some(Fact::Known(told)) = seen.statuses.get_mut(&Ordinal(1)) else { panic!("a member") };
        told.db_size_in_use = in_use;
        if restarts {
            let restart = (OperationKind::Restart, Target::Template, Phase::Rolling);
            let (kind, target, phase) = restart;
            seen.record.operation = Some(Operation { kind, target, phase });
            let Fact::Known(pods) = &mut seen.pods else { panic!("pods") };
            pods.get_mut(&Ordinal(2)).unwrap().template.revision += 1;
        }
        let said = said(&status(&cluster, &EtcdClusterStatus::default(), &seen));
        said[if restarts { "Progressing" } else { "Degraded" }].clone()
    };
    let healthy = "False Healthy: all members serve and no alarm is armed";
    let restarts = "True Restarting: members are being restarted for a changed spec, one at a time";
    for (in_use, more) in [
        (256 << 20, ""),
        ((256 << 20) + 1, "; with more than 256 MiB in use, the leader's data are not compared"),
        (2 << 30, "; with more than 256 MiB in use, the leader's data are not compared"),
        ((2 << 30) + 1, "; with more than 2 GiB in use, the members' data are not compared"),
    ] {
        assert_eq!(with(in_use, false), format!("{healthy}{more}"));
        let said = with(in_use, true);
        assert!(said.starts_with(&format!("{restarts}{more}")), "{said}");
    }
}

#[test]
fn volumes_that_cannot_grow_are_named() {
    let cluster = cluster(&json!({
        "replicas": 3, "version": "3.6.16", "tls": {"mode": "Disabled"}, "storage": {"size": "20Gi"},
    }));
    let with = |expandable: Fact<bool>| {
        let mut seen = seen(&cluster);
        let Fact::Known(volumes) = &mut seen.volumes else { panic!("volumes") };
        for volume in volumes.values_mut().take(2) {
            volume.is_expandable = expandable;
        }
        for volume in volumes.values_mut().skip(2) {
            volume.size = 20 << 30;
        }
        said(&status(&cluster, &EtcdClusterStatus::default(), &seen))["SpecValid"].clone()
    };
    assert_eq!(
        with(Fact::Known(false)),
        "True VolumeCannotGrow: data-c-0 and data-c-1 stay smaller than storage.size: \
         the StorageClass lets no volume grow"
    );
    assert_eq!(with(Fact::Known(true)), "True Valid: the rules of the gate hold");
    assert_eq!(with(Fact::Unknown), "True Valid: the rules of the gate hold");
}

#[test]
fn volumes_that_have_not_grown_yet_are_named() {
    let cluster = plain();
    let mut seen = seen(&cluster);
    let mut with = |capacity, hindrance| {
        let Fact::Known(volumes) = &mut seen.volumes else { panic!("volumes") };
        volumes.values_mut().take(2).for_each(|volume| volume.capacity = capacity);
        volumes.values_mut().take(1).for_each(|volume| volume.hindrance = hindrance);
        let is_reached = plan(&cluster.desired(None), &seen).summary.is_reached;
        let said = said(&status(&cluster, &EtcdClusterStatus::default(), &seen));
        assert_eq!(said["Ready"], "True MembersReady: 3 of 3 members serve", "the members serve meanwhile");
        (is_reached, said["Progressing"].clone())
    };
    assert_eq!(with(Some(10 << 30), None), (true, "False UpToDate: no change is under way".to_owned()));
    let growing =
        "False UpToDate: no change is under way: data-c-0 and data-c-1 have not grown to storage.size yet";
    assert_eq!(with(Some(5 << 30), None), (false, growing.to_owned()));
    for (hindrance, why) in [
        (GrowthHindrance::FileSystem, "the file system grows on the node, or when the pod is started again"),
        (GrowthHindrance::Error, "what drives the volume reports an error: see its events"),
    ] {
        assert_eq!(with(Some(5 << 30), Some(hindrance)), (false, format!("{growing}; of data-c-0, {why}")));
    }
}

#[test]
fn when_a_member_is_defragmented_is_written_before_and_kept() {
    let cluster = cluster(&json!({
        "replicas": 3, "version": "3.6.16", "tls": {"mode": "Disabled"}, "storage": {"size": "10Gi"},
        "maintenance": {"defragment": {}},
    }));
    let mut seen = seen(&cluster);
    let Some(Fact::Known(told)) = seen.statuses.get_mut(&Ordinal(2)) else { panic!("a member") };
    (told.db_size, told.db_size_in_use, told.defragmented) = (1 << 30, 1 << 20, Age::PastDeadline);
    let times = |status: &EtcdClusterStatus| {
        let members = status.members.clone().unwrap_or_default().into_iter();
        members.map(|member| member.defragmented_at.map(|time| time.0)).collect::<Vec<_>>()
    };
    let before = status(&cluster, &EtcdClusterStatus::default(), &seen);
    assert_eq!(times(&before), [None, None, Some(second(1))]);
    let recent = |seen: &mut Observation, now| {
        crate::kinds::etcdcluster::resources::record::limit_rates(&before, seen, second(now));
        seen.status(Ordinal(2)).is_known_and(|told| !told.defragmented.is_past())
    };
    assert!(!recent(&mut seen.clone(), 601) && recent(&mut seen.clone(), 600));
    let full = Alarm { member: MemberId(0xa2), kind: AlarmKind::NoSpace };
    let mut full = Observation { alarms: Fact::Known(vec![full]), ..seen.clone() };
    assert!(recent(&mut full.clone(), 60) && !recent(&mut full, 61), "etcd takes no writes until then");
    assert!(recent(&mut seen, 61));
    assert_eq!(times(&status(&cluster, &before, &seen)), times(&before), "not again");
}

#[test]
fn data_that_are_lost_are_lost_since_the_quorum_was() {
    let cluster = plain();
    let mut seen = seen(&cluster);
    for ordinal in (0..3).map(Ordinal) {
        seen.statuses.insert(ordinal, Fact::Unknown);
        let Fact::Known(pods) = &mut seen.pods else { panic!("pods") };
        pods.get_mut(&ordinal).unwrap().phase = PodPhase::Failing(Cause::DataLost);
    }
    (seen.membership, seen.alarms) = (Fact::Unknown, Fact::Unknown);
    let at = |previous: &EtcdClusterStatus, now| {
        of(&cluster, after(previous, now), &seen, &plan(&cluster.desired(None), &seen))
    };
    let first = at(&EtcdClusterStatus::default(), 1);
    let later = at(&first, 5000);
    assert!(said(&first)["Degraded"].contains("since 1970-01-01T00:00:01Z"), "{}", said(&first)["Degraded"]);
    assert_eq!(said(&later)["Degraded"], said(&first)["Degraded"]);
    let none = "no backup of them is known (docs/etcdcluster/tasks.md#restore-by-hand)";
    assert!(said(&first)["Degraded"].ends_with(none), "{}", said(&first)["Degraded"]);
    let success = BackupSuccess { name: Some("r7.db".to_owned()), ..BackupSuccess::default() };
    let backup = Some(BackupStatus { last_success: Some(success), last_failure: None });
    let known = said(&at(&EtcdClusterStatus { backup, ..first }, 5000))["Degraded"].clone();
    let way = "restore backup r7.db into a new cluster by hand (docs/etcdcluster/tasks.md#restore-by-hand)";
    assert!(known.ends_with(way), "{known}");
}
