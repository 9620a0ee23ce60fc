//! A namespace with operators and a clock of its own.
//!
//! Guarantees: an operator has the shipped rights and no more, but for its Leases, which lie in the namespace that it
//! is configured to run in; the audit log tells its requests from those of all others.
//! Assumes: the gate of the bed works other namespaces.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use gatehouse::runtime::clock;
use jiff::{SignedDuration, Timestamp};
use kit::bed::{NAMESPACE, Namespace};
use kit::objects::{Ask, Objects, path_of};
use kit::operator::{Fate, Operator, Post};
use kit::program::Log;
use kit::wait::eventually;
use serde_json::{Value, json};

use crate::front::Front;
use crate::tdset::span;

/// The kind and the name of an object, and what is wrong with it.
pub type Problem = (String, String, String);

/// The problems of the objects of a namespace that a page of metrics shows beside those of the kinds.
pub fn problems(page: &str, namespace: &str) -> BTreeSet<Problem> {
    let of_here = format!("gatehouse_object_problem{{namespace=\"{namespace}\",name=\"");
    let series = page.lines().filter_map(|line| line.strip_prefix(&of_here)?.strip_suffix("\"} 1"));
    let parts = series.map(|rest| {
        let (name, rest) = rest.split_once("\",kind=\"").expect("its kind");
        let (kind, problem) = rest.split_once("\",problem=\"").expect("its problem");
        (kind.to_owned(), name.to_owned(), problem.to_owned())
    });
    parts.collect()
}

/// A namespace with operators and a clock of its own.
pub struct Site<'a> {
    pub namespace: &'a Namespace<'a>,
    /// A whole second shortly before the test.
    begun: Timestamp,
    post: Post,
    clock: PathBuf,
}

impl<'a> Site<'a> {
    /// One in which no operator works yet.
    pub fn new(namespace: &'a Namespace<'a>) -> Self {
        Self::of_operators_in(namespace, "default")
    }

    /// The same for operators that are configured to run in the namespace `home`.
    pub fn of_operators_in(namespace: &'a Namespace<'a>, home: &str) -> Self {
        let kubeconfig = account(namespace, home);
        let cluster = &namespace.bed.cluster;
        let folder = cluster.folder().join(&namespace.name);
        let clock = folder.join("clock");
        let variables = vec![
            ("GATEHOUSE_CLOCK", clock.display().to_string()),
            ("GATEHOUSE_LOG", "info,gatehouse=debug".to_owned()),
            // Nothing waits for it, and a machine that is too busy to renew it in seconds does not end a term.
            ("GATEHOUSE_LEASE_DURATION", "5m".to_owned()),
        ];
        let post = Post {
            program: kit::gatehouse!().to_owned(),
            kubeconfig,
            namespace: namespace.name.clone(),
            home: home.to_owned(),
            folder,
            variables,
        };
        let begun = Timestamp::from_second(clock::now().as_second()).expect("a time");
        Self { namespace, begun, post, clock }
    }

    /// The same for operators that ask the API server through `front`.
    pub fn behind(namespace: &'a Namespace<'a>, front: &Front) -> Self {
        let mut site = Self::new(namespace);
        let direct = fs::read_to_string(&site.post.kubeconfig).expect("a kubeconfig");
        let server = direct.split("https://").nth(1).and_then(|rest| rest.split(['"', '\n']).next());
        let server = server.expect("a server");
        front.add(server.parse().expect("an address"));
        fs::create_dir_all(&site.post.folder).expect("a folder");
        site.post.kubeconfig = site.post.folder.join("kubeconfig");
        let through = direct.replace(server, &format!("127.0.0.1:{}", front.port));
        fs::write(&site.post.kubeconfig, through).expect("a file");
        site
    }

    /// So many minutes after the test began.
    pub fn at(&self, minutes: i64) -> Timestamp {
        self.begun + SignedDuration::from_mins(minutes)
    }

    /// A span of the timetable from and until so many minutes after the test began, with that count.
    pub fn span(&self, name: &str, from: i64, until: i64, replicas: u32) -> Value {
        span(name, self.at(from), self.at(until), replicas)
    }

    /// Sets the clock to so many minutes after the test began. The clock goes on from there. An operator reconciles each
    /// object once after a jump.
    pub fn jump(&self, minutes: i64) {
        let offset = self.at(minutes).duration_since(clock::now());
        let next = self.clock.with_extension("next");
        fs::create_dir_all(&self.post.folder).expect("a folder");
        fs::write(&next, offset.to_string()).expect("a file");
        fs::rename(next, &self.clock).expect("a file");
    }

