//! Writes the Secrets with the certificates that the operator manages.
//!
//! Guarantees: an authority that can be read is never replaced; a Secret is written only as it was seen, and a leaf
//! only while the authority that it was decided on is stored. No key is ever logged.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Secret;
use serde_json::json;

use super::objects::is_ours;
use super::{Execution, Failure};
use crate::certs::certificate::{Bundle, Certificate};
use crate::certs::mint::{self, Authority, Name};
use crate::controllers::api_write::ApiWrite;
use crate::controllers::manifest::Manifest;
use crate::kinds::etcdcluster::actions::{AuthorityWrite, LeafWrite};
use crate::kinds::etcdcluster::names::{self, MANAGER};
use crate::kinds::etcdcluster::observation::{CertificateId, Handle, Holder};
use crate::kinds::etcdcluster::observe::certificates::pair::{DataKeys, OF_AUTHORITY, OF_LEAF, Pair};
use crate::kinds::etcdcluster::observe::kubernetes::handle;
use crate::kinds::etcdcluster::resources::certificates::{self as resources, Leaf};
use crate::runtime::clock;

/// Writes the Secret of the authority; `bundle`: which of the authorities that were found stay trusted.
pub async fn write_authority(
    execution: Execution<'_>,
    found: Option<&Handle>,
    write: AuthorityWrite,
    bundle: &BTreeSet<CertificateId>,
) -> Result<(), Failure> {
    let (secret, now) = (names::authority(&execution.name()), clock::now());
    let live = as_seen(execution, &secret, found).await?;
    let stored = live.as_ref().map(|live| Pair::of(live, OF_AUTHORITY)).unwrap_or_default();
    let mut known = stored.authorities();
    for leaf in leaves(execution) {
        let beside = execution.read::<Secret>(&leaf.secret).await?;
        known.extend(beside.iter().flat_map(|secret| Pair::of(secret, OF_LEAF).authorities()));
    }
    let common_name = resources::authority_name(execution.spec);
    let name = Name { common_name: &common_name, lifetime: resources::AUTHORITY_LIFETIME };
    let loaded = Authority::load(&stored.key, &stored.certificate);
    let authority = match (write, loaded) {
        (AuthorityWrite::Create, Ok(_)) => {
            return Err(Failure::moved(format!("secret {secret} has an authority that can be read")));
        }
        (AuthorityWrite::Create, Err(_)) => Authority::create_as(name, now).map_err(unmade)?,
        (AuthorityWrite::Reissue, Ok(authority)) => authority.reissue_as(name, now).map_err(unmade)?,
        (AuthorityWrite::Bundle, Ok(authority)) => authority,
        (AuthorityWrite::Reissue | AuthorityWrite::Bundle, Err(_)) => {
            return Err(Failure::moved(format!("secret {secret} has no authority that can be read")));
        }
    };
    let signs = authority.certificate();
    known.retain(|one| bundle.contains(&resources::id(one)) && one.identity() != signs.identity());
    let trusted = Bundle::of(known.into_iter().chain([signs.clone()]));
    let pair = Pair {
        certificate: authority.certificate_pem(),
        key: authority.key_pem(),
        trusted: trusted.map(|bundle| bundle.pem().to_vec()).unwrap_or_default(),
    };
    tracing::info!(secret, namespace = execution.namespace(), ?write, "writing the authority of a cluster");
    store(execution, &secret, found, pair, OF_AUTHORITY, resources::AUTHORITY_TYPE).await
}

/// Writes the Secret of a leaf.
pub async fn write_leaf(
    execution: Execution<'_>,
    found: Option<&Handle>,
    holder: Holder,
    write: LeafWrite,
    authority: &Handle,
) -> Result<(), Failure> {
    let wanted = Holder::ALL.into_iter().zip(leaves(execution)).find(|(of, _)| *of == holder);
    let Some((_, wanted)) = wanted else { return Err(Failure::moved("the cluster speaks plain HTTP")) };
    let by = as_seen(execution, &names::authority(&execution.name()), Some(authority)).await?;
    let by = by.map(|secret| Pair::of(&secret, OF_AUTHORITY)).unwrap_or_default();
    let live = as_seen(execution, &wanted.secret, found).await?;
    let trusted = Bundle::of(Certificate::read_all(&by.trusted));
    let trusted = trusted.map(|bundle| bundle.pem().to_vec()).unwrap_or_default();
    let pair = match write {
        LeafWrite::Trust => Pair { trusted, ..live.map(|live| Pair::of(&live, OF_LEAF)).unwrap_or_default() },
        LeafWrite::Sign(why) => {
            let authority = Authority::load(&by.key, &by.certificate).map_err(unmade)?;
            let signed = authority.sign(&wanted.profile(), clock::now()).map_err(unmade)?;
            let (secret, namespace, why) = (&wanted.secret, execution.namespace(), why.as_str());
            tracing::info!(secret, namespace, why, not_after = %signed.validity().not_after, "signing");
            Pair { certificate: signed.certificate_pem(), key: signed.key_pem(), trusted }
        }
    };
    store(execution, &wanted.secret, found, pair, OF_LEAF, resources::LEAF_TYPE).await
}

fn leaves(execution: Execution<'_>) -> impl Iterator<Item = Leaf> {
    resources::leaves(execution.spec).into_iter().flatten()
}

/// The Secret where it is still as it was seen, or still not there.
async fn as_seen(
    execution: Execution<'_>,
    name: &str,
    seen: Option<&Handle>,
) -> Result<Option<Secret>, Failure> {
    let live: Option<Secret> = execution.read(name).await?;
    if live.as_ref().map(|live| handle(&live.metadata)).as_ref() != seen {
        return Err(Failure::moved(format!("secret {name} has changed")));
    }
    if live.as_ref().is_some_and(|live| !is_ours(execution, &live.metadata)) {
        return Err(Failure::moved(format!("secret {name} belongs to another owner")));
    }
    Ok(live)
}

/// Makes the Secret, or merges into the one that was seen, which leaves what others added alone.
async fn store(
    execution: Execution<'_>,
    name: &str,
    found: Option<&Handle>,
    pair: Pair,
    keys: DataKeys,
    kind: &str,
) -> Result<(), Failure> {
    let data = pair.data(keys);
    if let Some(found) = found {
        let version = Some(found.resource_version.0.as_str());
        return execution.merge::<Secret>(name, &found.uid.0, version, json!({ "data": data })).await;
    }
    let manifest = Manifest::of(&resources::secret(execution.spec, name, kind, data));
    execution.write(&ApiWrite::Create { manifest, manager: MANAGER }).await
}

fn unmade(error: mint::Error) -> Failure {
    Failure::Elsewhere { source: Box::new(error), is_undone: true }
}
