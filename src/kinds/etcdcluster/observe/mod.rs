//! Reads everything that a reconciliation needs, and decides nothing.
//!
//! Guarantees: all of it is read live and in this reconciliation, nothing from a cache, for what is decided on it
//! cannot be taken back; pods are read before volumes, so that the volume of a pod that is still there is the one that
//! was read; an object of one of our names is found by its name, whatever its labels are; a read that fails is
//! [`Fact::Unknown`], never absent.

mod altered;
pub mod backups;
pub mod certificates;
pub mod etcd;
mod hindrances;
mod jobs;
pub mod kubernetes;
mod metrics;
mod own_prints;
pub mod phase;
pub mod services;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::OnceLock;
use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolume, PersistentVolumeClaim, Pod, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::ListParams;
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use tracing::warn;

use self::certificates::CertificateStatus;
use self::etcd::EtcdResponses;
use super::member_clients::{ClientTls, MemberClients};
use super::names::{self, FINALIZER};
use super::observation::{
    self as seen, Age, AlarmKind, Backups, Certificates, Config, Desired, Fact, Hindered, MemberId,
    Observation, Ordinal, PodPhase, Purpose, Volume,
};
use super::resources::{record, services as wanted};
use super::spec::Spec;
use super::state::ReconcileState;
use super::status::Reported;
use super::{Operator, root_password};
use crate::controllers::action::RefusedWrite;
use crate::controllers::finalizer;
use crate::controllers::manifest::Manifest;
use crate::controllers::reconciler::{Pass, State};
use crate::kinds::etcdcluster::api::v1::EtcdCluster;
use crate::runtime::call::{self, call};
use crate::runtime::clock;

/// How long the revisions of a key space that is full are taken for what they are.
const KEYSPACE_AGE: Duration = Duration::from_mins(1);

/// What a reconciliation has read, and the members that it can ask.
#[derive(Debug)]
pub struct Snapshot {
    /// What is asked for.
    pub desired: Desired,
    /// What was read.
    pub observation: Observation,
    /// How the certificates are.
    pub certificates: CertificateStatus,
    /// The results of backups.
    pub backups: Backups,
    /// Why pods do not come to serve, in the words of Kubernetes.
    pub hindrances: BTreeMap<Ordinal, String>,
    /// The members.
    pub reach: MemberClients,
    /// What events have reported.
    pub reported: Reported,
    /// Reconciliations in a row that had nothing to do.
    pub idle: u32,
}

/// Reads everything.
#[expect(clippy::too_many_lines, reason = "one field of what is read a line")]
pub async fn look(pass: Pass<'_, Operator>, state: &mut State<Operator>) -> Snapshot {
    let (refused, state) = (state.refused.clone(), &mut state.own);
    let Pass { context, object: cluster, spec, now, .. } = pass;
    let (client, image) = (&context.client, context.image.as_str());
    let reader = Reader::new(client.clone(), spec);
    let certificates = certificates::look(client, spec, now).await;
    let desired = spec.desired(certificates.trust);
    let record = cluster.status.as_ref().map(record::record).unwrap_or_default();
    let config = names::config(&reader.name);
    let (set, config, budget, services, backups, keys, offer) = futures::join!(
        reader.get::<StatefulSet>(&reader.name),
        reader.get::<ConfigMap>(&config),
        reader.get::<PodDisruptionBudget>(&reader.name),
        reader.services(),
        reader.backups((cluster, spec), &desired, state),
        ClientTls::read(client, spec),
        root_password::read(client, spec),
    );
    let (wanted, looked) = ((spec, desired.template.revision), clock::instant());
    let set = set.map(|set| {
        let applied = (&mut state.stateful_set, looked);
        altered::stateful_set(&set, wanted, image, applied)
    });
    let config = match config {
        Fact::Known(found) => altered::config(&found, wanted, (&mut state.config, looked)),
        Fact::Absent => Fact::Absent,
        Fact::Unknown => Fact::Unknown,
    };
    let places = places(&desired, &set, &config, &remembered(cluster));
    let pods = reader.pods(&places).await;
    let reach = MemberClients::new(spec, &keys, pods.elements());
    let told = own_prints::read(&reader, (&pods, &set), state).await;
    let volumes = reader.volumes(&places, &desired, &config, &told);
    let (volumes, said) = futures::join!(volumes, etcd::ask(&reach, spec));
    let password = root_password::look(offer, (&said, &reach, record.cluster_id), &mut state.password).await;
    let mut observation = Observation {
        keyspace: keyspace(&said, &reach, state).await,
        remembered: remembered(cluster),
        operation_age: Age::Fresh,
        health_age: Age::Fresh,
        quorum_loss_age: Age::Fresh,
        replacement_age: Age::Fresh,
        comparison_age: Age::Fresh,
        services: services.map(|found| state.services.look(&found, &reader.uid, clock::instant())),
        certificates: state_of(&certificates, &keys),
        certificate_secrets: certificates.secrets.clone(),
        stateful_set: set,
        config,
        budget: budget.map(|found| altered::budget(&found, spec, (&mut state.budget, looked))),
        pods: told.map(|pods| apply_probe_results(pods, &said)),
        volumes,
        statuses: said.statuses,
        membership: said.membership,
        last_membership: said.last_membership,
        alarms: said.alarms,
        cluster_version: said.cluster_version,
        auth: said.auth.map(|status| status.enabled),
        root_password: password,
        audit: Fact::Unknown,
        backup_schedule: Fact::Unknown,
        backup: backups.awaited,
        hindered: Hindered::default(),
        has_finalizer: finalizer::is_on(&cluster.metadata, FINALIZER),
        refused: refused.or_else(|| reader.refused.get().cloned()),
        refusals: state.refusals,
        record,
    };
    recall(state, &mut observation, &said.snapshots, (cluster, &reader.uid), now);
    observation.backup_schedule = backups.schedule(image, (cluster, spec), &observation, state);
    let hindrances = hindrances::look(&reader, &pods, state, &mut observation, clock::instant()).await;
    Snapshot {
        desired,
        observation,
        certificates,
        backups: backups.told,
        hindrances,
        reach,
        reported: state.reported.clone(),
        idle: state.idle,
    }
}

