//! RBAC rules as data. Pure.
//!
//! The code that needs a rule states it, with the reason, in an `rbac.rs` beside it. `gatehouse manifests` unites the
//! rules and prints every manifest that grants them.
//!
//! Guarantees: a rule that several kinds need is granted once, with the reason of each.
//! Never: knows which code needs a rule; a kind states all that it needs, whatever another kind has stated.

/// What grants a rule, and where it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleScope {
    /// A ClusterRole: everywhere.
    Cluster,
    /// A Role in the namespace that gatehouse runs in.
    OwnNamespace,
    /// A ClusterRole, or a Role in each namespace of `--watch-namespaces`.
    WatchedNamespaces,
}

/// How the use of a rule shows in the audit log of an API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditTrace {
    /// As a request with each of its verbs on each of its resources.
    Request,
    /// As an apply (verb `patch`) that created its object (answer 201): the authorizer asks for `create` too.
    Apply,
    /// As a request with each of its verbs, which most clusters never see: stored objects are written again, or a pod does
    /// not come to run.
    Rare,
    /// Not at all: the authorizer asks for it during another request, or another project serves the resource, which the
    /// cluster may lack.
    Nowhere,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Why it is needed: comments in the manifests.
    pub reasons: Vec<&'static str>,
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// Plural names, with a subresource where one is meant: `tdsets/status`.
    pub resources: Vec<String>,
    /// The only objects that it holds for; all when empty.
    pub names: Vec<String>,
    /// What it allows.
    pub verbs: Vec<&'static str>,
    /// How the audit log shows its use.
    pub audit: AuditTrace,
}

impl Rule {
    /// A rule for all objects of these resources.
    #[must_use]
    pub fn new(group: &'static str, resources: &[&str], verbs: &[&'static str]) -> Self {
        let resources = resources.iter().map(ToString::to_string).collect();
        let (reasons, names, verbs) = (Vec::new(), Vec::new(), verbs.to_vec());
        Self { reasons, group, resources, names, verbs, audit: AuditTrace::Request }
    }

    /// The same for these objects alone.
    #[must_use]
    pub fn named(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { names: names.into_iter().map(Into::into).collect(), ..self }
    }

    /// The same with its reason.
    #[must_use]
    pub fn because(self, reason: &'static str) -> Self {
        Self { reasons: vec![reason], ..self }
    }

    /// The same with another trace in the audit log.
    #[must_use]
    pub fn audited(self, audit: AuditTrace) -> Self {
        Self { audit, ..self }
    }

    /// Both hold for the same objects, and show in the same way.
    fn matches(&self, other: &Self) -> bool {
        self.group == other.group
            && self.resources == other.resources
            && self.names == other.names
            && self.audit == other.audit
    }
}

/// Rules that are granted together or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleGroup {
    /// One word for it.
    pub name: &'static str,
    /// When it is needed: a comment in the manifests.
    pub when: &'static str,
    /// Where its rules hold.
    pub scope: RoleScope,
    /// Its rules.
    pub rules: Vec<Rule>,
}

/// The rules, each once: rules for the same objects become one that has the verbs and the reasons of all of them.
pub fn union(rules: impl IntoIterator<Item = Rule>) -> Vec<Rule> {
    let mut united: Vec<Rule> = Vec::new();
    for rule in rules {
        match united.iter_mut().find(|other| other.matches(&rule)) {
            None => united.push(rule),
            Some(other) => {
                add(&mut other.verbs, rule.verbs);
                add(&mut other.reasons, rule.reasons);
            }
        }
    }
    united
}

fn add(all: &mut Vec<&'static str>, more: Vec<&'static str>) {
    for one in more {
        if !all.contains(&one) {
            all.push(one);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_for_the_same_objects_are_granted_once_with_each_reason() {
        let rules = [
            Rule::new("", &["services"], &["get", "list"]).because("one."),
            Rule::new("", &["services"], &["get"]).named(["a"]).because("another object."),
            Rule::new("", &["services"], &["get", "patch"]).because("two."),
            Rule::new("", &["services"], &["create"]).audited(AuditTrace::Apply).because("another trace."),
            Rule::new("apps", &["services"], &["get"]).because("another group."),
        ];
        let [one, two, three, four, five] = rules.clone();
        let mut both = one;
        both.verbs.push("patch");
        both.reasons.extend(three.reasons);
        assert_eq!(union(rules), [both, two, four, five]);
    }
}
