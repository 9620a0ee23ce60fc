//! What certificates need, by what is known of them. Every order of events is explored in tests/model.

use std::collections::{BTreeMap, BTreeSet};

use super::rules::finding;
use super::world::World;
use super::world::secrets::{authority, handle, ids, leaf};
use crate::api::condition::State;
use crate::certs::rotate::steps::Why;
use crate::controllers::action::Action as _;
use crate::kinds::etcdcluster::actions::{Action, AuthorityWrite, LeafWrite};
use crate::kinds::etcdcluster::api::status::{ConditionType, Reason};
use crate::kinds::etcdcluster::observation::{
    Age, Authority, AuthoritySecret, CertificateId, CertificateSecrets, Certificates, Desired, Fact, Holder,
    LeafSecret, Observation, Owner, Version,
};
use crate::kinds::etcdcluster::plan::certificates::actions;
use crate::kinds::etcdcluster::plan::cluster_state::ClusterState;
use crate::kinds::etcdcluster::plan::plan;

/// Three that run, and their certificates.
struct Cluster {
    desired: Desired,
    seen: Observation,
}

impl Cluster {
    fn new(authority: Option<AuthoritySecret>, leaf: Option<&LeafSecret>) -> Self {
        let world = World::settled(3, Version::new(6, 16));
        let leaf = || leaf.cloned().map_or(Fact::Absent, Fact::Known);
        let identity = |id: u64| Authority { identity: id, has_expired: false };
        let secrets = CertificateSecrets {
            authority: authority.map_or(Fact::Absent, Fact::Known),
            leaves: Holder::ALL.into_iter().map(|holder| (holder, leaf())).collect(),
            authorities: (1..=2).map(|id| (CertificateId(id), identity(id))).collect(),
        };
        let seen = Observation { certificate_secrets: Some(secrets), ..world.observe() };
        Self { desired: world.desired, seen }
    }

    fn secrets(&mut self) -> &mut CertificateSecrets {
        self.seen.certificate_secrets.as_mut().unwrap()
    }

    fn actions(&self) -> Vec<Action> {
        plan(&self.desired, &self.seen).actions
    }

    /// What is written of the authority, and who stays trusted beside it.
    fn authority(&self) -> (AuthorityWrite, BTreeSet<CertificateId>) {
        match self.actions().as_slice() {
            [Action::WriteAuthority { write, bundle, .. }] => (*write, bundle.clone()),
            other => panic!("{other:#?}"),
        }
    }

    /// What is written of each leaf.
    fn leaves(&self) -> BTreeMap<Holder, LeafWrite> {
        let of = |action: &Action| match action {
            Action::WriteCertificate { holder, write, authority, .. } => {
                assert_eq!(*authority, handle("ca"));
                (*holder, *write)
            }
            other => panic!("{other:?}"),
        };
        self.actions().iter().map(of).collect()
    }

    fn all(write: LeafWrite) -> BTreeMap<Holder, LeafWrite> {
        Holder::ALL.into_iter().map(|holder| (holder, write)).collect()
    }
}

#[test]
fn the_authority_is_made_before_what_it_signs() {
    let nothing = Cluster::new(None, None);
    assert_eq!(nothing.authority(), (AuthorityWrite::Create, ids(&[])));
    let made = Cluster::new(Some(authority(1, &[1])), None);
    assert_eq!(made.leaves(), Cluster::all(LeafWrite::Sign(Why::Missing)));
    let settled = Cluster::new(Some(authority(1, &[1])), Some(&leaf(1, &[1])));
    assert_eq!(settled.actions(), []);
}

#[test]
fn a_spec_is_not_reached_while_certificates_are_written() {
    let reached = |cluster: &Cluster| plan(&cluster.desired, &cluster.seen).summary.is_reached;
    assert!(reached(&Cluster::new(Some(authority(1, &[1])), Some(&leaf(1, &[1])))));
    assert!(!reached(&Cluster::new(None, Some(&leaf(1, &[1])))));
    assert!(!reached(&Cluster::new(Some(authority(2, &[1, 2])), Some(&leaf(1, &[1])))));
}

