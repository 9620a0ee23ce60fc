//! The Lease object, and the calls for it.
//!
//! Guarantees: each call ends within [`Pace::call`]; a write is of the version that it names, or makes the lease.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use aws_lc_rs::rand;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1 as coordination;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client, Config, ResourceExt as _};

use super::term::{Answer, Claim, Pace, Record};
use crate::runtime::clock;

/// The lease could not be asked for.
#[derive(Debug, thiserror::Error)]
pub enum Connect {
    /// There is no Kubernetes API to ask.
    #[error("unable to make a client for the lease")]
    Client(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The system has no randomness to give.
    #[error("failed to choose an identity")]
    Identity,
}

/// A call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused it, or could not be reached.
    #[error("failed to {verb} the lease")]
    Call {
        /// What was tried.
        verb: &'static str,
        /// Why.
        source: Box<kube::Error>,
    },
    /// There was no answer.
    #[error("failed to {verb} the lease: no answer within {limit:?}")]
    Timeout {
        /// What was tried.
        verb: &'static str,
        /// How long it was waited for.
        limit: Duration,
    },
}

/// A lease, as one candidate sees it.
#[derive(Clone)]
pub struct Lease {
    api: Api<coordination::Lease>,
    namespace: String,
    name: String,
    identity: String,
    pace: Pace,
}

impl Lease {
    /// The lease of that name, through a client of its own: calls for it neither queue behind others nor are they
    /// repeated by anything but the election. `replica` names this replica; what is added to it makes it this
    /// process, since one that follows on a crashed one must not take its term for its own.
    ///
    /// # Errors
    /// When there is no client to be had.
    pub fn connect(
        mut config: Config,
        namespace: &str,
        name: &str,
        replica: &str,
        duration: Duration,
    ) -> Result<Self, Connect> {
        let pace = Pace::of(duration);
        config.default_retry = false;
        config.connect_timeout = Some(pace.call);
        config.read_timeout = Some(pace.call);
        config.write_timeout = Some(pace.call);
        let client = Client::try_from(config).map_err(|source| Connect::Client(source.into()))?;
        let mut suffix = [0; 8];
        rand::fill(&mut suffix).map_err(|_unspecified| Connect::Identity)?;
        let identity = format!("{replica}_{:016x}", u64::from_be_bytes(suffix));
        let api = Api::namespaced(client, namespace);
        Ok(Self { api, namespace: namespace.to_owned(), name: name.to_owned(), identity, pace })
    }

    /// Who this process is in the election.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// How fast things go.
    #[must_use]
    pub const fn pace(&self) -> Pace {
        self.pace
    }

    pub(super) async fn read(&self) -> Result<Answer, Error> {
        let found = self.call("read", self.api.get_opt(&self.name)).await?;
        Ok(found.map_or(Answer::Absent, |lease| {
            let version = lease.resource_version().unwrap_or_default();
            Answer::Found(record(lease), version)
        }))
    }

    pub(super) async fn write(&self, claim: &Claim) -> Result<Answer, Error> {
        let lease = self.object(claim, clock::now());
        let params = PostParams::default();
        let written = if claim.version.is_some() {
            self.call("write", self.api.replace(&self.name, &params, &lease)).await
        } else {
            self.call("create", self.api.create(&params, &lease)).await
        };
        match written {
            Ok(lease) => {
                let version = lease.resource_version().unwrap_or_default();
                Ok(Answer::Written(record(lease), version))
            }
            Err(error) if is_lost_race(&error, claim.version.is_some()) => Ok(Answer::LostRace),
            Err(error) => Err(error),
        }
    }

    /// Waits for a call no longer than it may take.
    async fn call<T>(
        &self,
        verb: &'static str,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, Error> {
        let limit = self.pace.call;
        let answer = tokio::time::timeout(limit, request).await;
        let answer = answer.map_err(|_late| Error::Timeout { verb, limit })?;
        answer.map_err(|source| Error::Call { verb, source: Box::new(source) })
    }

    fn object(&self, claim: &Claim, now: Timestamp) -> coordination::Lease {
        coordination::Lease {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                namespace: Some(self.namespace.clone()),
                resource_version: claim.version.clone(),
                ..ObjectMeta::default()
            },
            spec: Some(coordination::LeaseSpec {
                holder_identity: Some(claim.holder.clone()),
                lease_duration_seconds: i32::try_from(claim.seconds).ok(),
                lease_transitions: i32::try_from(claim.transitions).ok(),
                acquire_time: Some(MicroTime(claim.acquired.unwrap_or(now))),
                renew_time: Some(MicroTime(now)),
                ..coordination::LeaseSpec::default()
            }),
        }
    }
}

impl fmt::Display for Lease {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.namespace, self.name)
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Lease({self} as {})", self.identity)
    }
}

/// Another replica wrote first: another version is there, or another lease, or, where one was replaced, none any more.
/// A missing namespace is "not found" as well, but only for who creates.
fn is_lost_race(error: &Error, replaced: bool) -> bool {
    let Error::Call { source, .. } = error else { return false };
    let kube::Error::Api(status) = &**source else { return false };
    status.is_conflict() || status.is_already_exists() || (replaced && status.is_not_found())
}

fn record(lease: coordination::Lease) -> Record {
    let spec = lease.spec.unwrap_or_default();
    Record {
        holder: spec.holder_identity.unwrap_or_default(),
        seconds: spec
            .lease_duration_seconds
            .and_then(|seconds| u32::try_from(seconds).ok())
            .unwrap_or_default(),
        transitions: spec.lease_transitions.and_then(|count| u32::try_from(count).ok()).unwrap_or_default(),
        acquired: spec.acquire_time.map(|time| time.0),
        renewed: spec.renew_time.map(|time| time.0),
    }
}
