//! What an EtcdCluster asks for, resolved once. Pure.
//!
//! Guarantees: an absent field has its meaning here, and nothing below gives it another. A value that does not read
//! counts as absent: the gate lets none in, and a cluster that was stored with one goes on with what it has.
//! Assumes: the faults are those that the gate finds; with some of them nothing but restarts is planned.

mod urls;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::names;
use super::observation::{Desired, Ordinal, RecoveryRequest, Template, Trust, Version};
use crate::api::field::{FieldError, Path};
use crate::api::identity::identity;
use crate::api::pod::PullPolicy;
use crate::api::quantity::Quantity;
use crate::api::reference::NamedReference;
use crate::kinds::etcdcluster::api::default::{REPLICAS, STORAGE_SIZE, TIME_ZONE};
use crate::kinds::etcdcluster::api::recovery::{self, ANNOTATION, Survivor};
use crate::kinds::etcdcluster::api::v1::{
    self, EtcdCluster, EtcdClusterSpec, Image as GivenImage, Medium, PersistentVolumeClaimDestination,
    ReclaimPolicy, TlsMode, TlsSecrets,
};
pub use crate::kinds::etcdcluster::api::v1::{ClientService, CompactionMode, Options, Pod, Retention};
use crate::kinds::etcdcluster::api::versions::{ALLOW_DOWNGRADE, NEWEST};

/// Number of the form that pods have. Another one restarts every member of every cluster.
const FORMAT: u32 = 1;

/// Where images of etcd are.
const REPOSITORY: &str = "quay.io/coreos/etcd";

/// Share of a database file that has to be free, in percent, before it is defragmented.
const RECLAIMABLE_PERCENT: u32 = 45;

/// An EtcdCluster, as far as it asks for something.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "switches of the spec, none of which rules out another")]
pub struct Spec {
    /// Who asks.
    pub metadata: ObjectMeta,
    /// The fields that the gate would refuse.
    pub refused: Vec<Path>,
    /// Whether deleting is refused.
    pub is_protected: bool,
    /// Whether work rests.
    pub is_paused: bool,
    /// Whether members may be brought one minor down.
    pub allows_downgrade: bool,
    /// Voting members; 0 stops the cluster.
    pub replicas: u32,
    /// The version of etcd.
    pub version: Version,
    /// The image that members run.
    pub image: Image,
    /// Where members keep their data.
    pub storage: Storage,
    /// The certificates; none: members and clients speak plain HTTP.
    pub tls: Option<Tls>,
    /// Whether etcd has authentication enabled.
    pub authenticates: bool,
    /// The Secret with the password of etcd's user root.
    pub root_secret: Option<String>,
    /// How etcd itself is set up. What is absent here is left to etcd.
    pub options: Options,
    /// What is laid over the pods of members.
    pub pod: Pod,
    /// The Service for clients.
    pub client_service: ClientService,
    /// What takes backups.
    pub backup: Option<Backup>,
    /// Share of a database file, in percent, that has to be free before it is defragmented; none: it never is.
    pub defragments_at: Option<u32>,
    /// The request to recover from a lost quorum, as it was written.
    pub recovery: Option<String>,
    /// All that ends in pods, but the version of etcd and whom members trust.
    pods: Value,
}

/// The image that members run.
#[derive(Clone, Debug)]
pub struct Image {
    /// Where it is, without a tag.
    pub repository: String,
    /// When it is pulled.
    pub pull_policy: PullPolicy,
    /// Secrets that it is pulled with; none where the spec has none.
    pub pull_secrets: Option<Vec<String>>,
}

/// Where members keep their data.
#[derive(Clone, Debug)]
pub struct Storage {
    /// Size of each member's volume.
    pub size: Quantity,
    /// Whether the spec says that size: volumes grow for it, and not because another release has a larger default.
    pub is_sized: bool,
    /// The StorageClass; none: the default one of the Kubernetes cluster.
    pub class: Option<String>,
    /// Whether data lie in memory and end with their pod.
    pub is_in_memory: bool,
    /// Whether volumes go when the object is deleted.
    pub is_deleted: bool,
}

