//! Envelopes that are none, requests that make no sense, and bytes that are no JSON.

use serde_json::{Value, json};

use super::{Target, UID, admission, as_sent, cluster, conversion, old_cluster, refusal};

/// A review that was changed: what was done, the text, what the refusal says, and whether its uid could be seen.
type Spoilt<'a> = (&'a str, String, &'a str, bool);

/// What is no review of that `version` and `kind` any more.
fn spoilt<'a>(review: &Value, version: &'a str, kind: &'a str) -> Vec<Spoilt<'a>> {
    let text = as_sent(review);
    let change = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    };
    let uid = format!("\"uid\":\"{UID}\"");
    let with = |field: &str, value: Option<Value>| {
        let mut review = review.clone();
        let fields = review.as_object_mut().unwrap();
        match value {
            Some(value) => fields.insert(field.to_owned(), value),
            None => fields.remove(field),
        };
        as_sent(&review)
    };
    let two_requests = change("\"request\":", "\"request\":{},\"request\":");
    vec![
        ("nothing", String::new(), "the body is empty", false),
        ("a number", "5".to_owned(), "unable to read", false),
        ("null", "null".to_owned(), "unable to read", false),
        ("a text", "\"x\"".to_owned(), "unable to read", false),
        ("a list", format!("[{text}]"), "unable to read", true),
        ("an empty object", "{}".to_owned(), kind, false),
        ("half", text[..text.len() / 2].to_owned(), "unable to read", true),
        ("more behind", format!("{text}{{}}"), "unable to read", true),
        ("yaml", "apiVersion: v1\nkind: List\n".to_owned(), "unable to read", false),
        ("form", "uid=5&a=b".to_owned(), "unable to read", false),
        ("an older version", change(version, &version.replace("/v1", "/v1beta1")), "v1beta1", true),
        ("another kind", change(kind, "PodReview"), "\"PodReview\"", true),
        ("a long kind", change(kind, &"K".repeat(1 << 20)), "KKKK", true),
        ("no kind", with("kind", None), kind, true),
        ("no version", with("apiVersion", None), version, true),
        ("no request", with("request", None), "has no request", false),
        ("a request of null", with("request", Some(Value::Null)), "has no request", false),
        ("a request of a list", with("request", Some(json!([]))), "invalid type: sequence", false),
        ("a request of nothing", with("request", Some(json!({}))), "has no uid", false),
        ("a uid of nothing", change(&uid, "\"uid\":\"\""), "has no uid", false),
        ("a uid of a number", change(&uid, "\"uid\":5"), "has no uid", false),
        ("two uids", change(&uid, &format!("{uid},\"uid\":\"other\"")), "duplicate field \"uid\"", true),
        ("two requests", two_requests, "duplicate field", true),
    ]
}

#[tokio::test]
async fn an_envelope_that_is_none_is_refused_with_the_reason() {
    let target = Target::start().await;
    for (path, review, version, kind) in [
        ("/mutate", admission(&cluster(3)), "admission.k8s.io/v1", "AdmissionReview"),
        ("/validate", admission(&cluster(3)), "admission.k8s.io/v1", "AdmissionReview"),
        ("/convert", conversion(&[cluster(3)], "v1alpha1"), "apiextensions.k8s.io/v1", "ConversionReview"),
    ] {
        for (what, body, says, seen) in spoilt(&review, version, kind) {
            let (code, message, uid) = refusal(path, &target.ask(path, body).await);
            assert_eq!(code, 400, "{path}: {what}: {message}");
            assert!(message.contains(says), "{path}: {what}: {message}");
            assert!(message.len() < 400, "{path}: {what} is reported at length: {} bytes", message.len());
            assert_eq!(uid, if seen { UID } else { "" }, "{path}: {what}");
        }
    }
    target.is_sane().await;
}

