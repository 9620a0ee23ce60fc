//! A migration whose API server cannot be reached for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::super::requests::Item;
use super::*;

/// More often than anything is tried that is given up.
const UNREACHED: u32 = TRIES + 3;

fn definition() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.a.dev", "uid": "u", "generation": 1, "resourceVersion": "7"},
        "spec": {"group": "a.dev", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
            "conversion": {"strategy": "Webhook"},
            "versions": [{"name": "v1", "served": true, "storage": true},
                {"name": "v1alpha1", "served": true, "storage": false}]},
        "status": {"storedVersions": ["v1alpha1", "v1"]}})
}

/// An API server that can be reached once in so many times; how often it was tried.
fn server() -> (Requests, Arc<AtomicU32>) {
    let tried = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&tried);
    let service = tower::service_fn(move |request: Request<Body>| {
        let nth = counted.fetch_add(1, Ordering::SeqCst) + 1;
        let of_definition = request.uri().path().starts_with("/apis/apiextensions.k8s.io/");
        let answer = if of_definition { definition() } else { json!({"metadata": {"name": "one"}}) };
        let answer = Body::from(answer.to_string().into_bytes());
        std::future::ready(if nth.is_multiple_of(UNREACHED + 1) {
            Ok(Response::new(answer))
        } else {
            Err(std::io::Error::other("connection refused"))
        })
    });
    (Requests::through(Client::new(service, "default")), tried)
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_cannot_be_reached_is_waited_for_once_a_migration_has_begun() {
    let (requests, tried) = server();
    let (goal, options, stop) = (Goal::default(), Options::default(), CancellationToken::new());
    let migration = Migration { requests: &requests, goal, options, stop, watch: &Silent };
    assert!(matches!(migration.run("widgets.a.dev").await, Err(Error::Refused { .. })));
    assert_eq!(tried.swap(0, Ordering::SeqCst), TRIES, "nothing was begun");

    let definition = Definition::read(definition()).unwrap();
    migration.say_begun(&definition).await.unwrap();
    let page = Page { items: vec![Item::default()], ..Page::default() };
    migration.is_convertible(&definition, &page).await.unwrap();
    let dropped = vec!["v1alpha1".to_owned()];
    let ended = migration.finish(&definition, Tally::default(), true).await.unwrap();
    assert_eq!(ended, Outcome::Migrated { dropped, last: Tally::default() });
    assert_eq!(tried.swap(0, Ordering::SeqCst), 6 * (UNREACHED + 1), "each time two for one");

    migration.stop.cancel();
    assert!(migration.finish(&definition, Tally::default(), true).await.is_err());
    assert_eq!(tried.load(Ordering::SeqCst), 1, "it is to end");
}
