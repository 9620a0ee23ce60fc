//! The actions of a reconciliation as data, each with its preconditions.
//!
//! Guarantees: an action names the very object, member and cluster that it was decided on, so that its executor
//! can read again, live, and refuse where anything has moved; each action names the points before and after it,
//! where faults are planted and traces hang. A new action that does not does not compile.
//! Never: decides anything. What to do about a refusal is for the next reconciliation.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::observation::{
    Alarm, CertificateId, ClusterId, ConfigEntry, Handle, Holder, MemberId, Membership, Minor, Ordinal,
    Record, Refusals, Role, Template, Uid, Version,
};
use crate::certs::rotate::steps::Why;
use crate::controllers::action;
use crate::controllers::fail_points::{FailPoints, fail_points};

/// The list of members that a change of it was decided on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MembershipGuard {
    /// The cluster that must answer.
    pub cluster_id: ClusterId,
    /// [`Membership::fingerprint`] of the list that it must answer with.
    pub fingerprint: u64,
}

impl MembershipGuard {
    /// Nothing but that very list.
    #[must_use]
    pub fn of(membership: &Membership) -> Self {
        Self { cluster_id: membership.cluster_id, fingerprint: membership.fingerprint() }
    }
}

/// What has to be so, asked once more, for a pod to be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Precondition {
    /// The other voters of the list are a majority of it, and serve.
    OthersServe {
        /// The list that it is in.
        membership: MembershipGuard,
        /// The voter that they have to do without.
        member: MemberId,
    },
    /// No majority answers.
    QuorumLost,
}

/// How the Secret of an authority is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AuthorityWrite {
    /// With a new key. Only where none can be read.
    Create,
    /// The same key and name, with a new end.
    Reissue,
    /// What is to be trusted alone.
    Bundle,
}