/// The certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// Who keeps them.
    pub keeper: Keeper,
    /// The Secrets with them.
    pub secrets: Secrets,
    /// Names and addresses of members to clients, beside those that gatehouse knows.
    pub extra_names: Vec<String>,
}

/// Who keeps certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeper {
    /// The operator, with an authority of this cluster alone.
    Operator,
    /// Others, in Secrets that the spec names.
    Others,
}

/// The Secrets of a cluster that speaks TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Secrets {
    /// The Secret with the certificate that members show to clients.
    pub server: String,
    /// The Secret with the certificate that members show to each other.
    pub peer: String,
    /// The Secret with the operator's certificate.
    pub client: String,
    /// The Secret with the authorities of clients; none: that of `server`.
    pub client_authority: Option<String>,
    /// The Secret with the authorities of peers; none: that of `peer`.
    pub peer_authority: Option<String>,
}

/// What takes backups.
#[derive(Clone, Debug)]
pub struct Backup {
    /// When, in cron fields; none: when it is asked for.
    pub schedule: Option<String>,
    /// The time zone of the schedule.
    pub time_zone: String,
    /// Whether scheduled backups rest.
    pub is_suspended: bool,
    /// Whether a verified one is taken before each upgrade.
    pub is_before_upgrade: bool,
    /// The volume that they go to; none: this release cannot write to where they would go.
    pub destination: Option<Destination>,
    /// Which are kept.
    pub retention: Retention,
}

/// A volume that backups go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The PersistentVolumeClaim.
    pub claim: String,
    /// The folder on it.
    pub path: String,
}

identity!(Spec);

/// Retention counts time, unless the spec says otherwise.
fn options(mut options: Options) -> Options {
    if let Some(compaction) = &mut options.auto_compaction {
        compaction.mode.get_or_insert(CompactionMode::Periodic);
    }
    options
}

impl Spec {
    /// What `cluster` asks for, which has these faults.
    #[must_use]
    pub fn resolve(cluster: &EtcdCluster, faults: &[FieldError]) -> Self {
        let spec = &cluster.spec;
        let maintenance = spec.maintenance.as_ref();
        let defragment = maintenance.and_then(|maintenance| maintenance.defragment.as_ref());
        let storage = storage(spec);
        let auth = spec.auth.clone().unwrap_or_default();
        Self {
            refused: faults.iter().map(|fault| fault.path.clone()).collect(),
            is_protected: spec.deletion_protection == Some(true),
            is_paused: spec.paused == Some(true),
            allows_downgrade: cluster.annotations().get(ALLOW_DOWNGRADE).is_some_and(|allow| allow == "true"),
            replicas: replicas(cluster),
            version: version(cluster),
            image: image(spec),
            tls: tls(cluster),
            authenticates: spec.authenticates(),
            root_secret: auth.root_secret_ref.map(|secret| secret.name),
            options: options(spec.options.clone().unwrap_or_default()),
            pod: pod(spec),
            client_service: spec.client_service.clone().unwrap_or_default(),
            backup: spec.backup.as_ref().map(|given| backup(cluster, given)),
            defragments_at: defragment.map(|one| percent(one.when_reclaimable_percent)),
            recovery: cluster.annotations().get(ANNOTATION).cloned(),
            pods: pods(spec, &storage),
            storage,
            metadata: ObjectMeta { managed_fields: None, ..cluster.metadata.clone() },
        }
    }

    /// Whether no upkeep is done: reconciliation is paused, or the object goes. One whose deletion is refused stays.
    #[must_use]
    pub const fn rests(&self) -> bool {
        self.is_paused || (self.is_deleting() && !self.is_protected)
    }

