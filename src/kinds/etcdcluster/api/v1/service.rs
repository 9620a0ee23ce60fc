//! The Service for clients.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::words::words;

/// The Service for clients, `<name>-client`. A change restarts nothing.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ClientService {
    /// How it is reached. Defaults to ClusterIP.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<ServiceType>,

    /// Annotations of the Service, which load balancers and DNS controllers read, beside the operator's own. Those of
    /// gatehouse.dev are refused. Defaults to none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 64))]
    pub annotations: Option<BTreeMap<String, String>>,
}

words! {
    /// How a Service is reached: ClusterIP from within the Kubernetes cluster, NodePort by a port of every node,
    /// LoadBalancer from outside of it. Defaults to ClusterIP.
    #[derive(JsonSchema, Deserialize)]
    ServiceType:
    /// From within the Kubernetes cluster.
    ClusterIP,
    /// By a port of every node.
    NodePort,
    /// From outside, by what the Kubernetes cluster has for it.
    LoadBalancer,
}
