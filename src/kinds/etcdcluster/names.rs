//! Names of objects, labels and annotations, and what can be read from a name.
//!
//! Guarantees: whatever is written here reads back; a text of another form reads as nothing. Selectors of a
//! StatefulSet and the names in claims and URLs cannot be changed, so these names are permanent.
//! Assumes: a cluster's name is a DNS-1035 label of at most 45 characters, as the gate and the definition have it.

use std::collections::BTreeMap;

use aws_lc_rs::digest;

use crate::controllers::cache::{INSTANCE, MANAGED_BY, NAME};
use crate::controllers::manifest::pairs;
use crate::kinds::etcdcluster::api::versions;
use crate::kinds::etcdcluster::observation::{ClusterId, MemberId, Ordinal, Role, Template, Version};

/// The field manager of everything that is written.
pub const MANAGER: &str = "gatehouse-etcdcluster";

/// The value of the label [`NAME`] of what is made.
pub const APPLICATION: &str = "etcd";

/// Has the deletion of an EtcdCluster wait for the operator.
pub const FINALIZER: &str = "gatehouse.dev/etcdcluster";

/// The label for the part that an object plays in it.
pub const COMPONENT: &str = "app.kubernetes.io/component";

/// The label of a pod with what its member is.
pub const ROLE: &str = "gatehouse.dev/role";

/// The label of the claim of a member that a recovery has set aside: its data outlive the ConfigMap that says the same.
pub const SET_ASIDE: &str = "gatehouse.dev/set-aside";

/// The annotation of a pod, and of the StatefulSet's template, with what it is made from.
pub const TEMPLATE: &str = "gatehouse.dev/template";

/// The annotation of a pod with the version of the ConfigMap that concerns it: a pod that changes has its mounts
/// refreshed at once, instead of within a minute.
pub const CONFIG_VERSION: &str = "gatehouse.dev/config";

/// The annotation of a claim with the uid of the cluster that it was made for. Claims have no owner, for they outlive
/// the cluster.
pub const CLUSTER: &str = "gatehouse.dev/cluster";

/// The volume with a member's data, and the first part of its claim's name.
pub const DATA: &str = "data";

/// The container that runs etcd.
pub const ETCD: &str = "etcd";

/// The init container that lets etcd start.
pub const GUARD: &str = "guard";

/// How the key of an entry in the ConfigMap ends.
pub const ENTRY: &str = ".json";

/// Where clients are served.
pub const CLIENT_PORT: u16 = 2379;

/// Where members speak to each other.
pub const PEER_PORT: u16 = 2380;

/// Where health and metrics are served, in plain HTTP.
pub const METRICS_PORT: u16 = 2381;

/// The first 64 bits of the SHA-256 of these bytes: the same in every release of gatehouse.
#[must_use]
pub fn digest(bytes: &[u8]) -> u64 {
    let digest = digest::digest(&digest::SHA256, bytes);
    digest.as_ref().iter().take(size_of::<u64>()).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// A member, and its pod.
#[must_use]
pub fn member(cluster: &str, ordinal: Ordinal) -> String {
    format!("{cluster}-{}", ordinal.0)
}

/// The ordinal of a pod of that name; none where no StatefulSet of this cluster makes such a pod.
#[must_use]
pub fn ordinal(cluster: &str, pod: &str) -> Option<Ordinal> {
    number(pod.strip_prefix(cluster)?.strip_prefix('-')?)
}

/// The claim of a member's volume.
#[must_use]
pub fn claim(cluster: &str, ordinal: Ordinal) -> String {
    format!("{DATA}-{}", member(cluster, ordinal))
}

/// The ordinal of a claim of that name.
#[must_use]
pub fn ordinal_of_claim(cluster: &str, claim: &str) -> Option<Ordinal> {
    ordinal(cluster, claim.strip_prefix(DATA)?.strip_prefix('-')?)
}

/// The ConfigMap with the entries of the pods.
#[must_use]
pub fn config(cluster: &str) -> String {
    format!("{cluster}-config")
}

/// The Service of those that serve clients.
#[must_use]
pub fn client(cluster: &str) -> String {
    format!("{cluster}-client")
}

/// The Secret with the certificate authority that the operator keeps.
#[must_use]
pub fn authority(cluster: &str) -> String {
    format!("{cluster}-ca")
}

/// The CronJob that takes backups.
#[must_use]
pub fn backup(cluster: &str) -> String {
    format!("{cluster}-backup")
}

/// The Job that takes one before an upgrade to `version`: one for each.
#[must_use]
pub fn backup_before(cluster: &str, version: Version) -> String {
    format!("{}-{}", backup(cluster), version.to_string().replace('.', "-"))
}

/// The key of a member's entry in the ConfigMap.
#[must_use]
pub fn entry_key(cluster: &str, ordinal: Ordinal) -> String {
    format!("{}{ENTRY}", member(cluster, ordinal))
}

/// The key of a member's etcd configuration in the ConfigMap.
#[must_use]
pub fn flags_key(cluster: &str, ordinal: Ordinal) -> String {
    format!("{}.yaml", member(cluster, ordinal))
}

/// Labels of everything that is made for a cluster, and what its pods are selected by.
#[must_use]
pub fn labels(cluster: &str) -> BTreeMap<String, String> {
    pairs([(NAME, APPLICATION), (INSTANCE, cluster), (COMPONENT, "member"), MANAGED_BY])
}

/// What the pods are selected by that serve clients.
#[must_use]
pub fn voters(cluster: &str) -> BTreeMap<String, String> {
    let mut labels = labels(cluster);
    labels.extend(pairs([(ROLE, role_text(Role::Voter))]));
    labels
}

/// The selector of all pods, as text.
#[must_use]
pub fn selector_text(cluster: &str) -> String {
    labels(cluster).iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

/// The value of [`ROLE`].
#[must_use]
pub const fn role_text(role: Role) -> &'static str {
    match role {
        Role::Voter => "voter",
        Role::Learner => "learner",
    }
}

/// The role that [`ROLE`] has.
#[must_use]
pub fn role_of(text: &str) -> Option<Role> {
    [Role::Voter, Role::Learner].into_iter().find(|role| role_text(*role) == text)
}

/// The value of [`TEMPLATE`].
#[must_use]
pub fn template_text(template: &Template) -> String {
    format!("{}-{:016x}", template.version, template.revision)
}

/// The template that [`TEMPLATE`] has.
#[must_use]
pub fn template_of(text: &str) -> Option<Template> {
    let (version, revision) = text.split_once('-')?;
    let template =
        Template { version: version_of(version)?, revision: u64::from_str_radix(revision, 16).ok()? };
    (template_text(&template) == text).then_some(template)
}

/// A version as it is written in specs.
#[must_use]
pub fn version_of(text: &str) -> Option<Version> {
    versions::parse(text)
}

/// The identity of a member as etcd prints it.
#[must_use]
pub fn member_id_text(member: MemberId) -> String {
    format!("{:x}", member.0)
}

/// The identity of a cluster as etcd prints it.
#[must_use]
pub fn cluster_id_text(cluster: ClusterId) -> String {
    format!("{:x}", cluster.0)
}

/// What such an identity is.
#[must_use]
pub fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

/// A number as it stands in names: in digits, without a leading zero.
fn number(text: &str) -> Option<Ordinal> {
    let number: u32 = text.parse().ok()?;
    (number.to_string() == text).then_some(Ordinal(number))
}

#[cfg(test)]
mod tests;
