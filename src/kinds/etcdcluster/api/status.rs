//! The vocabulary of an EtcdCluster's status: condition types, their reasons, operations and roles.

use serde::Deserialize;

use crate::api::condition::{condition_types, reasons};
use crate::api::words::words;

// All are true where all is well, but Degraded, QuorumLost and Paused.
condition_types! {
    /// What the spec asks for serves and can be changed: a quorum, all members asked for, at the version asked for, without
    /// an alarm, and with certificates that a member could start with. Else its reason is the worst that holds.
    Ready,
    /// A quorum serves: a linearizable read passed. Unknown where no member answers.
    Available,
    /// A change is under way.
    Progressing,
    /// Something needs attention although the cluster may serve.
    Degraded,
    /// Fewer voters than a majority have answered for longer than the grace period.
    QuorumLost,
    /// The last backup that was due has been verified.
    BackupReady,
    /// Every certificate is there and valid, and root has the password that it is to have.
    CertificatesReady,
    /// The spec passes the gate's own rules.
    SpecValid,
    /// Work rests because the spec says so.
    Paused,
}

// Each begins with the types that it belongs to.
reasons! {
    /// Ready: all members asked for serve, as they are asked for.
    MembersReady,
    /// Ready: the spec asks for a change that has not begun.
    ChangePending,
    /// Ready: the object is in the namespace of gatehouse, where nothing is made.
    NamespaceRefused,
    /// Available: a linearizable read passed.
    QuorumServes,
    /// Available, Degraded, CertificatesReady: no member answers.
    Unreachable,
    /// Available, Degraded, Progressing: the cluster is stopped, its data are kept.
    Stopped,
    /// Progressing: nothing is left to do.
    UpToDate,
    /// Available, Degraded, Progressing: the first member is being made.
    Bootstrapping,
    /// Progressing: a member is being added.
    ScalingOut,
    /// Progressing: a learner catches up.
    WaitingForLearner,
    /// Progressing: a member is being removed.
    ScalingIn,
    /// Progressing: members are moved to another version.
    Upgrading,
    /// Progressing: the next minor has to wait until every member has saved a snapshot under this one.
    WaitingForSnapshot,
    /// Progressing: members are restarted for a changed template.
    Restarting,
    /// Progressing: a failed member is replaced.
    Replacing,
    /// Progressing: a lost quorum is being recovered.
    Recovering,
    /// Degraded: members serve, nothing needs attention, and no alarm is armed.
    Healthy,
    /// Degraded: a member does not answer.
    MemberDown,
    /// Degraded: a pod is not made, or gets no node, volume or image, or ends before a container runs.
    PodNotRunning,
    /// Degraded: the database has reached its quota; etcd takes no writes.
    DatabaseQuotaExceeded,
    /// Degraded: a member's data differ from the others'.
    Corrupt,
    /// Degraded: the claim of a member is being deleted, and goes with the member's data once its pod ends. No pod that
    /// holds such a claim is restarted or stopped.
    ClaimTerminating,
    /// Degraded: a member belongs to another etcd cluster. No change is made until a person has looked.
    ClusterIDMismatch,
    /// Degraded, BackupReady: an object of a name that the cluster needs belongs to another owner.
    NameTaken,
    /// Degraded: gatehouse lacks a right that the cluster needs.
    Forbidden,
    /// Degraded: the API server refuses something else that the cluster needs.
    ApplyFailed,
    /// Degraded: a learner does not catch up.
    LearnerStuck,
    /// Degraded: a member of the new version does not come up.
    UpgradeStalled,
    /// Degraded, Available, QuorumLost: fewer voters than a majority answer.
    QuorumLost,
    /// QuorumLost: a majority of the voters answers.
    QuorumPresent,
    /// BackupReady: the last backup that was due is verified.
    BackupVerified,
    /// BackupReady: no scheduled backups are asked for, and none has been taken.
    NoBackups,
    /// BackupReady: none has been verified yet.
    NoBackupYet,
    /// BackupReady: two backups in a row are overdue.
    BackupOverdue,
    /// BackupReady: the last backup failed.
    BackupFailed,
    /// BackupReady: the claim that backups go to is missing, is being deleted or has lost its volume.
    BackupDestinationUnavailable,
    /// BackupReady: the data of members differ, or may, so that none is taken by the schedule and none is deleted.
    DataSuspect,
    /// BackupReady: scheduled backups rest.
    BackupSuspended,
    /// CertificatesReady: all are there and valid.
    CertificatesValid,
    /// CertificatesReady: they are being made or renewed.
    CertificatesPending,
    /// CertificatesReady: plain HTTP.
    TLSDisabled,
    /// CertificatesReady: a Secret is missing or cannot be read.
    SecretUnreadable,
    /// CertificatesReady: members, or gatehouse, would not take what a Secret holds.
    CertificateInvalid,
    /// CertificatesReady: a certificate has expired or soon will.
    CertificateExpiring,
    /// CertificatesReady: root is about to get another password.
    RootPasswordOutdated,
    /// CertificatesReady: root cannot be given the password that it is to have.
    RootPasswordUnset,
    /// SpecValid: the gate's rules hold.
    Valid,
    /// SpecValid: they hold, and the StorageClass of a claim that is smaller than the spec asks for lets no volume grow.
    VolumeCannotGrow,
    /// SpecValid: they do not; existing members are left alone.
    SpecInvalid,
    /// SpecValid: what is asked for would drop data that lie in memory; members are left as they are.
    WouldLoseData,
    /// Paused: the spec says so.
    PausedBySpec,
    /// Paused: work goes on.
    NotPaused,
}

words! {
    /// A change that takes more than one reconciliation, as `status.operation.type` names it.
    #[derive(PartialOrd, Ord, Deserialize)]
    Operation:
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

words! {
    /// What a member is to its cluster, as `status.members[].role` names it.
    Role:
    /// It votes.
    Voter,
    /// It follows and does not vote yet.
    Learner,
    /// It is counted and has not started yet.
    Unstarted,
}
