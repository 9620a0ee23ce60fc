//! Certificates, users and roles.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::reference::NamedReference;
use crate::api::words::words;

/// Certificates of members and clients.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.secrets) == (has(self.mode) && self.mode == 'Secrets')")
        .message("secrets go with mode Secrets, and mode Secrets needs them").field_path(".secrets")
)]
pub struct Tls {
    /// Where certificates come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<TlsMode>,

    /// DNS names and IP addresses by which clients reach the members beside those of the Services, with mode Automatic
    /// only: of a load balancer, or in another cluster domain than cluster.local. A name that begins with *. stands
    /// for each name one level below. A change restarts nothing. Defaults to none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 253)))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub extra_names: Option<Vec<String>>,

    /// The Secrets that hold the certificates, with mode Secrets only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secrets: Option<TlsSecrets>,
}

words! {
    /// Where certificates come from; immutable. Automatic: a certificate authority of this cluster alone, rotated by the
    /// operator. Secrets: those named in `secrets`. Disabled: plain HTTP. Defaults to Automatic at creation.
    #[derive(JsonSchema, Deserialize)]
    TlsMode:
    /// One certificate authority a cluster, made and rotated by the operator.
    Automatic,
    /// Secrets that others keep.
    Secrets,
    /// Plain HTTP.
    Disabled,
}

/// Secrets in the cluster's namespace, each with `tls.crt`, `tls.key` and `ca.crt`. Their type may be any.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.serverRef)").message("a Secret with tls.crt, tls.key and ca.crt").field_path(".serverRef").reason(Reason::FieldValueRequired),
    validation = Rule::new("has(self.peerRef)").message("a Secret with tls.crt, tls.key and ca.crt").field_path(".peerRef").reason(Reason::FieldValueRequired),
    validation = Rule::new("has(self.clientRef)").message("a Secret with tls.crt, tls.key and ca.crt").field_path(".clientRef").reason(Reason::FieldValueRequired),
)]
pub struct TlsSecrets {
    /// Secret with the certificate that members show to clients; needs the usages server and client.
    #[serde(rename = "serverRef", skip_serializing_if = "Option::is_none")]
    pub server: Option<NamedReference>,

    /// Secret with the certificate that members show to each other; needs the usages server and client.
    #[serde(rename = "peerRef", skip_serializing_if = "Option::is_none")]
    pub peer: Option<NamedReference>,

    /// Secret with the certificate that the operator and the backups show; with auth its common name is root.
    #[serde(rename = "clientRef", skip_serializing_if = "Option::is_none")]
    pub client: Option<NamedReference>,

    /// Secret with the `ca.crt` that client certificates are verified with. Defaults to that of `serverRef`.
    #[serde(rename = "clientCARef", skip_serializing_if = "Option::is_none")]
    pub client_ca: Option<NamedReference>,

    /// Secret with the `ca.crt` that peer certificates are verified with. Defaults to that of `peerRef`.
    #[serde(rename = "peerCARef", skip_serializing_if = "Option::is_none")]
    pub peer_ca: Option<NamedReference>,
}

/// Users and roles of etcd.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Auth {
    /// Whether etcd requires clients to authenticate; needs TLS; immutable. Defaults to false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,

    /// Secret whose key `password`, up to 72 bytes, is the password of etcd's user root. If absent, root has none and
    /// is known by its client certificate alone; taken out, the password that root has stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_secret_ref: Option<NamedReference>,
}