    /// An operator that works the namespace.
    pub fn start(&self, fate: Fate) -> Operator {
        Operator::start(self.post.clone(), fate)
    }

    /// The same of another build.
    pub fn start_of(&self, program: PathBuf, fate: Fate) -> Operator {
        Operator::start(Post { program, ..self.post.clone() }, fate)
    }

    /// What operators have asked of the API server here so far. Their Leases are left out, and watches that only go on
    /// with one that the API server has ended after the time that it was asked for.
    pub fn asked(&self) -> Vec<String> {
        let (mut asked, mut over) = (Vec::new(), Vec::new());
        for line in self.audited() {
            let [verb, path] = ["verb", "requestURI"].map(|field| line[field].as_str().unwrap_or_default());
            // A watch has one line when it begins and one when it ends.
            if verb == "watch" && line["stage"] == "ResponseComplete" {
                over.extend(is_over(&line).then(|| watched(path)));
                continue;
            }
            let goes_on = over.iter().position(|one| verb == "watch" && *one == watched(path));
            match goes_on {
                Some(at) => drop(over.swap_remove(at)),
                None if path.contains("/leases") => {}
                None => asked.push(format!("{verb} {path}")),
            }
        }
        asked
    }

    /// The paths of the watches that its operators have ended so far.
    pub fn unwatched(&self) -> Vec<String> {
        let lines = self.audited();
        let ended =
            lines.iter().filter(|line| line["verb"] == "watch" && line["stage"] == "ResponseComplete");
        let ended = ended.filter(|line| !is_over(line));
        ended.map(|line| line["requestURI"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// What the audit log has of its operators.
    fn audited(&self) -> Vec<Value> {
        let log = self.namespace.bed.cluster.audit_log().expect("it is kept");
        let user = format!("system:serviceaccount:{NAMESPACE}:{}", self.namespace.name);
        let log = fs::read_to_string(log).unwrap_or_default();
        let lines = log.lines().filter(|line| line.contains(&user));
        lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The passes of its operators from now on.
    pub fn looks(&self) -> Looks {
        Looks::from_now(&Log::of(&self.post.log()), &self.namespace.name)
    }
}

/// Whether a watch has ended because it has lasted for the time that it was asked for.
fn is_over(end: &Value) -> bool {
    let time = |field: &str| end[field].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let path = end["requestURI"].as_str().unwrap_or_default();
    let asked = parameters(path).find_map(|one| one.strip_prefix("timeoutSeconds=")?.parse::<i64>().ok());
    match (time("requestReceivedTimestamp"), time("stageTimestamp"), asked) {
        (Some(begun), Some(ended), Some(asked)) => ended.duration_since(begun).as_secs() >= asked,
        _ => false,
    }
}

/// What a watch is of, from whatever version on.
fn watched(path: &str) -> String {
    let place = path.split('?').next().unwrap_or_default();
    let chosen = parameters(path).filter(|one| !one.starts_with("resourceVersion="));
    std::iter::once(place).chain(chosen).collect::<Vec<_>>().join("&")
}

fn parameters(path: &str) -> impl Iterator<Item = &str> {
    path.split_once('?').into_iter().flat_map(|(_, query)| query.split('&'))
}

/// The kubeconfig of an account with those rights, once the API server grants them.
fn account(namespace: &Namespace, home: &str) -> PathBuf {
    for object in rights(&namespace.name, home) {
        namespace.bed.objects.must(Ask::create(&object, ""));
    }
    let kubeconfig = namespace.bed.kubeconfig_of(&namespace.name);
    let objects = Objects::new(&kubeconfig);
    for path in [path_of("tdsets", &namespace.name), path_of("leases", home) + "/none"] {
        eventually(|| match objects.one(Ask::get(&*path)) {
            Err(refusal) if refusal.code != 404 => Err(refusal.message),
            Ok(_) | Err(_) => Ok(()),
        });
    }
    kubeconfig
}

/// The rights of the account of a namespace, which were fewer than the shipped ones.
pub struct Fewer<'a> {
    namespace: &'a Namespace<'a>,
    path: String,
    shipped: Value,
}

/// Takes the shipped rights on resources from the account of a namespace that are not to be `kept`, by resource and verb,
/// and waits until the API server refuses them.
pub fn role<'a>(namespace: &'a Namespace<'a>, kept: impl Fn(&str, &str) -> bool) -> Fewer<'a> {
    const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    let objects = &namespace.bed.objects;
    let shipped = objects.at(&format!("{ROLES}/gatehouse"))["rules"].clone();
    let (mut rules, mut taken) = (Vec::new(), Vec::new());
    for rule in shipped.as_array().expect("rules") {
        for resource in texts(&rule["resources"]) {
            let (verbs, others): (Vec<_>, Vec<_>) =
                texts(&rule["verbs"]).partition(|verb| kept(resource, verb));
            taken.extend(others.into_iter().map(|verb| (rule["apiGroups"][0].clone(), resource, verb)));
            if !verbs.is_empty() {
                let mut fewer = rule.clone();
                (fewer["resources"], fewer["verbs"]) = (json!([resource]), json!(verbs));
                rules.push(fewer);
            }
        }
    }
    assert!(!taken.is_empty(), "nothing is taken");
    let name = format!("gatehouse-{}", namespace.name);
    let role = |rules: &[Value]| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
            "rules": rules})
    };
    objects.must(Ask::create(&role(&rules), ""));
    let mut binding = objects.at(&format!("{BINDINGS}/{name}"));
    objects.must(Ask::delete(format!("{BINDINGS}/{name}")));
    binding["metadata"] = json!({"name": name});
    binding["roleRef"]["name"] = name.clone().into();
    objects.must(Ask::create(&binding, ""));
    let user = format!("system:serviceaccount:{NAMESPACE}:{}", namespace.name);
    for (group, resource, verb) in taken {
        let attributes =
            json!({"group": group, "resource": resource, "verb": verb, "namespace": namespace.name});
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": user, "resourceAttributes": attributes}});
        eventually(|| {
            let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
            let verdict = objects.must(Ask::post(path, review.clone()));
            if verdict["status"]["allowed"] == true { Err(verdict.to_string()) } else { Ok(()) }
        });
    }
    Fewer { namespace, path: format!("{ROLES}/{name}"), shipped }
}

