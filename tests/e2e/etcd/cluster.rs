//! An EtcdCluster of a test's own, and clients that write to it all the while.

mod data;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use gatehouse::kinds::etcdcluster::etcd::{Client, Limits, Member, Members, Tls};
use kit::history::writer::{OUTAGE, Pace, Report, Writer};
use kit::kstatus::kstatus;
pub use kit::objects::condition;
use kit::random::is_night;
use kit::wait::{patient, timeout, within};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::cluster::Namespace;

/// How long a cluster may take to be as it is asked for, unless a test has it take longer.
const PATIENCE: Duration = Duration::from_mins(4);

/// How clients write: more often than any gap that a test looks for is long. By day several clusters are written to at a
/// time, and their clients leave the cores to what is tested.
fn pace() -> Pace {
    let pause = if is_night() { Duration::from_millis(10) } else { Duration::from_millis(40) };
    Pace { clients: 4, pause }
}

/// Between two looks at the members.
const PAUSE: Duration = Duration::from_millis(200);

/// How long a call may take, to a member that hangs too.
const CALL: Duration = Duration::from_secs(2);

/// The only one of its namespace.
pub const NAME: &str = "main";

/// What a test asks for, and sees.
pub struct Etcd<'a> {
    namespace: &'a Namespace<'a>,
    runtime: Runtime,
    has_tls: bool,
    /// Clients by address, each as the version of the Secret with its certificate allows: one connection each.
    clients: RefCell<HashMap<(String, String), Client>>,
    writer: RefCell<Option<Writer>>,
    /// A client of the Service, where a writer knows nothing else.
    service: RefCell<Option<Client>>,
    /// Writers so far. Each has keys of its own: its history begins with it.
    writers: Cell<u32>,
    pace: Cell<Pace>,
    patience: Cell<Duration>,
    cluster_id: Cell<Option<u64>>,
    /// Most members that have been asked for.
    most: Cell<usize>,
    /// All members that ever were, by their identities.
    seen: RefCell<BTreeSet<u64>>,
}

impl<'a> Etcd<'a> {
    /// Makes one. Its `tls.mode` is Automatic or Disabled.
    pub fn new(namespace: &'a Namespace<'a>, tls: &str, version: &str, replicas: usize) -> Self {
        Self::asking(namespace, tls, version, replicas, &json!({}))
    }