/// Writes into what was read what only earlier reconciliations tell.
fn recall(
    state: &mut ReconcileState,
    observation: &mut Observation,
    snapshots: &BTreeMap<MemberId, u64>,
    (cluster, uid): (&EtcdCluster, &str),
    now: Timestamp,
) {
    let status = cluster.status.clone().unwrap_or_default();
    record::limit_rates(&status, observation, now);
    state.audit.begin(record::says_corrupt(&status) && !observation.has_alarm(AlarmKind::Corrupt), uid, now);
    if let Fact::Known(alarms) = &observation.alarms {
        let corrupt = alarms.iter().filter(|alarm| alarm.kind == AlarmKind::Corrupt);
        let own = observation.own_prints().map(|(_, print)| print.member);
        state.audit.suspect(corrupt.map(|alarm| alarm.member).chain(own).collect());
    }
    state.look(observation, clock::instant());
    state.count_snapshots(observation, snapshots);
    observation.comparison_age = state.audit.age(now);
}

/// How the certificates are, with which members are asked. What is wrong with the client's may be known already.
fn state_of(certificates: &CertificateStatus, keys: &ClientTls) -> Certificates {
    let is_unknown = matches!(keys, ClientTls::Missing) && certificates.state.is_usable();
    if is_unknown { Certificates::Missing } else { certificates.state }
}

/// Pods whose etcd answered run it, whatever the kubelet has reported of them yet.
fn apply_probe_results(
    mut pods: BTreeMap<Ordinal, seen::Pod>,
    said: &EtcdResponses,
) -> BTreeMap<Ordinal, seen::Pod> {
    for (ordinal, pod) in &mut pods {
        let answered = said.statuses.get(ordinal).is_some_and(|status| status.known().is_some());
        if answered && !matches!(pod.phase, PodPhase::Terminal(_)) {
            pod.phase = PodPhase::Up;
        }
    }
    pods
}

/// The revisions of the key space, where it is full. To tell them a member reads all keys, so it is asked once a
/// minute, and after each compaction.
async fn keyspace(
    said: &EtcdResponses,
    reach: &MemberClients,
    state: &mut ReconcileState,
) -> Fact<seen::Keyspace> {
    let is_full =
        said.alarms.is_known_and(|alarms| alarms.iter().any(|alarm| alarm.kind == AlarmKind::NoSpace));
    if !is_full {
        state.keyspace = None;
        return Fact::Unknown;
    }
    let recent = |(asked, _): &(Instant, _)| asked.elapsed() < KEYSPACE_AGE;
    if let Some((_, known)) = state.keyspace.filter(recent) {
        return Fact::Known(known);
    }
    let asked = etcd::order(&said.statuses).first().and_then(|ordinal| reach.client(*ordinal));
    let Some(client) = asked else { return Fact::Unknown };
    let found = etcd::keyspace(client).await;
    let asked = clock::instant();
    state.keyspace = found.known().map(|found| (asked, *found));
    found
}

