//! Which version members may be brought to, from what they run. The gate asks the same of the spec; here it is asked
//! of the members, so that it holds without the gate. Pure.
//!
//! Which versions lead to which is in [`versions`], for both.

use serde::Serialize;

use super::{is_outdated, is_stuck};
use crate::kinds::etcdcluster::api::versions;
use crate::kinds::etcdcluster::observation::{Backup, Fact, MemberStatus, Minor, Ordinal, Version};
use crate::kinds::etcdcluster::plan::cluster_state::{ClusterState, quorum};

/// The first minor that cannot read what older members have logged: a snapshot has to lie before it.
const FIRST_WITHOUT_V2: Minor = 7;

/// What the rules say of the version that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum Step {
    /// Members may be brought to it.
    Go(Version),
    /// They may, after something else.
    Prepare(Preparation),
    /// They may not.
    Refused(Refusal),
    /// Too little is known to tell.
    Unclear,
}

impl Step {
    /// The version, where members may be brought to it now.
    #[must_use]
    pub const fn version(self) -> Option<Version> {
        match self {
            Self::Go(version) => Some(version),
            Self::Prepare(_) | Self::Refused(_) | Self::Unclear => None,
        }
    }
}

/// What comes before the first member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum Preparation {
    /// A verified backup.
    Backup,
    /// A snapshot on the disk of each member.
    Snapshots,
    /// Data and log of each member that the lower minor can read.
    Downgrade(Minor),
    /// No downgrade that is still allowed.
    CancelDowngrade,
    /// Voters enough that one of them can lose its data in memory. They come by themselves: more are asked for.
    Voters,
}

/// Why members may not be brought to a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum Refusal {
    /// This release does not know its minor.
    Unsupported,
    /// Etcd cannot go there from what members run.
    Version(versions::Refusal),
    /// Data in memory end with their pod, and so few members are asked for that no majority would be left.
    DropsData,
}

/// What the rules say of the version that is asked for.
#[must_use]
pub fn step(cluster: &ClusterState) -> Step {
    // A pod that is recreated reads its certificates again; and whom it is to trust is part of its template.
    if cluster.stateful_set().is_some() && !cluster.seen.certificates.is_usable() {
        return Step::Unclear;
    }
    let wanted = cluster.desired.template.version;
    if versions::find(wanted.minor).is_none() {
        return Step::Refused(Refusal::Unsupported);
    }
    let current = cluster.template().version;
    let allowed = |status: &MemberStatus| status.downgrade_target.is_known_and(|to| *to < wanted.minor);
    if cluster.seen.answers().any(|(_, status)| allowed(status)) {
        return Step::Prepare(Preparation::CancelDowngrade);
    }
    if let Some(step) = in_memory(cluster) {
        return step;
    }
    if current == wanted && !cluster.seen.cluster_version.is_known_and(|agreed| wanted.minor < *agreed) {
        return Step::Go(wanted);
    }
    let Fact::Known(agreed) = cluster.seen.cluster_version else { return Step::Unclear };
    // Once members have agreed on the lower minor nothing is in the way of those that are not there yet.
    let refused = versions::refused_upgrade(wanted, agreed, None)
        .or_else(|| versions::refused_downgrade(wanted, agreed, cluster.desired.allows_downgrade));
    if let Some(refusal) = refused {
        return Step::Refused(Refusal::Version(refusal));
    }
    let answers: Vec<_> = cluster.seen.answers().map(|(_, status)| status).collect();
    let goes_down = |status: &&MemberStatus| status.downgrade_target.is_known_and(|to| *to == wanted.minor);
    let is_on_its_way_down = current.minor > wanted.minor && answers.iter().any(goes_down);
    if is_on_its_way_down && !all_members(cluster, |ordinal| cluster.status(ordinal).is_some()) {
        // Whether a silent one has data that the lower minor can read is not known.
        return Step::Prepare(Preparation::Downgrade(wanted.minor));
    }
    if wanted.minor > agreed {
        return upwards(cluster, wanted, agreed, &answers);
    }
    let above: Vec<_> = answers.into_iter().filter(|status| status.version.minor > wanted.minor).collect();
    if wanted.minor < agreed || above.iter().any(|status| !is_readable_by(status, wanted.minor)) {
        return Step::Prepare(Preparation::Downgrade(wanted.minor));
    }
    if wanted > current { backed_up(cluster, wanted) } else { Step::Go(wanted) }
}

