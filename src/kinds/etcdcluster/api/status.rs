//! The vocabulary of an EtcdCluster's status: condition types, their reasons, operations and roles.

use serde::{Deserialize, Serialize};

/// Types of conditions. All are true where all is well, but Degraded, QuorumLost and Paused.
pub mod condition {
    /// What the spec asks for serves and can be changed: a quorum, all members asked for, at the version asked for, without
    /// an alarm, and with certificates that a member could start with. Else its reason is the worst that holds.
    pub const READY: &str = "Ready";
    /// A quorum serves: a linearizable read passed. Unknown where no member answers.
    pub const AVAILABLE: &str = "Available";
    /// A change is under way.
    pub const PROGRESSING: &str = "Progressing";
    /// Something needs attention although the cluster may serve.
    pub const DEGRADED: &str = "Degraded";
    /// Fewer voters than a majority have answered for longer than the grace period.
    pub const QUORUM_LOST: &str = "QuorumLost";
    /// The last backup that was due has been verified.
    pub const BACKUP_READY: &str = "BackupReady";
    /// Every certificate is there and valid, and root has the password that it is to have.
    pub const CERTIFICATES_READY: &str = "CertificatesReady";
    /// The spec passes the gate's own rules.
    pub const SPEC_VALID: &str = "SpecValid";
    /// Work rests because the spec says so.
    pub const PAUSED: &str = "Paused";

    /// All of them, in the order in which they are shown.
    pub const ALL: [&str; 9] = [
        READY,
        AVAILABLE,
        PROGRESSING,
        DEGRADED,
        QUORUM_LOST,
        BACKUP_READY,
        CERTIFICATES_READY,
        SPEC_VALID,
        PAUSED,
    ];
}

/// Reasons of conditions, by the type that they belong to.
pub mod reason {
    /// Ready: all members asked for serve, as they are asked for.
    pub const MEMBERS_READY: &str = "MembersReady";
    /// Ready: the spec asks for a change that has not begun.
    pub const CHANGE_PENDING: &str = "ChangePending";
    /// Ready: the object is in the namespace of gatehouse, where nothing is made.
    pub const NAMESPACE_REFUSED: &str = "NamespaceRefused";

    /// Available: a linearizable read passed.
    pub const QUORUM_SERVES: &str = "QuorumServes";
    /// Available, Degraded, CertificatesReady: no member answers.
    pub const UNREACHABLE: &str = "Unreachable";
    /// Available, Degraded, Progressing: the cluster is stopped, its data are kept.
    pub const STOPPED: &str = "Stopped";

    /// Progressing: nothing is left to do.
    pub const UP_TO_DATE: &str = "UpToDate";
    /// Available, Degraded, Progressing: the first member is being made.
    pub const BOOTSTRAPPING: &str = "Bootstrapping";
    /// Progressing: a member is being added.
    pub const SCALING_OUT: &str = "ScalingOut";
    /// Progressing: a learner catches up.
    pub const WAITING_FOR_LEARNER: &str = "WaitingForLearner";
    /// Progressing: a member is being removed.
    pub const SCALING_IN: &str = "ScalingIn";
    /// Progressing: members are moved to another version.
    pub const UPGRADING: &str = "Upgrading";
    /// Progressing: the next minor has to wait until every member has saved a snapshot under this one.
    pub const WAITING_FOR_SNAPSHOT: &str = "WaitingForSnapshot";
    /// Progressing: members are restarted for a changed template.
    pub const RESTARTING: &str = "Restarting";
    /// Progressing: a failed member is replaced.
    pub const REPLACING: &str = "Replacing";
    /// Progressing: a lost quorum is being recovered.
    pub const RECOVERING: &str = "Recovering";

    /// Degraded: members serve, nothing needs attention, and no alarm is armed.
    pub const HEALTHY: &str = "Healthy";
    /// Degraded: a member does not answer.
    pub const MEMBER_DOWN: &str = "MemberDown";
    /// Degraded: a pod is not made, or gets no node, volume or image, or ends before a container runs.
    pub const POD_NOT_RUNNING: &str = "PodNotRunning";
    /// Degraded: the database has reached its quota; etcd takes no writes.
    pub const DATABASE_QUOTA_EXCEEDED: &str = "DatabaseQuotaExceeded";
    /// Degraded: a member's data differ from the others'.
    pub const CORRUPT: &str = "Corrupt";
    /// Degraded: the claim of a member is being deleted, and goes with the member's data once its pod ends. No pod that
    /// holds such a claim is restarted or stopped.
    pub const CLAIM_TERMINATING: &str = "ClaimTerminating";
    /// Degraded: a member belongs to another etcd cluster. No change is made until a person has looked.
    pub const CLUSTER_ID_MISMATCH: &str = "ClusterIDMismatch";
    /// Degraded, BackupReady: an object of a name that the cluster needs belongs to another owner.
    pub const NAME_TAKEN: &str = "NameTaken";
    /// Degraded: gatehouse lacks a right that the cluster needs.
    pub const FORBIDDEN: &str = "Forbidden";
    /// Degraded: the API server refuses something else that the cluster needs.
    pub const APPLY_FAILED: &str = "ApplyFailed";
    /// Degraded: a learner does not catch up.
    pub const LEARNER_STUCK: &str = "LearnerStuck";
    /// Degraded: a member of the new version does not come up.
    pub const UPGRADE_STALLED: &str = "UpgradeStalled";
    /// Degraded, Available, QuorumLost: fewer voters than a majority answer.
    pub const QUORUM_LOST: &str = "QuorumLost";
    /// QuorumLost: a majority of the voters answers.
    pub const QUORUM_PRESENT: &str = "QuorumPresent";

