//! Secrets with certificates, as far as a plan has to know them.

use std::collections::BTreeSet;

use crate::kinds::etcdcluster::observation::{
    Age, AuthoritySecret, CertificateId, Handle, Leaf, LeafSecret, Owner, ResourceVersion, Signer, Uid,
};

pub fn ids(of: &[u64]) -> BTreeSet<CertificateId> {
    of.iter().copied().map(CertificateId).collect()
}

pub fn handle(uid: &str) -> Handle {
    Handle { uid: Uid(uid.to_owned()), resource_version: ResourceVersion("1".to_owned()) }
}

/// The Secret of an authority that has had time to spread.
pub fn authority(signs: u64, bundle: &[u64]) -> AuthoritySecret {
    let certificate = CertificateId(signs);
    let signer = Signer { certificate, renewal_age: Age::Fresh, spread_age: Age::PastDeadline };
    AuthoritySecret { handle: handle("ca"), owner: Owner::Ours, signer: Some(signer), bundle: ids(bundle) }
}

/// The Secret of a leaf in the middle of its life.
pub fn leaf(signed_by: u64, trusted: &[u64]) -> LeafSecret {
    let leaf = Leaf {
        signed_by: ids(&[signed_by]),
        fit_for: ids(&[signed_by]),
        has_wanted_names: true,
        renewal_age: Age::Fresh,
        last_call_age: Age::Fresh,
        overlap_age: Age::PastDeadline,
    };
    LeafSecret { handle: handle("leaf"), owner: Owner::Ours, leaf: Some(leaf), trusted: ids(trusted) }
}
