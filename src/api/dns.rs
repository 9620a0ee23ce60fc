//! How pods resolve names: the part of a pod's spec that each kind takes over as it is.
//!
//! Guarantees: what passes [`validate`] and the schema, the API server takes in a pod (kubernetes,
//! `pkg/apis/core/validation`, `validatePodDNSConfig`).

use core::net::IpAddr;

use k8s_openapi::api::core::v1::{PodDNSConfig, PodDNSConfigOption};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::definition::undescribed;
use super::field::{FieldError, Path, Reason, Validation};
use super::name;
use super::words::words;

/// Most characters that all search domains have together, with a space between two.
const LONGEST_SEARCHES: usize = 2048;

/// What pods resolve names with, apart from the cluster's DNS.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct DnsConfig {
    /// IP addresses of name servers, after those that the DNS policy gives, at most 3.
    #[schemars(length(max = 3), inner(length(max = 45)))]
    #[x_kube(validation = Rule::new("self.all(one, isIP(one))").message("must be IP addresses, such as 10.96.0.10"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nameservers: Option<Vec<String>>,

    /// Domains that names are looked up in, after those that the DNS policy gives, at most 32.
    #[schemars(length(max = 32), inner(length(min = 1, max = 254)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub searches: Option<Vec<String>>,

    /// Options of the resolver. One that the DNS policy gives too is replaced.
    #[schemars(length(max = 32))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<DnsOption>>,
}

/// An option of the resolver.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct DnsOption {
    /// Its name, such as ndots.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,

    /// Its value, such as "2". Absent for an option that has none.
    #[schemars(length(max = 63))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

words! {
    /// Where name servers and search domains come from.
    #[derive(JsonSchema, Deserialize)]
    #[schemars(transform = undescribed)]
    DnsPolicy:
    /// The cluster's DNS.
    ClusterFirst,
    /// Those of the node.
    Default,
    /// The DnsConfig alone.
    None,
}

impl From<DnsConfig> for PodDNSConfig {
    fn from(config: DnsConfig) -> Self {
        let option = |one: DnsOption| PodDNSConfigOption { name: Some(one.name), value: one.value };
        Self {
            nameservers: config.nameservers,
            searches: config.searches,
            options: config.options.map(|options| options.into_iter().map(option).collect()),
        }
    }
}

/// A pod with the policy None and no nameserver, as CEL of the struct that has both fields, and its message.
pub const NO_NAMESERVER: (&str, &str) = (
    "!has(self.dnsPolicy) || self.dnsPolicy != 'None' \
     || has(self.dnsConfig) && has(self.dnsConfig.nameservers) && self.dnsConfig.nameservers.size() > 0",
    "dnsPolicy None needs a name server in dnsConfig.nameservers",
);

/// What is wrong with the fields `dnsPolicy` and `dnsConfig` below `path`.
pub fn validate(
    policy: Option<DnsPolicy>,
    config: Option<&DnsConfig>,
    path: &Path,
    validation: &mut Validation,
) {
    let config_path = path.at("dnsConfig");
    let nameservers = || config.into_iter().filter_map(|config| config.nameservers.as_ref()).flatten();
    if policy == Some(DnsPolicy::None) && nameservers().next().is_none() {
        validation.reject(FieldError::required(path.at("dnsPolicy"), NO_NAMESERVER.1));
    }
    for (index, given) in nameservers().enumerate().filter(|(_, given)| !is_ip(given)) {
        let path = config_path.at("nameservers").index(index);
        validation.reject(FieldError::invalid(path, given, "must be an IP address, such as 10.96.0.10"));
    }
    let Some(searches) = config.and_then(|config| config.searches.as_ref()) else { return };
    let path = config_path.at("searches");
    for (index, given) in searches.iter().enumerate().filter(|(_, given)| !is_search(given)) {
        validation.reject(FieldError::invalid(
            path.index(index),
            given,
            "must be a domain, such as example.com",
        ));
    }
    if searches.join(" ").len() > LONGEST_SEARCHES {
        let detail = format!("must have at most {LONGEST_SEARCHES} characters in all");
        validation.reject(FieldError::new(path, Reason::TooLong, detail));
    }
}

/// As CEL has it: an IPv4 address is not written as one of IPv6.
fn is_ip(text: &str) -> bool {
    match text.parse() {
        Ok(IpAddr::V4(_)) => true,
        Ok(IpAddr::V6(address)) => address.to_ipv4_mapped().is_none(),
        Err(_) => false,
    }
}

/// The root, or a domain whose labels may have underscores.
fn is_search(text: &str) -> bool {
    let domain = text.strip_suffix('.').unwrap_or(text).replace('_', "a");
    text == "." || name::dns_1123_subdomain(&domain).is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn validated(policy: Option<DnsPolicy>, config: &Value) -> Vec<String> {
        let config: DnsConfig = serde_json::from_value(config.clone()).unwrap();
        let mut validation = Validation::default();
        validate(policy, Some(&config), &Path::spec().at("pod"), &mut validation);
        validation.errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_fault_is_named_where_it_lies() {
        let long: Vec<_> = (0..12).map(|at| format!("{}.{at}", ["a"; 99].join("."))).collect();
        for (config, expected) in [
            (json!({"nameservers": ["10.96.0.10", "fd00::a"], "searches": [".", "a.b.", "_srv.a"]}), ""),
            (
                json!({"nameservers": ["10.96.0.10", "dns"]}),
                "spec.pod.dnsConfig.nameservers[1]: Invalid value: \"dns\": must be an IP address",
            ),
            (
                json!({"nameservers": ["::ffff:10.0.0.1"]}),
                "spec.pod.dnsConfig.nameservers[0]: Invalid value: \"::ffff:10.0.0.1\": must be an IP",
            ),
            (
                json!({"searches": ["a b"]}),
                "spec.pod.dnsConfig.searches[0]: Invalid value: \"a b\": must be a domain",
            ),
            (json!({"searches": long}), "spec.pod.dnsConfig.searches: Too long: must have at most 2048"),
        ] {
            let found = validated(None, &config).join("; ");
            assert!(
                found.starts_with(expected) && found.is_empty() == expected.is_empty(),
                "{config}: {found}"
            );
        }
    }

    #[test]
    fn without_the_policies_name_servers_there_have_to_be_others() {
        assert_eq!(validated(Some(DnsPolicy::None), &json!({"nameservers": ["10.96.0.10"]})), [""; 0]);
        for config in [json!({}), json!({"nameservers": []})] {
            let expected = format!("spec.pod.dnsPolicy: Required value: {}", NO_NAMESERVER.1);
            assert_eq!(validated(Some(DnsPolicy::None), &config), [expected]);
            assert_eq!(validated(Some(DnsPolicy::Default), &config), [""; 0]);
        }
    }
}
