//! The event for an action that was carried out. Pure.

use super::Execution;
use crate::kinds::etcdcluster::actions::Action;
use crate::kinds::etcdcluster::names;
use crate::kinds::etcdcluster::observation::{MemberId, Ordinal, Recovery, RecoveryPhase};

use crate::controllers::api_write::Note;

/// The event, where it is worth one.
pub fn of(action: &Action, execution: &Execution<'_>) -> Option<Note> {
    let name = execution.name();
    let member = |ordinal: &Ordinal| names::member(&name, *ordinal);
    let with_id = |id: &MemberId| format!("{:x}", id.0);
    let note = |reason, action, text| Some(Note { warning: false, reason, action, text });
    match action {
        Action::WriteRecord { before, record } => {
            if record.recovery != before.recovery {
                return recovery(&name, before.recovery.as_ref(), record.recovery.as_ref()?);
            }
            let id = record.cluster_id.filter(|_| before.cluster_id.is_none())?;
            note("ClusterRecorded", "Bootstrap", format!("etcd cluster {:x} serves and is recorded", id.0))
        }
        Action::MemberAdd { ordinal, .. } => {
            note("MemberAdded", "AddMember", format!("member {} was added as a learner", member(ordinal)))
        }
        Action::MemberPromote { ordinal, member: id, .. } => {
            let text = format!("member {} ({}) has caught up and votes", member(ordinal), with_id(id));
            note("MemberPromoted", "PromoteMember", text)
        }
        Action::MemberRemove { ordinal, member: id, .. } => {
            let text = format!("member {} ({}) was removed", member(ordinal), with_id(id));
            note("MemberRemoved", "RemoveMember", text)
        }
        Action::MoveLeader { from, to, .. } => {
            let text = format!(
                "leadership was handed from {} to {}",
                place(execution, *from),
                place(execution, *to)
            );
            note("LeaderMoved", "MoveLeader", text)
        }
        Action::DeletePod { ordinal, .. } => {
            note("PodRestarted", "DeletePod", format!("pod {} is being recreated", member(ordinal)))
        }
        Action::RetainVolume { ordinal, .. } => {
            let claim = names::claim(&name, *ordinal);
            note(
                "VolumeRetained",
                "RetainVolume",
                format!("the PersistentVolume of claim {claim} outlives it"),
            )
        }
        Action::DeleteVolume { ordinal, .. } => {
            let text = format!("claim {} was deleted", names::claim(&name, *ordinal));
            note("VolumeDeleted", "DeleteVolume", text)
        }
        Action::ResizeVolume { ordinal, size, .. } => {
            let text = format!("claim {} is being resized to {size} bytes", names::claim(&name, *ordinal));
            note("VolumeResized", "ResizeVolume", text)
        }
        other => of_care(other, execution),
    }
}

/// The same of the care for what members hold.
fn of_care(action: &Action, execution: &Execution<'_>) -> Option<Note> {
    let name = execution.name();
    let note = |reason, action, text| Some(Note { warning: false, reason, action, text });
    match action {
        Action::Defragment { ordinal, .. } => note(
            "MemberDefragmented",
            "Defragment",
            format!("member {} was defragmented", names::member(&name, *ordinal)),
        ),
        Action::Compact { revision, .. } => {
            note("Compacted", "Compact", format!("revisions up to {revision} were dropped to make room"))
        }
        Action::StartBackup { version, .. } => {
            let job = names::backup_before(&name, *version);
            note(
                "BackupStarted",
                "Backup",
                format!("Job {job} takes a backup before the upgrade to {version}"),
            )
        }
        Action::AuthEnable { .. } => {
            note("AuthenticationEnabled", "EnableAuthentication", "etcd requires authentication".to_owned())
        }
        Action::SetRootPassword { .. } => note("RootPasswordSet", "SetRootPassword", password_set(execution)),
        _ => None,
    }
}

fn password_set(execution: &Execution<'_>) -> String {
    format!(
        "root has the password that is in secret {}",
        execution.spec.root_secret.as_deref().unwrap_or_default()
    )
}