#[tokio::test]
async fn a_request_that_makes_no_sense_is_refused_with_the_field() {
    let target = Target::start().await;
    let change = |pointer: &str, value: Value| {
        let mut review = admission(&cluster(3));
        *review.pointer_mut(pointer).unwrap() = value;
        as_sent(&review)
    };
    let update = change("/request/operation", "UPDATE".into());
    for path in ["/mutate", "/validate"] {
        for (body, says) in [
            (change("/request/operation", "EXPLODE".into()), "unknown operation \"EXPLODE\""),
            (change("/request/operation", Value::Null), "request.operation"),
            (change("/request/kind", Value::Null), "kind"),
            (change("/request/kind/kind", "Pod".into()), "unknown kind \"Pod\""),
            (change("/request/kind/group", "apps".into()), "unknown kind"),
            (change("/request/kind/version", "v2".into()), "v2"),
            (change("/request/object", Value::Null), "has no object"),
            (change("/request/object", "x".into()), "request.object is no object"),
            (change("/request/object", json!([1, 2])), "request.object is no object"),
            (update.clone(), "has no oldObject"),
        ] {
            let (code, message, uid) = refusal(path, &target.ask(path, body).await);
            assert_eq!((code, uid.as_str()), (400, UID), "{message}");
            assert!(message.contains(says), "{says}: {message}");
        }
    }
    let change = |pointer: &str, value: Value| {
        let mut review = conversion(&[cluster(3), old_cluster("c")], "v1alpha1");
        *review.pointer_mut(pointer).unwrap() = value;
        as_sent(&review)
    };
    for (body, says) in [
        (change("/request/desiredAPIVersion", Value::Null), "desiredAPIVersion"),
        (change("/request/desiredAPIVersion", "gatehouse.dev/v9".into()), "gatehouse.dev/v9"),
        (change("/request/objects", json!({})), "unable to read objects"),
        (change("/request/objects", "x".into()), "unable to read objects"),
        (change("/request/objects/1", Value::Null), "objects[1]"),
        (change("/request/objects/1", json!([])), "objects[1]"),
        (change("/request/objects/1", json!({})), "objects[1]"),
        (change("/request/objects/1/kind", "Pod".into()), "objects[1]: Pod b/c: unknown kind \"Pod\""),
        (
            change("/request/objects/1/apiVersion", "v2".into()),
            "objects[1]: EtcdCluster b/c: unknown version \"v2\"",
        ),
    ] {
        let (code, message, uid) = refusal("/convert", &target.ask("/convert", body).await);
        assert_eq!((code, uid.as_str()), (400, UID), "{message}");
        assert!(message.contains(says), "{says}: {message}");
    }
    target.is_sane().await;
}

#[tokio::test]
async fn a_review_cut_off_anywhere_is_refused_with_its_uid_once_that_was_there() {
    let target = Target::start().await;
    for (path, text) in [
        ("/mutate", as_sent(&admission(&cluster(3)))),
        ("/validate", as_sent(&admission(&cluster(3)))),
        ("/convert", as_sent(&conversion(&[cluster(3), old_cluster("c")], "v1"))),
    ] {
        let shown = text.find(UID).unwrap() + UID.len();
        for length in (0..text.len()).step_by(7) {
            let (code, message, uid) = refusal(path, &target.ask(path, &text.as_bytes()[..length]).await);
            assert_eq!(code, 400, "{path} of {length} bytes: {message}");
            if length >= shown {
                assert_eq!(uid, UID, "{path} of {length} bytes");
            }
        }
    }
    target.is_sane().await;
}

#[tokio::test]
async fn what_is_no_plain_json_is_refused() {
    let target = Target::start().await;
    let plain = ("content-type", "application/json");
    for (path, text) in [
        ("/mutate", as_sent(&admission(&cluster(3)))),
        ("/validate", as_sent(&admission(&cluster(3)))),
        ("/convert", as_sent(&conversion(&[cluster(3)], "v1alpha1"))),
    ] {
        for (headers, says) in [
            (vec![plain, ("content-encoding", "gzip")], "unsupported Content-Encoding \"gzip\""),
            (vec![("content-type", "application/yaml")], "unsupported Content-Type \"application/yaml\""),
            (vec![("content-type", "text/plain")], "unsupported Content-Type \"text/plain\""),
            (vec![], "unsupported Content-Type"),
        ] {
            let answer = target.ask_with(path, &headers, text.clone()).await;
            let (code, message, uid) = refusal(path, &answer);
            assert_eq!((code, uid.as_str()), (415, UID), "{message}");
            assert!(message.contains(says), "{message}");
        }
        // The beginning of a gzip stream, and a byte that no UTF-8 has, inside of a text.
        let (code, message, _) = refusal(path, &target.ask(path, [0x1f, 0x8b, 8, 0, 0, 0, 0, 0]).await);
        assert_eq!(code, 400);
        assert!(message.contains("not UTF-8"), "{message}");
        let mut bytes = text.into_bytes();
        let at = bytes.windows(6).position(|window| window == b"\"name\"").unwrap();
        bytes[at + 2] = 0xff;
        let (code, message, uid) = refusal(path, &target.ask(path, bytes).await);
        assert_eq!((code, uid.as_str()), (400, UID), "{message}");
        assert!(message.contains("not UTF-8"), "{message}");
        // UTF-16 and a byte order mark are no JSON either.
        let marked = [b"\xef\xbb\xbf", as_sent(&admission(&cluster(3))).as_bytes()].concat();
        refusal(path, &target.ask(path, marked).await);
    }
    target.is_sane().await;
}
