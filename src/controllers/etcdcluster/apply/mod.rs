//! Carrying effects out, one after the other, each under its guards.
//!
//! Guarantees: each effect has a point before it is sent and one after its answer; right before it is sent its guards
//! are held against what is so now: uids and resource versions by the API server itself, in the same request, and what
//! etcd says by asking it once more. One that does not hold ends the pass, and the next one looks again. What may have
//! been done, for its answer was lost, is left to the next pass too: nothing is sent twice. What the API server refuses
//! for good is remembered, for the next pass to say so in the status.
//! Never: decides anything.

mod backups;
mod config;
mod finalizer;
mod maintenance;
mod membership;
mod notes;
mod objects;
mod pods;
mod record;
mod users;
mod volumes;

use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tracing::{info, warn};

use super::Operator;
use super::ages::Recall;
use super::effect::Effect;
use super::observation::{Desired, Handle, Observation, Record, RefusedWrite};
use super::observe::Sight;
use super::resources::names::MANAGER;
use super::trace::Told;
use crate::api::etcdcluster::v1::{EtcdCluster, EtcdClusterStatus};
use crate::controllers::manifest::{Manifest, Place};
use crate::controllers::outcome::{Class, Error};
use crate::controllers::step::{Merge, Note, Step};
use crate::etcd::{self, Refusal};
use crate::runtime::call::{self, call};
use crate::runtime::clock;
pub use record::report;

/// What a pass works with.
#[derive(Clone, Copy)]
pub struct Hands<'a> {
    /// Who works.
    pub operator: &'a Operator,
    /// The object, as it was read in this pass.
    pub cluster: &'a EtcdCluster,
    /// What it asks for.
    pub desired: &'a Desired,
    /// What was read, and the members.
    pub sight: &'a Sight,
    /// What the status is to remember.
    pub record: &'a Record,
    /// What the status is to say.
    pub status: &'a EtcdClusterStatus,
    /// The pass, where it is told.
    pub told: Told<'a>,
}

/// What became of a plan's effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// All were carried out.
    Done,
    /// One was not, or not surely; those after it were left.
    Refused,
    /// One is refused until somebody changes something; those after it were left.
    RefusedForGood,
}

