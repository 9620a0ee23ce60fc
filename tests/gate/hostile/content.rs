//! Depth, keys, numbers and annotations of conversions that are not written by accident.

use serde_json::{Value, json};

use super::{Target, UID, admission, cluster, conversion, old_cluster, refusal};
use crate::support::within;

/// `{"a":{"a":…` or `[[…`, `depth` levels of it.
fn nested(open: &str, close: &str, depth: usize) -> String {
    open.repeat(depth) + "1" + &close.repeat(depth)
}

#[tokio::test]
async fn depth_overflows_nothing() {
    let target = Target::start().await;
    for depth in [100, 127, 200, 10_000, 500_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let deep = nested(open, close, depth);
            let object = format!(
                r#"{{"apiVersion":"gatehouse.dev/v1","kind":"EtcdCluster","metadata":{{"name":"a"}},"spec":{deep}}}"#
            );
            let mut frame = admission(&json!("HERE")).to_string();
            frame = frame.replace("\"HERE\"", &object);
            for path in ["/mutate", "/validate"] {
                let answer = target.ask(path, frame.clone()).await;
                if depth >= 200 {
                    let (code, message, uid) = refusal(path, &answer);
                    assert_eq!((code, uid.as_str()), (400, UID), "{message}");
                    assert!(message.contains("recursion limit"), "{message}");
                } else if open == "[" {
                    assert_eq!(answer["response"]["allowed"], false, "a spec that is a list");
                }
            }
            // A conversion never fails on content: what is too deep for any schema stays as it came.
            let frame = conversion(&[json!("HERE")], "v1alpha1").to_string().replace("\"HERE\"", &object);
            let request = target.client.post(target.url("/convert"));
            let request = request.header("content-type", "application/json").body(frame);
            let text = within(within(request.send()).await.unwrap().text()).await.unwrap();
            assert!(text.contains("\"status\":\"Success\""), "{text:.300}");
            assert!(text.contains("gatehouse.dev/v1alpha1"), "{text:.300}");
            if depth >= 200 {
                assert!(text.contains(&deep), "{text:.300}");
            }
            // The same without an end, and in place of the envelope.
            for path in ["/mutate", "/validate", "/convert"] {
                refusal(path, &target.ask(path, deep.clone()).await);
                refusal(path, &target.ask(path, open.repeat(depth)).await);
            }
        }
    }
    target.is_sane().await;
}

#[tokio::test]
async fn keys_that_come_twice_are_refused() {
    let target = Target::start().await;
    let review = admission(&cluster(3)).to_string();
    for (from, to, says) in [
        ("\"spec\":{", "\"spec\":{\"replicas\":9},\"spec\":{", "duplicate field \"spec\""),
        ("\"replicas\":3", "\"replicas\":9,\"replicas\":3", "duplicate field \"replicas\""),
        ("\"operation\":", "\"operation\":\"DELETE\",\"operation\":", "duplicate field \"operation\""),
        ("\"replicas\":3", "\"replic\\u0061s\":9,\"replicas\":3", "duplicate field \"replicas\""),
    ] {
        assert!(review.contains(from));
        for path in ["/mutate", "/validate"] {
            let (code, message, uid) = refusal(path, &target.ask(path, review.replacen(from, to, 1)).await);
            assert_eq!((code, uid.as_str()), (400, UID), "{message}");
            assert!(message.contains(says), "{message}");
        }
    }
    target.is_sane().await;
}

#[tokio::test]
async fn numbers_beyond_all_bounds_are_never_allowed() {
    let target = Target::start().await;
    let review = admission(&cluster(3)).to_string();
    let digits = "9".repeat(100_000);
    let numbers = [
        "1e400",
        "-1e400",
        "99999999999999999999",
        "18446744073709551616",
        "3.0000001",
        "1e2",
        "NaN",
        "Infinity",
        "0x3",
        "03",
        "-",
        "+3",
        "3.",
        ".3",
        &digits,
        "9007199254740993",
        "2147483648",
    ];
    for number in numbers {
        for path in ["/mutate", "/validate"] {
            let body = review.replacen("\"replicas\":3", &format!("\"replicas\":{number}"), 1);
            let answer = target.ask(path, body).await;
            let (code, message, uid) = refusal(path, &answer);
            assert!([400, 422].contains(&code), "{number:.40}: {code}");
            assert_eq!(uid, UID, "{number:.40}");
            let told = message.contains("spec.replicas") || message.contains("line 1 column");
            assert!(told && message.len() < 1000, "{number:.40}: {message:.1000}");
        }
    }
    target.is_sane().await;
}

