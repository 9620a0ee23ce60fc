//! A migration whose API server cannot be reached for a while, has no time, or has forgotten where a page begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::super::requests::Item;
use super::*;

/// More often than anything is tried that is given up.
const UNABLE: u32 = TRIES + 3;

fn definition() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.a.dev", "uid": "u", "generation": 1, "resourceVersion": "7"},
        "spec": {"group": "a.dev", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
            "conversion": {"strategy": "Webhook"},
            "versions": [{"name": "v1", "served": true, "storage": true},
                {"name": "v1alpha1", "served": true, "storage": false}]},
        "status": {"storedVersions": ["v1alpha1", "v1"]}})
}

/// What such an API server answers when it fails to answer the request of that number.
type Failing = fn(u32) -> std::io::Result<Response<Body>>;

/// An API server that answers once in so many times; how often it was tried.
fn server(fails: Failing) -> (Requests, Arc<AtomicU32>) {
    let tried = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&tried);
    let service = tower::service_fn(move |request: Request<Body>| {
        let nth = counted.fetch_add(1, Ordering::SeqCst) + 1;
        let of_definition = request.uri().path().starts_with("/apis/apiextensions.k8s.io/");
        let answer = if of_definition { definition() } else { json!({"metadata": {"name": "one"}}) };
        let answer = Body::from(answer.to_string().into_bytes());
        let is_able = nth.is_multiple_of(UNABLE + 1);
        std::future::ready(if is_able { Ok(Response::new(answer)) } else { fails(nth) })
    });
    (Requests::through(Client::new(service, "default")), tried)
}

/// Whether it is waited for: not before anything is begun, and for long after that, until the migration is to end.
async fn is_waited_for_once_a_migration_has_begun(fails: Failing) {
    let (requests, tried) = server(fails);
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
    assert_eq!(tried.swap(0, Ordering::SeqCst), 6 * (UNABLE + 1), "each time two for one");

    migration.stop.cancel();
    assert!(migration.finish(&definition, Tally::default(), true).await.is_err());
    assert_eq!(tried.load(Ordering::SeqCst), 1, "it is to end");
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_cannot_be_reached_is_waited_for_once_a_migration_has_begun() {
    is_waited_for_once_a_migration_has_begun(|_| Err(std::io::Error::other("connection refused"))).await;
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_has_no_time_is_waited_for_once_a_migration_has_begun() {
    // Now and then it fails besides.
    is_waited_for_once_a_migration_has_begun(|nth| {
        let status = if nth.is_multiple_of(UNABLE) { 500 } else { 429 };
        Ok(Response::builder().status(status).header("retry-after", "1").body(Body::empty()).unwrap())
    })
    .await;
}

/// An API server that knows of no token any more, and gives this one instead.
fn forgetful(instead: &'static str) -> Requests {
    let service = tower::service_fn(move |request: Request<Body>| {
        let is_known = ["continue=", &format!("continue={instead}")]
            .iter()
            .any(|end| request.uri().query().is_some_and(|query| query.ends_with(end)));
        let body = if is_known {
            json!({"metadata": {"continue": ""}, "items": [{"metadata": {"name": "one"}}]})
        } else {
            json!({"kind": "Status", "code": 410, "reason": "Expired", "metadata": {"continue": instead}})
        };
        let answer = Response::builder().status(if is_known { 200 } else { 410 });
        std::future::ready(answer.body(Body::from(body.to_string().into_bytes())))
    });
    Requests::through(Client::new(service, "default"))
}

#[tokio::test]
async fn a_page_that_is_forgotten_is_found_again_or_the_pass_begins_again() {
    let definition = Definition::read(definition()).unwrap();
    let beginning = Checkpoint::at_pass(2, "u", 1, "v1");
    let mut known = Checkpoint { next: "old".to_owned(), ..beginning.clone() };
    known.tally.rewritten = 7;
    for (instead, then) in
        [("", beginning), ("fresh", Checkpoint { next: "fresh".to_owned(), ..known.clone() })]
    {
        let requests = forgetful(instead);
        let (goal, options, stop) = (Goal::default(), Options::default(), CancellationToken::new());
        let migration = Migration { requests: &requests, goal, options, stop, watch: &Silent };
        let (mut place, mut chunk) = (known.clone(), 500);
        let page = migration.page(Patience::Short, &definition, &mut place, &mut chunk).await.unwrap();
        assert_eq!((page.items.len(), place), (1, then));
    }
}