#[test]
fn what_is_due_is_renewed_and_nothing_else() {
    let mut cluster = Cluster::new(Some(authority(1, &[1])), Some(&leaf(1, &[1])));
    let mut aged = leaf(1, &[1]);
    aged.leaf.as_mut().unwrap().renewal_age = Age::PastDeadline;
    cluster.secrets().leaves.insert(Holder::Peer, Fact::Known(aged));
    assert_eq!(cluster.leaves(), BTreeMap::from([(Holder::Peer, LeafWrite::Sign(Why::Aged))]));
    let mut due = authority(1, &[1]);
    due.signer.as_mut().unwrap().renewal_age = Age::PastDeadline;
    let due = Cluster::new(Some(due), Some(&leaf(1, &[1])));
    assert_eq!(due.authority(), (AuthorityWrite::Reissue, ids(&[1])));
}

#[test]
fn an_authority_that_was_taken_away_stays_trusted_while_its_leaves_are_shown() {
    let lost = Cluster::new(None, Some(&leaf(1, &[1])));
    assert_eq!(lost.authority(), (AuthorityWrite::Create, ids(&[1])));
    let unreadable = AuthoritySecret { signer: None, ..authority(1, &[1]) };
    let unreadable = Cluster::new(Some(unreadable), Some(&leaf(1, &[1])));
    assert_eq!(unreadable.authority(), (AuthorityWrite::Create, ids(&[1])));
    let forgotten = Cluster::new(Some(authority(2, &[2])), Some(&leaf(1, &[1])));
    assert_eq!(forgotten.authority(), (AuthorityWrite::Bundle, ids(&[1, 2])));
    let told = Cluster::new(Some(authority(2, &[1, 2])), Some(&leaf(1, &[1])));
    assert_eq!(told.leaves(), Cluster::all(LeafWrite::Trust));
}

#[test]
fn another_authority_signs_nothing_before_all_know_it_and_then_everything() {
    let mut cluster = Cluster::new(Some(authority(2, &[1, 2])), Some(&leaf(1, &[1, 2])));
    assert_eq!(cluster.leaves(), Cluster::all(LeafWrite::Sign(Why::OtherAuthority)));

    let known = cluster.seen.pods.clone();
    cluster.seen.pods = Fact::Unknown;
    assert_eq!(cluster.actions(), [], "who runs is not known");
    cluster.seen.pods = known;

    let mut spreads = authority(2, &[1, 2]);
    spreads.signer.as_mut().unwrap().spread_age = Age::Fresh;
    cluster.secrets().authority = Fact::Known(spreads);
    assert_eq!(cluster.actions(), [], "clients have had no time");
    cluster.secrets().authority = Fact::Known(authority(2, &[1, 2]));

    cluster.desired.template.revision += 1;
    assert_eq!(
        actions(&ClusterState::new(&cluster.desired, &cluster.seen)),
        [],
        "members have not started with it"
    );
    let mut last = leaf(1, &[1, 2]);
    last.leaf.as_mut().unwrap().last_call_age = Age::PastDeadline;
    cluster.secrets().leaves.insert(Holder::Server, Fact::Known(last));
    let signed = actions(&ClusterState::new(&cluster.desired, &cluster.seen));
    assert_eq!(signed.len(), 1, "it is about to expire: {signed:?}");
}

#[test]
fn a_leaf_with_other_names_waits_until_its_peers_trust_the_authority() {
    let mut cluster = Cluster::new(Some(authority(2, &[1, 2])), Some(&leaf(1, &[1, 2])));
    let mut edited = leaf(1, &[1, 2]);
    edited.leaf.as_mut().unwrap().has_wanted_names = false;
    cluster.secrets().leaves.insert(Holder::Server, Fact::Known(edited.clone()));
    let mut spreads = authority(2, &[1, 2]);
    spreads.signer.as_mut().unwrap().spread_age = Age::Fresh;
    cluster.secrets().authority = Fact::Known(spreads);
    let waiting = plan(&cluster.desired, &cluster.seen);
    assert_eq!(waiting.actions, [], "clients have had no time to trust the one that would sign");
    assert!(!waiting.summary.is_reached, "a name is asked for that is not there");
    let ready = finding(&waiting, ConditionType::CertificatesReady);
    assert_eq!(ready, (State::False, Reason::CertificatesPending));

    let mut settled = Cluster::new(Some(authority(1, &[1])), Some(&leaf(1, &[1])));
    edited.trusted = ids(&[1]);
    settled.secrets().leaves.insert(Holder::Server, Fact::Known(edited));
    assert_eq!(settled.leaves(), BTreeMap::from([(Holder::Server, LeafWrite::Sign(Why::Unfit))]));
}

