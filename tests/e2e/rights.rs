//! Least privilege, seen from the API server: what is granted is what the program declares that it needs, and each
//! right was used.
//!
//! The API server's audit log names each request that gatehouse made. A right that nothing uses fails the test, and a
//! use that no right allows has failed before. Some rights are asked for in the course of another request, and show
//! nowhere: each of them is taken away from a user who has all others, and that request must be refused. Of those for a
//! migration of what is stored, which this cluster does not see, the API tier has tests.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use gatehouse::cli::manifests::rbac::{Names, rule_groups};
use gatehouse::kinds;
use gatehouse::rbac::AuditTrace;
use kit::audit::Line;
use kit::call::Call;
use kit::wait::eventually;
use serde_json::{Value, json};

use crate::cluster::Bed;

/// A single right: one verb on one resource, of one name where the role says so.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    group: String,
    /// `tdsets`, or `tdsets/status`.
    resource: String,
    verb: String,
    name: Option<String>,
}

impl Right {
    /// All rights that these roles grant.
    pub fn of_roles(roles: &[Value]) -> BTreeSet<Self> {
        let mut rights = BTreeSet::new();
        for rule in roles.iter().flat_map(|role| role["rules"].as_array().expect("rules")) {
            let texts = |field: &str| -> Vec<String> {
                let items = rule[field].as_array().into_iter().flatten();
                items.map(|item| item.as_str().expect("a text").to_owned()).collect()
            };
            for group in texts("apiGroups") {
                rights.extend(each(&group, &texts("resources"), &texts("verbs"), &texts("resourceNames")));
            }
        }
        rights
    }

    /// All rights that the program declares that it needs, and how the use of each shows in the audit log.
    pub fn needed() -> Vec<(Self, AuditTrace)> {
        let rules = rule_groups(&Names::DEFAULT).into_iter().flat_map(|group| group.rules);
        let rights = rules.flat_map(|rule| {
            let verbs: Vec<_> = rule.verbs.iter().map(|verb| (*verb).to_owned()).collect();
            let rights: Vec<_> = each(rule.group, &rule.resources, &verbs, &rule.names).collect();
            rights.into_iter().map(move |right| (right, rule.audit))
        });
        rights.collect()
    }

    /// Whether its group is among these versions, as `kubectl api-versions` names them; the core group always is.
    fn is_of_a_group_in(&self, versions: &str) -> bool {
        let mut groups = versions.lines().filter_map(|version| Some(version.split_once('/')?.0));
        self.group.is_empty() || groups.any(|group| group == self.group)
    }

    /// The rule that grants it.
    fn rule(&self) -> Value {
        let names: Vec<_> = self.name.iter().collect();
        json!({"apiGroups": [self.group], "resources": [self.resource], "verbs": [self.verb], "resourceNames": names})
    }

    /// A change that asks for it though it is another request, and how its refusal begins where it is missing.
    fn change(&self) -> (Value, &'static str) {
        const BLOCKS: &str = "cannot set blockOwnerDeletion";
        const OWNS: &str = "cannot set an ownerRef on a resource you can't delete";
        // The owner need not be there: what is asked for is by its name alone.
        let uid = "b5a6b3c0-0000-4000-8000-000000000000";
        let blocking = |kind: &str| {
            let owner = json!({"apiVersion": "gatehouse.dev/v1", "kind": kind, "name": "owner", "uid": uid,
                "controller": true, "blockOwnerDeletion": true});
            (with_owner("v1", "ConfigMap", "owned", &owner), BLOCKS)
        };
        let hooks = |kind: &str| {
            let owner = json!({"apiVersion": "v1", "kind": "Namespace", "name": "owner", "uid": uid});
            (with_owner("admissionregistration.k8s.io/v1", kind, "gatehouse", &owner), OWNS)
        };
        let of_ours = self.resource.strip_suffix("/finalizers").and_then(kinds::find_plural);
        if let Some(kind) = of_ours {
            return blocking(kind.names().kind);
        }
        match self.resource.as_str() {
            "mutatingwebhookconfigurations" => hooks("MutatingWebhookConfiguration"),
            "validatingwebhookconfigurations" => hooks("ValidatingWebhookConfiguration"),
            _ => panic!("{self} shows nowhere: write down here which request asks for it"),
        }
    }