/// The ordinals at which something of ours may be.
fn places(
    desired: &Desired,
    set: &Fact<seen::StatefulSet>,
    config: &Fact<Config>,
    remembered: &BTreeMap<Ordinal, MemberId>,
) -> BTreeSet<Ordinal> {
    let kept = set.known().map_or(0, |set| set.replicas);
    let told = config.known().into_iter().flat_map(|config| config.entries.keys());
    (0..kept.max(desired.replicas)).map(Ordinal).chain(told.chain(remembered.keys()).copied()).collect()
}

/// The members that the status lists.
fn remembered(cluster: &EtcdCluster) -> BTreeMap<Ordinal, MemberId> {
    cluster.status.as_ref().map(record::members).unwrap_or_default()
}

/// Reads the objects of one cluster.
struct Reader {
    client: Client,
    namespace: String,
    name: String,
    uid: String,
    selector: String,
    services: [Manifest; 2],
    /// The first object that there is no right to read.
    refused: OnceLock<RefusedWrite>,
}

impl Reader {
    fn new(client: Client, spec: &Spec) -> Self {
        Self {
            client,
            namespace: spec.namespace().to_owned(),
            name: spec.name().to_owned(),
            uid: spec.uid().to_owned(),
            selector: names::selector_text(spec.name()),
            services: wanted::manifests(spec),
            refused: OnceLock::new(),
        }
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn get<K>(&self, name: &str) -> Fact<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + DeserializeOwned,
    {
        fact(name, call(self.api::<K>().get_opt(name)).await.map_err(|error| self.heard::<K>(error)))
    }

    /// Remembers the first call that was refused for want of a right.
    fn heard<K: Resource<DynamicType = ()>>(&self, error: call::Error) -> call::Error {
        if let Some(refused) = lacking_right(&K::plural(&()), &error) {
            self.refused.get_or_init(|| refused);
        }
        error
    }

    /// The objects of our labels, and those of the names of `places` that are not among them.
    async fn all<K>(
        &self,
        places: &BTreeSet<Ordinal>,
        ordinal: impl Fn(&str, &str) -> Option<Ordinal>,
        name: impl Fn(&str, Ordinal) -> String,
    ) -> Fact<BTreeMap<Ordinal, K>>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + DeserializeOwned,
    {
        let Fact::Known(listed) = self.labelled::<K>(&self.selector).await else { return Fact::Unknown };
        let labelled =
            listed.into_iter().filter_map(|one| Some((ordinal(&self.name, &one.name_any())?, one)));
        let mut all: BTreeMap<_, _> = labelled.collect();
        let missing = places.iter().filter(|place| !all.contains_key(place)).copied().collect::<Vec<_>>();
        let asked = missing.into_iter().map(|place| {
            let name = name(&self.name, place);
            async move { (place, self.get::<K>(&name).await) }
        });
        for (place, found) in join_all(asked).await {
            match found {
                Fact::Known(one) => {
                    all.insert(place, one);
                }
                Fact::Absent => {}
                Fact::Unknown => return Fact::Unknown,
            }
        }
        Fact::Known(all)
    }

    /// The objects of those labels.
    async fn labelled<K>(&self, selector: &str) -> Fact<Vec<K>>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + DeserializeOwned,
    {
        match call(self.api::<K>().list(&ListParams::default().labels(selector))).await {
            Ok(listed) => Fact::Known(listed.items),
            Err(error) => {
                warn!(resource = %K::plural(&()), object = self.name, %error, "failed to list");
                self.heard::<K>(error);
                Fact::Unknown
            }
        }
    }

    async fn pods(&self, places: &BTreeSet<Ordinal>) -> Fact<BTreeMap<Ordinal, Pod>> {
        self.all(places, names::ordinal, names::member).await
    }

    /// The volumes: claims, or what pods have in memory.
    async fn volumes(
        &self,
        places: &BTreeSet<Ordinal>,
        desired: &Desired,
        config: &Fact<Config>,
        pods: &Fact<BTreeMap<Ordinal, seen::Pod>>,
    ) -> Fact<BTreeMap<Ordinal, Volume>> {
        if desired.is_in_memory {
            return pods.as_ref().map(|pods| {
                pods.iter().map(|(ordinal, pod)| (*ordinal, kubernetes::volume_in_memory(pod))).collect()
            });
        }
        let places = pods.elements().map(|(ordinal, _)| ordinal).chain(places.iter().copied()).collect();
        let claims = self.all::<PersistentVolumeClaim>(&places, names::ordinal_of_claim, names::claim).await;
        let Fact::Known(claims) = claims else { return Fact::Unknown };
        let asked = claims.into_iter().map(|(ordinal, claim)| async move {
            let is_set_aside = config.known().and_then(|config| config.entries.get(&ordinal));
            let is_set_aside = is_set_aside.is_some_and(|entry| entry.purpose == Purpose::SetAside)
                || kubernetes::is_set_aside(&claim);
            let is_small = kubernetes::size(&claim) < desired.volume_size;
            let expandable = if is_small { self.is_expandable(&claim).await } else { Fact::Unknown };
            let backing = if is_set_aside { self.backing(&claim).await } else { Fact::Unknown };
            (ordinal, kubernetes::volume(&claim, &self.uid, expandable, backing.as_ref()))
        });
        Fact::Known(join_all(asked).await.into_iter().collect())
    }

    /// Whether the class of a claim lets it grow.
    async fn is_expandable(&self, claim: &PersistentVolumeClaim) -> Fact<bool> {
        let Some(class) = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref()) else {
            return Fact::Unknown;
        };
        let classes: Api<StorageClass> = Api::all(self.client.clone());
        let found = fact(class, call(classes.get_opt(class)).await);
        found.map(|class| class.allow_volume_expansion == Some(true))
    }