#[test]
fn the_authority_before_is_forgotten_a_day_after_its_last_leaf() {
    let mut cluster = Cluster::new(Some(authority(2, &[1, 2])), Some(&leaf(2, &[1, 2])));
    assert_eq!(cluster.authority(), (AuthorityWrite::Bundle, ids(&[2])));
    let mut young = leaf(2, &[1, 2]);
    young.leaf.as_mut().unwrap().overlap_age = Age::Fresh;
    cluster.secrets().leaves.insert(Holder::Client, Fact::Known(young));
    assert_eq!(cluster.actions(), [], "a client may have a copy of the previous leaf");
    let behind = Cluster::new(Some(authority(2, &[2])), Some(&leaf(2, &[1, 2])));
    assert_eq!(behind.leaves(), Cluster::all(LeafWrite::Trust));
}

#[test]
fn nothing_is_written_where_work_rests_or_anything_is_in_doubt() {
    let cluster = || Cluster::new(Some(authority(1, &[1])), None);
    let mut paused = cluster();
    paused.desired.is_paused = true;
    let mut deleted = cluster();
    deleted.desired.is_deleting = true;
    let mut unread = cluster();
    unread.secrets().leaves.insert(Holder::Client, Fact::Unknown);
    let mut unknown = cluster();
    unknown.secrets().authority = Fact::Unknown;
    let mut foreign = cluster();
    let theirs = LeafSecret { owner: Owner::Foreign, ..leaf(1, &[1]) };
    foreign.secrets().leaves.insert(Holder::Client, Fact::Known(theirs));
    for cluster in [paused, deleted, unread, unknown, foreign] {
        assert_eq!(cluster.actions(), []);
    }
}

#[test]
fn members_that_run_wait_for_no_certificate() {
    let mut cluster = Cluster::new(Some(authority(1, &[1])), Some(&leaf(1, &[1])));
    let missing = leaf(1, &[1]);
    cluster.secrets().leaves.insert(Holder::Client, Fact::Known(LeafSecret { leaf: None, ..missing }));
    cluster.seen.certificates = Certificates::Valid;
    cluster.seen.budget = Fact::Absent;
    let actions = cluster.actions();
    let [Action::WriteCertificate { .. }, Action::ApplyBudget { .. }] = actions.as_slice() else {
        panic!("{actions:#?}")
    };
    assert!(!actions[0].holds_up_others());
}

#[test]
fn certificates_are_renewed_while_a_deletion_is_refused() {
    let mut cluster = Cluster::new(Some(authority(1, &[1])), None);
    (cluster.desired.is_deleting, cluster.desired.is_protected) = (true, true);
    cluster.seen.has_finalizer = true;
    assert_eq!(cluster.leaves(), Cluster::all(LeafWrite::Sign(Why::Missing)));
    cluster.desired.is_protected = false;
    let actions = cluster.actions();
    assert!(matches!(actions.as_slice(), [Action::ApplyStatefulSet { replicas: 0, .. }]), "{actions:#?}");
}

/// A minor that this release no longer supports makes the spec invalid. Members go on, and their certificates end.
#[test]
fn certificates_are_renewed_although_the_spec_is_invalid() {
    let mut due = leaf(1, &[1]);
    if let Some(leaf) = &mut due.leaf {
        leaf.renewal_age = Age::PastDeadline;
    }
    for minor in [6, 4] {
        let mut cluster = Cluster::new(Some(authority(1, &[1])), Some(&due));
        cluster.desired.is_valid = false;
        cluster.desired.template.version = Version::new(minor, 16);
        let leaves = cluster.leaves();
        assert_eq!(leaves.keys().copied().collect::<Vec<_>>(), Holder::ALL.to_vec(), "3.{minor}");
        assert!(leaves.values().all(|write| matches!(write, LeafWrite::Sign(_))), "3.{minor}: {leaves:?}");
    }
}
