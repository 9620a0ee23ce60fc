//! Objects as an API server has them, read and written with one client. A test looks several times a second, and a
//! kubectl for each look would take more of the machine than the rest of the test.
//!
//! Guarantees: a request that a webhook had not judged in time is made again, and what comes of it is its verdict.
//! Never: defaults or drops a field. What the API server sends is what a test sees, `managedFields` included.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use futures::AsyncBufReadExt as _;
use futures::future::{join_all, ready};
use futures::stream::{self, LocalBoxStream, StreamExt as _};
use gatehouse::runtime::call::impatient;
use gatehouse::runtime::supervisor::chain;
use hyper::Request;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

pub use crate::paths::{collection_of, of, path_of};
pub use crate::refusal::Refusal;
use crate::refusal::until_judged_async;
use crate::wait::{PATIENCE, patient};

/// Requests that are under way at a time.
const AT_A_TIME: usize = 16;

/// How long a wait relies on one watch until it asks again.
const WATCHED: Duration = Duration::from_secs(20);

/// Between two looks where no watch tells of changes.
const PAUSE: Duration = Duration::from_millis(50);

/// The field manager of what [`Ask::apply`] applies.
const MANAGER: &str = "kit";

/// An administrator's client, and a runtime for it.
pub struct Objects {
    runtime: Runtime,
    client: Client,
}

impl std::fmt::Debug for Objects {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Objects").finish_non_exhaustive()
    }
}

/// What came of a request.
pub type Outcome = Result<Value, Refusal>;

/// One request. A PATCH is a JSON patch where its body is a list, and a merge patch where it is not; an APPLY is the
/// PATCH of a server-side apply.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The HTTP method, or APPLY.
    pub method: &'static str,
    /// The path, with its query.
    pub path: String,
    /// The body; none where it is null.
    pub body: Value,
}

impl Ask {
    /// A GET.
    #[must_use]
    pub fn get(path: impl Into<String>) -> Self {
        Self { method: "GET", path: path.into(), body: Value::Null }
    }

    /// A POST.
    #[must_use]
    pub fn post(path: impl Into<String>, body: Value) -> Self {
        Self { method: "POST", path: path.into(), body }
    }

    /// A PUT.
    #[must_use]
    pub fn put(path: impl Into<String>, body: Value) -> Self {
        Self { method: "PUT", path: path.into(), body }
    }

    /// A PATCH.
    #[must_use]
    pub fn patch(path: impl Into<String>, body: Value) -> Self {
        Self { method: "PATCH", path: path.into(), body }
    }

    /// A DELETE.
    #[must_use]
    pub fn delete(path: impl Into<String>) -> Self {
        Self { method: "DELETE", path: path.into(), body: Value::Null }
    }

    /// A POST that makes an object, in this namespace where it names none and its kind has one.
    #[must_use]
    pub fn create(object: &Value, namespace: &str) -> Self {
        Self::post(collection_of(object, namespace), object.clone())
    }

    /// A server-side apply of an object, which takes what others own; fields that its kind does not have are refused.
    /// `query` says more, such as `dryRun=All`.
    #[must_use]
    pub fn apply(object: &Value, namespace: &str, query: &str) -> Self {
        let name = object["metadata"]["name"].as_str().expect("a name");
        let place = collection_of(object, namespace);
        let path = format!("{place}/{name}?fieldManager={MANAGER}&force=true&fieldValidation=Strict&{query}");
        Self { method: "APPLY", path, body: object.clone() }
    }
}

