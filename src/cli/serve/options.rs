//! What `gatehouse serve` can be told, and what follows from it.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};
use kube::{Client, Config};

use crate::api::name::dns_1123_subdomain;
use crate::certs::Source;
use crate::certs::authority::SharedAuthority;
use crate::certs::files::MountedFiles;
use crate::controllers::scope::Scope;
use crate::install::address::InvalidUrl;
use crate::install::{Address, Plan};
use crate::runtime::clock;
use crate::runtime::leader::{Connect, Lease};
use crate::runtime::supervisor::Patience;
use crate::server::{Limits, parse_duration};

/// What `gatehouse serve` can be told.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Serve reviews only: no Kubernetes API is asked for anything.
    #[arg(long, requires_all = ["tls_cert", "tls_key"], env = "GATEHOUSE_WEBHOOK_ONLY")]
    pub webhook_only: bool,
    /// Where reviews are served, over HTTPS. Port 0 takes a free one.
    #[arg(long, value_name = "ADDR", default_value = "[::]:9443", env = "GATEHOUSE_LISTEN")]
    pub listen: SocketAddr,
    /// Where /livez, /readyz and /metrics are served, over HTTP. Port 0 takes a free one.
    #[arg(long, value_name = "ADDR", default_value = "[::]:8080", env = "GATEHOUSE_HEALTH_LISTEN")]
    pub health_listen: SocketAddr,
    /// PEM file of the certificate chain, leaf first; read again when it changes. Without it, gatehouse is its own
    /// authority.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// PEM file of the private key.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// PEM file of the authority that signed the certificate; written as caBundle. Without it, somebody else does.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_ca: Option<PathBuf>,
    /// Where the API server reaches this gate when it is outside of the cluster: https://host:port. The port may be
    /// 0, for the one that --listen took.
    #[arg(long, value_name = "URL", env = "GATEHOUSE_WEBHOOK_URL")]
    pub webhook_url: Option<String>,
    /// The Service by which the API server reaches this gate inside the cluster.
    #[arg(long, value_name = "NAME", default_value = "gatehouse", env = "GATEHOUSE_SERVICE")]
    pub service: String,
    /// The Service's port.
    #[arg(long, value_name = "PORT", default_value_t = 443, env = "GATEHOUSE_SERVICE_PORT")]
    pub service_port: u16,
    /// The namespace that gatehouse runs in: that of its Service and of its Secret.
    #[arg(long, value_name = "NAME", default_value = "gatehouse-system", env = "POD_NAMESPACE")]
    pub namespace: String,
    /// The Secret that keeps gatehouse's own authority.
    #[arg(long, value_name = "NAME", default_value = "gatehouse-ca", env = "GATEHOUSE_CA_SECRET")]
    pub ca_secret: String,
    /// The namespaces whose objects are judged and worked, with commas between them. Rights in these namespaces are
    /// then enough for the operator. [default: all]
    #[arg(
        long,
        value_name = "NAMES",
        default_value = "",
        hide_default_value = true,
        env = "GATEHOUSE_WATCH_NAMESPACES"
    )]
    pub watch_namespaces: Scope,
    /// Write the definitions and the webhook configurations oneself, and keep them so. Without it, somebody else does,
    /// and nothing is read or written outside of namespaces.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, default_value_t = true, env = "GATEHOUSE_INSTALL")]
    pub install: bool,
    /// The ClusterRole that owns the webhook configurations which are written: deleting it, as an uninstall does,
    /// removes them. [default: none]
    #[arg(long, value_name = "NAME", env = "GATEHOUSE_CLUSTER_ROLE")]
    pub cluster_role: Option<String>,
    /// The Lease in the own namespace by which one of all replicas is elected to do the operator's work.
    #[arg(long, value_name = "NAME", value_parser = lease_name, default_value = "gatehouse", env = "GATEHOUSE_LEASE")]
    pub lease: String,
    /// How long the others wait for a leader that has vanished: 3s to 5m. It is renewed seven times in that time.
    #[arg(long, value_name = "DURATION", value_parser = lease_duration, default_value = "15s",
          env = "GATEHOUSE_LEASE_DURATION")]
    pub lease_duration: Duration,
    /// Who this replica is in the Lease; something is added that makes it this process. [default: the host's name]
    #[arg(long, value_name = "NAME", env = "POD_NAME")]
    pub identity: Option<String>,
    /// How long a drain goes on accepting, until everybody has heard that this endpoint is gone.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "12s")]
    pub drain_delay: Duration,
    /// How long after that idle connections may stay until their client closes them.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "90s")]
    pub drain_deadline: Duration,
    /// Threads that serve. [default: one for each core]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub worker_threads: Option<u16>,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "expected a duration such as 10s or 1m30s".to_owned())
}

