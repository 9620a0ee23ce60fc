//! The manifests that grant rules: plain ones, and templates for the chart. Pure.
//!
//! Guarantees, held by tests: no wildcard; in the own namespace no verb on a Secret but by name, `create` excepted (a
//! name cannot be given for it); elsewhere Secrets, those of etcd clusters, are never listed or watched.

use std::fmt::Write as _;

use super::generated::{Generated, HEADER};
use crate::cli::serve::controllers::table;
use crate::controllers;
use crate::kinds::KINDS;
use crate::kinds::etcdcluster;
use crate::rbac::{RoleScope, Rule, RuleGroup, union};
use crate::runtime::leader::rbac as election;
use crate::{certs, install};

/// What everything is called in the plain manifests.
const NAME: &str = "gatehouse";
/// The namespace of the plain manifests.
const NAMESPACE: &str = "gatehouse-system";
/// What the Role in a watched namespace is called. Its own namespace may be one of them.
const OPERATOR: &str = "gatehouse-operator";

/// The names of objects that an installation may choose. In the chart they are template actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    /// The Secret with gatehouse's own authority (`--ca-secret`).
    pub authority: &'static str,
    /// The Lease by which the replicas elect one of them (`--lease`).
    pub lease: &'static str,
    /// The Lease by which gates without controllers do (`--only gate`).
    pub lease_of_gates: &'static str,
    /// The ClusterRole that owns the webhook configurations (`--cluster-role`).
    pub cluster_role: &'static str,
}

impl Names {
    /// The names in the plain manifests.
    pub const DEFAULT: Self = Self {
        authority: certs::authority::SECRET,
        lease: "gatehouse",
        lease_of_gates: "gatehouse-gate",
        cluster_role: "gatehouse",
    };
}

/// The names as the chart's templates find them.
const OF_CHART: Names = Names {
    authority: r#"{{ include "gatehouse.authoritySecret" . }}"#,
    lease: r#"{{ include "gatehouse.fullname" . }}"#,
    lease_of_gates: r#"{{ include "gatehouse.fullname" . }}-gate"#,
    cluster_role: r#"{{ include "gatehouse.fullname" . }}"#,
};

/// All rules that gatehouse needs.
#[must_use]
pub fn rule_groups(names: &Names) -> Vec<RuleGroup> {
    [rule_groups_of_gate(names), rule_groups_of_controllers(names)].concat()
}

/// What the gate needs.
#[must_use]
pub fn rule_groups_of_gate(names: &Names) -> Vec<RuleGroup> {
    let definitions: Vec<_> = KINDS.iter().map(|kind| kind.names().plural).collect();
    vec![
        RuleGroup {
            name: "installation",
            when: "It installs itself, and corrects what others change (--install).",
            scope: RoleScope::Cluster,
            rules: install::rbac::rules(&definitions, names.cluster_role),
        },
        RuleGroup {
            name: "authority",
            when: "It is its own authority, unless a certificate is mounted.",
            scope: RoleScope::OwnNamespace,
            rules: certs::rbac::rules(names.authority),
        },
    ]
}

/// What the gate needs besides, where it runs without the controllers.
#[must_use]
pub fn election_of_gates(names: &Names) -> RuleGroup {
    RuleGroup {
        name: "election-of-gates",
        when: "Gates without controllers elect by a Lease of their own the one that installs again (--only gate).",
        scope: RoleScope::OwnNamespace,
        rules: election::rules(names.lease_of_gates),
    }
}

/// What the controllers need.
#[must_use]
pub fn rule_groups_of_controllers(names: &Names) -> Vec<RuleGroup> {
    let rules = [table::rules(), controllers::rbac::rules()].concat();
    vec![
        RuleGroup {
            name: "election",
            when: "The replicas elect by a Lease the one that reconciles the objects.",
            scope: RoleScope::OwnNamespace,
            rules: election::rules(names.lease),
        },
        RuleGroup {
            name: "work",
            when: "It reconciles the objects of its kinds.",
            scope: RoleScope::WatchedNamespaces,
            rules: union(rules),
        },
        RuleGroup {
            name: "volumes",
            when: "It grows volumes, and keeps those that a recovery sets aside; neither class nor volume is in a namespace.",
            scope: RoleScope::Cluster,
            rules: etcdcluster::rbac::volumes(),
        },
    ]
}

/// All manifests that grant rules.
#[must_use]
pub fn generated() -> Vec<Generated> {
    let groups = rule_groups(&Names::DEFAULT);
    let file = |path: &str, content: String| Generated { path: path.to_owned(), content };
    vec![
        file("base/rbac.yaml", base(&groups)),
        file("watched/rbac.yaml", watched(&groups)),
        file(
            "chart/gatehouse/templates/_rules.tpl",
            chart(&[rule_groups(&OF_CHART), vec![election_of_gates(&OF_CHART)]].concat()),
        ),
    ]
}

