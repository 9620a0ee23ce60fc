//! Certificates, authentication and passwords.

use super::*;

#[test]
fn no_pod_is_recreated_where_its_certificates_would_not_be_accepted() {
    let (desired, seen) = rested(3);
    for certificates in [Certificates::Missing, Certificates::Unfit] {
        for mut desired in changes(&desired) {
            desired.template.revision += 1;
            let seen = Observation { certificates, ..seen.clone() };
            assert_eq!(planned(&desired, &seen).actions, [], "{certificates:?}");
        }
    }
    let mut trusting_others = desired;
    trusting_others.template.revision += 1;
    for certificates in [Certificates::Valid, Certificates::Expiring] {
        let seen = Observation { certificates, ..seen.clone() };
        let plan = planned(&trusting_others, &seen);
        assert!(matches!(plan.actions.as_slice(), [Action::ApplyStatefulSet { .. }]), "{:?}", plan.actions);
        assert_eq!(finding(&plan, ConditionType::Progressing), (State::True, Reason::Restarting));
    }
}

#[test]
fn bootstrap_waits_for_certificates() {
    let world = World::new(3, V3_6);
    let mut seen = world.observe();
    (seen.certificates, seen.services, seen.has_finalizer) =
        (Certificates::Missing, Fact::Known(Found::Current), true);
    let plan = planned(&world.desired, &seen);
    assert_eq!(plan.actions, []);
    assert_eq!(finding(&plan, ConditionType::CertificatesReady), (State::False, Reason::SecretUnreadable));
    seen.certificates = Certificates::Valid;
    assert!(matches!(planned(&world.desired, &seen).actions.as_slice(), [Action::ApplyStatefulSet { .. }]));
}

#[test]
fn clients_are_let_in_after_authentication_is_on() {
    let (mut desired, mut seen) = rested(1);
    desired.authenticates = true;
    pod(&mut seen, 0).role = None;
    let actions = planned(&desired, &seen).actions;
    assert_eq!(actions, [Action::AuthEnable { cluster_id: CLUSTER, secret: None }]);
    seen.auth = Fact::Unknown;
    assert_eq!(planned(&desired, &seen).actions, []);
    seen.auth = Fact::Known(true);
    assert!(matches!(planned(&desired, &seen).actions.as_slice(), [Action::LabelPod { .. }]));
}

#[test]
fn root_has_its_password_before_clients_are_let_in_and_follows_its_secret() {
    let secret = Handle { uid: Uid("secret".to_owned()), resource_version: ResourceVersion("7".to_owned()) };
    let outdated = RootPassword::Outdated { secret: secret.clone() };
    let (mut desired, mut seen) = rested(1);
    desired.authenticates = true;
    pod(&mut seen, 0).role = None;
    let cluster_id = CLUSTER;
    // No client is let in while there is none.
    for waits in [
        Fact::Known(RootPassword::Unreadable(Unreadable::Missing)),
        Fact::Known(RootPassword::Barred),
        Fact::Unknown,
    ] {
        (seen.auth, seen.root_password) = (Fact::Known(false), waits);
        let plan = planned(&desired, &seen);
        assert_eq!((plan.actions.as_slice(), plan.summary.is_reached), (&[][..], false));
    }
    seen.root_password = Fact::Known(outdated.clone());
    let enable = Action::AuthEnable { cluster_id, secret: Some(secret.clone()) };
    assert_eq!(planned(&desired, &seen).actions, [enable]);
    // Clients are in already: they do not get in without authentication until the Secret is corrected.
    pod(&mut seen, 0).role = Some(Role::Voter);
    seen.root_password = Fact::Known(RootPassword::Unreadable(Unreadable::Missing));
    let plan = planned(&desired, &seen);
    assert_eq!(plan.actions, [Action::AuthEnable { cluster_id, secret: None }]);
    assert_eq!(finding(&plan, ConditionType::CertificatesReady), (State::False, Reason::RootPasswordUnset));
    // Another one.
    for (found, actions, (state, why)) in [
        (RootPassword::Current, &[][..], (State::True, Reason::CertificatesValid)),
        (
            outdated,
            &[Action::SetRootPassword { cluster_id, secret }],
            (State::False, Reason::RootPasswordOutdated),
        ),
        (RootPassword::Barred, &[], (State::False, Reason::RootPasswordUnset)),
        (RootPassword::Unreadable(Unreadable::Empty), &[], (State::False, Reason::RootPasswordUnset)),
    ] {
        (seen.auth, seen.root_password) = (Fact::Known(true), Fact::Known(found));
        let plan = planned(&desired, &seen);
        assert_eq!(plan.actions, actions);
        assert_eq!(finding(&plan, ConditionType::CertificatesReady), (state, why));
        assert_eq!(plan.summary.is_reached, state == State::True);
    }
    // Whether it has it is not known, while others are looked at: nothing is done, and nothing is said to be well.
    seen.root_password = Fact::Unknown;
    let plan = planned(&desired, &seen);
    assert_eq!((plan.actions.as_slice(), plan.summary.is_reached), (&[][..], false));
    assert_eq!(finding(&plan, ConditionType::CertificatesReady), (State::Unknown, Reason::Unreachable));
    // It stays when it is not asked for any more.
    seen.root_password = Fact::Absent;
    assert_eq!(planned(&desired, &seen).actions, []);
}