/// Shorter ones are lost to every hiccup of the API server, longer ones leave the work undone for too long.
const LEASE_DURATIONS: RangeInclusive<Duration> = Duration::from_secs(3)..=Duration::from_mins(5);

fn lease_duration(text: &str) -> Result<Duration, String> {
    let duration = duration(text)?;
    if LEASE_DURATIONS.contains(&duration) {
        return Ok(duration);
    }
    Err("expected a duration from 3s to 5m".to_owned())
}

fn lease_name(text: &str) -> Result<String, &'static str> {
    dns_1123_subdomain(text).map(|()| text.to_owned())
}

impl Options {
    /// How long the parts of a shutdown may take.
    pub(super) fn patience(&self) -> Patience {
        let drain = self.drain_delay + self.drain_deadline + Duration::from_secs(10);
        Patience { drain, ..Patience::default() }
    }

    /// What the server allows.
    pub(super) fn limits(&self) -> Limits {
        Limits { drain_delay: self.drain_delay, drain_deadline: self.drain_deadline, ..Limits::default() }
    }

    /// Where the API server reaches the gate that listens at `listener`.
    fn address(&self, listener: SocketAddr) -> Result<Address, InvalidUrl> {
        let Some(url) = &self.webhook_url else {
            let (name, namespace) = (self.service.clone(), self.namespace.clone());
            return Ok(Address::Service { name, namespace, port: self.service_port });
        };
        Ok(match Address::from_url(url)? {
            Address::Url { host, port: 0 } => Address::Url { host, port: listener.port() },
            address => address,
        })
    }

    /// What the cluster is to be told about the gate that listens at `listener`.
    pub(super) fn plan(&self, listener: SocketAddr) -> Result<Plan, InvalidUrl> {
        Ok(Plan {
            own_namespace: self.own_namespace(),
            namespaces: self.watch_namespaces.namespaces().clone(),
            cluster_role: self.cluster_role.clone().filter(|name| !name.is_empty()),
            ..Plan::at(self.address(listener)?)
        })
    }

    /// The lease that this replica stands for.
    pub(super) fn lease(&self, config: Config) -> Result<Lease, Connect> {
        let identity = self.identity.clone().filter(|name| !name.is_empty()).unwrap_or_else(host);
        Lease::connect(config, &self.namespace, &self.lease, &identity, self.lease_duration)
    }

    /// The namespace that the gate does not judge: its own, where it runs in one.
    fn own_namespace(&self) -> Option<String> {
        self.webhook_url.is_none().then(|| self.namespace.clone())
    }

    /// The mounted certificate, where there is one.
    pub(super) fn mounted(&self) -> Option<Source> {
        let (certificate, key) = (self.tls_cert.clone()?, self.tls_key.clone()?);
        Some(Source::Files(Box::new(MountedFiles::new(certificate, key, self.tls_ca.clone(), clock::now))))
    }

    /// The own authority, in its Secret.
    pub(super) fn authority(&self, client: Client, names: Vec<String>) -> Source {
        let (namespace, secret) = (&self.namespace, &self.ca_secret);
        Source::Authority(Box::new(SharedAuthority::new(client, namespace, secret, names, clock::now)))
    }
}

/// The host's name: in a pod, the pod's.
fn host() -> String {
    hostname::get().map_or_else(|_unknown| "gatehouse".to_owned(), |name| name.to_string_lossy().into_owned())
}