impl Objects {
    /// The client of the first context of a kubeconfig.
    #[must_use]
    pub fn new(kubeconfig: &Path) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let client = runtime.block_on(async {
            let config = config(kubeconfig).await;
            Client::try_from(config).expect("a client")
        });
        Self { runtime, client }
    }

    /// Does something with the client itself.
    pub fn with<T>(&self, work: impl AsyncFnOnce(Client) -> T) -> T {
        self.runtime.block_on(work(self.client.clone()))
    }

    /// An object of a namespace by the name that kubectl takes, such as `pod/main-0`, in the newest version served.
    ///
    /// # Errors
    /// It is not there, or the API server does not answer; which of them.
    pub fn get(&self, object: &str, namespace: &str) -> Result<Value, String> {
        let (kind, name) = object.split_once('/').expect("a kind and a name");
        self.read(&format!("{}/{name}", path_of(kind, namespace)))
    }

    /// The objects of a resource, such as `pods`, that have these labels; all of them where none is named.
    ///
    /// # Errors
    /// The API server says why it does not list them.
    pub fn list(&self, resource: &str, namespace: &str, labels: &str) -> Result<Vec<Value>, String> {
        let mut list = self.read(&format!("{}?labelSelector={labels}", path_of(resource, namespace)))?;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            other => Err(format!("no list of {resource}: {other}")),
        }
    }

    /// What the API server has at a path.
    ///
    /// # Errors
    /// It says that there is nothing, or does not answer.
    pub fn read(&self, path: &str) -> Result<Value, String> {
        let request = Request::get(path).body(Vec::new()).expect("a request");
        let answer = self.runtime.block_on(self.client.request(request));
        answer.map_err(|error| format!("GET {path}: {}", chain(&error)))
    }

    /// Makes all these requests, some at a time; what came of them, in their order.
    #[must_use]
    pub fn all(&self, asks: Vec<Ask>) -> Vec<Outcome> {
        let asks = asks.into_iter().enumerate();
        let asks = asks.map(async |(at, ask)| (at, send(self.client.clone(), ask).await));
        // One that takes long holds up no other.
        let outcomes = stream::iter(asks).buffer_unordered(AT_A_TIME).collect();
        let mut outcomes: Vec<_> = self.runtime.block_on(outcomes);
        outcomes.sort_unstable_by_key(|(at, _)| *at);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }

    /// Makes one request.
    ///
    /// # Errors
    /// The API server refuses it.
    pub fn one(&self, ask: Ask) -> Outcome {
        self.runtime.block_on(send(self.client.clone(), ask))
    }

    /// The same for a request that the API server takes.
    #[track_caller]
    pub fn must(&self, ask: Ask) -> Value {
        let what = format!("{} {}", ask.method, ask.path);
        self.one(ask).unwrap_or_else(|refusal| panic!("{what}: {}", refusal.message))
    }

    /// What comes of a request about something that may not be there.
    #[track_caller]
    pub fn if_there(&self, ask: Ask) -> Option<Value> {
        let what = format!("{} {}", ask.method, ask.path);
        match self.one(ask) {
            Ok(found) => Some(found),
            Err(refusal) if refusal.code == 404 => None,
            Err(refusal) => panic!("{what}: {}", refusal.message),
        }
    }

    /// Asks for all of these to be deleted, whatever comes of it: for what a test leaves.
    pub fn discard(&self, paths: Vec<String>) {
        let asks = paths.into_iter().map(|path| attempt(&self.client, Ask::delete(path)));
        let outcomes = stream::iter(asks).buffered(AT_A_TIME);
        self.runtime.block_on(outcomes.for_each(|_| ready(())));
    }

    /// What is at a path where there is something.
    #[track_caller]
    pub fn at(&self, path: &str) -> Value {
        self.must(Ask::get(path))
    }

    /// Makes one request; what came of it, and what the API server warns of.
    pub fn warned(&self, ask: Ask) -> (Outcome, Vec<String>) {
        self.runtime.block_on(exchange(&self.client, ask))
    }

    /// Reads all these paths at once, to the end of what comes: for watches with a limit of time.
    #[must_use]
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

    /// All events of a watch from that version on, up to one that is the last. `place` is a collection with a query.
    #[must_use]
    pub fn events_until(&self, place: &str, version: &str, is_last: impl Fn(&Value) -> bool) -> Vec<Value> {
        let watch = format!("{place}&watch=true&resourceVersion={version}");
        let read = async {
            let request = Request::get(&watch).body(Vec::new()).expect("a request");
            let mut lines = self.client.request_stream(request).await.expect("a watch").lines();
            let mut events: Vec<Value> = Vec::new();
            while !events.last().is_some_and(&is_last) {
                let line = lines.next().await.expect("an event").expect("a line");
                events.push(serde_json::from_str(&line).expect("JSON"));
            }
            events
        };
        let limit = patient(PATIENCE);
        let read = self.runtime.block_on(async { tokio::time::timeout(limit, read).await });
        read.unwrap_or_else(|_| panic!("{watch}: the last event has not come within {limit:?}"))
    }

    /// The first event that is meant, of a watch that begins before a request is made.
    pub fn event_after(&self, watch: &str, ask: Ask, is_meant: impl Fn(&Value) -> bool) -> Value {
        self.runtime.block_on(async {
            let request = Request::get(watch).body(Vec::new()).expect("a request");
            let mut lines = self.client.request_stream(request).await.expect("a watch").lines();
            send(self.client.clone(), ask).await.unwrap_or_else(|refusal| panic!("{}", refusal.message));
            loop {
                let line = lines.next().await.expect("an event").expect("a line");
                let event = serde_json::from_str(&line).expect("JSON");
                if is_meant(&event) {
                    return event;
                }
            }
        })
    }

    /// Waits until an object is as it is looked for. On a timeout, reports what `is_so` said last.
    #[track_caller]
    pub fn until<T>(&self, object: &str, namespace: &str, is_so: impl Fn(&Value) -> Result<T, String>) -> T {
        let (kind, name) = object.split_once('/').expect("a kind and a name");
        self.follow(&path_of(kind, namespace), name, |found| match found {
            Some(found) => is_so(found),
            None => Err(format!("{object} is not there")),
        })
    }

    /// Waits until the API server says that an object is not there.
    #[track_caller]
    pub fn until_gone(&self, object: &str, namespace: &str) {
        let (kind, name) = object.split_once('/').expect("a kind and a name");
        self.follow(&path_of(kind, namespace), name, |found| match found {
            None => Ok(()),
            Some(found) => Err(format!("{object} is there: {found}")),
        });
    }

    /// Waits until an object of a collection is as it is looked for, each of its states from now on, or is not there.
    /// A watch tells of them.
    #[track_caller]
    pub fn follow<T>(
        &self,
        collection: &str,
        name: &str,
        is_so: impl Fn(Option<&Value>) -> Result<T, String>,
    ) -> T {
        let (begun, limit) = (Instant::now(), patient(PATIENCE));
        let mut last = String::new();
        loop {
            match self.runtime.block_on(States::of(&self.client, collection, name)) {
                // Judged out here, where what judges may ask as well.
                Ok(mut states) => {
                    while let Ok(state) = self.runtime.block_on(states.next(&self.client)) {
                        match is_so(state.as_ref()) {
                            Ok(found) => return found,
                            Err(why) => last = why,
                        }
                    }
                }
                Err(why) => last = why,
            }
            assert!(begun.elapsed() < limit, "not within {limit:?}: {last}");
            std::thread::park_timeout(PAUSE);
        }
    }
}

