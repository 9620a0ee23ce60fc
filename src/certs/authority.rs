//! An authority of our own, kept in one Secret, and a leaf for this replica.
//!
//! Guarantees: all replicas end up with the same authority, whichever writes first, since every write names the
//! version that it is based on; a leaf's key never leaves the process; while the API server is away, the leaf is
//! still renewed from what was read last.
//! Assumes: only the replicas write the Secret. What another client does write there is taken up when it is a pair that
//! may sign; otherwise a new authority takes its place, and what can be read of the bundle stays trusted. Deleting the
//! Secret is how an administrator asks for a new key.
//! Never: decides when ([`rotate`] does). Any replica may renew; to leave that to one of them, let the others skip
//! the steps of [`rotate::authority`] that write.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;

use super::certificate::{Bundle, Certificate};
use super::mint::{self, Authority, Leaf};
use super::rotate::steps::{AuthorityStep, LeafStep};
use super::rotate::{self, InForce, LeafInUse};
use super::{BoxError, Clock, Facts, Sink};
use crate::runtime::call::{self, call};

/// How often the Secret is read.
pub const PAUSE: Duration = Duration::from_mins(1);
/// The Secret's name unless another one is configured.
pub const SECRET: &str = "gatehouse-ca";
/// The Secret's key for the authority's private key.
pub const KEY: &str = "ca.key";
/// The Secret's key for the authority's certificate.
pub const CERTIFICATE: &str = "ca.crt";
/// The Secret's key for all that is to be trusted.
pub const BUNDLE: &str = "ca-bundle.crt";

/// Who writes the Secret, in its managed fields.
const MANAGER: &str = "gatehouse-certs";
/// After so many lost races something else is wrong.
const ATTEMPTS: usize = 8;

/// The shared authority could not be read, written or used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A call to the API server failed.
    #[error("failed to {verb} secret {secret}: {source}")]
    Call {
        /// What was tried.
        verb: &'static str,
        /// `namespace/name`.
        secret: String,
        /// Why.
        source: call::Error,
    },
    /// Another client keeps writing it.
    #[error("failed to settle on what is in secret {0}: it changed {ATTEMPTS} times in a row")]
    Contended(String),
    /// A certificate could not be made.
    #[error(transparent)]
    Mint(#[from] mint::Error),
    /// The server did not take the leaf.
    #[error("failed to serve a new certificate: {0}")]
    Refused(BoxError),
}

/// The authority that all replicas share, and this replica's leaf.
pub struct SharedAuthority {
    secrets: Api<Secret>,
    namespace: String,
    name: String,
    names: Vec<String>,
    clock: Clock,
    known: Option<Known>,
    leaf: Option<Leaf>,
}

/// What was settled on last.
struct Known {
    authority: Authority,
    bundle: Option<Bundle>,
}

/// What the Secret holds, as far as it can be read.
struct Stored {
    /// `None` where the Secret itself is not there.
    version: Option<String>,
    authority: Result<Authority, mint::Error>,
    /// Whatever is in it that may be trusted, the authority's own certificate included.
    trusted: Vec<Certificate>,
    bundle: Vec<u8>,
}

/// What is to be written.
struct Change {
    /// The version it is based on; `None` to create.
    version: Option<String>,
    data: BTreeMap<&'static str, ByteString>,
}

impl SharedAuthority {
    /// An authority in the Secret `name` of `namespace`, with leaves for `names` (DNS names and IP addresses).
    #[must_use]
    pub fn new(client: Client, namespace: &str, name: &str, names: Vec<String>, clock: Clock) -> Self {
        Self {
            secrets: Api::namespaced(client, namespace),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            names,
            clock,
            known: None,
            leaf: None,
        }
    }

    /// Reads the Secret, puts it right if it has to be, and serves a new leaf when one is due. `in_force`: whether the
    /// CA bundles in force have an authority.
    ///
    /// # Errors
    /// When the Secret could not be read or written, or a certificate not made or served. The leaf is renewed
    /// even then, from what was known before.
    pub async fn refresh(
        &mut self,
        sink: &Sink,
        in_force: impl FnOnce(&Certificate) -> InForce,
    ) -> Result<(), Error> {
        let settled = self.settle().await;
        self.renew_leaf(sink, in_force)?;
        settled
    }