    /// The Secrets with certificates; none where members and clients speak plain HTTP.
    #[must_use]
    pub fn secrets(&self) -> Option<&Secrets> {
        self.tls.as_ref().map(|tls| &tls.secrets)
    }

    /// The volume that backups go to; none where none are asked for, or none can be taken.
    #[must_use]
    pub fn backup_destination(&self) -> Option<&Destination> {
        self.backup.as_ref()?.destination.as_ref()
    }

    /// Digest of everything in a spec that ends in pods, but the version of etcd, and of whom members trust, which they
    /// read when they start. The same in every release of gatehouse: another digest restarts every member of every
    /// cluster.
    #[must_use]
    pub fn revision(&self, trust: Option<Trust>) -> u64 {
        let mut said = self.pods.clone();
        if let Some(trust) = trust {
            said["trust"] = trust.to_string().into();
        }
        said.sort_all_objects();
        names::digest(said.to_string().as_bytes())
    }

    /// What the plan has to know; `trust`: whom members are to trust, none where they speak plain HTTP, or it is
    /// unknown.
    #[must_use]
    pub fn desired(&self, trust: Option<Trust>) -> Desired {
        let asked = self.storage.size.bytes().unwrap_or(0);
        Desired {
            is_valid: self.refused.is_empty(),
            is_deleting: self.is_deleting(),
            is_protected: self.is_protected,
            is_paused: self.is_paused,
            replicas: self.replicas,
            template: Template { version: self.version, revision: self.revision(trust) },
            volume_size: if self.storage.is_sized { asked } else { 0 },
            quota: self.options.quota_backend_bytes.as_ref().and_then(|quota| quota.bytes().ok()),
            is_in_memory: self.storage.is_in_memory,
            deletes_volumes: self.storage.is_deleted,
            authenticates: self.authenticates,
            allows_downgrade: self.allows_downgrade,
            backs_up_before_upgrade: self.backup.as_ref().is_some_and(|backup| backup.is_before_upgrade),
            defragments_at: self.defragments_at,
            recovery: self.recovery_request(),
        }
    }

    /// The request to recover from a lost quorum. One that does not read asks for nothing.
    fn recovery_request(&self) -> Option<RecoveryRequest> {
        let token = self.recovery.clone()?;
        let survivor = match recovery::read(&token, self.name()).ok()? {
            Survivor::Furthest => None,
            Survivor::Member(number) => Some(Ordinal(number)),
        };
        Some(RecoveryRequest { token, survivor })
    }
}

/// The members that are asked for. Where no count is given, which the gate refuses, those that there are; and before
/// the first, as many as creation writes.
fn replicas(cluster: &EtcdCluster) -> u32 {
    let there_are = || cluster.status.as_ref().and_then(|status| status.replicas).filter(|count| *count > 0);
    let count = cluster.spec.replicas.or_else(there_are).unwrap_or(REPLICAS);
    u32::try_from(count).unwrap_or(0)
}

/// The version that is asked for. Where there is none, it is what runs; and before anything runs, what creation writes.
fn version(cluster: &EtcdCluster) -> Version {
    let runs = || cluster.status.as_ref().and_then(|status| status.version.as_deref());
    let given = [cluster.spec.version.as_deref(), runs(), Some(NEWEST)];
    given.into_iter().flatten().find_map(names::version_of).unwrap_or(Version::new(0, 0))
}

fn image(spec: &EtcdClusterSpec) -> Image {
    let GivenImage { repository, pull_policy, pull_secrets } = spec.image.clone().unwrap_or_default();
    let names = |secrets: Vec<NamedReference>| secrets.into_iter().map(|secret| secret.name).collect();
    Image {
        repository: repository.unwrap_or_else(|| REPOSITORY.to_owned()),
        pull_policy: pull_policy.unwrap_or(PullPolicy::IfNotPresent),
        pull_secrets: pull_secrets.map(names),
    }
}

