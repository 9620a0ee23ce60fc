//! The first member, made once: a seed on an empty volume, until the identity of its cluster is recorded. Pure.
//!
//! Guarantees: a seed is written only while no cluster is recorded; by then its entry says that its data must be there.
//! Until then no pod is labelled a voter, so that no client has written through the Service: a seed whose data were
//! lost may begin anew. Where more than a first member was ever made, a record that is gone is read anew from etcd.

use std::collections::BTreeMap;

use super::decision::Decision;
use super::view::{View, fails_on_data};
use crate::kinds::etcdcluster::effect::Effect;
use crate::kinds::etcdcluster::observation::{
    ConfigEntry, Fact, Found, OperationKind, Ordinal, Phase, Purpose, Record, Target,
};

/// Where the first member lives.
const SEED: Ordinal = Ordinal(0);

/// Makes the first member and records its cluster.
pub fn first_member(view: &View) -> Option<Decision> {
    if view.cluster_id().is_some() {
        return None;
    }
    if has_members(view) {
        return adopt(view);
    }
    if !view.desired.is_valid || view.desired.replicas == 0 {
        return Some(Decision::wait(view));
    }
    let decide = |phase, effect: Option<Effect>| {
        let bootstrap = (OperationKind::Bootstrap, Target::Member(SEED), phase);
        Some(Decision::operate(view, bootstrap, effect))
    };
    if let Some(effect) = prepare(view) {
        return decide(Phase::Preparing, Some(effect));
    }
    if !view.seen.certificates.is_usable() {
        return decide(Phase::Preparing, None);
    }
    if let Some(effect) = start(view) {
        return decide(Phase::Joining, Some(effect));
    }
    record(view).or_else(|| decide(Phase::Joining, None))
}

/// Whether there are members already: more than the first one was made, which comes after its cluster is recorded. The
/// record was lost.
fn has_members(view: &View) -> bool {
    view.seen.entries().any(|(ordinal, _)| ordinal != SEED)
        || view.stateful_set().is_some_and(|set| set.replicas > 1)
}

/// Records the cluster again that our pods are. Until one answers they are started, and nothing else.
fn adopt(view: &View) -> Option<Decision> {
    let membership = view.seen.membership.known()?;
    let record = Record { cluster_id: Some(membership.cluster_id), ..view.seen.record.clone() };
    Some(Decision { record, ..Decision::wait(view) })
}

/// What has to be there before the pod.
fn prepare(view: &View) -> Option<Effect> {
    if view.lacks_hold() {
        return Some(Effect::AddFinalizer);
    }
    view.seen.services.is_known_and(|found| *found == Found::Outdated).then_some(Effect::ApplyServices)
}

/// The pod, and what it is told.
fn start(view: &View) -> Option<Effect> {
    let template = view.desired.template;
    if let Some(effect) = view.apply_stateful_set(1, template) {
        return Some(effect);
    }
    let outdated = view.pod(SEED).filter(|pod| pod.template != template && view.status(SEED).is_none());
    if let Some(pod) = outdated.filter(|pod| !pod.is_deleting) {
        return Some(Effect::DeletePod { pod: pod.handle.clone(), ordinal: SEED, only_if: None });
    }
    if view.pod(SEED).is_some_and(fails_on_data) || is_stillborn(view) {
        return wipe(view);
    }
    let wanted = view.entry_for(SEED, Purpose::Seed, template)?;
    let is_told = match view.seen.entry(SEED) {
        Fact::Known(entry) => {
            let is_for_pod = entry.purpose == Purpose::Run || entry.pod == wanted.pod;
            entry.volume == wanted.volume && entry.template == wanted.template && is_for_pod
        }
        Fact::Absent => false,
        Fact::Unknown => true,
    };
    if is_told { settle(view) } else { seed(view, wanted) }
}

fn seed(view: &View, entry: ConfigEntry) -> Option<Effect> {
    match view.write_config(BTreeMap::from([(SEED, entry)]))? {
        Effect::WriteConfig { found, entries, .. } => {
            Some(Effect::WriteConfig { found, entries, initial_cluster: vec![SEED] })
        }
        other => Some(other),
    }
}

/// Whether the seed serves and has never led. One that dies before the first entries of its log are written finds a log
/// of nobody, and waits for a leader for ever.
fn is_stillborn(view: &View) -> bool {
    let is_seed = view.seen.entry(SEED).is_known_and(|entry| entry.purpose == Purpose::Seed);
    let is_led = view.status(SEED).is_none_or(|status| status.leader.is_some());
    is_seed && !is_led && view.seen.operation_age.is_past() && view.seen.health_age.is_past()
}

/// A seed whose data are beyond use, before anybody knew of its cluster: it begins anew.
fn wipe(view: &View) -> Option<Effect> {
    let volume = view.seen.volume(SEED).found();
    if let Some(volume) = volume.filter(|volume| !volume.is_deleting && !view.desired.is_in_memory) {
        return Some(Effect::DeleteVolume {
            volume: volume.handle.clone(),
            ordinal: SEED,
            membership: None,
            keeps_data: false,
        });
    }
    // The next pod would be told the same, and fail on it again. As a seed no other pod begins.
    if view.seen.entry(SEED).is_known_and(|entry| entry.purpose == Purpose::Run) {
        let config = view.seen.config.known()?;
        return Some(Effect::WithdrawConfig { found: config.handle.clone(), ordinal: SEED });
    }
    let pod = view.pod(SEED).filter(|pod| !pod.is_deleting)?;
    Some(Effect::DeletePod { pod: pod.handle.clone(), ordinal: SEED, only_if: None })
}

/// The seed serves: from now on its data must be there.
fn settle(view: &View) -> Option<Effect> {
    let status = view.status(SEED).filter(|status| status.leader.is_some())?;
    let entry = view.seen.entry(SEED).found()?;
    if entry.purpose == Purpose::Run && entry.member == Some(status.member_id) {
        return None;
    }
    let entry = ConfigEntry { member: Some(status.member_id), ..entry.turned(Purpose::Run) };
    view.write_entry(SEED, entry)
}

/// Its cluster is recorded.
fn record(view: &View) -> Option<Decision> {
    let status = view.status(SEED).filter(|status| status.leader.is_some())?;
    let entry = view.seen.entry(SEED).found()?;
    let is_settled = entry.purpose == Purpose::Run && entry.member == Some(status.member_id);
    let record = Record { cluster_id: Some(status.cluster_id), ..view.seen.record.clone() };
    is_settled.then(|| Decision { record, ..Decision::wait(view) })
}