    /// What is in use.
    #[must_use]
    pub fn facts(&self) -> Facts {
        Facts {
            leaf: self.leaf.as_ref().map(Leaf::validity),
            authority: self.known.as_ref().map(|known| known.authority.certificate().validity()),
            issuer: self.leaf.as_ref().map(|leaf| leaf.in_use().issuer.clone()),
            bundle: self.known.as_ref().and_then(|known| known.bundle.clone()),
        }
    }

    /// Reads and writes until there is nothing left to write. The loser of a race reads what the other wrote.
    async fn settle(&mut self) -> Result<(), Error> {
        let mut secret = self.read().await?;
        for _ in 0..ATTEMPTS {
            let stored = Stored::of(secret.as_ref());
            let leaf = self.leaf.as_ref().map(Leaf::in_use);
            let known = self.known.as_ref().map(|known| known.authority.certificate());
            let step = stored.step((self.clock)(), leaf, &self.names);
            self.announce(&step, &stored);
            match stored.after(step, (self.clock)(), known, leaf, &self.names)? {
                Settled::Known(known) => {
                    self.known = Some(*known);
                    return Ok(());
                }
                Settled::Change(change) => {
                    secret = match self.write(change).await? {
                        Some(written) => Some(written),
                        None => self.read().await?,
                    };
                }
            }
        }
        Err(Error::Contended(self.place()))
    }

    /// Says what is about to be written, and why.
    fn announce(&self, step: &AuthorityStep<Bundle>, stored: &Stored) {
        let secret = self.place();
        match (step, &stored.authority) {
            (AuthorityStep::Keep, _) => {}
            (AuthorityStep::Create, Err(reason)) if stored.version.is_some() => {
                tracing::warn!(secret, %reason, "the secret holds no usable authority: making a new one");
            }
            (AuthorityStep::Create, _) => tracing::info!(secret, "making an authority"),
            (AuthorityStep::Reissue, _) => {
                tracing::info!(secret, "renewing the authority under the same key");
            }
            (AuthorityStep::WriteBundle(bundle), _) => {
                tracing::info!(secret, ?bundle, "correcting the bundle");
            }
        }
    }

    fn renew_leaf(
        &mut self,
        sink: &Sink,
        in_force: impl FnOnce(&Certificate) -> InForce,
    ) -> Result<(), Error> {
        let Some(known) = &self.known else {
            return Ok(());
        };
        let now = (self.clock)();
        let in_use = self.leaf.as_ref().map(Leaf::in_use);
        let authority = known.authority.certificate();
        let LeafStep::Sign(why) = rotate::leaf(now, authority, in_use, in_force(authority)) else {
            return Ok(());
        };
        let leaf = known.authority.mint(&self.names, now)?;
        sink(leaf.chain(), leaf.key()).map_err(Error::Refused)?;
        tracing::info!(
            names = ?self.names,
            not_after = %leaf.validity().not_after,
            why = why.as_str(),
            "serving a new certificate"
        );
        self.leaf = Some(leaf);
        Ok(())
    }

    async fn read(&self) -> Result<Option<Secret>, Error> {
        call(self.secrets.get_opt(&self.name)).await.map_err(|source| self.failed("read", source))
    }

    /// The Secret as written, or `None` when another replica was first.
    async fn write(&self, change: Change) -> Result<Option<Secret>, Error> {
        let (verb, outcome) = match change.version {
            None => ("create", self.create(change.data).await),
            Some(version) => ("update", self.update(&version, &change.data).await),
        };
        match outcome {
            Ok(secret) => Ok(Some(secret)),
            Err(error) if error.is_lost_race() || (verb == "update" && error.is_not_found()) => Ok(None),
            Err(source) => Err(self.failed(verb, source)),
        }
    }