    /// The same with more fields of its spec.
    pub fn asking(
        namespace: &'a Namespace<'a>,
        tls: &str,
        version: &str,
        replicas: usize,
        more: &Value,
    ) -> Self {
        let mut spec = json!({
            "replicas": replicas, "version": version, "tls": {"mode": tls},
            "storage": {"size": "1Gi", "reclaimPolicy": "Delete"},
            "options": {"heartbeatInterval": "100ms", "electionTimeout": "1s"},
        });
        let more = more.as_object().expect("fields").clone();
        spec.as_object_mut().expect("fields").extend(more);
        namespace.apply(&json!({
            "apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": NAME}, "spec": spec,
        }));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        Self {
            namespace,
            runtime: runtime.unwrap(),
            has_tls: tls == "Automatic",
            clients: RefCell::default(),
            writer: RefCell::default(),
            service: RefCell::default(),
            writers: Cell::default(),
            pace: Cell::new(pace()),
            patience: Cell::new(PATIENCE),
            cluster_id: Cell::default(),
            most: Cell::new(replicas),
            seen: RefCell::default(),
        }
    }

    /// Has clients write at another pace.
    pub fn written_at(self, pace: Pace) -> Self {
        self.pace.set(pace);
        self
    }

    /// Lets it take so long to be as it is asked for.
    pub fn within(self, patience: Duration) -> Self {
        self.patience.set(patience);
        self
    }

    /// Merges fields into its spec.
    pub fn change(&self, fields: &Value) {
        self.namespace.change(("etcdclusters", NAME), json!({"spec": fields}));
    }

    /// Asks for so many members, and waits until they are there.
    #[track_caller]
    pub fn scale(&self, replicas: usize) {
        self.may_have(replicas);
        self.change(&json!({"replicas": replicas}));
        self.until_settled(replicas);
        self.most.set(replicas);
    }

    /// Up to so many members may be asked for from now on.
    pub fn may_have(&self, replicas: usize) {
        self.most.set(self.most.get().max(replicas));
    }

    /// The object.
    pub fn object(&self) -> Result<Value, String> {
        self.namespace.get(&format!("etcdcluster/{NAME}"))
    }

    /// The Pods that are not to end, by name.
    pub fn pods(&self) -> Vec<Value> {
        let pods = self.namespace.list("pods", &format!("app.kubernetes.io/instance={NAME}"));
        pods.into_iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null()).collect()
    }

    /// Clients of the members that vote and are ready: those that clients of the Service get.
    pub fn voters(&self) -> Vec<Client> {
        let _inside = self.runtime.enter();
        let pods = self.pods();
        let is_voter = |pod: &&Value| {
            pod["metadata"]["labels"]["gatehouse.dev/role"] == "voter"
                && pod["status"]["containerStatuses"][0]["ready"] == true
        };
        let voting: Vec<_> = pods.iter().filter(is_voter).collect();
        let secret = if voting.is_empty() { None } else { self.client_secret() };
        let version = secret.as_ref().map_or("", |secret| version(secret)).to_owned();
        let tls = secret.as_ref().map(|secret| tls(secret, secret));
        let mut clients = self.clients.borrow_mut();
        voting
            .into_iter()
            .filter_map(|pod| {
                let address = pod["status"]["podIP"].as_str()?;
                let client = || self.client(pod, tls.as_ref());
                Some(clients.entry((address.to_owned(), version.clone())).or_insert_with(client).clone())
            })
            .collect()
    }

    /// What clients show and trust by now; none in plain HTTP. Waited for: a test may have deleted it.
    pub fn client_secret(&self) -> Option<Value> {
        let read = || self.namespace.get(&format!("secret/{NAME}-client-tls"));
        self.has_tls.then(|| within(self.patience.get(), read))
    }

    /// A client of the member in that Pod.
    fn client(&self, pod: &Value, tls: Option<&Tls>) -> Client {
        let address: IpAddr =
            pod["status"]["podIP"].as_str().unwrap_or_default().parse().expect("an address");
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let limits = Limits { read: CALL, change: CALL, ..Limits::default() };
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{name}.{NAME}.{}.svc:2379", self.namespace.name);
        Client::at(address, &url, tls, limits).expect("a URL")
    }

    /// What the member in that Pod answers to a new connection by a client that trusts the authority in `authority`
    /// alone.
    pub fn asked(&self, pod: &Value, authority: &Value) -> Result<(), String> {
        let _inside = self.runtime.enter();
        let tls = tls(authority, &self.client_secret().expect("TLS"));
        let client = self.client(pod, Some(&tls));
        self.runtime.block_on(client.members()).map(|_| ()).map_err(|error| error.to_string())
    }

    /// The members as etcd lists them, where a majority answers. Each time the list is checked.
    pub fn members(&self) -> Option<Members> {
        let voters = self.voters();
        // Without a member to speak with, clients would rest until the next look.
        if let (Some(writer), None, false) =
            (&*self.writer.borrow(), &*self.service.borrow(), voters.is_empty())
        {
            writer.speak_with(voters.clone());
        }
        let members = voters.iter().find_map(|voter| self.runtime.block_on(voter.members()).ok())?;
        let id = members.header.cluster_id;
        assert_eq!(*self.cluster_id.get().get_or_insert(id), id, "it is another cluster");
        self.cluster_id.set(Some(id));
        let learners = members.members.iter().filter(|member| member.is_learner).count();
        assert!(learners <= 1, "two learners: {members:?}");
        assert!(members.members.len() <= self.most.get() + 1, "too many members: {members:?}");
        self.seen.borrow_mut().extend(members.members.iter().map(|member| member.id));
        Some(members)
    }

    /// The same, as soon as a majority answers.
    #[track_caller]
    pub fn listed(&self) -> Vec<Member> {
        self.until(|members| members.ok_or_else(|| "no quorum".to_owned())).members
    }

    /// Clients of all members that vote, as soon as all are ready.
    #[track_caller]
    fn all_voters(&self) -> Vec<Client> {
        self.until(|members| {
            let members = members.ok_or("no quorum")?.members;
            let voting = members.iter().filter(|member| !member.is_learner).count();
            let ready = self.voters();
            if ready.len() == voting {
                Ok(ready)
            } else {
                Err(format!("{} of {voting} voters are ready", ready.len()))
            }
        })
    }

    /// Waits until `look` finds what it looks for, clients following the members meanwhile.
    #[track_caller]
    pub fn until<T>(&self, mut look: impl FnMut(Option<Members>) -> Result<T, String>) -> T {
        let (begun, limit) = (Instant::now(), patient(self.patience.get()));
        loop {
            match look(self.members()) {
                Ok(found) => return found,
                Err(last) => {
                    let object = self.object().map_or_else(|why| why, |object| object["status"].to_string());
                    assert!(begun.elapsed() < limit, "not within {limit:?}: {last}; status: {object}");
                }
            }
            std::thread::park_timeout(2 * PAUSE);
        }
    }

    /// Looks at the members all the while for so long, as clients that follow them do.
    pub fn follow_for(&self, time: Duration) {
        let end = Instant::now() + time;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            self.members();
            std::thread::park_timeout(left.min(PAUSE));
        }
    }

    /// Waits until the status has the quorum as lost: the condition.
    pub fn until_quorum_lost(&self) -> Value {
        self.until(|_| {
            let object = self.object()?;
            let lost = condition(&object, "QuorumLost");
            if lost["status"] != "True" {
                return Err(lost.to_string());
            }
            assert_eq!(kstatus(&object), "InProgress", "{object}");
            Ok(lost)
        })
    }

    /// Waits until there are so many voters and nothing is left to do.
    #[track_caller]
    pub fn until_settled(&self, replicas: usize) -> Value {
        self.until(|members| {
            let object = self.object()?;
            let (metadata, status) = (&object["metadata"], &object["status"]);
            let progressing = condition(&object, "Progressing");
            let settled = progressing["reason"] == if replicas == 0 { "Stopped" } else { "UpToDate" };
            let observed = status["observedGeneration"] == metadata["generation"];
            let is_ready =
                condition(&object, "Ready")["status"] == if replicas == 0 { "False" } else { "True" };
            let ready = status["readyReplicas"].as_u64().unwrap_or_default() == replicas as u64;
            let voters =
                members.map_or(0, |members| members.members.iter().filter(|one| !one.is_learner).count());
            if settled && observed && is_ready && ready && voters == replicas {
                assert_eq!(
                    kstatus(&object),
                    if replicas == 0 { "InProgress" } else { "Current" },
                    "{object}"
                );
                Ok(object)
            } else {
                Err(format!("{voters} of {replicas} voters, {progressing}, {}", condition(&object, "Ready")))
            }
        })
    }

    /// Waits until all members run that version, as the status has it.
    #[track_caller]
    pub fn until_runs(&self, version: &str) {
        self.until(|_| {
            let status = &self.object()?["status"];
            if status["version"] == version { Ok(()) } else { Err(format!("{} runs", status["version"])) }
        });
    }

    /// Waits as people do, until it is ready: then all that it asks for serves.
    #[track_caller]
    pub fn wait_until_ready(&self) {
        let object = format!("etcdcluster/{NAME}");
        self.namespace.kubectl(&["wait", "--for=condition=Ready", &object, &timeout(PATIENCE)]).ok();
        // A probe that is late has one not ready for a moment.
        self.until(|_| {
            let object = self.object()?;
            let ready = condition(&object, "Ready");
            if ready["status"] != "True" {
                return Err(ready.to_string());
            }
            let (asked, status) = (&object["spec"], &object["status"]);
            assert_eq!(status["readyReplicas"], asked["replicas"], "{object}");
            assert_eq!(status["version"], asked["version"], "{object}");
            Ok(())
        });
    }

    /// All members that were found whenever it was looked, by their identities.
    pub fn seen(&self) -> BTreeSet<u64> {
        self.seen.borrow().clone()
    }

    /// Begins to write.
    pub fn write(&self) {
        *self.service.borrow_mut() = None;
        self.write_with(self.all_voters());
    }

    /// The same by a client that knows the Service of the cluster alone, in plain HTTP.
    pub fn write_by_the_service(&self) {
        let service = self.namespace.get(&format!("service/{NAME}-client")).expect("it is there");
        let address = service["spec"]["clusterIP"].as_str().unwrap_or_default().parse().expect("an address");
        let url = format!("http://{NAME}-client.{}.svc:2379", self.namespace.name);
        let limits = Limits { read: CALL, change: CALL, ..Limits::default() };
        let client = {
            let _inside = self.runtime.enter();
            Client::at(address, &url, None, limits).expect("a URL")
        };
        *self.service.borrow_mut() = Some(client.clone());
        self.write_with(vec![client]);
    }

    fn write_with(&self, clients: Vec<Client>) {
        self.writers.set(self.writers.get() + 1);
        let prefix = format!("history-{}", self.writers.get());
        let writer = self.runtime.block_on(Writer::start_at(self.pace.get(), &prefix, clients));
        *self.writer.borrow_mut() = Some(writer);
    }

    /// Whether clients are writing.
    pub fn is_writing(&self) -> bool {
        self.writer.borrow().is_some()
    }

    /// Waits until so many more writes have been acknowledged. Where none is, the members may be others by now.
    #[track_caller]
    pub fn goes_on(&self, count: u64) {
        let acknowledged = || self.writer.borrow().as_ref().expect("it writes").acknowledged();
        let (mut known, mut since, limit) = (acknowledged(), Instant::now(), patient(OUTAGE));
        let wanted = known + count;
        self.members();
        while known < wanted {
            std::thread::park_timeout(PAUSE);
            let before = std::mem::replace(&mut known, acknowledged());
            if known > before {
                since = Instant::now();
                continue;
            }
            assert!(
                since.elapsed() < limit,
                "no write was acknowledged for {limit:?}: {known} were, and {wanted} are waited for"
            );
            self.members();
        }
    }

    /// Stops writing. Every change that was acknowledged was kept, and all voters have the same data.
    #[track_caller]
    pub fn expect_kept(&self, at_least: usize) -> Report {
        let voters = self.all_voters();
        let writer = self.writer.borrow_mut().take().expect("it writes");
        let report = self.runtime.block_on(writer.finish(&voters));
        let test = std::thread::current().name().unwrap_or("test").to_owned();
        eprintln!("{}", report.figure(&test));
        report.expect_kept(at_least);
        report
    }
}

/// The version of an object.
fn version(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().unwrap_or_default()
}

/// A client that trusts the authorities of one Secret, and shows the certificate of another.
fn tls(authority: &Value, shown: &Value) -> Tls {
    let part = |secret: &Value, key: &str| {
        BASE64.decode(secret["data"][key].as_str().expect("a key")).expect("base64")
    };
    let identity = (part(shown, "tls.crt"), part(shown, "tls.key"));
    Tls::from_pem(&part(authority, "ca.crt"), Some((&identity.0, &identity.1))).expect("certificates")
}
