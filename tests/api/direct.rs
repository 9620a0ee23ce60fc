//! Requests without kubectl, for tests that make hundreds of them.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use futures::AsyncBufReadExt as _;
use futures::future::join_all;
use futures::stream::{self, StreamExt as _};
use hyper::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;
use tokio::runtime::Runtime;

/// Requests that are under way at a time.
const AT_A_TIME: usize = 16;

/// The administrator's client, and a runtime for it.
pub struct Direct {
    runtime: Runtime,
    client: Client,
}

/// Why the API server refused a request.
#[derive(Clone, Debug, Default)]
pub struct Refusal {
    pub code: u16,
    pub message: String,
    /// The fields that its causes name.
    pub fields: BTreeSet<String>,
}

/// What came of a request.
pub type Outcome = Result<Value, Refusal>;

/// One request: method, path with query, and body.
pub struct Call {
    pub method: &'static str,
    pub path: String,
    pub body: Value,
}

impl Direct {
    pub fn new(kubeconfig: &Path) -> Self {
        // The second client of a process finds it installed.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let runtime = Runtime::new().expect("a runtime");
        let client = runtime.block_on(async {
            let read = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
            let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
            Client::try_from(config.expect("a sound kubeconfig")).expect("a client")
        });
        Self { runtime, client }
    }

    /// Does something with the client itself.
    pub fn with<T>(&self, work: impl AsyncFnOnce(Client) -> T) -> T {
        self.runtime.block_on(work(self.client.clone()))
    }

    /// Makes all these requests, some at a time; what came of them, in their order.
    pub fn all(&self, calls: Vec<Call>) -> Vec<Outcome> {
        let calls = calls.into_iter().map(|call| one(self.client.clone(), call));
        self.runtime.block_on(stream::iter(calls).buffered(AT_A_TIME).collect())
    }

    pub fn one(&self, call: Call) -> Outcome {
        self.runtime.block_on(one(self.client.clone(), call))
    }

    /// Reads all these paths at once, to the end of what comes: for watches with a limit of time.
    pub fn texts(&self, paths: Vec<String>) -> Vec<String> {
        let read = |path: String| {
            let client = self.client.clone();
            async move {
                let request = Request::get(&path).body(Vec::new()).expect("a request");
                client.request_text(request).await.unwrap_or_else(|error| panic!("GET {path}: {error}"))
            }
        };
        self.runtime.block_on(join_all(paths.into_iter().map(read)))
    }

    /// The first event that is meant, of a watch that begins before a call is made.
    pub fn event_after(&self, watch: &str, call: Call, is_meant: impl Fn(&Value) -> bool) -> Value {
        self.runtime.block_on(async {
            let request = Request::get(watch).body(Vec::new()).expect("a request");
            let mut lines = self.client.request_stream(request).await.expect("a watch").lines();
            one(self.client.clone(), call).await.unwrap_or_else(|refusal| panic!("{}", refusal.message));
            loop {
                let line = lines.next().await.expect("an event").expect("a line");
                let event = serde_json::from_str(&line).expect("JSON");
                if is_meant(&event) {
                    return event;
                }
            }
        })
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Value {
        let call = Call { method: "GET", path: path.to_owned(), body: Value::Null };
        self.one(call).unwrap_or_else(|refusal| panic!("GET {path}: {}", refusal.message))
    }
}

async fn one(client: Client, call: Call) -> Outcome {
    let body = if call.body.is_null() { Vec::new() } else { call.body.to_string().into_bytes() };
    let media = if call.method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = Request::builder().method(call.method).uri(&call.path).header("content-type", media);
    match client.request::<Value>(request.body(body).expect("a request")).await {
        Ok(value) => Ok(value),
        Err(kube::Error::Api(status)) => {
            let causes = status.details.iter().flat_map(|details| &details.causes);
            Err(Refusal {
                code: status.code,
                fields: causes.map(|cause| cause.field.clone()).collect(),
                message: status.message.clone(),
            })
        }
        Err(error) => panic!("{} {}: {error}", call.method, call.path),
    }
}

/// The path of the objects of a kind in one version and namespace: `of("v1", "a", "tdsets")`.
pub fn of(version: &str, namespace: &str, plural: &str) -> String {
    format!("/apis/gatehouse.dev/{version}/namespaces/{namespace}/{plural}")
}

/// A page of a gate's health port, with its head; empty where there is no answer.
pub fn http_get(address: SocketAddr, path: &str) -> String {
    let mut page = String::new();
    let asked = TcpStream::connect(address).and_then(|mut stream| {
        write!(stream, "GET {path} HTTP/1.1\r\nhost: gate\r\nconnection: close\r\n\r\n")?;
        stream.read_to_string(&mut page)
    });
    // A gate that is not there has no page.
    drop(asked);
    page
}