/// An object with that loss annotation.
fn remembering(field: &str, text: &str) -> Value {
    let mut object = old_cluster("bomb");
    object["metadata"]["annotations"] = json!({format!("conversion.gatehouse.dev/{field}"): text});
    object
}

/// Fields and what annotations forge of them.
fn forgeries() -> Vec<(String, String)> {
    let items = (0..40).fold("{}".to_owned(), |inner, _| {
        format!(r#"{{"items":[{{"shown":"a","was":{{}},"rows":{{"/spec/windows":{inner}}}}}]}}"#)
    });
    let wide = (0..50_000).map(|index| format!(r#""k{index}":{{}},"#)).collect::<Vec<_>>().concat();
    vec![
        ("spec.tls".to_owned(), nested("[", "]", 100_000)),
        ("spec.tls".to_owned(), nested("[", "]", 100)),
        ("spec.pod".to_owned(), nested("{\"a\":", "}", 100_000)),
        ("spec.pod".to_owned(), nested("{\"a\":", "}", 120)),
        ("spec.pod".to_owned(), "{\"a\":".repeat(1000)),
        ("spec.windows".to_owned(), items.clone()),
        ("spec.backup.schedule".to_owned(), items),
        ("spec".to_owned(), "[1,2,3]".to_owned()),
        ("spec".to_owned(), "5".to_owned()),
        ("spec.replicas".to_owned(), "99".to_owned()),
        ("spec.options".to_owned(), format!("{{{wide}\"extra\":5}}")),
        ("metadata.name".to_owned(), "\"other\"".to_owned()),
        ("apiVersion".to_owned(), "\"v9\"".to_owned()),
        ("kind".to_owned(), "\"Pod\"".to_owned()),
        ("dropped".to_owned(), "true".to_owned()),
        (String::new(), "{}".to_owned()),
        ("...".to_owned(), "{}".to_owned()),
        ("a-b".to_owned(), "{}".to_owned()),
        ("a-b".to_owned(), r#"{"":5}"#.to_owned()),
        ("a-b".to_owned(), r#"{"/kind":"Pod","/metadata/name":"other"}"#.to_owned()),
        ("a-b".to_owned(), format!(r#"{{"{}":5}}"#, "/a".repeat(100_000))),
        ("a-b".to_owned(), format!(r#"{{"/spec{}":5}}"#, "/".repeat(100_000))),
        ("a.".repeat(100_000), "5".to_owned()),
        ("spec.tls".to_owned(), "\u{0}\u{ffff}".to_owned()),
    ]
}

#[tokio::test]
async fn a_forged_memory_of_a_conversion_does_no_harm() {
    let target = Target::start().await;
    for (field, text) in forgeries() {
        let body = conversion(&[remembering(&field, &text)], "v1").to_string();
        let answer = target.ask("/convert", body).await;
        assert_eq!(answer["response"]["result"]["status"], "Success", "{field:.100}: {text:.100}");
        let object = &answer["response"]["convertedObjects"][0];
        assert_eq!(object["apiVersion"], "gatehouse.dev/v1", "{field:.100}: {text:.100}");
        assert_eq!(object["kind"], "EtcdCluster", "{field:.100}: {text:.100}");
        assert_eq!(object["metadata"]["name"], "bomb", "{field:.100}: {text:.100}");
        assert_eq!(object["spec"]["replicas"], 3, "what the old version shows wins");
        for path in ["/mutate", "/validate"] {
            let mut review = admission(&remembering(&field, &text));
            review["request"]["kind"]["version"] = "v1alpha1".into();
            review["request"]["requestKind"]["version"] = "v1alpha1".into();
            let answer = target.ask(path, review.to_string()).await;
            assert_eq!(answer["response"]["uid"], UID, "{field:.100}: {text:.100}");
        }
    }
    target.is_sane().await;
}

#[tokio::test]
async fn what_is_refused_makes_a_short_line_however_long_its_fields_are() {
    let target = Target::start().await;
    let long = "x".repeat(1 << 20);
    let mut object = cluster(3);
    object["metadata"]["name"] = long.clone().into();
    object["spec"]["pod"] = json!({"labels": {long.clone(): "a"}});
    let mut review = admission(&object);
    review["request"]["name"] = long.clone().into();
    review["request"]["userInfo"]["username"] = long.into();
    let (code, message, _) = refusal("/validate", &target.ask("/validate", review.to_string()).await);
    assert_eq!(code, 422, "{message:.300}");
    let gate = &target.served.gate;
    gate.logs("refused");
    let line =
        gate.log().text().lines().find(|line| line.contains(r#""message":"refused""#)).unwrap().to_owned();
    assert!(line.contains("spec.pod.labels"), "{line:.300}");
    assert!(line.len() < 4096, "{} bytes: {line:.300}", line.len());
}