impl Fewer<'_> {
    /// Gives the shipped rights back.
    pub fn give_back(&self) {
        self.namespace.bed.objects.must(Ask::patch(&*self.path, json!({"rules": self.shipped})));
    }
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Waits until an operator has counted so many transitions. It counts a transition when it knows that a status reports it.
#[track_caller]
pub fn until_transitions(operator: &Operator, count: u64) {
    let counted = eventually(|| match operator.metric("gatehouse_tdset_transitions_total") {
        counted if counted < count => Err(format!("{counted} of {count} transitions are counted")),
        counted => Ok(counted),
    });
    assert_eq!(counted, count, "transitions");
}

/// An account in gatehouse's namespace with the shipped ClusterRole, and Leases in the namespace `home`.
fn rights(namespace: &str, home: &str) -> [Value; 4] {
    const GROUP: &str = "rbac.authorization.k8s.io";
    const VERSION: &str = "rbac.authorization.k8s.io/v1";
    let all = format!("gatehouse-{namespace}");
    let subjects = json!([{"kind": "ServiceAccount", "namespace": NAMESPACE, "name": namespace}]);
    let role = |kind: &str, name: &str| json!({"apiGroup": GROUP, "kind": kind, "name": name});
    let verbs = ["create", "get", "update"];
    let leases = json!({"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs});
    let name = format!("leases-{namespace}");
    let here = json!({"namespace": home, "name": name});
    [
        json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"namespace": NAMESPACE, "name": namespace}}),
        json!({"apiVersion": VERSION, "kind": "ClusterRoleBinding", "metadata": {"name": all},
            "roleRef": role("ClusterRole", "gatehouse"), "subjects": subjects}),
        json!({"apiVersion": VERSION, "kind": "Role", "metadata": here, "rules": [leases]}),
        json!({"apiVersion": VERSION, "kind": "RoleBinding", "metadata": here,
            "roleRef": role("Role", &name), "subjects": subjects}),
    ]
}

/// Passes over the TDSets of a namespace since a moment, as an operator's log tells of them.
pub struct Looks {
    lines: Box<dyn FnMut() -> Vec<Value>>,
    namespace: String,
}

impl Looks {
    /// Those that come from now on.
    pub fn from_now(log: &Log, namespace: &str) -> Self {
        Self { lines: Box::new(log.from_now()), namespace: namespace.to_owned() }
    }

    /// Waits until a pass over each of these has gone through all of it.
    #[track_caller]
    pub fn until_over(mut self, names: &[&str]) {
        let mut missed: Vec<_> = names.iter().map(|name| format!("{}/{name}", self.namespace)).collect();
        eventually(|| {
            for line in (self.lines)() {
                let is_look = line["message"] == "reconciled" && line["result"] == "done";
                missed.retain(|name| !is_look || line["object"] != **name);
            }
            if missed.is_empty() { Ok(()) } else { Err(format!("no look at {missed:?}")) }
        });
    }
}
