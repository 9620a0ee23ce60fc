//! What gatehouse may do in a cluster, as data. Pure.
//!
//! Each rule stands in a `rights.rs` beside the code that needs it, and says why. Every manifest that grants rights is
//! printed from here by `gatehouse manifests`.
//!
//! Guarantees, held by tests: no wildcard; in the own namespace no verb on a Secret but by name, `create` excepted (a
//! name cannot be given for it); elsewhere Secrets, those of etcd clusters, are never listed or watched.

use crate::kinds::KINDS;
use crate::runtime::leader;
use crate::{certs, controllers, install};

/// Where a rule holds, and so what grants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Everywhere: a ClusterRole.
    Cluster,
    /// In the namespace that gatehouse runs in: a Role there.
    OwnNamespace,
    /// Where objects of its kinds are worked: a ClusterRole, or a Role in each of the namespaces of
    /// `--watch-namespaces`.
    WatchedNamespaces,
}

/// How the use of a rule shows in the audit log of an API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// As a request with each of its verbs on each of its resources.
    AsRequest,
    /// As an apply (verb `patch`) that made its object (answered 201): the authorizer asks for `create` too.
    AsApply,
    /// Not at all: the authorizer is asked in the course of another request.
    Nowhere,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Why it is needed: a comment in the manifests.
    pub why: &'static str,
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// Plural names, with a subresource where one is meant: `tdsets/status`.
    pub resources: Vec<String>,
    /// The only objects that it holds for; all when empty.
    pub names: Vec<String>,
    /// What may be done.
    pub verbs: &'static [&'static str],
    /// How one sees that it is used.
    pub shows: Shows,
}

impl Rule {
    /// A rule for all objects of these resources.
    #[must_use]
    pub fn new(group: &'static str, resources: &[&str], verbs: &'static [&'static str]) -> Self {
        let resources = resources.iter().map(ToString::to_string).collect();
        Self { why: "", group, resources, names: Vec::new(), verbs, shows: Shows::AsRequest }
    }

    /// The same for these objects alone.
    #[must_use]
    pub fn named(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { names: names.into_iter().map(Into::into).collect(), ..self }
    }

    /// The same with its reason.
    #[must_use]
    pub fn because(self, why: &'static str) -> Self {
        Self { why, ..self }
    }

    /// The same, showing otherwise than as a request.
    #[must_use]
    pub fn shows(self, shows: Shows) -> Self {
        Self { shows, ..self }
    }
}

/// Rules that are granted together or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// One word for it.
    pub name: &'static str,
    /// When it is needed: a comment in the manifests.
    pub when: &'static str,
    /// Where its rules hold.
    pub place: Place,
    /// Its rules.
    pub rules: Vec<Rule>,
}

/// The names of objects that an installation may choose. In the chart they are template actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    /// The Secret with gatehouse's own authority (`--ca-secret`).
    pub authority: &'static str,
    /// The Lease that the replicas elect one of them by (`--lease`).
    pub lease: &'static str,
    /// The ClusterRole that owns the webhook configurations (`--cluster-role`).
    pub cluster_role: &'static str,
}

impl Names {
    /// What they are if nobody says otherwise.
    pub const DEFAULT: Self =
        Self { authority: certs::authority::SECRET, lease: "gatehouse", cluster_role: "gatehouse" };
}

/// All rights.
#[must_use]
pub fn parts(names: &Names) -> Vec<Part> {
    let definitions: Vec<_> = KINDS.iter().map(|kind| kind.names().plural).collect();
    vec![
        Part {
            name: "installation",
            when: "It installs itself, and puts right what others change (--install).",
            place: Place::Cluster,
            rules: install::rights::rules(&definitions, names.cluster_role),
        },
        Part {
            name: "authority",
            when: "It is its own authority, unless a certificate is mounted.",
            place: Place::OwnNamespace,
            rules: certs::rights::rules(names.authority),
        },
        Part {
            name: "election",
            when: "One replica works the objects, elected by a Lease.",
            place: Place::OwnNamespace,
            rules: leader::rights::rules(names.lease),
        },
        Part {
            name: "work",
            when: "It works the objects of its kinds.",
            place: Place::WatchedNamespaces,
            rules: controllers::rights::rules(),
        },
        Part {
            name: "volumes",
            when: "It lets volumes grow, and keeps what a recovery set aside; neither is in a namespace.",
            place: Place::Cluster,
            rules: controllers::rights::volumes(),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(look: impl Fn(&Part, &Rule)) {
        for part in parts(&Names::DEFAULT) {
            part.rules.iter().for_each(|rule| look(&part, rule));
        }
    }

    #[test]
    fn every_rule_says_why() {
        each(|_, rule| assert!(rule.why.ends_with('.'), "{rule:?}"));
    }

    #[test]
    fn no_rule_has_a_wildcard_or_is_empty() {
        each(|_, rule| {
            let words = rule.resources.iter().chain(&rule.names).map(String::as_str);
            for word in words.chain(rule.verbs.iter().copied()).chain([rule.group]) {
                assert!(!word.contains('*'), "{rule:?}");
            }
            assert!(!rule.resources.is_empty() && !rule.verbs.is_empty(), "{rule:?}");
        });
    }

    #[test]
    fn secrets_are_reached_by_name_alone() {
        each(|part, rule| {
            if rule.resources.iter().any(|one| one.split('/').next() == Some("secrets")) {
                let is_named = !rule.names.is_empty() || rule.verbs == ["create"];
                let is_of_members =
                    part.place == Place::WatchedNamespaces && rule.verbs == ["get", "create", "patch"];
                assert!(is_of_members || (part.place == Place::OwnNamespace && is_named), "{rule:?}");
            }
        });
    }

    #[test]
    fn nothing_that_gives_rights_away_is_granted() {
        let strong = ["escalate", "bind", "impersonate", "approve", "sign", "deletecollection"];
        each(|_, rule| assert!(!rule.verbs.iter().any(|verb| strong.contains(verb)), "{rule:?}"));
        each(|_, rule| {
            if rule.group == "rbac.authorization.k8s.io" {
                assert_eq!(rule.verbs, ["get"], "{rule:?}");
            }
        });
    }

    #[test]
    fn no_rule_is_granted_twice() {
        let mut seen = std::collections::BTreeSet::new();
        let parts = parts(&Names::DEFAULT).into_iter();
        for (place, rule) in parts.flat_map(|part| part.rules.into_iter().map(move |rule| (part.place, rule)))
        {
            // In its own namespace it may not be allowed what it is in watched ones.
            let is_own = place == Place::OwnNamespace;
            for resource in &rule.resources {
                for verb in rule.verbs {
                    let right = (rule.group, resource.clone(), *verb, is_own);
                    assert!(seen.insert(right), "{resource} {verb}");
                }
            }
        }
    }
}
