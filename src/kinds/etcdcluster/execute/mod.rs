//! Executes actions, each under its preconditions.
//!
//! Guarantees: right before an action is sent its guards are held against what is so now: uids and resource versions by
//! the API server itself, in the same request, and what etcd says by asking it once more. What may have been done, for
//! its answer was lost, is left to the next reconciliation: nothing is sent twice.
//! Never: decides anything.

mod backups;
mod certificates;
mod config;
mod events;
mod maintenance;
mod membership;
mod objects;
mod pods;
mod users;
mod volumes;

use kube::Resource;

use super::Operator;
use super::actions::Action;
use super::observation::{Handle, Observation};
use crate::controllers::action::Failure;
use crate::controllers::api_write::ApiWrite;
use crate::controllers::reconciler;
use crate::kinds::etcdcluster::etcd::{self, Refusal};
pub use events::{of as note, of_contest as note_of_contest, of_failure as note_of_failure};

/// What a reconciliation of an EtcdCluster acts with.
pub type Execution<'a> = reconciler::Execution<'a, Operator>;

impl From<etcd::Error> for Failure {
    fn from(error: etcd::Error) -> Self {
        let is_undone = error.outcome() == etcd::Outcome::None;
        Self::Elsewhere { source: Box::new(error), is_undone }
    }
}

/// What etcd answered, where the refusal `fine` says that it is done already.
fn unless_refused<Answer>(answer: Result<Answer, etcd::Error>, fine: Refusal) -> Result<(), Failure> {
    match answer {
        Err(error) if error.refusal() == Some(fine) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(()),
    }
}

impl<'a> Execution<'a> {
    /// Carries one action out.
    ///
    /// # Errors
    /// Why it was not carried out, or not surely.
    #[expect(
        clippy::too_many_lines,
        reason = "one arm for each action, so that a new action does not compile without"
    )]
    pub async fn carry_out(self, action: &Action) -> Result<(), Failure> {
        match action {
            // The status was written before the first action.
            Action::WriteRecord { .. } => Ok(()),
            Action::WriteAuthority { found, write, bundle } => {
                certificates::write_authority(self, found.as_ref(), *write, bundle).await
            }
            Action::WriteCertificate { found, holder, write, authority } => {
                certificates::write_leaf(self, found.as_ref(), *holder, *write, authority).await
            }
            Action::ApplyServices => objects::services(self).await,
            Action::ApplyStatefulSet { found, replicas, template, .. } => {
                objects::stateful_set(self, found.as_ref(), *replicas, template).await
            }
            Action::ApplyBudget { found, min_available } => {
                objects::budget(self, found.as_ref(), *min_available).await
            }
            Action::WriteConfig { found, entries, initial_cluster } => {
                config::write(self, found.as_ref(), entries, initial_cluster).await
            }
            Action::WithdrawConfig { found, ordinal } => config::withdraw(self, found, *ordinal).await,
            Action::LabelPod { pod, ordinal, role } => pods::label(self, pod, *ordinal, *role).await,
            Action::DeletePod { pod, ordinal, precondition } => {
                pods::delete(self, pod, *ordinal, *precondition).await
            }
            Action::SetAsideVolume { volume, ordinal, is_set_aside } => {
                volumes::set_aside(self, volume, *ordinal, *is_set_aside).await
            }
            Action::RetainVolume { volume, ordinal } => volumes::retain(self, volume, *ordinal).await,
            Action::DeleteVolume { volume, ordinal, membership, keeps_data } => {
                volumes::delete(self, volume, *ordinal, membership.as_ref(), *keeps_data).await
            }
            Action::ResizeVolume { volume, ordinal, size } => {
                volumes::resize(self, volume, *ordinal, *size).await
            }
            Action::ApplyBackupSchedule => Box::pin(backups::schedule(self)).await,
            Action::StartBackup { cluster_id, version } => backups::start(self, *cluster_id, *version).await,
            Action::AddFinalizer => self.set_finalizer(true).await,
            Action::RemoveFinalizer => self.set_finalizer(false).await,
            Action::MemberAdd { membership, ordinal, pod, volume } => {
                membership::add(self, *membership, *ordinal, pod, volume).await
            }
            Action::MemberPromote { membership, member, ordinal } => {
                membership::promote(self, *membership, *member, *ordinal).await
            }
            Action::MemberRemove { membership, member, ordinal } => {
                membership::remove(self, *membership, *member, *ordinal).await
            }
            Action::MoveLeader { membership, from, to } => {
                membership::move_leader(self, *membership, *from, *to).await
            }
            Action::AlarmDisarm { cluster_id, alarm } => maintenance::disarm(self, *cluster_id, *alarm).await,
            Action::Compact { cluster_id, revision } => {
                maintenance::compact(self, *cluster_id, *revision).await
            }
            Action::Defragment { cluster_id, member, ordinal } => {
                maintenance::defragment(self, *cluster_id, *member, *ordinal).await
            }
            Action::AppendEntries { cluster_id } => maintenance::append(self, *cluster_id).await,
            Action::DowngradeEnable { membership, target } => {
                maintenance::allow_downgrade(self, *membership, *target).await
            }
            Action::DowngradeCancel { cluster_id } => maintenance::cancel_downgrade(self, *cluster_id).await,
            Action::AuthEnable { cluster_id, secret } => {
                users::authenticate(self, *cluster_id, secret.as_ref()).await
            }
            Action::SetRootPassword { cluster_id, secret } => {
                users::set_password(self, *cluster_id, secret).await
            }
        }
    }

    const fn observation(&self) -> &'a Observation {
        &self.seen.observation
    }

    /// Deletes the very object that was seen. That it is gone is fine.
    async fn delete<K: Resource<DynamicType = ()>>(&self, name: &str, seen: &Handle) -> Result<(), Failure> {
        let (uid, resource_version) = (seen.uid.0.clone(), Some(seen.resource_version.0.clone()));
        self.write(&ApiWrite::Delete { place: self.place::<K>(name), uid, resource_version }).await
    }
}