/// Everything that an operator of all namespaces needs.
fn base(groups: &[RuleGroup]) -> String {
    let own: Vec<_> = groups.iter().filter(|group| group.scope == RoleScope::OwnNamespace).collect();
    let cluster: Vec<_> = groups.iter().filter(|group| group.scope != RoleScope::OwnNamespace).collect();
    let account = format!(
        "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {NAME}\n  namespace: {NAMESPACE}\n\
         # Its pods ask for the token; no other pod of this account gets one unasked.\n\
         automountServiceAccountToken: false\n"
    );
    let documents = [
        account,
        granted("Role", NAME, Some(NAMESPACE), &own),
        bound("Role", NAME, Some(NAMESPACE)),
        granted("ClusterRole", NAME, None, &cluster),
        bound("ClusterRole", NAME, None),
    ];
    HEADER.to_owned() + &documents.join("---\n")
}

/// What is needed in one namespace of `--watch-namespaces`; which one, kubectl's `--namespace` says.
fn watched(groups: &[RuleGroup]) -> String {
    let work: Vec<_> = groups.iter().filter(|group| group.scope == RoleScope::WatchedNamespaces).collect();
    let documents = [granted("Role", OPERATOR, None, &work), bound("Role", OPERATOR, None)];
    HEADER.to_owned() + &documents.join("---\n")
}

/// One named template for each part.
fn chart(groups: &[RuleGroup]) -> String {
    let mut text = "{{- /* Generated by `gatehouse manifests`; changes are lost. */ -}}\n".to_owned();
    for group in groups {
        let _infallible = write!(
            text,
            "\n{{{{- define \"gatehouse.rules.{}\" -}}}}\n{}{{{{- end }}}}\n",
            group.name,
            rules(group)
        );
    }
    text
}

fn metadata(kind: &str, name: &str, namespace: Option<&str>) -> String {
    let namespace = namespace.map(|namespace| format!("  namespace: {namespace}\n")).unwrap_or_default();
    format!("apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata:\n  name: {name}\n{namespace}")
}

fn granted(kind: &str, name: &str, namespace: Option<&str>, groups: &[&RuleGroup]) -> String {
    let rules: String = groups.iter().map(|group| rules(group)).collect();
    format!("{}rules:\n{rules}", metadata(kind, name, namespace))
}

fn bound(role: &str, name: &str, namespace: Option<&str>) -> String {
    format!(
        "{}roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: {role}\n  name: {name}\n\
         subjects:\n- kind: ServiceAccount\n  name: {NAME}\n  namespace: {NAMESPACE}\n",
        metadata(&format!("{role}Binding"), name, namespace)
    )
}

fn rules(group: &RuleGroup) -> String {
    format!("# {}\n{}", group.when, group.rules.iter().map(rule).collect::<String>())
}

fn rule(rule: &Rule) -> String {
    let group = if rule.group.is_empty() { r#""""# } else { rule.group };
    let names = match rule.names.as_slice() {
        [] => String::new(),
        names => format!("  resourceNames: [{}]\n", names.join(", ")),
    };
    format!(
        "# - {}\n- apiGroups: [{group}]\n  resources: [{}]\n{names}  verbs: [{}]\n",
        rule.reasons.join("\n# - "),
        rule.resources.join(", "),
        rule.verbs.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(look: impl Fn(&RuleGroup, &Rule)) {
        for group in rule_groups(&Names::DEFAULT) {
            group.rules.iter().for_each(|rule| look(&group, rule));
        }
    }

    #[test]
    fn every_rule_has_a_reason() {
        each(|_, rule| {
            assert!(!rule.reasons.is_empty(), "{rule:?}");
            assert!(rule.reasons.iter().all(|reason| reason.ends_with('.')), "{rule:?}");
        });
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
        each(|group, rule| {
            if rule.resources.iter().any(|one| one.split('/').next() == Some("secrets")) {
                let is_named = !rule.names.is_empty() || rule.verbs == ["create"];
                let is_of_members =
                    group.scope == RoleScope::WatchedNamespaces && rule.verbs == ["get", "create", "patch"];
                assert!(is_of_members || (group.scope == RoleScope::OwnNamespace && is_named), "{rule:?}");
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
        let groups = rule_groups(&Names::DEFAULT).into_iter();
        for (scope, rule) in
            groups.flat_map(|group| group.rules.into_iter().map(move |rule| (group.scope, rule)))
        {
            // In its own namespace it may not be allowed what it is in watched ones.
            let is_own = scope == RoleScope::OwnNamespace;
            for resource in &rule.resources {
                for verb in &rule.verbs {
                    let right = (rule.group, resource.clone(), *verb, is_own);
                    assert!(seen.insert(right), "{resource} {verb}");
                }
            }
        }
    }
}