    /// The PersistentVolume of a claim.
    async fn backing(&self, claim: &PersistentVolumeClaim) -> Fact<PersistentVolume> {
        let name = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref());
        let Some(name) = name.filter(|name| !name.is_empty()) else { return Fact::Absent };
        let volumes: Api<PersistentVolume> = Api::all(self.client.clone());
        fact(name, call(volumes.get_opt(name)).await)
    }

    async fn services(&self) -> Fact<Vec<(Manifest, Option<Service>)>> {
        let asked = self.services.iter().map(|manifest| async move {
            (manifest.clone(), self.get::<Service>(&manifest.place.name).await)
        });
        let found = join_all(asked).await.into_iter().map(|(manifest, found)| match found {
            Fact::Known(service) => Some((manifest, Some(service))),
            Fact::Absent => Some((manifest, None)),
            Fact::Unknown => None,
        });
        found.collect::<Option<_>>().map_or(Fact::Unknown, Fact::Known)
    }
}

/// What is reported of a failed read of objects of that type, where a right is missing.
fn lacking_right(resource: &str, error: &call::Error) -> Option<RefusedWrite> {
    let refused = RefusedWrite { action: format!("read {resource}"), why: error.to_string() };
    Some(refused).filter(RefusedWrite::lacks_right)
}

fn fact<K>(name: &str, found: Result<Option<K>, call::Error>) -> Fact<K> {
    match found {
        Ok(Some(found)) => Fact::Known(found),
        Ok(None) => Fact::Absent,
        Err(error) => {
            warn!(resource = std::any::type_name::<K>(), name, %error, "failed to read");
            Fact::Unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn a_right_to_read_that_is_missing_is_reported_and_nothing_else_is() {
        let told = |code: u16, message: &str| {
            let status = Status::failure(message, "").with_code(code).boxed();
            lacking_right("configmaps", &call::Error::Refused(status)).map(|refused| refused.action)
        };
        let right =
            "configmaps is forbidden: User \"a\" cannot get resource \"configmaps\" in API group \"\"";
        assert_eq!(told(403, right).as_deref(), Some("read configmaps"));
        assert_eq!(told(403, "namespaces is forbidden: exceeded quota: q"), None);
        assert_eq!(told(500, "etcdserver: request timed out"), None);
        assert_eq!(lacking_right("configmaps", &call::Error::Timeout), None);
    }
}
