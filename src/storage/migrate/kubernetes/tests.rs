//! A migrator of Kubernetes that does not come to its end, on an API server whose time passes at once.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::super::{Options, Silent, Watch};
use super::*;
use crate::storage::plan::Goal;
use crate::storage::plan::writer::Writer;
use crate::storage::requests::Requests;

const MIGRATIONS: &str = "/apis/storagemigration.k8s.io/v1/storageversionmigrations";
const NAME: &str = "widgets.a.dev";

/// What an API server was asked for, and what it has said about the definition.
#[derive(Default)]
struct Told {
    requests: Vec<String>,
    reasons: Vec<String>,
}

/// An API server with one object, whose migrator says that of itself.
struct Server {
    said: Value,
    converts: bool,
    /// The status by which it refuses to make a migration.
    refuses: Option<u16>,
}

fn definition() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME, "uid": "u", "generation": 1, "resourceVersion": "7"},
        "spec": {"group": "a.dev", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
            "conversion": {"strategy": "Webhook"},
            "versions": [{"name": "v1", "served": true, "storage": true},
                {"name": "v1alpha1", "served": true, "storage": false}]},
        "status": {"storedVersions": ["v1alpha1", "v1"],
            "conditions": [{"type": "Established", "status": "True"}]}})
}

impl Server {
    fn answer(&self, method: &Method, path: &str, query: &str) -> (u16, Value) {
        let object = json!({"metadata": {"name": "one", "namespace": "shop", "resourceVersion": "1"}});
        match (path.strip_prefix(MIGRATIONS), method) {
            (Some(_), &Method::POST) if self.refuses.is_some() => {
                (self.refuses.unwrap_or_default(), json!({"message": "not you"}))
            }
            (Some(_), &Method::DELETE) => (200, json!({})),
            (Some(_), _) => {
                let status = json!({"conditions": self.said});
                (200, json!({"metadata": {"name": "widgets.a.dev.gatehouse", "uid": "m"}, "status": status}))
            }
            (None, _) if path.starts_with("/apis/apiextensions.k8s.io/") => (200, definition()),
            (None, _) if query.contains("limit=") => (200, json!({"metadata": {}, "items": [object]})),
            (None, &Method::GET) if !self.converts => (500, json!({"message": "nothing converts"})),
            _ => (200, object),
        }
    }

    fn start(self) -> (Requests, Arc<Mutex<Told>>) {
        let (server, told) = (Arc::new(self), Arc::new(Mutex::new(Told::default())));
        let noted = Arc::clone(&told);
        let service = tower::service_fn(move |request: Request<Body>| {
            let (server, noted) = (Arc::clone(&server), Arc::clone(&noted));
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await.unwrap().to_bytes();
                let body: Value = serde_json::from_slice(&body).unwrap_or_default();
                let path = head.uri.path();
                let mut noted = noted.lock().unwrap();
                if path.starts_with(MIGRATIONS) && head.method != Method::GET {
                    noted.requests.push(head.method.to_string());
                }
                let conditions = body["status"]["conditions"].as_array();
                let reasons = conditions.into_iter().flatten().filter(|one| one["type"] == "StorageMigrated");
                noted.reasons.extend(reasons.map(|one| one["reason"].as_str().unwrap().to_owned()));
                let (status, body) = server.answer(&head.method, path, head.uri.query().unwrap_or_default());
                let answer = Response::builder().status(status);
                Ok::<_, std::convert::Infallible>(
                    answer.body(Body::from(body.to_string().into_bytes())).unwrap(),
                )
            }
        });
        (Requests::through(Client::new(service, "default")), told)
    }
}

/// What it hears of Kubernetes.
#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl Watch for Heard {
    fn see(&self, event: Event<'_>) {
        if let Event::TakenBack(text) = event {
            self.0.lock().unwrap().push(text.to_owned());
        }
    }
}

async fn migrated(requests: &Requests, watch: &dyn Watch) -> Result<Outcome, Error> {
    let options = Options { writer: Writer::Auto, ..Options::default() };
    let (goal, stop) = (Goal::default(), CancellationToken::new());
    Migration { requests, goal, options, stop, watch }.run(NAME).await
}

/// It is given up after about that time, and gatehouse writes.
async fn is_given_up(said: Value, after: Duration, why: &str) {
    let (requests, told) = Server { said, converts: true, refuses: None }.start();
    let (heard, begun) = (Heard::default(), clock::instant());
    let ended = migrated(&requests, &heard).await.unwrap();
    assert!(matches!(ended, Outcome::Migrated { .. }), "{ended:?}");
    // The time that the definition has to have been as it is comes before, and again after it by another clock.
    let took = begun.elapsed();
    assert!((after..after + Duration::from_mins(3)).contains(&took), "{took:?}");
    let told = told.lock().unwrap();
    assert_eq!(told.requests, ["POST", "DELETE"], "once, and it is taken away");
    let heard = heard.0.into_inner().unwrap();
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert!(heard[0].starts_with(&format!("gatehouse writes the objects: {why}")), "{heard:?}");
}

#[tokio::test(start_paused = true)]
async fn a_migration_that_never_begins_is_given_up() {
    let why = "nothing carries out StorageVersionMigrations";
    is_given_up(json!([]), Duration::from_mins(3), why).await;
}

#[tokio::test(start_paused = true)]
async fn a_migration_that_never_ends_is_given_up() {
    let said = json!([{"type": "Running", "status": "True", "message": "The migration is running"}]);
    let why = "Kubernetes has not ended after 36";
    is_given_up(said, Duration::from_mins(6), why).await;
}

#[tokio::test(start_paused = true)]
async fn a_migration_that_fails_at_the_same_object_is_given_up() {
    let message = "The migration is running, 1/1 objects not yet migrated; transient error: nothing converts";
    let said = json!([{"type": "Running", "status": "True", "message": message}]);
    let why = format!("Kubernetes does not get on: {message}");
    is_given_up(said, Duration::from_mins(2), &why).await;
}

#[tokio::test(start_paused = true)]
async fn who_may_not_ask_kubernetes_writes() {
    let (requests, told) = Server { said: json!([]), converts: true, refuses: Some(403) }.start();
    let heard = Heard::default();
    let ended = migrated(&requests, &heard).await.unwrap();
    assert!(matches!(ended, Outcome::Migrated { .. }), "{ended:?}");
    assert_eq!(told.lock().unwrap().requests, ["POST"]);
    let why = "gatehouse writes the objects: unable to create storageversionmigrations of storagemigration.k8s.io: not you";
    assert_eq!(heard.0.into_inner().unwrap(), [why]);
}

#[tokio::test(start_paused = true)]
async fn what_keeps_it_from_asking_kubernetes_is_in_the_condition() {
    let (requests, told) = Server { said: json!([]), converts: false, refuses: None }.start();
    let error = migrated(&requests, &Silent).await.unwrap_err().to_string();
    assert!(error.contains("unable to convert one of widgets.a.dev to v1: "), "{error}");
    let told = told.lock().unwrap();
    assert_eq!(told.reasons, ["Failed"]);
    assert_eq!(told.requests, [""; 0]);
}