    /// BackupReady: the last backup that was due is verified.
    pub const BACKUP_VERIFIED: &str = "BackupVerified";
    /// BackupReady: no scheduled backups are asked for, and none has been taken.
    pub const NO_BACKUPS: &str = "NoBackups";
    /// BackupReady: none has been verified yet.
    pub const NO_BACKUP_YET: &str = "NoBackupYet";
    /// BackupReady: two backups in a row are overdue.
    pub const BACKUP_OVERDUE: &str = "BackupOverdue";
    /// BackupReady: the last backup failed.
    pub const BACKUP_FAILED: &str = "BackupFailed";
    /// BackupReady: the claim that backups go to is missing, is being deleted or has lost its volume.
    pub const BACKUP_DESTINATION_UNAVAILABLE: &str = "BackupDestinationUnavailable";
    /// BackupReady: the data of members differ, or may, so that none is taken by the schedule and none is deleted.
    pub const DATA_SUSPECT: &str = "DataSuspect";
    /// BackupReady: scheduled backups rest.
    pub const BACKUP_SUSPENDED: &str = "BackupSuspended";

    /// CertificatesReady: all are there and valid.
    pub const CERTIFICATES_VALID: &str = "CertificatesValid";
    /// CertificatesReady: they are being made or renewed.
    pub const CERTIFICATES_PENDING: &str = "CertificatesPending";
    /// CertificatesReady: plain HTTP.
    pub const TLS_DISABLED: &str = "TLSDisabled";
    /// CertificatesReady: a Secret is missing or cannot be read.
    pub const SECRET_UNREADABLE: &str = "SecretUnreadable";
    /// CertificatesReady: members, or gatehouse, would not take what a Secret holds.
    pub const CERTIFICATE_INVALID: &str = "CertificateInvalid";
    /// CertificatesReady: a certificate has expired or soon will.
    pub const CERTIFICATE_EXPIRING: &str = "CertificateExpiring";
    /// CertificatesReady: root is about to get another password.
    pub const ROOT_PASSWORD_OUTDATED: &str = "RootPasswordOutdated";
    /// CertificatesReady: root cannot be given the password that it is to have.
    pub const ROOT_PASSWORD_UNSET: &str = "RootPasswordUnset";

    /// SpecValid: the gate's rules hold.
    pub const VALID: &str = "Valid";
    /// SpecValid: they hold, and the StorageClass of a claim that is smaller than the spec asks for lets no volume grow.
    pub const VOLUME_CANNOT_GROW: &str = "VolumeCannotGrow";
    /// SpecValid: they do not; existing members are left alone.
    pub const INVALID: &str = "SpecInvalid";
    /// SpecValid: what is asked for would drop data that lie in memory; members are left as they are.
    pub const WOULD_LOSE_DATA: &str = "WouldLoseData";

    /// Paused: the spec says so.
    pub const PAUSED_BY_SPEC: &str = "PausedBySpec";
    /// Paused: work goes on.
    pub const NOT_PAUSED: &str = "NotPaused";
}

/// A change that takes more than one reconciliation, as `status.operation.type` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Operation {
    /// The first member is being made.
    Bootstrap,
    /// A member is being added.
    ScaleOut,
    /// A member is being removed.
    ScaleIn,
    /// Members are moved to another version.
    Upgrade,
    /// A failed member is replaced.
    Replace,
    /// Members are restarted for a changed template.
    Restart,
    /// A lost quorum is being recovered.
    Recover,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Bootstrap,
        Self::ScaleOut,
        Self::ScaleIn,
        Self::Upgrade,
        Self::Replace,
        Self::Restart,
        Self::Recover,
    ];

    /// The word in the status.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bootstrap => "Bootstrap",
            Self::ScaleOut => "ScaleOut",
            Self::ScaleIn => "ScaleIn",
            Self::Upgrade => "Upgrade",
            Self::Replace => "Replace",
            Self::Restart => "Restart",
            Self::Recover => "Recover",
        }
    }

    /// The operation of that word; none where a newer release wrote one that this one does not know.
    #[must_use]
    pub fn find(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == word)
    }
}

/// What a member is to its cluster, as `status.members[].role` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// It votes.
    Voter,
    /// It follows and does not vote yet.
    Learner,
    /// It is counted and has not started yet.
    Unstarted,
}

impl Role {
    /// The word in the status.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Voter => "Voter",
            Self::Learner => "Learner",
            Self::Unstarted => "Unstarted",
        }
    }
}
