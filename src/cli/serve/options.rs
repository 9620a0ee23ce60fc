//! The options of `gatehouse serve`, and what follows from them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};
use kube::Client;

use super::super::duration;
use super::controllers::options as controllers;
use crate::certs::Source;
use crate::certs::authority::SharedAuthority;
use crate::certs::files::MountedFiles;
use crate::install::address::InvalidUrl;
use crate::install::{Address, Plan, Served};
use crate::runtime::clock;
use crate::runtime::otlp;
use crate::runtime::supervisor::Patience;
use crate::server::{Limits, MinVersion, TrustedClients};

/// The options of `gatehouse serve`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Run one part alone: the gate, or the controllers. [default: both]
    #[arg(long, value_name = "PART", value_enum, conflicts_with = "webhook_only", env = "GATEHOUSE_ONLY")]
    pub only: Option<Part>,
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
    /// PEM file of the authority that signed the certificate; written as caBundle, and read again when it changes. Without
    /// it, or where the file is empty, caBundle is left as it is.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_ca: Option<PathBuf>,
    /// The least version of TLS that is spoken.
    #[arg(long, value_name = "VERSION", value_enum, default_value_t = TlsVersion::V12)]
    pub tls_min_version: TlsVersion,
    /// PEM file of the authority that signed the API servers' client certificates; read again when it changes. With it,
    /// admission reviews are answered to clients of that authority alone, and conversion to everybody: API servers have
    /// no certificate to show there.
    #[arg(long, value_name = "FILE", env = "GATEHOUSE_CLIENT_CA")]
    pub client_ca: Option<PathBuf>,
    /// Names that a client's certificate may have, as common name or DNS name, comma-separated. [default: any]
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        requires = "client_ca",
        env = "GATEHOUSE_CLIENT_NAME"
    )]
    pub client_name: Vec<String>,
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
    /// The Secret that keeps gatehouse's own authority.
    #[arg(long, value_name = "NAME", default_value = "gatehouse-ca", env = "GATEHOUSE_CA_SECRET")]
    pub ca_secret: String,
    /// Write the definitions and the webhook configurations, and keep them so. Without it, others do,
    /// and nothing is read or written outside of namespaces.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, default_value_t = true, env = "GATEHOUSE_INSTALL")]
    pub install: bool,
    /// The versions by which API servers serve our kinds, comma-separated: v1, or v1,v1alpha1. No object is lost by it:
    /// what is stored in another version is read as v1.
    #[arg(
        long,
        value_name = "VERSIONS",
        default_value_t = Served::default(),
        env = "GATEHOUSE_SERVED_VERSIONS"
    )]
    pub served_versions: Served,
    /// The ClusterRole that owns the webhook configurations which are written: deleting it, as an uninstall does,
    /// removes them. [default: none]
    #[arg(long, value_name = "NAME", env = "GATEHOUSE_CLUSTER_ROLE")]
    pub cluster_role: Option<String>,
    /// Write the definitions and the webhook configurations also where a newer release wrote them last: for a rollback.
    /// Fields that only the newer release knows are lost from objects that are written after that.
    #[arg(long, env = "GATEHOUSE_REPLACE_NEWER")]
    pub replace_newer: bool,
    /// The controllers' own.
    #[command(flatten)]
    pub controllers: controllers::Options,
    /// How long a drain goes on accepting, until everybody has heard that this endpoint is gone.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "12s")]
    pub drain_delay: Duration,
    /// How long after that idle connections may stay until their client closes them.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "90s")]
    pub drain_deadline: Duration,
    /// The collector of spans of OpenTelemetry, one a review: http://host:4318, https://host:4318, or
    /// OTEL_EXPORTER_OTLP_ENDPOINT, for what that variable says. [default: none]
    #[arg(long, value_name = "URL", env = "GATEHOUSE_OTLP_ENDPOINT")]
    pub otlp_endpoint: Option<otlp::Endpoint>,
    /// Threads that serve. [default: one for each core]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub worker_threads: Option<u16>,
}

/// A part of what serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Reviews, and what has API servers ask for them.
    Gate,
    /// The work on objects, where one of several replicas is elected to do it.
    Controllers,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TlsVersion {
    /// And 1.3.
    #[value(name = "1.2")]
    V12,
    /// Alone.
    #[value(name = "1.3")]
    V13,
}

impl From<TlsVersion> for MinVersion {
    fn from(version: TlsVersion) -> Self {
        match version {
            TlsVersion::V12 => Self::Tls12,
            TlsVersion::V13 => Self::Tls13,
        }
    }
}

impl Options {
    /// Who may have admission reviews answered, where that is not everybody: the file, and who trusts what is in it.
    pub(super) fn clients(&self) -> Option<(PathBuf, TrustedClients)> {
        Some((self.client_ca.clone()?, TrustedClients::named(&self.client_name)))
    }

    /// Whether that part runs.
    pub(super) fn runs(&self, part: Part) -> bool {
        let is_left_out = self.webhook_only && part == Part::Controllers;
        !is_left_out && self.only.is_none_or(|only| only == part)
    }

    /// How long the parts of a shutdown may take.
    pub(super) fn patience(&self) -> Patience {
        let drain = self.drain_delay + self.drain_deadline + Duration::from_secs(10);
        Patience { drain, ..Patience::default() }
    }

    /// What the server allows, where the process may have so many files open.
    pub(super) fn limits(&self, files: usize) -> Limits {
        let (drain_delay, drain_deadline) = (self.drain_delay, self.drain_deadline);
        Limits { drain_delay, drain_deadline, ..Limits::default() }.within(files)
    }

    /// Where the API server reaches the gate that listens at `listener`.
    fn address(&self, listener: SocketAddr) -> Result<Address, InvalidUrl> {
        let Some(url) = &self.webhook_url else {
            let (name, namespace) = (self.service.clone(), self.controllers.namespace.clone());
            return Ok(Address::Service { name, namespace, port: self.service_port });
        };
        Ok(match Address::from_url(url)? {
            Address::Url { host, port: 0 } => Address::Url { host, port: listener.port() },
            address => address,
        })
    }

    /// What the cluster has to know about the gate that listens at `listener`.
    pub(super) fn plan(&self, listener: SocketAddr) -> Result<Plan, InvalidUrl> {
        Ok(Plan {
            namespaces: self.controllers.watch_namespaces.namespaces().clone(),
            served: self.served_versions.clone(),
            cluster_role: self.cluster_role.clone().filter(|name| !name.is_empty()),
            replaces_newer: self.replace_newer,
            ..Plan::at(self.address(listener)?)
        })
    }

    /// The namespace of the gate, where it has one.
    pub(super) fn own_namespace(&self) -> Option<String> {
        (!self.webhook_only).then(|| self.controllers.namespace.clone())
    }

    /// The mounted certificate, where there is one.
    pub(super) fn mounted(&self) -> Option<Source> {
        let (certificate, key) = (self.tls_cert.clone()?, self.tls_key.clone()?);
        Some(Source::Files(Box::new(MountedFiles::new(certificate, key, self.tls_ca.clone(), clock::now))))
    }

    /// The own authority, in its Secret.
    pub(super) fn authority(&self, client: Client, names: Vec<String>) -> Source {
        let (namespace, secret) = (&self.controllers.namespace, &self.ca_secret);
        Source::Authority(Box::new(SharedAuthority::new(client, namespace, secret, names, clock::now)))
    }
}
