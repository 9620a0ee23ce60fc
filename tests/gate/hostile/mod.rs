//! The program against envelopes that no API server sends: any client that reaches its port may.
//!
//! Each gets an answer with a clear message, with the uid of its request where it showed one; none is allowed; the
//! process answers a sane request afterwards, and its memory stays bounded.

mod amplification;
mod content;
mod envelope;
mod memory;
mod ports;
mod size;

use serde_json::{Value, json};

use crate::program::Served;
use crate::support::{Connection, within};

const UID: &str = "5f0c2a57-9f6f-4e4a-8b62-0c7f6a2d9f3e";

/// The program, and a client of it.
struct Target {
    served: Served,
    client: reqwest::Client,
}

impl Target {
    async fn start() -> Self {
        let served = Served::start(&[]);
        served.ready().await;
        Self { client: served.authority.client(), served }
    }

    fn url(&self, path: &str) -> String {
        self.served.url(path)
    }

    /// A connection, spoken by hand.
    async fn connect(&self) -> Connection {
        Connection(self.served.authority.connect(self.served.gate.address, &["http/1.1"]).await)
    }

    /// Posts a body as JSON; the review that answers.
    async fn ask(&self, path: &str, body: impl Into<Vec<u8>>) -> Value {
        self.ask_with(path, &[("content-type", "application/json")], body).await
    }

    async fn ask_with(&self, path: &str, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Value {
        let mut request = self.client.post(self.url(path)).body(body.into());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = within(request.send()).await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        serde_json::from_str(&within(response.text()).await.unwrap()).unwrap()
    }

    /// A line of its status in bytes: `VmRSS` is what it has now, `VmHWM` the most that it had.
    fn memory(&self, name: &str) -> u64 {
        let status = format!("/proc/{}/status", self.served.gate.id().pid());
        let status = std::fs::read_to_string(status).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    /// The most memory that it takes from now on is what [`Self::memory`] calls `VmHWM`.
    fn forget_the_most(&self) {
        std::fs::write(format!("/proc/{}/clear_refs", self.served.gate.id().pid()), "5").unwrap();
    }

    /// Processor time that it has taken, in milliseconds.
    fn processor(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.served.gate.id().pid())).unwrap();
        let fields: Vec<_> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        (fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()) * 10
    }

    /// It still tells right from wrong.
    async fn is_sane(&self) {
        let right = self.ask("/validate", admission(&cluster(3)).to_string()).await;
        assert_eq!(right["response"]["allowed"], true, "{right}");
        let wrong = self.ask("/validate", admission(&cluster(9)).to_string()).await;
        assert_eq!(wrong["response"]["allowed"], false, "{wrong}");
        let converted = self.ask("/convert", conversion(&[cluster(3)], "v1alpha1").to_string()).await;
        assert_eq!(converted["response"]["result"]["status"], "Success", "{converted}");
    }
}

fn cluster(replicas: u32) -> Value {
    json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster",
        "metadata": {"name": "a", "namespace": "b"}, "spec": {"replicas": replicas, "version": "3.6.16"}})
}

fn old_cluster(name: &str) -> Value {
    json!({"apiVersion": "gatehouse.dev/v1alpha1", "kind": "EtcdCluster",
        "metadata": {"name": name, "namespace": "b"}, "spec": {"size": 3}})
}

/// A review that is allowed.
pub fn sound() -> String {
    admission(&cluster(3)).to_string()
}

fn admission(object: &Value) -> Value {
    let kind = object["kind"].as_str().unwrap_or("EtcdCluster");
    let kind = json!({"group": "gatehouse.dev", "version": "v1", "kind": kind});
    let resource = json!({"group": "gatehouse.dev", "version": "v1", "resource": "etcdclusters"});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": UID,
        "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
        "name": "a", "namespace": "b", "operation": "CREATE", "userInfo": {"username": "eve"}, "object": object}})
}

fn conversion(objects: &[Value], to: &str) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {"uid": UID, "desiredAPIVersion": format!("gatehouse.dev/{to}"), "objects": objects}})
}

/// A review as API servers write it: the uid of the request comes before all else of it.
fn as_sent(review: &Value) -> String {
    let text = review.to_string();
    let uid = format!("\"uid\":\"{UID}\"");
    let Some((before, after)) = text.split_once(&format!(",{uid}")) else { return text };
    format!("{before}{after}").replacen("\"request\":{", &format!("\"request\":{{{uid},"), 1)
}

/// A refusal: its code, its message and its uid.
#[track_caller]
fn refusal(path: &str, answer: &Value) -> (u64, String, String) {
    let response = &answer["response"];
    let status = if path.starts_with("/convert") {
        assert_eq!(response["result"]["status"], "Failure", "{answer:.500}");
        assert_eq!(response["convertedObjects"], json!([]));
        &response["result"]
    } else {
        assert_eq!(response["allowed"], false, "{answer:.500}");
        assert!(response.get("patch").is_none());
        &response["status"]
    };
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    (status["code"].as_u64().expect("a code"), text(&status["message"]), text(&response["uid"]))
}