/// What keeps pods with data in memory from being recreated, where one is due: each takes its data with it, which the
/// others have to be a majority to make up for. Nothing is in the way where that is so.
fn in_memory(cluster: &ClusterState) -> Option<Step> {
    if !cluster.desired.is_in_memory || !is_due(cluster) {
        return None;
    }
    let spare_one = |voters: usize| voters.saturating_sub(1) >= quorum(voters);
    let asked_for = usize::try_from(cluster.desired.replicas).unwrap_or(usize::MAX);
    match cluster.membership()?.voters().count() {
        voters if spare_one(voters) => None,
        _ if spare_one(asked_for) => Some(Step::Prepare(Preparation::Voters)),
        _ => Some(Step::Refused(Refusal::DropsData)),
    }
}

/// Whether pods are not made from what is asked for, or will not be.
fn is_due(cluster: &ClusterState) -> bool {
    let wanted = cluster.desired.template;
    let comes = cluster.stateful_set().is_some_and(|set| set.template != wanted);
    comes || is_outdated(cluster, wanted)
}

fn upwards(cluster: &ClusterState, wanted: Version, agreed: Minor, answers: &[&MemberStatus]) -> Step {
    // Of one that does not come up as it is nothing is to be learned, and it is what has to be recreated.
    let is_accounted_for = |ordinal: Ordinal| {
        cluster.status(ordinal).is_some()
            || cluster.pod(ordinal).is_some_and(|pod| is_stuck(cluster, ordinal, pod))
    };
    if !all_members(cluster, is_accounted_for) {
        return Step::Unclear;
    }
    let lowest = answers.iter().map(|status| status.version).min();
    if let Some(refusal) = versions::refused_upgrade(wanted, agreed, lowest) {
        return Step::Refused(Refusal::Version(refusal));
    }
    if wanted.minor >= FIRST_WITHOUT_V2 {
        let older: Vec<_> = answers.iter().filter(|status| status.version.minor < wanted.minor).collect();
        if older.iter().any(|status| status.has_saved_snapshot.is_unknown()) {
            return Step::Unclear;
        }
        if older.iter().any(|status| !status.has_saved_snapshot.is_known_and(|saved| *saved)) {
            return Step::Prepare(Preparation::Snapshots);
        }
    }
    backed_up(cluster, wanted)
}

/// Whether that is so of each member.
fn all_members(cluster: &ClusterState, is_so: impl Fn(Ordinal) -> bool) -> bool {
    cluster
        .membership()
        .is_some_and(|membership| membership.members.iter().all(|member| member.ordinal.is_some_and(&is_so)))
}

fn backed_up(cluster: &ClusterState, wanted: Version) -> Step {
    let has_backup = cluster.seen.backup.is_known_and(|backup| *backup == Backup::Recent);
    // Where one runs it already, this is the way back from a downgrade that was given up.
    let is_new = cluster.seen.answers().all(|(_, status)| status.version < wanted);
    if cluster.desired.backs_up_before_upgrade && !has_backup && is_new {
        Step::Prepare(Preparation::Backup)
    } else {
        Step::Go(wanted)
    }
}

/// Whether a member's data can be read by a lower minor.
fn is_readable_by(status: &MemberStatus, minor: Minor) -> bool {
    match status.storage_version {
        Fact::Known(storage) => storage <= minor,
        // Before 3.6 there was none.
        Fact::Absent => true,
        Fact::Unknown => false,
    }
}