/// The event of objects that another client changes each time that they are put back; none where there are none.
pub fn of_contest(left: &[String]) -> Option<Note> {
    let text = format!(
        "another client or a webhook changes {} each time that gatehouse restores it: gatehouse leaves it for ten minutes; \
         `kubectl get --show-managed-fields -o yaml` names the writer of each field",
        left.join(" and ")
    );
    let note = Note { warning: true, reason: "ObjectContested", action: "Apply", text };
    (!left.is_empty()).then_some(note)
}

/// The event of an action that was not carried out, where nothing else reports it.
pub fn of_failure(action: &Action, name: &str, why: &str) -> Option<Note> {
    let note = |reason, action, text| Some(Note { warning: true, reason, action, text });
    match action {
        Action::Defragment { ordinal, .. } => {
            let text = format!("member {} was not defragmented: {why}", names::member(name, *ordinal));
            note("DefragmentationFailed", "Defragment", text)
        }
        Action::StartBackup { version, .. } => {
            let text = format!("failed to start a backup before the upgrade to {version}: {why}");
            note("BackupStartFailed", "Backup", text)
        }
        Action::ApplyBackupSchedule => {
            let text = format!("failed to apply CronJob {}: {why}", names::backup(name));
            note("BackupScheduleFailed", "Backup", text)
        }
        _ => None,
    }
}

/// How far a recovery from a lost quorum has come, where it has come to another phase.
fn recovery(cluster: &str, before: Option<&Recovery>, now: &Recovery) -> Option<Note> {
    let is_same = |before: &Recovery| (&before.token, before.phase) == (&now.token, now.phase);
    if before.is_some_and(is_same) {
        return None;
    }
    let survivor = now.survivor.map_or_else(|| "no member".to_owned(), |one| names::member(cluster, one));
    let request = &now.token;
    let (reason, text) = match now.phase {
        RecoveryPhase::Fencing => {
            let index = now.raft_index;
            let kept = format!("the data of {survivor} are kept, up to entry {index} of the log");
            (
                "RecoveryStarted",
                format!("request {request} to recover: {kept}, the other members are stopped"),
            )
        }
        RecoveryPhase::Done => {
            ("RecoveryDone", format!("request {request} to recover: {survivor} serves, others are recreated"))
        }
        RecoveryPhase::Cancelled => {
            ("RecoveryCancelled", format!("request {request} to recover was cancelled"))
        }
        RecoveryPhase::Forcing | RecoveryPhase::Clearing | RecoveryPhase::Unreadable => return None,
    };
    Some(Note { warning: now.phase != RecoveryPhase::Done, reason, action: "Recover", text })
}

/// The name of the member of that identity, or the identity where no member is known by it.
fn place(execution: &Execution<'_>, id: MemberId) -> String {
    let member = execution.observation().membership.known().and_then(|list| list.find(id));
    let ordinal = member.and_then(|member| member.ordinal);
    ordinal.map_or_else(|| format!("{:x}", id.0), |ordinal| names::member(&execution.name(), ordinal))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::etcdcluster::observation::ClusterId;

    #[test]
    fn a_defragmentation_that_failed_is_reported_and_what_is_tried_again_is_not() {
        let (cluster_id, member) = (ClusterId(1), MemberId(2));
        let failed =
            of_failure(&Action::Defragment { cluster_id, member, ordinal: Ordinal(1) }, "c", "no answer");
        let failed = failed.unwrap();
        assert!(failed.warning);
        assert_eq!(
            (failed.reason, failed.text.as_str()),
            ("DefragmentationFailed", "member c-1 was not defragmented: no answer")
        );
        let refused = of_failure(&Action::ApplyBackupSchedule, "c", "it is forbidden").unwrap();
        assert_eq!(
            (refused.reason, refused.text.as_str()),
            ("BackupScheduleFailed", "failed to apply CronJob c-backup: it is forbidden")
        );
        assert_eq!(of_failure(&Action::Compact { cluster_id, revision: 1 }, "c", "no answer"), None);
    }
}
