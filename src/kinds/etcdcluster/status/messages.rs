//! The messages of conditions. Pure.

use crate::api::field::Path;
use crate::kinds::etcdcluster::api::v1::BackupStatus;
use crate::kinds::etcdcluster::api::versions::{self, ALLOW_DOWNGRADE};
use crate::kinds::etcdcluster::names;
use crate::kinds::etcdcluster::observation::{
    Cause, Fact, Ordinal, PodPhase, Purpose, Recovery, RecoveryPhase, RootPassword, Unreadable, Version,
};
use crate::kinds::etcdcluster::plan::{BlockedReason, Plan, Preparation, Refusal};

/// Names in a row: `c-0`, `c-0 and c-1`, `c-0, c-1 and c-2`.
pub fn listed<Name: AsRef<str>>(names: &[Name]) -> String {
    let names: Vec<_> = names.iter().map(AsRef::as_ref).collect();
    match names.split_last() {
        None => "none".to_owned(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}

/// Fields in a row; none where there are none.
pub fn fields(paths: &[Path]) -> Option<String> {
    let names: Vec<_> = paths.iter().map(Path::to_string).collect();
    (!names.is_empty()).then(|| listed(&names))
}

/// The message about a spec with faults in these fields.
pub fn refused(paths: &[Path]) -> String {
    let fields = fields(paths).unwrap_or_else(|| "the spec".to_owned());
    format!("the webhook would refuse {fields}: members are left as they are")
}

/// Why a pod does not come up; none where it is on its way, or nothing is known. `named`: what an entry with the pod's
/// uid lets it do.
pub const fn hindrance(phase: PodPhase, named: Option<Purpose>) -> Option<&'static str> {
    match phase {
        PodPhase::Pending(Some(cause)) | PodPhase::Failing(cause) | PodPhase::Terminal(cause) => {
            Some(self::cause(cause))
        }
        PodPhase::Pending(None) => Some("its pod does not run yet"),
        PodPhase::Waiting if matches!(named, Some(Purpose::Force)) => Some("its data are being copied"),
        PodPhase::Waiting => Some("its pod waits for its entry in the ConfigMap"),
        PodPhase::Starting => Some("etcd starts"),
        PodPhase::Up => None,
    }
}

const fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::Unschedulable => "no node takes its pod",
        Cause::Image => "its image cannot be pulled",
        Cause::Killed => "its pod was killed from outside",
        Cause::Flags => "etcd refuses its flags",
        Cause::DataLost => "its volume is empty although it has had data",
        Cause::DataForeign => "its volume has the data of another member or cluster",
        Cause::NoRoom => {
            "its volume has no room for the copy of its data that comes first: let its claim grow"
        }
        Cause::DataCorrupt => "etcd cannot read its data",
        Cause::Inconsistent => {
            "etcd does not start because its data differ from another member's: it is replaced if the others are a \
             majority that agrees"
        }
        Cause::Removed => "etcd says that it has been removed",
        Cause::Other => "its containers end with an error",
    }
}

/// Why root does not have the password in a Secret. `is_on`: whether etcd has authentication enabled.
pub fn root_password(secret: &str, found: &Fact<RootPassword>, is_on: bool) -> String {
    let password = format!("the password in secret {secret}");
    let why = match found {
        Fact::Known(RootPassword::Unreadable(why)) => format!("secret {secret} {}", unreadable(*why)),
        Fact::Known(RootPassword::Barred) => {
            return format!("root cannot be given {password}: it was made as a user that never has one");
        }
        Fact::Known(RootPassword::Outdated { .. }) => return format!("root is about to be given {password}"),
        Fact::Known(RootPassword::Current) | Fact::Absent => return format!("root has {password}"),
        Fact::Unknown => return format!("whether root has {password} could not be found out"),
    };
    let until = if is_on { "root keeps the password that it has" } else { "no client is let in" };
    format!("{why}: until it has a password for root, {until}")
}

const fn unreadable(why: Unreadable) -> &'static str {
    match why {
        Unreadable::Missing => "is missing",
        Unreadable::Unanswered => "could not be read",
        Unreadable::OtherType => "is neither of type kubernetes.io/basic-auth nor Opaque",
        Unreadable::OtherUser => "has another username than root",
        Unreadable::NoPassword => "has no key password",
        Unreadable::Empty => "has an empty password",
        Unreadable::NotText => "has a password that is not UTF-8",
        Unreadable::TooLong => "has a password of more than 72 bytes, which is all that etcd reads",
    }
}

/// The message about the claim of a member that is being deleted.
pub fn terminating(cluster: &str, ordinal: Option<Ordinal>, plan: &Plan) -> String {
    let Some(ordinal) = ordinal else { return String::new() };
    let (claim, member) = (names::claim(cluster, ordinal), names::member(cluster, ordinal));
    let way = match plan.summary.replicas {
        Some(0..=2) => "; with spec.replicas 3 the member is replaced",
        Some(_) => "",
        // No member is replaced until a majority answers.
        None => "; they stay where its PersistentVolume has the reclaim policy Retain",
    };
    format!(
        "claim {claim} is being deleted, and its data go with the pod of {member}, which is neither restarted nor \
         stopped{way}"
    )
}

/// How data come back that no member has any more.
pub fn restore(backup: Option<&BackupStatus>) -> String {
    const HOW: &str = "docs/etcdcluster/tasks.md#restore-by-hand";
    match backup.and_then(|backup| backup.last_success.as_ref()) {
        Some(success) => {
            let name = success.name.as_deref().unwrap_or("the last one");
            format!("restore backup {name} into a new cluster by hand ({HOW})")
        }
        None => format!("no backup of them is known ({HOW})"),
    }
}

