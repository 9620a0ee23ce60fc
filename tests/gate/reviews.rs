//! What a review meets on its way.

use std::time::Duration;

use gatehouse::review::{Answer, Endpoint};
use gatehouse::server::Limits;
use serde_json::Value;

use crate::support::{Barrier, Gate, echo, large, limits, passes, within};

async fn json(response: reqwest::Response) -> Value {
    serde_json::from_str(&response.text().await.unwrap()).unwrap()
}

#[tokio::test]
async fn each_path_asks_for_its_review_with_or_without_a_kind() {
    let gate = Gate::echo();
    for name in ["mutate", "validate", "convert"] {
        for path in [format!("/{name}"), format!("/{name}/tdsets"), format!("/{name}?timeout=10s")] {
            let response = gate.post(&path).body("{}").send().await.unwrap();
            assert_eq!(response.status(), 200, "{path}");
            assert_eq!(response.headers()["content-type"], "application/json");
            assert_eq!(json(response).await["endpoint"], name, "{path}");
        }
    }
}

#[tokio::test]
async fn any_other_path_is_not_found_and_any_other_method_not_allowed() {
    let gate = Gate::echo();
    for path in ["/", "/validation", "/validate/", "/validate/a/b", "/metrics", "/readyz"] {
        let response = gate.post(path).body("{}").send().await.unwrap();
        assert_eq!(response.status(), 404, "{path}");
        assert_eq!(json(response).await["reason"], "NotFound");
    }
    let response = gate.authority.client().get(gate.url("/validate")).send().await.unwrap();
    assert_eq!(response.status(), 405);
    assert_eq!(response.headers()["allow"], "POST");
    assert_eq!(json(response).await["message"], "unsupported method GET: expected POST");
    gate.shows(r#"controller_runtime_webhook_requests_total{webhook="other",code="404"} 6"#).await;
    gate.shows(r#"controller_runtime_webhook_requests_total{webhook="other",code="405"} 1"#).await;
}

#[tokio::test]
async fn a_body_of_the_limit_is_judged_and_one_byte_more_is_a_failure_inside_the_review() {
    let small = Limits { admission_body: 1000, conversion_body: 2000, ..limits() };
    let gate = Gate::start(small, echo);
    for (path, limit) in [("/validate", 1000), ("/mutate", 1000), ("/convert", 2000)] {
        let whole = json(gate.post(path).body("x".repeat(limit)).send().await.unwrap()).await;
        assert_eq!((&whole["read"], &whole["failure"]), (&limit.into(), &Value::Null));
        let response = gate.post(path).body("x".repeat(limit + 1)).send().await.unwrap();
        assert_eq!(response.status(), 200);
        let refused = json(response).await;
        assert_eq!(refused["failure"], 413);
        assert_eq!(refused["read"], limit, "the uid is looked for in what was read");
    }
}

#[tokio::test]
async fn a_client_that_writes_past_the_limit_still_reads_the_answer() {
    let gate = Gate::echo();
    let body = "x".repeat(Limits::default().admission_body + 4_000_000);
    let refused = json(within(gate.post("/validate").body(body).send()).await.unwrap()).await;
    assert_eq!(refused["failure"], 413);
}

#[tokio::test]
async fn what_is_not_plain_json_is_refused_inside_the_review() {
    let gate = Gate::echo();
    let client = gate.authority.client();
    let yaml = client.post(gate.url("/validate")).header("content-type", "application/yaml");
    let response = yaml.body("a: 1").send().await.unwrap();
    assert_eq!(response.status(), 200);
    let refused = json(response).await;
    assert_eq!(refused["failure"], 415);
    assert_eq!(
        refused["message"],
        r#"unsupported Content-Type "application/yaml": expected application/json"#
    );
    assert_eq!(refused["read"], 4);
    let gzip = gate.post("/convert").header("content-encoding", "gzip").body("x");
    let refused = json(gzip.send().await.unwrap()).await;
    assert_eq!(refused["message"], r#"unsupported Content-Encoding "gzip": expected none"#);
}

#[tokio::test]
async fn a_review_that_takes_too_long_is_answered_before_the_client_gives_up() {
    let barrier = Barrier::default();
    let held = barrier.clone();
    let gate = Gate::start(limits(), move |endpoint, body| {
        held.pass();
        echo(endpoint, body)
    });
    let asked = tokio::spawn(gate.post("/validate?timeout=30s").body(large()).send());
    barrier.reached().await;
    passes(Duration::from_secs(30)).await;
    let refused = json(within(asked).await.unwrap().unwrap()).await;
    barrier.open();
    assert_eq!(refused["failure"], 504);
    assert_eq!(refused["read"], large().len());
}

#[tokio::test]
async fn a_body_that_does_not_come_is_answered_with_what_there_is() {
    let gate = Gate::echo();
    let mut connection = gate.connect().await;
    let head = "POST /validate?timeout=100ms HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n";
    connection.send(&format!("{head}content-length: 100\r\n\r\n{{\"half\"")).await;
    let answer = connection.answer().await;
    assert_eq!(answer.status, 200);
    assert_eq!((&answer.body["failure"], &answer.body["read"]), (&504.into(), &7.into()));
}

#[tokio::test]
async fn a_timeout_that_is_none_is_refused_with_what_is_allowed() {
    let gate = Gate::echo();
    let refused = json(gate.post("/validate?timeout=soon").body("{}").send().await.unwrap()).await;
    assert_eq!(refused["failure"], 400);
    assert!(refused["message"].as_str().unwrap().contains(r#"timeout: "soon""#));
}

#[tokio::test]
async fn a_panic_is_one_reviews_failure_and_the_connection_lives_on() {
    let gate = Gate::start(limits(), |endpoint, body| {
        assert!(!body.starts_with(b"x"), "on purpose");
        echo(endpoint, body)
    });
    let mut connection = gate.connect().await;
    for body in ["x", &large()] {
        let answer = connection.ask("/validate", body).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.body["failure"], 500);
        assert_eq!(answer.body["read"], body.len());
    }
    assert_eq!(connection.ask("/validate", "{}").await.body["read"], 2);
    gate.shows("gatehouse_panics_total 2").await;
    gate.shows(r#"gatehouse_reviews_total{endpoint="validate",kind="",operation="",code="500"} 2"#).await;
    gate.shows(r#"controller_runtime_webhook_requests_total{webhook="/validate",code="200"} 3"#).await;
    gate.shows(r#"controller_runtime_webhook_requests_in_flight{webhook="/validate"} 0"#).await;
}

#[tokio::test]
async fn over_the_number_in_flight_a_client_has_to_retry() {
    let barrier = Barrier::default();
    let held = barrier.clone();
    let one = Limits { in_flight: 1, ..limits() };
    let gate = Gate::start(one, move |endpoint, body| {
        if body.len() > 2 {
            held.pass();
        }
        echo(endpoint, body)
    });
    let first = tokio::spawn(gate.post("/convert").body(large()).send());
    barrier.reached().await;
    let response = gate.post("/validate").body(large()).send().await.unwrap();
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["retry-after"], "1");
    assert_eq!(json(response).await["reason"], "ServiceUnavailable");
    gate.shows("gatehouse_requests_shed_total 1").await;
    let small = gate.post("/validate").body("{}").send().await.unwrap();
    assert_eq!(json(small).await["read"], 2, "it waits for nothing, and no large one takes its place");
    barrier.open();
    assert_eq!(within(first).await.unwrap().unwrap().status(), 200);
    let again = gate.post("/validate").body(large()).send().await.unwrap();
    assert_eq!(again.status(), 200);
}

#[tokio::test]
async fn large_reviews_wait_for_each_other_and_small_ones_do_not_wait_for_them() {
    let barrier = Barrier::default();
    let held = barrier.clone();
    let one = Limits { large_in_flight: 1, ..limits() };
    let gate = Gate::start(one, move |endpoint, body| {
        if body.len() > 2 {
            held.pass();
        }
        echo(endpoint, body)
    });
    let first = tokio::spawn(gate.post("/convert").body(large()).send());
    gate.shows(r#"controller_runtime_webhook_requests_in_flight{webhook="/convert"} 1"#).await;
    let second = gate.post("/convert?timeout=200ms").body(large()).send();
    assert_eq!(json(within(second).await.unwrap()).await["failure"], 504);
    let small = gate.post("/convert").body("{}").send();
    assert_eq!(json(within(small).await.unwrap()).await["read"], 2);
    barrier.open();
    assert_eq!(json(within(first).await.unwrap().unwrap()).await["failure"], Value::Null);
}

#[tokio::test]
async fn a_review_that_may_take_its_time_holds_up_no_thread_that_serves() {
    let barrier = Barrier::default();
    let held = barrier.clone();
    let inline = Limits::default().inline;
    // This test has one thread that serves: if it validated the first review itself, no client would be answered.
    let gate = Gate::start(limits(), move |endpoint, body| {
        if body.len() > inline {
            held.pass();
        }
        echo(endpoint, body)
    });
    let slow = gate.post("/validate?timeout=30s").body("x".repeat(inline + 1)).send();
    let slow = tokio::spawn(slow);
    barrier.reached().await;
    let quick = gate.post("/validate").body("x".repeat(inline)).send();
    assert_eq!(json(within(quick).await.unwrap()).await["read"], inline);
    // Its deadline holds, though its work goes on.
    passes(Duration::from_secs(30)).await;
    assert_eq!(json(within(slow).await.unwrap().unwrap()).await["failure"], 504);
    barrier.open();
}

#[tokio::test]
async fn what_reviews_say_is_counted() {
    let gate = Gate::start(limits(), |endpoint, body| Answer {
        report: gatehouse::review::Report {
            kind: "TDSet",
            operation: "UPDATE",
            code: if endpoint == Endpoint::Convert { 200 } else { 422 },
            dry_run: body.len() == 2,
            conversions: vec![gatehouse::review::Conversions {
                kind: "TDSet",
                from: "v1",
                to: "v1alpha1",
                objects: body.len() as u64,
                lost: 1,
            }],
            ..Default::default()
        },
        ..echo(endpoint, body)
    });
    gate.post("/validate").body("{}").send().await.unwrap();
    gate.post("/convert").body("12345").send().await.unwrap();
    for line in [
        r#"gatehouse_reviews_total{endpoint="validate",kind="TDSet",operation="UPDATE",code="422"} 1"#,
        r#"gatehouse_conversion_objects_total{from="v1",to="v1alpha1",kind="TDSet",result="success"} 5"#,
        r#"gatehouse_conversion_loss_total{kind="TDSet"} 1"#,
        r#"gatehouse_dry_runs_total{webhook="/validate",kind="TDSet"} 1"#,
        r#"controller_runtime_webhook_latency_seconds_count{webhook="/validate"} 1"#,
    ] {
        gate.shows(line).await;
    }
}

#[tokio::test]
async fn requests_of_one_connection_follow_each_other_on_it() {
    let gate = Gate::echo();
    let mut connection = gate.connect().await;
    for length in 1..5 {
        let answer = connection.ask("/mutate", &"x".repeat(length)).await;
        assert_eq!(answer.body["read"], length);
        assert!(!answer.says_close());
    }
    gate.shows("gatehouse_connections_total 1").await;
    // Two at once: the answers come in the order of the questions.
    connection.send(&(request_of(3) + &request_of(4))).await;
    assert_eq!(connection.answer().await.body["read"], 3);
    assert_eq!(connection.answer().await.body["read"], 4);
}

fn request_of(length: usize) -> String {
    crate::support::request("/mutate", &"x".repeat(length))
}

#[tokio::test]
async fn a_large_review_is_judged_whole() {
    let gate = Gate::echo();
    let body = "x".repeat(6_000_000);
    let asked = gate.post("/validate").body(body);
    assert_eq!(json(asked.send().await.unwrap()).await["read"], 6_000_000);
}
