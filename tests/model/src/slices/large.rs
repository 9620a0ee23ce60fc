//! The same with five members, and more that goes wrong.

use super::*;

const MUCH: Faults = Faults {
    crashes: 3,
    lost_answers: 3,
    blind: 2,
    kills: 3,
    evictions: 2,
    losses: 0,
    elections: 3,
    writes: 2,
    authorities: 0,
    claims: 0,
    configs: 0,
    silences: 0,
    objects: 0,
    labels: 0,
    corruptions: 0,
    suspicions: 0,
    fills: 0,
    loosenings: 0,
    cuts: 0,
    names: 0,
    strangers: 0,
    failed_backups: 0,
};

pub fn growth() -> Slice {
    let mut start = World::settled(1, NEWEST);
    start.edits = [3, 5, 2].map(Edit::Replicas).to_vec();
    start.faults = Faults { kills: 2, ..MUCH };
    Slice::new(start, &[], &[])
}

pub fn shrinking() -> Slice {
    let mut start = World::settled(5, NEWEST);
    start.edits = [3, 1, 5].map(Edit::Replicas).to_vec();
    start.faults = MUCH;
    Slice::new(start, &[], &[])
}

pub fn loss() -> Slice {
    let mut start = World::settled(5, NEWEST);
    start.faults = Faults { losses: 2, ..MUCH };
    Slice::new(start, &[], &[])
}

pub fn upgrade() -> Slice {
    let mut start = World::settled(5, Version::new(5, 33));
    start.edits = vec![Edit::Version(NEWEST), Edit::Replicas(3), Edit::Revision];
    start.faults = MUCH;
    Slice::new(start, &[], &[])
}

/// What people and machines do beside the operator, together: claims, objects, labels and the ConfigMap are deleted,
/// members go silent or are cut off.
pub fn accidents() -> Slice {
    let mut start = World::settled(5, NEWEST);
    let members = start.etcd.members.iter();
    start.objects.remembered =
        Some(members.filter_map(|member| Some((member.ordinal?, member.id))).collect());
    start.edits = vec![Edit::Revision, Edit::Replicas(3), Edit::Replicas(5)];
    start.faults = Faults { claims: 1, configs: 1, silences: 1, objects: 2, labels: 2, cuts: 1, ..MUCH };
    Slice::new(start, &[], &[])
}

pub fn recovery() -> Slice {
    let mut start = World::settled(5, NEWEST);
    let request = |token: &str| RecoveryRequest { token: token.to_owned(), survivor: None };
    start.edits = ["one", "two"].map(|token| Edit::Recover(Some(request(token)))).to_vec();
    start.faults = Faults { losses: 3, kills: 4, ..MUCH };
    Slice::new(start, &[], &[])
}
