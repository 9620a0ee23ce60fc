//! Certificates, users and roles.

use super::super::v1::{EtcdClusterSpec, TlsMode, TlsSecrets};
use crate::api::field::{Fault, Path, Verdict};
use crate::api::name;

/// The mode that is meant.
pub fn mode(spec: &EtcdClusterSpec) -> TlsMode {
    spec.tls.as_ref().and_then(|tls| tls.mode).unwrap_or(TlsMode::Automatic)
}

/// Whether etcd is to ask who is there.
pub fn authenticates(spec: &EtcdClusterSpec) -> bool {
    spec.auth.as_ref().and_then(|auth| auth.enabled).unwrap_or(false)
}

pub fn judge(spec: &EtcdClusterSpec, verdict: &mut Verdict) {
    let secrets = Path::spec().at("tls").at("secrets");
    let given = spec.tls.as_ref().and_then(|tls| tls.secrets.as_ref());
    match (mode(spec), given) {
        (TlsMode::Secrets, None) => {
            verdict.deny(Fault::required(secrets, "mode Secrets needs server, peer and client"));
        }
        (TlsMode::Secrets, Some(given)) => judge_secrets(given, &secrets, verdict),
        (TlsMode::Automatic | TlsMode::Disabled, None) => {}
        (other, Some(_)) => verdict.deny(Fault::forbidden(
            secrets,
            format!(
                "has no meaning with mode {}; remove it, or set spec.tls.mode to Secrets",
                other.as_str()
            ),
        )),
    }
    judge_auth(spec, verdict);
}

fn judge_secrets(given: &TlsSecrets, path: &Path, verdict: &mut Verdict) {
    for (field, secret) in [("server", &given.server), ("peer", &given.peer), ("client", &given.client)] {
        if secret.as_ref().is_none_or(String::is_empty) {
            verdict
                .deny(Fault::required(path.at(field), "name of a Secret with tls.crt, tls.key and ca.crt"));
        }
    }
    let all = [
        ("server", &given.server),
        ("peer", &given.peer),
        ("client", &given.client),
        ("clientCA", &given.client_ca),
        ("peerCA", &given.peer_ca),
    ];
    for (field, secret) in all {
        if let Some(secret) = secret.as_ref().filter(|secret| !secret.is_empty())
            && let Err(detail) = name::dns_1123_subdomain(secret)
        {
            verdict.deny(Fault::invalid(path.at(field), secret, detail));
        }
    }
}

fn judge_auth(spec: &EtcdClusterSpec, verdict: &mut Verdict) {
    let auth = Path::spec().at("auth");
    let enabled = authenticates(spec);
    if enabled && mode(spec) == TlsMode::Disabled {
        verdict.deny(Fault::forbidden(
            auth.at("enabled"),
            "needs TLS, passwords would cross the network readable; set spec.tls.mode to Automatic or Secrets",
        ));
    }
    let Some(secret) = spec.auth.as_ref().and_then(|auth| auth.root_secret.as_ref()) else { return };
    if let Err(detail) = name::dns_1123_subdomain(secret) {
        verdict.deny(Fault::invalid(auth.at("rootSecret"), secret, detail));
    }
    if !enabled {
        verdict.warn("spec.auth.rootSecret: has no effect while spec.auth.enabled is false");
    }
}