/// Why an effect was not carried out, or not surely.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// Something has moved since it was decided on.
    #[error("{0}")]
    Refused(String),
    /// A right that this installation does not have.
    #[error("{0}")]
    RightMissing(&'static str),
    /// The member that was asked said no, or what it said was lost.
    #[error(transparent)]
    Etcd(#[from] etcd::Error),
    /// The API server.
    #[error("{}", .0.said())]
    Api(#[from] Error),
}

impl Failure {
    fn refused(why: impl Into<String>) -> Self {
        Self::Refused(why.into())
    }

    /// Whether trying again is of no use until somebody changes something.
    fn is_for_good(&self) -> bool {
        match self {
            Self::RightMissing(_) => true,
            Self::Api(error) => error.class() == Class::Permanent,
            Self::Refused(_) | Self::Etcd(_) => false,
        }
    }

    /// What was done is done, and its answer was lost.
    fn lost() -> Self {
        Self::refused("its answer was lost")
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

/// Carries out one effect after the other, up to the first that cannot be.
///
/// # Errors
/// When the API server does not answer, or is in trouble.
pub async fn carry_out(hands: Hands<'_>, effects: &[Effect], state: &mut Recall) -> Result<Applied, Error> {
    for effect in effects {
        let done = effect.points().around(hands.carry_out(effect), Failure::lost).await;
        let object = hands.cluster.name_any();
        let name = effect.name();
        let outcome = outcome(&done);
        state.tally.count(name, outcome);
        state.carried_out(effect, hands.record.operation, done.is_ok(), clock::instant());
        hands.told.effect(name, outcome);
        match done {
            Ok(()) => {
                info!(controller = "etcdcluster", object, effect = name, "carried out");
                if matches!(effect, Effect::ApplyBackupSchedule) {
                    state.scheduled = backups::scheduled(hands);
                }
                if let Some(note) = notes::of(effect, &hands) {
                    hands.tell(note).await;
                }
            }
            Err(Failure::Api(error)) if matches!(error.class(), Class::Transient | Class::Unmapped) => {
                return Err(error);
            }
            Err(refused) => {
                let why = refused.to_string();
                warn!(controller = "etcdcluster", object, effect = name, why, "not carried out");
                if let Some(note) = notes::of_failure(effect, &object, &why)
                    && state.is_new_failure(&note.text)
                {
                    hands.tell(note).await;
                }
                // What takes backups has a condition of its own.
                if !refused.is_for_good() || effect.is_of_backups() {
                    return Ok(Applied::Refused);
                }
                state.refused = Some(RefusedWrite { action: name.to_owned(), why });
                return Ok(Applied::RefusedForGood);
            }
        }
    }
    state.refused = None;
    Ok(Applied::Done)
}

/// What came of an effect, in a word.
fn outcome(done: &Result<(), Failure>) -> &'static str {
    match done {
        Ok(()) => "done",
        Err(Failure::Api(error)) if error.class() != Class::Conflict => "failed",
        Err(Failure::Etcd(_) | Failure::RightMissing(_)) => "failed",
        Err(Failure::Refused(_) | Failure::Api(_)) => "refused",
    }
}

impl<'a> Hands<'a> {
    async fn carry_out(self, effect: &Effect) -> Result<(), Failure> {
        match effect {
            Effect::WriteRecord { before, .. } => record::write(self, before).await,
            Effect::ApplyServices => objects::services(self).await,
            Effect::ApplyStatefulSet { found, replicas, template, .. } => {
                objects::stateful_set(self, found.as_ref(), *replicas, template).await
            }
            Effect::ApplyBudget { found, min_available } => {
                objects::budget(self, found.as_ref(), *min_available).await
            }
            Effect::WriteConfig { found, entries, initial_cluster } => {
                config::write(self, found.as_ref(), entries, initial_cluster).await
            }
            Effect::WithdrawConfig { found, ordinal } => config::withdraw(self, found, *ordinal).await,
            Effect::LabelPod { pod, ordinal, role } => pods::label(self, pod, *ordinal, *role).await,
            Effect::DeletePod { pod, ordinal, only_if } => pods::delete(self, pod, *ordinal, *only_if).await,
            Effect::RetainVolume { volume, ordinal } => volumes::retain(self, volume, *ordinal).await,
            Effect::DeleteVolume { volume, ordinal, membership, keeps_data } => {
                volumes::delete(self, volume, *ordinal, membership.as_ref(), *keeps_data).await
            }
            Effect::ResizeVolume { volume, ordinal, size } => {
                volumes::resize(self, volume, *ordinal, *size).await
            }
            Effect::ApplyBackupSchedule => backups::schedule(self).await,
            Effect::StartBackup { cluster_id, version } => backups::start(self, *cluster_id, *version).await,
            Effect::AddFinalizer => finalizer::add(self).await,
            Effect::RemoveFinalizer => finalizer::remove(self).await,
            etcd => self.ask_etcd(etcd).await,
        }
    }

    async fn ask_etcd(self, effect: &Effect) -> Result<(), Failure> {
        match effect {
            Effect::MemberAdd { membership, ordinal, pod, volume } => {
                membership::add(self, *membership, *ordinal, pod, volume).await
            }
            Effect::MemberPromote { membership, member, ordinal } => {
                membership::promote(self, *membership, *member, *ordinal).await
            }
            Effect::MemberRemove { membership, member, ordinal } => {
                membership::remove(self, *membership, *member, *ordinal).await
            }
            Effect::MoveLeader { membership, from, to } => {
                membership::move_leader(self, *membership, *from, *to).await
            }
            Effect::AlarmDisarm { cluster_id, alarm } => maintenance::disarm(self, *cluster_id, *alarm).await,
            Effect::Compact { cluster_id, revision } => {
                maintenance::compact(self, *cluster_id, *revision).await
            }
            Effect::Defragment { cluster_id, member, ordinal } => {
                maintenance::defragment(self, *cluster_id, *member, *ordinal).await
            }
            Effect::AppendEntries { cluster_id } => maintenance::append(self, *cluster_id).await,
            Effect::DowngradeEnable { membership, target } => {
                maintenance::allow_downgrade(self, *membership, *target).await
            }
            Effect::DowngradeCancel { cluster_id } => maintenance::cancel_downgrade(self, *cluster_id).await,
            Effect::AuthEnable { cluster_id, secret } => {
                users::authenticate(self, *cluster_id, secret.as_ref()).await
            }
            Effect::SetRootPassword { cluster_id, secret } => {
                users::set_password(self, *cluster_id, secret).await
            }
            _ => Err(Failure::refused("not an effect on etcd")),
        }
    }

    const fn seen(self) -> &'a Observation {
        &self.sight.observation
    }

    fn name(self) -> String {
        self.cluster.name_any()
    }

    /// The objects of a type in the cluster's namespace.
    fn api<K>(self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.operator.client.clone(), &self.namespace())
    }

    fn namespace(self) -> String {
        self.cluster.namespace().unwrap_or_default()
    }

    fn place<K: Resource<DynamicType = ()>>(self, name: &str) -> Place {
        let resource = kube::core::ApiResource::erase::<K>(&());
        Place { resource, namespace: self.namespace(), name: name.to_owned() }
    }

    /// The object as it is now.
    async fn read<K>(self, name: &str) -> Result<Option<K>, Failure>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + std::fmt::Debug + DeserializeOwned,
    {
        let found = call(self.api::<K>().get_opt(name)).await;
        found.map_err(|source| self.failed::<K>("read", name, source))
    }

    /// Merges fields into the very object that was seen, or, without a version, into the one of that uid.
    async fn merge<K: Resource<DynamicType = ()>>(
        self,
        name: &str,
        uid: &str,
        version: Option<&str>,
        fields: Value,
    ) -> Result<(), Failure> {
        let mut manifest = Manifest { place: self.place::<K>(name), object: fields };
        manifest.object["metadata"]["uid"] = json!(uid);
        if let Some(version) = version {
            manifest.object["metadata"]["resourceVersion"] = json!(version);
        }
        let merge = Merge { manifest, manager: MANAGER, scale: false, seen: version.map(str::to_owned) };
        self.perform(&Step::Merge(merge)).await
    }

    /// Deletes the very object that was seen. That it is gone is fine.
    async fn delete<K: Resource<DynamicType = ()>>(self, name: &str, seen: &Handle) -> Result<(), Failure> {
        let (uid, resource_version) = (seen.uid.0.clone(), Some(seen.resource_version.0.clone()));
        self.perform(&Step::Delete { place: self.place::<K>(name), uid, resource_version }).await
    }

    async fn perform(self, step: &Step) -> Result<(), Failure> {
        let regarding = self.cluster.object_ref(&());
        self.operator.interpreter.perform(step, &regarding).await.map(|_| ()).map_err(Failure::Api)
    }

    /// Tells it in an event of the object.
    pub async fn tell(self, note: Note) {
        // An event that cannot be published is logged, and holds nothing up.
        let _told = self.perform(&Step::Event(note)).await;
    }

    fn failed<K: Resource<DynamicType = ()>>(
        self,
        verb: &'static str,
        name: &str,
        source: call::Error,
    ) -> Failure {
        Failure::Api(Error { verb, object: self.place::<K>(name).to_string(), source })
    }
}