fn pod(spec: &EtcdClusterSpec) -> Pod {
    let given = spec.pod.clone().unwrap_or_default();
    Pod { service_account_name: given.service_account_name.filter(|name| !name.is_empty()), ..given }
}

fn storage(spec: &EtcdClusterSpec) -> Storage {
    let class = spec.storage_class().map(str::to_owned);
    let is_in_memory = spec.medium() == Medium::Memory;
    let given = spec.storage.clone().unwrap_or_default();
    let is_sized = given.size.is_some();
    let size = given.size.filter(|size| size.bytes().is_ok());
    Storage {
        size: size.unwrap_or_else(|| Quantity::from(STORAGE_SIZE)),
        is_sized,
        class,
        is_in_memory,
        is_deleted: given.reclaim_policy == Some(ReclaimPolicy::Delete),
    }
}

/// Those that the operator keeps are named after the cluster; so are those that the spec ought to name and does not.
fn tls(cluster: &EtcdCluster) -> Option<Tls> {
    let given = cluster.spec.tls.clone().unwrap_or_default();
    let extra_names = given.extra_names.unwrap_or_default();
    let (keeper, secrets) = match cluster.spec.tls_mode() {
        TlsMode::Disabled => return None,
        TlsMode::Automatic => (Keeper::Operator, TlsSecrets::default()),
        // Without Secrets there is no place to keep them, and nothing is written.
        TlsMode::Secrets => (Keeper::Others, given.secrets.unwrap_or_default()),
    };
    let name = cluster.name_any();
    let own = |given: Option<NamedReference>, part: &str| {
        given.map_or_else(|| format!("{name}-{part}-tls"), |secret| secret.name)
    };
    let secrets = Secrets {
        server: own(secrets.server, "server"),
        peer: own(secrets.peer, "peer"),
        client: own(secrets.client, "client"),
        client_authority: secrets.client_ca.map(|secret| secret.name),
        peer_authority: secrets.peer_ca.map(|secret| secret.name),
    };
    Some(Tls { keeper, secrets, extra_names })
}

fn backup(cluster: &EtcdCluster, given: &v1::Backup) -> Backup {
    let destination = given.destination.as_ref().and_then(|place| place.persistent_volume_claim.clone());
    let destination = destination.map(|PersistentVolumeClaimDestination { claim_name: claim, path }| {
        let (namespace, name) = (cluster.namespace().unwrap_or_default(), cluster.name_any());
        Destination { claim, path: path.unwrap_or_else(|| format!("{namespace}/{name}")) }
    });
    Backup {
        schedule: given.schedule.clone(),
        time_zone: given.time_zone.clone().unwrap_or_else(|| TIME_ZONE.to_owned()),
        is_suspended: given.suspend == Some(true),
        is_before_upgrade: destination.is_some() && given.before_upgrade != Some(false),
        destination,
        retention: given.retention.clone().unwrap_or_default(),
    }
}

fn percent(given: Option<i32>) -> u32 {
    given.and_then(|given| u32::try_from(given).ok()).unwrap_or(RECLAIMABLE_PERCENT)
}

fn pods(spec: &EtcdClusterSpec, storage: &Storage) -> Value {
    json!({
        "format": FORMAT,
        "options": spec.options.as_ref().filter(|options| **options != Options::default()),
        // The name that the field had when the first members were made.
        "podTemplate": spec.pod.as_ref().filter(|pod| **pod != Pod::default()),
        "image": spec.image.as_ref().filter(|image| **image != GivenImage::default()),
        "tls": spec.tls_mode().as_str(),
        "secrets": spec.tls.as_ref().and_then(|tls| tls.secrets.as_ref()),
        // A claim grows without its pod; a tmpfs is as large as its pod says.
        "memory": storage.is_in_memory.then(|| storage.size.to_string()),
    })
}

#[cfg(test)]
mod tests;
