//! Validates certificates and authentication.

use core::net::IpAddr;

use super::super::v1::{EtcdClusterSpec, TlsMode, TlsSecrets};
use crate::api::field::{FieldError, Path, Validation};
use crate::api::name;
use crate::api::reference::NamedReference;

pub fn validate(spec: &EtcdClusterSpec, validation: &mut Validation) {
    let secrets = Path::spec().at("tls").at("secrets");
    let given = spec.tls.as_ref().and_then(|tls| tls.secrets.as_ref());
    match (spec.tls_mode(), given) {
        (TlsMode::Secrets, None) => {
            validation
                .reject(FieldError::required(secrets, "mode Secrets needs serverRef, peerRef and clientRef"));
        }
        (TlsMode::Secrets, Some(given)) => validate_secrets(given, &secrets, validation),
        (TlsMode::Automatic | TlsMode::Disabled, None) => {}
        (other, Some(_)) => validation.reject(FieldError::forbidden(
            secrets,
            format!(
                "has no meaning with mode {}; remove it, or set spec.tls.mode to Secrets",
                other.as_str()
            ),
        )),
    }
    validate_extra_names(spec, validation);
    validate_auth(spec, validation);
}

fn validate_extra_names(spec: &EtcdClusterSpec, validation: &mut Validation) {
    let Some(given) = spec.tls.as_ref().and_then(|tls| tls.extra_names.as_ref()) else { return };
    let path = Path::spec().at("tls").at("extraNames");
    if spec.tls_mode() != TlsMode::Automatic && !given.is_empty() {
        let detail = format!(
            "has no meaning with mode {}: gatehouse makes certificates with mode Automatic only",
            spec.tls_mode().as_str()
        );
        validation.reject(FieldError::forbidden(path, detail));
        return;
    }
    for (index, name) in given.iter().enumerate().filter(|(_, name)| !is_verifiable(name)) {
        validation.reject(FieldError::invalid(
            path.index(index),
            name,
            "must be a DNS name in lower-case letters, with *. before it for each name one level below, or an IP address, \
             such as etcd.example.com",
        ));
    }
}

/// Whether clients can verify such a name: an IP address, or a DNS name whose last label is no number, which would be an
/// address (RFC 3696, section 2).
fn is_verifiable(text: &str) -> bool {
    let name = text.strip_prefix("*.").unwrap_or(text);
    let is_number = |label: &str| label.bytes().all(|one| one.is_ascii_digit());
    text.parse::<IpAddr>().is_ok()
        || name::dns_1123_subdomain(name).is_ok()
            && name.split('.').all(|label| name::dns_1123_label(label).is_ok())
            && !name.rsplit('.').next().is_some_and(is_number)
}

fn validate_secrets(given: &TlsSecrets, path: &Path, validation: &mut Validation) {
    let needed = [("serverRef", &given.server), ("peerRef", &given.peer), ("clientRef", &given.client)];
    for (field, _) in needed.iter().filter(|(_, secret)| secret.is_none()) {
        validation.reject(FieldError::required(path.at(*field), "a Secret with tls.crt, tls.key and ca.crt"));
    }
    let authorities = [("clientCARef", &given.client_ca), ("peerCARef", &given.peer_ca)];
    for (field, secret) in needed.into_iter().chain(authorities) {
        validate_reference(secret.as_ref(), &path.at(field), validation);
    }
}

fn validate_reference(given: Option<&NamedReference>, path: &Path, validation: &mut Validation) {
    if let Some(given) = given
        && let Err(detail) = name::dns_1123_subdomain(&given.name)
    {
        validation.reject(FieldError::invalid(path.at("name"), &given.name, detail));
    }
}

fn validate_auth(spec: &EtcdClusterSpec, validation: &mut Validation) {
    let auth = Path::spec().at("auth");
    let enabled = spec.authenticates();
    if enabled && spec.tls_mode() == TlsMode::Disabled {
        validation.reject(FieldError::forbidden(
            auth.at("enabled"),
            "needs TLS, passwords would cross the network readable; set spec.tls.mode to Automatic or Secrets",
        ));
    }
    let root = spec.auth.as_ref().and_then(|auth| auth.root_secret_ref.as_ref());
    validate_reference(root, &auth.at("rootSecretRef"), validation);
    if root.is_some() && !enabled {
        validation.warn("spec.auth.rootSecretRef: has no effect while spec.auth.enabled is false");
    }
}