/// How the Secret of a leaf is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LeafWrite {
    /// With a new leaf, and what is to be trusted.
    Sign(Why),
    /// What is to be trusted alone.
    Trust,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Action {
    /// Write into the status what is remembered. Conditional on the EtcdCluster as it was read.
    WriteRecord {
        /// What was read.
        before: Record,
        /// What is to be remembered.
        record: Record,
    },
    /// Write the Secret with the authority of the cluster's certificates.
    WriteAuthority {
        /// The one that was found; none: there must be none.
        found: Option<Handle>,
        /// What of it.
        write: AuthorityWrite,
        /// The authorities that stay trusted beside the one that signs.
        bundle: BTreeSet<CertificateId>,
    },
    /// Write a Secret with a certificate of the cluster.
    WriteCertificate {
        /// The one that was found; none: there must be none.
        found: Option<Handle>,
        /// Who shows it.
        holder: Holder,
        /// What of it.
        write: LeafWrite,
        /// The Secret of the authority that signs, and that says who is to be trusted.
        authority: Handle,
    },
    /// Make, or put right, the Services and what else depends on no member.
    ApplyServices,
    /// Make the StatefulSet, or change its count and template.
    ApplyStatefulSet {
        /// The one that was found; none: there must be none.
        found: Option<Handle>,
        /// Pods that it kept.
        from: u32,
        /// Pods that it is to keep.
        replicas: u32,
        /// What it is to make them from.
        template: Template,
    },
    /// Write the entries of pods, and leave other entries as they are.
    WriteConfig {
        /// The ConfigMap that was found; none: there must be none.
        found: Option<Handle>,
        /// The entry of each pod.
        entries: BTreeMap<Ordinal, ConfigEntry>,
        /// The ordinals of `--initial-cluster`: the members of etcd's list, or the seed alone.
        initial_cluster: Vec<Ordinal>,
    },
    /// Take the entry of the pod at an ordinal away: nothing of its member is left.
    WithdrawConfig {
        /// The ConfigMap that was found.
        found: Handle,
        /// Which pod.
        ordinal: Ordinal,
    },
    /// Tell Service and PodDisruptionBudget what a pod's member is.
    LabelPod {
        /// The pod.
        pod: Handle,
        /// Where it is.
        ordinal: Ordinal,
        /// What its member is; none: there is no member.
        role: Option<Role>,
    },
    /// Delete a pod. The StatefulSet recreates it.
    DeletePod {
        /// The pod.
        pod: Handle,
        /// Where it is.
        ordinal: Ordinal,
        /// What has to be so right then; none: the pod serves no client, or there are too few voters to avoid it.
        precondition: Option<Precondition>,
    },
    /// Write onto the claim of a volume that a recovery has set its member aside, or that it has not.
    SetAsideVolume {
        /// The claim.
        volume: Handle,
        /// Where it is.
        ordinal: Ordinal,
        /// Which of the two.
        is_set_aside: bool,
    },
    /// Keep the data of a volume beyond its claim.
    RetainVolume {
        /// The claim.
        volume: Handle,
        /// Where it is.
        ordinal: Ordinal,
    },
    /// Delete a volume's claim.
    DeleteVolume {
        /// The claim.
        volume: Handle,
        /// Where it is.
        ordinal: Ordinal,
        /// The list of members, none of which has data on it; none where the whole cluster goes, or never was.
        membership: Option<MembershipGuard>,
        /// Whether its data have to outlive it.
        keeps_data: bool,
    },
    /// Let a volume grow.
    ResizeVolume {
        /// The claim.
        volume: Handle,
        /// Where it is.
        ordinal: Ordinal,
        /// Bytes to ask for.
        size: u64,
    },
    /// Make the PodDisruptionBudget, or change it.
    ApplyBudget {
        /// The one that was found; none: there must be none.
        found: Option<Handle>,
        /// Voters that evictions leave.
        min_available: u32,
    },
    /// Add a learner with the peer URL of an ordinal.
    MemberAdd {
        /// The list that it is added to.
        membership: MembershipGuard,
        /// Its ordinal.
        ordinal: Ordinal,
        /// The pod that waits for it.
        pod: Uid,
        /// The empty volume that it gets.
        volume: Uid,
    },
    /// Make a learner a voter.
    MemberPromote {
        /// The list that it is in.
        membership: MembershipGuard,
        /// The learner.
        member: MemberId,
        /// Its ordinal.
        ordinal: Ordinal,
    },
    /// Remove a member.
    MemberRemove {
        /// The list that it is in.
        membership: MembershipGuard,
        /// The member.
        member: MemberId,
        /// Its ordinal, whose peer URL it must have.
        ordinal: Ordinal,
    },
    /// Hand leadership to another voter.
    MoveLeader {
        /// The list that both are in.
        membership: MembershipGuard,
        /// Who leads, and is asked.
        from: MemberId,
        /// Who is to lead.
        to: MemberId,
    },
    /// Disarm an alarm.
    AlarmDisarm {
        /// The cluster that must answer.
        cluster_id: ClusterId,
        /// The alarm.
        alarm: Alarm,
    },
    /// Drop old revisions.
    Compact {
        /// The cluster that must answer.
        cluster_id: ClusterId,
        /// The newest revision that goes.
        revision: u64,
    },
    /// Let a member give free space back.
    Defragment {
        /// The cluster that must answer.
        cluster_id: ClusterId,
        /// The member that must answer.
        member: MemberId,
        /// Its ordinal.
        ordinal: Ordinal,
    },
    /// Append entries that change no key, so that every member comes to save a snapshot.
    AppendEntries {
        /// The cluster that must answer.
        cluster_id: ClusterId,
    },
    /// Allow members to run one minor less.
    DowngradeEnable {
        /// The list of the members that are to.
        membership: MembershipGuard,
        /// That minor.
        target: Minor,
    },
    /// Take that back.
    DowngradeCancel {
        /// The cluster that must answer.
        cluster_id: ClusterId,
    },
    /// Create root in etcd, and enable authentication.
    AuthEnable {
        /// The cluster that must answer.
        cluster_id: ClusterId,
        /// The Secret with root's password; none: root has none.
        secret: Option<Handle>,
    },
    /// Give root another password.
    SetRootPassword {
        /// The cluster that must answer.
        cluster_id: ClusterId,
        /// The Secret that has it.
        secret: Handle,
    },
    /// Make what takes backups, put it right, or take it away where none is asked for any more.
    ApplyBackupSchedule,
    /// Take a backup before an upgrade.
    StartBackup {
        /// The cluster that must answer.
        cluster_id: ClusterId,
        /// What is upgraded to: one backup for each.
        version: Version,
    },
    /// Hold the object, so that its deletion waits for us.
    AddFinalizer,
    /// Let the object go.
    RemoveFinalizer,
}

impl Action {
    /// Whether it takes something away, or changes who votes: no later action brings back what was. A reconciliation
    /// has at most one such action.
    #[must_use]
    pub const fn is_irreversible(&self) -> bool {
        match self {
            Self::ApplyStatefulSet { from, replicas, .. } => *replicas < *from,
            Self::DeletePod { .. }
            | Self::DeleteVolume { .. }
            | Self::ResizeVolume { .. }
            | Self::MemberAdd { .. }
            | Self::MemberPromote { .. }
            | Self::MemberRemove { .. }
            | Self::AlarmDisarm { .. }
            | Self::Compact { .. }
            | Self::DowngradeEnable { .. }
            | Self::AuthEnable { .. }
            | Self::SetRootPassword { .. }
            | Self::RemoveFinalizer => true,
            Self::WriteRecord { .. }
            | Self::WriteAuthority { .. }
            | Self::WriteCertificate { .. }
            | Self::ApplyServices
            | Self::WriteConfig { .. }
            | Self::WithdrawConfig { .. }
            | Self::LabelPod { .. }
            | Self::SetAsideVolume { .. }
            | Self::RetainVolume { .. }
            | Self::ApplyBudget { .. }
            | Self::MoveLeader { .. }
            | Self::Defragment { .. }
            | Self::AppendEntries { .. }
            | Self::DowngradeCancel { .. }
            | Self::ApplyBackupSchedule
            | Self::StartBackup { .. }
            | Self::AddFinalizer => false,
        }
    }