/// The states of an object, none where it is not there: that of now, and each one after that for a while.
struct States {
    now: Result<Option<Value>, Ended>,
    /// The watch that tells of the rest, where there is one.
    watch: Option<String>,
    lines: Option<LocalBoxStream<'static, std::io::Result<String>>>,
}

/// No more states are reported.
struct Ended;

impl States {
    async fn of(client: &Client, collection: &str, name: &str) -> Result<Self, String> {
        let chosen = format!("{collection}?fieldSelector=metadata.name%3D{name}");
        let list = match attempt(client, Ask::get(&*chosen)).await? {
            (Ok(list), _) => list,
            // The kind is not served, or no more: none of its objects is there.
            (Err(refusal), _) if refusal.code == 404 => Value::Null,
            (Err(refusal), _) => return Err(refusal.message),
        };
        let version = list["metadata"]["resourceVersion"].as_str();
        let watch = version.map(|version| {
            format!("{chosen}&watch=true&timeoutSeconds={}&resourceVersion={version}", WATCHED.as_secs())
        });
        Ok(Self { now: Ok(listed(&list)), watch, lines: None })
    }

    /// The next one, until the watch ends. An API server that hangs ends none: then it is given up.
    async fn next(&mut self, client: &Client) -> Result<Option<Value>, Ended> {
        let now = std::mem::replace(&mut self.now, Err(Ended));
        if now.is_ok() {
            return now;
        }
        if let Some(watch) = self.watch.take() {
            let request = Request::get(&watch).body(Vec::new()).expect("a request");
            let watch = tokio::time::timeout(WATCHED, client.request_stream(request)).await;
            let watch = watch.map_err(|_late| Ended)?.map_err(|_refused| Ended)?;
            self.lines = Some(watch.lines().boxed_local());
        }
        let lines = self.lines.as_mut().ok_or(Ended)?;
        let line = tokio::time::timeout(2 * WATCHED, lines.next()).await;
        let Ok(Some(Ok(line))) = line else { return Err(Ended) };
        let mut event: Value = serde_json::from_str(&line).map_err(|_broken| Ended)?;
        match event["type"].as_str() {
            Some("DELETED") => Ok(None),
            Some("ADDED" | "MODIFIED") => Ok(Some(event["object"].take())),
            _ => Err(Ended),
        }
    }
}

