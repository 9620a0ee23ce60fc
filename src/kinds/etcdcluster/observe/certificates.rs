//! Reads the certificates of a cluster: in Secrets that the operator manages, or in those that the spec names.
//!
//! Guarantees: Secrets are read live; nothing of a key leaves this module.
//! Assumes: a pod that is recreated mounts its Secrets as they are by then.
//! Never: writes. What the operator's own Secrets need is decided by the plan, from the facts in
//! [`CertificateStatus::secrets`].
//!
//! Etcd reads a leaf again for each connection, and trusts what it read when it started: whom it is to trust is in
//! [`CertificateStatus::trust`], which is part of what pods are made from.

mod managed;
pub mod pair;
mod user_provided;

use std::collections::BTreeMap;

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};

use crate::certs::certificate::Certificate;
use crate::kinds::etcdcluster::names;
use crate::kinds::etcdcluster::observation::{CertificateSecrets, Certificates, Trust};
use crate::kinds::etcdcluster::spec::{Keeper, Spec};
use crate::runtime::call::{self, call};
use pair::{DataKeys, OF_AUTHORITY, OF_LEAF, Pair};

/// What is wrong with the certificates.
#[derive(Debug, thiserror::Error)]
enum Problem {
    /// It could not be read.
    #[error("failed to read secret {0}: {1}")]
    Unread(String, String),
    /// A name is taken.
    #[error("secret {0} belongs to another owner: remove it, and the cluster gets its own")]
    Foreign(String),
    /// It is not there.
    #[error("secret {0} is missing")]
    Missing(String),
    /// There is no use in it.
    #[error("secret {0} {1}")]
    Unusable(String, String),
    /// It has to be renewed.
    #[error("the certificate in secret {0} has expired or soon will")]
    Overdue(String),
}

impl Problem {
    const fn certificates(&self) -> Certificates {
        match self {
            Self::Overdue(_) => Certificates::Expiring,
            Self::Unusable(..) => Certificates::Unfit,
            Self::Unread(..) | Self::Foreign(_) | Self::Missing(_) => Certificates::Missing,
        }
    }
}

/// The certificates of a cluster, and what the status says of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateStatus {
    /// How they are.
    pub state: Certificates,
    /// The Secrets that the operator keeps; none where others do, or there are none.
    pub secrets: Option<CertificateSecrets>,
    /// Whom members that start now trust; none where they speak plain HTTP, or it is unknown.
    pub trust: Option<Trust>,
    /// What people ought to know.
    pub words: Option<String>,
    /// Whether a person has to act.
    pub is_problem: bool,
    /// When they end, by Secret.
    pub ends: BTreeMap<String, Timestamp>,
}

impl CertificateStatus {
    fn of(state: Certificates, trust: Option<Trust>) -> Self {
        Self { state, secrets: None, trust, words: None, is_problem: false, ends: BTreeMap::new() }
    }

    fn bad(problem: &Problem) -> Self {
        let words = Some(problem.to_string());
        Self { words, is_problem: true, ..Self::of(problem.certificates(), None) }
    }

    /// Fit for use, although one may be about to expire.
    fn fit(trust: Option<Trust>, overdue: Option<&Problem>) -> Self {
        let state = overdue.map_or(Certificates::Valid, Problem::certificates);
        Self {
            words: overdue.map(ToString::to_string),
            is_problem: overdue.is_some(),
            ..Self::of(state, trust)
        }
    }
}

/// The Secrets that were read, by name.
pub struct Found<'a> {
    spec: &'a Spec,
    secrets: BTreeMap<String, Result<Option<Secret>, call::Error>>,
}

impl Found<'_> {
    /// `namespace/name`.
    fn place(&self, name: &str) -> String {
        format!("{}/{name}", self.spec.namespace())
    }

    /// A Secret; none: it is not there.
    fn secret(&self, name: &str) -> Result<Option<&Secret>, Problem> {
        match self.secrets.get(name) {
            Some(Ok(found)) => Ok(found.as_ref()),
            Some(Err(error)) => Err(Problem::Unread(self.place(name), error.to_string())),
            None => Ok(None),
        }
    }

    /// When the first certificate of each ends.
    fn ends(&self) -> BTreeMap<String, Timestamp> {
        let authority = names::authority(self.spec.name());
        let found = self.secrets.iter().filter_map(|(name, found)| {
            let keys: DataKeys = if *name == authority { OF_AUTHORITY } else { OF_LEAF };
            let pair = Pair::of(found.as_ref().ok()?.as_ref()?, keys);
            let first: Certificate = pair.chain().into_iter().next()?;
            Some((name.clone(), first.validity().not_after))
        });
        found.collect()
    }
}

/// Looks at the certificates of a cluster, as its spec says.
pub async fn look(client: &Client, spec: &Spec, now: Timestamp) -> CertificateStatus {
    let Some(tls) = &spec.tls else { return CertificateStatus::of(Certificates::Disabled, None) };
    let is_kept = tls.keeper == Keeper::Operator;
    let names = if is_kept { managed::names(spec) } else { user_provided::names(&tls.secrets) };
    let secrets: Api<Secret> = Api::namespaced(client.clone(), spec.namespace());
    let read = names.into_iter().map(|name| async {
        let found = call(secrets.get_opt(&name)).await;
        (name, found)
    });
    let found = Found { spec, secrets: join_all(read).await.into_iter().collect() };
    let standing =
        if is_kept { managed::status(&found, now) } else { user_provided::status(&found, &tls.secrets, now) };
    CertificateStatus { ends: found.ends(), ..standing }
}
