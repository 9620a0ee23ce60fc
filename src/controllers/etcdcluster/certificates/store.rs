//! The Secrets themselves: read as they are, written where nobody else has.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;

use super::Problem;
use super::decision::Pair;
use crate::certs::authority;
use crate::certs::certificate::Certificate;
use crate::controllers::etcdcluster::names::{self, MANAGER};
use crate::controllers::etcdcluster::observation::Ordinal;
use crate::controllers::etcdcluster::resources::certificates::{
    AUTHORITY, AUTHORITY_TYPE, CERTIFICATE, KEY, LEAF_TYPE, MEMBERS, secret,
};
use crate::controllers::etcdcluster::resources::stateful_set::template_of;
use crate::controllers::etcdcluster::spec::Spec;
use crate::runtime::call::call;

/// The keys of a Secret: for the certificate, for its key, for what is to be trusted.
type Keys = [&'static str; 3];

const LEAF: Keys = [CERTIFICATE, KEY, AUTHORITY];
const ROOT: Keys = [authority::CERTIFICATE, authority::KEY, authority::BUNDLE];

/// A Secret of a name that is ours.
pub enum Slot {
    /// There is none.
    Absent,
    /// There is one of this cluster.
    Ours {
        /// Its resource version.
        version: String,
        /// What it holds.
        pair: Pair,
    },
}

impl Slot {
    /// What it holds.
    pub const fn pair(&self) -> Option<&Pair> {
        match self {
            Self::Absent => None,
            Self::Ours { pair, .. } => Some(pair),
        }
    }
}

/// When the certificates end that were read, by Secret; of each what was read last.
#[derive(Debug, Default)]
pub struct Ends(Mutex<BTreeMap<String, Timestamp>>);

impl Ends {
    /// All of them.
    pub fn take(self) -> BTreeMap<String, Timestamp> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, secret: &str, certificate: &[u8]) {
        let first = Certificate::read_all(certificate).into_iter().next();
        let mut ends = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match first {
            Some(certificate) => ends.insert(secret.to_owned(), certificate.validity().not_after),
            None => ends.remove(secret),
        };
    }
}

/// The Secrets of a cluster's namespace.
pub struct Store<'a> {
    secrets: Api<Secret>,
    pods: Api<Pod>,
    spec: &'a Spec,
    ends: &'a Ends,
}

impl<'a> Store<'a> {
    pub fn new(client: &Client, spec: &'a Spec, ends: &'a Ends) -> Self {
        let secrets = Api::namespaced(client.clone(), spec.namespace());
        Self { secrets, pods: Api::namespaced(client.clone(), spec.namespace()), spec, ends }
    }

    /// `namespace/name`.
    pub fn place(&self, name: &str) -> String {
        format!("{}/{name}", self.spec.namespace())
    }

    fn object(&self, name: &str) -> String {
        format!("secret {}", self.place(name))
    }

    /// What each pod of the cluster was made from. One that does not say is none of the cluster's.
    pub async fn revisions(&self) -> Result<Vec<u64>, Problem> {
        let pods = (0..MEMBERS).map(|ordinal| names::member(self.spec.name(), Ordinal(ordinal)));
        let read = pods.map(|name| async move {
            let found = call(self.pods.get_opt(&name)).await;
            found.map_err(|source| {
                let object = format!("pod {}", self.place(&name));
                Problem::Call { verb: "read", object, source }
            })
        });
        let found: Vec<_> = join_all(read).await.into_iter().collect::<Result<_, _>>()?;
        let made_from = |pod: Pod| Some(template_of(&pod.metadata)?.revision);
        Ok(found.into_iter().flatten().filter_map(made_from).collect())
    }

    /// A pair that anybody may keep.
    pub async fn pair(&self, name: &str) -> Result<Option<Pair>, Problem> {
        Ok(self.read(name).await?.map(|secret| self.noted(name, pair(&secret, LEAF))))
    }

    /// A leaf of ours.
    pub async fn leaf(&self, name: &str) -> Result<Slot, Problem> {
        self.slot(name, LEAF).await
    }

    /// The authority.
    pub async fn authority(&self, name: &str) -> Result<Slot, Problem> {
        self.slot(name, ROOT).await
    }