/// The only object of a list, which leaves out what kind its objects are of.
fn listed(list: &Value) -> Option<Value> {
    let mut object = list["items"].get(0)?.clone();
    if object["kind"].is_null() {
        let kind = list["kind"].as_str().unwrap_or_default();
        object["kind"] = json!(kind.strip_suffix("List").unwrap_or(kind));
        object["apiVersion"] = list["apiVersion"].clone();
    }
    Some(object)
}

async fn send(client: Client, ask: Ask) -> Outcome {
    exchange(&client, ask).await.0
}

/// Makes a request until it is judged.
async fn exchange(client: &Client, ask: Ask) -> (Outcome, Vec<String>) {
    let made = async || attempt(client, ask.clone()).await.unwrap_or_else(|why| panic!("{why}"));
    until_judged_async(made, |(outcome, _)| outcome.as_ref().err().map(|refusal| &*refusal.message)).await
}

/// Makes a request; what came of it, and what the API server warns of. It is an error that there is no answer.
async fn attempt(client: &Client, ask: Ask) -> Result<(Outcome, Vec<String>), String> {
    let Ask { method, path, body } = ask;
    let media = match (method, &body) {
        ("APPLY", _) => "application/apply-patch+yaml",
        ("PATCH", Value::Array(_)) => "application/json-patch+json",
        ("PATCH", _) => "application/merge-patch+json",
        _ => "application/json",
    };
    let failed = |error: kube::Error| format!("{method} {path}: {}", chain(&error));
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder()
        .method(if method == "APPLY" { "PATCH" } else { method })
        .uri(&path)
        .header("content-type", media)
        .body(Body::from(body))
        .expect("a request");
    let (head, body) = client.send(request).await.map_err(failed)?.into_parts();
    let text = body.collect_bytes().await.map_err(failed)?;
    let warnings = head.headers.get_all("warning").iter();
    let warnings = warnings.filter_map(|line| warning(line.to_str().ok()?)).collect();
    let value: Value =
        serde_json::from_slice(&text).unwrap_or_else(|_| json!({"message": String::from_utf8_lossy(&text)}));
    let outcome =
        if head.status.is_success() { Ok(value) } else { Err(refusal(head.status.as_u16(), &value)) };
    Ok((outcome, warnings))
}

/// The text of a header `299 - "text"`.
fn warning(line: &str) -> Option<String> {
    let text = line.split_once('"')?.1.rsplit_once('"')?.0;
    Some(text.replace("\\\"", "\""))
}

/// What a Status says.
fn refusal(code: u16, status: &Value) -> Refusal {
    let causes = status["details"]["causes"].as_array().cloned().unwrap_or_default();
    let field = |cause: &Value| cause["field"].as_str().unwrap_or_default().to_owned();
    Refusal {
        code,
        message: status["message"].as_str().unwrap_or_default().to_owned(),
        fields: causes.iter().map(field).collect(),
    }
}

/// A condition of an object; null where it has none of that type.
#[must_use]
pub fn condition(object: &Value, about: &str) -> Value {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == about).unwrap_or_default()
}

/// The client's configuration for a kubeconfig, with gatehouse's limits of silence.
pub async fn config(kubeconfig: &Path) -> Config {
    install_provider();
    let read = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
    impatient(config.expect("a sound kubeconfig"))
}

/// Has rustls use the one provider of cryptography that is built in.
pub fn install_provider() {
    // The second call of a process finds it installed.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}

/// A page of a gate's health port, with its head; empty where there is no answer.
#[must_use]
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

#[cfg(test)]
mod tests;