    /// Whether this line of the audit log is a use of it.
    pub fn is_used_by(&self, line: &Line, trace: AuditTrace) -> bool {
        let event = line.value();
        let about = &event["objectRef"];
        let verb = match trace {
            AuditTrace::Apply if line.code() == 201 => "patch",
            AuditTrace::Apply => return false,
            AuditTrace::Request | AuditTrace::Rare | AuditTrace::Nowhere => &self.verb,
        };
        about["apiGroup"].as_str().unwrap_or_default() == self.group
            && line.resource() == self.resource
            && event["verb"] == *verb
            && self.name.as_deref().is_none_or(|name| about["name"] == *name || is_list_of(event, name))
    }
}

fn with_owner(version: &str, kind: &str, name: &str, owner: &Value) -> Value {
    let metadata = json!({"name": name, "ownerReferences": [owner]});
    json!({"apiVersion": version, "kind": kind, "metadata": metadata})
}

/// A user who has all granted rights may make the change that asks for each of these, and a user who lacks that one may
/// not.
pub fn each_is_missed<'a>(bed: &Bed, granted: &BTreeSet<Right>, hidden: impl Iterator<Item = &'a Right>) {
    let namespace = bed.namespace("rights");
    let apply = |user: &User<'_>, change: &Value| {
        let mut kubectl = bed.cluster.kubectl_as(&user.kubeconfig);
        kubectl.args(["apply", "--server-side", "--dry-run=server", "--field-manager=test"]);
        kubectl.args(["--namespace", &namespace.name]);
        Call::new(kubectl).input(change.to_string()).run()
    };
    let all = User::new(bed, "rights-all", granted);
    // What other projects serve cannot be asked for in a cluster without them; the API tier has tests of it.
    let versions = bed.kubectl(&["api-versions"]).ok();
    for (number, right) in hidden.filter(|right| right.is_of_a_group_in(&versions)).enumerate() {
        let (change, refusal) = right.change();
        // An authorizer takes a moment to know of a role.
        eventually(|| apply(&all, &change));
        let others = granted.iter().filter(|other| *other != right).cloned().collect();
        let lacking = User::new(bed, &format!("rights-without-{number}"), &others);
        eventually(|| match apply(&lacking, &change) {
            Err(why) if why.contains(refusal) => Ok(()),
            Err(why) => Err(format!("without {right}: {why}")),
            Ok(said) => Err(format!("without {right} it is let in: {said}")),
        });
    }
}

/// A user of the cluster with some rights, as long as this is held.
struct User<'a> {
    bed: &'a Bed,
    name: String,
    kubeconfig: PathBuf,
}

impl<'a> User<'a> {
    fn new(bed: &'a Bed, name: &str, rights: &BTreeSet<Right>) -> Self {
        let kubeconfig = bed.cluster.kubeconfig_for(name, &[]).expect("a certificate for the user");
        let group = "rbac.authorization.k8s.io";
        let rules: Vec<_> = rights.iter().map(Right::rule).collect();
        let role = json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": name},
            "rules": rules});
        let binding = json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding",
            "metadata": {"name": name}, "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": group, "kind": "User", "name": name}]});
        for object in [role, binding] {
            bed.kubectl(&["apply"]).input(object.to_string()).ok();
        }
        Self { bed, name: name.to_owned(), kubeconfig }
    }
}

impl Drop for User<'_> {
    fn drop(&mut self) {
        let words = ["delete", "clusterrole,clusterrolebinding", &self.name, "--ignore-not-found"];
        let _gone = self.bed.kubectl(&words).run();
    }
}

/// A list or a watch of one object asks by a field, which the authorizer takes for its name.
fn is_list_of(event: &Value, name: &str) -> bool {
    let uri = event["requestURI"].as_str().unwrap_or_default();
    uri.contains(&format!("fieldSelector=metadata.name%3D{name}"))
}

fn each<'a>(
    group: &'a str,
    resources: &'a [String],
    verbs: &'a [String],
    names: &'a [String],
) -> impl Iterator<Item = Right> {
    let names = if names.is_empty() { vec![None] } else { names.iter().cloned().map(Some).collect() };
    resources.iter().flat_map(move |resource| {
        let names = names.clone();
        verbs.iter().flat_map(move |verb| {
            let right =
                |name| Right { group: group.into(), resource: resource.clone(), verb: verb.clone(), name };
            names.clone().into_iter().map(right).collect::<Vec<_>>()
        })
    })
}

impl fmt::Display for Right {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(formatter, ".{}", self.group)?;
        }
        match &self.name {
            Some(name) => write!(formatter, " {name}"),
            None => Ok(()),
        }
    }
}
