//! The clients for the members of one cluster in one reconciliation: a connection to each, and no other.
//!
//! Guarantees: what is asked of an ordinal is asked of its pod, at the pod's own address; with TLS the certificate has
//! to have the member's name.
//! Assumes: each answer says which cluster and which member gave it, and the caller checks that.
//! Never: keeps a connection, or a key, beyond the reconciliation.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use axum::http::Uri;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::{Api, Client};
use tracing::debug;

use super::names;
use super::observation::Ordinal;
use super::spec::{Secrets as Named, Spec};
use crate::kinds::etcdcluster::etcd::{self, Limits, Tls};
use crate::runtime::call::call;

/// How long members are waited for. A reconciliation waits for the slowest of them.
const LIMITS: Limits = Limits {
    connect: Duration::from_secs(2),
    read: Duration::from_secs(3),
    change: Duration::from_secs(10),
    rewrite: Duration::from_mins(2),
    piece: Duration::from_secs(30),
};

/// More than any page of metrics has.
const PAGE_BYTES: usize = 8 << 20;

/// The members that can be asked.
#[derive(Debug, Default)]
pub struct MemberClients {
    /// By ordinal.
    pub members: BTreeMap<Ordinal, Endpoint>,
}

/// One member that can be asked.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Its API.
    pub client: etcd::Client,
    /// The URL of its metrics.
    metrics: Option<Uri>,
}

/// What a client of a cluster trusts and shows.
#[derive(Debug)]
pub enum ClientTls {
    /// Plain HTTP.
    None,
    /// TLS.
    Tls(Tls),
    /// TLS, and what it takes is not there or cannot be used.
    Missing,
}

impl ClientTls {
    /// Reads them from the Secret of the cluster's client certificate.
    pub async fn read(client: &Client, spec: &Spec) -> Self {
        let Some(Named { client: name, .. }) = spec.secrets() else { return Self::None };
        let namespace = spec.namespace();
        let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
        let data = match call(secrets.get_opt(name)).await {
            Ok(found) => found.and_then(|secret| secret.data).unwrap_or_default(),
            Err(error) => {
                debug!(namespace, name, %error, "failed to read a Secret");
                return Self::Missing;
            }
        };
        let part = |key: &str| data.get(key).map(|bytes| bytes.0.as_slice());
        let (Some(authority), Some(certificate), Some(key)) =
            (part("ca.crt"), part("tls.crt"), part("tls.key"))
        else {
            return Self::Missing;
        };
        match Tls::from_pem(authority, Some((certificate, key))) {
            Ok(tls) => Self::Tls(tls),
            Err(error) => {
                debug!(namespace, name, %error, "the certificate of a Secret cannot be used");
                Self::Missing
            }
        }
    }
}

impl MemberClients {
    /// Connections to `pods`, made when something is asked.
    pub fn new<'a>(
        spec: &Spec,
        keys: &ClientTls,
        pods: impl IntoIterator<Item = (Ordinal, &'a Pod)>,
    ) -> Self {
        let endpoint = |(ordinal, pod): (Ordinal, &Pod)| {
            let address: IpAddr = pod.status.as_ref()?.pod_ip.as_deref()?.parse().ok()?;
            let tls = match keys {
                ClientTls::None => None,
                ClientTls::Tls(tls) => Some(tls),
                ClientTls::Missing => return None,
            };
            let client = etcd::Client::at(address, &spec.client_url(ordinal), tls, LIMITS);
            let metrics = SocketAddr::new(address, names::METRICS_PORT);
            let metrics = format!("http://{metrics}/metrics").parse().ok();
            Some((ordinal, Endpoint { client: client.ok()?, metrics }))
        };
        Self { members: pods.into_iter().filter_map(endpoint).collect() }
    }

    /// The API of the member at an ordinal.
    pub fn client(&self, ordinal: Ordinal) -> Option<&etcd::Client> {
        self.members.get(&ordinal).map(|endpoint| &endpoint.client)
    }
}

impl Endpoint {
    /// The member's metrics in the Prometheus text format; none where they cannot be had in time.
    pub async fn metrics(&self) -> Option<String> {
        let uri = self.metrics.clone()?;
        let page = async {
            let mut connector = HttpConnector::new();
            connector.set_connect_timeout(Some(LIMITS.connect));
            let http: legacy::Client<_, Empty<Bytes>> =
                legacy::Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector);
            let answer = http.get(uri).await.ok().filter(|answer| answer.status().is_success())?;
            let body = Limited::new(answer.into_body(), PAGE_BYTES).collect().await.ok()?;
            String::from_utf8(body.to_bytes().into()).ok()
        };
        tokio::time::timeout(LIMITS.read, page).await.ok().flatten()
    }
}
