//! The options of the controllers, and their Lease.

use std::ops::RangeInclusive;
use std::time::Duration;

use clap::{ArgAction, Args};
use kube::Config;

use crate::api::name::dns_1123_subdomain;
use crate::cli::duration;
use crate::controllers::scope::Scope;
use crate::runtime::leader::{Connect, Lease};

/// The options of the controllers.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
#[group(id = "controllers")]
pub struct Options {
    /// The namespace that gatehouse runs in: that of its Service, of its Secret and of its Lease.
    #[arg(long, value_name = "NAME", default_value = "gatehouse-system", env = "POD_NAMESPACE")]
    pub namespace: String,
    /// The namespaces whose objects gatehouse admits and reconciles, separated by commas. The controllers then need
    /// rights in these namespaces alone. [default: all]
    #[arg(
        long,
        value_name = "NAMES",
        default_value = "",
        hide_default_value = true,
        env = "GATEHOUSE_WATCH_NAMESPACES"
    )]
    pub watch_namespaces: Scope,
    /// The Lease in the own namespace by which one of all replicas is elected to run its controllers. With --only gate,
    /// one is elected to install, by the Lease of this name with -gate.
    #[arg(long, value_name = "NAME", value_parser = lease_name, default_value = "gatehouse", env = "GATEHOUSE_LEASE")]
    pub lease: String,
    /// How long the others wait for a leader that has vanished: 3s to 5m. It is renewed seven times in that time.
    #[arg(long, value_name = "DURATION", value_parser = lease_duration, default_value = "15s",
          env = "GATEHOUSE_LEASE_DURATION")]
    pub lease_duration: Duration,
    /// Who this replica is in the Lease; something is added that makes it this process. [default: the host's name]
    #[arg(long, value_name = "NAME", env = "POD_NAME")]
    pub identity: Option<String>,
    /// Write objects of our kinds again that are stored in older versions: by the leader, where gatehouse installs
    /// itself and reconciles all namespaces. Otherwise `gatehouse storage migrate` does it.
    #[arg(
        long,
        value_name = "BOOL",
        action = ArgAction::Set,
        default_value_t = true,
        env = "GATEHOUSE_MIGRATE_STORAGE"
    )]
    pub migrate_storage: bool,
    /// The image with this program, which the pods of etcd members take their guard from: the one that gatehouse
    /// itself runs from.
    #[arg(
        long,
        value_name = "IMAGE",
        default_value = concat!("gatehouse.dev/gatehouse:", env!("CARGO_PKG_VERSION")),
        env = "GATEHOUSE_IMAGE"
    )]
    pub image: String,
}

/// Shorter ones are lost to every hiccup of the API server, longer ones leave the work undone for too long.
const LEASE_DURATIONS: RangeInclusive<Duration> = Duration::from_secs(3)..=Duration::from_mins(5);

fn lease_duration(text: &str) -> Result<Duration, String> {
    let duration = duration::parse(text)?;
    if LEASE_DURATIONS.contains(&duration) {
        return Ok(duration);
    }
    Err("expected a duration from 3s to 5m".to_owned())
}

fn lease_name(text: &str) -> Result<String, &'static str> {
    dns_1123_subdomain(text).map(|()| text.to_owned())
}

impl Options {
    /// The lease that replicas with controllers stand for.
    pub(super) fn lease(&self, config: Config) -> Result<Lease, Connect> {
        self.lease_of(config, &self.lease)
    }

    /// The lease by which gates without controllers elect one of them. It is another one, since the holder of the first
    /// runs the controllers.
    pub(in crate::cli::serve) fn lease_of_gates(&self, config: Config) -> Result<Lease, Connect> {
        self.lease_of(config, &format!("{}-gate", self.lease))
    }

    fn lease_of(&self, config: Config, name: &str) -> Result<Lease, Connect> {
        let identity = self.identity.clone().filter(|name| !name.is_empty()).unwrap_or_else(host);
        Lease::connect(config, &self.namespace, name, &identity, self.lease_duration)
    }
}

/// The host's name: in a pod, the pod's.
fn host() -> String {
    hostname::get().map_or_else(|_unknown| "gatehouse".to_owned(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn an_option_that_does_not_read_says_what_does() {
        for (word, expected) in [
            ("--lease-duration=1s", "expected a duration from 3s to 5m"),
            ("--lease-duration=soon", "expected a duration such as 10s or 1m30s"),
            ("--lease=No", "lower-case"),
        ] {
            let error = Line::try_parse_from(["", word]).unwrap_err().to_string();
            assert!(error.contains(expected), "{word}: {error}");
        }
    }
}