    async fn create(&self, data: BTreeMap<&'static str, ByteString>) -> Result<Secret, call::Error> {
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                namespace: Some(self.namespace.clone()),
                labels: Some(BTreeMap::from([(
                    "app.kubernetes.io/managed-by".to_owned(),
                    "gatehouse".to_owned(),
                )])),
                ..ObjectMeta::default()
            },
            data: Some(data.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
            ..Secret::default()
        };
        let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        call(self.secrets.create(&params, &secret)).await
    }

    /// A merge patch leaves what others added alone, and a resource version inside makes it conditional.
    async fn update(
        &self,
        version: &str,
        data: &BTreeMap<&'static str, ByteString>,
    ) -> Result<Secret, call::Error> {
        let patch = json!({"metadata": {"resourceVersion": version}, "data": data});
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        call(self.secrets.patch(&self.name, &params, &Patch::Merge(patch))).await
    }

    fn failed(&self, verb: &'static str, source: call::Error) -> Error {
        Error::Call { verb, secret: self.place(), source }
    }

    fn place(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

impl fmt::Debug for SharedAuthority {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the authority in secret {}", self.place())
    }
}

/// Either nothing has to be written, or something has.
enum Settled {
    Known(Box<Known>),
    Change(Change),
}

impl Stored {
    fn of(secret: Option<&Secret>) -> Self {
        let read = |key: &str| {
            let data = secret.and_then(|secret| secret.data.as_ref());
            data.and_then(|data| data.get(key)).map_or(&[][..], |value| value.0.as_slice())
        };
        let (certificate, bundle) = (read(CERTIFICATE), read(BUNDLE));
        let trusted = [bundle, certificate].into_iter().flat_map(Certificate::read_all);
        Self {
            version: secret.and_then(Secret::resource_version),
            authority: Authority::load(read(KEY), certificate),
            trusted: trusted.filter(Certificate::is_authority).collect(),
            bundle: bundle.to_vec(),
        }
    }

    /// What has to be done about it, for a replica that goes by these names.
    fn step(&self, now: Timestamp, leaf: Option<LeafInUse<'_>>, names: &[String]) -> AuthorityStep<Bundle> {
        let certificate = self.authority.as_ref().ok().map(Authority::certificate);
        if certificate.is_some_and(|certificate| !certificate.permits(names)) {
            return AuthorityStep::Reissue;
        }
        rotate::authority(now, certificate, &self.bundle, leaf)
    }

    /// The change that a step comes to. `known` is the authority that was in force before, which stays trusted when
    /// the Secret was lost.
    fn after(
        self,
        step: AuthorityStep<Bundle>,
        now: Timestamp,
        known: Option<&Certificate>,
        leaf: Option<LeafInUse<'_>>,
        names: &[String],
    ) -> Result<Settled, Error> {
        let authority = match (step, self.authority) {
            (AuthorityStep::Keep, Ok(authority)) => {
                let bundle = Bundle::of(self.trusted);
                return Ok(Settled::Known(Box::new(Known { authority, bundle })));
            }
            (AuthorityStep::WriteBundle(bundle), _) => {
                let data = BTreeMap::from([(BUNDLE, ByteString(bundle.pem().to_vec()))]);
                return Ok(Settled::Change(Change { version: self.version, data }));
            }
            (AuthorityStep::Reissue, Ok(authority)) => authority.reissue_for(names, now)?,
            (AuthorityStep::Create | AuthorityStep::Keep | AuthorityStep::Reissue, _) => {
                Authority::create_for(names, now)?
            }
        };
        let trusted: Vec<_> = self.trusted.into_iter().chain(known.cloned()).collect();
        let bundle = rotate::bundle(now, authority.certificate(), &trusted, leaf);
        Ok(Settled::Change(Change { version: self.version, data: data(&authority, bundle.as_ref()) }))
    }
}

fn data(authority: &Authority, bundle: Option<&Bundle>) -> BTreeMap<&'static str, ByteString> {
    let bundle = bundle.map_or_else(|| authority.certificate_pem(), |bundle| bundle.pem().to_vec());
    BTreeMap::from([
        (KEY, ByteString(authority.key_pem())),
        (CERTIFICATE, ByteString(authority.certificate_pem())),
        (BUNDLE, ByteString(bundle)),
    ])
}

#[cfg(test)]
mod tests;
