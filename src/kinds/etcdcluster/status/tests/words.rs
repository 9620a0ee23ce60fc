//! The words for what is wrong, and for what is under way.

use super::*;

#[test]
fn what_is_wrong_with_an_object_that_cannot_be_read_is_reported_without_its_values() {
    let fault = |field| FieldError::new(Path::spec().at(field), Fault::TypeInvalid, "is hunter2");
    let told = |faults: &[FieldError]| {
        let statements = undecodable(faults).into_iter();
        statements.map(|one| (one.about, one.state, one.reason, one.message)).collect::<Vec<_>>()
    };
    let expected = |message: &str| {
        ["Ready", "SpecValid"].map(|about| (about, State::False, "SpecInvalid", message.to_owned())).to_vec()
    };
    assert_eq!(
        told(&[fault("replicas"), fault("storage")]),
        expected(
            "this release cannot read the object at spec.replicas and spec.storage: nothing is done until it is changed"
        )
    );
    assert_eq!(
        told(&[]),
        expected("this release cannot read the object: nothing is done until it is changed")
    );
}

#[test]
fn a_name_that_is_taken_is_named() {
    let cluster = plain();
    let mut seen = seen(&cluster);
    if let Fact::Known(config) = &mut seen.config {
        config.owner = Owner::Foreign;
    }
    assert_eq!(
        said(&status(&cluster, &EtcdClusterStatus::default(), &seen))["Degraded"],
        "True NameTaken: ConfigMap c-config exists and is not controlled by this object"
    );
}

#[test]
fn a_version_that_cannot_be_reached_is_refused_in_words_and_not_observed() {
    let of = |version: &str| {
        let cluster = cluster(&json!({"replicas": 3, "version": version, "tls": {"mode": "Disabled"}}));
        let mut seen = seen(&plain());
        let template = Template { version: Version::new(5, 9), ..cluster.desired(None).template };
        if let (Fact::Known(set), Fact::Known(pods)) = (&mut seen.stateful_set, &mut seen.pods) {
            set.template = template;
            for pod in pods.values_mut() {
                pod.template = template;
            }
        }
        seen.cluster_version = Fact::Known(5);
        for ordinal in 0..3 {
            let old = Answer { version: Version::new(5, 9), ..answer(ordinal) };
            seen.statuses.insert(Ordinal(ordinal), Fact::Known(old));
        }
        let status = status(&cluster, &EtcdClusterStatus::default(), &seen);
        assert_eq!(status.observed_generation, cluster.metadata.generation, "{version}");
        let said = said(&status);
        assert_eq!(said["Ready"], said["SpecValid"], "{version}");
        said["SpecValid"].clone()
    };
    assert_eq!(
        of("3.7.3"),
        "False SpecInvalid: cannot upgrade from 3.5.9 to 3.7.3: upgrade one minor version at a time"
    );
    assert_eq!(
        of("3.6.16"),
        "False SpecInvalid: cannot upgrade from 3.5.9 to 3.6.16 without losing data: upgrade to 3.5.32 first"
    );
    assert_eq!(of("3.9.0"), "False SpecInvalid: version 3.9.0 is not among 3.5.*, 3.6.* and 3.7.*");
}

#[test]
fn that_a_minor_is_no_longer_supported_is_said_while_its_members_serve() {
    let mut cluster = cluster(&json!({"replicas": 3, "version": "3.4.30", "tls": {"mode": "Disabled"}}));
    cluster.refused = vec![Path::spec().at("version")];
    let mut seen = seen(&cluster);
    seen.cluster_version = Fact::Known(4);
    for ordinal in 0..3 {
        let old = Answer { version: Version::new(4, 30), ..answer(ordinal) };
        seen.statuses.insert(Ordinal(ordinal), Fact::Known(old));
    }
    let status = status(&cluster, &EtcdClusterStatus::default(), &seen);
    let said = said(&status);
    let refused = "False SpecInvalid: version 3.4.30 is not among 3.5.*, 3.6.* and 3.7.*";
    assert_eq!([&*said["SpecValid"], &*said["Ready"]], [refused; 2]);
    assert!(said["Available"].starts_with("True "), "{}", said["Available"]);
    let change = (&EtcdClusterStatus::default(), &status);
    let (told, _) = events("c", change, &seen, (None, false), &Reported::default());
    assert!(told.iter().any(|note| note.warning && note.reason == "SpecInvalid"), "{told:?}");
}

#[test]
fn an_operation_says_what_it_does_and_what_it_waits_for() {
    let cluster = plain();
    let say = |kind, target, reason, phase| {
        let seen = without_the_last(&cluster, phase);
        let mut plan = plan(&cluster.desired(None), &seen);
        plan.record.operation = Some(Operation { kind, target, phase: Phase::Adding });
        plan.summary.findings =
            vec![Finding { about: ConditionType::Progressing, state: State::True, reason, ordinal: None }];
        said(&of(&cluster, after(&EtcdClusterStatus::default(), 1), &seen, &plan))["Progressing"].clone()
    };
    let third = Target::Member(Ordinal(2));
    assert_eq!(
        say(
            OperationKind::ScaleOut,
            third,
            Reason::ScalingOut,
            PodPhase::Pending(Some(Cause::Unschedulable))
        ),
        "True ScalingOut: c-2 is being added: no node takes its pod"
    );
    assert_eq!(
        say(OperationKind::ScaleIn, third, Reason::ScalingIn, PodPhase::Up),
        "True ScalingIn: c-2 is being removed"
    );
    let version = Target::Version(Version::new(6, 17));
    assert_eq!(
        say(OperationKind::Upgrade, version, Reason::Upgrading, PodPhase::Up),
        "True Upgrading: members are being moved to 3.6.17, one at a time: c-2 does not serve"
    );
}

#[test]
fn messages_are_for_people() {
    let cluster = plain();
    let mut all = vec![status(&cluster, &EtcdClusterStatus::default(), &seen(&cluster))];
    for cause in
        [Cause::Unschedulable, Cause::Image, Cause::Killed, Cause::DataLost, Cause::Removed, Cause::Other]
    {
        let seen = without_the_last(&cluster, PodPhase::Failing(cause));
        all.push(status(&cluster, &EtcdClusterStatus::default(), &seen));
    }
    for condition in all.iter().flat_map(|status| status.conditions.iter().flatten()) {
        let message = &condition.message;
        assert!(!message.ends_with('.') && !message.is_empty(), "{message}");
        assert!(
            message.starts_with(char::is_lowercase) || message.starts_with(char::is_numeric),
            "{message}"
        );
    }
}