    /// Whether it was written; if not, somebody else was first.
    pub async fn write_leaf(&self, name: &str, slot: &Slot, pair: &Pair) -> Result<bool, Problem> {
        self.write(name, LEAF_TYPE, slot, data(pair, LEAF)).await
    }

    /// As [`Store::write_leaf`].
    pub async fn write_authority(&self, name: &str, slot: &Slot, pair: &Pair) -> Result<bool, Problem> {
        tracing::info!(secret = self.place(name), "writing the authority of a cluster");
        self.write(name, AUTHORITY_TYPE, slot, data(pair, ROOT)).await
    }

    async fn read(&self, name: &str) -> Result<Option<Secret>, Problem> {
        let read = call(self.secrets.get_opt(name)).await;
        read.map_err(|source| Problem::Call { verb: "read", object: self.object(name), source })
    }

    fn noted(&self, name: &str, pair: Pair) -> Pair {
        self.ends.note(name, &pair.certificate);
        pair
    }

    async fn slot(&self, name: &str, keys: Keys) -> Result<Slot, Problem> {
        let Some(found) = self.read(name).await? else { return Ok(Slot::Absent) };
        if !self.is_ours(&found) {
            return Err(Problem::Foreign(self.place(name)));
        }
        let version = found.resource_version().unwrap_or_default();
        Ok(Slot::Ours { version, pair: self.noted(name, pair(&found, keys)) })
    }

    fn is_ours(&self, secret: &Secret) -> bool {
        let mut owners = secret.owner_references().iter();
        owners.any(|owner| owner.controller == Some(true) && owner.uid == self.spec.uid())
    }

    async fn write(
        &self,
        name: &str,
        kind: &str,
        slot: &Slot,
        data: BTreeMap<&str, Vec<u8>>,
    ) -> Result<bool, Problem> {
        let (verb, written) = match slot {
            Slot::Absent => {
                let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
                let made = secret(self.spec, name, kind, data);
                ("create", call(self.secrets.create(&params, &made)).await)
            }
            // A merge leaves what others added alone, and a resource version inside makes it conditional.
            Slot::Ours { version, .. } => {
                let params =
                    PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
                let data: BTreeMap<_, _> =
                    data.into_iter().map(|(key, value)| (key, ByteString(value))).collect();
                let patch = json!({"metadata": {"resourceVersion": version}, "data": data});
                ("update", call(self.secrets.patch(name, &params, &Patch::Merge(patch))).await)
            }
        };
        match written {
            Ok(_) => Ok(true),
            Err(error) if error.is_lost_race() || (verb == "update" && error.is_not_found()) => Ok(false),
            Err(source) => Err(Problem::Call { verb, object: self.object(name), source }),
        }
    }
}

fn pair(secret: &Secret, [certificate, key, trusted]: Keys) -> Pair {
    let data = secret.data.as_ref();
    let part = |name: &str| data.and_then(|data| data.get(name)).map(|value| value.0.clone());
    let part = |name| part(name).unwrap_or_default();
    Pair { certificate: part(certificate), key: part(key), trusted: part(trusted) }
}

fn data(pair: &Pair, [certificate, key, trusted]: Keys) -> BTreeMap<&'static str, Vec<u8>> {
    let Pair { certificate: leaf, key: secret, trusted: authorities } = pair.clone();
    BTreeMap::from([(certificate, leaf), (key, secret), (trusted, authorities)])
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::certs::mint::{self, Name};

    #[test]
    fn of_each_secret_the_certificate_counts_that_was_read_last() {
        let (ends, now) = (Ends::default(), Timestamp::from_second(1_800_000_000).unwrap());
        let lasting = |days: i64| {
            let name = Name { common_name: "c", lifetime: SignedDuration::from_hours(24 * days) };
            mint::Authority::create_as(name, now).unwrap()
        };
        let [short, long, other] = [1, 9, 5].map(lasting);
        for (secret, read) in [("a", &short), ("b", &other), ("a", &long), ("gone", &short)] {
            ends.note(secret, &read.certificate_pem());
        }
        ends.note("gone", b"nothing that could be read");
        let end = |read: &mint::Authority| read.certificate().validity().not_after;
        let expected = [("a", end(&long)), ("b", end(&other))].map(|(secret, end)| (secret.to_owned(), end));
        assert_eq!(ends.take(), expected.into());
    }
}