/// What a change waits for.
pub fn blocked(cluster: &str, blocked: BlockedReason) -> String {
    let member = |ordinal: Ordinal| names::member(cluster, ordinal);
    match blocked {
        BlockedReason::MembersUnknown => "the member list could not be read".to_owned(),
        BlockedReason::ForeignMember => "etcd counts a member that was not made here".to_owned(),
        BlockedReason::Learner(ordinal) => format!("{} does not vote yet", member(ordinal)),
        BlockedReason::Unstarted(ordinal) => format!("{} has not started yet", member(ordinal)),
        BlockedReason::Down(ordinal) => format!("{} does not serve", member(ordinal)),
        BlockedReason::Inconsistent(ordinal) => format!(
            "{} does not start because its data differ from another member's: gatehouse compares them with the others'",
            member(ordinal)
        ),
        BlockedReason::CatchingUp(ordinal) => {
            format!("{} serves, and lacks much of the log yet", member(ordinal))
        }
        BlockedReason::Uncompared => "the members' data are compared first".to_owned(),
        BlockedReason::SmallerThanQuota(ordinal) => format!(
            "the volume of {} has less room than spec.options.quotaBackendBytes lets its database take: no member is \
             restarted until the volume has grown, or the quota is smaller",
            member(ordinal)
        ),
        BlockedReason::Settling => "all members serve, and have to do so for a while".to_owned(),
        BlockedReason::AlarmsUnknown => "the alarms could not be read".to_owned(),
        BlockedReason::Corrupt | BlockedReason::Different => "the data of members differ".to_owned(),
        BlockedReason::ConfigUnknown => "the ConfigMap could not be read".to_owned(),
        BlockedReason::StatefulSetUnknown => "the StatefulSet could not be read".to_owned(),
        BlockedReason::BudgetUnknown => "the PodDisruptionBudget could not be read".to_owned(),
        BlockedReason::Leftovers(ordinal) => format!("what {} left is being deleted", member(ordinal)),
        BlockedReason::ClaimTerminating(ordinal) => {
            format!("the pod of {} stays, since its claim is being deleted", member(ordinal))
        }
        BlockedReason::Unkept(ordinal) => format!(
            "the PersistentVolume of {} could not be set to outlive its claim yet: without rights on \
             PersistentVolumes a person has to do that, and delete the claim",
            member(ordinal)
        ),
    }
}

/// How far a recovery has come; `left` are the pods that have to end first.
pub fn recovery(cluster: &str, recovery: &Recovery, left: Option<&str>) -> String {
    let survivor =
        recovery.survivor.map_or_else(|| "a member".to_owned(), |ordinal| names::member(cluster, ordinal));
    let step = match recovery.phase {
        RecoveryPhase::Fencing => "the other members are being stopped; their volumes are kept",
        RecoveryPhase::Forcing => "they are being copied, then it restarts as a cluster of one member",
        RecoveryPhase::Clearing => "it restarts as an ordinary member",
        RecoveryPhase::Done => "it serves",
        RecoveryPhase::Cancelled => "the quorum came back, or the request was withdrawn",
        RecoveryPhase::Unreadable => {
            return "a recovery was begun by another release of gatehouse, which has to end it".to_owned();
        }
    };
    let said =
        format!("the data of {survivor} are kept, up to entry {} of the log; {step}", recovery.raft_index);
    match left.filter(|_| recovery.phase.is_active()) {
        Some(left) => format!("{said}; waiting for {left} to end"),
        None => said,
    }
}

/// Why members may not be brought to a version.
pub fn refusal(wanted: Version, runs: Option<Version>, refusal: Refusal) -> String {
    let from = runs.map(|runs| format!(" from {runs}")).unwrap_or_default();
    match refusal {
        Refusal::Unsupported => {
            format!("version {wanted} is not among {}", listed(versions::SUPPORTED))
        }
        Refusal::Version(versions::Refusal::SkipsMinor) => {
            format!("cannot upgrade{from} to {wanted}: upgrade one minor version at a time")
        }
        Refusal::Version(versions::Refusal::SourcePatch(least)) => {
            format!("cannot upgrade{from} to {wanted} without losing data: upgrade to {least} first")
        }
        Refusal::Version(versions::Refusal::Backwards) => {
            format!("cannot downgrade{from} to {wanted}: etcd does not downgrade that far")
        }
        Refusal::Version(versions::Refusal::DowngradeNotAllowed) => {
            format!(
                "version {wanted} is a lower minor: allow it by the annotation {ALLOW_DOWNGRADE}: \"true\""
            )
        }
        Refusal::Version(versions::Refusal::TargetPatch(least)) => {
            format!("cannot downgrade to {wanted}: a later upgrade needs {least} or newer")
        }
        Refusal::DropsData => {
            "data in memory end with their pod: ask for 3 replicas at least before pods are restarted"
                .to_owned()
        }
    }
}

/// What an upgrade waits for before its first member.
pub fn preparation(preparation: Preparation) -> String {
    match preparation {
        Preparation::Backup => "a verified backup comes first".to_owned(),
        Preparation::Snapshots => "every member has to save a snapshot of its data first".to_owned(),
        Preparation::Downgrade(minor) => {
            format!("every member has to make its data readable to 3.{minor} first")
        }
        Preparation::CancelDowngrade => "a downgrade that is still allowed is taken back first".to_owned(),
        Preparation::Voters => "members that are still to be added come first".to_owned(),
    }
}