    /// Writes down whether the API server has refused it, if that is tried again after everything else.
    pub fn remember(&self, refusals: &mut Refusals, is_refused: bool) {
        match self {
            Self::ApplyStatefulSet { template, .. } => {
                let other = refusals.template.filter(|refused| refused != template);
                refusals.template = if is_refused { Some(*template) } else { other };
            }
            Self::ResizeVolume { ordinal, .. } => refusals.volume = is_refused.then_some(*ordinal),
            Self::LabelPod { ordinal, .. } => refusals.label = is_refused.then_some(*ordinal),
            Self::ApplyServices => refusals.services = is_refused,
            Self::ApplyBudget { .. } => refusals.budget = is_refused,
            _ => {}
        }
    }

    /// Whether it is about backups alone.
    #[must_use]
    pub const fn is_of_backups(&self) -> bool {
        matches!(self, Self::ApplyBackupSchedule | Self::StartBackup { .. })
    }

    /// Whether it is about certificates alone.
    const fn is_of_certificates(&self) -> bool {
        matches!(self, Self::WriteAuthority { .. } | Self::WriteCertificate { .. })
    }

    /// What it is called: in logs, in metrics, and in the names of its points.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.points().name()
    }

    /// The points at which the one that carries it out may be stopped.
    #[must_use]
    pub const fn points(&self) -> FailPoints {
        match self {
            Self::WriteRecord { .. } => fail_points!("write-record"),
            Self::WriteAuthority { .. } => fail_points!("write-authority"),
            Self::WriteCertificate { .. } => fail_points!("write-certificate"),
            Self::ApplyServices => fail_points!("apply-services"),
            Self::ApplyStatefulSet { .. } => fail_points!("apply-stateful-set"),
            Self::WriteConfig { .. } => fail_points!("write-config"),
            Self::WithdrawConfig { .. } => fail_points!("withdraw-config"),
            Self::LabelPod { .. } => fail_points!("label-pod"),
            Self::DeletePod { .. } => fail_points!("delete-pod"),
            Self::SetAsideVolume { .. } => fail_points!("set-aside-volume"),
            Self::RetainVolume { .. } => fail_points!("retain-volume"),
            Self::DeleteVolume { .. } => fail_points!("delete-volume"),
            Self::ResizeVolume { .. } => fail_points!("resize-volume"),
            Self::ApplyBudget { .. } => fail_points!("apply-budget"),
            Self::MemberAdd { .. } => fail_points!("member-add"),
            Self::MemberPromote { .. } => fail_points!("member-promote"),
            Self::MemberRemove { .. } => fail_points!("member-remove"),
            Self::MoveLeader { .. } => fail_points!("move-leader"),
            Self::AlarmDisarm { .. } => fail_points!("alarm-disarm"),
            Self::Compact { .. } => fail_points!("compact"),
            Self::Defragment { .. } => fail_points!("defragment"),
            Self::AppendEntries { .. } => fail_points!("append-entries"),
            Self::DowngradeEnable { .. } => fail_points!("downgrade-enable"),
            Self::DowngradeCancel { .. } => fail_points!("downgrade-cancel"),
            Self::AuthEnable { .. } => fail_points!("auth-enable"),
            Self::SetRootPassword { .. } => fail_points!("set-root-password"),
            Self::ApplyBackupSchedule => fail_points!("apply-backup-schedule"),
            Self::StartBackup { .. } => fail_points!("start-backup"),
            Self::AddFinalizer => fail_points!("add-finalizer"),
            Self::RemoveFinalizer => fail_points!("remove-finalizer"),
        }
    }
}

impl action::Action for Action {
    fn points(&self) -> FailPoints {
        self.points()
    }

    /// What takes backups holds nothing up that members need; and a cluster goes on with the certificates that it has.
    fn holds_up_others(&self) -> bool {
        !self.is_of_backups() && !self.is_of_certificates()
    }

    /// What takes backups has a condition of its own.
    fn reports_refusal(&self) -> bool {
        !self.is_of_backups()
    }
}
