//! Where the API server finds the gate.

use std::fmt;

use hyper::Uri;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1 as admission;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as definition;
use serde::{Deserialize, Serialize};

use super::Plan;
use crate::certs::mint::service_names;
use crate::review::Endpoint;

/// Where the API server finds the gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Address {
    /// A Service of the cluster that the API server belongs to.
    Service {
        /// Its name.
        name: String,
        /// Its namespace.
        namespace: String,
        /// Its port, usually 443.
        port: u16,
    },
    /// A host that the API server reaches by itself: outside of a cluster, or in its host network.
    Url {
        /// A DNS name or an IP address; an IPv6 address without brackets.
        host: String,
        /// The port.
        port: u16,
    },
}

/// This is no base URL of a webhook.
#[derive(Debug, thiserror::Error)]
#[error("invalid webhook URL {url:?}: expected https://host:port without path, query or user")]
pub struct InvalidUrl {
    url: String,
}

impl Address {
    /// Takes `https://host:port`; the port may be left out and is then 443.
    ///
    /// # Errors
    /// When it is anything else: the API server takes no other scheme, and paths are ours to choose.
    pub fn from_url(url: &str) -> Result<Self, InvalidUrl> {
        let invalid = || InvalidUrl { url: url.to_owned() };
        let uri: Uri = url.parse().map_err(|_| invalid())?;
        let authority = uri.authority().ok_or_else(invalid)?;
        let is_base = matches!(uri.path(), "" | "/") && uri.query().is_none();
        let has_user = authority.as_str().contains('@');
        let has_port = authority.as_str() != authority.host();
        if uri.scheme_str() != Some("https") || !is_base || has_user || authority.host().is_empty() {
            return Err(invalid());
        }
        let port = if has_port { authority.port_u16().ok_or_else(invalid)? } else { 443 };
        Ok(Self::Url { host: authority.host().trim_matches(['[', ']']).to_owned(), port })
    }

    /// The names that a certificate for this address has to carry.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        match self {
            Self::Service { name, namespace, .. } => service_names(name, namespace),
            Self::Url { host, .. } => vec![host.clone()],
        }
    }

    /// The one of these names that the API server asks for.
    #[must_use]
    pub fn server_name(&self) -> String {
        match self {
            Self::Service { name, namespace, .. } => format!("{name}.{namespace}.svc"),
            Self::Url { host, .. } => host.clone(),
        }
    }

    fn url(&self, path: &str) -> Option<String> {
        match self {
            Self::Service { .. } => None,
            Self::Url { host, port } if host.contains(':') => Some(format!("https://[{host}]:{port}{path}")),
            Self::Url { host, port } => Some(format!("https://{host}:{port}{path}")),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service { name, namespace, port } => write!(formatter, "service {namespace}/{name}:{port}"),
            Self::Url { .. } => write!(formatter, "{}", self.url("").unwrap_or_default()),
        }
    }
}

/// The stanza of a webhook configuration.
pub(super) fn of_admission(plan: &Plan, endpoint: Endpoint) -> admission::WebhookClientConfig {
    let path = endpoint.path();
    admission::WebhookClientConfig {
        ca_bundle: bundle(plan),
        url: plan.address.url(path),
        service: match &plan.address {
            Address::Url { .. } => None,
            Address::Service { name, namespace, port } => Some(admission::ServiceReference {
                name: name.clone(),
                namespace: namespace.clone(),
                path: Some(path.to_owned()),
                port: Some((*port).into()),
            }),
        },
    }
}

/// The same stanza of a definition, which is another type in the API.
pub(super) fn of_conversion(plan: &Plan) -> definition::WebhookClientConfig {
    let admission::WebhookClientConfig { ca_bundle, service, url } = of_admission(plan, Endpoint::Convert);
    definition::WebhookClientConfig {
        ca_bundle,
        url,
        service: service.map(|service| definition::ServiceReference {
            name: service.name,
            namespace: service.namespace,
            path: service.path,
            port: service.port,
        }),
    }
}

fn bundle(plan: &Plan) -> Option<ByteString> {
    plan.bundle.as_ref().map(|bundle| ByteString(bundle.pem().to_vec()))
}
